/// Patterns in the style of gitignore(5): `*` and `?` stay within a segment, `**` crosses segments, `[a-z]` and `[!a-z]`. A slash
/// at the front or in the middle anchors to the folder, a slash at the end means a directory, `!` negates, and the last match wins.
/// Matching is by bytes. Trailing blanks belong to the pattern, since patterns come from options, not from lines of a file.
package struct PathPatterns: Sendable, Equatable {
  private struct Pattern: Sendable, Equatable {
    var glob: [UInt8]
    var isNegated: Bool
    var isAnchored: Bool
    var isDirectoryOnly: Bool
    /// The pattern as given.
    var text: String
  }

  /// The form of a pattern with at most one star (or `**/`) at one of its ends. Most patterns have this form and are matched by
  /// comparing bytes.
  private struct Shape: Sendable, Equatable {
    enum Kind { case literal, prefix, suffix, below, other }
    var kind: Kind
    var isAnchored: Bool
    var isDirectoryOnly: Bool
    /// The range of its bytes in `letters`.
    var range: Range<Int>
  }

  /// The patterns as given, for display and for the ledger.
  package let texts: [String]
  private let patterns: [Pattern]
  private let shapes: [Shape]
  /// The bytes of all shapes, one after the other.
  private let letters: [UInt8]

  package init(_ texts: [String]) {
    self.texts = texts
    patterns = texts.compactMap(Self.parse)
    var letters: [UInt8] = []
    shapes = patterns.map { pattern in
      let (kind, bytes) = Self.shape(pattern)
      defer { letters += bytes }
      return Shape(
        kind: kind, isAnchored: pattern.isAnchored, isDirectoryOnly: pattern.isDirectoryOnly,
        range: letters.count..<(letters.count + bytes.count))
    }
    self.letters = letters
  }

  package var isEmpty: Bool { patterns.isEmpty }

  /// Returns these patterns and one more that matches exactly one path.
  package func adding(_ path: RelativePath) -> PathPatterns {
    let special = Set("*?[\\".utf8)
    let bytes = path.bytes.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    return PathPatterns(texts + ["/" + String(decoding: bytes, as: UTF8.self)])
  }

  /// Returns why a pattern would never match, with the place in it. `nil` for a valid pattern, and for an empty text, which
  /// replaces remembered patterns.
  package static func fault(in text: String) -> String? {
    if text.isEmpty { return nil }
    if text.hasPrefix("#") {
      return "as in .gitignore it is a comment; with a backslash in front # means itself"
    }
    guard let pattern = parse(text) else { return "it names nothing" }
    if pattern.glob.starts(with: "./".utf8) {
      return "no path begins with './'; a slash alone in front means the mirror's folder"
    }
    guard let fault = Glob.fault(in: pattern.glob) else { return nil }
    // The glob is the text without the characters that may precede and follow it.
    let front = text.utf8.count - pattern.glob.count - (text.hasSuffix("/") ? 1 : 0)
    let before = String(decoding: text.utf8.prefix(front + fault.offset), as: UTF8.self)
    return "at character \(before.unicodeScalars.count + 1) \(fault.reason)"
  }

  /// - Returns: true when the path or a directory above it matches, false when a later pattern negates that, `nil` when no pattern
  ///   applies.
  package func matches(_ path: RelativePath) -> Bool? {
    decisive(path).map { !$0.isNegated }
  }

  /// Returns whether everything below the directory matches: it or a directory above it does, and no pattern negates that below.
  package func matches(directory path: RelativePath) -> Bool { deciding(directory: path) != nil }

  /// Returns the pattern, as given, that matches everything below the directory; `nil` when none does.
  package func deciding(directory path: RelativePath) -> String? {
    decisive(path, isDirectory: true).flatMap { $0.isNegated ? nil : $0.text }
  }

  /// Returns the pattern, as given, that decides the result of `matches`; `nil` when none applies.
  package func deciding(_ path: RelativePath) -> String? {
    decisive(path)?.text
  }

  private func decisive(_ path: RelativePath, isDirectory: Bool = false) -> Pattern? {
    guard !patterns.isEmpty else { return nil }
    let last = path.bytes.withUnsafeBufferPointer { bytes in
      letters.withUnsafeBufferPointer { letters in
        shapes.withUnsafeBufferPointer {
          decisive(path.bytes, bytes, $0, letters, endsInDirectory: isDirectory)
        }
      }
    }
    return last.map { patterns[$0] }
  }

  /// Returns the index of the last pattern that applies to the path or to a directory above it.
  private func decisive(
    _ path: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>, _ shapes: UnsafeBufferPointer<Shape>,
    _ letters: UnsafeBufferPointer<UInt8>, endsInDirectory: Bool
  ) -> Int? {
    var last: Int?
    var start = 0
    for end in 0...bytes.count where end == bytes.count || bytes[end] == UInt8(ascii: "/") {
      let isDirectory = end < bytes.count || endsInDirectory
      for index in shapes.indices where isDirectory || !shapes[index].isDirectoryOnly {
        let shape = shapes[index]
        let from = shape.isAnchored ? 0 : start
        // Most patterns are decided by length alone.
        if shape.kind == .literal, end - from != shape.range.count { continue }
        let text = UnsafeBufferPointer(rebasing: bytes[from..<end])
        let matches =
          shape.kind == .other
          ? Glob.matches(patterns[index].glob[...], path[from..<end])
          : Self.matches(shape.kind, UnsafeBufferPointer(rebasing: letters[shape.range]), text)
        if matches { last = index }
      }
      if isDirectory, let last, !patterns[last].isNegated { return last }
      start = end + 1
    }
    return last
  }

  /// - Parameter text: the text, as long as the letters when they are the whole pattern (`.literal`).
  private static func matches(
    _ kind: Shape.Kind, _ letters: UnsafeBufferPointer<UInt8>, _ text: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard text.count >= letters.count else { return false }
    let offset = kind == .prefix ? 0 : text.count - letters.count
    if kind == .below, offset > 0, text[offset - 1] != UInt8(ascii: "/") { return false }
    for index in 0..<letters.count where letters[index] != text[offset + index] { return false }
    return true
  }

  /// - Returns: the kind of pattern, and its letters without the star.
  private static func shape(_ pattern: Pattern) -> (Shape.Kind, [UInt8]) {
    func isPlain(_ bytes: some Sequence<UInt8>) -> Bool { !bytes.contains { "*?[\\".utf8.contains($0) } }
    let glob = pattern.glob
    if isPlain(glob) { return (.literal, glob) }
    if glob.starts(with: "**/".utf8), isPlain(glob.dropFirst(3)) { return (.below, Array(glob.dropFirst(3))) }
    // A star stays within a segment, and an anchored pattern may cover several segments.
    guard !pattern.isAnchored else { return (.other, []) }
    if glob.first == UInt8(ascii: "*"), isPlain(glob.dropFirst()) {
      return (.suffix, Array(glob.dropFirst()))
    }
    if glob.last == UInt8(ascii: "*"), isPlain(glob.dropLast()) { return (.prefix, Array(glob.dropLast())) }
    return (.other, [])
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
}
