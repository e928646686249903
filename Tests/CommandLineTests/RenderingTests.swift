import TarnConfig
import TarnCore
import TarnEngine
import Testing

@testable import tarn

@Suite struct RenderingTests {
  static let plain = Style(isOn: false)

  @Test func numbers() {
    #expect(Numbers.grouped(0) == "0")
    #expect(Numbers.grouped(999) == "999")
    #expect(Numbers.grouped(1_234_567) == "1,234,567")
    #expect(Numbers.count(1, "file") == "1 file")
    #expect(Numbers.count(0, "entry") == "0 entries")
    #expect(Numbers.part(1_288_490_189, of: 3_006_477_107) == "1.2 of 2.8 GiB")
    #expect(Numbers.part(300 << 10, of: 3_006_477_107) == "300 KiB of 2.8 GiB")
    #expect(Numbers.part(10, of: 20) == "10 of 20 B")
    #expect(Numbers.percent(999, of: 1000) == "99%")
    #expect(Numbers.percent(0, of: 0) == nil)
    #expect(Numbers.percent(2, of: 1) == nil)
  }

  @Test(
    arguments: [
      ("24h", 86_400), ("90m", 5400), ("7d", 604_800), ("2w", 1_209_600), ("1h30m", 5400), ("0s", 0),
      ("", nil),
      ("24", nil), ("h", nil), ("-1h", nil), ("1.5h", nil), ("1y", nil), ("99999999999999999999h", nil),
      ("9999999999999999h", nil),
    ] as [(String, Int64?)]) func durationsAreParsed(_ text: String, _ seconds: Int64?)
  {
    #expect(Units.duration(text) == seconds)
  }

  @Test func durationsAreShown() {
    #expect(Durations.clock(12.9) == "0:12")
    #expect(Durations.clock(754) == "12:34")
    #expect(Durations.clock(3723) == "1:02:03")
    #expect(Durations.clock(-.infinity) == "0:00")
    #expect(Units.length(2.14) == "2.1 s")
    #expect(Units.length(59.97) == "1 min 0 s")
    #expect(Units.length(7500) == "2 h 5 min")
    #expect(Durations.span(86_400) == "24 hours")
    #expect(Durations.span(172_800) == "2 days")
    #expect(Durations.span(3600) == "1 hour")
    #expect(Durations.span(5400) == "90 minutes")
    #expect(Durations.span(1) == "1 second")
  }

  @Test func momentsAreRelative() {
    func ago(_ seconds: Int64) -> String {
      Durations.ago(Samples.now.adding(seconds: -seconds), now: Samples.now)
    }
    #expect(ago(0) == "just now")
    #expect(ago(90) == "90 seconds ago")
    #expect(ago(7200) == "2 hours ago")
    #expect(ago(-3) == "just now")
    #expect(ago(-3600).hasPrefix("in the future"))
    #expect(Timestamp(rfc3339: Samples.now.rfc3339) == Samples.now)
    #expect(Timestamp(rfc3339: "yesterday") == nil)
    #expect(Timestamp(rfc3339: "") == nil)
  }

  @Test func columnsCountWideCharacters() {
    #expect(Columns.width("abc") == 3)
    #expect(Columns.width("日本") == 4)
    #expect(Columns.width("e\u{301}") == 1)
    #expect(Columns.front("abcdefgh", 6) == "abc...")
    #expect(Columns.end("abcdefgh", 6) == "...fgh")
    #expect(Columns.end("日本語日本語", 7) == "...本語")
    #expect(Columns.front("abc", 2) == "..")
    #expect(Columns.front("abc", 3) == "abc")
    let red = Style(isOn: true).paint("abcd", .bad)
    #expect(Columns.styledFront(red, 4) == red)
    #expect(Columns.styledFront("x" + red + "yz", 7) == "x" + red + "yz")
    #expect(Columns.styledFront("x" + red + "yz", 6) == "x\u{1B}[31mab...\u{1B}[0m")
    #expect(Columns.styledFront("日本語日本語", 7) == "日本..." && Columns.styledFront("abc", 2) == "..")
  }

  @Test func tablesAlign() {
    let rows = [["A", "N"], ["日本", "1"], ["b", "234"]].map { $0.map { Table.Cell($0) } }
    #expect(Table.lines(rows, right: [1], style: Self.plain) == ["A       N", "日本    1", "b     234"])
  }

  @Test func tablesEndWithTheirLastWord() {
    let rows = [["a", "1", ""], ["b", "", ""], ["c", "22", "end"]].map { $0.map { Table.Cell($0) } }
    #expect(Table.lines(rows, right: [1], style: Self.plain) == ["a   1", "b", "c  22  end"])
  }

  @Test func wordsForTheShell() {
    #expect(ShellWord.quote("/srv/iso") == "/srv/iso")
    #expect(ShellWord.quote("my files") == "'my files'")
    #expect(ShellWord.quote("it's") == "'it'\\''s'")
    #expect(ShellWord.quote("") == "''")
    #expect(ShellWord.quote("a\nb'") == "$'a\\nb\\''")
    #expect(ShellWord.quote(bytes: [0x61, 0xFF]) == "$'a\\xff'")
    #expect(ShellWord.quote("tarn@a\\x2db.timer") == "'tarn@a\\x2db.timer'", "dash and fish know no $'")
  }

  @Test func messagesKeepEscapesAndLoseControls() {
    #expect(Message.safe("name a\\x1bb") == "name a\\x1bb")
    #expect(Message.safe("red \u{1B}[31m\nline") == "red \\x1b[31m\\nline")
  }

  @Test func colourIsOnlyWhereWanted() {
    #expect(Style(isOn: true).paint("x", .good) == "\u{1B}[32mx\u{1B}[0m")
    #expect(Style(isOn: true).paint("x", nil) == "x")
    #expect(Self.plain.paint("x", .good) == "x")
  }

  @Test func helpTextsAreMadeOurs() {
    #expect(HelpText.shown("OVERVIEW: Do it.\n\nUSAGE: x") == "Do it.\n\nUSAGE: x")
    #expect(
      HelpText.usageError(
        message: "Unknown option '--x'",
        full:
          "Error: Unknown option '--x'\nUsage: tarn a\n       tarn b\n  See 'tarn --help' for more information."
      )
        == ["unknown option '--x'", "  usage: tarn a", "         tarn b", "  hint: 'tarn --help' says more"])
    // What is in quotes is escaped already.
    let options = PassOptions(values: [.exclude: ["\\"]])
    let fault = #expect(throws: PassOptions.Failure.self) { try options.policy() }
    #expect(
      HelpText.usageError(message: fault?.message ?? "", full: "").first?.contains(
        #"--exclude: '\\' is not"#) == true)
  }

  /// One of several mirrors is named once.
  /// What is quoted is no end of a command.
  @Test func theNextCommandsGetTheSettings() {
    let paths = SettingsPaths(environment: [:], isRoot: false, config: "/c.toml", workingDirectory: "/")
    for (line, expected) in [
      ("next: tarn explain m 'a, b; c'", "next: tarn explain m 'a, b; c' --config /c.toml"),
      (
        "next: tarn forget m; or, to keep it: tarn sync m",
        "next: tarn forget m --config /c.toml; or, to keep it: tarn sync m --config /c.toml"
      ),
      ("next: tarn sync m --config /c.toml", "next: tarn sync m --config /c.toml"),
      ("next: correct the feed", "next: correct the feed"), ("hint: tarn sync m", "hint: tarn sync m"),
    ] {
      #expect(paths.completing([line]) == [expected])
    }
    for (line, expected) in [
      ("tarn approve m 1a", "tarn approve m 1a --config /c.toml"),
      ("to go on: tarn approve m", "to go on: tarn approve m --config /c.toml"),
      ("'tarn status' names them", "'tarn status' names them"), ("to see: ls", "to see: ls"),
    ] {
      #expect(paths.completing(line) == expected)
    }
  }

  @Test func aMirrorByItsFolderIsNamedOnce() {
    func line(_ message: String, of mirror: String) -> String {
      let failure = PassFailure(.folderUnusable, code: "c", message)
      return FailureText.lines(
        failure, of: mirror, status: .failed(.usage), json: false, style: Style(isOn: false))[0]
    }
    #expect(line("there is no folder /srv/a", of: "/srv/a") == "tarn: there is no folder /srv/a")
    #expect(line("cannot read the feed", of: "/srv/a") == "tarn: /srv/a: cannot read the feed")
    #expect(line("there is no folder /srv/iso", of: "iso") == "tarn: iso: there is no folder /srv/iso")
  }
}
