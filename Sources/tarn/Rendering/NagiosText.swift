import ArgumentParser
import TarnCore
import TarnEngine

/// The exit status of a check for Nagios, Icinga and the like (Monitoring Plugins, Development Guidelines).
enum NagiosStatus: Int32 {
  case ok = 0
  case warning = 1
  case critical = 2
  case unknown = 3

  var word: String {
    switch self {
    case .ok: "OK"
    case .warning: "WARNING"
    case .critical: "CRITICAL"
    case .unknown: "UNKNOWN"
    }
  }

  /// The status of one mirror. Those that are held, failing or interrupted become critical only when they are
  /// late.
  init(_ verdict: MirrorCheck.Verdict) {
    self =
      switch verdict {
      case .late, .clock: .critical
      case .held, .failing, .interrupted: .warning
      case .good: .ok
      }
  }

  /// The status of a whole check. The worst mirror decides; if all are good, mirrors that could not be
  /// examined give `unknown`.
  init(_ check: StatusCheck) {
    let mirrors = check.mirrors.map { NagiosStatus($0.verdict) }
    if let worst = mirrors.map(\.rawValue).max().flatMap(NagiosStatus.init(rawValue:)), worst != .ok {
      self = worst
    } else {
      self = check.isGood ? .ok : .unknown
    }
  }

  func end() throws {
    guard self != .ok else { return }
    throw ExitCode(rawValue)
  }
}

/// A check in the form of Nagios plugins: the state and the performance data in the first line, the rest
/// below.
enum NagiosText {
  static func lines(_ check: StatusCheck) -> [String] {
    let status = NagiosStatus(check)
    let data = check.mirrors.flatMap { values($0, maxAge: check.maxAge) }
    let performance = data.isEmpty ? "" : " | " + data.joined(separator: " ")
    let lines = check.lines.map(plain)
    let first = lines.count == 1 ? lines[0] : check.count
    return ["TARN \(status.word): \(first)\(performance)"] + (lines.count == 1 ? [] : lines)
  }

  /// Returns the line when no mirror could be examined.
  static func line(_ failure: PassFailure) -> String {
    "TARN \(NagiosStatus.unknown.word): \(plain(Message.safe(failure.message)))"
  }

  /// Returns the age of the last success, the missing files and the bytes. What is unknown is `U`, so that each check of a
  /// mirror has the same labels (Monitoring Plugins, Development Guidelines).
  private static func values(_ check: MirrorCheck, maxAge: Int64) -> [String] {
    let entries = check.document.entries
    let missing = check.document.missing
    let age = ["\(label(check, "age"))=\(check.age.map { "\($0)s" } ?? "U");;\(maxAge);0"]
    guard check.verdict == .good || entries.wanted > 0 else {
      return age + ["\(label(check, "missing"))=U;;;0", "\(label(check, "size"))=U;;;0"]
    }
    return age + [
      "\(label(check, "missing"))=\(missing);;;0;\(entries.wanted)",
      "\(label(check, "size"))=\(check.document.bytes.current)B;;;0",
    ]
  }

  /// Returns a label without `=` and bars; quotes are doubled.
  private static func label(_ check: MirrorCheck, _ what: String) -> String {
    let name = check.name.replacing("=", with: "_").replacing("|", with: "_").replacing("'", with: "''")
    return "'\(name) \(what)'"
  }

  /// Replaces bars, for one would begin the performance data.
  private static func plain(_ text: String) -> String { text.replacing("|", with: "/") }
}
