import TarnCore

/// Redaction of settings, which may be malformed.
extension Redaction {
  /// Returns true when an address carries a user name or a password: an `@` between `//` and the first `/`,
  /// `?` or `#`. Addresses within an address are checked as well.
  package static func carriesUser(_ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    while let start = rest.firstRange(of: Array("://".utf8))?.upperBound {
      rest = rest[start...]
      if rest.prefix(while: { !Self.ends.contains($0) }).contains(UInt8(ascii: "@")) { return true }
    }
    return false
  }

  /// Redacts a message that may repeat a word of the command line, also one taken as a path, such as
  /// `http:/user@host`.
  package static func message(_ text: String) -> String {
    var plain: [UInt8] = []
    var rest = Array(Self.text(text).utf8)[...]
    while let slash = rest.firstRange(of: Array(":/".utf8)) {
      let name = rest[..<slash.lowerBound].reversed().prefix {
        $0.isASCIIDigit || $0 > 0x40 && $0 < 0x7B
      }
      let start = rest[slash.upperBound...].firstIndex { $0 != UInt8(ascii: "/") } ?? rest.endIndex
      plain += rest[..<start]
      rest = rest[start...]
      guard Self.schemes.contains(String(decoding: name.reversed(), as: UTF8.self).lowercased()) else {
        continue
      }
      let authority = rest.prefix { !Self.ends.contains($0) && $0 > 0x20 }
      guard let at = authority.lastIndex(of: UInt8(ascii: "@")), at > start else { continue }
      plain += Array("***".utf8)
      rest = rest[at...]
    }
    return String(decoding: plain + rest, as: UTF8.self)
  }

  /// Redacts a text that may hold a malformed address.
  static func doubtful(_ text: String, isCut: Bool) -> String {
    let plain = DoubtfulText(line: text.unicodeScalars, isCut: isCut)
    return String(String.UnicodeScalarView(plain.shown(0..<plain.scalars.count)))
  }

  /// Redacts a value that was refused: all of it may be one address.
  package static func value(_ text: String) -> String {
    let scalars = Array(text.unicodeScalars)
    let plain = DoubtfulText(scalars, hiding: [DoubtfulText.secret(in: scalars[...])].compactMap { $0 })
    return String(String.UnicodeScalarView(plain.shown(0..<scalars.count)))
  }

  /// Redacts and shortens a refused value and makes it safe to print, for messages.
  static func short(_ text: String) -> String {
    let plain = value(text).unicodeScalars
    return Printable.escape(String(plain.prefix(60))) + (plain.count > 60 ? "\u{2026}" : "")
  }

  private static let schemes = Set(
    ["ftp", "socks4", "socks4a", "socks5", "socks5h"] + URLScheme.allCases.map(\.rawValue))
}

/// A text of settings with errors in it. A password in it may break the rules of URLs: it may contain a `/`,
/// or follow a misspelled `://`. When in doubt, the text is hidden.
struct DoubtfulText {
  let scalars: [Unicode.Scalar]
  /// The ranges that are not shown, in order, none of them empty.
  private(set) var hidden: [Range<Int>]

  /// - Parameter isCut: true when more text followed, which may have shown that the end is a name or a
  ///   password.
  init(line: some Sequence<Unicode.Scalar>, isCut: Bool) {
    scalars = Array(line)
    hidden = []
    var start = 0
    while start < scalars.count {
      guard !Self.blanks.contains(scalars[start]) else {
        start += 1
        continue
      }
      let isQuoted = Self.quotes.contains(scalars[start])
      let end = isQuoted ? closing(start) : wordEnd(start)
      let token = scalars[(isQuoted ? start + 1 : start)..<max(start, end)]
      if let secret = Self.secret(in: token, isCut: isCut && end == scalars.count) { hidden.append(secret) }
      start = end + 1
    }
  }

  init(_ scalars: [Unicode.Scalar], hiding hidden: [Range<Int>]) {
    self.scalars = scalars
    self.hidden = hidden
  }

  /// Returns a part of the text, with `***` where a hidden range begins.
  func shown(_ part: Range<Int>) -> [Unicode.Scalar] {
    var shown: [Unicode.Scalar] = []
    var place = part.lowerBound
    for secret in hidden where secret.upperBound > place && secret.lowerBound < part.upperBound {
      shown += scalars[place..<max(place, secret.lowerBound)]
      if secret.lowerBound >= part.lowerBound { shown += Self.mark }
      place = min(secret.upperBound, part.upperBound)
    }
    return shown + scalars[place..<part.upperBound]
  }

  /// Returns the secret part of one address: from its scheme to its last `@`.
  static func secret(in token: ArraySlice<Unicode.Scalar>, isCut: Bool = false) -> Range<Int>? {
    let scheme = schemeEnd(token)
    // Escapes may stand for the characters that end a password.
    if token.contains("\\"), scheme != nil || hasEscapedAt(token) {
      return (scheme ?? keyEnd(token))..<token.endIndex
    }
    if let at = token.lastIndex(of: "@") {
      let first = keyEnd(token)
      let isAddress = mayBeUser(token[first..<at])
      let start = scheme.map { $0 < at ? $0 : first } ?? first
      return isAddress && start < at ? start..<at : nil
    }
    guard let scheme, scheme < token.endIndex else { return nil }
    // `user:password%40host` has its `@` escaped.
    let authority = token[scheme...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    if String(String.UnicodeScalarView(authority)).contains("%40") {
      return authority.startIndex..<authority.endIndex
    }
    return isCut ? scheme..<token.endIndex : nil
  }

  /// True when the text before an `@` may be a user name and a password: it has a colon outside of separate
  /// times of day. Thus `12:30 @ noon` holds no secret.
  private static func mayBeUser(_ front: ArraySlice<Unicode.Scalar>) -> Bool {
    if front.starts(with: "//".unicodeScalars) { return true }
    guard front.contains(":") else { return false }
    if front.firstRange(of: Array("//".unicodeScalars)) != nil { return true }
    var words = front.split(omittingEmptySubsequences: false) { blanks.contains($0) }
    // The last word adjoins the `@`.
    let last = words.removeLast()
    return last.contains(":") || words.contains { $0.contains(":") && !isTime($0) }
  }

  /// True for the times of calendars and windows: `6:00`, `08:00-18:00`, `*:0/15`, `06:00:00`.
  private static func isTime(_ word: ArraySlice<Unicode.Scalar>) -> Bool {
    word.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { time in
      let parts = time.split(separator: ":", omittingEmptySubsequences: false)
      return (2...3).contains(parts.count)
        && parts.joined(separator: ["/"]).split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
          (1...2).contains($0.count) && $0.allSatisfy { $0 == "*" || ("0"..."9").contains($0) }
        }
    }
  }

  /// True when the token has an escaped `@`: `\u0040`, `\U00000040`, `\x40` (TOML 1.0 and 1.1).
  private static func hasEscapedAt(_ token: ArraySlice<Unicode.Scalar>) -> Bool {
    let text = String(String.UnicodeScalarView(token)).lowercased()
    return ["\\u0040", "\\u00000040", "\\x40"].contains { text.contains($0) }
  }

  /// The index after `https://`, also with fewer slashes; `nil` when the first colon has no slash after it.
  private static func schemeEnd(_ token: ArraySlice<Unicode.Scalar>) -> Int? {
    guard let colon = token.firstIndex(of: ":"), token[colon...].dropFirst().first == "/" else { return nil }
    return token[colon...].dropFirst().firstIndex { $0 != "/" } ?? token.endIndex
  }

  /// The index after `feed=` when the token begins with such a key, otherwise the start.
  private static func keyEnd(_ token: ArraySlice<Unicode.Scalar>) -> Int {
    let key = token.prefix { $0.properties.isAlphabetic || $0 == "-" || $0 == "_" }
    return !key.isEmpty && token[key.endIndex...].first == "=" ? key.endIndex + 1 : token.startIndex
  }

  /// Returns the index of the closing quote. A quote inside a password closes nothing: a value ends after the
  /// closing one.
  private func closing(_ start: Int) -> Int {
    var index = start + 1
    while index < scalars.count {
      if scalars[index] == "\\", scalars[start] == "\"" {
        index += 2
      } else if scalars[index] == scalars[start], index + 1 == scalars.count || isEnd(scalars[index + 1]) {
        return index
      } else {
        index += 1
      }
    }
    return scalars.count
  }

  private func isEnd(_ scalar: Unicode.Scalar) -> Bool {
    Self.blanks.contains(scalar) || [",", "]", "}", "=", "#", "\r"].contains(scalar)
  }

  /// Returns the end of a word: a blank, or a quote that begins a value. An unquoted text that may be an
  /// address extends as far as its password may, over blanks and quotes.
  private func wordEnd(_ start: Int) -> Int {
    var colon: Int?
    var end = scalars.count
    for index in start..<scalars.count {
      if Self.blanks.contains(scalars[index]) {
        end = index
        break
      }
      if colon == nil, index > start, Self.quotes.contains(scalars[index]),
        ["=", "[", "{", ","].contains(scalars[index - 1])
      {
        return index - 1
      }
      if colon == nil, scalars[index] == ":" { colon = index }
    }
    guard let colon, colon + 1 < end, !Self.isTime(scalars[Self.keyEnd(scalars[start..<end])..<end]),
      let at = scalars[end...].lastIndex(of: "@")
    else { return end }
    return scalars[at...].firstIndex { Self.blanks.contains($0) } ?? scalars.count
  }

  static let mark = Array("***".unicodeScalars)
  private static let blanks: Set<Unicode.Scalar> = [" ", "\t"]
  private static let quotes: Set<Unicode.Scalar> = ["\"", "'"]
}
