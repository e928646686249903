import Glibc
import TarnCore
import TarnRuntime

/// Whether a session's wake command is due. A value.
struct WakeState {
  private enum Phase {
    case idle
    /// - Parameter isAcknowledged: events were taken since it began.
    case running(isAcknowledged: Bool)
    /// It ended, and nothing was acknowledged: again at that moment.
    case waiting(until: Timestamp)
  }

  private var phase = Phase.idle
  private var failures = 0
  private var last: (when: Timestamp, message: String)?
  private static let mostFailures = 13

  /// When it is run again; nil for not before something else happens.
  var due: Timestamp? { if case .waiting(let until) = phase { until } else { nil } }

  var document: WakeDocument? {
    last.map { WakeDocument(failures: failures, last: $0.when, message: $0.message) }
  }

  /// There is news that nobody has acknowledged.
  ///
  /// - Returns: whether the command is to be run now.
  mutating func begin(now: Timestamp) -> Bool {
    switch phase {
    case .running: return false
    case .waiting(let until) where until > now: return false
    case .idle, .waiting:
      phase = .running(isAcknowledged: false)
      last = (now, "running")
      return true
    }
  }

  mutating func ended(_ message: String, now: Timestamp) {
    guard case .running(let isAcknowledged) = phase else { return }
    if isAcknowledged {
      phase = .idle
      return
    }
    failures += 1
    last = (last?.when ?? now, message)
    // Five seconds, doubled up to six hours.
    let seconds = Int64(5) << Int64(min(failures - 1, Self.mostFailures))
    phase = .waiting(until: now.adding(seconds: min(seconds, 6 * 3600)))
  }

  /// Somebody takes the events.
  mutating func acknowledged() {
    failures = 0
    switch phase {
    case .running: phase = .running(isAcknowledged: true)
    case .idle, .waiting: phase = .idle
    }
  }
}

/// Runs wake commands: under systemd as units of their own, else as children free of the agent's session. Any thread.
final class Waker: Sendable {
  private let socket: String?

  init(socket: String?) { self.socket = socket }

  /// - Parameters:
  ///   - lock: a file that is locked for as long as the command lives, so that it never runs twice at once, whatever becomes of the
  ///     agent.
  ///   - ended: hears how the command ended, on another thread.
  func run(
    _ command: [String], session: String, first: SessionEvent, lock: String,
    ended: @escaping @Sendable (String) -> Void
  ) {
    let variables = ["TARN_EVENT=\(first.number)", "TARN_REASON=\(first.code.rawValue)"]
    start(command, "tarn-wake-\(session)", of: session, variables, lock: lock, ended)
  }

  /// Runs the hook of a session whose downloads are all done.
  func tell(_ hook: [String], session: String, _ event: SessionEvent) {
    start(
      hook, "tarn-hook-\(session)-\(event.number)", of: session,
      ["TARN_FINISHED=\(event.finished ?? 0)", "TARN_FAILED=\(event.failed ?? 0)"]
    ) { _ in }
  }

  /// Tells the desktop (notify-send(1)).
  func notify(session: String, _ event: SessionEvent) {
    let text = "\(Units.count(event.finished ?? 0, "download")) finished, \(event.failed ?? 0) failed"
    guard let program = Self.find("notify-send") else { return }
    let command = [program, "--app-name=Tarn", "Session \(session) is done", text]
    start(command, nil, of: session, []) { _ in }
  }

  /// - Parameter unit: of systemd's, where there is a manager to run it; nil for a child of this process.
  private func start(
    _ command: [String], _ unit: String?, of session: String, _ own: [String], lock: String? = nil,
    _ ended: @escaping @Sendable (String) -> Void
  ) {
    var variables = own + ["TARN_SESSION=\(session)"]
    if let socket { variables.append("TARN_SOCKET=\(socket)") }
    var environment: [String] = []
    for name in [
      "PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "LANG",
      "USER",
    ] {
      if let value = getenv(name) { environment.append("\(name)=\(String(cString: value))") }
    }
    var words = command
    if let unit, let manager = Self.manager {
      words =
        manager + ["--collect", "--quiet", "--wait", "--unit=\(unit)"]
        + (variables + environment.filter { $0.hasPrefix("PATH=") }).map { "--setenv=\($0)" } + ["--"]
        + command
    }
    let made = try? WorkerThread.start(name: "tarn-wake") { [words, environment, variables] in
      ended(Self.runAndWait(words, environment + variables, lock: lock))
    }
    if made == nil { ended("no thread to run it") }
  }

  /// Which systemd-run, of which manager, runs commands free of the agent's limits: the user's, or the system's for root; nil without one.
  private static var manager: [String]? {
    guard let program = find("systemd-run") else { return nil }
    if let directory = getenv("XDG_RUNTIME_DIR"),
      access("\(String(cString: directory))/systemd/private", F_OK) == 0
    {
      return [program, "--user"]
    }
    return geteuid() == 0 && access("/run/systemd/private", F_OK) == 0 ? [program] : nil
  }

  /// A program in the directories of PATH.
  private static func find(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }

  private static func runAndWait(_ command: [String], _ environment: [String], lock: String?) -> String {
    let held = lock.map { open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) } ?? -1
    defer { if held >= 0 { Glibc.close(held) } }
    if lock != nil, held < 0 || flock(held, LOCK_EX | LOCK_NB) != 0 {
      return "it runs still, since an agent before this one"
    }
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
    // The command has the lock, too.
    if held >= 0 { posix_spawn_file_actions_adddup2(&actions, held, 3) }
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
