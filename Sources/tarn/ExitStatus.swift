import ArgumentParser
import Glibc
import TarnCore
import TarnEngine

/// The exit statuses of the process and their meanings.
enum ExitStatus: Equatable, Sendable {
  case inSync
  case somethingToDo
  case partial
  /// The numbers of failures are those of `PassFailure.Kind`.
  case failed(PassFailure.Kind)
  case terminated

  static let allCases: [ExitStatus] =
    [.inSync, .somethingToDo, .partial] + PassFailure.Kind.allCases.map(ExitStatus.failed) + [.terminated]

  static let interrupted = ExitStatus.failed(.stopped)

  var rawValue: Int32 {
    switch self {
    case .inSync: 0
    case .somethingToDo: 2
    case .partial: 3
    case .failed(let kind): kind.exitStatus
    case .terminated: 143
    }
  }

  init?(rawValue: Int32) {
    guard let status = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = status
  }

  /// The meaning, as `tarn help exit-status` prints it.
  var meaning: String {
    switch self {
    case .inSync:
      "in sync: every wanted entry is present, verified and durable, or left as you changed it (--local-changes)"
    case .somethingToDo:
      "plan --exit-code: there are changes to make; files that must be compared with the server do not count"
    case .partial:
      "the pass ended, but some entries failed, were refused, are in conflict or held, or its feed breaks off; doctor found a problem"
    case .failed(let kind): Self.meaning(of: kind)
    case .terminated: "ended by SIGTERM or SIGHUP; everything fetched so far is kept and will be resumed"
    }
  }

  private static func meaning(of kind: PassFailure.Kind) -> String {
    switch kind {
    case .usage: "usage"
    case .feedMalformed: "the feed is malformed, truncated or not trusted: nothing changed"
    case .feedUnreachable: "the feed cannot be reached, or is not there: nothing changed"
    case .noAgent: "no agent answers"
    case .defect: "a defect in Tarn"
    case .folderUnusable: "the folder cannot be created, or its marker is missing: nothing changed"
    case .inputOutput: "input/output error on the folder or the ledger"
    case .locked: "another Tarn process holds the folder; the message names it"
    case .permission: "permission denied"
    case .configuration: "configuration error"
    case .stopped: "ended by SIGINT; everything fetched so far is kept and will be resumed"
    }
  }

  /// - Parameter signal: the signal that asked to stop, for `stopped`.
  init(_ kind: PassFailure.Kind, signal: Int32? = nil) {
    self = kind == .stopped ? Self.stopped(by: signal) : .failed(kind)
  }

  /// The status of a pass that finished or was asked to stop.
  init(_ report: PassReport, signal: Int32? = nil) {
    if report.wasStopped {
      self = Self.stopped(by: signal)
    } else {
      self = report.isInSync ? .inSync : .partial
    }
  }

  /// The status of a verification.
  init(_ report: VerifyReport, signal: Int32? = nil) {
    if report.wasStopped {
      self = Self.stopped(by: signal)
    } else {
      self = report.isGood ? .inSync : .partial
    }
  }

  /// The status of an approval.
  init(_ report: ApprovalReport, signal: Int32? = nil) {
    if report.wasStopped {
      self = Self.stopped(by: signal)
    } else {
      self = report.problems.isEmpty ? .inSync : .partial
    }
  }

  static func stopped(by signal: Int32?) -> ExitStatus {
    signal == SIGTERM || signal == SIGHUP ? .terminated : .interrupted
  }

  /// The status of several passes: a stop precedes a failure, and a failure precedes missing files.
  static func worst(_ statuses: [ExitStatus]) -> ExitStatus {
    if let stop = statuses.first(where: { $0.rawValue >= 128 }) { return stop }
    if let failure = statuses.first(where: { $0.rawValue >= 64 }) { return failure }
    return statuses.max { $0.rawValue < $1.rawValue } ?? .inSync
  }

  /// Ends a command with this status; returns when it is 0.
  func end() throws {
    guard self != .inSync else { return }
    throw ExitCode(rawValue)
  }
}
