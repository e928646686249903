import TarnCore

/// Shortens the texts of problems for one line.
enum Brief {
  /// Returns a text that is safe to print, with only the front of digests; `explain` and JSON show the whole.
  static func text(_ text: String) -> String {
    var brief = ""
    var run: [Character] = []
    for character in Message.safe(text) + "\n" {
      if character.isHexDigit, character.isASCII {
        run.append(character)
        continue
      }
      brief += run.count < digestDigits ? String(run) : String(run.prefix(12)) + "..."
      run.removeAll()
      brief.append(character)
    }
    return String(brief.dropLast())
  }

  /// The hexadecimal digits of SHA-1, the shortest digest that is checked.
  private static let digestDigits = 40
}

extension HeldPlan {
  /// Returns ` (the list is empty)`; empty for a plan that an older Tarn held.
  var why: String { reason.isEmpty ? "" : " (\(Message.safe(reason)))" }
}

extension Problem {
  /// The problem as a line: `path: message [code]`.
  var line: String { "\(Printable.escape(name)): \(Brief.text(message)) [\(code)]" }
}
