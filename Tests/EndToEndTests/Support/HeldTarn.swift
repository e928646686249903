import Foundation
import Testing

/// A Tarn that strace holds still right before a system call takes effect, until it is let go: what is to come first does so on a busy
/// machine, too.
final class HeldTarn {
  let program: Program

  /// Returns when it is there.
  ///
  /// - Parameters:
  ///   - number: which of its thread's calls of this kind.
  ///   - trace: a file that is not there yet.
  init(
    at call: String, _ number: Int, _ arguments: [String], environment: [String: String] = [:], trace: String
  ) throws {
    let strace = try #require(Program.find("strace"))
    // The tracer is a process of its own (-D): where it ends alone, Tarn goes on.
    program = try Program(
      strace,
      [
        "-D", "-f", "-o", trace, "-e", "trace=\(call)", "-e",
        "inject=\(call):delay_enter=600000000:when=\(number)", Tarn.path,
      ] + arguments, environment: Tarn.environment(environment))
    try waitUntil("it is before call \(number) of \(call)") {
      let text = (try? String(contentsOfFile: trace, encoding: .utf8)) ?? ""
      return text.components(separatedBy: "\(call)(").count > number && !text.hasSuffix("\n")
    }
  }

  deinit {
    letGo()
    program.signal(SIGKILL)
  }

  func letGo() {
    guard program.isRunning, let tracer, tracer > 0 else { return }
    kill(tracer, SIGKILL)
  }

  /// proc(5), /proc/PID/status; 0 when nobody traces it.
  private var tracer: Int32? {
    let text = (try? String(contentsOfFile: "/proc/\(program.pid)/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("TracerPid:") }
    return line.flatMap { Int32($0.dropFirst(10).trimmingCharacters(in: .whitespaces)) }
  }
}
