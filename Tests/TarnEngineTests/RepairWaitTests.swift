import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Who waits for a path at which somebody else is at work, and what becomes of it.
@Suite struct RepairWaitTests {
  private func world(_ names: [String] = ["a", "b"]) throws -> World {
    let world = try World.inSync(names)
    world.server.clearRequests()
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  /// Of a list that takes its time.
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

  private func awaitRequests(_ count: Int = 1, of name: String, _ world: World) {
    world.await { requests(of: name, world) >= count }
  }

  /// A repair that brings `a`, and a pass that waits for that.
  private struct Waiting {
    let pass: World.Running<PassReport>
    let repair: World.Running<RepairReport>
    let slow: AnswerGate
  }

  private func waiting(_ world: World) throws -> Waiting {
    let list = holdList(of: world)
    world.want("new", "text of new")
    let slow = world.hold("a")
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequests(of: "a", world)
    list.open()
    world.await { world.text("new") != nil }
    return Waiting(pass: pass, repair: repair, slow: slow)
  }

  /// Of one that waits for nobody.
  private func ended<Report>(_ work: World.Running<Report>) throws -> Report {
    try #require(isSoInTime { work.isOver })
    return try work.wait()
  }

  // MARK: What goes on

  /// An index names what is there: it waits for who brings that in place of another one.
  @Test func anIndexWaitsForWhatARepairLeft() throws {
    let world = try world()
    try world.choose([.publishLast: ["index"]])
    world.want("index", "text of index")
    let waiting = try waiting(world)
    let again = world.hold("a")
    waiting.repair.stop.set()
    #expect(try waiting.repair.wait().report.wasStopped)
    awaitRequests(2, of: "a", world)
    #expect(requests(of: "index", world) == 0 && world.text("index") == nil)
    again.open()
    #expect(try waiting.pass.wait().isInSync && world.isConverged)
    waiting.slow.open()
  }

  /// A repair was renaming the earlier version when the pass came to the path. That one is not what the index names.
  @Test func anIndexWaitsForPayloadThatIsDecidedAgain() throws {
    let world = try world()
    try world.choose([.publishLast: ["index"]])
    let list = holdList(of: world)
    let (renames, goesOn) = (Gate(), Gate())
    world.folder.beforeInstall { path in
      guard path == "a".path, !renames.isOpen else { return }
      renames.open()
      try? goesOn.waitOrThrow()
    }
    for (name, text) in [("a", "another a"), ("index", "text of index"), ("new", "text of new")] {
      world.want(name, text)
    }
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.server.script(World.host + "a", [FakeAnswer(body: "text of a".bytes)])
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    try renames.waitOrThrow()
    world.server.clearRequests()
    list.open()
    world.await { requests(of: "new", world) == 1 }
    goesOn.open()
    _ = try repair.wait()
    #expect(try pass.wait().isInSync && world.isConverged)
    let asked = world.server.urls.filter { $0 == World.host + "a" || $0 == World.host + "index" }
    #expect(asked == [World.host + "a", World.host + "index"])
  }

  /// Such a file is one that failed: it does not hold up what names the others.
  @Test func anIndexDoesNotWaitForAFileThatNeverRests() throws {
    let world = try world()
    try world.choose([.publishLast: ["index"]])
    for (name, text) in [("a", "another a"), ("index", "text of index"), ("new", "text of new")] {
      world.want(name, text)
    }
    let (folder, count) = (world.folder, Locked(0))
    folder.beforeInstall { path in
      guard path == "a".path else { return }
      let number = count.withLock { count -> Int in
        count += 1
        return count
      }
      folder.write(path, "changed \(number)".bytes)
    }
    let report = try world.run()
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(report.problems.map(\.code) == ["changed-meanwhile"])
    #expect(report.counts.failed == 1 && world.text("new") != nil && world.text("index") == "text of index")
    folder.beforeInstall(nil)
    #expect(try world.run().isInSync && world.isConverged)
  }

  /// Somebody removed the file again while its row was being written: a look at it then would be too early.
  @Test func whatIsRemovedAgainWhileItIsRecordedComesBack() throws {
    let world = try world()
    let (records, goesOn) = (Gate(), Gate())
    world.ledger.beforeApply { changes in
      let isRow = changes.contains { if case .row(let row) = $0 { row.path == "a".path } else { false } }
      guard isRow, !records.isOpen else { return }
      records.open()
      try? goesOn.waitOrThrow()
    }
    world.folder.delete("a".path)
    let first = try world.beginRepair([itself("a")])
    try records.waitOrThrow()
    #expect(world.text("a") == "text of a")
    world.folder.delete("a".path)
    world.folder.delete("b".path)
    let second = try world.beginRepair([itself("a"), itself("b")])
    awaitRequests(of: "b", world)
    goesOn.open()
    _ = try first.wait()
    _ = try second.wait()
    #expect(world.isConverged && requests(of: "a", world) == 2)
  }

  /// Somebody put it back meanwhile: nobody fetches it.
  @Test func whatIsThereWhenItsTurnComesIsNotFetched() throws {
    let world = try world()
    let waiting = try waiting(world)
    world.folder.write("a".path, "text of a".bytes)
    waiting.repair.stop.set()
    _ = try waiting.repair.wait()
    #expect(try ended(waiting.pass).isInSync && world.isConverged && requests(of: "a", world) == 1)
    waiting.slow.open()
  }

  /// A source that fails for the one is asked by the other, which tells what came of it.
  @Test func whatFailedForARepairAPassTries() throws {
    let world = try world()
    let gate = AnswerGate()
    var bad = FakeAnswer(status: 404)
    bad.gate = gate
    let list = holdList(of: world)
    world.want("new", "text of new")
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    world.server.script(World.host + "a", [bad])
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequests(of: "a", world)
    list.open()
    world.await { world.text("new") != nil }
    gate.open()
    _ = try repair.wait()
    #expect(try pass.wait().isInSync && world.isConverged && requests(of: "a", world) == 2)
  }

  // MARK: Orders

  /// Repairs may meet a paused path any number of times.
  @Test func onlyPassesCountWhatIsPaused() throws {
    let world = try world()
    world.steering = PassSteering(paused: ["a".path])
    for _ in 1...3 {
      world.folder.delete("a".path)
      _ = try world.repair([itself("a")])
      world.folder.write("a".path, "text of a".bytes)
      _ = try world.repair([itself("a")])
      world.clock.advance(.seconds(1))
    }
    world.folder.delete("a".path)
    for passes in 1...2 {
      _ = try world.run()
      _ = try world.repair([itself("a")])
      let problem = try #require(try world.ledger.problem(name: "a".path.bytes))
      #expect(problem.code == Problem.pausedCode && problem.attempts == passes)
      world.clock.advance(.seconds(1))
    }
  }

  /// It names the path, whoever brings the file.
  @Test func whatAPersonCancelsNobodyBeginsAnew() throws {
    let world = try world()
    let steering = PassSteering()
    world.steering = steering
    let waiting = try waiting(world)
    #expect(steering.give(.cancel, "a".path) == .done)
    #expect(try waiting.repair.wait().report.problems.map(\.code) == ["cancelled"])
    let report = try ended(waiting.pass)
    #expect(report.problems.map(\.code) == ["cancelled"] && report.counts.failed == 1)
    #expect(requests(of: "a", world) == 1 && world.text("a") == nil)
    waiting.slow.open()
  }

  /// While a pass reads nothing that fails is told, but what a person ended is.
  @Test func aCancelWhileAPassReadsIsToldAndTakenBack() throws {
    let world = try world()
    let steering = PassSteering()
    world.steering = steering
    let list = holdList(of: world)
    let (slow, other) = (world.hold("a"), world.hold("b"))
    let pass = try world.begin()
    world.await { world.server.urls.contains(UnchangedFeedTests.list) }
    for name in ["a", "b"] { world.folder.delete(name.path) }
    let repair = try world.beginRepair(["a", "b"].map(itself))
    awaitRequests(of: "b", world)
    #expect(steering.give(.cancel, "a".path) == .done)
    world.await { world.log.problems.map(\.code) == ["cancelled"] }
    #expect(steering.give(.retry, "a".path) == .done)
    awaitRequests(2, of: "a", world)
    slow.open()
    other.open()
    let report = try repair.wait()
    #expect(report.report.counts.failed == 0 && report.report.counts.restored == 2)
    #expect(!report.isSuperseded && report.report.problems.isEmpty)
    list.open()
    #expect(try pass.wait().isInSync && world.isConverged)
  }

  /// Somebody put it back since it was cancelled.
  @Test func whatIsTriedAgainIsLookedAtFirst() throws {
    let world = try world()
    let steering = PassSteering()
    world.steering = steering
    let (slow, other) = (world.hold("a"), world.hold("b"))
    for name in ["a", "b"] { world.folder.delete(name.path) }
    let repair = try world.beginRepair(["a", "b"].map(itself))
    awaitRequests(of: "a", world)
    awaitRequests(of: "b", world)
    #expect(steering.give(.cancel, "a".path) == .done)
    world.await { world.log.problems.map(\.code) == ["cancelled"] }
    world.folder.write("a".path, "text of a".bytes)
    #expect(steering.give(.retry, "a".path) == .done)
    other.open()
    let report = try ended(repair).report
    #expect(report.problems.isEmpty && requests(of: "a", world) == 1 && world.isConverged)
    slow.open()
  }

  /// That it is done would be no answer: nobody brings it.
  @Test func whatIsWantedNoMoreIsNotTriedAgain() throws {
    let world = try world()
    let steering = PassSteering()
    world.steering = steering
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let repair = try world.beginRepair([itself("a")])
    awaitRequests(of: "a", world)
    // The order comes before the end of the exchange, for which the engine has no time.
    let (isBusy, mayGoOn) = (Gate(), Gate())
    world.engine.follow { _ in
      isBusy.open()
      try? mayGoOn.waitOrThrow()
      return nil
    }
    try isBusy.waitOrThrow()
    let (thread, answer) = (Locked<ThreadState?>(nil), Locked<PassSteering.Answer?>(nil))
    let order = try WorkerThread.start(name: "order") {
      thread.withLock { $0 = .current }
      let said = steering.give(.retry, "a".path)
      answer.withLock { $0 = said }
    }
    #expect(isSoInTime { thread.withLock { $0 }?.isAsleep == true })
    mayGoOn.open()
    order.join()
    #expect(answer.withLock { $0 } == .notThere)
    #expect(try repair.wait().isSuperseded && requests(of: "a", world) == 1)
    slow.open()
  }

  // MARK: One file that dribbles

  /// Another repair would only wait for it, as long as it takes.
  @Test func whatARepairBringsIsLeftToIt() throws {
    let world = try world()
    let slow = world.hold("a")
    world.folder.delete("a".path)
    let first = try world.beginRepair([itself("a")])
    awaitRequests(of: "a", world)
    world.folder.delete("b".path)
    for regions in [[itself("a"), itself("b")], [.everything], [itself("a")]] {
      let report = try ended(world.beginRepair(regions))
      #expect(!report.isSuperseded && !report.needsPass && report.report.problems.isEmpty)
    }
    #expect(world.text("b") != nil && requests(of: "a", world) == 1)
    slow.open()
    #expect(try first.wait().report.counts.restored == 1 && world.isConverged)
  }

  /// One of them waits for the pass, and brings it should that end; the others need not.
  @Test func oneRepairWaitsForWhatAPassBrings() throws {
    let world = try world(["a", "b", "c"])
    world.folder.delete("a".path)
    let slow = world.hold("a")
    let pass = try world.begin()
    awaitRequests(of: "a", world)
    world.folder.delete("b".path)
    let first = try world.beginRepair(["a", "b"].map(itself))
    // It comes to `a` before it.
    awaitRequests(of: "b", world)
    for _ in 0..<3 {
      world.folder.delete("c".path)
      #expect(try ended(world.beginRepair(["a", "c"].map(itself))).report.counts.restored == 1)
    }
    slow.open()
    #expect(try pass.wait().isInSync && first.wait().report.counts.restored == 1)
    #expect(world.isConverged && requests(of: "a", world) == 1)
  }

  // MARK: What changes again and again

  /// Each time that it gets its name somebody has written there again. That is told, and another look later may find it at rest.
  @Test func whatNeverRestsARepairLooksAtAgain() throws {
    let world = try world()
    world.policy.localChanges = .restore
    let (folder, count) = (world.folder, Locked(0))
    folder.write("a".path, "changed".bytes)
    folder.beforeInstall { path in
      let number = count.withLock { count -> Int in
        count += 1
        return count
      }
      folder.write(path, "changed \(number)".bytes)
    }
    let repair = try world.repairBeside([itself("a")])
    #expect(repair.isSuperseded && !repair.needsPass)
    #expect(world.log.problems.map(\.code) == ["changed-meanwhile"])
    #expect(try world.ledger.problems(limit: 9).map(\.code) == ["changed-meanwhile"])
    folder.beforeInstall(nil)
    #expect(try !world.repairBeside([itself("a")]).isSuperseded && world.text("a") == "text of a")
    #expect(try world.ledger.problems(limit: 9).isEmpty)
  }

  /// It makes way for a directory once nobody is at work there any more.
  @Test func whatMakesWayWaitsForItsPath() throws {
    let world = World()
    try world.fill("d", "text of d")
    world.unlist("d")
    world.want("c", "text of c")
    world.want("d/x", "text of x")
    let pass = try world.engine.claiming(["d".path]) {
      let pass = try world.beginBeside()
      world.await { world.text("c") != nil }
      #expect(world.text("d") != nil && world.text("d/x") == nil)
      return pass
    }
    let report = try pass.wait()
    #expect(report.isInSync && world.isConverged, "\(report.problems)")
  }

  // MARK: Bounds

  /// Too many parts of a folder are all of it.
  @Test func tooManyFindingsAreALookAtEverything() throws {
    let world = try world(["a", "b", "c", "d"])
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    for most in [2, 3] {
      for name in ["a", "b", "c"] { world.folder.delete(name.path) }
      let pass = world.pass(downloader)
      let catalog = try #require(try pass.openCatalog())
      let planner = RegionPlanner(
        pass, world.folder, catalog, since: world.engine.history, started: world.clock.time, onlyCounts: false
      )
      planner.mostFound = most
      try planner.look(at: ["a", "b", "c"].map(itself))
      #expect(planner.writer.plan.counts.planned.all == 3 && planner.writer.plan.counts.wanted == 3)
      #expect(try pass.ports.stage.actionCount() == 3)
      #expect(planner.findings.asLeft.count == (most == 2 ? 1 : 0), "d was looked at as well")
    }
  }

  /// Without a thread nobody keeps a path for who claims it: others may be at work there as soon as there is one.
  @Test func aClaimWaitsForAThread() throws {
    let attempts = Locked(0)
    let engine = TransferEngine { body in
      let number = attempts.withLock { count -> Int in
        count += 1
        return count
      }
      guard number > 2 else { throw ThreadFailure(number: 11) }
      _ = try WorkerThread.start(name: "tarn-engine", stackSize: 8 << 20, body: body)
    }
    #expect(engine.claiming(["a".path]) { attempts.withLock { $0 } } == 3)
    engine.close()
  }
}
