import TarnCore

/// The place where RSS or Atom begins in a document: at its beginning, or after the output of a program on the server, such as
/// warnings of PHP.
struct WindowPlace {
  /// The most bytes before it; more is not a warning.
  private static let maximumText = 16_384
  private static let marks = ["<?xml", "<rss", "<feed", "<rdf:rdf"]

  /// The number of bytes and lines before it.
  let start: Int
  let lines: Int

  /// - Parameter head: the beginning of the document in ASCII or a superset of it.
  init?(_ head: [UInt8]) {
    if Self.isWindow(head) {
      start = 0
    } else {
      let front = lowercased(head.prefix(Self.maximumText))
      guard let begin = Self.marks.compactMap({ front.place(of: $0) }).min(),
        Self.isOutput(front[..<begin]), Self.isWindow(Array(head[begin...]))
      else { return nil }
      start = begin
    }
    lines = head[..<start].count { $0 == 0x0A }
  }

  /// Returns whether the root of the document is that of RSS or Atom.
  static func isWindow(_ text: [UInt8]) -> Bool {
    guard let root = XMLRoot(text) else { return false }
    switch root.name {
    case "rss": return true
    case "rdf":
      return text.holds("purl.org/rss/1.0/") || text.holds("my.netscape.com/rdf/simple/")
        || text.holds("purl.org/net/rss1.1")
    // Some feeds have no namespace, and are recognised by their elements.
    case "feed":
      guard root.namespace.isEmpty else { return WindowNames.isAtom(root.namespace) }
      let lower = lowercased(text)
      return lower.holds("<entry") && (lower.holds("<link") || lower.holds("<title"))
    default: return false
    }
  }

  /// Returns whether it is text with the tags that programs put around it, and not another document that happens to contain a feed.
  private static func isOutput(_ text: ArraySlice<UInt8>) -> Bool {
    guard let first = trimmed(text).first, first != UInt8(ascii: "{"), first != UInt8(ascii: "[") else {
      return false
    }
    var rest = text
    while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
      let name = rest[(open + 1)...].drop { $0 == UInt8(ascii: "/") }.prefix {
        $0.isASCIILetter || $0.isASCIIDigit
      }
      guard PlainText.isHTML(name) else { return false }
      rest = rest[name.endIndex...]
    }
    return true
  }
}
