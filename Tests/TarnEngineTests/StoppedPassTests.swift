import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What is known of a mirror whose last pass did not come to its end.
@Suite struct StoppedPassTests {
  private func status(_ world: World) throws -> StatusDocument {
    try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
  }

  /// Stops the pass when that path is asked for.
  private func runAndStop(_ world: World, at path: String) throws {
    world.server.answer(World.host + path, FakeAnswer(hangs: true))
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let running = world.pass(downloader)
    world.server.onRequest { request in
      if request.url == World.host + path { running.stop.set() }
    }
    defer { world.server.onRequest(nil) }
    #expect(try running.run(folder: world.folder).wasStopped)
  }

  /// The feed has changed, and nothing of it was fetched: neither in sync nor as it was.
  @Test func countsAreThoseOfTheFeedThatWasRead() throws {
    let world = World()
    for name in ["a", "b", "lost", "refused"] { world.want(name, name) }
    world.server.remove(World.host + "lost")
    world.items.append(
      .refused(Refusal(name: "../x".bytes, code: "path-dot-segment", reason: "it leads out of the folder")))
    world.folder.write("foreign".path, "somebody's".bytes)
    world.want("foreign", "foreign")
    try world.run()
    let before = try status(world).entries
    #expect((before.wanted, before.current, before.failed) == (6, 3, 1))
    #expect((before.refused, before.conflict, before.pending) == (1, 1, 0))

    world.items = []
    world.want("a", "a")
    world.want("b", "b, but newer")
    world.want("new", "new")
    world.clock.advance(.seconds(60))
    try runAndStop(world, at: "new")
    let document = try status(world)
    let entries = document.entries
    #expect(document.state == "interrupted")
    #expect(entries.wanted == 3 && entries.failed + entries.refused + entries.conflict == 0, "\(entries)")
    #expect(entries.current + entries.pending == 3 && entries.pending >= 1, "\(entries)")
    #expect(document.problems.isEmpty, "\(document.problems)")
    world.want("new", "new")
    #expect(try world.run().isInSync)
    #expect(try status(world).state == "idle")
  }

  /// What failed before, is still wanted and was not tried yet, has failed still.
  @Test func whatIsStillMissingStaysAProblem() throws {
    let world = World()
    for name in ["a", "lost"] { world.want(name, name) }
    world.server.remove(World.host + "lost")
    try world.run()
    world.want("new", "new")
    world.server.answer(World.host + "lost", FakeAnswer(hangs: true))
    world.clock.advance(.seconds(60))
    try runAndStop(world, at: "new")
    let document = try status(world)
    #expect(document.problems.map(\.path) == ["lost"])
    #expect((document.entries.failed, document.entries.pending) == (1, 1))
  }

  /// As of a pass at work, or after a kill, when nothing says more than what the last one wrote at its begin.
  @Test(arguments: [nil, 42] as [Int32?]) func whatIsTriedAgainIsPending(holder: Int32?) throws {
    let world = World()
    for name in ["a", "lost1", "lost2", "lost3"] { world.want(name, name) }
    for name in ["lost1", "lost2", "lost3"] { world.server.remove(World.host + name) }
    world.items.append(
      .refused(Refusal(name: "../x".bytes, code: "path-dot-segment", reason: "it leads out of the folder")))
    try world.run()
    let before = try status(world)
    #expect((before.entries.failed, before.entries.pending, before.problems.count) == (3, 0, 4))
    // In the same second as the problems of the pass before.
    world.clock.advance(.milliseconds(1))
    let seen = Locked<StatusDocument?>(nil)
    let ledger = world.ledger
    world.server.onRequest { request in
      guard request.url.hasPrefix(World.host + "lost") else { return }
      let document = try? StatusQuery(ledger: ledger).document(
        name: "m", folder: "/folder", holder: holder, problemLimit: 1)
      seen.withLock { $0 = $0 ?? document }
    }
    try world.run()
    world.server.onRequest(nil)
    let document = try #require(seen.withLock { $0 })
    #expect(document.state == (holder == nil ? "interrupted" : "transferring"))
    let entries = document.entries
    #expect((entries.current, entries.failed, entries.refused, entries.pending) == (1, 0, 1, 3), "\(entries)")
    #expect(document.problems.map(\.path) == ["../x"] && document.moreProblems == 0, "\(document.problems)")
    let after = try status(world)
    #expect((after.entries.failed, after.entries.pending) == (3, 0))
    #expect(after.problems.filter { $0.kind == "failed" }.map(\.attempts) == [2, 2, 2])
  }

  /// A list that is cut off does not say what it no longer wants.
  @Test func anIncompleteListSolvesNothing() throws {
    let world = World()
    for name in ["a", "lost"] { world.want(name, name) }
    world.server.remove(World.host + "lost")
    try world.run()
    world.unlist("lost")
    world.want("new", "new")
    world.end.isComplete = false
    world.clock.advance(.seconds(60))
    try runAndStop(world, at: "new")
    #expect(try status(world).problems.map(\.path) == ["lost"])
  }

  // MARK: The journal

  @Test func aPassThatFailsIsInTheJournal() throws {
    let world = World()
    world.want("a", "a")
    try world.run()
    let known = try world.ledger.lastEvent()
    world.feedFailure = FeedFailure(code: "list-malformed", message: "the list is cut off", line: 3)
    #expect(throws: PassFailure.self) { try world.run() }
    let events = try world.ledger.events(after: known, limit: 10)
    #expect(events.map(\.code) == ["pass-failed"])
    let event = try #require(events.first)
    #expect(event.path == nil && event.detail.contains("the list is cut off"), "\(event)")
    #expect(event.detail.contains("[list-malformed]"))
  }

  /// Who follows the events would be told of one that is nowhere later.
  @Test func aJournalThatGoesWithTheFailureIsToldNothing() throws {
    let world = World()
    world.want("a", "a")
    world.feedFailure = FeedFailure(code: "list-malformed", message: "the list is cut off", line: 3)
    for isLost in [true, false] {
      world.isJournalLost = { isLost }
      #expect(throws: PassFailure.self) { try world.run() }
      #expect(try world.ledger.events(after: 0, limit: 10).map(\.code) == (isLost ? [] : ["pass-failed"]))
    }
  }

  /// Whoever stops one knows of it.
  @Test func aPassThatIsStoppedIsNot() throws {
    let world = World()
    world.want("a", "a")
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    world.stop.set()
    #expect(throws: PassFailure.self) { try world.pass(downloader).run(folder: world.folder) }
    #expect(try world.ledger.lastEvent() == 0)
    #expect(try status(world).state == "interrupted")
  }
}
