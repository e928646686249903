/// Words of a command that a person can paste into a shell.
package enum ShellWord {
  /// Returns the word itself where it is plain, and quoted otherwise.
  package static func quote(_ text: String) -> String { quote(bytes: Array(text.utf8)) }

  package static func quote(bytes: [UInt8]) -> String {
    // Only bash, zsh and ksh know the notation for what does not print. Backslashes do, in any quotes.
    guard let text = String(validating: bytes, as: UTF8.self), Message.safe(text).utf8.elementsEqual(bytes)
    else {
      return "$'"
        + Printable.escape(bytes).split(separator: "'", omittingEmptySubsequences: false)
        .joined(separator: "\\'") + "'"
    }
    let plain = Set("_./:@%+,=-".utf8)
    let isPlain = bytes.allSatisfy { $0.isASCIIDigit || $0.isASCIILetter || plain.contains($0) }
    guard bytes.isEmpty || !isPlain else { return text }
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
