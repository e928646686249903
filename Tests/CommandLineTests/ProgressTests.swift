import TarnCore
import TarnEngine
import TarnRuntime
import Testing

@testable import TarnAgent
@testable import tarn

@Suite struct ProgressTests {
  /// A pass that finds the folder changed begins again, which looks like a loop.
  @Test func aLogTellsEachPhaseOnce() {
    let narrator = Narrator(
      console: Console(), style: Style(isOn: false), mode: .dated, isVerbose: false, schema: "s", mirror: nil,
      clock: SystemClock())
    let phases: [PassEvent.Phase] = [.reading, .planning, .reading, .planning, .transferring]
    #expect(
      phases.compactMap { narrator.text(.phase($0)) }
        == ["reading the feed", "comparing", "fetching"])
  }

  /// Where the feed says nothing of its files each pass asks for each of them.
  @Test func whatIsOnlyAskedAboutIsNotFetched() {
    let narrator = Narrator(
      console: Console(), style: Style(isOn: false), mode: .dated, isVerbose: false, schema: "s", mirror: nil,
      clock: SystemClock())
    var report = Samples.report()
    (report.counts.wanted, report.counts.current, report.counts.planned.all) = (111, 0, 111)
    report.counts.planned.asked = 111
    #expect(
      narrator.text(.planned(report)) == "no change known: 111 already there, 111 to ask the server about")
    #expect(narrator.text(.phase(.transferring)) == "asking the server")
    var snapshot = Self.snapshot()
    snapshot.onlyAsks = true
    #expect(PassWords.progress(snapshot).hasPrefix("asking the server: "))
    // Others are.
    report.counts.planned.all = 113
    report.counts.wanted = 113
    #expect(
      narrator.text(.planned(report)) == "planned: 2 files; 111 already there, 111 to ask the server about")
  }

  /// Once when it happens and once in the summary; what the retry did not say is told in between.
  @Test func aLogTellsAFailureOnceBeforeTheSummary() {
    let narrator = Narrator(
      console: Console(), style: Style(isOn: false), mode: .dated, isVerbose: false, schema: "s", mirror: nil,
      clock: SystemClock())
    let message = "https://e/a: the server failed (500)"
    let retry = PassEvent.retrying(path: Samples.path("a"), message: message, seconds: 1)
    #expect(narrator.text(retry)?.contains("the server failed (500)") == true)
    #expect(narrator.text(.problem(Samples.problem(.failed, "a", "http-500", message))) == nil)
    // Another file, and another cause.
    #expect(narrator.text(.problem(Samples.problem(.failed, "b", "http-500", message))) != nil)
    #expect(
      narrator.text(.problem(Samples.problem(.failed, "a", "http-404", "https://e/a: not there"))) != nil)
  }

  static func snapshot() -> PassProgress.Snapshot {
    var snapshot = PassProgress.Snapshot()
    snapshot.phase = .transferring
    snapshot.filesDone = 1234
    snapshot.filesTotal = 5678
    snapshot.bytesDone = 1_288_490_189
    snapshot.bytesTotal = 3_006_477_107
    snapshot.rate = 12_897_485
    return snapshot
  }

  static func transfer(_ path: String, _ received: UInt64, _ total: UInt64?) -> Activity {
    Activity(
      path: Samples.path(path), received: received, total: total, rate: 1_048_576, source: "https://e/")
  }

  @Test func totalLine() {
    #expect(
      ProgressText.total(Self.snapshot(), elapsed: 12)
        == "[0:12] 42%  1,234 of 5,678 files  1.2 of 2.8 GiB  12.3 MiB/s  ETA 2:13")
  }

  @Test func unknownSizesGiveNoShare() {
    var snapshot = Self.snapshot()
    snapshot.bytesTotal = 10
    #expect(ProgressText.total(snapshot, elapsed: 12) == "[0:12] 1,234 of 5,678 files  1.2 GiB  12.3 MiB/s")
    snapshot.rate = 0
    snapshot.failed = 3
    #expect(ProgressText.total(snapshot, elapsed: 12) == "[0:12] 1,234 of 5,678 files  1.2 GiB  3 failed")
  }

  /// As long as nobody has told the size of each file, what is known is no whole.
  @Test func filesOfUnknownSizeGiveNoShare() {
    var snapshot = Self.snapshot()
    snapshot.unknownSizes = 1
    #expect(ProgressText.total(snapshot, elapsed: 12) == "[0:12] 1,234 of 5,678 files  1.2 GiB  12.3 MiB/s")
  }

  @Test func otherPhases() {
    var snapshot = PassProgress.Snapshot()
    #expect(ProgressText.total(snapshot, elapsed: 0) == "[0:00] reading the feed")
    snapshot.entriesRead = 12_345
    #expect(ProgressText.total(snapshot, elapsed: 3) == "[0:03] reading the feed  12,345 entries")
    snapshot.phase = .deleting
    #expect(ProgressText.total(snapshot, elapsed: 3) == "[0:03] moving to the trash")
  }

  @Test func blockShowsSixTransfers() {
    var snapshot = Self.snapshot()
    snapshot.transfers = (1...8).map { Self.transfer("dir/file-\($0).iso", 512 << 20, 1 << 30) }
    let lines = ProgressText.block(snapshot, elapsed: 12, width: 100)
    #expect(lines.count == 8)
    #expect(lines[0] == "  dir/file-1.iso  50%  0.5 of 1.0 GiB  1.0 MiB/s")
    #expect(lines[6] == "  and 2 more")
    #expect(lines[7].hasPrefix("[0:12] 42%"))
  }

  @Test(arguments: [1, 8, 20, 40, 79]) func blockFitsTheTerminal(_ width: Int) {
    var snapshot = Self.snapshot()
    snapshot.transfers = [
      Self.transfer("a/very/long/path/to/some/file/日本語/name.iso", 5, nil),
      Self.transfer("b\u{1B}[2J", 1 << 20, 2 << 20),
    ]
    for line in ProgressText.block(snapshot, elapsed: 12, width: width) {
      #expect(Columns.width(line) <= max(1, width - 1))
      #expect(!line.contains("\u{1B}"))
    }
  }

  @Test func longPathsKeepTheirEnd() {
    var snapshot = Self.snapshot()
    snapshot.transfers = [Self.transfer("a/very/long/path/to/some/file/name.iso", 512 << 20, 1 << 30)]
    let line = ProgressText.block(snapshot, elapsed: 12, width: 60)[0]
    #expect(line.contains("name.iso  50%  0.5 of 1.0 GiB"))
  }

  /// What was asked for is how far it is: at no width is that cut.
  @Test(arguments: [40, 60]) func aNarrowTotalGoesOnInTheNextLine(_ width: Int) {
    let lines = ProgressText.block(Self.snapshot(), elapsed: 12, width: width)
    #expect(lines.allSatisfy { Columns.width($0) < width } && lines.count > 1, "\(lines)")
    let text = lines.joined(separator: " ")
    for part in ["[0:12] 42%", "1,234 of 5,678 files", "1.2 of 2.8 GiB", "12.3 MiB/s", "ETA 2:13"] {
      #expect(text.contains(part), "\(part): \(lines)")
    }
  }

  @Test func transfersStandInColumns() {
    var snapshot = Self.snapshot()
    snapshot.transfers = [
      Self.transfer("a", 5 << 20, 100 << 20), Self.transfer("bb", 100 << 20, nil), Self.transfer("c", 0, 5),
    ]
    #expect(
      ProgressText.block(snapshot, elapsed: 12, width: 100).prefix(3) == [
        "  a   5%  5.0 of 100 MiB  1.0 MiB/s", "  bb             100 MiB  1.0 MiB/s", "  and 1 more",
      ])
  }

  @Test func wrappingKeepsEveryWord() {
    #expect(Columns.wrapped("  one two three", 9) == ["  one two", "    three"])
    #expect(Columns.wrapped("one", 9) == ["one"])
    #expect(Columns.wrapped("abcdefghijklmno p", 6) == ["abcdef", "  ghij", "  klmn", "  o p"])
    let styled = Style(isOn: true).paint("state:", .bad) + " is bad"
    #expect(Columns.wrapped(styled, 8) == [Style(isOn: true).paint("state:", .bad), "  is bad"])
  }
}
