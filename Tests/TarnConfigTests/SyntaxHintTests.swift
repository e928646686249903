import Testing

@testable import TarnConfig

/// What TOML does not allow, and what is said to mend it.
@Suite struct SyntaxHintTests {
  /// Lines below a mirror's header, feed and folder: the first of them is line 4.
  @Test(
    arguments: [
      ("keep = 99999999999999999999", 4, "write for example keep = 20"), ("keep = 007", 4, "keep = 20"),
      ("reserve = 99999999999999999999", 4, "reserve = \"99999999999999999999\""),
      ("template = “{title}”", 4, "template = \"{title}\""),
      ("template = ‘{title}’", 4, "template = \"{title}\""),
      ("template = „{title}“ # so", 4, "template = \"{title}\""),
      ("template = «{title}»", 4, "template = \"{title}\""),
      ("include = [“*.iso”, “*.txt”]", 4, "include = [\"*.iso\", \"*.txt\"]"),
      ("template = \"{title}”", 4, "template = \"{title}\""), ("“keep” = 20", 4, "keep = 20"),
      ("limit rate = \"2MiB/s\"", 4, "a line such as keep = 20"), ("café = 1", 4, "a line such as keep = 20"),
      ("cookies = { file = \"/a\", }", 4, "{ file = \"/path\" }"),
      ("keep = 1 every = \"1h\"", 4, "a line of its own"),
      ("state = \"/x\", every = \"1h\"", 4, "a line of its own"),
      ("include = \"*.iso\", \"*.txt\"", 4, "include = [\"*.iso\", \"docs/\"]"),
      ("keep = 20;", 4, "a comment begins with #"), ("keep = 20 // few", 4, "a comment begins with #"),
      ("keep = 20 ; few", 4, "a comment begins with #"), ("// few", 4, "a comment begins with #"),
      ("; few", 4, "a comment begins with #"), ("max-age = 90 s", 4, "max-age = \"90 s\""),
      ("include = [\"a\", \"b\"\nevery = \"1h\"", 5, "quotes and brackets closed"),
      ("limit-rate =\nkeep = 1", 4, "a value is missing: write for example limit-rate = \"2MiB/s\""),
      ("keep = # few", 4, "a value is missing: write for example keep = 20"),
      ("keep 20", 4, "= is missing: write for example keep = 20"), ("keep: 20", 4, "= is missing"),
      ("template {title}", 4, "= is missing"), ("keep == 20", 4, "write for example keep = 20"),
      ("delete = TRUE", 4, "delete = true or delete = false"),
      ("delete = tru", 4, "delete = true or delete = false"),
      ("state = null", 4, "a string needs quotes: state = \"null\""),
      ("export FEED=x", 4, "such as keep = 20"),
      ("[mirror.b", 4, "[mirror.podcasts]"), ("include = [*.iso]", 4, "include = [\"*.iso\", \"docs/\"]"),
      ("keep = twenty", 4, "write for example keep = 20"), ("mirror:", 4, "[mirror.podcasts]"),
      ("{ \"mirror\": 1 }", 4, "a line such as keep = 20"), ("every: ", 4, "= is missing"),
      ("= 20", 4, "such as keep = 20"), ("keep = 20\nkeep = 30", 5, "keep stands in line 4 already"),
      ("include = [\"a\"]\ninclude = [\n\"b\"\n]", 5, "include stands in line 4 already"),
      ("every = \"1h\"\ninclude = [\"a\"\nevery = \"2h\"", 6, "quotes and brackets closed"),
      ("state = \"C:\\srv\"", 4, "quotes and brackets closed"), ("state = C:\\srv", 4, "state = 'C:\\srv'"),
    ] as [(String, Int, String)])
  func settings(_ lines: String, _ line: Int, _ hint: String) {
    check(Sample.mirror(lines), line, hint)
  }

  @Test(
    arguments: [
      ("[mirror.café]", "stands in quotes: [mirror.\"café\"]"), ("[mirror.“iso”]", "[mirror.podcasts]"),
      ("[mirror.my iso]", "[mirror.podcasts]"), ("[mirror.a", "[mirror.podcasts]"),
      ("[mirror.]", "[mirror.podcasts]"),
      ("[limits", "[limits]"), ("[mirror.a] keep = 20", "with nothing behind it"),
      ("[mirror.a] // mine", "a comment begins with #"),
    ])
  func headers(_ text: String, _ hint: String) {
    check(text + "\nkeep = 20\n", 1, hint)
  }

  /// Lines of one list look alike, and are no redefinition.
  @Test func whatOnlyLooksLikeTheSameIsNotTwice() {
    let lines = "rate = [\n  { at = \"8:00-9:00\", limit = \"1M\" },\n  { at = \"9:00-10:00\", limit = }\n]"
    for problem in Sample.load(Sample.mirror(lines)).problems {
      #expect(problem.hint?.contains("already") != true, "\(problem.text)")
    }
  }

  @Test func aTableThatStandsTwice() {
    check("[limits]\npasses = 1\n[agent]\n[limits]\n", 4, "begins in line 1 already")
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

  private func check(_ text: String, _ line: Int, _ hint: String) {
    let problems = Sample.load(text).problems
    #expect(problems.map(\.code) == [.syntax])
    guard let problem = problems.first else { return }
    guard case .file(Sample.main, let position) = problem.origin else {
      Issue.record("\(problem.text)")
      return
    }
    #expect(position.line == line && problem.message.hasPrefix("this is not TOML"), "\(problem.text)")
    #expect(problem.hint?.contains(hint) == true, "\(problem.text)")
  }
}
