import TarnCore

/// A problem of the settings: what is wrong, where, and how to correct it. Safe to print and to log: it has
/// no control bytes, and tells of secrets only where they lie.
package struct SettingsProblem: Error, Sendable, Equatable {
  package enum Severity: String, Sendable {
    /// The settings are refused.
    case error
    /// The settings are accepted, but something could not be examined or is probably a mistake.
    case warning
  }

  /// Stable identifiers for programs.
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
    /// The place in `text`, in code points from 0, and the length of what it marks.
    package var offset: Int
    package var length: Int
  }

  package var code: Code
  package var severity = Severity.error
  package var origin: SettingOrigin
  package var excerpt: Excerpt?
  package var message: String
  package var hint: String?

  /// The problem in a few lines: `FILE:LINE:COLUMN: error: MESSAGE`, the excerpt with a caret, the hint.
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
  /// The code points of a long line that are shown, at most.
  private static let width = 100
  /// The code points before the place that are examined.
  private static let reach = 4096

  /// The part of the line that may be shown.
  enum Extent {
    case whole
    /// The line up to the end of the key: a secret may follow.
    case key
    /// The line up to the place, which is that of a secret.
    case nothing
  }

  /// - Parameter column: the column from 1; beyond the line's end it counts as the end.
  init(line: String, column: Int, showing extent: Extent) {
    // The window begins a little before the place. Only the line from its beginning tells what is a password,
    // but it may be as long as a file. Then nothing before the place is shown.
    let before = max(0, column - 1)
    let isNear = before <= Self.reach
    let origin = isNear ? 0 : before
    let first = before <= Self.width * 2 / 3 ? 0 : isNear ? before - Self.width / 3 : before
    let window = Array(line.unicodeScalars.dropFirst(origin).prefix(first - origin + Self.width * 2 + 1))
    let scalars = Array(window.prefix(first - origin + Self.width * 2))
    let start = min(before - origin, scalars.count)
    let end = max(start, Self.wordEnd(scalars, from: start))
    let base = min(first - origin, start)
    let plain = DoubtfulText(line: scalars, isCut: window.count > scalars.count)
    func shown(_ part: Range<Int>) -> String.UnicodeScalarView { Self.safe(plain.shown(part)) }
    let (visible, tail): (Int, String) =
      switch extent {
      case .whole: (scalars.count, "")
      case .key: (end, end < scalars.count ? " \u{2026}" : "")
      case .nothing: (start, "\u{2026}")
      }
    let isCut = !isNear || visible - base > Self.width
    let last = isNear ? max(start, min(visible, base + Self.width)) : start
    let front = (first > 0 ? 1 : 0) + shown(base..<start).count
    text =
      (first > 0 ? "\u{2026}" : "") + String(shown(base..<start)) + String(shown(start..<last))
      + (isCut ? "\u{2026}" : tail)
    // The caret points at a hidden range that begins before the place and ends after it.
    let isInside = plain.hidden.contains { (base..<start).contains($0.lowerBound) && $0.upperBound > start }
    offset = isInside ? front - DoubtfulText.mark.count : front
    let meant = extent == .nothing ? 1 : front - offset + shown(start..<max(start, min(end, last))).count
    length = max(1, min(meant, text.unicodeScalars.count - offset))
  }

  /// Replaces tabs by blanks, and escapes what must not reach a terminal.
  private static func safe(_ scalars: [Unicode.Scalar]) -> String.UnicodeScalarView {
    var text = String.UnicodeScalarView()
    for scalar in scalars { text.append(scalar == "\t" ? " " : scalar) }
    // A backslash is common in TOML, and escapes would move the caret.
    return Printable.escape(String(text)).replacing("\\\\", with: "\\").unicodeScalars
  }

  /// The end of the key, number, quoted text or bracketed value that begins there.
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
