import TarnCore

/// Words of a command that a person can paste into a shell.
enum ShellWord {
  /// The word itself where it is plain, quoted else.
  static func quote(_ text: String) -> String { quote(bytes: Array(text.utf8)) }

  static func quote(bytes: [UInt8]) -> String {
    let printable = Printable.escape(bytes)
    if !printable.utf8.elementsEqual(bytes) {
      return "$'" + printable.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "\\'")
        + "'"
    }
    let plain = Set("_./:@%+,=-".utf8)
    let isPlain = bytes.allSatisfy { byte in
      plain.contains(byte) || (48...57).contains(byte) || (65...90).contains(byte)
        || (97...122).contains(byte)
    }
    guard bytes.isEmpty || !isPlain else { return printable }
    return "'" + printable.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}

/// Text of other parts of Tarn, which have escaped the names in it already.
enum Message {
  /// Safe on a terminal in any case; the backslashes of what is escaped stay as they are.
  static func safe(_ text: String) -> String {
    text.split(separator: "\\", omittingEmptySubsequences: false).map { Printable.escape(String($0)) }
      .joined(separator: "\\")
  }
}

extension Problem {
  /// `path: message [code]`.
  var line: String { "\(Printable.escape(name)): \(Message.safe(message)) [\(code)]" }
}
