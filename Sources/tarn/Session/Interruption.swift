import Glibc
import TarnCore
import TarnEngine
import TarnRuntime

/// Handles signals. The first SIGINT, SIGTERM or SIGHUP (the terminal is gone) asks the work to stop; the
/// second ends the process at once. SIGUSR1 prints the progress.
final class Interruption: Sendable {
  static let shared = Interruption()

  private struct State {
    var watch: SignalWatch?
    var received: Int32?
    var stop: StopFlag?
    var announce: (@Sendable () -> Void)?
    var report: (@Sendable () -> Void)?
    var restore: (@Sendable () -> Void)?
    /// Reads the settings again at SIGHUP, for a service.
    var reload: (@Sendable () -> Void)?
    /// The time when the work was asked to stop.
    var asked: Instant?
  }
  private let state = Locked(State())

  /// The signal that asked to stop; `nil` when none did.
  var received: Int32? { state.withLock { $0.received } }

  /// Starts the handling. To be called before any other thread is made. A signal that the parent process
  /// ignores, as nohup and `&` in scripts do, stays ignored.
  func start() {
    let signals = [SIGUSR1] + [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }
    // Without the thread the signals keep their default action, which the folder survives as well.
    let watch = try? SignalWatch(signals) { [unowned self] in receive($0) }
    state.withLock { $0.watch = watch }
  }

  /// - Parameters:
  ///   - stop: set by the first signal.
  ///   - announce: called at the first signal.
  ///   - report: called at SIGUSR1.
  func arm(
    _ stop: StopFlag, announce: @escaping @Sendable () -> Void, report: @escaping @Sendable () -> Void
  ) {
    let wasReceived = state.withLock { state in
      state.stop = stop
      state.announce = announce
      state.report = report
      return state.received != nil
    }
    if wasReceived { stop.set() }
  }

  /// Handles the signals of `tarn agent`. The first SIGINT or SIGTERM calls `end`. The second calls `abandon`
  /// and ends the process at once, with 0 as the first does. SIGHUP calls `reload`.
  func attend(
    end: @escaping @Sendable () -> Void, abandon: @escaping @Sendable () -> Void,
    reload: @escaping @Sendable () -> Void
  ) {
    let stop = StopFlag()
    let wasReceived = state.withLock { state in
      state.stop = stop
      state.announce = end
      state.restore = abandon
      state.reload = reload
      return state.received != nil
    }
    if wasReceived { end() }
  }

  /// Lets a signal end the process from now on.
  func disarm() {
    state.withLock { state in
      state.stop = nil
      state.announce = nil
      state.report = nil
    }
  }

  /// Sets what is done to the terminal before a signal ends the process.
  func beforeEnding(_ restore: (@Sendable () -> Void)?) {
    state.withLock { $0.restore = restore }
  }

  private let clock = SystemClock()
  /// The time in which another signal is a copy: timeout(1) and service managers signal the process and its
  /// group at once.
  private static let copies = Duration.milliseconds(500)

  private func receive(_ signal: Int32) {
    if signal == SIGUSR1 {
      state.withLock { $0.report }?()
      return
    }
    if signal == SIGHUP, let reload = state.withLock({ $0.reload }) { return reload() }
    let first = state.withLock { state -> (StopFlag, (@Sendable () -> Void)?)? in
      guard state.received == nil, let stop = state.stop else { return nil }
      state.received = signal
      return (stop, state.announce)
    }
    guard let (stop, announce) = first else {
      let (restore, isService, isCopy) = state.withLock { state in
        (
          state.restore, state.reload != nil,
          state.asked.map { clock.monotonic() < $0 + Self.copies } ?? false
        )
      }
      if isCopy { return }
      restore?()
      _exit(isService ? ExitStatus.inSync.rawValue : ExitStatus.stopped(by: signal).rawValue)
    }
    announce?()
    stop.set()
    state.withLock { $0.asked = clock.monotonic() }
  }
}

private func isIgnored(_ signal: Int32) -> Bool {
  var action = sigaction()
  guard sigaction(signal, nil, &action) == 0 else { return false }
  return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    == unsafeBitCast(SIG_IGN, to: Int.self)
}
