import Foundation
import Testing

/// `tarn approve` of a mirror that a running agent keeps.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentApprovalTests: AgentHouse {
  private static let count = 30
  /// Has `slow.bin`.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: "location = /slow.bin { \(held.location) }", files: Self.files, options: "delete = true")
  }

  private static var files: [String: String] {
    Dictionary(uniqueKeysWithValues: (0..<count).map { ("f\($0)", "\($0)\n") })
  }

  /// After a pass over all files the feed names a few only, and perhaps one that takes its time.
  private func hold(_ more: [String: String] = [:]) throws -> String {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try Feeds.publish(["f0": "0\n", "f1": "1\n"].merging(more) { $1 }, in: server.files)
    if more.isEmpty { #expect(try tarn("sync", "files").status == 3) }
    return try heldPlan()
  }

  private func mirror() throws -> [String: Any] {
    let document = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    return try #require((document["mirrors"] as? [[String: Any]])?.first)
  }

  private func heldPlan() throws -> String {
    ((try mirror()["held"] as? [String: Any])?["plan"] as? String) ?? ""
  }

  /// With an agent as without.
  @Test func aMirrorThatIsNotThereIsToldAsElsewhere() throws {
    let words = [["approve", "files"], ["approve", "files", "1a2b3c4d"], ["verify", "files"]]
    for isThere in [false, true] {
      if isThere { try start() }
      for asked in words {
        let outcome = try Tarn.run(asked + config, environment: home, in: place.url)
        #expect(outcome.status == 73 && outcome.errors.contains("there is no folder"), "\(asked): \(outcome)")
      }
    }
  }

  /// `delete` was taken out of the settings: nothing is left to approve.
  @Test func aMirrorThatDeletesNoMoreHasNothingToApprove() throws {
    let plan = try hold()
    let kept = try #require(place.text("tarn.toml")).split(separator: "\n").filter { !$0.hasPrefix("delete") }
    try place.write(kept.joined(separator: "\n") + "\n", to: "tarn.toml")
    #expect(try tarn("reload").status == 0)
    #expect(try heldPlan() == "" && mirror()["state"] as? String != "held")
    #expect(try tarn("approve", "-y", "files").errors.contains("no plan is held"))
    #expect(agent?.errorsSoFar.contains("plan \(plan) is dropped") == true)
    #expect(try tarn("events", "--json", "files").output.contains("plan-dropped"))
  }

  @Test func theAgentCarriesItOut() throws {
    let plan = try hold()
    #expect(try tarn("approve", "files", "00000000").errors.contains("the held one is \(plan)"))
    let shown = try tarn("approve", "files")
    #expect(
      shown.status == 64 && shown.errors.contains("  f10\n") && shown.errors.contains("files \(plan)"),
      "\(shown)")
    #expect(shown.errors.contains("  and 18 more\n"), "\(shown)")
    let all = try tarn("approve", "-v", "files").errors
    #expect((2..<Self.count).allSatisfy { all.contains("  f\($0)\n") } && !all.contains("more"), "\(all)")
    let approved = try tarn("approve", "files", plan, "--json")
    let line = try #require(try JSON.documents(approved.output).first)
    #expect(approved.status == 0 && line["schema"] as? String == "tarn-approve/1", "\(approved)")
    #expect(line["type"] as? String == "summary" && line["deleted"] as? Int == Self.count - 2)
    #expect(agent?.errorsSoFar.contains("plan \(plan): 28 moved to the trash") == true)
    #expect(!place.exists("files/f10") && place.exists("files/f1"))
    let again = try tarn("approve", "files")
    #expect(again.status == 64 && again.errors.contains("no plan is held"), "\(again)")
  }

  /// It does not have to be said again when the pass, which may take days, is over; nor after a kill.
  @Test(arguments: [false, true]) func besideAPassItIsAcceptedForLater(isKilled: Bool) throws {
    let long = String(repeating: "0123456789abcdef", count: 120_000)
    _ = try hold(["slow.bin": long])
    let sync = try begin("sync", "files", "--json")
    try waitUntil("the plan is held while a file comes") {
      try mirror()["state"] as? String == "transferring" && heldPlan() != ""
    }
    let plan = try heldPlan()
    #expect(try tarn("approve", "files", "00000000").status == 64)
    let approved = try tarn("approve", "files", "--yes")
    #expect(approved.status == 0 && approved.output.contains("as soon as the current pass"), "\(approved)")
    #expect(place.exists("files/f10"))
    if isKilled {
      agent?.signal(SIGKILL)
      _ = try agent?.wait()
      _ = try sync.wait()
      #expect(place.exists("files/f10"))
      held.open()
      // It begins with what was cut short.
      try start()
    } else {
      held.open()
      let ended = try sync.wait()
      #expect(ended.status == 0 && ended.output.contains("plan \(plan) was approved: 28 moved"), "\(ended)")
      let counts = try #require(try JSON.documents(ended.output).last?["counts"] as? [String: Any])
      #expect(counts["deleted"] as? Int == 28 && counts["held"] as? Int == 0, "\(counts)")
    }
    try waitUntil("it has gone ahead") { !place.exists("files/f10") }
    #expect(try tarn("sync", "files").status == 0)
    #expect(place.text("files/slow.bin") == long && !place.exists("files/f29") && place.exists("files/f0"))
    #expect(try heldPlan() == "")
    let events = try tarn("events", "--newest", "1000").output
    #expect(events.split(separator: "\n").count { $0.contains("plan-approved") } == 1, "\(events)")
    let record = place.text("state/agent") ?? ""
    #expect(record.contains("files\t") && !record.contains("approved="), "\(record)")
  }
}

private enum Member {
  static let obstacle: String? =
    Tarn.obstacleWithServer
    ?? (geteuid() != 0 || Program.find("setpriv") == nil ? "only root can be another user, by setpriv" : nil)
}

/// A member of the socket's group who may read neither the agent's settings nor its mirrors.
@Suite(.serialized, .enabled(if: Member.obstacle == nil, "\(Member.obstacle ?? "")"))
final class AgentMemberTests: AgentHouse {
  init() throws {
    try super.init(files: ["f0": "0\n", "f1": "1\n", "f2": "2\n"], options: "delete = true")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place.path)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: place.path + "/tarn.toml")
    try Tarn.copy(to: place.path + "/tarn")
  }

  /// The socket of a system without the group `tarn` has the agent's own group, which is root's here.
  private func member(_ arguments: String...) throws -> Outcome { try ask(arguments, group: getegid()) }

  private func ask(
    _ arguments: [String], group: UInt32, environment more: [String: String] = [:]
  ) throws -> Outcome {
    let user = ["--reuid", "65400", "--regid", "\(group)", "--clear-groups", place.path + "/tarn"]
    return try Program(
      Program.find("setpriv") ?? "", user + arguments + ["--socket", place.path + "/run/tarn.sock"],
      environment: Tarn.environment(more), in: URL(fileURLWithPath: "/")
    ).wait()
  }

  /// Without a mirror of one's own there is nothing else to tell.
  @Test func whoMayNotAskIsTold() throws {
    try settings((place.text("tarn.toml") ?? "") + "\n[agent]\nstatus-access = \"owner\"\n")
    try start()
    let status = try member("status")
    #expect(status.status == 77 && status.errors.contains("may not connect"), "\(status)")
    #expect(!status.errors.contains("tarn sync FEED"), "\(status)")
  }

  /// Its status is open to everyone, and lists the mirror.
  @Test func whoMayNotAskLearnsTheWayToForget() throws {
    try start()
    #expect(try ask(["status"], group: 65_400).output.contains("files"))
    for verb in ["forget", "remove", "pause"] {
      let outcome = try ask([verb, "files"], group: 65_400)
      #expect(
        outcome.status == 77 && outcome.errors.contains("may not connect")
          && outcome.errors.contains("use sudo"), "\(verb): \(outcome)")
    }
    // A member of the group gets an answer, and has no settings with that name.
    let removed = try member("remove", "files")
    #expect(
      removed.status == 64 && removed.errors.contains("an agent keeps the mirror files")
        && removed.errors.contains("put 'sudo' before the command"), "\(removed)")
  }

  /// A name that is nearly one's own is misspelled, whatever an agent knows that may not be asked.
  @Test func whoMayNotAskLearnsOfTheOwnNameThatIsNear() throws {
    try start()
    try place.write(
      "[mirror.foobar]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"/nonexistent/foobar\"\n",
      to: "own/tarn.toml")
    for verb in ["remove", "forget"] {
      let outcome = try ask(
        [verb, "foobr"], group: 65_400, environment: ["CONFIGURATION_DIRECTORY": place.path + "/own"])
      #expect(
        outcome.status == 77 && outcome.errors.contains("or did you mean 'foobar'?"), "\(verb): \(outcome)")
    }
  }

  /// To adopt it would not help.
  @Test func aFolderOfAnotherUserIsNotAdvisedToBeAdopted() throws {
    try place.write("text", to: "full/notes")
    let outcome = try ask(["sync", server.url("SHA256SUMS"), place.path + "/full"], group: 65_400)
    #expect(
      outcome.status == 77 && outcome.errors.contains("this user may not write there")
        && !outcome.errors.contains("--adopt"), "\(outcome)")
  }

  /// The socket for everyone is there, and what keeps it from answering is no lack of rights.
  @Test func whoGetsNoAnswerIsNotSaidToBeRefused() throws {
    let agent = try start()
    let answered = try ask(["status"], group: 65_400)
    #expect(answered.status == 0 && answered.output.contains("files"), "\(answered)")
    agent.signal(SIGSTOP)
    defer { agent.signal(SIGCONT) }
    let silent = try ask(["status"], group: 65_400)
    #expect(silent.status == 69 && silent.errors.contains("status.sock does not answer"), "\(silent)")
    #expect(!silent.errors.contains("may not connect"), "\(silent)")
  }

  @Test func theAgentIsAskedOrTheWayIsSaid() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try Feeds.publish(["f0": "0\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 3)
    let folder = place.path + "/files"
    for words in [
      ["explain", "files", "f1"], ["verify", "files"], ["plan", "files"], ["trash", "list", "files"],
    ] {
      for mirror in ["files", folder] {
        let asked = words.map { $0 == "files" ? mirror : $0 }
        let outcome = try member(asked[0], asked[1], asked.count > 2 ? asked[2] : "--no-input")
        #expect(
          outcome.status == 77 && outcome.errors.contains("Permission denied")
            && outcome.errors.contains("it belongs to root: put 'sudo' before the command"),
          "\(asked): \(outcome)")
      }
    }
    // What forget would refuse is not advised.
    let removed = try member("remove", folder)
    #expect(removed.status == 77 && removed.errors.contains("Permission denied"), "\(removed)")
    // A path in a mirror that may not be looked into lies in one nevertheless.
    for words in [["explain", folder + "/f1"], ["status", folder + "/f0"], ["verify", folder + "/none"]] {
      let outcome = try ask(words, group: getegid())
      #expect(
        outcome.status == 77 && outcome.errors.contains("Permission denied")
          && outcome.errors.contains("put 'sudo' before the command"), "\(words): \(outcome)")
    }
    let shown = try member("approve", "files")
    #expect(
      shown.status == 64 && shown.errors.contains("moves 2 files")
        && shown.errors.contains("only a user who may read"),
      "\(shown)")
    let approved = try member("approve", "files", "--yes")
    #expect(approved.status == 0 && approved.output.contains("2 files moved to the trash"), "\(approved)")
    #expect(!place.exists("files/f1") && place.exists("files/f0"))
  }
}
