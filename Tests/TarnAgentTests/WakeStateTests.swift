import TarnCore
import Testing

@testable import TarnAgent

@Suite struct WakeStateTests {
  private let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

  @Test func itIsRunAgainEverLessOften() {
    var wake = WakeState()
    var (moment, waits): (Timestamp, [Int64]) = (now, [])
    for _ in 0..<16 {
      let began1 = wake.begin(now: moment)
      #expect(began1)
      let isTwice = wake.begin(now: moment)
      #expect(!isTwice)
      wake.ended("it ended with status 0", now: moment)
      let due = wake.due ?? moment
      waits.append(due.seconds - moment.seconds)
      moment = due
    }
    #expect(waits.prefix(3) == [5, 10, 20] && waits.last == 6 * 3600)
    #expect(wake.document?.failures == 16)
  }

  /// One that does its work has not run in vain, and news that comes then wakes it at once.
  @Test func oneThatAcknowledgesDidItsWork() {
    var wake = WakeState()
    let began1 = wake.begin(now: now)
    #expect(began1)
    wake.acknowledged()
    wake.ended("it ended with status 0", now: now)
    #expect(wake.due == nil && wake.document?.failures == 0)
    #expect(wake.document?.message == "it ended with status 0")
    let began2 = wake.begin(now: now)
    #expect(began2)
  }

  @Test func anybodyWhoAcknowledgesEndsTheWait() {
    var wake = WakeState()
    let began1 = wake.begin(now: now)
    #expect(began1)
    wake.ended("signal 9 ended it", now: now)
    #expect(wake.due == now.adding(seconds: 5))
    wake.acknowledged()
    #expect(wake.due == nil)
    let again = wake.begin(now: now)
    #expect(again)
  }
}
