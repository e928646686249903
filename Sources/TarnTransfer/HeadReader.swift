import CurlShim
import TarnCore

/// Reads the header lines of one response as libcurl passes them: informational responses first, trailers last.
struct HeadReader {
  enum Step: Equatable {
    case more
    /// The head of the final response has ended.
    case complete
    case failed(DownloadFailure)
  }

  private(set) var head: ResponseHead
  /// The `Location` as sent; the first of several.
  private(set) var location: String?
  /// The values of the `Set-Cookie` fields.
  private(set) var cookies: [String] = []
  private var isComplete = false
  private var isChunked = false
  /// True when the answer is a stream of a connection, so that the protocol marks the end of the body (HTTP/2 and later).
  private(set) var isStream = false
  private var lines = 0
  private(set) var bytes = 0
  private var rawRetryAfter: String?
  private let dates: HeaderDates
  private let keepsFields: Bool

  /// - Parameters:
  ///   - url: the URL of this hop.
  ///   - keepsFields: true to keep all lines in the head.
  ///   - dates: the dates that were read before, so that an equal one is not read again.
  init(url: String, dates: HeaderDates = HeaderDates(), keepsFields: Bool = false) {
    head = ResponseHead(status: 0, url: url)
    self.keepsFields = keepsFields
    self.dates = dates
  }

  /// Reads one line with its line end. Lines after the head (trailers) are only counted.
  ///
  /// - Parameter now: the wall time, for a Retry-After date without a Date header.
  mutating func read(_ line: UnsafeRawBufferPointer, now: @autoclosure () -> Timestamp) -> Step {
    lines += 1
    bytes += line.count
    guard lines <= CurlLimits.headerLines, bytes <= CurlLimits.headerBytes else {
      return .failed(
        DownloadFailure(.headersTooLarge, "the response has too many headers", isTransient: false))
    }
    guard !isComplete else { return .more }
    let text = line.trimmingLineEnd
    guard let first = text.first else { return finish(now: now()) }
    if first == UInt8(ascii: "H"), text.starts(with: "HTTP/".utf8) { return startResponse(text) }
    if keepsFields, let line = String(printable: text) { head.fields.append(line) }
    // A line that begins with white space continues one that Tarn does not need.
    guard first != 0x20, first != 0x09, let colon = text.firstIndex(of: 0x3A),
      let name = FieldName(UnsafeRawBufferPointer(rebasing: text[..<colon]))
    else { return .more }
    let value = UnsafeRawBufferPointer(rebasing: text[(colon + 1)...])
    return field(name, String(printable: value) ?? (name == .location ? Self.encoded(value) : nil))
  }

  /// Returns an address in an eight-bit code page, as curl follows it.
  private static func encoded(_ address: UnsafeRawBufferPointer) -> String? {
    Percent.encode(address, keeping: ascii).withUnsafeBytes { String(printable: $0) }
  }

  private static let ascii = (0..<256).map { $0 < 0x80 }

  private mutating func startResponse(_ line: UnsafeRawBufferPointer) -> Step {
    let protocolEnd = line.firstIndex(of: 0x20) ?? line.endIndex
    let rest = line[protocolEnd...].drop { $0 == 0x20 }
    let word = rest.prefix { $0 != 0x20 }
    guard word.count == 3, let status = Self.number(word), (100...599).contains(status)
    else { return bad("its status line cannot be read") }
    // Fields of an informational response do not belong to the final one.
    head = ResponseHead(status: status, url: head.url)
    isStream = !line.starts(with: "HTTP/1".utf8)
    location = nil
    cookies = []
    isChunked = false
    rawRetryAfter = nil
    return .more
  }

  private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
    digits.reduce(0) { sum, digit in
      sum.flatMap { digit.isASCIIDigit ? $0 * 10 + Int(digit - 0x30) : nil }
    }
  }

  private mutating func finish(now: @autoclosure () -> Timestamp) -> Step {
    guard head.status != 0 else { return bad("it has no status line") }
    // 101 is never requested; libcurl reports it as an error of its own.
    guard head.status >= 200 else { return .more }
    if isChunked, head.contentLength != nil { return bad("it has both Content-Length and Transfer-Encoding") }
    if let raw = rawRetryAfter { head.retryAfter = HeaderValue.retryAfter(raw, date: head.sent, now: now()) }
    head.isFramed = isStream || isChunked || head.contentLength != nil
    isComplete = true
    return .complete
  }

  private mutating func field(_ name: FieldName, _ value: String?) -> Step {
    switch name {
    case .contentLength: return contentLength(value)
    case .contentRange: return contentRange(value)
    case .transferEncoding: isChunked = true
    case .etag: head.etag = isRepeated(head.etag, value) ? nil : value
    case .lastModified:
      head.lastModified = value
      head.modified = value.flatMap { dates.read($0, as: name) }
    case .date:
      head.date = value
      head.sent = value.flatMap { dates.read($0, as: name) }
    case .contentType: head.contentType = value
    case .contentDisposition: head.contentDisposition = value
    case .contentEncoding: contentEncoding(value ?? "unreadable")
    case .location: location = location ?? value
    case .retryAfter: rawRetryAfter = value
    case .setCookie: if let value { cookies.append(value) }
    }
    return .more
  }

  /// Returns whether a second, different value came. Then neither can be trusted.
  private func isRepeated(_ old: String?, _ new: String?) -> Bool {
    old != nil && old != new
  }

  private mutating func contentLength(_ value: String?) -> Step {
    guard let value, let length = HeaderValue.length(value) else {
      return bad("its Content-Length is not a number")
    }
    guard head.contentLength ?? length == length else { return bad("it has two Content-Length headers") }
    head.contentLength = length
    return .more
  }

  /// Reads the Content-Range. An unreadable value fits no range request; two values are an attack or a broken proxy.
  private mutating func contentRange(_ value: String?) -> Step {
    guard head.contentRange == nil else { return bad("it has two Content-Range headers") }
    head.contentRange = value.flatMap(HeaderValue.contentRange)
    head.hasUnreadableRange = head.contentRange == nil
    return .more
  }

  private mutating func contentEncoding(_ value: String) {
    for word in value.lowercased().split(separator: ",") {
      let word = word.trimmingBlanks
      guard !word.isEmpty, !HeaderValue.noCodings.contains(word) else { continue }
      head.contentEncoding = head.contentEncoding.map { "\($0), \(word)" } ?? word
    }
  }

  private func bad(_ why: String) -> Step {
    .failed(DownloadFailure(.protocolError, "the response is malformed: \(why)", isTransient: true))
  }
}

/// The header fields that Tarn reads.
enum FieldName: CaseIterable {
  case contentLength, contentRange, transferEncoding, etag, lastModified, date, contentType, contentEncoding
  case location, retryAfter, setCookie, contentDisposition

  /// The name in lower case.
  private var name: StaticString {
    switch self {
    case .contentLength: "content-length"
    case .contentRange: "content-range"
    case .transferEncoding: "transfer-encoding"
    case .etag: "etag"
    case .lastModified: "last-modified"
    case .date: "date"
    case .contentType: "content-type"
    case .contentEncoding: "content-encoding"
    case .location: "location"
    case .retryAfter: "retry-after"
    case .setCookie: "set-cookie"
    case .contentDisposition: "content-disposition"
    }
  }

  /// - Parameter text: the name as sent, in upper or lower case.
  init?(_ text: UnsafeRawBufferPointer) {
    for field in Self.allCases where field.isNamed(text) {
      self = field
      return
    }
    return nil
  }

  private func isNamed(_ text: UnsafeRawBufferPointer) -> Bool {
    let name = name
    guard name.utf8CodeUnitCount == text.count else { return false }
    for index in 0..<text.count {
      let byte = text[index]
      let folded = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
      if folded != name.utf8Start[index] { return false }
    }
    return true
  }
}

/// The last date of each field, since many files of one server have the same dates. Network thread only.
final class HeaderDates {
  private typealias Read = (text: String, date: Timestamp?)
  private var lastModified: Read?
  private var sent: Read?

  func read(_ text: String, as name: FieldName) -> Timestamp? {
    let last = name == .date ? sent : lastModified
    if let last, last.text == text { return last.date }
    let date = HeaderValue.date(text)
    if name == .date { sent = (text, date) } else { lastModified = (text, date) }
    return date
  }
}

/// The grammars of header values.
enum HeaderValue {
  /// Reads digits without a sign, within 64 bits.
  static func number(_ text: some StringProtocol) -> UInt64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0.isASCIIDigit }) else { return nil }
    return UInt64(text)
  }

  /// Reads a Content-Length: one number, also when it is repeated (RFC 9110 8.6).
  static func length(_ text: String) -> UInt64? {
    if let length = number(text) { return length }
    let values = text.split(separator: ",", omittingEmptySubsequences: false).map {
      number($0.trimmingBlanks)
    }
    guard let first = values.first ?? nil, values.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// Values that some servers send as a Content-Encoding although they are none: the framing of an upload, a charset, a word for
  /// nothing.
  static let noCodings: Set<String> = [
    "identity", "none", "aws-chunked", "utf-8", "utf8", "us-ascii", "iso-8859-1", "binary", "8bit", "7bit",
    "text", "ascii",
  ]

  /// Reads `bytes first-last/total`, `bytes first-last/*` or `bytes */total` (RFC 9110 14.4), with first <= last < total.
  static func contentRange(_ text: String) -> ContentRange? {
    let words = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let total = number(parts[1])
    if parts[0] == "*" {
      return total.map { ContentRange(first: nil, last: nil, total: $0) }
    }
    guard total != nil || parts[1] == "*" else { return nil }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = number(ends[0]), let last = number(ends[1]), first <= last,
      total.map({ last < $0 }) ?? true
    else { return nil }
    return ContentRange(first: first, last: last, total: total)
  }

  /// Reads an HTTP date in any form that libcurl knows.
  static func date(_ text: String) -> Timestamp? {
    let seconds = curl_getdate(text, nil)
    return seconds < 0 ? nil : Timestamp(seconds: Int64(seconds))
  }

  /// Reads a number of seconds, or a date relative to the response's own Date, so that a wrong clock does not matter. 0 to 7 days.
  static func retryAfter(_ text: String, date sent: Timestamp?, now: Timestamp) -> Int64? {
    if !text.isEmpty, text.utf8.allSatisfy({ $0.isASCIIDigit }) {
      return Int64(min(number(text) ?? .max, UInt64(CurlLimits.retryAfter)))
    }
    guard let until = date(text) else { return nil }
    let from = sent ?? now
    return min(max(0, until.seconds - from.seconds), CurlLimits.retryAfter)
  }

  /// Returns whether the text can go into a request header as it is: it has no control characters.
  static func isSafe(_ text: String) -> Bool {
    text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes without CR and LF at the end.
  fileprivate var trimmingLineEnd: UnsafeRawBufferPointer {
    var end = count
    while end > 0, self[end - 1] == 0x0A || self[end - 1] == 0x0D { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: self[..<end])
  }
}

extension Substring {
  fileprivate var trimmingBlanks: String {
    let start = drop { $0 == " " || $0 == "\t" }
    return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
  }
}

extension String {
  /// Reads a header value without surrounding white space; `nil` when it has control characters or is not UTF-8.
  fileprivate init?(printable bytes: UnsafeRawBufferPointer) {
    var (start, end) = (0, bytes.count)
    while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
    while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
    var all: UInt8 = 0
    for index in start..<end {
      let byte = bytes[index]
      guard byte >= 0x20 && byte != 0x7F || byte == 0x09 else { return nil }
      all |= byte
    }
    let value = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    if all < 0x80 {
      self.init(decoding: value, as: UTF8.self)
    } else {
      self.init(validating: value, as: UTF8.self)
    }
  }
}
