import TarnCore

/// Texts of problems as they are told in one line.
enum Brief {
  /// Safe to print; of a digest only its front, for the whole one is told by `explain` and as JSON.
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

  /// SHA-1 has so many digits, the shortest digest that is checked.
  private static let digestDigits = 40
}

extension HeldPlan {
  /// ` (the list is empty)`; empty for what an older Tarn held.
  var why: String { reason.isEmpty ? "" : " (\(Message.safe(reason)))" }
}

extension Problem {
  /// `path: message [code]`.
  var line: String { "\(Printable.escape(name)): \(Brief.text(message)) [\(code)]" }
}
