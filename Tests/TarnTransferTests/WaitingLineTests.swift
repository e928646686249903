import TarnCore
import Testing

@testable import TarnTransfer

@Suite struct WaitingLineTests {
  @Test func aFullHostIsPassedBy() throws {
    let a = Origin(scheme: "http", host: "a", port: "80")
    let b = Origin(scheme: "http", host: "b", port: "80")
    var line = WaitingLine<Int>(perHost: 1)
    for (order, origin) in [a, a, b, a].enumerated() { line.add(order, to: origin, order: UInt64(order)) }
    #expect(line.takeNext()?.element == 0)
    #expect(line.takeNext()?.element == 2)
    #expect(line.takeNext() == nil)
    line.leave(a)
    line.addFirst(9, to: a, order: 9)
    #expect(line.takeNext()?.element == 9)
    line.leave(a)
    #expect(line.takeNext()?.element == 1)
    line.leave(a)
    line.leave(b)
    #expect(line.takeNext()?.element == 3)
    line.leave(a)
    #expect(line.takeNext() == nil)
  }

  @Test func manyHostsKeepTheOrderOfArrival() {
    var line = WaitingLine<Int>(perHost: 10)
    for number in 0..<500 {
      line.add(
        number, to: Origin(scheme: "http", host: "h\(number * 7 % 50)", port: "80"), order: UInt64(number))
    }
    var taken: [Int] = []
    while let next = line.takeNext() { taken.append(next.element) }
    #expect(taken == Array(0..<500))
  }

  @Test func smallOnesPassLargeOnesInTheLine() {
    let host = Origin(scheme: "http", host: "a", port: "80")
    var line = WaitingLine<Int>(perHost: 3, keptForSmall: 1)
    for number in 0..<4 { line.add(number, to: host, order: UInt64(number)) }
    for number in 4..<6 { line.add(number, to: host, order: UInt64(number), as: .small) }
    #expect(line.takeNext()?.element == 0)
    #expect(line.takeNext()?.element == 1)
    #expect(line.takeNext()?.element == 4)
    #expect(line.takeNext() == nil)
    line.leave(host, as: .small)
    #expect(line.takeNext()?.element == 5)
    line.leave(host)
    #expect(line.takeNext()?.element == 2)
    line.leave(host, as: .small)
    #expect(line.takeNext() == nil)
    line.leave(host)
    #expect(line.takeNext()?.element == 3)
  }

  // MARK: Streams

  private let a = Origin(scheme: "https", host: "a", port: "443")
  private let b = Origin(scheme: "https", host: "b", port: "443")

  /// A line of short ones for `a`.
  private func streaming(perHost: Int, short: Int = 100) -> WaitingLine<Int> {
    var line = WaitingLine<Int>(perHost: perHost)
    for order in 0..<short { line.add(order, to: a, order: UInt64(order), as: .short) }
    return line
  }

  /// Answers, the first one by a new connection.
  private func noteStreams(_ line: inout WaitingLine<Int>, _ count: Int = 64) {
    for number in 0..<count { line.note(a, hasStreams: true, isNew: number == 0) }
  }

  /// All that it gives while answers come and nobody ends.
  private func fill(_ line: inout WaitingLine<Int>) -> [WaitingLine<Int>.Taken] {
    var taken = takeAll(&line)
    while true {
      line.note(a, hasStreams: true, isNew: false)
      let more = takeAll(&line)
      guard !more.isEmpty else { return taken }
      taken += more
    }
  }

  private func takeAll(_ line: inout WaitingLine<Int>) -> [WaitingLine<Int>.Taken] {
    var taken: [WaitingLine<Int>.Taken] = []
    while let next = line.takeNext() { taken.append(next) }
    return taken
  }

  private func giveBack(_ taken: [WaitingLine<Int>.Taken], to line: inout WaitingLine<Int>) {
    for one in taken { line.leave(one.origin, as: one.kind, quarters: one.quarters) }
  }

  /// Who wants one thing at a time gets that.
  @Test(arguments: [(perHost: 3, most: 12), (perHost: 1, most: 1)])
  func aStreamTakesAQuarterOfAPlace(perHost: Int, most: Int) {
    var line = streaming(perHost: perHost)
    let first = takeAll(&line)
    #expect(first.count == perHost && first.allSatisfy { $0.quarters == 4 })
    noteStreams(&line)
    // They hold what they took.
    #expect(takeAll(&line).isEmpty)
    giveBack(first, to: &line)
    // One more with each answer: a connection may take no more.
    let second = takeAll(&line)
    #expect(second.count == min(most, perHost + 1))
    let others = fill(&line)
    #expect(second.count + others.count == most)
    #expect((second + others).allSatisfy { $0.quarters == 4 * perHost / most })
    giveBack(second + others, to: &line)
    #expect(takeAll(&line).count == most)
  }

  @Test func oneConnectionInAllIsNotShared() {
    var line = WaitingLine<Int>(perHost: 6, mayShare: false)
    for order in 0..<20 { line.add(order, to: a, order: UInt64(order), as: .short) }
    _ = takeAll(&line)
    noteStreams(&line)
    line.leave(a, as: .short)
    #expect(fill(&line).map(\.quarters) == [4])
  }

  @Test func largerOnesTakeWholePlaces() {
    var line = WaitingLine<Int>(perHost: 2)
    line.add(0, to: a, order: 0)
    _ = line.takeNext()
    noteStreams(&line)
    line.add(1, to: a, order: 1, as: .short)
    line.add(2, to: a, order: 2, as: .small)
    line.add(3, to: a, order: 3, as: .short)
    // The second has not a whole place, and the third does not go ahead of it.
    #expect(takeAll(&line).map(\.element) == [1])
    line.leave(a)
    #expect(fill(&line).map(\.element) == [2, 3])
  }

  /// No host takes more of what is left for all, either.
  @Test func nobodyGoesAheadOfWhoNeedsMoreThanIsLeft() {
    var line = streaming(perHost: 2, short: 10)
    let first = takeAll(&line)
    noteStreams(&line)
    giveBack(first, to: &line)
    line.add(50, to: b, order: 0)
    #expect(line.takeNext(free: 3) == nil)
    #expect(line.takeNext(free: 4)?.element == 50)
    #expect(line.takeNext(free: 1)?.element == 2)
    #expect(line.takeNext(free: 0) == nil)
  }

  @Test func whatAnswersWithoutStreamsHasConnections() {
    var line = streaming(perHost: 2)
    let first = takeAll(&line)
    noteStreams(&line)
    line.note(a, hasStreams: false, isNew: true)
    giveBack(first, to: &line)
    #expect(takeAll(&line).count == 2)
  }

  /// Until nobody is there.
  @Test func aHostInTroubleHasConnections() {
    var line = streaming(perHost: 2, short: 6)
    let first = takeAll(&line)
    line.noteTrouble(a)
    noteStreams(&line)
    giveBack(first, to: &line)
    let second = takeAll(&line)
    #expect(second.count == 2)
    giveBack(second, to: &line)
    giveBack(takeAll(&line), to: &line)
    for order in 10..<30 { line.add(order, to: a, order: UInt64(order), as: .short) }
    let third = takeAll(&line)
    noteStreams(&line)
    giveBack(third, to: &line)
    #expect(fill(&line).count == 8)
  }

  /// Who runs as a stream by then counts as a connection.
  @Test(arguments: [true, false]) func whoSharesAPlaceWhenStreamsEndCountsWhole(isTrouble: Bool) {
    var line = streaming(perHost: 2, short: 30)
    let first = takeAll(&line)
    noteStreams(&line)
    giveBack(first, to: &line)
    let streams = fill(&line)
    #expect(streams.count == 8 && streams.allSatisfy { $0.quarters == 1 })
    if isTrouble { line.noteTrouble(a) } else { line.note(a, hasStreams: false, isNew: true) }
    giveBack(Array(streams.prefix(6)), to: &line)
    #expect(takeAll(&line).isEmpty)
    giveBack([streams[6]], to: &line)
    #expect(takeAll(&line).count == 1)
    giveBack([streams[7]], to: &line)
    #expect(takeAll(&line).count == 1)
  }

  /// What is under way by a connection that ends has to be asked for again.
  @Test(arguments: [
    ([63], 2), ([64], 8), ([63, 63], 2), ([64, 63], 8), ([64, 63, 1], 2), ([64, 64, 1], 8),
  ])
  func connectionsHaveToLast(answers: [Int], most: Int) {
    var line = streaming(perHost: 2)
    let first = takeAll(&line)
    for count in answers { noteStreams(&line, count) }
    giveBack(first, to: &line)
    #expect(fill(&line).count == most)
  }
}
