import Testing

@testable import TarnConfig

@Suite struct ProblemTests {
  /// One line beside a mirror's feed and folder; it is line 4.
  @Test(
    arguments: [
      ("kepe = 20", .unknownSetting, 1, "write 'keep'"),
      ("max_age = \"90d\"", .unknownSetting, 1, "write 'max-age'"),
      ("interval = \"1h\"", .unknownSetting, 1, "write 'every'"),
      ("zebra = 1", .unknownSetting, 1, "[mirror.a] takes feed, folder, every"),
      ("passes = 1", .unknownSetting, 1, "it belongs below [limits]"),
      ("b = {}", .unknownSetting, 1, "write [mirror.a-b]"),
      ("keep = \"20\"", .wrongType, 8, "keep = 20, without quotes"),
      ("keep = \"many\"", .wrongType, 8, "keep = 20"), ("keep = 0", .outOfRange, 8, "keep = 1"),
      ("keep = 9223372036854775807", .outOfRange, 8, "keep = 1000000"),
      ("keep = 1.5", .wrongType, 8, "keep = 20"), ("retries = 101", .outOfRange, 11, "retries = 100"),
      ("retries = -1", .outOfRange, 11, "retries = 0"),
      ("delete = \"yes\"", .wrongType, 10, "delete = true, without quotes"),
      ("delete = \"off\"", .wrongType, 10, "delete = false, without quotes"),
      ("delete = 1", .wrongType, 10, "delete = true"), ("delete = 2", .wrongType, 10, "delete = true"),
      ("every = 3600", .wrongType, 9, "\"3600s\" is 3600 seconds"),
      ("every = \"soon\"", .badValue, 9, "every = \"1h\""), ("every = \"0s\"", .badValue, 9, "every"),
      ("every = 5", .wrongType, 9, "every = \"1h\""),
      ("every = \"59s\"", .outOfRange, 9, "every = \"1min\""), ("every = \"60s\"", nil, 0, ""),
      ("every = \"367d\"", .outOfRange, 9, "every = \"366d\""), ("every = \"366d\"", nil, 0, ""),
      ("every = 2026-11-21", .wrongType, 9, "every = \"1h\""),
      ("every = \"off\"", .badValue, 9, "every = \"1h\""), ("max-age = \"never\"", .badValue, 11, "90d"),
      ("limit-rate = 1000", .wrongType, 14, "\"1000B/s\" is 1000 bytes per second"),
      ("limit-rate = \"fast\"", .badValue, 14, "2MiB/s"), ("reserve = \"100%\"", .badValue, 11, "10GiB"),
      ("reserve = -1", .badValue, 11, "10GiB"), ("reserve = 9223372036854775807", nil, 0, ""),
      ("local-changes = \"restor\"", .badValue, 17, "write local-changes = \"restore\""),
      ("local-changes = \"revert\"", .badValue, 17, "write local-changes = \"restore\""),
      ("local-changes = \"ignore\"", .badValue, 17, "write local-changes = \"keep\""),
      ("exclude = [\"a\", \"dir0[\"]", .badValue, 11, "exclude = ["),
      ("local-changes = \"burn\"", .badValue, 17, "local-changes = \"report\""),
      ("template = \"{nope}\"", .badValue, 12, "{title}"),
      ("exclude = \"*.tmp\"", .wrongType, 11, "write it as a list: exclude = [\"*.tmp\"]"),
      ("exclude = \"dir0[\"", .wrongType, 11, "'dir0[' is not a pattern: at character 5"),
      ("exclude = [\"a\", 7]", .wrongType, 17, "exclude"),
      ("include = \"*.iso, *.txt\"", .wrongType, 11, "include = [\"*.iso\", \"*.txt\"]"),
      ("retry = 3", .unknownSetting, 1, "write 'retries'"),
      ("password = \"x\"", .unknownSetting, 1, "write 'netrc-file'"),
      ("template = [\"{title}\"]", .wrongType, 12, "without brackets: template = \"{title}\""),
      ("keep = [20]", .wrongType, 8, "without brackets: keep = 20"),
      ("include = \",\"", .wrongType, 11, "include = [\",\"]"),
      ("cacert = \"ca.pem\"", .badValue, 10, "begins with /"),
      ("state = \"/a/../b\"", .badValue, 9, "without .."), ("state = \"\"", .badValue, 9, "begins with /"),
      ("state = \"/a\\u0000b\"", .badValue, 9, "no control bytes"),
      ("state = \"a\\u0000b\"", .badValue, 9, "no control bytes"),
      ("cacert = \"/nowhere.pem\"", .cacertNotReadable, 10, "choose a file"),
      ("proxy = \"http://proxy:99999\"", .badValue, 9, "1 to 65535"),
      ("proxy = \"http://proxy:0\"", .badValue, 9, "1 to 65535"),
      ("proxy = \"socks5h://proxy:x\"", .badValue, 9, "1 to 65535"),
      ("proxy = \"http://[::1]:3128\"", nil, 0, ""),
      ("schedule = \"full moon\"", .badValue, 12, "06:00 Europe/Berlin"),
      ("schedule = []", .badValue, 12, "leave it out"),
      ("schedule = [\"06:00\", \"moon\"]", .badValue, 22, "every = \"1h\""),
      ("schedule = \"\"", .badValue, 12, "Mon..Fri"),
      ("schedule = \"24:00\"", .badValue, 12, "every = \"1h\""),
      ("schedule = \"06:00 Europe/Berlin\"", nil, 0, ""),
      ("schedule = \"06:00 Europe/Berlon\"", .badValue, 12, "06:00"),
      ("rate = \"2MiB/s\"", .wrongType, 8, "write a list"), ("rate = [\"x\"]", .wrongType, 9, "08:00-18:00"),
      ("rate = [{ at = \"8-18\", limit = \"1M\" }]", .badValue, 16, "08:00-18:00"),
      ("rate = [{ at = \"12:00-00:00\", limit = \"1M\" }]", .badValue, 16, "at = \"12:00-24:00\""),
      ("rate = [{ at = \"8:00-8:00\", limit = \"1M\" }]", .badValue, 16, "at = \"00:00-24:00\""),
      ("rate = [{ at = \"Sat..Mon 8:00-9:00\", limit = \"1M\" }]", .badValue, 16, "Mon..Fri"),
      ("rate = [{ at = \"08:00-18:00\", limit = \"x\" }]", .badValue, 39, "2MiB/s"),
      ("rate = [{ at = \"08:00-18:00\", limt = \"1M\" }]", .unknownSetting, 31, "write 'limit'"),
      ("rate = [{ at = 8, limit = \"1M\" }]", .wrongType, 16, "at"),
      ("rate = [{ at = \"08:00-18:00\" }]", .missing, 9, "limit"),
      ("header-file = \"token\"", .badValue, 15, "begins with /"),
      ("header-file = 7", .wrongType, 15, "credential"), ("cookies = {}", .badValue, 11, "{ file = "),
      ("cookies = { file = \"/a\", credential = \"b\" }", .badValue, 11, "{ file = "),
      ("cookies = { command = \"x\" }", .unknownSetting, 13, "{ file = "),
      ("cookies = { credential = \"../x\" }", .badValue, 26, "printable"),
      ("cookies = { credential = 7 }", .wrongType, 26, "credential"),
      ("proxy = \"gopher://x\"", .badValue, 9, "proxy.example.org"),
      ("proxy = \"http://ann:secret@proxy:3128\"", .urlWithPassword, 9, "{ file = "),
      ("every = \"1h\"\nschedule = \"06:00\"", .contradiction, 12, "one of the two"),
      ("keep = yes", .syntax, 8, "keep = 20"), ("reserve = 10GiB", .syntax, 13, "reserve = \"10GiB\""),
      ("delete = off", .syntax, 10, "delete = false"), ("template = {title}", .syntax, 18, ""),
      ("keep =", .syntax, 7, "a value is missing"), ("keep", .syntax, 5, "= is missing"),
      ("folder = \"/srv/b\"", .syntax, 10, "stands in line 3 already"),
      ("state = \"/a", .syntax, 12, "closed"),
      ("include = [\"a\" \"b\"]", .syntax, 16, ""), ("state = \"\\srv\"", .syntax, 11, "closed"),
      ("state = /srv/b", .syntax, 9, "state = \"/srv/b\""),
    ] as [(String, SettingsProblem.Code?, Int, String)])
  func eachFaultHasItsPlaceAndHint(
    _ lines: String, _ code: SettingsProblem.Code?, _ column: Int, _ hint: String
  ) {
    let loaded = Sample.load(Sample.mirror(lines))
    guard let code else {
      #expect(loaded.problems == [])
      return
    }
    #expect(loaded.settings == nil)
    #expect(loaded.problems.count == 1)
    guard let problem = loaded.problems.first else { return }
    let line = 4 + lines.split(separator: "\n").count - 1
    #expect(problem.code == code, "\(problem.text)")
    #expect(
      problem.origin == .file(Sample.main, SettingPosition(line: line, column: column)), "\(problem.text)")
    #expect(problem.hint?.contains(hint) ?? hint.isEmpty, "\(problem.text)")
    #expect(problem.excerpt != nil)
  }

  @Test(
    arguments: [
      ("[mirrors.a]\nfeed = \"/a\"", .unknownTable, 1, 2, "[mirror.a]"),
      ("[Mirror.my-iso]", .unknownTable, 1, 2, "[mirror.my-iso]"),
      ("[mirrors]\nfeed = \"/a\"", .unknownTable, 1, 2, "[mirror.NAME]"),
      ("[limit]", .unknownTable, 1, 2, "[limits]"), ("[zebra]", .unknownTable, 1, 2, "the tables are"),
      ("keep = 20", .unknownSetting, 1, 1, "below [mirror.NAME]"),
      ("connections = 20", .unknownSetting, 1, 1, "below [limits] or [mirror.NAME]"),
      ("[mirror]\nfeed = \"/a\"", .wrongType, 2, 1, "[mirror.NAME] above"),
      ("[mirror]\nx = \"/a\"", .wrongType, 2, 1, "[mirror.NAME] above"),
      ("[[mirror.c]]\nfeed = \"/a\"", .wrongType, 1, 10, "[mirror.c] above"),
      ("[[mirror]]\nfeed = \"/a\"", .wrongType, 1, 3, "[mirror.NAME] above"),
      ("limits = 3", .wrongType, 1, 1, "[limits]"),
      ("[agent]\nkeep = 3", .unknownSetting, 2, 1, "below [mirror.NAME]"),
      ("[mirror.\"a/b\"]", .badName, 1, 9, "none of / . :"),
      ("[mirror.'a\\b']", .badName, 1, 9, "none of / . : \\"),
      ("[mirror.\"\"]", .badName, 1, 9, "none of"),
      ("[mirror.session]", .badName, 1, 9, "is not session"),
      ("[mirror.-a]", .badName, 1, 9, "no -"), ("[mirror.'a b']", .badName, 1, 9, "no blanks"),
      ("[mirror.a]", .missing, 1, 9, "feed = "),
      ("[agent]\nlog-format = \"jsn\"", .badValue, 2, 14, "log-format = \"json\""),
      ("[agent]\nsocket = \"/\(String(repeating: "s", count: 107))\"", .outOfRange, 2, 10, "shorter"),
      ("[agent]\nsocket = \"/\"", .badValue, 2, 10, "tarn.sock"),
      ("[limits]\npasses = 65", .outOfRange, 2, 10, "passes = 64"),
    ] as [(String, SettingsProblem.Code, Int, Int, String)])
  func tablesAndNames(
    _ text: String, _ code: SettingsProblem.Code, _ line: Int, _ column: Int, _ hint: String
  ) {
    let loaded = Sample.load(text)
    #expect(loaded.settings == nil)
    let problem = loaded.problems.first
    #expect(problem?.code == code, "\(problem?.text ?? "")")
    #expect(
      problem?.origin == .file(Sample.main, SettingPosition(line: line, column: column)),
      "\(problem?.text ?? "")")
    #expect(problem?.hint?.contains(hint) == true, "\(problem?.text ?? "")")
  }

  @Test(
    arguments: [
      ("-", .badValue), ("./list", .badValue), ("example.org/list", .badValue), ("ftp://h/x", .badValue),
      ("https:///x", .badValue), ("https://", .badValue), ("https://h/a b", .badValue),
      ("file://h/x", .badValue),
      ("https://ann:secret@h/x", .urlWithPassword), ("HTTPS://ann@h/x", .urlWithPassword), ("", .badValue),
      ("/a\u{7}", .badValue), ("https://h/x@y?z=@", nil), ("http://h", nil), ("HTTP://h/", nil),
      ("https://h:99999/x", .badValue), ("https://h:0/x", .badValue), ("https://h:8o/x", .badValue),
      ("https://[::1]:65536/x", .badValue), ("https://[::1", .badValue), ("https://h:65535/x", nil),
      ("https://[::1]:8443/x", nil), ("https://h:/x", nil), ("https://h?a:99999", nil),
      ("file:///x", nil), ("file://localhost/x", nil), ("/srv/list", nil),
    ] as [(String, SettingsProblem.Code?)]) func feeds(_ feed: String, _ code: SettingsProblem.Code?)
  {
    let text = "[mirror.a]\nfolder = \"/srv/a\"\nfeed = \"\(feed.replacing("\u{7}", with: "\\u0007"))\""
    let loaded = Sample.load(text)
    #expect(loaded.problems.map(\.code) == (code.map { [$0] } ?? []), "\(loaded.problems.map(\.text))")
    if code == nil { #expect(loaded.settings?.mirrors.first?.feed == feed) }
  }

  /// All of them at once, file by file and line by line.
  @Test func everyErrorOfEveryFileIsTold() {
    let files = FakeFiles([
      Sample.main: "[mirror.a]\nkepe = 1\nfeed = 7\nfolder = \"x\"\n[zebra]",
      "/etc/tarn/conf.d/a.toml": "keep = = 2", "/etc/tarn/conf.d/b.toml": "[limits]\npasses = 0",
    ])
    let loaded = Sample.load(files)
    #expect(
      loaded.problems.map(\.origin.text) == [
        "/etc/tarn/tarn.toml:2:1", "/etc/tarn/tarn.toml:3:8", "/etc/tarn/tarn.toml:4:10",
        "/etc/tarn/tarn.toml:5:2", "/etc/tarn/conf.d/a.toml:1:8", "/etc/tarn/conf.d/b.toml:2:10",
      ])
  }

  /// Of a list, too, and of a window in it.
  @Test(
    arguments: [
      ("include = [\"a\", 7, \"b\", true]", ["4:17", "4:25"]),
      ("schedule = [\"06:00\", \"moon\", 7, \"24:00\"]", ["4:22", "4:30", "4:33"]),
      (
        "rate = [{ at = 8, limit = \"x\" }, { at = \"08:00-18:00\" },\n  { limt = \"1M\", at = \"9\" }, 7]",
        ["4:16", "4:27", "4:34", "5:5", "5:23", "5:30"]
      ),
    ]) func everyErrorOfAListIsTold(line: String, places: [String])
  {
    let problems = Sample.load(Sample.mirror(line)).problems
    #expect(
      problems.map(\.origin.text) == places.map { "\(Sample.main):\($0)" }, "\(problems.map(\.text))")
    #expect(problems.allSatisfy { $0.excerpt != nil && $0.hint != nil })
    let many = "exclude = [\(String(repeating: "7, ", count: 1000))]"
    #expect(Sample.load(Sample.mirror(many)).problems.count == DocumentWalk.mostProblems)
  }

  /// Each has an excerpt and a suggestion, and some file is no settings at all.
  @Test func afterManyErrorsTheRestIsNotTold() {
    let lines = (0..<3000).map { "kepe\($0) = 1" }
    let long = "[mirror]\na = { " + lines.joined(separator: ", ") + " }"
    for text in [Sample.mirror(lines.joined(separator: "\n")), lines.joined(separator: "\n"), long] {
      let loaded = Sample.load(text)
      #expect(loaded.settings == nil)
      #expect(loaded.problems.count == DocumentWalk.mostProblems)
    }
    let empty = Sample.load((0..<200).map { "[mirror.m\($0)]\n" }.joined())
    #expect(empty.settings == nil && empty.problems.count == DocumentWalk.mostProblems)
    let same = Sample.load((0..<200).map { "[mirror.m\($0)]\nfeed = \"/x\"\nfolder = \"/srv\"\n" }.joined())
    #expect(same.settings == nil && same.problems.count == DocumentWalk.mostProblems)
  }

  // MARK: - How they look

  @Test func asText() {
    let text = "[mirror.a]\n\tkepe = 20 # why\nfeed = \"/a\"\nfolder = \"/srv/\\u001B[31mx\""
    #expect(
      Sample.load(text).problems.map(\.text) == [
        """
        /etc/tarn/tarn.toml:2:2: error: [mirror.a] has no setting 'kepe'
          2 |  kepe \u{2026}
            |  ^^^^
          write 'keep'

        """,
        """
        /etc/tarn/tarn.toml:4:10: error: 'folder' takes an absolute path, not '/srv/\\x1b[31mx'
          4 | folder = "/srv/\\u001B[31mx"
            |          ^^^^^^^^^^^^^^^^^^
          a path has no control bytes: write it without \\u0000 and its like

        """,
      ])
  }

  @Test func longLinesAreCutAroundThePlace() {
    let loaded = Sample.load(
      Sample.mirror(
        "exclude = [\(String(repeating: "\"é\u{1B}\", ", count: 40).replacing("\u{1B}", with: ""))7]"))
    let excerpt = loaded.problems.first?.excerpt
    #expect(excerpt?.text.unicodeScalars.count ?? 999 <= 110)
    let scalars = Array((excerpt?.text ?? "").unicodeScalars)
    #expect(excerpt.map { scalars[$0.offset] } == "7")
    let wide = SettingsProblem.Excerpt(line: String(repeating: "x", count: 300), column: 1, showing: .whole)
    #expect(wide.text.unicodeScalars.count == 101 && wide.offset == 0 && wide.length == 100)
    let end = SettingsProblem.Excerpt(line: "abc", column: 4, showing: .whole)
    #expect(end.text == "abc" && end.offset == 3 && end.length == 1)
    let beyond = SettingsProblem.Excerpt(line: "", column: 9, showing: .whole)
    #expect(beyond.text == "" && beyond.offset == 0 && beyond.length == 1)
  }

  @Test(arguments: [
    "feed = \"https://ann:hunter2@example.org/x\"", "proxy = \"socks5h://ann:hunter2@h:1\"",
    "pasword = \"hunter2\"", "header-file = \"Authorization: Bearer hunter2\"",
    "cookies = [\"hunter2\"]", "token = { value = \"hunter2\" }", "proxy = \"hunter2\"",
    "feed = \"https://ann:hunter2@example.org/x", "netrc-file = { file = \"hunter2\" }",
    "“https://ann:hunter2@example.org/” = 1",
  ])
  func noProblemShowsASecret(line: String) {
    let loaded = Sample.load("[mirror.a]\nfolder = \"/srv/a\"\n" + line)
    #expect(loaded.settings == nil)
    for problem in loaded.problems { #expect(!problem.text.contains("hunter2"), "\(problem.text)") }
  }

  /// Where the mark behind a password is not in the window any more, or the one before it.
  @Test func noWindowShowsASecret() {
    let secret = String(repeating: "hunter2", count: 30)
    for line in [
      "feed = \"https://ann:\(secret)@example.org/x\"", "feed = \"https://ann:\(secret)@example.org/x",
      "feed = \"https://ann:\(secret)\u{1}@example.org/x\"",
      "state = \"https://ann:\(secret)@example.org/x\"",
      "local-changes = \"https://ann:\(secret)@example.org/x\"",
      "exclude = [\"https://ann:\(secret)@example.org/x\", 7]",
      "'https://ann:\(secret)@example.org/x' = 1",
    ] {
      let loaded = Sample.load("[mirror.a]\nfolder = \"/srv/a\"\n" + line)
      #expect(loaded.settings == nil)
      for problem in loaded.problems { #expect(!problem.text.contains("hunter"), "\(problem.text)") }
    }
  }

  /// What a schedule or a span says of itself is told, and quotes no password.
  @Test(arguments: [
    ("schedule = \"é 24:00\"", "at its character 1: "),
    ("schedule = \"*-*-* 24:00\"", "at its character 7: "),
    ("schedule = \"06:00 Moon/Base\"", "at its character 7: the time zone Moon/Base is not known"),
    ("schedule = \"06:00 https://ann:secret@x/\"", "https://***@x/"),
    (
      "rate = [{ at = \"12:00-0:00\", limit = \"1M\" }]",
      "at its character 7: midnight as an end is written 24:00"
    ),
  ])
  func timesSayWhatIsWrong(line: String, said: String) throws {
    let problem = try #require(Sample.load(Sample.mirror(line)).problems.first)
    #expect(problem.message.contains(said), "\(problem.text)")
    #expect(!problem.text.contains("secret"))
  }
}
