import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Who follows the events hears of an entry's trouble once, and of its end.
@Suite struct ProblemEventTests {
  private func told(_ world: World) -> [String] {
    world.ledger.contents.events.map { "\($0.code) \($0.path?.printable ?? "-")" }
  }

  @Test func anEntryThatFailsAndRecoversIsTwoEvents() throws {
    let world = World()
    world.want("a", "text of a")
    let url = World.host + "b"
    world.add(world.entry("b", "text of b"))
    world.server.answer(url, FakeAnswer(status: 404))
    for _ in 0..<3 { #expect(try world.run().counts.failed == 1) }
    #expect(told(world) == ["fetched a", "failed b"])
    let failure = world.ledger.contents.events.last
    #expect(failure?.detail.contains("404") == true, "\(failure?.detail ?? "")")
    // Another reason is no other state.
    world.server.answer(url, FakeAnswer(status: 410))
    #expect(try world.run().counts.failed == 1)
    #expect(told(world).count == 2)
    world.want("b", "text of b")
    #expect(try world.run().isInSync)
    #expect(Array(told(world).dropFirst(2).sorted()) == ["fetched b", "recovered b"])
    #expect(world.ledger.contents.events.first { $0.code == "recovered" }?.detail == "had failed")
    #expect(try world.run().isInSync)
    #expect(told(world).count == 4)
  }

  @Test func anEntryThatTheFeedLosesHasNoTroubleAnyMore() throws {
    let world = World()
    world.want("a", "text of a")
    world.add(world.entry("b", "text of b"))
    world.server.answer(World.host + "b", FakeAnswer(status: 404))
    _ = try world.run()
    world.unlist("b")
    #expect(try world.run().isInSync)
    #expect(told(world) == ["fetched a", "failed b", "recovered b"])
    #expect(world.ledger.contents.events.last?.detail == "had failed, and is no longer wanted")
  }

  /// So does who heard that a pass did not do its work: also where the first one after it was stopped, or leaves files undone.
  @Test func aMirrorThatDoesItsWorkAgainHasRecovered() throws {
    let world = World()
    world.want("a", "text of a")
    _ = try world.run()
    let before = told(world).count
    world.feedFailure = FeedFailure(code: "list-malformed", message: "the list is cut off")
    for _ in 0..<2 { #expect(throws: PassFailure.self) { try world.run() } }
    #expect(Array(told(world).dropFirst(before)) == ["pass-failed -", "pass-failed -"])
    world.feedFailure = nil
    world.add(world.entry("b", "text of b"))
    world.server.answer(World.host + "b", FakeAnswer(status: 404))
    #expect(try world.run().counts.failed == 1)
    #expect(Set(told(world).dropFirst(before + 2)) == ["failed b", "recovered -"])
    #expect(world.ledger.contents.events.contains { $0.detail == "a pass had failed [list-malformed]" })
    let after = told(world).count
    _ = try world.run()
    #expect(told(world).count == after)
  }

  @Test func aConflictIsToldAsOne() throws {
    let world = World()
    world.want("a", "text of a")
    _ = world.folder.write("a".path, "somebody's".bytes)
    #expect(try world.run().counts.conflict == 1)
    #expect(try world.run().counts.conflict == 1)
    #expect(told(world) == ["conflict a"])
  }
}
