import Foundation

/// How a program ended, and what it said.
struct Outcome: CustomStringConvertible {
  var status: Int32
  var output: String
  var errors: String
  /// True when it was ended by the signal `status`, not by itself.
  var wasKilled = false

  var description: String {
    "\(wasKilled ? "signal" : "status") \(status)\n--- stdout\n\(output.prefix(3000))\n--- stderr\n\(errors.prefix(3000))"
  }
}

/// A program under test or beside it, with its streams in files: no pipe can fill up and stop it.
final class Program {
  struct TimedOut: Error, CustomStringConvertible {
    var description: String
  }

  private let process = Process()
  private let ended = DispatchSemaphore(value: 0)
  private let directory: TemporaryDirectory
  private let name: String

  /// Starts it.
  init(
    _ executable: String, _ arguments: [String], environment: [String: String]? = nil,
    in directory: URL? = nil
  ) throws {
    self.directory = try TemporaryDirectory()
    name = ([executable] + arguments).joined(separator: " ")
    for stream in ["out", "err"] { try Data().write(to: self.directory.url.appendingPathComponent(stream)) }
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    if let environment { process.environment = environment }
    if let directory { process.currentDirectoryURL = directory }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: self.directory.url.appendingPathComponent("out"))
    process.standardError = try FileHandle(forWritingTo: self.directory.url.appendingPathComponent("err"))
    let ended = ended
    process.terminationHandler = { _ in ended.signal() }
    try Self.withoutSignalMask { try process.run() }
  }

  /// The threads that tests run on block signals, and a child inherits that: it would never see SIGTERM.
  private static func withoutSignalMask(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }

  var pid: Int32 { process.processIdentifier }
  var isRunning: Bool { process.isRunning }

  func signal(_ number: Int32) {
    kill(pid, number)
  }

  /// Waits for its end; kills it when the time is over.
  func wait(limit: TimeInterval = 60) throws -> Outcome {
    guard ended.wait(timeout: .now() + limit) == .success else {
      kill(pid, SIGKILL)
      _ = ended.wait(timeout: .now() + 10)
      throw TimedOut(description: "not over after \(limit) s: \(name)\n\(outcome())")
    }
    return outcome()
  }

  /// Standard error, as far as it got.
  var errorsSoFar: String {
    (try? String(contentsOf: directory.url.appendingPathComponent("err"), encoding: .utf8)) ?? ""
  }

  /// Standard output, as far as it got.
  var outputSoFar: String {
    (try? String(contentsOf: directory.url.appendingPathComponent("out"), encoding: .utf8)) ?? ""
  }

  private func outcome() -> Outcome {
    func text(_ stream: String) -> String {
      String(
        decoding: (try? Data(contentsOf: directory.url.appendingPathComponent(stream))) ?? Data(),
        as: UTF8.self)
    }
    let running = process.isRunning
    return Outcome(
      status: running ? -1 : process.terminationStatus, output: text("out"), errors: text("err"),
      wasKilled: !running && process.terminationReason == .uncaughtSignal)
  }

  /// Where a program is; nil when it is not installed. Servers live in sbin, which users' PATHs lack.
  static func find(_ name: String) -> String? {
    let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first(
      where: FileManager.default.isExecutableFile(atPath:))
  }
}

/// Runs one of the programs of Tests/Tools.
enum Tool {
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Tools")

  static func run(_ name: String, _ arguments: [String], limit: TimeInterval = 120) throws -> Outcome {
    guard let python = Program.find("python3") else {
      throw Program.TimedOut(description: "python3 is not installed")
    }
    let script = directory.appendingPathComponent(name).path
    return try Program(python, ["-B", script] + arguments).wait(limit: limit)
  }
}

/// Asks every few milliseconds until it is so, or the time is over. For what has no other sign of being ready.
func waitUntil(limit: TimeInterval = 30, _ what: String, _ isSo: () throws -> Bool) throws {
  let deadline = Date().addingTimeInterval(limit)
  while Date() < deadline {
    if try isSo() { return }
    _ = poll(nil, 0, 5)
  }
  throw Program.TimedOut(description: "not so after \(limit) s: \(what)")
}
