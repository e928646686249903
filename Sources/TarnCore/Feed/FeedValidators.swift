/// The server's validators of a feed's text, for asking whether it has changed (RFC 9110 13.1).
package struct FeedValidators: Sendable, Equatable {
  /// The ETag as sent, weak or strong: the text is only read, and its bytes are never joined with others.
  package let etag: String?
  /// The Last-Modified header as sent.
  package let lastModified: String?

  /// The seconds by which Last-Modified must precede Date beside an ETag, which may be made from that time and the length.
  static let margin: Int64 = 2
  /// The most bytes of an ETag that are sent back.
  static let longestTag = 1024

  /// - Returns: `nil` when the response has no validator that is sure to change with the text.
  package init?(_ head: ResponseHead) {
    let etag = head.etag.flatMap { Self.isTag($0) ? $0 : nil }
    if head.modified != nil {
      let isSettled = etag == nil ? head.strongLastModified != nil : Self.isSettled(head)
      guard isSettled else { return nil }
    }
    self.init(etag: etag, lastModified: head.modified == nil ? nil : head.lastModified)
  }

  /// - Returns: `nil` when both are missing.
  package init?(etag: String?, lastModified: String?) {
    guard etag != nil || lastModified != nil else { return nil }
    self.etag = etag
    self.lastModified = lastModified
  }

  /// Returns whether a 304 is about these validators: it has the tag that a 200 would have (RFC 9110 15.4.5), compared weakly, or
  /// no tag.
  package func fit(_ head: ResponseHead) -> Bool {
    guard let etag, let answered = head.etag else { return true }
    return Self.strong(etag) == Self.strong(answered)
  }

  private static func strong(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }

  private static func isSettled(_ head: ResponseHead) -> Bool {
    guard let modified = head.modified, let sent = head.sent else { return false }
    return sent.seconds - modified.seconds >= margin
  }

  /// Returns whether the text is one usable entity tag (RFC 9110 8.8.3). `*` and lists have other meanings in a condition.
  private static func isTag(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count <= longestTag else { return false }
    let tag = bytes.starts(with: "W/".utf8) ? bytes.dropFirst(2) : bytes[...]
    guard tag.count > 2, tag.first == UInt8(ascii: "\""), tag.last == UInt8(ascii: "\"") else { return false }
    return tag.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
  }
}

extension ResponseHead {
  /// When the content last changed, as the server says. `nil` when it does not say, or names a time in the future.
  package var changed: Timestamp? {
    guard let modified, let sent, modified <= sent else { return nil }
    return modified
  }
}
