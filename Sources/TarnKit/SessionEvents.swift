internal import TarnCore

/// An event of a session. Events are numbered and stored. Each is delivered at least once, until it is acknowledged.
public struct DownloadEvent: Sendable {
  public enum Kind: Sendable, Hashable {
    /// The server has answered.
    case response
    case finished
    /// - Parameters:
    ///   - reason: a stable code, such as `http-404` or `digest-mismatch`.
    ///   - message: a description for a person.
    case failed(reason: String, message: String)
    case cancelled
    /// The task will be tried again later.
    case waiting(reason: String, message: String)
    /// The task waits for an answer: `DownloadTask.refresh`, `move(to:)` or `cancel()`. Either the server refused (401, 403), or a
    /// rule holds the task (`held`). Or its request may have expired (`request-old`), or a request failed that must not be sent
    /// twice.
    case needsRequest(reason: String, message: String)
    /// No task can go on: each has ended, or is suspended. It follows their last event, and counts those that ended since the
    /// previous one. It comes again after each later batch.
    case allDelivered(finished: Int, failed: Int)
    /// The same for the tasks of the group. It comes each time that this is so.
    case groupDelivered(String, finished: Int, failed: Int)
    /// Events up to this number do not come. They were dropped, or another reader acknowledged them first.
    /// `BackgroundSession.snapshot()` has what became of their tasks.
    case eventsLost(upTo: Int64)
  }

  /// The head of the server's response.
  public struct Response: Sendable, Hashable {
    public var status: Int
    /// The URL after redirects.
    public var url: String
    public var contentType: String?
    /// The size of the whole file in bytes.
    public var contentLength: UInt64?
    public var etag: String?
    public var lastModified: String?
    /// The header fields as `Name: value` lines, in the order in which they came.
    public var headers: [String] = []
    /// The URLs before redirects, beginning with the one that was requested.
    public var redirects: [String] = []
  }

  /// The durations of the attempt that was running, up to the event.
  public struct Times: Sendable, Hashable {
    /// The time from the attempt's begin to the head of the response. `nil` when none came.
    public var response: Duration?
    public var total: Duration
  }

  /// The number of the event in its session. Numbers only grow.
  public var number: Int64
  public var kind: Kind
  /// The task; `nil` for an event about the whole session.
  public var task: DownloadTask?
  public var url: String?
  /// The path of the file.
  public var path: String?
  /// The size of the finished file in bytes. Of a task that failed or was cancelled: the bytes that were on the disk then. `nil` for
  /// none.
  public var bytes: UInt64?
  public var digest: String?
  public var label: String?
  public var userInfo: String?
  /// The head of the response. The event of a task's end has the last one.
  public var response: Response?
  /// The beginning of a body that is no file, as text of at most 64 KiB. The agent keeps the bodies of the newest 100 events of a
  /// session.
  public var body: String?
  public var times: Times?

  /// Makes the event about a gap.
  init(lostUpTo number: Int64) { (self.number, kind) = (number, .eventsLost(upTo: number)) }

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
  /// Whether the event ends its task.
  var isEnd: Bool {
    switch self {
    case .finished, .failed, .cancelled: true
    default: false
    }
  }
}

extension BackgroundSession {
  /// Returns the session's events in order, as they come. None is missed when the agent ends and starts again.
  ///
  /// All event readers of a process share one connection to an agent, and none has a thread of its own. Events that a slow reader
  /// has not taken yet stay with the agent.
  ///
  /// - Parameter number: the number of the event to continue after; `nil` for all that are not acknowledged. After `eventsLost` all
  ///   events come if the session was forgotten and made anew since, and has not reached that number.
  /// - Returns: a stream that ends when it is no longer read. It throws a `TarnError` when there is no such session, or no agent
  ///   answers for half a minute.
  public func events(after number: Int64? = nil) -> AsyncThrowingStream<DownloadEvent, any Error> {
    let reader = EventReader(self, after: number ?? 0)
    return AsyncThrowingStream { try await reader.next() }
  }

  /// Returns the events that the snapshot does not include, in order, as they come.
  public func events(after snapshot: Snapshot) -> AsyncThrowingStream<DownloadEvent, any Error> {
    let reader = EventReader(self, after: snapshot.asOf)
    return AsyncThrowingStream {
      while let event = try await reader.next() {
        if !snapshot.includes(event) { return event }
      }
      return nil
    }
  }
}
