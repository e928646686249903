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
  let budget: TransferBudget?
  /// The same, or what keeps requests from hosts that do not answer.
  let circuits: TransferBudget
  /// The feed's own origin.
  let trusted: Origin?
  /// Of every hop.
  private(set) var options: [CurlOption] {
    didSet { optionsNumber &+= 1 }
  }
  /// Another one whenever the options change.
  private(set) var optionsNumber: UInt64 = 0
  /// Those that wait for a place of this client.
  var line: WaitingLine<Exchange>
  /// Hops that found a bucket empty, in the order they asked.
  var throttled = Deque<Hop>()
  private var shared: SharedPace?
  private var bucket: RateBucket?
  let dates = HeaderDates()
  /// Those that took bytes in this turn.
  private var fresh: [Exchange] = []

  init(
    _ id: ClientID, settings: NetworkSettings, mirror: String, clock: any Clock, budget: TransferBudget?,
    circuits: TransferBudget, terms: TransferBudget.Terms
  ) {
    self.id = id
    self.settings = settings
    self.mirror = mirror
    self.clock = clock
    self.budget = budget
    self.circuits = circuits
    shared = terms.pace
    options = CurlOption.fixed(settings, shared: terms.pace)
    trusted = settings.credentialOrigin.flatMap { try? SourceURL($0) }?.origin
    // Large files that wait for the shared places must not fill the mirror's own, or its small ones would not come to
    // theirs. A mirror that may have fewer than there are does not fill them.
    let isNarrow = settings.connectionsPerHost < terms.limits.perHost
    line = WaitingLine(
      total: settings.connections, perHost: settings.connectionsPerHost,
      keptForSmall: isNarrow ? 0 : terms.keptForSmall)
    bucket = settings.rate.map { RateBucket(rate: $0, now: clock.monotonic()) }
  }

  // MARK: Places

  /// How a host answers, where an exchange of this client runs: as one of the streams of a connection, as the first by it.
  func note(_ head: ResponseHead, isStream: Bool, isNew: Bool, of origin: Origin) {
    guard head.isLife else {
      return line.meet([429, 503].contains(head.status) ? .overload : .fault, at: origin)
    }
    line.note(origin, isStream: isStream, isNew: isNew)
  }

  /// A stream has brought more than a short file has.
  func outgrow(_ exchange: Exchange) {
    exchange.hold = line.outgrow(exchange.url.origin)
    if let place = exchange.place { circuits.outgrow(place) }
  }

  /// An exchange of this client's got no answer, or not all of it.
  func noteTrouble(of origin: Origin) { line.meet(.overload, at: origin) }

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
  var mayTake: Bool { bucket?.isOpen ?? true && budget?.mayTake ?? true }

  func spend(_ bytes: Int) {
    bucket?.spend(bytes)
    budget?.spend(bytes)
  }

  /// Until its own bucket opens.
  var millisecondsToOpen: Int32 { bucket?.millisecondsToOpen ?? 0 }
}
