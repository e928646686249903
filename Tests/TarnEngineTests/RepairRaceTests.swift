import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What others do while a repair looks, and until it ends. A file that they have renamed and not recorded looks like somebody else's.
@Suite struct RepairRaceTests {
  private func world() throws -> World {
    let world = try World.inSync(["a", "b"])
    world.server.clearRequests()
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  private func requests(of name: String, _ world: World) -> Int {
    world.server.urls.count { $0 == World.host + name }
  }

  /// Wanted by the feed, which says nothing of it but its name.
  private func wantBare(_ name: String, _ text: String, etag: String? = nil, of world: World) {
    world.add(world.bareEntry(name))
    world.server.put(World.host + name, text.bytes, etag: etag)
  }

  private func hasNoProblem(_ world: World) -> Bool {
    world.ledger.contents.problems.isEmpty && world.log.problems.isEmpty
  }

  /// The record of a file that has its name already.
  private struct Record {
    let isRenamed = Gate()
    let goesOn = Gate()
  }

  private func holdRecord(of name: String, _ world: World) -> Record {
    let record = Record()
    let path = name.path
    world.ledger.beforeApply { changes in
      let isRow = changes.contains { if case .row(let row) = $0 { row.path == path } else { false } }
      guard isRow, !record.isRenamed.isOpen else { return }
      record.isRenamed.open()
      record.goesOn.wait()
    }
    return record
  }

  /// The pass has no row of it when the repair ends: that one looks again.
  @Test func whatAPassIsRecordingIsNoConflict() throws {
    let world = try world()
    wantBare("new", "text of new", of: world)
    let record = holdRecord(of: "new", world)
    let pass = try world.begin()
    record.isRenamed.wait()
    #expect(try world.repairBeside([itself("new")]).isSuperseded && hasNoProblem(world))
    record.goesOn.open()
    #expect(try pass.wait().isInSync)
    #expect(try !world.repairBeside([itself("new")]).isSuperseded)
    #expect(hasNoProblem(world) && world.text("new") == "text of new" && requests(of: "new", world) == 1)
  }

  /// The row comes while the repair still brings another file.
  @Test func whatAPassHasRecordedSinceTheLookIsNoConflict() throws {
    let world = try world()
    wantBare("new", "text of new", of: world)
    let slow = world.hold("a")
    let record = holdRecord(of: "new", world)
    let pass = try world.begin()
    record.isRenamed.wait()
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a"), itself("new")])
    world.await { requests(of: "a", world) > 0 }
    record.goesOn.open()
    #expect(try pass.wait().isInSync)
    slow.open()
    let report = try repair.wait()
    #expect(report.report.counts.restored == 1 && report.report.counts.conflict == 0 && !report.isSuperseded)
    #expect(hasNoProblem(world))
  }

  /// It was away as the pass looked, by a policy that leaves it so. Nobody has asked for its version since.
  @Test func whatCameBackBesideAPassWasNotBrought() throws {
    let world = try world()
    world.policy.localChanges = .report
    wantBare("u", "text of u", etag: "\"1\"", of: world)
    #expect(try world.run().isInSync)
    world.server.put(World.host + "u", "newer text of u".bytes, etag: "\"2\"")
    world.folder.rename("u".path, to: "away".path)
    world.want("new", "text of new")
    let gate = world.hold("new")
    world.clock.advance(.seconds(1))
    let pass = try world.begin()
    world.await { requests(of: "new", world) > 0 }
    world.folder.rename("away".path, to: "u".path)
    gate.open()
    let report = try pass.wait()
    #expect(!report.isInSync && report.counts.conflict == 1, "\(report.counts)")
    // A look ends the conflict, and a pass has to ask for the version.
    let look = try world.repair([itself("u")])
    #expect(look.needsPass && look.wantsVersion && world.ledger.contents.problems.isEmpty)
    #expect(try world.run().isInSync && world.text("u") == "newer text of u")
  }

  /// The repair looks twice: with all that its directory has, and by itself. Somebody edits it between the two.
  @Test func whatIsEditedAfterItCameBackIsAskedForNoVersion() throws {
    let world = try world()
    world.policy.localChanges = .report
    wantBare("d/u", "text of u", etag: "\"1\"", of: world)
    world.want("d/s", "text of s")
    #expect(try world.run().isInSync)
    world.folder.rename("d/u".path, to: "away".path)
    world.want("new", "text of new")
    let gate = world.hold("new")
    world.clock.advance(.seconds(1))
    let pass = try world.begin()
    world.await { requests(of: "new", world) > 0 }
    world.folder.rename("away".path, to: "d/u".path)
    gate.open()
    #expect(try pass.wait().counts.conflict == 1)
    let folder = world.folder
    folder.touch("d/s".path)
    folder.beforeDigest { path in
      if path == "d/s".path { folder.edit("d/u".path, "mine".bytes) }
    }
    let look = try world.repair([itself("d"), itself("d/u")])
    #expect(!look.wantsVersion && world.text("d/u") == "mine" && world.ledger.contents.problems.count == 1)
  }

  /// The pass finds it gone or edited, and its manifest does not name it. It is back before that manifest is announced.
  @Test(arguments: [false, true]) func whatARepairHasBroughtSinceIsNotForgotten(isEdited: Bool) throws {
    let world = try World.inSync(["a"] + (0..<20).map { "other-\($0)" })
    world.server.clearRequests()
    world.policy.deletes = true
    let slow = world.hold("a")
    if isEdited { world.folder.edit("a".path, "mine".bytes) } else { world.folder.delete("a".path) }
    let repair = try world.beginRepair([itself("a")])
    world.awaitRequest(of: "a")
    world.unlist("a")
    let (isPlanned, goesOn) = (Gate(), Gate())
    world.ledger.beforeApply { changes in
      guard !isPlanned.isOpen, changes.contains(where: \.isOfAcceptance) else { return }
      isPlanned.open()
      goesOn.wait()
    }
    let pass = try world.beginBeside()
    isPlanned.wait()
    slow.open()
    #expect(try repair.wait().report.counts.hasChanges)
    goesOn.open()
    let report = try pass.wait()
    #expect(report.problems.map(\.code) == ["changed-meanwhile"] && !report.isInSync)
    #expect(report.counts.forgotten == 0 && report.released == 0 && world.row("a") != nil)
    #expect(try world.run().counts.deleted == 1)
    #expect(world.isConverged && world.trash.contains("text of a") && world.ledger.contents.problems.isEmpty)
  }

  /// What is in place is counted again then.
  @Test func aPassTellsThatARepairHasRecorded() throws {
    let world = try world()
    world.policy.localChanges = .report
    world.want("new", "text of new")
    let gate = world.hold("new")
    let pass = try world.begin()
    world.await { requests(of: "new", world) > 0 }
    world.folder.write("a".path, "mine".bytes)
    #expect(try world.repairBeside([itself("a")]).report.counts.conflict == 1)
    gate.open()
    #expect(try pass.wait().isBesideRepairs)
    #expect(try !world.run().isBesideRepairs)
  }

  /// The look has the row of before, and the bytes of the new version.
  @Test(arguments: [PassPolicy.LocalChanges.restore, .report])
  func whatAPassUpdatesIsNoLocalEdit(localChanges: PassPolicy.LocalChanges) throws {
    let world = try world()
    world.policy.localChanges = localChanges
    wantBare("u", "text of u", etag: "\"1\"", of: world)
    #expect(try world.run().isInSync)
    world.server.put(World.host + "u", "newer text of u".bytes, etag: "\"2\"")
    let record = holdRecord(of: "u", world)
    let pass = try world.begin()
    record.isRenamed.wait()
    let (isHashed, goesOn) = (Gate(), Gate())
    world.folder.beforeDigest { _ in
      isHashed.open()
      goesOn.wait()
    }
    let repair = try world.beginRepair([itself("u")])
    isHashed.wait()
    record.goesOn.open()
    #expect(try pass.wait().isInSync)
    goesOn.open()
    let report = try repair.wait()
    #expect(report.report.counts.replaced == 0 && !report.isSuperseded && hasNoProblem(world))
    // The repair asks no server about a file that is as it was recorded.
    #expect(requests(of: "u", world) == 1 && world.text("u") == "newer text of u")
    #expect(!world.trash.contains("newer text of u"))
  }

  /// In conflict with a file of somebody else, which is touched while `a` has to be brought.
  private func conflictBesideARepair(_ world: World) throws -> (World.Running<RepairReport>, AnswerGate) {
    world.want("p", "text of p")
    world.folder.write("p".path, "somebody's".bytes)
    #expect(try world.run().problems.map(\.code) == ["foreign-file"])
    let slow = world.hold("a")
    world.folder.delete("a".path)
    world.folder.write("p".path, "somebody else's".bytes)
    let repair = try world.beginRepair([itself("a"), itself("p")])
    world.await { requests(of: "a", world) > 0 }
    return (repair, slow)
  }

  /// It lasts: the repair tells it at its end.
  @Test func aConflictThatLastsIsTold() throws {
    let world = try world()
    let (repair, slow) = try conflictBesideARepair(world)
    slow.open()
    #expect(try repair.wait().report.problems.map(\.code) == ["foreign-file"])
    #expect(world.ledger.contents.problems.count == 1)
  }

  /// A repair that looked earlier ends later.
  @Test func aConflictThatIsOverIsNotTold() throws {
    let world = try world()
    let (repair, slow) = try conflictBesideARepair(world)
    world.folder.delete("p".path)
    #expect(try world.repairBeside([itself("p")]).report.counts.fetched == 1)
    slow.open()
    #expect(try !repair.wait().isSuperseded)
    #expect(world.ledger.contents.problems.isEmpty && world.isConverged)
    #expect(world.ledger.contents.events.count { $0.code == ProblemNews.ended } == 1)
  }

  /// The manifest that a pass has accepted meanwhile does not name it.
  @Test func aConflictOfAnEarlierManifestIsNotTold() throws {
    let world = try world()
    let (repair, slow) = try conflictBesideARepair(world)
    world.unlist("p")
    world.want("new", "text of new")
    let pass = try world.beginBeside()
    world.await { world.text("new") != nil }
    slow.open()
    let report = try repair.wait()
    #expect(report.report.counts.restored == 1 && report.isSuperseded)
    _ = try pass.wait()
    #expect(world.ledger.contents.problems.isEmpty)
  }

  /// The transfer may take hours. The repair does not look again and again until it ends.
  @Test func aConflictWhereATransferRunsIsTold() throws {
    let world = try world()
    wantBare("new", "text of new", of: world)
    let slow = world.hold("new")
    let pass = try world.begin()
    world.await { requests(of: "new", world) > 0 }
    world.folder.write("new".path, "somebody's".bytes)
    let report = try world.repairBeside([itself("new")])
    #expect(report.report.problems.map(\.code) == ["foreign-file"] && !report.isSuperseded)
    #expect(world.ledger.contents.problems.count == 1)
    slow.open()
    _ = try pass.wait()
    #expect(world.text("new") == "somebody's")
  }
}

extension LedgerChange {
  /// What a pass records of a manifest that it is about to announce, or of its end.
  fileprivate var isOfAcceptance: Bool {
    if case .fact(.entriesWanted, _) = self { true } else { false }
  }
}
