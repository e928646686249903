/// Computes the terminal columns of texts, and fits texts into a number of columns.
enum Columns {
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + width($1) }
  }

  /// Returns the front of the text, with `...` when something is left out.
  static func front(_ text: String, _ limit: Int) -> String {
    guard width(text) > limit else { return text }
    let head = prefix(text.unicodeScalars, max(0, limit - 3))
    return head + String(repeating: ".", count: max(0, min(3, limit)))
  }

  /// Returns the front of a text with styles (`Style`), which take no columns.
  static func styledFront(_ text: String, _ limit: Int) -> String {
    var (kept, used) = (String.UnicodeScalarView(), 0)
    var sequence: String.UnicodeScalarView?
    let mark = max(0, limit - 3)
    // The text that fits before the mark, for when the whole does not fit.
    var front: String?
    for scalar in text.unicodeScalars {
      if scalar == "\u{1B}" { sequence = String.UnicodeScalarView() }
      if var running = sequence {
        running.append(scalar)
        sequence = scalar == "m" ? nil : running
      } else {
        used += width(scalar)
        if used > mark, front == nil { front = String(kept) }
        if used > limit { break }
      }
      kept.append(scalar)
    }
    guard used > limit, let front else { return text }
    let end = front.unicodeScalars.contains("\u{1B}") ? "\u{1B}[0m" : ""
    return front + String(repeating: ".", count: max(0, min(3, limit))) + end
  }

  /// Wraps a text at blanks. Further lines are indented by two more columns than the first one. Styles take
  /// no columns.
  static func wrapped(_ text: String, _ limit: Int) -> [String] {
    guard styledWidth(text) > limit else { return [text] }
    let front = text.prefix { $0 == " " }
    let indent = String(repeating: " ", count: min(front.count + 2, limit / 2))
    var lines: [String] = []
    var line = String(front)
    var isBlank = true
    for word in text.dropFirst(front.count).split(separator: " ", omittingEmptySubsequences: false) {
      var word = String(word)
      if !isBlank, styledWidth(line) + 1 + styledWidth(word) > limit, !word.isEmpty {
        lines.append(withoutBlanks(line))
        line = indent
      } else if !isBlank {
        line += " "
      }
      // A word longer than a line is broken at the end of the line.
      while styledWidth(line) + styledWidth(word) > limit, limit > indent.count {
        let head = prefix(word.unicodeScalars, max(1, limit - styledWidth(line)))
        guard !head.isEmpty else { break }
        lines.append(line + head)
        word = String(String.UnicodeScalarView(word.unicodeScalars.dropFirst(head.unicodeScalars.count)))
        line = indent
      }
      line += word
      isBlank = false
    }
    return lines + [withoutBlanks(line)]
  }

  private static func withoutBlanks(_ line: String) -> String {
    String(line.reversed().drop { $0 == " " }.reversed())
  }

  /// Returns the columns of a text with styles, which take none.
  static func styledWidth(_ text: String) -> Int {
    var (used, isStyle) = (0, false)
    for scalar in text.unicodeScalars {
      if scalar == "\u{1B}" { isStyle = true }
      if !isStyle { used += width(scalar) }
      if scalar == "m" { isStyle = false }
    }
    return used
  }

  /// Returns the end of the text, which is the part of a path that identifies the file.
  static func end(_ text: String, _ limit: Int) -> String {
    guard width(text) > limit else { return text }
    let tail = prefix(text.unicodeScalars.reversed(), max(0, limit - 3))
    var scalars = String.UnicodeScalarView()
    scalars.append(contentsOf: tail.unicodeScalars.reversed())
    return String(repeating: ".", count: max(0, min(3, limit))) + String(scalars)
  }

  static func padded(_ text: String, _ columns: Int, right: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, columns - width(text)))
    return right ? space + text : text + space
  }

  private static func prefix(_ scalars: some Sequence<Unicode.Scalar>, _ limit: Int) -> String {
    var text = String.UnicodeScalarView()
    var used = 0
    for scalar in scalars {
      used += width(scalar)
      guard used <= limit else { break }
      text.append(scalar)
    }
    return String(text)
  }

  /// The columns of a character as in wcwidth(3), which needs a locale: 0 for marks, 2 for East Asian wide
  /// characters and pictographs.
  private static func width(_ scalar: Unicode.Scalar) -> Int {
    guard scalar.value >= 0x300 else { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch scalar.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
      0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
