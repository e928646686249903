import TarnCore
import TarnEngine
import TarnSchedule
import Testing

@testable import TarnAgent

/// What is said of a pass of the agent's, while it waits and when it is over.
@Suite struct PassOutcomeTests {
  private func report(wanted: Int, current: Int, planned: Int) -> PassReport {
    var report = PassReport(feed: "f", folder: "/f", started: Timestamp(nanoseconds: 0))
    report.isPlan = true
    report.counts.wanted = wanted
    report.counts.current = current
    report.counts.planned.all = planned
    return report
  }

  /// Nothing was done, and so nothing is in sync by it.
  @Test func aPlanIsNeverInSync() {
    var some = report(wanted: 4, current: 1, planned: 3)
    some.counts.held = 2
    let outcome = RunOutcome(plan: some, kinds: [.fetch: 2, .update: 1])
    #expect(
      outcome.message
        == "to do: 2 to fetch, 1 to update, 2 would be held, 1 of 4 in place; only planned, for the settings say dry-run"
    )
    let nothing = RunOutcome(plan: report(wanted: 2, current: 2, planned: 0), kinds: [:])
    #expect(nothing.message.hasPrefix("nothing to do, 2 of 2 in place"))
    var same = report(wanted: 4, current: 1, planned: 3)
    (same.counts.planned.recorded, same.counts.planned.asked) = (1, 2)
    #expect(
      RunOutcome(plan: same, kinds: [:]).message.hasPrefix(
        "no change known, 4 of 4 in place, 2 to ask the server about;"))
    for outcome in [outcome, nothing] {
      #expect(outcome.code == "planned" && outcome.exitStatus == 0 && outcome.outcome == .succeeded)
      #expect(!outcome.hasScanned && outcome.failure == nil && !outcome.message.contains("in sync"))
    }
    var stopped = report(wanted: 2, current: 0, planned: 2)
    stopped.wasStopped = true
    #expect(RunOutcome(plan: stopped, kinds: [:]).outcome == .cancelled)
  }

  @Test func aFailureKeepsItsHint() {
    let failure = PassFailure(
      .usage, code: "folder-not-empty", "it is not empty", hint: "tarn sync --adopt m")
    #expect(RunOutcome(failure).hint == "tarn sync --adopt m")
  }

  /// What is left of the pause, as of now, and nothing once it is over.
  @Test func aPauseIsCountedDown() throws {
    let begin = try #require(Timestamp(seconds: 1000))
    let trouble = PassTrouble("server error (503)", pause: 90, now: begin)
    #expect(trouble.text(now: begin) == "server error (503); trying again in 90 s")
    #expect(trouble.text(now: begin.adding(seconds: 43)) == "server error (503); trying again in 47 s")
    for seconds in [90, 91, 5000] as [Int64] {
      #expect(trouble.text(now: begin.adding(seconds: seconds)) == "server error (503); trying again")
    }
    #expect(PassTrouble("m", pause: -.infinity, now: begin).text(now: begin) == "m; trying again")
    #expect(PassTrouble("m", pause: .infinity, now: begin).text(now: begin).hasPrefix("m; trying again in"))
  }
}
