/// Removes secrets from text in which they do not belong.
package enum Redaction {
  /// Replaces names and passwords in URLs by `***`: `https://***@example.org/feed`. For addresses that were accepted: an `@` in a
  /// path stays.
  ///
  /// - Parameter isCut: true when more text followed, which may have shown that the end is a name or a password.
  package static func text(_ text: String, isCut: Bool = false) -> String {
    // Works on bytes: by characters, a mark that combines with the slash would hide it.
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

  /// Replaces the queries of URLs by `***`, for texts that leave the machine: many servers take a token there. A query ends at a
  /// blank, before the punctuation of a sentence.
  package static func queries(_ text: String) -> String {
    var plain: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let start = rest.firstRange(of: Array("://".utf8))?.upperBound {
      let end = rest[start...].firstIndex { $0 <= 0x20 } ?? rest.endIndex
      guard
        let mark = rest[start..<end].firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
      else {
        plain += rest[..<end]
        rest = rest[end...]
        continue
      }
      let last = rest[mark..<end].lastIndex { !Self.punctuation.contains($0) } ?? mark
      plain += rest[...mark]
      plain += Array("***".utf8)
      rest = rest[(last + 1)...]
    }
    return String(decoding: plain + rest, as: UTF8.self)
  }

  /// Replaces the values of those parameters in the queries of URLs that are secrets by their names, such as `token` and
  /// `X-Amz-Signature`, by `***`.
  package static func tokens(_ text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "?")) else { return text }
    var plain: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let start = rest.firstRange(of: Array("://".utf8))?.upperBound {
      let end = rest[start...].firstIndex { $0 <= 0x20 } ?? rest.endIndex
      let mark = rest[start..<end].firstIndex(of: UInt8(ascii: "?")) ?? end
      plain += rest[..<mark]
      plain += hidingTokens(rest[mark..<end])
      rest = rest[end...]
    }
    return String(decoding: plain + rest, as: UTF8.self)
  }

  private static func hidingTokens(_ query: ArraySlice<UInt8>) -> [UInt8] {
    var plain: [UInt8] = []
    var rest = query
    while !rest.isEmpty {
      // Each parameter has the mark in front of it.
      let end = rest.dropFirst().firstIndex { "&;#".utf8.contains($0) } ?? rest.endIndex
      let parameter = rest[..<end]
      rest = rest[end...]
      guard let equals = parameter.firstIndex(of: UInt8(ascii: "=")),
        isSecret(parameter[..<equals].dropFirst())
      else {
        plain += parameter
        continue
      }
      let last = parameter.lastIndex { !Self.punctuation.contains($0) } ?? equals
      plain += parameter[...equals]
      plain += Array("***".utf8)
      plain += parameter[(last + 1)...]
    }
    return plain
  }

  private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
    let word = String(decoding: name, as: UTF8.self).lowercased()
    return ["auth", "jwt", "pwd", "sig"].contains(word)
      || ["key", "passwd", "password", "secret", "signature", "token"].contains { word.hasSuffix($0) }
  }

  private static let punctuation = Set("'\",.:;)>".utf8)

  /// Redacts a text that was meant to be an address and is not valid. It may have a password with blanks, slashes and marks, one
  /// slash or none behind the scheme, or no scheme. Whatever stands between a colon and the last `@` may be a password.
  package static func address(_ address: String) -> String {
    let bytes = Array(address.utf8)
    let scheme = bytes.prefix { Self.schemeCharacters.contains($0) }
    let hasScheme = !scheme.isEmpty && bytes[scheme.endIndex...].first == UInt8(ascii: ":")
    var start = hasScheme ? scheme.endIndex + 1 : 0
    let slashes = bytes[start...].prefix { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    start = slashes.endIndex
    guard let at = bytes[start...].lastIndex(of: UInt8(ascii: "@")), at + 1 < bytes.count,
      bytes[at + 1] > 0x20
    else { return Self.text(address) }
    let authority = bytes[start...].prefix { !Self.ends.contains($0) }
    let isUser = authority.contains(UInt8(ascii: "@")) && (hasScheme || slashes.count >= 2)
    let front = bytes[start..<at]
    let isPlace = Self.isHostAndPort(authority) && (hasScheme || authority.contains(UInt8(ascii: ":")))
    guard isUser || front.contains(UInt8(ascii: ":")) && !isPlace
    else { return Self.text(address) }
    return String(decoding: bytes[..<start], as: UTF8.self) + "***"
      + Self.text(String(decoding: bytes[at...], as: UTF8.self))
  }

  /// Returns whether the text is like `example.org` or `example.org:8080`.
  private static func isHostAndPort(_ authority: ArraySlice<UInt8>) -> Bool {
    let parts = authority.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    return parts.count == 1
      || parts.count == 2 && !parts[0].isEmpty && parts[1].allSatisfy { $0.isASCIIDigit }
        && parts[0].allSatisfy { Self.schemeCharacters.contains($0) }
  }

  /// The characters that end the host of an address and what precedes it. Quotes are not among them, since a password may hold
  /// them.
  package static let ends = Set("/?#".utf8)

  private static let schemeCharacters = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.".utf8)
}
