import Foundation
import Testing

/// What the agent does not make good by itself, and how it goes when it is told to go twice.
@Suite(
  .serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentLossTests: AgentHouse {
  private var folder: String { place.path + "/files" }

  init() throws {
    try super.init(files: ["a.iso": "aaa\n"])
  }

  private func expectLoss() throws {
    let outcome = try tarn("sync", "files")
    #expect(outcome.status == 73, "\(outcome)")
    #expect(outcome.errors.contains("moved or deleted; nothing was changed"), "\(outcome)")
    #expect(outcome.errors.contains("tarn sync --recreate files"), "\(outcome)")
    #expect(!place.exists("files"))
  }

  /// Before any pass has met it, and after.
  @Test(arguments: [true, false]) func whatHelpsIsSaid(hasAgent: Bool) throws {
    try settings(
      ["one", "two", "files"].map {
        "[mirror.\($0)]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/\($0)\"\n"
      }.joined())
    if hasAgent { try start() }
    #expect(try tarn("sync").status == 0)
    for name in ["one", "two"] { try remove(place.path + "/" + name) }
    for _ in 0..<2 {
      var status = ""
      // A pass that the agent makes by itself may be at work.
      try waitUntil("it says what helps") {
        status = try tarn("status").output
        return status.contains(
          "gone: the folders of one, two were moved or deleted; move them back, or change their folders in the "
            + "settings; to fetch all of them again: tarn sync --recreate one two --config ")
      }
      #expect(status.split(separator: "\n").count { $0.contains("one") } == 2, "\(status)")
      var card = ""
      try waitUntil("it says so of one") {
        card = try tarn("status", "one").output
        return card.contains(
          "  hint          move it back, or change its folder in the settings; to fetch all of it again: ")
      }
      #expect(!card.contains("next: "), "\(card)")
      #expect(try tarn("sync", "one", "two").status == 73)
    }
    #expect(try tarn("sync", "--recreate", "one", "two").status == 0)
    try waitUntil("nothing is gone") { try !tarn("status").output.contains("gone") }
  }

  /// Removes a folder in which the agent may just make or remove a file of its own.
  private func remove(_ folder: String) throws {
    try waitUntil("it is removed") {
      try? FileManager.default.removeItem(atPath: folder)
      return !FileManager.default.fileExists(atPath: folder)
    }
  }

  /// `mv` is no order to fetch all of it again.
  @Test(arguments: [true, false]) func aFolderThatIsGoneIsMadeAnewByOrderOnly(hasAgent: Bool) throws {
    if hasAgent { try start() }
    // A folder that never was there is made.
    #expect(try tarn("sync", "files").status == 0)
    try FileManager.default.moveItem(atPath: folder, toPath: folder + ".moved")
    try expectLoss()
    try expectLoss()
    try FileManager.default.moveItem(atPath: folder + ".moved", toPath: folder)
    #expect(try tarn("sync", "files").status == 0)
    try remove(folder)
    try expectLoss()
    let anew = try tarn("sync", "--recreate", "files")
    #expect(anew.status == 0 && place.text("files/a.iso") == "aaa\n", "\(anew)")
    guard let agent else { return }
    let log = agent.errorsSoFar
    #expect(log.contains("1 mirror; without 'every' or 'schedule', and so only by command: files"), "\(log)")
    #expect(log.contains("files: a pass begins\n") && log.contains("files: planned: 1 file; "), "\(log)")
    #expect(log.contains("files: in sync: 1 file, 4 B (1 fetched) in "), "\(log)")
  }

  /// An agent that begins after the folder went knows what the one before it knew.
  @Test func aPausedMirrorThatIsGoneIsJudgedAlikeByEachAgent() throws {
    let program = try start()
    #expect(try tarn("sync", "files").status == 0)
    try FileManager.default.moveItem(atPath: folder, toPath: folder + ".moved")
    #expect(try tarn("sync", "files").status == 73)
    #expect(try tarn("pause", "files").status == 0)
    func expectJudgement() throws {
      let check = try tarn("status", "--check", "--format", "nagios", "files")
      #expect(check.status == 1 && check.output.hasPrefix("TARN WARNING: failing: files ("), "\(check)")
      let card = try tarn("status", "files").output
      #expect(card.contains("\n  hint          move it back"), "\(card)")
      #expect(
        card.hasSuffix("\nnext: follow the hint, then: tarn resume files --config \(place.path)/tarn.toml\n"),
        "\(card)")
    }
    try expectJudgement()
    program.signal(SIGTERM)
    #expect(try program.wait().status == 0)
    try start()
    try expectJudgement()
    #expect(try tarn("sync", "files").status == 73)
    try FileManager.default.moveItem(atPath: folder + ".moved", toPath: folder)
    let card = try tarn("status", "files").output
    #expect(
      !card.contains("moved or deleted")
        && card.hasSuffix("\nnext: tarn resume files --config \(place.path)/tarn.toml\n"), "\(card)")
  }

  /// The record that lies elsewhere stays, with its trash, and leads to the new folder.
  @Test(arguments: [true, false]) func aMirrorWhoseStateIsElsewhereKeepsIt(hasAgent: Bool) throws {
    try settings(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(folder)\"\nstate = \"\(place.path)/kept\"\n"
    )
    if hasAgent { try start() }
    #expect(try tarn("sync", "files").status == 0)
    try server.files.write("AAA\n", to: "a.iso")
    try Feeds.publish(["a.iso": "AAA\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 0)
    // As JSON: that says when, and not how long ago.
    let trash = try tarn("trash", "list", "--json", "files").output
    #expect(trash.contains("a.iso"))
    try remove(folder)
    for arguments in [["sync"], ["plan"], ["verify"]] {
      let refused = try Tarn.run(arguments + ["files"] + config, environment: home, in: place.url)
      #expect(refused.status == 73 && refused.errors.contains("tarn sync --recreate files"), "\(refused)")
      #expect(place.exists("kept/ledger.sqlite"))
    }
    try waitUntil("the status says so") {
      let status = try tarn("status").output
      return status.contains("failing") && status.contains("tarn sync --recreate files")
    }
    let anew = try tarn("sync", "--recreate", "files")
    #expect(anew.status == 0 && place.text("files/a.iso") == "AAA\n", "\(anew)")
    #expect(try tarn("trash", "list", "--json", "files").output == trash)
  }

  /// What was in sync before it was forgotten says nothing of the mirror that comes after it.
  @Test func aMirrorThatWasForgottenIsNotInSync() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("status", "--check", "files").status == 0)
    // No pass can mend it.
    try FileManager.default.removeItem(at: server.files.url.appending(path: "SHA256SUMS"))
    try remove(folder)
    #expect(try tarn("forget", "files").status == 0)
    let check = try tarn("status", "--check", "files")
    #expect(check.status == 3 && check.output.contains("late: files"), "\(check)")
  }

  /// Why its last pass had failed is told no more, once it is forgotten.
  @Test func whatWasSaidOfAnEmptiedFolderIsForgottenWithIt() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try remove(folder)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(try tarn("sync", "files").status == 73)
    #expect(try tarn("status", "--check", "files").output.contains("was a mirror"))
    #expect(try tarn("forget", "files").status == 0)
    let check = try tarn("status", "--check", "files")
    #expect(check.status == 3 && !check.output.contains("was a mirror"), "\(check)")
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("status", "--check", "files").status == 0)
  }

  /// To take what is there is no order to fetch what is not.
  @Test func aMirrorThatAdoptsIsMadeAnewByOrderOnly() throws {
    try settings(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(folder)\"\nadopt = true\n")
    try place.write("text", to: "files/notes")
    #expect(try tarn("sync", "files").status == 0)
    try FileManager.default.moveItem(atPath: folder, toPath: folder + ".moved")
    try expectLoss()
    #expect(try tarn("sync", "--recreate", "files").status == 0)
    // Its marker alone may be lost: then all of it is there.
    try place.remove("files/.tarn")
    #expect(try tarn("sync", "files").status == 0)
  }

  /// A pass would refuse it, and the status says the same.
  @Test func aFolderThatIsNotEmptyIsTakenByOrderOnly() throws {
    try place.write("text", to: "files/notes")
    let refused = try tarn("sync", "files")
    let status = try tarn("status")
    for text in [refused.errors, status.output] {
      #expect(
        text.contains("is not empty, and no mirror of Tarn's") && text.contains("tarn sync --adopt files"),
        "\(text)")
    }
    #expect(!status.output.contains("next: "), "\(status)")
    #expect(try tarn("sync", "--adopt", "files").status == 0)
    #expect(try tarn("status").output.contains("in sync"))
  }

  /// Whoever looks after the other place, by hand, does not let the agent fetch all of it again.
  @Test(arguments: [true, false]) func aSyncOfTheOtherPlaceLetsNothingGo(hasAgent: Bool) throws {
    if hasAgent { try start() }
    #expect(try tarn("sync", "files").status == 0)
    try FileManager.default.moveItem(atPath: folder, toPath: folder + ".moved")
    #expect(try tarn("sync", folder + ".moved").status == 0)
    for _ in 0..<2 {
      try expectLoss()
      try waitUntil("the status says what helps") {
        let status = try tarn("status", "files").output
        return status.contains("failing") && status.contains("tarn sync --recreate files")
      }
      try waitUntil("the check fails") { try tarn("status", "--check", "files").status == 3 }
    }
    for command in ["plan", "verify"] {
      let outcome = try tarn(command, "files")
      #expect(outcome.status == 73 && outcome.errors.contains("tarn sync --recreate files"), "\(outcome)")
    }
    let explained = try tarn("explain", folder + "/a.iso")
    #expect(explained.status == 73 && explained.errors.contains("--recreate files"), "\(explained)")
    #expect(!place.exists("files"))
  }

  /// As timeout(1) sends it: to the process, and to its group.
  @Test func twoSignalsAtOnceAreOne() throws {
    let agent = try start()
    agent.signal(SIGTERM)
    agent.signal(SIGTERM)
    let outcome = try agent.wait()
    #expect(outcome.status == 0 && !outcome.wasKilled, "\(outcome)")
    #expect(!place.exists("run/tarn.sock") && !place.exists("run/status.sock"))
  }

  @Test func anAgentWithoutMirrorsSaysWhereToWriteThem() throws {
    try settings("")
    let agent = try start()
    try waitUntil("it says where") {
      agent.errorsSoFar.contains("0 mirrors: write \(self.place.path)/tarn.toml")
    }
  }
}
