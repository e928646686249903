/// Patterns in the style of gitignore(5): `*` and `?` stay within a segment, `**` crosses segments, `[a-z]`
/// and `[!a-z]`, a slash at the front or in the middle anchors to the folder, a slash at the end means a
/// directory, `!` takes back, the last match wins. Matching is by bytes. Blanks at the end belong to the
/// pattern: these come from options, not from lines of a file.
package struct PathPatterns: Sendable, Equatable {
  private struct Pattern: Sendable, Equatable {
    var glob: [UInt8]
    var isNegated: Bool
    var isAnchored: Bool
    var isDirectoryOnly: Bool
    /// As given.
    var text: String
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
    decisive(path).map { !$0.isNegated }
  }

  /// The pattern, as given, that says what `matches` answers; nil when none speaks of the path.
  package func deciding(_ path: RelativePath) -> String? {
    decisive(path)?.text
  }

  private func decisive(_ path: RelativePath) -> Pattern? {
    guard !patterns.isEmpty else { return nil }
    var last: Pattern?
    for end in Self.prefixEnds(path.bytes) {
      let prefix = path.bytes[..<end]
      let isDirectory = end < path.bytes.count
      for pattern in patterns where Self.match(pattern, prefix, isDirectory: isDirectory) { last = pattern }
      if isDirectory, let last, !last.isNegated { return last }
    }
    return last
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
      glob: glob, isNegated: isNegated, isAnchored: isAnchored, isDirectoryOnly: isDirectoryOnly, text: text)
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
