package import TarnCore
package import TarnRuntime

/// What the transfers of several mirrors share: places, one rate, and for each mirror a circuit breaker per host. Any
/// thread may call; nothing blocks.
///
/// Each exchange asks for a place before each of its hops, and is told on its own thread when it has one. A breaker that
/// opens for a few seconds makes the host's exchanges wait; for longer it ends them with `.hostResting`. Afterwards one of
/// them tries. `BudgetState` decides; this is the lock around it, and tells whom it concerns.
package final class TransferBudget: Sendable {
  /// A host that is left alone.
  package struct Resting: Sendable, Equatable {
    /// `https://example.org:443`.
    package var host: String
    /// When it may be asked again; nil while one request tries whether it is back.
    package var until: Timestamp?
    /// Until when the host asked for it: it may be asked again before, for so long a time is not kept to in any case. nil where it
    /// failed again and again.
    package var askedUntil: Timestamp?
    /// Those that leave it alone.
    package var mirrors: [String] = []

    package var isAsked: Bool { askedUntil != nil }
  }

  /// How things stand.
  package struct Snapshot: Sendable, Equatable {
    /// Exchanges that have a place, and those that wait for one; those that read local files are not counted.
    package var running: Int
    package var waiting: Int
    /// Received over the last few seconds.
    package var bytesPerSecond: UInt64
    /// Sorted by host.
    package var resting: [Resting]
  }

  /// What a host asked a mirror for.
  package struct Wish: Sendable, Equatable {
    /// `https://example.org:443`.
    package var host: String
    /// To be left alone.
    package var until: Timestamp

    package init(host: String, until: Timestamp) { (self.host, self.until) = (host, until) }
  }

  /// A place, or a number in the queue for one; never given twice.
  typealias Place = UInt64

  /// What network threads set their handles by.
  struct Terms: Equatable {
    var limits: PlaceLimits
    var pace: SharedPace?
  }

  /// Bytes: a file of a known size up to this one may have a place that is kept for small files.
  package static let largestSmall: UInt64 = 1 << 20
  /// Bytes up to which an urgent file counts as small.
  static let largestUrgent: UInt64 = 16 << 20

  private struct State {
    let book: BudgetState
    var bucket: RateBucket?
    var meter = WindowedRate()
    /// Bytes that came, by mirror.
    var received: [String: UInt64] = [:]
    /// Hears that some host has asked to be left alone.
    var listener: (@Sendable () -> Void)?
  }

  private let state: Locked<State>
  private let clock: any Clock
  /// False for that of a downloader of its own: nothing is limited here.
  let isShared: Bool

  /// - Parameter limits: nil for a downloader that shares with nobody: its own limits hold.
  package init(
    _ limits: PlaceLimits?, breaker: CircuitBreaker.Settings = CircuitBreaker.Settings(),
    clock: any Clock = SystemClock(), random: any RandomSource = SystemRandom()
  ) {
    (self.clock, isShared) = (clock, limits != nil)
    let limits = limits ?? PlaceLimits(total: .max, perHost: .max, keptForSmall: 0)
    state = Locked(State(book: BudgetState(limits, breaker: breaker, random: random)))
  }

  // MARK: - Steering

  /// Nobody is stopped, and nobody let in beyond the new limits.
  package func setLimits(_ limits: PlaceLimits) { change { $0.limits = limits } }

  /// Says which mirrors there are, so that places are kept for those to come. Others may ask, too.
  ///
  /// - Parameter feeds: each mirror's feed: a URL, or whatever else a feed may be.
  package func setMirrors(_ feeds: [String: String]) {
    change { $0.setMirrors(feeds.mapValues { try? SourceURL($0).origin }) }
  }

  /// Sets the rate of all mirrors together, beside each one's own. What another rate holds up goes on within a second.
  ///
  /// - Parameter bytesPerSecond: nil for no limit.
  package func setRate(_ bytesPerSecond: UInt64?) {
    let now = clock.monotonic()
    state.withLock { state in
      guard state.bucket?.rate != bytesPerSecond else { return }
      state.bucket = bytesPerSecond.map { RateBucket(rate: $0, now: now) }
    }
  }

  /// Somebody wants that mirror now: hosts that it leaves alone may be tried once, also those that asked for it. What they asked of
  /// other mirrors holds.
  package func tryNow(mirror: String) { change { $0.tryNow(mirror) } }

  /// Holds for what asks for a place from now on; a mirror without one is normal.
  package func setPriority(_ priority: TransferPriority, mirror: String) {
    change { $0.setPriority(priority, mirror: mirror) }
  }

  /// Seconds for which the host of a mirror's feed has asked that mirror, by answers for its files, too, to leave it alone; nil where
  /// it has not.
  package func askedRest(mirror: String) -> Int64? { change { $0.askedRest(mirror) } }

  /// By mirror: what hosts have asked it for, in their order: the same as long as it holds.
  package func wishes() -> [String: [Wish]] { change { $0.wishes() } }

  /// What hosts asked a mirror for before this process began; what is over, or no host, is left out.
  package func remember(_ wishes: [Wish], mirror: String) {
    for wish in wishes {
      guard let origin = try? SourceURL(wish.host).origin else { continue }
      change { $0.remember(origin, mirror: mirror, until: wish.until) }
    }
  }

  /// - Parameter hear: is called on a network's thread whenever a host has asked some mirror to be left alone; see `askedRest`.
  package func onAsked(_ hear: @escaping @Sendable () -> Void) {
    state.withLock { $0.listener = hear }
  }

  package func snapshot() -> Snapshot {
    let bytes = state.withLock { $0.meter.bytesPerSecond(now: clock.monotonic()) }
    return change {
      Snapshot(
        running: $0.runningCount, waiting: $0.waitingCount, bytesPerSecond: bytes, resting: $0.resting)
    }
  }

  /// By mirror: the bytes of bodies that came for it, feeds among them, since this process began.
  package func received() -> [String: UInt64] { state.withLock { $0.received } }

  /// What came for a mirror that is gone is of no account any more.
  package func forgetReceived(mirror: String) { state.withLock { $0.received[mirror] = nil } }

  // MARK: - For network threads

  var terms: Terms {
    state.withLock { state in
      let limits = state.book.limits
      return Terms(limits: limits, pace: state.bucket.map { SharedPace(rate: $0.rate, places: limits.total) })
    }
  }

  /// Whether the shared rate lets bytes pass.
  var mayTake: Bool { state.withLock { $0.bucket?.isOpen ?? true } }

  /// Counts received bytes.
  func spend(_ bytes: Int, of mirror: String) {
    let now = clock.monotonic()
    state.withLock { state in
      state.bucket?.spend(bytes)
      state.meter.add(bytes, now: now)
      state.received[mirror, default: 0].addSaturated(UInt64(bytes))
    }
  }

  /// - Returns: milliseconds until the shared rate lets bytes pass; 0 when it does.
  func refill() -> Int32 {
    let now = clock.monotonic()
    return state.withLock { state in
      state.bucket?.refill(now: now)
      return state.bucket?.millisecondsToOpen ?? 0
    }
  }

  // MARK: - State

  /// Reads or changes the state as it is now, then tells whom it concerns: never under the lock, for members have locks of their own.
  @discardableResult
  func change<Result>(_ body: (BudgetState) -> Result) -> Result {
    let (result, news, listener) = state.withLock { state in
      // Under the lock, so that it never goes back.
      state.book.now = Moment(wall: clock.time, monotonic: clock.monotonic())
      let result = body(state.book)
      let news = state.book.takeNews()
      return (result, news.notices, news.isAsked ? state.listener : nil)
    }
    listener?()
    for (member, notice) in news { member.hear(notice) }
    return result
  }
}
