import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Parts of the folder that are brought into line without asking the feed.
@Suite struct RepairTests {
  /// Four files in place, and a catalog of them.
  private func world() throws -> World {
    let world = try World.inSync(["a", "b", "sub/c", "sub/deep/d"])
    // Whoever asks the feed now is told so.
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  @Test func aDeletedFileComesBack() throws {
    let world = try world()
    world.folder.delete("sub/c".path)
    let report = try world.repair([itself("sub/c")])
    #expect(world.text("sub/c") == "text of sub/c")
    #expect(report.report.counts.restored == 1 && !report.needsPass)
    #expect(world.server.urls == [World.host + "sub/c"])
    #expect(world.ledger.contents.events.last?.code == "restored")
    #expect(try world.repair([itself("sub/c")]).report.counts.planned.all == 0)
  }

  @Test func whatIsAsRecordedCostsNothing() throws {
    let world = try world()
    let before = world.ledger.contents
    let report = try world.repair([.everything])
    #expect(report.report.counts.planned.all == 0 && !report.needsPass && world.server.urls.isEmpty)
    #expect(world.ledger.contents == before)
  }

  @Test func editsGoToTheTrash() throws {
    let world = try world()
    world.folder.edit("a".path, "mine".bytes)
    world.folder.makeLink("b".path)
    world.folder.delete("sub/c".path)
    world.folder.write("sub/c/inner".path, "user's".bytes)
    let report = try world.repair([itself("a"), itself("b"), Region("sub/c".path, .tree)])
    #expect(world.isConverged || world.files.count == 4)
    #expect(world.text("a") == "text of a" && world.text("b") == "text of b")
    #expect(world.text("sub/c") == "text of sub/c")
    #expect(report.report.counts.replaced == 3 && !report.needsPass)
    #expect(world.trash.contains("mine"))
    // The directory lies there whole, and the link.
    #expect(try world.folder.trashed().count == 3)
    #expect(world.ledger.contents.trash.values.allSatisfy { !$0.isOwn })
  }

  @Test func aRenameCostsNoDownload() throws {
    let world = try world()
    world.folder.rename("a".path, to: "moved".path)
    let report = try world.repair([itself("a"), itself("moved")])
    #expect(world.text("a") == "text of a" && world.text("moved") == "text of a")
    #expect(world.server.urls.isEmpty && report.report.counts.copied == 1 && !report.needsPass)
  }

  /// What makes way for another file is as good a source as any until then.
  @Test func filesThatChangedPlacesCostNoDownload() throws {
    let world = try world()
    world.folder.rename("a".path, to: "x".path)
    world.folder.rename("b".path, to: "a".path)
    world.folder.rename("x".path, to: "b".path)
    try world.repair([itself("a"), itself("b"), itself("x")])
    #expect(world.text("a") == "text of a" && world.text("b") == "text of b")
    #expect(world.server.urls.isEmpty)
    world.folder.rename("b".path, to: "a".path)
    try world.repair([.everything])
    #expect(world.text("a") == "text of a" && world.text("b") == "text of b")
    #expect(world.server.urls == [World.host + "a"])
  }

  /// A repair that brings back what was in conflict sees files that are wanted, and nothing odd.
  @Test func whatIsInPlaceIsCountedUntilAllIs() throws {
    let world = try world()
    world.folder.delete("sub".path)
    world.folder.makeLink("sub".path)
    #expect(try world.repair([Region("sub".path, .tree)]).wantsCount)
    try world.repair([.everything])
    world.folder.delete("sub".path)
    #expect(try world.repair([itself("sub")]).wantsCount)
    #expect(world.text("sub/c") == "text of sub/c")
    try world.repair([.everything])
    #expect(world.ledger.contents.facts[.entriesCurrent] == "4")
    #expect(try !world.repair([itself("sub")]).wantsCount)
  }

  /// No pass has to come for the status to say so.
  @Test func aMirrorWhoseTroublesAreSettledIsIdle() throws {
    let world = try world()
    func state() throws -> String {
      try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/m", holder: nil, problemLimit: 0)
        .state
    }
    world.folder.delete("sub".path)
    world.folder.makeLink("sub".path)
    world.policy.deletes = false
    world.feedFailure = nil
    #expect(try !world.run().isInSync)
    #expect(try state() == "failing")
    world.folder.delete("sub".path)
    try world.repair([.everything])
    #expect(world.text("sub/c") == "text of sub/c")
    #expect(try state() == "idle")
  }

  /// The pass that follows looks, though feed and folder are as they were.
  @Test func whatAPauseKeepsBackIsForTheNextPass() throws {
    let world = try world()
    world.steering = PassSteering(paused: ["a".path])
    world.folder.delete("a".path)
    #expect(try !world.repair([itself("a")]).needsPass)
    #expect(world.text("a") == nil && world.ledger.contents.facts[.feedRecord] == nil)
    world.steering = nil
    world.feedFailure = nil
    #expect(try world.run().isInSync && world.text("a") == "text of a")
  }

  @Test func aModeIsPutBack() throws {
    let world = try world()
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    #expect(world.folder.mode("a".path) == 0o600)
    let report = try world.repair([itself("a")])
    #expect(world.folder.mode("a".path) == 0o644)
    #expect(try world.ledger.events(path: "a".path, limit: 1).map(\.detail) == ["its mode was 600"])
    #expect(world.server.urls.isEmpty && !report.needsPass)
    #expect(world.log.done == ["restored a"] && world.ledger.contents.facts[.repair] == "1 restored")
    #expect(try world.repair([.everything]).report.counts.planned.all == 0)
  }

  @Test(arguments: [PassPolicy.LocalChanges.keep, .report]) func aModeIsLeftWhereLocalChangesAre(
    _ changes: PassPolicy.LocalChanges
  ) throws {
    let world = try world()
    world.policy.localChanges = changes
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    try world.repair([itself("a")])
    #expect(world.folder.mode("a".path) == 0o600 && world.row("a")?.isAdopted == false)
  }

  @Test func othersFilesAreLeftAlone() throws {
    let world = try world()
    world.folder.write("foreign".path, "user's".bytes)
    world.folder.write("sub/foreign".path, "user's".bytes)
    let report = try world.repair([itself("foreign"), Region("sub".path, .tree)])
    #expect(world.text("foreign") == "user's" && world.text("sub/foreign") == "user's")
    #expect(!report.needsPass && report.report.counts.planned.all == 0)
  }

  @Test func onlyItsRegionsAreTouched() throws {
    let world = try world()
    world.folder.delete("a".path)
    world.folder.delete("sub/deep/d".path)
    try world.repair([Region("sub".path, .children)])
    #expect(world.text("a") == nil && world.text("sub/deep/d") == nil)
    try world.repair([Region("sub".path, .tree)])
    #expect(world.text("a") == nil && world.text("sub/deep/d") != nil)
    try world.repair([Region(nil, .children)])
    #expect(world.text("a") != nil)
  }

  @Test(arguments: [PassPolicy.LocalChanges.keep, .report]) func policyPermitting(
    _ policy: PassPolicy.LocalChanges
  ) throws {
    let world = try world()
    world.policy.localChanges = policy
    world.folder.delete("a".path)
    world.folder.edit("b".path, "mine".bytes)
    let report = try world.repair([itself("a"), itself("b")])
    #expect(world.text("a") == nil && world.text("b") == "mine" && world.server.urls.isEmpty)
    // No feed is read for it, but the next pass has to see it, whatever the feed's server says.
    #expect(!report.needsPass && report.wantsCount)
    #expect(world.ledger.contents.facts[.feedRecord] == nil)
    #expect(report.report.problems.count == (policy == .report ? 2 : 0))
    // A look at everything counts.
    #expect(world.ledger.contents.facts[.entriesCurrent] == "4")
    #expect(try !world.repair([.everything]).wantsCount)
    let facts = world.ledger.contents.facts
    #expect(facts[.entriesCurrent] == "2" && facts[.entriesKept] == (policy == .keep ? "2" : "0"))
    #expect(facts[.bytesCurrent] == "\("text of sub/c".utf8.count + "text of sub/deep/d".utf8.count)")
    world.feedFailure = nil
    try world.run()
    #expect(world.ledger.contents.facts[.entriesCurrent] == "2")
    #expect(world.ledger.contents.facts[.bytesCurrent] == facts[.bytesCurrent])
  }

  @Test func whatTheFeedDroppedDoesNotComeBack() throws {
    let world = try world()
    world.feedFailure = nil
    world.unlist("a")
    #expect(try world.run().isInSync)
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    world.folder.delete("a".path)
    let report = try world.repair([itself("a"), Region("sub".path, .tree)])
    #expect(world.text("a") == nil && world.server.urls.isEmpty && !report.needsPass)
    #expect(try world.repair([.everything]).report.counts.planned.all == 0)
  }

  @Test func aSourceThatIsGoneAsksForAPass() throws {
    let world = try world()
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    world.folder.delete("a".path)
    let report = try world.repair([itself("a")])
    #expect(report.needsPass && report.report.problems.map(\.code) == ["http-404"])
    #expect(world.ledger.contents.problems.values.map(\.code) == ["http-404"])
    // It answers again: the problem goes with the repair that solves it.
    try world.repair([itself("a")])
    #expect(world.text("a") == "text of a" && world.ledger.contents.problems.isEmpty)
  }

  @Test func aConflictThatTheUserEndedIsFetched() throws {
    let world = try world()
    world.feedFailure = nil
    world.want("new", "text of new")
    world.folder.write("new".path, "user's".bytes)
    #expect(try world.run().problems.map(\.code) == ["foreign-file"])
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    world.folder.rename("new".path, to: "mine".path)
    let report = try world.repair([itself("new"), itself("mine")])
    #expect(world.text("new") == "text of new" && world.text("mine") == "user's")
    // What the last pass counted is not so any more.
    #expect(report.needsPass && world.ledger.contents.problems.isEmpty)
  }

  /// A pass was cancelled, or backs off: nobody asked for it again.
  @Test func whatNoPassHasBroughtIsLeftToPasses() throws {
    let world = try world()
    world.feedFailure = nil
    world.want("missing", "text")
    world.server.script(World.host + "missing", [FakeAnswer(status: 404)])
    #expect(try world.run().problems.map(\.code) == ["http-404"])
    for region in [Region.everything, itself("missing")] {
      let report = try world.repair([region])
      #expect(!report.needsPass && world.server.urls.isEmpty && world.text("missing") == nil)
      #expect(world.ledger.contents.problems.values.map(\.code) == ["http-404"])
    }
    #expect(try world.run().isInSync && world.ledger.contents.problems.isEmpty)
  }

  /// It is begun anew once the order is seen to be none.
  @Test func aListInAnyOrderIsKeptForRepairs() throws {
    let world = World()
    (world.settings, world.catalog) = ("settings", MemoryCatalog())
    for name in ["a", "b", "c"] { world.want(name, "text of \(name)") }
    world.items.reverse()
    #expect(try world.run().isInSync && world.log.notices.isEmpty)
    world.folder.delete("a".path)
    let repair = try world.repair([itself("a")])
    #expect(repair.report.counts.restored == 1 && !repair.needsPass && world.text("a") == "text of a")
  }

  @Test func withoutACatalogItIsAPass() throws {
    let world = try world()
    world.folder.delete("a".path)
    world.settings = "other options"
    #expect(try world.repair([itself("a")]).needsPass)
    #expect(world.text("a") == nil)
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    #expect(try world.repair([itself("a")]).needsPass)
    // The next pass reads the feed whatever its server says, and keeps one.
    world.feedFailure = nil
    world.folder.delete("b".path)
    #expect(try world.run().isInSync)
    world.folder.delete("a".path)
    #expect(try !world.repair([itself("a")]).needsPass)
    #expect(world.text("a") == "text of a")
  }

  /// What stood where a directory belongs is gone: what belongs into it comes back by the word of that alone.
  @Test func whatBelongsBelowAPathThatIsFreeAgainIsLookedAt() throws {
    let world = try world()
    world.folder.delete("sub".path)
    #expect(world.files.count == 2)
    let report = try world.repair([itself("sub/deep"), itself("sub"), itself("sub/c")])
    #expect(report.report.counts.restored == 2 && !report.needsPass)
    #expect(world.text("sub/deep/d") == "text of sub/deep/d" && world.text("sub/c") == "text of sub/c")
  }

  @Test func itTellsTheJournal() throws {
    let world = try world()
    let event = Event(when: Timestamp(seconds: 1_800_000_000)!, code: "watch-lost", detail: "killed")
    try world.repair([.everything], events: [event])
    #expect(world.ledger.contents.events.last?.code == "watch-lost")
  }

  @Test func anUnchangedFeedOfAFolderThatIsWatchedCostsNoScan() throws {
    let world = World()
    world.location = .remote(url: UnchangedFeedTests.list)
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    for name in ["a", "b"] { world.want(name, "text of \(name)") }
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"1\"", body: "list".bytes))
    try world.run()
    world.isAsLeft = { true }
    let scans = world.folder.count(.scan)
    #expect(try world.run().isFeedUnchanged)
    #expect(world.folder.count(.scan) == scans)
    world.isAsLeft = { false }
    #expect(try world.run().isFeedUnchanged)
    #expect(world.folder.count(.scan) == scans + 1)
    #expect(world.catalog?.commits == 1)
  }
}
