import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Feeds and listings that come in several pages, each of which names the next.
@Suite struct PagesTests {
  private static let root = "http://feed.example/"

  private func world(_ end: FeedEnd) -> World {
    let world = World()
    world.policy.retries = 0
    world.location = .remote(url: Self.root)
    world.end = end
    return world
  }

  /// A document, and the page that it names.
  private func serve(_ world: World, _ place: String, _ items: [FeedItem], next: String? = nil) {
    let url = Self.root + place
    world.server.put(url, "a page".bytes)
    world.documents[url] = items
    world.ends[url] = world.end
    world.ends[url]?.next = next.map { Self.root + $0 }
  }

  // MARK: Windows

  private func episodes(_ numbers: ClosedRange<Int>, _ world: World) -> [FeedItem] {
    numbers.map { number in
      let url = World.host + "\(number).mp3"
      world.server.put(url, "ID3 \(number)".bytes, etag: nil)
      return .enclosure(
        Enclosure(
          guid: "guid-\(number)".bytes, title: "Episode \(number)".bytes, sources: [Source(url: url)],
          position: number - numbers.lowerBound))
    }
  }

  /// Pages of two episodes each; the last names none.
  private func pagedWorld(keep: Int?) -> World {
    let world = world(FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window"))
    world.policy.window.keep = keep
    serve(world, "", episodes(1...2, world), next: "2")
    serve(world, "2", episodes(3...4, world), next: "3")
    serve(world, "3", episodes(5...6, world))
    return world
  }

  private func pages(_ world: World) -> Int {
    world.server.urls.filter { $0.hasPrefix(Self.root) }.count
  }

  @Test(arguments: [(nil, 1, 2), (2, 1, 2), (3, 2, 3), (4, 2, 4), (6, 3, 6), (100, 3, 6)])
  func asManyPagesAreReadAsKeepAsksFor(_ keep: Int?, _ pages: Int, _ files: Int) throws {
    let world = pagedWorld(keep: keep)
    #expect(try world.run().isInSync)
    #expect(self.pages(world) == pages)
    #expect(world.files.count == files)
  }

  /// The order of items without dates goes on over the pages.
  @Test func thoseOfTheFirstPagesAreKept() throws {
    let world = pagedWorld(keep: 3)
    try world.run()
    #expect(world.files.values.sorted() == ["ID3 1", "ID3 2", "ID3 3"])
  }

  @Test func aPageThatIsMissingIsTold() throws {
    let world = pagedWorld(keep: 6)
    world.server.answer(Self.root + "2", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(!report.isInSync && report.listingFailures == 1)
    #expect(report.problems.map(\.code) == ["http-404"])
    #expect(world.files.count == 2)
    serve(world, "2", episodes(3...4, world), next: "3")
    #expect(try world.run().isInSync)
    #expect(world.files.count == 6)
  }

  /// The filter chooses first, and `keep` counts what it leaves.
  @Test func whatAFilterLeavesOutCountsForNothing() throws {
    let world = pagedWorld(keep: 2)
    world.policy.filter.include = PathPatterns(["*5*", "*6*"])
    #expect(try world.run().isInSync)
    #expect(pages(world) == 3 && world.files.count == 2)
  }

  /// A blog may have texts for a while.
  @Test func pagesWithoutFilesArePassedOver() throws {
    let world = pagedWorld(keep: 6)
    serve(world, "2", [], next: "2b")
    serve(world, "2b", episodes(1...2, world), next: "2c")
    serve(world, "2c", episodes(3...4, world), next: "3")
    #expect(try world.run().isInSync)
    #expect(world.files.count == 6)
    #expect(!world.log.notices.contains { $0.code == "pages-without-files" })
  }

  /// Not without an end.
  @Test func emptyPagesEnd() throws {
    let world = pagedWorld(keep: 100)
    serve(world, "3", [], next: "4")
    for number in 4..<40 { serve(world, "\(number)", [], next: "\(number + 1)") }
    #expect(try world.run().isInSync)
    #expect(pages(world) == 11)
    #expect(world.log.notices.map(\.code) == ["pages-without-files"])
  }

  @Test func aPageThatIsBrokenIsTold() throws {
    let world = pagedWorld(keep: 6)
    world.ends[Self.root + "2"]?.notice = .init(.readInPart, "the feed is broken")
    #expect(try world.run().problems.map(\.code) == ["feed-read-in-part"])
    #expect(world.files.count == 4)
  }

  /// A feed that breaks off is read as far as it goes, and no pass over it is whole: each one says so, until a whole feed came.
  @Test func aFeedThatBreaksOffIsNotInSync() throws {
    let world = pagedWorld(keep: 2)
    world.ends[Self.root]?.notice = .init(.readInPart, "the feed is broken")
    for _ in 0..<2 {
      let report = try world.run()
      #expect(report.problems.map(\.code) == ["feed-read-in-part"] && !report.isInSync)
      #expect(try world.ledger.problem(name: Self.root.bytes)?.code == "feed-read-in-part")
      #expect(world.files.count == 2)
    }
    world.ends[Self.root]?.notice = nil
    #expect(try world.run().isInSync)
    #expect(try world.ledger.problem(name: Self.root.bytes) == nil)
  }

  /// The log, events and summaries show it. Its whole URL still leads to it.
  @Test(arguments: ["?token=hunter2", "2?a=b&key=hunter2"])
  func aBrokenPageIsNamedWithoutItsToken(place: String) throws {
    let world = world(FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window"))
    world.location = .remote(url: Self.root + "?token=hunter2")
    world.policy.window.keep = 6
    serve(world, "?token=hunter2", episodes(1...2, world), next: "2?a=b&key=hunter2")
    serve(world, "2?a=b&key=hunter2", episodes(3...4, world))
    world.ends[Self.root + place]?.notice = .init(.readInPart, "the feed is broken")
    #expect(try world.run().problems.map(\.code) == ["feed-read-in-part"])
    let shown = Self.root + place.replacing("hunter2", with: "***")
    #expect(try world.ledger.problem(name: shown.bytes) != nil)
    let query = ExplainQuery(ledger: world.ledger, folder: world.folder, holder: nil)
    for name in [shown, Self.root + place] {
      #expect(try query.explain(refused: name.bytes, mirror: "m")?.summary.contains("feed is broken") == true)
    }
  }

  @Test func aPageThatLeadsBackIsTold() throws {
    let world = pagedWorld(keep: 6)
    var answer = FakeAnswer(body: "a page".bytes)
    answer.finalURL = Self.root
    world.server.answer(Self.root + "2", answer)
    #expect(try world.run().problems.map(\.code) == ["pages-loop"])
  }

  /// Each time under another address.
  @Test func pagesThatLeadToTheFirstAreALoop() throws {
    let world = pagedWorld(keep: 6)
    let count = Locked(0)
    world.nextPage = { _ in "\(Self.root)?page=\(count.withLock { $0 += 1; return $0 })" }
    for page in 1...20 {
      var answer = FakeAnswer(body: "a page".bytes)
      answer.finalURL = Self.root
      world.server.answer("\(Self.root)?page=\(page)", answer)
    }
    #expect(try world.run().problems.map(\.code) == ["pages-loop"])
    #expect(pages(world) == 2)
  }

  /// What is said of the first page is said of the whole feed.
  @Test func filesOfLaterPagesAreFiles() throws {
    let world = pagedWorld(keep: 4)
    serve(world, "", [], next: "2")
    world.ends[Self.root]?.notice = .init(.withoutFiles, "the feed has no items")
    #expect(try world.run().isInSync)
    #expect(world.files.count == 4 && world.log.notices.isEmpty)
  }

  @Test func aPageThatIsAnotherListIsTold() throws {
    let world = pagedWorld(keep: 6)
    serve(world, "2", [.entry(world.serve("a", "text"))])
    #expect(try world.run().problems.map(\.code) == ["page-of-another-kind"])
    #expect(world.files.count == 2)
  }

  @Test func pagesThatLeadBackEnd() throws {
    let world = pagedWorld(keep: 100)
    serve(world, "3", episodes(5...6, world), next: "2")
    #expect(try world.run().problems.map(\.code) == ["pages-loop"])
    #expect(world.files.count == 6)
  }

  /// Where the first page is the same the others may be others.
  @Test func ofAFeedInPagesAllPagesAreReadAgain() throws {
    let world = pagedWorld(keep: 4)
    world.settings = "settings"
    try world.run()
    #expect(try !world.run().isFeedUnchanged)
    #expect(pages(world) == 2)
  }

  // MARK: Listings

  @Test func aListingGoesOnOverItsPages() throws {
    let world = world(FeedEnd(format: "index", isComplete: true))
    serve(
      world, "",
      [.entry(world.serve("one", "1")), .directory(url: Self.root + "d/", path: "d".path)], next: "more")
    serve(world, "more", [.entry(world.serve("two", "2"))])
    serve(world, "d/", [.entry(world.serve("d/three", "3"))], next: "d/more")
    serve(world, "d/more", [.entry(world.serve("d/four", "4"))])
    let report = try world.run()
    #expect(report.isInSync && report.manifest.isComplete)
    #expect(world.files == ["one": "1", "two": "2", "d/three": "3", "d/four": "4"])
  }

  /// What a page would have named is not gone.
  @Test(arguments: ["more", "d/more"]) func aListWithoutAPageIsNotComplete(page: String) throws {
    let world = world(FeedEnd(format: "index", isComplete: true))
    world.policy.deletes = true
    let directory = FeedItem.directory(url: Self.root + "d/", path: "d".path)
    serve(world, "", [.entry(world.serve("one", "1")), directory], next: "more")
    serve(world, "more", [.entry(world.serve("two", "2"))])
    serve(world, "d/", [.entry(world.serve("d/three", "3"))], next: "d/more")
    serve(world, "d/more", [.entry(world.serve("d/four", "4"))])
    #expect(try world.run().isInSync)
    world.server.answer(Self.root + page, FakeAnswer(status: 404))
    let report = try world.run()
    #expect(!report.manifest.isComplete && report.counts.deleted == 0)
    #expect(report.problems.map(\.name) == [(Self.root + page).bytes])
    #expect(world.files.count == 4)
  }
}
