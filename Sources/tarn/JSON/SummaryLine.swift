import TarnAgent
import TarnCore
import TarnEngine

/// The last line of `sync --json` and `plan --json`. With the type `mirror` it ends one of several passes.
struct SummaryLine: Encodable {
  struct Held: Encodable {
    var plan: String
    var deletions: Int
  }
  var schema: String
  var type: String
  var exitStatus: Int32
  var inSync: Bool
  var stopped: Bool
  /// The feed of one mirror; left out of the summary of several.
  var feed: String?
  var folder: String?
  var format: String?
  /// True when the server said that the feed has not changed, and it was not read again.
  var feedUnchanged: Bool?
  var complete: Bool?
  var incompleteReason: String?
  var started: String?
  var ended: String?
  var held: Held?
  /// The options of the pass, given or remembered.
  var options: [String: [String]]?
  /// The problems, 100 at most; each was an event before.
  var problems: [ProblemDocument]?
  var moreProblems: Int?
  /// The number of mirrors; `failures` counts those that failed before they did anything.
  var mirrors = 1
  var failures = 0
  var counts: [String: Int]
  var bytes: [String: UInt64]

  struct ProblemDocument: Encodable {
    var path: String
    var pathBytes: String?
    var kind: String
    var code: String
    var message: String
  }

  /// Makes the summary of one pass.
  init(_ report: PassReport, schema: String, type: String, status: ExitStatus) {
    self.schema = schema
    self.type = type
    exitStatus = status.rawValue
    inSync = report.isInSync
    stopped = report.wasStopped
    feed = Printable.escape(report.feed)
    folder = Printable.escape(report.folder)
    format = report.manifest.format
    feedUnchanged = report.isFeedUnchanged
    complete = report.manifest.isComplete
    incompleteReason = report.manifest.isComplete ? nil : Message.safe(report.manifest.incompleteReason)
    started = report.started.rfc3339
    ended = report.ended.rfc3339
    held = report.held.map { Held(plan: $0.id, deletions: $0.count) }
    options = report.options?.named
    problems = report.problems.prefix(100).map(ProblemDocument.init)
    moreProblems = max(0, report.problems.count - 100)
    counts = report.counts.named
    bytes = report.bytes.named
  }

  /// Makes the summary of several passes.
  ///
  /// - Parameter ends: the ends of the passes that did something, of this process or of an agent.
  init(_ ends: [PassEnd], schema: String, mirrors: Int, status: ExitStatus) {
    self.schema = schema
    type = "summary"
    exitStatus = status.rawValue
    inSync = ends.count == mirrors && ends.allSatisfy(\.isInSync)
    stopped = status.rawValue >= 128
    self.mirrors = mirrors
    failures = mirrors - ends.count
    counts = ends.reduce(into: [:]) { $0.merge($1.counts, uniquingKeysWith: +) }
    bytes = ends.reduce(into: [:]) { $0.merge($1.bytes, uniquingKeysWith: +) }
  }
}

/// The part of one pass in the summary of several.
struct PassEnd {
  var isInSync: Bool
  var counts: [String: Int]
  var bytes: [String: UInt64]

  init(_ report: PassReport) {
    isInSync = report.isInSync
    (counts, bytes) = (report.counts.named, report.bytes.named)
  }

  /// Takes the end of an agent's pass: `nil` when it failed before it did anything.
  init?(_ last: StatusDocument.LastRun) {
    guard last.exitStatus < 64 else { return nil }
    isInSync = last.code == "in-sync"
    (counts, bytes) = (last.counts ?? [:], last.bytes ?? [:])
  }
}

extension SummaryLine.ProblemDocument {
  init(_ problem: Problem) {
    let name = NameDocument(problem.name)
    self.init(
      path: name.path, pathBytes: name.pathBytes, kind: problem.kind.rawValue, code: problem.code,
      message: Message.safe(problem.message))
  }
}
