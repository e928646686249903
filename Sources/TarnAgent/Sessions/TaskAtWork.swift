import TarnCore
import TarnEngine
import TarnLedger
import TarnRuntime

/// The state of a task at work.
struct TaskAtWork {
  let request: TaskRequest
  /// True when the file may replace another one.
  let replaces: Bool
  /// True when a client has changed the destination.
  let isMoved: Bool
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
  var response: (answer: SessionLedger.Response, isNoted: Bool)?
  /// The bytes that its file takes of the quota: its size, where that is known, otherwise what it has on the disk.
  var size: UInt64
  /// True when the server has answered, now or before it waited for room, and nobody knows the size of the file.
  var isUnsized = false
  /// The beginning of an answer that was no file.
  var body: String?
  /// Why it is stopped from outside; `nil` when it ends by itself.
  var stopReason: DownloadSession.StopReason?
  /// The session's age at which the time for the whole task is over; `nil` when that was dealt with.
  var end: Int64?
  /// The session's age at which the task ends if it has no other number of bytes by then; `nil` when that was dealt with.
  var stall: (end: Int64, bytes: UInt64)?

  init(_ task: TaskRecord, known: Row?, network: Int, kept: UInt64, began: Instant) {
    (request, isMoved) = (task.request, task.isMoved)
    replaces = known != nil || task.request.existing == .replace
    (self.known, self.network) = (known, network)
    (self.kept, self.began, size) = (kept, began, kept)
  }
}

extension TaskAtWork {
  /// The URL after redirects, once the server has answered.
  var url: String { response?.answer.head.url ?? request.url }

  /// The times of its last attempt.
  func times(at now: Instant) -> TaskTimes {
    func milliseconds(_ moment: Instant) -> Int64 { moment.elapsed(since: began).nanoseconds / 1_000_000 }
    return TaskTimes(response: responded.map(milliseconds), total: milliseconds(now))
  }

  /// The size of the file by a response; `nil` when it does not tell.
  static func size(_ head: ResponseHead) -> UInt64? {
    if let total = head.contentRange?.total { return total }
    // The length of a part, or of a refusal, is not that of the file.
    let isWhole = head.status != 416 && head.contentRange?.first ?? 0 == 0
    return isWhole ? head.statedTotal ?? head.contentLength : nil
  }

  /// Status, type and size of a response, for people.
  static func summary(_ head: ResponseHead) -> String {
    let size = (head.contentRange?.total ?? head.contentLength).map { Units.show($0) }
    let parts = ["\(head.status)", head.contentType.map { Printable.escape($0) }, size].compactMap { $0 }
    return " (\(parts.joined(separator: ", ")))"
  }
}

extension DownloadSession.StopReason {
  /// Ends a task whose bytes would exceed the session's quota of unfinished bytes.
  ///
  /// - Parameters:
  ///   - size: the size of its file.
  ///   - held: the bytes that other tasks hold.
  /// - Returns: `nil` when they fit.
  static func overQuota(_ size: UInt64, besides held: UInt64, most: UInt64) -> DownloadSession.StopReason? {
    if size > most {
      return .fail(
        code: largerThanQuota,
        message: "it has \(Units.show(size)), and the session may hold \(Units.show(most))")
    }
    guard held.addingSaturated(size) > most else { return nil }
    return .fail(
      code: TaskRecord.lacksRoom,
      message:
        "unfinished downloads of the session take all that they may (\(Units.show(most))) until others end or are cancelled"
    )
  }

  static let largerThanQuota = "larger-than-quota"
}

extension DownloadSession {
  /// The last answer; `nil` when the ledger has it.
  static func unnoted(_ task: Int64, _ atWork: Locked<[Int64: TaskAtWork]>) -> SessionLedger.Response? {
    atWork.withLock { $0[task]?.response }.flatMap { $0.isNoted ? nil : $0.answer }
  }

  struct Turns {
    /// The time of the next upkeep, in seconds of the session's age.
    var upkeep: Int64 = 0
    /// When the turns of tasks came that are held back since. Upkeep forgets them all, also those of tasks that are gone. A task that
    /// is held back just then waits at most half a minute longer.
    var held: [Int64: Timestamp] = [:]
  }

  /// The parts that a task begins with.
  struct Beginning: Sendable {
    let task: Int64
    let download: SingleDownload
    let ports: SingleDownload.Ports
  }

  /// Why the transfer of a task is stopped, and so what becomes of the task.
  enum StopReason: Sendable {
    /// A client wants something else of it.
    case wish(TaskWish)
    /// The process ends: the task stays as it is, and the next process continues it.
    case leave
    /// A rule wants a program to be asked.
    case hold
    /// A rule or a limit ends the task.
    case fail(code: String, message: String)

    /// What a client wants; `nil` for what comes from the session itself.
    var wish: TaskWish? { if case .wish(let wish) = self { wish } else { nil } }
  }

  /// The reaction to a failure that may be temporary.
  enum Patience: Sendable {
    /// The task waits, and is tried again without a limit.
    case long
    /// The task is tried again this many times, within minutes, and then has failed.
    case short(retries: Int)
  }
}

extension SingleDownload {
  /// The failures in a row after which all of a file is asked for when its rest cannot be had.
  private static let attemptsAtTheRest = 3

  /// - Parameter known: the record of the file that is there, to be compared with the server's; `nil` to fetch it.
  static func of(
    _ task: TaskRecord, known: Row?, _ headers: [String], _ patience: DownloadSession.Patience
  ) -> SingleDownload {
    let request = task.request
    var download = SingleDownload(RelativePath(task: task.number), url: request.url)
    download.digest = request.digest.flatMap { Digest(labelled: $0) }
    (download.headers, download.method, download.body) = (headers, request.method, request.body)
    download.idleTimeout = request.limits?.idle
    (download.known, download.expectedBytes) = (known, request.expectedBytes)
    download.knownURL = task.origin.flatMap { origin in
      PartialFiles.answered(origin.answered, asked: origin.url, now: request.url)
    }
    switch patience {
    case .short(let retries): if request.isRepeatable { download.retries = retries }
    // The attempts of a task are the retries of its file.
    case .long: download.mayAskForTheWhole = task.attempts >= attemptsAtTheRest
    }
    return download
  }
}

/// Receives the answers of servers for a session.
final class TaskResponses: ResponseObserver {
  private let session: DownloadSession

  init(_ session: DownloadSession) { self.session = session }

  func responded(_ path: RelativePath, _ head: ResponseHead) -> ResponseVerdict {
    session.responded(path.task, head)
  }

  func grew(_ path: RelativePath, to bytes: UInt64) -> FolderFailure? { session.grew(path.task, to: bytes) }

  func refused(_ path: RelativePath, body: [UInt8]) { session.refused(path.task, body: body) }
}
