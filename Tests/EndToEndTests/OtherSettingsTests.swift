import Foundation
import Testing

/// A pass by other settings than the agent's, which the agent has no part in.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class OtherSettingsTests: WatchedHouse {
  init() throws {
    try super.init(
      files: ["f1": "one\n", "f2": "two\n", "f3": "three\n"],
      options: "every = \"1d\"\nlocal-changes = \"report\"")
  }

  /// After conflicts the next pass may be a day away.
  @Test(arguments: [false, true]) func whatChangesAfterwardsIsSeenThoughItBacksOff(isAway: Bool) throws {
    try startInSync()
    try place.write("mine\n", to: "files/f1")
    // The watcher tells of it a moment later, and an unchanged feed is not compared before.
    try waitUntil("a pass sees it") { try self.tarn("sync", "files").status == 3 }
    #expect(try mirror()["nextRunReason"] as? String == "backing-off")
    if isAway {
      agent?.signal(SIGTERM)
      _ = try agent?.wait()
    }
    let nobody = ["--socket", place.path + "/nobody.sock"]
    let other = try Tarn.run(
      ["sync", "files", "--local-changes", "restore"] + nobody + config, environment: home, in: place.url)
    #expect(other.status == 0 && place.text("files/f1") == "one\n", "\(other)")
    if isAway {
      try start()
      try waitForMode("watching")
    }
    try place.remove("files/f2")
    try waitUntil("it is reported") {
      let mirror = try self.mirror()
      let codes = (mirror["problems"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? String }
      let current = (mirror["entries"] as? [String: Int])?["current"]
      return mirror["state"] as? String == "failing" && codes == ["locally-deleted"] && current == 2
    }
    let advice = "local-changes = \"restore\" below [mirror.files] of the settings, then: tarn reload"
    for word in ["files", place.path + "/files"] {
      for answer in [{ try self.tarn("verify", word) }, { try self.tarn("explain", word, "f2") }] {
        var last: Outcome?
        // It may still count what is in place.
        try waitUntil("it is let") {
          last = try answer()
          return last?.status != 75
        }
        #expect(last?.output.contains(advice) == true, "\(last.debugDescription)")
      }
    }
  }
}

/// Problems that are found again and again.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class KnownProblemTests: WatchedHouse {
  init() throws {
    try super.init(
      files: ["f1": "one\n", "f2": "two\n"], options: "every = \"1d\"\nlocal-changes = \"report\"")
  }

  /// Of f1: what the status says.
  private func attempts() throws -> Int? {
    let problems = try mirror()["problems"] as? [[String: Any]] ?? []
    return problems.first { $0["path"] as? String == "f1" }?["attempts"] as? Int
  }

  private var warnings: Int { (agent?.errorsSoFar ?? "").components(separatedBy: "conflict: f1:").count - 1 }

  @Test func onlyPassesCountAndLooksRepeatNothing() throws {
    try startInSync()
    try place.write("mine\n", to: "files/f1")
    try waitUntil("it is found") { try attempts() != nil }
    #expect(try attempts() == 0 && warnings == 1)
    #expect(try !tarn("explain", "files", "f1").output.contains("passes"))
    #expect(try tarn("sync", "files").status == 3)
    // Its log comes through a pipe.
    try waitUntil("the pass tells it, too") { warnings >= 2 }
    #expect(try attempts() == 1 && warnings == 2, "\(agent?.errorsSoFar ?? "")")
    for round in 1...2 {
      if let watcher { kill(watcher, SIGKILL) }
      try waitUntil("it is watched again, and all was looked at") {
        try events().filter { $0 == "watch-restored" }.count == round
      }
      try waitForMode("watching")
    }
    try place.remove("files/f2")
    try waitUntil("it looks at parts again") {
      (agent?.errorsSoFar ?? "").contains("conflict: f2:")
    }
    #expect(try attempts() == 1 && warnings == 2, "\(agent?.errorsSoFar ?? "")")
  }
}

/// A pass by other settings, of a mirror whose passes come by command only.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class OtherSettingsByCommandTests: WatchedHouse {
  init() throws {
    try super.init(files: ["f1": "one\n", "f2": "two\n"])
  }

  @Test func whatWaitsForAPassIsNotCalledInSync() throws {
    try startInSync()
    let other = try Tarn.run(
      ["sync", "files", "--retries", "1", "--socket", place.path + "/nobody.sock"] + config,
      environment: home,
      in: place.url)
    #expect(other.status == 0, "\(other)")
    try place.remove("files/f2")
    try waitsForTheCommand()
  }

  /// Other settings are no order to make a pass, where passes come by order.
  @Test func soItIsAfterAReload() throws {
    try startInSync()
    try settings((place.text("tarn.toml") ?? "") + "retries = 1\n")
    #expect(try tarn("reload").status == 0)
    let requests = try server.requests().count
    try place.remove("files/f2")
    try waitsForTheCommand(since: requests)
  }

  /// - Parameter requests: so many came before; none more is to come by itself.
  private func waitsForTheCommand(since requests: Int? = nil) throws {
    try waitUntil("it is told") {
      let mirror = try self.mirror()
      return mirror["state"] as? String == "failing"
        && (mirror["lastFailure"] as? String ?? "").hasPrefix("local changes wait for 'tarn sync files': ")
    }
    if let requests { #expect(try server.requests().count == requests) }
    #expect(
      try tarn("status", "files").output.hasSuffix("next: tarn sync files --config \(place.path)/tarn.toml\n")
    )
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/f2") == "two\n")
    #expect(try mirror()["state"] as? String == "idle")
  }
}
