import Foundation
import TarnCore
import Testing

/// Mirrors made by hand, of local feeds: what they remember, where they may lie, and how their paths are meant.
@Suite struct HandMadeTests {
  private let place: URL

  init() throws {
    place = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-\(UUID().uuidString.lowercased())")
    for name in ["feed", "home", "state"] {
      try FileManager.default.createDirectory(
        at: place.appendingPathComponent(name), withIntermediateDirectories: true)
    }
    // SHA-256 of "one\n".
    let digest = "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"
    try write("one\n", "feed/a.txt")
    let other = String(repeating: "0123456789abcdef", count: 4)
    try write("\(digest)  a.txt\n\(other)  missing.txt\n", "feed/broken")
    try write("\(digest)  a.txt\n", "feed/SHA256SUMS")
  }

  private func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: place.appendingPathComponent(name))
  }

  private func exists(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: place.appendingPathComponent(name).path)
  }

  private func tarn(_ arguments: String..., from directory: String = "") throws -> TarnBinary.Result {
    try TarnBinary.run(
      arguments,
      environment: ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"],
      in: place.appendingPathComponent(directory))
  }

  private func end() { try? FileManager.default.removeItem(at: place) }

  /// Two hooks have the same settings.
  @Test func theSettingsOfHooksTellTheirNames() throws {
    defer { end() }
    let hook = { (name: String) in "[hook.\(name)]\ncommand = [\"true\"]\n" }
    try write(hook("chat") + hook("mail"), "tarn.toml")
    let shown = try tarn("config", "show", "--json", "--config", place.path + "/tarn.toml").output
    #expect(shown.contains("\"hook\" : \"chat\"") && shown.contains("\"hook\" : \"mail\""), "\(shown)")
  }

  /// The other mirror would be dead, and its files in between.
  @Test func theFolderOfAMirrorIsNoState() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "one").status == 0)
    let other = try tarn("sync", "--state", "one", "./feed/SHA256SUMS", "two")
    #expect(other.status == 64 && other.messages.contains("would lie in the mirror"), "\(other)")
    #expect(try tarn("sync", "one").status == 0)
  }

  @Test func whatIsNoMirrorIsToldAlike() throws {
    defer { end() }
    try FileManager.default.createDirectory(
      at: place.appendingPathComponent("empty"), withIntermediateDirectories: true)
    for word in ["empty", "nowhere"] {
      for command in ["sync", "plan"] {
        let result = try tarn(command, word)
        #expect(result.status == 73 && result.messages.contains("is no mirror of Tarn's"), "\(result)")
      }
    }
  }

  /// A mirror that is not in the list is not missed when its disk is not mounted.
  @Test func aListOfMirrorsThatCannotBeWrittenIsTold() throws {
    defer { end() }
    try FileManager.default.removeItem(at: place.appendingPathComponent("state"))
    try write("", "state")
    let result = try tarn("sync", "./feed/SHA256SUMS", "one")
    #expect(result.status == 0 && result.messages.contains("[not-listed]"), "\(result)")
  }

  /// What is not known is null, and what cannot be looked at is there as well.
  @Test func theCheckTellsWhatCannotBeLookedAt() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "one").status == 0)
    #expect(try tarn("sync", "./feed/SHA256SUMS", "two").status == 0)
    // One has lost its marker, and of the other only its name is known.
    try write("no id\n", "two/.tarn/id")
    try FileManager.default.removeItem(at: place.appendingPathComponent("two/.tarn/ledger.sqlite"))
    #expect(try tarn("sync", "./feed/SHA256SUMS", "three").status == 0)
    try write("no ledger at all\n", "three/.tarn/ledger.sqlite")
    let result = try tarn("status", "--check", "--json")
    let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    let check = try #require(document?["check"] as? [[String: Any]], "\(result)")
    #expect(result.status != 0 && check.count == 3, "\(check)")
    #expect(check.allSatisfy { $0["age"] != nil && $0["name"] != nil }, "\(check)")
    let bad = check.filter { $0["verdict"] as? String != "good" }
    #expect(bad.count == 2 && bad.allSatisfy { $0["age"] is NSNull }, "\(bad)")
    #expect(bad.contains { $0["verdict"] as? String == "unknown" }, "\(bad)")
  }

  private func options() throws -> [String: [String]] {
    struct Answer: Decodable {
      struct Mirror: Decodable { var options: [String: [String]] }
      var mirrors: [Mirror]
    }
    let output = try tarn("status", "--json", "m").output
    return try JSONDecoder().decode(Answer.self, from: Data(output.utf8)).mirrors[0].options
  }

  // MARK: What is remembered

  /// What is in sync for once is not the mirror.
  @Test func onceMakesNothingOfTheMirrorBetter() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/broken", "m").status != 0)
    #expect(try tarn("sync", "--once", "--include", "a.txt", "m").status == 0)
    #expect(try tarn("status", "--check", "m").status != 0)
    #expect(try tarn("status", "m").output.contains("missing.txt"))
  }

  /// A mirror of the settings remembers nothing: any option is for once.
  @Test func anOptionMakesNothingOfAMirrorOfTheSettingsBetter() throws {
    defer { end() }
    try write("[mirror.m]\nfeed = \"\(place.path)/feed/broken\"\nfolder = \"\(place.path)/m\"\n", "tarn.toml")
    #expect(try tarn("sync", "--config", "tarn.toml", "m").status != 0)
    #expect(try tarn("sync", "--config", "tarn.toml", "--include", "a.txt", "m").status == 0)
    #expect(try tarn("status", "--config", "tarn.toml", "--check", "m").status != 0)
    let shown = try tarn("status", "--config", "tarn.toml", "m").output
    #expect(shown.contains("missing.txt"), "\(shown)")
  }

  /// By whatever word a mirror of the settings is meant, its settings count, and not what an earlier pass had.
  @Test(arguments: ["m", "./m", ".", "/", "FEED"]) func aMirrorOfTheSettingsIsOneByItsFolder(_ word: String)
    throws
  {
    defer { end() }
    func settle(_ lines: String) throws {
      try write(
        "[mirror.n]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\nfolder = \"\(place.path)/m\"\n" + lines,
        "tarn.toml")
    }
    let words: [String] =
      switch word {
      case "/": [place.path + "/m"]
      case ".": []
      case "FEED": ["./feed/SHA256SUMS", "m"]
      default: [word]
      }
    func mirror(_ command: String, _ options: String...) throws -> TarnBinary.Result {
      let arguments: [String] = [command] + options + words + ["--config", place.path + "/tarn.toml"]
      return try TarnBinary.run(
        arguments,
        environment: ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"],
        in: place.appendingPathComponent(word == "." ? "m" : ""))
    }
    let list = try String(contentsOf: place.appendingPathComponent("feed/SHA256SUMS"), encoding: .utf8)
    // SHA-256 of "two\n".
    let digest = "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"
    try write("two\n", "feed/b.txt")
    try write("\(list)\(digest)  b.txt\n", "feed/SHA256SUMS")
    try settle("delete = true\n")
    #expect(try tarn("sync", "--config", "tarn.toml", "n").status == 0)
    try write(list, "feed/SHA256SUMS")
    try settle("")
    #expect(try !mirror("plan").output.contains("delete"))
    let sync = try mirror("sync")
    #expect(sync.status == 0 && sync.output.contains("no longer in the feed"), "\(sync)")
    #expect(try mirror("sync", "--exclude", "*").status == 0, "an option holds for that pass only")
    let status = try tarn("status", "-v", "--config", "tarn.toml", "n").output
    #expect(status.contains("none in its settings"), "\(status)")
    try settle("delete = true\n")
    #expect(try mirror("sync", "--delete-limit", "off").output.contains("moved to the trash"))
  }

  /// A mirror of that name may stand in other settings, too, and the next command must not mean that one.
  @Test func theNextCommandIsForTheSameSettings() throws {
    defer { end() }
    try write("[mirror.m]\nfeed = \"\(place.path)/feed/broken\"\nfolder = \"\(place.path)/m\"\n", "tarn.toml")
    for arguments in [["sync", "m"], ["status", "m"], ["status"], ["explain", "m", "missing.txt"]] {
      let outcome = try TarnBinary.run(
        arguments + ["--config", "tarn.toml"],
        environment: ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"], in: place)
      let next = outcome.output.components(separatedBy: "\n").filter { $0.hasPrefix("next: ") }
      #expect(
        !next.isEmpty
          && next.allSatisfy {
            $0.contains("tarn ") && $0.contains(" m --config \(place.path)/tarn.toml")
              || $0.contains("missing.txt --config ")
          }, "\(outcome)")
      #expect(
        try !tarn("status", "--config", "tarn.toml", "m").output.contains(
          "--config \(place.path)/tarn.toml --config"))
    }
  }

  /// A mirror comes before a word that might mean a command.
  @Test func theTrashOfAMirrorOfAnyNameIsListed() throws {
    defer { end() }
    for name in ["show", "remove", "clean"] {
      let refused = try tarn("trash", name)
      #expect(refused.status == 64 && refused.messages.contains("did you mean 'tarn trash "), "\(refused)")
      #expect(try tarn("sync", "./feed/SHA256SUMS", name).status == 0)
      let listed = try tarn("trash", name)
      #expect(listed.status == 0 && listed.messages.isEmpty, "\(listed)")
    }
  }

  @Test func whatIsRememberedIsShownAndTakenBack() throws {
    defer { end() }
    let proxy = "http://ann:secret@127.0.0.1:9"
    let first = try tarn(
      "sync", "--limit-rate", "500KiB/s", "--delete", "--proxy", proxy, "./feed/SHA256SUMS", "m")
    #expect(first.status == 0, "\(first)")
    let status = try tarn("status", "-v", "m").output
    #expect(
      status.contains("--delete --limit-rate 500KiB/s --proxy 'http://***@127.0.0.1:9' (remembered"),
      "\(status)")
    let plan = try tarn("plan", "-v", "m")
    #expect(plan.messages.contains("options: --delete --limit-rate 500KiB/s"), "\(plan)")
    let shown = try tarn("config", "show", "m").output
    #expect(
      shown.contains("[mirror.m]\nfeed = ") && shown.contains("limit-rate = \"500KiB/s\"  # remembered"),
      "\(shown)")
    for text in [
      status, plan.output + plan.messages, shown, try tarn("status", "--json", "m").output,
      try tarn("plan", "--json", "m").output,
    ] {
      #expect(!text.contains("secret"), "\(text)")
    }
    #expect(try options()["delete"] == ["true"])
    let unset = try tarn("config", "unset", "m", "limit-rate", "no-delete")
    #expect(
      unset.status == 0 && unset.output.hasPrefix("taken back: --delete --limit-rate 500KiB/s; "), "\(unset)")
    #expect(try options().keys.sorted() == ["proxy"])
    #expect(try tarn("config", "unset", "--all", "m").status == 0)
    #expect(try options().isEmpty)
    #expect(try tarn("config", "unset", "m", "keep").output.hasPrefix("nothing to take back"))
    for wrong in [["m"], ["m", "limitrate"], ["--all", "m", "keep"]] {
      #expect(try TarnBinary.run(["config", "unset"] + wrong).status == 64, "\(wrong)")
    }
    #expect(try tarn("config", "unset", "nowhere", "keep").status == 73)
    #expect(try tarn("sync", "m").status == 0, "the feed is still known")
  }

  @Test func whatHoldsOnceIsNotRemembered() throws {
    defer { end() }
    #expect(try tarn("sync", "--once", "--exclude", "*.txt", "./feed/SHA256SUMS", "m").status == 0)
    #expect(try !exists("m/a.txt") && options().isEmpty)
    #expect(try tarn("sync", "--retries", "3", "m").status == 0)
    #expect(exists("m/a.txt"), "the feed is remembered, and its options are not")
    #expect(try tarn("sync", "--once", "--retries", "9", "m").status == 0)
    #expect(try options() == ["retries": ["3"]])
    #expect(try tarn("sync", "-n", "--retries", "8", "m").status == 0)
    #expect(try options() == ["retries": ["3"]])
    #expect(try tarn("sync", "--once", "--change-feed", "./feed/broken", "m").status == 64)
    // All that are known may be meant where none remembers it.
    #expect(try tarn("sync", "./feed/SHA256SUMS", "other").status == 0)
    let refused = try tarn("sync", "--retries", "4")
    #expect(refused.status == 64 && refused.messages.contains("--once"), "\(refused)")
    #expect(try tarn("sync", "--once", "--retries", "4").status == 0)
    #expect(try tarn("plan", "--retries", "4").status == 0)
  }

  // MARK: Mirrors in mirrors

  @Test func noMirrorLiesInAnother() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try FileManager.default.createDirectory(
      at: place.appendingPathComponent("m/sub"), withIntermediateDirectories: true)
    try write("mine\n", "m/sub/mine")
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/link", withDestinationPath: place.path + "/m")
    for words in [
      ["m/sub"], ["m/new/er"], ["link/new"], ["--adopt", "m/sub"], ["--adopt", "."], ["--state", "m/s", "b"],
    ] {
      let outcome = try TarnBinary.run(
        ["sync"] + words.dropLast() + [place.path + "/feed/SHA256SUMS", words.last ?? ""],
        environment: ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"], in: place)
      #expect(
        outcome.status == 64
          && outcome.messages.contains("\(place.path)/\(words[0].hasPrefix("link") ? "link" : "m")"),
        "\(words): \(outcome)")
      #expect(outcome.messages.contains("no mirror may lie in another one"), "\(words): \(outcome)")
    }
    #expect(!exists("m/new") && !exists("m/sub/.tarn") && !exists(".tarn") && !exists("m/s"))
    let plan = try tarn("plan", "./feed/SHA256SUMS", "m/sub")
    #expect(plan.status == 64, "\(plan)")
    // In the subdirectory the mirror is named that it belongs to, and nothing leads to a second one.
    for words in [["sync", "."], ["verify", "."], ["forget", "."], ["trash", "list", "."]] {
      let outcome = try TarnBinary.run(
        words, environment: ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"],
        in: place.appendingPathComponent("m/sub"))
      #expect(outcome.status == 64 || outcome.status == 73, "\(words): \(outcome)")
      #expect(
        outcome.messages.contains("lies in the mirror \(place.path)/m") && !outcome.messages.contains("FEED"),
        "\(words): \(outcome)")
    }
  }

  /// The settings name a folder that had no pass so far: nothing lies there that tells.
  @Test func noMirrorLiesInOneOfTheSettings() throws {
    defer { end() }
    try write(
      "[mirror.x]\nfeed = \"\(place.path)/feed/SHA256SUMS\"\nfolder = \"\(place.path)/m\"\n", "tarn.toml")
    for folder in ["m/in", "."] {
      let outcome = try tarn("sync", "--config", "tarn.toml", "--adopt", "./feed/SHA256SUMS", folder)
      #expect(outcome.status == 64, "\(folder): \(outcome)")
      #expect(
        outcome.messages.contains("\(place.path)/m, the folder of x in the settings"), "\(folder): \(outcome)"
      )
    }
    #expect(!exists("m/in") && !exists(".tarn"))
    #expect(try tarn("sync", "--config", "tarn.toml", "x").status == 0)
    #expect(try tarn("sync", "--config", "tarn.toml", "./feed/SHA256SUMS", "m2").status == 0)
  }

  /// Whoever made it: another user's registry has it, and its record lies in its folder.
  @Test func noMirrorLiesAroundOneOfAnotherUser() throws {
    defer { end() }
    let other = ["HOME": place.path + "/other", "STATE_DIRECTORY": place.path + "/others"]
    #expect(
      try TarnBinary.run(
        ["sync", place.path + "/feed/SHA256SUMS", "m/deep/in"], environment: other, in: place
      ).status == 0)
    let outcome = try tarn("sync", "--adopt", "./feed/SHA256SUMS", "m")
    #expect(outcome.status == 64, "\(outcome)")
    #expect(outcome.messages.contains("has the mirror \(place.path)/m/deep/in in it"), "\(outcome)")
    #expect(!exists("m/.tarn"))
  }

  @Test func aPathIsEnough() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    try FileManager.default.createDirectory(
      at: place.appendingPathComponent("m/sub"), withIntermediateDirectories: true)
    for (words, directory) in [
      (["m/a.txt"], ""), (["./m/a.txt"], ""), ([place.path + "/m/a.txt"], "home"), (["a.txt"], "m"),
      (["../a.txt"], "m/sub"),
      (["m", "a.txt"], ""), ([".", "a.txt"], "m"), ([".", "../a.txt"], "m/sub"),
      // As a shell completes it: relative to the working directory, through the mirror's folder.
      (["m", "m/a.txt"], ""), (["m", "./m/a.txt"], ""), ([place.path + "/m", "m/a.txt"], ""),
      (["../m", "../m/a.txt"], "home"),
    ] {
      let outcome = try TarnBinary.run(
        ["explain"] + words, environment: ["HOME": place.path + "/home"],
        in: place.appendingPathComponent(directory))
      #expect(outcome.output.hasPrefix("a.txt: current\n"), "\(words) in \(directory): \(outcome)")
    }
    // As a shell expands `m/*`.
    let two = try tarn("explain", "m/a.txt", "m/b.txt")
    #expect(two.status == 64 && two.messages.contains("one path is expected"), "\(two)")
    // Also of a file that is not there.
    try FileManager.default.removeItem(at: place.appendingPathComponent("m/a.txt"))
    #expect(try tarn("explain", "m/a.txt").output.hasPrefix("a.txt: missing\n"))
    #expect(try tarn("explain", "m/no/such").output.hasPrefix("no/such: unknown\n"))
    #expect(try tarn("explain", "such", from: "m/sub").output.hasPrefix("sub/such: unknown\n"))
    #expect(try tarn("explain", ".", "such", from: "m/sub").output.hasPrefix("sub/such: unknown\n"))
    for (words, said) in [
      (["m"], "tarn explain m PATH"), (["m", "/tmp/x"], "within that folder, such as x"),
      (["feed/a.txt"], "lies in no mirror"), (["a", "b", "c"], "one path"),
    ] {
      let outcome = try TarnBinary.run(
        ["explain"] + words, environment: ["HOME": place.path + "/home"], in: place)
      #expect(outcome.status == 64 && outcome.messages.contains(said), "\(outcome)")
    }
    for word in ["m/sub", "m/a.txt", place.path + "/m/no/such"] {
      #expect(try tarn("status", word).output.hasPrefix("\(place.path)/m: "), "\(word)")
      #expect(try tarn("events", word).output.contains("fetched  a.txt"), "\(word)")
      #expect(try tarn("events", "--since", "1h", word).output.contains("fetched  a.txt"), "\(word)")
    }
    for words in [["--since", "yesterday"], ["--since", "1h", "--after", "1"]] {
      #expect(try TarnBinary.run(["events", "m"] + words, in: place).status == 64, "\(words)")
    }
    #expect(try tarn("status", ".", from: "m/sub").output.hasPrefix("\(place.path)/m: "))
  }

  /// A mistyped name in the check of a monitoring system would be good for ever.
  @Test func aBareWordThatNamesNothingIsNotTheMirrorAroundIt() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/broken", "b").status == 3)
    for command in ["status", "events"] {
      let refused = try tarn(command, "nosuch", from: "b")
      #expect(refused.status == 73 && refused.output == "", "\(refused)")
      #expect(refused.messages.contains("b/nosuch is no mirror, but lies in the mirror"), "\(refused)")
      // What is there, what the record has, and what has a slash is a path.
      for word in ["a.txt", "missing.txt", "./nosuch"] {
        let shown = try tarn(command, word, from: "b")
        #expect(shown.status == 0 && shown.output.contains("missing.txt"), "\(command) \(word): \(shown)")
      }
    }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    let check = try tarn("status", "--check", "nosuch", from: "m")
    #expect(check.status == 3 && check.output.hasPrefix("unknown: "), "\(check)")
    #expect(try tarn("status", "--check", "--format", "nagios", "nosuch", from: "m").status == 3)
    #expect(try tarn("status", "--check", "./nosuch", from: "m").status == 0)
  }

  /// Only the journal and the trash know it.
  @Test func aBareWordOfAFileThatWasDeletedIsAPath() throws {
    defer { end() }
    let line = try String(contentsOf: place.appendingPathComponent("feed/SHA256SUMS"), encoding: .utf8)
    try write("one\n", "feed/c.txt")
    try write(line + line.replacing("a.txt", with: "c.txt"), "feed/SHA256SUMS")
    #expect(try tarn("sync", "--delete", "./feed/SHA256SUMS", "m").status == 0)
    try write(line, "feed/SHA256SUMS")
    #expect(try tarn("sync", "m").status == 0 && !exists("m/c.txt"))
    for command in ["status", "events"] {
      let shown = try tarn(command, "c.txt", from: "m")
      #expect(shown.status == 0 && shown.output.contains("\(place.path)/m"), "\(command): \(shown)")
    }
  }

  // MARK: Several

  @Test func severalPassesAreNamedAndSummedUp() throws {
    defer { end() }
    #expect(try tarn("sync", "./feed/SHA256SUMS", "m").status == 0)
    #expect(try tarn("sync", "./feed/broken", "b").status == 3)
    #expect(try tarn("sync", "./feed/SHA256SUMS", "c").status == 0)
    try write("\u{1}", "feed/broken")
    let all = try tarn("sync")
    #expect(all.status >= 64 && all.messages.contains("tarn: \(place.path)/b: "), "\(all)")
    #expect(all.output.hasSuffix("\n2 in sync, 1 not: \(place.path)/b\n"), "\(all)")
    #expect(try tarn("sync", "m", "c").output.hasSuffix("\n2 in sync\n"))
  }

  /// What is left undone is explained with a step, and the step helps.
  @Test func theNextStepHelps() throws {
    defer { end() }
    let sync = try tarn("sync", "./feed/broken", "b")
    #expect(sync.status == 3 && sync.output.hasSuffix("next: tarn explain b missing.txt\n"), "\(sync)")
    let explained = try tarn("explain", "b", "missing.txt").output
    #expect(explained.hasSuffix("to do without it: tarn sync --exclude /missing.txt b\n"), "\(explained)")
    #expect(try tarn("status", "b").output.hasSuffix("next: tarn explain \(place.path)/b missing.txt\n"))
    #expect(try tarn("sync", "--exclude", "/missing.txt", "b").status == 0)
  }

  /// One line of status, and one command for all of them.
  @Test func whatIsGoneIsForgottenAtOnce() throws {
    defer { end() }
    for name in ["m", "g1", "g2"] { #expect(try tarn("sync", "./feed/SHA256SUMS", name).status == 0) }
    for name in ["g1", "g2"] { try FileManager.default.removeItem(at: place.appendingPathComponent(name)) }
    let status = try tarn("status").output
    #expect(
      status.hasSuffix(
        "gone: 2 mirrors without a folder: \(place.path)/g1, \(place.path)/g2; if they are gone for good: "
          + "tarn forget --gone\n"), "\(status)")
    #expect(status.split(separator: "\n").count { $0.contains("/g1") } == 1, "\(status)")
    let forgotten = try tarn("forget", "--gone")
    #expect(forgotten.output == "forgot \(place.path)/g1\nforgot \(place.path)/g2\n", "\(forgotten)")
    #expect(try !tarn("status").output.contains("gone"))
    #expect(try tarn("forget", "--gone").output.hasPrefix("nothing to forget"))
    #expect(exists("m/.tarn"))
    // A file in its place is no folder either.
    try FileManager.default.removeItem(at: place.appendingPathComponent("m"))
    try write("a file", "m")
    let replaced = try tarn("status").output
    #expect(replaced.contains("if it is gone for good: tarn forget \(place.path)/m"), "\(replaced)")
    #expect(try tarn("forget", "--gone").output == "forgot \(place.path)/m\n" && exists("m"))
    for wrong in [[], ["--gone", "m"]] { #expect(try TarnBinary.run(["forget"] + wrong).status == 64) }
  }

  /// An earlier Tarn took it in silence: it is told how to be rid of it.
  @Test func aBrokenPatternIsRefused() throws {
    defer { end() }
    let outcome = try tarn("sync", "--exclude", "dir0[", "./feed/SHA256SUMS", "m")
    #expect(
      outcome.status == 64 && outcome.messages.contains("at character 5 the bracket is never closed"),
      "\(outcome)")
  }
}
