import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Feeds that lie on a server, and the listings below a recursive index.
@Suite struct ListingTests {
  private static let root = "http://feed.example/"

  private func world(_ items: [FeedItem] = []) -> World {
    let world = World()
    world.rushes = true
    world.policy.retries = 0
    world.location = .remote(url: Self.root)
    serve(world, "", items)
    return world
  }

  /// A listing of that address below the root.
  private func serve(_ world: World, _ place: String, _ items: [FeedItem]) {
    world.server.put(Self.root + place, "a listing".bytes)
    world.documents[Self.root + place] = items
  }

  private func directory(_ path: String) -> FeedItem {
    .directory(url: Self.root + path + "/", path: path.path)
  }

  /// A repair judges by the earlier list until the new one is read.
  @Test func whatARepairTellsOfTheEarlierListIsOver() throws {
    let world = world()
    (world.settings, world.catalog) = ("settings", MemoryCatalog())
    serve(world, "", [directory("a"), .entry(world.serve("old", "old"))])
    serve(world, "a/", [.entry(world.serve("a/one", "one"))])
    #expect(try world.run().isInSync)
    serve(world, "", [directory("a")])
    world.server.put(Self.root, "a shorter listing".bytes)
    let ledger = world.ledger
    @Sendable func conflict(_ name: String, _ seen: Timestamp) -> LedgerChange {
      .problem(
        Problem(
          name: name.bytes, kind: .conflict, code: "foreign-file", message: "it stands there", seen: seen))
    }
    world.server.onRequest { [clock = world.clock] request in
      guard request.url.hasSuffix("/a/") else { return }
      try? ledger.apply([conflict("old", clock.time), conflict("a/one", clock.time)])
    }
    try world.run()
    // What is wanted still is judged by this pass.
    let names = try world.ledger.problems(limit: 9).map { String(decoding: $0.name, as: UTF8.self) }
    #expect(names == ["a/one"])
  }

  @Test func listingsAreWalked() throws {
    let world = world([directory("a"), directory("empty")])
    serve(world, "", [directory("a"), .entry(world.serve("top", "top")), directory("empty")])
    serve(world, "a/", [.entry(world.serve("a/one", "one")), directory("a/b")])
    serve(world, "a/b/", [.entry(world.serve("a/b/two", "two"))])
    serve(world, "empty/", [])
    let report = try world.run()
    #expect(world.files == ["top": "top", "a/one": "one", "a/b/two": "two"])
    #expect(report.isInSync)
    #expect(report.manifest.isComplete)
    #expect(report.counts.wanted == 3)
    #expect(try world.plan().actions.isEmpty)
  }

  /// Another server behind the same address may list something else below it.
  @Test func aListingOfAnotherFormatIsNotObeyed() throws {
    let world = world([directory("a"), directory("b")])
    let files = (0..<20).map { world.serve("a/\($0)", "text \($0)") }
    serve(world, "a/", files.map { .entry($0) })
    serve(world, "b/", [.entry(world.serve("b/one", "one"))])
    try world.run()
    world.policy.deletes = true
    serve(world, "a/", files.dropFirst().map { .entry($0) })
    world.ends[Self.root + "a/"] = FeedEnd(format: "other list", isComplete: true)
    for _ in 0..<2 {
      let reason = try world.run().held?.reason
      #expect(reason == "the format of the list changed from test list to test list, other list")
      #expect(world.files.count == 21)
    }
    #expect(try world.approval.run(plan: nil).deleted == 1)
    // Both are known by now, and one that is met no more is no change either.
    serve(world, "a/", files.dropFirst(2).map { .entry($0) })
    #expect(try world.run().counts.deleted == 1)
    world.policy.deleteLimit = .off
    let others = (0..<20).map { FeedItem.entry(world.serve("b/\($0)", "b \($0)")) }
    serve(world, "b/", [.entry(world.serve("b/one", "one"))] + others)
    try world.run()
    serve(world, "", [directory("b")])
    #expect(try world.run().counts.deleted == 18)
    // From then on it is new again.
    serve(world, "b/", others)
    world.ends[Self.root + "b/"] = FeedEnd(format: "other list", isComplete: true)
    #expect(
      try world.run().held?.reason == "the format of the list changed from test list to test list, other list"
    )
  }

  @Test func aListingThatFailsMakesTheManifestIncomplete() throws {
    let world = world([directory("a"), directory("b")])
    serve(world, "a/", [.entry(world.serve("a/one", "one"))])
    serve(world, "b/", [.entry(world.serve("b/two", "two"))])
    try world.run()
    world.policy.deletes = true
    world.server.answer(Self.root + "b/", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(!report.manifest.isComplete)
    #expect(!report.manifest.incompleteReason.isEmpty)
    #expect(!report.isInSync)
    #expect(report.listingFailures == 1)
    #expect(report.problems.map(\.code) == ["http-404"])
    #expect(report.problems.map(\.name) == ["b/".bytes])
    #expect(report.counts.deleted == 0)
    #expect(report.counts.held == 0)
    #expect(world.files == ["a/one": "one", "b/two": "two"])
    #expect(world.ledger.contents.facts[.complete]?.hasPrefix("no: ") == true)
    #expect(world.ledger.contents.facts[.complete] != "no: ")
  }

  /// Also one that cannot be read is none of the mirror's then.
  @Test func anExcludedDirectoryIsNotAskedFor() throws {
    let world = world([directory("old"), directory("new")])
    serve(world, "new/", [.entry(world.serve("new/a", "text"))])
    #expect(try !world.run().isInSync)
    for pattern in ["/old", "old/", "ol*"] {
      world.policy.filter.exclude = PathPatterns([pattern])
      #expect(try world.run().isInSync, "\(pattern)")
      #expect(!world.server.urls.isEmpty && !world.server.urls.contains { $0.contains("old") })
    }
    // A list of nothing but such directories is not empty.
    serve(world, "", [directory("old")])
    world.policy.filter.exclude = PathPatterns(["old/"])
    world.policy.deletes = true
    #expect(try world.run().held?.reason.contains("keeps 0 of 1 file") == true)
    world.policy.deletes = false
    serve(world, "", [directory("old"), directory("new")])
    // What lies below may be wanted.
    world.policy.filter.exclude = PathPatterns(["*.iso", "!/old", "old/*.txt"])
    #expect(try !world.run().isInSync)
  }

  @Test func anIncompleteListingIsNamed() throws {
    let world = world([directory("a")])
    serve(world, "a/", [.entry(world.serve("a/one", "one"))])
    world.ends[Self.root + "a/"] = FeedEnd(format: "index", isComplete: false, incompleteReason: "cut")
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["listing-incomplete"])
    #expect(!report.manifest.isComplete)
    #expect(world.text("a/one") == "one")
  }

  /// Of links no page is known to be whole, which is no failure of each.
  @Test func linksAreNeverCompleteAndThatIsNoProblem() throws {
    let world = world([directory("a")])
    world.policy.format = .links
    serve(world, "a/", [.entry(world.serve("a/one", "one"))])
    for place in ["", "a/"] {
      world.ends[Self.root + place] = FeedEnd(format: "links", isComplete: false, incompleteReason: "links")
    }
    let report = try world.run()
    #expect(report.problems.isEmpty && report.isInSync)
    #expect(!report.manifest.isComplete)
    #expect(world.text("a/one") == "one")
  }

  /// Caddy sends JSON to whoever names it; nobody else is asked for anything but what it sends anyway.
  @Test func onlyDirectoriesAreAskedForJSON() throws {
    let accepts: (String, FormatChoice) throws -> [String: String?] = { url, format in
      let world = World()
      world.location = .remote(url: url)
      world.policy.format = format
      world.server.put(url, "a feed".bytes)
      world.documents[url] = [
        .directory(url: Self.root + "a/", path: "a".path), .entry(world.serve("file", "text")),
      ]
      self.serve(world, "a/", [])
      try world.run()
      return Dictionary(world.server.requests.map { ($0.url, $0.accept) }, uniquingKeysWith: { $1 })
    }
    let asked = "*/*, application/json;q=0.5"
    for format in [FormatChoice.auto, .index] {
      let found = try accepts(Self.root, format)
      #expect(found[Self.root] == asked && found[Self.root + "a/"] == asked)
      #expect(found.values.count { $0 == nil } == 1, "of a file nothing is asked: \(found)")
      #expect(try accepts(Self.root + "?C=N", format)[Self.root + "?C=N"] == asked)
      #expect(try accepts(Self.root + "feed.xml", format)[Self.root + "feed.xml"] == "*/*")
      #expect(try accepts(Self.root + "feed?x=/", format)[Self.root + "feed?x=/"] == "*/*")
    }
    #expect(try accepts(Self.root, .links)[Self.root + "a/"] == "*/*")
  }

  @Test func aDirectoryThatHoldsItselfIsNotEntered() throws {
    let world = world()
    let file = world.serve("f", "f")
    serve(world, "", [.entry(file), directory("self")])
    var below = file
    below.path = "self/f".path
    serve(world, "self/", [.entry(below), directory("self/self")])
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["directory-loop"])
    #expect(report.listingFailures == 1)
    // It stays a guess: what lies there may be wanted, so nothing is deleted on this list.
    #expect(!report.manifest.isComplete)
    #expect(world.files == ["f": "f"])
    #expect(world.server.urls.filter { $0.hasPrefix(Self.root) }.count == 2)
  }

  /// `t/t/t/file`: directories of one name in one another, and nothing beside them, are no loop.
  @Test func directoriesOfOneNameAreWalked() throws {
    let world = world([directory("t")])
    serve(world, "t/", [directory("t/t")])
    serve(world, "t/t/", [directory("t/t/t")])
    serve(world, "t/t/t/", [.entry(world.serve("t/t/t/file", "deep"))])
    let report = try world.run()
    #expect(world.files == ["t/t/t/file": "deep"])
    #expect(report.isInSync)
    #expect(report.manifest.isComplete)
  }

  @Test func theDepthIsLimited() throws {
    let world = world([directory("d")])
    var path = "d"
    for level in 1...(ListingWalk.mostDepth + 5) {
      serve(
        world, path + "/",
        [.entry(world.serve("\(path)/f\(level)", "level \(level)")), directory(path + "/d")])
      path += "/d"
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["listing-too-deep"])
    #expect(report.counts.fetched == ListingWalk.mostDepth)
    #expect(!report.manifest.isComplete)
  }

  @Test func manyListingsAreWalked() throws {
    let names = (0..<40).map { "d\($0 + 10)" }
    let world = world(names.map(directory))
    for name in names { serve(world, name + "/", [.entry(world.serve("\(name)/f", name))]) }
    #expect(try world.run().counts.fetched == 40)
  }

  @Test func aFeedIsFetchedAgainAfterATransientFailure() throws {
    let world = world([])
    world.policy.retries = 1
    world.documents[Self.root] = [.entry(world.serve("a", "text"))]
    world.server.script(Self.root, [FakeAnswer(status: 503)])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "text")
    let notices = world.log.events.filter { if case .feedRetrying = $0 { true } else { false } }
    #expect(notices.count == 1)
  }

  /// Some caches send a part to who asked for the whole, and say that all is well.
  @Test func aPartOfAFeedIsNotTheFeed() throws {
    let world = world([.entry(world().serve("a", "text"))])
    let downloader = try world.server.editingHeads { request, head in
      if request.url == Self.root { head.contentRange = ContentRange(first: 0, last: 99, total: 200) }
    }
    defer { downloader.shutDown() }
    let failure = #expect(throws: PassFailure.self) {
      try world.pass(downloader).run(folder: world.folder)
    }
    #expect(failure?.code == "body-truncated" && failure?.kind == .feedMalformed)
    #expect(failure?.hint?.contains("a cache or proxy on the way may answer with parts") == true)
    #expect(world.files.isEmpty)
  }

  /// Its header says so, and fewer bytes come.
  @Test(arguments: [200, 206]) func aFeedThatIsShorterThanItSaysIsNotRead(_ status: Int) throws {
    let world = world()
    world.documents[Self.root] = [.entry(world.serve("a", "text"))]
    let downloader = try world.server.editingHeads { request, head in
      guard request.url == Self.root else { return }
      (head.status, head.contentLength) = (status, nil)
      head.contentRange = ContentRange(first: 0, last: 999_999, total: 1_000_000)
    }
    defer { downloader.shutDown() }
    let failure = #expect(throws: PassFailure.self) {
      try world.pass(downloader).run(folder: world.folder)
    }
    #expect(failure?.code == "body-truncated" && failure?.kind == .feedMalformed)
    #expect(world.files.isEmpty)
  }

  @Test(arguments: [(203, nil), (206, ContentRange(first: 0, last: 8, total: 9))])
  func theWholeFeedIsReadWhateverItIsCalled(_ status: Int, _ range: ContentRange?) throws {
    let world = world()
    world.documents[Self.root] = [.entry(world.serve("a", "text"))]
    let downloader = try world.server.editingHeads { request, head in
      guard request.url == Self.root else { return }
      head.status = status
      head.contentRange = range
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
  }

  @Test(arguments: [
    ("http://me:secret@h/a", "http://***@h/a"), ("//me:secret@h/a", "//***@h/a"),
    ("http://m e:secret@h/a", "http://***@h/a"), ("http:/me:secret@h/a", "http:/***@h/a"),
    ("feed:me:secret@h", "feed:***@h"), ("me:secret@h/a", "me:***@h/a"),
    ("\\\\me:secret@h\\a", "\\\\***@h\\a"), ("feed:http://me:secret@h/a", "feed:http://***@h/a"),
    ("http://me:ab#secret@h/a", "http://***@h/a"), ("http://me:ab/secret@h", "http://***@h"),
    ("ssh me:secret@h", "***@h"), ("http%3A//me:secret@h/x", "***@h/x"),
    ("\"http://me:secret@h/x\"", "***@h/x\""),
    ("photo@2x.png", "photo@2x.png"), ("http://h/a@b", "http://h/a@b"),
    ("http://h:80/a@b", "http://h:80/a@b"),
    ("Part 1: talks @ noon", "Part 1: talks @ noon"),
  ])
  func aRefusedAddressKeepsItsPassword(_ address: String, _ shown: String) throws {
    let world = World()
    world.items = [.refused(Refusal(text: address.bytes, code: "url-refused", reason: "no"))]
    let problem = try #require(try world.run().problems.first)
    #expect(problem.name == shown.bytes)
  }

  @Test func refusalsAreToldOnce() throws {
    let world = World()
    world.items = [
      .refused(Refusal(name: "../x".bytes, .dotSegment)), .entry(world.serve("b", "b")),
      .entry(world.serve("a", "a")),
    ]
    let report = try world.run()
    #expect(report.counts.refused == 1)
    #expect(report.problems.count == 1)
    #expect(world.log.problems.count == 1)
  }

  /// A name that is no path can be left out by its text, as `tarn explain` says.
  @Test(arguments: ["../x", "/etc/x", "a/../b.iso", "tab\there", "q*?[x]/../\\", "./"])
  func aRefusedNameCanBeLeftOut(_ name: String) throws {
    let world = World()
    let refusal = try #require(throws: PathRefusal.self) { _ = try RelativePath(name.bytes) }
    world.items = [.refused(Refusal(name: name.bytes, refusal)), .entry(world.serve("a", "a"))]
    let query = { ExplainQuery(ledger: world.ledger, folder: world.folder, configured: "m") }
    #expect(try world.run().counts.refused == 1)
    let answer = try #require(try query().explain(refused: name.bytes, mirror: "m"))
    #expect(answer.state == "refused" && answer.summary.hasPrefix(refusal.reason))
    let hint = try #require(answer.hint)
    let pattern = try #require(hint.firstMatch(of: /exclude = \[['"](.*)['"]\] below/))
    try world.choose([.exclude: [String(pattern.1)]])
    let report = try world.run()
    #expect(report.isInSync && report.problems.isEmpty && report.counts.excluded == 1, "\(hint)")
    #expect(report.counts.wanted == 1)
    #expect(try query().explain(refused: name.bytes, mirror: "m") == nil)
    let left = try #require(try query().explain(leftOut: name.bytes))
    #expect(left.state == "excluded" && left.summary.hasPrefix("--exclude"))
    #expect(left.summary.hasSuffix(refusal.reason))
    // No other one is.
    world.items.append(.refused(Refusal(name: "../y".bytes, .dotSegment)))
    #expect(try world.run().counts.refused == 1)
  }

  /// What is no name is left out by no more than what `exclude` says.
  @Test func aLineThatIsNoNameIsNotLeftOutByWhatIsIncluded() throws {
    let world = World()
    world.items = [.refused(Refusal(text: "no line".bytes, code: "line-malformed", reason: "no"))]
    world.policy.filter.include = PathPatterns(["*.iso"])
    #expect(try world.run().counts.refused == 1)
    world.items = [.refused(Refusal(name: "../x".bytes, .dotSegment))]
    #expect(try world.run().counts.refused == 0)
    world.policy.filter.include = PathPatterns([])
    world.policy.filter.exclude = PathPatterns(["no line"])
    world.items = [.refused(Refusal(text: "no line".bytes, code: "line-malformed", reason: "no"))]
    #expect(try world.run().counts.refused == 0)
  }

  @Test func aFeedThatBreaksOffChangesNothing() throws {
    let world = world([])
    world.server.answer(Self.root, Server.broken("a listing", after: 3))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .feedUnreachable)
    #expect(failure?.code == "connection-lost")
  }
}
