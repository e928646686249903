import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Files that the feed turns into directories: deletions like any other (I8).
@Suite struct MakingWayTests {
  /// So many files in sync; the first `turned` of them then become directories.
  private func world(_ count: Int, turned: Int) throws -> World {
    let world = World()
    world.policy.deletes = true
    for number in 0..<count { world.want(name(number), "\(number)") }
    try world.run()
    for number in 0..<turned {
      world.unlist(name(number))
      world.want(name(number) + "/x", "new \(number)")
    }
    return world
  }

  private func name(_ number: Int) -> String { "f\(number + 100)" }

  /// A feed that turns every file into a directory must not clear the folder.
  @Test func moreThanTheGuardAllowsAreHeld() throws {
    let world = try world(20, turned: 20)
    let report = try world.run()
    let id = try #require(report.held?.id)
    #expect(report.counts.held == 20 && report.counts.conflict == 0 && report.counts.failed == 0)
    #expect(world.files.count == 20 && world.trash.isEmpty)
    #expect(world.text(name(7)) == "7")
    #expect(!report.isInSync)
    #expect(world.server.requests.isEmpty)
    #expect(report.problems.map(\.name) == (0..<20).map { Array("\(name($0))/x".utf8) })
    #expect(report.problems.allSatisfy { $0.kind == .held && $0.message.contains(id) })
    #expect(world.log.problems.count == 20)
    let status = try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
    #expect(status.state == "held" && status.held?.plan == id && status.held?.deletions == 20)
    #expect(try world.run().held?.id == id)
  }

  @Test func approvalLetsThemMakeWay() throws {
    let world = try world(20, turned: 3)
    let id = try #require(try world.run().held?.id)
    #expect(world.files.count == 20)
    let approved = try world.approval.run(plan: id)
    #expect(approved.deleted == 3 && approved.spared == 0)
    #expect(world.trash == ["0", "1", "2"])
    #expect(try world.run().isInSync)
    #expect(world.isConverged)
    #expect(world.text(name(2) + "/x") == "new 2")
  }

  /// One set under one id, whether a file makes way or is merely gone from the feed.
  @Test func whatIsGoneIsHeldWithThem() throws {
    let world = try world(20, turned: 3)
    world.unlist(name(19))
    let report = try world.run()
    let id = try #require(report.held?.id)
    #expect(report.counts.held == 4 && report.counts.deleted == 0)
    #expect(try world.ledger.heldPaths(plan: id) == [0, 1, 2, 19].map { name($0).path })
    #expect(world.files.count == 20)
    #expect(try world.approval.run(plan: id).deleted == 4)
    #expect(try world.run().isInSync)
  }

  /// As many as the guard allows go at once, and are counted.
  @Test func withinTheGuardTheyGo() throws {
    let world = try world(20, turned: 2)
    let report = try world.run()
    #expect(report.isInSync && report.held == nil)
    #expect(report.counts.deleted == 2)
    #expect(world.isConverged)
  }

  /// An index file below one of them waits as well.
  @Test func anIndexBelowWaits() throws {
    let world = try world(20, turned: 3)
    world.policy.publishLast = PathPatterns(["x"])
    world.want("other/x", "index")
    let report = try world.run()
    #expect(report.counts.held == 3 && report.counts.failed == 0 && report.counts.fetched == 1)
    #expect(world.text("other/x") == "index")
  }

  /// Nothing is held on a list that is not complete: each entry is a conflict, once.
  @Test func anIncompleteListHoldsNothing() throws {
    let world = try world(20, turned: 1)
    world.end.isComplete = false
    let report = try world.run()
    #expect(report.held == nil && report.counts.held == 0)
    #expect(report.counts.conflict == 1 && report.counts.failed == 0)
    #expect(report.problems.map(\.code) == ["parent-not-a-directory"])
    #expect(report.problems.map(\.name) == [Array("\(name(0))/x".utf8)])
    #expect(world.text(name(0)) == "0")
  }
}
