import TarnCore
import TarnRuntime

/// A scan that runs ahead on a thread of its own while its results are compared: looking at the files and reading the ledger take
/// about the same time. For a small folder it is the scan itself. One thread reads, and blocks while the scan is behind.
///
/// The results may be a thousand objects old; whoever acts on one looks again in any case.
final class ScanAhead: SnapshotCursor {
  private enum Item: Sendable {
    case present(Present)
    case failure(FolderFailure)
  }

  private struct State {
    var batches: [[Item]] = []
    /// True when nothing comes after `batches`.
    var isOver = false
    /// True when nobody reads any more.
    var isClosed = false
  }

  private struct Walk: @unchecked Sendable {
    // Safe because it is the reader's until the thread runs, and the thread's alone from then on.
    let scan: FolderScan
  }

  /// The number of objects before a thread is worth starting; unlimited once the system had none.
  private var patience = 1024
  private static let batchSize = 256
  private static let mostBatches = 4

  private let walk: Walk
  private let state = LockedCondition(State())
  private var thread: WorkerThread?
  /// The number of objects returned without a thread; `nil` once there is one.
  private var given: Int? = 0
  private var batch: [Item] = []
  private var index = 0

  init(_ scan: FolderScan) {
    walk = Walk(scan: scan)
  }

  deinit {
    state.change { $0.isClosed = true }
    thread?.join()
  }

  func next() throws(FolderFailure) -> Present? {
    if let count = given {
      guard count >= patience, startThread() else {
        given = count + 1
        return try walk.scan.next()
      }
      given = nil
    }
    if index == batch.count { takeBatch() }
    guard index < batch.count else { return nil }
    defer { index += 1 }
    switch batch[index] {
    case .present(let present): return present
    case .failure(let failure): throw failure
    }
  }

  /// - Returns: false when the system has no thread left; the scan continues without one.
  private func startThread() -> Bool {
    thread = try? WorkerThread.start(name: "tarn-scan") { [walk, state] in Self.run(walk, state) }
    if thread == nil { patience = .max }
    return thread != nil
  }

  private func takeBatch() {
    (batch, index) = ([], 0)
    state.wait { state -> Void? in
      guard !state.batches.isEmpty else { return state.isOver ? () : nil }
      batch = state.batches.removeFirst()
      return ()
    }
    // Wakes the thread, which may wait for room.
    state.change { _ in }
  }

  private static func run(_ walk: Walk, _ state: LockedCondition<State>) {
    var isOver = false
    while !isOver {
      var batch: [Item] = []
      batch.reserveCapacity(batchSize)
      while batch.count < batchSize, !isOver {
        do throws(FolderFailure) {
          if let present = try walk.scan.next() { batch.append(.present(present)) } else { isOver = true }
        } catch {
          batch.append(.failure(error))
        }
      }
      let goesOn = state.wait { state -> Bool? in
        if state.isClosed { return false }
        return state.batches.count < mostBatches ? true : nil
      }
      guard goesOn else { return }
      state.change { state in
        state.batches.append(batch)
        state.isOver = isOver
      }
    }
  }
}
