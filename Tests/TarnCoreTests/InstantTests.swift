import TestSupport
import Testing

@testable import TarnCore

/// Instants, moments of the wall clock and durations, at the ends of their ranges too.
@Suite struct InstantTests {
  @Test func instantsStopAtTheirEnds() {
    #expect(Instant.at(5) + .seconds(2) == .at(7) && Instant.at(5) + .seconds(-2) == .at(3))
    #expect(Instant.at(5) + .seconds(-6) == Instant())
    #expect(Instant.distantFuture + .nanoseconds(1) == .distantFuture)
    #expect(Instant.at(5) + .longest + .longest + .longest == .distantFuture)
  }

  @Test func howLongAgoIsNeverNegative() {
    #expect(Instant.at(7) - .at(5) == .seconds(2) && Instant.at(5) - .at(7) == .seconds(-2))
    #expect(Instant.at(7).elapsed(since: .at(5)) == .seconds(2))
    #expect(Instant.at(5).elapsed(since: .at(7)) == .zero)
    #expect(
      Instant.at(7).remaining(at: .at(5)) == .seconds(2) && Instant.at(5).remaining(at: .at(7)) == .zero)
    #expect(Instant.distantFuture.elapsed(since: Instant()) == .longest)
  }

  @Test func timestampsStopAtTheirEnds() {
    let first = Timestamp(nanoseconds: .min)
    #expect(Timestamp.distantFuture + .seconds(1) == .distantFuture && first + .seconds(-1) == first)
    #expect(Timestamp.distantFuture - first == .longest * 2 + .nanoseconds(1))
    #expect(first + (Timestamp.distantFuture - first) == first + .longest)
  }

  @Test(
    arguments: [
      (.zero, 0, 0, 0), (.nanoseconds(1), 1, 1, 1), (.milliseconds(1500), 1_500_000_000, 1500, 2),
      (.seconds(-1), -1_000_000_000, 0, -1), (.milliseconds(-1500), -1_500_000_000, 0, -1),
      (.longest * 2, .max, .max, 18_446_744_074), (.longest * -2, .min, 0, -18_446_744_073),
    ] as [(Duration, Int64, Int32, Int64)])
  func durationsAsNumbers(_ duration: Duration, _ nanoseconds: Int64, _ milliseconds: Int32, _ seconds: Int64)
  {
    #expect(duration.nanoseconds == nanoseconds)
    #expect(duration.milliseconds == milliseconds)
    #expect(duration.wholeSeconds == seconds)
  }

  @Test func secondsWithoutBoundsAreBounded() {
    #expect(Duration.bounded(seconds: -1) == .zero && Duration.bounded(seconds: 1.5) == .milliseconds(1500))
    #expect(Duration.bounded(seconds: .infinity) == .seconds(1_000_000_000))
  }
}
