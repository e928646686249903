import Foundation
import Testing

/// `tarn forget` and `tarn trash`: nothing that Tarn did not place goes, whatever became of the ledger.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct LeavingTests {
  private let server: Nginx
  private let place: TemporaryDirectory
  private var folder: String { place.path + "/mirror" }
  private var home: [String: String] { ["HOME": place.path + "/home"] }

  init() throws {
    server = try Nginx(locations: "")
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments, environment: home)
  }

  /// A mirror whose trash holds an edit of the user's.
  private func withAnEditInTheTrash() throws {
    try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), folder).status == 0)
    try place.write("precious\n", to: "mirror/f1")
    try #require(try tarn("sync", "-q", folder).status == 0)
    try #require(place.contents(below: "mirror/.tarn/trash") == ["precious\n"])
  }

  private func damageTheLedger() throws {
    let file = try #require(FileHandle(forUpdatingAtPath: folder + "/.tarn/ledger.sqlite"))
    try file.write(contentsOf: Data("no ledger at all".utf8))
    try file.close()
    for end in ["-wal", "-shm"] { try? place.remove("mirror/.tarn/ledger.sqlite" + end) }
  }

  private func removeTheLedger() throws {
    for end in ["", "-wal", "-shm"] { try? place.remove("mirror/.tarn/ledger.sqlite" + end) }
  }

  private var edits: [String] { place.contents(below: "mirror/.tarn/trash") }

  @Test func aDamagedLedgerVouchesForNothing() throws {
    try withAnEditInTheTrash()
    try damageTheLedger()
    for arguments in [["forget"], ["trash", "empty", "-y"], ["trash", "list"], ["verify"]] {
      let outcome = try Tarn.run(arguments + [folder], environment: home)
      #expect(outcome.status == 74 && outcome.errors.contains("tarn sync"), "\(outcome)")
      #expect(edits == ["precious\n"])
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder + "/.tarn")
    #expect(!names.contains { $0.contains("corrupt") }, "only a pass sets a ledger aside")
    #expect(try tarn("sync", server.url("SHA256SUMS"), folder).status == 0)
    #expect(try tarn("forget", folder).status == 64)
    #expect(edits == ["precious\n"])
    let emptied = try tarn("trash", "empty", "-y", folder)
    #expect(emptied.output.contains("removed 1 file, 9 B"), "\(emptied)")
    #expect(try tarn("forget", folder).status == 0)
    #expect(!place.exists("mirror/.tarn") && place.exists("mirror/f1"))
  }

  @Test func aLostLedgerVouchesForNothing() throws {
    try withAnEditInTheTrash()
    try removeTheLedger()
    let list = try tarn("trash", "list", folder)
    #expect(list.output.contains("found-") && list.output.contains("1 file, 9 B"), "\(list)")
    let refused = try tarn("forget", folder)
    #expect(refused.status == 64 && refused.errors.contains("trash empty"), "\(refused)")
    #expect(edits == ["precious\n"])
    let emptied = try tarn("trash", "empty", "-y", folder)
    #expect(emptied.output.contains("removed 1 file, 9 B"), "\(emptied)")
    #expect(try tarn("forget", folder).status == 0)
  }

  /// Killed after the exchange and before the row: the edit is in the trash, and only the intent speaks of it.
  @Test(.enabled(if: Program.find("strace") != nil, "strace is not installed"))
  func aCrashBeforeTheRowLosesNothing() throws {
    let strace = try #require(Program.find("strace"))
    var isCut = false
    for call in 1...8 where !isCut {
      if place.exists("mirror") { try place.remove("mirror") }
      try #require(try tarn("sync", "-q", "--recreate", server.url("SHA256SUMS"), folder).status == 0)
      try place.write("precious\n", to: "mirror/f1")
      _ = try Program(
        strace,
        [
          "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=\(call)",
          Tarn.path, "sync", "-q", folder,
        ], environment: Tarn.environment(home)
      ).wait()
      isCut = edits.contains("precious\n")
    }
    try #require(isCut, "the kill never came between the exchange and the row")
    let list = try tarn("trash", "list", folder)
    #expect(!list.output.contains("is empty"), "\(list)")
    let refused = try tarn("forget", folder)
    #expect(refused.status == 64, "\(refused)")
    #expect(edits == ["precious\n"])
  }

  /// The directory is Tarn's, what others put into it is not.
  @Test func whatLiesBesideTheLedgerStays() throws {
    try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), folder).status == 0)
    try place.write("mine\n", to: "mirror/.tarn/notes")
    #expect(try tarn("forget", folder).status == 0)
    #expect(place.text("mirror/.tarn/notes") == "mine\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/.tarn") == ["notes"])
  }

  // MARK: - Without a marker

  @Test func forgettingWithoutAMarkerTakesTheStateToo() throws {
    let state = place.path + "/state"
    try #require(
      try tarn("sync", "-q", "--state", state, server.url("SHA256SUMS"), folder).status == 0)
    try place.write("precious\n", to: "mirror/f1")
    try #require(try tarn("sync", "-q", folder).status == 0)
    try place.remove("mirror/.tarn")
    let gone = try tarn("sync", "--state", state, server.url("SHA256SUMS"), folder)
    #expect(gone.status == 73 && gone.errors.contains("tarn forget --state \(state) \(folder)"), "\(gone)")
    let refused = try tarn("forget", "--state", state, folder)
    #expect(refused.status == 64 && refused.errors.contains(state + "/trash"), "\(refused)")
    #expect(place.contents(below: "state/trash") == ["precious\n"])
    try place.remove("state/trash")
    #expect(try tarn("forget", "--state", state, folder).status == 0)
    #expect(!place.exists("state") && place.exists("mirror/f1"))
    let again = try tarn("sync", "--adopt", "--state", state, server.url("SHA256SUMS"), folder)
    #expect(again.status == 0, "\(again)")
  }

  @Test func forgettingWithoutAnIDTakesTheLedgerToo() throws {
    try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), folder).status == 0)
    try place.remove("mirror/.tarn/id")
    #expect(try tarn("forget", folder).status == 0)
    #expect(!place.exists("mirror/.tarn") && place.exists("mirror/f1"))
  }

  @Test func aPointerToNothingIsForgotten() throws {
    let state = place.path + "/state"
    try #require(
      try tarn("sync", "-q", "--state", state, server.url("SHA256SUMS"), folder).status == 0)
    try place.remove("state")
    #expect(try tarn("forget", folder).status == 0)
    #expect(!place.exists("mirror/.tarn") && place.exists("mirror/f1"))
  }

  @Test func oneStateServesOneMirror() throws {
    let state = place.path + "/state"
    let other = place.path + "/other"
    try #require(
      try tarn("sync", "-q", "--state", state, server.url("SHA256SUMS"), folder).status == 0)
    for arguments in [
      ["sync", "--state", state, server.url("SHA256SUMS"), other], ["forget", "--state", state, other],
    ] {
      let outcome = try Tarn.run(arguments, environment: home)
      #expect(outcome.status == 64 && outcome.errors.contains(folder), "\(outcome)")
    }
    #expect(place.exists("state/ledger.sqlite"))
    #expect(try tarn("sync", folder).status == 0)
  }

  // MARK: - A first pass that fails

  /// A look before the other process began must not make its mirror this one's to take back.
  @Test(.enabled(if: Program.find("strace") != nil, "strace is not installed"))
  func aFailedPassTakesBackOnlyItsOwnMirror() throws {
    try server.files.write(server.files.text("SHA256SUMS") ?? "", to: "hd/SHA256SUMS")
    // It is about to make the folder.
    let slow = try HeldTarn(
      at: "mkdirat", 1, ["sync", server.url("hd/SHA256SUMS"), folder], environment: home,
      trace: place.path + "/trace")
    try #require(try tarn("sync", "-q", server.url("SHA256SUMS"), folder).status == 0)
    try place.write("precious\n", to: "mirror/f1")
    try #require(try tarn("sync", "-q", folder).status == 0)
    slow.letGo()
    let outcome = try slow.program.wait()
    #expect(outcome.status == 64 && outcome.errors.contains("follows"), "\(outcome)")
    #expect(edits == ["precious\n"])
    #expect(try tarn("sync", folder).status == 0)
  }

  @Test func aFailedFirstPassLeavesNoDirectories() throws {
    let deep = place.path + "/a/b/c"
    #expect(try tarn("sync", "--retries", "0", server.url("missing"), deep).status == 66)
    #expect(!place.exists("a"))
    let unread = try tarn("sync", "--header-file", "/no/such/file", server.url("SHA256SUMS"), deep)
    #expect(unread.status == 78 && !place.exists("a"), "\(unread)")
  }
}
