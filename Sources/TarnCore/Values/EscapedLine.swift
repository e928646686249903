/// Writes a text as one line of a record: a line feed becomes `\n`, a tab `\t`, a backslash `\\`.
package enum EscapedLine {
  // Works on scalars: by characters, a line feed after "\r" would not be found.

  package static func escape(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "\\": "\\\\"
      case "\n": "\\n"
      case "\t": "\\t"
      default: String(scalar)
      }
    }.joined()
  }

  /// Reverses `escape`. A backslash at the end is dropped.
  package static func unescape(_ text: Substring.UnicodeScalarView) -> String {
    var plain = String.UnicodeScalarView()
    var isEscaped = false
    for scalar in text {
      if isEscaped {
        plain.append(scalar == "n" ? "\n" : scalar == "t" ? "\t" : scalar)
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else {
        plain.append(scalar)
      }
    }
    return String(plain)
  }
}
