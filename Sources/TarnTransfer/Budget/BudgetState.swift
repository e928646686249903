import DequeModule
import TarnCore
import TarnRuntime

/// A notice of the budget to the thread of a request.
enum BudgetNotice: Sendable, Equatable {
  case granted(TransferBudget.Place)
  /// The request waits no longer, because the host rests.
  case refused(TransferBudget.Place, DownloadFailure)
  /// The host rests for a moment; the request is let in when the time comes.
  case held
}

/// A network thread that asks a budget for places. Called on any thread, never under the budget's lock; must not block.
protocol BudgetMember: AnyObject, Sendable {
  func hear(_ notice: BudgetNotice)
}

/// The route of a request: a host, through a proxy or not. A proxy that fails says nothing about a host that others reach without
/// it.
struct Route: Hashable, Sendable {
  let origin: Origin
  let proxy: String?
}

/// Decides who gets a place of a `TransferBudget`, and collects the notices (`takeNews`). The caller passes the time (`now`) and
/// holds the budget's lock.
///
/// Turns are given by stride scheduling. At each host the waiting flows, each a mirror's requests of one priority, are served in
/// proportion to their weights. Among hosts with a free place, the flow goes first that has been served least everywhere.
/// A flow that waits where nothing is free is advanced to where the others are, so that nobody saves up turns and nobody waits for
/// ever.
/// Among equal turns urgent requests go first, then those that came first. An urgent request goes before all others of its client.
///
/// Where several mirrors share a host, its last free place goes only to a mirror that has none there. The last place of all goes
/// only to a mirror that has none anywhere. Otherwise hanging requests of one mirror would keep the others out until they time out.
/// When a large file of such a mirror takes that place, the one for small files stays open to all. A mirror alone may use all
/// places.
///
/// Requests that are streams of a mirror's connection to a host share one place, which the first of them takes. The others join
/// without waiting for their mirror's turn, since they take no place. They must wait while a mirror waits that has no place at the
/// host or, when all places are taken, none anywhere. Otherwise it might wait for ever. They wait while an urgent request of their
/// client waits there, too: it may get the place that they leave.
///
/// Each mirror has its own circuit breaker for each route, so that a failing mirror does not block others that the host answers.
///
/// Requests wait in lines, each of one client, host, kind and priority. Letting one in costs O(lines), adding one O(lines at the
/// host), and removing a waiting one O(requests of its line). The callers limit how many wait.
final class BudgetState {
  typealias Place = TransferBudget.Place

  struct Request {
    var mirror: String
    var route: Route
    /// The number that `open` returned.
    var client: UInt64
    var kind = TransferKind.large
    /// True for a request that goes before all others of its client. Others have their mirror's priority.
    var isUrgent = false
  }

  /// A mirror at all hosts. It is kept once it has asked for a place, or when the settings name it.
  final class Mirror {
    let name: String
    var priority = TransferPriority.normal
    /// The origin of its feed; `nil` where that is no host, or not known.
    var feed: Origin?
    /// True while places are kept for it.
    var isExpected = true
    /// The wishes of hosts from before this process, as long as it has not asked there since.
    var remembered: [Origin: Timestamp] = [:]
    /// True when somebody wants it now: one request may try each resting host.
    var mayTry = false
    /// The number of running requests at shared hosts.
    var running = 0
    /// The turns that its flows were given, by priority, in units of a stride.
    var served = TransferPriority.allCases.map { _ in UInt64(0) }
    /// The routes that it has used.
    var guests: [Route: Guest] = [:]

    init(_ name: String) { self.name = name }
  }

  final class Site {
    let route: Route
    /// True when several mirrors use it.
    var isShared = false
    /// The places taken, in all and by large files.
    var places = 0
    var large = 0
    /// The lines in which requests wait.
    var lines: [Line] = []
    /// Mirrors whose requests gave up their places here, and that the host has not answered since.
    var silent: Set<String> = []
    /// The turns of the flow that was served last.
    var lastServed: UInt64 = 0

    init(_ route: Route) { self.route = route }

    /// True for this machine. Only the clients' own limits apply, and it takes none of the shared places.
    var isLocal: Bool { !route.origin.scheme.isRemote }
  }

  /// A mirror at a host.
  final class Guest {
    unowned let mirror: Mirror
    let site: Site
    /// The circuit breaker. While it is open, all requests wait.
    var breaker: CircuitBreaker
    /// The last failure, for people; `nil` when the last outcome was an answer.
    var cause: String?
    /// The end of the pause that the host asked for, by both clocks. It holds until then or until an answer.
    var wish: Moment?
    /// The end of the last rest that waiting requests were told of.
    var heldUntil = Instant()
    var has = Places()
    /// The turns given at this host, in the same form as those of the mirror.
    var served = TransferPriority.allCases.map { _ in UInt64(0) }

    init(_ mirror: Mirror, _ site: Site, _ breaker: CircuitBreaker) {
      (self.mirror, self.site, self.breaker) = (mirror, site, breaker)
    }

    /// The lines here in which this mirror's requests wait.
    var lines: [Line] { site.lines.filter { $0.guest === self } }
    var isSilent: Bool { site.silent.contains(mirror.name) }
  }

  /// Similar requests in their order.
  final class Line {
    let guest: Guest
    let own: ClientHost
    let priority: TransferPriority
    let kind: TransferKind
    var waiting = Deque<(place: Place, order: UInt64)>()

    init(_ guest: Guest, _ own: ClientHost, _ priority: TransferPriority, _ kind: TransferKind) {
      (self.guest, self.own, self.priority, self.kind) = (guest, own, priority, kind)
    }
  }

  struct Entry {
    let line: Line
    let member: any BudgetMember
    /// The kind of place it has, with its ticket, its generation among streams, and the streams of its client that were running
    /// before it; `nil` while it waits.
    var seat: (hold: Hold, ticket: CircuitBreaker.Ticket, generation: Int, before: Int)?
  }

  /// How a request would be let in.
  private enum Rank: Int { case joins, byTurns, silent }

  /// The first request of a line, if it may be let in.
  private struct Turn {
    let line: Line
    let hold: Hold
    let rank: Rank
    let order: UInt64
    /// The turns at the host and everywhere; 0 for a request that joins.
    let served: (here: UInt64, everywhere: UInt64)

    /// The order at a host, and the order among the first ones of all hosts: the smallest goes first.
    var here: (Int, UInt64, UInt64) { (rank.rawValue, served.here, order) }
    var everywhere: (Int, UInt64, UInt64) { (rank == .joins ? 0 : 1, served.everywhere, order) }
  }

  /// The longest rest that requests wait for. A longer one ends them.
  private static let mostHeld = Duration.seconds(5)
  /// The number of idle mirror routes that are remembered.
  static let mostIdle = 1024
  /// The longest pause that a host may ask for, in seconds.
  private static let longestWish = CurlLimits.retryAfter

  var now = Moment(wall: Timestamp(nanoseconds: 0), monotonic: Instant())
  var limits: PlaceLimits { didSet { isOpen = true } }
  /// True when several mirrors are expected: the last of at least two places is kept for a mirror that has none.
  var isShared = false
  private let breaker: CircuitBreaker.Settings
  private let random: any RandomSource
  private var lastNumber: UInt64 = 0
  private(set) var entries: [Place: Entry] = [:]
  private(set) var sites: [Route: Site] = [:]
  /// The sites where requests wait.
  private var busy: [Site] = []
  /// The mirrors by name.
  private(set) var mirrors: [String: Mirror] = [:]
  private var clients: [UInt64: ClientPlaces] = [:]
  /// The number of guests above which idle ones are forgotten. It is set to twice the number that remained, so that this costs
  /// little.
  private var mostKept = BudgetState.mostIdle
  /// The places taken in all.
  private var taken = 0
  /// The turns of the flow that was served last anywhere.
  private var lastServed: UInt64 = 0
  /// When the first rest that is short enough to wait for ends.
  private var due = Instant.distantFuture
  /// True when a request may possibly be let in.
  private var isOpen = false
  private var notices: [(member: any BudgetMember, notice: BudgetNotice)] = []
  private var isAsked = false

  init(_ limits: PlaceLimits, breaker: CircuitBreaker.Settings, random: any RandomSource) {
    (self.limits, self.breaker, self.random) = (limits, breaker, random)
  }

  /// Gives away the free places.
  ///
  /// - Returns: the notices in their order, and whether a host has asked to be left alone since the last call.
  func takeNews() -> (notices: [(member: any BudgetMember, notice: BudgetNotice)], isAsked: Bool) {
    while isOpen { isOpen = letIn() != nil }
    guard isAsked || !notices.isEmpty else { return ([], false) }
    defer { (notices, isAsked) = ([], false) }
    return (notices, isAsked)
  }

  /// The numbers of waiting and running requests, without local ones.
  var waitingCount: Int {
    busy.filter { !$0.isLocal }.flatMap(\.lines).reduce(0) { $0 + $1.waiting.count }
  }
  var runningCount: Int { mirrors.values.reduce(0) { $0 + $1.running } }

  // MARK: - Clients

  func open(_ own: PlaceLimits) -> UInt64 {
    lastNumber += 1
    clients[lastNumber] = ClientPlaces(own)
    return lastNumber
  }

  /// Removes a client that has no waiting or running requests.
  func close(_ client: UInt64) { clients.removeValue(forKey: client)?.forget() }

  // MARK: - In and out

  /// Asks for a place. The answer is among the notices, at once or later.
  ///
  /// - Parameter order: the first place of an exchange that had one before, which keeps its rank.
  func enter(_ request: Request, order: Place? = nil, member: any BudgetMember) -> Place {
    lastNumber += 1
    let place = lastNumber
    let guest = guest(of: request)
    let line = line(request, of: guest)
    let order = (order ?? place) | (request.isUrgent ? 0 : 1 << 63)
    // A request that was let in before, elsewhere, is older than most of these.
    let index = line.waiting.lastIndex { $0.order < order }.map { $0 + 1 } ?? 0
    line.waiting.insert((place, order), at: index)
    line.own.waiting += 1
    entries[place] = Entry(line: line, member: member)
    settle(guest)
    isOpen = true
    return place
  }

  /// Lets the next request in that may run. It keeps its place until `leave`.
  ///
  /// - Returns: `nil` when none may.
  func letIn() -> Place? {
    guard let next = first() else { return nil }
    return letIn(first { $0.priority == .urgent && $0.own.client === next.line.own.client } ?? next)
  }

  @discardableResult
  private func letIn(_ turn: Turn) -> Place? {
    let (line, guest) = (turn.line, turn.line.guest)
    guard let place = line.waiting.first?.place, var entry = entries[place],
      let ticket = guest.breaker.admit(now: now.monotonic)
    else { return nil }
    leaveLine(place, line)
    entry.seat = (turn.hold, ticket, line.own.generation, line.own.streams)
    entries[place] = entry
    count(entry, 1)
    if turn.rank != .joins {
      (guest.site.lastServed, lastServed) = turn.served
      let (flow, stride) = (line.priority.rawValue, (1 << 20) / line.priority.weight)
      guest.served[flow] = turn.served.here + stride
      guest.mirror.served[flow] = turn.served.everywhere + stride
    }
    notices.append((entry.member, .granted(place)))
    return place
  }

  private func leaveLine(_ place: Place, _ line: Line) {
    let site = line.guest.site
    // Usually it is the first one, also when a hundred thousand end.
    if let index = line.waiting.firstIndex(where: { $0.place == place }) { line.waiting.remove(at: index) }
    line.own.waiting -= 1
    guard line.waiting.isEmpty else { return }
    site.lines.removeAll { $0 === line }
    if site.lines.isEmpty { busy.removeAll { $0 === site } }
  }

  /// - Parameter change: 1 for a request that begins, -1 for one that ends.
  private func count(_ entry: Entry, _ change: Int) {
    guard let hold = entry.seat?.hold else { return }
    let guest = entry.line.guest
    entry.line.own.count(hold, change)
    let places = guest.has.count(hold, change)
    guard !guest.site.isLocal else { return }
    guest.mirror.running += change
    countPlaces(guest.site, hold, places)
  }

  private func countPlaces(_ site: Site, _ hold: Hold, _ change: Int) {
    taken += change
    site.places += change
    if hold == .large { site.large += change }
  }

  /// Turns a running stream into a large file when it proves to be one, even beyond the number of places.
  func outgrow(_ place: Place) {
    guard var entry = entries[place], entry.seat?.hold == .stream else { return }
    count(entry, -1)
    entry.seat?.hold = .large
    count(entry, 1)
    entries[place] = entry
    isOpen = true
  }

  /// Ends a request, whether it waited or ran.
  ///
  /// - Parameter cause: the failure for people: escaped, without secrets.
  func leave(_ place: Place, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    guard let entry = end(place) else { return }
    if case .asked = outcome { isAsked = true }
    report(entry, outcome, cause: cause)
    settle(entry.line.guest)
    isOpen = true
    forget()
  }

  @discardableResult
  private func end(_ place: Place) -> Entry? {
    guard let entry = entries.removeValue(forKey: place) else { return nil }
    if entry.seat == nil { leaveLine(place, entry.line) } else { count(entry, -1) }
    // Where no request is left, the order of silent mirrors no longer matters.
    let site = entry.line.guest.site
    if site.places == 0, site.lines.isEmpty { site.silent = [] }
    return entry
  }

  /// Ends a running request that receives nothing when its place is wanted. It must be wanted by a mirror that has none at the host
  /// or, when all places are taken, none anywhere. That mirror gets the place; among several streams the last one frees it. Mirrors
  /// that gave way themselves, and that the host has not answered since, come last. The end says nothing about the host.
  ///
  /// - Parameter isForOthers: true to end it only if its own mirror gave way before, and only for a mirror that did not.
  /// - Returns: false when the place is not wanted, or nobody would be let in for it; then the request continues.
  func giveWay(_ place: Place, isForOthers: Bool = false) -> Bool {
    guard let entry = entries[place], let hold = entry.seat?.hold else { return false }
    let (guest, site) = (entry.line.guest, entry.line.guest.site)
    guard !site.isLocal, !isForOthers || guest.isSilent else { return false }
    countPlaces(site, hold, -1)
    let isFull = isLastPlaceKept
    func first(isSilent: Bool) -> Turn? {
      self.first { isNewcomer($0, for: site, isFull: isFull) && $0.guest.isSilent == isSilent }
    }
    let next = first(isSilent: false) ?? (isForOthers ? nil : first(isSilent: true))
    countPlaces(site, hold, 1)
    guard let next else { return false }
    let isLast = hold != .stream || guest.has.streams == 1
    end(place)
    site.silent.insert(guest.mirror.name)
    if isLast { letIn(next) }
    report(entry, .cancelled)
    isOpen = true
    return true
  }

  // MARK: - Who is next

  private func first(where mayGo: (Line) -> Bool = { _ in true }) -> Turn? {
    var best: Turn?
    for site in busy {
      var here: Turn?
      for line in site.lines where mayGo(line) {
        if let turn = turn(of: line), here.map({ turn.here < $0.here }) ?? true { here = turn }
      }
      if let here, best.map({ here.everywhere < $0.everywhere }) ?? true { best = here }
    }
    return best
  }

  /// Returns the turn of a line's first request; `nil` where it may not be let in.
  private func turn(of line: Line) -> Turn? {
    let (guest, flow) = (line.guest, line.priority.rawValue)
    guard mayGo(line), let hold = line.own.hold(line.kind), let order = line.waiting.first?.order,
      let rank = rank(of: line, hold)
    else { return nil }
    // No flow counts as served less than the one that was served last.
    let served = (
      max(guest.served[flow], guest.site.lastServed), max(guest.mirror.served[flow], lastServed)
    )
    return Turn(line: line, hold: hold, rank: rank, order: order, served: rank == .joins ? (0, 0) : served)
  }

  /// Returns whether the line's mirror may ask the host now.
  private func mayGo(_ line: Line) -> Bool { line.guest.breaker.wait(now: now.monotonic) == .zero }

  /// Returns how a line's request would be let in; `nil` where it may not.
  private func rank(of line: Line, _ hold: Hold) -> Rank? {
    let (guest, site) = (line.guest, line.guest.site)
    if site.isLocal { return .byTurns }
    if hold == .stream, guest.has.streams > 0 {
      return isWaitedFor(site) || isBehindUrgent(line) ? nil : .joins
    }
    let forNewcomers = site.isShared && limits.perHost > 1 ? 1 : 0
    let forSmall = min(limits.keptForSmall, max(0, limits.perHost - forNewcomers - 2))
    let freeForLarge = limits.perHost - forSmall - site.large
    let free = min(limits.perHost - site.places, hold == .large ? freeForLarge : .max)
    guard taken < limits.total, free > 0 else { return nil }
    // When a large file has taken the newcomers' place, the last one still belongs to small files of any mirror.
    let isTaken = hold != .large && forSmall > 0 && freeForLarge < forNewcomers
    let isKeptHere = free <= (isTaken ? 0 : forNewcomers)
    if isKeptHere, guest.has.requests > 0 { return nil }
    if isLastPlaceKept, guest.mirror.running > 0 { return nil }
    return guest.isSilent && (isKeptHere || isLastPlaceKept) ? .silent : .byTurns
  }

  /// True when at most one of all places is left, and it is kept for mirrors without a place.
  private var isLastPlaceKept: Bool { isShared && limits.total > 1 && taken >= limits.total - 1 }

  /// Returns whether a mirror waits that has no place at the host or, when all places are taken, none anywhere.
  private func isWaitedFor(_ site: Site) -> Bool {
    let isFull = taken >= limits.total
    return busy.contains { other in
      other.lines.contains {
        isNewcomer($0, for: site, isFull: isFull) && $0.own.hold($0.kind) != nil && mayGo($0)
      }
    }
  }

  /// Returns whether an urgent request of the same client waits at the host. It is let in first, unless no place is free for it.
  private func isBehindUrgent(_ line: Line) -> Bool {
    line.priority != .urgent
      && line.guest.site.lines.contains { $0.own === line.own && $0.priority == .urgent }
  }

  /// Returns whether the line's mirror has no place at the host or, when the last of all is kept, none anywhere.
  private func isNewcomer(_ line: Line, for site: Site, isFull: Bool) -> Bool {
    let guest = line.guest
    if guest.site === site { return guest.has.requests == 0 }
    return isFull && !guest.site.isLocal && guest.mirror.running == 0
  }

  // MARK: - What hosts say

  /// Takes the news that the host of a running request has answered, so that others need not wait for the end of the body.
  ///
  /// - Parameters:
  ///   - isStream: true when the answer was one of the streams of a connection.
  ///   - isNew: true when a connection was opened for it.
  func answered(_ place: Place, isStream: Bool = false, isNew: Bool = false) {
    guard let entry = entries[place] else { return }
    let guest = entry.line.guest
    entry.line.own.note(isStream: isStream, isNew: isNew)
    if isStream, isNew, let seat = entry.seat, seat.hold == .stream {
      entry.line.own.noteConnection(after: seat.before, shared: limits)
    }
    guest.site.silent.remove(guest.mirror.name)
    guard guest.breaker.state == .halfOpen else { return }
    report(entry, .answered)
    isOpen = true
  }

  /// Takes the news that the host of a running request had trouble with it.
  func meetTrouble(_ place: Place) {
    guard let entry = entries[place], let seat = entry.seat else { return }
    entry.line.own.meetTrouble(of: seat.generation)
  }

  private func report(_ entry: Entry, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    if let ticket = entry.seat?.ticket { report(entry.line.guest, ticket, outcome, cause) }
  }

  private func report(
    _ guest: Guest, _ ticket: CircuitBreaker.Ticket, _ outcome: CircuitBreaker.Outcome, _ cause: String? = nil
  ) {
    // When another mirror found the host dead, one failure says as much as several.
    let isSuspect =
      outcome.isFailure
      && mirrors.values.compactMap { $0.guests[guest.site.route] }
        .contains { $0 !== guest && $0.breaker.state != .closed && wish($0) == nil }
    let isNews = guest.breaker.report(
      ticket, outcome, isSuspect: isSuspect, now: now.monotonic,
      random: outcome == .answered ? 0 : random.unit())
    guard outcome != .cancelled, isNews else { return }
    guest.cause = cause
    switch outcome {
    case .asked(let seconds):
      let seconds = max(0, min(seconds, Self.longestWish))
      let until = Moment(
        wall: now.wall.adding(seconds: seconds), monotonic: now.monotonic + .seconds(seconds))
      // A later wish never makes it shorter.
      if guest.wish.map({ $0.monotonic < until.monotonic }) ?? true { guest.wish = until }
    case .answered: guest.wish = nil
    // A failed connection is no answer.
    case .transportFailed, .connectionLost, .harmed, .cancelled: break
    }
  }

  /// Returns how much longer the host itself asked this mirror to stay away; `nil` where it did not, or the time is over.
  private func wish(_ guest: Guest) -> Duration? {
    guest.wish.flatMap { $0.monotonic > now.monotonic ? $0.monotonic - now.monotonic : nil }
  }

  /// Returns how long a mirror leaves a host alone; `nil` while it may ask, or while one request tries whether the host is back.
  private func rest(_ guest: Guest) -> Duration? {
    guest.breaker.wait(now: now.monotonic).flatMap { $0 > .zero ? $0 : nil }
  }

  // MARK: - Hosts that rest

  /// Lets in requests whose time has come, and more streams where some were answered. The streams are not let in at once: their
  /// number grows no faster than the answers show which connections they need.
  ///
  /// - Returns: the time until the next call is useful; `nil` when that does not depend on time.
  func look() -> Duration? {
    if now.monotonic >= due {
      due = .distantFuture
      for guest in guests { settle(guest) }
    }
    isOpen = true
    return due == .distantFuture ? nil : due.remaining(at: now.monotonic)
  }

  /// Delays or ends the requests that wait where their mirror leaves the host alone.
  private func settle(_ guest: Guest) {
    guard let rest = rest(guest) else { return }
    guard rest > Self.mostHeld else { return hold(guest, until: now.monotonic + rest) }
    let wish = wish(guest)
    // The text stays as the reason of a problem until somebody tries again, so it names no time.
    let failed = "failed again and again, and was left alone\(guest.cause.map { ": \($0)" } ?? "")"
    let why = wish != nil ? "asked to be left alone" : failed
    var failure = DownloadFailure(
      .hostResting, "\(Printable.escape(guest.site.route.origin.hostAndPort)) \(why)",
      isTransient: true, retryAfter: max(rest, wish ?? rest).wholeSeconds)
    failure.isAsked = wish != nil
    for place in guest.lines.flatMap({ $0.waiting.map(\.place) }).sorted() {
      if let member = end(place)?.member { notices.append((member, .refused(place, failure))) }
    }
  }

  /// Those that wait may belong to other threads, which sleep.
  private func hold(_ guest: Guest, until: Instant) {
    due = min(due, until)
    guard guest.heldUntil != until else { return }
    guest.heldUntil = until
    let first = guest.lines.compactMap { $0.waiting.first.flatMap { entries[$0.place] } }
    notices += first.map { ($0.member, .held) }
  }

  func tryNow(_ name: String) {
    guard let mirror = mirrors[name] else { return }
    mirror.mayTry = true
    for guest in mirror.guests.values { guest.breaker.tryNow(now: now.monotonic) }
    isOpen = true
  }

  func askedRest(_ name: String) -> Int64? {
    mirrors[name]?.guests.values.filter { $0.site.route.origin == $0.mirror.feed }.compactMap(wish).max()?
      .wholeSeconds
  }

  /// Returns the seconds for which a mirror leaves a host alone from now on; `nil` where it may ask.
  func rest(at route: Route, mirror: String) -> Int64? {
    mirrors[mirror]?.guests[route].flatMap(rest)?.wholeSeconds
  }

  func wishes() -> [String: [TransferBudget.Wish]] {
    mirrors.mapValues { mirror in
      let asked = mirror.guests.values.filter { wish($0) != nil }.compactMap { guest in
        guest.wish.map { (guest.site.route.origin, $0.wall) }
      }
      return (asked + mirror.remembered.filter { $0.value > now.wall })
        .map { TransferBudget.Wish(host: $0.text, until: $1) }.sorted { $0.host < $1.host }
    }
  }

  /// Records what a host asked for. It holds from the next request to it, on any route. What was learned since counts more.
  func remember(_ origin: Origin, mirror name: String, until: Timestamp) {
    let mirror = mirror(name)
    guard !mirror.guests.keys.contains(where: { $0.origin == origin }), until > now.wall else { return }
    // A clock that was set back does not make the pause longer.
    mirror.remembered[origin] = min(until, now.wall.adding(seconds: Self.longestWish))
    mirror.mayTry = false
  }

  /// The hosts that some mirror leaves alone, sorted. A host comes once for the mirrors that it asked and once for those that it
  /// failed, with the longest rest.
  var resting: [TransferBudget.Resting] {
    let all = guests.filter { $0.breaker.wait(now: now.monotonic) != .zero }
    let hosts = Dictionary(grouping: all, by: \.site.route.origin.text)
    return hosts.sorted { $0.key < $1.key }.flatMap { host, guests in
      [guests.filter { wish($0) != nil }, guests.filter { wish($0) == nil }].filter { !$0.isEmpty }.map {
        TransferBudget.Resting(
          host: host, until: $0.compactMap(rest).max().map(timestamp),
          askedUntil: $0.compactMap(wish).max().map(timestamp), mirrors: Set($0.map(\.mirror.name)).sorted())
      }
    }
  }

  /// Returns the end of a rest, in whole seconds from now.
  private func timestamp(_ rest: Duration) -> Timestamp { now.wall.adding(seconds: rest.components.seconds) }

  // MARK: - Mirrors, hosts, lines

  /// - Parameter feeds: the origin of each mirror's feed; `nil` where that is no host.
  func setMirrors(_ feeds: [String: Origin?]) {
    for name in feeds.keys { _ = mirror(name) }
    for mirror in mirrors.values {
      (mirror.isExpected, mirror.feed) = (feeds[mirror.name] != nil, feeds[mirror.name] ?? nil)
    }
    isShared = feeds.count > 1
    for site in sites.values { share(site) }
    isOpen = true
  }

  /// Keeps places where more than one mirror asks, by their settings or by their requests so far.
  private func share(_ site: Site) {
    let route = site.route
    site.isShared =
      mirrors.values.count { $0.isExpected && ($0.feed == route.origin || $0.guests[route] != nil) } > 1
  }

  func setPriority(_ priority: TransferPriority, mirror name: String) { mirror(name).priority = priority }

  private func mirror(_ name: String) -> Mirror {
    let mirror = mirrors[name] ?? Mirror(name)
    mirrors[name] = mirror
    return mirror
  }

  private var guests: [Guest] { mirrors.values.flatMap(\.guests.values) }

  /// Returns the guest of a request, and makes it where it is new. A pause that the host asked for before this process applies to
  /// it.
  private func guest(of request: Request) -> Guest {
    let (mirror, route) = (mirror(request.mirror), request.route)
    if let guest = mirror.guests[route] { return guest }
    let site = sites[route] ?? Site(route)
    let guest = Guest(mirror, site, CircuitBreaker(breaker))
    (sites[route], mirror.guests[route]) = (site, guest)
    share(site)
    if let until = mirror.remembered.removeValue(forKey: route.origin), until > now.wall,
      let ticket = guest.breaker.admit(now: now.monotonic)
    {
      report(guest, ticket, .asked(retryAfter: (until - now.wall).wholeSeconds))
      if mirror.mayTry { guest.breaker.tryNow(now: now.monotonic) }
    }
    return guest
  }

  private func line(_ request: Request, of guest: Guest) -> Line {
    let site = guest.site
    let own = clients[request.client, default: ClientPlaces(limits)].host(site.route)
    let priority = request.isUrgent ? .urgent : guest.mirror.priority
    for line in site.lines where line.guest === guest && line.own === own {
      if line.kind == request.kind, line.priority == priority { return line }
    }
    let line = Line(guest, own, priority, request.kind)
    if site.lines.isEmpty { busy.append(site) }
    site.lines.append(line)
    return line
  }

  /// Forgets idle mirror routes when there are too many, also those with a few failures, and those whose rest is over: a feed may
  /// name any number of hosts.
  private func forget() {
    guard guestCount > mostKept else { return }
    for mirror in mirrors.values {
      mirror.guests = mirror.guests.filter { _, guest in
        guest.has.requests > 0 || !guest.lines.isEmpty || guest.breaker.wait(now: now.monotonic) != .zero
      }
    }
    let used = Set(guests.map(\.site.route))
    sites = sites.filter { used.contains($0.key) }
    for client in clients.values { client.forget() }
    mostKept = max(Self.mostIdle, guestCount * 2)
  }

  var guestCount: Int { mirrors.values.reduce(0) { $0 + $1.guests.count } }
}
