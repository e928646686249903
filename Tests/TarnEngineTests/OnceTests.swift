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

  @Test(arguments: ["running", "stopped", "failed"])
  func aPassThatDidNotEndStaysUnfinished(_ outcome: String) throws {
    let world = mirror()
    try world.ledger.apply([
      .fact(.outcome, outcome), .fact(.entriesWanted, "2"), .fact(.entriesCurrent, "0"),
    ])
    #expect(try narrow(world).isInSync)
    let document = try status(world)
    #expect(document.state == "interrupted" && document.lastSuccess == nil)
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
