import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// A pass whose options choose other files than the mirror's own, for once: it says nothing of the mirror as a whole.
@Suite struct OnceTests {
  private func status(_ world: World) throws -> StatusDocument {
    try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
  }

  private func narrow(_ world: World) throws -> PassReport {
    world.policy.filter.include = PathPatterns(["a*"])
    (world.isOnce, world.choosesOthers) = (true, true)
    defer {
      world.policy.filter = PathFilter()
      (world.isOnce, world.choosesOthers) = (false, false)
    }
    return try world.run()
  }

  private func mirror() -> World {
    let world = World()
    world.policy.retries = 0
    world.want("a", "text a")
    world.want("b", "text b")
    return world
  }

  @Test(arguments: [("running", "interrupted"), ("stopped", "interrupted"), ("failed", "failing")])
  func aPassThatDidNotEndStaysUnfinished(_ outcome: String, _ state: String) throws {
    let world = mirror()
    try world.ledger.apply([
      .fact(.outcome, outcome), .fact(.entriesWanted, "2"), .fact(.entriesCurrent, "0"),
      .fact(.failure, outcome == "failed" ? "the feed is a login page" : nil),
    ])
    #expect(try narrow(world).isInSync)
    let document = try status(world)
    #expect(document.state == state && document.lastSuccess == nil)
    #expect(document.entries.wanted == 2)
    #expect(try world.run().isInSync)
    #expect(try status(world).state == "idle")
  }

  @Test func aMirrorInSyncStaysSo() throws {
    let world = mirror()
    #expect(try world.run().isInSync)
    let before = try status(world)
    #expect(try narrow(world).isInSync)
    let document = try status(world)
    #expect(document.state == "idle" && document.entries.wanted == 2 && document.entries.current == 2)
    #expect(document.lastSuccess == before.lastSuccess)
  }

  /// It is no pass of the whole, whatever the mirror's own options are.
  @Test func aFirstPassForOnceLeavesTheMirrorUnfinished() throws {
    let world = mirror()
    #expect(try narrow(world).isInSync)
    let document = try status(world)
    #expect(document.state == "idle" && document.lastSuccess == nil)
    #expect(try world.run().isInSync)
    #expect(try status(world).state == "idle")
  }

  @Test func aPassThatIsKilledLeavesTheNumbers() throws {
    let world = mirror()
    #expect(try world.run().isInSync)
    world.policy.filter.include = PathPatterns(["a*"])
    (world.isOnce, world.choosesOthers) = (true, true)
    world.items = [.entry(world.serve("a", "another text a"))]
    // As of a pass that is killed: nothing is put back.
    world.rushes = true
    world.log.onEvent { [ledger = world.ledger] _, event in
      switch event {
      case .planned, .done:
        #expect((try? ledger.fact(.entriesWanted)) == "2" && (try? ledger.fact(.entriesCurrent)) == "2")
        #expect((try? ledger.fact(.outcome)) == "running")
      default: break
      }
    }
    #expect(try world.run().isInSync)
    #expect(try status(world).entries.wanted == 2)
  }

  /// What its options let go may be what the mirror's own want. It says so.
  @Test func itDeletesNothing() throws {
    let world = mirror()
    world.policy.deletes = true
    #expect(try world.run().isInSync)
    let before = try status(world)
    world.items = []
    world.want("b", "text b")
    (world.choosesOthers, world.isOnce) = (true, true)
    let report = try world.run()
    #expect(report.counts.deleted == 0 && report.counts.held == 0 && world.files.count == 2)
    #expect(world.log.notices.contains { $0.code == "nothing-deleted" })
    let document = try status(world)
    #expect(document.state == "idle" && document.entries.current == before.entries.current)
    // The next pass does it.
    (world.choosesOthers, world.isOnce) = (false, false)
    #expect(try world.run().counts.deleted == 1)
  }

  /// Deletions that wait for an approval go on waiting.
  @Test(arguments: [true, false]) func whatIsHeldStaysHeld(choosesOthers: Bool) throws {
    let world = World()
    world.policy.deletes = true
    for number in 0..<20 { world.want("a\(number)", "text \(number)") }
    #expect(try world.run().isInSync)
    world.items.removeLast(12)
    #expect(try world.run().counts.held == 12)
    let held = try status(world).held?.plan
    if choosesOthers {
      _ = try narrow(world)
    } else {
      (world.policy.deletes, world.isOnce, world.keepsHold) = (false, true, true)
      try world.run()
    }
    #expect(try held != nil && status(world).held?.plan == held)
    #expect(try status(world).state == "held")
  }

  /// The caller is told; the mirror is as it was.
  @Test func aFailureOfItsOwnLeavesTheMirror() throws {
    let world = mirror()
    #expect(try world.run().isInSync)
    world.feedFailure = FeedFailure(code: "feed-not-recognised", message: "this is no feed")
    #expect(throws: PassFailure.self) { try narrow(world) }
    #expect(try status(world).state == "idle")
    world.feedFailure = nil
    #expect(try narrow(world).isInSync)
    #expect(try status(world).state == "idle" && status(world).lastFailure == nil)
  }

  @Test func whatFailedBesideItStaysFailed() throws {
    let world = mirror()
    world.server.script(World.host + "b", [FakeAnswer(status: 404)])
    #expect(try world.run().counts.failed == 1)
    #expect(try narrow(world).isInSync)
    let document = try status(world)
    #expect(document.state == "failing" && document.entries.failed == 1 && document.entries.wanted == 2)
  }

  @Test func whatItFailsAtIsTold() throws {
    let world = mirror()
    #expect(try world.run().isInSync)
    world.items = []
    world.want("a", "another text a")
    world.want("b", "text b")
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    #expect(try narrow(world).counts.failed == 1)
    #expect(try status(world).state == "failing")
  }
}
