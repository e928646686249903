import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What is no longer in the feed: the guard and what is held (I8).
@Suite struct DeletionTests: NumberedFiles {
  /// The file is gone, the directory is not: told until it is gone as well.
  @Test func anEmptiedDirectoryIsTriedAgain() throws {
    let world = World()
    try world.fill("d/a", "text")
    world.unlist("d/a")
    let failure = FolderFailure(.permission, "remove the empty directory d: no", errno: 1)
    world.folder.fail(.removeDirectory, with: failure)
    let first = try world.run()
    #expect(first.counts.deleted == 1)
    #expect(first.problems.map(\.code) == ["directory-not-removed"] && !first.isInSync)
    world.folder.fail(.removeDirectory, with: failure)
    let second = try world.run()
    #expect(second.problems.map(\.name) == ["d".bytes] && !second.isInSync)
    #expect(try world.folder.look("d".path) != nil)
    let third = try world.run()
    #expect(third.isInSync && third.problems.isEmpty)
    #expect(try world.folder.look("d".path) == nil)
  }

  @Test func nothingIsDeletedUnasked() throws {
    let world = try filled(20, deletes: false)
    unlist(0..<1, world)
    let report = try world.run()
    #expect(report.counts.unlisted == 1)
    #expect(report.isInSync)
    #expect(world.files.count == 20)
    #expect(world.row(name(0)) != nil)
  }

  @Test func aTenthGoesToTheTrash() throws {
    let world = try filled(20)
    unlist(0..<2, world)
    #expect(try world.plan().report.counts.deleted == 2)
    let report = try world.run()
    #expect(report.counts.deleted == 2)
    #expect(report.isInSync)
    #expect(world.files.count == 18)
    #expect(world.trash == ["text 0", "text 1"])
    #expect(world.ledger.contents.trash.values.map(\.reason) == [.deleted, .deleted])
    #expect(world.ledger.contents.trash.values.map(\.isOwn) == [true, true])
    #expect(world.log.done == ["deleted \(name(0))", "deleted \(name(1))"])
    #expect(world.row(name(0)) == nil)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func oneFileAlwaysMayGo() throws {
    let world = try filled(3)
    unlist(0..<1, world)
    #expect(try world.run().counts.deleted == 1)
  }

  /// What the list promises may not be there: then the old files stay.
  @Test(arguments: [0, 1, 2]) func aSmallMirrorIsNotEmptiedForPromises(comes: Int) throws {
    let world = try filled(3)
    unlist(0..<3, world)
    for number in 3..<6 {
      world.want(name(number), "new \(number)")
      if number - 3 >= comes { world.server.remove(World.host + name(number)) }
    }
    let report = try world.run()
    #expect(report.counts.failed == 3 - comes && report.counts.deleted == 0 && report.counts.held == 3)
    #expect(world.files.count == 3 + comes && world.trash.isEmpty)
    for number in 3..<6 { world.want(name(number), "new \(number)") }
    // And when all have come it is another list still, that somebody has to look at.
    #expect(try world.run().counts.held == 3)
    #expect(world.files.count == 6)
    #expect(try world.approval.run(plan: nil).deleted == 3)
    #expect(try world.run().isInSync && world.files.count == 3)
  }

  /// A file that is decided again changes nothing about what is held, or goes.
  @Test(arguments: [true, false]) func whatIsHeldIsWholeBesideAFileThatChanges(comes: Bool) throws {
    let world = try filled(40)
    unlist(0..<15, world)
    for number in 40..<55 {
      world.want(name(number), "new \(number)")
      if !comes { world.server.remove(World.host + name(number)) }
    }
    world.want(name(30), "another 30")
    let (folder, path, isEdited) = (world.folder, name(30).path, Locked(false))
    folder.beforeInstall { installed in
      let isFirst = isEdited.withLock { isEdited -> Bool in
        defer { isEdited = isEdited || installed == path }
        return installed == path && !isEdited
      }
      if isFirst { folder.edit(path, "mine".bytes) }
    }
    let report = try world.run()
    #expect(world.text(name(30)) == "another 30" && world.trash.contains("mine"))
    if comes {
      #expect(report.isInSync && report.counts.deleted == 15 && world.isConverged)
    } else {
      let plan = try #require(report.held)
      #expect(plan.count == 15 && report.counts.deleted == 0 && report.counts.failed == 15)
      #expect(world.ledger.contents.heldPaths[plan.id]?.count == 15)
      #expect(try world.approval.run(plan: plan.id).deleted == 15)
    }
  }

  @Test func theGuardCountsADay() throws {
    let world = try filled(40)
    unlist(0..<3, world)
    #expect(try world.run().counts.deleted == 3)
    unlist(3..<5, world)
    var report = try world.run()
    #expect(report.counts.deleted == 0)
    #expect(report.counts.held == 2)
    world.clock.advance(.seconds(24 * 3600 - 1))
    report = try world.run()
    #expect(report.counts.held == 2)
    world.clock.advance(.seconds(2))
    report = try world.run()
    #expect(report.counts.deleted == 2)
    #expect(report.held == nil)
    #expect(world.ledger.contents.held == nil)
  }

  @Test func tooManyAreHeldUnderAStableId() throws {
    let world = try filled(20)
    unlist(0..<4, world)
    var report = try world.run()
    let id = try #require(report.held?.id)
    #expect(id.count == 8)
    #expect(report.counts.held == 4)
    #expect(report.counts.deleted == 0)
    #expect(!report.isInSync)
    #expect(world.files.count == 20)
    #expect(world.ledger.contents.heldPaths[id]?.count == 4)
    report = try world.run()
    #expect(report.held?.id == id)
    // A plan knows since when deletions are held, of whatever set.
    world.clock.advance(.seconds(60))
    let plan = try world.plan().report
    #expect(plan.held?.id == id && plan.held.map { $0.when < plan.started } == true)
    unlist(4..<5, world)
    let other = try world.plan().report
    #expect(other.held.map { $0.id != id && $0.when < other.started } == true)
    report = try world.run()
    #expect(report.held?.id != id)
    #expect(world.ledger.contents.heldPaths[id] == nil)
    #expect(world.ledger.contents.heldPaths.count == 1)
  }

  @Test func aPlanIsDroppedWhenTheFilesAreWantedAgain() throws {
    let world = try filled(20)
    unlist(0..<4, world)
    try world.run()
    for number in 0..<4 { world.want(name(number), "text \(number)") }
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.ledger.contents.held == nil)
    let failure = #expect(throws: PassFailure.self) { try world.approval.run(plan: nil) }
    #expect(failure?.code == "nothing-held")
  }

  @Test func approvalDeletesThatSetAndSparesWhatChanged() throws {
    let world = try filled(20)
    unlist(0..<5, world)
    let id = try #require(try world.run().held?.id)
    world.folder.edit(name(1).path, "mine".bytes)
    world.folder.delete(name(2).path)
    let failure = #expect(throws: PassFailure.self) { try world.approval.run(plan: "00000000") }
    #expect(failure?.code == "other-plan")
    let report = try world.approval.run(plan: id)
    #expect(report.deleted == 3)
    #expect(report.spared == 2)
    #expect(world.text(name(0)) == nil)
    #expect(world.text(name(1)) == "mine")
    #expect(world.text(name(5)) == "text 5")
    #expect(world.files.count == 16)
    #expect(world.trash == ["text 0", "text 3", "text 4"])
    #expect(world.ledger.contents.held == nil)
    #expect(world.ledger.contents.events.last?.code == "plan-approved")
    let next = try world.run()
    #expect(next.isInSync)
    #expect(next.counts.forgotten == 2)
    // One of them stands there, edited; the other one was deleted by hand.
    #expect(next.released == 1)
    #expect(world.text(name(1)) == "mine")
  }

  /// What waits for an hour is told to a person, also where each pass finds more to delete.
  @Test func deletionsWaitSinceTheFirstPassThatHeldAny() throws {
    let world = try filled(20)
    let begun = world.clock.time
    unlist(0..<5, world)
    let first = try #require(try world.run().held)
    #expect(first.when == begun)
    for more in [5..<5, 5..<6] {
      world.clock.advance(.seconds(1800))
      unlist(more, world)
      let held = try #require(try world.run().held)
      #expect(held.when == begun && world.ledger.contents.held?.when == begun)
      #expect((held.id == first.id) == more.isEmpty)
      #expect(try world.plan().report.held?.when == begun)
    }
    let told = world.ledger.contents.events.filter { $0.code == "deletions-held" }
    #expect(told.map(\.when) == [begun, world.clock.time])
    // It was interrupted: all of them were wanted again.
    for number in 0..<6 { world.want(name(number), "text \(number)") }
    #expect(try world.run().isInSync)
    unlist(0..<5, world)
    #expect(try world.run().held?.when == world.clock.time)
  }

  /// Who follows the events hears of the end of a plan, and hears of the same one once.
  @Test func aPlanThatIsHeldNoMoreIsTold() throws {
    let world = try filled(20)
    unlist(0..<6, world)
    func told() -> [String] {
      world.ledger.contents.events.map(\.code).filter { $0.hasPrefix("plan-") || $0 == "deletions-held" }
    }
    #expect(try world.run().held != nil && world.run().held != nil)
    #expect(told() == ["deletions-held"])
    for number in 0..<6 { world.want(name(number), "text \(number)") }
    #expect(try world.run().held == nil)
    #expect(told() == ["deletions-held", "plan-dropped"])
  }

  /// A stop ends it after the running group; what is over is held no more, the rest is, under the same id.
  @Test func approvalStopsBetweenGroups() throws {
    let world = try filled(700)
    unlist(0..<600, world)
    let id = try #require(try world.run().held?.id)
    world.folder.edit(name(1).path, "mine".bytes)
    let stop = StopFlag()
    world.folder.beforeRemove { _ in stop.set() }
    let report = try world.approval(stop: stop).run(plan: id)
    #expect(report.wasStopped && report.deleted == 511 && report.spared == 1 && report.left == 88)
    #expect(world.ledger.contents.held?.count == 88)
    #expect(try world.ledger.heldPaths(plan: id).count == 88)
    let rest = try world.approval.run(plan: id)
    #expect(!rest.wasStopped && rest.deleted == 88 && rest.left == 0)
    #expect(world.ledger.contents.held == nil)
    #expect(world.files.count == 101)
  }

  @Test func emptyingTheTrashStopsBetweenGroups() throws {
    let world = try filled(700)
    unlist(0..<600, world)
    _ = try world.approval.run(plan: try #require(try world.run().held?.id))
    let stop = StopFlag()
    stop.set()
    let can = TrashCan(ledger: world.ledger, folder: world.folder, clock: world.clock)
    #expect(try can.empty(world.ledger.trash(), stop: stop).left == 600)
    #expect(world.trash.count == 600)
    #expect(try can.empty(world.ledger.trash(), stop: StopFlag()).files == 600)
    #expect(world.trash.isEmpty && world.ledger.contents.trash.isEmpty)
  }

  /// Killed between the rename and the row, in the middle of an approval.
  @Test func whatACrashDeletedIsHeldNoMore() throws {
    let world = try filled(20)
    unlist(0..<5, world)
    let id = try #require(try world.run().held?.id)
    let path = name(0).path
    let row = try #require(world.row(name(0)))
    try world.ledger.apply([
      .intent(
        Intent(kind: .remove, path: path, partialName: "", trashName: "t", row: row, displacesOwn: true))
    ])
    let present = try #require(try world.folder.look(path))
    _ = world.folder.remove([Removal(path: path, expected: present.identity, trashName: "t")])
    try Recovery(ledger: world.ledger, folder: world.folder, clock: world.clock).run()
    #expect(try world.ledger.held()?.count == 4)
    #expect(try world.ledger.heldPaths(plan: id).count == 4)
  }

  @Test func approvalSparesWhatIsWantedAgain() throws {
    let world = try filled(20)
    unlist(0..<5, world)
    let id = try #require(try world.run().held?.id)
    world.want(name(0), "text 0")
    world.end.isComplete = false
    try world.run()
    #expect(throws: PassFailure.self) { try world.approval.run(plan: id) }
    #expect(world.files.count == 20)
  }

  @Test func aDeletionThatFailsIsReported() throws {
    let world = try filled(40)
    unlist(0..<2, world)
    world.folder.fail(.remove)
    var report = try world.run()
    #expect(report.counts.deleted == 1)
    #expect(report.counts.failed == 1)
    #expect(report.problems.map(\.name) == [name(0).bytes])
    #expect(report.problems.map(\.code) == ["input-output-error"])
    report = try world.run()
    #expect(report.counts.deleted == 1)
    #expect(report.isInSync)
  }

  /// It lies in the trash, and its directory cannot be made durable.
  @Test func aDeletionThatFailsHalfwayHasItsNameInTheTrash() throws {
    let world = try filled(40)
    unlist(0..<1, world)
    world.folder.fail(.syncRemoval)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["input-output-error"] && report.counts.deleted == 0)
    #expect(world.trash == ["text 0"] && world.ledger.contents.trash.isEmpty)
    #expect(try world.run().isInSync)
    let trash = world.ledger.contents.trash.values
    #expect(trash.map(\.path) == [name(0).path] && trash.map(\.reason) == [.deleted])
    #expect(trash.map(\.isOwn) == [true])
    let ledger = world.ledger.contents
    #expect(ledger.rows.count == 39 && ledger.intents.isEmpty && ledger.problems.isEmpty)
  }

  @Test func onlyWhatIsDeletedIsAnOwnWrite() throws {
    let world = try filled(40)
    unlist(0..<1, world)
    let own = OwnWrites()
    world.ownWrites = own
    world.folder.fail(.remove)
    try world.run()
    #expect(own.isOwn(name(0).path) { _ in nil } == false)
    #expect(try world.run().counts.deleted == 1)
    #expect(own.isOwn(name(0).path) { _ in nil } == true)
  }

  @Test func whatIsApprovedIsAnOwnWrite() throws {
    let world = try filled(20)
    unlist(0..<5, world)
    let own = OwnWrites()
    world.ownWrites = own
    let id = try #require(try world.run().held?.id)
    #expect(try world.approval.run(plan: id).deleted == 5)
    #expect(own.isOwn(name(4).path) { _ in nil } == true)
  }

  @Test func aFileEditedBeforeItsDeletionStays() throws {
    let world = try filled(40)
    unlist(0..<1, world)
    let folder = world.folder
    folder.beforeRemove { folder.edit($0, "mine".bytes) }
    let report = try world.run()
    #expect(report.counts.deleted == 0)
    #expect(report.problems.map(\.code) == ["changed-meanwhile"])
    #expect(world.text(name(0)) == "mine")
    let next = try world.run()
    #expect(next.counts.forgotten == 1)
    #expect(world.text(name(0)) == "mine")
  }

  /// Somebody had moved it away, and has put it back since the pass looked. Or nobody can look there any more.
  @Test(arguments: [true, false]) func aFileThatMayBeBackIsNotForgotten(isBack: Bool) throws {
    let world = try filled(40)
    unlist(0..<1, world)
    let (folder, path, isAccepted) = (world.folder, name(0).path, Gate())
    folder.rename(path, to: "away".path)
    world.ledger.beforeApply { changes in
      let isOfAcceptance = changes.contains {
        if case .fact(.entriesWanted, _) = $0 { true } else { false }
      }
      guard isOfAcceptance, !isAccepted.isOpen else { return }
      if isBack { folder.rename("away".path, to: path) } else { folder.fail(.look) }
      isAccepted.open()
    }
    let report = try world.run()
    #expect(report.counts.forgotten == 0 && report.problems.map(\.code) == ["changed-meanwhile"])
    let counts = try world.run().counts
    #expect(counts.deleted == (isBack ? 1 : 0) && counts.forgotten == (isBack ? 0 : 1))
    #expect(world.trash == (isBack ? ["text 0"] : []))
  }

  /// A crash right after the rename: only the intent tells what the file in the trash is.
  @Test func aDeletionIsIntendedBeforeItIsDone() throws {
    let world = try filled(40)
    unlist(0..<1, world)
    let ledger = world.ledger
    let intended = Locked<[RelativePath]>([])
    world.folder.beforeRemove { _ in intended.withLock { $0 += ledger.contents.intents.keys } }
    #expect(try world.run().counts.deleted == 1)
    #expect(intended.withLock { $0 } == [name(0).path])
    #expect(ledger.contents.intents.isEmpty)
  }

  /// A few files, of which some are exchanged with each release: nobody has to approve that.
  @Test func aRotationGoesOn() throws {
    let world = try filled(4)
    for round in 0..<5 {
      unlist(2 * round..<2 * round + 2, world)
      for number in 2 * round + 4..<2 * round + 6 { world.want(name(number), "text \(number)") }
      #expect(try world.run().isInSync, "round \(round)")
      #expect(world.files.count == 4)
    }
  }

  @Test func aLargerRotationGoesOn() throws {
    let world = try filled(100)
    for round in 0..<3 {
      unlist(40 * round..<40 * round + 40, world)
      for number in 40 * round + 100..<40 * round + 140 { world.want(name(number), "text \(number)") }
      #expect(try world.plan().report.counts.deleted == 40)
      let report = try world.run()
      #expect(report.isInSync && report.counts.deleted == 40, "round \(round)")
    }
  }

  /// What a list promises gives no credit: the new files are not there.
  @Test func promisesThatAreNotKeptHoldTheDeletions() throws {
    let world = try filled(40)
    unlist(0..<10, world)
    for number in 100..<110 {
      world.want(name(number), "text")
      world.server.remove(World.host + name(number))
    }
    let report = try world.run()
    let plan = try #require(report.held)
    #expect(plan.count == 10 && plan.reason.contains("10 files would be lost"))
    #expect(report.counts.deleted == 0 && report.counts.failed == 10)
    #expect(world.files.count == 40)
    #expect(world.ledger.contents.held == plan)
    // They come at last, and make up for those that go.
    for number in 100..<110 { world.server.put(World.host + name(number), "text".bytes) }
    let next = try world.run()
    #expect(next.isInSync && next.counts.deleted == 10)
    #expect(world.ledger.contents.held == nil)
  }

  @Test func aListOfAnotherFormatIsNotObeyed() throws {
    let world = try filled(20)
    world.end.format = "SFV list"
    unlist(0..<1, world)
    for _ in 0..<2 {
      let report = try world.run()
      #expect(report.held?.reason == "the format of the list changed from test list to SFV list")
      #expect(world.files.count == 20)
    }
    // Once for each change.
    #expect(world.ledger.contents.events.count { $0.code == "deletions-held" } == 1)
    #expect(try world.approval.run(plan: nil).deleted == 1)
    unlist(1..<2, world)
    #expect(try world.run().counts.deleted == 1)
  }

  /// A feed that never said all, such as RSS, is no word for a list of another kind: however often that is read.
  @Test func anotherFormatThanThatOfAnIncompleteListIsNotObeyed() throws {
    let world = World()
    world.policy.deletes = true
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
    for number in 0..<20 { world.want(name(number), "text \(number)") }
    #expect(try world.run().isInSync)
    world.end = FeedEnd(format: "URL list", isComplete: true)
    unlist(0..<1, world)
    for _ in 0..<3 {
      #expect(try world.run().held?.reason == "the format of the list changed from RSS to URL list")
      #expect(world.files.count == 20)
    }
    #expect(try world.approval.run(plan: nil).deleted == 1)
    unlist(1..<2, world)
    #expect(try world.run().counts.deleted == 1)
  }

  /// A pass that deletes nothing, or that leaves out all there is, has judged nothing.
  @Test(arguments: [true, false], [true, false])
  func aPassThatJudgesNothingTakesNoOtherFormat(_ isFiltered: Bool, isOnce: Bool) throws {
    let world = try filled(20)
    world.end.format = "SFV list"
    unlist(0..<1, world)
    world.isOnce = isOnce
    if isFiltered {
      world.policy.filter.exclude = PathPatterns(["*"])
    } else {
      world.policy.deletes = false
    }
    #expect(try world.run().held == nil)
    world.isOnce = false
    world.policy.filter = PathFilter()
    world.policy.deletes = true
    #expect(try world.run().held?.reason == "the format of the list changed from test list to SFV list")
    #expect(world.files.count == 20)
  }

  /// A format that stays while nothing is to be deleted is the list's own by then.
  @Test func anotherFormatWithoutDeletionsIsTaken() throws {
    let world = try filled(20)
    world.end.format = "SFV list"
    #expect(try world.run().isInSync)
    unlist(0..<1, world)
    #expect(try world.run().counts.deleted == 1)
  }

  @Test func aListThatKeepsFewerThanHalfIsNotObeyed() throws {
    let world = try filled(20)
    world.policy.deleteLimit = .off
    unlist(0..<11, world)
    #expect(try world.run().held?.reason == "the list keeps 9 of 20 files, fewer than half")
    // Most of them wait on. The list that has come back deletes what it lacks.
    world.want(name(0), "text 0")
    #expect(try world.run().held?.count == 10)
    for number in 1..<8 { world.want(name(number), "text \(number)") }
    #expect(try world.run().counts.deleted == 3)
  }

  /// The new files of such a list come at once; the old ones wait for a person all the same.
  @Test func aListOfOtherFilesStaysHeld() throws {
    let world = try filled(8)
    world.policy.deleteLimit = .off
    unlist(0..<8, world)
    for number in 100..<108 { world.want(name(number), "text \(number)") }
    for _ in 0..<3 {
      #expect(try world.run().held?.reason == "the list keeps 0 of 8 files, fewer than half")
      #expect(world.files.count == 16)
    }
    // A pass that deletes nothing holds nothing, and lets nothing go either.
    world.policy.deletes = false
    #expect(try world.run().held == nil)
    world.policy.deletes = true
    #expect(try world.run().held?.reason == "it was held before, and was not approved")
    #expect(try world.approval.run(plan: nil).deleted == 8)
    #expect(try world.run().isInSync && world.files.count == 8)
  }

  /// However small the list is: its one file has come, and the one before stays until somebody has looked.
  @Test(arguments: [DeleteLimit.standard, .off]) func aListOfOneFileThatNamesAnotherIsHeld(
    limit: DeleteLimit
  ) throws {
    let world = try filled(1)
    world.policy.deleteLimit = limit
    unlist(0..<1, world)
    world.want(name(1), "text 1")
    for _ in 0..<3 {
      #expect(try world.run().held?.reason == "the list keeps 0 of 1 file, fewer than half")
      #expect(world.files.count == 2)
    }
    #expect(try world.approval.run(plan: nil).deleted == 1)
    #expect(try world.run().isInSync && world.files.count == 1)
  }

  /// They may be in the list or not.
  @Test(arguments: [DeleteLimit.standard, .off]) func filesThatAFilterKeepsSayNothingOfTheList(
    limit: DeleteLimit
  ) throws {
    let world = try filled(30)
    for number in 0..<270 { world.want("old/\(number)", "old \(number)") }
    try world.run()
    world.policy.filter.exclude = PathPatterns(["old/*"])
    world.policy.deleteLimit = limit
    world.items = world.items.filter { item in
      guard case .entry(let entry) = item else { return true }
      return [name(0), name(1)].contains(entry.path.printable)
    }
    let report = try world.run()
    #expect(report.counts.held == 28 && report.counts.deleted == 0)
    #expect(report.held?.reason.contains("keeps 2 of 30 files") == true, "\(report.held?.reason ?? "")")
  }

  /// A list that comes in no order is compared from its beginning again.
  @Test func whatAFilterKeepsIsCountedOnce() throws {
    let world = try filled(30)
    for number in 0..<30 { world.want("a/\(number)", "old \(number)") }
    world.items.swapAt(world.items.count - 2, world.items.count - 1)
    try world.run()
    world.policy.filter.exclude = PathPatterns(["a/*"])
    unlist(0..<2, world)
    let report = try world.run()
    #expect(report.counts.deleted == 2 && report.isInSync, "\(report.held?.reason ?? "")")
  }

  /// A tenth is that of the files that are followed.
  @Test func theLimitIsThatOfWhatIsFollowed() throws {
    let world = try filled(30)
    for number in 0..<270 { world.want("old/\(number)", "old \(number)") }
    try world.run()
    world.policy.filter.exclude = PathPatterns(["old/*"])
    unlist(0..<4, world)
    #expect(try world.run().counts.held == 4)
  }

  /// As nightlies have that hold the same licence each, or files that are renamed.
  @Test func newFilesOfKnownBytesMakeUpForOthers() throws {
    let world = try filled(30)
    for round in 0..<3 {
      let old = (round * 10)..<(round * 10 + 10)
      unlist(old, world)
      for number in old { world.want("renamed/\(number)", "text \(number)") }
      let report = try world.run()
      #expect(report.counts.deleted == 10 && report.counts.copied == 10, "\(report.counts)")
    }
  }

  @Test func updatesByCopyMakeUpForNothing() throws {
    let world = try filled(40)
    unlist(0..<10, world)
    for number in 0..<10 { world.want(name(number), "text \(number + 20)") }
    unlist(30..<35, world)
    // A promise that is not kept: it is judged again before anything goes.
    world.add(world.entry("new", "is not there"))
    world.policy.retries = 0
    let report = try world.run()
    #expect(report.counts.copied == 10 && report.counts.held == 5, "\(report.counts)")
  }

  /// Also of those that there were before.
  @Test func theLimitOfTheDayIsThatOfWhatIsFollowed() throws {
    let world = World()
    for number in 0..<30 { world.want(name(number), "text \(number)") }
    for number in 0..<270 { world.want("old/\(number)", "old \(number)") }
    try world.run()
    world.policy.deletes = true
    world.policy.filter.exclude = PathPatterns(["old/*"])
    unlist(0..<4, world)
    #expect(try world.run().counts.held == 4)
  }

  @Test func theLimitIsASetting() throws {
    let world = try filled(40)
    try world.choose([.delete: ["true"], .deleteLimit: ["25%"]])
    unlist(0..<10, world)
    #expect(try world.run().counts.deleted == 10)
    unlist(10..<11, world)
    #expect(try world.run().counts.held == 1)
  }

  /// A pass that is cut short between new files and deletions leaves the credit to the next one.
  @Test func aPassThatWasCutShortKeepsTheCredit() throws {
    let world = try filled(40)
    unlist(0..<10, world)
    for number in 100..<110 { world.want(name(number), "text \(number)") }
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    world.log.onEvent { _, event in if case .phase(.deleting) = event { pass.stop.set() } }
    #expect(try pass.run(folder: world.folder).wasStopped)
    world.log.onEvent(nil)
    #expect(world.files.count == 50)
    let report = try world.run()
    #expect(report.isInSync && report.counts.deleted == 10)
  }

  @Test func theTrashIsKeptAsLongAsTheSettingSays() throws {
    let world = try filled(20)
    try world.choose([.delete: ["true"], .keepTrash: ["30d"]])
    unlist(0..<1, world)
    try world.run()
    world.clock.advance(.seconds(29 * 86_400))
    try world.run()
    #expect(world.trash.count == 1)
    try world.choose([.delete: ["true"], .keepTrash: ["all"]])
    world.clock.advance(.seconds(500 * 86_400))
    try world.run()
    #expect(world.trash.count == 1)
    try world.choose([.delete: ["true"], .keepTrash: ["1d"]])
    try world.run()
    #expect(world.trash.isEmpty)
  }

  @Test func anEmptyManifestIsHeld() throws {
    let world = try filled(1)
    unlist(0..<1, world)
    let report = try world.run()
    #expect(report.counts.held == 1)
    #expect(world.files.count == 1)
    let id = try #require(report.held?.id)
    #expect(
      world.ledger.contents.events.last?.detail
        == "plan \(id): 1 deletion held until approved: the list is empty")
    let answer = try ExplainQuery(ledger: world.ledger, folder: world.folder).explain(
      name(0).path, mirror: "m")
    #expect(answer.summary == "the feed no longer has it; its deletion waits in plan \(id)")
    #expect(try world.approval.run(plan: id).deleted == 1)
    #expect(world.ledger.contents.events.last?.detail == "plan \(id): 1 deletion")
  }

  @Test func anIncompleteManifestDeletesNothing() throws {
    let world = try filled(20)
    unlist(0..<1, world)
    world.folder.delete(name(0).path)
    unlist(1..<2, world)
    world.end.isComplete = false
    world.end.incompleteReason = "the list is cut"
    let (planned, actions) = try world.plan()
    #expect(actions.isEmpty)
    #expect(planned.counts.deleted == 0)
    let report = try world.run()
    #expect(report.counts.deleted == 0)
    #expect(report.counts.forgotten == 0)
    #expect(report.counts.held == 0)
    #expect(!report.manifest.isComplete)
    #expect(world.files.count == 19)
    #expect(world.row(name(0)) != nil)
    #expect(world.ledger.contents.facts[.complete] == "no: the list is cut")
  }

  @Test func aBlindSpotDeletesNothing() throws {
    let world = World()
    for number in 0..<40 { world.want("d/\(name(number))", "text") }
    world.want("e/a", "text a")
    try world.run()
    world.policy.deletes = true
    world.unlist("e/a")
    world.folder.makeUnreadable("d".path)
    let report = try world.run()
    #expect(report.counts.deleted == 0)
    #expect(world.text("e/a") == "text a")
    #expect(!report.isInSync)
    #expect(report.problems.contains { $0.code == "permission-denied" && $0.name == "d".bytes })
    world.folder.makeUnreadable("d".path, nil)
    let next = try world.run()
    #expect(next.counts.deleted == 1)
    #expect(next.isInSync)
    #expect(world.trash == ["text a"])
  }

  @Test func aRebuiltLedgerDeletesNothing() throws {
    let world = try filled(20)
    world.ledger = MemoryLedger()
    world.wasRebuilt = true
    unlist(0..<1, world)
    let report = try world.run()
    #expect(report.counts.adopted == 19)
    #expect(report.counts.deleted == 0)
    #expect(world.files.count == 20)
    world.wasRebuilt = false
    #expect(try world.run().counts.deleted == 0)
    #expect(world.text(name(0)) == "text 0")
  }

  /// Even with rows: one that was filled by halves does not say what the folder's files are.
  @Test func aPassWithARebuiltLedgerDeletesNothing() throws {
    let world = try filled(20)
    unlist(0..<1, world)
    world.wasRebuilt = true
    #expect(try world.run().counts.deleted == 0)
    #expect(world.text(name(0)) == "text 0")
    #expect(world.row(name(0)) != nil)
    world.wasRebuilt = false
    #expect(try world.run().counts.deleted == 1)
  }

  @Test func theTrashExpiresButNotForForeignBytes() throws {
    let world = try filled(20)
    unlist(0..<1, world)
    world.folder.edit(name(1).path, "mine".bytes)
    try world.run()
    #expect(world.trash == ["mine", "text 0"])
    world.clock.advance(.seconds(7 * 24 * 3600 + 1))
    try world.run()
    #expect(world.trash == ["mine"])
    #expect(world.ledger.contents.trash.count == 1)
  }

  @Test func theTrashGivesBack() throws {
    let world = try filled(20)
    unlist(0..<2, world)
    try world.run()
    let can = TrashCan(ledger: world.ledger, folder: world.folder, clock: world.clock)
    let rows = try world.ledger.trash()
    let row = try #require(rows.first { $0.path == name(0).path })
    try can.restore(row, to: nil)
    #expect(world.text(name(0)) == "text 0")
    #expect(world.ledger.contents.trash.count == 1)
    let other = try #require(rows.first { $0.path == name(1).path })
    #expect(throws: PassFailure.self) { try can.restore(other, to: name(0).path) }
    let emptied = try can.empty([other], stop: StopFlag())
    #expect(emptied.files == 1 && emptied.bytes == 6 && emptied.left == 0)
    #expect(world.trash.isEmpty)
    #expect(try world.run().isInSync)
    #expect(world.text(name(0)) == "text 0")
  }
}
