import TarnCore
import TarnEngine
import TarnSchedule
import Testing

@testable import TarnAgent

/// How a pass ended, in words.
@Suite struct RunOutcomeTests {
  private func report(_ change: (inout PassReport) -> Void) -> PassReport {
    var report = PassReport(feed: "http://h/f", folder: "/f", started: Timestamp(nanoseconds: 0))
    report.ended = Timestamp(nanoseconds: 252_000_000_000)
    change(&report)
    return report
  }

  /// A first pass that fails takes the folder away that it has made: no trouble of local changes.
  @Test func aFolderThatIsGoneHasNoChanges() {
    let gone = RepairOutcome(PassFailure(FolderFailure(.missing, "cannot open the directory /f")))
    #expect(gone.hasNoMirror && gone.message == nil && !gone.isDone)
    let other = RepairOutcome(PassFailure(FolderFailure(.permission, "cannot open the directory /f")))
    #expect(!other.hasNoMirror && other.message?.contains("could not be looked at") == true)
  }

  /// As `tarn sync` says it without an agent.
  @Test func wordsAreThoseOfAPassByHand() {
    let good = report {
      ($0.counts.wanted, $0.counts.fetched, $0.counts.current) = (20_000, 10_801, 9_199)
      $0.bytes.current = 40 << 20
    }
    #expect(
      RunOutcome(good).message
        == "in sync: 20,000 files, 40.0 MiB (10,801 fetched, 9,199 already there) in 4 min 12 s")
    let still = report {
      ($0.counts.wanted, $0.counts.current, $0.unchanged) = (1, 1, .scanned)
    }
    #expect(
      RunOutcome(still).message == "in sync: 1 file (nothing to do; the feed has not changed) in 4 min 12 s")
    let kept = report {
      ($0.counts.wanted, $0.counts.current, $0.counts.kept) = (5, 4, 1)
    }
    #expect(RunOutcome(kept).message == "in sync: 4 of 5 files (1 left as changed here) in 4 min 12 s")
    let bad = report {
      ($0.counts.wanted, $0.counts.fetched, $0.counts.current, $0.counts.failed) = (5, 2, 2, 1)
      $0.listingFailures = 1
    }
    #expect(
      RunOutcome(bad).message
        == "not in sync: 1 failed, 1 unreadable listing; 4 of 5 files in place (2 fetched, 2 already there), in 4 min 12 s"
    )
  }

  /// What the log says before the end.
  @Test func longWorkIsToldInWords() {
    let planned = report {
      ($0.counts.planned.all, $0.counts.current, $0.bytes.planned) = (4, 1, 3 << 20)
    }
    #expect(PassWords.planned(planned) == "planned: 4 files, 3.0 MiB; 1 already there")
    var snapshot = PassProgress.Snapshot()
    #expect(PassWords.progress(snapshot) == "reading the feed")
    snapshot.entriesRead = 1234
    #expect(PassWords.progress(snapshot) == "reading the feed: 1,234 entries")
    snapshot.phase = .transferring
    (snapshot.filesDone, snapshot.filesTotal) = (3, 10)
    (snapshot.bytesDone, snapshot.bytesTotal, snapshot.rate) = (1 << 30, 2 << 30, 10 << 20)
    (snapshot.failed, snapshot.unknownSizes) = (1, 0)
    #expect(
      PassWords.progress(snapshot)
        == "fetching: 50%, 3 of 10 files, 1.0 GiB of 2.0 GiB, 10.0 MiB/s, 1 min 42 s left, 1 failed")
    snapshot.unknownSizes = 2
    #expect(PassWords.progress(snapshot) == "fetching: 3 of 10 files, 1.0 GiB, 10.0 MiB/s, 1 failed")
  }

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
    outcome.add(approval)
    #expect(outcome.code == (failed == 0 ? "in-sync" : "partial"))
    #expect(outcome.outcome == (failed == 0 ? .succeeded : .failedPermanent))
    #expect(outcome.exitStatus == (failed == 0 ? 0 : 3))
    let counts = outcome.words?.counts.named ?? [:]
    #expect(counts["deleted"] == 3 - failed && counts["held"] == 0 && counts["failed"] == failed)
    let words =
      failed == 0
      ? "in sync: 0 files (3 moved to the trash) in 0.0 s"
      : "not in sync: 1 failed; 0 of 0 files in place (2 moved to the trash), in 0.0 s"
    #expect(outcome.message.hasPrefix(words), "\(outcome.message)")
    #expect(outcome.message.hasSuffix("plan 1a2b3c4d was approved: \(3 - failed) moved to the trash"))
  }

  /// The last pass had read the feed, and may ask its server again.
  @Test func whoAsksForAVersionWaitsOnlyForAFailingFeed() {
    var outcome = RepairOutcome(isDone: true)
    #expect(outcome.urgency(after: nil) == nil)
    outcome.wantsVersion = true
    #expect(outcome.urgency(after: nil) == .version)
    let failure = PassFault(message: "the server does not answer")
    #expect(outcome.urgency(after: failure) == nil)
    outcome.wasBlind = true
    #expect(outcome.urgency(after: failure) == .blind)
  }

  /// Something else had failed already.
  @Test func anApprovalOfAPartialPassSaysWhatIsHeldNow() {
    let now = Timestamp(nanoseconds: 0)
    var report = PassReport(feed: "http://h/f", folder: "/f", started: now)
    (report.counts.wanted, report.counts.held, report.counts.failed) = (2, 3, 1)
    var outcome = RunOutcome(report)
    #expect(outcome.code == "partial" && outcome.message.contains("3 deletions held"), "\(outcome.message)")
    var approval = ApprovalReport(plan: HeldPlan(id: "1a2b3c4d", when: now, count: 3))
    approval.deleted = 3
    outcome.add(approval)
    #expect(outcome.code == "partial" && outcome.message.hasPrefix("not in sync: 1 failed; "))
    #expect(outcome.message.contains("(3 moved to the trash)"), "\(outcome.message)")
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
    outcome.add(approval)
    #expect(outcome.outcome == .failedTransient && outcome.exitStatus == 3 && outcome.code == "partial")
    #expect(
      outcome.message.hasPrefix(
        "not in sync: 2 waiting for approval; 0 of 2 files in place (1 moved to the trash)"),
      "\(outcome.message)")
  }

  /// A hook's reader may see nothing else of the pass.
  @Test func hooksHearWhatFailedAndWhatWaits() {
    let now = Timestamp(nanoseconds: 0)
    var report = PassReport(feed: "http://h/f", folder: "/f", started: now)
    (report.counts.wanted, report.counts.held, report.counts.failed) = (2, 3, 1)
    report.problems = [
      Problem(name: Array("a.iso".utf8), kind: .failed, code: "http-404", message: "not there", seen: now)
    ]
    report.held = HeldPlan(id: "1a2b3c4d", when: now, count: 3)
    let outcome = RunOutcome(report)
    #expect(!outcome.message.contains("a.iso"))
    #expect(
      outcome.messageForHooks
        == outcome.message + "; a.iso: not there [http-404]; plan 1a2b3c4d waits for 'tarn approve'")
    let good = RunOutcome(PassReport(feed: "f", folder: "/f", started: now))
    #expect(good.messageForHooks == good.message)
  }
}
