package import TarnCore
import TarnRuntime

/// Steers single transfers of a mirror's passes from outside. It outlives them: what is paused stays so from pass to pass.
/// Any thread.
package final class PassSteering: Sendable {
  package enum Order: Sendable, Equatable {
    /// The transfer ends, and its entry fails in this pass; what was fetched is kept.
    case cancel
    /// The same, and no pass begins it until it is resumed.
    case pause
    /// What waits after a failure is tried now, and so is what was cancelled in this pass, or was paused and is no more.
    case retry
    /// What waits for a connection gets the next one.
    case prioritize
  }

  package enum Answer: Sendable, Equatable {
    case done
    /// Nothing had to be changed.
    case wasSo
    /// No pass is at work on it.
    case notThere
  }

  /// Gets an order, on any thread, and answers once, on any thread.
  typealias Receiver = @Sendable (Order, RelativePath, @escaping @Sendable (Answer) -> Void) -> Void

  private struct State {
    var paused: Set<RelativePath>
    /// Of what is at work: takes orders, and ends the pauses of its transfers.
    var pass: (receiver: Receiver, hurry: @Sendable () -> Void)?
    /// Plans that are.
    var plans = 0
    /// Of the pause that holds the whole pass.
    var pause: Gate?
    /// Counts those who wanted it tried now.
    var wishes: UInt64 = 0
  }

  private let state: LockedCondition<State>
  /// For an answer: longer than any step of a pass that is at work on transfers.
  private static let patience = Duration.seconds(10)

  package init(paused: Set<RelativePath> = []) {
    state = LockedCondition(State(paused: paused))
  }

  package var paused: Set<RelativePath> { state.withLock { $0.paused } }

  func isPaused(_ path: RelativePath) -> Bool { state.withLock { $0.paused.contains(path) } }

  /// Blocks until the pass has taken the order, for ten seconds at most.
  package func give(_ order: Order, _ path: RelativePath) -> Answer {
    if order == .pause, isPaused(path) { return .wasSo }
    guard let receiver = state.withLock({ $0.pass?.receiver }) else { return .notThere }
    let reply = Locked<Answer?>(nil)
    receiver(order, path) { [self] answer in
      // Noted before whoever waits is woken.
      reply.withLock { $0 = answer }
      state.change { _ in }
    }
    // The pass may be over without an answer.
    let answer = state.wait(atMost: Self.patience) { state in
      reply.withLock { $0 } ?? (state.pass == nil ? .notThere : nil)
    }
    if order == .pause, answer == .done { state.change { _ = $0.paused.insert(path) } }
    return answer ?? .notThere
  }

  /// - Returns: false when it was not paused.
  package func resume(_ path: RelativePath) -> Bool {
    state.change { $0.paused.remove(path) != nil }
  }

  /// Somebody wants it tried now: pauses after failures end. Never blocks.
  package func tryNow() {
    let (hurry, pause) = state.change { state in
      state.wishes += 1
      return (state.pass?.hurry, state.pause)
    }
    hurry?()
    pause?.open()
  }

  var wishes: UInt64 { state.withLock { $0.wishes } }

  /// The next wish opens the gate of a pause; at once if there was one since so many wishes, for the attempt that failed was
  /// made before it.
  func end(_ pause: Gate, since wishes: UInt64) {
    let isWanted = state.change { state in
      state.pause = pause
      return state.wishes != wishes
    }
    if isWanted { pause.open() }
  }

  /// A plan is at work, from now until `detach`.
  ///
  /// - Parameter hurry: ends the pauses of transfers, on any thread.
  func attach(hurry: @escaping @Sendable () -> Void, _ receiver: @escaping Receiver) {
    state.change { ($0.pass, $0.plans) = ((receiver, hurry), $0.plans + 1) }
  }

  func detach() {
    state.change { state in
      state.plans -= 1
      if state.plans == 0 { state.pass = nil }
    }
  }
}
