/// A word as it was typed in bash, and what it stands for.
struct BashWord {
  let typed: String
  /// The word without its quoting. Nothing is expanded.
  let text: String
  let quoting: Quoting

  init(_ typed: String) {
    self.typed = typed
    var text = ""
    var (quote, isEscaped, isMixed) = (Character?.none, false, false)
    for (place, character) in typed.enumerated() {
      if isEscaped {
        text.append(character)
        isEscaped = false
      } else if character == quote {
        (quote, isMixed) = (nil, true)
      } else if character == "\\", quote != "'" {
        isEscaped = true
      } else if quote == nil, character == "\"" || character == "'" {
        quote = character
        if place > 0 { isMixed = true }
      } else {
        text.append(character)
      }
    }
    self.text = text
    if isMixed || isEscaped {
      quoting = .mixed
    } else if let quote {
      quoting = .open(quote)
    } else {
      quoting = .plain(isHome: typed.hasPrefix("~/"))
    }
  }

  /// The quoting in front of what is completed.
  enum Quoting {
    /// No quote. `isHome` is true for a word that begins with the home directory.
    case plain(isHome: Bool)
    /// The word begins with this quote, which is still open.
    case open(Character)
    /// The word has quotes elsewhere, or ends with a backslash.
    case mixed

    /// Returns a word as bash reads it at this place; `nil` when it cannot stand there.
    func quote(_ word: String) -> String? {
      switch self {
      case .plain(let isHome):
        return isHome && word.hasPrefix("~/") ? "~" + escaped(word.dropFirst()) : escaped(word[...])
      case .open(let quote):
        return word.contains { quote == "'" ? $0 == "'" : "\"$`\\!".contains($0) } ? nil : word
      case .mixed: return nil
      }
    }

    private func escaped(_ word: Substring) -> String {
      var text = ""
      for character in word {
        let isPlain = character.isLetter || character.isNumber || "/._-+:,@%=".contains(character)
        if !isPlain { text.append("\\") }
        text.append(character)
      }
      return text
    }
  }
}
