import TarnCore
import TarnRuntime

/// A conductor beside another one on the same thread: its actions come bit by bit, and it is stepped in turns.
extension Conductor {
  /// Another action may begin.
  var hasRoom: Bool { !stop.isSet && hasPlace && !state.isHeldUp }

  var isIdle: Bool { jobs.isEmpty && adoptions.isEmpty }

  var pathsAtWork: Set<RelativePath> { state.pathsAtWork }

  /// Wakes it when it waits for its own messages.
  var nudge: @Sendable () -> Void {
    { [mailbox] in mailbox.change { if $0.isEmpty { $0.append(.wake) } } }
  }

  func isAtWork(on path: RelativePath) -> Bool {
    state.job(at: path).map { state.jobs[$0]?.state != .waiting(.contents) } ?? false
  }

  /// Jobs at work that do not wait for a server to recover.
  var busy: Set<UInt64> { Set(state.jobs.lazy.filter { $0.value.isBusy }.map(\.key)) }

  /// Handles what came in, and begins what waited for it.
  ///
  /// - Parameter waiting: when nothing came in so far.
  func turn(waiting: Duration) throws {
    setFlushing(true)
    try handleMail(waiting: min(waiting, longestWait))
    try goOn()
    while hasRoom, let begun = state.beginNext() { try perform(begun) }
    // Of those that failed few are kept until a twin may have come.
    if state.isIdle || state.exhaustedCount >= mostJobs { _ = try copyExhausted(isLast: true) }
    if !stop.isSet, state.isIdle, let retried = state.retryForSpace() { try perform(retried) }
    setFlushing(true)
  }

  /// Begins an action that no plan of its own names.
  func begin(_ action: Action, _ unrecorded: UnrecordedFiles) throws {
    context.unrecorded = unrecorded
    try admit(action, ordinal: 0, isAgain: true)
  }

  /// Ends a job whose bytes nobody wants any more; what gets its name already is not stopped.
  func abandon(_ path: RelativePath) throws {
    if let id = state.job(at: path) { try perform(state.abandon(id)) }
  }
}
