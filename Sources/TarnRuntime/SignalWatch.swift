import Glibc

/// Receives the signals of the process on a thread of its own, where a handler may do anything.
///
/// Must be made before any other thread: earlier threads would still receive the signals.
package final class SignalWatch: Sendable {
  /// SIGINT, SIGTERM, SIGHUP, SIGUSR1.
  package static let usual: [Int32] = [SIGINT, SIGTERM, SIGHUP, SIGUSR1]

  private let thread: WorkerThread
  private let stopping: Locked<Bool>
  private let wake: Int32

  /// Blocks `signals` in the calling thread, and so in every thread made later. Ignores SIGPIPE.
  ///
  /// - Parameters:
  ///   - signals: the signals, at least one.
  ///   - handler: called on the watch's thread, one signal at a time.
  package init(
    _ signals: [Int32] = SignalWatch.usual, handler: @escaping @Sendable (Int32) -> Void
  ) throws(ThreadFailure) {
    guard let wake = signals.first else { throw ThreadFailure(number: EINVAL) }
    signal(SIGPIPE, SIG_IGN)
    let watched = SignalSet(signals)
    var set = watched.set
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let stopping = Locked(false)
    self.stopping = stopping
    self.wake = wake
    thread = try WorkerThread.start(name: "tarn-signals", stackSize: 256 << 10) {
      Self.run(watched, stopping: stopping, handler: handler)
    }
  }

  /// Passes a watched signal to the watch, as if it had been sent to the process.
  package func deliver(_ number: Int32) {
    thread.send(signal: number)
  }

  /// Ends the thread; the signals stay blocked. Must not be called from the handler.
  package func stop() {
    stopping.withLock { $0 = true }
    thread.send(signal: wake)
    thread.join()
  }

  private static func run(_ watched: SignalSet, stopping: Locked<Bool>, handler: (Int32) -> Void) {
    var set = watched.set
    while true {
      var number: Int32 = 0
      guard sigwait(&set, &number) == 0 else { continue }
      if stopping.withLock({ $0 }) { return }
      handler(number)
    }
  }
}

/// A set of signals.
struct SignalSet: Sendable {
  let set: sigset_t

  init(_ signals: [Int32]) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    self.set = set
  }

  private init(set: sigset_t) {
    self.set = set
  }

  /// All signals except those that report a fault of the running thread itself.
  static var asynchronous: SignalSet {
    var set = sigset_t()
    sigfillset(&set)
    for signal in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS] { sigdelset(&set, signal) }
    return SignalSet(set: set)
  }
}
