import TarnCore
import TarnEngine
import TarnLedger

/// What a task at work has.
struct TaskAtWork {
  let request: TaskRequest
  /// The file may take the place of another.
  let replaces: Bool
  /// What stands there already, and is asked about.
  let known: Row?
  /// The number of its downloader.
  let network: Int
  /// Bytes of the partial file when it began.
  let kept: UInt64
  let began: Instant
  var responded: Instant?
  var download: RunningDownload?
  /// Of the last answer, and whether the ledger has it.
  var response: (answer: SessionLedger.Answer, isNoted: Bool)?
  /// Of the file, once the server has told it.
  var size: UInt64 = 0
  /// The beginning of an answer that was no file.
  var body: String?
  /// Why it was ended from outside; nil for by itself.
  var order: DownloadSession.Order?
}

extension DownloadSession {
  /// What somebody wants of a task.
  enum Order: Sendable {
    case suspend
    /// - Parameter keeps: its partial file stays.
    case cancel(keeps: Bool)
    /// The process ends: it stays as it is, and goes on with the next one.
    case leave
    /// A rule wants a program to be asked.
    case hold
    /// A rule or a limit ends it.
    case fail(code: String, message: String)
    /// Its file goes to another place.
    case move(to: String, TaskRequest.Existing?)
  }

  /// What happens after a failure that may be over in a while.
  enum Patience: Sendable {
    /// The task waits, and is tried again and again.
    case long
    /// It is tried so many times more, within minutes, and has failed then.
    case short(retries: Int)
  }
}
