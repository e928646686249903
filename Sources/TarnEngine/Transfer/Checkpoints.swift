import TarnCore
import TarnRuntime

/// Makes the bytes of running downloads durable while they arrive, on a separate thread, and records their number in the ledger.
/// After a power cut at most 64 MiB of a transfer are fetched again (I3). The thread starts with the first sync, because most
/// transfers need none.
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

    /// The bytes that are known to be durable.
    var durable: UInt64 { state.withLock { $0.durable } }

    /// - Parameter durable: the bytes that are durable already. Bytes that an earlier exchange left unsynced count as written.
    init(_ partial: any PartialFile, path: RelativePath, durable: UInt64, ledger: any TransferLedger) {
      (self.partial, self.path, self.ledger) = (partial, path, ledger)
      state = LockedCondition(State(requested: durable, durable: durable))
    }
  }

  /// The bytes after which a sync is requested.
  static let step: UInt64 = 32 << 20
  /// The most unsynced bytes before the writer waits: one chunk less than the 64 MiB of I3.
  static let mostLag: UInt64 = 60 << 20

  private let thread = Locked<Lanes?>(nil)

  var hasThread: Bool { thread.withLock { $0 != nil } }

  /// Must be called after each write, on the writer's thread. Blocks while the disk is too far behind.
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

  /// Ends the syncs of a download. Waits for a running one, so that the file can be closed.
  func forget(_ mark: Mark) {
    mark.state.withLock { $0.isOver = true }
    mark.state.wait { $0.isSyncing ? nil : () }
  }

  func close() {
    thread.withLock { $0 }?.close()
  }

  /// Starts a sync. When no thread can be made, the writer waits for it.
  private func begin(_ mark: Mark) {
    let lane = thread.withLock { thread -> Lanes? in
      if thread == nil { thread = try? Lanes(name: "tarn-sync", count: 1) }
      return thread
    }
    guard let lane, lane.submit(lane: 0, { self.sync(mark) }) else { return sync(mark) }
  }

  private func sync(_ mark: Mark) {
    // A sync or write that fails fails again, and is reported, when the file is made durable to be published.
    let durable = mark.state.withLock { $0.isOver } ? nil : try? mark.partial.sync()
    if let durable { try? mark.ledger.apply([.durable(path: mark.path, bytes: durable)]) }
    mark.state.change { state in
      state.isSyncing = false
      state.durable = max(state.durable, durable ?? 0)
    }
  }
}
