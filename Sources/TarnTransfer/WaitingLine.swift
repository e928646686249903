/// Exchanges that wait for a place: first come, first served among the hosts that have a place free.
///
/// A host at its limit keeps its own queue and holds up no other. Adding and taking cost O(log hosts).
struct WaitingLine<Element> {
  private typealias Queue = Fifo<(order: UInt64, element: Element)>

  private struct Host {
    var large = Queue()
    var small = Queue()
    var running = 0
    var runningLarge = 0
    /// The order under which it stands in `ready`; nil when it does not.
    var readyOrder: UInt64?
  }

  private let perHost: Int
  /// Of each host's places, so many take small files only; two are always left to files of any size.
  private let keptForSmall: Int
  private var hosts: [Origin: Host] = [:]
  /// Hosts with someone waiting and a place free, by the order of who waits first.
  private var ready = Heap()

  init(perHost: Int, keptForSmall: Int = 0) {
    self.perHost = max(1, perHost)
    self.keptForSmall = max(0, min(keptForSmall, self.perHost - 2))
  }

  /// - Parameter order: who came first; unique.
  mutating func add(_ element: Element, to origin: Origin, order: UInt64, isSmall: Bool = false) {
    if isApart(isSmall) {
      hosts[origin, default: Host()].small.append((order, element))
    } else {
      hosts[origin, default: Host()].large.append((order, element))
    }
    markReady(origin)
  }

  /// At the head of its host's queue: it has waited before, elsewhere.
  mutating func addFirst(_ element: Element, to origin: Origin, order: UInt64, isSmall: Bool = false) {
    if isApart(isSmall) {
      hosts[origin, default: Host()].small.prepend((order, element))
    } else {
      hosts[origin, default: Host()].large.prepend((order, element))
    }
    markReady(origin)
  }

  /// Takes the first that may run, and counts it as running until `leave`.
  mutating func takeNext() -> (element: Element, origin: Origin)? {
    while let (origin, order) = ready.popFirst() {
      // Who came since, at the head or in the other queue, stands in `ready` under an order of its own.
      guard var host = hosts[origin], host.readyOrder == order else { continue }
      host.readyOrder = nil
      guard let isSmall = next(of: host)?.isSmall,
        let first = isSmall ? host.small.popFirst() : host.large.popFirst()
      else {
        hosts[origin] = host
        continue
      }
      host.running += 1
      if !isSmall { host.runningLarge += 1 }
      hosts[origin] = host
      markReady(origin)
      return (first.element, origin)
    }
    return nil
  }

  /// One of `origin` no longer runs.
  ///
  /// - Parameter isSmall: as it was added.
  mutating func leave(_ origin: Origin, isSmall: Bool = false) {
    guard var host = hosts[origin] else { return }
    host.running = max(0, host.running - 1)
    if !isApart(isSmall) { host.runningLarge = max(0, host.runningLarge - 1) }
    if host.running == 0, host.large.isEmpty, host.small.isEmpty {
      hosts[origin] = nil
    } else {
      hosts[origin] = host
      markReady(origin)
    }
  }

  /// Empties the line.
  mutating func removeAll() {
    hosts = [:]
    ready = Heap()
  }

  /// Whether it stands in the queue of small ones: without places of their own all stand in one.
  private func isApart(_ isSmall: Bool) -> Bool { isSmall && keptForSmall > 0 }

  private mutating func markReady(_ origin: Origin) {
    guard var host = hosts[origin], let order = next(of: host)?.order,
      host.readyOrder.map({ order < $0 }) ?? true
    else { return }
    host.readyOrder = order
    hosts[origin] = host
    ready.push(origin, order: order)
  }

  /// Who comes next at a host: the first of those for whom there is a place.
  private func next(of host: Host) -> (order: UInt64, isSmall: Bool)? {
    guard host.running < perHost else { return nil }
    let large = host.runningLarge < perHost - keptForSmall ? host.large.first?.order : nil
    guard let small = host.small.first?.order else { return large.map { ($0, false) } }
    return large.map { $0 < small ? ($0, false) : (small, true) } ?? (small, true)
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
