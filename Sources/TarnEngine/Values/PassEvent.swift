package import TarnCore
package import TarnRuntime

/// What a pass tells while it runs.
package enum PassEvent: Sendable {
  /// As `state` in the status document.
  package enum Phase: String, Sendable, CaseIterable {
    case reading, planning, transferring, publishing, deleting, verifying
  }
  case phase(Phase)
  /// The plan is made: what will be done.
  case planned(PassReport)
  case action(Action)
  /// Done and durable. `code` is that of the event in the ledger: `fetched`, `updated`, `adopted`, `deleted` ...
  case done(code: String, path: RelativePath, bytes: UInt64)
  case problem(Problem)
  /// Will be tried again.
  case retrying(path: RelativePath, message: String, seconds: Double)
  /// The feed, or a listing below it, will be.
  ///
  /// - Parameter isAsked: its server wants to be left alone until then.
  case feedRetrying(message: String, seconds: Double, isAsked: Bool)
  case notice(code: String, message: String)
}

/// Hears what a pass does. Called on several threads of the pass, never on two at once; must be quick.
package protocol PassObserver: Sendable {
  func pass(_ event: PassEvent)
}

extension PassObserver {
  func notice(_ code: String, _ message: String) { pass(.notice(code: code, message: message)) }
}

/// Hears nothing.
package struct SilentObserver: PassObserver {
  package init() {}
  package func pass(_ event: PassEvent) {}
}

/// How far a running pass is; read by whoever draws it. Any thread.
package final class PassProgress: Sendable {
  package struct Snapshot: Sendable {
    package var phase: PassEvent.Phase = .reading
    package var entriesRead = 0
    package var filesDone = 0
    package var filesTotal = 0
    /// Bytes of files done and of running transfers.
    package var bytesDone: UInt64 = 0
    /// Of all files to fetch whose size is known by now.
    package var bytesTotal: UInt64 = 0
    /// Of files to fetch that are not in place, as planned: of what is brought back, and whose size the feed does not tell, as it was.
    package var bytesMissing: UInt64 = 0
    /// Files to fetch whose size nobody has told yet: `bytesTotal` is without them.
    package var unknownSizes = 0
    /// Bytes per second, an average over some seconds.
    package var rate: UInt64 = 0
    package var failed = 0
    /// Nothing is to be fetched, as far as is known before the servers are asked.
    package var onlyAsks = false
    /// Those that wait for a place come last.
    package var transfers: [Activity] = []
    /// nil when the feed is not being fetched.
    package var feed: StatusDocument.FeedTransfer?
    /// So many of them wait.
    package var waiting = 0
    package init() {}

    /// With the transfers of what goes on beside it; how far that is counts for nothing here.
    package func beside(_ other: Snapshot) -> Snapshot {
      var both = self
      both.transfers.insert(
        contentsOf: other.transfers.dropLast(other.waiting), at: transfers.count - waiting)
      both.transfers += other.transfers.suffix(other.waiting)
      both.waiting += other.waiting
      return both
    }

    /// Two repairs, as if they were one.
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

  /// A class: each change of a value in a dictionary costs three allocations, and there are some for every file.
  private final class Running {
    var activity: Activity
    var meter: RateMeter
    var isWaiting: Bool
    /// Its exchange is over; what came stays counted until its file is in place, or is not to be.
    var isOver = false

    init(_ activity: Activity, _ meter: RateMeter, isWaiting: Bool) {
      (self.activity, self.meter, self.isWaiting) = (activity, meter, isWaiting)
    }
  }

  private struct State {
    var snapshot = Snapshot()
    var finishedBytes: UInt64 = 0
    var running: [UInt64: Running] = [:]
    /// Sizes that only answers told, by job; until it is over.
    var told: [UInt64: UInt64] = [:]
    /// Bytes of finished files whose size the feed does not tell.
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

  /// Transfers that wait for a place.
  package var waiting: Int { state.withLock { $0.running.values.count { $0.isWaiting } } }

  func change(_ body: (inout Snapshot) -> Void) {
    state.withLock { body(&$0.snapshot) }
  }

  /// - Parameter isWaiting: for a place, until `place`.
  func begin(
    _ job: UInt64, path: RelativePath, kept: UInt64, total: UInt64?, source: String, isWaiting: Bool = false
  ) {
    let activity = Activity(path: path, received: kept, total: total, rate: 0, source: source)
    let running = Running(activity, RateMeter(start: clock.monotonic()), isWaiting: isWaiting)
    state.withLock { $0.running[job] = running }
  }

  /// The feed's bytes begin to come.
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

  /// The transfer has its place.
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

  /// An answer's head told the size of the whole file, which the feed does not.
  func learn(_ job: UInt64, total: UInt64) {
    state.withLock { state in
      state.running[job]?.activity.total = total
      state.told[job] = total
    }
  }

  /// The job is over, with its file in place or without: what its answers told is of no account any more.
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

  /// A file is in place.
  ///
  /// - Parameters:
  ///   - job: the one that brought it; nil for what was there.
  ///   - isLearned: the feed does not tell its size.
  ///   - planned: what it was of `bytesMissing`.
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
  /// For the ledger: all transfers that run, and some of those that wait.
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

  /// nil where no files are to be put in place.
  package var progress: StatusDocument.Progress? {
    guard filesTotal > 0 else { return nil }
    return StatusDocument.Progress(
      filesDone: filesDone, filesTotal: filesTotal, bytesDone: bytesDone, bytesTotal: bytesTotal,
      unknownSizes: unknownSizes, rate: rate)
  }

  /// The same once nothing is transferred any more.
  static var noChanges: [LedgerChange] { PassProgress.Snapshot().changes }
}
