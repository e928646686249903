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

/// Places of a `TransferBudget`, hosts that fail and what they ask for: it decides, and collects whom to tell. The time is handed in
/// (`now`).
///
/// Each mirror has a circuit breaker of its own at each route, so that one that fails keeps no other from a host that answers it. The
/// queue holds back who waits while it lets nobody in, so that whoever the queue gives may go.
struct BudgetState {
  typealias Place = TransferBudget.Place
  typealias Queue = FairQueue<Place, String, Route>

  /// A rest that is not longer is waited for, a longer one ends what waits.
  static let mostHeld = Duration.seconds(5)
  /// Mirrors that are remembered at routes without anybody there.
  static let mostIdle = 1024
  /// Seconds.
  private static let longestWish = CurlLimits.retryAfter

  private struct MirrorHost: Hashable {
    let mirror: String
    let origin: Origin
  }

  /// What a host asked a mirror for.
  private struct Asked {
    var until: Timestamp
    /// The same by the monotonic clock, as both went then; nil where it asked before this process, and was not asked since.
    var instant: Instant?
    /// Somebody wants it now: one request may try.
    var mayTry = false

    /// It ends by its time.
    func holds(at now: Moment) -> Bool { instant.map { $0 > now.monotonic } ?? (until > now.wall) }
  }

  var now = Moment(wall: Timestamp(nanoseconds: 0), monotonic: Instant()) {
    didSet { queue.now = now.monotonic }
  }
  private(set) var queue: Queue
  /// Where the feeds of the settings' mirrors are.
  private var feeds: [String: Origin] = [:]
  private var members: [Place: any BudgetMember] = [:]
  /// When the first of the rests that are short enough to wait for is over.
  private var due = Instant.distantFuture
  /// Hosts answered or had trouble, of which the queue has not heard.
  private var hasHeard = false
  private var lastNumber: UInt64 = 0
  /// A breaker may be open for less.
  private var asked: [MirrorHost: Asked] = [:]
  /// Beyond so many of these the idle ones are looked through: twice as many as the last time, so that it costs little.
  private var mostKept = Self.mostIdle
  private var priorities: [String: TransferPriority] = [:]
  private let random: any RandomSource
  private var notices: [(member: any BudgetMember, notice: BudgetNotice)] = []
  private var isAsked = false

  init(_ limits: PlaceLimits, breaker: CircuitBreaker.Settings, random: any RandomSource) {
    queue = Queue(limits, breaker: breaker)
    self.random = random
  }

  /// Whom to tell what, in order; and whether a host has asked to be left alone since the last call.
  mutating func takeNews() -> (notices: [(member: any BudgetMember, notice: BudgetNotice)], isAsked: Bool) {
    guard isAsked || !notices.isEmpty else { return ([], false) }
    defer { (notices, isAsked) = ([], false) }
    return (notices, isAsked)
  }

  // MARK: - In and out

  /// - Parameter own: its limits; small files have places of their own where it may fill a host's places.
  mutating func open(_ own: PlaceLimits) -> UInt64 {
    lastNumber += 1
    // Large files that wait for the shared places must not fill the mirror's own, or its small ones would not come to theirs. A mirror
    // that may have fewer than there are does not fill them.
    let isNarrow = own.perHost < queue.limits.perHost
    let kept = isNarrow ? 0 : queue.limits.keptForSmall
    queue.open(lastNumber, PlaceLimits(total: own.total, perHost: own.perHost, keptForSmall: kept))
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
    members[place] = member
    let guest = queue.guest(request.mirror, at: request.host) ?? welcome(request)
    let mayGo = queue.add(place, request, order: order ?? place)
    settle(guest)
    if mayGo { pump() }
    return place
  }

  /// The request is over, whether it waited or ran.
  ///
  /// - Parameter cause: what failed, for a person; no secrets, escaped.
  mutating func leave(_ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    guard let entry = queue.end(place) else { return }
    if case .asked = outcome { isAsked = true }
    members[place] = nil
    report(entry, outcome, cause: cause)
    settle(entry.guest)
    pump()
    forget()
  }

  private mutating func report(_ entry: Queue.Entry, _ outcome: CircuitBreaker.Outcome, cause: String?) {
    guard let ticket = entry.seat?.ticket else { return }
    let guest = entry.guest
    let isSuspect = outcome == .transportFailed && isOpenForOthers(guest)
    let isNews = guest.breaker.report(
      ticket, outcome, isSuspect: isSuspect, now: now.monotonic,
      random: outcome == .answered ? 0 : random.unit())
    if outcome != .cancelled, isNews {
      note(outcome, guest)
      guest.cause = cause
    }
  }

  /// A wish ends with an answer: it is never made shorter by another one, and a connection that fails is no answer.
  private mutating func note(_ outcome: CircuitBreaker.Outcome, _ guest: Queue.Guest) {
    let host = MirrorHost(mirror: guest.mirror, origin: guest.host.origin)
    switch outcome {
    case .asked(let seconds):
      let seconds = max(0, min(seconds, Self.longestWish))
      let until = now.monotonic + .seconds(seconds)
      if let before = asked[host]?.instant, before >= until { return }
      asked[host] = Asked(until: now.wall.adding(seconds: seconds), instant: until)
    case .answered: if !asked.isEmpty { asked[host] = nil }
    case .transportFailed, .harmed, .cancelled: break
    }
  }

  /// For how long the host itself asked that mirror to leave it alone; nil where it did not, or that is over.
  private func wish(_ mirror: String, _ origin: Origin) -> Duration? {
    asked[MirrorHost(mirror: mirror, origin: origin)]?.instant.flatMap {
      $0 > now.monotonic ? $0 - now.monotonic : nil
    }
  }

  /// For how long a mirror leaves a host alone; nil while it may ask, or one request tries whether the host is back.
  private func rest(_ guest: Queue.Guest) -> Duration? {
    guest.breaker.wait(now: now.monotonic).flatMap { $0 > .zero ? $0 : nil }
  }

  /// A running request that receives nothing is over if its place is wanted by a mirror that has none there, which gets it
  /// (`FairQueue.handOver`). That says nothing of the host.
  ///
  /// - Parameter isForOthers: not for mirrors that gave way there themselves.
  /// - Returns: false when it is not wanted, and the request goes on.
  mutating func giveWay(_ place: Place, isForOthers: Bool = false) -> Bool {
    guard let (ended, next) = queue.handOver(place, isForOthers: isForOthers) else { return false }
    if let next { tell(next.id, .granted(next.id)) }
    members[place] = nil
    report(ended, .cancelled, cause: nil)
    pump()
    return true
  }

  /// A stream that runs turns out to be long.
  mutating func outgrow(_ place: Place) { if queue.outgrow(place) { pump() } }

  /// Another mirror found the host dead: then one failure says as much as several.
  private func isOpenForOthers(_ guest: Queue.Guest) -> Bool {
    queue.guests(at: guest.host).contains {
      $0 !== guest && $0.breaker.state != .closed && wish($0.mirror, $0.host.origin) == nil
    }
  }

  /// The host of a running request has answered: who waits for that need not wait for the body.
  ///
  /// - Parameters:
  ///   - isStream: as one of the streams of a connection.
  ///   - isNew: by a connection that was opened for it.
  mutating func answered(_ place: Place, isStream: Bool = false, isNew: Bool = false) {
    hasHeard = true
    queue.heard(place, isStream: isStream, isNew: isNew)
    guard let entry = queue[place], entry.guest.breaker.state == .halfOpen else { return }
    report(entry, .answered, cause: nil)
    pump()
  }

  /// The host of a running request had trouble with it.
  mutating func meet(_ trouble: StreamLimit.Trouble, _ place: Place) {
    hasHeard = true
    queue.meet(trouble, place)
  }

  /// Lets in whom time lets in, and more streams where some were answered: not at once, for their number is to grow no faster than is
  /// heard of the connections that they need.
  ///
  /// - Returns: when it may be of use again; nil when that does not hang on time.
  mutating func look() -> Duration? {
    if now.monotonic >= due {
      (due, hasHeard) = (.distantFuture, true)
      for guest in queue.guests { settle(guest) }
    }
    if hasHeard { pump() }
    return due == .distantFuture ? nil : due.remaining(at: now.monotonic)
  }

  mutating func tryNow(_ mirror: String) {
    for host in asked.keys where host.mirror == mirror { asked[host]?.mayTry = true }
    for guest in queue.guests where guest.mirror == mirror { guest.breaker.tryNow(now: now.monotonic) }
    pump()
  }

  func askedRest(_ mirror: String) -> Int64? { feeds[mirror].flatMap { wish(mirror, $0)?.wholeSeconds } }

  /// Seconds for which a mirror leaves a host alone, from now on; nil where it may ask.
  func rest(at route: Route, mirror: String) -> Int64? {
    queue.guest(mirror, at: route).flatMap { rest($0)?.wholeSeconds }
  }

  func wishes() -> [String: [TransferBudget.Wish]] {
    Dictionary(grouping: asked.filter { $0.value.holds(at: now) }, by: \.key.mirror).mapValues { wishes in
      wishes.map { TransferBudget.Wish(host: $0.key.origin.text, until: $0.value.until) }
        .sorted { $0.host < $1.host }
    }
  }

  /// It holds from the first request there on, whatever the way. What is known of it since counts more.
  mutating func remember(_ origin: Origin, mirror: String, until: Timestamp) {
    let isKnown = queue.guests.contains { $0.mirror == mirror && $0.host.origin == origin }
    guard !isKnown, until > now.wall else { return }
    // A clock that was set back does not make it longer.
    let most = now.wall.adding(seconds: Self.longestWish)
    asked[MirrorHost(mirror: mirror, origin: origin)] = Asked(until: min(until, most))
  }

  /// - Parameter mirrors: where the feed of each is; nil where that is no host.
  mutating func setMirrors(_ mirrors: [String: Origin?]) {
    feeds = mirrors.compactMapValues { $0 }
    asked = asked.filter { $0.value.instant != nil || mirrors[$0.key.mirror] != nil }
    for guest in queue.guests { guest.isExpected = mirrors[guest.mirror] != nil }
    queue.isShared = mirrors.count > 1
    for route in Set(queue.guests.map(\.host)) { share(route) }
    pump()
  }

  /// Keeps places where more than one mirror asks, by their settings or by what they asked for so far.
  private mutating func share(_ route: Route) {
    let known = queue.guests(at: route).filter(\.isExpected).map(\.mirror)
    let feeds = feeds.filter { $0.value == route.origin }.keys
    queue.setShared(Set(known).union(feeds).count > 1, host: route)
  }

  mutating func setLimits(_ limits: PlaceLimits) {
    queue.limits = limits
    pump()
  }

  mutating func setPriority(_ priority: TransferPriority, mirror: String) {
    priorities[mirror] = priority == .normal ? nil : priority
  }

  /// Hosts that some mirror leaves alone, in their order; each once for those that it asked and once for those that it failed,
  /// with the longest rest.
  var resting: [TransferBudget.Resting] {
    let all = queue.guests.compactMap { guest -> TransferBudget.Resting? in
      guard guest.breaker.wait(now: now.monotonic) != .zero else { return nil }
      let origin = guest.host.origin
      return TransferBudget.Resting(
        host: origin.text, until: rest(guest).map(timestamp),
        askedUntil: wish(guest.mirror, origin).map(timestamp),
        mirrors: [guest.mirror])
    }
    var told: [TransferBudget.Resting] = []
    for rest in all.sorted(by: { $0.order < $1.order }) {
      if let last = told.last, last.host == rest.host, last.isAsked == rest.isAsked {
        told[told.count - 1].mirrors = Set(last.mirrors + rest.mirrors).sorted()
      } else {
        told.append(rest)
      }
    }
    return told
  }

  /// In whole seconds from now on.
  private func timestamp(_ rest: Duration) -> Timestamp { now.wall.adding(seconds: rest.components.seconds) }

  // MARK: - Who is let in

  /// A mirror that is new at a host: what that asked for before holds.
  private mutating func welcome(_ request: Queue.Request) -> Queue.Guest {
    let guest = queue.guest(request)
    share(guest.host)
    guard let wish = asked[MirrorHost(mirror: guest.mirror, origin: guest.host.origin)], wish.instant == nil,
      wish.holds(at: now), let ticket = guest.breaker.admit(now: now.monotonic)
    else { return guest }
    // The clock may have been set back since it was remembered.
    let left = min((wish.until - now.wall).wholeSeconds, Self.longestWish)
    guest.breaker.report(ticket, .asked(retryAfter: left), now: now.monotonic, random: 0)
    if wish.mayTry { guest.breaker.tryNow(now: now.monotonic) }
    note(.asked(retryAfter: left), guest)
    return guest
  }

  /// Who waits where its mirror leaves the host alone is let in later, or ends.
  private mutating func settle(_ guest: Queue.Guest) {
    guard let rest = rest(guest) else { return }
    if rest > Self.mostHeld {
      refuse(guest, for: rest)
    } else {
      due = min(due, now.monotonic + rest)
    }
  }

  /// Ends all that waits there.
  private mutating func refuse(_ guest: Queue.Guest, for rest: Duration) {
    let wish = wish(guest.mirror, guest.host.origin)
    // Kept as the reason of a problem for as long as nobody tries again: it says no time.
    let why = wish != nil ? "asked to be left alone" : "failed again and again, and was left alone"
    let cause = wish != nil ? "" : guest.cause.map { ": \($0)" } ?? ""
    var failure = DownloadFailure(
      .hostResting, "\(Printable.escape(guest.host.origin.hostAndPort)) \(why)\(cause)",
      isTransient: true, retryAfter: max(rest, wish ?? rest).wholeSeconds)
    failure.isAsked = wish != nil
    for place in queue.waiting(at: guest).sorted() {
      queue.end(place)
      tell(place, .refused(place, failure))
      members[place] = nil
    }
  }

  /// Gives the free places away.
  private mutating func pump() {
    hasHeard = false
    while let (place, _) = queue.take() { tell(place, .granted(place)) }
  }

  private mutating func tell(_ place: Place, _ notice: BudgetNotice) {
    if let member = members[place] { notices.append((member, notice)) }
  }

  /// Forgets mirrors at routes where nobody is when there are too many, also those with a few failures, and those whose rest is over: a feed may
  /// name hosts without end.
  private mutating func forget() {
    guard queue.guestCount > mostKept else { return }
    let now = now.monotonic
    queue.forget { $0.breaker.wait(now: now) == .zero }
    let known = Set(queue.guests.map { MirrorHost(mirror: $0.mirror, origin: $0.host.origin) })
    asked = asked.filter { $0.value.instant == nil || known.contains($0.key) }
    mostKept = max(Self.mostIdle, queue.guestCount * 2)
  }
}

extension TransferBudget.Resting {
  /// The longest rest first: nobody knows it while a request tries whether the host is back.
  fileprivate var order: (String, Int, Int64) {
    let end = until.map { max($0, askedUntil ?? $0).nanoseconds } ?? .min
    return (host, isAsked ? 0 : 1, -max(end, -.max))
  }
}
