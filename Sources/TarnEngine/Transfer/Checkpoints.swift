import TarnCore
import TarnRuntime

/// Makes the bytes of running downloads durable while they arrive, on a thread of its own, and writes into the
/// ledger how far they are: after a power cut at most 64 MiB of a transfer are fetched again (I3). The thread begins with the first
/// sync: most transfers need none.
final class Checkpoints: Sendable {
  /// One running download.
  final class Mark: Sendable {
    struct State {
      var requested: UInt64 = 0
      var durable: UInt64 = 0
      var isSyncing = false
      var isOver = false
    }
    let partial: any PartialFile
    let path: RelativePath
    let ledger: any TransferLedger
    let state: LockedCondition<State>

    /// Bytes that are durable, as far as is known.
    var durable: UInt64 { state.withLock { $0.durable } }

    /// - Parameter durable: so many of its bytes are already: what an earlier exchange left unsynced counts on.
    init(_ partial: any PartialFile, path: RelativePath, durable: UInt64, ledger: any TransferLedger) {
      (self.partial, self.path, self.ledger) = (partial, path, ledger)
      state = LockedCondition(State(requested: durable, durable: durable))
    }
  }

  /// Bytes after which a sync is asked for.
  static let step: UInt64 = 32 << 20
  /// Bytes that may lie unsynced before the writer waits; one chunk less than the 64 MiB of I3.
  static let mostLag: UInt64 = 60 << 20

  private let thread = Locked<Lanes?>(nil)

  var hasThread: Bool { thread.withLock { $0 != nil } }

  /// Called after each write, on the writer's thread; blocks while the disk is too far behind.
  func wrote(_ mark: Mark, upTo length: UInt64) {
    let isDue = mark.state.withLock { state -> Bool in
      guard !state.isSyncing, length >= state.requested + Self.step else { return false }
      state.isSyncing = true
      state.requested = length
      return true
    }
    if isDue { begin(mark) }
    guard length >= Self.mostLag else { return }
    mark.state.wait { state in
      !state.isSyncing || state.isOver || length - min(length, state.durable) < Self.mostLag ? () : nil
    }
  }

  /// No more bytes: a sync that runs is waited for, so that the file can be closed.
  func forget(_ mark: Mark) {
    mark.state.withLock { $0.isOver = true }
    mark.state.wait { $0.isSyncing ? nil : () }
  }

  func close() {
    thread.withLock { $0 }?.close()
  }

  /// Where no thread can be made the writer waits for its sync.
  private func begin(_ mark: Mark) {
    let lane = thread.withLock { thread -> Lanes? in
      if thread == nil { thread = try? Lanes(name: "tarn-sync", count: 1) }
      return thread
    }
    guard let lane, lane.submit(lane: 0, { self.sync(mark) }) else { return sync(mark) }
  }

  private func sync(_ mark: Mark) {
    // A sync or a write that fails is met again, and reported, when the file is made durable to be published.
    let durable = mark.state.withLock { $0.isOver } ? nil : try? mark.partial.sync()
    if let durable { try? mark.ledger.apply([.durable(path: mark.path, bytes: durable)]) }
    mark.state.change { state in
      state.isSyncing = false
      state.durable = max(state.durable, durable ?? 0)
    }
  }
}
