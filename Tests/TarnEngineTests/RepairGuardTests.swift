import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What a repair must not do, whatever it is asked to look at.
@Suite struct RepairGuardTests {
  /// Its bytes would be fetched for each change of another file.
  @Test func whatFailedIsNotTriedAgainToCount() throws {
    let world = try world()
    world.folder.delete("a".path)
    world.folder.fail(.install, with: FolderFailure(.permission, "as told"))
    #expect(try world.repair([Region("a".path, .itself)]).needsPass)
    let counted = try world.repair([.everything], onlyCounts: true)
    #expect(world.server.urls.isEmpty && !counted.needsPass && counted.report.counts.failed == 0)
    #expect(try world.ledger.problem(name: "a".bytes)?.code == "permission-denied")
    #expect(world.ledger.contents.facts[.feedRecord] == nil)
    // What was not tried before is.
    world.folder.delete("b".path)
    #expect(try world.repair([.everything], onlyCounts: true).report.counts.restored == 1)
    #expect(world.server.urls == [World.host + "b"])
    // And what calls for a look may have been its end.
    #expect(try world.repair([.everything]).report.counts.restored == 1 && world.text("a") == "text of a")
    #expect(try world.ledger.problem(name: "a".bytes) == nil)
  }

  /// No pass could bring it, for something in the folder was in its way.
  @Test(arguments: [FolderFailure.Code.permission, .noSpace])
  func whatTheFolderKeptOutIsBroughtOnceItMay(code: FolderFailure.Code) throws {
    let world = try world()
    world.feedFailure = nil
    world.want("new", "text of new")
    world.folder.fail(.install, with: FolderFailure(code, "as told"))
    try world.run()
    #expect(world.text("new") == nil)
    _ = try world.repair([Region("new".path, .itself)])
    #expect((world.text("new") == "text of new") == (code == .permission))
  }

  /// Whose directory is what changed, however deep the file lies.
  @Test func whatFailedBelowADirectoryIsTriedAgainOnceThatChanges() throws {
    let world = try world { $0.want("sub/deep/d", "text of d") }
    for name in ["sub/deep/d", "sub/c"] {
      world.folder.delete(name.path)
      world.folder.fail(.install, with: FolderFailure(.permission, "as told"))
      #expect(try world.repair([Region(name.path, .itself)]).needsPass)
    }
    #expect(try world.repair([Region("sub".path, .itself)]).report.counts.restored == 2)
    #expect(world.text("sub/deep/d") == "text of d" && world.text("sub/c") == "text of sub/c")
  }

  private func world(_ change: (World) -> Void = { _ in }) throws -> World {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.policy.retries = 0
    for name in ["a", "b", "sub/c"] { world.want(name, "text of \(name)") }
    change(world)
    #expect(try world.run().isInSync)
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  @Test func aFolderThatWasReplacedIsNotLookedAt() throws {
    let world = try world()
    world.folder.setIntact(false)
    let failure = #expect(throws: PassFailure.self) { try world.repair([.everything]) }
    #expect(failure?.code == "folder-replaced", "\(String(describing: failure))")
  }

  /// As before a pass: what a crash left half done is not taken for a change of the user's.
  @Test func itFinishesFirstWhatACrashLeft() throws {
    let world = try world()
    let row = try #require(world.row("a"))
    try world.ledger.apply([
      .intent(
        Intent(
          kind: .install, path: "a".path, partialName: "none", trashName: "none", row: row,
          displacesOwn: true))
    ])
    try world.repair([itself("b")])
    #expect(world.ledger.contents.intents.isEmpty)
    #expect(world.text("a") == "text of a")
  }

  @Test func aStopEndsItBeforeItHasLooked() throws {
    let world = try world()
    world.folder.delete("a".path)
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    pass.stop.set()
    let looks = world.folder.count(.look)
    let failure = #expect(throws: PassFailure.self) { try pass.repair([itself("a")], folder: world.folder) }
    #expect(failure?.kind == .stopped && world.text("a") == nil)
    #expect(world.folder.count(.look) == looks)
  }

  /// Whether the file can be had by now nobody has found out.
  @Test func oneThatIsStoppedSolvesNoProblem() throws {
    let world = try world()
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    world.folder.delete("a".path)
    #expect(try world.repair([itself("a")]).needsPass)
    world.server.answer(World.host + "a", FakeAnswer(hangs: true))
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    world.server.onRequest { _ in pass.stop.set() }
    let report = try pass.repair([itself("a")], folder: world.folder)
    #expect(report.report.wasStopped && world.text("a") == nil)
    #expect(world.ledger.contents.problems.values.map(\.code) == ["http-404"])
  }

  @Test func aProblemThatIsThereAgainStays() throws {
    let world = try world()
    world.server.script(World.host + "a", [FakeAnswer(status: 404), FakeAnswer(status: 410)])
    world.folder.delete("a".path)
    try world.repair([itself("a")])
    #expect(world.ledger.contents.problems.values.map(\.code) == ["http-404"])
    try world.repair([itself("a")])
    #expect(world.ledger.contents.problems.values.map(\.code) == ["http-410"])
  }

  /// A server that says that nothing changed would keep it from looking at what the repair left.
  @Test func thePassThatFollowsHasToLook() throws {
    let world = try world { world in
      world.location = .remote(url: UnchangedFeedTests.list)
      world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"1\"", body: "list".bytes))
    }
    #expect(world.ledger.contents.facts[.feedRecord] != nil)
    #expect(try !world.repair([.everything]).needsPass)
    #expect(world.ledger.contents.facts[.feedRecord] != nil)
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    world.folder.delete("a".path)
    #expect(try world.repair([itself("a")]).needsPass)
    #expect(world.ledger.contents.facts[.feedRecord] == nil)
  }

  /// What the feed dropped and the user deleted since: its row is for a pass to drop, which an unchanged feed would keep from
  /// looking.
  @Test(arguments: [Region("old".path, .itself), Region("old".path, .tree), .everything])
  func aPassForgetsWhatNobodyWantsAndIsGone(region: Region) throws {
    let world = try world { world in
      world.location = .remote(url: UnchangedFeedTests.list)
      world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"1\"", body: "list".bytes))
      world.want("old", "text of old")
    }
    world.feedFailure = nil
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"2\"", body: "shorter list".bytes))
    world.unlist("old")
    #expect(try world.run().isInSync && world.row("old") != nil)
    world.isAsLeft = { true }
    #expect(try world.run().isFeedUnchanged)
    world.folder.delete("old".path)
    #expect(try !world.repair([region]).needsPass)
    #expect(try !world.run().isFeedUnchanged)
    #expect(world.row("old") == nil)
    #expect(try world.run().isFeedUnchanged)
  }

  /// So it is with what has expired.
  @Test func aPassForgetsWhatExpiredAndIsGone() throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.location = .remote(url: UnchangedFeedTests.list)
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    world.policy.window.keep = 1
    func tell(_ numbers: [Int]) {
      let text = "feed of \(numbers)"
      world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"\(text)\"", body: text.bytes))
      world.items = numbers.enumerated().map { position, number in
        let source = Source(url: World.host + "\(number).mp3")
        world.server.put(source.url, "ID3 sound \(number)".bytes, etag: nil)
        return .enclosure(
          Enclosure(
            guid: "\(number)".bytes, title: "No \(number)".bytes,
            date: Timestamp(year: 2025, month: 1, day: number), sources: [source],
            mediaType: "audio/mpeg".bytes, position: position))
      }
    }
    tell([1])
    #expect(try world.run().isInSync)
    let old = try #require(world.files.keys.first)
    tell([2, 1])
    #expect(try world.run().isInSync && world.files.count == 2)
    world.isAsLeft = { true }
    #expect(try world.run().isFeedUnchanged)
    world.folder.delete(old.path)
    #expect(try !world.repair([itself(old)]).needsPass)
    #expect(try !world.run().isFeedUnchanged && world.row(old) == nil)
    #expect(try world.run().isFeedUnchanged)
  }

  /// News of a directory and of what lies in it come together.
  @Test func partsThatLieInOneAnotherAreRepairedOnce() throws {
    let world = try world()
    world.folder.delete("sub/c".path)
    let report = try world.repair([itself("sub"), itself("sub/c"), Region("sub".path, .children)])
    #expect(world.server.urls == [World.host + "sub/c"] && report.report.counts.restored == 1)
    #expect(report.report.counts.wanted == 1 && report.report.counts.planned.all == 1)
    world.folder.edit("a".path, "mine".bytes)
    let again = try world.repair([itself("a"), Region(nil, .children)])
    #expect(world.server.urls == [World.host + "a"] && again.report.counts.replaced == 1)
  }

  /// What could not be put in its place is not Tarn's own doing when it is gone later.
  @Test func aFailedInstallationIsExpectedNoMore() throws {
    let world = try world()
    world.ownWrites = OwnWrites()
    world.folder.delete("sub/c".path)
    world.folder.fail(.install, with: FolderFailure(.permission, "as told"))
    #expect(try world.repair([itself("sub/c")]).needsPass)
    #expect(world.ownWrites?.isOwn("sub".path) { _ in nil } == false)
    try world.repair([itself("sub/c")])
    #expect(world.text("sub/c") == "text of sub/c")
  }

  /// Files of a window are the user's to change, unless he says otherwise; so are their modes.
  @Test(arguments: [PassPolicy.LocalChanges.keep, .restore]) func theModeOfAFileOfAWindowIsAsItsPolicySays(
    changes: PassPolicy.LocalChanges
  ) throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    let source = Source(url: World.host + "1.mp3")
    world.items = [.enclosure(Enclosure(guid: "1".bytes, title: "One".bytes, date: nil, sources: [source]))]
    world.server.put(source.url, "ID3 sound".bytes, etag: nil)
    world.policy.window.localChanges = changes
    #expect(try world.run().isInSync)
    let path = try #require(world.files.keys.first).path
    world.folder.changeMode(try #require(world.folder.open(path)))
    try world.repair([Region(path, .itself)])
    #expect(world.folder.mode(path) == (changes == .keep ? 0o600 : 0o644))
    try world.run()
    #expect(world.folder.mode(path) == (changes == .keep ? 0o600 : 0o644))
  }

  /// A pass that was cut short has recorded the new manifest, and some files are of the one before.
  @Test func whatIsAsRecordedAndOfAnOlderVersionIsNotCurrent() throws {
    let world = try world()
    world.feedFailure = nil
    world.want("a", "newer text of a")
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    #expect(try !world.run().isInSync)
    let facts = world.ledger.contents.facts
    #expect(facts[.entriesCurrent] == "2" && facts[.entriesWanted] == "3")
    #expect(try world.repair([.everything]).report.counts.planned.all == 0)
    #expect(world.ledger.contents.facts[.entriesCurrent] == "2")
    #expect(world.ledger.contents.facts[.bytesCurrent] == facts[.bytesCurrent])
  }

  @Test func problemsElsewhereStay() throws {
    let world = try world()
    for name in ["a", "b"] {
      world.server.script(World.host + name, [FakeAnswer(status: 404)])
      world.folder.delete(name.path)
    }
    #expect(try world.repair([itself("a"), itself("b")]).report.problems.count == 2)
    try world.repair([itself("a")])
    #expect(world.text("a") == "text of a" && world.text("b") == nil)
    #expect(world.ledger.contents.problems.values.map(\.name) == ["b".bytes])
  }

  @Test func aPlaceThatCannotBeLookedAtAsksForAPass() throws {
    let world = try world()
    world.folder.fail(.look, with: FolderFailure(.permission, "as told"))
    let report = try world.repair([itself("a"), itself("b")])
    #expect(report.needsPass && report.report.problems.map(\.name) == ["a".bytes])
    world.folder.makeUnreadable("sub".path)
    #expect(try world.repair([Region("sub".path, .tree)]).needsPass)
    #expect(world.text("sub/c") == "text of sub/c")
  }

  /// Of an entry that says neither size nor time nor digest only its server knows whether it has changed, and that is a
  /// pass's question.
  @Test(arguments: [Region.everything, Region("bare".path, .itself)])
  func noServerIsAskedAboutWhatIsAsItWasLeft(region: Region) throws {
    let world = try world { world in
      world.server.put(World.host + "bare", "text".bytes, etag: nil)
      world.add(world.bareEntry("bare"))
    }
    #expect(try !world.repair([region]).needsPass)
    #expect(world.server.urls.isEmpty)
  }

  /// With deletions, too, and whatever happened to it.
  @Test func whatTheFeedDroppedIsNotDeleted() throws {
    let world = try world { $0.policy.deletes = true }
    world.feedFailure = nil
    world.policy.deletes = false
    world.unlist("a")
    world.unlist("b")
    #expect(try world.run().isInSync)
    world.policy.deletes = true
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    world.folder.delete("b".path)
    let report = try world.repair([.everything])
    #expect(world.text("a") == "text of a" && world.trash.isEmpty && !report.needsPass)
    // The rows stay for the pass that has read the feed.
    #expect(world.row("a") != nil && world.row("b") != nil)
  }

  /// Of a window what the user deleted stays deleted, as in a pass.
  @Test func ofAWindowNothingComesBack() throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    let url = World.host + "1.mp3"
    world.items = [
      .enclosure(
        Enclosure(
          guid: "1".bytes, title: "One".bytes, date: Timestamp(year: 2025, month: 1, day: 1),
          sources: [Source(url: url)], mediaType: "audio/mpeg".bytes))
    ]
    world.server.put(url, "ID3 sound".bytes, etag: nil)
    #expect(try world.run().isInSync)
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    let name = try #require(world.files.keys.first)
    world.folder.delete(name.path)
    let report = try world.repair([itself(name)])
    #expect(!report.hasNoCatalog && report.report.problems.isEmpty)
    #expect(world.files.isEmpty && world.server.urls.isEmpty)
  }
}
