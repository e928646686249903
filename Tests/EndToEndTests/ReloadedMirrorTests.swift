import Foundation
import Testing

/// A mirror whose table changes, or goes, under a running agent.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class ReloadedMirrorTests: AgentHouse {
  private let silent: SilentServer

  init() throws {
    let silent = try SilentServer()
    self.silent = silent
    try super.init(
      locations: "location = /hanging { proxy_pass http://127.0.0.1:\(silent.port); }",
      files: ["f1": "one\n"],
      options: "every = \"1h\"")
  }

  private func reload(feed: String = "SHA256SUMS", folder: String) throws {
    try settings(
      """
      [mirror.files]
      feed = "\(server.url(feed))"
      folder = "\(place.path)/\(folder)"
      every = "1h"

      """)
    let outcome = try tarn("reload")
    #expect(outcome.status == 0 && outcome.output.contains("changed: files"), "\(outcome)")
  }

  private func mirrors() throws -> [[String: Any]] {
    try JSON.documents(tarn("status", "--json").output).first?["mirrors"] as? [[String: Any]] ?? []
  }

  /// The settings name it, and the agent that runs has not read them since.
  @Test func oneThatTheAgentHasNotReadYetIsSaidToBeSo() throws {
    try start()
    let old = try #require(place.text("tarn.toml"))
    let new =
      old + "\n[mirror.later]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/later\"\n"
    try settings(new)
    for isSynced in [false, true] {
      if isSynced { #expect(try tarn("sync", "later").status == 0) }
      let card = try tarn("status", "later")
      #expect(card.output.contains("the agent has not read these settings yet"), "\(card)")
      #expect(
        card.output.hasSuffix("next: tarn reload --config \(place.path)/tarn.toml\n")
          && !card.output.contains("no agent keeps"), "\(card)")
    }
    for verb in ["pause", "resume", "retry", "cancel", "prioritize"] {
      for word in ["later", "./later", "later:f1"] {
        let outcome = try tarn(verb, word)
        #expect(outcome.status == 64 && outcome.errors.contains("read them yet: tarn reload"), "\(outcome)")
      }
      let nobody = try tarn(verb, "nobody")
      #expect(nobody.status == 64 && nobody.errors.contains("'tarn status' lists them"), "\(nobody)")
    }
    // It goes by other settings than these.
    try place.write(new, to: "other.toml")
    let other = ["--config", place.path + "/other.toml", "--socket", place.path + "/run/tarn.sock"]
    for words in [["status", "later"], ["pause", "later"]] {
      let outcome = try Tarn.run(words + other, environment: home, in: place.url)
      #expect(!(outcome.output + outcome.errors).contains("tarn reload"), "\(outcome)")
    }
    let doctor = try Tarn.run(["doctor", "--offline"] + other, environment: home, in: place.url)
    #expect(doctor.output.contains("the agent of these settings does not run"), "\(doctor)")
    #expect(doctor.output.contains("which answers, is another agent"), "\(doctor)")
    #expect(try tarn("reload").output.contains("added: later"))
    #expect(try !tarn("status", "later").output.contains("reload"))
    #expect(try tarn("pause", "later").status == 0)
  }

  /// Whoever follows all mirrors hears of those that come later, too.
  @Test func whoFollowsHearsOfANewOne() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    let follower = try begin("events", "--follow")
    defer { follower.signal(SIGKILL) }
    try waitUntil("it follows") { follower.outputSoFar.contains("files  fetched") }
    try settings(
      (place.text("tarn.toml") ?? "") + """

        [mirror.later]
        feed = "\(server.url("SHA256SUMS"))"
        folder = "\(place.path)/later"
        every = "1h"

        """)
    #expect(try tarn("reload").status == 0)
    try waitUntil("it is told") { follower.outputSoFar.contains("later  fetched  f1") }
    // By its folder, without the agent.
    #expect(try tarn("sync", server.url("SHA256SUMS"), place.path + "/third").status == 0)
    agent?.signal(SIGTERM)
    try waitUntil("it is told without an agent") {
      follower.outputSoFar.contains("/third  fetched  f1")
    }
  }

  /// From its ledger, for the agent says nothing of it any more.
  @Test func whoFollowsHearsOnOfOneThatIsTakenOut() throws {
    let both =
      (place.text("tarn.toml") ?? "") + """

        [mirror.other]
        feed = "\(server.url("SHA256SUMS"))"
        folder = "\(place.path)/other"
        every = "1h"

        """
    try settings(both)
    try start()
    for name in ["files", "other"] { #expect(try tarn("sync", name).status == 0) }
    let follower = try begin("events", "--follow")
    defer { follower.signal(SIGKILL) }
    try waitUntil("it follows") { follower.outputSoFar.contains("other  fetched") }
    let files = try #require(both.range(of: "[mirror.other]")).lowerBound
    try settings(String(both[files...]))
    #expect(try tarn("reload").output.contains("removed: files"))
    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
    #expect(try tarn("sync", place.path + "/files").status == 0)
    try waitUntil("it is told") { follower.outputSoFar.contains("files  fetched  f2") }
    #expect(try tarn("sync", "other").status == 0)
    try waitUntil("both are told") {
      follower.outputSoFar.contains("other  fetched  f2")
    }
    #expect(follower.outputSoFar.components(separatedBy: "fetched  f1").count == 3, "\(follower.outputSoFar)")
  }

  /// What it did before anybody followed.
  @Test func anOldOneThatComesBackIsNoNews() throws {
    let text = place.text("tarn.toml") ?? ""
    func other(_ name: String) -> String {
      "\n[mirror.\(name)]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/\(name)\"\nevery = \"1h\"\n"
    }
    try settings(text + other("old"))
    #expect(try tarn("sync", "files", "old").status == 0)
    try settings(text)
    // What the list of this user's mirrors says would make it known from the beginning.
    for file in try FileManager.default.contentsOfDirectory(atPath: place.path + "/state") {
      try place.remove("state/" + file)
    }
    try start()
    // Events have whole seconds.
    let second = Int(Date().timeIntervalSince1970)
    try waitUntil("the next second") { Int(Date().timeIntervalSince1970) > second }
    let follower = try begin("events", "--follow")
    defer { follower.signal(SIGKILL) }
    try waitUntil("it follows") { follower.outputSoFar.contains("files  fetched  f1") }
    try settings(text + other("old") + other("new"))
    #expect(try tarn("reload").output.contains("added: new, old"))
    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
    for name in ["old", "new"] { #expect(try tarn("sync", name).status == 0) }
    for words in ["old  fetched  f2", "new  fetched  f1", "new  fetched  f2"] {
      try waitUntil("it is told: \(words)") { follower.outputSoFar.contains(words) }
    }
    #expect(!follower.outputSoFar.contains("old  fetched  f1"), "\(follower.outputSoFar)")
  }

  /// What is known of the old one says nothing of it.
  @Test func anotherFolderIsSyncedSoon() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("status", "--check", "files").status == 0)
    #expect(try tarn("pause", "files").status == 0)
    try reload(folder: "two")
    let mirror = try #require(try mirrors().first)
    #expect(mirror["lastSuccess"] as? String == nil && mirror["lastAttempt"] as? String == nil, "\(mirror)")
    #expect(try tarn("status", "--check", "files").status == 3)
    #expect(try tarn("resume", "files").status == 0)
    try waitUntil("it is synced") { place.text("two/f1") == "one\n" }
    var said: Outcome?
    do {
      try waitUntil("it is said") {
        said = try tarn("status", "--check", "files")
        return said?.status == 0
      }
    } catch {
      Issue.record("\(said?.output ?? "") \(said?.errors ?? "")")
    }
  }

  @Test func anotherFeedIsFollowedSoon() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    let file = try server.files.write("two\n", to: "other/f2")
    try server.files.write("\(Feeds.sha256(file))  f2\n", to: "other/SHA256SUMS")
    try reload(feed: "other/SHA256SUMS", folder: "files")
    try waitUntil("it is fetched") { place.text("files/f2") == "two\n" }
  }

  /// Its pass ends first.
  @Test func whatIsRemovedInAPassGoes() throws {
    try settings(
      "[mirror.files]\nfeed = \"\(server.url("hanging"))\"\nfolder = \"\(place.path)/files\"\nevery = \"1h\"\n"
    )
    try start()
    let sync = try begin("sync", "files")
    try waitUntil("its pass is at work") { try mirrors().first?["run"] is Int }
    try settings("")
    #expect(try tarn("reload").output.contains("removed: files"))
    try waitUntil("it is gone") { try mirrors().isEmpty }
    let ended = try sync.wait()
    #expect(
      ended.status == 73 && ended.errors.contains("files was taken out of the agent's settings")
        && ended.errors.contains("hint: "), "\(ended)")
  }

  /// Nobody knows of the pass that was asked for.
  @Test func whoWaitsForOneThatWentAndCameBackIsNotForgotten() throws {
    func table(_ feed: String) -> String {
      "[mirror.files]\nfeed = \"\(server.url(feed))\"\nfolder = \"\(place.path)/files\"\n"
    }
    try settings(table("hanging"))
    try start()
    let first = try begin("sync", "files")
    defer { first.signal(SIGKILL) }
    try waitUntil("a pass is at work") { try mirrors().first?["run"] is Int }
    let sync = try begin("sync", "files")
    defer { sync.signal(SIGKILL) }
    try waitUntil("it waits") { sync.errorsSoFar.contains("waiting for the pass before it to end") }
    sync.signal(SIGSTOP)
    let second = Int(Date().timeIntervalSince1970)
    try waitUntil("the next second") { Int(Date().timeIntervalSince1970) > second }
    try settings("")
    #expect(try tarn("reload").output.contains("removed: files"))
    try waitUntil("it is gone") { try mirrors().isEmpty }
    try settings(table("SHA256SUMS"))
    #expect(try tarn("reload").output.contains("added: files"))
    sync.signal(SIGCONT)
    let ended = try sync.wait()
    #expect(ended.status == 0 && place.text("files/f1") == "one\n", "\(ended)")
  }

  /// The one that goes still ends its pass; the folder is the other one's from then on.
  @Test func aMirrorThatIsRenamedInAPassIsStillSeen() throws {
    func table(_ name: String, _ feed: String) throws {
      try settings(
        "[mirror.\(name)]\nfeed = \"\(server.url(feed))\"\nfolder = \"\(place.path)/files\"\nevery = \"1h\"\n"
      )
    }
    func watch() throws -> String? { (try mirrors().first?["watch"] as? [String: Any])?["mode"] as? String }
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("it is watched") { try watch() == "watching" }
    try table("files", "hanging")
    #expect(try tarn("reload").status == 0)
    try waitUntil("its pass is at work") { try mirrors().first?["run"] is Int }
    try table("other", "hanging")
    #expect(try tarn("reload").status == 0)
    try waitUntil("the other one is watched") {
      try mirrors().map { $0["name"] as? String } == ["other"] && watch() == "watching"
    }
    let events = try tarn("events", "--json", "other")
    #expect(events.status == 0 && !events.output.contains("watch-lost"), "\(events)")
  }

  @Test func settingsThatAreNotThereAreRefusedBesideAnAgent() throws {
    try start()
    for words in [
      ["status"], ["status", "files"], ["status", "--check"], ["sync", "files"], ["pause", "files"],
    ] {
      let outcome = try Tarn.run(
        words + ["--config", place.path + "/none.toml"], environment: home, in: place.url)
      #expect(outcome.status == 78 && outcome.errors.contains("none.toml"), "\(words): \(outcome)")
    }
  }

  /// The record of the agent cannot be written.
  @Test func aPauseThatCannotBeKeptSaysSo() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try place.write("", to: "state/agent.new/in-the-way")
    for words in ["is paused until", "is paused already"] {
      let outcome = try tarn("pause", "files")
      #expect(outcome.status == 74 && outcome.errors.contains(words), "\(outcome)")
      #expect(outcome.errors.contains("only until the agent ends"), "\(outcome)")
    }
    try place.remove("state/agent.new")
    #expect(try tarn("pause", "files").status == 0)
  }
}
