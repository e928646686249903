/// One HTTP exchange to make: a chain of at most twenty redirects, no retry inside.
package struct DownloadRequest: Sendable {
  /// What a Content-Encoding of the answer means. Bytes are never decoded here; `ResponseHead.contentEncoding`
  /// tells what they are.
  package enum Encoding: Sendable, Equatable {
    /// Asks for identity; a 2xx with another encoding ends with `.contentEncoding`.
    case refused
    /// Asks for identity, and takes what comes: many servers label `x.tar.gz` so.
    case taken
    /// Asks for gzip, and takes what comes.
    case gzipAsked
  }

  /// Absolute: `http`, `https` or `file`.
  package var url: String
  /// First byte wanted; 0 for the whole. Sent as `Range: bytes=N-`.
  package var offset: UInt64
  /// `If-Range` of the range request: a strong ETag with its quotes, or an HTTP date as received.
  package var ifRange: String?
  /// Conditional request; the answer may be 304.
  package var ifNoneMatch: String?
  package var ifModifiedSince: String?
  /// `Accept` header; nil for `*/*`.
  package var accept: String?
  package var encoding = Encoding.refused
  /// The most body bytes to take, counted from `offset`; the transfer ends with `.tooLarge` beyond it.
  package var limit: UInt64
  /// Body bytes that will come if the answer is as hoped, counted from `offset`; nil when not known. A hint: small files
  /// have places of their own where mirrors share a host.
  package var expected: UInt64?
  /// It goes ahead of others that wait for a connection.
  package var isUrgent = false
  /// Seconds without a byte after which its place may go to another mirror that has none at the host (`.gaveWay`).
  package var patience = Self.shortestPatience
  package static let shortestPatience: Int64 = 5
  /// More header lines, `Name: value`. They go to the origin of `url` only, wherever redirects lead.
  package var headers: [String] = []
  /// Seconds in all; nil for no cap beside the low-speed and connect time-outs.
  package var totalTimeout: Int?
  /// Seconds that it may stay below the low speed; nil for what the settings say.
  package var idleTimeout: Int?
  /// The answer's head has all its fields, and the way to it.
  package var keepsFields = false
  /// nil for GET. Anything else goes over a connection of its own, for libcurl may repeat what it sent over one that was dead.
  package var method: String?
  /// Sent with it.
  package var body: String?

  package init(url: String, limit: UInt64) {
    self.url = url
    self.offset = 0
    self.limit = limit
  }
}

/// What the final response said before its body, after redirects.
package struct ResponseHead: Sendable, Equatable {
  package var status: Int
  package var url: String
  /// The ETag as sent, with `W/` and quotes; nil when there was none.
  package var etag: String?
  package var lastModified: String?
  package var date: String?
  /// Last-Modified and Date read as times.
  package var modified: Timestamp?
  package var sent: Timestamp?
  package var contentLength: UInt64?
  package var contentRange: ContentRange?
  package var contentType: String?
  /// Content-Disposition as sent (RFC 6266).
  package var contentDisposition: String?
  /// The end of the body is marked (Content-Length, chunks, HTTP/2). False when it ends where the connection does,
  /// so that a cut cannot be told.
  package var isFramed = true
  /// It has a Content-Range that is none of RFC 9110 14.4: what part it is nobody can tell.
  package var hasUnreadableRange = false
  /// Content-Encoding, lower case, when it is not `identity`.
  package var contentEncoding: String?
  /// Retry-After in seconds from now, whichever form was sent.
  package var retryAfter: Int64?
  /// `Name: value` lines as sent, and the URLs that led here: of a request that keeps them.
  package var fields: [String] = []
  package var redirects: [String] = []

  package init(status: Int, url: String) {
    self.status = status
    self.url = url
  }
}

/// `Content-Range: bytes first-last/total` (RFC 9110 14.4).
package struct ContentRange: Sendable, Equatable {
  /// nil for the unsatisfied form `bytes */total`.
  package var first: UInt64?
  package var last: UInt64?
  /// nil for `*`.
  package var total: UInt64?

  package init(first: UInt64?, last: UInt64?, total: UInt64?) {
    self.first = first
    self.last = last
    self.total = total
  }
}

/// What the receiver makes of a response head.
package enum HeadVerdict: Sendable, Equatable {
  /// Send the body.
  case accept
  /// Drop the body: the head alone was the answer (an error status, 304, 416, a range that does not fit).
  case headOnly
}

/// What the receiver did with bytes.
package enum ByteVerdict: Sendable, Equatable {
  case taken
  /// None taken: no room now. The transfer pauses until `Downloading.resume(_:)`.
  case full
  /// The receiver gives up: end with `.refusedByReceiver`.
  case abort
}

/// How an exchange ended.
package enum DownloadOutcome: Sendable, Equatable {
  /// The response ended as its framing promised; the status may be any.
  indirect case complete(ResponseHead)
  case failed(DownloadFailure)
}

/// Why an exchange did not end well. The code is stable and shown to users.
package struct DownloadFailure: Error, Sendable, Equatable {
  package enum Code: String, Sendable, CaseIterable {
    case resolve = "host-not-found"
    case connect = "connection-refused"
    case timeout = "timed-out"
    case tooSlow = "too-slow"
    case tls = "tls-failed"
    case reset = "connection-lost"
    case truncated = "body-truncated"
    /// Nothing marks where the body ends: a cut could not be told.
    case lengthUnknown = "length-unknown"
    case tooLarge = "body-too-large"
    case protocolError = "bad-response"
    case headersTooLarge = "headers-too-large"
    case tooManyRedirects = "too-many-redirects"
    case redirectRefused = "redirect-refused"
    case addressRefused = "address-refused"
    case urlRefused = "url-refused"
    case contentEncoding = "content-encoding-refused"
    case fileNotReadable = "file-not-readable"
    case refusedByReceiver = "receiver-gave-up"
    case cancelled = "cancelled"
    case outOfMemory = "out-of-memory"
    case tooManyOpenFiles = "too-many-open-files"
    case hostResting = "host-resting"
    /// It received nothing for a while, and its place went to another mirror: says nothing against its source.
    case gaveWay = "gave-way"
    /// So many bytes without content that the connection was ended.
    case flooded = "empty-flood"
  }
  package var code: Code
  /// What happened, for a person; no secrets, escaped.
  package var message: String
  /// True when the same request may succeed later.
  package var isTransient: Bool
  /// Seconds after which it may succeed; nil when nothing is known.
  package var retryAfter: Int64?
  /// The server itself asked for that; else it is left alone because it failed.
  package var isAsked = true

  package init(_ code: Code, _ message: String, isTransient: Bool, retryAfter: Int64? = nil) {
    self.code = code
    self.message = message
    self.isTransient = isTransient
    self.retryAfter = retryAfter
  }
}

/// Receives one exchange. All are called on the network's thread and must not block.
package protocol DownloadReceiver: AnyObject, Sendable {
  /// It has a connection's place, for which it may have waited; again after each redirect.
  func placed()
  /// At most once, before any body byte, for the final response.
  func begin(_ head: ResponseHead) -> HeadVerdict
  /// Body bytes in order; the buffer is gone on return. All or none is taken.
  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict
  /// No more bytes come in this turn of the network's thread: what was taken in it can be handed on together. Called before
  /// the thread waits for anything, unless the exchange has ended.
  func turnEnded()
  /// Exactly once, last.
  func end(_ outcome: DownloadOutcome)
}

extension DownloadRequest {
  /// Seconds that grow each time, so that a server that takes its time is heard out in the end, or found too slow.
  package static func patience(gaveWay times: Int) -> Int64 { shortestPatience << Int64(min(times, 10)) }
}

extension DownloadReceiver {
  package func placed() {}
  package func turnEnded() {}
}

/// A running exchange.
package struct DownloadID: Hashable, Sendable {
  package let value: UInt64
  package init(value: UInt64) { self.value = value }
}

/// Makes exchanges, many at a time, on a thread of its own. Any thread may call.
///
/// Limits per host and in all are kept inside: what exceeds them waits its turn in the order it came.
package protocol Downloading: Sendable {
  /// Never blocks; the outcome comes to `receiver`.
  func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID
  /// After `.full`: there is room again.
  func resume(_ id: DownloadID)
  /// The receiver hears `.failed(.cancelled)` unless it has ended already.
  func cancel(_ id: DownloadID)
  /// If it waits for a connection, it gets the next one that is free; else nothing happens.
  func prioritize(_ id: DownloadID)
  /// Seconds for which the URL's host is left alone, from now on; nil where it may be asked.
  func rest(of url: String) -> Int64?
  /// Cancels all, and returns when no receiver will be called again.
  func shutDown()
}
