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
  /// Quarters of a place that are taken, those of exchanges that wait for a shared place included.
  private var busy = 0
  /// Hops that found a bucket empty, in the order they asked.
  var throttled = Fifo<Hop>()
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
      perHost: settings.connectionsPerHost, keptForSmall: isNarrow ? 0 : terms.keptForSmall,
      mayShare: settings.connections > 1)
    bucket = settings.rate.map { RateBucket(rate: $0, now: clock.monotonic()) }
  }

  // MARK: Places

  /// The first in line that may run. It counts as running until its quarters are given back.
  func takeNext() -> WaitingLine<Exchange>.Taken? {
    let all = max(1, settings.connections) * WaitingLine<Exchange>.place
    guard let taken = line.takeNext(free: all - busy) else { return nil }
    busy += taken.quarters
    return taken
  }

  func giveBack(_ quarters: Int, of origin: Origin, as kind: WaitingLine<Exchange>.Kind) {
    busy -= quarters
    line.leave(origin, as: kind, quarters: quarters)
  }

  /// How a host answers, where an exchange of this client runs: as one of the streams of a connection, as the first by it.
  ///
  /// Shared places are connections only: who waits for one of them would keep the mirror's other hosts waiting.
  func note(_ head: ResponseHead, isStream: Bool, isNew: Bool, of origin: Origin) {
    guard budget == nil else { return }
    guard head.isLife else { return noteTrouble(of: origin) }
    line.note(origin, hasStreams: isStream, isNew: isNew)
  }

  /// A host is asked for no more at once than it has connections.
  func noteTrouble(of origin: Origin) { line.noteTrouble(origin) }

  // MARK: Turns

  func tookBytes(_ exchange: Exchange) {
    guard !exchange.isFresh else { return }
    exchange.isFresh = true
    fresh.append(exchange)
  }

  func endTurn() {
    for exchange in fresh {
      exchange.isFresh = false
      if !exchange.isEnded { exchange.receiver.turnEnded() }
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

  func refill(now: UInt64) {
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
