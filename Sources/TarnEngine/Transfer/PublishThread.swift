import TarnCore
import TarnRuntime

/// A checked file that is about to get its final name.
struct Publication: Sendable {
  let job: UInt64
  let client: TransferClient
  let kind: Action.Kind
  let partial: any PartialFile
  let expectation: Installation.Expectation
  let trashName: String
  /// The row to write. Its identity is the one before the rename.
  let row: Row
  /// True when the file expected at the path was placed by Tarn, not adopted, and is unchanged.
  let displacesOwn: Bool
  let isCopy: Bool
  /// True when its entry was not counted as in place so far.
  var isCounted = true
  /// What it is for the repair that brings it; `nil` when a pass brings it.
  var brought: BroughtFile?

  var path: RelativePath { row.path }
}

/// Publishes files in groups, each for one ledger: makes them durable together, renames them, syncs the directories, and writes one
/// ledger transaction. Only then are they reported. It has two threads: while one group is renamed, the next is made durable. They
/// start with the first file, because a pass or a repair may wait long for its server. `start` and `submit` must be called on the
/// same thread.
final class PublishThread: Sendable {
  private struct State {
    var waiting: [Publication] = []
    /// True when no more files come soon, so that waiting for a fuller group is useless.
    var isFlushing = false
    var isClosed = false
  }

  /// The exchange between the two threads: the next durable group.
  private struct Handover {
    var group: [Publication]?
    /// True when no other group comes.
    var isOver = false
  }

  static let largestGroup = 512
  /// The longest time that a file waits for others.
  private static let linger = Duration.milliseconds(100)

  private let state: LockedCondition<State>
  private let handover: LockedCondition<Handover>
  private let post: @Sendable (JobMessage) -> Void
  private let threads = Locked<[WorkerThread]>([])

  init(post: @escaping @Sendable (JobMessage) -> Void) {
    (state, handover) = (LockedCondition(State()), LockedCondition(Handover()))
    self.post = post
  }

  var hasThreads: Bool { threads.withLock { !$0.isEmpty } }

  /// Starts the threads, unless they run. Must be called before the first `submit`.
  func start() throws(ThreadFailure) {
    guard !hasThreads else { return }
    let (state, handover, post) = (state, handover, post)
    let naming = try WorkerThread.start(name: "tarn-publish") { Self.name(handover, post) }
    do throws(ThreadFailure) {
      let durable = try WorkerThread.start(name: "tarn-durable") { Self.makeDurable(state, handover, post) }
      threads.withLock { $0 = [durable, naming] }
    } catch {
      handover.change { $0.isOver = true }
      naming.join()
      handover.change { $0.isOver = false }
      throw error
    }
  }

  /// Adds a file. It wakes the thread for the first file of a group and for the last one that fits. In between the thread would
  /// only look again.
  func submit(_ publication: Publication) {
    let isDue = state.withLock { state in
      state.waiting.append(publication)
      return state.waiting.count == 1 || state.waiting.count == Self.largestGroup
    }
    if isDue { state.change { _ in } }
  }

  func setFlushing(_ isFlushing: Bool) {
    let isNew = state.withLock { state in
      defer { state.isFlushing = isFlushing }
      return state.isFlushing != isFlushing
    }
    if isNew { state.change { _ in } }
  }

  /// Publishes the waiting files, and ends the threads.
  func close() {
    state.change { $0.isClosed = true }
    for thread in threads.withLock({ $0 }) { thread.join() }
  }

  private static func makeDurable(
    _ state: LockedCondition<State>, _ handover: LockedCondition<Handover>,
    _ post: @escaping @Sendable (JobMessage) -> Void
  ) {
    while let batch = nextBatch(state) {
      let durable = PublishGroup(client: batch[0].client, post: post).makeDurable(batch)
      if durable.isEmpty { continue }
      handover.wait { $0.group == nil ? () : nil }
      handover.change { $0.group = durable }
    }
    handover.change { $0.isOver = true }
  }

  /// - Returns: the next batch; `nil` once it is closed and nothing waits.
  private static func nextBatch(_ state: LockedCondition<State>) -> [Publication]? {
    let isOver = state.wait { state -> Bool? in
      if !state.waiting.isEmpty { return false }
      return state.isClosed ? true : nil
    }
    if isOver { return nil }
    _ = state.wait(atMost: linger) { state in
      state.isFlushing || state.isClosed || state.waiting.count >= largestGroup ? () : nil
    }
    return state.withLock { state in
      let ledger = state.waiting[0].client.ledger
      var batch: [Publication] = []
      state.waiting.removeAll { publication in
        guard publication.client.ledger === ledger, batch.count < largestGroup else { return false }
        batch.append(publication)
        return true
      }
      return batch
    }
  }

  private static func name(
    _ handover: LockedCondition<Handover>, _ post: @escaping @Sendable (JobMessage) -> Void
  ) {
    var named: PublishGroup.Named?
    while true {
      // Renamed files are recorded as soon as no other group is there.
      let isIdle = named == nil
      let next = handover.wait { handover -> [Publication]?? in
        if let next = handover.group { return .some(next) }
        return handover.isOver || !isIdle ? .some(nil) : nil
      }
      func record() -> Bool {
        guard let done = named.take() else { return false }
        PublishGroup(client: done[0].file.client, post: post).record(done)
        return true
      }
      guard let next else {
        guard record() else { return }
        continue
      }
      // One group waits here to be renamed, and the next one waits until that is done.
      handover.change { $0.group = nil }
      if named?[0].file.client.ledger !== next[0].client.ledger { _ = record() }
      named = PublishGroup(client: next[0].client, post: post).name(next, after: named.take())
    }
  }
}
