/// Identifies a process by its ID and its start time, since the kernel gives an ID again.
package struct ProcessMark: Equatable, Sendable {
  package let process: Int32
  /// The start time in the kernel's ticks since the boot; 0 when it was not known.
  package let started: UInt64

  /// Makes the mark of a process that exists now.
  package init(of process: Int32) {
    (self.process, started) = (process, Self.startTime(of: process) ?? 0)
  }

  /// - Parameter text: `PROCESS STARTED`, as `text` gives it. `nil` for anything else.
  package init?(_ text: String) {
    let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" })
    guard words.count == 2, let process = Int32(words[0]), let started = UInt64(words[1]) else { return nil }
    (self.process, self.started) = (process, started)
  }

  package var text: String { "\(process) \(started)\n" }

  /// False when the process has ended, and for one of another container.
  package var exists: Bool { Self.startTime(of: process) == started }

  /// Returns field 22 of /proc/PID/stat (proc(5)). The command in field 2 may contain blanks and brackets.
  private static func startTime(of process: Int32) -> UInt64? {
    guard let text = TextFile.read("/proc/\(process)/stat", limit: 8192),
      let bracket = text.lastIndex(of: ")")
    else { return nil }
    let fields = text[text.index(after: bracket)...].split(separator: " ")
    return fields.count > 19 ? UInt64(fields[19]) : nil
  }
}
