import DequeModule
import HeapModule

/// Exchanges that wait for a place: first come, first served among the hosts that have a place free.
///
/// A host at its limit keeps its own queues and holds up no other. Adding and taking cost O(log hosts).
///
/// A place is a connection. Each exchange has one, but where a host speaks HTTP/2 short ones are streams: all of these at a host share
/// one place, and `StreamLimit` says how many there may be. Where streams need more connections than that, libcurl opens them, up to
/// its own limit for a host.
struct WaitingLine<Element>: ~Copyable {
  enum Kind: CaseIterable {
    case large
    /// May have a place that is kept for small ones.
    case small
    /// Small, and so short that over HTTP/2 it is a stream.
    case short
    /// Counts as large over HTTP/1, and as short over HTTP/2 until more has come.
    case unknown
  }

  /// What an exchange has from when it is taken until it leaves.
  enum Hold: Equatable {
    case place(isLarge: Bool)
    case stream
  }

  /// Who has come out of the line.
  struct Taken {
    let element: Element
    let origin: Origin
    let hold: Hold
  }

  private typealias Waiter = (order: UInt64, element: Element)

  private struct Rules {
    let total: Int
    let perHost: Int
    /// So many take small files only; two are always left to files of any size.
    let keptForSmall: Int
    let mayStream: Bool
  }

  /// How one gets in.
  private enum Way: Int, CaseIterable {
    /// Beside other streams.
    case joining
    case byPlace
  }

  private struct Turn {
    let order: UInt64
    let kind: Kind
    let hold: Hold
  }

  private enum Speech {
    case unknown
    case streams(StreamLimit)
    /// Whatever it speaks, it had trouble: no more at once than connections.
    case connections
  }

  /// A class: each change of a value in a dictionary costs three allocations, and there are some for every exchange.
  private final class Host {
    private var queues = [Deque<Waiter>](repeating: [], count: Kind.allCases.count)
    private var whole = 0
    private var wholeLarge = 0
    private var streams = 0
    private(set) var speaks = Speech.unknown
    /// By way: the order under which it stands among those that are ready; nil where it does not.
    var readyOrders = [UInt64?](repeating: nil, count: Way.allCases.count)

    var places: Int { whole + (streams > 0 ? 1 : 0) }

    var isIdle: Bool { whole == 0 && streams == 0 && queues.allSatisfy(\.isEmpty) }

    private func first(_ kind: Kind) -> UInt64? { queues[kind.index].first?.order }

    func append(_ waiter: Waiter, _ kind: Kind) { queues[kind.index].append(waiter) }
    func prepend(_ waiter: Waiter, _ kind: Kind) { queues[kind.index].prepend(waiter) }

    /// Who comes next by that way: the first of those whose queues may go.
    func next(_ way: Way, _ rules: Rules) -> Turn? {
      let limit = streamLimit(rules)
      var next: Turn?
      for kind in Kind.allCases {
        guard let order = first(kind), order < next?.order ?? .max,
          let hold = hold(kind, way, limit: limit, rules)
        else { continue }
        next = Turn(order: order, kind: kind, hold: hold)
      }
      return next
    }

    /// What one of that kind would have if it got in that way now; nil where it may not.
    private func hold(_ kind: Kind, _ way: Way, limit: Int, _ rules: Rules) -> Hold? {
      if limit > 0, kind == .short || kind == .unknown {
        switch way {
        case .joining: return streams > 0 && streams < limit ? .stream : nil
        case .byPlace: return streams == 0 && places < rules.perHost ? .stream : nil
        }
      }
      let isLarge = kind == .large || kind == .unknown
      guard way == .byPlace, places < rules.perHost,
        !isLarge || wholeLarge < rules.perHost - rules.keptForSmall
      else { return nil }
      return .place(isLarge: isLarge)
    }

    private func streamLimit(_ rules: Rules) -> Int {
      // With no more of them than places each may as well have its own.
      guard rules.mayStream, case .streams(let limit) = speaks, limit.most > rules.perHost else { return 0 }
      return limit.most
    }

    func take(_ turn: Turn) -> Element? {
      guard let waiter = queues[turn.kind.index].popFirst() else { return nil }
      switch turn.hold {
      case .stream: streams += 1
      case .place(let isLarge): addPlace(isLarge: isLarge)
      }
      return waiter.element
    }

    private func addPlace(isLarge: Bool) {
      whole += 1
      if isLarge { wholeLarge += 1 }
    }

    func leave(_ hold: Hold) {
      switch hold {
      case .stream:
        streams -= 1
        change { $0.ended() }
      case .place(let isLarge):
        whole -= 1
        if isLarge { wholeLarge -= 1 }
      }
      if isIdle { change { $0.rested() } }
    }

    /// A stream turns out to be long: it counts as a place, even beyond those that there are.
    func outgrow() {
      streams -= 1
      change { $0.ended() }
      addPlace(isLarge: true)
    }

    func note(isStream: Bool, isNew: Bool) {
      switch speaks {
      case .unknown: if isStream { speaks = .streams(StreamLimit()) }
      case .streams:
        if isStream { change { $0.answered(isNew: isNew, running: streams) } } else { speaks = .unknown }
      case .connections: break
      }
    }

    func meet(_ trouble: StreamLimit.Trouble, _ rules: Rules) {
      switch speaks {
      case .unknown: if trouble == .overload { speaks = .connections }
      case .streams:
        change { $0.meet(trouble, running: streams) }
        if streamLimit(rules) == 0 { speaks = .connections }
      case .connections: break
      }
    }

    private func change(_ body: (inout StreamLimit) -> Void) {
      guard case .streams(var limit) = speaks else { return }
      body(&limit)
      speaks = .streams(limit)
    }

    /// - Returns: the order under which it is to be ready from now on; nil when nothing changes.
    func becomeReady(_ way: Way, _ rules: Rules) -> UInt64? {
      guard let order = next(way, rules)?.order, readyOrders[way.rawValue].map({ order < $0 }) ?? true else {
        return nil
      }
      readyOrders[way.rawValue] = order
      return order
    }
  }

  private struct Ready: Comparable {
    let order: UInt64
    let origin: Origin

    static func < (left: Self, right: Self) -> Bool { left.order < right.order }
    static func == (left: Self, right: Self) -> Bool { left.order == right.order }
  }

  /// Hosts that are remembered although nobody is there.
  private static var mostIdle: Int { 1024 }

  private let rules: Rules
  private var hosts: [Origin: Host] = [:]
  /// By way: hosts with somebody who may go that way; an entry may be out of date.
  private var ready = [Heap<Ready>](repeating: Heap(), count: Way.allCases.count)
  private var places = 0

  /// - Parameters:
  ///   - total: places, at least 1.
  ///   - perHost: places at a host, at least 1. With one place, in all or at a host, there are no streams: who wants one thing at a time
  ///     gets that.
  init(total: Int = .max, perHost: Int, keptForSmall: Int = 0) {
    let perHost = max(1, perHost)
    rules = Rules(
      total: max(1, total), perHost: perHost, keptForSmall: max(0, min(keptForSmall, perHost - 2)),
      mayStream: total > 1 && perHost > 1)
  }

  /// - Parameter order: who came first; unique.
  mutating func add(_ element: Element, to origin: Origin, order: UInt64, as kind: Kind = .large) {
    if hosts[origin] == nil { hosts[origin] = Host() }
    change(origin) { $0.append((order, element), kind) }
  }

  /// At the head of its host's queue: it has waited before, elsewhere.
  mutating func addFirst(_ element: Element, to origin: Origin, order: UInt64, as kind: Kind = .large) {
    if hosts[origin] == nil { hosts[origin] = Host() }
    change(origin) { $0.prepend((order, element), kind) }
  }

  /// Takes the first that may run, and counts it as running until `leave`. Who joins other streams goes ahead: that takes nothing from
  /// anybody.
  mutating func takeNext() -> Taken? {
    take(.joining) ?? (places < rules.total ? take(.byPlace) : nil)
  }

  private mutating func take(_ way: Way) -> Taken? {
    while let first = ready[way.rawValue].popMin() {
      // Else it stands there under another order since.
      guard let host = hosts[first.origin], host.readyOrders[way.rawValue] == first.order else { continue }
      host.readyOrders[way.rawValue] = nil
      guard let turn = host.next(way, rules), turn.order == first.order else {
        markReady(host, first.origin)
        continue
      }
      let before = host.places
      guard let element = host.take(turn) else { continue }
      places += host.places - before
      markReady(host, first.origin)
      return Taken(element: element, origin: first.origin, hold: turn.hold)
    }
    return nil
  }

  /// What was taken no longer runs.
  mutating func leave(_ origin: Origin, _ hold: Hold) {
    change(origin) { $0.leave(hold) }
  }

  /// A stream has brought more than a short file has.
  ///
  /// - Returns: what it holds from now on.
  mutating func outgrow(_ origin: Origin) -> Hold {
    change(origin) { $0.outgrow() }
    return .place(isLarge: true)
  }

  /// A host where somebody runs has answered.
  ///
  /// - Parameters:
  ///   - isStream: the answer was one of the streams of a connection.
  ///   - isNew: a connection was opened for it.
  mutating func note(_ origin: Origin, isStream: Bool, isNew: Bool) {
    change(origin) { $0.note(isStream: isStream, isNew: isNew) }
  }

  /// A host where somebody runs had trouble with what it was asked.
  mutating func meet(_ trouble: StreamLimit.Trouble, at origin: Origin) {
    let rules = rules
    change(origin) { $0.meet(trouble, rules) }
  }

  /// Empties the line.
  mutating func removeAll() {
    hosts = [:]
    for way in Way.allCases { ready[way.rawValue] = Heap() }
    places = 0
  }

  private mutating func change(_ origin: Origin, _ body: (Host) -> Void) {
    guard let host = hosts[origin] else { return }
    let before = host.places
    body(host)
    places += host.places - before
    if keeps(host) { markReady(host, origin) } else { hosts[origin] = nil }
  }

  /// What it speaks is known for the next ones that come; trouble is forgotten.
  private func keeps(_ host: Host) -> Bool {
    guard host.isIdle else { return true }
    if case .streams = host.speaks { return hosts.count < Self.mostIdle }
    return false
  }

  private mutating func markReady(_ host: Host, _ origin: Origin) {
    for way in Way.allCases {
      if let order = host.becomeReady(way, rules) {
        ready[way.rawValue].insert(Ready(order: order, origin: origin))
      }
    }
  }
}

extension WaitingLine.Kind {
  fileprivate var index: Int {
    switch self {
    case .large: 0
    case .small: 1
    case .short: 2
    case .unknown: 3
    }
  }
}
