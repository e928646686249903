import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Items that share what should tell them apart.
@Suite struct WindowIdentityTests {
  private func item(
    _ title: String, guid: String? = nil, url: String, day: Int? = nil
  ) -> Enclosure {
    Enclosure(
      guid: guid?.bytes, title: title.bytes, date: day.flatMap { Timestamp(year: 2025, month: 1, day: $0) },
      sources: [Source(url: World.host + url)], mediaType: "audio/mpeg".bytes)
  }

  private func world(_ items: [Enclosure]) -> World {
    let world = World()
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    show(items, world)
    return world
  }

  private func show(_ items: [Enclosure], _ world: World) {
    world.items = items.enumerated().map { position, item in
      var item = item
      item.position = position
      return .enclosure(item)
    }
    for item in items { for source in item.sources { world.server.put(source.url, "ID3".bytes, etag: nil) } }
  }

  /// A daily show whose feed holds today's episode, under one guid.
  @Test func aGuidThatIsUsedAgainIsAnotherItem() throws {
    let world = world([item("Monday", guid: "g", url: "1.mp3", day: 6)])
    try world.run()
    show([item("Tuesday", guid: "g", url: "2.mp3", day: 7)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(world.log.notices.isEmpty)
    show([item("Wednesday", guid: "g", url: "get.php?id=3", day: 8)], world)
    #expect(try world.run().counts.fetched == 1)
    show([item("Thursday", guid: "g", url: "get.php?id=4", day: 9)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(world.files.count == 4)
    // Each keeps its own, also once its URL has moved.
    show([item("Tuesday", guid: "g", url: "moved/2.mp3", day: 7)], world)
    #expect(try world.run().isInSync && world.files.count == 4)
    #expect(
      world.ledger.contents.names["2025-01-07 Tuesday.mp3".path]?.url == "\(World.host)moved/2.mp3".bytes)
  }

  /// Of title, date and URL one is enough for the same item.
  @Test func anItemThatKeepsOneOfThreeIsTheSame() throws {
    for edited in [
      item("Monday", guid: "g", url: "2.mp3", day: 7), item("Tuesday", guid: "g", url: "1.mp3", day: 7),
      item("Tuesday", guid: "g", url: "2.mp3", day: 6), item("Tuesday", guid: "g", url: "2.mp3"),
    ] {
      let world = world([item("Monday", guid: "g", url: "1.mp3", day: 6)])
      try world.run()
      show([edited], world)
      #expect(try world.run().counts.fetched == 0)
      #expect(world.files.count == 1)
    }
  }

  @Test func oneAddressForEachDaysEpisodeIsAnotherFileEachDay() throws {
    let world = world([item("Monday", url: "latest.mp3", day: 6)])
    try world.run()
    show([item("Tuesday", url: "latest.mp3", day: 7)], world)
    #expect(try world.run().counts.fetched == 1)
    show([item("Wednesday", url: "latest.mp3", day: 8), item("Tuesday", url: "latest.mp3", day: 7)], world)
    #expect(try world.run().counts.fetched == 1)
    #expect(
      world.files.keys.sorted().map { $0.split(separator: " ").last } == [
        "Monday.mp3", "Tuesday.mp3", "Wednesday.mp3",
      ])
    // A title that was corrected.
    show([item("Hump day", url: "latest.mp3", day: 8)], world)
    #expect(try world.run().counts.fetched == 0)
  }

  /// What may be an episode that is not fetched is told, once.
  @Test func anItemThatIsTakenForAFileIsTold() throws {
    let world = world([item("Monday", guid: "g", url: "latest.mp3", day: 6)])
    try world.run()
    #expect(world.log.notices.isEmpty)
    show([item("Tuesday", guid: "g", url: "latest.mp3", day: 7)], world)
    let report = try world.run()
    #expect(report.isInSync && report.counts.fetched == 0)
    #expect(world.log.notices.map(\.code) == ["taken-for-known"])
    #expect(world.log.notices.first?.message.contains("'Tuesday' is taken for 2025-01-06 Monday.mp3") == true)
    try world.run()
    #expect(world.log.notices.isEmpty)
    show([item("Wednesday", guid: "g", url: "latest.mp3", day: 8)], world)
    try world.run()
    #expect(world.log.notices.count == 1)
  }

  @Test func anItemOfWhichOnlyTheAddressIsKnownIsTold() throws {
    let world = world([item("Monday", url: "latest.mp3")])
    try world.run()
    show([item("Tuesday", url: "latest.mp3")], world)
    #expect(try world.run().counts.fetched == 0)
    #expect(world.log.notices.map(\.code) == ["taken-for-known"])
  }

  /// A programme that has the same title each week.
  @Test(arguments: [("g", "n1.mp3", "n2.mp3"), (nil, "news.mp3", "news.mp3")])
  func anItemOfAnotherDateIsToldThoughItsTitleIsTheSame(_ guid: String?, _ first: String, _ next: String)
    throws
  {
    let world = world([item("News", guid: guid, url: first, day: 6)])
    try world.run()
    show([item("News", guid: guid, url: next, day: 13)], world)
    #expect(try world.run().counts.fetched == 0)
    #expect(world.log.notices.map(\.code) == ["taken-for-known"])
    // Each week, and once a week.
    try world.run()
    #expect(world.log.notices.isEmpty)
    show([item("News", guid: guid, url: guid == nil ? next : "n3.mp3", day: 20)], world)
    try world.run()
    #expect(world.log.notices.map(\.code) == ["taken-for-known"])
  }

  @Test func aTitleThatWasCorrectedIsNotToldOf() throws {
    let world = world([item("Mondya", guid: "g", url: "1.mp3", day: 6)])
    try world.run()
    show([item("Monday", guid: "g", url: "1.mp3", day: 6)], world)
    try world.run()
    #expect(world.log.notices.isEmpty)
  }

  @Test func anItemThatIsListedTwiceIsOneFile() throws {
    for guid in ["g", nil] {
      let twice = item("Monday", guid: guid, url: "1.mp3", day: 6)
      let world = world([twice, item("Sunday", guid: "s", url: "0.mp3", day: 5), twice])
      try world.run()
      #expect(world.files.count == 2)
      #expect(try world.plan().actions.isEmpty)
    }
  }

  /// One address is one file, and of what is left out one hears, once.
  @Test(arguments: [("Tuesday", 7), ("Monday", 7), ("Tuesday", 6), ("Tuesday", nil)] as [(String, Int?)])
  func anItemWithGuidAndAddressOfAnotherIsTold(_ title: String, _ day: Int?) throws {
    let other = item(title, guid: "g", url: "latest.mp3", day: day)
    let items = [item("Monday", guid: "g", url: "latest.mp3", day: 6), other, other]
    let world = world(items)
    #expect(try world.run().isInSync)
    #expect(Array(world.files.keys) == ["2025-01-06 Monday.mp3"])
    #expect(world.log.notices.map(\.code) == ["taken-for-known"])
    let message = try #require(world.log.notices.first).message
    #expect(message.hasSuffix(": '\(title)' is taken for 2025-01-06 Monday.mp3"), "\(message)")
    #expect(try world.run().isInSync && world.log.notices.isEmpty)
    show(items + [item("Wednesday", guid: "g", url: "latest.mp3", day: 8)], world)
    try world.run()
    #expect(world.log.notices.count == 1 && world.files.count == 1)
  }

  @Test func aFeedWithoutFilesSaysSo() throws {
    let world = world([])
    world.end.notice = .init(.withoutFiles, "the feed has 3 items, none with a file")
    #expect(try world.run().isInSync)
    #expect(world.log.notices.map(\.code) == ["feed-without-files"])
    #expect(world.log.notices.first?.message == "the feed has 3 items, none with a file")
  }

  // MARK: Names

  @Test func namesArePortableUnlessToldOtherwise() throws {
    let odd = item("AC/DC: live? <1>", guid: "g", url: "1.mp3", day: 6)
    let world = world([odd])
    try world.choose([:])
    try world.run()
    #expect(Array(world.files.keys) == ["2025-01-06 AC-DC- live- -1-.mp3"])
    let plain = self.world([odd])
    try plain.choose([.portableNames: ["false"]])
    try plain.run()
    #expect(Array(plain.files.keys) == ["2025-01-06 AC-DC: live? <1>.mp3"])
    // Names are fixed at first sight.
    try plain.choose([:])
    #expect(try plain.run().isInSync)
    #expect(Array(plain.files.keys) == ["2025-01-06 AC-DC: live? <1>.mp3"])
  }

  /// Where case does not tell, one would take the other's place.
  @Test func portableNamesDifferNotInCaseAlone() throws {
    let first = item("Dup", guid: "1", url: "1.mp3", day: 6)
    let world = world([first, item("DUP", guid: "2", url: "2.mp3", day: 6)])
    try world.choose([:])
    try world.run()
    #expect(Set(world.files.keys.map { $0.lowercased() }).count == 2)
    // Of one that came before, too.
    show([first, item("dUP", guid: "3", url: "3.mp3", day: 6)], world)
    try world.run()
    #expect(world.files.count == 3 && Set(world.files.keys.map { $0.lowercased() }).count == 3)
    let plain = self.world([first, item("DUP", guid: "2", url: "2.mp3", day: 6)])
    try plain.choose([.portableNames: ["false"]])
    try plain.run()
    #expect(plain.files.keys.sorted() == ["2025-01-06 DUP.mp3", "2025-01-06 Dup.mp3"])
  }

  /// What other systems could not store is named so that they can, and never refused.
  @Test(arguments: [false, true]) func everyNameIsMadePortable(isAsked: Bool) throws {
    let world = world(
      ["-rf", "~root", "CON", "aux.", "Nul", "a|b"].enumerated().map {
        item($1, guid: $1, url: "\($0).mp3")
      })
    try world.choose(isAsked ? [.portableNames: ["true"]] : [:])
    #expect(try world.run().isInSync)
    #expect(
      world.files.keys.sorted() == [
        "_CON.mp3", "_Nul.mp3", "_aux.mp3", "_rf.mp3", "_root.mp3", "a-b.mp3",
      ])
  }

  @Test func theFeedsTitleIsAField() throws {
    let world = world([item("One", guid: "g", url: "1.mp3", day: 6)])
    world.end.title = "My / Show".bytes
    world.policy.window.template = try #require(NameTemplate("{feed}/{title}"))
    try world.run()
    #expect(Array(world.files.keys) == ["My - Show/One.mp3"])
  }
}
