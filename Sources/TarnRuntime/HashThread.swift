/// A thread that does a part of the work of whoever asks, behind them: they go on meanwhile. It begins with the first work.
///
/// Any thread may ask. One client at a time is helped: its works are done one after the other, in the order in which they came, and
/// none is left when the next client is helped.
package final class HashThread: Sendable {
  private enum Thread {
    case none
    /// Somebody makes it: nobody is helped so far.
    case beginning
    case running
    /// It could not be made: nobody is helped.
    case missing
  }

  private struct State {
    var thread = Thread.none
    var client: ObjectIdentifier?
    var waiting: [@Sendable () -> Void] = []
    var isAtWork = false
    var isClosed = false

    var isIdle: Bool { waiting.isEmpty && !isAtWork }
  }

  /// Works that may wait: whoever is so far ahead waits, too.
  private static let most = 4

  private let name: String
  private let state = LockedCondition(State())

  /// - Parameter name: of the thread.
  package init(name: String) {
    self.name = name
  }

  deinit {
    state.change { $0.isClosed = true }
  }

  /// Hands work over; blocks while the client is too far ahead.
  ///
  /// - Returns: false where another one is helped. Nothing was taken then, and all that this client handed over before is done.
  package func handOver(of client: AnyObject, _ work: @escaping @Sendable () -> Void) -> Bool {
    let client = ObjectIdentifier(client)
    begin()
    return state.changeOnce { state -> Bool? in
      guard state.thread == .running, state.client == client || state.isIdle else { return false }
      guard state.waiting.count < Self.most else { return nil }
      state.client = client
      state.waiting.append(work)
      return true
    }
  }

  /// Returns when all that this client handed over is done.
  package func settle(_ client: AnyObject) {
    let client = ObjectIdentifier(client)
    state.wait { $0.client != client || $0.isIdle ? () : nil }
  }

  private func begin() {
    let isFirst = state.withLock { state in
      guard state.thread == .none else { return false }
      state.thread = .beginning
      return true
    }
    guard isFirst else { return }
    let state = state
    let thread = try? WorkerThread.start(name: name, stackSize: 256 << 10) { Self.run(state) }
    state.withLock { $0.thread = thread == nil ? .missing : .running }
  }

  private static func run(_ state: LockedCondition<State>) {
    while true {
      // Who is far ahead may go on as soon as this is taken.
      let work = state.changeOnce { state -> (@Sendable () -> Void)?? in
        guard !state.waiting.isEmpty else { return state.isClosed ? .some(nil) : nil }
        state.isAtWork = true
        return state.waiting.removeFirst()
      }
      guard let work else { return }
      work()
      state.change { $0.isAtWork = false }
    }
  }
}
