import TarnCore

extension Problem {
  /// `path: message [code]`.
  var line: String { "\(Printable.escape(name)): \(Message.safe(message)) [\(code)]" }
}
