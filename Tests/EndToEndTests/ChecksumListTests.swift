import Foundation
import Testing

/// The main road: a checksum list on a real server, and a folder that follows it.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct ChecksumListTests {
  private let server: Nginx
  private let place: TemporaryDirectory
  private var files: TemporaryDirectory { server.files }
  private var feed: String { server.url("SHA256SUMS") }
  private var folder: String { place.path + "/mirror" }

  init() throws {
    server = try Nginx()
    place = try TemporaryDirectory()
  }

  private func sync(_ options: String...) throws -> Outcome {
    try Tarn.run(["sync", feed, folder, "--no-input"] + options)
  }

  /// The folder holds exactly these files and the list, byte for byte.
  private func expectMirror(_ expected: [String: String], _ comment: Comment? = nil) {
    let mirror = place.files().filter { $0.hasPrefix("mirror/") && !$0.hasPrefix("mirror/.tarn/") }
      .map { String($0.dropFirst(7)) }
    #expect(mirror == (expected.keys + ["SHA256SUMS"]).sorted(), comment)
    #expect(place.text("mirror/SHA256SUMS") == files.text("SHA256SUMS"), comment)
    for (path, contents) in expected { #expect(place.text("mirror/" + path) == contents, "\(path)") }
  }

  /// The first pass of each test.
  private func start(_ wanted: [String: String], _ options: String...) throws {
    try Feeds.publish(wanted, in: files)
    let outcome = try Tarn.run(["sync", feed, folder, "--no-input"] + options)
    try #require(outcome.status == 0, "\(outcome)")
  }

  @Test func aNewFolderGetsEveryFile() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    expectMirror(wanted)
    #expect(place.exists("mirror/.tarn/id"))
    #expect(place.exists("mirror/.tarn/ledger.sqlite"))
    let modes = try FileManager.default.attributesOfItem(atPath: folder + "/.tarn")
    #expect((modes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    let left = try FileManager.default.contentsOfDirectory(atPath: folder + "/.tarn/partial")
    #expect(left == [])
  }

  @Test func aSecondPassDownloadsNoBody() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    let requests = try server.requests {
      let outcome = try sync()
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(requests.filter { $0.isBody && !$0.uri.hasSuffix("SHA256SUMS") }.map(\.uri) == [])
    expectMirror(wanted)
  }

  @Test func theFolderKnowsItsFeed() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    try place.remove("mirror/many/file 3.txt")
    let byFolder = try Tarn.run(["sync", folder, "--no-input"])
    #expect(byFolder.status == 0, "\(byFolder)")
    try place.remove("mirror/many/file 4.txt")
    let inside = try Tarn.run(["sync", "--no-input"], in: URL(fileURLWithPath: folder))
    #expect(inside.status == 0, "\(inside)")
    expectMirror(wanted)
  }

  @Test func anotherFeedIsRefusedUnlessAsked() throws {
    try start(Feeds.sample(2))
    try files.write(files.text("SHA256SUMS") ?? "", to: "OTHERSUMS")
    let refused = try Tarn.sync(server.url("OTHERSUMS"), folder)
    #expect(refused.status == 64, "\(refused)")
    #expect(refused.errors.contains("--change-feed"), "\(refused)")
    let taken = try Tarn.sync(server.url("OTHERSUMS"), folder, "--change-feed")
    #expect(taken.status == 0, "\(taken)")
  }

  @Test func whatChangedUpstreamComesAndNothingElse() throws {
    var wanted = Feeds.sample()
    try start(wanted)
    wanted["many/file 5.txt"] = "a new version\n"
    wanted["new/file.txt"] = "new\n"
    try Feeds.publish(wanted, in: files)
    let requests = try server.requests {
      let outcome = try sync()
      #expect(outcome.status == 0, "\(outcome)")
    }
    expectMirror(wanted)
    let bodies = requests.filter { $0.isBody && !$0.uri.hasSuffix("SHA256SUMS") }.map(\.uri)
    #expect(Set(bodies) == ["/many/file%205.txt", "/new/file.txt"])
  }

  @Test func aFileDeletedHereComesBack() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    try place.remove("mirror/many/file 7.txt")
    let outcome = try sync()
    #expect(outcome.status == 0, "\(outcome)")
    expectMirror(wanted)
  }

  @Test func aFileEditedHereGoesToTheTrashAndIsRestored() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    try place.write("edited by hand\n", to: "mirror/many/file 8.txt")
    let outcome = try sync()
    #expect(outcome.status == 0, "\(outcome)")
    expectMirror(wanted)
    #expect(place.contents(below: "mirror/.tarn/trash").contains("edited by hand\n"))
    let list = try Tarn.run(["trash", "list", folder])
    #expect(list.status == 0 && list.output.contains("file 8.txt"), "\(list)")
  }

  @Test func aFileThatTarnNeverPlacedIsAConflictAndUntouched() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    var more = wanted
    more["mine.txt"] = "upstream\n"
    try place.write("mine\n", to: "mirror/mine.txt")
    try Feeds.publish(more, in: files)
    let outcome = try sync()
    #expect(outcome.status == 3, "\(outcome)")
    #expect((outcome.output + outcome.errors).contains("mine.txt"), "\(outcome)")
    #expect(place.text("mirror/mine.txt") == "mine\n")
  }

  @Test func nothingIsDeletedWithoutTheOption() throws {
    let wanted = Feeds.sample(30)
    try start(wanted)
    var fewer = wanted
    fewer["many/file 1.txt"] = nil
    try Feeds.publish(fewer, in: files)
    let outcome = try sync()
    #expect(outcome.status == 0, "\(outcome)")
    #expect(place.text("mirror/many/file 1.txt") != nil)
  }

  @Test func aFewDeletionsGoToTheTrash() throws {
    let wanted = Feeds.sample(30)
    try start(wanted, "--delete")
    var fewer = wanted
    fewer["many/file 1.txt"] = nil
    fewer["many/file 2.txt"] = nil
    try Feeds.publish(fewer, in: files)
    let outcome = try sync()
    #expect(outcome.status == 0, "\(outcome)")
    expectMirror(fewer)
    #expect(place.contents(below: "mirror/.tarn/trash").contains(wanted["many/file 1.txt"] ?? ""))
  }

  @Test func manyDeletionsAreHeldUntilTheyAreApproved() throws {
    let wanted = Feeds.sample(30)
    try start(wanted, "--delete")
    let fewer = wanted.filter { !$0.key.hasPrefix("many/file 2") }
    try Feeds.publish(fewer, in: files)
    let held = try sync()
    #expect(held.status == 3, "\(held)")
    #expect((held.output + held.errors).contains("approve"), "\(held)")
    expectMirror(wanted)
    let requests = try server.requests {
      let approved = try Tarn.run(["approve", folder, "--no-input", "--yes"])
      #expect(approved.status == 0, "\(approved)")
    }
    #expect(requests.isEmpty, "approve needs no network")
    expectMirror(fewer)
  }

  @Test func aMirrorThatDeletesNoMoreHasNothingToApprove() throws {
    let wanted = Feeds.sample(30)
    try start(wanted, "--delete")
    try Feeds.publish(wanted.filter { !$0.key.hasPrefix("many/file 2") }, in: files)
    #expect(try sync().status == 3)
    let unset = try Tarn.run(["config", "unset", folder, "delete"])
    #expect(unset.status == 0 && unset.output.contains("is dropped: "), "\(unset)")
    let check = try Tarn.run(["status", "--check", folder])
    #expect(check.status == 0, "\(check)")
    let approved = try Tarn.run(["approve", folder, "--no-input", "--yes"])
    #expect(approved.status == 64 && approved.errors.contains("no plan is held"), "\(approved)")
    expectMirror(wanted)
    #expect(try sync().status == 0)
    expectMirror(wanted)
  }

  /// The files of a copy are not those that Tarn placed: none of them goes, and the pass says so.
  @Test func aCopyOfAMirrorWithDeletionsThatWaitSaysWhatItLeaves() throws {
    let wanted = Feeds.sample(30)
    try start(wanted, "--delete")
    let fewer = wanted.filter { !$0.key.hasPrefix("many/file 2") }
    try Feeds.publish(fewer, in: files)
    #expect(try sync().status == 3)
    try FileManager.default.copyItem(atPath: folder, toPath: place.path + "/copy")
    try FileManager.default.removeItem(atPath: folder)
    try FileManager.default.moveItem(atPath: place.path + "/copy", toPath: folder)
    let copied = try sync()
    let files = wanted.count - fewer.count
    #expect(
      copied.output.contains("\(files) files no longer in the feed, and changed or copied here"), "\(copied)")
    expectMirror(wanted)
  }

  /// What the feed dropped and somebody deleted is to be forgotten: the plan says so, and its status too.
  @Test func whatIsToBeForgottenIsToDo() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    var fewer = wanted
    fewer["many/file 1.txt"] = nil
    try Feeds.publish(fewer, in: files)
    #expect(try sync().status == 0)
    try place.remove("mirror/many/file 1.txt")
    let plan = try Tarn.run(["plan", folder, "--exit-code"])
    #expect(plan.status == 2 && plan.output.contains("1 to forget"), "\(plan)")
    #expect(try sync().status == 0)
    let after = try Tarn.run(["plan", folder, "--exit-code"])
    #expect(after.status == 0 && after.output.contains("nothing to do"), "\(after)")
  }

  @Test func aPlanChangesNothing() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    let quiet = try Tarn.run(["plan", folder, "--exit-code"])
    #expect(quiet.status == 0, "\(quiet)")
    try place.remove("mirror/many/file 9.txt")
    let plan = try Tarn.run(["plan", folder, "--exit-code"])
    #expect(plan.status == 2, "\(plan)")
    #expect(plan.output.contains("many/file 9.txt"), "\(plan)")
    let dry = try sync("--dry-run")
    #expect(dry.status == 0, "\(dry)")
    #expect(!place.exists("mirror/many/file 9.txt"))
  }

  @Test func verifyFindsWhatWasDamaged() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    let good = try Tarn.run(["verify", folder])
    #expect(good.status == 0, "\(good)")
    try place.write("damaged\n", to: "mirror/many/file 2.txt")
    let bad = try Tarn.run(["verify", folder])
    #expect(bad.status == 3, "\(bad)")
    #expect((bad.output + bad.errors).contains("file 2.txt"), "\(bad)")
    let repaired = try Tarn.run(["verify", folder, "--repair"])
    #expect(repaired.status == 0, "\(repaired)")
    expectMirror(wanted)
  }

  @Test func explainNamesThePath() throws {
    try start(Feeds.sample())
    let outcome = try Tarn.run(["explain", folder, "many/file 2.txt"])
    #expect(outcome.status == 0 && outcome.output.contains("many/file 2.txt"), "\(outcome)")
  }

  @Test func forgetKeepsTheFiles() throws {
    let wanted = Feeds.sample()
    try start(wanted)
    let outcome = try Tarn.run(["forget", folder, "--yes", "--no-input"])
    #expect(outcome.status == 0, "\(outcome)")
    expectMirror(wanted)
  }

  @Test(arguments: [["status"], ["plan"], ["verify"], ["trash", "list"]])
  func everyReportHasASchema(command: [String]) throws {
    try start(Feeds.sample(3))
    let outcome = try Tarn.run(command + [folder, "--json"])
    #expect(outcome.status == 0, "\(outcome)")
    let documents = try JSON.documents(outcome.output)
    #expect(!documents.isEmpty, "\(outcome)")
    for document in documents {
      let schema = document["schema"] as? String ?? ""
      #expect(schema.hasPrefix("tarn-") && schema.hasSuffix("/1"), "\(outcome)")
    }
  }

  @Test func theStatusDocumentHasWhatItsContractNames() throws {
    try start(Feeds.sample(3))
    let document = try #require(JSON.documents(Tarn.run(["status", folder, "--json"]).output).first)
    let mirror = try #require((document["mirrors"] as? [[String: Any]])?.first)
    #expect(mirror["state"] as? String == "idle")
    let entries = try #require(mirror["entries"] as? [String: Any])
    #expect(entries["wanted"] as? Int == 6)
    #expect(entries["current"] as? Int == 6)
    #expect((mirror["problems"] as? [Any])?.isEmpty == true)
  }

  @Test func checkIsForMonitoring() throws {
    try start(Feeds.sample(3))
    #expect(try Tarn.run(["status", folder, "--check", "--max-age", "24h"]).status == 0)
    try place.remove("mirror/many/file 2.txt")
    try files.remove("many/file 2.txt")
    #expect(try sync().status == 3)
    // Not yet late, for the last success is young enough; but failing.
    let failing = try Tarn.run(["status", folder, "--check", "--max-age", "24h"])
    #expect(
      failing.status == 3 && failing.output.hasPrefix("failing: \(folder) (many/file 2.txt: "), "\(failing)")
    let nagios = try Tarn.run(["status", folder, "--check", "--format", "nagios"])
    #expect(nagios.status == 1 && nagios.output.hasPrefix("TARN WARNING: failing: "), "\(nagios)")
  }

  @Test func checkWantsASuccess() throws {
    try Feeds.publish(Feeds.sample(3), in: files)
    try files.remove("many/file 2.txt")
    #expect(try Tarn.run(["sync", feed, folder, "--no-input", "--retries", "0"]).status == 3)
    #expect(try Tarn.run(["status", folder, "--check", "--max-age", "24h"]).status == 3)
  }

  @Test func noColourAndNoAnimationOffATerminal() throws {
    try start(Feeds.sample(3))
    for command in [["status", folder], ["plan", folder], ["sync", folder]] {
      let outcome = try Tarn.run(command)
      #expect(!(outcome.output + outcome.errors).contains { $0 == "\u{1B}" || $0 == "\r" }, "\(command)")
    }
  }
}
