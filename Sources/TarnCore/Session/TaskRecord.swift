/// What a task of a session does.
package enum TaskState: String, Codable, Sendable, CaseIterable {
  /// It waits for `resume`.
  case suspended
  /// It waits for its turn.
  case queued
  case running
  /// Something failed that may be over in a while, or it is not to begin before a moment.
  case waiting
  case finished
  case failed
  case cancelled

  /// Nothing more happens by itself.
  package var isEnd: Bool { self == .finished || self == .failed || self == .cancelled }
  /// The session is not over while it has such a task.
  package var isOpen: Bool { self == .queued || self == .running || self == .waiting }
}

/// A task, as its session keeps it.
package struct TaskRecord: Codable, Sendable, Equatable {
  /// Of the session, from 1; never changes, and is never given twice.
  package var number: Int64
  package var state: TaskState
  package var request: TaskRequest
  /// Where the file is, or is going to be; nil until the server has named it.
  package var path: String?
  /// Of the finished file.
  package var bytes: UInt64?
  package var digest: String?
  /// Why it waits, or has failed: a stable code, and words for a person.
  package var code: String?
  package var message: String?
  /// Failures in a row.
  package var attempts: Int = 0
  /// When a task that waits is tried again.
  package var nextAttempt: Timestamp?
  package var added: Timestamp
  package var ended: Timestamp?

  package init(number: Int64, state: TaskState, request: TaskRequest, added: Timestamp) {
    (self.number, self.state, self.request, self.added) = (number, state, request, added)
  }
}

/// Something that happened to a session.
package struct SessionEvent: Codable, Sendable, Equatable {
  /// The raw value is stable.
  package enum Code: String, Codable, Sendable, CaseIterable {
    /// The server answered for a file.
    case response
    case finished
    case failed
    case cancelled
    /// It is tried again later.
    case waiting
    /// It waits for an answer: another URL, or other headers.
    case needsRequest = "needs-request"
    /// No task is queued, running or waiting any more.
    case allDelivered = "all-delivered"
    /// Events before this one were dropped before anybody had acknowledged them.
    case eventsLost = "events-lost"

    /// A program is woken for it.
    package var isNews: Bool { self != .response && self != .waiting }
  }

  /// Of the session, from 1; 0 until it is stored. Only grows.
  package var number: Int64 = 0
  package var time: Timestamp
  package var code: Code
  /// nil for what is about the session.
  package var task: Int64?
  package var url: String?
  package var label: String?
  package var userInfo: String?
  package var group: String?
  /// Where the file is.
  package var path: String?
  package var bytes: UInt64?
  package var digest: String?
  /// Of a failure.
  package var reason: String?
  package var message: String?
  /// Of a task that waits.
  package var nextAttempt: Timestamp?
  /// What the server said.
  package var response: TaskResponse?
  /// Of `all-delivered`: since the one before.
  package var finished: Int?
  package var failed: Int?
  /// Of `events-lost`: the number of the last one that is gone.
  package var lostUpTo: Int64?

  package init(_ code: Code, time: Timestamp, of task: TaskRecord? = nil) {
    (self.code, self.time) = (code, time)
    guard let task else { return }
    (self.task, url, path) = (task.number, task.request.url, task.path)
    (label, userInfo, group) = (task.request.label, task.request.userInfo, task.request.group)
    (bytes, digest, reason, message) = (task.bytes, task.digest, task.code, task.message)
    nextAttempt = task.nextAttempt
  }
}

/// The head of an answer.
package struct TaskResponse: Codable, Sendable, Equatable {
  package var status: Int
  /// After redirects.
  package var url: String
  package var contentType: String?
  package var contentLength: UInt64?
  package var etag: String?
  package var lastModified: String?

  package init(_ head: ResponseHead) {
    (status, url) = (head.status, head.url)
    (contentType, contentLength) = (head.contentType, head.contentRange?.total ?? head.contentLength)
    (etag, lastModified) = (head.etag, head.lastModified)
  }
}

/// What a session is set to.
package struct SessionSettings: Codable, Sendable, Equatable {
  /// Transfers at a time, 1 to 64.
  package var transfers: Int?
  /// Run when there is news and no reader is connected: a program, and its arguments.
  package var wake: [String]?

  package static let standardTransfers = 4

  package init() {}
}

/// As RFC 3339 text.
extension Timestamp: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let time = Timestamp(rfc3339: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "no time of RFC 3339")
    }
    self = time
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rfc3339)
  }
}

extension RelativePath {
  /// What stands for a task in the engine's eyes.
  package init(task number: Int64) { self.init(trusted: Array(String(number).utf8)) }

  /// 0 for a path that stands for none.
  package var task: Int64 { Int64(String(decoding: bytes, as: UTF8.self)) ?? 0 }
}
