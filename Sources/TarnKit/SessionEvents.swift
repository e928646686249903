internal import TarnCore

/// An event tells what happened to a task or a session. Events are numbered and stored. Each is delivered at least once, until it is
/// acknowledged.
public struct DownloadEvent: Sendable {
  /// The kind of an event says what happened.
  public enum Kind: Sendable, Hashable {
    /// The server has answered.
    case response
    /// The file is whole and verified, has its name, and is durable.
    case finished
    /// The task has failed, and is not tried again by itself.
    ///
    /// - Parameters:
    ///   - reason: a stable code, such as `http-404` or `digest-mismatch`.
    ///   - message: a description for a person.
    case failed(reason: String, message: String)
    /// A program or a person cancelled the task.
    case cancelled
    /// The task will be tried again later. The event comes once for each reason, not for each attempt.
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

  /// A server begins its response with this head.
  public struct Response: Sendable, Hashable {
    /// The response has this HTTP status, from 200 to 599.
    public var status: Int
    /// This URL answered, after all redirects.
    public var url: String
    /// The server sent this `Content-Type`, such as `audio/mpeg`. It is `nil` when there was none.
    public var contentType: String?
    /// The whole file has this size in bytes. It is `nil` when the server did not say.
    public var contentLength: UInt64?
    /// The server sent this `ETag`, with its quotes. It is `nil` when there was none.
    public var etag: String?
    /// The server sent this `Last-Modified` date. It is `nil` when there was none.
    public var lastModified: String?
    /// The head has these header fields, as `Name: value` lines in the order in which they came.
    public var headers: [String] = []
    /// These URLs led to the one that answered. The first one is the URL that was requested.
    public var redirects: [String] = []
  }

  /// These durations belong to the attempt that was running. They have a resolution of a millisecond.
  public struct Times: Sendable, Hashable {
    /// The head of the response came this long after the attempt began. It is `nil` when none came.
    public var response: Duration?
    /// The event came this long after the attempt began.
    public var total: Duration
  }

  /// This number identifies the event within its session. Numbers only grow.
  public var number: Int64
  /// The kind says what happened.
  public var kind: Kind
  /// The event is about this task. It is `nil` for an event about a group or the whole session.
  public var task: DownloadTask?
  /// The task has this URL. It is `nil` for an event without a task.
  public var url: String?
  /// The file has this path, or gets it. It is `nil` until the server has named the file.
  public var path: String?
  /// The finished file has this size in bytes. If the task failed or was cancelled, this many bytes were on the disk then. It is
  /// `nil` when there were none.
  public var bytes: UInt64?
  /// The finished file has this digest, `sha256:HEX`. It is `nil` for other events.
  public var digest: String?
  /// The request of the task has this label.
  public var label: String?
  /// The request of the task has this data of the program.
  public var userInfo: String?
  /// The server answered with this head. The event of a task's end has the last one.
  public var response: Response?
  /// A response that is no file begins with this text, of at most 64 KiB. The agent keeps the bodies of the newest 100 events of a
  /// session.
  public var body: String?
  /// The attempt took this long. It is `nil` when no attempt was running.
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
  ///
  /// - Parameter snapshot: a snapshot of this session.
  /// - Returns: a stream that ends and throws as that of `events(after:)` with a number.
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
