import TarnAgent
import TarnCore
import TarnEngine

/// One line of `--json` while a pass runs. Fields that its type does not have are left out.
struct EventLine: Encodable {
  var schema = ""
  var type: String
  var time: String?
  var mirror: String?
  var phase: String?
  var action: String?
  /// True for a deletion that the plan would hold; otherwise left out.
  var held: Bool?
  var path: String?
  var pathBytes: String?
  var kind: String?
  var code: String?
  var message: String?
  var bytes: UInt64?
  var retryAfterSeconds: Double?
  var elapsedSeconds: Double?
  var filesDone: Int?
  var filesTotal: Int?
  var bytesDone: UInt64?
  var bytesTotal: UInt64?
  /// The files of unknown size: `bytesTotal` does not include them, and grows.
  var unknownSizes: Int?
  var bytesPerSecond: UInt64?
  var entriesRead: Int?
  var counts: [String: Int]?
  var byteCounts: [String: UInt64]?

  init(type: String) {
    self.type = type
  }

  /// - Returns: `nil` for an event that only `--verbose` shows.
  init?(_ event: PassEvent, isVerbose: Bool) {
    self.init(type: "")
    switch event {
    case .phase(let phase):
      type = "phase"
      self.phase = phase.rawValue
    case .planned(let report):
      type = "planned"
      counts = report.counts.named
      byteCounts = report.bytes.named
    case .action(let action):
      guard isVerbose else { return nil }
      self.init(action)
    case .done(let code, let path, let bytes):
      guard isVerbose else { return nil }
      type = "done"
      self.code = code
      self.bytes = bytes
      set(path.bytes)
    case .problem(let problem): self.init(problem)
    case .retrying(let path, let message, let seconds):
      type = "retrying"
      self.message = Message.safe(message)
      retryAfterSeconds = seconds
      set(path.bytes)
    case .feedRetrying(let message, let seconds, _):
      type = "notice"
      code = "feed-retry"
      self.message = "\(Message.safe(message)); trying again in \(Units.length(seconds))"
      retryAfterSeconds = seconds
    case .notice(let code, let message):
      type = "notice"
      self.code = code
      self.message = Message.safe(message)
    }
  }

  init(_ problem: Problem) {
    self.init(type: "problem")
    kind = problem.kind.rawValue
    code = problem.code
    message = Message.safe(problem.message)
    set(problem.name)
  }

  init(_ action: Action) {
    self.init(type: "action")
    self.action = action.kindToTell.rawValue
    // Restoring a mode transfers no bytes.
    bytes = action.restoresMode ? nil : action.sizeToTell
    set(action.path.bytes)
  }

  init(_ snapshot: PassProgress.Snapshot, elapsed: Double) {
    self.init(type: "progress")
    phase = snapshot.phase.rawValue
    elapsedSeconds = (elapsed * 10).rounded() / 10
    filesDone = snapshot.filesDone
    filesTotal = snapshot.filesTotal
    bytesDone = snapshot.bytesDone
    bytesTotal = snapshot.bytesTotal
    unknownSizes = snapshot.unknownSizes
    bytesPerSecond = snapshot.rate
    entriesRead = snapshot.entriesRead
  }

  private mutating func set(_ name: [UInt8]) {
    let document = NameDocument(name)
    path = document.path
    pathBytes = document.pathBytes
  }
}
