import Foundation
import Testing

/// What the trash keeps for good, and what it lets go after seven days, with the built binary.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithTools == nil, "\(Tarn.obstacleWithTools ?? "")"))
struct TrashTests {
  private let server: Nginx
  private let place: TemporaryDirectory
  private var folder: String { place.path + "/mirror" }
  private var home: [String: String] { ["HOME": place.path + "/home"] }
  private var files = ["f6": "six\n", "f7": "seven\n"]

  init() throws {
    server = try Nginx(locations: "")
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    try Feeds.publish(files, in: server.files)
    try #require(
      try tarn("sync", "-q", "--delete", "--no-keep-list", server.url("SHA256SUMS"), folder).status == 0)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments, environment: home)
  }

  private func sync() throws {
    let outcome = try tarn("sync", "-q", folder)
    #expect(outcome.status == 0, "\(outcome)")
  }

  /// The next pass with this feed.
  private func sync(_ files: [String: String]) throws {
    try Feeds.publish(files, in: server.files)
    try sync()
  }

  private func run(_ script: String) throws {
    let python = try #require(Program.find("python3"))
    let ledger = folder + "/.tarn/ledger.sqlite"
    let outcome = try Program(python, ["-c", script, ledger]).wait()
    try #require(outcome.status == 0, "\(outcome)")
  }

  /// As if everything in the trash had been moved there so many days earlier.
  private func passDays(_ days: Int) throws {
    try run(
      """
      import sqlite3, sys
      with sqlite3.connect(sys.argv[1]) as ledger:
          ledger.execute("UPDATE trash SET moved = moved - \(days) * 86400 * 1000000000")
      """)
  }

  private var trash: [String] { place.contents(below: "mirror/.tarn/trash").sorted() }

  /// Path, reason and own of each file of the trash.
  private func list() throws -> [String] {
    let outcome = try tarn("trash", "list", "--json", folder)
    let rows = try JSON.documents(outcome.output).first?["files"] as? [[String: Any]] ?? []
    return rows.map { "\($0["path"] ?? "") \($0["reason"] ?? "") \($0["own"] ?? "")" }.sorted()
  }

  @Test func whatTarnPlacedExpires() throws {
    try sync(["f6": "new six\n", "f7": "seven\n"])
    #expect(try list() == ["f6 replaced 1"])
    try passDays(6)
    try sync()
    #expect(trash == ["six\n"])
    try passDays(2)
    try sync()
    #expect(trash == [])
    #expect(try list() == [])
  }

  @Test(arguments: [false, true])
  func whatWasAdoptedStays(isReplaced: Bool) throws {
    try place.write("my own bytes\n", to: "mirror/mine")
    try sync(files.merging(["mine": "my own bytes\n"]) { $1 })
    let explained = try tarn("explain", folder, "mine")
    #expect(explained.output.contains("it was there already, and was adopted on 20"), "\(explained)")
    #expect(explained.output.contains("  adopted "), "\(explained)")
    #expect(try tarn("explain", folder, "f6").output.contains("Tarn placed it on 20"))
    try sync(isReplaced ? files.merging(["mine": "theirs\n"]) { $1 } : files)
    #expect(try list() == [isReplaced ? "mine replaced 0" : "mine deleted 0"])
    #expect(trash == ["my own bytes\n"])
    try passDays(8)
    try sync()
    #expect(trash == ["my own bytes\n"])
    let refused = try tarn("forget", folder)
    #expect(refused.status == 64 && refused.errors.contains("trash empty"), "\(refused)")
    #expect(try tarn("trash", "empty", "-y", folder).status == 0)
    #expect(trash == [])
  }

  @Test func whatIsWrittenAfterTheMoveStays() throws {
    let writer = try #require(FileHandle(forWritingAtPath: folder + "/f6"))
    defer { try? writer.close() }
    try sync(["f6": "new six\n", "f7": "seven\n"])
    #expect(try list() == ["f6 replaced 1"])
    try writer.seekToEnd()
    try writer.write(contentsOf: Data("USER BYTES\n".utf8))
    try writer.close()
    // Said at once, and before anything goes.
    #expect(try list() == ["f6 edited 0"])
    let refused = try tarn("forget", folder)
    #expect(refused.status == 64 && refused.errors.contains("trash empty"), "\(refused)")
    for _ in 0..<2 {
      try passDays(8)
      try sync()
      #expect(trash == ["six\nUSER BYTES\n"])
      #expect(try list() == ["f6 edited 0"])
    }
    #expect(place.text("mirror/f6") == "new six\n")
  }

  /// A file is the same whatever its mode and links.
  @Test func otherModesAndLinksKeepNothing() throws {
    try FileManager.default.linkItem(atPath: folder + "/f6", toPath: place.path + "/link")
    try sync()
    try sync(["f6": "new six\n", "f7": "seven\n"])
    try place.remove("link")
    try passDays(8)
    try sync()
    #expect(trash == [])
  }

  /// Where an older version recorded nothing of whose bytes they are, the trash is left alone.
  @Test func anOlderLedgersTrashStays() throws {
    try place.write("my own bytes\n", to: "mirror/mine")
    try sync(files.merging(["mine": "my own bytes\n"]) { $1 })
    try sync(["f6": "new six\n", "f7": "seven\n", "mine": "my own bytes\n"])
    #expect(try list() == ["f6 replaced 1"])
    let tools = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Tools").path
    try run("import sys; sys.path.insert(0, '\(tools)'); import bench; bench.turn_back(sys.argv[1])")
    // Who only asks need not wait for a pass to bring it up to date.
    let asked = try Tarn.run(["status", "--check", "--max-age", "24h", folder], environment: home)
    #expect(asked.status == 0, "\(asked)")
    try sync(["f7": "seven\n", "f6": "new six\n"])
    #expect(try list() == ["f6 replaced 0", "mine deleted 0"])
    try passDays(8)
    try sync()
    #expect(trash == ["my own bytes\n", "six\n"])
    // From here on it is known.
    try sync(["f7": "seven\n", "f6": "newer six\n"])
    try passDays(8)
    try sync()
    #expect(trash == ["my own bytes\n", "six\n"])
  }

  /// What comes to the trash while the question stands was not asked about.
  @Test(arguments: [false, true]) func onlyWhatWasAskedAboutGoes(isNamed: Bool) throws {
    try sync(["f6": "new six\n", "f7": "seven\n"])
    try sync(["f6": "newer six\n", "f7": "seven\n"])
    #expect(trash == ["new six\n", "six\n"])
    let terminal = try PseudoTerminal()
    let program = try Tarn.start(
      ["trash", "empty", folder] + (isNamed ? ["f6"] : []), environment: home, in: place.url,
      terminal: terminal.path)
    defer { program.signal(SIGKILL) }
    let question = isNamed ? "Remove 2 files (f6), " : "Remove all 2 files, "
    try waitUntil("it asks") { terminal.shown.contains("[y/N]") }
    #expect(terminal.shown.contains(question), "\(terminal.shown)")
    try sync(["f6": "newest six\n", "f7": "seven\n"])
    terminal.type("y\n")
    try waitUntil("it has removed them") { terminal.shown.contains("removed 2 files") }
    #expect(try program.wait().status == 0)
    #expect(trash == ["newer six\n"])
  }

  /// A path means every file that had it, and so does what is said.
  @Test func aPathMeansAllThatHadIt() throws {
    try sync(["f6": "new six\n", "f7": "seven\n"])
    try sync(["f6": "newer six\n", "f7": "new seven\n"])
    let outcome = try tarn("trash", "empty", "-y", folder, "f6")
    #expect(outcome.output.hasPrefix("removed 2 files, "), "\(outcome)")
    #expect(trash == ["seven\n"])
  }
}
