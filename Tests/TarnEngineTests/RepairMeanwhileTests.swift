import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Repairs beside a pass or a longer repair, in turns with it.
@Suite struct RepairMeanwhileTests {
  private func world() throws -> World {
    let world = try World.inSync(["a", "b", "sub/c"])
    return world
  }

  private func itself(_ path: String) -> Region { Region(path.path, .itself) }

  /// Its answer comes once the gate is open, and whole whatever is asked for.
  private func hold(_ name: String, of world: World) -> AnswerGate {
    let gate = AnswerGate()
    var answer = FakeAnswer(body: "text of \(name)".bytes, honoursRanges: false)
    answer.gate = gate
    world.server.answer(World.host + name, answer)
    return gate
  }

  /// Tells of each of the paths once, after it has deleted it; calls `each` with the number of every look, from 1.
  private func delete(
    _ names: [String], of world: World, each: @escaping @Sendable (Int) -> Void = { _ in }
  ) {
    let (folder, clock, looks) = (world.folder, world.clock, Locked(0))
    world.localChanges = {
      let number = looks.withLock { looks in
        looks += 1
        return looks
      }
      clock.advance(.seconds(1))
      each(number)
      guard number <= names.count else { return [] }
      folder.delete(names[number - 1].path)
      return [Region(names[number - 1].path, .itself)]
    }
  }

  private func requests(of name: String, _ world: World) -> Int {
    world.server.urls.count { $0 == World.host + name }
  }

  /// A server without ranges, or one that takes its time before it answers, would never come to an end otherwise.
  @Test func whatHasBegunIsAskedForOnce() throws {
    let world = try world()
    world.want("big", "text of big")
    let (big, slow, folder, clock) = (hold("big", of: world), hold("a", of: world), world.folder, world.clock)
    world.server.onRequest { if $0.url == World.host + "a" { clock.advance(.seconds(6)) } }
    delete(["a"], of: world) { number in
      if number == 8 { slow.open() }
      if number > 8, folder.contents("a".path) != nil { big.open() }
    }
    #expect(try world.run().isInSync && world.text("a") == "text of a")
    #expect(requests(of: "a", world) == 1)
    #expect(world.ledger.contents.facts[.repair] == "1 restored")
    #expect(world.saidToHaveLooked.withLock { $0 })
  }

  @Test func oneThatTakesLongHoldsUpNoOther() throws {
    let world = try world()
    world.want("big", "text of big")
    let (big, slow, folder) = (hold("big", of: world), hold("a", of: world), world.folder)
    delete(["a", "b", "sub/c"], of: world) { number in
      if number > 3, folder.contents("b".path) != nil, folder.contents("sub/c".path) != nil { slow.open() }
      if folder.contents("a".path) != nil, slow.isOpen { big.open() }
    }
    #expect(try world.run().isInSync && world.isConverged)
    #expect(world.server.urls.count == 4 && world.ledger.contents.facts[.repair] == "3 restored")
  }

  /// To end it would mean to begin anew.
  @Test(arguments: [true, false]) func theEndWaitsForWhatHasBegun(_ isRepair: Bool) throws {
    let world = try world()
    world.want("new", "text of new")
    if isRepair { world.unlist("new") }
    let slow = hold("a", of: world)
    let clock = world.clock
    world.server.onRequest { if $0.url == World.host + "a" { clock.advance(.seconds(6)) } }
    delete(["a"], of: world) { number in if number == 12 { slow.open() } }
    if isRepair {
      world.folder.delete("b".path)
      try world.repair([itself("b")])
    } else {
      #expect(try world.run().isInSync)
    }
    #expect(world.isConverged && requests(of: "a", world) == 1)
  }

  /// The pass finds that the file is missing, and leaves it to whoever brings it.
  @Test func whatIsBroughtBesideIsNotFetchedTwice() throws {
    let world = try world()
    world.policy.retries = 3
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(body: "list".bytes))
    world.server.script(UnchangedFeedTests.list, [FakeAnswer(failure: (0, Server.lost))])
    world.want("new", "text of new")
    let slow = hold("a", of: world)
    world.log.onEvent { _, event in
      if case .done(_, let path, _) = event, path == "new".path { slow.open() }
    }
    delete(["a"], of: world)
    let report = try world.run()
    #expect(report.isInSync && report.counts.restored == 0 && report.counts.inPlace == 4)
    #expect(requests(of: "a", world) == 1 && world.ledger.contents.facts[.repair] == "1 restored")
    #expect(world.isConverged && world.partialNames.isEmpty)
  }

  /// The feed wants another version by the time that it is read, or none.
  @Test(arguments: [true, false]) func whatAnotherManifestWantsOtherwiseIsNotBrought(_ isWanted: Bool) throws
  {
    let world = try world()
    world.policy.retries = 3
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(body: "list".bytes))
    world.server.script(UnchangedFeedTests.list, [FakeAnswer(failure: (0, Server.lost))])
    world.unlist("a")
    if isWanted { world.want("a", "another text of a") }
    world.server.script(World.host + "a", [FakeAnswer(hangs: true)])
    world.want("new", "text of new")
    delete(["a"], of: world)
    #expect(try world.run().isInSync)
    #expect(world.isConverged && world.partialNames.isEmpty)
    #expect(requests(of: "a", world) == (isWanted ? 2 : 1))
  }

  /// Of files that nobody has to fetch, which may be hashed for minutes.
  @Test(arguments: [true, false]) func hashingGivesRepairsATurn(_ isRepair: Bool) throws {
    let world = try world()
    if isRepair { world.folder.changeMode(try #require(world.folder.open("a".path))) }
    if !isRepair { world.want("found", "text of found") }
    if !isRepair { world.folder.write("found".path, "text of found".bytes) }
    let (folder, told) = (world.folder, Locked(false))
    let hashes = folder.count(.digest)
    world.localChanges = {
      guard folder.count(.digest) > hashes else { return [] }
      return told.withLock { told in
        defer { told = true }
        if !told { folder.delete("b".path) }
        return told ? [] : [Region("b".path, .itself), Region("a".path, .itself)]
      }
    }
    if isRepair { try world.repair([itself("a")]) } else { #expect(try world.run().isInSync) }
    #expect(told.withLock { $0 } && world.isConverged)
    #expect(world.server.urls == [World.host + "b"])
    #expect(
      world.ledger.contents.events.map(\.code).suffix(2).sorted() == [
        isRepair ? "restored" : "adopted", "restored",
      ])
    #expect(try world.repair([.everything]).report.counts.planned == 0)
  }

  /// A look at everything finds what no hint told of; the next one waits for as long as it took.
  @Test func everythingIsLookedAtWhileAFirstPassTransfers() throws {
    let world = World()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    for name in ["a", "b"] { world.want(name, "text of \(name)") }
    world.want("big", "text of big")
    let (big, folder, told) = (hold("big", of: world), world.folder, Locked(false))
    world.localChanges = {
      guard !told.withLock({ $0 }) else {
        if folder.contents("a".path) != nil { big.open() }
        return []
      }
      guard folder.contents("a".path) != nil else { return [] }
      folder.delete("a".path)
      told.withLock { $0 = true }
      return [.everything]
    }
    #expect(try world.run().isInSync && world.isConverged)
    #expect(requests(of: "a", world) == 2 && world.server.requests.last?.isUrgent == true)
  }

  @Test func aStopEndsIt() throws {
    let world = try world()
    world.want("big", "text of big")
    _ = (hold("big", of: world), hold("a", of: world))
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let stop = Locked<StopFlag?>(nil)
    delete(["a"], of: world) { number in if number == 5 { stop.withLock { $0 }?.set() } }
    let pass = world.pass(downloader)
    stop.withLock { $0 = pass.stop }
    #expect(try pass.run(folder: world.folder).wasStopped && world.text("a") == nil)
  }

  /// It waits for the other one, which is ended because the new manifest has neither.
  @Test func aTwinOfWhatIsWantedNoMoreIsNotFetched() throws {
    let world = try world()
    let text = String(repeating: "x", count: 70_000)
    for name in ["t1", "t2"] { world.want(name, text) }
    #expect(try world.run().isInSync)
    for name in ["t1", "t2"] { world.unlist(name) }
    world.policy.retries = 3
    world.location = .remote(url: UnchangedFeedTests.list)
    world.server.answer(UnchangedFeedTests.list, FakeAnswer(body: "list".bytes))
    world.server.script(UnchangedFeedTests.list, [FakeAnswer(failure: (0, Server.lost))])
    var answer = FakeAnswer(body: text.bytes)
    answer.gate = AnswerGate()
    world.server.answer(World.host + "t1", answer)
    let (folder, clock, isTold) = (world.folder, world.clock, Locked(false))
    world.localChanges = {
      clock.advance(.seconds(1))
      return isTold.withLock { isTold in
        defer { isTold = true }
        guard !isTold else { return [] }
        for name in ["t1", "t2"] { folder.delete(name.path) }
        return [Region("t1".path, .itself), Region("t2".path, .itself)]
      }
    }
    world.server.clearRequests()
    _ = try world.run()
    #expect(requests(of: "t1", world) == 1 && requests(of: "t2", world) == 0)
    #expect(world.text("t1") == nil && world.text("t2") == nil)
  }

  /// A pause holds for whoever would bring the file.
  @Test func whatIsPausedIsNotBroughtBeside() throws {
    let world = try world()
    world.want("big", "text of big")
    world.steering = PassSteering(paused: ["a".path])
    let (big, folder) = (hold("big", of: world), world.folder)
    delete(["a", "b"], of: world) { number in
      if number > 4, folder.contents("b".path) != nil { big.open() }
    }
    _ = try world.run()
    #expect(world.text("a") == nil && world.text("b") != nil && requests(of: "a", world) == 0)
  }

  /// It was in place before the ledger knew of it, and a look took it for somebody else's.
  @Test func whatItBroughtItselfIsNotAdopted() throws {
    let world = try world()
    world.want("big", "text of big")
    let big = hold("big", of: world)
    let (folder, ledger) = (world.folder, world.ledger)
    let isHashed = LockedCondition(false)
    let told = Locked(0)
    world.localChanges = {
      let isThere = folder.contents("a".path) != nil
      let number = told.withLock { told in
        if told == 0 || (told == 1 && isThere) { told += 1 } else if told == 2 { told = 3 }
        return told
      }
      if number == 1, isThere { folder.delete("a".path) }
      if number == 3 { big.open() }
      return number == 1 && isThere || number == 2 ? [Region("a".path, .itself)] : []
    }
    ledger.beforeApply { changes in
      guard changes.contains(where: { if case .row(let row) = $0 { row.path == "a".path } else { false } })
      else { return }
      _ = isHashed.wait(atMost: .seconds(10)) { $0 ? () : nil }
    }
    folder.beforeDigest { path in
      ledger.awaitWrite(milliseconds: 10_000) { isHashed.change { $0 = true } }
    }
    #expect(try world.run().isInSync)
    #expect(told.withLock { $0 } == 3 && isHashed.withLock { $0 })
    #expect(
      ledger.contents.facts[.repair] == "1 restored" && ledger.contents.rows["a".path]?.isAdopted == false)
  }
}
