import TarnCore
import TarnRuntime

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
  fileprivate func timestamp(of instant: Instant) -> Timestamp {
    wall.adding(seconds: instant.remaining(at: monotonic).components.seconds)
  }
}

/// Places and circuits of a `TransferBudget`: it decides, and collects whom to tell. The time is handed in (`now`).
///
/// Each mirror has a circuit of its own at each route, so that one that fails keeps no other from a host that answers it. The queue
/// holds back who waits at a circuit while its breaker lets nobody in, so that whoever the queue gives may go.
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

  private final class Entry {
    let circuit: Circuit
    let member: any BudgetMember
    /// nil while it waits.
    var ticket: CircuitBreaker.Ticket?

    init(_ circuit: Circuit, _ member: any BudgetMember) { (self.circuit, self.member) = (circuit, member) }
  }

  /// A wish of before this process.
  private struct Remembered {
    var until: Timestamp
    /// Somebody wants it now: one request may try.
    var mayTry = false
  }

  private final class Circuit {
    let gate: Gate
    var breaker: CircuitBreaker
    var waiting = 0
    var running = 0
    /// The queue lets nobody in.
    var isHeld = false
    /// Until then the host itself asked for the rest, by both clocks as they went then: the breaker may be open for less. nil where
    /// it did not.
    var asked: Moment?
    /// The last failure, for a person; nil when the last answer was one.
    var cause: String?

    init(_ gate: Gate, _ settings: CircuitBreaker.Settings) {
      self.gate = gate
      breaker = CircuitBreaker(settings)
    }

    /// Until when its wish, which ends by its time, still holds.
    func wish(at now: Instant) -> Instant? { asked.flatMap { $0.monotonic > now ? $0.monotonic : nil } }

    var isIdle: Bool { running == 0 && waiting == 0 }
  }

  var now = Moment(wall: Timestamp(nanoseconds: 0), monotonic: Instant())
  private(set) var queue: Queue
  /// Where the feeds of the settings' mirrors are.
  private var feeds: [String: Origin] = [:]
  /// Whose feeds are there, and who has a circuit there.
  private var users: [Origin: Set<String>] = [:]
  private var entries: [Place: Entry] = [:]
  private var circuits: [Gate: Circuit] = [:]
  /// When a rest that somebody waits for is over; nothing is due before.
  private var due = Instant.distantFuture
  private var lastNumber: UInt64 = 0
  /// By mirror: what hosts asked for before this process began, and that were not asked since.
  private var remembered: [String: [Origin: Remembered]] = [:]
  /// Beyond so many circuits the idle ones are looked through: twice as many as the last time, so that it costs little.
  private var mostKept = Self.mostIdle
  private var priorities: [String: TransferPriority] = [:]
  private let settings: CircuitBreaker.Settings
  private let random: any RandomSource
  private var notices: [(member: any BudgetMember, notice: BudgetNotice)] = []
  private var isAsked = false

  init(_ limits: PlaceLimits, breaker settings: CircuitBreaker.Settings, random: any RandomSource) {
    queue = Queue(limits)
    (self.settings, self.random) = (settings, random)
  }

  /// Routes that are remembered.
  var routeCount: Int { circuits.count }

  /// Whom to tell what, in order; and whether a host has asked to be left alone since the last call.
  mutating func takeNews() -> (notices: [(member: any BudgetMember, notice: BudgetNotice)], isAsked: Bool) {
    guard isAsked || !notices.isEmpty else { return ([], false) }
    defer { (notices, isAsked) = ([], false) }
    return (notices, isAsked)
  }

  // MARK: - In and out

  /// - Parameter own: its limits; small files have places of their own where it may fill a host's places.
  mutating func open(_ own: ConnectionLimits) -> UInt64 {
    lastNumber += 1
    // Large files that wait for the shared places must not fill the mirror's own, or its small ones would not come to theirs. A mirror
    // that may have fewer than there are does not fill them.
    let isNarrow = own.perHost < queue.limits.perHost
    queue.open(
      lastNumber,
      PlaceLimits(
        total: own.total, perHost: own.perHost, keptForSmall: isNarrow ? 0 : queue.limits.keptForSmall))
    return lastNumber
  }

  mutating func close(_ client: UInt64) { queue.close(client) }

  /// Asks for a place; the answer is among the notices, at once or later.
  ///
  /// - Parameters:
  ///   - request: what is not urgent has its mirror's priority.
  ///   - order: the first place of one that had one before: it came then.
  mutating func enter(
    _ request: Queue.Request, order: Place? = nil, member: any BudgetMember
  ) -> Place {
    var request = request
    if request.priority != .urgent { request.priority = priorities[request.mirror] ?? .normal }
    lastNumber += 1
    let place = lastNumber
    let circuit = circuit(Gate(route: request.host, mirror: request.mirror))
    entries[place] = Entry(circuit, member)
    circuit.waiting += 1
    queue.add(place, request, order: order ?? place)
    queue.setShared(isShared(request.host.origin), host: request.host)
    settle(circuit)
    pump()
    return place
  }

  /// The request is over, whether it waited or ran.
  ///
  /// - Parameter cause: what failed, for a person; no secrets, escaped.
  mutating func leave(_ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    guard let entry = entries.removeValue(forKey: place) else { return }
    let circuit = entry.circuit
    if case .asked = outcome { isAsked = true }
    if let ticket = entry.ticket {
      queue.finish(place)
      circuit.running -= 1
      let isSuspect = outcome == .transportFailed && isOpenForOthers(circuit.gate)
      let isNews = circuit.breaker.report(
        ticket, outcome, isSuspect: isSuspect, now: now.monotonic,
        random: outcome == .answered ? 0 : random.unit())
      if outcome != .cancelled, isNews {
        note(outcome, circuit)
        circuit.cause = cause
      }
    } else {
      queue.remove(place)
      circuit.waiting -= 1
    }
    settle(circuit)
    pump()
    forget()
  }

  /// A wish ends with an answer: it is never made shorter by another one, and a connection that fails is no answer.
  private func note(_ outcome: CircuitBreaker.Outcome, _ circuit: Circuit) {
    switch outcome {
    case .asked(let seconds):
      let seconds = max(0, min(seconds, Self.longestWish))
      let until = now.monotonic + .seconds(seconds)
      if let before = circuit.asked, before.monotonic >= until { return }
      circuit.asked = Moment(wall: now.wall.adding(seconds: seconds), monotonic: until)
    case .answered: circuit.asked = nil
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
  mutating func giveWay(_ place: Place, isForOthers: Bool = false) -> Bool {
    guard case .ended(let next) = queue.handOver(place, isForOthers: isForOthers) else { return false }
    if let next { grant(next.id) }
    leave(place, .cancelled)
    return true
  }

  /// A stream that runs turns out to be long.
  mutating func outgrow(_ place: Place) { if queue.outgrow(place) { pump() } }

  /// Another mirror found the host dead: then one failure says as much as several.
  private func isOpenForOthers(_ gate: Gate) -> Bool {
    circuits.values.contains {
      $0.gate.route == gate.route && $0.gate.mirror != gate.mirror && $0.wish(at: now.monotonic) == nil
        && $0.breaker.state != .closed
    }
  }

  /// The host of a running request has answered: who waits for that need not wait for the body.
  ///
  /// - Parameters:
  ///   - isStream: as one of the streams of a connection.
  ///   - isNew: by a connection that was opened for it.
  mutating func answered(_ place: Place, isStream: Bool = false, isNew: Bool = false) {
    queue.heard(place)
    queue.note(place, isStream: isStream, isNew: isNew)
    guard let entry = entries[place], let ticket = entry.ticket, entry.circuit.breaker.state == .halfOpen
    else { return }
    if entry.circuit.breaker.report(ticket, .answered, now: now.monotonic, random: 0) {
      (entry.circuit.asked, entry.circuit.cause) = (nil, nil)
    }
    settle(entry.circuit)
    pump()
  }

  /// The host of a running request had trouble with it.
  mutating func meet(_ trouble: StreamLimit.Trouble, _ place: Place) { queue.meet(trouble, place) }

  /// Lets in whom time lets in, and more streams where some were answered: not at once, for their number is to grow no faster than is
  /// heard of the connections that they need.
  ///
  /// - Returns: when it may be of use again; nil when that does not hang on time.
  mutating func look() -> Duration? {
    if now.monotonic >= due {
      due = .distantFuture
      for circuit in circuits.values where circuit.waiting > 0 { settle(circuit) }
    }
    pump()
    return due == .distantFuture ? nil : due.remaining(at: now.monotonic)
  }

  /// Somebody wants it now: one request of that mirror may try each host that rests, also one that asked for it.
  mutating func tryNow(_ mirror: String) {
    for host in remembered[mirror, default: [:]].keys { remembered[mirror]?[host]?.mayTry = true }
    for circuit in circuits.values where circuit.gate.mirror == mirror {
      circuit.breaker.tryNow(now: now.monotonic)
      settle(circuit)
    }
    pump()
  }

  /// Seconds for which the host of a mirror's feed has asked that mirror to leave it alone; nil where it has not.
  func askedRest(_ mirror: String) -> Int64? {
    guard let origin = feeds[mirror] else { return nil }
    return circuits.values.filter { $0.gate.mirror == mirror && $0.gate.route.origin == origin }
      .compactMap { $0.wish(at: now.monotonic) }.max().map { ($0 - now.monotonic).wholeSeconds }
  }

  /// Seconds for which a mirror leaves a host alone, from now on; nil where it may ask.
  func rest(at route: Route, mirror: String) -> Int64? {
    guard case .open(let until) = circuits[Gate(route: route, mirror: mirror)]?.breaker.state,
      until > now.monotonic
    else { return nil }
    return (until - now.monotonic).wholeSeconds
  }

  /// What hosts asked a mirror for, by mirror, in the order of the hosts' names.
  func wishes() -> [String: [TransferBudget.Wish]] {
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
  mutating func remember(_ origin: Origin, mirror: String, until: Timestamp) {
    let isKnown = circuits.keys.contains { $0.mirror == mirror && $0.route.origin == origin }
    guard !isKnown, until > now.wall else { return }
    // A clock that was set back does not make it longer.
    let most = now.wall.adding(seconds: Self.longestWish)
    remembered[mirror, default: [:]][origin] = Remembered(until: min(until, most))
  }

  /// The mirrors that there are, and where the feed of each is; nil where that is no host.
  mutating func setMirrors(_ mirrors: [String: Origin?]) {
    feeds = mirrors.compactMapValues { $0 }
    users = [:]
    for (mirror, origin) in feeds { users[origin, default: []].insert(mirror) }
    for gate in circuits.keys where mirrors[gate.mirror] != nil {
      users[gate.route.origin, default: []].insert(gate.mirror)
    }
    remembered = remembered.filter { mirrors[$0.key] != nil }
    queue.setShared(mirrors.count > 1)
    for route in Set(circuits.keys.map(\.route)) { queue.setShared(isShared(route.origin), host: route) }
    pump()
  }

  /// More than one mirror uses it, by their settings or by what they asked for so far.
  private func isShared(_ origin: Origin) -> Bool { users[origin].map { $0.count > 1 } ?? false }

  mutating func setLimits(_ limits: PlaceLimits) {
    queue.setLimits(limits)
    pump()
  }

  mutating func setPriority(_ priority: TransferPriority, mirror: String) {
    priorities[mirror] = priority == .normal ? nil : priority
  }

  /// Hosts that some mirror leaves alone, in their order; each once for those that it asked and once for those that it failed,
  /// with the longest rest.
  var resting: [TransferBudget.Snapshot.Resting] {
    typealias Resting = TransferBudget.Snapshot.Resting
    let all = circuits.values.compactMap { circuit -> Resting? in
      let wish = circuit.wish(at: now.monotonic)
      var rest = Resting(host: circuit.gate.route.origin.text, mirrors: [circuit.gate.mirror])
      (rest.isAsked, rest.askedUntil) = (wish != nil, wish.map { now.timestamp(of: $0) })
      switch circuit.breaker.state {
      case .closed: return nil
      case .halfOpen: return rest
      case .open(let until):
        (rest.until, rest.monotonicUntil) = (now.timestamp(of: until), until)
        return until > now.monotonic ? rest : nil
      }
    }
    let alike = Dictionary(grouping: all) { RestKey(host: $0.host, isAsked: $0.isAsked) }
    return alike.values.compactMap { rests in
      var longest = rests.max { $0.order < $1.order }
      longest?.mirrors = Set(rests.flatMap(\.mirrors)).sorted()
      return longest
    }
    .sorted { ($0.host, $0.isAsked ? 0 : 1) < ($1.host, $1.isAsked ? 0 : 1) }
  }

  private struct RestKey: Hashable {
    var host: String
    var isAsked: Bool
  }

  // MARK: - Circuits

  private mutating func circuit(_ gate: Gate) -> Circuit {
    if let circuit = circuits[gate] { return circuit }
    let circuit = Circuit(gate, settings)
    circuits[gate] = circuit
    users[gate.route.origin, default: []].insert(gate.mirror)
    guard let wish = remembered[gate.mirror]?.removeValue(forKey: gate.route.origin),
      wish.until > now.wall, let ticket = circuit.breaker.admit(now: now.monotonic)
    else { return circuit }
    // The clock may have been set back since it was remembered.
    let left = min((wish.until - now.wall).wholeSeconds, Self.longestWish)
    circuit.breaker.report(ticket, .asked(retryAfter: left), now: now.monotonic, random: 0)
    if wish.mayTry { circuit.breaker.tryNow(now: now.monotonic) }
    note(.asked(retryAfter: left), circuit)
    return circuit
  }

  /// Brings the queue in line with a breaker.
  private mutating func settle(_ circuit: Circuit) {
    var isHeld = circuit.breaker.state == .halfOpen
    if case .open(let until) = circuit.breaker.state, until > now.monotonic {
      isHeld = true
      if circuit.waiting > 0, until - now.monotonic > Self.mostHeld {
        refuse(circuit, until: until)
      } else if circuit.waiting > 0 {
        due = min(due, until)
      }
    }
    guard isHeld != circuit.isHeld else { return }
    circuit.isHeld = isHeld
    queue.setHeld(isHeld, mirror: circuit.gate.mirror, host: circuit.gate.route)
  }

  /// Ends all that waits at a circuit.
  private mutating func refuse(_ circuit: Circuit, until: Instant) {
    let wish = circuit.wish(at: now.monotonic)
    let rest = max(until, wish ?? until) - now.monotonic
    // Kept as the reason of a problem for as long as nobody tries again: it says no time.
    let why = wish != nil ? "asked to be left alone" : "failed again and again, and was left alone"
    let cause = wish != nil ? "" : circuit.cause.map { ": \($0)" } ?? ""
    var failure = DownloadFailure(
      .hostResting, "\(Printable.escape(circuit.gate.route.origin.hostAndPort)) \(why)\(cause)",
      isTransient: true, retryAfter: rest.wholeSeconds)
    failure.isAsked = wish != nil
    let waiting = entries.filter { $0.value.circuit === circuit && $0.value.ticket == nil }
    for (place, entry) in waiting.sorted(by: { $0.key < $1.key }) {
      entries[place] = nil
      queue.remove(place)
      notices.append((entry.member, .refused(place, failure)))
    }
    circuit.waiting = 0
  }

  /// Gives the free places away.
  private mutating func pump() {
    while let (place, _) = queue.take() { grant(place) }
  }

  /// What the queue let in may go.
  private mutating func grant(_ place: Place) {
    // There is a ticket: the queue holds back who has no right to go.
    guard let entry = entries[place], let ticket = entry.circuit.breaker.admit(now: now.monotonic) else {
      queue.finish(place)
      return
    }
    entry.ticket = ticket
    entry.circuit.waiting -= 1
    entry.circuit.running += 1
    if entry.circuit.breaker.state == .halfOpen { settle(entry.circuit) }
    notices.append((entry.member, .granted(place)))
  }

  /// Forgets circuits when there are too many, also those with a few failures, and those whose rest is over: a feed may name hosts
  /// without end.
  private mutating func forget() {
    guard circuits.count > mostKept else { return }
    for (gate, circuit) in circuits where circuit.isIdle && circuit.breaker.wait(now: now.monotonic) == .zero
    {
      circuits[gate] = nil
      if feeds[gate.mirror] != gate.route.origin { users[gate.route.origin]?.remove(gate.mirror) }
      if circuit.isHeld { queue.setHeld(false, mirror: gate.mirror, host: gate.route) }
    }
    users = users.filter { !$0.value.isEmpty }
    mostKept = max(Self.mostIdle, circuits.count * 2)
  }
}

extension TransferBudget.Snapshot.Resting {
  /// By the end of both: nobody knows it while a request tries whether the host is back.
  fileprivate var order: (Timestamp, Instant) {
    let end = until.map { max($0, askedUntil ?? $0) }
    return (end ?? Timestamp(nanoseconds: 0), monotonicUntil ?? Instant())
  }
}
