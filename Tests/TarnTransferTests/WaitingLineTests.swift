import TarnCore
import TestSupport
import Testing

@testable import TarnTransfer

@Suite struct WaitingLineTests {
  @Test func aFullHostIsPassedBy() throws {
    let a = Origin(scheme: .http, host: "a", port: "80")
    let b = Origin(scheme: .http, host: "b", port: "80")
    var line = WaitingLine<Int>(perHost: 1)
    for (order, origin) in [a, a, b, a].enumerated() { line.add(order, to: origin, order: UInt64(order)) }
    #expect(line.takeNext()?.element == 0)
    #expect(line.takeNext()?.element == 2)
    #expect(line.takeNext() == nil)
    line.leave(a, .place(isLarge: true))
    line.addFirst(9, to: a, order: 9)
    #expect(line.takeNext()?.element == 9)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext()?.element == 1)
    line.leave(a, .place(isLarge: true))
    line.leave(b, .place(isLarge: true))
    #expect(line.takeNext()?.element == 3)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext() == nil)
  }

  @Test func manyHostsKeepTheOrderOfArrival() {
    var line = WaitingLine<Int>(perHost: 10)
    for number in 0..<500 {
      line.add(
        number, to: Origin(scheme: .http, host: "h\(number * 7 % 50)", port: "80"), order: UInt64(number))
    }
    var taken: [Int] = []
    while let next = line.takeNext() { taken.append(next.element) }
    #expect(taken == Array(0..<500))
  }

  @Test func smallOnesPassLargeOnesInTheLine() {
    let host = Origin(scheme: .http, host: "a", port: "80")
    var line = WaitingLine<Int>(perHost: 3, keptForSmall: 1)
    for number in 0..<4 { line.add(number, to: host, order: UInt64(number)) }
    for number in 4..<6 { line.add(number, to: host, order: UInt64(number), as: .small) }
    #expect(line.takeNext()?.element == 0)
    #expect(line.takeNext()?.element == 1)
    #expect(line.takeNext()?.element == 4)
    #expect(line.takeNext() == nil)
    line.leave(host, .place(isLarge: false))
    #expect(line.takeNext()?.element == 5)
    line.leave(host, .place(isLarge: true))
    #expect(line.takeNext()?.element == 2)
    line.leave(host, .place(isLarge: false))
    #expect(line.takeNext() == nil)
    line.leave(host, .place(isLarge: true))
    #expect(line.takeNext()?.element == 3)
  }

  // MARK: Streams

  private typealias Line = WaitingLine<Int>

  private let a = Origin(scheme: .https, host: "a", port: "443")
  private let b = Origin(scheme: .https, host: "b", port: "443")

  /// A line for `a`, which has answered by a stream.
  private func streaming(
    total: Int = .max, perHost: Int = 6, _ kinds: [(Line.Kind, Int)] = [(.short, 300)]
  ) -> Line {
    var line = Line(total: total, perHost: perHost)
    line.add(-1, to: a, order: 0, as: .short)
    let first = line.takeNext()
    line.note(a, isStream: true, isNew: true)
    if let first { line.leave(a, first.hold) }
    var order = 0
    for (kind, count) in kinds {
      for _ in 0..<count {
        line.add(order, to: a, order: UInt64(order), as: kind)
        order += 1
      }
    }
    return line
  }

  private func takeAll(_ line: inout Line) -> [Line.Taken] {
    var taken: [Line.Taken] = []
    while let next = line.takeNext() { taken.append(next) }
    return taken
  }

  private func giveBack(_ taken: some Sequence<Line.Taken>, to line: inout Line) {
    for one in taken { line.leave(one.origin, one.hold) }
  }

  private func streams(_ taken: [Line.Taken]) -> Int { taken.count { $0.hold == .stream } }

  /// What the first answer tells is known although nobody was there for a while.
  @Test(arguments: [WaitingLine<Int>.Kind.short, .unknown])
  func shortOnesAreStreamsOfOnePlace(_ kind: WaitingLine<Int>.Kind) {
    var line = streaming(perHost: 2, [(kind, 300), (.large, 2)])
    let taken = takeAll(&line)
    #expect(streams(taken) == 64)
    #expect(taken.count { $0.hold == .place(isLarge: true) } == 1)
    // The last stream frees the place.
    let all = taken.filter { $0.hold == .stream }
    giveBack(all.dropLast(), to: &line)
    #expect(streams(takeAll(&line)) == 63)
  }

  /// Who wants one thing at a time gets that.
  @Test(arguments: [(1, 6), (6, 1)]) func onePlaceIsForOne(total: Int, perHost: Int) {
    var line = streaming(total: total, perHost: perHost)
    #expect(takeAll(&line).map(\.hold) == [.place(isLarge: false)])
  }

  @Test func withoutStreamsUnknownOnesCountAsLarge() {
    var line = Line(perHost: 3, keptForSmall: 1)
    for order in 0..<3 { line.add(order, to: a, order: UInt64(order), as: .unknown) }
    line.add(3, to: a, order: 3, as: .short)
    #expect(takeAll(&line).map(\.element) == [0, 1, 3])
  }

  @Test func mediumOnesHavePlacesOfTheirOwn() {
    var line = streaming(perHost: 3, [(.small, 5), (.short, 5)])
    let taken = takeAll(&line)
    #expect(taken.count == 3 && streams(taken) == 0)
    giveBack(taken.prefix(1), to: &line)
    #expect(takeAll(&line).map(\.element) == [3])
  }

  /// A large file that waits for a place gets the next one, whatever streams there are.
  @Test func streamsKeepNobodyFromAPlace() {
    var line = streaming(perHost: 2, [(.large, 3), (.short, 500)])
    let taken = takeAll(&line)
    #expect(taken.map(\.element) == [0, 1])
    giveBack(taken.prefix(1), to: &line)
    #expect(line.takeNext()?.element == 2)
    giveBack(taken.suffix(1), to: &line)
    #expect(streams(takeAll(&line)) == 64)
    line.add(1000, to: a, order: 1000)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext()?.element == 1000)
  }

  /// The places in all hold for streams, too: those of a host count as one.
  @Test func thePlacesInAllHold() {
    var line = streaming(total: 2, [(.short, 100)])
    line.add(500, to: b, order: 500)
    line.add(501, to: b, order: 501)
    let taken = takeAll(&line)
    #expect(streams(taken) == 64)
    #expect(taken.compactMap { $0.origin == b ? $0.element : nil } == [500])
    giveBack(taken.filter { $0.origin == a }, to: &line)
    #expect(streams(takeAll(&line)) == 36)
  }

  /// What turns out to be long counts as a place, beyond those that there are; until these are free again nobody else has one.
  @Test func aLongStreamCountsAsAPlace() {
    var line = streaming(perHost: 2, [(.unknown, 70), (.large, 1)])
    let taken = takeAll(&line)
    #expect(taken.count == 65)
    var holds = taken.map(\.hold)
    for index in 0..<2 { holds[index] = line.outgrow(a) }
    #expect(holds.prefix(2).allSatisfy { $0 == .place(isLarge: true) })
    // Streams that there are may be joined.
    #expect(streams(takeAll(&line)) == 2)
    line.add(1000, to: a, order: 1000)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext() == nil)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext() == nil)
    line.leave(a, .place(isLarge: true))
    #expect(line.takeNext()?.element == 1000)
  }

  @Test func whatAnswersWithoutStreamsHasConnections() {
    var line = streaming(perHost: 2)
    line.note(a, isStream: false, isNew: true)
    #expect(takeAll(&line).map(\.hold) == [.place(isLarge: false), .place(isLarge: false)])
  }

  /// Until nobody is there.
  @Test(arguments: [true, false]) func anOverloadedHostHasConnections(hadStreams: Bool) {
    var line = hadStreams ? streaming(perHost: 2) : Line(perHost: 2)
    if !hadStreams { for order in 0..<300 { line.add(order, to: a, order: UInt64(order), as: .short) } }
    let first = takeAll(&line)
    line.meet(.overload, at: a)
    line.note(a, isStream: true, isNew: false)
    giveBack(first, to: &line)
    var held = takeAll(&line)
    #expect(held.count == 2)
    while !held.isEmpty {
      giveBack(held, to: &line)
      held = takeAll(&line)
    }
    for order in 1000..<1300 { line.add(order, to: a, order: UInt64(order), as: .short) }
    let again = takeAll(&line)
    line.note(a, isStream: true, isNew: false)
    giveBack(again, to: &line)
    #expect(streams(takeAll(&line)) == 64)
  }

  /// One fault of a server's own leaves half as many, and so few that places would do as well are none.
  @Test func faultsLeaveFewerStreams() {
    var line = streaming(perHost: 6)
    var held = takeAll(&line)
    for most in [32, 16, 8] {
      // All that was under way tells of the same.
      for _ in held { line.meet(.fault, at: a) }
      giveBack(held, to: &line)
      held = takeAll(&line)
      #expect(held.count == most && streams(held) == most)
    }
    line.meet(.fault, at: a)
    giveBack(held, to: &line)
    #expect(takeAll(&line).map(\.hold) == Array(repeating: .place(isLarge: false), count: 6))
  }

  /// Whatever happens: limits hold, nobody who may go waits, and what has left frees what it held.
  @Test(arguments: 0..<200 as Range<UInt64>) func holdsInRandomOrders(seed: UInt64) {
    var random = Seeded(seed)
    let (total, perHost, kept) = (3 + random.below(6), 1 + random.below(5), random.below(3))
    var line = Line(total: total, perHost: perHost, keptForSmall: kept)
    var held: [Line.Taken] = []
    var (order, outgrown, taken) = (UInt64(0), 0, 0)
    for _ in 0..<500 {
      let host = random.below(2) == 0 ? a : b
      switch random.below(8) {
      case 0, 1, 2:
        line.add(Int(order), to: host, order: order + 1, as: Line.Kind.allCases[random.below(4)])
        order += 1
      case 3: line.note(host, isStream: random.below(8) != 0, isNew: random.below(8) == 0)
      case 4: if random.below(8) == 0 { line.meet(random.below(2) == 0 ? .fault : .overload, at: host) }
      case 5:
        guard let index = held.firstIndex(where: { $0.hold == .stream }) else { break }
        let one = held.remove(at: index)
        held.append(Line.Taken(element: one.element, origin: one.origin, hold: line.outgrow(one.origin)))
        outgrown += 1
      default:
        guard !held.isEmpty else { break }
        let one = held.remove(at: random.below(held.count))
        line.leave(one.origin, one.hold)
      }
      while let next = line.takeNext() {
        held.append(next)
        taken += 1
        let places = [a, b].map { host in
          let here = held.filter { $0.origin == host }
          #expect(streams(here) <= StreamLimit.last)
          return here.count { $0.hold != .stream } + (streams(here) > 0 ? 1 : 0)
        }
        guard outgrown == 0 else { continue }
        #expect(places.allSatisfy { $0 <= perHost } && places.reduce(0, +) <= total)
      }
    }
    while !held.isEmpty {
      giveBack(held, to: &line)
      held = takeAll(&line)
      taken += held.count
    }
    #expect(taken == Int(order))
  }
}

@Suite struct StreamLimitTests {
  /// With each answer while all streams are taken.
  @Test func growsUntilAnotherConnectionTells() {
    var limit = StreamLimit()
    limit.answered(isNew: false, running: 63)
    #expect(limit.most == 64)
    for _ in 0..<40 { limit.answered(isNew: false, running: limit.most) }
    #expect(limit.most == 104)
    for _ in 0..<100 { limit.answered(isNew: false, running: 50) }
    limit.answered(isNew: true, running: 104)
    limit.answered(isNew: false, running: 104)
    #expect(limit.most == 104)
    var other = StreamLimit()
    for _ in 0..<1000 { other.answered(isNew: false, running: other.most) }
    #expect(other.most == StreamLimit.last)
  }

  /// What is under way by a connection that ends has to be asked for again.
  @Test func connectionsHaveToLast() {
    var limit = StreamLimit()
    for _ in 0..<62 { limit.answered(isNew: false, running: 64) }
    let before = limit.most
    limit.answered(isNew: true, running: before)
    #expect(limit.most == before / 2)
    for _ in 0..<before { limit.ended() }
    for _ in 0..<200 { limit.answered(isNew: false, running: 10) }
    limit.answered(isNew: true, running: 10)
    #expect(limit.most == before / 2)
    // Who rested may have lost it meanwhile.
    limit.rested()
    limit.answered(isNew: true, running: 1)
    #expect(limit.most == before / 2)
  }

  @Test func aWaveCountsOnce() {
    var limit = StreamLimit()
    for _ in 0..<3 { limit.meet(.fault, running: 64) }
    #expect(limit.most == 32)
    for _ in 0..<63 { limit.ended() }
    limit.meet(.fault, running: 30)
    #expect(limit.most == 32)
    limit.ended()
    limit.meet(.fault, running: 30)
    #expect(limit.most == 16)
    for _ in 0..<30 { limit.ended() }
    limit.meet(.overload, running: 10)
    #expect(limit.most == 0)
  }
}
