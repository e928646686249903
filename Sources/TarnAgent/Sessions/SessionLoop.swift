import TarnCore
import TarnEngine
import TarnLedger
import TarnRuntime

/// The thread of all sessions of a process: begins tasks whose turn it is, and records their ends.
final class SessionLoop: Sendable {
  enum Message: Sendable {
    /// A session has changed.
    case wake(DownloadSession)
    /// A session is to be advanced at this moment, by the clock of the boot.
    case wakeAt(DownloadSession, Instant)
    /// The earlier bytes of a task lie at its destination now.
    case brought(DownloadSession, DownloadSession.Beginning)
    case responded(DownloadSession, Int64)
    case ended(DownloadSession, Int64, SingleDownload.Outcome)
    /// The session is removed from the loop.
    case forget(DownloadSession)
  }

  private static let retryTime: Int64 = 10

  private struct State {
    var messages: [Message] = []
    var isEnding = false
  }

  private let state = LockedCondition(State())
  private let clock: any Clock
  private let thread = Locked<WorkerThread?>(nil)

  /// Called when a session has changed, with the failure when its ledger cannot be written. Runs on the
  /// loop's thread.
  typealias Changed = @Sendable (DownloadSession, LedgerFailure?) -> Void

  init(clock: any Clock) { self.clock = clock }

  func start(changed: @escaping Changed) throws(ThreadFailure) {
    let made = try WorkerThread.start(name: "tarn-sessions") { [self] in run(changed) }
    thread.withLock { $0 = made }
  }

  /// Posts a message. Callable on any thread.
  func post(_ message: Message) { state.change { $0.messages.append(message) } }

  /// Ends the loop and waits for its end. Must not run on the loop's thread.
  func end() {
    state.change { $0.isEnding = true }
    thread.withLock { $0.take() }?.join()
  }

  private static let sweepEvery = Duration.seconds(DownloadSession.upkeepEvery)
  /// The longest wait between two looks at the wall clock.
  private static let clockEvery = Duration.seconds(30)
  /// A larger difference says that somebody set the clock, or that the machine slept.
  private static let leastJump = Duration.seconds(2)

  /// The difference between the wall clock and the monotonic one.
  private var offset: Duration {
    (clock.time - Timestamp(nanoseconds: 0)) - (clock.monotonic() - Instant())
  }

  private func run(_ changed: Changed) {
    /// The sessions that have something to do, each with the latest time for it.
    var due: [ObjectIdentifier: (session: DownloadSession, at: Timestamp)] = [:]
    /// The sessions that are to be advanced at a requested moment.
    var later: [ObjectIdentifier: (session: DownloadSession, at: Instant)] = [:]
    /// When all sessions are advanced, whatever the wall clock says.
    var sweep = clock.monotonic() + Self.sweepEvery
    var lastOffset = offset
    while true {
      let (now, moment) = (clock.time, clock.boottime())
      let rest = min(sweep.remaining(at: clock.monotonic()), Self.clockEvery)
      let waits = due.values.map { $0.at - now } + later.values.map { $0.at.remaining(at: moment) }
      let wait = min(rest, waits.min() ?? rest)
      let messages = state.wait(atMost: max(.milliseconds(1), wait)) { state -> [Message]? in
        guard !state.messages.isEmpty || state.isEnding else { return nil }
        defer { state.messages = [] }
        return state.messages
      }
      var touched: [ObjectIdentifier: DownloadSession] = [:]
      for message in messages ?? [] {
        switch message {
        case .wake(let session): touched[ObjectIdentifier(session)] = session
        case .wakeAt(let session, let at): later[ObjectIdentifier(session)] = (session, at)
        case .forget(let session):
          touched[ObjectIdentifier(session)] = nil
          (due[ObjectIdentifier(session)], later[ObjectIdentifier(session)]) = (nil, nil)
        case .brought(let session, let beginning):
          handle(session, changed) { () throws(LedgerFailure) in try session.start(beginning) }
        case .responded(let session, let task):
          handle(session, changed) { () throws(LedgerFailure) in try session.noteResponse(task) }
          changed(session, nil)
        case .ended(let session, let task, let outcome):
          handle(session, changed) { () throws(LedgerFailure) in try session.ended(task, outcome) }
          touched[ObjectIdentifier(session)] = session
        }
      }
      if state.withLock({ $0.isEnding && $0.messages.isEmpty }) { return }
      let jump = offset - lastOffset
      let wasSet = max(jump, Duration.zero - jump) > Self.leastJump
      lastOffset = offset
      let isSweep = wasSet || clock.monotonic() >= sweep
      if isSweep { sweep = clock.monotonic() + Self.sweepEvery }
      for (key, (session, at)) in due where at <= clock.time || isSweep { touched[key] = session }
      for (key, (session, at)) in later where at <= clock.boottime() {
        touched[key] = session
        later[key] = nil
      }
      for (key, session) in touched {
        // A ledger that cannot be written now may be writable later.
        due[key] = (session, clock.time.adding(seconds: Self.retryTime))
        handle(session, changed) { () throws(LedgerFailure) in
          due[key] = try session.advance().map { (session, $0) }
        }
        changed(session, nil)
      }
    }
  }

  private func handle(
    _ session: DownloadSession, _ changed: Changed, _ body: () throws(LedgerFailure) -> Void
  ) {
    do throws(LedgerFailure) {
      try body()
    } catch {
      changed(session, error)
    }
  }
}
