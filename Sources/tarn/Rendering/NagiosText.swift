import ArgumentParser
import TarnCore
import TarnEngine

/// What a check of Nagios, Icinga and their like ends with (Monitoring Plugins, Development Guidelines).
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

  /// Mirrors that are held, failing or interrupted have until `--max-age` before they are late.
  init(_ verdict: MirrorCheck.Verdict) {
    self =
      switch verdict {
      case .late, .clock: .critical
      case .held, .failing, .interrupted: .warning
      case .good: .ok
      }
  }

  /// Of a whole check: what is critical goes first, what could not be looked at before what is good.
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

/// A check as plugins of Nagios print it: the state and the performance data in the first line, the rest below it.
enum NagiosText {
  static func lines(_ check: StatusCheck) -> [String] {
    let status = NagiosStatus(check)
    let data = check.mirrors.flatMap { values($0, maxAge: check.maxAge) }
    let performance = data.isEmpty ? "" : " | " + data.joined(separator: " ")
    let lines = check.lines.map(plain)
    let first = lines.count == 1 ? lines[0] : check.count
    return ["TARN \(status.word): \(first)\(performance)"] + (lines.count == 1 ? [] : lines)
  }

  /// Why no mirror could be looked at.
  static func line(_ failure: PassFailure) -> String {
    "TARN \(NagiosStatus.unknown.word): \(plain(Message.safe(failure.message)))"
  }

  /// The age of the last success, and what is missing.
  private static func values(_ check: MirrorCheck, maxAge: Int64) -> [String] {
    let entries = check.document.entries
    let missing = check.document.missing
    let age = check.age.map { ["\(label(check, "age"))=\($0)s;;\(maxAge);0"] } ?? []
    // Nothing is known of what is missing there.
    guard check.verdict == .good || entries.wanted > 0 else { return age }
    return age + [
      "\(label(check, "missing"))=\(missing);;;0;\(entries.wanted)",
      "\(label(check, "size"))=\(check.document.bytes.current)B;;;0",
    ]
  }

  /// Neither `=` nor a bar may stand in it; a quote is doubled.
  private static func label(_ check: MirrorCheck, _ what: String) -> String {
    let name = check.name.replacing("=", with: "_").replacing("|", with: "_").replacing("'", with: "''")
    return "'\(name) \(what)'"
  }

  /// A bar would begin the performance data.
  private static func plain(_ text: String) -> String { text.replacing("|", with: "/") }
}
