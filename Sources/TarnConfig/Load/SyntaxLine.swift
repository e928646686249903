import TarnCore

/// A line that TOML does not accept, split as its author probably meant it. TOML's own rules do not apply to
/// it: all of this is a guess, for hints only.
struct SyntaxLine {
  /// The whole line.
  private let scalars: [Unicode.Scalar]
  /// The index where its comment begins, from 0.
  private let end: Int
  /// The index of the first `=` outside of quotes, from 0.
  private let equals: Int?

  init(_ line: String) {
    scalars = Array(line.unicodeScalars)
    var quote: Unicode.Scalar?
    var equals: Int?
    var end = scalars.count
    for (index, scalar) in scalars.enumerated() {
      if scalar == quote {
        quote = nil
      } else if quote == nil {
        if scalar == "\"" || scalar == "'" { quote = scalar }
        if scalar == "=", equals == nil { equals = index }
        if scalar == "#" {
          end = index
          break
        }
      }
    }
    self.equals = equals
    self.end = end
  }

  /// The line without its comment and the surrounding blanks.
  var text: String { part(0..<end) }
  /// The text before `=`; `nil` without one.
  var key: String? { equals.map { part(0..<$0) } }
  /// The text after `=`, without a comment; `nil` without one.
  var value: String? { equals.map { part(($0 + 1)..<end) } }

  /// The name that the line sets, or seems to set.
  var name: String {
    let front = key ?? text.split { $0 == " " || $0 == "\t" || $0 == ":" }.first.map(String.init) ?? ""
    return Quotes.stripped(front)
  }

  /// The setting of that name, in any table.
  var setting: Setting? { Setting.all.last { $0.name == name } }

  /// True when the line sets a secret, or the place of one.
  var isSecret: Bool { setting?.kind.isSecret == true }

  /// The column where the value begins, from 1; without an `=`, the column of the second word.
  var valueColumn: Int {
    var index = equals.map { $0 + 1 } ?? firstGap
    while index < scalars.count, Self.isBlank(scalars[index]) { index += 1 }
    return index + 1
  }

  /// The text from a column on, which counts from 1, without a comment.
  func rest(from column: Int) -> String { part(min(max(0, column - 1), end)..<end) }

  private var firstGap: Int {
    let start = scalars.firstIndex { !Self.isBlank($0) } ?? 0
    return scalars[start...].firstIndex { Self.isBlank($0) || $0 == ":" }.map { $0 + 1 } ?? scalars.count
  }

  private func part(_ range: Range<Int>) -> String { Self.trimmed(scalars[range]) }

  /// The text without surrounding blanks.
  static func trimmed(_ text: String) -> String { trimmed(Array(text.unicodeScalars)[...]) }

  private static func trimmed(_ slice: ArraySlice<Unicode.Scalar>) -> String {
    let start = slice.firstIndex { !isBlank($0) } ?? slice.endIndex
    let stop = slice.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start
    return String(String.UnicodeScalarView(slice[start..<max(start, stop)]))
  }

  private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
    scalar == " " || scalar == "\t" || scalar == "\r"
  }
}

/// Quotes, and the typographic ones that word processors make of them.
enum Quotes {
  private static let double: Set<Unicode.Scalar> = ["“", "”", "„", "‟", "«", "»", "＂"]
  private static let single: Set<Unicode.Scalar> = ["‘", "’", "‚", "‛", "‹", "›"]

  static func isTypographic(_ scalar: Unicode.Scalar) -> Bool {
    double.contains(scalar) || single.contains(scalar)
  }

  /// Replaces typographic quotes by straight ones. An apostrophe between double quotes stays.
  static func straight(_ text: String) -> String {
    let scalars = text.unicodeScalars
    let quotes = scalars.contains { double.contains($0) || $0 == "\"" } ? double : double.union(single)
    return String(String.UnicodeScalarView(scalars.map { quotes.contains($0) ? "\"" : $0 }))
  }

  /// Removes all quotes and the surrounding blanks.
  static func stripped(_ text: String) -> String {
    let kept = text.unicodeScalars.filter { $0 != "\"" && $0 != "'" && !isTypographic($0) }
    return SyntaxLine.trimmed(String(String.UnicodeScalarView(kept)))
  }
}
