import TarnCore
import TarnEngine
import TarnLedger

/// The state of a task at work.
struct TaskAtWork {
  let request: TaskRequest
  /// True when the file may replace another one.
  let replaces: Bool
  /// The record of the file that is in place already and is checked.
  let known: Row?
  /// The number of its downloader.
  let network: Int
  /// The bytes of the partial file at the beginning.
  let kept: UInt64
  let began: Instant
  var responded: Instant?
  var download: RunningDownload?
  /// The last answer, and whether the ledger has it.
  var response: (answer: SessionLedger.Answer, isNoted: Bool)?
  /// The size of the file, once the server has told it.
  var size: UInt64 = 0
  /// The beginning of an answer that was no file.
  var body: String?
  /// The order that ended it from outside; `nil` when it ended by itself.
  var order: DownloadSession.Order?
}

extension DownloadSession {
  /// What a task at work is told to do.
  enum Order: Sendable {
    case suspend
    /// - Parameter keeps: true when its partial file stays.
    case cancel(keeps: Bool)
    /// The process ends: the task stays as it is, and the next process continues it.
    case leave
    /// A rule wants a program to be asked.
    case hold
    /// A rule or a limit ends the task.
    case fail(code: String, message: String)
    /// The file gets another destination.
    case move(to: String, TaskRequest.Existing?)
  }

  /// The reaction to a failure that may be temporary.
  enum Patience: Sendable {
    /// The task waits, and is tried again without a limit.
    case long
    /// The task is tried again this many times, within minutes, and then has failed.
    case short(retries: Int)
  }
}
