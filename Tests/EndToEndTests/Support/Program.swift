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

/// Generous, for the machine may be busy: a limit for what is to happen at all, not for how soon.
let patience: TimeInterval = 120

/// A program under test or beside it, with its streams in files: no pipe can fill up and stop it.
final class Program {
  struct TimedOut: Error, CustomStringConvertible {
    var description: String
  }

  let pid: Int32
  private let directory: TemporaryDirectory
  private let name: String
  /// As wait(2) tells it; nil while it runs.
  private var end: Int32?

  /// Starts it, in a process group of its own, or in a session where there is a terminal.
  ///
  /// - Parameter terminal: a path that its streams lead to, and which is to be its controlling terminal.
  ///
  /// Not by Foundation's `Process`: that keeps a descriptor for each, and with a thousand of them its look at /proc/self/fd
  /// reads beyond a buffer.
  init(
    _ executable: String, _ arguments: [String], environment: [String: String]? = nil,
    in directory: URL? = nil, terminal: String? = nil
  ) throws {
    let own = try TemporaryDirectory()
    self.directory = own
    name = ([executable] + arguments).joined(separator: " ")
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(
      &actions, 0, terminal ?? "/dev/null", terminal == nil ? O_RDONLY : O_RDWR, 0)
    for (number, stream) in [(Int32(1), "out"), (2, "err")] {
      if terminal != nil {
        posix_spawn_file_actions_adddup2(&actions, 0, number)
        continue
      }
      let path = own.url.appendingPathComponent(stream).path
      posix_spawn_file_actions_addopen(&actions, number, path, O_WRONLY | O_CREAT, 0o644)
    }
    _ = try SpawnAction<Int32>("posix_spawn_file_actions_addclosefrom_np").function(&actions, 3)
    if let directory {
      let change = try SpawnAction<UnsafePointer<CChar>>("posix_spawn_file_actions_addchdir_np")
      _ = directory.path.withCString { change.function(&actions, $0) }
    }
    let values = environment ?? ProcessInfo.processInfo.environment
    pid = try Self.spawn(
      executable, arguments, values.map { "\($0)=\($1)" }, &actions, isSession: terminal != nil)
  }

  /// Waits for one that was told to end. As long as a child has ended and nobody has waited for it, exit tests hear of no other.
  deinit {
    guard isRunning else { return }
    let pid = pid
    Thread.detachNewThread { waitpid(pid, nil, 0) }
  }

  private static func spawn(
    _ executable: String, _ arguments: [String], _ environment: [String],
    _ actions: inout posix_spawn_file_actions_t, isSession: Bool
  ) throws -> Int32 {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads that tests run on block signals, and a child inherits that: it would never see SIGTERM.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    // Shells begin what runs in the background with these ignored.
    var usual = sigset_t()
    sigemptyset(&usual)
    for number in [SIGINT, SIGQUIT, SIGHUP] { sigaddset(&usual, number) }
    posix_spawnattr_setsigdefault(&attributes, &usual)
    // POSIX_SPAWN_SETSID, which glibc's headers show only to those who ask for all of its extensions.
    let group: Int32 = isSession ? 0x80 : Int32(POSIX_SPAWN_SETPGROUP)
    posix_spawnattr_setflags(
      &attributes, Int16(Int32(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | group))
    let words = ([executable] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup($0) } + [nil]
    defer { for text in words + variables { free(text) } }
    var pid: pid_t = 0
    let number = posix_spawn(&pid, executable, &actions, &attributes, words, variables)
    guard number == 0 else { throw POSIXError(POSIXErrorCode(rawValue: number) ?? .EIO) }
    return pid
  }

  var isRunning: Bool {
    guard end == nil else { return false }
    var status: Int32 = 0
    if waitpid(pid, &status, WNOHANG) == pid { end = status }
    return end == nil
  }

  func signal(_ number: Int32) {
    if isRunning { kill(pid, number) }
  }

  /// SIGSTOP has reached all of it.
  var isStopped: Bool {
    let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
    return text.contains(") T ")
  }

  /// Waits for its end; kills it when the time is over.
  func wait(limit: TimeInterval = patience) throws -> Outcome {
    guard isOver(within: limit) else {
      kill(pid, SIGKILL)
      _ = isOver(within: patience)
      throw TimedOut(description: "not over after \(limit) s: \(name)\n\(outcome())")
    }
    return outcome()
  }

  private func isOver(within limit: TimeInterval) -> Bool {
    let deadline = Date().addingTimeInterval(limit)
    while isRunning {
      guard Date() < deadline else { return false }
      _ = poll(nil, 0, 2)
    }
    return true
  }

  /// Bytes that it has written so far, by the kernel's count (proc(5), /proc/PID/io): to files, pipes and sockets.
  var written: UInt64 {
    let text = (try? String(contentsOfFile: "/proc/\(pid)/io", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("wchar: ") }
    return line.flatMap { UInt64($0.dropFirst(7)) } ?? 0
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
    let end = isRunning ? nil : end
    // wait(2): the low seven bits are the signal, the next byte the status.
    let killer = end.map { $0 & 0x7F } ?? 0
    return Outcome(
      status: end.map { killer == 0 ? $0 >> 8 & 0xFF : killer } ?? -1, output: text("out"),
      errors: text("err"),
      wasKilled: killer != 0)
  }

  /// Where a program is; nil when it is not installed. Servers live in sbin, which users' PATHs lack.
  static func find(_ name: String) -> String? {
    let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first(
      where: FileManager.default.isExecutableFile(atPath:))
  }
}

/// A function of glibc that its headers show only to those who ask for all of its extensions (posix_spawn(3)).
private struct SpawnAction<Argument> {
  let address: UnsafeMutableRawPointer

  init(_ name: String) throws {
    guard let address = dlsym(nil, name) else { throw Program.TimedOut(description: "glibc has no \(name)") }
    self.address = address
  }
}

extension SpawnAction where Argument == Int32 {
  var function: @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32 {
    unsafeBitCast(
      address, to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)
  }
}

extension SpawnAction where Argument == UnsafePointer<CChar> {
  var function:
    @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, UnsafePointer<CChar>) -> Int32
  {
    unsafeBitCast(
      address,
      to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, UnsafePointer<CChar>) -> Int32)
        .self)
  }
}

/// Runs one of the programs of Tests/Tools.
enum Tool {
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Tools")

  static func run(_ name: String, _ arguments: [String], limit: TimeInterval = patience) throws -> Outcome {
    guard let python = Program.find("python3") else {
      throw Program.TimedOut(description: "python3 is not installed")
    }
    let script = directory.appendingPathComponent(name).path
    return try Program(python, ["-B", script] + arguments).wait(limit: limit)
  }

  /// The system's, for modules that come as its packages: PATH may have another one in front.
  static let systemPython = "/usr/bin/python3"

  /// Whether the system's Python has a module.
  static func hasModule(_ name: String) -> Bool {
    (try? Program(systemPython, ["-c", "import \(name)"]).wait())?.status == 0
  }
}

/// Asks every few milliseconds until it is so, or the time is over. For what has no other sign of being ready.
func waitUntil(limit: TimeInterval = patience, _ what: String, _ isSo: () throws -> Bool) throws {
  let deadline = Date().addingTimeInterval(limit)
  while Date() < deadline {
    if try isSo() { return }
    _ = poll(nil, 0, 5)
  }
  throw Program.TimedOut(description: "not so after \(limit) s: \(what)")
}
