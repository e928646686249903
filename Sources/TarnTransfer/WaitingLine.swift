/// Exchanges that wait for a place: first come, first served among the hosts that have a place free.
///
/// A host at its limit keeps its own queue and holds up no other. Adding and taking cost O(log hosts).
struct WaitingLine<Element> {
  private struct Host {
    var waiting = Fifo<(order: UInt64, element: Element)>()
    var running = 0
    var isReady = false
  }

  private let perHost: Int
  private var hosts: [Origin: Host] = [:]
  /// Hosts with someone waiting and a place free, by the order of who waits first.
  private var ready = Heap()

  init(perHost: Int) {
    self.perHost = max(1, perHost)
  }

  /// - Parameter order: who came first; unique.
  mutating func add(_ element: Element, to origin: Origin, order: UInt64) {
    hosts[origin, default: Host()].waiting.append((order, element))
    markReady(origin)
  }

  /// At the head of its host's queue: it has waited before, elsewhere.
  mutating func addFirst(_ element: Element, to origin: Origin, order: UInt64) {
    hosts[origin, default: Host()].waiting.prepend((order, element))
    markReady(origin)
  }

  /// Takes the first that may run, and counts it as running until `leave`.
  mutating func takeNext() -> (element: Element, origin: Origin)? {
    guard let origin = ready.popFirst(), var host = hosts[origin] else { return nil }
    host.isReady = false
    guard let first = host.waiting.popFirst() else {
      hosts[origin] = host
      return nil
    }
    host.running += 1
    hosts[origin] = host
    markReady(origin)
    return (first.element, origin)
  }

  /// One of `origin` no longer runs.
  mutating func leave(_ origin: Origin) {
    guard var host = hosts[origin] else { return }
    host.running = max(0, host.running - 1)
    if host.running == 0, host.waiting.isEmpty {
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

  private mutating func markReady(_ origin: Origin) {
    guard var host = hosts[origin], !host.isReady, host.running < perHost, let first = host.waiting.first
    else { return }
    host.isReady = true
    hosts[origin] = host
    ready.push(origin, order: first.order)
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

  mutating func popFirst() -> Origin? {
    guard let last = nodes.popLast() else { return nil }
    guard let first = nodes.first else { return last.origin }
    nodes[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [parent * 2 + 1, parent * 2 + 2]
      where child < nodes.count && nodes[child].order < nodes[least].order {
        least = child
      }
      guard least != parent else { return first.origin }
      nodes.swapAt(least, parent)
      parent = least
    }
  }
}
