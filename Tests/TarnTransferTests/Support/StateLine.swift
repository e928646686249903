import TarnCore
import TestSupport

@testable import TarnTransfer

/// A budget's state by reference, for an expectation may not change a value. Its requests have numbers of the test's own, and are let in
/// one by one.
final class StateLine {
  struct Request: Hashable {
    var mirror: String
    /// `file` is this machine.
    var host: String
    /// nil: of its mirror's own, whose limits keep nobody out.
    var client: UInt64?
    var priority = TransferPriority.normal
    var kind = TransferKind.large

    init(
      _ mirror: String, _ host: String, client: UInt64? = nil, priority: TransferPriority = .normal,
      kind: TransferKind = .large
    ) {
      (self.mirror, self.host, self.client, self.priority, self.kind) = (mirror, host, client, priority, kind)
    }

    var route: Route {
      Route(origin: Origin(scheme: host == "file" ? .file : .http, host: host, port: ""), proxy: nil)
    }
    var isSmall: Bool { kind == .small || kind == .short }
    var isStream: Bool { kind == .short }
  }

  private var state: BudgetState
  private let member = Member()
  private var clients: [String: UInt64] = [:]
  private var places: [Int: TransferBudget.Place] = [:]
  private var requests: [TransferBudget.Place: (id: Int, request: Request)] = [:]
  private var shared: Set<String> = []
  private var held: Set<String> = []

  init(_ limits: PlaceLimits) {
    state = BudgetState(limits, breaker: CircuitBreaker.Settings(), random: MostRandom())
  }

  var waitingCount: Int { state.waitingCount }
  var runningCount: Int { state.runningCount }

  func open(_ limits: PlaceLimits) -> UInt64 { state.open(limits) }

  func add(_ id: Int, _ request: Request, order: UInt64? = nil) {
    state.setPriority(request.priority, mirror: request.mirror)
    let client = request.client ?? client(of: request.mirror)
    let asked = BudgetState.Request(
      mirror: request.mirror, route: request.route, client: client, kind: request.kind,
      isUrgent: request.priority == .urgent)
    let place = state.enter(asked, order: order, member: member)
    (places[id], requests[place]) = (place, (id, request))
    share(request.host)
    hold(request.host)
    // Without a client of the test's what is a stream is known.
    if request.client == nil, request.isStream, hold(place) != .stream { answer(place) }
  }

  private func client(of mirror: String) -> UInt64 {
    if let known = clients[mirror] { return known }
    let client = state.open(PlaceLimits(total: .max, perHost: StreamLimit.first - 1))
    clients[mirror] = client
    return client
  }

  private func hold(_ place: TransferBudget.Place) -> Hold? {
    state.entries[place]?.line.own.hold(.short)
  }

  private func answer(_ place: TransferBudget.Place) {
    state.entries[place]?.line.own.note(isStream: true, isNew: false)
  }

  /// Lets one in.
  func take() -> (id: Int, request: Request)? { state.letIn().flatMap { requests[$0] } }

  /// What one has that runs; nil while it waits.
  func hold(of id: Int) -> Hold? { places[id].flatMap { state.entries[$0]?.seat?.hold } }

  /// Ends one that runs.
  @discardableResult func finish(_ id: Int) -> Bool { hold(of: id) != nil && leave(id) }

  /// Takes one that waits out of its line.
  func remove(_ id: Int) -> Bool { hold(of: id) == nil && leave(id) }

  private func leave(_ id: Int) -> Bool {
    guard let place = places.removeValue(forKey: id), state.entries[place] != nil else { return false }
    state.leave(place, .cancelled)
    requests[place] = nil
    return true
  }

  /// A request gave way: who runs in its place, if somebody does.
  struct Given {
    let next: Int?
  }

  /// - Returns: nil where it goes on.
  func giveWay(_ id: Int, isForOthers: Bool = false) -> Given? {
    let waiting = places.keys.filter { hold(of: $0) == nil }
    guard let place = places[id], state.giveWay(place, isForOthers: isForOthers) else { return nil }
    places[id] = nil
    return Given(next: waiting.first { hold(of: $0) != nil })
  }

  func heard(_ id: Int, isStream: Bool = false, isNew: Bool = false) {
    if let place = places[id] { state.answered(place, isStream: isStream, isNew: isNew) }
  }

  func meetTrouble(_ id: Int) {
    if let place = places[id] { state.meetTrouble(place) }
  }

  func outgrow(_ id: Int) -> Hold? {
    if let place = places[id] { state.outgrow(place) }
    return hold(of: id)
  }

  // MARK: Hosts

  func setLimits(_ limits: PlaceLimits) { state.limits = limits }
  func setShared(_ isShared: Bool) { state.isShared = isShared }

  /// By several mirrors: else those that ask there are as if each was alone.
  func setShared(_ isShared: Bool, host: String) {
    if isShared { shared.insert(host) } else { shared.remove(host) }
    share(host)
  }

  private func share(_ host: String) {
    state.sites[Request("", host).route]?.isShared = shared.contains(host)
  }

  /// Left alone by all mirrors that have asked there.
  func setHeld(_ isHeld: Bool, host: String) {
    if isHeld { held.insert(host) } else { held.remove(host) }
    for mirror in state.mirrors.values { mirror.guests[Request("", host).route]?.breaker = CircuitBreaker() }
    hold(host)
  }

  private func hold(_ host: String) {
    guard held.contains(host) else { return }
    for guest in state.mirrors.values.compactMap({ $0.guests[Request("", host).route] }) {
      // Short enough to be waited for.
      guard let ticket = guest.breaker.admit(now: 0) else { continue }
      guest.breaker.report(ticket, .asked(retryAfter: 5), now: 0, random: 0)
    }
  }
}
