/// Decides how a download goes on where it stopped. It does so only where it is proved that more bytes belong to the same version.
/// Pure.
package enum ResumeLadder {
  /// What is known about the bytes at hand.
  package struct Known: Sendable, Equatable {
    /// Bytes in the partial file, all hashed.
    package var kept: UInt64
    /// The number of bytes that would survive a power cut.
    package var durable: UInt64
    /// The URL that was asked for the bytes.
    package var url: String
    /// The URL that sent them, after redirects; `nil` when it is not known.
    package var answered: String?
    package var etag: String?
    package var lastModified: String?
    /// A Last-Modified that is not strong. It proves nothing, but another one shows another version.
    package var weakDate: String?
    package var total: UInt64?
    /// True when the feed's digest is the one that the bytes were fetched for.
    package var digestDecides: Bool

    package init(
      kept: UInt64, durable: UInt64 = 0, url: String, answered: String? = nil, etag: String?,
      lastModified: String?, weakDate: String? = nil, total: UInt64?, digestDecides: Bool
    ) {
      self.kept = kept
      self.durable = durable
      self.url = url
      self.answered = answered
      self.etag = etag
      self.lastModified = lastModified
      self.weakDate = weakDate
      self.total = total
      self.digestDecides = digestDecides
    }
  }

  /// The ways to ask for the rest, best first.
  package enum Rung: Int, Sendable, Comparable, CaseIterable {
    case etag = 1
    case lastModified = 2
    case digestAlone = 3
    case fromZero = 4
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// Returns the best rung that was not tried yet.
  package static func rung(_ known: Known?, url: String, after tried: Rung? = nil) -> Rung {
    guard let known, known.kept > 0 else { return .fromZero }
    for rung in Rung.allCases where tried.map({ rung > $0 }) ?? true {
      switch rung {
      case .etag where known.etag != nil && known.url == url: return rung
      case .lastModified where known.lastModified != nil && known.url == url: return rung
      case .digestAlone where known.digestDecides: return rung
      default: continue
      }
    }
    return .fromZero
  }

  /// The meaning of an answer's head for the bytes at hand.
  package enum Verdict: Sendable, Equatable {
    /// A 206 that continues exactly where the bytes end, up to the file's end or less far (RFC 9110 15.3.7).
    case append
    /// The whole of the version that the bytes at hand are of. Pass over as much as is at hand, and append the rest.
    case passOver
    /// Take this body from zero.
    case takeFromZero
    /// Drop this body and ask with the next rung.
    case nextRung
    /// Drop this body and ask from zero.
    case askFromZero
    /// A 416 whose total is the size at hand: all bytes are there.
    case whole
    /// The whole file, with fewer bytes than the same version had before.
    case contradiction
    /// A 304.
    case notModified
    /// An error status.
    case status(HTTPStatus)
  }

  /// - Parameter url: the requested URL, before redirects. An ETag is compared only with one of the same URL.
  package static func judge(_ head: ResponseHead, rung: Rung, known: Known?, url: String) -> Verdict {
    switch head.status {
    case 200, 203:
      guard !head.isPartOfFile else { return .askFromZero }
      guard let known else { return .takeFromZero }
      let isShort = isShort(head, known, url: url)
      guard rung != .fromZero else {
        return isShort ? .contradiction : isOfSameVersion(head, known, url: url) ? .passOver : .takeFromZero
      }
      // For a request for a part, the body may be any part.
      guard !head.hasUnreadableRange else { return .askFromZero }
      // The version is the same, but the server does not honour this form of If-Range.
      if known.url == url, mayBeSameFile(head, known), let etag = known.etag, let said = head.etag,
        isSame(etag, said)
      {
        return .nextRung
      }
      // The body is a part that is not declared as one, or it may be a part.
      let isEmpty = head.contentLength == 0 && known.total ?? 0 > 0
      let isPart =
        isShort || isEmpty || isTail(head.contentLength, head, known) || mayBePart(head, known, url: url)
      return isPart ? .askFromZero : .takeFromZero
    case 206:
      guard rung != .fromZero, let known else { return head.isWholeFile ? .takeFromZero : .askFromZero }
      return fits(head, known, url: url) ? .append : .askFromZero
    case 416:
      guard rung != .fromZero, let known, let total = head.contentRange?.total else { return .askFromZero }
      guard total == known.kept, sameVersion(head, known, url: url) else { return .askFromZero }
      // Everything that the first answer promised came, or the same version has no more.
      let isWhole = known.total.map { $0 == total } ?? isProved(head, known, url: url)
      return isWhole ? .whole : .askFromZero
    case 304: return .notModified
    default: return .status(HTTPStatus(head.status))
    }
  }

  /// Returns the size of the whole file, as this answer gives it, or as an earlier one gave it for the same version. `nil` when
  /// nothing beyond the length is known.
  package static func total(_ head: ResponseHead, known: Known?, url: String) -> UInt64? {
    if let total = head.statedTotal { return total }
    // A file that was encoded on the way has another length, whatever its ETag.
    guard head.contentEncoding == nil else { return nil }
    guard let known, known.url == url, !validators(head, known).isEmpty, sameVersion(head, known, url: url)
    else { return nil }
    // A longer file is another version, whatever its validators say.
    return known.total.map { max($0, head.contentLength ?? 0) }
  }

  private static func isShort(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard let length = head.contentLength else { return false }
    // Where no total was told, there are at least the bytes at hand.
    if known.total == nil, isOfSameVersion(head, known, url: url), length < known.kept { return true }
    return total(head, known: known, url: url).map { length < $0 } ?? false
  }

  /// Returns whether an answer to a request for the rest is as long as the rest, whatever version it declares: proxies change
  /// validators. Asking once more costs little.
  package static func isTail(_ length: UInt64?, _ head: ResponseHead, _ known: Known) -> Bool {
    guard head.contentRange == nil, let total = known.total else { return false }
    return length == total - min(total, known.kept)
  }

  /// Returns whether an answer to a request for the rest cannot be told from the rest or a part of it. It has the same version and
  /// no length, or no validators where its length or the total is unknown.
  private static func mayBePart(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard head.contentRange == nil else { return false }
    let hasLengths = known.total != nil && head.contentLength != nil
    if !hasLengths, head.etag == nil, head.lastModified == nil { return true }
    return head.contentLength == nil && known.url == url && !validators(head, known).isEmpty
      && sameVersion(head, known, url: url)
  }

  private static func fits(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    // Without a total, the end of the file would be unknown.
    guard let range = head.contentRange, range.first == known.kept, let last = range.last,
      let total = range.total,
      last >= known.kept, last < total, known.total.map({ $0 == total }) ?? true
    else { return false }
    return sameVersion(head, known, url: url) && isProved(head, known, url: url)
  }

  /// Returns whether a whole answer is proved to begin with the bytes at hand. If its connection breaks, these are not lost.
  private static func isOfSameVersion(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard known.kept > 0, known.url == url, head.isFramed, head.contentEncoding == nil,
      let etag = known.etag, let said = head.etag, isSame(etag, said)
    else { return false }
    let isAsLong = known.total.flatMap { total in head.contentLength.map { $0 == total } } ?? true
    return isAsLong && sameVersion(head, known, url: url)
  }

  /// False when a validator of the answer differs from the recorded one. Only this test detects a server that ignores If-Range and
  /// sends a part of another version.
  private static func sameVersion(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard url == known.url else { return known.digestDecides }
    guard mayBeSameFile(head, known) else { return false }
    if !hasSameETag(head, known), let date = known.weakDate, let said = head.lastModified, !isSame(date, said)
    {
      return false
    }
    return validators(head, known).allSatisfy { isSame($0.recorded, $0.said) }
  }

  /// True when a strong ETag that is too long to count versions agrees. Some servers date each answer anew.
  private static func hasSameETag(_ head: ResponseHead, _ known: Known) -> Bool {
    guard let etag = known.etag, let said = head.etag else { return false }
    return isSame(etag, said) && !mayBeCounter(etag)
  }

  /// False when redirects lead to another file than the one that sent the bytes, and no digest decides. Two files may have one ETag or
  /// date (RFC 9110 8.8.1), so an ETag says enough only where the sizes are compared, too.
  private static func mayBeSameFile(_ head: ResponseHead, _ known: Known) -> Bool {
    guard !known.digestDecides, let answered = known.answered else { return true }
    let etag = known.total == nil ? nil : known.etag
    return mayBeSameFile(
      Sender(url: answered, etag: etag, lastModified: known.lastModified), Sender(head))
  }

  /// True when a digest decides in the end, or when the answer has a recorded validator (RFC 9110 15.3.7: a 206 carries the ETag
  /// that a 200 would).
  private static func isProved(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    known.digestDecides || !validators(head, known).isEmpty
  }

  private static func validators(_ head: ResponseHead, _ known: Known) -> [(recorded: String, said: String)] {
    [(known.etag, head.etag), (known.lastModified, head.lastModified)].compactMap { recorded, said in
      guard let recorded, let said else { return nil }
      return (recorded, said)
    }
  }

  /// Compares by bytes: `String` treats two spellings of one letter as equal.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.elementsEqual(other.utf8)
  }
}

extension ResumeLadder {
  /// What sent a file, and what it said about the version.
  package struct Sender: Sendable {
    /// The URL after redirects.
    let url: String
    let etag: String?
    let lastModified: String?

    package init(url: String, etag: String?, lastModified: String?) {
      (self.url, self.etag, self.lastModified) = (url, etag, lastModified)
    }

    package init(_ head: ResponseHead) {
      self.init(url: head.url, etag: head.etag, lastModified: head.lastModified)
    }
  }

  /// The parts of a URL that tell files apart. The scheme and the fragment do not.
  private struct Address {
    /// The host, the folders and the name.
    let words: [String]
    let query: String

    init(_ url: String) {
      let plain = Substring(url.utf8.prefix { $0 != UInt8(ascii: "#") })
      let path = Substring(plain.utf8.prefix { $0 != UInt8(ascii: "?") })
      let words = path.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
      self.words = words.count > 2 ? Array(words.dropFirst(2)) : words
      query = String(Substring(plain.utf8.dropFirst(path.utf8.count)))
    }
  }

  /// Returns whether two URLs may be of one file, by the table in the decision `ResumeLadder`. Redirects to several mirrors lead to
  /// several hosts, those of a CDN to a new folder or query each time.
  package static func mayBeSameFile(_ one: Sender, _ other: Sender) -> Bool {
    let (first, second) = (Address(one.url), Address(other.url))
    let isSameHost = first.words.first == second.words.first
    let isSamePath = first.words.elementsEqual(second.words, by: isSame)
    let isSameQuery = isSame(first.query, second.query)
    if isSamePath, isSameQuery { return true }
    guard let name = first.words.last, let otherName = second.words.last, isSame(name, otherName) else {
      return false
    }
    // That of a folder is empty.
    guard !name.isEmpty || isSamePath else { return false }
    let isSameDate = areSame(one.lastModified, other.lastModified)
    guard let etag = strong(one.etag), let otherETag = strong(other.etag) else {
      return isSameHost ? isSamePath && isSameDate : isSameQuery || isSameDate
    }
    guard isSame(etag, otherETag) else { return false }
    return !isSameHost && isSameQuery || isSameDate || !mayBeCounter(etag)
  }

  private static func areSame(_ one: String?, _ other: String?) -> Bool {
    guard let one, let other else { return false }
    return isSame(one, other)
  }

  /// Returns whether an ETag is so short that it may count versions. Two files of one server then have the same one.
  private static func mayBeCounter(_ etag: String) -> Bool { etag.utf8.count < 6 + 2 }

  /// Returns an ETag with its quotes when it is strong (RFC 9110 8.8.3), otherwise `nil`.
  static func strong(_ etag: String?) -> String? {
    guard let etag, etag.hasPrefix("\""), etag.hasSuffix("\""), etag.utf8.count >= 2 else { return nil }
    return etag
  }

  /// Returns what the record of the file in place says about its version. A whole answer with its strong ETag and fewer bytes is
  /// then a contradiction, as it is for a partial file.
  ///
  /// - Returns: `nil` when the answer may be of another version.
  package static func known(of row: Row?, _ head: ResponseHead, url: String) -> Known? {
    guard let row, let etag = strong(row.etag),
      !mayBeCounter(etag) || areSame(row.lastModified, head.lastModified)
    else { return nil }
    return Known(
      kept: 0, url: url, etag: etag, lastModified: nil, total: row.identity.size, digestDecides: false)
  }

  /// Returns whether a server that refuses the rest of a file with this status may still send all of it. A server that is
  /// overloaded, or cannot reach another, refuses any request.
  package static func mayGiveTheWhole(_ status: HTTPStatus) -> Bool {
    status.code < 502 && ![408, 425, 429].contains(status.code)
  }

  /// Returns whether an answer that ended before the file brought enough to ask for the rest at once. Otherwise a server that sends
  /// a byte at a time would be asked millions of times.
  ///
  /// - Parameters:
  ///   - bytes: the bytes that the answer brought.
  ///   - total: the size of the file.
  package static func isProgress(_ bytes: UInt64, of total: UInt64) -> Bool {
    bytes > 0 && (bytes >= 64 << 10 || bytes >= total / 100)
  }
}

extension ResponseHead {
  /// True when the Content-Range says that the body is not the whole file. Some servers and caches send a part with status 200,
  /// where the header means nothing (RFC 9110 14.4); it is believed all the same.
  package var isPartOfFile: Bool {
    guard let range = contentRange else { return false }
    if let length = contentLength, let total = statedTotal, length != total { return true }
    guard let first = range.first, let last = range.last else { return false }
    return first > 0 || range.total.map { last < $0 - min($0, 1) } ?? false
  }

  /// The size of the whole file by its Content-Range; the body may have fewer bytes.
  package var statedTotal: UInt64? {
    contentRange.flatMap { range in range.total ?? range.last.map { $0.addingSaturated(1) } }
  }

  /// True when the body is the whole file by its status: 200, 203 from a proxy (RFC 9110 15.3.4), or a 206 whose range is all of
  /// it. Some caches send such a 206 although nobody asked for a part.
  package var isWholeFile: Bool {
    switch status {
    case 200, 203: return !isPartOfFile
    case 206:
      guard let range = contentRange, let last = range.last, let total = range.total else { return false }
      return !isPartOfFile && range.first == 0 && total > 0 && last == total - 1
    default: return false
    }
  }

  /// The ETag with its quotes when it is strong (RFC 9110 8.8.3), otherwise `nil`.
  package var strongETag: String? { ResumeLadder.strong(etag) }

  /// Last-Modified when it is strong by RFC 9110 8.8.2.2 (at least a minute before Date), otherwise `nil`.
  package var strongLastModified: String? {
    guard let lastModified, let modified, let sent, sent.seconds - modified.seconds >= 60 else { return nil }
    return lastModified
  }

  /// Last-Modified when it is not strong, otherwise `nil`.
  package var weakLastModified: String? { strongLastModified == nil ? lastModified : nil }
}

/// The meaning of an HTTP status for a pass.
package struct HTTPStatus: Sendable, Equatable {
  package let code: Int

  package init(_ code: Int) { self.code = code }

  /// - Parameter name: the code as in `name`.
  package init?(name: String) {
    guard name.hasPrefix("http-"), let code = Int(name.dropFirst(5)) else { return nil }
    self.code = code
  }

  /// The stable code that users see.
  package var name: String { "http-\(code)" }

  /// True when the same request may succeed later (RFC 9110 15, RFC 6585 4, RFC 8470 5.2). An unknown status from 500 on is like 500.
  package var isTransient: Bool {
    [408, 425, 429].contains(code)
      || (500...599).contains(code) && ![501, 505, 506, 508, 510, 511].contains(code)
  }

  /// The options that help a mirror; a session has other ways.
  package static let passwordOptions = ": see --netrc, --netrc-file and --header-file"

  package var message: String {
    switch code {
    case 401:
      "the server wants the right name and password (401)\(Self.passwordOptions)"
    case 403: "the server refuses access (403)"
    case 407: "the proxy wants a name and password (407)"
    case 404: "the server does not have it (404)"
    case 410: "the server had it once, and it is gone for good (410)"
    case 416: "the server cannot serve the rest of it (416)"
    case 429: "the server asks for fewer requests (429)"
    case 503: "the server is too busy, or down for a while (503)"
    case 500...599: "the server has a fault of its own (\(code))"
    default: "the server answered with status \(code)"
    }
  }
}
