internal import TarnControl
internal import TarnCore

/// A handle of one download of a session. It is a value: dropping it cancels nothing.
public struct DownloadTask: Sendable, Hashable {
  /// The number of the task within its session, from 1. It never changes and is never reused.
  public let number: Int64
  public let session: BackgroundSession
  /// Whether the task was in the session before it was added.
  public let wasThere: Bool

  public enum State: String, Sendable, Hashable, CaseIterable {
    /// The task waits for `resume()`.
    case suspended
    /// The task waits for its turn.
    case queued
    case running
    /// The task waits after a failure that may pass, or for an answer.
    case waiting
    case finished, failed, cancelled

    /// Whether the task has ended: nothing more happens unless it is retried or added again.
    public var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  }

  /// The state of a task at one instant.
  public struct Status: Sendable {
    public var task: DownloadTask
    public var state: State
    /// The URL of the request.
    public var url: String
    public var destination: String
    /// The path of the file, now or when it is finished. `nil` until the server has named it.
    public var path: String?
    public var progress: Progress
    /// The digest of the finished file, as `sha256:HEX`.
    public var digest: String?
    /// A stable code that says why the task waits or has failed; `message` says it in words.
    public var reason: String?
    public var message: String?
    public var label: String?
    public var userInfo: String?

    init(_ document: TaskDocument, _ session: BackgroundSession) {
      let record = document.task
      task = DownloadTask(number: record.number, session: session, wasThere: true)
      state = State(rawValue: record.state.rawValue) ?? .waiting
      (url, destination, path) = (record.request.url, record.request.to, record.path)
      (digest, reason, message) = (record.digest, record.code, record.message)
      (label, userInfo) = (record.request.label, record.request.userInfo)
      progress = Progress(
        received: document.received ?? record.bytes ?? 0,
        expected: record.bytes ?? document.expected ?? record.request.expectedBytes,
        bytesPerSecond: document.rate ?? 0, isFinished: record.state == .finished)
    }
  }

  /// The progress of a download.
  public struct Progress: Sendable, Hashable {
    /// The bytes received.
    public var received: UInt64
    /// The size of the whole file in bytes. `nil` when neither the server nor the request says.
    public var expected: UInt64?
    public var bytesPerSecond: UInt64
    /// Whether the file is in place and verified.
    public var isFinished: Bool

    /// The progress from 0 to 1. `nil` when the size is not known. Only a finished file is 1; before, the value is at most 0.99.
    public var fraction: Double? {
      if isFinished { return 1 }
      guard let expected, expected > 0 else { return nil }
      return min(Double(received) / Double(expected), 0.99)
    }

    /// The time left at the present rate. `nil` when the size is not known or no bytes arrive.
    public var timeLeft: Duration? {
      if isFinished { return .zero }
      guard let expected, expected >= received, bytesPerSecond > 0 else { return nil }
      return .seconds(Double(expected - received) / Double(bytesPerSecond))
    }
  }

  /// Returns the task's present state.
  ///
  /// - Throws: `TarnError.refused` when the session has no such task (`no-such-task`).
  public func status() async throws(TarnError) -> Status {
    let page = try await session.agent.ask {
      try $0.tasks(of: session.identifier, after: number - 1, limit: 1)
    }
    guard let document = page.tasks.first, document.task.number == number else {
      throw .refused(
        code: "no-such-task", message: "session '\(session.identifier)' has no task \(number)", hint: nil)
    }
    return Status(document, session)
  }

  /// Stops the task until `resume()`. Its partial file stays. A task that has ended is left as it is.
  public func suspend() async throws(TarnError) { try await order(.suspend) }
  public func resume() async throws(TarnError) { try await order(.resume) }
  /// Cancels the task. It is no error when the task has ended already.
  ///
  /// - Parameter keepingPartialFile: whether the partial file stays, for `retry()`. Otherwise it is deleted.
  public func cancel(keepingPartialFile: Bool = false) async throws(TarnError) {
    var order = SessionOrder(.cancel, task: number)
    order.keep = keepingPartialFile ? true : nil
    try await session.order(order)
  }

  /// Queues the task again when it waits, failed or was cancelled.
  ///
  /// - Parameter destination: the new destination; `nil` for the same one. The bytes that were fetched move along, also to another
  ///   file system.
  public func retry(to destination: String? = nil) async throws(TarnError) {
    var order = SessionOrder(.retry, task: number)
    order.to = destination
    try await session.order(order)
  }

  /// Changes the destination, also while the download runs. The bytes that were fetched move along. The task is still identified by
  /// the destination that it was added with.
  ///
  /// - Parameter destination: a path or folder, as in `DownloadRequest`.
  public func move(to destination: String) async throws(TarnError) {
    var order = SessionOrder(.answer, task: number)
    order.to = destination
    try await session.order(order)
  }

  /// Puts the task before all others of its priority.
  public func putFirst() async throws(TarnError) { try await order(.first) }

  public func setPriority(_ priority: DownloadRequest.Priority) async throws(TarnError) {
    var order = SessionOrder(.prioritize, task: number)
    order.priority = TaskPriority(rawValue: priority.rawValue)
    try await session.order(order)
  }

  /// Continues with another URL, for instance when a signed one has expired. If it differs in its query alone, the agent goes on from
  /// the partial file while the server has the same version. With another scheme, host, port or path the task begins anew, unless it
  /// has a digest. The task is still identified by the URL that it was added with.
  ///
  /// - Parameter headers: the header fields that replace those of the task. `nil` keeps them, unless the URL has another scheme,
  ///   host or port: credentials never go to another origin.
  public func refresh(url: String? = nil, headers: [String: String]? = nil) async throws(TarnError) {
    var order = SessionOrder(.answer, task: number)
    order.url = url
    order.headers = headers.map { HeaderFields.lines(of: $0) ?? [] }
    try await session.order(order)
  }

  private func order(_ verb: SessionOrder.Verb) async throws(TarnError) {
    try await session.order(SessionOrder(verb, task: number))
  }
}
