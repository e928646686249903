package import TarnCore
package import TarnRuntime

/// An event of a running pass.
package enum PassEvent: Sendable {
  /// The phase, as `state` in the status document shows it.
  package enum Phase: String, Sendable, CaseIterable {
    case reading, planning, transferring, publishing, deleting, verifying
  }
  case phase(Phase)
  /// The plan is made; the report says what will be done.
  case planned(PassReport)
  case action(Action)
  /// The file is done and durable. `code` is that of the ledger's event: `fetched`, `updated`, `adopted`, `deleted` ...
  case done(code: String, path: RelativePath, bytes: UInt64)
  case problem(Problem)
  /// The transfer will be retried.
  case retrying(path: RelativePath, message: String, seconds: Double)
  /// The fetch of the feed, or of a listing below it, will be retried.
  ///
  /// - Parameter isAsked: true when its server asked for the pause.
  case feedRetrying(message: String, seconds: Double, isAsked: Bool)
  case notice(code: String, message: String)
}

/// Observes a pass. Called on several threads of the pass, never on two at once; must return quickly.
package protocol PassObserver: Sendable {
  func pass(_ event: PassEvent)
}

extension PassObserver {
  func notice(_ code: String, _ message: String) { pass(.notice(code: code, message: message)) }
}

/// An observer that ignores all events.
package struct SilentObserver: PassObserver {
  package init() {}
  package func pass(_ event: PassEvent) {}
}

/// The progress of a running pass, for displays. Thread-safe.
package final class PassProgress: Sendable {
  package struct Snapshot: Sendable {
    package var phase: PassEvent.Phase = .reading
    package var entriesRead = 0
    package var filesDone = 0
    package var filesTotal = 0
    /// The bytes of files done and of running transfers.
    package var bytesDone: UInt64 = 0
    /// The bytes of all files to fetch whose size is known by now.
    package var bytesTotal: UInt64 = 0
    /// The bytes of files to fetch that are not in place, as planned. A restored file whose size the feed does not tell counts as
    /// it was recorded.
    package var bytesMissing: UInt64 = 0
    /// The number of files to fetch whose size is not known yet; `bytesTotal` excludes them.
    package var unknownSizes = 0
    /// The bytes per second, averaged over some seconds.
    package var rate: UInt64 = 0
    package var failed = 0
    /// True when nothing is to be fetched, as far as is known before the servers are asked.
    package var onlyAsks = false
    /// The transfers. Those that wait for a place come last.
    package var transfers: [Activity] = []
    /// The transfer of the feed; `nil` when it is not being fetched.
    package var feed: StatusDocument.FeedTransfer?
    /// The number of waiting transfers.
    package var waiting = 0
    package init() {}

    /// Returns this snapshot with the transfers of another one, whose counts are ignored.
    package func beside(_ other: Snapshot) -> Snapshot {
      var both = self
      both.transfers.insert(
        contentsOf: other.transfers.dropLast(other.waiting), at: transfers.count - waiting)
      both.transfers += other.transfers.suffix(other.waiting)
      both.waiting += other.waiting
      return both
    }

    /// Returns the combination of two repairs.
    package func adding(_ other: Snapshot) -> Snapshot {
      var both = beside(other)
      (both.filesDone, both.filesTotal) = (filesDone + other.filesDone, filesTotal + other.filesTotal)
      both.bytesDone.addSaturated(other.bytesDone)
      both.bytesTotal.addSaturated(other.bytesTotal)
      both.bytesMissing.addSaturated(other.bytesMissing)
      both.unknownSizes += other.unknownSizes
      both.rate.addSaturated(other.rate)
      return both
    }
  }

  /// The state of a transfer. It is a class because each change of a value in a dictionary costs three allocations, several times
  /// for each file.
  private final class Running {
    var activity: Activity
    var meter: RateMeter
    var isWaiting: Bool
    /// True when its exchange is over. Its bytes stay counted until its file is in place or has failed.
    var isOver = false

    init(_ activity: Activity, _ meter: RateMeter, isWaiting: Bool) {
      (self.activity, self.meter, self.isWaiting) = (activity, meter, isWaiting)
    }
  }

  private struct State {
    var snapshot = Snapshot()
    var finishedBytes: UInt64 = 0
    var running: [UInt64: Running] = [:]
    /// The sizes that only responses told, by job, until the job is over.
    var told: [UInt64: UInt64] = [:]
    /// The bytes of finished files whose size the feed does not tell.
    var learned: UInt64 = 0
    var meter: RateMeter
    var feed: (received: UInt64, total: UInt64?, meter: RateMeter)?
  }

  private let state: Locked<State>
  private let clock: any Clock

  package init(clock: any Clock) {
    self.clock = clock
    state = Locked(State(meter: RateMeter(start: clock.monotonic())))
  }

  package func snapshot() -> Snapshot {
    let now = clock.monotonic()
    return state.withLock { state in
      var snapshot = state.snapshot
      let jobs = state.running.filter { !$0.value.isOver }.sorted {
        ($0.value.isWaiting ? 1 : 0, $0.key) < ($1.value.isWaiting ? 1 : 0, $1.key)
      }
      snapshot.waiting = jobs.count { $0.value.isWaiting }
      snapshot.transfers = jobs.map { _, job in
        var activity = job.activity
        activity.rate = job.meter.rate(now: now)
        return activity
      }
      snapshot.bytesDone = state.running.values.reduce(state.finishedBytes) {
        $0.addingSaturated($1.activity.received)
      }
      snapshot.bytesTotal = state.told.values.reduce(snapshot.bytesTotal.addingSaturated(state.learned)) {
        $0.addingSaturated($1)
      }
      snapshot.unknownSizes = max(0, snapshot.unknownSizes - state.told.count)
      snapshot.rate = state.meter.rate(now: now)
      snapshot.feed = state.feed.map {
        StatusDocument.FeedTransfer(received: $0.received, total: $0.total, rate: $0.meter.rate(now: now))
      }
      return snapshot
    }
  }

  /// The number of transfers that wait for a place.
  package var waiting: Int { state.withLock { $0.running.values.count { $0.isWaiting } } }

  func change(_ body: (inout Snapshot) -> Void) {
    state.withLock { body(&$0.snapshot) }
  }

  /// - Parameter isWaiting: true when it waits for a place, until `place`.
  func begin(
    _ job: UInt64, path: RelativePath, kept: UInt64, total: UInt64?, source: String, isWaiting: Bool = false
  ) {
    let activity = Activity(path: path, received: kept, total: total, rate: 0, source: source)
    let running = Running(activity, RateMeter(start: clock.monotonic()), isWaiting: isWaiting)
    state.withLock { $0.running[job] = running }
  }

  /// Notes that the feed's bytes begin to come.
  func beginFeed(total: UInt64?) {
    let now = clock.monotonic()
    state.withLock { $0.feed = (0, total, RateMeter(start: now)) }
  }

  func receiveFeed(bytes: Int) {
    let now = clock.monotonic()
    state.withLock { state in
      state.feed?.received += UInt64(bytes)
      state.feed?.meter.add(bytes, now: now)
    }
  }

  func endFeed() { state.withLock { $0.feed = nil } }

  /// Notes that the transfer has its place.
  func place(_ job: UInt64) {
    let now = clock.monotonic()
    state.withLock { state in
      guard let running = state.running[job], running.isWaiting else { return }
      running.isWaiting = false
      running.meter = RateMeter(start: now)
    }
  }

  func receive(_ job: UInt64, bytes: Int) {
    let now = clock.monotonic()
    state.withLock { state in
      if let running = state.running[job] {
        running.activity.received += UInt64(bytes)
        running.meter.add(bytes, now: now)
      }
      state.meter.add(bytes, now: now)
    }
  }

  /// Notes the size of a file that the feed does not tell and a response did.
  func learn(_ job: UInt64, total: UInt64) {
    state.withLock { state in
      state.running[job]?.activity.total = total
      state.told[job] = total
    }
  }

  /// Forgets a job that is over, and the size that its responses told.
  func forget(_ job: UInt64) {
    state.withLock { state in
      state.told[job] = nil
      state.running[job] = nil
    }
  }

  func end(_ job: UInt64) {
    state.withLock { state in
      guard let running = state.running[job] else { return }
      (running.isOver, running.isWaiting) = (true, false)
    }
  }

  /// Notes that a file is in place.
  ///
  /// - Parameters:
  ///   - job: the job that brought it; `nil` for a file that existed.
  ///   - isLearned: true when the feed does not tell its size.
  ///   - planned: its share of `bytesMissing`.
  func finish(_ job: UInt64?, bytes: UInt64, isLearned: Bool = false, planned: UInt64 = 0) {
    state.withLock { state in
      state.finishedBytes.addSaturated(bytes)
      state.snapshot.bytesMissing -= min(state.snapshot.bytesMissing, planned)
      state.snapshot.filesDone += 1
      guard let job else { return }
      state.running[job] = nil
      guard isLearned else { return }
      state.told[job] = nil
      state.learned.addSaturated(bytes)
      state.snapshot.unknownSizes -= 1
    }
  }
}

extension PassProgress.Snapshot {
  /// The changes for the ledger: all running transfers, and some of the waiting ones.
  var changes: [LedgerChange] {
    let listed = min(waiting, StatusDocument.mostWaiting)
    return [
      .activity(transfers.dropLast(waiting - listed)),
      .fact(.transfersWaiting, listed > 0 ? String(listed) : nil),
      .fact(.transfersUnlisted, waiting > listed ? String(waiting - listed) : nil),
      .fact(.feedTransfer, feed?.encoded),
      .fact(.progress, progress?.encoded),
    ]
  }

  /// The progress for the status; `nil` when no files are to be put in place.
  package var progress: StatusDocument.Progress? {
    guard filesTotal > 0 else { return nil }
    return StatusDocument.Progress(
      filesDone: filesDone, filesTotal: filesTotal, bytesDone: bytesDone, bytesTotal: bytesTotal,
      unknownSizes: unknownSizes, rate: rate)
  }

  /// The changes once nothing is transferred any more.
  static var noChanges: [LedgerChange] { PassProgress.Snapshot().changes }
}
