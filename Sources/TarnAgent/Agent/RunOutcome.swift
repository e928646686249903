import Logging
import TarnCore
import TarnEngine
import TarnSchedule

/// The reason why a pass did not do its work.
struct PassFault: Sendable, Equatable {
  var message: String
  /// True when the folder was the reason: it no longer applies once the folder can be examined again.
  var isOfFolder = false
}

/// The end of a pass, for the schedule and the log.
struct RunOutcome: Sendable {
  var outcome: RunSchedule.Outcome
  var hints = RunSchedule.Hints()
  /// The message for the log and the status.
  var message: String
  var level: Logger.Level
  /// The reason why the pass did not do its work; `nil` when it did, though some entries may have failed.
  var failure: PassFault?
  /// The kind of that failure, for the metrics; `nil` when it is no error.
  var error: MetricError?
  /// How to remedy the failure.
  var hint: String?
  var code: String
  /// The exit status of `tarn sync` after such a pass.
  var exitStatus: Int32
  /// The work of the pass; `nil` when it failed before it did anything.
  var words: PassWords?
  /// True when it examined the whole folder.
  var hasScanned = false
  /// True when what is in place has to be counted: repairs recorded meanwhile. Of a pass that failed, only its work knows.
  var wantsCount = false
  /// True when it learned what is wanted.
  var hasReadFeed = false

  init(_ report: PassReport) {
    exitStatus = report.isInSync ? 0 : 3
    let words = PassWords(report)
    self.words = words
    hasScanned = !report.isFolderUnseen && !report.wasStopped
    wantsCount = report.isBesideRepairs
    hasReadFeed = !report.wasStopped
    hints.freshFor = report.refreshSeconds
    message = words.inSync
    level = .info
    code = "in-sync"
    if report.wasStopped {
      outcome = .cancelled
      // A pass without a change may still have had much to do, so it does not say "no changes".
      message =
        "stopped; what was fetched is kept: "
        + (report.counts.changes == PassCounts.noChanges ? "" : "\(report.counts.changes), ")
        + report.counts.standing
      code = "stopped"
    } else if report.isInSync {
      outcome = .succeeded
    } else {
      let isHeld = report.counts.failed == 0 && report.counts.held > 0
      let mayPass = report.problems.contains(where: \.mayPass)
      outcome = isHeld ? .held : mayPass ? .failedTransient : .failedPermanent
      message = words.notInSync
      level = .warning
      code = isHeld ? "held" : "partial"
    }
  }

  /// Makes the outcome of a mirror that only plans. What is to do tells nothing of the mirror's condition.
  ///
  /// - Parameter kinds: the number of changes of each kind, without deletions that would be held.
  init(plan report: PassReport, kinds: [Action.Kind: Int]) {
    exitStatus = 0
    words = PassWords(report)
    hints.freshFor = report.refreshSeconds
    level = .info
    guard !report.wasStopped else {
      outcome = .cancelled
      exitStatus = 3
      message = "the plan was stopped: nothing was changed"
      code = "stopped"
      return
    }
    outcome = .succeeded
    code = "planned"
    var parts = Action.Kind.allCases.compactMap { kind in kinds[kind].map { "\($0) to \(kind.rawValue)" } }
    if report.counts.held > 0 { parts.append("\(report.counts.held) would be held") }
    if report.counts.refused > 0 { parts.append("\(report.counts.refused) refused") }
    if report.counts.conflict > 0 { parts.append("\(report.counts.conflict) in conflict") }
    let counts = report.counts
    let what = parts.isEmpty ? counts.noChange : "to do: \(parts.joined(separator: ", "))"
    message =
      "\(what), \(counts.there) of \(counts.wanted) in place\(counts.toAsk); only planned, for the settings say dry-run"
  }

  init(_ failure: PassFailure) {
    if failure.isAsked { hints.retryAfter = failure.retryAfter } else { hints.restFor = failure.retryAfter }
    code = failure.code
    hints.isAnswer = failure.kind == .feedMalformed || failure.code.hasPrefix("http-")
    exitStatus = failure.kind.exitStatus
    message = failure.message
    level = .error
    self.failure = PassFault(
      message: failure.message,
      isOfFolder: [.folderUnusable, .permission].contains(failure.kind)
        || failure.code == PassFailure.folderNotEmpty)
    hint = failure.hint
    error = MetricError(failure.kind)
    switch failure.kind {
    case .stopped:
      outcome = .cancelled
      self.failure = nil
      level = .info
    case .feedUnreachable:
      outcome =
        ["http-404", "http-410", "http-401", "http-403"].contains(code) ? .failedPermanent : .failedTransient
    case .locked:
      // Another process does the work: that is no failure of the mirror.
      outcome = .busy
      self.failure = nil
      level = .notice
    case .inputOutput: outcome = .failedTransient
    case .usage, .feedMalformed, .folderUnusable, .permission, .configuration, .noAgent, .defect:
      outcome = .failedPermanent
    }
  }
}

extension RunOutcome {
  func lastRun(_ number: UInt64) -> StatusDocument.LastRun {
    var run = StatusDocument.LastRun(
      number: number, code: code, message: message, hint: hint, exitStatus: exitStatus)
    (run.counts, run.bytes) = (words?.counts.named, words?.report.bytes.named)
    return run
  }
}

extension RunOutcome {
  /// The message with the first problem and the held plan, for hooks: their readers may see nothing else.
  var messageForHooks: String {
    guard ["partial", "held"].contains(code), let words else { return message }
    let problem = words.report.problems.first.map {
      "\(Printable.escape($0.name)): \($0.message) [\($0.code)]"
    }
    let held = words.counts.held > 0 ? words.report.held : nil
    let plan = held.map { "plan \($0.id) waits for 'tarn approve'" }
    return [message, problem, plan].compactMap { $0 }.joined(separator: "; ")
  }
}

extension Problem {
  /// True when an early retry may help: the server, the network or this machine had a temporary problem.
  var mayPass: Bool {
    guard kind == .failed else { return false }
    if code.hasPrefix("http-5") || code == "http-429" || code == "http-408" { return true }
    switch DownloadFailure.Code(rawValue: code) {
    case .resolve, .connect, .timeout, .tooSlow, .reset, .truncated, .outOfMemory, .tooManyOpenFiles,
      .hostResting, .gaveWay:
      return true
    default: return code == "changed-meanwhile"
    }
  }
}

extension PassCounts {
  /// The files in place: `4 of 12 in place`.
  var standing: String { "\(inPlace) of \(wanted) in place" }
}
