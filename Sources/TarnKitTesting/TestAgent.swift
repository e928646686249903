internal import FoundationEssentials
internal import Glibc
public import TarnKit

/// A test agent is a private agent for a test. It has its own home, state and socket in a temporary directory, and does not read the
/// user's settings. Both the agent and the directory are removed with the object. Any thread may use it.
///
/// ```swift
/// let agent = try TestAgent()
/// try await agent.start()
/// let session = try await BackgroundSession.open("test", agent: agent.agent).session
/// ```
///
/// `kill()` simulates a crash. `start()` then starts the next agent with the same state, as after a restart.
public final class TestAgent: Sendable {
  /// The agent keeps all its files below this temporary directory, an absolute path.
  public let directory: String
  /// Sessions of the test are opened with this agent.
  public let agent: Agent

  private let program: String
  private let process = ChildProcess()

  /// Makes the directory, and does not start the agent yet.
  ///
  /// - Parameter program: the path of `tarn`. `nil` for `$TARN_PROGRAM`, or, when that is not set, `tarn` in `$PATH`.
  /// - Throws: `TestKitError` when there is no such program, or the directory cannot be made.
  public init(program: String? = nil) throws(TestKitError) {
    self.program = try Self.find(program)
    // The path of a socket has at most 107 bytes (unix(7)), so the directory must not lie below the working directory.
    let temporary = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    var template = Array("\(temporary)/tarn-kit-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw TestKitError("no directory can be made in \(temporary): set TMPDIR to one that is writable")
    }
    directory = String(cString: made)
    agent = Agent(socket: "\(directory)/run/tarn.sock")
    for name in ["home", "state", "run"] { mkdir("\(directory)/\(name)", 0o755) }
    do {
      try Data().write(to: URL(filePath: "\(directory)/tarn.toml"))
    } catch {
      throw TestKitError("\(directory) cannot be written")
    }
  }

  deinit {
    process.end(SIGKILL)
    try? FileManager.default.removeItem(atPath: directory)
  }

  private static func find(_ program: String?) throws(TestKitError) -> String {
    if let given = program ?? getenv("TARN_PROGRAM").map({ String(cString: $0) }) {
      guard access(given, X_OK) == 0 else { throw TestKitError("\(given) is no program") }
      return given
    }
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    let places = path.split(separator: ":").map { directory -> String in "\(directory)/tarn" }
    let found = places.first { access($0, X_OK) == 0 }
    guard let found else { throw TestKitError("no tarn in $PATH; set TARN_PROGRAM to where it is") }
    return found
  }

  /// Starts the agent and returns when it answers. It does nothing while the agent runs.
  ///
  /// - Throws: `TestKitError` with the agent's output, when it ends or does not answer within a minute.
  public func start() async throws(TestKitError) {
    guard process.number == nil else { return }
    try process.start(
      [program, "agent", "--config", "\(directory)/tarn.toml"],
      environment: [
        "HOME": "\(directory)/home", "STATE_DIRECTORY": "\(directory)/state",
        "RUNTIME_DIRECTORY": "\(directory)/run", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
      ], output: "\(directory)/agent.log")
    for _ in 0..<3000 {
      if (try? await BackgroundSession.all(agent: agent)) != nil { return }
      guard process.number != nil else { break }
      try? await Task.sleep(for: .milliseconds(20))
    }
    throw TestKitError("the agent does not answer:\n\(log)")
  }

  /// Ends the agent at once, as a crash does, and blocks until it has ended. Durable state stays for the next `start()`.
  public func kill() { process.end(SIGKILL) }

  /// Ends the agent with SIGTERM, as a service manager does, and blocks until it has ended.
  public func stop() { process.end(SIGTERM) }

  /// The agent has written this output since its first start. It is empty before.
  public var log: String {
    (try? String(contentsOf: URL(filePath: "\(directory)/agent.log"), encoding: .utf8)) ?? ""
  }

  /// The running agent has this process identifier. It is `nil` when none runs.
  public var processIdentifier: Int32? { process.number }
}

/// This error says why the test kit failed.
public struct TestKitError: Error, CustomStringConvertible {
  /// This text says what failed, and how to correct it where that is known.
  public let description: String

  init(_ description: String) { self.description = description }
}
