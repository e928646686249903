import TarnCore
import TestSupport
import Testing

@testable import TarnTransfer

/// What one client waits for by its own limits, where there are no others. By reference: an expectation may not change a value.
final class ClientLine {
  struct Taken {
    let id: Int
    let host: String
    let hold: Hold
  }

  private let line: StateLine
  private let client: UInt64

  /// - Parameter keptForSmall: by the limits of all, which keep nobody out besides.
  init(total: Int = .max, perHost: Int, keptForSmall: Int = 0) {
    line = StateLine(
      PlaceLimits(total: .max, perHost: keptForSmall > 0 ? perHost : .max, keptForSmall: keptForSmall))
    client = line.open(PlaceLimits(total: total, perHost: perHost))
  }

  func add(
    _ id: Int, to host: String, order: UInt64? = nil, as kind: TransferKind = .large, isUrgent: Bool = false
  ) {
    let request = StateLine.Request(
      "m", host, client: client, priority: isUrgent ? .urgent : .normal, kind: kind)
    line.add(id, request, order: order)
  }

  func takeNext() -> Taken? {
    guard let (id, request) = line.take(), let hold = line.hold(of: id) else { return nil }
    return Taken(id: id, host: request.host, hold: hold)
  }

  func takeAll() -> [Taken] {
    var taken: [Taken] = []
    while let next = takeNext() { taken.append(next) }
    return taken
  }

  @discardableResult func leave(_ id: Int) -> Bool { line.finish(id) }
  func giveBack(_ taken: some Sequence<Taken>) { for one in taken { leave(one.id) } }
  func remove(_ id: Int) -> Bool { line.remove(id) }
  func note(_ id: Int, isStream: Bool, isNew: Bool) { line.heard(id, isStream: isStream, isNew: isNew) }
  func meetTrouble(_ id: Int) { line.meetTrouble(id) }

  func outgrow(_ id: Int) -> Hold? { line.outgrow(id) }
}

@Suite struct ClientPlacesTests {
  @Test func anUrgentOneGoesBeforeAllOthersOfItsClient() {
    let line = ClientLine(total: 1, perHost: 1)
    line.add(9, to: "a", order: 0)
    for id in 1...3 { line.add(id, to: "b", order: UInt64(id), isUrgent: true) }
    // By turns alone the other host would come after the first of them.
    for id in 1...3 {
      #expect(line.takeNext()?.id == id)
      line.leave(id)
    }
    #expect(line.takeNext()?.id == 9)
  }

  @Test func aFullHostIsPassedBy() throws {
    let line = ClientLine(perHost: 1)
    for (id, host) in ["a", "a", "b", "a"].enumerated() { line.add(id, to: host, order: UInt64(id)) }
    #expect(line.takeNext()?.id == 0)
    #expect(line.takeNext()?.id == 2)
    #expect(line.takeNext() == nil)
    line.leave(0)
    // It was let in before, elsewhere.
    line.add(9, to: "a", order: 0)
    #expect(line.takeNext()?.id == 9)
    line.leave(9)
    #expect(line.takeNext()?.id == 1)
    line.leave(1)
    line.leave(2)
    #expect(line.takeNext()?.id == 3)
    line.leave(3)
    #expect(line.takeNext() == nil)
  }

  @Test func manyHostsKeepTheOrderOfArrival() {
    let line = ClientLine(perHost: 10)
    for number in 0..<500 { line.add(number, to: "h\(number * 7 % 50)") }
    #expect(line.takeAll().map(\.id) == Array(0..<500))
  }

  @Test func smallOnesPassLargeOnesInTheLine() {
    let line = ClientLine(perHost: 3, keptForSmall: 1)
    for number in 0..<4 { line.add(number, to: "a") }
    for number in 4..<6 { line.add(number, to: "a", as: .small) }
    #expect(line.takeAll().map(\.id) == [0, 1, 4])
    line.leave(4)
    #expect(line.takeNext()?.id == 5)
    line.leave(0)
    #expect(line.takeNext()?.id == 2)
    line.leave(5)
    #expect(line.takeNext() == nil)
    line.leave(1)
    #expect(line.takeNext()?.id == 3)
  }

  /// Before all others of its client, whatever turns it had before, wherever there is a place for it.
  @Test func anUrgentOneIsNext() {
    let line = ClientLine(total: 2, perHost: 1)
    for id in 0..<8 { line.add(id, to: id % 2 == 0 ? "a" : "b") }
    #expect(line.takeAll().map(\.id) == [0, 1])
    for id in 10..<14 { line.add(id, to: "a", isUrgent: true) }
    line.leave(1)
    #expect(line.takeNext()?.id == 3)
    line.leave(0)
    for id in 10..<14 {
      #expect(line.takeNext()?.id == id && line.takeNext() == nil)
      line.leave(id)
    }
    #expect(line.takeNext()?.id == 2)
  }

  /// One that was led on came before those that have not begun, and after those that came before it.
  @Test func anEarlierOneKeepsItsTurn() {
    let line = ClientLine(perHost: 1)
    for id in [2, 4, 6] { line.add(id, to: "a", order: UInt64(id)) }
    line.add(5, to: "a", order: 5)
    line.add(1, to: "a", order: 1)
    #expect(line.remove(4))
    for id in [1, 2, 5, 6] {
      #expect(line.takeNext()?.id == id)
      line.leave(id)
    }
  }

  /// They take none of the shared places, and nobody waits for them.
  @Test func localOnesHaveTheirClientsLimits() {
    let line = StateLine(PlaceLimits(total: 1, perHost: 1, keptForSmall: 0))
    let client = line.open(PlaceLimits(total: 4, perHost: 2))
    line.add(0, StateLine.Request("m", "a", client: client))
    for id in 1..<4 { line.add(id, StateLine.Request("m", "file", client: client)) }
    var taken: Set<Int> = []
    while let next = line.take() { taken.insert(next.id) }
    #expect(taken == [0, 1, 2] && line.runningCount == 1 && line.waitingCount == 0)
    line.finish(1)
    #expect(line.take()?.id == 3)
  }

  /// A pass and a repair of one mirror have limits of their own.
  @Test func clientsOfAMirrorHaveLimitsOfTheirOwn() {
    let line = StateLine(PlaceLimits(total: 9, perHost: 9, keptForSmall: 0))
    for first in [10, 20] {
      let client = line.open(PlaceLimits(total: 1, perHost: 1))
      for id in first..<first + 3 { line.add(id, StateLine.Request("m", "a", client: client)) }
    }
    var taken: Set<Int> = []
    while let next = line.take() { taken.insert(next.id) }
    #expect(taken == [10, 20])
  }

  // MARK: Streams

  /// A line for `a`, which has answered by a stream.
  private func streaming(
    total: Int = .max, perHost: Int = 6, _ kinds: [(TransferKind, Int)] = [(.short, 300)]
  ) -> ClientLine {
    let line = ClientLine(total: total, perHost: perHost)
    line.add(-1, to: "a", as: .short)
    let first = line.takeNext()
    line.note(-1, isStream: true, isNew: true)
    if let first { line.leave(first.id) }
    var id = 0
    for (kind, count) in kinds {
      for _ in 0..<count {
        line.add(id, to: "a", as: kind)
        id += 1
      }
    }
    return line
  }

  private func streams(_ taken: [ClientLine.Taken]) -> Int { taken.count { $0.hold == .stream } }

  /// What the first answer tells is known although nobody was there for a while.
  @Test(arguments: [TransferKind.short, .unknown]) func shortOnesAreStreamsOfOnePlace(_ kind: TransferKind) {
    let line = streaming(perHost: 2, [(kind, 300), (.large, 2)])
    let taken = line.takeAll()
    #expect(streams(taken) == 64)
    #expect(taken.count { $0.hold == .large } == 1)
    // The last stream frees the place.
    let all = taken.filter { $0.hold == .stream }
    line.giveBack(all.dropLast())
    #expect(streams(line.takeAll()) == 63)
  }

  /// One place is one connection, whose streams take no more than that.
  @Test(arguments: [(1, 6), (6, 1), (1, 1)]) func theOnlyPlaceHasStreams(total: Int, perHost: Int) {
    let line = streaming(total: total, perHost: perHost)
    let taken = line.takeAll()
    #expect(streams(taken) == 64 && taken.count == 64)
  }

  /// Streams of its client would keep it from their place as long as there are any.
  @Test func anUrgentOneGetsThePlaceOfStreams() {
    let line = streaming(perHost: 1)
    let taken = line.takeAll()
    line.add(1000, to: "a", isUrgent: true)
    line.giveBack(taken.dropLast())
    #expect(line.takeNext() == nil)
    line.giveBack(taken.suffix(1))
    #expect(line.takeNext()?.id == 1000)
    line.leave(1000)
    #expect(streams(line.takeAll()) == 64)
  }

  /// A server that takes ten streams on a connection. libcurl knows only the limit of all mirrors.
  @Test(arguments: [(1, 6, 10), (2, 6, 20), (3, 6, 30), (6, 6, 64), (1, .max, 64)] as [(Int, Int, Int)])
  func streamsFitTheConnectionsOfTheirMirror(perHost: Int, shared: Int, most: Int) {
    let line = StateLine(PlaceLimits(total: shared, perHost: shared, keptForSmall: 0))
    let client = line.open(PlaceLimits(total: 12, perHost: perHost))
    func takeAll(_ ids: Range<Int>) -> [Int] {
      for id in ids { line.add(id, StateLine.Request("m", "a", client: client, kind: .short)) }
      var taken: [Int] = []
      while let next = line.take() { taken.append(next.id) }
      return taken
    }
    _ = takeAll(0..<1)
    line.heard(0, isStream: true, isNew: true)
    line.finish(0)
    let first = takeAll(1..<400)
    #expect(first.count == 64)
    for id in [11, 21, 31, 41, 51] { line.heard(id, isStream: true, isNew: true) }
    for id in first {
      line.heard(id, isStream: true)
      line.finish(id)
    }
    let second = takeAll(400..<401)
    #expect(second.count == most)
    // It is a limit, not a pause.
    for id in second {
      line.heard(id, isStream: true)
      line.finish(id)
    }
    #expect(takeAll(401..<402).count <= most + 1)
  }

  /// Servers end a connection after a number of requests. The one in its place does not tell that there are too many streams.
  @Test(arguments: [3, 40, Int.max]) func connectionsInPlaceOfOthersTakeNoStreams(_ busy: Int) {
    let line = StateLine(PlaceLimits(total: 16, perHost: 16, keptForSmall: 0))
    let client = line.open(PlaceLimits(total: 12, perHost: 6))
    var (running, count) = ([Int](), 0)
    func fill(_ most: Int) {
      while running.count < most {
        if line.waitingCount == 0 {
          line.add(count, StateLine.Request("m", "a", client: client, kind: .short))
          count += 1
        }
        guard let next = line.take() else { return }
        running.append(next.id)
      }
    }
    func answer(isNew: Bool = false) {
      let first = running.removeFirst()
      line.heard(first, isStream: true, isNew: isNew)
      line.finish(first)
    }
    fill(1)
    answer(isNew: true)
    fill(busy)
    for _ in 0..<100 {
      for _ in 0..<running.count {
        answer()
        fill(busy)
      }
      answer(isNew: true)
      fill(busy)
    }
    fill(.max)
    #expect(running.count >= StreamLimit.first)
  }

  @Test func withoutStreamsUnknownOnesCountAsLarge() {
    let line = ClientLine(perHost: 3, keptForSmall: 1)
    for id in 0..<3 { line.add(id, to: "a", as: .unknown) }
    line.add(3, to: "a", as: .short)
    #expect(line.takeAll().map(\.id) == [0, 1, 3])
  }

  @Test func mediumOnesHavePlacesOfTheirOwn() {
    let line = streaming(perHost: 3, [(.small, 5), (.short, 5)])
    let taken = line.takeAll()
    #expect(taken.count == 3 && streams(taken) == 0)
    line.giveBack(taken.prefix(1))
    #expect(line.takeAll().map(\.id) == [3])
  }

  /// A large file that waits for a place gets the next one, whatever streams there are.
  @Test func streamsKeepNobodyFromAPlace() {
    let line = streaming(perHost: 2, [(.large, 3), (.short, 500)])
    let taken = line.takeAll()
    #expect(taken.map(\.id) == [0, 1])
    line.giveBack(taken.prefix(1))
    #expect(line.takeNext()?.id == 2)
    line.giveBack(taken.suffix(1))
    #expect(streams(line.takeAll()) == 64)
    line.add(1000, to: "a")
    line.leave(2)
    #expect(line.takeNext()?.id == 1000)
  }

  /// The places in all hold for streams, too: those of a host count as one.
  @Test func thePlacesInAllHold() {
    let line = streaming(total: 2, [(.short, 100)])
    line.add(500, to: "b")
    line.add(501, to: "b")
    let taken = line.takeAll()
    #expect(streams(taken) == 64)
    #expect(taken.compactMap { $0.host == "b" ? $0.id : nil } == [500])
    line.giveBack(taken.filter { $0.host == "a" })
    #expect(streams(line.takeAll()) == 36)
  }

  /// What turns out to be long counts as a place, beyond those that there are; until these are free again nobody else has one.
  @Test func aLongStreamCountsAsAPlace() {
    let line = streaming(perHost: 2, [(.unknown, 70), (.large, 1)])
    let taken = line.takeAll()
    #expect(taken.count == 65)
    let long = taken.filter { $0.hold == .stream }.prefix(2).map(\.id)
    for id in long { #expect(line.outgrow(id) == .large) }
    // Streams that there are may be joined.
    #expect(streams(line.takeAll()) == 2)
    line.add(1000, to: "a")
    for id in long {
      line.leave(id)
      #expect(line.takeNext() == nil)
    }
    line.leave(70)
    #expect(line.takeNext()?.id == 1000)
  }

  @Test func whatAnswersWithoutStreamsHasConnections() throws {
    let line = streaming(perHost: 2)
    let first = try #require(line.takeNext())
    line.note(first.id, isStream: false, isNew: true)
    line.leave(first.id)
    #expect(line.takeAll().map(\.hold) == [Hold.small, .small])
  }

  /// Down to the number of connections. With answers they become more again.
  @Test func troubleLeavesFewerStreams() throws {
    let line = streaming(perHost: 6, [(.short, 1000)])
    var held = line.takeAll()
    for most in [32, 16, 8, 6, 6] {
      // All that was under way tells of the same.
      for one in held { line.meetTrouble(one.id) }
      line.giveBack(held)
      held = line.takeAll()
      #expect(held.count == most && streams(held) == most)
    }
    for most in 7..<40 {
      for one in held { line.note(one.id, isStream: true, isNew: false) }
      line.giveBack(held)
      held = line.takeAll()
      #expect(held.count == most && streams(held) == most)
    }
  }

  /// They were let in before it was halved, when others of them had ended long since.
  @Test func laterTroubleOfTheSameGenerationHalvesNothing() {
    let line = streaming(perHost: 6)
    let old = line.takeAll()
    line.meetTrouble(old[0].id)
    line.giveBack(old.prefix(40))
    var new = line.takeAll()
    #expect(new.count == 8)
    for _ in 0..<5 {
      line.giveBack(new)
      new = line.takeAll()
    }
    for one in old.suffix(24) { line.meetTrouble(one.id) }
    line.giveBack(old.suffix(24))
    #expect(line.takeAll().count + new.count == 32)
  }

  /// Whatever happens: limits hold, nobody who may go waits, and what has left frees what it held.
  @Test(arguments: 0..<200 as Range<UInt64>) func holdsInRandomOrders(seed: UInt64) {
    var random = Seeded(seed)
    let (total, perHost, kept) = (3 + random.below(6), 1 + random.below(5), random.below(3))
    let line = ClientLine(total: total, perHost: perHost, keptForSmall: kept)
    var held: [ClientLine.Taken] = []
    var (count, outgrown, taken) = (0, 0, 0)
    for _ in 0..<500 {
      let host = random.pick(["a", "b"])
      let one = held.isEmpty ? nil : random.below(held.count)
      switch random.below(8) {
      case 0, 1, 2:
        let kind = TransferKind.allCases[random.below(4)]
        line.add(count, to: host, as: kind, isUrgent: random.chance(10))
        count += 1
      case 3:
        if let one { line.note(held[one].id, isStream: random.below(8) != 0, isNew: random.below(8) == 0) }
      case 4:
        if let one, random.below(8) == 0 { line.meetTrouble(held[one].id) }
      case 5:
        guard let index = held.firstIndex(where: { $0.hold == .stream }) else { break }
        let one = held.remove(at: index)
        guard let hold = line.outgrow(one.id) else { break }
        held.append(ClientLine.Taken(id: one.id, host: one.host, hold: hold))
        outgrown += 1
      default: if let one { line.leave(held.remove(at: one).id) }
      }
      while let next = line.takeNext() {
        held.append(next)
        taken += 1
        let places = ["a", "b"].map { host in
          let here = held.filter { $0.host == host }
          #expect(streams(here) <= StreamLimit.last)
          return here.count { $0.hold != .stream } + (streams(here) > 0 ? 1 : 0)
        }
        guard outgrown == 0 else { continue }
        #expect(places.allSatisfy { $0 <= perHost } && places.reduce(0, +) <= total)
      }
    }
    while !held.isEmpty {
      line.giveBack(held)
      held = line.takeAll()
      taken += held.count
    }
    #expect(taken == count)
  }
}

@Suite struct StreamLimitTests {
  /// Lets all streams be answered.
  private func answerAll(_ limit: inout StreamLimit) {
    let running = limit.most
    for _ in 0..<running { limit.answered(isNew: false, running: running) }
  }

  /// With each answer while all streams are taken.
  @Test func growsWithEachAnswerAtFirst() {
    var limit = StreamLimit()
    limit.answered(isNew: false, running: 63)
    #expect(limit.most == 64)
    for _ in 0..<40 { limit.answered(isNew: false, running: limit.most) }
    #expect(limit.most == 104)
    for _ in 0..<1000 { limit.answered(isNew: false, running: limit.most) }
    #expect(limit.most == StreamLimit.last)
  }

  /// It may be there for the streams of another mirror, or in the place of one that ended.
  @Test func anotherConnectionIsNoTrouble() {
    var limit = StreamLimit()
    for _ in 0..<20 { limit.answered(isNew: false, running: limit.most) }
    limit.answered(isNew: true, running: 84)
    #expect(limit.most == 84)
    limit.answered(isNew: true, running: 84)
    #expect(limit.most == 84)
    for _ in 0..<82 { limit.answered(isNew: false, running: 84) }
    #expect(limit.most == 84)
    limit.answered(isNew: false, running: 84)
    #expect(limit.most == 85)
    answerAll(&limit)
    #expect(limit.most == 86)
  }

  /// As a congestion window: half at once, then one more with each round.
  @Test func growsAgainAfterTrouble() {
    var limit = StreamLimit()
    limit.meetTrouble(of: 0, fewest: 6)
    #expect(limit.most == 32)
    for round in 1...20 {
      answerAll(&limit)
      #expect(limit.most == 32 + round)
    }
    limit.meetTrouble(of: 1, fewest: 6)
    #expect(limit.most == 26)
    for _ in 0..<300 { answerAll(&limit) }
    #expect(limit.most == StreamLimit.last)
  }

  /// What fits the connections after it shows anew, also with fewer streams than there may be.
  @Test func troubleForgetsWhatFitted() {
    var limit = StreamLimit()
    for _ in 0...40 { limit.answered(isNew: false, running: 40) }
    #expect(limit.fitting == 40)
    limit.meetTrouble(of: 0, fewest: 6)
    #expect(limit.fitting == 0)
  }

  @Test func aGenerationHalvesItOnce() {
    var limit = StreamLimit()
    for _ in 0..<64 { limit.meetTrouble(of: 0, fewest: 6) }
    #expect(limit.most == 32 && limit.generation == 1)
    limit.meetTrouble(of: 1, fewest: 6)
    limit.meetTrouble(of: 0, fewest: 6)
    #expect(limit.most == 16 && limit.generation == 2)
  }

  @Test(arguments: [1, 6, 64, Int.max]) func asManyAsConnectionsStay(fewest: Int) {
    var limit = StreamLimit()
    for generation in 0..<10 { limit.meetTrouble(of: generation, fewest: fewest) }
    #expect(limit.most == min(fewest, 64))
    answerAll(&limit)
    #expect(limit.most == min(fewest, 64) + 1)
  }
}
