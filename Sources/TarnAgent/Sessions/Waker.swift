import Glibc
import TarnCore
import TarnRuntime

/// Decides whether a session's wake command is due.
struct WakeState {
  private enum Phase {
    case idle
    /// - Parameter isAcknowledged: true when events were acknowledged since it began.
    case running(isAcknowledged: Bool)
    /// It ended and nothing was acknowledged: it runs again at this moment, whatever the wall clock says.
    case waiting(until: Instant)
  }

  private var phase = Phase.idle
  private var failures = 0
  private var last: (when: Timestamp, message: String)?
  private static let backOff = BackOff(base: 5, most: 6 * 3600)

  /// The moment of the next run, by the clock of the boot; `nil` when only an event starts one.
  var due: Instant? { if case .waiting(let until) = phase { until } else { nil } }

  var document: WakeDocument? {
    last.map { WakeDocument(failures: failures, last: $0.when, message: $0.message) }
  }

  /// Notes that there are events that nobody has acknowledged.
  ///
  /// - Returns: whether the command is to run now.
  mutating func begin(by clock: any Clock) -> Bool {
    switch phase {
    case .running: return false
    case .waiting(let until) where until > clock.boottime(): return false
    case .idle, .waiting:
      phase = .running(isAcknowledged: false)
      last = (clock.time, "running")
      return true
    }
  }

  mutating func ended(_ message: String, by clock: any Clock) {
    guard case .running(let isAcknowledged) = phase else { return }
    last = (last?.when ?? clock.time, message)
    if isAcknowledged {
      phase = .idle
      return
    }
    failures += 1
    phase = .waiting(until: clock.boottime() + .seconds(Int64(Self.backOff.ceiling(failures))))
  }

  /// Notes that somebody acknowledges events.
  mutating func acknowledged() {
    failures = 0
    switch phase {
    case .running: phase = .running(isAcknowledged: true)
    case .idle, .waiting: phase = .idle
    }
  }
}

/// Runs wake commands, hooks and notifications: under systemd as separate units, otherwise as child processes. Callable on any thread.
final class Waker: Sendable {
  private let socket: String?

  init(socket: String?) { self.socket = socket }

  /// - Parameters:
  ///   - lock: a file that is locked and names the command while it lives. So it never runs twice at once,
  ///     whatever happens to the agent.
  ///   - ended: called with the end of the command on a thread of its own, or before the return when there is
  ///     none.
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

  /// Notifies the desktop (notify-send(1)).
  func notify(session: String, _ event: SessionEvent) {
    let text = "\(Units.count(event.finished ?? 0, "download")) finished, \(event.failed ?? 0) failed"
    guard let program = OutsideProgram.find("notify-send") else { return }
    let command = [program, "--app-name=Tarn", "Session \(session) is done", text]
    start(command, nil, of: session, []) { _ in }
  }

  /// - Parameter unit: the name of a systemd unit, when a manager can run it; `nil` for a child of this
  ///   process.
  private func start(
    _ command: [String], _ unit: String?, of session: String, _ own: [String], lock: String? = nil,
    _ ended: @escaping @Sendable (String) -> Void
  ) {
    var variables = own + ["TARN_SESSION=\(session)"]
    if let socket { variables.append("TARN_SOCKET=\(socket)") }
    let environment = OutsideProgram.environment
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

  /// The systemd-run command of the manager that runs commands free of the agent's limits. This is the user's
  /// manager, or for root the system's; `nil` without one.
  private static var manager: [String]? {
    guard let program = OutsideProgram.find("systemd-run") else { return nil }
    if let directory = getenv("XDG_RUNTIME_DIR"),
      access("\(String(cString: directory))/systemd/private", F_OK) == 0
    {
      return [program, "--user"]
    }
    return geteuid() == 0 && access("/run/systemd/private", F_OK) == 0 ? [program] : nil
  }

  private static func runAndWait(_ command: [String], _ environment: [String], lock: String?) -> String {
    var held: Int32 = -1
    defer { if held >= 0 { Glibc.close(held) } }
    if let lock {
      held = openLock(lock)
      if held < 0 { return "cannot open \(Printable.escape(lock)): \(ErrorText.of(errno))" }
      if flock(held, LOCK_EX | LOCK_NB) != 0 { return "it runs still, since an agent before this one" }
      ftruncate(held, 0)
    }
    do throws(OutsideProgram.Failure) {
      // The command holds the lock as well; under systemd-run, the client that waits for it does.
      let process = try OutsideProgram.start(command, environment, held: held >= 0 ? held : nil)
      if held >= 0 { _ = TextFile.writeAll(Array(ProcessMark(of: process).text.utf8), to: held) }
      return Subprocess.wait(for: process).text
    } catch {
      return error.message
    }
  }

  /// Opens the lock file. A new one takes the place of a file that only programs hold which the command started and left behind.
  private static func openLock(_ path: String) -> Int32 {
    if let mark = TextFile.read(path, limit: 100).flatMap({ ProcessMark($0) }), !mark.exists { unlink(path) }
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
  }
}
