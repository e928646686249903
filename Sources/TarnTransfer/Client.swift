import DequeModule
import TarnCore
import TarnRuntime

/// One client of a network thread, with what all its exchanges share. Network thread only.
final class Client {
  let id: ClientID
  /// The name of the mirror, for fair turns.
  let mirror: String
  private(set) var settings: NetworkSettings
  let clock: any Clock
  let budget: TransferBudget
  /// The number of the client in the budget.
  let number: UInt64
  /// The origin of the feed.
  let trusted: Origin?
  /// The options of every hop.
  private(set) var options: [CurlOption] {
    didSet { optionsNumber &+= 1 }
  }
  /// A number that changes with the options.
  private(set) var optionsNumber: UInt64 = 0
  /// Exchanges that found the rate bucket empty, in the order they asked. Some may have ended since.
  var throttled = Deque<Exchange>()
  let privateOrigins: PrivateOrigins
  private var shared: SharedPace?
  private var bucket: RateBucket?
  let dates = HeaderDates()
  /// The cookies of all exchanges, where the settings keep them.
  let cookies: HostCookies
  /// The exchanges that took bytes in this turn.
  private var fresh: [Exchange] = []

  init(
    _ id: ClientID, settings: NetworkSettings, mirror: String, clock: any Clock, budget: TransferBudget,
    pace: SharedPace?, cookies: HostCookies, privateOrigins: PrivateOrigins
  ) {
    self.id = id
    self.cookies = cookies
    self.privateOrigins = privateOrigins
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

  /// Sets the client's rate. The debt to the old rate, one buffer at most, is forgotten.
  func setRate(_ rate: UInt64?) {
    settings.rate = rate
    options = CurlOption.fixed(settings, shared: shared)
    bucket = rate.map { RateBucket(rate: $0, now: clock.monotonic()) }
  }

  func setShared(_ pace: SharedPace?) {
    shared = pace
    options = CurlOption.fixed(settings, shared: pace)
  }

  /// The option that is also changed for running hops.
  var lowSpeed: CurlOption { CurlOption.lowSpeed(settings, shared) }

  func refill(now: Instant) {
    bucket?.refill(now: now)
  }

  /// True when both rates, the client's and the shared one, let bytes pass.
  var mayTake: Bool { bucket?.isOpen ?? true && (!budget.isShared || budget.mayTake) }

  func spend(_ bytes: Int) {
    bucket?.spend(bytes)
    if budget.isShared { budget.spend(bytes, of: mirror) }
  }

  /// The milliseconds until the client's own bucket opens.
  var millisecondsToOpen: Int32 { bucket?.millisecondsToOpen ?? 0 }
}

/// Private origins that requests asked for by their own URLs. All clients of a thread share them, as they share its connections: the
/// first hop over a connection that is used again opens no socket. Network thread only.
final class PrivateOrigins {
  private static let most = 10_000
  private var origins: Set<Origin> = []

  func add(_ origin: Origin) {
    if origins.count >= Self.most { origins = [] }
    origins.insert(origin)
  }

  func contains(_ origin: Origin) -> Bool { origins.contains(origin) }
}
