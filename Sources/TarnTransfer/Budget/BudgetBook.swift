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

/// Now, by both clocks, in nanoseconds.
struct BudgetTime: Sendable {
  var wall: Int64
  var monotonic: UInt64
}

/// Places and circuits of a `TransferBudget`: a value that decides, and collects whom to tell. Times are those of the
/// monotonic clock in nanoseconds.
///
/// A route is held in the queue exactly while its breaker lets nobody in, so that whoever the queue gives may go.
struct BudgetBook {
  typealias Place = TransferBudget.Place
  typealias Queue = FairQueue<Place, String, Route>

  /// A rest that is not longer is waited for, a longer one ends what waits.
  static let mostHeld: UInt64 = 5_000_000_000
  /// Routes that are remembered without anybody there.
  static let mostIdle = 1024

  private struct Entry {
    let route: Route
    let member: any BudgetMember
    /// nil while it waits.
    var ticket: CircuitBreaker.Ticket?
  }

  private struct Circuit {
    var breaker: CircuitBreaker
    var waiting: Set<Place> = []
    var running = 0
    var isHeld = false
    /// The host itself asked for the rest.
    var isAsked = false
    /// The last failure, for a person; nil when the last answer was one.
    var cause: String?

    var isIdle: Bool { running == 0 && waiting.isEmpty }
  }

  /// A route that is left alone.
  struct Rest: Equatable {
    var origin: Origin
    /// nil while a request tries whether the host is back.
    var until: UInt64?
  }

  private var queue: Queue
  private var entries: [Place: Entry] = [:]
  private var circuits: [Route: Circuit] = [:]
  /// Routes whose short rest somebody waits for.
  private var resting: Set<Route> = []
  private var lastPlace: Place = 0
  /// Beyond so many routes the idle ones are looked through: twice as many as the last time, so that it costs little.
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
    _ route: Route, mirror: String, priority: TransferPriority, isSmall: Bool, member: any BudgetMember,
    now: BudgetTime
  ) -> Place {
    lastPlace += 1
    let place = lastPlace
    entries[place] = Entry(route: route, member: member, ticket: nil)
    circuits[route, default: Circuit(breaker: CircuitBreaker(settings))].waiting.insert(place)
    queue.add(place, Queue.Request(mirror: mirror, host: route, priority: priority, isSmall: isSmall))
    settle(route, now)
    pump(now)
    return place
  }

  /// The request is over, whether it waited or ran.
  ///
  /// - Parameters:
  ///   - cause: what failed, for a person; no secrets, escaped.
  ///   - random: in 0..<1.
  mutating func leave(
    _ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil, now: BudgetTime, random: Double
  ) {
    guard let entry = entries.removeValue(forKey: place) else { return }
    let route = entry.route
    if let ticket = entry.ticket {
      queue.finish(place)
      circuits[route]?.running -= 1
      circuits[route]?.breaker.report(ticket, outcome, now: now.monotonic, random: random)
      if outcome != .cancelled {
        circuits[route]?.isAsked = outcome.isRequest
        circuits[route]?.cause = cause
      }
    } else {
      queue.remove(place)
      circuits[route]?.waiting.remove(place)
    }
    settle(route, now)
    pump(now)
    forget(route, now: now.monotonic)
  }

  /// The host of a running request has answered: who waits for that need not wait for the body.
  mutating func answered(_ place: Place, now: BudgetTime) {
    guard let entry = entries[place], let ticket = entry.ticket,
      circuits[entry.route]?.breaker.state == .halfOpen
    else { return }
    circuits[entry.route]?.breaker.report(ticket, .answered, now: now.monotonic, random: 0)
    settle(entry.route, now)
    pump(now)
  }

  /// Lets in whom time lets in.
  mutating func look(now: BudgetTime) {
    for route in resting { settle(route, now) }
    pump(now)
  }

  /// Somebody wants it now: one request may try each host that failed. What asked to be left alone is.
  mutating func tryNow(now: BudgetTime) {
    for (route, circuit) in circuits where !circuit.isAsked {
      circuits[route]?.breaker.tryNow(now: now.monotonic)
      settle(route, now)
    }
    pump(now)
  }

  mutating func setLimits(_ limits: Queue.Limits, now: BudgetTime) {
    queue.setLimits(limits)
    pump(now)
  }

  /// Nanoseconds until `look` may let somebody in; nil when that does not hang on time.
  func wait(now: UInt64) -> UInt64? {
    resting.compactMap { circuits[$0]?.breaker.wait(now: now) }.min()
  }

  /// Routes that are left alone, in the order of their hosts.
  func rests(now: UInt64) -> [Rest] {
    circuits.compactMap { route, circuit -> Rest? in
      switch circuit.breaker.state {
      case .closed: nil
      case .halfOpen: Rest(origin: route.origin, until: nil)
      case .open(let until): until > now ? Rest(origin: route.origin, until: until) : nil
      }
    }.sorted { ($0.origin.text, $0.until ?? 0) < ($1.origin.text, $1.until ?? 0) }
  }

  // MARK: - Circuits

  /// Brings the queue in line with a route's breaker.
  private mutating func settle(_ route: Route, _ now: BudgetTime) {
    guard let circuit = circuits[route] else { return }
    switch circuit.breaker.state {
    case .closed: hold(false, route)
    case .halfOpen: hold(true, route)
    case .open(let until):
      hold(until > now.monotonic, route)
      guard until > now.monotonic, !circuit.waiting.isEmpty else { break }
      if until - now.monotonic <= Self.mostHeld {
        resting.insert(route)
        return
      }
      refuse(route, until: until, now)
    }
    resting.remove(route)
  }

  private mutating func hold(_ isHeld: Bool, _ route: Route) {
    guard circuits[route]?.isHeld != isHeld else { return }
    circuits[route]?.isHeld = isHeld
    queue.setHeld(isHeld, host: route)
  }

  /// Ends all that waits for a route.
  private mutating func refuse(_ route: Route, until: UInt64, _ now: BudgetTime) {
    guard let circuit = circuits[route] else { return }
    let rest = until - now.monotonic
    let end = Timestamp(nanoseconds: now.wall).adding(seconds: Int64(clamping: rest / 1_000_000_000))
    let why = circuit.isAsked ? "asked to be left alone" : "failed again and again, and is left alone"
    let cause = circuit.isAsked ? "" : circuit.cause.map { ": \($0)" } ?? ""
    var failure = DownloadFailure(
      .hostResting, "\(Printable.escape(route.origin.hostAndPort)) \(why) until \(end.rfc3339)\(cause)",
      isTransient: true, retryAfter: Int64(clamping: (rest + 999_999_999) / 1_000_000_000))
    failure.isAsked = circuit.isAsked
    for place in circuit.waiting.sorted() {
      guard let entry = entries.removeValue(forKey: place) else { continue }
      queue.remove(place)
      notices.append((entry.member, .refused(place, failure)))
    }
    circuits[route]?.waiting = []
  }

  /// Gives the free places away.
  private mutating func pump(_ now: BudgetTime) {
    while let (place, request) = queue.take() {
      let route = request.host
      guard let entry = entries[place], let ticket = circuits[route]?.breaker.admit(now: now.monotonic) else {
        // It cannot be: a route without a right to go is held.
        hold(true, route)
        queue.finish(place)
        queue.add(place, request)
        continue
      }
      entries[place]?.ticket = ticket
      circuits[route]?.waiting.remove(place)
      circuits[route]?.running += 1
      if circuits[route]?.breaker.state == .halfOpen { hold(true, route) }
      notices.append((entry.member, .granted(place)))
    }
  }

  /// Forgets a route that nothing is known of. When there are too many, also those with a few failures, and those whose
  /// rest is over: a feed may name hosts without end.
  private mutating func forget(_ route: Route, now: UInt64) {
    if let circuit = circuits[route], circuit.isIdle, circuit.breaker.isFresh { circuits[route] = nil }
    guard circuits.count > mostKept else { return }
    for (route, circuit) in circuits where circuit.isIdle && circuit.breaker.wait(now: now) == 0 {
      hold(false, route)
      circuits[route] = nil
    }
    mostKept = max(Self.mostIdle, circuits.count * 2)
  }
}
