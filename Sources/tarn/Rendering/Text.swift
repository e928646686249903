import TarnCore

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
