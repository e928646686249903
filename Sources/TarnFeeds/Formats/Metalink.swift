import TarnCore

/// Metalink 4 (RFC 5854).
struct Metalink: MetalinkVersion {
  static let namespace = "urn:ietf:params:xml:ns:metalink"

  var name: String { "Metalink 4" }

  /// Recognises anything that calls itself a metalink. It is tried after `Metalink3`, so that a document of neither version fails
  /// as a Metalink.
  func recognises(_ head: [UInt8]) -> Bool {
    let text = trimmed(head)
    guard text.first == UInt8(ascii: "<") else { return false }
    let start = lowercased(text.prefix(32))
    guard !start.begins(with: "<html"), !start.begins(with: "<!doctype html") else { return false }
    return text.holds("<metalink") || text.holds(Self.namespace)
  }

  static func isRoot(namespace: String, version: [UInt8]) -> Bool { namespace == Self.namespace }

  static func field(_ names: [String]) -> MetalinkField? {
    guard names.first == "file", let last = names.last else { return nil }
    return switch (names.count, last) {
    case (1, _): .file
    case (2, "size"): .size
    case (2, "hash"): .hash
    case (2, "url"): .url
    case (2, "pieces"): .pieces
    case (3, "hash") where names[1] == "pieces": .piece
    default: nil
    }
  }

  /// Reads the priority (RFC 5854 4.2.16.2). A URL without one is tried last.
  static func priority(of url: XMLReader) -> Int {
    let priority = url.attribute("priority").flatMap { Int(String(decoding: trimmed($0), as: UTF8.self)) }
    return min(max(priority ?? 999_999, 1), 999_999)
  }

  /// Returns true: torrents have an element of their own, `metaurl`.
  static func isFile(_ url: XMLReader) -> Bool { true }
}
