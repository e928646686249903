internal import TarnControl
internal import TarnCore

/// A handle of one download of a session. A value: dropping it cancels nothing.
public struct DownloadTask: Sendable, Hashable {
  /// Of the session, from 1; never changes, and is never given twice.
  public let number: Int64
  public let session: BackgroundSession
  /// It was in the session before it was asked for.
  public let wasThere: Bool

  public enum State: String, Sendable, Hashable, CaseIterable {
    /// It waits for `resume()`.
    case suspended
    /// It waits for its turn.
    case queued
    case running
    /// Something failed that may be over in a while, or needs an answer.
    case waiting
    case finished, failed, cancelled

    /// Nothing more happens by itself.
    public var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  }

  /// How a task is, at an instant.
  public struct Status: Sendable {
    public var task: DownloadTask
    public var state: State
    /// As it was asked for.
    public var url: String
    public var destination: String
    /// Where the file is, or is going to be; nil until the server has named it.
    public var path: String?
    public var progress: Progress
    /// Of the finished file, as `sha256:HEX`.
    public var digest: String?
    /// Why it waits or has failed: a stable code, and words for a person.
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

  /// How far a download is.
  public struct Progress: Sendable, Hashable {
    /// Bytes.
    public var received: UInt64
    /// Bytes of the whole file; nil where neither the server nor the request says.
    public var expected: UInt64?
    public var bytesPerSecond: UInt64
    /// The file is there, and verified.
    public var isFinished: Bool

    /// From 0 to 1; nil where the size is not known. Only a finished file is 1: one that has come, and is not verified yet, is 0.99.
    public var fraction: Double? {
      if isFinished { return 1 }
      guard let expected, expected > 0 else { return nil }
      return min(Double(received) / Double(expected), 0.99)
    }

    /// At the present rate; nil where the size is not known, or nothing comes.
    public var timeLeft: Duration? {
      if isFinished { return .zero }
      guard let expected, expected >= received, bytesPerSecond > 0 else { return nil }
      return .seconds(Double(expected - received) / Double(bytesPerSecond))
    }
  }

  /// How it is now.
  ///
  /// - Throws: `TarnError.refused` where the session has no such task (`no-such-task`).
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

  /// Partial files stay. What has ended is left as it is.
  public func suspend() async throws(TarnError) { try await order(.suspend) }
  public func resume() async throws(TarnError) { try await order(.resume) }
  /// To cancel what is gone already is no error.
  ///
  /// - Parameter keepingPartialFile: what was fetched stays, for `retry()`; else it goes.
  public func cancel(keepingPartialFile: Bool = false) async throws(TarnError) {
    var order = SessionOrder(.cancel, task: number)
    order.keep = keepingPartialFile ? true : nil
    try await session.order(order)
  }

  /// What waits, failed or was cancelled is queued again.
  ///
  /// - Parameter destination: where the file goes now; nil for where it was to go. What was fetched goes along, also to another file system.
  public func retry(to destination: String? = nil) async throws(TarnError) {
    var order = SessionOrder(.retry, task: number)
    order.to = destination
    try await session.order(order)
  }

  /// The file goes to another place, also while it is downloaded. What was fetched goes along. The task is still known by the destination
  /// that it was added with.
  ///
  /// - Parameter destination: as in `DownloadRequest`.
  public func move(to destination: String) async throws(TarnError) {
    var order = SessionOrder(.answer, task: number)
    order.to = destination
    try await session.order(order)
  }

  /// It begins before all others of its priority.
  public func putFirst() async throws(TarnError) { try await order(.first) }

  public func setPriority(_ priority: DownloadRequest.Priority) async throws(TarnError) {
    var order = SessionOrder(.prioritize, task: number)
    order.priority = TaskPriority(rawValue: priority.rawValue)
    try await session.order(order)
  }

  /// Goes on with another URL, as where a signed one has expired. The partial file stays as long as the server still has the same
  /// version, and the task is still known by the URL that it was added with.
  ///
  /// - Parameter headers: in place of those that it has; nil for the same.
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
