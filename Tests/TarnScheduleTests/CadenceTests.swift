import TarnCore
import Testing

@testable import TarnSchedule

@Suite struct CadenceTests {
  private func cadence(_ seconds: Int64 = 3600, machine: String = "m", mirror: String = "podcasts") -> Cadence
  {
    Cadence(every: seconds, machine: machine.utf8, mirror: mirror.utf8)!
  }

  @Test func theSameNamesGiveTheSamePhase() {
    #expect(cadence() == cadence())
    #expect(cadence().phase != cadence(machine: "n").phase)
    #expect(cadence().phase != cadence(mirror: "iso").phase)
    // Parts have lengths: `ab` + `c` is not `a` + `bc`.
    #expect(cadence(machine: "ab", mirror: "c").phase != cadence(machine: "a", mirror: "bc").phase)
  }

  /// Phases are part of what users see: they may not move between versions.
  @Test func phasesAreThoseOfTheFirstVersion() {
    var hash = StableHash()
    #expect(hash.value == 0xEFD0_1F60_BA99_2926)
    hash.add("tarn".utf8)
    #expect(hash.value == 0xFF9F_0930_74FC_4565)
  }

  @Test(arguments: [59, 0, -1, .min, 366 * 86_400 + 1, .max] as [Int64])
  func otherIntervalsAreRefused(seconds: Int64) {
    #expect(Cadence(every: seconds, machine: "m".utf8, mirror: "x".utf8) == nil)
  }

  @Test func runsAreOneIntervalApart() {
    let cadence = cadence(90)
    var last = moment(1_790_000_000)
    for _ in 0..<100 {
      let next = cadence.next(after: last)
      #expect(next > last)
      #expect(next - last <= .seconds(90))
      let comb = Timestamp(nanoseconds: floorQuotient(next.nanoseconds, 90_000_000_000) * 90_000_000_000)
      #expect(comb + cadence.phase == next)
      last = next
    }
    // Just before it, it is the same one; at it, the one after.
    #expect(cadence.next(after: Timestamp(nanoseconds: last.nanoseconds - 1)) == last)
    #expect(cadence.next(after: last) == last + .seconds(90))
    #expect(cadence.next(after: Timestamp(nanoseconds: .max)).nanoseconds == .max)
    #expect(cadence.next(after: Timestamp(nanoseconds: -1)).nanoseconds >= 0)
  }

  /// 1,000 mirrors of one machine, and one mirror of 1,000 machines: each tenth of the interval has about a tenth.
  @Test(arguments: [true, false], [60, 3600, 86_400] as [Int64])
  func phasesAreSpreadEvenly(byMirror: Bool, seconds: Int64) {
    var tenths = [Int](repeating: 0, count: 10)
    for index in 0..<1000 {
      let cadence =
        byMirror
        ? cadence(seconds, mirror: "mirror-\(index)")
        : cadence(seconds, machine: "host\(index)", mirror: "podcasts")
      #expect((.zero..<cadence.interval).contains(cadence.phase))
      tenths[Int(cadence.phase / cadence.interval * 10)] += 1
    }
    // Chi-square with 9 degrees of freedom: 27.9 is passed by chance once in 1,000 times.
    let chi = tenths.reduce(0.0) { $0 + Double(($1 - 100) * ($1 - 100)) / 100 }
    #expect(chi < 27.9, "\(tenths)")
  }
}
