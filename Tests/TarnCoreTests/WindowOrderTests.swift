import TarnCore
import Testing

/// Ages of items whose dates cannot be read. Moments are seconds.
@Suite struct WindowOrderTests {
  private func order(_ dates: [Int64?]) -> WindowOrder {
    WindowOrder(dates: dates.map { $0.map { Timestamp(nanoseconds: $0 * 1_000_000_000) } })
  }

  private func sights(_ dates: [Int64?], known: [Int: Int64] = [:], now: Int64 = 100) -> [Int64] {
    let sights = order(dates).firstSights(
      known: dates.indices.map { known[$0].map { Timestamp(nanoseconds: $0 * 1_000_000_000) } },
      now: Timestamp(nanoseconds: now * 1_000_000_000))
    return sights.map(\.seconds)
  }

  @Test func anUndatedFileIsNoNewerThanTheOneAboveIt() {
    #expect(sights([nil, nil, nil]) == [100, 100, 100])
    #expect(sights([60, 50, nil]).last == 50)
    #expect(sights([nil, 50, nil, 40, nil]) == [100, 50, 50, 40, 40])
    #expect(sights([]) == [])
  }

  @Test func anOldOneOnTopBindsNone() {
    #expect(sights([10, nil, 50, 40, nil]) == [10, 50, 50, 40, 40])
  }

  @Test func anOldOneOnTopMakesNoOrder() {
    #expect([0, 1, 2].map(order([10, nil, 20]).rank) == [0, 1, 2])
    #expect(sights([10, nil, 50, nil]) == [10, 50, 50, 50])
  }

  /// One that is pinned there tells nothing, where nothing else has a date.
  @Test func aDateOnTopAloneBindsNone() {
    #expect(sights([10, nil, nil]).dropFirst() == [100, 100])
    #expect(sights([nil, 10, nil]).last == 10)
  }

  @Test func aNewFileIsNoOlderThanAKnownOneBelowIt() {
    #expect(sights([20, 10, nil, nil], known: [3: 90])[2] == 90)
    #expect(sights([nil, 10, nil, nil], known: [2: 90]).last == 10)
    #expect(sights([20, 10, nil, 5, nil], known: [4: 90])[2] == 90)
  }

  @Test func aFeedThatRisesRunsBackwards() {
    #expect(sights([10, nil, 20, 30, nil]) == [10, 20, 20, 30, 100])
    #expect([0, 1, 2].map(order([10, 20, 30]).rank) == [2, 1, 0])
    for falling in [[30, 20, 10], [10, 20, 10], [10, 10, 10], [nil, nil, nil]] as [[Int64?]] {
      #expect([0, 1, 2].map(order(falling).rank) == [0, 1, 2])
    }
  }

  /// What was listed above stays the newer one, when only the ledger knows of both.
  @Test func theOrderOutlivesTheList() {
    let now = Timestamp(nanoseconds: 100)
    for dates in [[nil, nil, nil], [50, nil, nil]] as [[Int64?]] {
      let sights = order(dates).firstSights(known: [nil, nil, nil], now: now)
      #expect(sights[1] > sights[2])
    }
    let rising = order([1, 2, 3, nil, nil]).firstSights(known: [nil, nil, nil, nil, nil], now: now)
    #expect(rising[4] > rising[3])
  }
}
