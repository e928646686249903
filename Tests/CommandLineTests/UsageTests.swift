import TarnAgent
import Testing

@testable import tarn

@Suite struct UsageTests {
  @Test(arguments: [
    ("unknown-command", ["snyc"]), ("unknown-command-far", ["frobnicate"]),
    ("unknown-trash-command", ["trash", "lst"]), ("unknown-config-command", ["config", "chek"]),
    ("unknown-option", ["sync", "--delte", "/srv/iso"]), ("missing-argument", ["approve"]),
    ("unknown-option-far", ["sync", "--nope", "/srv/iso"]),
    ("unknown-option-first", ["verify", "--all"]), ("habit", ["sync", "-j", "4", "/srv/iso"]),
    ("no-target", ["pause"]), ("limit-of-one", ["limit", "iso", "2MiB/s"]),
    ("limit-of-one-behind", ["limit", "off", "iso"]),
    ("broken-pattern", ["sync", "--exclude", "dir0[", "/srv/iso"]),
    ("bad-number", ["sync", "--connections", "0", "/srv/iso"]),
    ("bad-rate", ["plan", "--limit-rate", "fast", "/srv/iso"]),
    ("bad-local-changes", ["sync", "--local-changes", "burn", "/srv/iso"]),
    ("bad-reserve", ["sync", "--reserve", "101%", "/srv/iso"]),
    ("bad-max-age", ["status", "--check", "--max-age", "soon"]),
    ("bad-color", ["status", "--color", "blue"]), ("quiet-and-verbose", ["status", "-qv"]),
    ("feed-alone", ["sync", "https://example.org/SHA256SUMS"]),
    ("feed-second", ["sync", "/srv/iso", "https://example.org/SHA256SUMS"]),
    ("control-characters", ["sync\u{1B}[31m"]),
  ]) func wrongUsage(_ name: String, _ arguments: [String]) throws {
    let result = try TarnBinary.run(arguments)
    #expect(result.status == 64)
    #expect(result.output == "")
    try Golden.check(result.messages, "usage-\(name)")
  }

  /// Who asks for a plan does not mean to change anything.
  @Test(arguments: ["plan", "sync --dry-run"]) func theHintOfAPlanIsAPlan(_ command: String) throws {
    let words = command.split(separator: " ").map(String.init)
    for (target, hint) in [
      (["iso", "http://h/SHA256SUMS"], "http://h/SHA256SUMS iso"),
      (["h.example/SHA256SUMS", "iso"], "https://h.example/SHA256SUMS iso"),
    ] {
      let result = try TarnBinary.run(words + target)
      #expect(
        result.status == 64 && result.messages.hasSuffix("hint: tarn \(command) \(hint)\n"), "\(result)")
    }
  }

  @Test func missingFeedFileIsNotTakenForAMirror() throws {
    let result = try TarnBinary.run(["sync", "./SHA256SUM", "iso"])
    #expect(result.status == 66)
    try Golden.check(result.messages, "usage-feed-not-there")
  }

  @Test func failuresAreJSONOnDemand() throws {
    let result = try TarnBinary.run(["sync", "--json", "--retries", "many", "/srv/iso"])
    #expect(result.status == 64)
    #expect(result.output == "")
    #expect(
      result.messages == """
        {"code":"usage","exitStatus":64,"message":"--retries: 'many' is not a number from 0 to 100",\
        "schema":"tarn-error/1"}

        """)
  }

  @Test(
    arguments: [
      ("snyc", "sync"), ("synx", "sync"), ("stat", "status"), ("satus", "status"), ("verfiy", "verify"),
      ("exlpain", "explain"), ("aprove", "approve"), ("pull", "sync"), ("version", "--version"),
      ("check", "verify"), ("rm", "remove"), ("delete", "remove"), ("download", "get"), ("log", "events"),
      ("jobs", "status"),
      ("list", "status"),
      ("start", "agent"), ("stop", "pause --all"), ("completions", "completion bash"),
      ("complet", "completion"), ("bugreport", "report"), ("docter", "doctor"), ("ls", "status"),
      ("logs", "events"),
      ("subscribe", "add FEED FOLDER"), ("ad", "add"), ("remov", "remove"), ("inti", "init"),
      ("hooks", "man tarn-hooks"), ("metrics", "man tarn-metrics"), ("formats", "man 7 tarn-feeds"),
      ("xyz", nil),
    ] as [(String, String?)]) func suggestions(_ word: String, _ meant: String?)
  {
    #expect(Suggestion.unknown([word])?.suggestion == meant)
  }

  @Test(
    arguments: [
      (["trash", "ls"], "list"), (["trash", "rm"], "empty"), (["trash", "lst"], "list"),
      (["config", "get"], "show"), (["config", "delete"], "unset"), (["config", "xyz"], nil),
      (["session", "ls"], "list"), (["session", "rm"], "forget"), (["session", "delete"], "forget"),
      (["session", "status"], "show"), (["session", "start"], "open"),
      (["session", "cancel"], "tarn cancel session:ID"),
    ] as [([String], String?)]) func suggestionsBelow(_ words: [String], _ meant: String?)
  {
    #expect(Suggestion.unknown(words)?.suggestion == meant && Suggestion.unknown(words)?.word == words[1])
  }

  @Test(
    arguments: [
      ("sync", "-j", "--connections N"), ("sync", "--bwlimit", "--limit-rate RATE"),
      ("plan", "-P", "--connections N"),
      ("status", "-w", "--watch"), ("status", "--follow", "--watch"), ("events", "-f", "--follow"),
      ("sync", "-l", "directories below a feed"), ("agent", "-d", "systemctl"),
      ("agent", "--daemon", "tarn agent"), ("sync", "--timeout", "30 seconds is ended"),
      ("sync", "--delte", "--delete"), ("sync", "--insecure", "--cacert FILE"), ("sync", "--nope", nil),
      ("verify", "--all", nil), ("get", "-O", "--to PATH"), ("get", "-o", "--to PATH"),
      ("get", "--output", "--to PATH"), ("get", "-P", "--to FOLDER/"), ("get", "--dir", "--to FOLDER/"),
      ("get", "-c", "goes on from there"), ("get", "-d", "--to FOLDER/"), ("get", "-x", "one connection"),
      ("get", "-j", "-N N"), ("get", "-H", "--header-file FILE"), ("get", "-k", "--cacert FILE"),
      ("get", "-L", "always followed"), ("get", "--checksum", "--sha256 HEX"),
      ("get", "--sha512", "--sha256 HEX"), ("get", "--user-agent", "User-Agent: TEXT"),
      ("get", "--timeout", "60 seconds is ended"), ("get", "--rate", "--limit-rate RATE"),
      ("get", "--force", "--existing replace"),
    ] as [(String, String, String?)]) func unknownOptions(
      _ command: String, _ option: String, _ meant: String?
    )
  {
    let advice = OptionAdvice.first(in: [command, "m", option, "--json"])
    #expect(advice?.option == option && advice?.command == "tarn \(command)")
    #expect(
      meant.map { advice?.hint?.contains($0) == true } ?? (advice?.hint == nil), "\(advice?.hint ?? "")")
  }

  @Test(
    arguments: [
      ["sync", "--max-age", "-x", "-nv"], ["sync", "--connections=3", "--no-delete", "--", "--nope"],
      ["status", "-qy"],
      ["config", "show", "-v", "--no-input"], ["sync", "--help", "--version", "-h"], [], ["-q"],
    ]) func knownOptionsAreNotSuspected(_ arguments: [String])
  {
    let unknown = OptionAdvice.first(in: arguments)
    #expect(arguments == ["-q"] ? unknown?.option == "-q" : unknown == nil, "\(unknown?.option ?? "")")
  }

  @Test(arguments: [
    (["-q", "status"], "tarn status -q"), (["-v", "sync", "m"], "tarn sync -v"),
    (["--config", "f", "status"], "tarn status --config"), (["--json"], "tarn COMMAND --json"),
  ]) func optionsFollowTheCommand(_ arguments: [String], _ meant: String) throws {
    let result = try TarnBinary.run(arguments)
    #expect(result.status == 64 && result.messages.contains("'\(arguments[0])'"), "\(result)")
    let hint = "options follow the command: \(meant)"
    let isJSON = arguments.contains("--json")
    #expect(result.messages.contains(isJSON ? hint : "hint: \(hint)\n"), "\(result)")
  }

  /// Who looks for what is no command finds its page.
  @Test func whatIsNoCommandMayHaveAPage() throws {
    for words in [["metrics"], ["help", "metrics"]] {
      let messages = try TarnBinary.run(words).messages
      #expect(messages.contains("hint: a manual page is about that: man tarn-metrics"), "\(messages)")
    }
  }

  /// A whole line is meant as it is.
  @Test func otherCommandsAreNamedWhole() throws {
    let messages = try TarnBinary.run(["session", "cancel", "s"]).messages
    #expect(messages.contains("did you mean 'tarn cancel session:ID'?"), "\(messages)")
    let list = try TarnBinary.run(["session", "ls"]).messages
    #expect(list.contains("did you mean 'tarn session list'?"), "\(list)")
  }

  @Test func whatTakesAllWordsIsNamed() throws {
    let taken = try TarnBinary.run(["session", "open", "--wake", "/bin/true", "s"])
    #expect(
      taken.status == 64 && taken.messages.contains("the id is missing\n  hint: --wake takes all"), "\(taken)"
    )
    let missing = try TarnBinary.run(["session", "open"])
    #expect(missing.status == 64 && !missing.messages.contains("--wake takes"), "\(missing)")
  }

  @Test func knownCommandsAreNotSuspected() {
    #expect(Suggestion.unknown(["sync", "snyc"]) == nil)
    #expect(Suggestion.unknown(["trash", "list", "lst"]) == nil)
    // The trash of a mirror is listed without the word, too.
    #expect(Suggestion.unknown(["trash", "iso"]) == nil && Suggestion.unknown(["trash", "/srv/iso"]) == nil)
    // Of such a name, too: whether there is one is known only later.
    #expect(Suggestion.unknown(["trash", "show"])?.mayBeMirror == true)
    #expect(Suggestion.unknown(["config", "list"])?.mayBeMirror == false)
    #expect(Suggestion.unknown(["help", "sync"]) == nil)
    #expect(Suggestion.unknown(["--version"]) == nil)
    #expect(Suggestion.unknown([]) == nil)
  }

  @Test func relativePathsOfExplain() {
    func relative(_ path: String, _ mirror: String, in directory: String = "/srv/iso") -> String {
      let tarn = Tarn(workingDirectory: directory, environment: [:])
      return String(decoding: MirrorPath.relative(Array(path.utf8), mirror: mirror, tarn), as: UTF8.self)
    }
    #expect(relative("a/b", "/srv/iso") == "a/b")
    #expect(relative("./a/b", ".") == "a/b")
    #expect(relative("/srv/iso/a/b", ".") == "a/b")
    #expect(relative("/srv/iso/a/", "../iso/") == "a")
    #expect(relative("/elsewhere/a", ".") == "/elsewhere/a")
    #expect(relative("../a", "..", in: "/srv/iso/b") == "a")
    #expect(relative("./a", "..", in: "/srv/iso/b") == "b/a")
    #expect(relative("a", "..", in: "/srv/iso/b") == "a")
    #expect(relative("./a", "/srv/iso", in: "/home") == "./a")
    #expect(relative("-x", ".") == "-x")
  }
}
