/// Exchanges that wait for a place: first come, first served among the hosts that have a place free.
///
/// A host at its limit keeps its own queue and holds up no other. Adding and taking cost O(log hosts).
struct WaitingLine<Element>: ~Copyable {
  private typealias Queue = Fifo<(order: UInt64, element: Element)>

  private struct Places {
    let perHost: Int
    /// So many take small files only; two are always left to files of any size.
    let keptForSmall: Int
  }

  /// A class: each change of a value in a dictionary costs three allocations, and there are some for every exchange.
  private final class Host {
    var large = Queue()
    var small = Queue()
    var running = 0
    var runningLarge = 0
    /// The order under which it stands in `ready`; nil when it does not.
    var readyOrder: UInt64?

    /// Who comes next: the first of those for whom there is a place.
    func next(_ places: Places) -> (order: UInt64, isSmall: Bool)? {
      guard running < places.perHost else { return nil }
      let large = runningLarge < places.perHost - places.keptForSmall ? large.first?.order : nil
      guard let small = small.first?.order else { return large.map { ($0, false) } }
      return large.map { $0 < small ? ($0, false) : (small, true) } ?? (small, true)
    }

    /// Takes who comes next, and counts it as running.
    ///
    /// - Parameter order: nothing is taken when it stands in `ready` under another one since.
    func takeNext(asOf order: UInt64, _ places: Places) -> Element? {
      guard readyOrder == order else { return nil }
      readyOrder = nil
      guard let isSmall = next(places)?.isSmall,
        let first = isSmall ? small.popFirst() : large.popFirst()
      else { return nil }
      running += 1
      if !isSmall { runningLarge += 1 }
      return first.element
    }

    /// - Returns: whether nobody runs or waits there.
    func leave(isLarge: Bool) -> Bool {
      running = max(0, running - 1)
      if isLarge { runningLarge = max(0, runningLarge - 1) }
      return running == 0 && large.isEmpty && small.isEmpty
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

  init(perHost: Int, keptForSmall: Int = 0) {
    let perHost = max(1, perHost)
    places = Places(perHost: perHost, keptForSmall: max(0, min(keptForSmall, perHost - 2)))
  }

  /// - Parameter order: who came first; unique.
  mutating func add(_ element: Element, to origin: Origin, order: UInt64, isSmall: Bool = false) {
    let host = host(of: origin)
    if isApart(isSmall) { host.small.append((order, element)) } else { host.large.append((order, element)) }
    markReady(origin)
  }

  /// At the head of its host's queue: it has waited before, elsewhere.
  mutating func addFirst(_ element: Element, to origin: Origin, order: UInt64, isSmall: Bool = false) {
    let host = host(of: origin)
    if isApart(isSmall) { host.small.prepend((order, element)) } else { host.large.prepend((order, element)) }
    markReady(origin)
  }

  /// Takes the first that may run, and counts it as running until `leave`.
  mutating func takeNext() -> (element: Element, origin: Origin)? {
    while let (origin, order) = ready.popFirst() {
      guard let first = hosts[origin]?.takeNext(asOf: order, places) else { continue }
      markReady(origin)
      return (first, origin)
    }
    return nil
  }

  /// One of `origin` no longer runs.
  ///
  /// - Parameter isSmall: as it was added.
  mutating func leave(_ origin: Origin, isSmall: Bool = false) {
    let isLarge = !isApart(isSmall)
    let isIdle = hosts[origin]?.leave(isLarge: isLarge) ?? false
    if isIdle { hosts[origin] = nil } else { markReady(origin) }
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

  /// Whether it stands in the queue of small ones: without places of their own all stand in one.
  private func isApart(_ isSmall: Bool) -> Bool { isSmall && places.keptForSmall > 0 }

  private mutating func markReady(_ origin: Origin) {
    if let order = hosts[origin]?.becomeReady(places) { ready.push(origin, order: order) }
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

  mutating func popFirst() -> (origin: Origin, order: UInt64)? {
    guard let last = nodes.popLast() else { return nil }
    guard let first = nodes.first else { return (last.origin, last.order) }
    nodes[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [parent * 2 + 1, parent * 2 + 2]
      where child < nodes.count && nodes[child].order < nodes[least].order {
        least = child
      }
      guard least != parent else { return (first.origin, first.order) }
      nodes.swapAt(least, parent)
      parent = least
    }
  }
}
