import Foundation
import Testing

/// `tarn agent` and the commands that ask and steer it, with the built binary.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentTests: AgentHouse {
  /// Has the files whose names begin with `slow`.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: "location ~ ^/slow { \(held.location) }", files: ["f1": "one\n", "f2": "two\n"])
  }

  private func status() throws -> [String: Any] {
    let outcome = try tarn("status", "--json")
    return try #require(try JSON.documents(outcome.output).first)
  }

  private func mirror() throws -> [String: Any] {
    try #require((try status()["mirrors"] as? [[String: Any]])?.first)
  }

  @Test func aMirrorIsSyncedByNameAndAsked() throws {
    try start()
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && sync.output.contains("2 fetched"), "\(sync)")
    #expect(place.text("files/f1") == "one\n")
    try waitUntil("it is idle") { try self.mirror()["state"] as? String == "idle" }
    let document = try mirror()
    #expect(document["name"] as? String == "files")
    #expect((document["lastRun"] as? [String: Any])?["code"] as? String == "in-sync")
    #expect((try status()["agent"] as? [String: Any])?["state"] as? String == "running")
    let events = try tarn("events")
    #expect(events.output.contains("fetched  f1"), "\(events)")
    #expect(try tarn("sync", "nobody").status != 0)
  }

  /// A pause holds for who names no mirror, with the agent and without it.
  @Test func aPausedMirrorIsLeftOutUnlessItIsNamed() throws {
    try settings(
      try #require(place.text("tarn.toml")) + "\n[mirror.more]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/more\"\nkeep-list = false\n"
        + "\n[mirror.third]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/third\"\nkeep-list = false\n")
    try start()
    #expect(try tarn("pause", "more").status == 0)
    for isThere in [true, false] {
      if !isThere {
        agent?.signal(SIGTERM)
        _ = try agent?.wait()
      }
      let sync = try tarn("sync")
      #expect(sync.status == 0 && sync.output.hasSuffix("2 in sync\n"), "\(sync)")
      #expect(sync.errors.contains("more is left out: it is paused until 'tarn resume more'"), "\(sync)")
      #expect(!place.exists("more"))
    }
    #expect(try tarn("sync", "more").status == 0 && place.exists("more/f1"))
  }

  /// The summary says the same with an agent and without one.
  @Test func theSummaryOfSeveralCountsWhatTheAgentDid() throws {
    try settings(
      try #require(place.text("tarn.toml")) + "\n[mirror.more]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/more\"\nretries = 0\nkeep-list = false\n")
    func summary(_ words: String...) throws -> [String: Any] {
      let json = try JSON.documents(
        Tarn.run(["sync", "--json"] + words + config, environment: home, in: place.url).output)
      return try #require(json.last { $0["type"] as? String == "summary" })
    }
    func told(_ summary: [String: Any]) -> String {
      let counts = summary["counts"] as? [String: Int] ?? [:]
      let bytes = summary["bytes"] as? [String: UInt64] ?? [:]
      let rest = ["exitStatus", "inSync", "mirrors", "failures"].map { "\($0) \(summary[$0] ?? "none")" }
      return
        (rest + ["wanted", "inPlace"].map { "\($0) \(counts[$0] ?? -1)" }
        + ["bytes \(bytes["wanted"] ?? 0)"] + counts.keys.sorted() + bytes.keys.sorted())
        .joined(separator: ", ")
    }
    let alone = try summary("files", "more")
    #expect(alone["failures"] as? Int == 0 && alone["inSync"] as? Bool == true, "\(alone)")
    #expect((alone["counts"] as? [String: Int])?["wanted"] == 4, "\(alone)")
    try start()
    let asked = try summary("files", "more")
    #expect(told(asked) == told(alone), "\(asked)")
    try server.files.remove("SHA256SUMS")
    let failed = try summary("files", "more")
    #expect(failed["failures"] as? Int == 2 && failed["inSync"] as? Bool == false, "\(failed)")
  }

  /// As for a member of the group tarn, whose own settings name no mirror.
  @Test func aMirrorThatOnlyTheAgentKnowsIsSyncedByName() throws {
    try start()
    let socket = ["--socket", place.path + "/run/tarn.sock"]
    let sync = try Tarn.run(["sync", "files"] + socket, environment: home, in: place.url)
    #expect(sync.status == 0 && sync.output.contains("2 fetched"), "\(sync)")
    let nobody = try Tarn.run(["sync", "nobody"] + socket, environment: home, in: place.url)
    #expect(nobody.status == 73 && nobody.errors.contains("is no mirror"), "\(nobody)")
  }

  /// One writer, one set of settings: who gives feed and folder asks for the agent's pass, or is told why not.
  @Test func aFeedAndAFolderAreTheAgentsWhereItKeepsThem() throws {
    try start()
    let feed = server.url("SHA256SUMS")
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/link", withDestinationPath: place.path + "/files")
    let same = [
      [feed, "./files"], [feed, place.path + "/link/"], [feed, "files", "--no-delete"],
      ["files", "--no-delete"],
    ]
    for words in same {
      let sync = try Tarn.run(["sync"] + words + config, environment: home, in: place.url)
      #expect(sync.status == 0 && sync.output.contains("in sync: 2 files"), "\(words): \(sync)")
    }
    let run = try #require(mirror()["lastRun"] as? [String: Any])
    #expect(run["number"] as? Int ?? 0 >= 4, "the agent made them: \(run)")
    let events = try tarn("events").output
    let refused: [([String], String, String)] = [
      ([server.url("other"), "files"], "follows \(feed)", "[mirror.files]"),
      ([feed, "files", "--delete", "--keep", "3"], "--delete, --keep ask for", "tarn reload"),
      ([feed, "link", "--adopt"], "--adopt asks for", "tarn sync files"),
      (["./files", "--delete"], "--delete asks for", "tarn reload"),
      ([feed, "files", "--state", "elsewhere"], "--state asks for", "tarn reload"),
      (["-", "files"], "follows \(feed)", "[mirror.files]"),
      ([feed, "files", "--no-portable-names"], "--no-portable-names asks for", "tarn reload"),
      (["files", "--local-changes", "keep"], "--local-changes asks for", "tarn reload"),
      (["files", "--adopt", "--delete"], "--delete, --adopt ask for", "tarn reload"),
    ]
    for (words, message, hint) in refused {
      let sync = try Tarn.run(["sync"] + words + config, environment: home, in: place.url)
      #expect(
        sync.status == 64 && sync.errors.contains(message) && sync.errors.contains(hint),
        "\(words): \(sync)")
    }
    #expect(try tarn("events").output == events)
    // What a refusal of the agent's own pass advises; it changes no option.
    let adopting = try tarn("sync", "--adopt", "files")
    #expect(adopting.status == 0, "\(adopting)")
    // What the agent does not keep is synced here.
    let other = try tarn("sync", feed, "other")
    #expect(other.status == 0 && other.output.contains("in sync"), "\(other)")
    // What the file has by now is not what the agent follows.
    let new = server.url("new")
    try settings("[mirror.files]\nfeed = \"\(new)\"\nfolder = \"\(place.path)/files\"\n")
    let early = try tarn("sync", new, "files")
    #expect(early.status == 64 && early.errors.contains("follows \(feed)"), "\(early)")
    let old = try tarn("sync", "files")
    #expect(old.status == 0 && old.errors.contains("tarn.toml was changed since the agent read it"), "\(old)")
    #expect(try tarn("plan", "files").errors.contains("tarn.toml was changed since the agent read it"))
    try settings("[mirror.files]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/files\"\n")
    agent?.signal(SIGTERM)
    _ = try agent?.wait()
    #expect(try tarn("sync", feed, "files", "--delete").status == 0)
  }

  /// With one connection they come one after the other.
  @Test func whatWaitsForAPlaceIsToldApart() throws {
    try Feeds.publish(
      [
        "slow.1": String(repeating: "x", count: 1_000_000),
        "slow.2": String(repeating: "y", count: 1_000_000),
      ],
      in: server.files)
    try settings(try #require(place.text("tarn.toml")) + "connections = 1\n")
    try start()
    let sync = try begin("sync", "files")
    var states: [String: String] = [:]
    try waitUntil("one runs and one waits") {
      let transfers = try self.mirror()["transfers"] as? [[String: Any]] ?? []
      states = Dictionary(
        uniqueKeysWithValues: transfers.compactMap { line in
          (line["path"] as? String).flatMap { path in (line["state"] as? String).map { (path, $0) } }
        })
      return Set(states.values) == ["running", "waiting"] || !sync.isRunning
    }
    #expect(states.count == 2 && states.values.sorted() == ["running", "waiting"], "\(states)")
    held.open()
    #expect(try sync.wait().status == 0)
  }

  @Test func aServerThatIsGoneIsSaid() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try server.files.remove("SHA256SUMS")
    let sync = try tarn("sync", "files")
    #expect(sync.status == 66 && sync.errors.contains("404"), "\(sync)")
    let document = try mirror()
    #expect(document["state"] as? String == "failing")
    #expect((document["lastFailure"] as? String)?.contains("404") == true)
    #expect(place.text("files/f2") == "two\n")
  }

  /// A pause outlives a kill -9, and so does what was fetched.
  @Test func aKilledAgentComesBackAsItWas() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("pause", "files").output.contains("paused until"))
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    #expect(try tarn("pause", "files").status == 69)
    // Without an agent the ledger answers, and what the agent wrote down: by name, by folder and from within it.
    #expect(try mirror()["state"] as? String == "paused")
    for words in [["files"], ["./files"]] {
      let status = try Tarn.run(["status"] + words + config, environment: home, in: place.url)
      #expect(status.output.contains("/files: paused\n"), "\(status)")
      #expect(status.output.contains("next: start an agent ("), "\(status)")
    }
    let within = try Tarn.run(
      ["status"] + config, environment: home, in: place.url.appendingPathComponent("files"))
    #expect(within.output.contains("/files: paused\n"), "\(within)")
    try start()
    #expect(try mirror()["state"] as? String == "paused")
    #expect(try tarn("resume", "files").status == 0)
    // The agent looks at the folder first: nobody watched it meanwhile.
    try waitUntil("it is idle") { try self.mirror()["state"] as? String == "idle" }
    let events = try tarn("events")
    #expect(events.output.split(separator: "\n").count == 2, "\(events)")
  }

  @Test func theStatusSaysWhatWasTriedAndWhenItIsAgain() throws {
    try settings(
      """
      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/files"
      every = "1h"
      retries = 0
      keep-list = false

      [mirror.down]
      feed = "http://127.0.0.1:9/SHA256SUMS"
      folder = "\(place.path)/down"
      retries = 0

      """)
    try server.files.remove("f2")
    try start()
    #expect(try tarn("sync", "files").status == 3)
    #expect(try tarn("sync", "down").status == 66)
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    let files = try #require(mirrors.first { $0["name"] as? String == "files" })
    let problem = try #require((files["problems"] as? [[String: Any]])?.first)
    #expect(problem["path"] as? String == "f2")
    #expect(problem["nextAttempt"] as? String == files["nextRun"] as? String)
    #expect(files["nextRun"] is String)
    let down = try #require(mirrors.first { $0["name"] as? String == "down" })
    #expect(down["state"] as? String == "failing" && down["lastAttempt"] is String)
    // Also when the agent is gone: what it tried is in its record, for there is no ledger.
    agent?.signal(SIGTERM)
    _ = try agent?.wait()
    let later = try #require(JSON.documents(try tarn("status", "down", "--json").output).first)
    let alone = try #require((later["mirrors"] as? [[String: Any]])?.first)
    #expect(alone["state"] as? String == "failing", "\(alone)")
    #expect(alone["lastAttempt"] as? String == down["lastAttempt"] as? String)
    #expect((alone["lastFailure"] as? String)?.contains("refused") == true)
  }

  /// Their servers take connections and never answer: the only place there is stays free for the others.
  @Test func mirrorsThatHangDelayNoOther() throws {
    let silent = try SilentServer()
    let hanging = (0..<5).map { number in
      """

      [mirror.hang\(number)]
      feed = "http://127.0.0.1:\(silent.port)/\(number)"
      folder = "\(place.path)/hang\(number)"

      """
    }
    try settings(
      """
      [limits]
      passes = 1

      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/files"

      """ + hanging.joined())
    try start()
    for number in 0..<5 { #expect(try tarn("retry", "hang\(number)").status == 0) }
    try waitUntil("one of them waits for its server") { try self.isReading("hang0") }
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/f1") == "one\n")
    #expect(try isReading("hang0"))
    // Its feed is not read yet, and known from the settings.
    let hanging0 = try #require(
      (try status()["mirrors"] as? [[String: Any]])?.first { $0["name"] as? String == "hang0" })
    #expect(hanging0["feed"] as? String == "http://127.0.0.1:\(silent.port)/0")
  }

  private func isReading(_ name: String) throws -> Bool {
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    return mirrors.contains { $0["name"] as? String == name && $0["state"] as? String == "reading" }
  }

  @Test func aBadFileKeepsTheOldSettings() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    let good = place.text("tarn.toml") ?? ""
    try settings(good + "evry = \"1h\"\n")
    let refused = try tarn("reload")
    #expect(
      refused.status == 78 && refused.errors.contains("write 'every'") && refused.errors.contains(":5:"),
      "\(refused)")
    #expect(((try status()["agent"] as? [String: Any])?["rejected"] as? [String])?.count == 1)
    #expect(try tarn("sync", "files").status == 0)
    try settings(
      good + """

        [mirror.more]
        feed = "\(server.url("SHA256SUMS"))"
        folder = "\(place.path)/more"

        """)
    agent?.signal(SIGHUP)
    try waitUntil("the settings are taken") { agent?.errorsSoFar.contains("more: added") == true }
    #expect(try tarn("sync", "more").status == 0)
    #expect(place.text("more/f2") == "two\n")
    let reload = try tarn("reload")
    #expect(reload.status == 0 && reload.output.contains("no mirror changed"), "\(reload)")
  }

  /// The agent goes on with the old ones; who asks finds it all the same, or is told which file may say where it is.
  @Test func settingsThatAreNoTOMLDoNotHideTheAgent() throws {
    try start()
    try settings("[agent]\nsocket = \"/elsewhere\n")
    let socket = place.path + "/run/tarn.sock"
    let fault = "\(place.path)/tarn.toml:2:"
    for (more, options) in [([:], ["--socket", socket]), (["TARN_SOCKET": socket], []), ([:], [])] {
      for words in [["status"], ["sync", "files"], ["pause", "files"], ["resume", "files"]] {
        let outcome = try Tarn.run(
          words + options + config, environment: home.merging(more) { $1 }, in: place.url)
        let mark = words[0] == "sync" ? "in sync" : "files"
        #expect(outcome.status == 0 && outcome.output.contains(mark), "\(words) \(options): \(outcome)")
      }
    }
    let reload = try tarn("reload")
    #expect(reload.status == 78 && reload.errors.contains(fault), "\(reload)")
    agent?.signal(SIGTERM)
    _ = try agent?.wait()
    for words in [["pause", "files"], ["reload"], ["sync", "nothing"], ["status", "nothing"]] {
      let outcome = try Tarn.run(words + config, environment: home, in: place.url)
      #expect(
        outcome.status >= 64 && outcome.errors.contains(fault)
          && outcome.errors.contains("tarn config check"),
        "\(words): \(outcome)")
    }
  }

  /// A single transfer is paused, and goes on where it was; the others do not wait.
  @Test func oneTransferIsSteered() throws {
    let long = String(repeating: "0123456789abcdef", count: 120_000)
    try Feeds.publish(["f1": "one\n", "slow.bin": long], in: server.files)
    try start()
    #expect(try tarn("cancel", "files:slow.bin").status == 64)
    #expect(try tarn("cancel", "files:../x").status == 64)
    let sync = try begin("sync", "files")
    try waitUntil("it is transferred") {
      let transfers = (try? mirror())?["transfers"] as? [[String: Any]] ?? []
      return transfers.contains { $0["path"] as? String == "slow.bin" && $0["received"] as? Int ?? 0 > 0 }
    }
    let paused = try tarn("pause", "files:slow.bin")
    #expect(paused.status == 0 && paused.output.contains("tarn resume files:slow.bin"), "\(paused)")
    let ended = try sync.wait()
    #expect(ended.status == 3, "\(ended)")
    #expect(place.text("files/f1") == "one\n" && !place.exists("files/slow.bin"))
    #expect(try tarn("pause", "files:slow.bin").output.contains("is paused already"))
    // Nor is it forgotten when the mirror gets other settings.
    try settings((place.text("tarn.toml") ?? "") + "retries = 2\n")
    #expect(try tarn("reload").output.contains("files"))
    #expect(try tarn("pause", "files:slow.bin").output.contains("is paused already"))
    let counts = try #require(mirror()["entries"] as? [String: Int])
    #expect(counts["pending"] == 1 && counts["failed"] == 0, "\(counts)")
    let retried = try tarn("retry", "files:slow.bin")
    #expect(retried.status == 64 && retried.errors.contains("tarn resume files:slow.bin"), "\(retried)")
    let status = try tarn("status", "files").output
    #expect(
      status.contains("next: tarn resume files:slow.bin --config \(place.path)/tarn.toml\n"), "\(status)")
    // It outlives the agent, without which nothing is paused.
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    for words in [["status", "files"], ["explain", "files", "slow.bin"]] {
      let advice = try Tarn.run(words + config, environment: home, in: place.url).output
      #expect(advice.hasSuffix("next: tarn sync files --config \(place.path)/tarn.toml\n"), "\(advice)")
    }
    try start()
    #expect(try tarn("sync", "files").status == 3)
    let folder = place.path + "/files"
    for words in [["files", "slow.bin"], [folder, "slow.bin"]] {
      // Without the agent's settings, too.
      for settings in [config, []] {
        let explained = try Tarn.run(["explain"] + words + settings, environment: home, in: place.url)
        #expect(explained.output.contains("paused"), "\(explained)")
        let same = settings.isEmpty ? "" : " --config \(place.path)/tarn.toml"
        #expect(explained.output.hasSuffix("next: tarn resume files:slow.bin\(same)\n"), "\(explained)")
      }
    }
    held.open()
    #expect(try tarn("resume", "files:slow.bin").status == 0)
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/slow.bin") == long)
    #expect(try tarn("resume", "files:slow.bin").output.contains("is not paused"))
  }

  /// Each mirror numbers its own events; and a transfer is no mirror.
  @Test func wordsThatMeanNoMirrorAreSaid() throws {
    let other = "\n[mirror.other]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/other\"\n"
    try settings((place.text("tarn.toml") ?? "") + other)
    for isRunning in [false, true] {
      if isRunning { try start() }
      let events = try tarn("events", "--after", "1")
      #expect(events.status == 64 && events.errors.contains("tarn events --after 1 files"), "\(events)")
      #expect(try tarn("events", "--after", "0").status == 0)
      for words in ["status", "sync", "plan", "verify", "approve", "schedule", "forget"] {
        let outcome = try tarn(words, "files:f1.txt")
        #expect(outcome.status == 64 && outcome.errors.contains("tarn explain files f1.txt"), "\(outcome)")
      }
    }
  }

  @Test func itEndsWithZeroAndLeavesNoSocket() throws {
    try start()
    let socket = place.path + "/run/tarn.sock"
    #expect(FileManager.default.fileExists(atPath: socket))
    let second = try tarn("agent")
    #expect(second.status == 75 && second.errors.contains("another agent"), "\(second)")
    agent?.signal(SIGTERM)
    let outcome = try #require(try agent?.wait())
    #expect(outcome.status == 0, "\(outcome)")
    #expect(!FileManager.default.fileExists(atPath: socket))
  }

  @Test func anAgentWithoutValidSettingsDoesNotStart() throws {
    try settings("[mirror.files]\nfeed = 3\n")
    let outcome = try tarn("agent")
    #expect(outcome.status == 78 && outcome.errors.contains("tarn config check"), "\(outcome)")
  }

  /// By the settings, by the command line; every line is a document then.
  @Test(arguments: [false, true]) func itsLogCanBeJSON(isOption: Bool) throws {
    let text = place.text("tarn.toml") ?? ""
    if !isOption { try settings(text + "[agent]\nlog-format = \"json\"\n") }
    let more = isOption ? ["--json"] : []
    let program = try Tarn.start(["agent"] + more + config, environment: home, in: place.url)
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
    #expect(try tarn("sync", "files").status == 0)
    program.signal(SIGTERM)
    let outcome = try program.wait()
    let lines = try JSON.documents(outcome.errors)
    #expect(
      lines.contains { $0["mirror"] as? String == "files" && $0["code"] as? String == "in-sync" },
      "\(outcome)")
    #expect(lines.allSatisfy { $0["schema"] as? String == "tarn-log/1" })
  }

  /// With the agent and without it the others are told of, and why one is not, once.
  @Test(arguments: [true, false]) func aMirrorThatCannotBeReadHidesNoOther(hasAgent: Bool) throws {
    try settings(
      try #require(place.text("tarn.toml")) + "\n[mirror.more]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/more\"\nkeep-list = false\n")
    if hasAgent { try start() }
    for name in ["files", "more"] { #expect(try tarn("sync", name).status == 0) }
    func expectOthers(_ status: Int32, _ code: String) throws {
      let events = try tarn("events", "--json")
      let lines = try JSON.documents(events.output)
      #expect(events.status == status, "\(events)")
      #expect(lines.dropLast().compactMap { $0["mirror"] as? String } == ["files", "files"], "\(events)")
      #expect(lines.last?["exitStatus"] as? Int32 == status, "\(events)")
      let failures = try JSON.documents(events.errors)
      #expect(failures.map { $0["mirror"] as? String } == ["more"], "\(events)")
      #expect(failures.first?["code"] as? String == code, "\(events)")
      // Where nothing else is meant there is nothing else.
      let alone = try tarn("events", "more", "--json")
      #expect(alone.status == status && alone.output.isEmpty, "\(alone)")
    }
    if !hasAgent {
      let ledger = place.path + "/more/.tarn/ledger.sqlite"
      try FileManager.default.moveItem(atPath: ledger, toPath: ledger + ".kept")
      try place.write(String(repeating: "no ledger ", count: 1000), to: "more/.tarn/ledger.sqlite")
      try expectOthers(74, "ledger-corrupt")
      try FileManager.default.removeItem(atPath: ledger)
      try FileManager.default.moveItem(atPath: ledger + ".kept", toPath: ledger)
      #expect(try tarn("events").status == 0)
    }
    try FileManager.default.removeItem(atPath: place.path + "/more/.tarn")
    try expectOthers(73, "marker-missing")
    let follower = try begin("events", "--follow")
    defer { follower.signal(SIGKILL) }
    try waitUntil("it follows") { follower.outputSoFar.contains("fetched  f2") }
    try Feeds.publish(["f1": "one\n", "f2": "two\n", "f3": "three\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("it is told") { follower.outputSoFar.contains("files  fetched  f3") }
    follower.signal(SIGINT)
    let outcome = try follower.wait()
    #expect(outcome.status == 130, "\(outcome)")
    #expect(outcome.errors.components(separatedBy: "marker .tarn is gone").count == 2, "\(outcome)")
  }

  @Test func theJournalIsFollowed() throws {
    try start()
    let reader = try Tarn.start(["events", "--follow", "--json"] + config, environment: home, in: place.url)
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("both are told") {
      reader.outputSoFar.contains("\"f1\"") && reader.outputSoFar.contains("\"f2\"")
    }
    reader.signal(SIGINT)
    #expect(try reader.wait().status == 130)
    let numbers = try JSON.documents(reader.outputSoFar).compactMap { $0["number"] as? Int }
    #expect(numbers == [1, 2])
    for _ in 0..<2 {
      let rest = try JSON.documents(try tarn("events", "--after", "1", "--json", "files").output)
      #expect(rest.compactMap { $0["number"] as? Int } == [2])
      // From the ledger as from the agent.
      agent?.signal(SIGTERM)
      _ = try agent?.wait()
    }
  }
}
