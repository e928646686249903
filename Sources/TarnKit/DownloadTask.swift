internal import TarnControl
internal import TarnCore

/// A task is one download of a session. This value is a handle of it, and dropping it cancels nothing.
///
/// Every call asks the agent, does not block the caller's thread, and throws `TarnError`. What an order changes is durable on
/// return.
public struct DownloadTask: Sendable, Hashable {
  /// This number identifies the task within its session. Numbers begin with 1, never change and are never reused.
  public let number: Int64
  /// The task belongs to this session.
  public let session: BackgroundSession
  /// This says whether the task was in the session before it was added.
  public let wasThere: Bool

  /// A task is in one of these states.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// The task waits for `resume()`.
    case suspended
    /// The task waits for its turn.
    case queued
    /// The agent downloads the file.
    case running
    /// The task waits after a failure that may pass, for an answer, or until it may begin.
    case waiting
    /// The file is whole and verified, has its name, and is durable.
    case finished
    /// The task has failed, and trying again by itself would not help.
    case failed
    /// A program or a person cancelled the task.
    case cancelled

    /// This says whether the task has ended. Nothing more happens unless it is retried or added again.
    public var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  }

  /// A status describes a task as it was at one instant.
  public struct Status: Sendable {
    /// The status is that of this task.
    public var task: DownloadTask
    /// The task was in this state.
    public var state: State
    /// The request has this URL. `DownloadTask.refresh` may have changed it since the task was added.
    public var url: String
    /// The request has this destination, a path or a folder. `DownloadTask.move(to:)` may have changed it since the task was added.
    public var destination: String
    /// The file has this path, or gets it when it is finished. It is `nil` until the server has named the file.
    public var path: String?
    /// The download has come this far.
    public var progress: Progress
    /// The finished file has this digest, `sha256:HEX`. It is `nil` before.
    public var digest: String?
    /// This stable code, such as `http-404`, says why the task waits or has failed. It is `nil` in other states.
    public var reason: String?
    /// This text says the same to a person.
    public var message: String?
    /// The request has this label.
    public var label: String?
    /// The request has this data of the program.
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

  /// This says how far a download has come.
  public struct Progress: Sendable, Hashable {
    /// This many bytes have arrived, including those of earlier attempts that are kept.
    public var received: UInt64
    /// The whole file has this size in bytes. It is `nil` when neither the server nor the request says.
    public var expected: UInt64?
    /// The download runs at this rate. It is 0 when the task does not run.
    public var bytesPerSecond: UInt64
    /// This says whether the file is in place and verified.
    public var isFinished: Bool

    /// This is the part that is done, from 0 to 1. It is `nil` when the size is not known. Only a finished file has 1; before, the
    /// value is at most 0.99.
    public var fraction: Double? {
      if isFinished { return 1 }
      guard let expected, expected > 0 else { return nil }
      return min(Double(received) / Double(expected), 0.99)
    }

    /// The download needs this much more time at the present rate. It is `nil` when the size is not known or no bytes arrive.
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

  /// Queues the task again when it is suspended. Its download continues from the partial file if the server still has the same
  /// version. A task in another state is left as it is.
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

  /// Changes the priority of a task that has not ended. A running task goes on.
  ///
  /// - Parameter priority: the new priority.
  public func setPriority(_ priority: DownloadRequest.Priority) async throws(TarnError) {
    var order = SessionOrder(.prioritize, task: number)
    order.priority = TaskPriority(rawValue: priority.rawValue)
    try await session.order(order)
  }

  /// Continues with another URL, for instance when a signed one has expired. If it differs in its query alone, the agent goes on
  /// from the partial file while the server has the same version. With another scheme, host, port or path the task begins anew,
  /// unless it has a digest. The task is still identified by the URL that it was added with.
  ///
  /// - Parameters:
  ///   - url: the new URL; `nil` for the same one.
  ///   - headers: the header fields that replace those of the task. `nil` keeps them, unless the URL has another scheme, host or
  ///     port: credentials never go to another origin.
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
