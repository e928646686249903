import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Unfinished downloads that no pass will go on with.
@Suite struct DeadPartialTests {
  private static let large = String(repeating: "0123456789abcdef", count: 1 << 17)

  /// A mirror in which `large` was interrupted.
  private func interrupted() throws -> World {
    let world = World()
    world.policy.retries = 0
    world.want("large", Self.large)
    world.want("small", "small")
    world.server.answer(World.host + "large", Server.broken(Self.large, after: 1_500_000, etag: "\"1\""))
    #expect(try world.run().counts.failed == 1)
    #expect(world.partialNames.count == 1)
    #expect(try world.ledger.partials().count == 1)
    return world
  }

  private func isClean(_ world: World) throws -> Bool {
    try world.partialNames.isEmpty && world.ledger.partials().isEmpty
  }

  @Test func whatTheFeedDroppedGoes() throws {
    let world = try interrupted()
    world.unlist("large")
    #expect(try world.run().isInSync)
    #expect(try isClean(world))
  }

  @Test func whatCameInAnotherWayGoes() throws {
    let world = try interrupted()
    world.folder.write("large".path, Self.large.bytes)
    #expect(try world.run().isInSync)
    #expect(try isClean(world))
  }

  /// It may only be missing in this answer.
  @Test func whatAnIncompleteListDoesNotNameStays() throws {
    let world = try interrupted()
    world.unlist("large")
    world.end.isComplete = false
    try world.run()
    #expect(world.partialNames.count == 1)
    #expect(try world.ledger.partials().count == 1)
  }

  @Test func whatStillFailsStays() throws {
    let world = try interrupted()
    world.server.answer(World.host + "large", FakeAnswer(status: 503))
    #expect(try world.run().counts.failed == 1)
    #expect(world.partialNames.count == 1)
  }

  /// Somebody put a file there: once it is moved away, the download goes on.
  @Test func whatIsInConflictStays() throws {
    let world = try interrupted()
    world.folder.makeLink("large".path)
    #expect(try world.run().counts.conflict == 1)
    #expect(world.partialNames.count == 1)
  }

  /// It could not be published, and somebody put a file there: its bytes wait, whole, and are not fetched again.
  @Test func whatIsWholeAndInConflictStays() throws {
    let world = World()
    world.want("large", Self.large)
    let folder = world.folder
    world.server.onRequest { _ in folder.setIntact(false) }
    #expect(throws: PassFailure.self) { try world.run() }
    world.server.onRequest(nil)
    folder.setIntact(true)
    folder.write("large".path, "mine".bytes)
    for _ in 0..<2 { #expect(try world.run().counts.conflict == 1) }
    #expect(world.partialNames.map { folder.partialContents($0)?.count } == [Self.large.utf8.count])
    folder.delete("large".path)
    #expect(try world.run().isInSync)
    #expect(world.server.requests.isEmpty)
    #expect(try isClean(world))
  }

  @Test func aPlanDropsNothing() throws {
    let world = try interrupted()
    world.unlist("large")
    _ = try world.plan()
    #expect(world.partialNames.count == 1)
  }
}
