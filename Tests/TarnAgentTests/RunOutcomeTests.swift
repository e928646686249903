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

  /// Deletions that were approved in the pass are part of what it did, and so is what they failed at.
  @Test(arguments: [0, 1]) func anApprovalCountsAsThePasssOwn(failed: Int) {
    let now = Timestamp(nanoseconds: 0)
    var report = PassReport(feed: "http://h/f", folder: "/f", started: now)
    report.counts.held = 3
    var outcome = RunOutcome(report)
    #expect(outcome.outcome == .held)
    var approval = ApprovalReport(plan: HeldPlan(id: "1a2b3c4d", when: now, count: 3))
    approval.deleted = 3 - failed
    if failed > 0 {
      approval.problems = [
        Problem(name: Array("a".utf8), kind: .failed, code: "permission", message: "it may not", seen: now)
      ]
    }
    outcome.take(approval)
    #expect(outcome.code == (failed == 0 ? "in-sync" : "partial"))
    #expect(outcome.outcome == (failed == 0 ? .succeeded : .failedPermanent))
    #expect(outcome.exitStatus == (failed == 0 ? 0 : 3))
    let counts = outcome.counts ?? [:]
    #expect(counts["deleted"] == 3 - failed && counts["held"] == 0 && counts["failed"] == failed)
    let words = failed == 0 ? "in sync: 3 deleted, " : "incomplete: 2 deleted, 1 failed, "
    #expect(outcome.message.hasPrefix(words), "\(outcome.message)")
    #expect(outcome.message.hasSuffix("plan 1a2b3c4d was approved: \(3 - failed) moved to the trash"))
  }

  /// Something else had failed already.
  @Test func anApprovalOfAPartialPassSaysWhatIsHeldNow() {
    let now = Timestamp(nanoseconds: 0)
    var report = PassReport(feed: "http://h/f", folder: "/f", started: now)
    (report.counts.wanted, report.counts.held, report.counts.failed) = (2, 3, 1)
    var outcome = RunOutcome(report)
    #expect(outcome.code == "partial" && outcome.message.contains("3 held"), "\(outcome.message)")
    var approval = ApprovalReport(plan: HeldPlan(id: "1a2b3c4d", when: now, count: 3))
    approval.deleted = 3
    outcome.take(approval)
    #expect(outcome.code == "partial" && outcome.message.hasPrefix("incomplete: 3 deleted, 1 failed"))
    #expect(
      !outcome.message.contains("held") && outcome.message.contains("was approved"), "\(outcome.message)")
  }

  /// What lies below a file whose deletion was held is wanted, and not there.
  @Test func anApprovalDoesNotBringWhatWaitedForIt() {
    let now = Timestamp(nanoseconds: 0)
    var report = PassReport(feed: "http://h/f", folder: "/f", started: now)
    (report.counts.wanted, report.counts.held, report.counts.waiting) = (2, 1, 2)
    var outcome = RunOutcome(report)
    var approval = ApprovalReport(plan: HeldPlan(id: "1a2b3c4d", when: now, count: 1))
    approval.deleted = 1
    outcome.take(approval)
    #expect(outcome.outcome == .failedTransient && outcome.exitStatus == 3 && outcome.code == "partial")
    #expect(
      outcome.message.hasPrefix("incomplete: 1 deleted, 2 waiting, 0 of 2 in place"), "\(outcome.message)")
  }
}
