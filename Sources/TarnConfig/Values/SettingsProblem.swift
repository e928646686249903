import TarnCore

/// What is wrong with the settings: what, where, and how to mend it. Safe to print and to log: no control bytes, and
/// of secrets only where they lie.
package struct SettingsProblem: Error, Sendable, Equatable {
  package enum Severity: String, Sendable {
    /// These settings are not taken.
    case error
    /// They are taken; something could not be looked at, or is probably not meant.
    case warning
  }

  /// Stable words for programs.
  package enum Code: String, Sendable, CaseIterable {
    case fileMissing = "config-file-missing"
    case fileNotReadable = "config-file-not-readable"
    case fileTooLong = "config-file-too-long"
    case syntax = "config-syntax"
    case unknownTable = "config-unknown-table"
    case unknownSetting = "config-unknown-setting"
    case wrongType = "config-wrong-type"
    case outOfRange = "config-out-of-range"
    case badValue = "config-bad-value"
    case badName = "config-bad-name"
    case missing = "config-missing"
    case contradiction = "config-contradiction"
    case folderRefused = "config-folder-refused"
    case folderOverlap = "config-folder-overlap"
    case urlWithPassword = "url-with-password"
    case cacertNotReadable = "cacert-not-readable"
    case secretMissing = "secret-missing"
    case secretNotReadable = "secret-not-readable"
    case secretExposed = "secret-exposed"
  }

  /// A line of the file, cut around the place when it is long.
  package struct Excerpt: Sendable, Equatable {
    package var text: String
    /// Where in `text` the place is, in code points from 0, and how many are meant.
    package var offset: Int
    package var length: Int
  }

  package var code: Code
  package var severity = Severity.error
  package var origin: SettingOrigin
  package var excerpt: Excerpt?
  package var message: String
  package var hint: String?

  /// Some lines: `FILE:LINE:COLUMN: error: MESSAGE`, the excerpt with a caret, the hint.
  package var text: String {
    var lines = ["\(origin.text): \(severity.rawValue): \(message)"]
    if let excerpt, case .file(_, let position) = origin {
      let number = String(position.line)
      let margin = String(repeating: " ", count: number.count)
      lines.append("  \(number) | \(excerpt.text)")
      lines.append(
        "  \(margin) | " + String(repeating: " ", count: excerpt.offset)
          + String(repeating: "^", count: excerpt.length))
    }
    if let hint { lines.append("  \(hint)") }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension SettingsProblem.Excerpt {
  /// How much of a long line is shown.
  private static let width = 100

  /// What of the line may be shown.
  enum Extent {
    case whole
    /// Up to the place's own end: what follows may be a secret.
    case key
    /// Up to the place: it is in the place of a secret.
    case nothing
  }

  /// - Parameter column: from 1; one behind the line's end is its end.
  init(line: String, column: Int, showing extent: Extent) {
    // The window begins a little before the place. A line may be as long as a file: no more of it is looked at.
    let before = max(0, column - 1)
    let first = before <= Self.width * 2 / 3 ? 0 : before - Self.width / 3
    let scalars = Array(line.unicodeScalars.dropFirst(first).prefix(Self.width * 2))
    let start = min(before - first, scalars.count)
    let end = max(start, Self.wordEnd(scalars, from: start))
    let shown: [Unicode.Scalar]
    switch extent {
    case .whole: shown = scalars
    case .key: shown = scalars[..<end] + (end < scalars.count ? [" ", "\u{2026}"] : [])
    case .nothing: shown = scalars[..<start] + ["\u{2026}"]
    }
    // Nor does it begin inside a URL, whose password could not be told from its path.
    let edge = first == 0 ? 0 : shown[..<start].firstIndex { Self.edges.contains($0) }.map { $0 + 1 }
    let front = (first > 0 ? "\u{2026}" : "") + Self.safe(shown[(edge ?? start)..<start])
    let rest = edge == nil ? [] : shown[start...].prefix(Self.width - start)
    let isCut = edge == nil || shown.count > Self.width
    text = Redaction.text(front + Self.safe(rest), isCut: isCut) + (isCut ? "\u{2026}" : "")
    // What is redacted before the place moves it.
    offset = zip(text.unicodeScalars, Redaction.text(front).unicodeScalars).prefix { $0 == $1 }.count
    let meant =
      extent == .nothing
      ? 1 : Self.safe(scalars[start..<min(end, max(start, Self.width))]).unicodeScalars.count
    length = max(1, min(meant, text.unicodeScalars.count - offset))
  }

  private static let edges: Set<Unicode.Scalar> = [" ", "\t", "\"", "'"]

  /// Blanks for tabs, escapes for what must not reach a terminal.
  private static func safe(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    for scalar in scalars { text.append(scalar == "\t" ? " " : scalar) }
    // A backslash is an ordinary thing in TOML, and escapes would move the caret.
    return Printable.escape(String(text)).replacing("\\\\", with: "\\")
  }

  /// The end of the key, number or quoted text that begins there.
  private static func wordEnd(_ scalars: [Unicode.Scalar], from start: Int) -> Int {
    guard start < scalars.count else { return start }
    let quote = scalars[start]
    if quote == "\"" || quote == "'" {
      var index = start + 1
      while index < scalars.count, scalars[index] != quote {
        index += quote == "\"" && scalars[index] == "\\" ? 2 : 1
      }
      return min(index + 1, scalars.count)
    }
    if quote == "[", let close = scalars[start...].firstIndex(of: "]") { return close + 1 }
    if quote == "{", let close = scalars[start...].firstIndex(of: "}") { return close + 1 }
    let stops: Set<Unicode.Scalar> = [" ", "\t", "=", ",", "]", "}", "#", "\r"]
    return scalars[start...].firstIndex { stops.contains($0) } ?? scalars.count
  }
}
