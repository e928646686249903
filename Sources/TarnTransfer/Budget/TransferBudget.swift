package import TarnCore
package import TarnRuntime

/// What the transfers of several mirrors share: places in all and per host with fair turns between the mirrors, one rate,
/// and for each mirror a circuit breaker per host. Any thread may call; nothing blocks.
///
/// Where several mirrors use a host, its last free place is kept for one that has none there, and the last place of all for one
/// that has none anywhere. Where none is left for such a mirror, a transfer that has received nothing for some seconds gives
/// its own away (`giveWay`): transfers that hang keep no other mirror from a host. A single mirror has all places.
///
/// Each exchange asks for a place before each of its hops, and is told on its own thread when it has one. A breaker that
/// opens for a few seconds makes the host's exchanges wait; for longer it ends them with `.hostResting`. Afterwards one of
/// them tries.
package final class TransferBudget: Sendable {
  package struct Limits: Sendable, Hashable {
    /// Transfers in all, at least 1.
    package var total: Int
    /// Transfers per host, at least 1.
    package var perHost: Int
    /// Of each host's places, so many take small files only; two are always left to files of any size.
    package var keptForSmall: Int

    package init(total: Int, perHost: Int, keptForSmall: Int = 1) {
      self.total = max(1, total)
      self.perHost = max(1, perHost)
      self.keptForSmall = keptForSmall
    }
  }

  /// How things stand.
  package struct Snapshot: Sendable, Equatable {
    package struct Resting: Sendable, Equatable {
      /// `https://example.org:443`.
      package var host: String
      /// When it may be asked again; nil while one request tries whether it is back.
      package var until: Timestamp?
      /// The same by the monotonic clock.
      package var monotonicUntil: Instant?
      /// The host asked for it; else it failed again and again.
      package var isAsked = false
      /// Until when: it may be asked again before, for so long a time is not kept to in any case.
      package var askedUntil: Timestamp?
      /// Those that leave it alone.
      package var mirrors: [String] = []
    }

    /// Exchanges that have a place, and those that wait for one. What waits for its own mirror's limits does not count.
    package var running: Int
    package var waiting: Int
    /// Received over the last few seconds.
    package var bytesPerSecond: UInt64
    /// nil for no limit.
    package var rate: UInt64?
    package var limits: Limits
    /// Sorted by host.
    package var resting: [Resting]
  }

  /// What a host asked a mirror for.
  package struct Wish: Sendable, Equatable {
    /// `https://example.org:443`.
    package var host: String
    /// To be left alone.
    package var until: Timestamp

    package init(host: String, until: Timestamp) {
      self.host = host
      self.until = until
    }
  }

  /// A place, or a number in the queue for one; never given twice.
  typealias Place = UInt64

  /// Whether there is a place.
  enum Admission: Equatable {
    case granted(Place)
    /// The member hears of it.
    case waits(Place)
    case refused(DownloadFailure)
  }

  /// What network threads set their handles by.
  struct Terms: Equatable {
    var limits: ConnectionLimits
    var keptForSmall = 0
    var pace: SharedPace?
  }

  /// Bytes: a file of a known size up to this one may have a place that is kept for small files.
  package static let largestSmall: UInt64 = 1 << 20
  /// Bytes up to which an urgent file counts as small.
  static let largestUrgent: UInt64 = 16 << 20

  private struct State {
    var book: BudgetState
    var rate: UInt64?
    var bucket: RateBucket?
    var meter = RateMeter()
    var members: [ObjectIdentifier: any BudgetMember] = [:]
    var priorities: [String: TransferPriority] = [:]
  }

  private let state: Locked<State>
  /// Hears that some host has asked to be left alone.
  private let listener = Locked<(@Sendable () -> Void)?>(nil)
  private let clock: any Clock
  private let random: any RandomSource

  package init(
    _ limits: Limits, breaker: CircuitBreaker.Settings = CircuitBreaker.Settings(),
    clock: any Clock = SystemClock(), random: any RandomSource = SystemRandom()
  ) {
    self.clock = clock
    self.random = random
    state = Locked(State(book: BudgetState(Self.queueLimits(limits), breaker: breaker)))
  }

  /// Of a downloader that shares with nobody: its own limits hold.
  static func unlimited(clock: any Clock) -> TransferBudget {
    TransferBudget(Limits(total: .max, perHost: .max, keptForSmall: 0), clock: clock)
  }

  // MARK: - Steering

  /// Nobody is stopped, and nobody let in beyond the new limits.
  package func setLimits(_ limits: Limits) {
    let now = now
    change(tellsAll: true) { $0.book.setLimits(Self.queueLimits(limits), now: now) }
  }

  /// Says which mirrors there are, so that places are kept for those to come. Others may ask, too; theirs are kept at hosts
  /// that they have asked before.
  ///
  /// - Parameter feeds: each mirror's feed: a URL, or whatever else a feed may be.
  package func setMirrors(_ feeds: [String: String]) {
    let now = now
    let origins = feeds.mapValues { feed in
      (try? SourceURL(feed).origin).flatMap { $0.scheme.isRemote ? $0 : nil }
    }
    change { $0.book.setMirrors(origins, now: now) }
  }

  /// Sets the rate of all mirrors together, beside each one's own.
  ///
  /// - Parameter bytesPerSecond: nil for no limit.
  package func setRate(_ bytesPerSecond: UInt64?) {
    let now = now
    change(tellsAll: true) { state in
      guard state.rate != bytesPerSecond else { return }
      state.rate = bytesPerSecond
      state.bucket = bytesPerSecond.map { RateBucket(rate: $0, now: now.monotonic) }
    }
  }

  /// Somebody wants that mirror now: hosts that it leaves alone may be tried once, also those that asked for it. What they asked of
  /// other mirrors holds.
  package func tryNow(mirror: String) {
    let now = now
    change { $0.book.tryNow(mirror, now: now) }
  }

  /// Holds for what asks for a place from now on; a mirror without one is normal.
  package func setPriority(_ priority: TransferPriority, mirror: String) {
    state.withLock { $0.priorities[mirror] = priority == .normal ? nil : priority }
  }

  /// Seconds for which the host of a mirror's feed has asked that mirror, by answers for its files, too, to leave it alone; nil where
  /// it has not.
  package func askedRest(mirror: String) -> Int64? {
    let now = now.monotonic
    guard let until = state.withLock({ $0.book.askedUntil(mirror) }), until > now else { return nil }
    return (until - now).wholeSeconds
  }

  /// Seconds for which a mirror leaves a host alone, from now on; nil where it may ask.
  func rest(at route: Route, mirror: String) -> Int64? {
    let now = now.monotonic
    guard let until = state.withLock({ $0.book.restEnd(route, mirror: mirror) }), until > now else {
      return nil
    }
    return (until - now).wholeSeconds
  }

  /// By mirror: what hosts have asked it for, in their order: the same as long as it holds.
  package func wishes() -> [String: [Wish]] {
    let now = now
    return state.withLock { $0.book.wishes(now: now) }
  }

  /// What hosts asked a mirror for before this process began; what is over, or no host, is left out.
  package func remember(_ wishes: [Wish], mirror: String) {
    let now = now
    for wish in wishes {
      guard let origin = try? SourceURL(wish.host).origin else { continue }
      change { $0.book.remember(origin, mirror: mirror, until: wish.until, now: now) }
    }
  }

  /// - Parameter hear: is called on a network's thread whenever a host has asked some mirror to be left alone; see `askedRest`.
  package func onAsked(_ hear: @escaping @Sendable () -> Void) {
    listener.withLock { $0 = hear }
  }

  package func snapshot() -> Snapshot {
    let now = now
    return state.withLock { state in
      let limits = state.book.limits
      return Snapshot(
        running: state.book.runningCount, waiting: state.book.waitingCount,
        bytesPerSecond: state.meter.bytesPerSecond(now: now.monotonic), rate: state.rate,
        limits: Limits(
          total: limits.total, perHost: limits.perHost, keptForSmall: limits.keptForSmall),
        resting: state.book.rests(now: now.monotonic).map { rest in
          Snapshot.Resting(
            host: rest.origin.text,
            until: rest.until.map { now.timestamp(of: $0) }, monotonicUntil: rest.until,
            isAsked: rest.askedUntil != nil, askedUntil: rest.askedUntil.map { now.timestamp(of: $0) },
            mirrors: rest.mirrors)
        })
    }
  }

  // MARK: - Network threads

  func join(_ member: any BudgetMember) {
    state.withLock { $0.members[ObjectIdentifier(member)] = member }
  }

  /// The member's places have been given back.
  func leave(_ member: any BudgetMember) {
    state.withLock { $0.members[ObjectIdentifier(member)] = nil }
  }

  var terms: Terms {
    state.withLock { state in
      let limits = state.book.limits
      return Terms(
        limits: ConnectionLimits(total: limits.total, perHost: limits.perHost),
        keptForSmall: limits.keptForSmall, pace: state.rate.map { SharedPace(rate: $0, places: limits.total) }
      )
    }
  }

  /// Asks for a place.
  ///
  /// - Parameters:
  ///   - priority: of this request; nil for its mirror's.
  ///   - isStream: it shares a place with the mirror's other streams there.
  func enter(
    _ route: Route, mirror: String, priority: TransferPriority? = nil, isSmall: Bool, isStream: Bool = false,
    member: any BudgetMember
  ) -> Admission {
    let now = now
    let (place, notices) = state.withLock { state in
      let priority = priority ?? state.priorities[mirror] ?? .normal
      let place = state.book.enter(
        route, mirror: mirror, priority: priority, isSmall: isSmall, isStream: isStream, member: member,
        now: now)
      return (place, state.book.takeNotices())
    }
    var admission = Admission.waits(place)
    for (member, notice) in notices {
      switch notice {
      case .granted(place): admission = .granted(place)
      case .refused(place, let failure): admission = .refused(failure)
      default: member.hear(notice)
      }
    }
    return admission
  }

  /// The hop is over, or nobody waits for it any more. A place that was refused is none.
  ///
  /// - Parameter cause: what failed, for a person; no secrets, escaped.
  func leave(_ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    let now = now
    let random = random.unit()
    change { $0.book.leave(place, outcome, cause: cause, now: now, random: random) }
    if case .asked = outcome { listener.withLock { $0 }?() }
  }

  /// A transfer that receives nothing gives its place to a mirror that waits and has none at its host, or, where all are taken,
  /// none anywhere.
  ///
  /// - Parameter isForOthers: only to one that did not give way there itself.
  /// - Returns: false when no such mirror waits, and the place stays.
  func giveWay(_ place: Place, isForOthers: Bool = false) -> Bool {
    let now = now
    var isGiven = false
    change { isGiven = $0.book.giveWay(place, isForOthers: isForOthers, now: now) }
    return isGiven
  }

  /// A stream has brought more than a short file has: it counts as a place of its own.
  func outgrow(_ place: Place) {
    let now = now
    change { $0.book.outgrow(place, now: now) }
  }

  /// The host that was asked has answered.
  func answered(_ place: Place) {
    let now = now
    change { $0.book.answered(place, now: now) }
  }

  /// Lets in whom time lets in.
  ///
  /// - Returns: milliseconds until it may be of use again; nil when that does not hang on time.
  func look() -> Int32? {
    let now = now
    change { $0.book.look(now: now) }
    return state.withLock { $0.book.wait(now: now.monotonic) }?.milliseconds
  }

  // MARK: - Rate

  /// Whether the shared rate lets bytes pass.
  var mayTake: Bool { state.withLock { $0.bucket?.isOpen ?? true } }

  /// Counts received bytes.
  func spend(_ bytes: Int) {
    let now = clock.monotonic()
    state.withLock { state in
      state.bucket?.spend(bytes)
      state.meter.add(bytes, now: now)
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

  // MARK: - Inside

  private var now: Moment {
    Moment(wall: Timestamp(nanoseconds: clock.now()), monotonic: clock.monotonic())
  }

  private static func queueLimits(_ limits: Limits) -> BudgetState.Queue.Limits {
    BudgetState.Queue.Limits(total: limits.total, perHost: limits.perHost, keptForSmall: limits.keptForSmall)
  }

  /// Changes the state, then tells whom it concerns: never under the lock, for members have locks of their own.
  private func change(tellsAll: Bool = false, _ body: (inout State) -> Void) {
    let (notices, members) = state.withLock { state in
      body(&state)
      return (state.book.takeNotices(), tellsAll ? Array(state.members.values) : [])
    }
    for (member, notice) in notices { member.hear(notice) }
    for member in members { member.look() }
  }
}
