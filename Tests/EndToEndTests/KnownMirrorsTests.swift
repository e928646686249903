import Foundation
import Testing

/// The list of this user's mirrors, and what `tarn status` tells of those whose folder is gone.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct KnownMirrorsTests {
  private let server: Nginx
  private let place: TemporaryDirectory
  private var home: [String: String] {
    [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
  }

  init() throws {
    server = try Nginx(locations: "")
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    try Feeds.publish(["f1": "one\n"], in: server.files)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments, environment: home, in: place.url)
  }

  private func mirrors(_ arguments: String...) throws -> [[String: Any]] {
    let outcome = try Tarn.run(["status", "--json"] + arguments, environment: home, in: place.url)
    #expect(outcome.errors.isEmpty, "\(outcome)")
    let document = try #require(try JSON.documents(outcome.output).first)
    #expect(document["schema"] as? String == "tarn-status/1")
    return document["mirrors"] as? [[String: Any]] ?? []
  }

  /// Syncs these, makes the others' last success old, and removes the first one's folder.
  private func withALostFolder(_ names: String...) throws {
    for name in names {
      try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), place.path + "/" + name).status == 0)
    }
    try place.remove(names[0])
  }

  @Test func passesThatBeginAtOnceAreAllKnown() throws {
    let names = (0..<12).map { "m\($0)" }
    let syncs = try names.map { name in
      try Tarn.start(
        ["sync", "-q", server.url("SHA256SUMS"), place.path + "/" + name], environment: home, in: place.url)
    }
    // These fail at once, and take back what they made.
    let failing = try (0..<4).map { number in
      try Tarn.start(
        ["sync", "-q", server.url("nothing"), place.path + "/x\(number)"], environment: home, in: place.url)
    }
    for sync in syncs { #expect(try sync.wait().status == 0) }
    for sync in failing { #expect(try sync.wait().status == 66) }
    let known = try mirrors().compactMap { $0["folder"] as? String }
    #expect(known.sorted() == names.map { place.path + "/" + $0 }.sorted())
  }

  /// As a path it would be a folder below this one, also inside a mirror.
  @Test func theAddressOfAFeedIsNoMirror() throws {
    let feed = server.url("SHA256SUMS")
    let unknown = try tarn("status", feed)
    #expect(unknown.status == 64 && unknown.errors.contains("\(feed) is a feed, not a mirror"), "\(unknown)")
    #expect(unknown.errors.contains("tarn sync \(feed) FOLDER"), "\(unknown)")
    try #require(try tarn("sync", "-q", feed, place.path + "/iso").status == 0)
    for directory in [place.url, place.url.appendingPathComponent("iso")] {
      for words in [
        ["status"], ["verify"], ["config", "show"], ["trash", "list"], ["forget"], ["schedule"], ["pause"],
        ["remove"],
      ] {
        let outcome = try Tarn.run(words + [feed], environment: home, in: directory)
        #expect(
          outcome.status == 64 && outcome.errors.contains("is a feed, not a mirror"), "\(words): \(outcome)")
        #expect(outcome.errors.contains("its mirror is \(place.path)/iso\n"), "\(words): \(outcome)")
      }
      let file = try Tarn.run(["explain", server.url("f1")], environment: home, in: directory)
      #expect(
        file.status == 64 && file.errors.contains("is a URL, and a path in a mirror is expected"), "\(file)")
    }
    #expect(try tarn("sync", "-q", feed, place.path + "/two").status == 0)
    #expect(
      try tarn("status", feed).errors.contains("its mirrors are \(place.path)/iso, \(place.path)/two\n"))
  }

  /// 'tarn sync FEED FOLDER' would make a second one.
  @Test func theFeedOfAMirrorThatHadNoPassYetLeadsToIt() throws {
    let feed = server.url("SHA256SUMS")
    try place.write(
      "[mirror.iso]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/iso\"\n", to: "tarn.toml")
    let config = ["--config", place.path + "/tarn.toml"]
    // It has its name also after the first pass, and appears once.
    for isSynced in [false, true] {
      if isSynced {
        try #require(try Tarn.run(["sync", "iso"] + config, environment: home, in: place.url).status == 0)
      }
      let outcome = try Tarn.run(["status", feed] + config, environment: home, in: place.url)
      #expect(outcome.status == 64 && outcome.errors.contains("its mirror is iso\n"), "\(outcome)")
    }
  }

  @Test func aFolderThatIsGoneIsNamedWithAllThatAreLate() throws {
    try withALostFolder("gone", "other")
    let gone = place.path + "/gone"
    let check = try tarn("status", "--check", "--max-age", "0s")
    #expect(check.status == 3 && check.errors.isEmpty, "\(check)")
    let lines = check.output.split(separator: "\n")
    try #require(lines.count == 2 || lines.count == 1, "\(check)")
    #expect(lines[0].hasPrefix("late: ") && check.output.contains("there is no folder \(gone)"), "\(check)")
    #expect(check.output.contains("tarn forget \(gone)"), "\(check)")
    // The other one is not in time once a second has gone by.
    var later = check
    try waitUntil("both are late") {
      later = try tarn("status", "--check", "--max-age", "0s")
      return later.output.split(separator: "\n").count == 2
    }
    #expect(later.output.contains("late: \(place.path)/other (last success "), "\(later)")
    let named = try tarn("status", "--check", "gone", "other")
    #expect(named.status == 3 && named.output.contains("tarn forget \(gone)"), "\(named)")
    for arguments in [["--check"], []] {
      let outcome = try Tarn.run(["status", "--json"] + arguments, environment: home, in: place.url)
      #expect(outcome.status == (arguments.isEmpty ? 0 : 3) && outcome.errors.isEmpty, "\(outcome)")
      let document = try #require(try JSON.documents(outcome.output).first)
      let mirrors = document["mirrors"] as? [[String: Any]] ?? []
      #expect(mirrors.map { $0["state"] as? String } == ["failing", "idle"], "\(outcome)")
      #expect(mirrors.first?["lastFailure"] as? String == "there is no folder \(gone)", "\(outcome)")
      #expect((mirrors.first?["hint"] as? String)?.contains("tarn forget \(gone)") == true, "\(outcome)")
    }
  }

  /// What stands on standard input is not meant for it: in a loop of a shell it is the rest of the loop's lines.
  @Test func aFeedOfStandardInputIsNotReadUnlessItIsNamed() throws {
    for folder in ["a", "b"] { try #require(try tarn("sync", server.url("SHA256SUMS"), folder).status == 0) }
    let piped = try Program(
      "/bin/sh", ["-c", "echo http://127.0.0.1:9/x | \"$0\" sync --exclude x - piped", Tarn.path],
      environment: Tarn.environment(home), in: place.url
    ).wait()
    try #require(piped.status == 0, "\(piped)")
    let loop = try Program(
      "/bin/sh",
      ["-c", "printf 'one\\ntwo\\n' | while read line; do echo $line; \"$0\" sync; done", Tarn.path],
      environment: Tarn.environment(home), in: place.url
    ).wait()
    #expect(loop.output.contains("one\n") && loop.output.contains("two\n"), "\(loop)")
    #expect(loop.output.contains("\n2 in sync\n"), "\(loop)")
    #expect(loop.errors.contains("piped is left out: its feed comes from standard input"), "\(loop)")
  }

  @Test func aFolderThatIsGoneIsShownUntilItIsForgotten() throws {
    try withALostFolder("gone", "other")
    let gone = place.path + "/gone"
    let both = try tarn("status")
    #expect(both.status == 0 && both.errors.isEmpty, "\(both)")
    #expect(both.output.contains("\(place.path)/other: in sync"), "\(both)")
    #expect(both.output.contains("there is no folder \(gone)"), "\(both)")
    #expect(both.output.contains("tarn forget \(gone)\n") && !both.output.contains("tarn sync"), "\(both)")
    let named = try tarn("status", "gone")
    #expect(
      named.status == 73
        && named.errors.contains("hint: move it back, or name the place where it is now: tarn sync PLACE; ")
        && named.errors.contains("if it is gone for good: tarn forget \(gone)\n"), "\(named)")
    #expect(named.output.isEmpty, "\(named)")
    // After a mere `mv` nothing has to be fetched again.
    for command in ["sync", "plan"] {
      let moved = try tarn(command, "gone")
      #expect(
        moved.status == 73
          && moved.errors.contains("\(gone) was a mirror, and its folder was moved or deleted")
          && moved.errors.contains(
            "where it is now: tarn sync PLACE; if it is gone for good: tarn forget \(gone)\n")
          && !moved.errors.contains("FEED"), "\(moved)")
    }
    try #require(try tarn("forget", place.path + "/other").status == 0)
    let card = try tarn("status")
    #expect(
      card.output.hasPrefix("gone: there is no folder \(gone)") && !card.output.contains("next: tarn sync"),
      "\(card)")
    #expect(card.output.contains("tarn forget \(gone)\n"), "\(card)")
    let forgotten = try tarn("forget", gone)
    #expect(forgotten.status == 0, "\(forgotten)")
    let nothing = try tarn("status")
    #expect(nothing.status == 64 && nothing.output.isEmpty, "\(nothing)")
  }

  /// What `mv` leaves, when somebody makes the directory again, is no folder that lacks a feed.
  @Test func anEmptiedFolderIsToldToBeThatByEachCommand() throws {
    try withALostFolder("gone", "other")
    let gone = place.path + "/gone"
    try FileManager.default.createDirectory(atPath: gone, withIntermediateDirectories: false)
    let commands = [
      ["status"], ["explain"], ["verify"], ["events"], ["trash", "list"], ["config", "show"], ["sync"],
      ["plan"], ["approve"],
    ]
    for command in commands {
      let words = command == ["explain"] ? command + [gone, "f1"] : command + [gone]
      let asked = try Tarn.run(words, environment: home, in: place.url)
      #expect(
        asked.status == 73 && asked.errors.contains("\(gone) was a mirror, and its folder was moved")
          && asked.errors.contains("move it back in place of the empty folder, or")
          && asked.errors.contains("tarn sync PLACE") && asked.errors.contains("tarn forget \(gone)\n")
          && !asked.errors.contains("FEED"), "\(command): \(asked)")
    }
    let all = try tarn("status")
    #expect(all.status == 0 && all.errors.isEmpty && all.output.contains("gone was a mirror"), "\(all)")
    #expect(all.output.contains("tarn sync PLACE") && !all.output.contains("FEED"), "\(all)")
    let check = try tarn("status", "--check", "--format", "nagios")
    #expect(check.status == 2 && check.output.contains("gone was a mirror"), "\(check)")
  }

  /// What lies where a mirror was moved away may have to go again for it.
  @Test func noMirrorIsMadeWhereOneWasMovedAway() throws {
    let (old, path) = (place.path + "/old", place.path + "/old/sub")
    try #require(try tarn("sync", server.url("SHA256SUMS"), old).status == 0)
    try FileManager.default.moveItem(atPath: old, toPath: place.path + "/moved")
    for isThere in [false, true] {
      if isThere { try place.write("text", to: "old/notes") }
      let inside = try tarn("sync", server.url("SHA256SUMS"), path)
      #expect(
        inside.status == 64 && inside.errors.contains("lies in \(old), which was a mirror")
          && inside.errors.contains("tarn forget \(old)\n"), "\(inside)")
      #expect(!place.exists("old/sub"))
      for command in ["status", "explain"] {
        let asked = try tarn(command, path + "/f1")
        #expect(
          asked.status == 73 && asked.errors.contains(old) && !asked.errors.contains("tarn sync FEED"),
          "\(asked)")
      }
    }
    try #require(try tarn("forget", old).status == 0)
    #expect(try tarn("sync", server.url("SHA256SUMS"), path).status == 0)
  }

  /// Another user's mirror, or that of another list: a slip in the folder does not cost its record.
  @Test func theRecordOfAMirrorElsewhereIsNotForgotten() throws {
    let (kept, feed) = (place.path + "/kept", server.url("SHA256SUMS"))
    try #require(try tarn("sync", "--state", kept, feed, place.path + "/one").status == 0)
    let others = home.merging(["STATE_DIRECTORY": place.path + "/other"]) { $1 }
    let slip = place.path + "/none"
    let refused = try Tarn.run(["sync", "--state", kept, feed, slip], environment: others, in: place.url)
    #expect(refused.status == 64 && !refused.errors.contains("tarn forget"), "\(refused)")
    #expect(try tarn("sync", place.path + "/one").status == 0)
    // Where its folder is gone it goes by the list that has it.
    try place.remove("one")
    #expect(try tarn("forget", place.path + "/one").status == 0)
    #expect(try tarn("forget", "--state", kept, place.path + "/one").status == 0)
    #expect(!place.exists("kept/ledger.sqlite"))
  }

  @Test func whatGoesWithAMirrorThatIsForgottenIsSaid() throws {
    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
    try #require(try tarn("sync", "--delete", server.url("SHA256SUMS"), place.path + "/one").status == 0)
    try Feeds.publish(["f1": "one\n"], in: server.files)
    try #require(try tarn("sync", place.path + "/one").status == 0)
    let forgotten = try tarn("forget", place.path + "/one")
    #expect(
      forgotten.status == 0
        && forgotten.output.contains("its files stay; 2 files of its trash went with it"),
      "\(forgotten)")
    #expect(place.text("one/f1") == "one\n")
  }

  @Test func ofAFolderThatIsGoneNoFilesStay() throws {
    let (kept, feed) = (place.path + "/kept", server.url("SHA256SUMS"))
    try place.write(
      "[mirror.one]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/one\"\nstate = \"\(kept)\"\ndelete = true\n",
      to: "t.toml")
    let settings = ["--config", place.path + "/t.toml"]
    func run(_ words: String...) throws -> Outcome {
      try Tarn.run(words + settings, environment: home, in: place.url)
    }
    for isJSON in [false, true] {
      try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
      try #require(try run("sync", "one").status == 0)
      try Feeds.publish(["f1": "one\n"], in: server.files)
      try #require(try run("sync", "one").status == 0)
      try place.remove("one")
      let forgotten = isJSON ? try run("forget", "--json", "one") : try run("forget", "one")
      #expect(
        forgotten.status == 0 && !(forgotten.output + forgotten.errors).contains("files stay"), "\(forgotten)"
      )
      #expect(!(forgotten.output + forgotten.errors).contains("--adopt"), "\(forgotten)")
      if isJSON {
        #expect(try JSON.documents(forgotten.output).first?["trashFiles"] as? Int == 2, "\(forgotten)")
      } else {
        #expect(forgotten.output.contains("2 files of its trash went with it"), "\(forgotten)")
      }
    }
  }

  /// Not where it was moved, but where it was copied: both are followed from now on.
  @Test func aCopyOfAMirrorHidesNone() throws {
    try #require(try tarn("sync", server.url("SHA256SUMS"), place.path + "/one").status == 0)
    try FileManager.default.copyItem(atPath: place.path + "/one", toPath: place.path + "/two")
    try #require(try tarn("sync", place.path + "/two").status == 0)
    #expect(
      try mirrors().map { $0["folder"] as? String ?? "" } == ["one", "two"].map { place.path + "/" + $0 })
    try FileManager.default.moveItem(atPath: place.path + "/two", toPath: place.path + "/three")
    try #require(try tarn("sync", place.path + "/three").status == 0)
    #expect(
      try mirrors().map { $0["folder"] as? String ?? "" } == ["one", "three"].map { place.path + "/" + $0 })
  }

  /// The state still knows the mirror: what helps is the same by its name and by its folder.
  @Test func anEmptiedFolderWhoseStateIsElsewhereHasOneStepBack() throws {
    let kept = place.path + "/kept"
    try place.write(
      "[mirror.one]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/one\"\nstate = \"\(kept)\"\n",
      to: "t.toml")
    func run(_ words: String...) throws -> Outcome {
      try Tarn.run(words + ["--config", place.path + "/t.toml"], environment: home, in: place.url)
    }
    try #require(try run("sync", "one").status == 0)
    try place.remove("one")
    try FileManager.default.createDirectory(atPath: place.path + "/one", withIntermediateDirectories: false)
    for word in ["one", place.path + "/one"] {
      for command in ["sync", "plan", "verify", "events", "trash"] {
        let asked = try command == "trash" ? run("trash", "list", word) : run(command, word)
        #expect(
          asked.status == 73 && asked.errors.contains("tarn sync --recreate one"), "\(command): \(asked)")
      }
    }
    #expect(try run("forget", place.path + "/one").status == 0)
    #expect(!place.exists("kept/ledger.sqlite"))
    #expect(try run("sync", "one").status == 0)
  }

  /// A mirror that the settings name wrongly keeps nobody from hearing of the others.
  @Test func aCheckOfAllJudgesAllThatItCan() throws {
    try #require(try tarn("sync", server.url("SHA256SUMS"), place.path + "/one").status == 0)
    func mirror(_ name: String) -> String {
      "[mirror.\(name)]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/\(name)\"\n"
    }
    try place.write(mirror("one") + "state = \"\(place.path)/kept\"\n" + mirror("two"), to: "t.toml")
    let check = ["status", "--check", "--config", place.path + "/t.toml"]
    let plain = try Tarn.run(check, environment: home, in: place.url)
    #expect(
      plain.status == 3 && plain.output.contains("two")
        && plain.output.contains("'state' of [mirror.one] cannot move it"),
      "\(plain)")
    let nagios = try Tarn.run(check + ["--format", "nagios"], environment: home, in: place.url)
    #expect(nagios.status == 2 && nagios.output.hasPrefix("TARN CRITICAL"), "\(nagios)")
    let named = try Tarn.run(check + ["one"], environment: home, in: place.url)
    #expect(named.status == 64, "\(named)")
    for command in ["events", "forget"] {
      let asked = try Tarn.run(
        [command, "one", "--config", place.path + "/t.toml"], environment: home, in: place.url)
      #expect(
        asked.status == 64 && asked.errors.contains("hint: leave 'state' out of [mirror.one]\n"), "\(asked)")
    }
  }

  @Test func whatLacksToMakeOneAnewByHandIsSaid() throws {
    try withALostFolder("gone")
    let lacking = try tarn("sync", "--recreate", "gone")
    #expect(lacking.status == 73 && lacking.errors.contains("tarn sync --recreate FEED gone\n"), "\(lacking)")
    #expect(try tarn("sync", "--recreate", server.url("SHA256SUMS"), "gone").status == 0)
  }

  /// Beside an agent the same: it does not know of it.
  @Test func besideAnAgentItIsShownToo() throws {
    try withALostFolder("gone", "other")
    try place.write(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/files\"\n",
      to: "t.toml")
    let agent = try Tarn.start(
      ["agent", "--config", place.path + "/t.toml"], environment: home, in: place.url)
    defer { agent.signal(SIGKILL) }
    try waitUntil("it answers") { agent.errorsSoFar.contains("answers at") }
    #expect(try tarn("sync", "files").status == 0)
    #expect(
      try mirrors().map { $0["folder"] as? String ?? "" }
        == ["files", "gone", "other"].map { place.path + "/" + $0 })
    // Nothing of this is known: not to the agent either.
    let unknown = try tarn("status", "nobody")
    #expect(unknown.status == 73 && unknown.output.isEmpty, "\(unknown)")
    // An agent's mirror goes by its name, whoever asks and of whatever else.
    let events = try tarn("events")
    #expect(events.status == 0 && events.output.contains("  files  fetched  f1"), "\(events)")
    #expect(events.output.contains("  \(place.path)/other  fetched  f1"), "\(events)")
    #expect(!events.output.contains("\(place.path)/files"), "\(events)")
    #expect(try tarn("events", "files").output.contains("  files  fetched  f1"))
    #expect(try tarn("events", place.path + "/files").output.contains("  files  fetched  f1"))
    // What is wrong with the agent's settings is told by the command that reads those.
    try place.write("[mirror.files\n", to: "t.toml")
    #expect(try tarn("reload").status != 0)
    let status = try tarn("status")
    #expect(status.output.contains("tarn config check --config \(place.path)/t.toml\n"), "\(status)")
  }

  @Test func theJournalEndsInASummary() throws {
    try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), "m").status == 0)
    func lines(_ arguments: String...) throws -> [[String: Any]] {
      let outcome = try Tarn.run(["events", "--json"] + arguments + ["m"], environment: home, in: place.url)
      #expect(outcome.status == 0, "\(outcome)")
      let lines = try JSON.documents(outcome.output)
      #expect(lines.allSatisfy { $0["schema"] as? String == "tarn-events/1" }, "\(outcome)")
      #expect(lines.dropLast().allSatisfy { $0["type"] as? String == "event" }, "\(outcome)")
      #expect(lines.last?["type"] as? String == "summary", "\(outcome)")
      #expect(lines.last?["exitStatus"] as? Int == 0 && lines.last?["events"] as? Int == lines.count - 1)
      return lines
    }
    let all = try lines("--after", "0")
    #expect(all.count > 1 && all.contains { $0["code"] as? String == "fetched" }, "\(all)")
    let cursor = try #require(all.last?["cursor"] as? String)
    #expect(cursor == all.dropLast().last?["cursor"] as? String)
    for start in [try lines("--newest", "0"), try lines("--after", cursor)] {
      #expect(start.count == 1 && start[0]["cursor"] as? String == cursor, "\(start)")
    }
    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
    try #require(try tarn("sync", "-q", "m").status == 0)
    let news = try lines("--after", cursor)
    #expect(
      news.contains { $0["path"] as? String == "f2" } && !news.contains { $0["path"] as? String == "f1" })
  }

  /// Both would lead to one record: what is brought to the one would be told of the other.
  @Test func aCopyOfAMirrorWhoseStateIsElsewhereIsRefused() throws {
    #expect(try tarn("sync", "--state", "state-of-a", server.url("SHA256SUMS"), "a").status == 0)
    try FileManager.default.copyItem(atPath: place.path + "/a", toPath: place.path + "/copy")
    for words in [["sync"], ["status"], ["verify"], ["trash", "list"]] {
      let refused = try Tarn.run(words + ["copy"], environment: home, in: place.url)
      #expect(refused.status == 64 && refused.errors.contains("is a copy of \(place.path)/a,"), "\(refused)")
    }
    #expect(try tarn("forget", "copy").status == 0 && place.text("copy/f1") == "one\n")
    #expect(try tarn("sync", "--adopt", "--state", "other", server.url("SHA256SUMS"), "copy").status == 0)
    #expect(try tarn("status", "--check", "a").status == 0)
    // A folder that was moved is no copy.
    try FileManager.default.moveItem(atPath: place.path + "/a", toPath: place.path + "/moved")
    #expect(try tarn("sync", "moved").status == 0)
  }

  @Test func aNameThatIsMisspeltIsNoFolderToMake() throws {
    try place.write(
      "[mirror.podcasts]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/p\"\n",
      to: "tarn.toml")
    let config = ["--config", place.path + "/tarn.toml"]
    for words in [
      ["sync", "podcast"], ["status", "podcast"], ["config", "show", "podcast"], ["verify", "Podcasts"],
    ] {
      let outcome = try Tarn.run(words + config, environment: home, in: place.url)
      #expect(
        outcome.status != 0 && outcome.errors.contains("did you mean podcasts, of the settings?"),
        "\(outcome)")
    }
    let other = try Tarn.run(["sync", "quite-another"] + config, environment: home, in: place.url)
    #expect(other.errors.contains("the settings have no mirror of that name"), "\(other)")
  }

  /// The settings say which feed a mirror of theirs follows, and whether it is only planned.
  @Test func whatTheSettingsSayOfAMirrorNoOptionChangesForGood() throws {
    try place.write(
      "[mirror.m]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/m\"\n", to: "tarn.toml")
    let config = ["--config", place.path + "/tarn.toml"]
    #expect(try Tarn.run(["sync", "m"] + config, environment: home, in: place.url).status == 0)
    let changed = try Tarn.run(
      ["sync", "--change-feed", server.url("other"), place.path + "/m"] + config, environment: home,
      in: place.url)
    #expect(changed.status == 64 && changed.errors.contains("change feed below [mirror.m]"), "\(changed)")
    try place.write(try #require(place.text("tarn.toml")) + "dry-run = true\n", to: "tarn.toml")
    try place.remove("m/f1")
    let verified = try Tarn.run(["verify", "--repair", "m"] + config, environment: home, in: place.url)
    #expect(verified.status == 3 && !place.exists("m/f1"), "\(verified)")
  }
}
