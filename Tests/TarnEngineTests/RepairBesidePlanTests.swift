import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Repairs beside a pass that has a newer manifest, or the same path in its plan.
@Suite struct RepairBesidePlanTests {
  private func world(_ names: [String] = ["a", "b"]) throws -> World {
    let world = try World.inSync(names)
    return world
  }

  /// Its answer comes once the gate is open.
  private func hold(_ name: String, of world: World, by gate: AnswerGate = AnswerGate()) -> AnswerGate {
    var answer = FakeAnswer(body: "text of \(name)".bytes)
    answer.gate = gate
    world.server.answer(World.host + name, answer)
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

  /// Called at every look of a repair with its number, from 1; looks come one a second, by the clock.
  private func atLooks(of world: World, _ each: @escaping @Sendable (Int) -> [String]) {
    let (folder, clock, looks) = (world.folder, world.clock, Locked(0))
    world.localChanges = {
      clock.advance(.seconds(1))
      let number = looks.withLock { looks in
        looks += 1
        return looks
      }
      return each(number).map { name in
        folder.delete(name.path)
        return Region(name.path, .itself)
      }
    }
  }

  private func requests(of name: String, _ world: World) -> Int {
    world.server.urls.count { $0 == World.host + name }
  }

  // MARK: Another manifest

  /// The server has the new version before anybody has read the list that tells of it.
  @Test(arguments: ["TEXT of a", "another text of a"]) func whatTheOldManifestCannotBringIsNoFailure(
    _ text: String
  ) throws {
    let world = try world()
    let list = holdList(of: world)
    world.want("a", text)
    atLooks(of: world) { number in
      if number == 12 { list.open() }
      return number == 1 ? ["a"] : []
    }
    #expect(try world.run().isInSync && world.isConverged && world.text("a") == text)
    #expect(requests(of: "a", world) == 2)
    #expect(world.log.problems.isEmpty)
    #expect(world.ledger.contents.facts[.repair] == nil)
  }

  /// What fails by the manifest that holds is told as ever.
  @Test func aFailureAfterTheManifestIsTold() throws {
    let world = try world()
    world.want("new", "text of new")
    let (big, log) = (hold("new", of: world), world.log)
    world.server.script(World.host + "a", [FakeAnswer(status: 404)])
    atLooks(of: world) { number in
      if number > 60 || !log.problems.isEmpty { big.open() }
      return number == 1 ? ["a"] : []
    }
    _ = try world.run()
    #expect(world.log.problems.map(\.code) == ["http-404"])
  }

  // MARK: The plan of the pass

  /// The repair has brought the file by the time that the pass comes to it.
  @Test func whatARepairHasBroughtIsNotFetchedAgain() throws {
    let world = try world()
    // The pass comes to it when all else is there.
    try world.choose([.publishLast: ["b"]])
    world.want("new", "text of new")
    let big = hold("new", of: world)
    world.folder.delete("b".path)
    let (folder, server, isTold) = (world.folder, world.server, Locked(false))
    atLooks(of: world) { number in
      if folder.contents("b".path) != nil || number > 60 { big.open() }
      return isTold.withLock { isTold in
        guard !isTold, !server.urls.isEmpty else { return [] }
        isTold = true
        return ["b"]
      }
    }
    #expect(try world.run().isInSync && world.isConverged)
    #expect(requests(of: "b", world) == 1)
    #expect(world.ledger.contents.facts[.repair] == "1 restored")
  }

  /// It waits for its turn beside others, and somebody has put it back by then.
  @Test func whatIsInPlaceAgainIsNotFetched() throws {
    let names = (0..<200).map { "n\($0)" }
    let world = try world(names)
    let gate = AnswerGate()
    for name in names { _ = hold(name, of: world, by: gate) }
    world.want("new", "text of new")
    let big = hold("new", of: world)
    let (folder, server, before, clock) = (world.folder, world.server, Locked(0), world.clock)
    // A look that takes its time is followed by a rest.
    server.onRequest { _ in clock.advance(.seconds(1)) }
    atLooks(of: world) { number in
      let urls = server.urls
      // The pass has made its plan.
      guard !urls.isEmpty else { return [] }
      if folder.contents("n0".path) != nil, before.withLock({ $0 == 0 }) {
        before.withLock { $0 = 1 }
        return names
      }
      let isSettled = before.withLock { before in
        defer { before = max(before, urls.count) }
        return before == urls.count && before > 20
      }
      if isSettled, !gate.isOpen {
        for name in names where !urls.contains(World.host + name) {
          folder.write(name.path, "text of \(name)".bytes)
        }
        gate.open()
      }
      if gate.isOpen, names.allSatisfy({ folder.contents($0.path) != nil }) { big.open() }
      return []
    }
    #expect(try world.run().isInSync && world.isConverged)
    let fetched = names.count { requests(of: $0, world) > 0 }
    #expect(fetched > 0 && fetched <= 128)
  }

  // MARK: What is seen and steered of it

  /// As the status shows it, and `tarn cancel` ends it: the pass at work is not its own.
  @Test func itsTransfersAreShownAndTakeOrders() throws {
    let world = try world()
    world.want("new", "text of new")
    let steering = PassSteering()
    world.steering = steering
    let (big, slow) = (hold("new", of: world), hold("a", of: world))
    let (shown, answer) = (Locked<Set<RelativePath>>([]), Locked<PassSteering.Answer?>(nil))
    let (progress, orders) = (Locked<PassProgress?>(nil), Locked<WorkerThread?>(nil))
    atLooks(of: world) { number in
      let paths = Set(progress.withLock { $0 }?.snapshot().transfers.map(\.path) ?? [])
      if paths.contains("a".path), shown.withLock({ $0.isEmpty }) {
        shown.withLock { $0 = paths }
        orders.withLock {
          $0 = try? WorkerThread.start(name: "orders") {
            let given = steering.give(.cancel, "a".path)
            answer.withLock { $0 = given }
          }
        }
      }
      if answer.withLock({ $0 != nil }) || number > 60 { big.open() }
      if number > 60 { slow.open() }
      return number == 1 ? ["a"] : []
    }
    world.server.clearRequests()
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    progress.withLock { $0 = pass.progress }
    _ = try pass.run(folder: world.folder)
    orders.withLock { $0 }?.join()
    #expect(shown.withLock { $0 } == ["a".path, "new".path] && answer.withLock { $0 } == .done)
    #expect(world.text("a") == nil && world.text("new") != nil && !slow.isOpen)
    #expect(pass.progress.snapshot().transfers.isEmpty)
  }
}
