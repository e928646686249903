import HeapModule

/// Who waits at one door of a `FairQueue`: each flow in its own order, the flows in turns by their weights.
struct HostQueue<ID: Hashable & Sendable, Flow: Hashable & Sendable>: Sendable {
  private struct Waiting: Sendable {
    /// nil where one was removed.
    var slots: [(id: ID, order: UInt64)?] = []
    /// The number of the first slot; numbers are never given twice.
    var base = 0
    var head = 0
    var live = 0
    /// Turns had, in units of a stride.
    var pass: UInt64 = 0
    /// Of the flow's valid turn.
    var stamp: UInt64 = 0
  }

  private struct Turn: Comparable, Sendable {
    let pass: UInt64
    let order: UInt64
    let stamp: UInt64
    let flow: Flow

    static func < (left: Self, right: Self) -> Bool { (left.pass, left.order) < (right.pass, right.order) }
    static func == (left: Self, right: Self) -> Bool { (left.pass, left.order) == (right.pass, right.order) }
  }

  private var flows: [Flow: Waiting] = [:]
  private var turns = Heap<Turn>()
  private var clock: UInt64 = 0
  private var stamps: UInt64 = 0
  /// How many wait.
  private(set) var count = 0
  /// The number of the proposal that stands for this door; nil for none.
  var proposal: (number: UInt64, order: UInt64)?

  var isEmpty: Bool { count == 0 }

  /// Whose turn it is.
  var first: (flow: Flow, order: UInt64)? {
    guard let turn = turns.min, let flow = flows[turn.flow], let slot = flow.slots[flow.head] else {
      return nil
    }
    return (turn.flow, slot.order)
  }

  /// Whose turn it is among those who may go: O(flows).
  func first(where mayGo: (Flow) -> Bool) -> (flow: Flow, order: UInt64)? {
    var least: (pass: UInt64, order: UInt64, flow: Flow)?
    for (flow, waiting) in flows where waiting.live > 0 && mayGo(flow) {
      guard let order = waiting.slots[waiting.head]?.order else { continue }
      if let least, (least.pass, least.order) < (waiting.pass, order) { continue }
      least = (waiting.pass, order, flow)
    }
    return least.map { ($0.flow, $0.order) }
  }

  /// - Returns: the number of its slot, and whether the flow had nobody here.
  mutating func append(_ id: ID, _ flow: Flow, order: UInt64) -> (slot: Int, isNew: Bool) {
    var waiting = flows[flow] ?? Waiting()
    flows[flow] = nil
    waiting.slots.append((id, order))
    waiting.live += 1
    count += 1
    let slot = waiting.base + waiting.slots.count - 1
    let isNew = waiting.live == 1
    if isNew {
      waiting.head = waiting.slots.count - 1
      waiting.pass = max(waiting.pass, clock)
      push(flow, &waiting)
    }
    flows[flow] = waiting
    return (slot, isNew)
  }

  /// Takes the first of a flow. Those whose turn would have been before save nothing up by it.
  ///
  /// - Parameter stride: what a turn costs the flow.
  /// - Returns: the id, and whether the flow has nobody left here.
  mutating func popFirst(of flow: Flow, stride: UInt64) -> (id: ID, isLast: Bool)? {
    guard let pass = flows[flow]?.pass, flows[flow]?.live != 0 else { return nil }
    while let turn = turns.min, turn.pass < pass {
      _ = turns.popMin()
      guard var passed = flows[turn.flow], passed.stamp == turn.stamp else { continue }
      passed.pass = pass
      push(turn.flow, &passed)
      flows[turn.flow] = passed
    }
    guard var waiting = flows[flow], let slot = waiting.slots[waiting.head] else { return nil }
    flows[flow] = nil
    clock = max(clock, pass)
    waiting.pass = pass + stride
    waiting.slots[waiting.head] = nil
    waiting.live -= 1
    count -= 1
    settle(flow, &waiting, needsTurn: true)
    return (slot.id, waiting.live == 0)
  }

  /// The first of a flow, whoever's turn it is.
  func first(of flow: Flow) -> ID? {
    flows[flow].flatMap { $0.live > 0 ? $0.slots[$0.head]?.id : nil }
  }

  /// - Returns: whether the flow has nobody left here.
  mutating func remove(slot: Int, _ flow: Flow) -> Bool {
    guard var waiting = flows[flow], waiting.slots.indices.contains(slot - waiting.base),
      waiting.slots[slot - waiting.base] != nil
    else { return false }
    flows[flow] = nil
    waiting.slots[slot - waiting.base] = nil
    waiting.live -= 1
    count -= 1
    let isLast = waiting.live == 0
    settle(flow, &waiting, needsTurn: false)
    dropVoidTurns()
    return isLast
  }

  /// Puts a flow back whose slots were changed.
  private mutating func settle(_ flow: Flow, _ waiting: inout Waiting, needsTurn: Bool) {
    if waiting.live == 0 {
      waiting.base += waiting.slots.count
      waiting.slots = []
      waiting.head = 0
      waiting.stamp = 0
      // Who is ahead of the others is remembered, so that leaving and coming back gains nothing.
      if waiting.pass > clock { flows[flow] = waiting }
      prune()
    } else {
      while waiting.slots[waiting.head] == nil { waiting.head += 1 }
      if waiting.head >= 64, waiting.head * 2 >= waiting.slots.count {
        waiting.slots.removeFirst(waiting.head)
        waiting.base += waiting.head
        waiting.head = 0
      }
      if needsTurn { push(flow, &waiting) }
      flows[flow] = waiting
    }
    dropVoidTurns()
  }

  private mutating func push(_ flow: Flow, _ waiting: inout Waiting) {
    stamps += 1
    waiting.stamp = stamps
    let order = waiting.slots[waiting.head]?.order ?? 0
    turns.insert(Turn(pass: waiting.pass, order: order, stamp: stamps, flow: flow))
  }

  private mutating func dropVoidTurns() {
    while let turn = turns.min, flows[turn.flow]?.stamp != turn.stamp { _ = turns.popMin() }
    // Who went before others has left some below them.
    if turns.count > 64 + 4 * flows.count {
      let flows = flows
      turns = Heap(turns.unordered.filter { flows[$0.flow]?.stamp == $0.stamp })
    }
  }

  private mutating func prune() {
    guard flows.count > 64, flows.count > 4 * turns.count else { return }
    flows = flows.filter { $0.value.live > 0 || $0.value.pass > clock }
  }
}
