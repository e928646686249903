import TarnCore
import TestSupport
import Testing

@testable import TarnTransfer

extension StateLine.Request {
  fileprivate init(
    mirror: Int, host: String, priority: TransferPriority = .normal, isSmall: Bool = false,
    isStream: Bool = false
  ) {
    let kind = isStream ? TransferKind.short : isSmall ? .small : .large
    self.init(String(mirror), host, priority: priority, kind: kind)
  }
}

/// Who is let in, and in which order.
@Suite struct BudgetStateTests {
  typealias Request = StateLine.Request

  private func queue(_ total: Int, _ perHost: Int, kept: Int = 0) -> StateLine {
    StateLine(PlaceLimits(total: total, perHost: perHost, keptForSmall: kept))
  }

  /// Takes and finishes one after the other.
  private func drain(_ queue: StateLine, _ count: Int = .max) -> [Request] {
    var taken: [Request] = []
    while taken.count < count, let (id, request) = queue.take() {
      taken.append(request)
      queue.finish(id)
    }
    return taken
  }

  @Test func firstComeFirstServedInOneMirror() {
    let queue = self.queue(1, 1)
    for id in 0..<5 { queue.add(id, Request(mirror: 1, host: "a")) }
    var ids: [Int] = []
    while let (id, _) = queue.take() {
      ids.append(id)
      #expect(queue.take() == nil)
      queue.finish(id)
    }
    #expect(ids == [0, 1, 2, 3, 4])
    #expect(queue.waitingCount == 0 && queue.runningCount == 0)
  }

  @Test func whoIsOverIsOverOnce() {
    let queue = self.queue(2, 2)
    queue.add(1, Request(mirror: 1, host: "a"))
    #expect(queue.take()?.id == 1)
    #expect(!queue.remove(1))
    #expect(queue.finish(1))
    #expect(!queue.finish(1))
    queue.add(2, Request(mirror: 1, host: "a"))
    #expect(queue.remove(2))
    #expect(!queue.remove(2))
    #expect(queue.take() == nil && queue.waitingCount == 0 && queue.runningCount == 0)
  }

  @Test func aFullHostHoldsUpNoOther() {
    let queue = self.queue(10, 2)
    for id in 0..<50 { queue.add(id, Request(mirror: 1, host: "a")) }
    queue.add(50, Request(mirror: 1, host: "b"))
    #expect((0..<3).compactMap { _ in queue.take()?.request.host } == ["a", "a", "b"])
    #expect(queue.take() == nil)
  }

  @Test func mirrorsTakeTurns() {
    let queue = self.queue(1, 1)
    for id in 0..<1000 { queue.add(id, Request(mirror: 1, host: "a")) }
    for id in 1000..<1010 { queue.add(id, Request(mirror: 2, host: "a")) }
    #expect(drain(queue, 20).filter { $0.mirror == "2" }.count >= 9)
  }

  /// One who was served long before the other came has no debt beyond a turn, nor the other a credit.
  @Test func nobodySavesUpTurns() {
    let queue = self.queue(1, 1)
    for id in 0..<2000 { queue.add(id, Request(mirror: 1, host: "a")) }
    _ = drain(queue, 1000)
    for id in 5000..<5500 { queue.add(id, Request(mirror: 2, host: "a")) }
    let taken = drain(queue, 100)
    #expect((49...51).contains(taken.filter { $0.mirror == "2" }.count))
  }

  /// Nor by being away: at hosts of their own, only what was served everywhere counts.
  @Test func whoComesBackHasNoCredit() {
    let queue = self.queue(1, 1)
    queue.add(-1, Request(mirror: 1, host: "a"))
    for id in 0..<2000 { queue.add(id, Request(mirror: 2, host: "b")) }
    _ = drain(queue, 1000)
    for id in 5000..<5500 { queue.add(id, Request(mirror: 1, host: "a")) }
    #expect((49...51).contains(drain(queue, 100).filter { $0.mirror == "1" }.count))
  }

  /// One who has a single request waiting, and the next one as soon as that runs, gains nothing by it.
  @Test(arguments: ["a", "b"]) func leavingAndComingBackGainsNothing(host: String) {
    let queue = self.queue(1, 1)
    for id in 0..<1000 { queue.add(id, Request(mirror: 2, host: "b")) }
    var served = 0
    var isWaiting = false
    for id in 1000..<1100 {
      if !isWaiting { queue.add(id, Request(mirror: 1, host: host)) }
      guard let (taken, request) = queue.take() else { break }
      isWaiting = request.mirror != "1"
      if request.mirror == "1" { served += 1 }
      queue.finish(taken)
    }
    #expect((49...51).contains(served))
  }

  @Test func prioritiesAreWeights() {
    let queue = self.queue(1, 1)
    for id in 0..<1000 { queue.add(id, Request(mirror: 1, host: "a", priority: .low)) }
    for id in 1000..<2000 { queue.add(id, Request(mirror: 2, host: "a", priority: .normal)) }
    for id in 2000..<3000 { queue.add(id, Request(mirror: 3, host: "a", priority: .high)) }
    let taken = drain(queue, 210)
    #expect((1...3).map { mirror in taken.filter { $0.mirror == "\(mirror)" }.count } == [10, 40, 160])
  }

  @Test func aPlaceIsKeptForSmallFiles() {
    let queue = self.queue(10, 3, kept: 1)
    for id in 0..<10 { queue.add(id, Request(mirror: 1, host: "a")) }
    #expect((0..<3).compactMap { _ in queue.take()?.id } == [0, 1])
    queue.add(10, Request(mirror: 2, host: "a", isSmall: true))
    queue.add(11, Request(mirror: 2, host: "a", isSmall: true))
    #expect(queue.take()?.id == 10)
    #expect(queue.take() == nil)
    queue.finish(0)
    #expect(queue.take()?.id == 2)
    #expect(queue.take() == nil)
    queue.finish(10)
    #expect(queue.take()?.id == 11)
    // Small files take the other places, too.
    queue.finish(1)
    queue.finish(2)
    queue.add(12, Request(mirror: 3, host: "a", isSmall: true))
    #expect(Set((0..<3).compactMap { _ in queue.take()?.id }) == [12, 3])
    // With one or two places nothing is kept.
    for places in 1...2 {
      #expect(PlaceLimits(total: 9, perHost: places, keptForSmall: 5).keptForSmall == 0)
    }
  }

  /// What hangs keeps no other mirror from the host.
  @Test(arguments: [0, 1], [false, true]) func aSharedHostKeepsAPlaceForWhoHasNone(kept: Int, isSmall: Bool) {
    let queue = self.queue(10, 6, kept: kept)
    for id in 0..<10 { queue.add(id, Request(mirror: 1, host: "a")) }
    queue.setShared(true, host: "a")
    while queue.take() != nil {}
    #expect(queue.runningCount == 5 - kept)
    for id in 10..<20 { queue.add(id, Request(mirror: 1, host: "a", isSmall: true)) }
    while queue.take() != nil {}
    #expect(queue.runningCount == 5)
    // One after the other, however long the first ones hang.
    for id in 20..<40 { queue.add(id, Request(mirror: 2, host: "a", isSmall: isSmall)) }
    for id in 20..<40 {
      #expect(queue.take()?.id == id)
      #expect(queue.take() == nil)
      queue.finish(id)
    }
    // A place that gets free is for anybody but them; the last one is kept again.
    queue.finish(0)
    #expect(queue.take()?.request.mirror == "1")
    #expect(queue.take() == nil)
    queue.setShared(false, host: "a")
    #expect(queue.take() != nil)
    #expect(queue.runningCount == 6)
  }

  /// Large files of mirrors that had no place there hold the one that is kept for such mirrors: not that of the small files, too.
  @Test func longTransfersOfManyMirrorsLeaveTheLaneForSmallFiles() {
    let queue = self.queue(20, 6, kept: 1)
    for mirror in 0..<8 { queue.add(mirror, Request(mirror: mirror, host: "a")) }
    queue.setShared(true, host: "a")
    while queue.take() != nil {}
    #expect(queue.runningCount == 5)
    for id in 10..<13 { queue.add(id, Request(mirror: 0, host: "a", isSmall: true)) }
    #expect(queue.take()?.id == 10 && queue.take() == nil)
    queue.finish(10)
    #expect(queue.take()?.id == 11)
    // Where a place for them gets free it is the next newcomer's.
    queue.finish(1)
    #expect(queue.take()?.id == 5 && queue.take() == nil)
  }

  /// With two places the mirrors have one each, and with one there is nothing to keep.
  @Test func fewPlacesAreSharedToo() {
    let two = self.queue(10, 2)
    for id in 0..<3 { two.add(id, Request(mirror: 1, host: "a")) }
    two.setShared(true, host: "a")
    #expect(two.take()?.id == 0 && two.take() == nil)
    two.add(3, Request(mirror: 2, host: "a"))
    #expect(two.take()?.id == 3 && two.take() == nil)
    let one = self.queue(1, 1)
    one.add(0, Request(mirror: 1, host: "a"))
    one.setShared(true, host: "a")
    one.setShared(true)
    #expect(one.take()?.id == 0)
  }

  @Test func theLastPlaceOfAllIsKeptForWhoHasNoneAnywhere() {
    let queue = self.queue(4, 4)
    for id in 0..<8 { queue.add(id, Request(mirror: 1, host: "h\(id)")) }
    queue.setShared(true)
    while queue.take() != nil {}
    #expect(queue.runningCount == 3)
    queue.add(8, Request(mirror: 2, host: "h0"))
    #expect(queue.take()?.id == 8 && queue.take() == nil)
    queue.finish(8)
    #expect(queue.take() == nil)
    queue.finish(0)
    #expect(queue.take()?.id == 3 && queue.take() == nil)
    // Alone again, it has all of them.
    queue.setShared(false)
    #expect(queue.take()?.id == 4)
  }

  /// Nor by waiting for a place that is kept for others.
  @Test func whoMayNotHaveAKeptPlaceHasNoCredit() {
    let queue = self.queue(10, 2)
    queue.add(0, Request(mirror: 1, host: "a"))
    queue.setShared(true, host: "a")
    #expect(queue.take()?.id == 0)
    for id in 1..<1000 { queue.add(id, Request(mirror: 1, host: "a")) }
    for id in 1000..<3000 { queue.add(id, Request(mirror: 2, host: "a")) }
    #expect(drain(queue, 1000).allSatisfy { $0.mirror == "2" })
    queue.setLimits(PlaceLimits(total: 1, perHost: 1, keptForSmall: 0))
    queue.finish(0)
    #expect((49...51).contains(drain(queue, 100).filter { $0.mirror == "1" }.count))
  }

  @Test func aHeldHostLetsNobodyIn() {
    let queue = self.queue(10, 3)
    queue.setHeld(true, host: "a")
    for id in 0..<4 { queue.add(id, Request(mirror: 1, host: "a")) }
    queue.add(4, Request(mirror: 2, host: "b"))
    #expect(queue.take()?.id == 4)
    #expect(queue.take() == nil)
    queue.setHeld(false, host: "a")
    #expect(queue.take()?.id == 0)
  }

  @Test func limitsChangeAtOnce() {
    let queue = self.queue(4, 2)
    for id in 0..<20 { queue.add(id, Request(mirror: 1, host: id % 2 == 0 ? "a" : "b")) }
    while queue.take() != nil {}
    #expect(queue.runningCount == 4)
    queue.setLimits(PlaceLimits(total: 6, perHost: 4, keptForSmall: 0))
    while queue.take() != nil {}
    #expect(queue.runningCount == 6)
    queue.setLimits(PlaceLimits(total: 1, perHost: 1, keptForSmall: 0))
    #expect(queue.take() == nil)
  }

  /// A model that looks at every waiting request says when there is nobody to take.
  @Test(arguments: 1...(Sanitizer.takesShare ? 8 : 30)) func limitsHoldAndNoPlaceStaysFree(seed: Int) {
    var random = Seeded(UInt64(seed))
    let limits = PlaceLimits(
      total: 1 + random.below(8), perHost: 1 + random.below(4), keptForSmall: random.below(3))
    let queue = StateLine(limits)
    var model = PlaceModel(limits: limits, shared: seed % 3 == 0 ? [] : ["b"])
    var miscounts = 0
    for id in 0..<1000 {
      switch random.below(10) {
      case 0...3:
        let request = Request(
          mirror: random.below(4), host: random.pick(["a", "b", "c"]),
          priority: random.pick([.low, .normal, .high]),
          isSmall: random.chance(40), isStream: random.chance(30))
        queue.add(id, request)
        // The queue remembers it only while somebody is there.
        queue.setShared(model.shared.contains(request.host), host: request.host)
        model.waiting[id] = request
      case 4...6:
        guard let (taken, request) = queue.take() else {
          #expect(!model.waiting.values.contains(where: model.mayRun))
          continue
        }
        #expect(model.waiting[taken] == request && model.mayRun(request))
        model.waiting[taken] = nil
        model.running[taken] = request
      case 7, 8:
        guard let one = model.running.keys.sorted().randomElement(using: &random) else { continue }
        #expect(queue.finish(one))
        model.running[one] = nil
      default:
        if random.chance(10) {
          model.isShared.toggle()
          queue.setShared(model.isShared)
        } else if random.chance(20) {
          let host = random.pick(["a", "b", "c"])
          let isHeld = random.chance(40)
          queue.setHeld(isHeld, host: host)
          if isHeld { model.held.insert(host) } else { model.held.remove(host) }
        } else if let one = model.waiting.keys.sorted().randomElement(using: &random) {
          #expect(queue.remove(one))
          model.waiting[one] = nil
        }
      }
      if queue.waitingCount != model.waiting.count || queue.runningCount != model.running.count {
        miscounts += 1
      }
    }
    #expect(miscounts == 0)
    for host in model.held { queue.setHeld(false, host: host) }
    queue.setShared(false)
    for id in model.running.keys { queue.finish(id) }
    #expect(drain(queue).count == model.waiting.count)
  }

  /// At one host, mirrors that always have someone waiting are served alike, within two turns at any time.
  @Test(arguments: 1...20) func turnsAreFairWithinABound(seed: Int) {
    var random = Seeded(UInt64(seed))
    let queue = self.queue(1 + random.below(4), 8)
    var next = 0
    var served: [String: Int] = [:]
    var running: [Int] = []
    var widest = 0
    for mirror in 0..<5 {
      for _ in 0..<(2 + random.below(40)) {
        queue.add(next, Request(mirror: mirror, host: "a"))
        next += 1
      }
    }
    for _ in 0..<2000 {
      if let (id, request) = queue.take() {
        running.append(id)
        served[request.mirror, default: 0] += 1
        // Who is served comes back, with one or several.
        for _ in 0...random.below(2) {
          queue.add(next, Request(request.mirror, "a"))
          next += 1
        }
      } else {
        queue.finish(running.remove(at: random.below(running.count)))
      }
      let counts = (0..<5).map { served["\($0)"] ?? 0 }
      widest = max(widest, (counts.max() ?? 0) - (counts.min() ?? 0))
    }
    #expect((served["0"] ?? 0) > 100)
    #expect(widest <= 2)
  }

  /// Over hosts of their own, too, mirrors share the places in all; one with many hosts gets no more of them.
  @Test func manyHostsAreNoAdvantage() {
    let queue = self.queue(1, 1)
    for id in 0..<1000 { queue.add(id, Request(mirror: 1, host: "h\(id % 10)")) }
    for id in 1000..<2000 { queue.add(id, Request(mirror: 2, host: "z")) }
    let taken = drain(queue, 400)
    #expect((199...201).contains(taken.filter { $0.mirror == "1" }.count))
  }

  /// A stream of important requests, and others everywhere: each one waits for a bounded number of turns.
  @Test(arguments: 1...10) func nobodyStarves(seed: Int) {
    var random = Seeded(UInt64(seed))
    let queue = self.queue(2, 2, kept: 1)
    var added: [Int: Int] = [:]
    var running: [Int] = []
    var next = 0
    var longest = 0
    for turn in 0..<4000 {
      while queue.waitingCount < 60 {
        let mirror = random.below(6)
        // A mirror has at most so many waiting, which bounds how many are before one of them.
        queue.add(
          next,
          Request(
            mirror: mirror, host: random.pick(["a", "b", "c"]),
            priority: mirror < 3 ? .high : random.pick([.low, .normal]), isSmall: random.chance(50)))
        added[next] = turn
        next += 1
      }
      if let (id, _) = queue.take() {
        longest = max(longest, turn - (added.removeValue(forKey: id) ?? 0))
        running.append(id)
      } else {
        queue.finish(running.remove(at: random.below(running.count)))
      }
    }
    #expect(added.values.allSatisfy { 4000 - $0 < 2000 })
    #expect(longest < 2000)
  }
}

/// Who hangs, gives way and waits again does not take turns with who never did.
@Suite struct HandingOverTests {
  @Test func whoGaveWayComesLast() {
    let queue = StateLine(PlaceLimits(total: 9, perHost: 1))
    func add(_ id: Int, _ mirror: String) { queue.add(id, StateLine.Request(mirror, "h")) }
    add(1, "a")
    #expect(queue.take()?.id == 1)
    add(2, "b")
    add(3, "m")
    #expect(queue.giveWay(1)?.next == 2)
    add(4, "a")
    #expect(queue.giveWay(2)?.next == 3)
    queue.heard(3)
    queue.finish(3)
    #expect(queue.take()?.id == 4)
    // Both were served once: the other one came first.
    add(5, "b")
    add(6, "m")
    #expect(queue.giveWay(4, isForOthers: true)?.next == 6)
    #expect(queue.giveWay(6, isForOthers: true) == nil && queue.runningCount == 1)
    #expect(queue.giveWay(6)?.next == 5)
    // The host has answered it: it is like any other again.
    queue.heard(5)
    queue.finish(5)
    add(7, "m")
    #expect(queue.take()?.id == 7)
    add(8, "b")
    #expect(queue.giveWay(7, isForOthers: true) == nil && queue.runningCount == 1)
    #expect(queue.giveWay(7)?.next == 8)
  }

  @Test func nobodyGivesWayToWhoHasAPlaceThere() {
    let queue = StateLine(PlaceLimits(total: 9, perHost: 2))
    for (id, mirror) in [(1, "a"), (2, "b")] {
      queue.add(id, StateLine.Request(mirror, "h"))
      #expect(queue.take()?.id == id)
    }
    queue.add(3, StateLine.Request("b", "h"))
    #expect(queue.giveWay(1) == nil && queue.runningCount == 2)
  }
}

/// Streams of a mirror at a host share one place.
@Suite struct SharedPlaceTests {
  private func add(_ ids: Range<Int>, _ mirror: String, to queue: StateLine, isStream: Bool = true) {
    for id in ids { queue.add(id, StateLine.Request(mirror, "h", kind: isStream ? .short : .large)) }
  }

  private func takeAll(_ queue: StateLine) -> [Int] {
    var ids: [Int] = []
    while let id = queue.take()?.id { ids.append(id) }
    return ids
  }

  @Test func streamsOfAMirrorTakeOnePlace() {
    let queue = StateLine(PlaceLimits(total: 2, perHost: 2))
    add(0..<50, "a", to: queue)
    add(50..<53, "a", to: queue, isStream: false)
    #expect(takeAll(queue).count == 51 && queue.waitingCount == 2)
    for id in 0..<49 { queue.finish(id) }
    #expect(takeAll(queue).isEmpty)
    queue.finish(49)
    #expect(takeAll(queue).count == 1)
  }

  /// Nor for a mirror that waits for a place at another host.
  @Test(arguments: ["h", "g"]) func streamsWithoutEndKeepNobodyOut(host: String) {
    let queue = StateLine(PlaceLimits(total: 2, perHost: 2))
    add(0..<10, "a", to: queue)
    add(100..<110, "b", to: queue)
    #expect(takeAll(queue).count == 20)
    queue.add(200, StateLine.Request("c", host))
    add(10..<20, "a", to: queue)
    #expect(takeAll(queue).isEmpty)
    for id in 0..<9 { queue.finish(id) }
    #expect(takeAll(queue).isEmpty)
    queue.finish(9)
    let newcomer = queue.take()?.id
    #expect(newcomer == 200)
    // Now the first one is the one that has none.
    add(110..<120, "b", to: queue)
    #expect(takeAll(queue).isEmpty)
    queue.finish(200)
    #expect(takeAll(queue).sorted() == Array(10..<20) + Array(110..<120))
  }

  /// The last of them gives the place.
  @Test func silentStreamsGiveTheirPlaceTogether() {
    let queue = StateLine(PlaceLimits(total: 9, perHost: 1))
    add(0..<3, "a", to: queue)
    #expect(takeAll(queue).count == 3)
    #expect(queue.giveWay(0) == nil)
    add(100..<102, "b", to: queue)
    for id in 0..<2 {
      guard let given = queue.giveWay(id), given.next == nil else {
        Issue.record("\(id) stays, or somebody came in its place")
        return
      }
    }
    let next = queue.giveWay(2)?.next
    #expect(next == 100)
    #expect(takeAll(queue) == [101])
  }

  @Test func whatIsLongTakesAPlaceOfItsOwn() {
    let queue = StateLine(PlaceLimits(total: 9, perHost: 3, keptForSmall: 0))
    add(0..<5, "a", to: queue)
    #expect(takeAll(queue).count == 5)
    let answers = [queue.outgrow(0), queue.outgrow(0), queue.outgrow(77)]
    #expect(answers == [.large, .large, nil])
    add(10..<13, "a", to: queue, isStream: false)
    #expect(takeAll(queue) == [10])
    for id in 1..<4 { #expect(queue.outgrow(id) == .large) }
    // The last stream leaves its place, and three more are taken than there are.
    #expect(queue.outgrow(4) == .large)
    for id in 0..<3 { queue.finish(id) }
    #expect(takeAll(queue).isEmpty)
    queue.finish(3)
    let next = queue.take()?.id
    #expect(next == 11)
  }
}

/// Looks at every request, where the budget keeps lines.
private struct PlaceModel {
  typealias Request = StateLine.Request

  let limits: PlaceLimits
  /// Hosts that several mirrors want.
  let shared: Set<String>
  /// True while several mirrors want places.
  var isShared = false
  var waiting: [Int: Request] = [:]
  var running: [Int: Request] = [:]
  var held: Set<String> = []

  private func places(_ requests: some Collection<Request>) -> Int {
    requests.count { !$0.isStream }
      + Set(requests.filter(\.isStream).map { "\($0.mirror) \($0.host)" }).count
  }

  /// Beside other streams of its mirror: unless somebody waits who has nothing at the host, or, where all is taken, nowhere.
  private func mayJoin(_ request: Request) -> Bool {
    guard request.isStream, !held.contains(request.host) else { return false }
    let there = running.values.filter { $0.host == request.host }
    guard there.contains(where: { $0.isStream && $0.mirror == request.mirror }) else { return false }
    let isFull = places(running.values) >= limits.total
    return !waiting.values.contains { other in
      other.host == request.host && !there.contains { $0.mirror == other.mirror }
        || isFull && !held.contains(other.host) && !running.values.contains { $0.mirror == other.mirror }
    }
  }

  func mayRun(_ request: Request) -> Bool {
    if mayJoin(request) { return true }
    let there = running.values.filter { $0.host == request.host }
    let large = there.filter { !$0.isSmall }.count
    let spare = shared.contains(request.host) && limits.perHost > 1 ? 1 : 0
    let small = min(limits.keptForSmall, max(0, limits.perHost - spare - 2))
    let kept = there.contains { $0.mirror == request.mirror } ? spare : 0
    // By a large one, so that the small ones have theirs still.
    let isTaken = request.isSmall && small > 0 && large > limits.perHost - small - spare
    let isKnown = running.values.contains { $0.mirror == request.mirror }
    let keptOfAll = isShared && limits.total > 1 && isKnown ? 1 : 0
    return places(running.values) < limits.total - keptOfAll && !held.contains(request.host)
      && places(there) < limits.perHost - (isTaken ? 0 : kept)
      && (request.isSmall || large < limits.perHost - small - kept)
  }
}
