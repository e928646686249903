import DequeModule
import TarnCore
import TarnRuntime

/// What a budget tells the thread whose request it is about.
enum BudgetNotice: Sendable, Equatable {
  case granted(TransferBudget.Place)
  /// It waits no more: the host rests.
  case refused(TransferBudget.Place, DownloadFailure)
  /// Its host rests for a moment: time lets it in.
  case held
}

/// Who asks a budget for places: a network thread. Any thread calls, never under the budget's lock; must not block.
protocol BudgetMember: AnyObject, Sendable {
  func hear(_ notice: BudgetNotice)
}

/// Where a request goes: a host, through a proxy or not. A proxy that fails says nothing about a host that others reach
/// without it.
struct Route: Hashable, Sendable {
  let origin: Origin
  let proxy: String?
}

/// Who gets a place of a `TransferBudget`: it decides, and collects whom to tell (`takeNews`). The time is handed in (`now`). Under
/// the budget's lock.
///
/// Turns are by stride. At each host the flows that wait there, each a mirror's requests of one priority, are served in proportion to
/// their weights. Among hosts with a free place, the flow goes first that has been served least everywhere.
/// Who waits where there is nothing for it is moved on to where the others are, so that nobody saves up turns, and nobody waits for ever.
/// Where turns are even, who is urgent goes first, and then who came first; an urgent one goes before all others of its client.
///
/// Where several mirrors share a host, its last free place goes only to a mirror that has none there, and so does the last one of all.
/// Else requests of one mirror that hang would keep the others out until they time out. Where a large file of such a mirror has that
/// place, the one for small files is still there for all. Who is alone has all places.
///
/// Requests that are streams of a mirror's connection to a host share one place, which the first of them takes: others join those that
/// run without waiting for their mirror's turn, for they take nothing from anybody. They do not while a mirror waits that has no place
/// at the host, or, where all are taken, none anywhere: else the streams of others would never end for it.
///
/// Each mirror has a circuit breaker of its own at each route, so that one that fails keeps no other from a host that answers it.
///
/// Requests wait in lines, each of one client, host, kind and priority. Letting in costs O(lines), adding O(lines at the host), and
/// taking one out that waits O(requests of its line): who fills the lines bounds how many wait.
final class BudgetState {
  typealias Place = TransferBudget.Place

  struct Request {
    var mirror: String
    var route: Route
    /// What `open` gave.
    var client: UInt64
    var kind = TransferKind.large
    /// It goes before all others of its client; else it has its mirror's priority.
    var isUrgent = false
  }

  /// A mirror, everywhere: it is remembered once it has asked, or the settings name it.
  final class Mirror {
    let name: String
    var priority = TransferPriority.normal
    /// Where its feed is; nil where that is no host, or not known.
    var feed: Origin?
    /// Places are kept for it.
    var isExpected = true
    /// What hosts asked it for before this process, which it has not asked since.
    var remembered: [Origin: Timestamp] = [:]
    /// Somebody wants it now: at each of these one request may try.
    var mayTry = false
    /// What runs at hosts that are shared.
    var running = 0
    /// Turns that its flows were served, by priority, in units of a stride.
    var served = TransferPriority.allCases.map { _ in UInt64(0) }
    /// The hosts that it has asked.
    var guests: [Route: Guest] = [:]

    init(_ name: String) { self.name = name }
  }

  final class Site {
    let route: Route
    /// Several mirrors use it.
    var isShared = false
    /// Taken: in all, and by large files.
    var places = 0
    var large = 0
    /// Those where somebody waits.
    var lines: [Line] = []
    /// Mirrors whose requests gave their places away, and that the host has not answered since.
    var silent: Set<String> = []
    /// The turns of the flow that was served last.
    var lastServed: UInt64 = 0

    init(_ route: Route) { self.route = route }

    /// Of this machine: only its clients' own limits hold, and it takes none of the places that are shared.
    var isLocal: Bool { !route.origin.scheme.isRemote }
  }

  /// A mirror at a host.
  final class Guest {
    unowned let mirror: Mirror
    let site: Site
    /// While it lets nobody in, all wait.
    var breaker: CircuitBreaker
    /// The last failure, for a person; nil when the last answer was one.
    var cause: String?
    /// What the host asked it for, by both clocks: until then, or an answer.
    var wish: Moment?
    /// When the last rest ends that those who wait were told of.
    var heldUntil = Instant()
    var has = Places()
    /// As its mirror's, here.
    var served = TransferPriority.allCases.map { _ in UInt64(0) }

    init(_ mirror: Mirror, _ site: Site, _ breaker: CircuitBreaker) {
      (self.mirror, self.site, self.breaker) = (mirror, site, breaker)
    }

    /// Those where its requests wait.
    var lines: [Line] { site.lines.filter { $0.guest === self } }
    var isSilent: Bool { site.silent.contains(mirror.name) }
  }

  /// Requests that are alike, in their order.
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
    /// What it has, and by what right; nil while it waits.
    var seat: (hold: Hold, ticket: CircuitBreaker.Ticket)?
  }

  /// How a request would get in.
  private enum Rank: Int { case joins, byTurns, silent }

  /// The first of a line, which may be let in.
  private struct Turn {
    let line: Line
    let hold: Hold
    let rank: Rank
    let order: UInt64
    /// At the host, and everywhere; 0 for who joins.
    let served: (here: UInt64, everywhere: UInt64)

    /// Who goes first at a host, and who of those at all hosts: the smallest.
    var here: (Int, UInt64, UInt64) { (rank.rawValue, served.here, order) }
    var everywhere: (Int, UInt64, UInt64) { (rank == .joins ? 0 : 1, served.everywhere, order) }
  }

  /// A rest that is not longer is waited for, a longer one ends what waits.
  private static let mostHeld = Duration.seconds(5)
  /// Mirrors that are remembered at routes without anybody there.
  static let mostIdle = 1024
  /// Seconds.
  private static let longestWish = CurlLimits.retryAfter

  var now = Moment(wall: Timestamp(nanoseconds: 0), monotonic: Instant())
  var limits: PlaceLimits { didSet { isOpen = true } }
  /// Several mirrors are expected: the last place of all, where there are at least two, is kept for one that has none.
  var isShared = false
  private let breaker: CircuitBreaker.Settings
  private let random: any RandomSource
  private var lastNumber: UInt64 = 0
  private(set) var entries: [Place: Entry] = [:]
  private(set) var sites: [Route: Site] = [:]
  /// Those where somebody waits.
  private var busy: [Site] = []
  /// By name.
  private(set) var mirrors: [String: Mirror] = [:]
  private var clients: [UInt64: ClientPlaces] = [:]
  /// Beyond so many of these the idle ones are looked through: twice as many as the last time, so that it costs little.
  private var mostKept = BudgetState.mostIdle
  /// Places, in all.
  private var taken = 0
  /// The turns of the flow that was served last.
  private var lastServed: UInt64 = 0
  /// When the first of the rests that are short enough to wait for is over.
  private var due = Instant.distantFuture
  /// Somebody may perhaps be let in.
  private var isOpen = false
  private var notices: [(member: any BudgetMember, notice: BudgetNotice)] = []
  private var isAsked = false

  init(_ limits: PlaceLimits, breaker: CircuitBreaker.Settings, random: any RandomSource) {
    (self.limits, self.breaker, self.random) = (limits, breaker, random)
  }

  /// Gives the free places away.
  ///
  /// - Returns: whom to tell what, in order; and whether a host has asked to be left alone since the last call.
  func takeNews() -> (notices: [(member: any BudgetMember, notice: BudgetNotice)], isAsked: Bool) {
    while isOpen { isOpen = letIn() != nil }
    guard isAsked || !notices.isEmpty else { return ([], false) }
    defer { (notices, isAsked) = ([], false) }
    return (notices, isAsked)
  }

  /// Requests that wait, and those that run, but for local ones.
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

  /// Nothing of it waits or runs.
  func close(_ client: UInt64) { clients.removeValue(forKey: client)?.forget() }

  // MARK: - In and out

  /// Asks for a place; the answer is among the news, at once or later.
  ///
  /// - Parameter order: the first place of one that had one before: it came then.
  func enter(_ request: Request, order: Place? = nil, member: any BudgetMember) -> Place {
    lastNumber += 1
    let place = lastNumber
    let guest = guest(of: request)
    let line = line(request, of: guest)
    let order = (order ?? place) | (request.isUrgent ? 0 : 1 << 63)
    // Who has been let in before, elsewhere, came before most of them.
    let index = line.waiting.lastIndex { $0.order < order }.map { $0 + 1 } ?? 0
    line.waiting.insert((place, order), at: index)
    line.own.waiting += 1
    entries[place] = Entry(line: line, member: member)
    settle(guest)
    isOpen = true
    return place
  }

  /// Lets the next one in that may run: it has its place until `leave`.
  ///
  /// - Returns: nil when nobody may.
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
    entry.seat = (turn.hold, ticket)
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
    // Mostly the first one, also where a hundred thousand end.
    if let index = line.waiting.firstIndex(where: { $0.place == place }) { line.waiting.remove(at: index) }
    line.own.waiting -= 1
    guard line.waiting.isEmpty else { return }
    site.lines.removeAll { $0 === line }
    if site.lines.isEmpty { busy.removeAll { $0 === site } }
  }

  /// - Parameter change: 1 for what it has from now on, -1 for what it has no more.
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

  /// A stream that runs turns out to be a large file: it counts as one from now on, even beyond the places that there are.
  func outgrow(_ place: Place) {
    guard var entry = entries[place], entry.seat?.hold == .stream else { return }
    count(entry, -1)
    entry.seat?.hold = .large
    count(entry, 1)
    entries[place] = entry
    isOpen = true
  }

  /// The request is over, whether it waited or ran.
  ///
  /// - Parameter cause: what failed, for a person; no secrets, escaped.
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
    entry.line.own.rest()
    // Where nobody is any more, nobody is to come last.
    let site = entry.line.guest.site
    if site.places == 0, site.lines.isEmpty { site.silent = [] }
    return entry
  }

  /// A running request that receives nothing is over if its place is wanted by a mirror that has none at its host or, where all places
  /// are taken, none anywhere. That one has it then; of several streams the last one gives it. Mirrors that gave way themselves, and
  /// that the host has not answered since, come last. It says nothing of the host.
  ///
  /// - Parameter isForOthers: only such a one is asked to, and for one that is none.
  /// - Returns: false when it is not wanted, or nobody would be let in for it, and the request goes on.
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

  /// nil where it may not be let in.
  private func turn(of line: Line) -> Turn? {
    let (guest, flow) = (line.guest, line.priority.rawValue)
    guard mayGo(line), let hold = line.own.hold(line.kind), let order = line.waiting.first?.order,
      let rank = rank(of: guest, hold)
    else { return nil }
    // Never behind the flow that was served last.
    let served = (
      max(guest.served[flow], guest.site.lastServed), max(guest.mirror.served[flow], lastServed)
    )
    return Turn(line: line, hold: hold, rank: rank, order: order, served: rank == .joins ? (0, 0) : served)
  }

  /// Its mirror does not leave the host alone.
  private func mayGo(_ line: Line) -> Bool { line.guest.breaker.wait(now: now.monotonic) == .zero }

  /// How a mirror's request would get in at a host; nil where it may not.
  private func rank(of guest: Guest, _ hold: Hold) -> Rank? {
    let site = guest.site
    if site.isLocal { return .byTurns }
    if hold == .stream, guest.has.streams > 0 { return isWaitedFor(site) ? nil : .joins }
    let forNewcomers = site.isShared && limits.perHost > 1 ? 1 : 0
    let forSmall = min(limits.keptForSmall, max(0, limits.perHost - forNewcomers - 2))
    let freeForLarge = limits.perHost - forSmall - site.large
    let free = min(limits.perHost - site.places, hold == .large ? freeForLarge : .max)
    guard taken < limits.total, free > 0 else { return nil }
    // Where a large file has taken the newcomers' place, the last one is still that of the small files, of whomever they are.
    let isTaken = hold != .large && forSmall > 0 && freeForLarge < forNewcomers
    let isKeptHere = free <= (isTaken ? 0 : forNewcomers)
    if isKeptHere, guest.has.requests > 0 { return nil }
    if isLastPlaceKept, guest.mirror.running > 0 { return nil }
    return guest.isSilent && (isKeptHere || isLastPlaceKept) ? .silent : .byTurns
  }

  /// At most one place is left of all, and that not for everybody.
  private var isLastPlaceKept: Bool { isShared && limits.total > 1 && taken >= limits.total - 1 }

  /// A mirror waits that has no place at the host, or, where all are taken, none anywhere.
  private func isWaitedFor(_ site: Site) -> Bool {
    let isFull = taken >= limits.total
    return busy.contains { other in
      other.lines.contains {
        isNewcomer($0, for: site, isFull: isFull) && $0.own.hold($0.kind) != nil && mayGo($0)
      }
    }
  }

  /// It is of a mirror that has no place at the host, or, where the last one of all is for who has none anywhere, none at all.
  private func isNewcomer(_ line: Line, for site: Site, isFull: Bool) -> Bool {
    let guest = line.guest
    if guest.site === site { return guest.has.requests == 0 }
    return isFull && !guest.site.isLocal && guest.mirror.running == 0
  }

  // MARK: - What hosts say

  /// The host of a running request has answered: who waits for that need not wait for the body.
  ///
  /// - Parameters:
  ///   - isStream: as one of the streams of a connection.
  ///   - isNew: by a connection that was opened for it.
  func answered(_ place: Place, isStream: Bool = false, isNew: Bool = false) {
    guard let entry = entries[place] else { return }
    let guest = entry.line.guest
    entry.line.own.note(isStream: isStream, isNew: isNew)
    guest.site.silent.remove(guest.mirror.name)
    guard guest.breaker.state == .halfOpen else { return }
    report(entry, .answered)
    isOpen = true
  }

  /// The host of a running request had trouble with it.
  func meet(_ trouble: StreamLimit.Trouble, _ place: Place) { entries[place]?.line.own.meet(trouble) }

  private func report(_ entry: Entry, _ outcome: CircuitBreaker.Outcome, cause: String? = nil) {
    if let ticket = entry.seat?.ticket { report(entry.line.guest, ticket, outcome, cause) }
  }

  private func report(
    _ guest: Guest, _ ticket: CircuitBreaker.Ticket, _ outcome: CircuitBreaker.Outcome, _ cause: String? = nil
  ) {
    // Where another mirror found the host dead one failure says as much as several.
    let isSuspect =
      outcome == .transportFailed
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
      // It is never made shorter by another one.
      if guest.wish.map({ $0.monotonic < until.monotonic }) ?? true { guest.wish = until }
    case .answered: guest.wish = nil
    // A connection that fails is no answer.
    case .transportFailed, .harmed, .cancelled: break
    }
  }

  /// For how long the host itself asked that mirror to leave it alone; nil where it did not, or that is over.
  private func wish(_ guest: Guest) -> Duration? {
    guest.wish.flatMap { $0.monotonic > now.monotonic ? $0.monotonic - now.monotonic : nil }
  }

  /// For how long a mirror leaves a host alone; nil while it may ask, or one request tries whether the host is back.
  private func rest(_ guest: Guest) -> Duration? {
    guest.breaker.wait(now: now.monotonic).flatMap { $0 > .zero ? $0 : nil }
  }

  // MARK: - Hosts that rest

  /// Lets in whom time lets in, and more streams where some were answered: not at once, for their number is to grow no faster than is
  /// heard of the connections that they need.
  ///
  /// - Returns: when it may be of use again; nil when that does not hang on time.
  func look() -> Duration? {
    if now.monotonic >= due {
      due = .distantFuture
      for guest in guests { settle(guest) }
    }
    isOpen = true
    return due == .distantFuture ? nil : due.remaining(at: now.monotonic)
  }

  /// Who waits where its mirror leaves the host alone is let in later, or ends.
  private func settle(_ guest: Guest) {
    guard let rest = rest(guest) else { return }
    guard rest > Self.mostHeld else { return hold(guest, until: now.monotonic + rest) }
    let wish = wish(guest)
    // Kept as the reason of a problem for as long as nobody tries again: it says no time.
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

  /// Those who wait there may be on other threads, which sleep.
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

  /// Seconds for which a mirror leaves a host alone, from now on; nil where it may ask.
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

  /// It holds from the first request there on, whatever the way. What is known of it since counts more.
  func remember(_ origin: Origin, mirror name: String, until: Timestamp) {
    let mirror = mirror(name)
    guard !mirror.guests.keys.contains(where: { $0.origin == origin }), until > now.wall else { return }
    // A clock that was set back does not make it longer.
    mirror.remembered[origin] = min(until, now.wall.adding(seconds: Self.longestWish))
    mirror.mayTry = false
  }

  /// Hosts that some mirror leaves alone, in their order; each once for those that it asked and once for those that it failed,
  /// with the longest rest.
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

  /// In whole seconds from now on.
  private func timestamp(_ rest: Duration) -> Timestamp { now.wall.adding(seconds: rest.components.seconds) }

  // MARK: - Mirrors, hosts, lines

  /// - Parameter feeds: where the feed of each is; nil where that is no host.
  func setMirrors(_ feeds: [String: Origin?]) {
    for name in feeds.keys { _ = mirror(name) }
    for mirror in mirrors.values {
      (mirror.isExpected, mirror.feed) = (feeds[mirror.name] != nil, feeds[mirror.name] ?? nil)
    }
    isShared = feeds.count > 1
    for site in sites.values { share(site) }
    isOpen = true
  }

  /// Keeps places where more than one mirror asks, by their settings or by what they asked for so far.
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

  /// Who asks there, made known where it was not: what that host asked for before this process holds.
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

  /// Forgets mirrors at routes where nobody is when there are too many, also those with a few failures, and those whose rest is over: a
  /// feed may name hosts without end.
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
