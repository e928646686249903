package import TarnCore
package import TarnRuntime

/// The resources that the transfers of several mirrors share: places, one rate, and a circuit breaker per host for each mirror. Any
/// thread may call; nothing blocks.
///
/// Each exchange asks for a place before each of its hops, and is told on its own thread when it has one. A breaker that opens for
/// a few seconds makes the host's exchanges wait; one that opens for longer ends them with `.hostResting`. Afterwards one of them
/// tries. `BudgetState` decides; this class holds the lock and delivers the notices.
package final class TransferBudget: Sendable {
  /// A host that is left alone.
  package struct Resting: Sendable, Equatable {
    /// The origin, such as `https://example.org:443`.
    package var host: String
    /// When it may be asked again; nil while one request tries whether it is back.
    package var until: Timestamp?
    /// The end of the pause that the host asked for. It may be asked again before, when that is longer than the longest pause.
    /// `nil` where it failed again and again.
    package var askedUntil: Timestamp?
    /// The mirrors that leave it alone.
    package var mirrors: [String] = []

    package var isAsked: Bool { askedUntil != nil }
  }

  /// The state at one moment.
  package struct Snapshot: Sendable, Equatable {
    /// Exchanges with a place, and exchanges that wait for one. Those that read local files are not counted.
    package var running: Int
    package var waiting: Int
    /// Bytes per second received over the last few seconds.
    package var bytesPerSecond: UInt64
    /// The hosts left alone, sorted by host.
    package var resting: [Resting]
  }

  /// A pause that a host asked a mirror for.
  package struct Wish: Sendable, Equatable {
    /// The origin, such as `https://example.org:443`.
    package var host: String
    /// The end of the pause.
    package var until: Timestamp

    package init(host: String, until: Timestamp) { (self.host, self.until) = (host, until) }
  }

  /// A place, or a number in the queue for one; never reused.
  typealias Place = UInt64

  /// The limits and the pace that network threads set their handles by.
  struct Terms: Equatable {
    var limits: PlaceLimits
    var pace: SharedPace?
  }

  /// The largest file of known size, in bytes, that may have a place for small files.
  package static let largestSmall: UInt64 = 1 << 20
  /// The largest urgent file, in bytes, that counts as small.
  static let largestUrgent: UInt64 = 16 << 20

  private struct State {
    let book: BudgetState
    var bucket: RateBucket?
    var meter = WindowedRate()
    /// Bytes received, by mirror.
    var received: [String: UInt64] = [:]
    /// Called when a host has asked to be left alone.
    var listener: (@Sendable () -> Void)?
  }

  private let state: Locked<State>
  private let clock: any Clock
  /// False for the budget of a downloader of its own, which limits nothing.
  let isShared: Bool

  /// - Parameter limits: `nil` for a downloader that shares with nobody: only its own limits apply.
  package init(
    _ limits: PlaceLimits?, breaker: CircuitBreaker.Settings = CircuitBreaker.Settings(),
    clock: any Clock = SystemClock(), random: any RandomSource = SystemRandom()
  ) {
    (self.clock, isShared) = (clock, limits != nil)
    let limits = limits ?? PlaceLimits(total: .max, perHost: .max, keptForSmall: 0)
    state = Locked(State(book: BudgetState(limits, breaker: breaker, random: random)))
  }

  // MARK: - Steering

  /// Sets the limits. Running exchanges continue, and none is let in beyond the new limits.
  package func setLimits(_ limits: PlaceLimits) { change { $0.limits = limits } }

  /// Sets the expected mirrors, so that places are kept for them. Others may ask, too.
  ///
  /// - Parameter feeds: the feed of each mirror: a URL, or any other text.
  package func setMirrors(_ feeds: [String: String]) {
    change { $0.setMirrors(feeds.mapValues { try? SourceURL($0).origin }) }
  }

  /// Sets the rate of all mirrors together, beside each one's own. Transfers that another rate holds up continue within a second.
  ///
  /// - Parameter bytesPerSecond: the rate; `nil` for no limit.
  package func setRate(_ bytesPerSecond: UInt64?) {
    let now = clock.monotonic()
    state.withLock { state in
      guard state.bucket?.rate != bytesPerSecond else { return }
      state.bucket = bytesPerSecond.map { RateBucket(rate: $0, now: now) }
    }
  }

  /// Lets a mirror try the hosts that it leaves alone once, also those that asked for it, because somebody wants it now. What these
  /// asked of other mirrors still holds.
  package func tryNow(mirror: String) { change { $0.tryNow(mirror) } }

  /// Sets the priority of a mirror for later requests. A mirror without one has the normal priority.
  package func setPriority(_ priority: TransferPriority, mirror: String) {
    change { $0.setPriority(priority, mirror: mirror) }
  }

  /// Returns the seconds for which the host of a mirror's feed has asked that mirror to stay away, also in answers for files. `nil`
  /// where it has not.
  package func askedRest(mirror: String) -> Int64? { change { $0.askedRest(mirror) } }

  /// Returns the wishes of hosts for each mirror, sorted by host. A wish stays the same as long as it holds.
  package func wishes() -> [String: [Wish]] { change { $0.wishes() } }

  /// Records what hosts asked a mirror for before this process began. Wishes that are over, or name no host, are left out.
  package func remember(_ wishes: [Wish], mirror: String) {
    for wish in wishes {
      guard let origin = try? SourceURL(wish.host).origin else { continue }
      change { $0.remember(origin, mirror: mirror, until: wish.until) }
    }
  }

  /// - Parameter hear: called on a network thread whenever a host has asked some mirror to be left alone; see `askedRest`.
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

  /// Returns the bytes of bodies received for each mirror, including feeds, since this process began.
  package func received() -> [String: UInt64] { state.withLock { $0.received } }

  /// Forgets the received bytes of a mirror that is gone.
  package func forgetReceived(mirror: String) { state.withLock { $0.received[mirror] = nil } }

  // MARK: - For network threads

  var terms: Terms {
    state.withLock { state in
      let limits = state.book.limits
      return Terms(limits: limits, pace: state.bucket.map { SharedPace(rate: $0.rate, places: limits.total) })
    }
  }

  /// True when the shared rate lets bytes pass.
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

  /// - Returns: the milliseconds until the shared rate lets bytes pass; 0 when it does.
  func refill() -> Int32 {
    let now = clock.monotonic()
    return state.withLock { state in
      state.bucket?.refill(now: now)
      return state.bucket?.millisecondsToOpen ?? 0
    }
  }

  // MARK: - State

  /// Reads or changes the state, then delivers the notices. Members are not called under the lock, since they have locks of their
  /// own.
  @discardableResult
  func change<Result>(_ body: (BudgetState) -> Result) -> Result {
    let (result, news, listener) = state.withLock { state in
      // The clock is read under the lock, so that the time never goes back.
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
