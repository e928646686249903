import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Which problems a look at the folder may end, and which are for those who meet them.
@Suite struct RepairProblemTests {
  private func world(_ names: [String] = ["a", "b", "c"]) throws -> World {
    let world = try World.inSync(names)
    world.server.clearRequests()
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  private func codes(_ world: World) throws -> [String] { try world.ledger.problems(limit: 9).map(\.code) }

  private func hasRecovered(_ world: World) -> Bool {
    world.ledger.contents.events.contains { $0.code == ProblemNews.ended }
  }

  /// What stands there is the version before, as it was recorded.
  @Test(arguments: [Region.everything, Region("a".path, .itself)], [true, false])
  func anUpdateThatFailedStaysAProblem(region: Region, onlyCounts: Bool) throws {
    let world = try world()
    world.want("a", "newer text of a")
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    #expect(try !world.run().isInSync)
    #expect(try world.repair([region], onlyCounts: onlyCounts).report.counts.planned.all == 0)
    #expect(try codes(world) == ["http-404"] && !hasRecovered(world))
    #expect(try world.run().isInSync && codes(world).isEmpty)
  }

  /// Only its server knows whether it is the wanted version.
  @Test func whatAServerDidNotConfirmStaysAProblem() throws {
    let world = try world()
    world.server.put(World.host + "bare", "text".bytes, etag: nil)
    world.add(world.bareEntry("bare"))
    #expect(try world.run().isInSync)
    world.server.script(World.host + "bare", [FakeAnswer(status: 404)])
    #expect(try !world.run().isInSync)
    _ = try world.repair([.everything])
    #expect(try codes(world) == ["http-404"])
  }

  @Test func aDeletionThatFailedStaysAProblemUntilTheFileIsGone() throws {
    let world = try world()
    world.policy.deletes = true
    world.unlist("c")
    world.folder.fail(.remove, with: FolderFailure(.permission, "as told"))
    #expect(try !world.run().isInSync)
    _ = try world.repair([.everything])
    #expect(try codes(world) == ["permission-denied"] && world.text("c") != nil)
    world.folder.delete("c".path)
    _ = try world.repair([itself("c")])
    #expect(try codes(world).isEmpty && hasRecovered(world))
  }

  /// Its directory cannot be removed.
  private func leaveDirectory(_ world: World) throws {
    world.policy.deletes = true
    world.unlist("d/f")
    world.folder.fail(.removeDirectory, with: FolderFailure(.permission, "as told"))
    #expect(try !world.run().isInSync)
    #expect(try codes(world) == [Problem.leftoverCode])
  }

  @Test(arguments: [true, false]) func aDirectoryThatStaysIsAProblem(onlyCounts: Bool) throws {
    let world = try world(["a", "b", "c", "d/f"])
    try leaveDirectory(world)
    for region in [Region.everything, itself("d"), Region("d".path, .tree)] {
      _ = try world.repair([region], onlyCounts: onlyCounts)
      #expect(try codes(world) == [Problem.leftoverCode] && !hasRecovered(world))
    }
    #expect(try world.run().isInSync && world.folder.look("d".path) == nil)
  }

  /// It is removed by a pass, and not by the repair of another file.
  @Test func aRepairRemovesNoDirectory() throws {
    let world = try world(["a", "b", "c", "d/f"])
    try leaveDirectory(world)
    let removed = world.folder.count(.removeDirectory)
    for region in [itself("a"), .everything] {
      world.folder.delete("a".path)
      let report = try world.repair([region])
      #expect(report.report.counts.restored == 1 && report.report.counts.failed == 0 && !report.needsPass)
    }
    #expect(world.folder.count(.removeDirectory) == removed)
    #expect(try codes(world) == [Problem.leftoverCode])
    #expect(try world.run().isInSync && world.folder.look("d".path) == nil)
  }

  @Test func whatIsGoneElsewhereIsNotLookedAt() throws {
    let world = try world(["a", "b", "c", "d/f"])
    try leaveDirectory(world)
    world.folder.delete("d".path)
    _ = try world.repair([itself("a")])
    #expect(try codes(world) == [Problem.leftoverCode])
    _ = try world.repair([itself("d")])
    #expect(try codes(world).isEmpty)
  }

  @Test func aDirectoryThatCanBeReadAgainIsNone() throws {
    let world = try world(["a", "sub/c"])
    world.folder.makeUnreadable("sub".path)
    #expect(try world.repair([.everything]).needsPass)
    #expect(try codes(world) == ["permission-denied"])
    world.folder.makeUnreadable("sub".path, nil)
    _ = try world.repair([itself("sub")])
    #expect(try codes(world).isEmpty && world.isConverged)
  }

  /// The file was there when the look came to it, and was not when another repair did.
  @Test func whatIsMetAgainBesideALookStaysAProblem() throws {
    let world = try world()
    world.server.answer(World.host + "b", FakeAnswer(status: 404))
    world.folder.rename("b".path, to: "away".path)
    #expect(try world.repair([itself("b")]).report.counts.failed == 1)
    world.folder.rename("away".path, to: "b".path)
    let gate = world.hold("a")
    world.folder.delete("a".path)
    let look = try world.beginRepair([.everything])
    world.awaitRequest(of: "a")
    world.clock.advance(.seconds(1))
    world.folder.rename("b".path, to: "away".path)
    #expect(try world.repairBeside([itself("b")]).report.counts.failed == 1)
    gate.open()
    #expect(try look.wait().report.counts.restored == 1 && codes(world) == ["http-404"])
  }

  /// It came to stand there once both had looked, and the pass is older than the look.
  @Test func aConflictOfAPassBesideALookStays() throws {
    let world = try world()
    world.want("new", "text of new")
    let (fetch, restore) = (world.hold("new"), world.hold("a"))
    let pass = try world.begin()
    world.awaitRequest(of: "new")
    world.clock.advance(.seconds(1))
    world.folder.delete("a".path)
    let look = try world.beginRepair([.everything])
    world.awaitRequest(of: "a")
    world.clock.advance(.seconds(1))
    world.folder.write("new".path, "somebody's".bytes)
    fetch.open()
    #expect(try pass.wait().problems.map(\.code) == ["foreign-file"])
    let conflict = try #require(try world.ledger.problem(name: "new".bytes))
    #expect(conflict.seen == world.clock.time)
    restore.open()
    #expect(try look.wait().report.counts.restored == 1)
    #expect(try world.ledger.problem(name: "new".bytes) == conflict && !hasRecovered(world))
  }

}
