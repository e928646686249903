import Foundation
import Testing

/// A mirror whose settings say `dry-run`: whoever asks for a pass gets a plan.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class DryRunTests: AgentHouse {
  private var plain = ""

  init() throws {
    try super.init(files: ["f1": "one\n", "f2": "two\n"])
    plain = place.text("tarn.toml") ?? ""
    try settings(plain + "dry-run = true\n")
  }

  private func status(_ words: String...) throws -> [String: Any] {
    let outcome = try Tarn.run(["status", "--json"] + words + config, environment: home, in: place.url)
    let document = try #require(try JSON.documents(outcome.output).first)
    return try #require((document["mirrors"] as? [[String: Any]])?.first)
  }

  @Test func syncOnlyPlans() throws {
    let quiet = try tarn("sync", "-q", "files")
    #expect(quiet.status == 0 && quiet.output.isEmpty && quiet.errors.isEmpty, "\(quiet)")
    let told = try tarn("sync", "files")
    #expect(told.status == 0 && told.output.contains("to do: 2 to fetch"), "\(told)")
    #expect(told.errors.contains("'dry-run' is in its settings"), "\(told)")
    let json = try JSON.documents(try tarn("sync", "files", "--json").output)
    #expect(json.allSatisfy { $0["schema"] as? String == "tarn-plan/1" }, "\(json)")
    #expect(json.last?["inSync"] as? Bool == false)
    // Options that are given for this pass do not make it one that writes.
    #expect(try tarn("sync", "files", "--delete").output.contains("to do: 2 to fetch"))
    #expect(!place.exists("files") && !place.exists("state/mirrors"))
    let status = try tarn("status", "files")
    #expect(status.output.contains("dry run") && status.output.contains("next: tarn plan files"), "\(status)")
    #expect(try self.status("files")["dryRun"] as? Bool == true)
  }

  /// The others are synced.
  @Test func ofSeveralItAloneIsPlanned() throws {
    try settings(
      plain + "dry-run = true\n\n[mirror.more]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/more\"\n")
    let all = try tarn("sync")
    #expect(all.status == 0 && all.output.contains("to do: 2 to fetch"), "\(all)")
    #expect(place.text("more/f1") == "one\n" && !place.exists("files"))
    let json = try JSON.documents(try tarn("sync", "--json").output)
    #expect(json.last?["mirrors"] as? Int == 2 && json.last?["inSync"] as? Bool == false, "\(json)")
  }

  /// It never comes to be in sync: that others do is to be told all the same.
  @Test func aCheckOfAllLeavesItOut() throws {
    let alone = try tarn("status", "--check")
    #expect(alone.status == 0 && alone.output.hasPrefix("nothing to check: 1 mirror left out"), "\(alone)")
    try settings(
      plain + "dry-run = true\n\n[mirror.more]\nfeed = \"\(server.url("SHA256SUMS"))\"\n"
        + "folder = \"\(place.path)/more\"\n")
    #expect(try tarn("status", "--check").output.hasPrefix("late: more ("))
    #expect(try tarn("sync", "more").status == 0)
    for isAsked in [false, true] {
      if isAsked { try start() }
      let all = try tarn("status", "--check")
      #expect(all.status == 0 && all.output.contains("1 mirror, last success"), "\(all)")
      let named = try tarn("status", "--check", "files", "more")
      #expect(
        named.status == 3 && named.output.hasPrefix("late: files (")
          && named.output.contains("last success never)"), "\(named)")
    }
  }

  /// Also by its folder, and from within it.
  @Test func aMirrorThatWasSyncedBeforeIsPlannedByItsFolder() throws {
    try settings(plain)
    #expect(try tarn("sync", "files").status == 0)
    try settings(plain + "dry-run = true\n")
    try place.remove("files/f1")
    for words in [["files"], [place.path + "/files"], ["./files/"], []] {
      let directory = words.isEmpty ? place.url.appendingPathComponent("files") : place.url
      let sync = try Tarn.run(["sync"] + words + config, environment: home, in: directory)
      #expect(sync.status == 0 && sync.output.contains("to do: 1 to restore"), "\(words): \(sync)")
      #expect(!place.exists("files/f1"), "\(words)")
    }
    let repair = try tarn("verify", "--repair", "files")
    #expect(repair.output.contains("to do: 1 to restore") && !place.exists("files/f1"), "\(repair)")
  }

  /// As `tarn sync NAME` and the schedule ask for it.
  @Test func theAgentSaysWhatIsToDo() throws {
    try start()
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && sync.output.hasPrefix("to do: 2 to fetch, 0 of 2 in place"), "\(sync)")
    #expect(!sync.output.contains("in sync"))
    let json = try #require(try JSON.documents(try tarn("sync", "files", "--json").output).last)
    #expect(json["code"] as? String == "planned" && json["inSync"] as? Bool == false, "\(json)")
    #expect(json["exitStatus"] as? Int == 0)
    let document = try status()
    #expect((document["lastRun"] as? [String: Any])?["code"] as? String == "planned")
    #expect(document["dryRun"] as? Bool == true && document["lastSuccess"] is NSNull, "\(document)")
    let card = try tarn("status", "files")
    #expect(card.output.contains("plan          to do: 2 to fetch"), "\(card)")
    #expect(!place.exists("files") && agent?.errorsSoFar.contains("in sync") == false)
  }
}
