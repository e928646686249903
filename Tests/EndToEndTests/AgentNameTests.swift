import Foundation
import Testing

/// A word that names a mirror of the agent's means that mirror in every command, also where a folder is called so.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentNameTests: AgentHouse {
  init() throws {
    try super.init(files: ["f1": "one\n", "f2": "two\n"])
    try place.write("mine\n", to: "there/files/notes")
  }

  /// Without the agent's settings, in a directory that has a folder of that name.
  private func there(_ words: [String]) throws -> Outcome {
    try Tarn.run(words, environment: home, in: place.url.appendingPathComponent("there"))
  }

  @Test func aNameOfTheAgentsGoesBeforeAFolder() throws {
    try start()
    for (words, text) in [
      (["sync", "files"], "2 fetched"), (["verify", "files"], "all good: 2 files checked"),
      (["plan", "files"], "nothing to do"), (["status", "files"], "files: in sync"),
      (["explain", "files", "f1"], "f1: "), (["events", "files"], "fetched  f1"),
      (["status", "--check", "files"], "in sync within"), (["pause", "files"], "files is paused"),
      (["resume", "files"], "files goes on"), (["approve", "-y", "files"], "no plan is held"),
      (["schedule", "files"], "is a name in the settings of the running agent"),
    ] as [([String], String)] {
      let outcome = try there(words)
      #expect((outcome.output + outcome.errors).contains(text), "\(words): \(outcome)")
    }
    // The same by its folder; where the settings say it, it is their schedule.
    let timer = try there(["schedule", place.path + "/files"])
    #expect(
      timer.status == 73 && timer.errors.contains("is the folder of a mirror in the settings"), "\(timer)")
    let known = try tarn("schedule", place.path + "/files")
    #expect(try known.status == 0 && known.output == tarn("schedule", "files").output, "\(known)")
    #expect(try there(["trash", "list", "files"]).status == 0)
    #expect(try there(["trash", "empty", "-y", "files"]).status == 0)
    let all = try there(["pause", "--all"])
    #expect(all.status == 0 && all.output.contains("files is paused"), "\(all)")
    let on = try there(["resume", "--all"])
    #expect(on.status == 0 && on.output.contains("files goes on"), "\(on)")
    // So does a directory of the mirror's, as it does for questions.
    try place.write("", to: "files/sub/notes")
    let inside = try Tarn.run(
      ["pause", "."], environment: home, in: place.url.appendingPathComponent("files/sub"))
    #expect(inside.status == 0 && inside.output.contains("files is paused"), "\(inside)")
    #expect(try there(["resume", place.path + "/files/sub"]).output.contains("files goes on"))
    #expect(place.text("files/f1") == "one\n" && !place.exists("there/files/.tarn"))
    // A path is a folder, whatever mirrors are called, and so is what follows a feed.
    for words in [["sync", "./files"], ["verify", "./files"], ["sync", server.url("SHA256SUMS"), "files"]] {
      #expect(try [64, 73].contains(there(words).status), "\(words)")
    }
    // The agent would make it anew.
    let forgotten = try there(["forget", "files"])
    #expect(forgotten.status == 64 && forgotten.errors.contains("take [mirror.files] out"), "\(forgotten)")
    #expect(place.text("files/f1") == "one\n" && place.text("there/files/notes") == "mine\n")
  }

  /// What is advised about a folder that follows a feed is not advised about the agent's mirror.
  @Test func aFolderThatIsCalledLikeTheAgentsMirrorIsToldApart() throws {
    try start()
    try place.write("", to: "there/files/f1/in the way")
    let sync = try there(["sync", "--adopt", server.url("SHA256SUMS"), "files"])
    #expect(sync.output.hasSuffix("next: tarn explain ./files f1\n"), "\(sync)")
  }

  /// Nobody but an agent that answers knows its names.
  @Test func withoutAnAgentItIsTheFolder() throws {
    #expect(try tarn("sync", "files").status == 0)
    let sync = try there(["sync", "files"])
    #expect(sync.status != 0 && sync.errors.contains("/there/files"), "\(sync)")
    #expect(try there(["sync", server.url("SHA256SUMS"), "files", "--adopt", "--no-keep-list"]).status == 0)
    #expect(try there(["verify", "files"]).output.contains("all good: 2 files"))
    // A folder goes to the agent as one, by its whole path.
    try start()
    let pause = try there(["pause", "../there"])
    #expect(pause.status == 64 && pause.errors.contains("/there'"), "\(pause)")
    let near = try there(["pause", "fiels"])
    #expect(near.status == 64 && near.errors.contains("did you mean 'files'?"), "\(near)")
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/there/link", withDestinationPath: place.path + "/files")
    #expect(try there(["pause", "link"]).output.contains("files is paused"))
  }

  /// Settings of one's own go before those of an agent, which may have the name for something else.
  @Test func aNameOfTheSettingsIsNotAnotherMirrorOfTheAgents() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try place.write(
      """
      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/mine"
      include = ["f1"]

      """, to: "other/tarn.toml")
    let other = ["--config", place.path + "/other/tarn.toml", "--socket", place.path + "/run/tarn.sock"]
    func run(_ words: String...) throws -> Outcome {
      try Tarn.run(words + other, environment: home, in: place.url)
    }
    let sync = try run("sync", "files")
    #expect(
      sync.status == 0 && sync.errors.contains("the agent has another mirror of the name files, in")
        && place.text("mine/f1") == "one\n", "\(sync)")
    let status = try run("status", "files")
    #expect(status.output.contains(place.path + "/mine"), "\(status)")
    #expect(try run("forget", "files").output.hasPrefix("forgot files"))
    #expect(place.exists("files/.tarn/id"))
  }

  /// A user with settings of their own, whose agent does not run, beside this one as the system's.
  private func beside(_ words: String...) throws -> Outcome { try beside(words) }

  private func beside(_ words: [String]) throws -> Outcome {
    try Tarn.run(
      words,
      environment: [
        "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/own/state",
        "RUNTIME_DIRECTORY": place.path + "/own/run", "CONFIGURATION_DIRECTORY": place.path + "/own",
        "XDG_RUNTIME_DIR": place.path + "/runtime",
      ], in: place.url.appendingPathComponent("empty"))
  }

  private func startBeside() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    for name in ["empty", "runtime"] { try place.write("", to: name + "/.keep") }
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/runtime/tarn", withDestinationPath: place.path + "/run")
    try place.write(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/mine\"\ninclude = [\"f2\"]\n",
      to: "own/conf.d/files.toml")
  }

  @Test func noOrderReachesTheMirrorOfTheSameName() throws {
    try startBeside()
    let sync = try beside("sync", "files")
    #expect(sync.status == 0 && sync.errors.contains("the agent has another mirror of the name files, in"))
    // That agent never reads these settings.
    #expect(!sync.errors.contains("tarn reload"), "\(sync)")
    for verb in ["pause", "resume", "retry", "cancel", "prioritize"] {
      for word in ["files", "files:f1"] {
        let outcome = try beside(verb, word)
        #expect(
          outcome.status == 64
            && outcome.errors.contains("has another mirror of the name files, in \(place.path)/files;")
            && outcome.errors.contains("tarn \(verb) \(place.path)/files"), "\(outcome)")
      }
    }
    let events = try beside("events", "files", "--newest", "1000")
    #expect(events.status == 0 && events.output.contains("fetched  f2"), "\(events)")
    #expect(!events.output.contains("fetched  f1"), "\(events)")
    #expect(try tarn("pause", "files").output.contains("files is paused until"))
    // Its folder says which one is meant, and so does --all.
    #expect(try beside("resume", place.path + "/files").output.contains("files goes on"))
    #expect(try beside("pause", "--all").output.contains("files is paused"))
  }

  /// Settings with errors may have any name; their own agent alone goes on with older ones.
  @Test(arguments: ["x\n", "evry = \"1h\"\n"]) func anErrorOfTheSettingsHidesNoMirror(_ slip: String) throws {
    try startBeside()
    #expect(try beside("sync", "files").status == 0)
    try place.write((place.text("own/conf.d/files.toml") ?? "") + slip, to: "own/conf.d/files.toml")
    for words in [["--check", "files"], ["--check"]] {
      let check = try beside(["status"] + words)
      #expect(check.status == 3 && check.output.contains("files.toml:5:"), "\(check)")
    }
    let plugin = try beside("status", "--check", "--format", "nagios", "files")
    #expect(plugin.status == 3 && plugin.output.hasPrefix("TARN UNKNOWN"), "\(plugin)")
    let all = try beside("status")
    #expect(all.status == 78 && all.errors.contains("files.toml:5:"), "\(all)")
    let card = try beside("status", "files")
    #expect(!card.output.contains(place.path + "/files") && card.errors.contains("files.toml:5:"), "\(card)")
    #expect(try beside("pause", "files").status != 0)
    #expect(try beside("sync", "files").status == 78)
    #expect(try !tarn("status", "--json").output.contains("\"state\" : \"paused\""))
  }

  /// What the settings may name is left out, and the others are still the agent's.
  @Test func aWordThatSettingsMayNameHidesNoEventsOfOthers() throws {
    try startBeside()
    try place.write("x\n", to: "own/conf.d/files.toml")
    let events = try beside("events", "other", place.path + "/files", "--newest", "1000")
    #expect(events.status == 78 && events.errors.contains("files.toml:1:"), "\(events)")
    #expect(events.output.contains("  files  fetched  f1"), "\(events)")
  }

  /// As for a secret that only root may read: a check by root finds nothing.
  @Test func whatOnlyTheAgentRejectsTheAgentTells() throws {
    try start()
    let good = place.text("tarn.toml") ?? ""
    try settings(good + "evry = \"1h\"\n")
    #expect(try tarn("reload").status == 78)
    #expect(try tarn("status").output.contains("to check them: tarn config check --config "))
    try settings(good)
    let status = try tarn("status")
    #expect(
      status.output.contains("to check them: tarn reload --config \(place.path)/tarn.toml\n"), "\(status)")
    #expect(try tarn("doctor").output.contains("tarn reload --config \(place.path)/tarn.toml"))
    #expect(try tarn("reload").status == 0)
    #expect(try !tarn("status").output.contains("to check them"))
  }

  /// Where the settings' path leads through a link, the folder is still the agent's.
  @Test func aFolderBehindALinkIsTheAgents() throws {
    try place.write("", to: "disk/.keep")
    try FileManager.default.createSymbolicLink(atPath: place.path + "/link", withDestinationPath: "disk")
    try settings(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/link/files\"\n")
    try start()
    #expect(try tarn("sync", "files").status == 0)
    for words in [["status"], ["status", "."]] {
      // The agent looks at the folder once more when it begins to watch it.
      try waitUntil("it is in sync by the agent: \(words)") {
        let outcome = try Tarn.run(
          words + config, environment: home, in: place.url.appendingPathComponent("disk/files"))
        return outcome.output.contains("agent: process") && outcome.output.contains("files: in sync")
          && !outcome.output.contains("no agent keeps")
      }
    }
    let all = try JSON.documents(tarn("status", "--json").output).first?["mirrors"] as? [[String: Any]]
    #expect(all?.count == 1)
  }
}
