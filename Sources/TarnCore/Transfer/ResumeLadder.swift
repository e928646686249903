/// How a download goes on where it stopped, only where it is proved that more bytes belong to the same version.
/// Pure.
package enum ResumeLadder {
  /// What is known of the bytes at hand.
  package struct Known: Sendable, Equatable {
    /// Bytes in the partial file, all hashed.
    package var kept: UInt64
    /// So many of them would survive a power cut.
    package var durable: UInt64
    /// Where they came from.
    package var url: String
    package var etag: String?
    package var lastModified: String?
    package var total: UInt64?
    /// The feed's digest is the one that they were fetched for.
    package var digestDecides: Bool

    package init(
      kept: UInt64, durable: UInt64 = 0, url: String, etag: String?, lastModified: String?, total: UInt64?,
      digestDecides: Bool
    ) {
      self.kept = kept
      self.durable = durable
      self.url = url
      self.etag = etag
      self.lastModified = lastModified
      self.total = total
      self.digestDecides = digestDecides
    }
  }

  /// The ways to ask, best first.
  package enum Rung: Int, Sendable, Comparable, CaseIterable {
    case etag = 1
    case lastModified = 2
    case digestAlone = 3
    case fromZero = 4
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// The best rung not yet tried.
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

  /// What the head of an answer means for the bytes at hand.
  package enum Verdict: Sendable, Equatable {
    /// 206 that goes on exactly where they end, to the file's end or not so far (RFC 9110 15.3.7).
    case append
    /// Take this body, from zero.
    case takeFromZero
    /// Drop this body and ask with the next rung.
    case nextRung
    /// Drop this body and ask from zero.
    case askFromZero
    /// 416, and the total is what is at hand: all bytes are there.
    case whole
    /// The whole, and fewer bytes than the same version had before.
    case contradiction
    /// 304.
    case notModified
    /// An error status.
    case status(HTTPStatus)
  }

  /// - Parameter url: the URL that was asked, before redirects; an ETag is compared only with one of the same.
  package static func judge(_ head: ResponseHead, rung: Rung, known: Known?, url: String) -> Verdict {
    switch head.status {
    case 200, 203:
      guard !head.isPartOfFile else { return .askFromZero }
      guard let known else { return .takeFromZero }
      let isShort = isShort(head, known, url: url)
      guard rung != .fromZero else { return isShort ? .contradiction : .takeFromZero }
      // To who asked for a part it may be any part.
      guard !head.hasUnreadableRange else { return .askFromZero }
      // The same version, but the server does not honour this form of If-Range.
      if known.url == url, let etag = known.etag, let said = head.etag, isSame(etag, said) {
        return .nextRung
      }
      // A part that does not say so, or that may be one for all that it says.
      let isPart = isShort || isTail(head.contentLength, head, known) || mayBePart(head, known, url: url)
      return isPart ? .askFromZero : .takeFromZero
    case 206:
      guard rung != .fromZero, let known else { return head.isWholeFile ? .takeFromZero : .askFromZero }
      return fits(head, known, url: url) ? .append : .askFromZero
    case 416:
      guard rung != .fromZero, let known, let total = head.contentRange?.total else { return .askFromZero }
      guard total == known.kept, sameVersion(head, known, url: url) else { return .askFromZero }
      // All that the first answer promised came, or the same version says that there is no more.
      let isWhole = known.total.map { $0 == total } ?? isProved(head, known, url: url)
      return isWhole ? .whole : .askFromZero
    case 304: return .notModified
    default: return .status(HTTPStatus(head.status))
    }
  }

  /// Bytes of the whole file, by what an answer says of itself, or an earlier one said of the same version; nil when nothing tells
  /// more than its length.
  package static func total(_ head: ResponseHead, known: Known?, url: String) -> UInt64? {
    if let total = head.statedTotal { return total }
    // What was encoded on the way has another length, whatever its ETag.
    guard head.contentEncoding == nil else { return nil }
    guard let known, known.url == url, !validators(head, known).isEmpty, sameVersion(head, known, url: url)
    else { return nil }
    return known.total
  }

  private static func isShort(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard let length = head.contentLength, let total = total(head, known: known, url: url) else {
      return false
    }
    return length < total
  }

  /// Whether an answer to a request for the rest is as long as the rest, whatever version it says that it is: proxies change
  /// validators. To ask once more costs little.
  package static func isTail(_ length: UInt64?, _ head: ResponseHead, _ known: Known) -> Bool {
    guard head.contentRange == nil, let total = known.total else { return false }
    return length == total - min(total, known.kept)
  }

  /// Whether nothing tells an answer to a request for the rest from the rest, or from a part of it: it says the same version and no
  /// length, or nothing of its version where it tells no length or none is known.
  private static func mayBePart(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard head.contentRange == nil else { return false }
    let hasLengths = known.total != nil && head.contentLength != nil
    if !hasLengths, head.etag == nil, head.lastModified == nil { return true }
    return head.contentLength == nil && known.url == url && !validators(head, known).isEmpty
      && sameVersion(head, known, url: url)
  }

  private static func fits(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    // Without a total nothing would tell where the file ends.
    guard let range = head.contentRange, range.first == known.kept, let last = range.last,
      let total = range.total,
      last >= known.kept, last < total, known.total.map({ $0 == total }) ?? true
    else { return false }
    return sameVersion(head, known, url: url) && isProved(head, known, url: url)
  }

  /// False when a validator of the answer is not the recorded one. A server that ignores If-Range and sends a part
  /// of another version is found out by this alone.
  private static func sameVersion(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    guard url == known.url else { return known.digestDecides }
    return validators(head, known).allSatisfy { isSame($0.recorded, $0.said) }
  }

  /// A digest decides in the end, or the answer names a validator that was recorded (RFC 9110 15.3.7: a 206 carries
  /// the ETag that a 200 would).
  private static func isProved(_ head: ResponseHead, _ known: Known, url: String) -> Bool {
    known.digestDecides || !validators(head, known).isEmpty
  }

  private static func validators(_ head: ResponseHead, _ known: Known) -> [(recorded: String, said: String)] {
    [(known.etag, head.etag), (known.lastModified, head.lastModified)].compactMap { recorded, said in
      guard let recorded, let said else { return nil }
      return (recorded, said)
    }
  }

  /// By bytes: `String` holds two spellings of one letter for equal.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.elementsEqual(other.utf8)
  }
}

extension ResumeLadder {
  /// Whether a server that refuses the rest of a file with this status may still give all of it. One that is
  /// overloaded or cannot reach another refuses any request.
  package static func mayGiveTheWhole(_ status: HTTPStatus) -> Bool {
    ![408, 425, 429, 502, 503, 504].contains(status.code)
  }

  /// Whether an answer that ended before the file did brought enough to be asked for the rest at once: else a server
  /// that gives a byte at a time would be asked millions of times.
  ///
  /// - Parameters:
  ///   - bytes: that it brought.
  ///   - total: of the file.
  package static func isProgress(_ bytes: UInt64, of total: UInt64) -> Bool {
    bytes > 0 && (bytes >= 64 << 10 || bytes >= total / 100)
  }
}

extension ResponseHead {
  /// Its body is not the whole file, by its own Content-Range. Some servers and caches send a part with status 200, where the
  /// header means nothing (RFC 9110 14.4); what it says is believed all the same.
  package var isPartOfFile: Bool {
    guard let range = contentRange else { return false }
    if let length = contentLength, let total = statedTotal, length != total { return true }
    guard let first = range.first, let last = range.last else { return false }
    return first > 0 || range.total.map { last < $0 - min($0, 1) } ?? false
  }

  /// Bytes of the whole file by its Content-Range, of which the body may bring fewer.
  package var statedTotal: UInt64? {
    contentRange.flatMap { range in range.total ?? range.last.map { $0.addingSaturated(1) } }
  }

  /// Its body is the whole file, by its status: 200, 203 from a proxy (RFC 9110 15.3.4), or a 206 whose range is all of it, which
  /// some caches send although nobody asked for a part.
  package var isWholeFile: Bool {
    switch status {
    case 200, 203: return !isPartOfFile
    case 206:
      guard let range = contentRange, let last = range.last, let total = range.total else { return false }
      return !isPartOfFile && range.first == 0 && total > 0 && last == total - 1
    default: return false
    }
  }

  /// The ETag with its quotes when it is strong (RFC 9110 8.8.3), else nil.
  package var strongETag: String? {
    guard let etag, etag.hasPrefix("\""), etag.hasSuffix("\""), etag.utf8.count >= 2 else { return nil }
    return etag
  }

  /// Last-Modified when it is strong by RFC 9110 8.8.2.2: at least a minute before Date.
  package var strongLastModified: String? {
    guard let lastModified, let modified, let sent, sent.seconds - modified.seconds >= 60 else { return nil }
    return lastModified
  }
}

/// What an HTTP status means for a pass.
package struct HTTPStatus: Sendable, Equatable {
  package let code: Int

  package init(_ code: Int) { self.code = code }

  /// - Parameter name: as `name` has it.
  package init?(name: String) {
    guard name.hasPrefix("http-"), let code = Int(name.dropFirst(5)) else { return nil }
    self.code = code
  }

  /// The stable code that users see.
  package var name: String { "http-\(code)" }

  /// The same request may succeed later (RFC 9110 15, RFC 6585 4, RFC 8470 5.2).
  package var isTransient: Bool { [408, 425, 429, 500, 502, 503, 504].contains(code) }

  /// What helps a mirror; a session has other ways.
  package static let passwordOptions = ": see --netrc, --netrc-file and --header-file"

  package var message: String {
    switch code {
    case 401:
      "the server wants the right name and password (401)\(Self.passwordOptions)"
    case 403: "the server refuses access (403)"
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
