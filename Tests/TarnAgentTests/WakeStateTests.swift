import TarnCore
import TarnRuntime
import Testing

@testable import TarnAgent

@Suite struct WakeStateTests {
  private let clock = ManualClock(now: 1_700_000_000_000_000_000)

  @Test func itIsRunAgainEverLessOften() {
    var (wake, waits): (WakeState, [Duration]) = (WakeState(), [])
    for _ in 0..<16 {
      let began1 = wake.begin(by: clock)
      #expect(began1)
      let isTwice = wake.begin(by: clock)
      #expect(!isTwice)
      wake.ended("it ended with status 0", by: clock)
      let wait = wake.due.map { $0.remaining(at: clock.boottime()) } ?? .zero
      waits.append(wait)
      clock.advance(wait)
    }
    #expect(waits.prefix(3) == [.seconds(5), .seconds(10), .seconds(20)] && waits.last == .seconds(6 * 3600))
    #expect(wake.document?.failures == 16)
  }

  /// One that does its work has not run in vain, and news that comes then wakes it at once.
  @Test func oneThatAcknowledgesDidItsWork() {
    var wake = WakeState()
    let began1 = wake.begin(by: clock)
    #expect(began1)
    wake.acknowledged()
    wake.ended("it ended with status 0", by: clock)
    #expect(wake.due == nil && wake.document?.failures == 0)
    #expect(wake.document?.message == "it ended with status 0")
    let began2 = wake.begin(by: clock)
    #expect(began2)
  }

  @Test func anybodyWhoAcknowledgesEndsTheWait() {
    var wake = WakeState()
    let began1 = wake.begin(by: clock)
    #expect(began1)
    wake.ended("signal 9 ended it", by: clock)
    #expect(wake.due == clock.boottime() + .seconds(5))
    wake.acknowledged()
    #expect(wake.due == nil)
    let again = wake.begin(by: clock)
    #expect(again)
  }

  /// Setting the clock neither delays nor hurries it.
  @Test(arguments: [-86_400, 86_400]) func aClockThatIsSetChangesNoWait(bySeconds: Int) {
    var wake = WakeState()
    let began = wake.begin(by: clock)
    #expect(began)
    wake.ended("it ended with status 1", by: clock)
    clock.setWall(clock.time.adding(seconds: Int64(bySeconds)).nanoseconds)
    let isTooEarly = wake.begin(by: clock)
    #expect(!isTooEarly)
    clock.advance(.seconds(5))
    let again = wake.begin(by: clock)
    #expect(again)
  }
}
