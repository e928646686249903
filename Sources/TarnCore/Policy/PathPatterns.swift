/// Patterns in the style of gitignore(5): `*` and `?` stay within a segment, `**` crosses segments, `[a-z]`
/// and `[!a-z]`, a slash at the front or in the middle anchors to the folder, a slash at the end means a
/// directory, `!` takes back, the last match wins. Matching is by bytes.
package struct PathPatterns: Sendable, Equatable {
  private struct Pattern: Sendable, Equatable {
    var glob: [UInt8]
    var isNegated: Bool
    var isAnchored: Bool
    var isDirectoryOnly: Bool
  }

  /// As given, for display and for the ledger.
  package let texts: [String]
  private let patterns: [Pattern]

  package init(_ texts: [String]) {
    self.texts = texts
    self.patterns = texts.compactMap(Self.parse)
  }

  package var isEmpty: Bool { patterns.isEmpty }

  /// - Returns: true when the path or a directory above it is matched, false when it is taken back, nil when
  ///   no pattern speaks of it.
  package func matches(_ path: RelativePath) -> Bool? {
    guard !patterns.isEmpty else { return nil }
    var verdict: Bool?
    for end in Self.prefixEnds(path.bytes) {
      let prefix = path.bytes[..<end]
      let isDirectory = end < path.bytes.count
      for pattern in patterns where Self.match(pattern, prefix, isDirectory: isDirectory) {
        verdict = !pattern.isNegated
      }
      if isDirectory, verdict == true { return true }
    }
    return verdict
  }

  private static func parse(_ text: String) -> Pattern? {
    var glob = Array(text.utf8)
    guard !glob.isEmpty, glob[0] != UInt8(ascii: "#") else { return nil }
    let isNegated = glob[0] == UInt8(ascii: "!")
    if isNegated { glob.removeFirst() }
    let isDirectoryOnly = glob.last == UInt8(ascii: "/")
    if isDirectoryOnly { glob.removeLast() }
    let isAnchored = glob.contains(UInt8(ascii: "/"))
    if glob.first == UInt8(ascii: "/") { glob.removeFirst() }
    guard !glob.isEmpty else { return nil }
    return Pattern(
      glob: glob, isNegated: isNegated, isAnchored: isAnchored, isDirectoryOnly: isDirectoryOnly)
  }

  /// Where each leading part of a path ends: every directory above it, then the path itself.
  private static func prefixEnds(_ bytes: [UInt8]) -> [Int] {
    bytes.indices.filter { bytes[$0] == UInt8(ascii: "/") } + [bytes.count]
  }

  private static func match(_ pattern: Pattern, _ path: ArraySlice<UInt8>, isDirectory: Bool) -> Bool {
    if pattern.isDirectoryOnly, !isDirectory { return false }
    if pattern.isAnchored { return Glob.matches(pattern.glob[...], path) }
    let slash = path.lastIndex(of: UInt8(ascii: "/"))
    return Glob.matches(pattern.glob[...], slash.map { path[($0 + 1)...] } ?? path)
  }
}

/// wildmatch as git has it, over bytes.
enum Glob {
  private static let slash = UInt8(ascii: "/")
  private static let star = UInt8(ascii: "*")

  /// Backtracks only to the newest star of each kind, so the time is at most the product of the lengths.
  static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
    var pattern = pattern
    var text = text
    var single: (pattern: ArraySlice<UInt8>, text: ArraySlice<UInt8>)?
    var double: (pattern: ArraySlice<UInt8>, text: ArraySlice<UInt8>)?
    while true {
      if let after = doubleStar(pattern) {
        double = (after.rest, text)
        single = nil
        // `**/` matches no directory at all, too.
        pattern = after.rest
        continue
      }
      if pattern.first == star {
        single = (pattern.dropFirst(), text)
        pattern = pattern.dropFirst()
        continue
      }
      if pattern.isEmpty && text.isEmpty { return true }
      if !pattern.isEmpty, let byte = text.first, let rest = step(pattern, byte) {
        pattern = rest
        text = text.dropFirst()
        continue
      }
      if let mark = single, let byte = mark.text.first, byte != slash {
        text = mark.text.dropFirst()
        single = (mark.pattern, text)
        pattern = mark.pattern
        continue
      }
      guard let mark = double, !mark.text.isEmpty else { return false }
      text = mark.text.dropFirst()
      double = (mark.pattern, text)
      single = nil
      pattern = mark.pattern
    }
  }

  /// `**` followed by a slash or the end.
  private static func doubleStar(_ pattern: ArraySlice<UInt8>) -> (rest: ArraySlice<UInt8>, Void)? {
    guard pattern.starts(with: [star, star]) else { return nil }
    let rest = pattern.dropFirst(2)
    return (rest.first == slash ? rest.dropFirst() : rest, ())
  }

  /// Matches one byte against the front of the pattern; the rest of the pattern when it fits.
  private static func step(_ pattern: ArraySlice<UInt8>, _ byte: UInt8) -> ArraySlice<UInt8>? {
    guard let first = pattern.first else { return nil }
    switch first {
    case UInt8(ascii: "?"): return byte == slash ? nil : pattern.dropFirst()
    case UInt8(ascii: "["): return byte == slash ? nil : bracket(pattern, byte)
    case UInt8(ascii: "\\") where pattern.count > 1:
      let rest = pattern.dropFirst()
      return rest.first == byte ? rest.dropFirst() : nil
    default: return first == byte ? pattern.dropFirst() : nil
    }
  }

  private static func bracket(_ pattern: ArraySlice<UInt8>, _ byte: UInt8) -> ArraySlice<UInt8>? {
    var rest = pattern.dropFirst()
    let isNegated = rest.first == UInt8(ascii: "!") || rest.first == UInt8(ascii: "^")
    if isNegated { rest = rest.dropFirst() }
    var found = false
    var isFirst = true
    while let low = rest.first {
      if low == UInt8(ascii: "]"), !isFirst { return found != isNegated ? rest.dropFirst() : nil }
      isFirst = false
      rest = rest.dropFirst()
      if rest.first == UInt8(ascii: "-"), let high = rest.dropFirst().first, high != UInt8(ascii: "]") {
        if low <= byte, byte <= high { found = true }
        rest = rest.dropFirst(2)
      } else if low == byte {
        found = true
      }
    }
    // An unclosed bracket is an ordinary character.
    return pattern.first == byte ? pattern.dropFirst() : nil
  }
}
