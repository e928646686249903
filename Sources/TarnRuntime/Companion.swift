/// A thread that takes half of the work of whoever asks, where two parts of it may go on at once. It begins with the first work.
///
/// Any thread may ask. One at a time is helped, and no one waits for the companion to be free.
package final class Companion: Sendable {
  private struct State {
    /// Handed over under this number, and begun by nobody so far.
    var work: (number: UInt64, run: @Sendable () -> Void)?
    /// The number of what the companion does now.
    var atWork: UInt64?
    var lastNumber: UInt64 = 0
    var isClosed = false
    var hasBegun = false
    /// A thread could not be made: nobody is helped.
    var isMissing = false

    var isFree: Bool { work == nil && atWork == nil && !isMissing }

    /// What was handed over under this number, if nobody has begun it: another one's is not to be taken, for that one would
    /// think it done.
    mutating func take(back number: UInt64) -> (@Sendable () -> Void)? {
      guard work?.number == number else { return nil }
      return work.take()?.run
    }
  }

  private let name: String
  private let state = LockedCondition(State())

  /// - Parameter name: of the thread.
  package init(name: String) {
    self.name = name
  }

  deinit {
    state.change { $0.isClosed = true }
  }

  /// Does both, at the same time where that can be, and returns when both are done. What the companion has not begun when `own` is
  /// done the caller does itself, so that a busy machine costs nothing.
  ///
  /// - Throws: what `own` throws, once `aside` is done.
  package func share<Failure: Error>(
    _ aside: @escaping @Sendable () -> Void, _ own: () throws(Failure) -> Void
  ) throws(Failure) {
    let number = handOver(aside)
    var failure: Failure?
    do throws(Failure) { try own() } catch { failure = error }
    if let number {
      if let mine = state.withLock({ $0.take(back: number) }) {
        mine()
      } else {
        state.wait { $0.atWork == number ? nil : () }
      }
    } else {
      aside()
    }
    if let failure { throw failure }
  }

  /// - Returns: the number of the work; nil while another one is helped.
  private func handOver(_ work: @escaping @Sendable () -> Void) -> UInt64? {
    let (number, isFirst) = state.change { state -> (UInt64?, Bool) in
      guard state.isFree else { return (nil, false) }
      state.lastNumber += 1
      state.work = (state.lastNumber, work)
      defer { state.hasBegun = true }
      return (state.lastNumber, !state.hasBegun)
    }
    if number != nil, isFirst { start() }
    return number
  }

  private func start() {
    let state = state
    let thread = try? WorkerThread.start(name: name, stackSize: 256 << 10) { Self.run(state) }
    if thread == nil { state.withLock { $0.isMissing = true } }
  }

  private static func run(_ state: LockedCondition<State>) {
    while true {
      let work = state.wait { state -> (@Sendable () -> Void)?? in
        guard let work = state.work.take() else { return state.isClosed ? .some(nil) : nil }
        state.atWork = work.number
        return work.run
      }
      guard let work else { return }
      work()
      state.change { $0.atWork = nil }
    }
  }
}
