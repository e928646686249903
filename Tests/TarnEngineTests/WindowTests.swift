import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Files of RSS, Atom and JSON Feed: named once, known again, kept by number and age, never deleted otherwise.
@Suite struct WindowTests {
  private static let day: Int64 = 86_400

  /// A world whose feed is a window of episodes, the newest first.
  private func world(_ episodes: [Enclosure]) -> World {
    let world = World()
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    show(episodes, world)
    return world
  }

  private func show(_ episodes: [Enclosure], _ world: World) {
    world.items = episodes.enumerated().map { index, episode in
      var episode = episode
      episode.position = index
      return .enclosure(episode)
    }
    for episode in episodes {
      for source in episode.sources {
        world.server.put(source.url, "ID3 bytes of \(source.url)".bytes, etag: nil)
      }
    }
  }

  /// - Parameter day: of January 2025.
  private func episode(
    _ number: Int, title: String? = nil, guid: String? = nil, url: String? = nil, day: Int? = nil
  ) -> Enclosure {
    Enclosure(
      guid: (guid ?? "guid-\(number)").bytes, title: (title ?? "Episode \(number)").bytes,
      date: Timestamp(year: 2025, month: 1, day: day ?? number),
      sources: [Source(url: url ?? World.host + "\(number).mp3")], mediaType: "audio/mpeg".bytes)
  }

  @Test func filesAreNamedByDateAndTitle() throws {
    let world = world([episode(2), episode(1)])
    let report = try world.run()
    #expect(report.isInSync)
    #expect(Set(world.files.keys) == ["2025-01-02 Episode 2.mp3", "2025-01-01 Episode 1.mp3"])
    #expect(try world.plan().actions.isEmpty)
    #expect(world.ledger.contents.names.values.allSatisfy { $0.rule == .new })
  }

  /// guid, then URL without its query, then title and date: none of these makes a new file.
  @Test func anItemThatWasEditedIsTheSameFile() throws {
    let original = episode(1)
    let edits: [(Enclosure, NameRow.Rule)] = [
      (episode(1, title: "Corrected"), .guid),
      (episode(1, url: World.host + "moved/elsewhere.mp3?signed=1"), .guid),
      (episode(1, guid: "another"), .url),
      (episode(1, guid: "another", url: World.host + "1.mp3?token=abc"), .url),
      (episode(1, guid: "another", url: World.host + "moved.mp3"), .titleDate),
    ]
    for (edit, rule) in edits {
      let world = world([original])
      try world.run()
      show([edit], world)
      let report = try world.run()
      #expect(report.isInSync)
      #expect(report.counts.fetched == 0 && report.counts.updated == 0)
      #expect(Array(world.files.keys) == ["2025-01-01 Episode 1.mp3"])
      #expect(world.ledger.contents.names.values.map(\.rule) == [rule])
      #expect(world.ledger.contents.names.values.map(\.guid) == [edit.guid])
    }
  }

  /// Guid, title and date are others: a feed that gives each item the same address, or one program for all.
  @Test(arguments: ["latest.mp3", "get.php?id="]) func anotherItemUnderALikeURLIsANewFile(url: String) throws
  {
    func item(_ number: Int) -> Enclosure {
      episode(number, url: World.host + url + (url.hasSuffix("=") ? "\(number)" : ""))
    }
    let world = world([item(1)])
    try world.run()
    show([item(2)], world)
    #expect(try world.run().counts.fetched == 1)
    show([item(3), item(2)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(world.files.count == 3)
  }

  /// The newest comes first, and is like the one below it: that one keeps its row, by its guid.
  @Test func aLikenessTakesNoRowOfAnItemThatIsStillNamed() throws {
    let world = world([episode(1, title: "News", day: 5)])
    try world.run()
    show([episode(2, title: "News", day: 5), episode(1, title: "News", day: 5)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(Set(world.files.values).count == 2)
    #expect(world.text("2025-01-05 News.mp3")?.hasSuffix("1.mp3") == true)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aNewItemIsANewFile() throws {
    let world = world([episode(1)])
    try world.run()
    show([episode(2), episode(1)], world)
    let report = try world.run()
    #expect(report.counts.fetched == 1)
    #expect(world.files.count == 2)
  }

  /// One program on the server for all files: the query tells them apart.
  @Test func urlsThatDifferInTheirQueryOnlyAreTwoFiles() throws {
    func item(_ number: Int) -> Enclosure {
      var item = episode(number, url: World.host + "get.php?id=\(number)")
      item.guid = nil
      return item
    }
    let world = world([item(2), item(1)])
    try world.run()
    #expect(Set(world.files.keys) == ["2025-01-02 Episode 2.mp3", "2025-01-01 Episode 1.mp3"])
    #expect(try world.plan().actions.isEmpty)
    show([item(3), item(2), item(1)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(world.files.count == 3)
  }

  /// A feed that gives all items one guid says nothing by it.
  @Test func aGuidThatAllItemsShareIsNone() throws {
    let world = world([episode(2, guid: "same"), episode(1, guid: "same")])
    try world.run()
    #expect(world.files.count == 2)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func namesThatMeetAreMarked() throws {
    let world = world([
      episode(3, title: "Talk", day: 1), episode(2, title: "Talk", day: 1), episode(1, title: "Talk", day: 1),
    ])
    try world.run()
    #expect(world.files.count == 3)
    #expect(world.files["2025-01-01 Talk.mp3"] != nil)
    let marked = world.files.keys.filter { $0.hasPrefix("2025-01-01 Talk [") && $0.hasSuffix("].mp3") }
    #expect(marked.count == 2)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aWindowDropsNothing() throws {
    let world = world([episode(2), episode(1)])
    world.policy.deletes = true
    try world.run()
    show([episode(3)], world)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files.count == 3)
    #expect(world.trash.isEmpty)
  }

  @Test func whatTheUserDeletedStaysDeleted() throws {
    let world = world([episode(2), episode(1)])
    try world.run()
    world.folder.delete("2025-01-01 Episode 1.mp3".path)
    for _ in 0..<2 {
      let report = try world.run()
      #expect(report.isInSync)
      #expect(report.counts.kept == 1)
      #expect(world.files.count == 1)
    }
    // Also when the feed has dropped it and named it again.
    show([episode(2)], world)
    try world.run()
    show([episode(2), episode(1)], world)
    try world.run()
    #expect(world.files.count == 1)
    world.policy.window.localChanges = .restore
    try world.run()
    #expect(world.files.count == 2)
  }

  @Test(arguments: [false, true]) func theNewestAreKept(deletes: Bool) throws {
    let world = world((1...20).reversed().map { episode($0) })
    world.policy.deletes = deletes
    world.policy.window.keep = 10
    try world.run()
    #expect(world.files.count == 10)
    #expect(world.files["2025-01-11 Episode 11.mp3"] != nil)
    // The feed has dropped all but the newest: the others count all the same.
    show([episode(21)], world)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files["2025-01-21 Episode 21.mp3"] != nil)
    #expect(world.files.count == (deletes ? 10 : 11))
    #expect(world.trash.count == (deletes ? 1 : 0))
    #expect((world.files["2025-01-11 Episode 11.mp3"] == nil) == deletes)
    #expect(try world.plan().actions.isEmpty)
  }

  private func verify(_ world: World) throws -> VerifyReport {
    try Verification(
      ledger: world.ledger, clock: world.clock, folder: world.folder, observer: SilentObserver(),
      progress: PassProgress(clock: world.clock), stop: StopFlag()
    ).run()
  }

  /// Nobody can bring it back, and nobody misses it.
  @Test(arguments: [false, true]) func whatExpiredAndIsGoneIsForgotten(deletes: Bool) throws {
    let world = world((1...5).reversed().map { episode($0) })
    world.policy.deletes = deletes
    world.policy.window.keep = 5
    try world.run()
    let gone = "2025-01-03 Episode 3.mp3"
    world.folder.delete(gone.path)
    #expect(try world.run().counts.kept == 1 && world.row(gone) != nil)
    #expect(try verify(world).missing.count == 1)
    // It is wanted while it is one of the newest.
    show((2...6).reversed().map { episode($0) }, world)
    #expect(try world.run().counts.kept == 1 && world.row(gone) != nil)
    show((5...9).reversed().map { episode($0) }, world)
    #expect(try verify(world).missing.count == 1)
    let report = try world.run()
    #expect(report.isInSync && report.counts.forgotten == 1 && world.row(gone) == nil)
    #expect(try verify(world).isGood)
    let document = try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
    #expect(document.state == "idle" && document.entries.current == 5 && document.entries.failed == 0)
    #expect(try world.plan().actions.isEmpty)
  }

  /// As with what a list drops.
  @Test func whatExpiredAndWasEditedIsLeftToTheUser() throws {
    let world = world([episode(2), episode(1)])
    world.policy.deletes = true
    world.policy.window.keep = 2
    try world.run()
    let edited = "2025-01-01 Episode 1.mp3"
    world.folder.edit(edited.path, "mine".bytes)
    show([episode(3), episode(2), episode(1)], world)
    let report = try world.run()
    #expect(report.isInSync && report.released == 1 && world.text(edited) == "mine")
    #expect(try world.row(edited) == nil && verify(world).isGood)
  }

  /// What would be fetched again anyway, if only the feed named it.
  @Test func whereNothingStaysDeletedWhatTheFeedDroppedIsForgotten() throws {
    let world = world([episode(2), episode(1)])
    try world.run()
    let gone = "2025-01-01 Episode 1.mp3"
    world.folder.delete(gone.path)
    show([episode(2)], world)
    #expect(try world.run().isInSync && world.row(gone) != nil)
    world.policy.window.localChanges = .restore
    #expect(try world.run().isInSync && world.row(gone) == nil)
    #expect(try verify(world).isGood)
    show([episode(2), episode(1)], world)
    #expect(try world.run().counts.fetched == 1 && world.files[gone] != nil)
  }

  /// What `keep` lets go is what the user asked for: the guard has no say in it.
  @Test func keepingMuchFewerIsNotHeld() throws {
    let world = world((1...30).reversed().map { episode($0) })
    world.policy.deletes = true
    try world.run()
    world.policy.window.keep = 5
    let report = try world.run()
    #expect(report.isInSync && report.held == nil && report.counts.deleted == 25)
    #expect(world.files.count == 5 && world.trash.count == 25)
    #expect(world.ledger.contents.events.count { $0.code == "expired" } == 25)
  }

  @Test func keepingFewerForOnceExpiresNothing() throws {
    let world = world((1...6).reversed().map { episode($0) })
    world.policy.deletes = true
    try world.run()
    world.policy.window.keep = 2
    (world.isOnce, world.choosesOthers) = (true, true)
    #expect(try world.run().counts.deleted == 0)
    #expect(world.files.count == 6)
    (world.isOnce, world.choosesOthers) = (false, false)
    #expect(try world.run().counts.deleted == 4)
  }

  @Test func theOldAreNotFetched() throws {
    let world = world((1...20).reversed().map { episode($0) })
    world.clock.setWall(Timestamp(year: 2025, month: 1, day: 21)?.nanoseconds ?? 0)
    world.policy.window.maxAge = 5 * Self.day
    try world.run()
    #expect(world.files.count == 5)
    world.policy.deletes = true
    world.clock.advance(.seconds(UInt64(Self.day)))
    let report = try world.run()
    #expect(world.files.count == 4)
    #expect(report.isInSync)
  }

  @Test func aDigestTellsAnotherVersion() throws {
    var item = episode(1)
    let url = World.host + "1.mp3"
    let world = world([item])
    item.digest = world.digest("ID3 bytes of \(url)")
    show([item], world)
    try world.run()
    #expect(world.ledger.contents.rows.values.map(\.isVerified) == [true])
    item.digest = world.digest("remastered")
    show([item], world)
    world.server.put(url, "remastered".bytes, etag: nil)
    let report = try world.run()
    #expect(report.counts.updated == 1)
    #expect(Array(world.files.values) == ["remastered"])
  }

  /// A pass that could not fetch the file has fixed its name all the same.
  @Test func theNameIsFixedAtFirstSight() throws {
    let world = world([episode(1)])
    world.policy.retries = 0
    world.server.answer(World.host + "1.mp3", FakeAnswer(status: 404))
    #expect(try !world.run().isInSync)
    show([episode(1, title: "Corrected")], world)
    #expect(try world.run().isInSync)
    #expect(Array(world.files.keys) == ["2025-01-01 Episode 1.mp3"])
  }

  /// A template that puts new files into a directory of an older file's name deletes nothing either (I8).
  @Test func aFileOfAWindowMakesNoWay() throws {
    let world = world([episode(1, url: World.host + "talk")])
    world.policy.deletes = true
    world.policy.window.template = try #require(NameTemplate("{name}"))
    try world.run()
    #expect(Array(world.files.keys) == ["talk.mp3"])
    show([episode(2, url: World.host + "2.mp3")], world)
    world.policy.window.template = try #require(NameTemplate("talk.mp3/{name}"))
    let report = try world.run()
    #expect(Array(world.files.keys) == ["talk.mp3"] && world.trash.isEmpty)
    #expect(report.problems.map(\.code) == ["parent-not-a-directory"])
    #expect(report.problems.first?.message.contains("may not be deleted") == true)
  }

  @Test func aPlanWritesNoNames() throws {
    let world = world([episode(1)])
    #expect(try world.plan().actions.map(\.path.printable) == ["2025-01-01 Episode 1.mp3"])
    #expect(world.ledger.contents.names.isEmpty)
  }
}
