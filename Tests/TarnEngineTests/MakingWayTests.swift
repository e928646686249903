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

  /// Why a file could not make way is told of that file.
  @Test func aFileThatCannotGoIsTold() throws {
    let world = try world(20, turned: 1)
    world.policy.retries = 0
    world.folder.fail(.remove)
    let report = try world.run()
    #expect(world.text(name(0)) == "0")
    #expect(
      report.problems.contains { $0.name == Array(name(0).utf8) && $0.code == "input-output-error" },
      "\(report)")
    #expect(try world.run().isInSync)
    #expect(world.text(name(0) + "/x") == "new 0")
  }

  /// What lies below is not fetched in vain, and is told what is in its way and why.
  @Test(arguments: [false, true]) func belowAFileThatCannotGoNothingIsFetched(isEdited: Bool) throws {
    let world = try world(20, turned: 1)
    world.policy.publishLast = PathPatterns(["/\(name(0))/y"])
    world.want(name(0) + "/y", "last")
    world.want("z", "other")
    let folder = world.folder
    if isEdited { folder.beforeRemove { folder.edit($0, "mine".bytes) } } else { folder.fail(.remove) }
    let report = try world.run()
    #expect(world.server.urls == [World.host + "z"])
    #expect(report.counts.failed == 3 && report.problems.count == 3)
    for below in ["/x", "/y"] {
      let problem = try #require(report.problems.first { $0.name == (name(0) + below).bytes })
      #expect(problem.kind == .failed && problem.code == "parent-not-a-directory")
      let reason = isEdited ? "the file changed while the pass ran" : "as told"
      #expect(problem.message.contains(name(0) + " is a file") && problem.message.contains(reason))
    }
    folder.beforeRemove(nil)
    #expect(try world.run().isInSync != isEdited)
  }

  /// What lies below a refused name is not deleted, whatever the feed has below it.
  /// A new link or another mode makes no other file of it: the deletion and the conflict see the same.
  @Test func aFileWhoseNumberOfLinksChangedMakesWay() throws {
    let world = try world(20, turned: 1)
    world.folder.rename(name(0).path, to: "elsewhere".path)
    world.folder.rename("elsewhere".path, to: name(0).path)
    let report = try world.run()
    #expect(report.isInSync, "\(report)")
    #expect(world.text(name(0) + "/x") == "new 0")
  }

  @Test func whatARefusedNameProtectsMakesNoWay() throws {
    let world = World()
    world.policy.deletes = true
    world.want("x/a", "one")
    try world.run()
    world.unlist("x/a")
    world.want("x/a/b", "two")
    world.items.insert(
      .refused(Refusal(path: "x".path, code: "path-not-portable", reason: "as told")), at: 0)
    let report = try world.run()
    #expect(world.files == ["x/a": "one"] && world.trash.isEmpty)
    #expect(report.counts.deleted == 0)
    #expect(report.problems.contains { $0.code == "parent-not-a-directory" })
  }

  /// The other way round: a directory becomes a file, in one pass.
  @Test(arguments: [0, 20]) func aDirectoryThatHoldsNothingElseMakesWay(others: Int) throws {
    let world = World()
    world.policy.deletes = true
    for number in 0..<others { world.want(name(number), "\(number)") }
    world.want("main/logo.png", "logo")
    try world.run()
    world.unlist("main/logo.png")
    world.want("main", "text")
    let (planned, actions) = try world.plan()
    #expect(planned.counts.planned.all == 2 && planned.counts.deleted == 1 && planned.counts.conflict == 0)
    #expect(Set(actions.map(\.path)) == ["main".path, "main/logo.png".path])
    let report = try world.run()
    #expect(report.isInSync && report.problems.isEmpty, "\(report)")
    #expect(report.counts.deleted == 1 && report.counts.fetched == 1)
    #expect(world.text("main") == "text" && world.trash == ["logo"])
    #expect(world.isConverged)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aDirectoryWithAForeignFileIsAConflict() throws {
    let world = World()
    world.policy.deletes = true
    for number in 0..<20 { world.want(name(number), "\(number)") }
    world.want("main/logo.png", "logo")
    try world.run()
    world.folder.write("main/mine".path, "mine".bytes)
    world.unlist("main/logo.png")
    world.want("main", "text")
    #expect(try world.plan().report.counts.conflict == 1)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["directory-in-the-way"])
    #expect(world.text("main/mine") == "mine")
  }

  @Test func aDirectoryWhoseDeletionIsHeldStays() throws {
    let world = World()
    world.policy.deletes = true
    for number in 0..<20 { world.want("main/" + name(number), "\(number)") }
    try world.run()
    for number in 0..<20 { world.unlist("main/" + name(number)) }
    world.want("main", "text")
    #expect(try world.plan().report.counts.conflict == 1)
    let report = try world.run()
    #expect(report.held?.count == 20 && report.problems.map(\.code) == ["directory-in-the-way"])
    #expect(world.files.count == 20)
    #expect(try world.approval.run(plan: nil).deleted == 20)
    #expect(try world.run().isInSync)
    #expect(world.text("main") == "text")
  }

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
    let world = try world(20, turned: 4)
    let id = try #require(try world.run().held?.id)
    #expect(world.files.count == 20)
    let approved = try world.approval.run(plan: id)
    #expect(approved.deleted == 4 && approved.spared == 0)
    #expect(world.trash == ["0", "1", "2", "3"])
    // What waited for that plan is not there yet, and needs no approval any more.
    let status = try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
    #expect(
      status.state == "failing" && status.held == nil && world.ledger.contents.facts[.outcome] != "in-sync")
    #expect(status.problems.map(\.code) == Array(repeating: "waits-for-pass", count: 4))
    #expect(status.problems.allSatisfy { $0.message.contains(id) && !$0.message.contains("approval") })
    #expect(try world.run().isInSync)
    #expect(world.isConverged && world.ledger.contents.problems.isEmpty)
    #expect(world.text(name(2) + "/x") == "new 2")
  }

  /// What was in the way may still be there: nobody says that it went.
  @Test func anApprovalThatSparedAFileDoesNotSayThatItWent() throws {
    let world = try world(20, turned: 4)
    let id = try #require(try world.run().held?.id)
    world.folder.edit(name(0).path, "mine".bytes)
    let approved = try world.approval.run(plan: id)
    #expect(approved.deleted == 3 && approved.spared == 1 && world.text(name(0)) == "mine")
    let waiting = world.ledger.contents.problems.values.filter { $0.code == "waits-for-pass" }
    #expect(waiting.count == 4)
    #expect(
      waiting.allSatisfy {
        $0.message.contains("plan \(id), which it waited for, was approved") && !$0.message.contains("went")
      })
    #expect(try world.run().counts.wanting == 1)
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

  /// What makes way and what is gone are judged together: neither uses up the other's share twice.
  @Test(arguments: [(10, 1), (5, 30), (1, 10)]) func beyondTheGuardAllAreHeld(turned: Int, gone: Int) throws {
    let world = try world(100, turned: turned)
    for number in 100 - gone..<100 { world.unlist(name(number)) }
    world.want("new", "new")
    let planned = try world.plan()
    let report = try world.run()
    let id = try #require(report.held?.id)
    #expect(report.counts.held == turned + gone && report.counts.deleted == 0)
    #expect(report.counts.waiting == turned && report.counts.fetched == 1)
    #expect(world.files.count == 101 && world.trash.isEmpty)
    #expect(try world.ledger.heldPaths(plan: id).count == turned + gone)
    #expect(planned.report.held?.id == id)
    #expect(try world.approval.run(plan: id).deleted == turned + gone)
    #expect(try world.run().isInSync)
    #expect(world.isConverged)
  }

  @Test func withinTheGuardBothGo() throws {
    let world = try world(100, turned: 9)
    world.unlist(name(99))
    let report = try world.run()
    #expect(report.isInSync && report.counts.deleted == 10 && report.held == nil)
    #expect(world.isConverged)
  }

  // MARK: Planning

  /// A plan tells what the pass then does, and writes nothing.
  @Test func aPlanTellsWhatWillBeHeld() throws {
    let world = try world(100, turned: 30)
    for number in 0..<30 { world.want(name(number) + "/y", "too") }
    for number in 80..<100 { world.unlist(name(number)) }
    world.folder.delete(name(99).path)
    world.want("new", "new")
    let events = world.ledger.contents.events.count
    let (planned, actions) = try world.plan()
    #expect(world.ledger.contents.held == nil && world.ledger.contents.heldPaths.isEmpty)
    #expect(world.ledger.contents.events.count == events)
    #expect(planned.counts.planned.all == 1 && planned.bytes.planned == 3)
    #expect(planned.counts.held == 49 && planned.counts.deleted == 0 && planned.counts.waiting == 60)
    #expect(planned.counts.conflict == 0 && !planned.isInSync)
    #expect(actions.map(\.path) == ["new".path])
    #expect(world.wouldHold == ((0..<30).map { name($0).path } + (80..<99).map { name($0).path }))
    #expect(planned.problems.count == 60 && world.log.problems.count == 60)
    let report = try world.run()
    #expect(report.counts.fetched == 1 && report.counts.deleted == 0 && report.counts.planned.all == 1)
    #expect(report.counts.held == 49 && report.counts.waiting == 60 && report.counts.forgotten == 0)
    #expect(planned.held?.id == report.held?.id && planned.held?.count == 49)
    #expect(planned.problems.map(\.message) == report.problems.map(\.message))
  }

  @Test func aPlanIsInSyncWhenNothingIsToDo() throws {
    let world = try world(100, turned: 2)
    world.unlist(name(99))
    var planned = try world.plan().report
    #expect(planned.counts.deleted == 3 && planned.counts.planned.all == 5 && planned.counts.held == 0)
    #expect(planned.held == nil && !planned.isInSync)
    #expect(try world.run().isInSync)
    planned = try world.plan().report
    #expect(planned.counts.planned.all == 0 && planned.isInSync)
  }

  /// Where nothing may be deleted a plan tells the conflicts of the pass, and counts no bytes for them.
  @Test func aPlanOfAnIncompleteListTellsTheConflicts() throws {
    let world = try world(20, turned: 1)
    world.end.isComplete = false
    let (planned, actions) = try world.plan()
    #expect(actions.isEmpty && planned.counts.planned.all == 0 && planned.bytes.planned == 0)
    #expect(planned.counts.conflict == 1 && planned.counts.held == 0 && planned.counts.waiting == 0)
    #expect(try world.run().problems.map(\.message) == planned.problems.map(\.message))
  }

  /// An index file below one of them waits as well.
  @Test func anIndexBelowWaits() throws {
    let world = try world(20, turned: 4)
    world.policy.publishLast = PathPatterns(["x"])
    world.want("other/x", "index")
    let report = try world.run()
    #expect(report.counts.held == 4 && report.counts.failed == 0 && report.counts.fetched == 1)
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
