import DequeModule
import TarnCore

/// Requests that wait for a place: limits in all and per host, and each client's own; fair turns between mirrors, places kept for
/// small files, priorities, hosts that rest. It holds ids, not what they stand for. Its parts are objects, which a copy would share: there is to be one.
///
/// Turns are by stride: at each host the flows (a mirror's requests of one priority) that wait there are served in
/// proportion to their weights; among hosts with a free place, the flow goes first that has been served least everywhere.
/// Who waits where there is nothing for it is moved on to where the others are, so that nobody saves up turns, and nobody waits for ever.
/// Where turns are even, who is urgent goes first, and then who came first; an urgent one goes before all others of its client.
///
/// Where several mirrors share a host, its last free place goes only to a mirror that has none there, and likewise the last
/// one of all (`setShared`): requests of one mirror that hang would else keep the others out until they time out. Where a large file
/// of such a mirror has that place, the one for small files is still there for all. Who is alone has all places.
///
/// Requests that are streams of a mirror's connection to a host share one place, which the first of them takes: others join those that
/// run without waiting for their mirror's turn, for they take nothing from anybody. They do not while a mirror waits that has no place
/// at the host, or, where all are taken, none anywhere: else the streams of others would never end for it.
///
/// Requests wait in lines, each of one client, host, kind and priority. Taking costs O(lines), adding and finishing O(mirrors at the
/// host), removing O(requests of the line): who fills the queue bounds how many wait.
struct FairQueue<ID: BinaryInteger, Mirror: Hashable, Host: Hashable> {
  typealias Limits = PlaceLimits
  typealias Granted = (id: ID, request: Request)

  struct Request: Hashable {
    var mirror: Mirror
    var host: Host
    /// nil where there are no clients: without limits of its own, and short requests are streams.
    var client: UInt64?
    var priority = TransferPriority.normal
    var kind = TransferKind.large
    /// Of this machine: only its client's own limits hold, and it takes none of the places that are shared.
    var isLocal = false
  }

  /// A mirror, everywhere.
  fileprivate final class Owner {
    /// What runs at hosts that are shared.
    var running = 0
    /// Turns that its flows were served, by priority, in units of a stride.
    var passes = TransferPriority.allCases.map { _ in UInt64(0) }
  }

  /// A mirror at a host.
  final class Guest {
    let mirror: Mirror
    let host: Host
    /// While it lets nobody in, all wait.
    var breaker: CircuitBreaker
    /// The last failure, for a person; nil when the last answer was one.
    var cause: String?
    /// Places are kept for it.
    var isExpected = true
    fileprivate let owner: Owner
    fileprivate var has = Places()
    fileprivate var passes = TransferPriority.allCases.map { _ in UInt64(0) }
    /// Its request gave its place away, and the host has not answered it since.
    fileprivate var isSilent = false

    fileprivate init(_ mirror: Mirror, _ host: Host, _ owner: Owner, _ breaker: CircuitBreaker) {
      (self.mirror, self.host, self.owner, self.breaker) = (mirror, host, owner, breaker)
    }
  }

  fileprivate final class Site {
    let isLocal: Bool
    /// Several mirrors use it.
    var isShared = false
    /// Taken: in all, and by large files.
    var places = 0
    var large = 0
    var guests: [Guest] = []
    /// Those where somebody waits.
    var lines: [Line] = []
    /// The pass of the flow that was served last.
    var clock: UInt64 = 0

    init(isLocal: Bool) { self.isLocal = isLocal }

    var isIdle: Bool { places == 0 && lines.isEmpty }
  }

  /// Requests that are alike, in their order.
  fileprivate final class Line {
    let guest: Guest
    /// Of its client; nil without limits of its own.
    let own: ClientHost?
    let priority: TransferPriority
    let kind: TransferKind
    var waiting = Deque<(id: ID, order: UInt64)>()

    init(_ guest: Guest, _ own: ClientHost?, _ request: Request) {
      (self.guest, self.own, priority, kind) = (guest, own, request.priority, request.kind)
    }

    /// What the first one would have; nil where its client's own limits keep it out.
    var hold: Hold? {
      if let own { own.hold(kind) } else { kind.mayStream ? .stream : kind.place }
    }
  }

  final class Entry {
    let request: Request
    let guest: Guest
    fileprivate let site: Site
    fileprivate let line: Line
    /// What it has, and by what right; nil while it waits.
    fileprivate(set) var seat: (hold: Hold, ticket: CircuitBreaker.Ticket)?

    fileprivate init(_ request: Request, _ site: Site, _ line: Line) {
      (self.request, self.site, self.line, guest) = (request, site, line, line.guest)
    }
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
    let passes: (here: UInt64, everywhere: UInt64)

    /// Who goes first at a host, and who of those at all hosts: the smallest.
    var here: (Int, UInt64, UInt64) { (rank.rawValue, passes.here, order) }
    var everywhere: (Int, UInt64, UInt64) { (rank == .joins ? 0 : 1, passes.everywhere, order) }
  }

  var limits: Limits
  /// Keeps the last free place of all, where there are at least two, for mirrors that have none anywhere.
  var isShared = false
  var now = Instant()
  private let breaker: CircuitBreaker.Settings
  private var entries: [ID: Entry] = [:]
  private var sites: [Host: Site] = [:]
  /// Those where somebody waits.
  private var busy: [Site] = []
  private var owners: [Mirror: Owner] = [:]
  private(set) var guestCount = 0
  private var clients: [UInt64: ClientPlaces<Host>] = [:]
  /// Places, in all.
  private var taken = 0
  /// The pass of the flow that was served last.
  private var clock: UInt64 = 0

  init(_ limits: Limits, breaker: CircuitBreaker.Settings = .init()) {
    (self.limits, self.breaker) = (limits, breaker)
  }

  /// What waits for its client's own limits does not count.
  var waitingCount: Int {
    let free = busy.flatMap(\.lines).reduce(0) { $0 + ($1.own == nil ? $1.waiting.count : 0) }
    return clients.values.reduce(free) { $0 + $1.eager }
  }

  /// Requests that run, but for local ones.
  var runningCount: Int { owners.values.reduce(0) { $0 + $1.running } }

  subscript(_ id: ID) -> Entry? { entries[id] }

  // MARK: - In and out

  mutating func open(_ client: UInt64, _ limits: Limits) { clients[client] = ClientPlaces(limits) }

  /// Nothing of it waits or runs.
  mutating func close(_ client: UInt64) { clients[client] = nil }

  /// - Parameter order: who came first; nil for its id. Unique among those that wait.
  /// - Returns: whether it may be let in at once; false when that id waits or runs already: nothing is changed then.
  @discardableResult
  mutating func add(_ id: ID, _ request: Request, order: UInt64? = nil) -> Bool {
    guard entries[id] == nil else { return false }
    let order = (order ?? UInt64(truncatingIfNeeded: id)) | (request.priority == .urgent ? 0 : 1 << 63)
    let site = site(request)
    let line = line(request, of: guest(request, at: site), at: site)
    // Who has been let in before, elsewhere, came before most of them.
    let index = line.waiting.lastIndex { $0.order < order }.map { $0 + 1 } ?? 0
    line.waiting.insert((id, order), at: index)
    line.own?.waiting += 1
    entries[id] = Entry(request, site, line)
    return index == 0 && turn(of: line, at: site) != nil
  }

  /// Takes the next that may run, and counts it as running until `end`.
  ///
  /// - Returns: nil when nobody may.
  mutating func take() -> Granted? {
    // Mostly each client has again what it may have.
    guard clients.isEmpty || clients.values.contains(where: \.isOpen), let next = first() else { return nil }
    guard next.line.priority != .urgent, let client = next.line.own?.client else { return take(next) }
    return take(first { $1.priority == .urgent && $1.own?.client === client } ?? next)
  }

  private mutating func take(_ turn: Turn) -> Granted? {
    let (line, guest) = (turn.line, turn.line.guest)
    guard let id = line.waiting.first?.id, let entry = entries[id], let ticket = guest.breaker.admit(now: now)
    else { return nil }
    leaveLine(id, entry)
    entry.seat = (turn.hold, ticket)
    count(entry, 1)
    if turn.rank != .joins {
      (entry.site.clock, clock) = turn.passes
      let (flow, stride) = (line.priority.rawValue, (1 << 20) / line.priority.weight)
      guest.passes[flow] = turn.passes.here + stride
      guest.owner.passes[flow] = turn.passes.everywhere + stride
    }
    return (id, entry.request)
  }

  private mutating func leaveLine(_ id: ID, _ entry: Entry) {
    let (site, line) = (entry.site, entry.line)
    // Mostly the first one, also where a hundred thousand end.
    if let index = line.waiting.firstIndex(where: { $0.id == id }) { line.waiting.remove(at: index) }
    line.own?.waiting -= 1
    guard line.waiting.isEmpty else { return }
    site.lines.removeAll { $0 === line }
    if site.lines.isEmpty { busy.removeAll { $0 === site } }
  }

  /// - Parameter change: 1 for what it has from now on, -1 for what it has no more.
  private mutating func count(_ entry: Entry, _ change: Int) {
    guard let hold = entry.seat?.hold else { return }
    entry.line.own?.count(hold, change)
    let places = entry.guest.has.count(hold, change)
    guard !entry.site.isLocal else { return }
    entry.guest.owner.running += change
    countPlaces(entry.site, hold, places)
  }

  private mutating func countPlaces(_ site: Site, _ hold: Hold, _ change: Int) {
    taken += change
    site.places += change
    if hold == .large { site.large += change }
  }

  /// A stream that runs turns out to be a large file: it counts as one from now on, even beyond the places that there are.
  ///
  /// - Returns: false when that id is no stream that runs.
  @discardableResult
  mutating func outgrow(_ id: ID) -> Bool {
    guard let entry = entries[id], entry.seat?.hold == .stream else { return false }
    count(entry, -1)
    entry.seat?.hold = .large
    count(entry, 1)
    return true
  }

  /// A request waits no more, or runs no more and its place is free.
  ///
  /// - Returns: nil when it does neither.
  @discardableResult
  mutating func end(_ id: ID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    if entry.seat == nil { leaveLine(id, entry) } else { count(entry, -1) }
    // Where nobody is any more, nobody is to come last.
    if entry.site.isIdle { for guest in entry.site.guests { guest.isSilent = false } }
    if let own = entry.line.own, own.isIdle, let client = entry.request.client {
      clients[client]?.rest(own, at: entry.request.host)
    }
    return entry
  }

  /// The host has answered a running request; see `ClientHost.note`.
  mutating func heard(_ id: ID, isStream: Bool = false, isNew: Bool = false) {
    entries[id]?.guest.isSilent = false
    entries[id]?.line.own?.note(isStream: isStream, isNew: isNew)
  }

  /// Its host had trouble with a running request.
  mutating func meet(_ trouble: StreamLimit.Trouble, _ id: ID) { entries[id]?.line.own?.meet(trouble) }

  // MARK: - Who is next

  private func first(where mayGo: (Site, Line) -> Bool = { _, _ in true }) -> Turn? {
    var best: Turn?
    for site in busy {
      var here: Turn?
      for line in site.lines where mayGo(site, line) {
        if let turn = turn(of: line, at: site), here.map({ turn.here < $0.here }) ?? true { here = turn }
      }
      if let here, best.map({ here.everywhere < $0.everywhere }) ?? true { best = here }
    }
    return best
  }

  /// nil where it may not be let in.
  private func turn(of line: Line, at site: Site) -> Turn? {
    let guest = line.guest
    guard let hold = line.hold, mayGo(guest), let order = line.waiting.first?.order,
      let rank = rank(of: guest, hold, at: site)
    else { return nil }
    // Never behind the flow that was served last.
    let here = max(guest.passes[line.priority.rawValue], site.clock)
    let everywhere = max(guest.owner.passes[line.priority.rawValue], clock)
    return Turn(
      line: line, hold: hold, rank: rank, order: order, passes: rank == .joins ? (0, 0) : (here, everywhere))
  }

  /// It does not rest.
  private func mayGo(_ guest: Guest) -> Bool { guest.breaker.wait(now: now) == .zero }

  /// How a mirror's request would get in at a host; nil where it may not.
  private func rank(of guest: Guest, _ hold: Hold, at site: Site) -> Rank? {
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
    if isLastPlaceKept, guest.owner.running > 0 { return nil }
    return guest.isSilent && (isKeptHere || isLastPlaceKept) ? .silent : .byTurns
  }

  /// At most one place is left of all, and that not for everybody.
  private var isLastPlaceKept: Bool { isShared && limits.total > 1 && taken >= limits.total - 1 }

  /// A mirror waits that has no place at the host, or, where all are taken, none anywhere.
  private func isWaitedFor(_ site: Site) -> Bool {
    let isFull = taken >= limits.total
    return busy.contains { other in
      other.lines.contains {
        isNewcomer($0, at: other, for: site, isFull: isFull) && $0.hold != nil && mayGo($0.guest)
      }
    }
  }

  /// It is of a mirror that has no place at the host, or, where the last one of all is for who has none anywhere, none at all.
  private func isNewcomer(_ line: Line, at other: Site, for site: Site, isFull: Bool) -> Bool {
    if other === site { return line.guest.has.requests == 0 }
    return isFull && !other.isLocal && line.guest.owner.running == 0
  }

  // MARK: - Handing over

  /// Ends a running request for the good of a mirror that waits: one that has no place at its host or, where all places are
  /// taken, none anywhere. Mirrors that gave way themselves, and that the host has not answered since, come last.
  ///
  /// - Parameter isForOthers: such a one is asked to, for one that is none.
  /// - Returns: who runs now in its place: nobody where it was one of several streams, of which the last one gives the place. nil where
  ///   no such mirror would be let in for it: nothing is changed then.
  mutating func handOver(_ id: ID, isForOthers: Bool = false) -> (ended: Entry, next: Granted?)? {
    guard let entry = entries[id], let hold = entry.seat?.hold, !entry.site.isLocal,
      !isForOthers || entry.guest.isSilent
    else { return nil }
    countPlaces(entry.site, hold, -1)
    let isFull = isLastPlaceKept
    func first(isSilent: Bool) -> Turn? {
      self.first { isNewcomer($1, at: $0, for: entry.site, isFull: isFull) && $1.guest.isSilent == isSilent }
    }
    let next = first(isSilent: false) ?? (isForOthers ? nil : first(isSilent: true))
    countPlaces(entry.site, hold, 1)
    guard let next else { return nil }
    let isLast = hold != .stream || entry.guest.has.streams == 1
    end(id)
    entry.guest.isSilent = true
    return (entry, isLast ? take(next) : nil)
  }

  // MARK: - Sites, guests, lines

  var guests: [Guest] { sites.values.flatMap(\.guests) }

  func guests(at host: Host) -> [Guest] { sites[host]?.guests ?? [] }

  /// Those that wait there.
  func waiting(at guest: Guest) -> [ID] {
    let lines = sites[guest.host]?.lines.filter { $0.guest === guest } ?? []
    return lines.flatMap { $0.waiting.map(\.id) }
  }

  /// Keeps the host's last free place, where it has at least two, for mirrors that have none there; or no longer.
  mutating func setShared(_ isShared: Bool, host: Host) { sites[host]?.isShared = isShared }

  func guest(_ mirror: Mirror, at host: Host) -> Guest? { sites[host]?.guests.first { $0.mirror == mirror } }

  /// Who asks there, made known where it was not.
  mutating func guest(_ request: Request) -> Guest { guest(request, at: site(request)) }

  private mutating func site(_ request: Request) -> Site {
    if let site = sites[request.host] { return site }
    let site = Site(isLocal: request.isLocal)
    sites[request.host] = site
    return site
  }

  private mutating func guest(_ request: Request, at site: Site) -> Guest {
    if let guest = site.guests.first(where: { $0.mirror == request.mirror }) { return guest }
    let owner = owners[request.mirror] ?? Owner()
    owners[request.mirror] = owner
    let guest = Guest(request.mirror, request.host, owner, CircuitBreaker(breaker))
    site.guests.append(guest)
    guestCount += 1
    return guest
  }

  private mutating func line(_ request: Request, of guest: Guest, at site: Site) -> Line {
    let own = request.client.flatMap { clients[$0]?.host(request.host) }
    let known = site.lines.first {
      $0.guest === guest && $0.own === own && $0.kind == request.kind && $0.priority == request.priority
    }
    if let known { return known }
    let line = Line(guest, own, request)
    if site.lines.isEmpty { busy.append(site) }
    site.lines.append(line)
    return line
  }

  /// Forgets those where nobody is, and hosts and mirrors of which nothing is left.
  mutating func forget(where isOver: (Guest) -> Bool) {
    for (host, site) in sites {
      site.guests.removeAll { guest in
        guest.has.requests == 0 && !site.lines.contains { $0.guest === guest } && isOver(guest)
      }
      if site.guests.isEmpty { sites[host] = nil }
    }
    let left = guests
    guestCount = left.count
    let mirrors = Set(left.map(\.mirror))
    owners = owners.filter { mirrors.contains($0.key) }
  }
}
