import TarnCore

/// What a budget tells the thread whose request it is about.
enum BudgetNotice: Sendable, Equatable {
  case granted(TransferBudget.Place)
  /// It waits no more: the host rests.
  case refused(TransferBudget.Place, DownloadFailure)
}

/// Who asks a budget for places: a network thread. Any thread calls, never under the budget's lock; must not block.
protocol BudgetMember: AnyObject, Sendable {
  func hear(_ notice: BudgetNotice)
  /// Limits or the rate are others now.
  func look()
}

/// Where a request goes: a host, through a proxy or not. A proxy that fails says nothing about a host that others reach
/// without it.
struct Route: Hashable, Sendable {
  let origin: Origin
  let proxy: String?
}

extension Moment {
  /// In whole seconds from now on; now for what is over.
  func timestamp(of instant: Instant) -> Timestamp {
    wall.adding(seconds: instant.remaining(at: monotonic).components.seconds)
  }
}

/// Places and circuits of a `TransferBudget`: a value that decides, and collects whom to tell. The time is handed in.
///
/// A host that several mirrors use, by their settings or by what they asked for so far, keeps its last free place for a mirror
/// that has none there (`FairQueue`).
///
/// Each mirror has a circuit of its own at each route, so that one that fails keeps no other from a host that answers it. Who
/// waits at a circuit stands in the queue exactly while its breaker lets somebody in, so that whoever the queue gives may go.
struct BudgetState {
  typealias Place = TransferBudget.Place
  typealias Queue = FairQueue<Place, String, Route>

  /// A rest that is not longer is waited for, a longer one ends what waits.
  static let mostHeld = Duration.seconds(5)
  /// Routes that are remembered without anybody there.
  static let mostIdle = 1024

  private struct Gate: Hashable {
    let route: Route
    let mirror: String
  }

  private struct Entry {
    let gate: Gate
    let request: Queue.Request
    let member: any BudgetMember
    /// nil while it waits.
    var ticket: CircuitBreaker.Ticket?
  }

  /// A wish of before this process.
  private struct Remembered {
    var until: Timestamp
    /// Somebody wants it now: one request may try.
    var mayTry = false
  }

  private struct Circuit {
    var breaker: CircuitBreaker
    var waiting: Set<Place> = []
    var running = 0
    var isHeld = false
    /// Until then the host itself asked for the rest, by both clocks as they went then: the breaker may be open for less. nil where
    /// it did not.
    var asked: Moment?
    /// The last failure, for a person; nil when the last answer was one.
    var cause: String?

    /// Until when its wish, which ends by its time, still holds.
    func wish(at now: Instant) -> Instant? { asked.flatMap { $0.monotonic > now ? $0.monotonic : nil } }

    var isIdle: Bool { running == 0 && waiting.isEmpty }
  }

  /// A route that is left alone.
  struct Rest: Equatable {
    var origin: Origin
    /// nil while a request tries whether the host is back.
    var until: Instant?
    /// The host itself asked for it, until then; nil where it did not.
    var askedUntil: Instant?
    /// Those that leave it alone, in their order.
    var mirrors: [String] = []

    /// Until both are over.
    var end: Instant { until.map { max($0, askedUntil ?? $0) } ?? Instant() }
  }

  private var queue: Queue
  private var sharedHosts = SharedHosts()
  private var entries: [Place: Entry] = [:]
  private var circuits: [Gate: Circuit] = [:]
  /// Where somebody waits for a short rest.
  private var resting: Set<Gate> = []
  private var lastPlace: Place = 0
  /// By mirror: what hosts asked for before this process began, and that were not asked since.
  private var remembered: [String: [Origin: Remembered]] = [:]
  /// Beyond so many circuits the idle ones are looked through: twice as many as the last time, so that it costs little.
  private var mostKept = Self.mostIdle
  private let settings: CircuitBreaker.Settings
  /// Whom to tell what, in order; the caller empties it.
  private var notices: [(member: any BudgetMember, notice: BudgetNotice)] = []

  init(_ limits: Queue.Limits, breaker settings: CircuitBreaker.Settings) {
    queue = Queue(limits)
    self.settings = settings
  }

  var limits: Queue.Limits { queue.limits }
  var waitingCount: Int { queue.waitingCount }
  var runningCount: Int { queue.runningCount }
  /// Routes that are remembered.
  var routeCount: Int { circuits.count }

  mutating func takeNotices() -> [(member: any BudgetMember, notice: BudgetNotice)] {
    defer { notices = [] }
    return notices
  }

  // MARK: - In and out

  /// Asks for a place; the answer is among the notices, at once or later.
  mutating func enter(
    _ route: Route, mirror: String, priority: TransferPriority, isSmall: Bool, isStream: Bool = false,
    member: any BudgetMember, now: Moment
  ) -> Place {
    lastPlace += 1
    let place = lastPlace
    let gate = Gate(route: route, mirror: mirror)
    let request = Queue.Request(
      mirror: mirror, host: route, priority: priority, isSmall: isSmall, isStream: isStream)
    entries[place] = Entry(gate: gate, request: request, member: member, ticket: nil)
    sharedHosts.note(mirror, at: route.origin)
    if circuits[gate] == nil { circuits[gate] = circuit(gate, now) }
    circuits[gate]?.waiting.insert(place)
    if circuits[gate]?.isHeld == false { line(place, request) }
    settle(gate, now)
    pump(now)
    return place
  }

  /// The request is over, whether it waited or ran.
  ///
  /// - Parameters:
  ///   - cause: what failed, for a person; no secrets, escaped.
  ///   - random: in 0..<1.
  mutating func leave(
    _ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil, now: Moment, random: Double
  ) {
    guard let entry = entries.removeValue(forKey: place) else { return }
    let gate = entry.gate
    if let ticket = entry.ticket {
      queue.finish(place)
      circuits[gate]?.running -= 1
      let isSuspect = outcome == .transportFailed && isOpenForOthers(gate, now: now.monotonic)
      let isNews = circuits[gate]?.breaker.report(
        ticket, outcome, isSuspect: isSuspect, now: now.monotonic, random: random)
      if outcome != .cancelled, isNews == true {
        note(outcome, gate, now)
        circuits[gate]?.cause = cause
      }
    } else {
      queue.remove(place)
      circuits[gate]?.waiting.remove(place)
    }
    settle(gate, now)
    pump(now)
    forget(gate, now: now.monotonic)
  }

  /// A wish ends with an answer: it is never made shorter by another one, and a connection that fails is no answer.
  private mutating func note(_ outcome: CircuitBreaker.Outcome, _ gate: Gate, _ now: Moment) {
    switch outcome {
    case .asked(let seconds):
      let seconds = max(0, min(seconds, Self.longestWish))
      let until = now.monotonic + .seconds(seconds)
      if let before = circuits[gate]?.asked, before.monotonic >= until { return }
      circuits[gate]?.asked = Moment(wall: now.wall.adding(seconds: seconds), monotonic: until)
    case .answered: circuits[gate]?.asked = nil
    case .transportFailed, .harmed, .cancelled: break
    }
  }

  /// Seconds.
  private static let longestWish = CurlLimits.retryAfter

  /// A running request that receives nothing is over if its place is wanted by a mirror that has none there, which gets it
  /// (`FairQueue.handOver`). That says nothing of the host.
  ///
  /// - Parameter isForOthers: not for mirrors that gave way there themselves.
  /// - Returns: false when it is not wanted, and the request goes on.
  mutating func giveWay(_ place: Place, isForOthers: Bool, now: Moment) -> Bool {
    guard let entry = entries[place], let ticket = entry.ticket,
      case .ended(let next) = queue.handOver(place, isForOthers: isForOthers)
    else { return false }
    entries[place] = nil
    circuits[entry.gate]?.running -= 1
    circuits[entry.gate]?.breaker.report(ticket, .cancelled, now: now.monotonic, random: 0)
    if let next { grant(next.id, now) }
    settle(entry.gate, now)
    pump(now)
    forget(entry.gate, now: now.monotonic)
    return true
  }

  /// A stream that runs turns out to be long.
  mutating func outgrow(_ place: Place, now: Moment) {
    queue.outgrow(place)
    pump(now)
  }

  /// Another mirror found the host dead: then one failure says as much as several.
  private func isOpenForOthers(_ gate: Gate, now: Instant) -> Bool {
    circuits.contains { other, circuit in
      guard other.route == gate.route, other.mirror != gate.mirror, circuit.wish(at: now) == nil else {
        return false
      }
      return circuit.breaker.state != .closed
    }
  }

  /// The host of a running request has answered: who waits for that need not wait for the body.
  mutating func answered(_ place: Place, now: Moment) {
    queue.heard(place)
    guard let entry = entries[place], let ticket = entry.ticket,
      circuits[entry.gate]?.breaker.state == .halfOpen
    else { return }
    if circuits[entry.gate]?.breaker.report(ticket, .answered, now: now.monotonic, random: 0) == true {
      circuits[entry.gate]?.asked = nil
      circuits[entry.gate]?.cause = nil
    }
    settle(entry.gate, now)
    pump(now)
  }

  /// Lets in whom time lets in.
  mutating func look(now: Moment) {
    for gate in resting { settle(gate, now) }
    pump(now)
  }

  /// Somebody wants it now: one request of that mirror may try each host that rests, also one that asked for it.
  mutating func tryNow(_ mirror: String, now: Moment) {
    for host in remembered[mirror, default: [:]].keys { remembered[mirror]?[host]?.mayTry = true }
    for gate in circuits.keys where gate.mirror == mirror {
      circuits[gate]?.breaker.tryNow(now: now.monotonic)
      settle(gate, now)
    }
    pump(now)
  }

  /// Until when the host of a mirror's feed has asked that mirror to leave it alone; nil where it has not.
  func askedUntil(_ mirror: String) -> Instant? {
    guard let origin = sharedHosts.origin(of: mirror) else { return nil }
    return circuits.filter { $0.key.mirror == mirror && $0.key.route.origin == origin }.values
      .compactMap { $0.asked?.monotonic }.max()
  }

  /// Until when a mirror leaves a host alone; nil where it may ask.
  func restEnd(_ route: Route, mirror: String) -> Instant? {
    guard case .open(let until) = circuits[Gate(route: route, mirror: mirror)]?.breaker.state else {
      return nil
    }
    return until
  }

  /// What hosts asked a mirror for, by mirror, in the order of the hosts' names.
  func wishes(now: Moment) -> [String: [TransferBudget.Wish]] {
    var all = remembered.mapValues { wishes in
      wishes.mapValues(\.until).filter { $0.value > now.wall }
    }
    for (gate, circuit) in circuits {
      guard circuit.wish(at: now.monotonic) != nil, let wall = circuit.asked?.wall else { continue }
      let (mirror, origin) = (gate.mirror, gate.route.origin)
      all[mirror, default: [:]][origin] = max(wall, all[mirror]?[origin] ?? wall)
    }
    return all.mapValues { wishes in
      wishes.map { TransferBudget.Wish(host: $0.key.text, until: $0.value) }.sorted { $0.host < $1.host }
    }
  }

  /// What a host asked for before this process began: holds from the first request there on, whatever the way. What is known of it
  /// since counts more.
  mutating func remember(_ origin: Origin, mirror: String, until: Timestamp, now: Moment) {
    let isKnown = circuits.keys.contains { $0.mirror == mirror && $0.route.origin == origin }
    guard !isKnown, until > now.wall else { return }
    // A clock that was set back does not make it longer.
    let most = now.wall.adding(seconds: Self.longestWish)
    remembered[mirror, default: [:]][origin] = Remembered(until: min(until, most))
  }

  private mutating func circuit(_ gate: Gate, _ now: Moment) -> Circuit {
    var circuit = Circuit(breaker: CircuitBreaker(settings))
    guard let wish = remembered[gate.mirror]?.removeValue(forKey: gate.route.origin),
      wish.until > now.wall, let ticket = circuit.breaker.admit(now: now.monotonic)
    else { return circuit }
    // The clock may have been set back since it was remembered.
    let left = min((wish.until - now.wall).wholeSeconds, Self.longestWish)
    circuit.breaker.report(ticket, .asked(retryAfter: left), now: now.monotonic, random: 0)
    if wish.mayTry { circuit.breaker.tryNow(now: now.monotonic) }
    let until = now.monotonic + .seconds(left)
    circuit.asked = Moment(wall: now.wall.adding(seconds: left), monotonic: until)
    return circuit
  }

  /// The mirrors that there are, and where the feed of each is; nil where that is no host.
  mutating func setMirrors(_ mirrors: [String: Origin?], now: Moment) {
    sharedHosts.set(mirrors)
    remembered = remembered.filter { mirrors[$0.key] != nil }
    queue.setShared(mirrors.count > 1)
    for route in Set(circuits.keys.map(\.route)) {
      queue.setShared(sharedHosts.areSeveral(at: route.origin), host: route)
    }
    pump(now)
  }

  mutating func setLimits(_ limits: Queue.Limits, now: Moment) {
    queue.setLimits(limits)
    pump(now)
  }

  /// Until `look` may let somebody in; nil when that does not hang on time.
  func wait(now: Instant) -> Duration? {
    resting.compactMap { circuits[$0]?.breaker.wait(now: now) }.min()
  }

  /// Hosts that some mirror leaves alone, in their order; each once for those that it asked and once for those that it failed,
  /// with the longest rest.
  func rests(now: Instant) -> [Rest] {
    var rests: [RestKey: Rest] = [:]
    var mirrors: [RestKey: Set<String>] = [:]
    for (gate, circuit) in circuits {
      let rest: Rest
      let wish = circuit.wish(at: now)
      switch circuit.breaker.state {
      case .closed: continue
      case .halfOpen: rest = Rest(origin: gate.route.origin, until: nil, askedUntil: wish)
      case .open(let until):
        guard until > now else { continue }
        rest = Rest(origin: gate.route.origin, until: until, askedUntil: wish)
      }
      let key = RestKey(host: rest.origin.text, isAsked: wish != nil)
      let known = rests[key]
      mirrors[key, default: []].insert(gate.mirror)
      if known == nil || known?.end ?? Instant() < rest.end { rests[key] = rest }
    }
    for (key, names) in mirrors { rests[key]?.mirrors = names.sorted() }
    return rests.sorted { ($0.key.host, $0.key.isAsked ? 0 : 1) < ($1.key.host, $1.key.isAsked ? 0 : 1) }
      .map(\.value)
  }

  private struct RestKey: Hashable {
    var host: String
    var isAsked: Bool
  }

  // MARK: - Circuits

  /// Brings the queue in line with a breaker.
  private mutating func settle(_ gate: Gate, _ now: Moment) {
    guard let circuit = circuits[gate] else { return }
    switch circuit.breaker.state {
    case .closed: hold(false, gate)
    case .halfOpen: hold(true, gate)
    case .open(let until):
      hold(until > now.monotonic, gate)
      guard until > now.monotonic, !circuit.waiting.isEmpty else { break }
      if until - now.monotonic <= Self.mostHeld {
        resting.insert(gate)
        return
      }
      refuse(gate, until: until, now)
    }
    resting.remove(gate)
  }

  /// Those that wait leave the queue, or come back to it in their order.
  private mutating func hold(_ isHeld: Bool, _ gate: Gate) {
    guard let circuit = circuits[gate], circuit.isHeld != isHeld else { return }
    circuits[gate]?.isHeld = isHeld
    for place in circuit.waiting.sorted() {
      if isHeld {
        queue.remove(place)
      } else if let request = entries[place]?.request {
        line(place, request)
      }
    }
  }

  private mutating func line(_ place: Place, _ request: Queue.Request) {
    queue.add(place, request)
    queue.setShared(sharedHosts.areSeveral(at: request.host.origin), host: request.host)
  }

  /// Ends all that waits at a circuit.
  private mutating func refuse(_ gate: Gate, until: Instant, _ now: Moment) {
    guard let circuit = circuits[gate] else { return }
    let wish = circuit.wish(at: now.monotonic)
    let rest = max(until, wish ?? until) - now.monotonic
    // Kept as the reason of a problem for as long as nobody tries again: it says no time.
    let why = wish != nil ? "asked to be left alone" : "failed again and again, and was left alone"
    let cause = wish != nil ? "" : circuit.cause.map { ": \($0)" } ?? ""
    var failure = DownloadFailure(
      .hostResting, "\(Printable.escape(gate.route.origin.hostAndPort)) \(why)\(cause)",
      isTransient: true, retryAfter: rest.wholeSeconds)
    failure.isAsked = wish != nil
    for place in circuit.waiting.sorted() {
      guard let entry = entries.removeValue(forKey: place) else { continue }
      queue.remove(place)
      notices.append((entry.member, .refused(place, failure)))
    }
    circuits[gate]?.waiting = []
  }

  /// Gives the free places away.
  private mutating func pump(_ now: Moment) {
    while let (place, _) = queue.take() { grant(place, now) }
  }

  /// What the queue let in may go.
  private mutating func grant(_ place: Place, _ now: Moment) {
    guard let entry = entries[place] else {
      queue.finish(place)
      return
    }
    let gate = entry.gate
    guard let ticket = circuits[gate]?.breaker.admit(now: now.monotonic) else {
      // It cannot be: who has no right to go is not in the queue.
      queue.finish(place)
      hold(true, gate)
      return
    }
    entries[place]?.ticket = ticket
    circuits[gate]?.waiting.remove(place)
    circuits[gate]?.running += 1
    if circuits[gate]?.breaker.state == .halfOpen { hold(true, gate) }
    notices.append((entry.member, .granted(place)))
  }

  /// Forgets a circuit that nothing is known of. When there are too many, also those with a few failures, and those whose
  /// rest is over: a feed may name hosts without end.
  private mutating func forget(_ gate: Gate, now: Instant) {
    if let circuit = circuits[gate], circuit.isIdle, circuit.breaker.isFresh { circuits[gate] = nil }
    guard circuits.count > mostKept else { return }
    for (gate, circuit) in circuits where circuit.isIdle && circuit.breaker.wait(now: now) == .zero {
      circuits[gate] = nil
    }
    mostKept = max(Self.mostIdle, circuits.count * 2)
  }
}
