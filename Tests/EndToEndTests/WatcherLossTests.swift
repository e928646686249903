import Foundation
import Testing

/// Watching that ends, cannot begin, or is not wanted; and what a pass costs while it works.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class WatcherLossTests: WatchedHouse {
  init() throws {
    try super.init(files: ["f1": "one\n", "f2": "two\n", "sub/f3": "three\n"])
  }

  /// Killed, or held still while it is killed so that the change is made beside its back.
  @Test func aKilledWatcherIsReplacedAndToldOf() throws {
    try startInSync()
    let before = try #require(watcher)
    #expect(kill(before, SIGSTOP) == 0)
    try place.remove("files/f1")
    try place.write("mine\n", to: "files/sub/f3")
    #expect(kill(before, SIGKILL) == 0)
    try waitUntil("what changed meanwhile is repaired") {
      stands("f1", "one\n", mode: 0o644) && stands("sub/f3", "three\n", mode: 0o644)
    }
    try waitForMode("watching")
    #expect(watcher != nil && watcher != before)
    try waitUntil("the journal says so") {
      let events = try events()
      return events.contains("watch-lost") && events.contains("watch-restored")
    }
    #expect(place.contents(below: "files/.tarn/trash").contains("mine\n"))
    let log = agent?.errorsSoFar ?? ""
    #expect(log.contains("watcher-died") && log.contains("killed by signal 9"), "\(log)")
    // It sees again.
    try waitUntilAllNewsAreTaken(by: "f2")
  }

  /// What was to be looked at meanwhile still is.
  @Test func whatChangedWhileTarnsOwnDirectoryWasAwayIsRepaired() throws {
    try startInSync()
    let (own, away) = (place.path + "/files/.tarn", place.path + "/away")
    #expect(rename(own, away) == 0)
    try place.remove("files/f1")
    try waitUntil("status says so") {
      try (self.mirror()["lastFailure"] as? String)?.contains(".tarn is gone") == true
    }
    // The first look at it comes to nothing, and so does the next.
    try waitUntil("two have come to nothing") {
      (agent?.errorsSoFar ?? "").components(separatedBy: "could not be looked at").count > 2
    }
    #expect(rename(away, own) == 0)
    try waitUntil("f1 is back") { stands("f1", "one\n", mode: 0o644) }
    try waitUntil("all is well") { try self.mirror()["state"] as? String == "idle" }
  }

  /// The second restart waits: status says polling meanwhile, and why.
  @Test func aWatcherThatDiesAgainAndAgainIsSaidToBePolling() throws {
    try startInSync()
    var said: (mode: String, reason: String) = ("", "")
    // Each wait is twice as long as the one before.
    try waitUntil("a wait was seen") {
      if let watcher { kill(watcher, SIGKILL) }
      try waitUntil("polling, or watching again") {
        said = try watch()
        return said.mode == "polling" || watcher != nil
      }
      return said.mode == "polling"
    }
    #expect(said.mode == "polling" && said.reason.contains("watcher-died"), "\(said)")
    try waitForMode("watching")
  }

  /// Nothing was read by an agent so far, and none is to be by command only.
  @Test func whatACommandSyncedIsRepaired() throws {
    #expect(try tarn("sync", "files").status == 0)
    try start()
    try waitForMode("watching")
    let bodies = try bodies { try waitUntilAllNewsAreTaken(by: "f1") }
    #expect(bodies == ["/f1"])
    // Also what a command read since, beside the agent: it knows the newer version only.
    try Feeds.publish(["f1": "one\n", "f2": "newer\n", "sub/f3": "three\n"], in: server.files)
    agent?.signal(SIGTERM)
    _ = try agent?.wait()
    #expect(try tarn("sync", "files").status == 0)
    try start()
    try waitForMode("watching")
    try waitUntilAllNewsAreTaken(by: "f2")
    #expect(stands("f2", "newer\n", mode: 0o644))
  }

  @Test func aFolderNeedNotBeWatched() throws {
    try settings((place.text("tarn.toml") ?? "") + "watch = false\n")
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try watch() == ("off", "the next pass finds local changes"))
    #expect(watcher == nil)
    try place.remove("files/f1")
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/f1") == "one\n")
    // And the other way round, without a new start.
    let text = (place.text("tarn.toml") ?? "").replacingOccurrences(of: "watch = false\n", with: "")
    try settings(text)
    #expect(try tarn("reload").status == 0)
    try waitForMode("watching")
    // What is wanted only a pass of a folder that is to be watched writes down.
    #expect(try tarn("sync", "files").status == 0)
    try waitUntilAllNewsAreTaken(by: "f2")
    try settings(text + "watch = false\n")
    #expect(try tarn("reload").status == 0)
    try waitForMode("off")
  }

  /// The next pass after such a failure may be a day away, and it asked another folder. An agent that was killed meanwhile
  /// leaves it to the next one.
  @Test(arguments: [false, true]) func whatAPassSaidOfAnotherFolderIsOverWhenItIsBack(isKilled: Bool) throws {
    try settings((place.text("tarn.toml") ?? "") + "every = \"1d\"\n")
    try startInSync()
    let folder = place.path + "/files"
    #expect(rename(folder, folder + ".away") == 0)
    try place.write("mine\n", to: "files/mine")
    let refused = try tarn("sync", "files")
    #expect(refused.status == 73 && refused.errors.contains("its marker .tarn is gone"), "\(refused)")
    for asked in try [tarn("plan", "files"), tarn("verify", "files"), tarn("explain", "files", "f1")] {
      #expect(asked.status == 73 && asked.errors.contains("tarn sync --adopt files"), "\(asked)")
    }
    #expect(try mirror()["state"] as? String == "failing")
    if isKilled {
      agent?.signal(SIGKILL)
      _ = try agent?.wait()
    }
    #expect(rename(folder, folder + ".other") == 0 && rename(folder + ".away", folder) == 0)
    try place.remove("files/f1")
    if isKilled { try start() }
    try waitUntil("a pass has found all well") {
      let mirror = try self.mirror()
      return (mirror["lastRun"] as? [String: Any])?["code"] as? String == "in-sync"
    }
    let after = try mirror()
    #expect(after["state"] as? String == "idle" && !(after["lastFailure"] is String), "\(after)")
    #expect(after["nextRunReason"] as? String == "scheduled" && stands("f1", "one\n", mode: 0o644))
  }

  @Test func whatChangesDuringAPauseIsSaidToWaitForItsEnd() throws {
    try startInSync()
    #expect(try tarn("pause", "files").status == 0)
    try place.remove("files/f1")
    try waitUntil("the status tells") {
      try self.watch().reason == "local changes wait for 'tarn resume files'"
    }
    #expect(try tarn("resume", "files").status == 0)
    try waitUntil("f1 is back") { stands("f1", "one\n", mode: 0o644) }
    try waitUntil("nothing waits") { try self.watch().reason.isEmpty }
  }

  @Test func aFolderThatWasMovedAwayIsSeenAgain() throws {
    try startInSync()
    let folder = place.path + "/files"
    #expect(rename(folder, folder + ".away") == 0)
    try waitForMode("polling")
    let reason = try watch().reason
    #expect(reason.contains("gone"), "\(reason)")
    #expect(!place.exists("files"), "nothing is made in its place")
    #expect(try mirror()["lastSuccess"] is String)
    try FileManager.default.removeItem(atPath: folder + ".away/f1")
    #expect(rename(folder + ".away", folder) == 0)
    try waitForMode("watching")
    try waitUntil("f1 is back") { stands("f1", "one\n", mode: 0o644) }
    try waitUntilAllNewsAreTaken(by: "sub/f3")
    let events = try events()
    #expect(events.contains("watch-lost") && events.contains("watch-restored"), "\(events)")
  }

  /// Nothing tells it from a mirror that was never synced but that there was one.
  @Test func aFolderInThePlaceOfTheMirrorsIsToldOf() throws {
    try startInSync()
    let folder = place.path + "/files"
    #expect(rename(folder, folder + ".away") == 0)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try waitUntil("status says what is the matter") {
      let mirror = try self.mirror()
      return mirror["state"] as? String == "failing"
        && (mirror["lastFailure"] as? String)?.contains("was a mirror, and its folder was moved or deleted")
          == true
    }
    let text = try tarn("status").output
    #expect(text.contains("was a mirror, and its folder was moved or deleted"), "\(text)")
    #expect(place.contents(below: "files").isEmpty, "nothing is fetched but by a pass")
    // The agent may just make or remove a file of its own there.
    try waitUntil("it is removed") {
      try? FileManager.default.removeItem(atPath: folder)
      return !FileManager.default.fileExists(atPath: folder)
    }
    #expect(rename(folder + ".away", folder) == 0)
    try waitForMode("watching")
    #expect(try mirror()["state"] as? String == "idle")
    try waitUntilAllNewsAreTaken(by: "f1")
  }

  /// As where only one of the two programs was copied.
  @Test func withoutItsProgramItPolls() throws {
    let alone = place.path + "/alone/tarn"
    try place.write("", to: "alone/.keep")
    try Tarn.copy(to: alone)
    let program = try Program(
      alone, ["agent"] + config, environment: Tarn.environment(home), in: place.url)
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("status says why") {
      let watch = try watch()
      return watch.mode == "polling" && watch.reason.contains("watcher-missing")
        && watch.reason.contains(alone + "-watch")
    }
    try place.remove("files/f1")
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/f1") == "one\n")
  }

  @Test(arguments: [SIGTERM, SIGKILL]) func noWatcherOutlivesItsAgent(_ number: Int32) throws {
    try startInSync()
    let program = try #require(agent)
    let before = try #require(watcher)
    program.signal(number)
    let outcome = try program.wait()
    #expect(number == SIGKILL ? outcome.wasKilled : outcome.status == 0, "\(outcome)")
    try waitUntil("tarn-watch is gone") { !Self.isRunning(before) }
    // What changes while no agent runs is found by the next one.
    try place.remove("files/f1")
    try place.write("mine\n", to: "files/f2")
    try start()
    try waitUntil("both are as the feed wants them") {
      stands("f1", "one\n", mode: 0o644) && stands("f2", "two\n", mode: 0o644)
    }
    #expect(place.contents(below: "files/.tarn/trash").contains("mine\n"))
  }

  // MARK: - What a pass costs

  /// The paths that the agent's system calls name during a pass, and whether it read a directory.
  private func calls(during body: () throws -> Void) throws -> String {
    let log = place.path + "/calls"
    let strace = try #require(Program.find("strace"))
    let tracer = try Program(
      strace, ["-f", "-e", "trace=file,getdents64", "-o", log, "-p", String(try #require(agent).pid)])
    try waitUntil("it is traced") { tracer.errorsSoFar.contains("attached") }
    try body()
    tracer.signal(SIGINT)
    _ = try tracer.wait()
    return place.text("calls") ?? ""
  }

  private static let canTrace: Bool = {
    guard let strace = Program.find("strace") else { return false }
    return (try? Program(strace, ["-qq", "-o", "/dev/null", "true"]).wait())?.status == 0
  }()

  @Test(.enabled(if: canTrace, "strace cannot trace here"))
  func aPassOverWhatIsSeenAndUnchangedScansNothing() throws {
    // A feed that was just written may be written again within the second, so that nothing tells the two.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: server.files.path + "/SHA256SUMS")
    try startInSync()
    // Of the pass before it knows that the feed has not changed.
    try waitUntilAllNewsAreTaken(by: "f2")
    #expect(try tarn("sync", "files").status == 0)
    // A pass beside the end of the repair looks at the folder. Nothing shows from outside when the repair is over.
    try waitUntil("a pass scans nothing") {
      var statuses: [String] = []
      let calls = try self.calls {
        let requests = try server.requests {
          let sync = try tarn("sync", "files")
          #expect(sync.status == 0 && sync.output.contains("in sync: 3 files"), "\(sync)")
        }
        statuses = requests.map(\.status)
      }
      #expect(statuses == ["304"])
      #expect(calls.contains(".tarn"), "the trace sees the pass")
      return !calls.contains("\"f1\"") && !calls.contains("\"sub\"")
    }
    // Where nobody watches, the same pass looks at each.
    try settings((place.text("tarn.toml") ?? "") + "watch = false\n")
    #expect(try tarn("reload").status == 0)
    let scan = try self.calls {
      let sync = try tarn("sync", "files")
      #expect(sync.status == 0, "\(sync)")
    }
    #expect(scan.contains("\"f1\"") || scan.contains("getdents64"), "\(scan)")
  }
}
