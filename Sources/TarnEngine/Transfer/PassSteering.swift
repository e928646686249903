package import TarnCore
import TarnRuntime

/// Steers single transfers of a mirror's passes from outside. It outlives the passes: paused paths stay paused from pass to pass.
/// Thread-safe.
package final class PassSteering: Sendable {
  package enum Order: Sendable, Equatable {
    /// Ends the transfer; its entry fails in this pass. The fetched bytes are kept.
    case cancel
    /// Ends the transfer likewise, and no pass begins it until it is resumed.
    case pause
    /// Tries at once what waits after a failure, and what was cancelled in this pass, or was paused and has been resumed.
    case retry
    /// Gives a transfer that waits for a connection the next one.
    case prioritize
  }

  package enum Answer: Sendable, Equatable {
    case done
    /// There was nothing to change.
    case wasSo
    /// No pass is working on it.
    case notThere
  }

  /// Receives an order on any thread, and answers once, on any thread.
  typealias Receiver = @Sendable (Order, RelativePath, @escaping @Sendable (Answer) -> Void) -> Void

  private struct State {
    var paused: Set<RelativePath>
    /// The present pass's receiver of orders, and its function to end the pauses of transfers.
    var pass: (receiver: Receiver, hurry: @Sendable () -> Void)?
    /// The number of attached plans.
    var plans = 0
    /// The gate of the pause that holds the whole pass.
    var pause: Gate?
    /// The number of requests to try at once.
    var wishes: UInt64 = 0
  }

  private let state: LockedCondition<State>
  /// The longest wait for an answer. Steps of a pass are shorter, unless its disk hangs: a pause that comes too late for its answer
  /// ends the transfer once, and no later pass remembers it.
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
      // The answer must be stored before the waiting thread wakes.
      reply.withLock { $0 = answer }
      state.change { _ in }
    }
    // The pass may end without an answer.
    let answer = state.wait(atMost: Self.patience) { state in
      reply.withLock { $0 } ?? (state.pass == nil ? .notThere : nil)
    }
    if order == .pause, answer == .done { state.change { _ = $0.paused.insert(path) } }
    return answer ?? .notThere
  }

  /// Resumes a path.
  ///
  /// - Returns: false when it was not paused.
  package func resume(_ path: RelativePath) -> Bool {
    state.change { $0.paused.remove(path) != nil }
  }

  /// Ends all pauses after failures, so that retries happen at once. Never blocks.
  package func tryNow() {
    let (hurry, pause) = state.change { state in
      state.wishes += 1
      return (state.pass?.hurry, state.pause)
    }
    hurry?()
    pause?.open()
  }

  var wishes: UInt64 { state.withLock { $0.wishes } }

  /// Makes the next request to try at once open the gate of a pause. Opens it at once when there was a new one since `wishes`,
  /// because the failed attempt began before it.
  func end(_ pause: Gate, since wishes: UInt64) {
    let isWanted = state.change { state in
      state.pause = pause
      return state.wishes != wishes
    }
    if isWanted { pause.open() }
  }

  /// Attaches a running plan until `detach`.
  ///
  /// - Parameter hurry: ends the pauses of transfers; called on any thread.
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
