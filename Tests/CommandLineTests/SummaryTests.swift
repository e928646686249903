import Glibc
import TarnAgent
import TarnCore
import Testing

@testable import TarnEngine
@testable import tarn

@Suite struct SummaryTests {
  static let plain = Style(isOn: false)

  private func lines(_ report: PassReport) -> [String] {
    SyncSummary.lines(report, mirror: "/srv/iso", style: Self.plain)
  }

  @Test func inSync() {
    #expect(
      lines(Samples.report()) == [
        "in sync: 5 files, 1.2 MiB (3 fetched, 1 updated, 1 already there) in 2.1 s"
      ])
  }

  /// What was not fetched is not called so.
  @Test func copiesAreTold() {
    var report = Samples.report()
    report.counts.fetched = 1
    report.counts.copied = 2
    #expect(
      lines(report) == [
        "in sync: 5 files, 1.2 MiB (1 fetched, 1 updated, 2 copied, 1 already there) in 2.1 s"
      ])
  }

  /// What somebody deleted here is not counted as there.
  @Test func whatIsLeftAsChangedIsNotCounted() {
    var report = Samples.report()
    (report.counts.current, report.counts.kept) = (0, 1)
    #expect(
      lines(report) == [
        "in sync: 4 of 5 files, 1.2 MiB (3 fetched, 1 updated, 1 left as changed here) in 2.1 s"
      ])
  }

  @Test func nothingToDo() {
    var report = Samples.report()
    report.counts.fetched = 0
    report.counts.updated = 0
    report.counts.current = 5
    report.counts.unlisted = 2
    // A server without a 304 sends it all again.
    report.bytes.received = 6_000_000
    #expect(
      lines(report).first == "in sync: 5 files, 1.2 MiB (5.7 MiB fetched again, and nothing is new) in 2.1 s")
    report.bytes.received = 0
    #expect(
      lines(report) == [
        "in sync: 5 files, 1.2 MiB (nothing to do) in 2.1 s",
        "  2 files no longer in the feed; what --delete would do: tarn plan --delete /srv/iso",
      ])
    (report.manifest.isComplete, report.manifest.isWindow) = (false, true)
    #expect(
      lines(report).last
        == "  2 files beyond --keep or --max-age; what --delete would do: tarn plan --delete /srv/iso")
  }

  /// Who uses the mirror looks for its list.
  @Test func aListThatCannotBeKeptIsTold() {
    var report = Samples.report()
    report.options = PassOptions()
    let line = "  the list itself is not kept in the mirror, because its address has a query"
    #expect(!lines(report).contains(line))
    report.feed += "?version=2"
    #expect(lines(report).contains(line))
    report.options = PassOptions(values: [.keepList: ["false"]])
    #expect(!lines(report).contains(line))
  }

  /// What the damaged line names may be missing. Of what never names all it is told only where somebody waits for deletions.
  @Test func aListThatMayNotBeWholeIsTold() {
    var report = Samples.report()
    (report.manifest.isComplete, report.manifest.incompleteReason) = (false, "line 20 is not understood")
    #expect(
      lines(report).contains("  the list may not be whole: line 20 is not understood"), "\(lines(report))")
    report.manifest.isWindow = true
    #expect(!lines(report).contains { $0.contains("whole") })
    (report.manifest.isWindow, report.manifest.incompleteReason) = (
      false, "a web page need not have a link to each file"
    )
    #expect(!lines(report).contains { $0.contains("whole") })
    report.options = PassOptions(values: [.delete: ["true"]])
    #expect(lines(report).contains { $0.contains("whole") })
  }

  /// JSON has always said so; a person who gave --delete waits for it, too.
  @Test(arguments: [true, false]) func whyNothingIsDeletedIsTold(isInSync: Bool) {
    var report = Samples.report()
    (report.manifest.isComplete, report.manifest.incompleteReason) = (false, "line 3 is no part of the list")
    if !isInSync { report.counts.failed = 1 }
    let line = "  nothing is deleted, because the list may not be whole: line 3 is no part of the list"
    #expect(!lines(report).contains(line))
    report.options = PassOptions(values: [.delete: ["true"]])
    #expect(lines(report).contains(line), "\(lines(report))")
    #expect(
      PlanText.summary(report, kinds: [:], targets: "m", mirror: "m", style: Self.plain).contains(line))
    // A window names the newest files only, as everybody knows.
    report.manifest.isWindow = true
    #expect(!lines(report).contains(line))
  }

  /// What the feed dropped and somebody changed or copied here stays without a row: no pass tells of it again.
  @Test func whatIsLeftToTheUserIsTold() {
    var report = Samples.report()
    report.counts.current = 5
    report.counts.wanted = 5
    report.released = 3
    #expect(
      lines(report).last == "  3 files no longer in the feed, and changed or copied here: left to you",
      "\(lines(report))")
  }

  @Test func sizesThatNobodyToldAreLeftOut() {
    var report = Samples.report()
    report.bytes.current = 0
    report.bytes.published = 0
    #expect(lines(report) == ["in sync: 5 files (3 fetched, 1 updated, 1 already there) in 2.1 s"])
    report.counts.planned.all = 4
    #expect(PassWords.planned(report) == "planned: 4 files; 1 already there")
    report.bytes.planned = 1024
    #expect(PassWords.planned(report) == "planned: 4 files, 1.0 KiB; 1 already there")
    #expect(
      PlanText.summary(
        Samples.report(), kinds: [.update: 1], targets: "iso", mirror: "iso", style: Self.plain)
        == ["to do: 1 to update; 1 of 5 files current"])
  }

  @Test func notInSyncListsTenProblems() {
    var report = Samples.report()
    report.counts.failed = 12
    report.counts.refused = 1
    report.counts.wanted = 18
    report.problems = [Samples.problem(.refused, "../up\u{7}", "path-dot-segment", "leads out of the folder")]
    report.problems += (1...12).map {
      Samples.problem(.failed, "a b/\($0)", "http-404", "the server has no such file")
    }
    let lines = lines(report)
    #expect(lines[0] == "not in sync: 12 failed, 1 refused; 5 of 18 files in place, in 2.1 s")
    #expect(lines[1] == "  refused  ../up\\x07: leads out of the folder [path-dot-segment]")
    #expect(lines[2] == "  failed   a b/1: the server has no such file [http-404]")
    #expect(lines.count == 13)
    #expect(lines[11] == "  and 3 more: tarn status -v /srv/iso")
    #expect(lines[12] == "next: tarn explain /srv/iso $'../up\\x07'")
  }

  /// A report names no more than its most; the line below says how many really failed.
  @Test func aFullListOfProblemsHidesNone() {
    var report = Samples.report()
    report.counts.failed = 300_000
    report.counts.wanted = 300_005
    report.problems = (1...PassReport.mostProblems).map {
      Samples.problem(.failed, "a/\($0)", "host-resting", "h:80 failed again and again")
    }
    let lines = lines(report)
    #expect(lines[1] == "  failed  a/1 and 9,999 other files: h:80 failed again and again [host-resting]")
    #expect(lines[2] == "  and 290,000 more: tarn status -v /srv/iso")
  }

  /// A plan is recorded nowhere, so `status` cannot know what it found.
  @Test func theRestOfAPlansProblemsIsInThePlan() {
    var report = Samples.report()
    report.isPlan = true
    report.problems = (1...13).map { Samples.problem(.refused, "a/\($0)", "path-control", "control") }
    let targets = "./SHA256SUMS 'my iso'"
    #expect(
      PlanText.summary(report, kinds: [:], targets: targets, mirror: "m", style: Self.plain).last
        == "  and 3 more: tarn plan --json ./SHA256SUMS 'my iso'")
  }

  /// Of a host that is down each file fails, and for one reason.
  @Test func filesOfAHostThatIsDownAreOneLine() {
    var report = Samples.report()
    report.counts.failed = 503
    func problem(_ name: String, _ code: String, _ message: String) -> Problem {
      Problem(name: Array(name.utf8), kind: .failed, code: code, message: message, seen: Samples.now)
    }
    let rest = "h:80 failed again and again, and was left alone: refused"
    report.problems = (1...500).map { problem("f\($0)", "host-resting", "http://h/f\($0): \(rest)") }
    report.problems.insert(problem("a", "http-404", "http://h/a: not found"), at: 0)
    report.problems.append(problem("g1", "host-resting", "http://g/g1: g:80 asked to be left alone"))
    report.problems.append(problem("f501", "host-resting", "http://h/f501: \(rest)"))
    #expect(
      lines(report).dropFirst().prefix(4) == [
        "  failed  a: http://h/a: not found [http-404]",
        "  failed  f1 and 500 other files: \(rest) [host-resting]",
        "  failed  g1: http://g/g1: g:80 asked to be left alone [host-resting]",
        "next: tarn explain /srv/iso a",
      ])
  }

  /// Another pass may reach the host; after the second failure it is explained what else helps.
  @Test func aHostThatIsDownAgainIsExplained() {
    var report = Samples.report()
    report.counts.failed = 1
    report.problems = [Samples.problem(.failed, "a", DownloadFailure.Code.connect.rawValue, "h:80: refused")]
    #expect(lines(report).last == "next: tarn sync /srv/iso")
    report.problems[0].attempts = 2
    #expect(lines(report).last == "next: tarn explain /srv/iso a")
  }

  @Test func whatAnOrderPausedWaitsForNoApproval() {
    var report = Samples.report()
    (report.counts.current, report.counts.waiting) = (4, 2)
    report.problems = [Samples.problem(.held, "a", "paused", "its transfer is paused until 'tarn resume'")]
    #expect(lines(report)[0].hasPrefix("not in sync: 1 waiting for approval, 1 paused; "))
    report.counts.waiting = 1
    #expect(lines(report)[0].hasPrefix("not in sync: 1 paused; "))
    report.counts.failed = 1
    report.counts.held = 12
    report.held = HeldPlan(
      id: "1a2b3c4d", when: Samples.now, count: 12, reason: "the list is empty", isForPerson: true)
    report.problems.append(Samples.problem(.failed, "b", "http-404", "gone"))
    #expect(lines(report).last?.hasPrefix("next: tarn explain ") == true, "\(lines(report))")
  }

  @Test func heldPlanSaysWhatToType() {
    var report = Samples.report()
    report.counts.held = 12
    report.held = HeldPlan(
      id: "1a2b3c4d", when: Samples.now, count: 12, reason: "the list is empty")
    #expect(
      lines(report) == [
        "not in sync: 12 deletions held; 5 of 5 files in place, in 2.1 s",
        "  12 deletions held as plan 1a2b3c4d (the list is empty)",
        "next: tarn approve /srv/iso 1a2b3c4d",
      ])
    report.counts.held = 1
    report.counts.waiting = 2
    report.held?.count = 1
    report.listingFailures = 1
    #expect(
      lines(report)[0]
        == "not in sync: 2 waiting for approval, 1 unreadable listing, 1 deletion held; 5 of 5 files in place, in 2.1 s"
    )
    report.held?.reason = ""
    #expect(lines(report)[1] == "  1 deletion held as plan 1a2b3c4d")
  }

  @Test func stoppedSaysWhatIsKept() {
    var report = Samples.report()
    report.wasStopped = true
    report.bytes.received = 1_258_291
    #expect(
      lines(report) == [
        "stopped: 1.2 MiB fetched this time, 4 files put in place; what came is kept, and 'tarn sync /srv/iso' "
          + "goes on from there"
      ])
  }

  /// A service manager knows no keys, and in a log nobody presses one.
  @Test func onlyATerminalIsToldOfItsKeys() {
    #expect(Session.wayToEndAtOnce(after: SIGINT, isTerminal: true) == "; press Ctrl-C again to end at once")
    for (signal, isTerminal) in [(SIGINT, false), (SIGTERM, true), (SIGHUP, true), (nil, true)]
      as [(Int32?, Bool)]
    {
      #expect(Session.wayToEndAtOnce(after: signal, isTerminal: isTerminal) == "")
    }
  }

  @Test func planLines() {
    var entry = Entry(path: Samples.path("a/b.iso"))
    entry.size = 1_258_291
    let action = Action(.fetch, path: entry.path, entry: entry)
    #expect(PlanText.line(action, style: Self.plain) == "fetch          1.2 MiB  a/b.iso")
    #expect(
      PlanText.line(Action(.forget, path: Samples.path("old")), style: Self.plain)
        == "forget                  old")
    var report = Samples.report()
    report.bytes.planned = 1_258_291
    #expect(
      PlanText.summary(
        report, kinds: [.fetch: 3, .delete: 1], targets: "iso", mirror: "iso", style: Self.plain)
        == ["to do: 3 to fetch, 1 to delete; 1.2 MiB to download, 1 of 5 files current"])
    report.bytes.unknownSizes = 2
    #expect(
      PlanText.summary(report, kinds: [.fetch: 3], targets: "iso", mirror: "iso", style: Self.plain)
        == ["to do: 3 to fetch; 1.2 MiB and 2 of unknown size to download, 1 of 5 files current"])
    (report.bytes.planned, report.bytes.unknownSizes) = (0, 3)
    #expect(
      PlanText.summary(report, kinds: [.fetch: 3], targets: "iso", mirror: "iso", style: Self.plain)
        == ["to do: 3 to fetch; 3 of unknown size to download, 1 of 5 files current"])
    (report.bytes.planned, report.bytes.unknownSizes) = (1_258_291, 0)
    #expect(
      PlanText.summary(report, kinds: [:], targets: "iso", mirror: "iso", style: Self.plain)
        == ["nothing to do: 1 of 5 files current"])
  }

  /// Of what is put back the record has the size, where the feed tells none.
  @Test func planLinesHaveSizesAsFarAsTheyAreKnown() {
    let entry = Entry(path: Samples.path("a"))
    #expect(
      PlanText.line(Action(.fetch, path: entry.path, entry: entry), style: Self.plain)
        == "fetch                -  a")
    // Of a file that was there the record tells it.
    let zero = Timestamp(nanoseconds: 0)
    let row = Row(
      path: entry.path,
      identity: FileIdentity(device: 1, inode: 1, size: 2048, modified: zero, changed: zero),
      digest: Digest(.sha256, padding: []), isVerified: true,
      fingerprint: entry.fingerprint, placed: zero)
    #expect(
      PlanText.line(Action(.restore, path: entry.path, entry: entry, row: row), style: Self.plain)
        == "restore        2.0 KiB  a")
  }

  @Test func severalPassesEndInOneLine() {
    #expect(SyncSummary.ofSeveral(["a", "b"], [true, true]) == "2 in sync")
    #expect(SyncSummary.ofSeveral(["a", "b", "'c d'"], [true, false]) == "1 in sync, 2 not: b, 'c d'")
  }

  /// Two digests of 64 digits fill a line and tell people nothing.
  @Test func digestsAreShortInALine() {
    let digest = String(repeating: "0123456789abcdef", count: 4)
    let problem = Samples.problem(.failed, "a", "digest-mismatch", "is sha256:\(digest), not \(digest)")
    #expect(problem.line == "a: is sha256:0123456789ab..., not 0123456789ab... [digest-mismatch]")
    #expect(Brief.text("abc 0123 deadbeef") == "abc 0123 deadbeef")
  }

  @Test func planOfWhatWouldBeHeld() {
    #expect(
      PlanText.line(Action(.delete, path: Samples.path("old")), isHeld: true, style: Self.plain)
        == "hold                    old")
    var report = Samples.report()
    report.isPlan = true
    report.held = HeldPlan(
      id: "1a2b3c4d", when: Samples.now, count: 50, reason: "the list is empty")
    #expect(
      PlanText.summary(report, kinds: [.fetch: 1], targets: "iso", mirror: "iso", style: Self.plain) == [
        "to do: 1 to fetch; 1 of 5 files current",
        "  50 deletions would be held as plan 1a2b3c4d until approved (the list is empty)",
      ])
    report.held?.count = 1
    report.counts.waiting = 60
    #expect(
      PlanText.summary(report, kinds: [:], targets: "iso", mirror: "iso", style: Self.plain).last
        == "  1 deletion would be held as plan 1a2b3c4d until approved (the list is empty), "
        + "and 60 files would wait for that")
  }

  /// A pass held them before: the plan does not speak of them as of what may be.
  @Test func planOfWhatIsHeld() {
    var report = Samples.report()
    report.isPlan = true
    report.counts.current = 5
    report.held = HeldPlan(
      id: "1a2b3c4d", when: Timestamp(nanoseconds: Samples.now.nanoseconds - 1), count: 50,
      reason: "the list is empty")
    func lines() -> [String] {
      PlanText.summary(report, kinds: [:], targets: "feed iso", mirror: "iso", style: Self.plain)
    }
    #expect(
      lines() == [
        "nothing to do without an approval: 5 of 5 files current",
        "  50 deletions held as plan 1a2b3c4d (the list is empty)", "next: tarn approve iso 1a2b3c4d",
      ])
    report.counts.waiting = 1
    #expect(lines()[1] == "  50 deletions held as plan 1a2b3c4d (the list is empty); 1 file waits for that")
  }

  /// What stands there, and what only the server can tell of, is no change; what the user changed is named.
  @Test func planOfWhatIsThere() {
    var report = Samples.report()
    report.isPlan = true
    (report.counts.planned.all, report.counts.planned.recorded, report.counts.kept) = (2, 2, 2)
    func first() -> String {
      PlanText.summary(report, kinds: [:], targets: "iso", mirror: "iso", style: Self.plain)[0]
    }
    #expect(first() == "nothing to do: 3 of 5 files current, 2 left as changed here")
    #expect(PassWords.planned(report) == "nothing to do: 3 already there")
    report.counts.excluded = 2
    #expect(first().hasSuffix(", 2 left as changed here, 2 of the feed left out"))
    report.counts.excluded = 0
    (report.counts.planned.all, report.counts.planned.asked, report.counts.kept) = (4, 2, 0)
    #expect(first() == "no change known: 5 of 5 files in place, 2 to ask the server about")
    #expect(report.isInSync)
    var kinds: [Action.Kind: Int] = [:]
    let path = Samples.path("a")
    let ask = Action(.revalidate, path: path, entry: Entry(path: path))
    #expect(PlanText.line(ask, style: Self.plain) == "ask                  -  a")
    var adopt = Action(.adopt, path: path, entry: Entry(path: path))
    kinds.add(ask)
    kinds.add(adopt)
    adopt.restoresMode = true
    kinds.add(adopt)
    #expect(kinds == [.adopt: 1, .restore: 1])
    #expect(PlanText.line(adopt, style: Self.plain) == "restore       its mode  a")
    #expect(EventLine(adopt).action == "restore" && EventLine(adopt).bytes == nil)
  }

  @Test func verification() {
    var report = VerifyReport()
    report.checked = 3
    report.good = 3
    #expect(
      VerifySummary.lines(report, mirror: "iso", repairs: false, style: Self.plain)
        == ["all good: 3 files checked, 0 B read"])
    report.damaged = [Samples.path("a")]
    report.missing = [Samples.path("b")]
    #expect(
      VerifySummary.lines(report, mirror: "iso", repairs: false, style: Self.plain) == [
        "not good: 1 damaged, 1 missing; 3 files checked, 0 B read", "  damaged  a", "  missing  b",
        "next: tarn verify --repair iso",
      ])
    // What the policy leaves alone, no repair brings back.
    report.leavesLocalChanges = true
    #expect(
      VerifySummary.lines(report, mirror: "iso", repairs: false, style: Self.plain).suffix(3) == [
        "  what is missing or changed here stays as it is, because of --local-changes",
        "next: tarn verify --repair iso",
        "to undo all local changes, now and from then on: tarn sync --local-changes restore iso",
      ])
    // Only the settings hold from then on, and beside an agent nothing else does.
    let advice = VerifySummary.lines(
      report, mirror: "iso", configured: "iso", repairs: false, style: Self.plain
    ).last
    #expect(
      advice
        == "to undo all local changes from then on: local-changes = \"restore\" below [mirror.iso] of the settings, "
        + "then: tarn reload; for now, where no agent keeps it: tarn sync --local-changes restore iso")
    report.damaged = []
    #expect(
      !VerifySummary.lines(report, mirror: "iso", repairs: false, style: Self.plain).contains {
        $0.contains("--repair")
      })
  }

  @Test func verificationOfNothing() {
    var report = VerifyReport()
    report.isBlank = true
    func lines(repairs: Bool = false) -> [String] {
      VerifySummary.lines(report, mirror: "iso", repairs: repairs, style: Self.plain)
    }
    let head = "nothing verified: no file is recorded"
    #expect(lines() == [head, "next: tarn sync iso"])
    #expect(lines(repairs: true) == [head])
    report.knowsFeed = false
    #expect(lines() == [head, "next: tarn sync FEED iso"])
    #expect(ExitStatus(report) == .partial)
  }

  @Test func approval() {
    let plan = HeldPlan(id: "1a2b3c4d", when: Samples.now.adding(seconds: -7200), count: 12)
    let question = ApprovalText.question(plan, (1...12).map { Samples.path("\($0)") }, now: Samples.now)
    #expect(question.first == "plan 1a2b3c4d, held 2 hours ago, moves 12 files to the trash:")
    #expect(question.count == 12)
    #expect(question.last == "  and 2 more")
    let all = ApprovalText.question(
      plan, (1...12).map { Samples.path("\($0)") }, most: .max, now: Samples.now)
    #expect(all.count == 13 && all.last == "  12")
    var report = ApprovalReport(plan: plan)
    report.deleted = 11
    report.spared = 1
    #expect(
      ApprovalText.lines(report, mirror: "iso", style: Self.plain) == [
        "approved plan 1a2b3c4d: 11 files moved to the trash",
        "  1 file left: wanted again, changed or copied here, or gone already",
        "to see or restore them: tarn trash list iso",
      ])
  }

  /// While a pass plans, its report has no options yet.
  @Test func noReasonIsGuessedForWhatIsLeftOut() {
    var report = Samples.report()
    report.counts = PassCounts()
    report.counts.excluded = 35
    #expect(PassWords(report).leftOut == nil && !PassWords.planned(report).contains("leave"))
    report.options = PassOptions(values: [.include: ["*.img"]])
    let words = "the patterns of --include and --exclude leave out all 35 entries of the feed"
    #expect(PassWords(report).leftOut == words)
    // The status for everyone has no options.
    var status = Samples.status()
    (status.entries.wanted, status.entries.current, status.entries.excluded) = (0, 0, 35)
    let card = StatusText.card(status, now: Samples.now, style: Self.plain).joined(separator: "\n")
    #expect(card.contains("--exclude, or --max-age, leave out all 35 entries"), "\(card)")
  }

  /// One of a thing is told as one.
  @Test func oneIsNoPlural() {
    var report = Samples.report()
    report.counts.unlisted = 1
    #expect(
      lines(report).last
        == "  1 file no longer in the feed; what --delete would do: tarn plan --delete /srv/iso")
    var approved = ApprovalReport(plan: HeldPlan(id: "1a2b3c4d", when: Samples.now, count: 1))
    approved.deleted = 1
    #expect(
      ApprovalText.lines(approved, mirror: "iso", style: Self.plain) == [
        "approved plan 1a2b3c4d: 1 file moved to the trash", "to see or restore it: tarn trash list iso",
      ])
    var snapshot = ProgressTests.snapshot()
    snapshot.filesDone = 0
    snapshot.filesTotal = 1
    #expect(ProgressText.total(snapshot, elapsed: 1).contains("  0 of 1 file  "))
    var answer = Explanation(path: "a", state: "current", summary: "it is there")
    answer.record = Explanation.Record(
      size: 1, digest: "sha256:00", verified: true, placed: "2026-11-21T10:00:00Z", etag: nil,
      lastModified: nil)
    #expect(ExplainText.lines(answer, now: Samples.now, style: Self.plain).contains("  size    1 B (1 byte)"))
  }

  @Test func trash() {
    func row(_ name: String, own: Bool) -> TrashRow {
      TrashRow(
        name: name, path: Samples.path("a/\(name.prefix(1))"), reason: own ? .deleted : .edited, isOwn: own,
        size: 1024, when: Samples.now.adding(seconds: -7200))
    }
    #expect(
      TrashText.lines([], lifetime: 604_800, mirror: "iso", now: Samples.now, style: Self.plain) == [
        "the trash is empty"
      ])
    #expect(
      TrashText.lines(
        [row("0123456789abcdef", own: true), row("f123456789abcdef", own: false)], lifetime: 608_400,
        mirror: "iso",
        now: Samples.now,
        style: Self.plain) == [
          "ID        WHEN         UNTIL         WHY              SIZE  PATH",
          "01234567  2 hours ago  in 6 days     deleted       1.0 KiB  a/0",
          "f1234567  2 hours ago  you empty it  changed here  1.0 KiB  a/f",
          "2 files, 2.0 KiB; to put one back: tarn trash restore iso 01234567",
        ])
    #expect(TrashText.idLength(["0123456789a", "0123456789b"]) == 11)
  }

  @Test func failures() {
    let failure = PassFailure(
      .locked, code: "locked", "cannot sync iso: process 12 holds it", hint: "wait for it")
    #expect(
      FailureText.lines(failure, status: .failed(.locked), json: false, style: Self.plain)
        == ["tarn: cannot sync iso: process 12 holds it", "  hint: wait for it"])
    #expect(
      FailureText.lines(failure, status: .failed(.locked), json: true, style: Self.plain) == [
        #"{"code":"locked","exitStatus":75,"hint":"wait for it","#
          + #""message":"cannot sync iso: process 12 holds it","schema":"tarn-error/1"}"#
      ])
  }
}
