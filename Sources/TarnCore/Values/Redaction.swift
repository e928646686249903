/// Text without the secrets that somebody put where none belongs.
package enum Redaction {
  /// Names and passwords in URLs become `***`: `https://***@example.org/feed`. For what was taken: an `@` of a path stays.
  ///
  /// - Parameter isCut: more followed, which may have shown that the end is a name or a password.
  package static func text(_ text: String, isCut: Bool = false) -> String {
    // Bytes: as characters, a mark that combines with the slash would hide it.
    var rest = Array(text.utf8)[...]
    var plain: [UInt8] = []
    while let start = rest.firstRange(of: Array("://".utf8))?.upperBound {
      plain += rest[..<start]
      rest = rest[start...]
      let authority = rest.prefix { !Self.ends.contains($0) && $0 > 0x20 }
      if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
        plain += Array("***".utf8)
        rest = rest[at...]
      } else if isCut, authority.endIndex == rest.endIndex, !authority.isEmpty {
        plain += Array("***".utf8)
        rest = []
      }
    }
    return String(decoding: plain + rest, as: UTF8.self)
  }

  /// The same of what was meant to be one address and is none: a blank in a password, one slash or none behind the scheme.
  package static func address(_ address: String) -> String {
    let bytes = Array(address.utf8)
    let scheme = bytes.prefix { Self.schemeCharacters.contains($0) }
    let hasScheme = !scheme.isEmpty && bytes[scheme.endIndex...].first == UInt8(ascii: ":")
    var start = hasScheme ? scheme.endIndex + 1 : 0
    let slashes = bytes[start...].prefix { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    guard hasScheme || slashes.count >= 2 else { return Self.text(address) }
    start = slashes.endIndex
    let authority = bytes[start...].prefix { !Self.ends.contains($0) }
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return Self.text(address) }
    return String(decoding: bytes[..<start], as: UTF8.self) + "***"
      + Self.text(String(decoding: bytes[at...], as: UTF8.self))
  }

  /// Of an address's host, and what stands before it. No quotes: a password may hold them.
  package static let ends = Set("/?#".utf8)

  private static let schemeCharacters = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.".utf8)
}
