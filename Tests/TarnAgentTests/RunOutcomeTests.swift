import TarnCore
import TarnEngine
import Testing

@testable import TarnAgent

/// How a pass ended, in words.
@Suite struct RunOutcomeTests {
  @Test func aPassThatWasStoppedDoesNotSayThatThereIsNothingToDo() {
    var report = PassReport(feed: "http://h/f", folder: "/f", started: Timestamp(nanoseconds: 0))
    report.wasStopped = true
    report.counts.wanted = 5
    #expect(RunOutcome(report).message == "stopped; what was fetched is kept: 0 of 5 in place")
    report.counts.fetched = 2
    #expect(RunOutcome(report).message == "stopped; what was fetched is kept: 2 fetched, 2 of 5 in place")
    (report.counts.fetched, report.counts.failed) = (0, 1)
    #expect(RunOutcome(report).message == "stopped; what was fetched is kept: 1 failed, 0 of 5 in place")
  }

  /// A host that refuses connections asks for nothing.
  @Test(arguments: [true, false]) func aRestIsNoWish(isAsked: Bool) {
    var failure = PassFailure(.feedUnreachable, code: "host-resting", "it rests")
    (failure.retryAfter, failure.isAsked) = (30, isAsked)
    let hints = RunOutcome(failure).hints
    #expect(hints.retryAfter == (isAsked ? 30 : nil) && hints.restFor == (isAsked ? nil : 30))
  }
}
