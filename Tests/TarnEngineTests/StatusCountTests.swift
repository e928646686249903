import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// The numbers of `tarn status` beside what is in the folder.
@Suite struct StatusCountTests {
  private func status(_ world: World) throws -> StatusDocument {
    try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
  }

  /// No more than so many problems are kept; what is beyond them has failed all the same.
  @Test func failuresBeyondThoseThatAreKeptAreCounted() throws {
    let world = World()
    world.policy.retries = 0
    let count = PassReport.mostProblems + 20
    for number in 0..<count { world.add(world.entry("f\(number)", "text")) }
    world.want("good", "good")
    #expect(try world.run().counts.failed == count)
    let document = try status(world)
    #expect(document.entries.failed == count && document.entries.pending == 0)
    #expect(document.moreProblems + document.problems.count == count)
    world.items = []
    world.want("good", "good")
    #expect(try world.run().isInSync)
    #expect(try status(world).entries.failed == 0)
  }

  /// The status is told while the plan is read again for those that failed.
  @Test func failuresAreCountedWhileThePlanIsReadAgain() throws {
    let world = World()
    (world.rushes, world.mostHeldBack) = (true, 4)
    world.policy.retries = 0
    for number in 0..<2_500 { world.want("a\(number + 10_000)", "text") }
    for number in 0..<40 { world.add(world.entry("f\(number)", "gone \(number)")) }
    #expect(try world.run().counts.failed == 40)
    #expect(try status(world).entries.failed == 40)
  }

  /// The size of the version before says nothing of the new one.
  @Test func aNewVersionOfUnknownSizeIsOfUnknownSize() throws {
    let world = World()
    func want(_ text: String) {
      var entry = world.serve("a", text)
      entry.size = nil
      world.items = [.entry(entry)]
    }
    want("a long text")
    try world.run()
    #expect(try status(world).bytes.wanted == 11)
    want("short")
    world.policy.retries = 0
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    try world.run()
    let document = try status(world)
    #expect(document.bytes.unknownSizes == 1 && document.bytes.wanted == nil && document.bytes.pending == nil)
    try world.run()
    #expect(try status(world).bytes.wanted == 5 && status(world).bytes.unknownSizes == 0)
    // Of what was deleted here the ledger knows how large it was.
    world.folder.delete("a".path)
    #expect(try world.plan().report.bytes.wanted == 5)
  }

  /// The plan of a pass that is at work knew no sizes; of what has come since they are known.
  @Test func whatIsInPlaceIsOfKnownSize() throws {
    let world = World()
    try world.ledger.apply([
      .fact(.outcome, "running"), .fact(.entriesWanted, "31"), .fact(.entriesCurrent, "30"),
      .fact(.bytesWanted, "0"), .fact(.sizesUnknown, "31"), .fact(.bytesCurrent, "6000"),
    ])
    let bytes = try status(world).bytes
    #expect(bytes.unknownSizes == 1 && bytes.current == 6000 && bytes.wanted == nil)
  }

  /// What is only recorded anew, or asked about, is no change; each wanted path is counted once before the pass and once after it.
  @Test func whatIsAsRecordedIsThereAlready() throws {
    let world = World()
    for name in ["a", "b", "c"] { world.want(name, "text of \(name)") }
    world.add(world.bareEntry("d"))
    world.server.put(World.host + "d", "one".bytes, etag: "\"1\"")
    try world.run()
    // The same bytes at another time.
    world.folder.edit("a".path, "text of a".bytes)
    let (plan, actions) = try world.plan()
    let planned = plan.counts.planned
    #expect(planned.all == 2 && planned.recorded == 1 && planned.asked == 1)
    #expect(plan.counts.toChange == 0 && plan.isInSync)
    #expect(actions.map(\.isRecorded) == [true, false] && plan.counts.current + 2 == plan.counts.wanted)
    world.want("e", "text of e")
    world.folder.delete("b".path)
    let report = try world.run()
    let counts = report.counts
    #expect(counts.toChange == 2 && counts.current + counts.planned.all == counts.wanted)
    #expect(counts.adopted == 0 && counts.revalidated == 2 && counts.fetched == 1 && counts.restored == 1)
    #expect(report.isInSync && counts.inPlace == counts.wanted)
    #expect(try status(world).entries.current == 5 && status(world).entries.pending == 0)
    #expect(try world.plan().report.counts.planned.recorded == 0)
  }

  /// Nobody would hear that anything is fetched.
  @Test func recordsAloneAreNoTransfers() throws {
    let world = try World.inSync(["a", "b"])
    world.settings = nil
    world.folder.edit("a".path, "text of a".bytes)
    try world.run()
    let isTold = world.log.events.contains { if case .phase(.transferring) = $0 { true } else { false } }
    #expect(!isTold && world.row("a")?.isAdopted == false)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test(arguments: [PassPolicy.LocalChanges.restore, .keep]) func aModeIsAChangeWhereItIsPutBack(
    _ changes: PassPolicy.LocalChanges
  ) throws {
    let world = World()
    world.want("a", "text of a")
    try world.run()
    world.policy.localChanges = changes
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    let (plan, actions) = try world.plan()
    let isChange = changes == .restore
    #expect(plan.counts.toChange == (isChange ? 1 : 0) && plan.counts.planned.recorded == (isChange ? 0 : 1))
    #expect(actions.map(\.kindToTell) == [isChange ? .restore : .adopt])
    #expect(try world.run().counts.restored == (isChange ? 1 : 0))
  }

  @Test func whatIsLeftByPolicyIsNotPending() throws {
    let world = World()
    for name in ["a", "b"] { world.want(name, "text of \(name)") }
    try world.run()
    world.policy.localChanges = .keep
    world.folder.delete("a".path)
    #expect(try world.run().isInSync)
    let document = try status(world)
    #expect(document.state == "idle" && document.entries.pending == 0 && document.bytes.pending == 0)
  }

  /// A repair of everything has counted without it, and the problem is told as well.
  @Test func aFailedRepairIsMissingOnce() throws {
    let world = try World.inSync(["a", "b", "c"])
    world.folder.delete("a".path)
    world.server.script(World.host + "a", [FakeAnswer(status: 404), FakeAnswer(status: 404)])
    for region in [Region("a".path, .itself), .everything] {
      #expect(try world.repair([region]).needsPass)
      let entries = try status(world).entries
      #expect(entries.current == 2 && entries.failed == 1 && entries.pending == 0)
    }
  }

  /// What failed in an earlier pass is tried again by the one at work: `explain` and the status say the same.
  @Test func whatIsTriedAgainIsPendingToAll() throws {
    let world = World()
    world.policy.retries = 0
    world.want("a", "text")
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    try world.run()
    func explained() throws -> String {
      try ExplainQuery(ledger: world.ledger, folder: world.folder).explain("a".path, mirror: "m").state
    }
    #expect(try explained() == "failed" && status(world).entries.failed == 1)
    world.clock.advance(.seconds(5))
    try world.ledger.apply([
      .fact(.outcome, "running"),
      .fact(.began, String(world.clock.time.nanoseconds)),
    ])
    #expect(try explained() != "failed" && status(world).entries.pending == 1)
  }

  /// Nobody says what should stand there.
  @Test func whatTheFeedDroppedAndSomebodyTookIsNoFailureOfAVerification() throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    for name in ["a", "dropped", "edited"] { world.want(name, "text of \(name)") }
    try world.run()
    for name in ["dropped", "edited"] { world.unlist(name) }
    try world.run()
    world.folder.delete("dropped".path)
    world.folder.edit("edited".path, "mine".bytes)
    func verify() throws -> VerifyReport {
      var verification = Verification(
        ledger: world.ledger, clock: world.clock, folder: world.folder, observer: world.log,
        progress: PassProgress(clock: world.clock), stop: StopFlag())
      verification.catalog = world.catalog
      return try verification.run()
    }
    #expect(try verify().isGood)
    #expect(try status(world).entries.failed == 0 && status(world).entries.current == 1)
    world.folder.delete("a".path)
    #expect(try verify().missing == ["a".path])
    #expect(try status(world).entries.failed == 1)
  }

  /// By a stop, or by a kill, which leaves what the ledger said before it.
  @Test(arguments: [false, true], [false, true])
  func aRepairThatWasCutShortHasNotBroughtAll(isKilled: Bool, hasSizes: Bool) throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    for name in ["a", "b", "c"] {
      var entry = world.serve(name, "text of \(name)")
      if !hasSizes { entry.size = nil }
      world.add(entry)
    }
    #expect(try world.run().isInSync)
    for name in ["a", "b"] { world.folder.delete(name.path) }
    let (stop, ledger, noted) = (StopBox(world), world.ledger, Locked<String?>(nil))
    var answer = FakeAnswer(body: "text of b".bytes)
    answer.gate = AnswerGate()
    world.server.script(World.host + "b", [answer])
    world.server.onRequest { request in
      noted.withLock { $0 = $0 ?? ledger.contents.facts[.repairPending] }
      if request.url == World.host + "b" { stop.set() }
    }
    let regions = ["a", "b"].map { Region($0.path, .itself) }
    let report = try world.repair(regions).report
    let left = 2 - report.counts.restored
    #expect(report.wasStopped && left > 0 && noted.withLock { $0 } == "2 18")
    if isKilled { try ledger.apply([.fact(.repairPending, "2 18")]) }
    var document = try status(world)
    let bytes = UInt64(document.entries.pending * "text of a".utf8.count)
    #expect(document.bytes.pending == bytes && document.bytes.current == 27 - bytes, "\(document.bytes)")
    #expect(document.state == "interrupted", "\(document)")
    #expect(
      document.entries.pending == (isKilled ? 2 : left)
        && document.entries.current == 3 - document.entries.pending)
    world.server.onRequest { _ in }
    #expect(try world.repair(regions).report.counts.restored == left)
    document = try status(world)
    #expect(document.state == "idle" && document.entries.current == 3 && document.entries.pending == 0)
  }

  /// What is in place, or was never counted so, is not missing while a repair is about it.
  @Test(arguments: Action.Kind.allCases, [false, true])
  func onlyWhatWasInPlaceIsMissing(_ kind: Action.Kind, restoresMode: Bool) {
    let world = World()
    var action = Action(kind, path: "a".path, entry: world.entry("a", "text of a"))
    action.restoresMode = restoresMode
    let isMissing = kind == .restore || kind == .replace || restoresMode
    #expect(RepairPending(action).files == (isMissing ? 1 : 0))
  }

  /// Also what failed of it. What was never in place is not among what is left.
  @Test(arguments: [false, true]) func whatACutRepairHasNotBroughtIsMissing(isRestore: Bool) throws {
    let world = try World.inSync(["a", "b"])
    var entry = world.serve("p", "text of p")
    // It waits for no duplicate.
    entry.digests = []
    world.add(entry)
    if !isRestore { world.folder.write("p".path, "somebody's".bytes) }
    #expect(try world.run().problems.map(\.code) == (isRestore ? [] : ["foreign-file"]))
    let gates = ["a", "b"].map { world.hold($0) }
    world.server.script(World.host + "p", [FakeAnswer(status: 404)])
    for name in ["a", "b", "p"] { world.folder.delete(name.path) }
    world.log.clear()
    let repair = try world.beginRepair(["a", "b", "p"].map { Region($0.path, .itself) })
    world.await { !world.log.problems.isEmpty }
    repair.stop.set()
    let report = try repair.wait().report
    #expect(report.wasStopped && report.counts.failed == 1 && report.counts.restored == 0)
    #expect(world.ledger.contents.facts[.repairPending] == (isRestore ? "3 27" : "2 18"))
    let entries = try status(world).entries
    #expect(entries.current == 0 && entries.pending == 2 && entries.failed == 1, "\(entries)")
    for gate in gates { gate.open() }
  }

  /// The last count has it as missing already.
  @Test func whatARepairTriesAgainIsMissingOnce() throws {
    let world = try World.inSync(["a", "b"])
    world.folder.delete("b".path)
    world.server.script(World.host + "b", [FakeAnswer(status: 404)])
    #expect(try world.repair([.everything]).report.counts.failed == 1)
    #expect(world.ledger.contents.facts[.entriesCurrent] == "1")
    let slow = world.hold("b")
    world.server.clearRequests()
    let repair = try world.beginRepair([Region("b".path, .itself)])
    world.awaitRequest(of: "b")
    #expect(try status(world).entries.current == 1)
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
  }

  /// What the last count has as missing has a row, as what it was before has one.
  @Test func whatARepairBringsBesideALossIsMissing() throws {
    let world = try World.inSync(["a", "b", "c"])
    world.folder.delete("b".path)
    world.server.script(World.host + "b", [FakeAnswer(status: 404)])
    #expect(try world.repair([.everything]).report.counts.failed == 1)
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a")
    let entries = try status(world).entries
    #expect(entries.current == 1 && entries.pending == 1 && entries.failed == 1, "\(entries)")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
  }

  /// Whatever becomes of the others, and of the process.
  @Test func whatARepairHasBroughtIsInPlaceAtOnce() throws {
    let world = try World.inSync(["a", "b", "c"])
    let slow = world.hold("b")
    for name in ["a", "b"] { world.folder.delete(name.path) }
    world.log.clear()
    let repair = try world.beginRepair(["a", "b"].map { Region($0.path, .itself) })
    world.await {
      world.log.events.contains { if case .done(_, let path, _) = $0 { path == "a".path } else { false } }
    }
    var document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    #expect(document.bytes.current == 18 && document.bytes.pending == 9, "\(document.bytes)")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 2)
    document = try status(world)
    #expect(document.entries.current == 3 && document.bytes.pending == 0)
  }

  /// What has failed for good is not among what the repair brings.
  @Test func whatARepairBringsBesideAFailureIsMissing() throws {
    let world = try World.inSync(["a", "b"])
    world.add(world.entry("bad", "lost"))
    #expect(try world.run().counts.failed == 1)
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a")
    var document = try status(world)
    #expect(document.entries.current == 1 && document.entries.pending == 1, "\(document.entries)")
    #expect(document.entries.failed == 1 && document.bytes.current == 9, "\(document)")
    #expect(document.bytes.pending == 13, "\(document.bytes)")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 0, "\(document.entries)")
  }

  /// A look at everything beside the repair finds it missing, too.
  @Test(arguments: [false, true]) func whatARepairBringsIsMissingOnceAfterACount(hasFailure: Bool) throws {
    let world = try World.inSync(["a", "b", "c"])
    if hasFailure {
      world.add(world.entry("bad", "lost"))
      #expect(try world.run().counts.failed == 1)
    }
    world.server.clearRequests()
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a")
    #expect(try !world.repairBeside([.everything]).wantsCount)
    var document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    #expect(document.entries.failed == (hasFailure ? 1 : 0) && document.bytes.current == 18, "\(document)")
    #expect(world.ledger.contents.facts[.entriesCurrent] == "3")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    document = try status(world)
    #expect(document.entries.current == 3 && document.entries.pending == 0, "\(document.entries)")
  }

  /// The look at everything found it in place, and counts at its end.
  @Test func whatGoesAfterALookIsMissingOnce() throws {
    let world = try World.inSync(["a", "b", "c"])
    world.add(world.entry("bad", "lost"))
    #expect(try world.run().counts.failed == 1)
    let (first, second) = (world.hold("a"), world.hold("b"))
    world.folder.delete("a".path)
    let whole = try world.beginRepair([.everything])
    world.awaitRequest(of: "a")
    world.folder.delete("b".path)
    let repair = try world.beginRepair([Region("b".path, .itself)])
    world.awaitRequest(of: "b")
    first.open()
    #expect(try !whole.wait().wantsCount)
    let document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    second.open()
    #expect(try repair.wait().report.counts.restored == 1)
    #expect(try status(world).entries.current == 3)
  }

  /// The pass has counted it as in place, and has something of its own to bring.
  @Test func whatARepairBringsBesideAPassIsMissing() throws {
    let world = try World.inSync(["a", "b"])
    world.want("new", "text of new")
    let (big, slow) = (world.hold("new"), world.hold("a"))
    let pass = try world.begin()
    world.awaitRequest(of: "new")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a")
    var document = try status(world)
    #expect(document.entries.current == 1 && document.entries.pending == 2, "\(document.entries)")
    #expect(document.bytes.pending == 20, "\(document.bytes)")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    big.open()
    #expect(try pass.wait().isInSync)
    document = try status(world)
    #expect(document.entries.current == 3 && document.bytes.pending == 0)
  }

  /// The pass has counted it as missing.
  @Test func whatAnEarlierRepairBringsBesideAPassIsInPlaceAtOnce() throws {
    let world = try World.inSync(["a", "b"])
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a", number: 2)
    world.want("new", "text of new")
    let big = world.hold("new")
    let pass = try world.beginBeside()
    world.awaitRequest(of: "new")
    #expect(try status(world).entries.current == 1)
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    let document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    #expect(document.bytes.current == 18 && document.bytes.pending == 11, "\(document.bytes)")
    big.open()
    #expect(try pass.wait().isInSync)
    #expect(try status(world).entries.current == 3)
  }

  /// The pass has counted it as in place, and has not announced its manifest yet.
  @Test func whatGoesWhileAPassPlansIsMissingOnce() throws {
    let world = try World.inSync(["a", "b"])
    world.want("new", "text of new")
    let (big, slow) = (world.hold("new"), world.hold("a"))
    let (isCompared, goesOn) = (Gate(), Gate())
    // The pass hashes it, behind the comparison of `a`.
    world.folder.touch("b".path)
    world.folder.beforeDigest { _ in
      isCompared.open()
      goesOn.wait()
    }
    let pass = try world.begin()
    isCompared.wait()
    world.folder.delete("a".path)
    let repair = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a")
    goesOn.open()
    world.awaitRequest(of: "new")
    var document = try status(world)
    #expect(document.entries.current == 1 && document.entries.pending == 2, "\(document.entries)")
    slow.open()
    #expect(try repair.wait().report.counts.restored == 1)
    document = try status(world)
    #expect(document.entries.current == 2 && document.entries.pending == 1, "\(document.entries)")
    big.open()
    #expect(try pass.wait().isInSync)
    #expect(try status(world).entries.current == 3)
  }

  /// What was in conflict was never in place, so the pass has it among what is missing.
  @Test func whatARepairFetchesBesideAPassIsMissingOnce() throws {
    let world = try World.inSync(["a", "b"])
    world.want("p", "text of p")
    world.folder.write("p".path, "somebody's".bytes)
    #expect(try world.run().problems.map(\.code) == ["foreign-file"])
    world.want("new", "text of new")
    let (big, slow) = (world.hold("new"), world.hold("p"))
    let pass = try world.begin()
    world.awaitRequest(of: "new")
    world.folder.delete("p".path)
    let repair = try world.beginRepair([Region("p".path, .itself)])
    world.awaitRequest(of: "p")
    #expect(try status(world).entries.current == 2)
    slow.open()
    #expect(try repair.wait().report.counts.fetched == 1)
    #expect(try status(world).entries.current == 3)
    big.open()
    _ = try pass.wait()
  }

  /// The later one leaves it to the earlier one.
  @Test func whatTwoRepairsWantIsMissingOnce() throws {
    let world = try World.inSync(["a", "b", "c"])
    let gates = ["a", "b"].map { world.hold($0) }
    for name in ["a", "b"] { world.folder.delete(name.path) }
    let first = try world.beginRepair([Region("a".path, .itself)])
    world.awaitRequest(of: "a", number: 2)
    let second = try world.beginRepair(["a", "b"].map { Region($0.path, .itself) })
    world.awaitRequest(of: "b", number: 2)
    #expect(world.ledger.contents.facts[.repairPending] == "2 18")
    for gate in gates { gate.open() }
    for repair in [first, second] { _ = try repair.wait() }
    #expect(try status(world).entries.current == 3)
  }

  /// A repair ends while that is recorded, and the disk is full.
  @Test func whatARepairHasBroughtIsRecordedOnce() throws {
    let (engine, ledger) = (TransferEngine(), MemoryLedger())
    let repair = engine.beginBringing(RepairPending(files: 2))
    let other = engine.beginBringing(RepairPending(files: 1))
    ledger.beforeApply { _ in engine.endBringing(other, left: RepairPending()) }
    ledger.failApply(2)
    let brought = [BroughtFile(repair: repair, pending: RepairPending(files: 1))]
    try engine.record([.inPlace(entries: 1, bytes: 9)], brought: brought, in: ledger)
    #expect(ledger.contents.facts[.repairPending] == "2 0")
    try engine.recordPending(in: ledger)
    #expect(ledger.contents.facts[.repairPending] == "1 0")
  }

  /// The pass brings what the earlier one left. What the later one was to bring was in place for it.
  @Test func onlyWhatThePassHasFoundMissingIsLeftToIt() {
    var repairs = BringingRepairs()
    func cutShort(files: Int) {
      let repair = repairs.begin(RepairPending(files: files))
      repairs.end(repair, left: RepairPending(files: files))
    }
    cutShort(files: 1)
    repairs.beginComparison()
    cutShort(files: 2)
    #expect(repairs.left.files == 3)
    repairs.endComparison()
    #expect(repairs.left.files == 2)
    repairs.endPass()
    #expect(repairs.left.files == 2)
    repairs.beginComparison()
    repairs.endComparison()
    #expect(repairs.left.files == 0)
  }

  /// What came has another size than what it stands for, and takes no more off what is missing than that had.
  @Test func whatIsMissingIsCountedAsItWas() throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    for name in ["a", "b"] {
      world.add(world.bareEntry(name))
      world.server.put(World.host + name, "text of \(name)".bytes, etag: "\"1\"")
    }
    #expect(try world.run().isInSync)
    for name in ["a", "b"] { world.folder.delete(name.path) }
    world.server.put(World.host + "a", "a much longer text of a".bytes, etag: "\"2\"")
    var answer = FakeAnswer(body: "text of b".bytes)
    answer.gate = AnswerGate()
    world.server.script(World.host + "b", [answer])
    let stop = StopBox(world)
    world.log.onEvent { _, event in if case .done = event { stop.set() } }
    let report = try world.repair(["a", "b"].map { Region($0.path, .itself) }).report
    #expect(report.wasStopped && report.counts.restored == 1)
    #expect(world.ledger.contents.facts[.repairPending] == "1 9")
  }

  /// The feed tells no sizes, and another version comes: what was never counted of the old one is not taken off.
  @Test func aNewVersionWithoutASizeIsCounted() throws {
    let world = World()
    func want(_ name: String, _ text: String) {
      var entry = world.serve(name, text)
      entry.size = nil
      world.add(entry)
    }
    want("a", "text of a")
    want("b", "text of b")
    #expect(try world.run().isInSync)
    want("a", "a longer text of a")
    #expect(try world.run().isInSync)
    var document = try status(world)
    #expect(document.bytes.wanted == 27 && document.bytes.current == 27 && document.bytes.unknownSizes == 0)
    // The other one cannot come: its size is not known.
    want("a", "still another text of a")
    want("b", "lost")
    world.server.script(World.host + "b", [FakeAnswer(status: 404)])
    #expect(try !world.run().isInSync)
    document = try status(world)
    #expect(document.bytes.wanted == 23 && document.bytes.unknownSizes == 1, "\(document.bytes)")
  }

  /// What fails there is no entry: all of them are in place.
  @Test(arguments: [false, true]) func aFailureBesideTheEntriesTakesNoneAway(isEntry: Bool) throws {
    let world = World()
    for name in ["a", "b", "c"] { world.want(name, "text of \(name)") }
    #expect(try world.run().isInSync)
    let problem = Problem(
      name: Array((isEntry ? "a" : "lost+found").utf8), kind: .failed, code: "permission", message: "denied",
      seen: Timestamp(nanoseconds: 2_000_000_000_000_000_000))
    try world.ledger.apply([.problem(problem)])
    let document = try status(world)
    #expect(document.entries.current == (isEntry ? 2 : 3) && document.entries.failed == 1)
    #expect(document.entries.pending == 0)
  }
}
