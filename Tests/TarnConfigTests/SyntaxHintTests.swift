import Testing

@testable import TarnConfig

/// What TOML does not allow, and what is said to mend it.
@Suite struct SyntaxHintTests {
  /// Lines below a mirror's header, feed and folder: the first of them is line 4.
  @Test(
    arguments: [
      ("keep = 99999999999999999999", 4, 8, "larger than 64 bits", "keep = 20"),
      ("keep = -9223372036854775809", 4, 8, "larger than 64 bits", "keep = 20"),
      ("reserve = 99999999999999999999", 4, 11, "larger than 64 bits", "reserve = \"10GiB\""),
      ("keep = 007", 4, 8, "", "write keep = 7"),
      ("template = “{title}”", 4, 12, "“ is no quote", "template = \"{title}\""),
      ("template = ‘{title}’", 4, 12, "‘ is no quote", "template = \"{title}\""),
      ("template = „{title}“ # so", 4, 12, "„ is no quote", "template = \"{title}\""),
      ("template = «{title}»", 4, 12, "« is no quote", "template = \"{title}\""),
      ("include = [“*.iso”, “*.txt”]", 4, 12, "“ is no quote", "include = [\"*.iso\", \"*.txt\"]"),
      ("template = \"{title}”", 4, 21, "the line ends inside", "not closed"),
      ("“keep” = 20", 4, 1, "“ is no quote", "write keep"),
      ("limit rate = \"2MiB/s\"", 4, 7, "", "write limit-rate"),
      ("lokal changes = \"keep\"", 4, 7, "", "write local-changes"),
      ("my thing = 1", 4, 4, "", "no blanks"),
      ("café = 1", 4, 4, "", "a to z"),
      ("cookies = { file = \"/a\", }", 4, 26, "", "remove the comma before }"),
      ("cookies = { file = \"/a\"\n}", 4, 24, "", "on one line"),
      ("cookies = {\n file = \"/a\" }", 4, 12, "", "on one line"),
      ("rate = [{ at = \"8:00-9:00\", limit = \"1M\" ]", 4, 42, "", "} is missing"),
      ("rate = [{ at = \"8:00-9:00\" limit = \"1M\" }]", 4, 28, "", "a comma"),
      ("rate = [{ at: \"8:00-9:00\", limit: \"1M\" }]", 4, 13, "", "= stands between"),
      ("keep = 1 every = \"1h\"", 4, 10, "", "a line of its own: every = \"1h\""),
      ("state = \"/x\", every = \"1h\"", 4, 13, "", "a line of its own: every = \"1h\""),
      ("include = \"*.iso\", \"*.txt\"", 4, 18, "", "include = [\"*.iso\", \"*.txt\"]"),
      ("include = (\"*.iso\", \"*.txt\")", 4, 11, "", "include = [\"*.iso\", \"*.txt\"]"),
      ("keep = 20;", 4, 10, "", "no ; at the end"),
      ("keep = 20 // few", 4, 11, "", "a comment begins with #"),
      ("keep = 20 ; few", 4, 11, "", "a comment begins with #"),
      ("// few", 4, 1, "", "a comment begins with #"), ("; few", 4, 1, "", "a comment begins with #"),
      ("template = 'it's {title}'", 4, 16, "", "template = \"it's {title}\""),
      ("max-age = 90 s", 4, 14, "", "max-age = \"90 s\""),
      ("include = [\"a\", \"b\"\nevery = \"1h\"", 5, 1, "", "the list that begins in line 4 is not closed"),
      ("include = [\"a\", \"b\"\n[mirror.b]", 5, 1, "", "the list that begins in line 4 is not closed"),
      ("include = [\n  \"a\"\n  \"b\"\n]", 6, 3, "", "a comma is missing"),
      ("include = [\"a\", , \"b\"]", 4, 17, "", "a value is missing between two commas"),
      ("limit-rate =\nkeep = 1", 4, 13, "", "a value is missing: write for example limit-rate = \"2MiB/s\""),
      ("keep = # few", 4, 8, "", "a value is missing: write for example keep = 20"),
      ("keep 20", 4, 6, "", "= is missing: keep = 20"),
      ("template {title}", 4, 10, "", "template = \"{title}\""),
      ("keep: 20", 4, 5, "", "= is missing: keep = 20"),
      ("keep == 20", 4, 7, "", "one = is enough: keep = 20"),
      ("- keep = 20", 4, 3, "", "write keep"), ("delete = TRUE", 4, 10, "", "delete = true"),
      ("delete = tru", 4, 10, "no value looks like this", "delete = true"),
      ("state = null", 4, 9, "", "leave the setting out"),
      ("\u{A0}keep = 20", 4, 1, "", "U+A0"), ("keep\u{200B} = 20", 4, 5, "", "U+200B"),
      ("every = \"1h\" \\", 4, 14, "", "remove it"), ("export FEED=x", 4, 8, "", "such as keep = 20"),
      ("[mirror.b", 4, 10, "saw the end of the line", "[mirror.b]"),
      ("include = [*.iso]", 4, 12, "no value", "[\"*.iso\"]"),
      ("delete = yse", 4, 10, "", "delete = true or delete = false"),
      ("keep = twenty", 4, 8, "", "write for example keep = 20"), ("mirror:", 4, 7, "", "[mirror.podcasts]"),
      ("{ \"mirror\": 1 }", 4, 1, "", "no JSON"), ("every: ", 4, 6, "", "= is missing: every = \"1h\""),
      ("= 20", 4, 1, "", "a name is missing in front of ="),
      ("keep = 20\nkeep = 30", 5, 8, "", "line 4"),
      ("state = \"C:\\srv\"", 4, 13, "", "a backslash"), ("state = C:\\srv", 4, 9, "", "state = 'C:\\srv'"),
    ] as [(String, Int, Int, String, String)])
  func settings(_ lines: String, _ line: Int, _ column: Int, _ message: String, _ hint: String) {
    check(Sample.mirror(lines), line, column, message, hint)
  }

  @Test(
    arguments: [
      ("[mirror.café]", 12, "[mirror.\"café\"]"), ("[mirror.“café”]", 9, "[mirror.\"café\"]"),
      ("[mirror.“iso”]", 9, "[mirror.iso]"), ("[mirror.my iso]", 12, "[mirror.my-iso]"),
      ("[mirror.a:b]", 10, "[mirror.a-b]"), ("[mirror a]", 9, "[mirror.a]"), ("[mirror.a", 10, "[mirror.a]"),
      ("[[mirror.a]", 12, "[mirror.a]"), ("[mirror.a]]", 11, "[mirror.a]"),
      ("[mirror.]", 9, "[mirror.NAME]"), ("[limits", 8, "[limits]"), ("[]", 2, "[mirror.podcasts]"),
      ("[mirror.a] keep = 20", 12, "in lines of their own below it"),
      ("[mirror.a] // mine", 12, "a comment begins with #"),
    ] as [(String, Int, String)])
  func headers(_ text: String, _ column: Int, _ hint: String) {
    check(text + "\nkeep = 20\n", 1, column, "", hint)
  }

  @Test func aTableThatStandsTwice() {
    check("[limits]\npasses = 1\n[agent]\n[limits]\n", 4, 1, "", "line 1")
  }

  @Test func theEndOfTheFile() {
    check("[mirror.a]\ninclude = [\"a\", \"b\"", 2, 20, "", "the list is not closed")
    check("[mirror.a]\ntemplate = \"\"\"a\nb", 3, 2, "", "\"\"\"")
  }

  /// What stands in the place of a secret is not shown, whatever is wrong with it.
  @Test(arguments: [
    "header-file = Authorization: Bearer hunter2", "header-file = \"Bearer hunter2",
    "cookies = “hunter2”", "cookies = \"a\" hunter2", "netrc-file hunter2", "proxy = hunter2",
  ])
  func noSecretIsShown(_ line: String) {
    let problems = Sample.load(Sample.mirror(line)).problems
    #expect(problems.map(\.code) == [.syntax])
    for problem in problems { #expect(!problem.text.contains("hunter2"), "\(problem.text)") }
  }

  private func check(_ text: String, _ line: Int, _ column: Int, _ message: String, _ hint: String) {
    let problems = Sample.load(text).problems
    #expect(problems.map(\.code) == [.syntax])
    guard let problem = problems.first else { return }
    let place = SettingOrigin.file(Sample.main, SettingPosition(line: line, column: column))
    #expect(problem.origin == place, "\(problem.text)")
    #expect(message.isEmpty || problem.message.contains(message), "\(problem.text)")
    #expect(problem.hint?.contains(hint) == true, "\(problem.text)")
  }
}
