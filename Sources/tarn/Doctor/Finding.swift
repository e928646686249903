import TarnCore

/// A finding of `tarn doctor`.
struct Finding: Encodable, Equatable {
  enum Level: String, Encodable {
    case ok, warning, problem
  }

  /// Stable identifiers for programs.
  enum Check: String, Encodable, CaseIterable {
    case settings, agent, unit, lingering, clock, proxy, watches, hooks
    case folder, permissions, fileSystem = "file-system", space, ledger, state, feed, dns, tls
  }

  var level: Level
  var check: Check
  /// The mirror; `nil` for the machine.
  var mirror: String?
  /// The text, safe to print and without secrets.
  var message: String
  /// A command that corrects it, or shows more.
  var mend: String?

  init(_ level: Level, _ check: Check, of mirror: String? = nil, _ message: String, mend: String? = nil) {
    (self.level, self.check, self.mirror) = (level, check, mirror)
    self.message = Message.safe(message)
    self.mend = mend.map(Message.safe)
  }

  /// The programs of the commands in `mend`.
  private static let programs =
    FittedLines.programs + [
      "curl", "df", "echo", "env", "findmnt", "getent", "journalctl", "loginctl", "ls", "openssl",
    ]

  /// Returns the finding as one or two lines, wrapped to the columns of a terminal.
  func lines(_ style: Style, width: Int? = nil) -> [String] {
    let paint: Style.Paint =
      switch level {
      case .ok: .good
      case .warning: .warning
      case .problem: .bad
      }
    let place = mirror.map { "\($0): " } ?? ""
    let first =
      style.paint(Columns.padded(level.rawValue, 7), paint) + "  " + Columns.padded(check.rawValue, 11) + "  "
      + place + message
    return FittedLines.of([first], width)
      + FittedLines.of(
        mend.map { [String(repeating: " ", count: 9) + $0] } ?? [], width, programs: Self.programs)
  }
}

/// The document of `doctor --json`.
struct DoctorReport: Encodable {
  var schema = "tarn-doctor/1"
  var exitStatus: Int32
  var problems: Int
  var warnings: Int
  var findings: [Finding]

  init(_ findings: [Finding]) {
    self.findings = findings
    problems = findings.count { $0.level == .problem }
    warnings = findings.count { $0.level == .warning }
    exitStatus = problems == 0 ? ExitStatus.inSync.rawValue : ExitStatus.partial.rawValue
  }

  var summary: String {
    guard problems + warnings > 0 else { return "nothing is wrong" }
    let parts = [(problems, "problem"), (warnings, "warning")].filter { $0.0 > 0 }
    return parts.map { Numbers.count($0.0, $0.1) }.joined(separator: ", ")
  }
}
