internal import TarnCore

/// Something that happened in a session. Events are numbered and stored; each is delivered at least once, until it is acknowledged.
public struct DownloadEvent: Sendable {
  public enum Kind: Sendable, Hashable {
    /// The server answered.
    case response
    case finished
    /// - Parameters:
    ///   - reason: a stable code, such as `http-404` or `digest-mismatch`.
    ///   - message: for a person.
    case failed(reason: String, message: String)
    case cancelled
    /// It is tried again later.
    case waiting(reason: String, message: String)
    /// The task waits for an answer: `DownloadTask.refresh`, `move(to:)` or `cancel()`. The server refused (401, 403), a rule holds the
    /// task (`held`), its request may be good no more (`request-old`), or something failed that must not be sent twice.
    case needsRequest(reason: String, message: String)
    /// After the last event of all tasks, and again after each later batch; with how many ended since the one before.
    case allDelivered(finished: Int, failed: Int)
    /// The same of the tasks of one group, each time when all of them have ended.
    case groupDelivered(String, finished: Int, failed: Int)
    /// Events up to this number are gone, and nobody had acknowledged them.
    case eventsLost(upTo: Int64)
  }

  /// The head of the server's answer.
  public struct Response: Sendable, Hashable {
    public var status: Int
    /// After redirects.
    public var url: String
    public var contentType: String?
    /// Bytes of the whole file.
    public var contentLength: UInt64?
    public var etag: String?
    public var lastModified: String?
    /// `Name: value` lines, in the order in which they came.
    public var headers: [String] = []
    /// The URLs that led there, the one that was asked for first.
    public var redirects: [String] = []
  }

  /// Of the last attempt.
  public struct Times: Sendable, Hashable {
    /// From its beginning to the head of the answer; nil where none came.
    public var response: Duration?
    public var total: Duration
  }

  /// Of the session; only grows.
  public var number: Int64
  public var kind: Kind
  /// nil for what is about the session.
  public var task: DownloadTask?
  public var url: String?
  /// Where the file is.
  public var path: String?
  /// Of the finished file.
  public var bytes: UInt64?
  public var digest: String?
  public var label: String?
  public var userInfo: String?
  public var response: Response?
  /// The beginning of a body that is no file, as text: 64 KiB at most. The agent keeps those of the newest 100 events of a session.
  public var body: String?
  public var times: Times?

  init?(_ event: SessionEvent, _ session: BackgroundSession) {
    let (reason, message) = (event.reason ?? "", event.message ?? "")
    switch event.code {
    case .response: kind = .response
    case .finished: kind = .finished
    case .failed: kind = .failed(reason: reason, message: message)
    case .cancelled: kind = .cancelled
    case .waiting: kind = .waiting(reason: reason, message: message)
    case .needsRequest: kind = .needsRequest(reason: reason, message: message)
    case .allDelivered: kind = .allDelivered(finished: event.finished ?? 0, failed: event.failed ?? 0)
    case .groupDelivered:
      kind = .groupDelivered(event.group ?? "", finished: event.finished ?? 0, failed: event.failed ?? 0)
    case .eventsLost: kind = .eventsLost(upTo: event.lostUpTo ?? 0)
    }
    number = event.number
    task = event.task.map { DownloadTask(number: $0, session: session, wasThere: true) }
    (url, path, bytes, digest) = (event.url, event.path, event.bytes, event.digest)
    (label, userInfo) = (event.label, event.userInfo)
    response = event.response.map { response in
      Response(
        status: response.status, url: response.url, contentType: response.contentType,
        contentLength: response.contentLength, etag: response.etag, lastModified: response.lastModified,
        headers: response.headers ?? [], redirects: response.redirects ?? [])
    }
    body = event.body
    times = event.times.map { times in
      Times(response: times.response.map { .milliseconds($0) }, total: .milliseconds(times.total))
    }
  }
}

extension DownloadEvent.Kind {
  /// The task has ended with it.
  var isEnd: Bool {
    switch self {
    case .finished, .failed, .cancelled: true
    default: false
    }
  }
}

extension BackgroundSession {
  /// The session's events as they come, in their order. The agent may end and begin again meanwhile; nothing is missed.
  ///
  /// All handles of a process that read events of one agent share one connection, and none has a thread of its own. A reader that is slow
  /// is waited for: what it has not taken stays with the agent.
  ///
  /// - Parameter number: behind the event with this number; nil for all that are not acknowledged.
  /// - Returns: a stream that ends when it is not read any more, or with a `TarnError`: where there is no such session, or no agent for
  ///   half a minute.
  public func events(after number: Int64? = nil) -> AsyncThrowingStream<DownloadEvent, any Error> {
    let reader = EventReader(self, after: number ?? 0)
    return AsyncThrowingStream { try await reader.next() }
  }
}
