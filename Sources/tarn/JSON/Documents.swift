import TarnCore
import TarnEngine

/// The document of `explain --json`.
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
  /// True when no file is recorded that could be compared.
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

  /// Makes the line of an agent's approval; `accepted` means that it goes ahead after the pass at work.
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

/// The output of `trash list --json`, and of a restore.
struct TrashReport: Encodable {
  struct File: Encodable {
    var id: String
    var path: String
    var pathBytes: String?
    var reason: String
    /// True when Tarn placed these bytes and nobody has changed them since: such files expire.
    var own: Bool
    var bytes: UInt64
    var time: String
    /// The time until which it stays at least; left out when only 'tarn trash empty' removes it.
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

/// The document of `trash empty --json`.
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

/// The document of `forget --json`.
struct ForgetReport: Encodable {
  var schema = "tarn-forget/1"
  var folder: String
  /// The number of files in its trash, which were removed as well.
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

/// The last line of `events --json`; with `--follow` there is none, for a signal ends it.
struct JournalSummary: Encodable {
  var schema = "tarn-events/1"
  var type = "summary"
  /// The exit status, which is not 0 when a mirror could not be read.
  var exitStatus: Int32
  /// The number of lines before this one.
  var events: Int
  /// The cursor to continue with `--after`, even when nothing has happened yet.
  var cursor: String
}
