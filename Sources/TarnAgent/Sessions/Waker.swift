import Glibc
import TarnCore
import TarnRuntime

/// Whether a session's wake command is due. A value.
struct WakeState {
  private enum Phase {
    case idle
    case running
    /// It ended, and nothing was acknowledged: again at that moment.
    case waiting(until: Timestamp)
  }

  private var phase = Phase.idle
  private var failures = 0
  private var last: (when: Timestamp, message: String)?
  private static let mostFailures = 12

  /// When it is run again; nil for not before something else happens.
  var due: Timestamp? { if case .waiting(let until) = phase { until } else { nil } }

  var document: WakeDocument? {
    last.map { WakeDocument(failures: failures, last: $0.when, message: $0.message) }
  }

  /// There is news that nobody has acknowledged.
  ///
  /// - Returns: whether the command is to be run now.
  mutating func begin(_ first: Int64, now: Timestamp) -> Bool {
    switch phase {
    case .running: return false
    case .waiting(let until) where until > now: return false
    case .idle, .waiting:
      phase = .running
      last = (now, "running")
      return true
    }
  }

  mutating func ended(_ message: String, now: Timestamp) {
    guard case .running = phase else { return }
    failures += 1
    last = (last?.when ?? now, message)
    // Five seconds, doubled up to six hours.
    let seconds = Int64(5) << Int64(min(failures - 1, Self.mostFailures))
    phase = .waiting(until: now.adding(seconds: min(seconds, 6 * 3600)))
  }

  /// Somebody takes the events.
  mutating func acknowledged() {
    failures = 0
    if case .waiting = phase { phase = .idle }
  }
}

/// Runs wake commands: under systemd as units of their own, else as children free of the agent's session. Any thread.
final class Waker: Sendable {
  private let socket: String?

  init(socket: String?) { self.socket = socket }

  /// - Parameter ended: hears how the command ended, on another thread; not where it could not be run without a thread.
  func run(
    _ command: [String], session: String, first: SessionEvent, ended: @escaping @Sendable (String) -> Void
  ) {
    var environment = [
      "TARN_SESSION=\(session)", "TARN_EVENT=\(first.number)", "TARN_REASON=\(first.code.rawValue)",
    ]
    if let socket { environment.append("TARN_SOCKET=\(socket)") }
    for name in ["PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "LANG", "USER"] {
      if let value = getenv(name) { environment.append("\(name)=\(String(cString: value))") }
    }
    let made = try? WorkerThread.start(name: "tarn-wake") { [environment] in
      ended(Self.runAndWait(command, environment))
    }
    if made == nil { ended("no thread to run it") }
  }

  private static func runAndWait(_ command: [String], _ environment: [String]) -> String {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A process group of its own: a signal to the agent's ends no program.
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    let words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for text in words + variables { free(text) } }
    var process: pid_t = 0
    let number = posix_spawn(&process, command[0], &actions, &attributes, words, variables)
    guard number == 0 else {
      return "\(Printable.escape(command[0])) cannot be run: \(String(cString: strerror(number)))"
    }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { return "it was lost sight of" }
    }
    let signal = status & 0x7F
    return signal == 0 ? "it ended with status \((status >> 8) & 0xFF)" : "signal \(signal) ended it"
  }
}
