/// A thread that does part of its clients' work while they continue. It starts with the first work.
///
/// Any thread may hand work over. One client at a time is helped: its works are done one after the other in their order, and all
/// are done when the next client is helped.
package final class HashThread: Sendable {
  private enum Thread {
    case none
    /// The thread is being made; nobody is helped yet.
    case beginning
    case running
    /// The thread could not be made; nobody is helped.
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

  /// The most works that may wait. A client that is further ahead waits, too.
  private static let most = 4

  private let name: String
  private let state = LockedCondition(State())

  /// - Parameter name: the name of the thread.
  package init(name: String) {
    self.name = name
  }

  deinit {
    state.change { $0.isClosed = true }
  }

  /// Hands work over. Blocks while the client is too far ahead.
  ///
  /// - Returns: false when another client is being helped. Then nothing was taken, and everything that this client handed over
  ///   before is done.
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

  /// Waits until everything that this client handed over is done.
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
      // A client that is far ahead may continue as soon as this is taken.
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
