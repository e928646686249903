import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Repairs beside a pass, and beside each other, each on a thread of its own.
@Suite struct RepairBesideTests {
  private func world(_ names: [String] = ["a", "b", "sub/c"]) throws -> World {
    let world = try World.inSync(names)
    // Who waits for a request means one that comes after this.
    world.server.clearRequests()
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  /// Its answer comes once the gate is open, and whole whatever is asked for.
  private func hold(_ name: String, of world: World, by gate: AnswerGate = AnswerGate()) -> AnswerGate {
    var answer = FakeAnswer(body: "text of \(name)".bytes, honoursRanges: false)
    answer.gate = gate
    world.server.answer(World.host + name, answer)
    return gate
  }

  /// They are gone from the folder, and come once the gate is open.
  private func deleteAndHold(_ names: [String], of world: World) -> AnswerGate {
    let gate = AnswerGate()
    for name in names {
      _ = hold(name, of: world, by: gate)
      world.folder.delete(name.path)
    }
    return gate
  }

  /// Of a list that takes its time: until it is there the manifest of the last pass is all that is known.
  private func holdList(of world: World) -> AnswerGate {
    let gate = AnswerGate()
    var answer = FakeAnswer(body: "list".bytes)
    answer.gate = gate
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, answer)
    return gate
  }

  private func requests(of name: String, _ world: World) -> Int {
    world.server.urls.count { $0 == World.host + name }
  }

  private func awaitRequest(of name: String, _ world: World) {
    world.await { requests(of: name, world) > 0 }
  }

  /// A pass that waits for `big`, and a repair beside it that waits for `a`.
  private struct Both {
    let pass: World.Running<PassReport>
    let repair: World.Running<RepairReport>
    let big: AnswerGate
    let slow: AnswerGate
  }

  private func both(_ world: World) throws -> Both {
    world.want("big", "text of big")
    let (big, slow) = (hold("big", of: world), hold("a", of: world))
    let pass = try world.begin()
    awaitRequest(of: "big", world)
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequest(of: "a", world)
    return Both(pass: pass, repair: repair, big: big, slow: slow)
  }

  // MARK: A pass that transfers

  @Test func whatChangesWhileAPassTransfersIsRepaired() throws {
    let world = try world()
    world.want("big", "text of big")
    let big = hold("big", of: world)
    let pass = try world.begin()
    awaitRequest(of: "big", world)
    world.folder.delete("a".path)
    world.folder.delete("b".path)
    let repair = try world.repairBeside([itself("a"), itself("b")])
    #expect(repair.report.counts.restored == 2 && !repair.isSuperseded && world.text("a") == "text of a")
    #expect(world.ledger.contents.facts[.repair] == "2 restored")
    big.open()
    let report = try pass.wait()
    // As far as the pass goes nothing happened to it.
    #expect(report.isInSync && report.counts.fetched == 1 && report.counts.inPlace == 4)
    #expect(world.isConverged && requests(of: "a", world) == 1)
    #expect(world.server.requests.last { $0.url == World.host + "a" }?.isUrgent == true)
  }

  @Test func oneThatTakesLongHoldsUpNoOther() throws {
    let world = try world()
    let both = try both(world)
    for name in ["b", "sub/c"] { world.folder.delete(name.path) }
    let second = try world.repairBeside([itself("b"), itself("sub/c")])
    #expect(second.report.counts.restored == 2 && world.text("a") == nil)
    both.slow.open()
    #expect(try both.repair.wait().report.counts.restored == 1)
    both.big.open()
    #expect(try both.pass.wait().isInSync && world.isConverged)
    #expect(world.server.urls.count == 4)
  }

  /// The next pass would take the folder for what it was when this one looked.
  @Test func aPassThatARepairWasBesideLeavesNoRecord() throws {
    let world = try world()
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"1\"", body: "list".bytes))
    #expect(try world.run().isInSync && world.ledger.contents.facts[.feedRecord] != nil)
    world.want("big", "text of big")
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"2\"", body: "list 2".bytes))
    let big = hold("big", of: world)
    let pass = try world.begin()
    awaitRequest(of: "big", world)
    world.folder.delete("a".path)
    _ = try world.repairBeside([itself("a")])
    big.open()
    #expect(try pass.wait().isInSync && world.ledger.contents.facts[.feedRecord] == nil)
  }

  /// It runs alone among those of its pass.
  @Test func oneThatRunsAloneForSpaceHoldsUpNoRepair() throws {
    let world = try world(["s"])
    world.folder.setCapacity(8_000)
    world.policy.reserve = .bytes(0)
    let gate = AnswerGate()
    for name in ["a", "b"] {
      var entry = world.want(name, name + String(repeating: "x", count: 9_000))
      entry.size = nil
      world.add(entry)
      var answer = FakeAnswer(body: (name + String(repeating: "x", count: 9_000)).bytes)
      world.server.script(World.host + name, [answer, answer])
      answer.gate = gate
      world.server.answer(World.host + name, answer)
    }
    let pass = try world.begin()
    // Twice beside the other one, then alone.
    world.await { requests(of: "a", world) > 2 || requests(of: "b", world) > 2 }
    world.folder.delete("s".path)
    #expect(
      try world.repairBeside([itself("s")]).report.counts.restored == 1 && world.text("s") == "text of s")
    gate.open()
    _ = try pass.wait()
  }

  /// It was seen by the pass, which has not written that down when it is deleted and brought anew.
  @Test func whatIsBroughtAnewIsNotAdoptedAsItWas() throws {
    let world = try world(["a"])
    world.mostHeldBack = 1
    world.folder.setCapacity(8_000)
    world.policy.reserve = .bytes(0)
    world.folder.write("a".path, "text of a".bytes)
    // The second one waits for the space of the first, and the third for the second.
    let gate = AnswerGate()
    for name in ["b", "c", "d"] {
      world.want(name, String(repeating: name, count: 5_000))
      var answer = FakeAnswer(body: [UInt8](String(repeating: name, count: 5_000).utf8))
      answer.gate = gate
      world.server.answer(World.host + name, answer)
    }
    let pass = try world.begin()
    awaitRequest(of: "b", world)
    world.folder.delete("a".path)
    let repair = try world.repairBeside([itself("a")])
    #expect(repair.report.counts.restored == 1 && world.text("a") == "text of a")
    gate.open()
    _ = try pass.wait()
    let row = try #require(world.ledger.contents.rows["a".path])
    #expect(try world.folder.look("a".path)?.identity.isSame(as: row.identity) == true)
  }

  @Test func aStopOfTheOneEndsNotTheOther() throws {
    let world = try world()
    let both = try both(world)
    both.pass.stop.set()
    #expect(try both.pass.wait().wasStopped && world.text("a") == nil)
    both.slow.open()
    #expect(try both.repair.wait().report.counts.restored == 1 && world.text("a") == "text of a")
  }

  @Test func whatEndsTheOneIsToldBoth() throws {
    let world = try world()
    let both = try both(world)
    for number in 1...50 {
      world.ledger.failApply(number, with: LedgerFailure(.inputOutput, "the disk is gone"))
    }
    both.slow.open()
    let failures = (
      #expect(throws: PassFailure.self) { try both.repair.wait() },
      #expect(throws: PassFailure.self) { try both.pass.wait() }
    )
    both.big.open()
    #expect(failures.0?.message.contains("the disk is gone") == true)
    #expect(failures.1?.message.contains("the disk is gone") == true)
    // What their transfers were promised is free again.
    let space = try SpaceBudget(world.folder, reserve: .bytes(0), world.engine.promises)
    #expect(try space.available == world.folder.space().free)
    // What was in the middle of it is put right when the mirror is opened again.
    #expect(throws: PassFailure.self) { try world.engine.prepareOnce {} }
    #expect(throws: PassFailure.self) { try world.repairBeside([itself("b")]) }
  }

  /// A repair of `a` whose record fails while the engine's thread is busy until the gate opens.
  private func failBehindABusyThread(_ world: World) throws -> (
    repair: World.Running<RepairReport>, mayGoOn: Gate
  ) {
    let (isPublished, mayFail) = (Gate(), Gate())
    world.ledger.beforeApply { changes in
      guard changes.contains(where: { if case .row = $0 { true } else { false } }) else { return }
      isPublished.open()
      try? mayFail.waitOrThrow()
    }
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    try isPublished.waitOrThrow()
    // Its thread is busy while the failure and what is submitted come.
    let (isBusy, mayGoOn) = (Gate(), Gate())
    world.engine.follow { _ in
      isBusy.open()
      try? mayGoOn.waitOrThrow()
      return nil
    }
    try isBusy.waitOrThrow()
    for number in 1...50 {
      world.ledger.failApply(number, with: LedgerFailure(.inputOutput, "the disk is gone"))
    }
    mayFail.open()
    return (repair, mayGoOn)
  }

  /// It came together with what failed.
  @Test func whatIsSubmittedBehindAFailureEnds() throws {
    let world = try world()
    let (repair, mayGoOn) = try failBehindABusyThread(world)
    // It waits for its file, whichever of the two is handled first.
    _ = hold("b", of: world)
    world.folder.delete("b".path)
    let second = try world.beginRepair([itself("b")])
    world.await { world.log.events.count { if case .phase(.transferring) = $0 { true } else { false } } > 1 }
    mayGoOn.open()
    #expect(throws: PassFailure.self) { try second.wait() }
    _ = try? repair.wait()
  }

  /// A pass that looks at the number of records between the two would keep its own.
  @Test func aRepairCountsItsRecordBeforeItIsThere() throws {
    let world = try world()
    world.folder.delete("a".path)
    let (engine, counted) = (world.engine, Locked<Int?>(nil))
    world.ledger.beforeApply { changes in
      guard changes.contains(where: { if case .fact(.repaired, _) = $0 { true } else { false } }) else {
        return
      }
      let records = engine.history.records
      counted.withLock { $0 = records }
    }
    _ = try world.repairBeside([itself("a")])
    #expect(counted.withLock { $0 } == 1)
  }

  @Test func aRepairThatRecordsAtTheSameTimeLeavesNoRecord() throws {
    let world = try world()
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: "\"1\"", body: "list".bytes))
    let pass = try world.begin()
    let engine = world.engine
    world.ledger.beforeApply { changes in
      if changes.contains(where: { if case .fact(.ended, _) = $0 { true } else { false } }) {
        engine.countRepairRecord()
      }
    }
    #expect(try pass.wait().isInSync && world.ledger.contents.facts[.feedRecord] == nil)
  }

  /// Its look at everything has not seen what another one brought.
  @Test func whatAnotherOneBroughtMeanwhileIsCountedAnew() throws {
    let world = try world()
    world.server.clearRequests()
    let slow = hold("a", of: world)
    world.folder.delete("a".path)
    let whole = try world.beginRepair([.everything])
    awaitRequest(of: "a", world)
    world.folder.delete("b".path)
    #expect(try world.repairBeside([itself("b")]).report.counts.restored == 1)
    slow.open()
    #expect(try whole.wait().wantsCount && !world.repairBeside([.everything]).wantsCount)
  }

  /// The pass may fail, and then counts nothing.
  @Test func whatALookBesideAPassFindsIsCountedAfterIt() throws {
    let world = try world()
    world.policy.localChanges = .report
    let list = holdList(of: world)
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.folder.write("a".path, "mine".bytes)
    #expect(try world.repairBeside([.everything]).wantsCount)
    pass.stop.set()
    list.open()
    #expect(throws: PassFailure.self) { try pass.wait() }
    #expect(try !world.repairBeside([.everything]).wantsCount)
    #expect(world.ledger.contents.facts[.entriesCurrent] == "2")
  }

  // MARK: The same path

  /// The pass finds that the file is missing, and leaves it to whoever brings it.
  @Test func whatIsBroughtIsNotFetchedTwice() throws {
    let world = try world()
    let list = holdList(of: world)
    world.want("new", "text of new")
    let slow = hold("a", of: world)
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequest(of: "a", world)
    list.open()
    world.await { world.text("new") != nil }
    slow.open()
    let report = try pass.wait()
    #expect(report.isInSync && report.counts.restored == 0 && report.counts.inPlace == 4)
    #expect(try repair.wait().report.counts.restored == 1)
    #expect(requests(of: "a", world) == 1 && world.isConverged && world.partialNames.isEmpty)
  }

  /// The repair has brought the file by the time that the pass comes to it.
  @Test func whatARepairHasBroughtIsNotFetchedAgain() throws {
    let world = try world(["a", "b"])
    // The pass comes to it when all else is there.
    try world.choose([.publishLast: ["b"]])
    world.want("new", "text of new")
    let big = hold("new", of: world)
    world.folder.delete("b".path)
    let pass = try world.begin()
    awaitRequest(of: "new", world)
    #expect(try world.repairBeside([itself("b")]).report.counts.restored == 1)
    big.open()
    #expect(try pass.wait().isInSync && world.isConverged && requests(of: "b", world) == 1)
  }

  /// It waits for its turn beside others, and somebody has put it back by then.
  @Test func whatIsInPlaceAgainIsNotFetched() throws {
    let names = (0..<200).map { "n\($0)" }
    let world = try world(names)
    world.server.clearRequests()
    let gate = deleteAndHold(names, of: world)
    let repair = try world.beginRepair(names.map(itself))
    world.await { world.server.urls.count == 128 }
    let asked = Set(world.server.urls)
    for name in names where !asked.contains(World.host + name) {
      world.folder.write(name.path, "text of \(name)".bytes)
    }
    gate.open()
    _ = try repair.wait()
    #expect(
      world.isConverged && Set(world.server.urls) == asked && asked.count == 128, "\(world.server.urls.count)"
    )
  }

  @Test func aClaimWaitsForWhoIsAtWork() throws {
    let world = try world()
    world.server.clearRequests()
    let slow = hold("a", of: world)
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequest(of: "a", world)
    // Of other paths nobody waits.
    world.engine.claiming(["b".path, "c".path]) {}
    let (seen, engine, folder) = (Locked<Bool?>(nil), world.engine, world.folder)
    let claim = try WorkerThread.start(name: "claim") {
      engine.claiming(["b".path, "a".path]) {
        let isThere = folder.contents("a".path) != nil
        seen.withLock { $0 = isThere }
      }
    }
    slow.open()
    claim.join()
    #expect(try seen.withLock { $0 } == true && repair.wait().report.counts.restored == 1)
  }

  /// Whoever is at work on a path ends before a deletion there.
  @Test func deletionsWaitForTheirPaths() throws {
    let world = World()
    try world.fill("a", "text of a")
    let list = holdList(of: world)
    world.unlist("a")
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    let (isClaimed, wasClaimed) = (Locked(true), Locked(false))
    world.folder.beforeRemove { _ in
      let now = isClaimed.withLock { $0 }
      wasClaimed.withLock { $0 = now }
    }
    world.engine.claiming(["a".path]) {
      list.open()
      world.await { world.log.events.contains { if case .phase(.deleting) = $0 { true } else { false } } }
      isClaimed.withLock { $0 = false }
    }
    #expect(try pass.wait().counts.deleted == 1 && world.text("a") == nil && !wasClaimed.withLock { $0 })
  }

  /// What waits for a claim is decided over again, for what stands there is another file.
  @Test func whatWaitsForAClaimLooksAgain() throws {
    let world = try world()
    world.server.clearRequests()
    for name in ["a", "b"] { world.folder.delete(name.path) }
    let repair = try world.engine.claiming(["a".path]) {
      let repair = try world.beginRepair([itself("a"), itself("b")])
      awaitRequest(of: "b", world)
      world.folder.write("a".path, "text of a".bytes)
      return repair
    }
    _ = try repair.wait()
    #expect(world.isConverged && world.server.urls == [World.host + "b"], "\(world.server.urls)")
  }

  /// The pass is about to record it: whoever looks there meanwhile finds a file without a row.
  @Test func whatAPassIsBringingIsNoFailureOfARepair() throws {
    let world = try world()
    world.want("new", "text of new")
    let (isThere, mayGoOn) = (Gate(), Gate())
    world.folder.beforeInstall { path in
      guard path == "new".path else { return }
      isThere.open()
      try? mayGoOn.waitOrThrow()
    }
    let pass = try world.begin()
    try isThere.waitOrThrow()
    // As it will be.
    world.folder.write("new".path, "text of new".bytes)
    let repair = try world.repairBeside([itself("new")])
    #expect(repair.isSuperseded && !repair.needsPass && world.log.problems.isEmpty)
    world.folder.beforeInstall(nil)
    mayGoOn.open()
    _ = try pass.wait()
    #expect(try world.run().isInSync && world.isConverged)
  }

  /// Its transfer may take hours.
  @Test func aPartialFileThatARepairGoesOnWithIsLeftToIt() throws {
    let world = try world()
    let both = try both(world)
    both.big.open()
    _ = try both.pass.wait()
    // Somebody puts the file back: what came of it is of no use, and is still being written.
    world.folder.write("a".path, "text of a".bytes)
    #expect(try world.beginBeside().wait().isInSync)
    both.slow.open()
    _ = try both.repair.wait()
    #expect(try world.run().isInSync && world.isConverged && world.partialNames.isEmpty)
  }

  /// Many at a host that hangs leave places for what others bring.
  @Test func oneRepairDoesNotTakeAllPlaces() throws {
    let names = (0..<300).map { "n\($0)" }
    let world = try world(names + ["s"])
    world.server.clearRequests()
    let gate = deleteAndHold(names, of: world)
    let many = try world.beginRepair(names.map(itself))
    world.await { world.server.urls.count == 128 }
    world.folder.delete("s".path)
    #expect(try world.repairBeside([itself("s")]).report.counts.restored == 1)
    gate.open()
    _ = try many.wait()
    #expect(world.isConverged)
  }

  /// Two were cut short: what both left is told.
  @Test func whatIsLeftIsThatOfAllRepairs() throws {
    let world = try world()
    world.server.clearRequests()
    let gate = AnswerGate()
    let repairs = try ["a", "b"].map { name in
      _ = hold(name, of: world, by: gate)
      world.folder.delete(name.path)
      let repair = try world.beginRepair([itself(name)])
      awaitRequest(of: name, world)
      return repair
    }
    #expect(world.ledger.contents.facts[.repairPending]?.hasPrefix("2 ") == true)
    for repair in repairs {
      repair.stop.set()
      _ = try repair.wait()
    }
    #expect(world.ledger.contents.facts[.repairPending]?.hasPrefix("2 ") == true)
    gate.open()
    // The next one looks for itself.
    _ = try world.repairBeside([itself("a"), itself("b")])
    #expect(world.ledger.contents.facts[.repairPending] == nil && world.isConverged)
  }

  /// The pass that was beside it told of its own only.
  @Test func whatIsLeftAfterThePassIsRemembered() throws {
    let world = try world()
    let both = try both(world)
    both.big.open()
    #expect(try both.pass.wait().isInSync)
    #expect(world.ledger.contents.facts[.repairPending]?.hasPrefix("1 ") == true)
    both.repair.stop.set()
    _ = try both.repair.wait()
    #expect(world.ledger.contents.facts[.repairPending]?.hasPrefix("1 ") == true)
  }

  /// The pass has read what is left, and the repair ends before that is in the ledger.
  @Test func whatARepairBringsWhileThePassIsRecordedIsNotLeft() throws {
    let world = try world()
    let both = try both(world)
    let (records, goesOn) = (Gate(), Gate())
    world.ledger.beforeApply { changes in
      let isEnd = changes.contains { if case .fact(.ended, _) = $0 { true } else { false } }
      guard isEnd, !records.isOpen else { return }
      records.open()
      try? goesOn.waitOrThrow()
    }
    both.big.open()
    try records.waitOrThrow()
    both.slow.open()
    #expect(try both.repair.wait().report.counts.restored == 1)
    goesOn.open()
    #expect(try both.pass.wait().isInSync)
    #expect(world.ledger.contents.facts[.repairPending] == nil && world.isConverged)
  }

  // MARK: Another manifest

  /// Its manifest is no more, and the next one could not be kept.
  /// It waits behind the failure, in the same mail.
  @Test func aClaimBehindAFailureIsAnswered() throws {
    let world = try world()
    let (repair, mayGoOn) = try failBehindABusyThread(world)
    let (thread, isAnswered) = (Locked<ThreadState?>(nil), Gate())
    let claimer = try WorkerThread.start(name: "claimer") { [engine = world.engine] in
      thread.withLock { $0 = .current }
      engine.claiming(["b".path]) {}
      isAnswered.open()
    }
    #expect(isSoInTime { thread.withLock { $0 }?.isAsleep == true })
    mayGoOn.open()
    try isAnswered.waitOrThrow()
    claimer.join()
    #expect(throws: PassFailure.self) { try repair.wait() }
  }

  @Test func withoutAManifestNothingMoreIsBrought() throws {
    let world = try world()
    world.server.clearRequests()
    world.server.script(World.host + "a", [FakeAnswer(hangs: true)])
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequest(of: "a", world)
    world.engine.follow { _ in nil }
    #expect(try repair.wait().isSuperseded && world.log.problems.isEmpty)
  }

  /// The manifest came between its look and its transfers.
  @Test func aRepairOfAnEarlierManifestBringsNothing() throws {
    let world = try world()
    world.server.clearRequests()
    world.folder.delete("a".path)
    let entry = world.entry("a", "text of a")
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    world.log.onEvent { [engine = world.engine] _, event in
      if case .phase(.transferring) = event { engine.follow { $0 == entry.path ? entry : nil } }
    }
    let repair = try world.pass(downloader).repair([itself("a")], folder: world.folder)
    world.log.onEvent(nil)
    #expect(repair.isSuperseded)
    #expect(requests(of: "a", world) == 0 && world.text("a") == nil)
  }

  /// The feed wants another version by the time that it is read, or none.
  @Test(arguments: [true, false]) func whatAnotherManifestWantsOtherwiseIsNotBrought(_ isWanted: Bool) throws
  {
    let world = try world()
    let list = holdList(of: world)
    world.unlist("a")
    if isWanted { world.want("a", "another text of a") }
    world.server.script(World.host + "a", [FakeAnswer(hangs: true)])
    world.want("new", "text of new")
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.folder.delete("a".path)
    world.folder.delete("b".path)
    let slow = hold("b", of: world)
    let repair = try world.beginRepair([itself("a"), itself("b")])
    awaitRequest(of: "a", world)
    awaitRequest(of: "b", world)
    list.open()
    world.await { world.text("new") != nil }
    slow.open()
    // What it wants as before goes on.
    let ended = try repair.wait()
    #expect(ended.isSuperseded && ended.report.counts.restored == 1 && ended.report.counts.failed == 0)
    #expect(try pass.wait().isInSync && world.isConverged && world.partialNames.isEmpty)
    #expect(requests(of: "a", world) == (isWanted ? 2 : 1) && requests(of: "b", world) == 1)
    #expect(world.log.problems.isEmpty)
  }

  /// It waits for the other one, which is ended because the new manifest has neither.
  @Test func aDuplicateOfWhatIsWantedNoMoreIsNotFetched() throws {
    let world = try world()
    let text = String(repeating: "x", count: 70_000)
    for name in ["t1", "t2"] { world.want(name, text) }
    #expect(try world.run().isInSync)
    for name in ["t1", "t2"] { world.unlist(name) }
    let list = holdList(of: world)
    world.server.script(World.host + "t1", [FakeAnswer(hangs: true)])
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    for name in ["t1", "t2"] { world.folder.delete(name.path) }
    let repair = try world.beginRepair([itself("t1"), itself("t2")])
    awaitRequest(of: "t1", world)
    list.open()
    #expect(try repair.wait().isSuperseded)
    _ = try pass.wait()
    #expect(requests(of: "t1", world) == 1 && requests(of: "t2", world) == 0)
    #expect(world.text("t1") == nil && world.text("t2") == nil)
  }

  /// The server has the new version before anybody has read the list that tells of it.
  @Test(arguments: ["TEXT of a", "another text of a"]) func whatTheOldManifestCannotBringIsNoFailure(
    _ text: String
  ) throws {
    let world = try world()
    let list = holdList(of: world)
    world.want("a", text)
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.folder.delete("a".path)
    let repair = try world.repairBeside([itself("a")])
    #expect(repair.isSuperseded && world.log.problems.isEmpty)
    #expect(world.ledger.contents.problems.isEmpty && world.ledger.contents.facts[.repair] == nil)
    list.open()
    #expect(try pass.wait().isInSync && world.isConverged && world.text("a") == text)
    #expect(world.log.problems.isEmpty && requests(of: "a", world) == 2)
  }

  /// What fails by the manifest that holds is told as ever.
  @Test func aFailureAfterTheManifestIsTold() throws {
    let world = try world()
    world.want("new", "text of new")
    let big = hold("new", of: world)
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    let pass = try world.begin()
    awaitRequest(of: "new", world)
    world.folder.delete("a".path)
    let repair = try world.repairBeside([itself("a")])
    #expect(!repair.isSuperseded && repair.needsPass)
    #expect(world.log.problems.map(\.code) == ["http-404"])
    big.open()
    _ = try pass.wait()
  }

  // MARK: Orders

  /// `tarn cancel` ends a transfer, whoever brings it.
  @Test func itsTransfersTakeOrders() throws {
    let world = try world()
    world.want("new", "text of new")
    let steering = PassSteering()
    world.steering = steering
    let (big, slow) = (hold("new", of: world), hold("a", of: world))
    let pass = try world.begin()
    awaitRequest(of: "new", world)
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequest(of: "a", world)
    #expect(steering.give(.cancel, "a".path) == .done && steering.give(.cancel, "b".path) == .notThere)
    #expect(try repair.wait().report.counts.failed == 1 && !slow.isOpen)
    #expect(steering.give(.prioritize, "new".path) == .done, "the pass takes orders as before")
    big.open()
    _ = try pass.wait()
    #expect(world.text("a") == nil && world.text("new") != nil)
  }

  /// A pause holds for whoever would bring the file.
  @Test func whatIsPausedIsNotBrought() throws {
    let world = try world()
    world.want("big", "text of big")
    world.steering = PassSteering(paused: ["a".path])
    let big = hold("big", of: world)
    let pass = try world.begin()
    awaitRequest(of: "big", world)
    for name in ["a", "b"] { world.folder.delete(name.path) }
    #expect(try world.repairBeside([itself("a"), itself("b")]).report.counts.restored == 1)
    big.open()
    _ = try pass.wait()
    #expect(world.text("a") == nil && world.text("b") != nil && requests(of: "a", world) == 0)
  }

  /// What failed in the pass, and a repair brought meanwhile, is in place: the pass says so.
  ///
  /// With a digest it waits for another file of its contents by then; without one it is counted.
  @Test(arguments: [true, false]) func whatFailedAndWasBroughtIsNoFailure(hasDigest: Bool) throws {
    let world = try world()
    world.want("big", "text of big")
    var entry = world.want("a", "another text of a")
    if !hasDigest {
      entry.digests = []
      world.add(entry)
    }
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    let big = hold("big", of: world)
    let pass = try world.begin()
    if hasDigest {
      awaitRequest(of: "a", world)
    } else {
      world.await { world.log.problems.contains { $0.code == "http-404" } }
    }
    // What stands there is the version before: a repair brings it once that is gone.
    world.folder.delete("a".path)
    #expect(try world.repairBeside([itself("a")]).report.counts.restored == 1)
    big.open()
    let report = try pass.wait()
    #expect(
      report.isInSync && report.counts.failed == 0 && report.counts.inPlace == 4,
      "\(report.counts) \(report.problems) \(world.ledger.contents.problems)")
    #expect(world.isConverged && world.ledger.contents.problems.isEmpty)
  }

  /// What a repair brings while the pass has nothing but deletions left is in place, too.
  @Test func whatIsBroughtDuringDeletionsIsNoFailure() throws {
    let world = try world(["a", "b", "old"])
    world.policy.deletes = true
    world.items = world.items.filter {
      if case .entry(let entry) = $0 { entry.path != "old".path } else { true }
    }
    world.want("a", "another text of a")
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    let (isDeleting, mayDelete) = (Gate(), Gate())
    world.ledger.beforeApply { changes in
      guard
        changes.contains(where: { if case .intent(let intent) = $0 { intent.kind == .remove } else { false } }
        )
      else { return }
      isDeleting.open()
      try? mayDelete.waitOrThrow()
    }
    let pass = try world.begin()
    try isDeleting.waitOrThrow()
    world.ledger.beforeApply(nil)
    world.folder.delete("a".path)
    #expect(try world.repairBeside([itself("a")]).report.counts.restored == 1)
    mayDelete.open()
    let report = try pass.wait()
    #expect(report.isInSync && report.counts.inPlace == 2, "\(report.counts) \(report.problems)")
    #expect(world.isConverged && world.ledger.contents.problems.isEmpty)
  }

  /// A repair solves what it has seen, and not what another one met since.
  @Test func aProblemThatWasMetBesideARepairStays() throws {
    let world = try world()
    let slow = deleteAndHold(["a"], of: world)
    let repair = try world.beginRepair([.everything])
    awaitRequest(of: "a", world)
    world.clock.advance(.seconds(1))
    world.folder.delete("b".path)
    world.server.answer(World.host + "b", FakeAnswer(status: 404))
    #expect(try world.repairBeside([itself("b")]).report.counts.failed == 1)
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    #expect(world.ledger.contents.problems.count == 1)
  }
}
