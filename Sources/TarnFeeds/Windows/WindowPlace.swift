import TarnCore

/// Where RSS or Atom begins in a document: at its front, or behind what a program on the server put before it, such as the
/// warnings of PHP.
struct WindowPlace {
  /// More than this is no warning.
  private static let maximumText = 16_384
  private static let marks = ["<?xml", "<rss", "<feed", "<rdf:rdf"]

  /// Bytes and lines that stand before it.
  let start: Int
  let lines: Int

  /// - Parameter head: in ASCII or a superset of it.
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

  /// Whether the root of the document is that of RSS or Atom.
  static func isWindow(_ text: [UInt8]) -> Bool {
    guard let root = XMLRoot(text) else { return false }
    switch root.name {
    case "rss": return true
    case "rdf":
      return text.holds("purl.org/rss/1.0/") || text.holds("my.netscape.com/rdf/simple/")
        || text.holds("purl.org/net/rss1.1")
    // Some feeds name no namespace, and they are known by what they hold.
    case "feed":
      guard root.namespace.isEmpty else { return WindowNames.isAtom(root.namespace) }
      let lower = lowercased(text)
      return lower.holds("<entry") && (lower.holds("<link") || lower.holds("<title"))
    default: return false
    }
  }

  /// Text and the tags that programs put around it: no other document that happens to hold a feed.
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
