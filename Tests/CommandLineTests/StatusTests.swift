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

  @Test func whatThePolicyLeavesIsSaid() {
    var status = Samples.status()
    status.entries.current = 1232
    status.entries.kept = 2
    #expect(
      card(status).last
        == "  entries       1,232 of 1,234 current, 3.2 GiB, 2 left as the policy says (--local-changes keep)"
    )
  }

  @Test func heldMirrorSaysWhatToType() {
    var status = Samples.status()
    status.state = "held"
    status.held = StatusDocument.Held(plan: "1a2b3c4d", deletions: 12, since: "2026-11-21T10:00:00Z")
    #expect(
      card(status).suffix(2) == [
        "  held          12 deletions in plan 1a2b3c4d", "next: tarn approve /srv/iso 1a2b3c4d",
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
    #expect(lines.suffix(2) == ["transfers:", "  50%  512 MiB of 1.0 GiB  1.0 MiB/s  8:32  a.iso"])
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

  @Test func check() {
    var late = Samples.status()
    late.folder = "/srv/late"
    late.lastSuccess = "2026-11-19T10:00:00Z"
    let good = StatusText.check([Samples.status()], maxAge: 86_400, now: Samples.now)
    #expect(good.isGood)
    #expect(good.line == "in sync within 24 hours: 1 mirror, last success 2 hours ago")
    let bad = StatusText.check([Samples.status(), late], maxAge: 86_400, now: Samples.now)
    #expect(!bad.isGood)
    #expect(bad.line == "late: /srv/late (last success 2 days ago); expected within 24 hours")
    #expect(!StatusText.check([], maxAge: 86_400, now: Samples.now).isGood)
  }

  @Test func watchedScreenFits() {
    let frame = StatusWatch.frame((1...50).map { "line \($0)" }, size: (80, 24))
    #expect(frame.contains("line 23"))
    #expect(!frame.contains("line 24"))
  }

  /// With twenty transfers in 24 rows nothing else was seen.
  @Test func aSmallScreenShowsProblemsBeforeTransfers() throws {
    var status = Samples.status()
    status.state = "transferring"
    status.process = 42
    status.transfers = (1...40).map {
      StatusDocument.Transfer(path: "t\($0)", received: 1, total: 2, rate: 0, source: "https://e/")
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

  @Test func theReadmeHasEachState() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let readme = try String(contentsOf: root.appendingPathComponent("../README.md"), encoding: .utf8)
    let rows = readme.split(separator: "\n").filter { $0.hasPrefix("| `") }.joined()
    let states =
      PassEvent.Phase.allCases.map(\.rawValue) + ["idle", "paused", "held", "interrupted", "failing"]
    for state in states { #expect(rows.contains("`\(state)`"), "\(state)") }
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
    let table = StatusText.table([status, Samples.status()], now: Samples.now, style: Self.plain)
    #expect(table[0].hasSuffix("NEXT RUN") && table[1].hasSuffix("paused"), "\(table)")
  }
}
