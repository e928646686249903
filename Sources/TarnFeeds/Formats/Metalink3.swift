import TarnCore

/// Metalink 3.0, and the form that MirrorManager uses for the mirrors of a Fedora repository.
///
/// MirrorManager's `mm0:alternates` hold the digests of older versions, which are never digests of the file.
struct Metalink3: MetalinkVersion {
  var name: String { "Metalink 3" }

  func recognises(_ head: [UInt8]) -> Bool {
    guard let root = MetalinkHead.root(head), !root.holds(Metalink.namespace) else { return false }
    let version = ["version=\"3", "version='3"]
    return root.holds("metalinker.org") || version.contains { root.holds($0) }
  }

  /// Recognises the namespace, which is written in several ways (http, https, with or without a slash, or not at all).
  static func isRoot(namespace: String, version: [UInt8]) -> Bool {
    namespace.utf8.holds("metalinker.org") || namespace.isEmpty && version.begins(with: "3")
  }

  static func field(_ names: [String]) -> MetalinkField? {
    guard names.count >= 2, names[0] == "files", names[1] == "file", let last = names.last else { return nil }
    return switch (names.count, last) {
    case (2, _): .file
    case (3, "size"): .size
    case (3, "mm0:timestamp"): .timestamp
    case (4, "hash") where names[2] == "verification": .hash
    case (4, "pieces") where names[2] == "verification": .pieces
    case (5, "hash") where names[2] == "verification" && names[3] == "pieces": .piece
    case (4, "url") where names[2] == "resources": .url
    default: nil
    }
  }

  /// Turns a preference, from 0 to 100 for the best, into a priority. A URL without one is tried last.
  static func priority(of url: XMLReader) -> Int {
    let preference = url.attribute("preference").flatMap { Int(String(decoding: trimmed($0), as: UTF8.self)) }
    return preference.map { 101 - min(max($0, 0), 100) } ?? 999_999
  }

  static func isFile(_ url: XMLReader) -> Bool {
    url.attribute("type").map { !lowercased(trimmed($0)).elementsEqual("bittorrent".utf8) } ?? true
  }
}
