/// An HTTP exchange to make: a chain of at most twenty redirects without retries.
package struct DownloadRequest: Sendable {
  /// How a Content-Encoding of the answer is treated. Bytes are never decoded here; `ResponseHead.contentEncoding` says what they
  /// are.
  package enum Encoding: Sendable, Equatable {
    /// Ask for identity. A 2xx with another encoding ends with `.contentEncoding`.
    case refused
    /// Ask for identity, and accept any encoding: many servers label `x.tar.gz` that way.
    case taken
    /// Ask for gzip, and accept any encoding.
    case gzipAsked
  }

  /// The absolute URL: `http`, `https` or `file`.
  package var url: String
  /// The first byte wanted; 0 for the whole file. Sent as `Range: bytes=N-`.
  package var offset: UInt64
  /// The `If-Range` header of the range request: a strong ETag with its quotes, or an HTTP date as received.
  package var ifRange: String?
  /// The `If-None-Match` header of a conditional request; the answer may be 304.
  package var ifNoneMatch: String?
  package var ifModifiedSince: String?
  /// The `Accept` header; `nil` for `*/*`.
  package var accept: String?
  package var encoding = Encoding.refused
  /// The most body bytes to take, counted from `offset`; the transfer ends with `.tooLarge` beyond it.
  package var limit: UInt64
  /// The body bytes that will come if the answer is the expected one, counted from `offset`; `nil` when not known. A hint: small
  /// files have places of their own where mirrors share a host.
  package var expected: UInt64?
  /// True when the request goes ahead of others that wait for a connection.
  package var isUrgent = false
  /// Seconds without a byte after which the place may go to another mirror that has none at the host (`.gaveWay`).
  package var patience = Self.shortestPatience
  package static let shortestPatience: Int64 = 5
  /// More header lines, `Name: value`. They are sent only to the origin of `url`, wherever redirects lead.
  package var headers: [String] = []
  /// The most seconds in all; `nil` for no limit besides the low-speed and connect timeouts.
  package var totalTimeout: Int?
  /// Seconds that the transfer may stay below the low speed; `nil` for the value of the settings.
  package var idleTimeout: Int?
  /// True when the response head is to keep all its fields and the redirects.
  package var keepsFields = false
  /// The method; `nil` for GET. Any other method gets a connection of its own, since libcurl may repeat what it sent over a dead
  /// one.
  package var method: String?
  /// The body of the request.
  package var body: String?
  /// True when a redirect that drops the body (301, 302, 303) is not followed: it is the answer.
  package var keepsBody = false

  package init(url: String, limit: UInt64) {
    self.url = url
    self.offset = 0
    self.limit = limit
  }
}

/// The head of the final response, after redirects.
package struct ResponseHead: Sendable, Equatable {
  package var status: Int
  package var url: String
  /// The ETag as sent, with `W/` and quotes; nil when there was none.
  package var etag: String?
  package var lastModified: String?
  package var date: String?
  /// Last-Modified and Date as times.
  package var modified: Timestamp?
  package var sent: Timestamp?
  package var contentLength: UInt64?
  package var contentRange: ContentRange?
  package var contentType: String?
  /// Content-Disposition as sent (RFC 6266).
  package var contentDisposition: String?
  /// True when the end of the body is marked (Content-Length, chunks, HTTP/2). False when the body ends with the connection, so
  /// that a cut cannot be detected.
  package var isFramed = true
  /// True for a Content-Range that does not follow RFC 9110 14.4: it is unknown which part the body is.
  package var hasUnreadableRange = false
  /// The Content-Encoding in lower case, when it is not `identity`.
  package var contentEncoding: String?
  /// Retry-After in seconds from now, whichever form was sent.
  package var retryAfter: Int64?
  /// The header lines as sent (`Name: value`), and the URLs of the redirects. Both are kept only when the request asks for them.
  package var fields: [String] = []
  package var redirects: [String] = []

  package init(status: Int, url: String) {
    self.status = status
    self.url = url
  }
}

/// `Content-Range: bytes first-last/total` (RFC 9110 14.4).
package struct ContentRange: Sendable, Equatable {
  /// The first byte; `nil` for the unsatisfied form `bytes */total`.
  package var first: UInt64?
  package var last: UInt64?
  /// The size of the whole; `nil` for `*`.
  package var total: UInt64?

  package init(first: UInt64?, last: UInt64?, total: UInt64?) {
    self.first = first
    self.last = last
    self.total = total
  }
}

/// The receiver's decision on a response head.
package enum HeadVerdict: Sendable, Equatable {
  /// Send the body.
  case accept
  /// Drop the body: the head alone is the answer (an error status, 304, 416, a range that does not fit).
  case headOnly
}

/// The receiver's answer to bytes.
package enum ByteVerdict: Sendable, Equatable {
  case taken
  /// None were taken because there is no room now. The transfer pauses until `Downloading.resume(_:)`.
  case full
  /// The receiver gives up: the exchange ends with `.refusedByReceiver`.
  case abort
}

/// How an exchange ended.
package enum DownloadOutcome: Sendable, Equatable {
  /// The response ended as its framing promised; the status may be any.
  indirect case complete(ResponseHead)
  case failed(DownloadFailure)
}

/// Why an exchange failed. The code is stable and shown to users.
package struct DownloadFailure: Error, Sendable, Equatable {
  package enum Code: String, Sendable, CaseIterable {
    case resolve = "host-not-found"
    case connect = "connection-refused"
    case timeout = "timed-out"
    case tooSlow = "too-slow"
    case tls = "tls-failed"
    case reset = "connection-lost"
    case truncated = "body-truncated"
    /// Nothing marks the end of the body, so a cut could not be detected.
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
    /// The transfer received nothing for a while, and its place went to another mirror. This says nothing against its source.
    case gaveWay = "gave-way"
    /// The server sent so many bytes without content that the connection was ended.
    case flooded = "empty-flood"
  }
  package var code: Code
  /// The message for people: escaped, without secrets.
  package var message: String
  /// True when the same request may succeed later.
  package var isTransient: Bool
  /// Seconds after which the request may succeed; `nil` when nothing is known.
  package var retryAfter: Int64?
  /// True when the server itself asked for the pause, false when the host is left alone because it failed.
  package var isAsked = true

  package init(_ code: Code, _ message: String, isTransient: Bool, retryAfter: Int64? = nil) {
    self.code = code
    self.message = message
    self.isTransient = isTransient
    self.retryAfter = retryAfter
  }
}

/// Receives one exchange. All methods are called on the network's thread and must not block.
package protocol DownloadReceiver: AnyObject, Sendable {
  /// Called when the exchange has a place for a connection, for which it may have waited; again after each redirect.
  func placed()
  /// Called at most once, before any body byte, with the head of the final response.
  func begin(_ head: ResponseHead) -> HeadVerdict
  /// Takes body bytes in order, all or none. The buffer is invalid after the return.
  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict
  /// Called when no more bytes come in this turn of the network's thread, so that what was taken can be passed on together. Called
  /// before the thread waits for anything, unless the exchange has ended.
  func turnEnded()
  /// Called exactly once, as the last call.
  func end(_ outcome: DownloadOutcome)
}

extension DownloadRequest {
  /// Returns the patience in seconds, which grows with each time: a slow server is heard out in the end, or found too slow.
  package static func patience(gaveWay times: Int) -> Int64 { shortestPatience << Int64(min(times, 10)) }
}

extension DownloadReceiver {
  package func placed() {}
  package func turnEnded() {}
}

/// The ID of a running exchange.
package struct DownloadID: Hashable, Sendable {
  package let value: UInt64
  package init(value: UInt64) { self.value = value }
}

/// Makes many exchanges at a time on a thread of its own. Any thread may call.
///
/// Limits per host and in all are kept inside: requests beyond them wait their turn in the order of arrival.
package protocol Downloading: Sendable {
  /// Starts an exchange without blocking. The outcome goes to `receiver`.
  func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID
  /// Tells, after `.full`, that there is room again.
  func resume(_ id: DownloadID)
  /// Cancels an exchange. The receiver gets `.failed(.cancelled)` unless it has ended already.
  func cancel(_ id: DownloadID)
  /// Gives an exchange that waits for a connection the next free one; otherwise does nothing.
  func prioritize(_ id: DownloadID)
  /// Returns the seconds for which the URL's host is left alone from now on; `nil` where it may be asked.
  func rest(of url: String) -> Int64?
  /// Cancels all exchanges. Returns when no receiver will be called again.
  func shutDown()
}
