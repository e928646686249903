/// Exchanges that wait for a place: first come, first served among the hosts that have a place free.
///
/// A host at its limit keeps its own queue and holds up no other. Adding and taking cost O(log hosts).
///
/// A place is a connection, and is counted in quarters: over HTTP/2 a short transfer is one of the streams of a connection, costs its
/// host less than one, and takes a quarter of a place. So one host never has more places than it may have connections. How many
/// streams a connection takes libcurl knows; where that is less, it opens others, up to its own limit of connections to a host.
struct WaitingLine<Element>: ~Copyable {
  /// A place, in the unit of all counts of places here.
  static var place: Int { 4 }
  /// Without another connection. What is under way when a connection ends has to be asked for again: a server is asked for more at
  /// once only when its connections last. nginx ends them after 1,000 where nothing else is configured.
  private static var someAnswers: Int { 64 }

  enum Kind {
    case large
    /// May have a place that is kept for small ones.
    case small
    /// Small, and so short that over HTTP/2 it takes a quarter of a place.
    case short
  }

  /// Who has come out of the line, and what is to be given back by `leave`.
  struct Taken {
    let element: Element
    let origin: Origin
    let kind: Kind
    /// Quarters of a place.
    let quarters: Int
  }

  private typealias Waiter = (order: UInt64, element: Element, kind: Kind)
  private typealias Queue = Fifo<Waiter>

  private struct Places {
    let perHost: Int
    /// So many take small files only; two are always left to files of any size.
    let keptForSmall: Int
    /// Short ones may share one.
    let mayShare: Bool

    /// Whether small ones stand in a queue of their own: without places of their own all stand in one.
    func isApart(_ kind: Kind) -> Bool { keptForSmall > 0 && kind != .large }
  }

  private enum Multiplexing {
    case unknown
    /// Answers come as streams of one connection, and that lasts.
    case streams
    /// Whatever it speaks, it had trouble: no more at once than connections.
    case troubled
  }

  private struct Turn {
    let order: UInt64
    let isApart: Bool
    let quarters: Int
  }

  /// A class: each change of a value in a dictionary costs three allocations, and there are some for every exchange.
  private final class Host {
    var large = Queue()
    var small = Queue()
    /// Quarters of a place.
    var running = 0
    /// Those of `running` that are no small ones' own queue's.
    var runningLarge = 0
    /// Whatever places they have.
    private var count = 0
    /// Streams that there may be. With one more than a connection takes another one is opened, which tells of the limit; so the next
    /// one comes once there is an answer while there are so many.
    private var mostAtOnce = 0
    private(set) var speech = Multiplexing.unknown
    /// Since a connection was opened.
    private var answers = 0
    /// The order under which it stands in `ready`; nil when it does not.
    var readyOrder: UInt64?

    /// Who comes next: the first of those whose queue has a place. When that is less than it needs, nobody goes ahead of it: it
    /// would wait for as long as others come.
    func next(_ places: Places) -> Turn? {
      let most = places.perHost * place
      var first: Turn?
      if let waiter = large.first {
        let quarters = cost(waiter.kind, places)
        if runningLarge + quarters <= most - places.keptForSmall * place {
          first = Turn(order: waiter.order, isApart: false, quarters: quarters)
        }
      }
      if let waiter = small.first, waiter.order < first?.order ?? .max {
        first = Turn(order: waiter.order, isApart: true, quarters: cost(waiter.kind, places))
      }
      guard let first, running + first.quarters <= most else { return nil }
      // Who took a quarter while there were streams counts whole without them.
      let isOfStreams = first.quarters < place || speech != .streams
      return !isOfStreams || count < max(mostAtOnce, places.perHost) ? first : nil
    }

    private func cost(_ kind: Kind, _ places: Places) -> Int {
      kind == .short && speech == .streams && places.mayShare ? 1 : place
    }

    /// Takes who has the turn, and counts it as running.
    func take(_ turn: Turn) -> Waiter? {
      guard let waiter = turn.isApart ? small.popFirst() : large.popFirst() else { return nil }
      running += turn.quarters
      count += 1
      if !turn.isApart { runningLarge += turn.quarters }
      return waiter
    }

    /// - Returns: whether nobody runs or waits there.
    func leave(_ quarters: Int, isApart: Bool) -> Bool {
      running = max(0, running - quarters)
      count = max(0, count - 1)
      if !isApart { runningLarge = max(0, runningLarge - quarters) }
      return running == 0 && large.isEmpty && small.isEmpty
    }

    func note(hasStreams: Bool, isNew: Bool) {
      guard speech != .troubled else { return }
      if isNew, speech == .streams, answers < WaitingLine.someAnswers { return noteTrouble() }
      answers = !hasStreams ? 0 : isNew ? 1 : answers + 1
      if !hasStreams { speech = .unknown } else if answers >= WaitingLine.someAnswers { speech = .streams }
      if speech != .streams { mostAtOnce = 0 } else if count >= mostAtOnce { mostAtOnce = count + 1 }
    }

    func noteTrouble() {
      speech = .troubled
      mostAtOnce = 0
    }

    /// - Returns: the order under which it is to stand in `ready` from now on; nil when nothing changes.
    func becomeReady(_ places: Places) -> UInt64? {
      guard let order = next(places)?.order, readyOrder.map({ order < $0 }) ?? true else { return nil }
      readyOrder = order
      return order
    }
  }

  private let places: Places
  private var hosts: [Origin: Host] = [:]
  /// Hosts with someone waiting and a place free, by the order of who waits first.
  private var ready = Heap()

  /// - Parameter mayShare: short ones to one host may share a place, where it may have more than one: who wants one thing at a time
  ///   gets that.
  init(perHost: Int, keptForSmall: Int = 0, mayShare: Bool = true) {
    let perHost = max(1, perHost)
    places = Places(
      perHost: perHost, keptForSmall: max(0, min(keptForSmall, perHost - 2)),
      mayShare: mayShare && perHost > 1)
  }

  /// - Parameter order: who came first; unique.
  mutating func add(_ element: Element, to origin: Origin, order: UInt64, as kind: Kind = .large) {
    let host = host(of: origin)
    let waiter = (order, element, kind)
    if places.isApart(kind) { host.small.append(waiter) } else { host.large.append(waiter) }
    markReady(host, origin)
  }

  /// At the head of its host's queue: it has waited before, elsewhere.
  mutating func addFirst(_ element: Element, to origin: Origin, order: UInt64, as kind: Kind = .large) {
    let host = host(of: origin)
    let waiter = (order, element, kind)
    if places.isApart(kind) { host.small.prepend(waiter) } else { host.large.prepend(waiter) }
    markReady(host, origin)
  }

  /// Takes the first that may run, and counts it as running until `leave`.
  ///
  /// - Parameter free: quarters of a place that are left for all hosts. Nobody is taken while the first one needs more.
  mutating func takeNext(free: Int = .max) -> Taken? {
    while let (origin, order) = ready.first {
      // Else it stands there under another order since.
      guard let host = hosts[origin], host.readyOrder == order else {
        ready.removeFirst()
        continue
      }
      let turn = host.next(places)
      if let turn, turn.quarters > free { return nil }
      host.readyOrder = nil
      ready.removeFirst()
      guard let turn, let waiter = host.take(turn) else { continue }
      markReady(host, origin)
      return Taken(element: waiter.element, origin: origin, kind: waiter.kind, quarters: turn.quarters)
    }
    return nil
  }

  /// What was taken no longer runs.
  mutating func leave(_ origin: Origin, as kind: Kind = .large, quarters: Int = place) {
    guard let host = hosts[origin] else { return }
    let isIdle = host.leave(quarters, isApart: places.isApart(kind))
    if isIdle { hosts[origin] = nil } else { markReady(host, origin) }
  }

  /// A host where somebody runs has answered. Forgotten once nobody is there.
  ///
  /// - Parameters:
  ///   - hasStreams: the answer was one of the streams of a connection.
  ///   - isNew: it was the first by its connection.
  mutating func note(_ origin: Origin, hasStreams: Bool, isNew: Bool) {
    guard let host = hosts[origin] else { return }
    host.note(hasStreams: hasStreams, isNew: isNew)
    if hasStreams { markReady(host, origin) }
  }

  /// A host where somebody runs had trouble with what it was asked: it has connections' places only, until nobody is there.
  mutating func noteTrouble(_ origin: Origin) {
    hosts[origin]?.noteTrouble()
  }

  private mutating func host(of origin: Origin) -> Host {
    if let known = hosts[origin] { return known }
    let made = Host()
    hosts[origin] = made
    return made
  }

  /// Empties the line.
  mutating func removeAll() {
    hosts = [:]
    ready = Heap()
  }

  private mutating func markReady(_ host: Host, _ origin: Origin) {
    if let order = host.becomeReady(places) { ready.push(origin, order: order) }
  }
}

/// First in, first out, O(1) amortised.
struct Fifo<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }

  var first: Element? { isEmpty ? nil : elements[head] }

  mutating func append(_ element: Element) {
    elements.append(element)
  }

  mutating func prepend(_ element: Element) {
    if head > 0 {
      head -= 1
      elements[head] = element
    } else {
      elements.insert(element, at: 0)
    }
  }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head >= 64, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}

/// A binary heap of origins, the least order first.
private struct Heap {
  private var nodes: [(order: UInt64, origin: Origin)] = []

  mutating func push(_ origin: Origin, order: UInt64) {
    nodes.append((order, origin))
    var child = nodes.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard nodes[child].order < nodes[parent].order else { return }
      nodes.swapAt(child, parent)
      child = parent
    }
  }

  var first: (origin: Origin, order: UInt64)? { nodes.first.map { ($0.origin, $0.order) } }

  mutating func removeFirst() {
    guard let last = nodes.popLast(), !nodes.isEmpty else { return }
    nodes[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [parent * 2 + 1, parent * 2 + 2]
      where child < nodes.count && nodes[child].order < nodes[least].order {
        least = child
      }
      guard least != parent else { return }
      nodes.swapAt(least, parent)
      parent = least
    }
  }
}
