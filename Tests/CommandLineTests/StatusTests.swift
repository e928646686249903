import Foundation
import TarnCore
import Testing

@testable import TarnEngine
@testable import tarn

@Suite struct StatusTests {
  static let plain = Style(isOn: false)

  private func card(_ status: StatusDocument) -> [String] {
    StatusText.card(status, now: Samples.now, style: Self.plain)
  }

  /// Nothing is known of a feed that no pass has read.
  @Test(arguments: ["RSS", nil] as [String?]) func onlyAFeedThatWasReadNamesNoFile(_ format: String?) {
    var status = Samples.status()
    status.format = format
    (status.entries.wanted, status.entries.current, status.bytes.current) = (0, 0, 0)
    let card = card(status)
    #expect(card.contains { $0.contains("the feed names no file") } == (format != nil), "\(card)")
  }

  @Test func calmMirror() {
    #expect(
      card(Samples.status()) == [
        "/srv/iso: in sync",
        "  feed          https://example.org/iso/SHA256SUMS (checksum list)",
        "  last success  2 hours ago (2026-11-21T10:00:00Z)",
        "  entries       1,234 of 1,234 current, 3.2 GiB",
      ])
  }

  @Test func troubledMirror() {
    var status = Samples.status()
    status.state = "failing"
    status.lastAttempt = "2026-11-21T11:59:50Z"
    status.entries.current = 1230
    status.entries.pending = 3
    status.entries.failed = 3
    status.entries.refused = 1
    status.trashFiles = 2
    status.trashBytes = 2048
    var problem = Samples.problem(.failed, "a\\b", "http-404", "the server has no such file")
    problem.attempts = 4
    status.problems = [StatusDocument.ProblemLine(problem)]
    status.moreProblems = 3
    #expect(
      card(status) == [
        "/srv/iso: failing",
        "  feed          https://example.org/iso/SHA256SUMS (checksum list)",
        "  last success  2 hours ago (2026-11-21T10:00:00Z)",
        "  last pass     10 seconds ago (2026-11-21T11:59:50Z)",
        "  entries       1,230 of 1,234 current, 3.2 GiB, 3 pending, 3 failed, 1 refused",
        "  trash         2 files, 2.0 KiB",
        "problems:",
        "  failed  a\\\\b: the server has no such file [http-404, 4 passes]",
        "  and 3 more: tarn status -v /srv/iso",
        "next: tarn sync /srv/iso",
      ])
  }

  /// Another sync meets the same file in the way; what to do about it is what `explain` says.
  @Test(arguments: [Problem.Kind.conflict, .refused]) func whatNoSyncMendsIsExplained(kind: Problem.Kind) {
    var status = Samples.status()
    status.state = "failing"
    status.entries.current = 1232
    let problem = Samples.problem(kind, "-a b\u{7}", "in-the-way", "a file that Tarn did not place is there")
    status.problems = [StatusDocument.ProblemLine(problem)]
    status.entries.conflict = kind == .conflict ? 2 : 0
    status.entries.refused = kind == .refused ? 2 : 0
    #expect(card(status).last == "next: tarn explain -- /srv/iso $'-a b\\x07'")
    for change in [
      { (status: inout StatusDocument) in status.entries.failed = 1 },
      { $0.entries.pending = 1 }, { $0.lastFailure = "the feed is gone" }, { $0.state = "interrupted" },
    ] as [(inout StatusDocument) -> Void] {
      var other = status
      change(&other)
      #expect(card(other).last == "next: tarn sync /srv/iso")
    }
  }

  /// A new ledger in place of a lost one: without FEED a sync would only ask for it. A configured mirror has it.
  @Test func aMirrorWithoutAFeedAsksForIt() {
    var status = Samples.status()
    status.feed = ""
    status.lastSuccess = nil
    #expect(card(status).last == "next: tarn sync FEED /srv/iso")
    status.name = "iso"
    #expect(card(status).last == "next: tarn sync iso")
  }

  /// The answer for everybody has neither a path nor a reason.
  @Test func whatIsWithheldTakesNoWords() {
    var status = Samples.status()
    (status.name, status.folder) = ("iso", "iso")
    (status.watch.mode, status.watch.reason) = ("watching", StatusAnswer.withheld)
    status.nextRunReason = "schedule"
    let lines = card(status)
    #expect(lines[0].hasPrefix("iso: ") && !lines.joined().contains("withheld"), "\(lines)")
    // Whoever gets it may give no orders either.
    status.state = "failing"
    status.lastFailure = StatusAnswer.withheld
    #expect(!card(status).joined().contains("next: "))
  }

  @Test func whatThePolicyLeavesIsSaid() {
    var status = Samples.status()
    status.entries.current = 1232
    status.entries.kept = 2
    #expect(
      card(status).last
        == "  entries       1,232 of 1,234 current, 3.2 GiB, 2 left as changed here (--local-changes keep)"
    )
  }

  /// The old files are not to go before the new ones are there.
  @Test func whatIsMissingComesBeforeAnApproval() {
    var status = Samples.status()
    status.state = "held"
    status.held = StatusDocument.Held(plan: "1a2b3c4d", deletions: 12, since: "2026-11-21T10:00:00Z")
    status.entries.current = 1230
    #expect(card(status).last == "next: tarn approve /srv/iso 1a2b3c4d")
    status.entries.failed = 4
    status.problems = [StatusDocument.ProblemLine(Samples.problem(.failed, "a", "http-404", "gone"))]
    #expect(card(status).last == "next: tarn explain /srv/iso a")
    (status.entries.failed, status.entries.conflict) = (0, 4)
    #expect(card(status).last == "next: tarn explain /srv/iso a")
    (status.name, status.nextRunReason, status.entries.conflict, status.entries.pending) = (
      "iso", "scheduled", 0, 1
    )
    status.problems = [StatusDocument.ProblemLine(Samples.problem(.held, "a", "paused", "it is paused"))]
    #expect(card(status).last == "next: tarn resume iso:a")
    (status.name, status.nextRunReason, status.entries.pending) = ("/srv/iso", nil, 0)
    (status.state, status.problems) = ("interrupted", [])
    #expect(card(status).last == "next: tarn sync /srv/iso")
  }

  @Test func heldMirrorSaysWhatToType() {
    var status = Samples.status()
    status.state = "held"
    status.held = StatusDocument.Held(
      plan: "1a2b3c4d", deletions: 12, since: "2026-11-21T10:00:00Z", reason: "the list is empty")
    #expect(
      card(status).suffix(2) == [
        "  held          12 deletions in plan 1a2b3c4d (the list is empty)",
        "next: tarn approve /srv/iso 1a2b3c4d",
      ])
  }

  @Test func runningMirrorShowsTransfers() {
    var status = Samples.status()
    status.state = "transferring"
    status.process = 42
    status.transfers = [
      StatusDocument.Transfer(
        path: "a.iso", received: 512 << 20, total: 1 << 30, rate: 1 << 20, source: "https://e/")
    ]
    let lines = card(status)
    #expect(lines.first == "/srv/iso: transferring, process 42")
    #expect(lines.suffix(2) == ["transfers:", "  50%  0.5 of 1.0 GiB  1.0 MiB/s  8:32  a.iso"])
  }

  /// A transfer that has no place yet is not shown as one that gets nothing.
  @Test func whatWaitsForAPlaceSaysSo() {
    var status = Samples.status()
    (status.state, status.process) = ("transferring", 42)
    let activities = ["a", "b"].map {
      Activity(path: Samples.path($0), received: 1 << 20, total: 2 << 20, rate: 0, source: "https://e/")
    }
    status.transfers = StatusDocument.transfers(activities, waiting: 1)
    #expect(status.transfers.map(\.state) == ["running", "waiting"])
    #expect(
      card(status).suffix(2) == [
        "transfers (1 waiting for a connection):", "  50%  1.0 of 2.0 MiB  0 B/s    a",
      ])
    let long = StatusText.card(status, now: Samples.now, style: Self.plain, isLong: true)
    #expect(
      long.suffix(3) == [
        "transfers:", "  50%  1.0 of 2.0 MiB  0 B/s    a", "              waiting           b",
      ])
    status.transfers.removeFirst()
    #expect(card(status).suffix(2) == ["transfers:", "  1 waiting for a connection"])
  }

  @Test func theFeedIsATransferToo() {
    var status = Samples.status()
    (status.state, status.process) = ("reading", 42)
    status.feedTransfer = StatusDocument.FeedTransfer(received: 12 << 20, total: 48 << 20, rate: 1 << 20)
    let line = "  25%  12.0 of 48.0 MiB  1.0 MiB/s  0:36  the feed"
    #expect(card(status).suffix(2) == ["transfers:", line])
    let live = StatusText.live([status, Samples.status()], now: Samples.now, style: Self.plain)
    #expect(live.transfers.rows.first?.hasSuffix("/srv/iso: the feed") == true)
  }

  /// With a thousand that wait, problems and what to type next scrolled away.
  @Test func transfersAreBounded() {
    var status = Samples.status()
    (status.state, status.process) = ("transferring", 42)
    let activities = (1...1040).map {
      Activity(path: Samples.path("f\($0)"), received: 1 << 20, total: 2 << 20, rate: 0, source: "https://e/")
    }
    status.show(activities, waiting: 1024)
    #expect(status.transfers.count == 36 && status.waitingTransfers == 1024)
    #expect(status.transfers.filter(\.isWaiting).map(\.path) == (17...36).map { "f\($0)" })
    let transfers = card(status).drop { !$0.hasPrefix("transfers") }
    #expect(transfers.first == "transfers (1,024 waiting for a connection):")
    #expect(transfers.count == 12 && transfers.last == "  and 6 more")
    let long = StatusText.card(status, now: Samples.now, style: Self.plain, isLong: true)
    #expect(long.last == "  and 1,004 more" && long.filter { $0.contains("waiting  ") }.count == 20)
  }

  /// Asking again at once is what the server asked not to be done.
  @Test func aServersWishIsNotToBeOverridden() {
    var status = Samples.status()
    (status.state, status.lastFailure) = ("failing", "the server answered 503")
    #expect(card(status).last == "next: tarn sync /srv/iso")
    status.askedUntil = "2026-11-21T12:30:00Z"
    let lines = card(status)
    #expect(lines.contains("  server        asked to be left alone until 2026-11-21T12:30:00Z"), "\(lines)")
    #expect(!lines.contains { $0.hasPrefix("next:") }, "\(lines)")
    // A feed that is well may ask to be read seldom.
    (status.state, status.lastFailure) = ("idle", nil)
    #expect(!card(status).contains { $0.contains("left alone") })
  }

  /// Another pass would leave it as it is.
  @Test func whatIsPausedIsToBeResumed() {
    var status = Samples.status()
    (status.state, status.name) = ("failing", "iso")
    status.nextRunReason = "scheduled"
    (status.entries.current, status.entries.pending) = (1233, 1)
    status.problems = [
      StatusDocument.ProblemLine(Samples.problem(.held, "a b.iso", "paused", "its transfer is paused"))
    ]
    #expect(card(status).last == "next: tarn resume iso:'a b.iso'")
    for change in [
      { (status: inout StatusDocument) in status.entries.pending = 2 }, { $0.moreProblems = 1 },
      { $0.lastFailure = "the feed is gone" }, { $0.nextRunReason = nil },
      { $0.problems.append(StatusDocument.ProblemLine(Samples.problem(.failed, "b", "http-404", ""))) },
    ] as [(inout StatusDocument) -> Void] {
      var other = status
      change(&other)
      #expect(card(other).last == "next: tarn sync iso")
    }
  }

  @Test func severalMirrorsAreATable() {
    var second = Samples.status()
    second.folder = "/srv/podcasts"
    second.lastSuccess = nil
    second.entries.current = 0
    second.bytes.current = 0
    #expect(
      StatusText.table([Samples.status(), second], now: Samples.now, style: Self.plain) == [
        "MIRROR         STATE             ENTRIES     SIZE  LAST SUCCESS",
        "/srv/iso       in sync       1,234/1,234  3.2 GiB  2 hours ago",
        "/srv/podcasts  never synced      0/1,234      0 B  never",
        "next: tarn sync /srv/podcasts",
      ])
  }

  /// There is no ledger to say when it was in sync, or what it has.
  @Test func whatCannotBeReadIsNotCalledNeverSynced() {
    var gone = StatusDocument(name: "/srv/gone", feed: "", folder: "/srv/gone", state: "failing")
    (gone.lastFailure, gone.hint) = ("there is no folder /srv/gone", "tarn forget /srv/gone")
    #expect(
      card(gone) == [
        "/srv/gone: failing", "  failure       there is no folder /srv/gone",
        "  hint          tarn forget /srv/gone",
      ])
    let table = StatusText.table([gone, Samples.status()], now: Samples.now, style: Self.plain)
    #expect(table[1].hasPrefix("/srv/gone  failing") && table[1].hasSuffix("unknown"), "\(table)")
  }

  @Test func ofSeveralMirrorsEachFailureHasItsReason() {
    var failing = Samples.status()
    (failing.name, failing.state, failing.lastFailure) = ("iso", "failing", "the server is gone")
    var incomplete = Samples.status()
    (incomplete.name, incomplete.state) = ("pods", "failing")
    incomplete.problems = [.init(Samples.problem(.failed, "a", "http-404", "not there"))]
    incomplete.moreProblems = 2
    let lines = StatusText.table(
      [failing, Samples.status(), incomplete], now: Samples.now, style: Self.plain)
    #expect(
      lines.dropFirst(4) == [
        "problems:", "  iso: the server is gone", "  pods: a: not there [http-404], and 2 more problems",
        "next: tarn sync iso", "next: tarn sync pods",
      ], "\(lines)")
  }

  /// What no other pass mends is not said to be mended by one.
  @Test func aSyncThatWouldFailTheSameWayIsNotOffered() {
    var status = Samples.status()
    (status.state, status.lastFailure) = ("failing", "no")
    for (code, isOffered) in [(66, true), (74, true), (73, false), (77, false)] as [(Int32, Bool)] {
      status.lastRun = .init(number: 1, code: "c", message: "no", exitStatus: code)
      #expect(card(status).contains("next: tarn sync /srv/iso") == isOffered, "\(code)")
    }
    // That was another failure.
    status.lastRun?.message = "before"
    #expect(card(status).contains("next: tarn sync /srv/iso"))
    status.hint = "tarn forget /srv/iso"
    #expect(card(status).last == "  hint          tarn forget /srv/iso")
  }

  @Test func watchedScreenFits() {
    let frame = StatusWatch.frame((1...50).map { "line \($0)" }, size: (80, 24))
    #expect(frame.contains("line 23"))
    #expect(!frame.contains("line 24"))
    // Where a line goes on shows.
    #expect(StatusWatch.frame([String(repeating: "a", count: 81)], size: (80, 24)).contains("aaa...\n"))
    // Behind a full line the cursor stands on its last character: what is cleared there would be lost.
    #expect(StatusWatch.frame(["full"], size: (4, 24)).contains("\u{1B}[Kfull\n"))
  }

  @Test func whatIsGoneFitsANarrowTerminal() {
    let line =
      "gone: 2 mirrors without a folder: /srv/first/one, /srv/second; if they are gone for good: tarn forget --gone"
    #expect(
      FittedLines.of([line], 60) == [
        "gone: 2 mirrors without a folder: /srv/first/one,", "  /srv/second; if they are gone for good:",
        "  tarn forget --gone",
      ])
    #expect(
      FittedLines.of([line], nil) == [line]
        && FittedLines.of([line], 200) == [line])
  }

  @Test func aCardFitsANarrowTerminal() {
    let lines = [
      "  failure       the folder /srv/mirrors/iso was moved away or deleted",
      "  hint          tarn trash list '/srv/mirrors/an iso, and more/of/them'; then look",
      "next: tarn forget /srv/mirrors/isos, which the settings name no more; or to keep it: tarn sync /srv/mirrors/isos",
      "agent: yours does not run: systemctl --user enable --now tarn.service", "next: tarn sync iso",
    ]
    let fitted = FittedLines.of(lines, 60)
    #expect(
      fitted == [
        "  failure       the folder /srv/mirrors/iso was moved away", "    or deleted", "  hint",
        "    tarn trash list '/srv/mirrors/an iso, and more/of/them'", "    then look", "next:",
        "  tarn forget /srv/mirrors/isos", "  which the settings name no more; or to keep it:",
        "    tarn sync /srv/mirrors/isos", "agent: yours does not run:",
        "  systemctl --user enable --now tarn.service", "next: tarn sync iso",
      ], "\(fitted.joined(separator: "\n"))")
    #expect(FittedLines.of(lines, nil) == lines)
    // A command may be longer than a line, and can be copied even so.
    let long = "tarn sync \(String(repeating: "a/", count: 40))"
    #expect(FittedLines.of(["next: \(long)"], 60) == ["next:", "  \(long)"])
  }

  /// A command in quotes is copied as well.
  @Test func aQuotedCommandIsNotBroken() {
    let hint = "  hint: the settings name it already; to ask for a pass now: 'tarn sync iso', or wait"
    #expect(
      FittedLines.of([hint], 72) == [
        "  hint: the settings name it already; to ask for a pass now:", "    'tarn sync iso', or wait",
      ])
    let name =
      "  hint: 'a mirror of mine' is none; \(String(repeating: "so ", count: 6))did you mean 'tarn x'?"
    #expect(FittedLines.of([name], 40).allSatisfy { $0.count <= 40 })
    #expect(FittedLines.of(["tarn: a 'tarn \(String(repeating: "b ", count: 40))'"], 40).count == 3)
  }

  @Test func aFindingFitsANarrowTerminal() {
    let finding = Finding(
      .warning, .permissions, of: "iso", "this user may not write /srv/iso, which belongs to root",
      mend: "ls -ld /srv/iso; then chown or chmod it, or choose another folder")
    #expect(
      finding.lines(Style(isOn: false), width: 60) == [
        "warning  permissions  iso: this user may not write /srv/iso,", "  which belongs to root",
        "         ls -ld /srv/iso", "         then chown or chmod it, or choose another folder",
      ])
  }

  /// With twenty transfers in 24 rows nothing else was seen.
  @Test func aSmallScreenShowsProblemsBeforeTransfers() throws {
    var status = Samples.status()
    status.state = "transferring"
    status.process = 42
    status.transfers = (1...40).map {
      StatusDocument.Transfer(
        path: "t\($0)", received: 1 << 20, total: 2 << 20, rate: 0, source: "https://e/")
    }
    func lines(_ documents: [StatusDocument], rows: Int = 23) -> [String] {
      StatusText.live(documents, now: Samples.now, style: Self.plain).lines(rows: rows)
    }
    func give(_ problems: Int, more: Int) {
      status.problems = (1...problems).map {
        StatusDocument.ProblemLine(Samples.problem(.failed, "p\($0)", "http-404", "not there"))
      }
      status.moreProblems = more
    }
    give(5, more: 0)
    let few = lines([status])
    #expect(few.count == 23 && few.filter { $0.contains("http-404") }.count == 5, "\(few)")
    let (problems, transfers) = (few.firstIndex(of: "problems:"), few.firstIndex(of: "transfers:"))
    #expect(try #require(problems) < #require(transfers))
    #expect(few.last == "  and 29 more")
    // Both are long: each has half.
    give(20, more: 7)
    let many = lines([status])
    #expect(many.count == 23 && many.last == "  and 33 more", "\(many)")
    #expect(many.contains("  and 19 more: tarn status -v /srv/iso"))
    // What has room is shown, and a single row says how many there are.
    #expect(lines([status], rows: 100).contains("  and 7 more: tarn status -v /srv/iso"))
    #expect(lines([status], rows: 6).suffix(2) == ["problems: 27", "transfers: 40"])
    // Of several mirrors those with trouble are not cut off with the table.
    status.lastFailure = "the server is gone"
    let table = lines((1...30).map { _ in status })
    #expect(table.count <= 23 && table.contains { $0.contains("the server is gone") }, "\(table)")
  }

  /// An agent's own number stands in the line of the agent, and a mirror's line says how far it is.
  @Test func aMirrorAtWorkTellsHowFarItIs() {
    var status = Samples.status()
    (status.name, status.state, status.process, status.run) = ("iso", "transferring", 42, 7)
    status.nextRunReason = "scheduled"
    status.progress = StatusDocument.Progress(
      filesDone: 0, filesTotal: 1, bytesDone: 610 << 20, bytesTotal: 1220 << 20, unknownSizes: 0,
      rate: 10 << 20)
    let progress = "50%, 0.6 of 1.2 GiB, 10.0 MiB/s, ETA 1:01"
    let card = StatusText.card(status, now: Samples.now, style: Self.plain)
    #expect(
      card[0] == "iso in /srv/iso: transferring" && card.contains("  progress      \(progress)"), "\(card)")
    let all = [status, Samples.status()]
    let table = StatusText.table(all, now: Samples.now, style: Self.plain)
    #expect(
      table[0].hasSuffix("PROGRESS, NEXT RUN") && table[1].hasSuffix("50%, 10.0 MiB/s, ETA 1:01"), "\(table)")
    // Where the table has no room nothing of it is cut.
    let narrow = StatusText.live(all, now: Samples.now, style: Self.plain, width: 60).folded(60).lines(
      rows: 20)
    #expect(narrow.allSatisfy { Columns.width($0) <= 60 }, "\(narrow)")
    let text = narrow.joined(separator: " ").split(separator: " ").joined(separator: " ")
    for part in [
      "iso: transferring, \(progress)", "1,234/1,234 entries, 3.2 GiB, last success 2 hours ago",
      "/srv/iso: in sync",
    ] {
      #expect(text.contains(part), "\(part): \(narrow)")
    }
    // What another process does is told with its number.
    status.run = nil
    #expect(StatusText.word(status).text == "transferring, process 42")
  }

  /// Six lines of `0%` say nothing.
  @Test func whatHasJustBegunIsCounted() {
    var status = Samples.status()
    (status.state, status.process) = ("transferring", 42)
    status.transfers = [(0, 9 << 20), (100, 3000), (0, 4000)].map {
      StatusDocument.Transfer(path: "f", received: $0, total: $1, rate: 0, source: "https://e/")
    }
    #expect(card(status).suffix(2) == ["transfers:", "  3 files, small or just begun"])
    status.transfers[0].received = 1 << 20
    #expect(card(status).last == "  and 2 more")
    #expect(
      StatusText.card(status, now: Samples.now, style: Self.plain, isLong: true).suffix(4).first
        == "transfers:")
  }

  /// What a mirror by hand remembers, and how to take it back.
  @Test func optionsAreShownOnDemand() {
    var status = Samples.status()
    status.options = ["delete": ["true"], "exclude": ["*.tmp", "a b"], "of-another-tarn": ["1"]]
    func long() -> [String] { StatusText.card(status, now: Samples.now, style: Self.plain, isLong: true) }
    #expect(
      long().last
        == "  options       --delete --exclude '*.tmp' --exclude 'a b' (remembered; to take one back: "
        + "tarn config unset /srv/iso OPTION)")
    #expect(!card(status).contains { $0.contains("--delete") })
    status.options = [:]
    #expect(long().last == "  options       none remembered")
    status.name = "iso"
    #expect(long().last == "  options       none in its settings")
  }

  /// It is in sync, and yet nothing that is gone from the feed goes.
  @Test func whyNothingIsDeletedIsTold() {
    var status = Samples.status()
    status.incompleteReason = "line 2, the last one, has no end: it may be cut"
    #expect(!card(status).contains { $0.contains("may be cut") })
    status.options = ["delete": ["true"]]
    #expect(
      card(status).contains(
        "  deletions     none: the list may not be whole: line 2, the last one, has no end: it may be cut"))
  }

  /// A pass would fail again, and explain says what helps.
  @Test func nextIsAStepThatHelps() {
    var status = Samples.status()
    (status.state, status.entries.failed, status.entries.current) = ("failing", 1, 1233)
    func next(_ code: String, trash: UInt64 = 0, attempts: Int = 1) -> String? {
      status.problems = [StatusDocument.ProblemLine(Samples.problem(.failed, "a", code, "m"))]
      status.problems[0].attempts = attempts
      status.trashBytes = trash
      return card(status).last
    }
    #expect(next("http-404") == "next: tarn explain /srv/iso a")
    #expect(next("timed-out") == "next: tarn sync /srv/iso")
    #expect(next("http-500", attempts: 2) == "next: tarn explain /srv/iso a")
    #expect(next("digest-mismatch", attempts: 2) == "next: tarn explain /srv/iso a")
    #expect(next("no-space", trash: 5) == "next: tarn trash empty /srv/iso")
    #expect(next("no-space") == "next: tarn explain /srv/iso a")
  }

  @Test func explanation() {
    var answer = Explanation(
      path: "a.iso", state: "failed", summary: "the server has no such file [http-404]")
    answer.hint = "tarn sync iso"
    answer.record = Explanation.Record(
      size: 2048, digest: "sha256:00", verified: true, placed: "2026-11-21T10:00:00Z", etag: nil,
      lastModified: nil)
    answer.events = [
      Explanation.Happening(number: 7, time: "2026-11-21T10:00:00Z", code: "fetched", bytes: 2048, detail: "")
    ]
    #expect(
      ExplainText.lines(answer, now: Samples.now, style: Self.plain) == [
        "a.iso: failed",
        "  the server has no such file [http-404]",
        "  size    2.0 KiB (2,048 bytes)",
        "  digest  sha256:00, as the feed said",
        "  placed  2 hours ago (2026-11-21T10:00:00Z)",
        "events, the newest first:",
        "  2026-11-21T10:00:00Z  fetched  2.0 KiB",
        "next: tarn sync iso",
      ])
  }

  /// A mirror of an agent's goes by its name, and tells when it runs next.
  @Test func anAgentsMirrorHasANameAndANextRun() {
    var status = Samples.status()
    status.name = "iso"
    status.nextRunReason = "scheduled"
    status.nextRun = Samples.now.adding(seconds: 300).rfc3339
    let lines = StatusText.card(status, now: Samples.now, style: Self.plain)
    #expect(lines.first == "iso in /srv/iso: in sync")
    #expect(lines.contains("  next run      in 5 minutes"))
    status.state = "paused"
    status.nextRun = nil
    status.nextRunReason = "paused"
    let paused = StatusText.card(status, now: Samples.now, style: Self.plain)
    #expect(paused.last == "next: tarn resume iso")
    status.nextRunReason = nil
    let orphaned = StatusText.card(status, now: Samples.now, style: Self.plain).last
    #expect(
      orphaned == "next: start an agent ('tarn agent', or 'systemctl start tarn'), then: tarn resume iso")
    status.nextRunReason = "paused"
    let table = StatusText.table([status, Samples.status()], now: Samples.now, style: Self.plain)
    #expect(table[0].hasSuffix("NEXT RUN") && table[1].hasSuffix("paused"), "\(table)")
  }

  /// What an agent has just been given is not late, and needs nobody.
  @Test func aMirrorBeforeItsFirstPassNeedsNobody() {
    var status = Samples.status()
    (status.name, status.lastSuccess, status.lastAttempt) = ("iso", nil, nil)
    (status.nextRunReason, status.nextRun) = ("catching-up", Samples.now.rfc3339)
    #expect(card(status).contains("  next run      now"), "\(card(status))")
    #expect(!card(status).contains { $0.hasPrefix("next: ") })
    // What is late begins now; what has a time to come is not late.
    status.lastAttempt = Samples.now.rfc3339
    #expect(card(status).contains("  next run      now (overdue)"), "\(card(status))")
    status.nextRun = Samples.now.adding(seconds: 7).rfc3339
    #expect(card(status).contains("  next run      in 7 seconds"), "\(card(status))")
    (status.lastAttempt, status.nextRun) = (nil, Samples.now.rfc3339)
    (status.state, status.lastFailure) = ("failing", "the feed is gone")
    #expect(card(status).last == "next: tarn sync iso")
    (status.state, status.lastFailure, status.nextRunReason) = ("idle", nil, "scheduled")
    status.nextRun = Samples.now.adding(seconds: 86_400).rfc3339
    #expect(card(status).last == "next: tarn sync iso")
  }

  /// Who looks for the agent learns that there is none; of a mirror made by hand nobody expects one.
  @Test(arguments: ["docs", "/srv/docs"]) func withoutAnAgentNothingRunsByItself(_ name: String) {
    let document = StatusDocument(name: name, feed: "http://h/SUMS", folder: "/srv/docs", state: "idle")
    let lines = StatusText.card(document, now: Timestamp(nanoseconds: 0), style: Style(isOn: false))
    #expect(lines.contains { $0.contains("by command or timer; no agent keeps it") } == (name == "docs"))
  }

  /// The agent keeps it from the reload on, whatever else is to do.
  @Test(arguments: ["idle", "failing", "paused"]) func whatTheAgentHasNotReadWaitsForAReload(state: String) {
    var status = Samples.status()
    (status.name, status.state) = ("later", state)
    if state == "failing" { status.lastFailure = "the feed is gone" }
    var other = status
    other.name = "others"
    #expect(!card(status).contains { $0.contains("reload") })
    (status.awaitsReload, other.awaitsReload) = (true, true)
    #expect(card(status).contains("  next run      by command; the agent has not read these settings yet"))
    #expect(card(status).last == "next: tarn reload")
    #expect(!StatusText.isCalm(status))
    let table = StatusText.table([status, other], now: Samples.now, style: Self.plain)
    #expect(table.contains("  others: next run by command; the agent has not read these settings yet"))
    #expect(table.filter { $0.hasPrefix("next: ") } == ["next: tarn reload"], "\(table)")
  }

  /// Local changes are seen late there, which the state alone does not tell.
  @Test func aPolledFolderIsMarkedInTheTable() {
    var (polled, watched) = (Samples.status(), Samples.status())
    (polled.name, watched.name) = ("a", "b")
    (polled.watch.mode, polled.watch.reason) = ("polling", "no-watches: the limit is reached")
    (watched.watch.mode, watched.watch.reason) = ("watching", "")
    func table() -> [String] {
      StatusText.table([polled, watched], now: Samples.now, style: Self.plain)
    }
    #expect(!table().contains { $0.contains("not watched") }, "no agent keeps it")
    (polled.nextRunReason, watched.nextRunReason) = ("scheduled", "scheduled")
    #expect(table().filter { $0.contains("in sync, not watched") }.count == 1)
    #expect(
      table().last
        == "  a: not watched, and looked through every few minutes: no-watches: the limit is reached")
    polled.watch.reason = WatchState.starting
    #expect(!table().contains { $0.contains("not watched") })
  }
}
