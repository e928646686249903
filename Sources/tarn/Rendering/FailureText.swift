import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The reason why a command did not do its work, for people and for programs.
enum FailureText {
  /// - Parameters:
  ///   - mirror: the mirror, when there are several.
  ///   - width: the columns of the terminal; `nil` for none.
  static func lines(
    _ failure: PassFailure, of mirror: String? = nil, status: ExitStatus, json: Bool, style: Style,
    width: Int? = nil
  ) -> [String] {
    var failure = failure
    failure.message = Redaction.message(failure.message)
    failure.hint = failure.hint.map(Redaction.message)
    if json { return [JSONText.line(FailureLine(failure, of: mirror, status: status))] }
    // The name of a mirror made by hand is its folder, which most messages contain.
    let name = mirror.map { Printable.escape($0) }
    let place = name.flatMap { $0.contains("/") && failure.message.contains($0) ? nil : "\($0): " } ?? ""
    if failure.kind == .stopped {
      return [style.paint("stopped:", .warning) + " \(place)before anything was fetched; nothing was changed"]
    }
    var lines = [style.paint("tarn:", .bad) + " " + place + Message.safe(failure.message)]
    if failure.kind == .defect {
      lines.append("  this is a defect in Tarn [\(failure.code)]; the files of the mirror are safe")
    }
    if let hint = failure.hint { lines.append("  hint: " + Message.safe(hint)) }
    return FittedLines.of(lines, width)
  }
}

private struct FailureLine: Encodable {
  var schema = "tarn-error/1"
  var exitStatus: Int32
  var mirror: String?
  var code: String
  var message: String
  var hint: String?

  init(_ failure: PassFailure, of mirror: String?, status: ExitStatus) {
    self.mirror = mirror.map { Printable.escape($0) }
    exitStatus = status.rawValue
    code = failure.code
    message = Message.safe(failure.message)
    hint = failure.hint.map(Message.safe)
  }
}
