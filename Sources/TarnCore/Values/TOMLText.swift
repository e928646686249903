/// Text of settings that a person can paste, for messages.
package enum TOMLText {
  /// Returns the header of a mirror's table: `[mirror.podcasts]`.
  package static func mirror(_ name: String) -> String { "[mirror.\(key(name))]" }

  /// Returns the header of a hook's table: `[hook.chat]`.
  package static func hook(_ name: String) -> String { "[hook.\(key(name))]" }

  /// Returns a basic string of TOML; unprintable characters are escaped.
  package static func quote(_ text: String) -> String {
    var quoted = "\""
    for scalar in Redaction.text(text).unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      default:
        let isPlain = Printable.escape(String(scalar)) == String(scalar)
        if isPlain {
          quoted.unicodeScalars.append(scalar)
        } else {
          let digits = String(scalar.value, radix: 16, uppercase: true)
          quoted += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
        }
      }
    }
    return quoted + "\""
  }

  /// Returns a bare key where possible, otherwise a basic string.
  package static func key(_ text: String) -> String {
    let isBare =
      !text.isEmpty
      && text.utf8.allSatisfy {
        $0.isASCIIDigit || $0.isASCIILetter || $0 == 0x2D || $0 == 0x5F
      }
    return isBare ? text : quote(text)
  }
}
