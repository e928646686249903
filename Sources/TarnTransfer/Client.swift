import DequeModule
import TarnCore
import TarnRuntime

/// One client of a network thread: what all its exchanges share. Network thread only.
final class Client {
  let id: ClientID
  /// For fair turns.
  let mirror: String
  private(set) var settings: NetworkSettings
  let clock: any Clock
  let budget: TransferBudget
  /// By which the budget knows it.
  let number: UInt64
  /// The feed's own origin.
  let trusted: Origin?
  /// Of every hop.
  private(set) var options: [CurlOption] {
    didSet { optionsNumber &+= 1 }
  }
  /// Another one whenever the options change.
  private(set) var optionsNumber: UInt64 = 0
  /// Hops that found a bucket empty, in the order they asked.
  var throttled = Deque<Hop>()
  /// Origins on private addresses that requests asked for by their own URLs.
  var privateOrigins: Set<Origin> = []
  private var shared: SharedPace?
  private var bucket: RateBucket?
  let dates = HeaderDates()
  /// Of all its exchanges, where the settings say so.
  let cookies = HostCookies()
  /// Those that took bytes in this turn.
  private var fresh: [Exchange] = []

  init(
    _ id: ClientID, settings: NetworkSettings, mirror: String, clock: any Clock, budget: TransferBudget,
    pace: SharedPace?
  ) {
    self.id = id
    self.settings = settings
    self.mirror = mirror
    self.clock = clock
    self.budget = budget
    let own = PlaceLimits(total: settings.connections, perHost: settings.connectionsPerHost)
    number = budget.change { $0.open(own) }
    shared = pace
    options = CurlOption.fixed(settings, shared: pace)
    trusted = settings.credentialOrigin.flatMap { try? SourceURL($0) }?.origin
    bucket = settings.rate.map { RateBucket(rate: $0, now: clock.monotonic()) }
  }

  // MARK: Turns

  func tookBytes(_ exchange: Exchange) {
    guard !exchange.isFresh else { return }
    exchange.isFresh = true
    fresh.append(exchange)
  }

  func endTurn() {
    for exchange in fresh {
      exchange.isFresh = false
      if exchange.stage != .ended { exchange.receiver.turnEnded() }
    }
    fresh.removeAll(keepingCapacity: true)
  }

  // MARK: Rate

  /// What is owed to the old rate is forgotten: a buffer at most.
  func setRate(_ rate: UInt64?) {
    settings.rate = rate
    options = CurlOption.fixed(settings, shared: shared)
    bucket = rate.map { RateBucket(rate: $0, now: clock.monotonic()) }
  }

  func setShared(_ pace: SharedPace?) {
    shared = pace
    options = CurlOption.fixed(settings, shared: pace)
  }

  /// The option that holds for running hops, too.
  var lowSpeed: CurlOption { CurlOption.lowSpeed(settings, shared) }

  func refill(now: Instant) {
    bucket?.refill(now: now)
  }

  /// Whether both rates, the client's and that of all together, let bytes pass.
  var mayTake: Bool { bucket?.isOpen ?? true && (!budget.isShared || budget.mayTake) }

  func spend(_ bytes: Int) {
    bucket?.spend(bytes)
    if budget.isShared { budget.spend(bytes, of: mirror) }
  }

  /// Until its own bucket opens.
  var millisecondsToOpen: Int32 { bucket?.millisecondsToOpen ?? 0 }
}
