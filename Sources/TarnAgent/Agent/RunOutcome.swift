import TarnCore
import TarnEngine

/// How a pass ended, as the schedule and the log see it.
struct RunOutcome: Sendable {
  var outcome: RunSchedule.Outcome
  var hints = RunSchedule.Hints()
  /// For the log and the status.
  var message: String
  var level: AgentLog.Level
  /// Why the pass did not do its work; nil when it did, though some entries may have failed.
  var failure: String?
  var code: String
  /// What `tarn sync` ends with after such a pass.
  var exitStatus: Int32
  /// It looked at the whole folder.
  var hasScanned = false

  init(_ report: PassReport) {
    exitStatus = report.isInSync || report.isPlan ? 0 : 3
    hasScanned = !report.isFolderUnseen && !report.isPlan && !report.wasStopped
    hints.freshFor = report.refreshSeconds
    message = report.counts.sentence
    level = .info
    code = "in-sync"
    if report.wasStopped {
      outcome = .cancelled
      message = "stopped; what was fetched is kept: \(message)"
      code = "stopped"
    } else if report.isInSync || report.isPlan {
      outcome = .succeeded
      message = "in sync: \(message)" + (report.isFeedUnchanged ? "; the feed has not changed" : "")
    } else if report.counts.failed == 0, report.counts.held > 0 {
      outcome = .held
      message = "held for approval: \(message)"
      level = .warning
      code = "held"
    } else {
      outcome = report.problems.contains(where: \.mayPass) ? .failedTransient : .failedPermanent
      message = "incomplete: \(message)"
      level = .warning
      code = "partial"
    }
  }

  init(_ failure: PassFailure) {
    hints.retryAfter = failure.retryAfter
    code = failure.code
    exitStatus = failure.kind.exitStatus
    message = failure.message
    level = .error
    self.failure = failure.message
    switch failure.kind {
    case .stopped:
      outcome = .cancelled
      self.failure = nil
      level = .info
    case .feedUnreachable:
      outcome =
        ["http-404", "http-410", "http-401", "http-403"].contains(code) ? .failedPermanent : .failedTransient
    case .locked, .inputOutput: outcome = .failedTransient
    case .usage, .feedMalformed, .folderUnusable, .permission, .configuration, .noAgent, .defect:
      outcome = .failedPermanent
    }
  }
}

extension Problem {
  /// Trying again before the mirror's time may help: the other end, the way there or this machine was in trouble.
  var mayPass: Bool {
    guard kind == .failed else { return false }
    if code.hasPrefix("http-5") || code == "http-429" || code == "http-408" { return true }
    switch DownloadFailure.Code(rawValue: code) {
    case .resolve, .connect, .timeout, .tooSlow, .reset, .truncated, .outOfMemory, .tooManyOpenFiles,
      .hostResting:
      return true
    default: return code == "changed-meanwhile"
    }
  }
}

extension PassCounts {
  /// `12 fetched, 3 updated, 1 failed of 4,000`.
  var sentence: String { "\(changes), \(inPlace) of \(wanted) in place" }
}
