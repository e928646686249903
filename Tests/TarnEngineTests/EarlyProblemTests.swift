import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What has failed is told while the pass is at work on the rest.
@Suite struct EarlyProblemTests {
  private let world = World(hashing: QuickHashing())

  /// The last entry of the list, whose answer waits until the gate opens.
  private func wantSlow() -> AnswerGate {
    let gate = AnswerGate()
    world.want("slow", "text of slow")
    var answer = FakeAnswer(body: "text of slow".bytes)
    answer.gate = gate
    world.server.answer(World.host + "slow", answer)
    return gate
  }

  private func wantMissing(_ name: String, hasDigest: Bool = true) {
    var entry = world.serve(name, "text of \(name)")
    world.server.remove(World.host + name)
    if !hasDigest { entry.digests = [] }
    world.add(entry)
  }

  private func status(limit: Int = 20) throws -> StatusDocument {
    try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/f", holder: 7, problemLimit: limit)
  }

  /// Runs a pass; beside it, once the slow entry is asked for, seconds go by until what the ledger says fits, for a while at
  /// most. Then the gate opens.
  private func run(
    _ gate: AnswerGate, until fits: @escaping @Sendable (StatusDocument) -> Bool,
    then look: @escaping @Sendable () -> Void = {}
  ) throws -> (seen: StatusDocument?, report: PassReport) {
    let (ledger, clock) = (world.ledger, world.clock)
    let seen = Locked<StatusDocument?>(nil)
    let hasBegun = Locked(false)
    world.server.onRequest { request in
      guard request.url == World.host + "slow", !hasBegun.withLock({ $0 }) else { return }
      hasBegun.withLock { $0 = true }
      _ = try? WorkerThread.start(name: "look") {
        let end = ContinuousClock.now + .seconds(120)
        while ContinuousClock.now < end {
          ledger.awaitWrite(milliseconds: 500) { clock.advance(.seconds(1)) }
          let document = try? StatusQuery(ledger: ledger).document(name: "m", folder: "/f", holder: 7)
          seen.withLock { $0 = document }
          if let document, fits(document) { break }
        }
        look()
        gate.open()
      }
    }
    let report = try world.run()
    return (seen.withLock { $0 }, report)
  }

  /// Its own source is gone, and the same bytes came under another name: it has not failed, and does not wait for the end.
  @Test func whatADuplicateBringsIsNotToldAsFailed() throws {
    world.add(world.entry("bad", "same text"))
    world.want("ok", "same text")
    let gate = wantSlow()
    let (folder, isThere) = (world.folder, Locked(false))
    let (seen, report) = try run(gate) { document in
      document.entries.failed == 0 && (try? folder.look("bad".path)) != .some(nil)
    } then: {
      isThere.withLock { $0 = (try? folder.look("bad".path)) != .some(nil) }
    }
    #expect(isThere.withLock { $0 } && seen?.entries.failed == 0)
    #expect(report.isInSync && report.counts.copied == 1 && world.text("bad") == "same text")
  }

  @Test(arguments: [true, false]) func whatFailedIsToldWhileTheRestIsFetched(hasDigest: Bool) throws {
    for name in ["a", "b", "c"] { wantMissing(name, hasDigest: hasDigest) }
    let gate = wantSlow()
    let answer = Locked<Explanation?>(nil)
    let (ledger, folder) = (world.ledger, world.folder)
    let (seen, report) = try run(gate) {
      $0.entries.failed == 3
    } then: {
      let query = ExplainQuery(ledger: ledger, folder: folder, holder: 7)
      answer.withLock { $0 = try? query.explain("a".path, mirror: "m") }
    }
    let document = try #require(seen)
    #expect(document.entries.wanted == 4 && document.entries.failed == 3 && document.entries.pending == 1)
    #expect(document.problems.map(\.path) == ["a", "b", "c"] && document.moreProblems == 0)
    #expect(document.problems.allSatisfy { $0.code == "http-404" && $0.attempts == 1 })
    #expect(answer.withLock { $0?.state } == "failed")
    #expect(answer.withLock { $0?.hint } == "tarn status m")
    #expect(report.counts.failed == 3)
    // It is the same attempt.
    #expect(try status().problems.map(\.attempts) == [1, 1, 1])
    #expect(try status().entries.pending == 0)
  }

  @Test func whatIsRefusedOrInConflictIsTold() throws {
    world.folder.write("mine".path, "mine".bytes)
    world.want("mine", "text of mine")
    world.items.append(
      .refused(Refusal(name: "../x".bytes, code: "path-dotdot", reason: "it has two dots")))
    let gate = wantSlow()
    let (seen, _) = try run(gate) { $0.entries.conflict == 1 }
    #expect(seen?.entries.conflict == 1 && seen?.entries.refused == 1 && seen?.entries.pending == 1)
  }

  /// More than a report names: the others are counted, while the pass is at work and afterwards.
  @Test func theyAreBounded() throws {
    world.mostHeldBack = 50
    let most = PassReport.mostProblems
    for number in 0..<(most + 500) {
      let name = "f\(100_000 + number)"
      let entry = world.entry(name, "text of \(name)")
      world.items.append(.entry(entry))
    }
    let gate = wantSlow()
    let answer = Locked<Explanation?>(nil)
    let (ledger, folder) = (world.ledger, world.folder)
    let (seen, report) = try run(gate) {
      $0.entries.failed == most + 500
    } then: {
      let query = ExplainQuery(ledger: ledger, folder: folder, holder: 7)
      answer.withLock { $0 = try? query.explain("f\(100_000 + most + 400)".path, mirror: "m") }
    }
    #expect(answer.withLock { $0?.summary.contains("or has failed, for more has") } == true)
    #expect(seen?.entries.failed == most + 500 && seen?.entries.pending == 1)
    #expect(seen?.moreProblems == most + 480)
    #expect(report.counts.failed == most + 500)
    #expect(try world.ledger.problemCounts() == [.failed: most])
    #expect(try status().entries.failed == most + 500 && status().entries.pending == 0)
    // They are tried again.
    try world.ledger.apply([
      .fact(.outcome, "running"), .fact(.began, String(world.clock.time.nanoseconds + 1)),
    ])
    #expect(try status().entries.failed == 0)
  }

  /// Its sources failed, and then another entry brought its bytes.
  @Test func whatADuplicateBringsIsNoProblem() throws {
    wantMissing("a")
    let gate = wantSlow()
    guard case .entry(var duplicate) = world.items[0] else {
      Issue.record("the first item is no entry")
      return
    }
    duplicate.digests = [world.digest("text of slow")]
    duplicate.size = 12
    world.items[0] = .entry(duplicate)
    let (seen, report) = try run(gate) { $0.entries.failed == 1 }
    #expect(seen?.problems.map(\.path) == ["a"] && seen?.entries.pending == 1)
    #expect(report.isInSync && world.isConverged)
    #expect(try world.ledger.problems(limit: 10).isEmpty)
  }

  /// What it knew of is kept, also of those that are not read again from the plan.
  @Test func aStoppedPassKeepsWhatItTold() throws {
    world.mostHeldBack = 1
    for name in ["a", "b", "c"] { wantMissing(name) }
    let gate = wantSlow()
    let world = StopBox(world)
    let (_, report) = try run(gate) {
      $0.entries.failed == 3
    } then: {
      world.set()
    }
    #expect(report.wasStopped && report.counts.failed == 3)
    #expect(report.problems.map { String(decoding: $0.name, as: UTF8.self) }.sorted() == ["a", "b", "c"])
    #expect(try status().problems.map(\.attempts) == [1, 1, 1])
  }

  /// Names of the pass before it may be of what it counted without a name.
  @Test func aStoppedPassCountsNothingTwice() throws {
    let most = PassReport.mostProblems
    let names = (0..<(most + 500)).map { "f\(100_000 + $0)" }
    let entries = names.map { FeedItem.entry(world.entry($0, "text of \($0)")) }
    // They are the last ones by path, and have no names beside all the others.
    world.items = Array(entries.suffix(500))
    #expect(try world.run().counts.failed == 500)
    world.clock.advance(.seconds(60))
    world.items = entries
    let gate = wantSlow()
    let box = StopBox(world)
    let (_, report) = try run(gate) {
      $0.entries.failed == most + 500
    } then: {
      box.set()
    }
    #expect(report.wasStopped && report.counts.failed == most + 500)
    let document = try status()
    // The last one may have come while the pass ended.
    let others = document.entries.current + document.entries.pending
    #expect(document.entries.failed == most + 500 && others == 1)
  }

  @Test func thereIsRoomForSoMany() {
    var report = PassReport(feed: "", folder: "", started: Timestamp(nanoseconds: 0))
    let moment = Timestamp(nanoseconds: 1)
    func problem(_ number: Int) -> Problem {
      Problem(name: "\(number)".bytes, kind: .failed, code: "c", message: "", seen: moment)
    }
    report.problems = (0..<9_998).map(problem)
    report.counts.failed = 9_998
    var early = EarlyProblems(report)
    for number in 10_000..<10_005 { early.tell(problem(number)) }
    #expect(early.open.count == 2)
    var changes = early.takeChanges(counts: [.failed: 5])
    #expect(changes.count == 10_001 && changes.last == .fact(.problemsUnnamed, "3 0 0 0"))
    early.forget("10000".bytes)
    changes = early.takeChanges(counts: [.failed: 4])
    #expect(changes == [.dropProblem(name: "10000".bytes), .fact(.problemsUnnamed, "3 0 0 0")])
  }
}
