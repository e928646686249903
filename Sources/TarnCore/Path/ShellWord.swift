/// Words of a command that a person can paste into a shell.
package enum ShellWord {
  /// Returns the word itself where it is plain, and quoted otherwise.
  package static func quote(_ text: String) -> String { quote(bytes: Array(text.utf8)) }

  package static func quote(bytes: [UInt8]) -> String {
    let printable = Printable.escape(bytes)
    if !printable.utf8.elementsEqual(bytes) {
      return "$'" + printable.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "\\'")
        + "'"
    }
    let plain = Set("_./:@%+,=-".utf8)
    let isPlain = bytes.allSatisfy { $0.isASCIIDigit || $0.isASCIILetter || plain.contains($0) }
    guard bytes.isEmpty || !isPlain else { return printable }
    return "'" + printable.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
