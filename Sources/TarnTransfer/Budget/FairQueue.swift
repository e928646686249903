import DequeModule
import TarnCore

/// Requests that wait for a place: limits in all and per host, and each client's own; fair turns between mirrors, places kept for
/// small files, priorities. It holds ids, not what they stand for. Its parts are objects, which a copy would share: there is to be one.
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
struct FairQueue<ID: Hashable, Mirror: Hashable, Host: Hashable> {
  typealias Priority = TransferPriority
  typealias Limits = PlaceLimits
  typealias Client = ClientPlaces<Host>

  struct Request: Hashable {
    var mirror: Mirror
    var host: Host
    /// nil for one without limits of its own, whose short requests are streams.
    var client: UInt64?
    var priority = Priority.normal
    var kind = TransferKind.large
    /// Of this machine: only its client's own limits hold, and it takes none of the places that are shared.
    var isLocal = false
  }

  /// A mirror, everywhere.
  private final class Owner {
    /// What runs at hosts that are shared.
    var running = 0
    var turns = Turns()
  }

  /// Turns that a mirror's flows were served, in units of a stride.
  private struct Turns {
    private var passes = [UInt64](repeating: 0, count: Priority.allCases.count)

    /// Never behind the flow that was served last.
    func pass(_ priority: Priority, _ clock: UInt64) -> UInt64 { max(passes[priority.rawValue], clock) }

    mutating func serve(_ priority: Priority, _ pass: UInt64) {
      passes[priority.rawValue] = pass + (1 << 20) / priority.weight
    }

    func isAhead(of clock: UInt64) -> Bool { passes.contains { $0 > clock } }
  }

  /// A mirror at a host.
  private final class Guest {
    let mirror: Mirror
    let owner: Owner
    var running = 0
    /// Of that, streams.
    var streams = 0
    var turns = Turns()
    /// It is let in no more as things stand.
    var isHeld = false
    /// Its request gave its place away, and the host has not answered it since.
    var isSilent = false
    var lines: [Line] = []

    init(_ mirror: Mirror, _ owner: Owner) { (self.mirror, self.owner) = (mirror, owner) }
  }

  private final class Site {
    let isLocal: Bool
    /// Several mirrors use it.
    var isShared = false
    var places = 0
    var largePlaces = 0
    var waiting = 0
    var guests: [Guest] = []
    /// The pass of the flow that was served last.
    var clock: UInt64 = 0

    init(isLocal: Bool) { self.isLocal = isLocal }

    var isIdle: Bool { waiting == 0 && !guests.contains { $0.running > 0 || $0.isHeld } }
  }

  /// Requests that are alike, in their order.
  private final class Line {
    let client: UInt64?
    let own: ClientHost<Host>?
    let priority: Priority
    let kind: TransferKind
    private var waiting = Deque<(id: ID, order: UInt64)>()
    /// Of the first one; nil where nobody waits.
    private(set) var order: UInt64?

    init(_ own: ClientHost<Host>?, _ request: Request) {
      (self.own, client, priority, kind) = (own, request.client, request.priority, request.kind)
    }

    /// What the first one would have; nil where there is none, or its client's own limits keep it out.
    var hold: Hold? {
      guard order != nil else { return nil }
      guard let own else {
        return kind == .short || kind == .unknown ? .stream : .place(isLarge: kind == .large)
      }
      return own.hold(kind)
    }

    func insert(_ id: ID, order: UInt64) {
      // Who has been let in before, elsewhere, came before most of them.
      let index =
        waiting.last.map { $0.order < order } ?? true ? nil : waiting.firstIndex { $0.order > order }
      waiting.insert((id, order), at: index ?? waiting.count)
      self.order = waiting.first?.order
    }

    func popFirst() -> ID? {
      defer { order = waiting.first?.order }
      return waiting.popFirst()?.id
    }

    func remove(_ order: UInt64) {
      if let index = waiting.firstIndex(where: { $0.order == order }) { waiting.remove(at: index) }
      self.order = waiting.first?.order
    }
  }

  private final class Entry {
    enum State {
      case waiting(Line, order: UInt64)
      case running(Hold)
    }

    let request: Request
    let site: Site
    let guest: Guest
    let own: ClientHost<Host>?
    var state: State

    init(_ request: Request, _ site: Site, _ guest: Guest, _ line: Line, order: UInt64) {
      (self.request, self.site, self.guest, own) = (request, site, guest, line.own)
      state = .waiting(line, order: order)
    }

    var isUrgent: Bool { request.priority == .urgent }
  }

  /// The first of a line, which may be let in.
  private struct Turn {
    let site: Site
    let guest: Guest
    let line: Line
    let hold: Hold
    let order: UInt64
    let rank: Rank
    /// At the host, and everywhere.
    let passes: (here: UInt64, everywhere: UInt64)

    enum Rank: Int { case joins, byTurns, silent }

    var isJoining: Bool { rank == .joins }

    /// - Parameter isHere: both are at one host.
    func isBefore(_ other: Turn, isHere: Bool) -> Bool {
      if isJoining || other.isJoining {
        return isJoining == other.isJoining ? order < other.order : isJoining
      }
      return isHere
        ? (rank.rawValue, passes.here, order) < (other.rank.rawValue, other.passes.here, other.order)
        : (passes.everywhere, order) < (other.passes.everywhere, other.order)
    }
  }

  private(set) var limits: Limits
  private var entries: [ID: Entry] = [:]
  private var sites: [Host: Site] = [:]
  private var owners: [Mirror: Owner] = [:]
  private var clients: [UInt64: Client] = [:]
  private var waiting = 0
  /// Nothing has changed since nobody was to be let in.
  private var isSettled = false
  /// Requests that run, but for local ones.
  private(set) var runningCount = 0
  /// Places that are taken, in all.
  private var taken = 0
  private var isShared = false
  /// The pass of the flow that was served last.
  private var clock: UInt64 = 0
  private var sequence: UInt64 = 0

  init(_ limits: Limits) { self.limits = limits }

  /// What waits for its client's own limits does not count.
  var waitingCount: Int { clients.values.reduce(waiting) { $0 - $1.held } }

  // MARK: - Clients

  mutating func open(_ client: UInt64, _ limits: Limits) { clients[client] = Client(limits) }

  /// Nothing of it waits or runs.
  mutating func close(_ client: UInt64) { clients[client] = nil }

  /// The host has answered a running request; see `ClientHost.note`.
  mutating func note(_ id: ID, isStream: Bool, isNew: Bool) {
    entries[id]?.own?.note(isStream: isStream, isNew: isNew)
    isSettled = false
  }

  /// Its host had trouble with a running request.
  mutating func meet(_ trouble: StreamLimit.Trouble, _ id: ID) {
    entries[id]?.own?.meet(trouble)
    isSettled = false
  }

  // MARK: - In and out

  /// - Parameter order: who came first; nil for now. Unique among those that wait.
  /// - Returns: false when that id waits or runs already; nothing is changed then.
  @discardableResult
  mutating func add(_ id: ID, _ request: Request, order: UInt64? = nil) -> Bool {
    guard entries[id] == nil else { return false }
    sequence += 1
    let site = site(request.host, isLocal: request.isLocal)
    let guest = guest(request.mirror, at: site)
    let line = line(request, of: guest)
    let order = (order ?? sequence) | (request.priority == .urgent ? 0 : 1 << 63)
    line.insert(id, order: order)
    // Those behind others that are alike wait for these.
    if line.order == order { isSettled = false }
    let entry = Entry(request, site, guest, line, order: order)
    entries[id] = entry
    changeWaiting(entry, by: 1)
    return true
  }

  private mutating func changeWaiting(_ entry: Entry, by count: Int) {
    waiting += count
    entry.site.waiting += count
    guard let own = entry.own else { return }
    own.waiting += count
    own.client.waiting += count
    if entry.isUrgent { own.client.urgent += count }
  }

  /// Takes the next that may run, and counts it as running until `finish`.
  ///
  /// - Returns: nil when nobody may.
  mutating func take() -> (id: ID, request: Request)? {
    guard !isSettled, isHopeful, let next = first() else {
      isSettled = true
      return nil
    }
    guard next.line.priority != .urgent, let client = next.line.own?.client, client.urgent > 0 else {
      return take(next)
    }
    return take(first { $2.priority == .urgent && $2.own?.client === client } ?? next)
  }

  /// Somebody waits, and may perhaps be let in.
  private var isHopeful: Bool {
    clients.values.contains { $0.isHopeful } || waiting > clients.values.reduce(0) { $0 + $1.waiting }
  }

  private mutating func take(_ turn: Turn) -> (id: ID, request: Request)? {
    guard let id = turn.line.popFirst(), let entry = entries[id] else { return nil }
    changeWaiting(entry, by: -1)
    if !turn.isJoining {
      let (here, everywhere) = turn.passes
      (turn.site.clock, clock) = (max(turn.site.clock, here), max(clock, everywhere))
      turn.guest.turns.serve(turn.line.priority, here)
      turn.guest.owner.turns.serve(turn.line.priority, everywhere)
    }
    begin(entry, turn.hold)
    return (id, entry.request)
  }

  private mutating func begin(_ entry: Entry, _ hold: Hold) {
    entry.state = .running(hold)
    entry.own?.begin(hold)
    count(entry, hold, 1)
  }

  private mutating func end(_ entry: Entry, _ hold: Hold) {
    entry.own?.end(hold)
    count(entry, hold, -1)
  }

  /// - Parameter change: 1 for one that begins, -1 for one that ends.
  private mutating func count(_ entry: Entry, _ hold: Hold, _ change: Int) {
    isSettled = false
    entry.guest.running += change
    guard !entry.site.isLocal else { return }
    runningCount += change
    entry.guest.owner.running += change
    if hold == .stream {
      entry.guest.streams += change
      // The first one brings the place, and the last one takes it along.
      guard entry.guest.streams == (change > 0 ? 1 : 0) else { return }
    }
    countPlace(entry.site, hold, change)
  }

  private mutating func countPlace(_ site: Site, _ hold: Hold, _ change: Int) {
    taken += change
    site.places += change
    if hold.isLarge { site.largePlaces += change }
  }

  /// A stream that runs turns out to be a large file: it counts as one from now on, even beyond the places that there are.
  ///
  /// - Returns: false when that id is no stream that runs.
  @discardableResult
  mutating func outgrow(_ id: ID) -> Bool {
    guard let entry = entries[id], case .running(.stream) = entry.state else { return false }
    end(entry, .stream)
    begin(entry, .place(isLarge: true))
    return true
  }

  /// A running request has ended, and its place is free.
  ///
  /// - Returns: false when that id does not run.
  @discardableResult
  mutating func finish(_ id: ID) -> Bool {
    guard let entry = entries[id], case .running(let hold) = entry.state else { return false }
    entries[id] = nil
    end(entry, hold)
    tidy(entry)
    return true
  }

  /// Takes a waiting request out of its line.
  ///
  /// - Returns: false when that id does not wait.
  @discardableResult
  mutating func remove(_ id: ID) -> Bool {
    guard let entry = entries[id], case .waiting(let line, let order) = entry.state else { return false }
    entries[id] = nil
    line.remove(order)
    isSettled = false
    changeWaiting(entry, by: -1)
    tidy(entry)
    return true
  }

  /// What a running request has.
  func hold(of id: ID) -> Hold? {
    if case .running(let hold) = entries[id]?.state { hold } else { nil }
  }

  // MARK: - Who is next

  /// - Parameter mayGo: nil for everybody.
  private func first(where mayGo: ((Site, Guest, Line) -> Bool)? = nil) -> Turn? {
    var best: Turn?
    for site in sites.values where site.waiting > 0 {
      guard let next = first(at: site, where: mayGo) else { continue }
      if let best, !next.isBefore(best, isHere: false) { continue }
      best = next
    }
    return best
  }

  private func first(at site: Site, where mayGo: ((Site, Guest, Line) -> Bool)?) -> Turn? {
    var best: Turn?
    for guest in site.guests where !guest.isHeld {
      for line in guest.lines {
        guard let hold = line.hold, mayGo?(site, guest, line) ?? true,
          let rank = rank(of: guest, hold, at: site), let order = line.order
        else { continue }
        let passes = (
          guest.turns.pass(line.priority, site.clock), guest.owner.turns.pass(line.priority, clock)
        )
        let next = Turn(
          site: site, guest: guest, line: line, hold: hold, order: order, rank: rank, passes: passes)
        if let best, !next.isBefore(best, isHere: true) { continue }
        best = next
      }
    }
    return best
  }

  /// How a mirror's request would get in at a host; nil where it may not.
  private func rank(of guest: Guest, _ hold: Hold, at site: Site) -> Turn.Rank? {
    if site.isLocal { return .byTurns }
    if hold == .stream, guest.streams > 0 { return isWaitedFor(site) ? nil : .joins }
    guard taken < limits.total, site.places < limits.perHost else { return nil }
    let forNewcomers = site.isShared && limits.perHost > 1 ? 1 : 0
    let forSmall = min(limits.keptForSmall, max(0, limits.perHost - forNewcomers - 2))
    func isOpen(leaving kept: Int) -> Bool {
      site.places < limits.perHost - kept
        && (!hold.isLarge || site.largePlaces < limits.perHost - forSmall - kept)
    }
    guard isOpen(leaving: 0) else { return nil }
    // Where a large file has taken the newcomers' place, the last one is still that of the small files, of whomever they are.
    let isTaken = !hold.isLarge && forSmall > 0 && site.largePlaces > limits.perHost - forSmall - forNewcomers
    let isKeptHere = !isOpen(leaving: isTaken ? 0 : forNewcomers)
    if isKeptHere, guest.running > 0 { return nil }
    if isLastPlaceKept, guest.owner.running > 0 { return nil }
    return guest.isSilent && (isKeptHere || isLastPlaceKept) ? .silent : .byTurns
  }

  /// At most one place is left of all, and that not for everybody.
  private var isLastPlaceKept: Bool { isShared && limits.total > 1 && taken >= limits.total - 1 }

  /// A mirror waits that has no place at the host, or, where all are taken, none anywhere.
  private func isWaitedFor(_ site: Site) -> Bool {
    func waits(_ guest: Guest) -> Bool { !guest.isHeld && guest.lines.contains { $0.hold != nil } }
    if site.guests.contains(where: { $0.running == 0 && waits($0) }) { return true }
    return taken >= limits.total
      && sites.values.contains { other in
        other.waiting > 0 && !other.isLocal
          && other.guests.contains { $0.owner.running == 0 && waits($0) }
      }
  }

  // MARK: - Handing over

  enum Handover {
    /// No such mirror would be let in for it, and nothing is changed.
    case refused
    /// Who runs now in its place; nobody where it was one of several streams, of which the last one gives the place.
    case ended(next: (id: ID, request: Request)?)
  }

  /// Ends a running request for the good of a mirror that waits: one that has no place at its host or, where all places are
  /// taken, none anywhere. Mirrors that gave way themselves, and that the host has not answered since, come last.
  ///
  /// - Parameter isForOthers: such a one is asked to, for one that is none.
  mutating func handOver(_ id: ID, isForOthers: Bool = false) -> Handover {
    guard let entry = entries[id], case .running(let hold) = entry.state, !entry.site.isLocal,
      !isForOthers || entry.guest.isSilent, let next = successor(of: entry, hold, isForOthers: isForOthers)
    else { return .refused }
    let isLast = hold != .stream || entry.guest.streams == 1
    finish(id)
    entry.guest.isSilent = true
    return .ended(next: isLast ? take(next) : nil)
  }

  /// Who would be let in if the place was free.
  private mutating func successor(of entry: Entry, _ hold: Hold, isForOthers: Bool) -> Turn? {
    countPlace(entry.site, hold, -1)
    defer { countPlace(entry.site, hold, 1) }
    let isFull = isLastPlaceKept
    func isNew(_ site: Site, _ guest: Guest) -> Bool {
      // The last place of all is for who has none anywhere, at whatever host.
      site === entry.site ? guest.running == 0 : isFull && guest.owner.running == 0 && !site.isLocal
    }
    let heard = first { site, guest, _ in isNew(site, guest) && !guest.isSilent }
    return heard ?? (isForOthers ? nil : first { site, guest, _ in isNew(site, guest) })
  }

  /// The host has answered a running request.
  mutating func heard(_ id: ID) {
    guard let guest = entries[id]?.guest, guest.isSilent else { return }
    (guest.isSilent, isSettled) = (false, false)
  }

  // MARK: - Steering

  /// Lets no request of a mirror in to a host, or does so again: for a circuit that is open. Who runs there runs on.
  mutating func setHeld(_ isHeld: Bool, mirror: Mirror, host: Host) {
    let site = site(host, isLocal: false)
    guest(mirror, at: site).isHeld = isHeld
    isSettled = false
    if site.isIdle { sites[host] = nil }
  }

  /// Keeps the host's last free place, where it has at least two, for mirrors that have none there; or no longer.
  ///
  /// It is forgotten with a host at which nobody runs or waits.
  mutating func setShared(_ isShared: Bool, host: Host) {
    guard let site = sites[host], site.isShared != isShared else { return }
    site.isShared = isShared
    isSettled = false
  }

  /// Keeps the last free place of all, where there are at least two, for mirrors that have none anywhere; or no longer.
  mutating func setShared(_ isShared: Bool) { (self.isShared, isSettled) = (isShared, false) }

  /// Takes effect at once: nobody is stopped, and nobody let in beyond the new limits.
  mutating func setLimits(_ limits: Limits) { (self.limits, isSettled) = (limits, false) }

  // MARK: - Sites, guests, lines

  private mutating func site(_ host: Host, isLocal: Bool) -> Site {
    if let site = sites[host] { return site }
    let site = Site(isLocal: isLocal)
    sites[host] = site
    return site
  }

  private mutating func guest(_ mirror: Mirror, at site: Site) -> Guest {
    if let guest = site.guests.first(where: { $0.mirror == mirror }) { return guest }
    let guest = Guest(mirror, owner(mirror))
    site.guests.append(guest)
    return guest
  }

  private mutating func owner(_ mirror: Mirror) -> Owner {
    if let owner = owners[mirror] { return owner }
    // One that is not ahead of the others is where a new one would be.
    if owners.count >= 64 {
      let present = Set(sites.values.flatMap(\.guests).map(\.mirror))
      owners = owners.filter { present.contains($0.key) || $0.value.turns.isAhead(of: clock) }
    }
    let owner = Owner()
    owners[mirror] = owner
    return owner
  }

  private func line(_ request: Request, of guest: Guest) -> Line {
    let known = guest.lines.first {
      $0.client == request.client && $0.kind == request.kind && $0.priority == request.priority
    }
    if let known { return known }
    let line = Line(request.client.flatMap { clients[$0] }?.host(request.host), request)
    guest.lines.append(line)
    return line
  }

  /// Forgets what is empty.
  private mutating func tidy(_ entry: Entry) {
    if let own = entry.own, own.isIdle {
      entry.guest.lines.removeAll { $0.own === own }
      own.client.rest(own, at: entry.request.host)
    }
    if entry.site.isIdle { sites[entry.request.host] = nil }
  }
}
