import TarnCore
import TarnEngine

/// `explain --json`.
struct ExplainReport: Encodable {
  let answer: Explanation
  let pathBytes: String?

  private enum Key: String, CodingKey { case schema, pathBytes }

  func encode(to encoder: any Encoder) throws {
    try answer.encode(to: encoder)
    var container = encoder.container(keyedBy: Key.self)
    try container.encode("tarn-explain/1", forKey: .schema)
    try container.encodeIfPresent(pathBytes, forKey: .pathBytes)
  }
}

/// The last line of `verify --json`; `verified` when a repair follows.
struct VerifyLine: Encodable {
  var schema = "tarn-verify/1"
  var type: String
  var exitStatus: Int32
  var good: Int
  var checked: Int
  var bytes: UInt64
  var damaged: Int
  var missing: Int
  var changed: Int
  var unreadable: Int
  /// No file is recorded that could be compared.
  var blank: Bool
  var stopped: Bool

  init(_ report: VerifyReport, type: String, status: ExitStatus) {
    self.type = type
    exitStatus = status.rawValue
    good = report.good
    checked = report.checked
    bytes = report.bytes
    damaged = report.damaged.count
    missing = report.missing.count
    changed = report.changed.count
    unreadable = report.problems.count
    blank = report.isBlank
    stopped = report.wasStopped
  }
}

/// The last line of `approve --json`.
struct ApprovalLine: Encodable {
  var schema = "tarn-approve/1"
  var type = "summary"
  var exitStatus: Int32
  var plan: String
  var deleted: Int
  var spared: Int
  var left: Int
  var failed: Int

  init(_ report: ApprovalReport, status: ExitStatus) {
    exitStatus = status.rawValue
    plan = report.plan.id
    deleted = report.deleted
    spared = report.spared
    left = report.left
    failed = report.problems.count
  }

  /// By the agent; `accepted` is what goes ahead once the pass at work has ended.
  init(_ approval: ControlApproval, status: ExitStatus) {
    type = approval.isDeferred ? "accepted" : "summary"
    exitStatus = status.rawValue
    plan = Printable.escape(approval.plan)
    deleted = approval.deleted
    spared = approval.spared
    left = approval.left
    failed = approval.failed
  }
}

/// `trash list --json`, and of what was restored.
struct TrashReport: Encodable {
  struct File: Encodable {
    var id: String
    var path: String
    var pathBytes: String?
    var reason: String
    /// Tarn placed these bytes, and nobody wrote into them since: they expire.
    var own: Bool
    var bytes: UInt64
    var time: String
    /// It stays until then at least; nil for ever, or until 'tarn trash empty'.
    var until: String?

    init(_ row: TrashRow, lifetime: Int64?) {
      let name = NameDocument(row.path.bytes)
      id = row.name
      until = row.until(lifetime)?.rfc3339
      path = name.path
      pathBytes = name.pathBytes
      reason = row.reason.rawValue
      own = row.isOwn
      bytes = row.size
      time = row.when.rfc3339
    }
  }
  var schema = "tarn-trash/1"
  var files: [File]
}

/// `trash empty --json`.
struct EmptiedReport: Encodable {
  var schema = "tarn-trash/1"
  var files: Int
  var bytes: UInt64
  var left: Int

  init(_ report: EmptyReport) {
    files = report.files
    bytes = report.bytes
    left = report.left
  }
}

/// `forget --json`.
struct ForgetReport: Encodable {
  var schema = "tarn-forget/1"
  var folder: String
  /// So many files of its trash went with it.
  var trashFiles: Int
}

/// A line of `events --json`.
struct JournalLine: Encodable {
  let event: EventDocument

  private enum Key: String, CodingKey { case schema, type }

  func encode(to encoder: any Encoder) throws {
    try event.encode(to: encoder)
    var container = encoder.container(keyedBy: Key.self)
    try container.encode("tarn-events/1", forKey: .schema)
    try container.encode("event", forKey: .type)
  }
}

/// The last line of `events --json`; those of `--follow` have none, for a signal ends them.
struct JournalSummary: Encodable {
  var schema = "tarn-events/1"
  var type = "summary"
  /// Not 0 where a mirror could not be read.
  var exitStatus: Int32
  /// How many lines are before it.
  var events: Int
  /// What `--after` goes on with, also where nothing has happened yet.
  var cursor: String
}
