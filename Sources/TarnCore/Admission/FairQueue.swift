import HeapModule

/// How often a mirror's requests come before those of others.
package enum TransferPriority: Int, Sendable, Hashable, CaseIterable, Comparable {
  /// `urgent` is for single requests that somebody waits for.
  case low, normal, high, urgent

  /// Turns to one of the lowest.
  package var weight: UInt64 {
    switch self {
    case .low: 1
    case .normal: 4
    case .high: 16
    case .urgent: 64
    }
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Requests of many mirrors that wait for a place: limits in all and per host, fair turns between mirrors, places kept for
/// small files, priorities. A value; it holds ids, not what they stand for.
///
/// Turns are by stride: at each host the flows (a mirror's requests of one priority) that wait there are served in
/// proportion to their weights; among hosts with a free place, the flow goes first that has been served least everywhere.
/// What joins later starts where the others are, so that nobody saves up turns, and nobody waits for ever.
///
/// Where several mirrors share a host, its last free place goes only to a mirror that has none there, and likewise the last
/// one of all (`setShared`): requests of one mirror that hang would else keep the others out until they time out. Where a large file
/// of such a mirror has that place, the one for small files is still there for all. Who is alone has all places.
///
/// Requests that are streams of a mirror's connection to a host share one place, which the first of them takes: others join those that
/// run without waiting for their mirror's turn, for they take nothing from anybody. They do not while a mirror waits that has no place
/// at the host, or, where all are taken, none anywhere: else the streams of others would never end for it.
///
/// Adding, finishing and removing cost O(log n) amortised, n the flows and hosts at work; taking, too, and as much again for
/// each other host at which the flow that was served stands first. Where only a kept place is free it is O(flows that wait there).
package struct FairQueue<ID: Hashable & Sendable, Mirror: Hashable & Sendable, Host: Hashable & Sendable>:
  Sendable
{
  package typealias Priority = TransferPriority

  package struct Limits: Sendable, Hashable {
    /// Places in all, at least 1.
    package var total: Int
    /// Places per host, at least 1.
    package var perHost: Int
    /// Of each host's places, so many take small files only. Two are always left to files of any size, or a feed that says
    /// no sizes would have them one by one.
    package var keptForSmall: Int

    package init(total: Int, perHost: Int, keptForSmall: Int = 1) {
      self.total = max(1, total)
      self.perHost = max(1, perHost)
      self.keptForSmall = max(0, min(keptForSmall, perHost - 2))
    }
  }

  package struct Request: Sendable, Hashable {
    package var mirror: Mirror
    package var host: Host
    package var priority: Priority
    package var isSmall: Bool
    /// Shares a place with the mirror's other streams at the host.
    package var isStream: Bool

    package init(
      mirror: Mirror, host: Host, priority: Priority = .normal, isSmall: Bool = false, isStream: Bool = false
    ) {
      self.mirror = mirror
      self.host = host
      self.priority = priority
      self.isSmall = isSmall || isStream
      self.isStream = isStream
    }
  }

  struct Flow: Hashable, Sendable {
    let mirror: Mirror
    let priority: Priority
  }

  /// Where requests of one kind for one host stand.
  struct Door: Hashable, Sendable {
    let host: Host
    let isSmall: Bool
    let isStream: Bool
  }

  /// A mirror's streams of one priority that wait at a host where others of them run.
  private struct Joining: Hashable, Sendable {
    let door: Door
    let flow: Flow
  }

  private struct HostState: Sendable {
    /// Places.
    var running = 0
    var runningLarge = 0
    var isHeld = false
    /// Several mirrors use it.
    var isShared = false
    var lines = 0
    /// What runs of each mirror of which anything does.
    var places: [Mirror: Int] = [:]
    /// Of that, streams.
    var streams: [Mirror: Int] = [:]
    /// Mirrors whose requests gave their places away, and that the host has not answered since.
    var silent: Set<Mirror> = []
  }

  /// Whom a door lets in.
  private enum Opening {
    case nobody, everybody
    /// Mirrors that have no place at the host, or none anywhere.
    case newcomers(here: Bool, anywhere: Bool)
  }

  package private(set) var limits: Limits
  private var waiting: [ID: (request: Request, slot: Int)] = [:]
  private var running: [ID: Request] = [:]
  /// Places that are taken, in all.
  private var taken = 0
  /// Who may perhaps join those that run, and who may not as things stand.
  private var joining: Set<Joining> = []
  private var yielding: Set<Joining> = []
  private var hosts: [Host: HostState] = [:]
  private var lines: [Door: HostQueue<ID, Flow>] = [:]
  /// What runs of each mirror of which anything does, everywhere.
  private var places: [Mirror: Int] = [:]
  private var isShared = false
  /// Doors at which nobody may have the last place of all.
  private var barred: Set<Door> = []
  /// Turns served, everywhere, in units of a stride.
  private var served: [Flow: (pass: UInt64, doors: Int)] = [:]
  /// The pass of the flow that was served last.
  private var clock: UInt64 = 0
  /// Doors that may open, by the least pass of whom they would let in; an entry may be out of date.
  private var ready = Heap<Proposal>()
  private var sequence: UInt64 = 0
  private var proposals: UInt64 = 0

  private struct Proposal: Comparable, Sendable {
    let pass: UInt64
    let order: UInt64
    let door: Door
    let number: UInt64

    static func < (left: Self, right: Self) -> Bool { (left.pass, left.order) < (right.pass, right.order) }
    static func == (left: Self, right: Self) -> Bool { (left.pass, left.order) == (right.pass, right.order) }
  }

  package init(_ limits: Limits) {
    self.limits = limits
  }

  package var waitingCount: Int { waiting.count }

  package var runningCount: Int { running.count }

  // MARK: - In and out

  /// - Returns: false when that id waits or runs already; nothing is changed then.
  @discardableResult
  package mutating func add(_ id: ID, _ request: Request) -> Bool {
    guard waiting[id] == nil, running[id] == nil else { return false }
    sequence += 1
    let (door, flow) = Self.place(of: request)
    if lines[door] == nil { hosts[request.host, default: HostState()].lines += 1 }
    // Where turns are even, an urgent one goes first.
    let order = request.priority == .urgent ? sequence : sequence | 1 << 63
    let (slot, isNew) = lines[door, default: HostQueue()].append(id, flow, order: order)
    waiting[id] = (request, slot)
    if isNew {
      let entry = served[flow] ?? (clock, 0)
      served[flow] = (entry.doors == 0 ? max(entry.pass, clock) : entry.pass, entry.doors + 1)
    }
    propose(door)
    if request.isStream { proposeJoining(request.mirror, at: request.host) }
    return true
  }

  /// Takes the next that may run, and counts it as running until `finish`.
  ///
  /// - Returns: nil when nobody may.
  package mutating func take() -> (id: ID, request: Request)? {
    while let next = joining.first {
      if let taken = join(next) { return taken }
      joining.remove(next)
      if isWaiting(next) { yielding.insert(next) }
    }
    while taken < limits.total, let proposal = ready.popMin() {
      let door = proposal.door
      guard lines[door]?.proposal?.number == proposal.number else { continue }
      lines[door]?.proposal = nil
      guard let head = head(of: door), let entry = served[head.flow] else {
        bar(door)
        continue
      }
      // Since it was proposed the flow was served elsewhere, or another one is the first that may go.
      if entry.pass > proposal.pass {
        propose(door)
        continue
      }
      return take(head.flow, from: door, pass: entry.pass)
    }
    return nil
  }

  private mutating func take(_ flow: Flow, from door: Door, pass: UInt64) -> (id: ID, request: Request)? {
    guard let (id, isLast) = lines[door]?.popFirst(of: flow, stride: Self.stride(flow)),
      let request = waiting.removeValue(forKey: id)?.request
    else { return nil }
    clock = max(clock, pass)
    served[flow]?.pass = pass + Self.stride(flow)
    if isLast { leave(flow) }
    run(id, request)
    clean(door)
    propose(host: door.host)
    if request.isStream { proposeJoining(request.mirror, at: door.host) }
    lookAgain()
    return (id, request)
  }

  private func isWaiting(_ next: Joining) -> Bool {
    hosts[next.door.host]?.streams[next.flow.mirror] != nil && lines[next.door]?.first(of: next.flow) != nil
  }

  /// Something has changed for those that may not join.
  private mutating func lookAgain() {
    joining.formUnion(yielding)
    yielding = []
  }

  /// Another stream beside those that run.
  private mutating func join(_ next: Joining) -> (id: ID, request: Request)? {
    guard let host = hosts[next.door.host], !host.isHeld, host.streams[next.flow.mirror] != nil,
      !isWaitedFor(host, next.door.host), let id = lines[next.door]?.first(of: next.flow),
      let (request, slot) = waiting.removeValue(forKey: id)
    else { return nil }
    if lines[next.door]?.remove(slot: slot, next.flow) == true { leave(next.flow) }
    run(id, request)
    clean(next.door)
    propose(next.door)
    return (id, request)
  }

  /// A mirror waits that has no place at the host, or, where all are taken, none anywhere.
  private func isWaitedFor(_ state: HostState, _ host: Host) -> Bool {
    let isHere = Self.doors(of: host).contains { door in
      lines[door]?.first { state.places[$0.mirror] == nil } != nil
    }
    return isHere
      || taken >= limits.total && served.contains { $0.value.doors > 0 && places[$0.key.mirror] == nil }
  }

  private mutating func run(_ id: ID, _ request: Request) {
    running[id] = request
    places[request.mirror, default: 0] += 1
    change(request.host) { host in
      host.places[request.mirror, default: 0] += 1
      if request.isStream { host.streams[request.mirror, default: 0] += 1 }
      guard !request.isStream || host.streams[request.mirror] == 1 else { return }
      host.running += 1
      if !request.isSmall { host.runningLarge += 1 }
    }
  }

  /// Counts the places that a host has more or fewer of afterwards.
  private mutating func change(_ host: Host, _ body: (inout HostState) -> Void) {
    guard var state = hosts[host] else { return }
    hosts[host] = nil
    let before = state.running
    body(&state)
    taken += state.running - before
    hosts[host] = state
  }

  /// A stream that runs turns out to be a large file: it counts as one from now on, even beyond the places that there are.
  ///
  /// - Returns: false when that id is no stream that runs.
  @discardableResult
  package mutating func outgrow(_ id: ID) -> Bool {
    guard var request = running[id], request.isStream else { return false }
    finish(id)
    (request.isStream, request.isSmall) = (false, false)
    if hosts[request.host] == nil { hosts[request.host] = HostState() }
    run(id, request)
    return true
  }

  /// A running request has ended, and its place is free.
  ///
  /// - Returns: false when that id does not run.
  @discardableResult
  package mutating func finish(_ id: ID) -> Bool {
    guard let request = running.removeValue(forKey: id) else { return false }
    Self.giveBack(request.mirror, &places)
    change(request.host) { host in
      Self.giveBack(request.mirror, &host.places)
      if request.isStream { Self.giveBack(request.mirror, &host.streams) }
      guard !request.isStream || host.streams[request.mirror] == nil else { return }
      host.running -= 1
      if !request.isSmall { host.runningLarge -= 1 }
    }
    propose(host: request.host)
    drop(request.host)
    let doors = barred
    barred = []
    for door in doors { propose(door) }
    lookAgain()
    return true
  }

  /// Ends a running request for the good of a mirror that waits: one that has no place at its host or, where all places are
  /// taken, none anywhere. Mirrors that gave way themselves, and that the host has not answered since, come last. O(flows that
  /// wait at the host, and doors).
  ///
  /// - Parameter isForOthers: such a one is asked to, for one that is none.
  package mutating func handOver(_ id: ID, isForOthers: Bool = false) -> Handover {
    guard let request = running[id], let host = hosts[request.host] else { return .refused }
    if isForOthers, !host.silent.contains(request.mirror) { return .refused }
    let found = successor(of: id) { $0 } ?? (isForOthers ? nil : successor(of: id) { _ in true })
    guard let (door, flow) = found, let pass = served[flow]?.pass else { return .refused }
    let isLast = !request.isStream || host.streams[request.mirror] == 1
    finish(id)
    let next = isLast ? take(flow, from: door, pass: pass) : nil
    hosts[request.host]?.silent.insert(request.mirror)
    return .ended(next: next)
  }

  package enum Handover: Sendable {
    /// No such mirror would be let in for it, and nothing is changed.
    case refused
    /// Who runs now in its place; nobody where it was one of several streams, of which the last one gives the place.
    case ended(next: (id: ID, request: Request)?)
  }

  /// The host has answered a running request.
  package mutating func heard(_ id: ID) {
    guard let request = running[id], hosts[request.host]?.silent.remove(request.mirror) != nil else { return }
    propose(host: request.host)
  }

  /// - Parameter mayBe: asked for each mirror whether it was heard of since it gave way.
  private func successor(of id: ID, where mayBe: (Bool) -> Bool) -> (Door, Flow)? {
    guard let request = running[id], let host = hosts[request.host], taken <= limits.total else {
      return nil
    }
    let isFull = isShared && limits.total > 1 && taken == limits.total
    if !host.isHeld, host.running <= limits.perHost {
      let large = host.runningLarge - (request.isSmall ? 0 : 1)
      for door in Self.doors(of: request.host)
      where door.isSmall || large < limits.perHost - keptForSmall(at: host) {
        let first = lines[door]?.first { flow in
          host.places[flow.mirror] == nil && !(isFull && places[flow.mirror] != nil)
            && mayBe(!host.silent.contains(flow.mirror))
        }
        if let first { return (door, first.flow) }
      }
    }
    guard isFull else { return nil }
    // The last place of all is for who has none anywhere, at whatever host.
    let others = lines.keys.compactMap { door in head(of: door).map { (door, $0.flow) } }
      .filter { door, flow in mayBe(hosts[door.host]?.silent.contains(flow.mirror) == false) }
    return others.min { served[$0.1]?.pass ?? 0 < served[$1.1]?.pass ?? 0 }
  }

  private static func giveBack(_ mirror: Mirror, _ places: inout [Mirror: Int]) {
    guard let count = places[mirror] else { return }
    places[mirror] = count > 1 ? count - 1 : nil
  }

  /// Takes a waiting request out of its line.
  ///
  /// - Returns: false when that id does not wait.
  @discardableResult
  package mutating func remove(_ id: ID) -> Bool {
    guard let (request, slot) = waiting.removeValue(forKey: id) else { return false }
    let (door, flow) = Self.place(of: request)
    if lines[door]?.remove(slot: slot, flow) == true { leave(flow) }
    clean(door)
    propose(door)
    drop(request.host)
    lookAgain()
    return true
  }

  // MARK: - Steering

  /// Lets nobody in to a host, or does so again: for a circuit that is open. Who runs there runs on.
  package mutating func setHeld(_ isHeld: Bool, host: Host) {
    hosts[host, default: HostState()].isHeld = isHeld
    propose(host: host)
    lookAgain()
    drop(host)
  }

  /// Keeps the host's last free place, where it has at least two, for mirrors that have none there; or no longer.
  ///
  /// It is forgotten with a host at which nobody runs or waits.
  package mutating func setShared(_ isShared: Bool, host: Host) {
    guard let state = hosts[host], state.isShared != isShared else { return }
    hosts[host]?.isShared = isShared
    propose(host: host)
  }

  /// Keeps the last free place of all, where there are at least two, for mirrors that have none anywhere; or no longer.
  package mutating func setShared(_ isShared: Bool) {
    guard self.isShared != isShared else { return }
    self.isShared = isShared
    barred = []
    for host in hosts.keys { propose(host: host) }
  }

  /// Takes effect at once: nobody is stopped, and nobody let in beyond the new limits.
  package mutating func setLimits(_ limits: Limits) {
    self.limits = limits
    for host in hosts.keys { propose(host: host) }
    lookAgain()
  }

  // MARK: - Doors

  /// What a turn costs a flow.
  private static func stride(_ flow: Flow) -> UInt64 { (1 << 20) / flow.priority.weight }

  private static func place(of request: Request) -> (Door, Flow) {
    (
      Door(host: request.host, isSmall: request.isSmall, isStream: request.isStream),
      Flow(mirror: request.mirror, priority: request.priority)
    )
  }

  /// At most one place is left of all, and that not for everybody.
  private var isLastPlaceKept: Bool { isShared && limits.total > 1 && taken >= limits.total - 1 }

  private mutating func bar(_ door: Door) {
    if isLastPlaceKept { barred.insert(door) }
  }

  private func keptForNewcomers(at host: HostState) -> Int { host.isShared && limits.perHost > 1 ? 1 : 0 }

  private func keptForSmall(at host: HostState) -> Int {
    min(limits.keptForSmall, max(0, limits.perHost - keptForNewcomers(at: host) - 2))
  }

  private func opening(of door: Door) -> Opening {
    guard let host = hosts[door.host], !host.isHeld, host.running < limits.perHost else { return .nobody }
    let forNewcomers = keptForNewcomers(at: host)
    let forSmall = keptForSmall(at: host)
    func isOpen(leaving kept: Int) -> Bool {
      host.running < limits.perHost - kept
        && (door.isSmall || host.runningLarge < limits.perHost - forSmall - kept)
    }
    guard isOpen(leaving: 0) else { return .nobody }
    // Where a large file has taken the newcomers' place, the last one is still that of the small files, of whomever they are.
    let isTaken = door.isSmall && forSmall > 0 && host.runningLarge > limits.perHost - forSmall - forNewcomers
    let here = !isOpen(leaving: isTaken ? 0 : forNewcomers)
    let anywhere = isLastPlaceKept
    return here || anywhere ? .newcomers(here: here, anywhere: anywhere) : .everybody
  }

  /// Whose turn it is at a door, of those whom it lets in.
  private func head(of door: Door) -> (flow: Flow, order: UInt64)? {
    switch opening(of: door) {
    case .nobody: return nil
    case .everybody: return lines[door]?.first
    case .newcomers(let here, let anywhere):
      guard let host = hosts[door.host], let line = lines[door] else { return nil }
      func mayGo(_ flow: Flow) -> Bool {
        !(here && host.places[flow.mirror] != nil) && !(anywhere && places[flow.mirror] != nil)
      }
      guard !host.silent.isEmpty else { return line.first(where: mayGo) }
      return line.first { mayGo($0) && !host.silent.contains($0.mirror) } ?? line.first(where: mayGo)
    }
  }

  private static func doors(of host: Host) -> [Door] {
    [(true, false), (false, false), (true, true)].map { isSmall, isStream in
      Door(host: host, isSmall: isSmall, isStream: isStream)
    }
  }

  private mutating func propose(host: Host) {
    for door in Self.doors(of: host) { propose(door) }
  }

  private mutating func proposeJoining(_ mirror: Mirror, at host: Host) {
    guard hosts[host]?.streams[mirror] != nil else { return }
    let door = Door(host: host, isSmall: true, isStream: true)
    for priority in Priority.allCases {
      let flow = Flow(mirror: mirror, priority: priority)
      if lines[door]?.first(of: flow) != nil { joining.insert(Joining(door: door, flow: flow)) }
    }
  }

  /// Puts a door into `ready` with whom it would let in now; what was said of it before is void.
  private mutating func propose(_ door: Door) {
    guard let line = lines[door] else { return }
    guard let head = head(of: door) else { return bar(door) }
    guard line.proposal?.order != head.order, let pass = served[head.flow]?.pass else { return }
    proposals += 1
    lines[door]?.proposal = (proposals, head.order)
    ready.insert(Proposal(pass: pass, order: head.order, door: door, number: proposals))
    // Void ones are bounded by the doors.
    if ready.count > 64 + 4 * lines.count {
      ready = Heap(ready.unordered.filter { lines[$0.door]?.proposal?.number == $0.number })
    }
  }

  /// The flow has nothing more at some door.
  private mutating func leave(_ flow: Flow) {
    guard let entry = served[flow] else { return }
    served[flow] = (entry.pass, entry.doors - 1)
    // A flow that is not ahead of the others is where a new one would be.
    if entry.doors == 1, entry.pass <= clock { served[flow] = nil }
    if served.count > 64 + 4 * lines.count {
      served = served.filter { $0.value.doors > 0 || $0.value.pass > clock }
    }
  }

  private mutating func clean(_ door: Door) {
    guard lines[door]?.isEmpty == true else { return }
    lines[door] = nil
    barred.remove(door)
    hosts[door.host]?.lines -= 1
  }

  private mutating func drop(_ host: Host) {
    guard let state = hosts[host], state.running == 0, state.lines == 0, !state.isHeld else { return }
    hosts[host] = nil
  }
}
