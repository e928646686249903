import TarnCore
import TarnRuntime
import Testing

@Suite struct ClockTests {
  @Test func systemClockGoesOn() {
    let clock = SystemClock()
    let first = clock.monotonic()
    #expect(clock.monotonic() >= first)
    // After 2020 and before the type's end.
    #expect(clock.time.nanoseconds > 1_577_836_800_000_000_000)
  }

  @Test func manualClockMovesWhenTold() {
    let clock = ManualClock(now: 1_000, monotonic: Instant(nanoseconds: 5))
    clock.advance(.seconds(2))
    #expect(clock.time.nanoseconds == 2_000_001_000)
    #expect(clock.monotonic().nanoseconds == 2_000_000_005)
    clock.setWall(-1)
    #expect(clock.time.nanoseconds == -1)
    #expect(clock.monotonic().nanoseconds == 2_000_000_005)
  }

  @Test func sameSeedSameNumbers() {
    let one = SeededRandom(seed: 7)
    let two = SeededRandom(seed: 7)
    #expect((0..<10).map { _ in one.next() } == (0..<10).map { _ in two.next() })
    #expect(one.name() == two.name() && one.name().utf8.count == 32)
  }

  /// The first outputs of SplitMix64 for seed 1234567, as published with the algorithm.
  @Test func splitMixMatchesItsReference() {
    let random = SeededRandom(seed: 1_234_567)
    #expect(random.next() == 6_457_827_717_110_365_317)
    #expect(random.next() == 3_203_168_211_198_807_973)
  }

  @Test(arguments: [UInt64(0), 1, 2, 3, 1000, .max])
  func boundIsNeverReached(bound: UInt64) {
    let random = SeededRandom(seed: 1)
    for _ in 0..<100 {
      #expect(random.next(below: bound) < max(1, bound))
      #expect((0..<1).contains(random.unit()))
    }
  }

  @Test func bootIDIsRead() {
    #expect(BootID.read().utf8.count == 36)
    #expect(BootID.read() == BootID.read())
    #expect(BootID.read(from: "/nonexistent") == "")
  }
}
