import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// Who keeps a place without receiving anything gives it to a mirror that has none.
@Suite struct KeptOutTests {
  private let bench = BudgetBench()

  private func budget(total: Int = 10, perHost: Int, keptForSmall: Int = 0) -> TransferBudget {
    let budget = bench.budget(total: total, perHost: perHost, keptForSmall: keptForSmall)
    budget.setMirrors(
      Dictionary(uniqueKeysWithValues: ["a", "b", "c", "d"].map { ($0, "http://dead/\($0)") }))
    return budget
  }

  private func giveWay(_ budget: TransferBudget, _ place: TransferBudget.Place) -> Bool {
    let isGiven = budget.change { $0.giveWay(place) }
    if isGiven { bench.over.insert(place) }
    return isGiven
  }

  /// Two mirrors hang, and a third one comes: whoever gives way, the place is the third one's, and not that of the next
  /// transfer that hangs.
  @Test(arguments: [1, 2, 3, 6], [false, true]) func aThirdMirrorGetsThePlaceOfOneThatHangs(
    perHost: Int, isLast: Bool
  ) throws {
    let budget = budget(perHost: perHost)
    let first = (0..<8).map { _ in bench.enter(budget, mirror: "a") }
    if perHost > 1 { for _ in 0..<2 { bench.enter(budget, mirror: "b") } }
    #expect(budget.snapshot().running == perHost)
    // Those that wait have a place there already, and are not worth one that is given away.
    for place in bench.running where perHost > 1 { #expect(!giveWay(budget, place)) }
    let third = bench.enter(budget, mirror: "c")
    #expect(!bench.running.contains(third))
    for place in [third, first[7], 9999] { #expect(!giveWay(budget, place)) }
    let place = try #require(isLast ? bench.running.last : bench.running.first)
    #expect(giveWay(budget, place))
    #expect(bench.running.contains(third) && budget.snapshot().running == perHost)
    // It says nothing of the host.
    #expect(budget.snapshot().resting.isEmpty)
    bench.leave(budget, third)
    #expect(budget.snapshot().running >= max(1, perHost - 1))
  }

  /// A large file would not be let in for a small one that ends.
  @Test func onlyAPlaceThatWouldHelpIsWanted() {
    let budget = budget(perHost: 4, keptForSmall: 1)
    let first = ["a", "a", "b"].map { bench.enter(budget, mirror: $0) }
    let small = bench.enter(budget, mirror: "c", isSmall: true)
    #expect(bench.running.count == 4)
    let large = bench.enter(budget, mirror: "d")
    #expect(!giveWay(budget, small))
    #expect(giveWay(budget, first[0]) && bench.running.contains(large))
    // It has its place by now.
    #expect(!giveWay(budget, first[1]))
  }

  /// Over several hosts all places there are may hang.
  @Test func theLastOfAllPlacesIsWantedToo() {
    let budget = budget(total: 3, perHost: 2)
    let first = bench.enter(budget, mirror: "a")
    let elsewhere = bench.enter(budget, mirror: "a", host: "other")
    bench.enter(budget, mirror: "b", host: "other")
    let third = bench.enter(budget, mirror: "c", host: "third")
    #expect(bench.running.count == 3 && !bench.running.contains(third))
    #expect(giveWay(budget, elsewhere) && bench.running.contains(third))
    // One that has a place somewhere waits for its turn.
    bench.enter(budget, mirror: "c", host: "fourth")
    #expect(!giveWay(budget, first))
  }

  /// A request that tried whether a host is back has found nothing out.
  @Test func whoTriedLetsAnotherOneTry() {
    let budget = bench.restingBudget()
    budget.setMirrors(["a": "http://dead/", "b": "http://dead/"])
    budget.setLimits(PlaceLimits(total: 10, perHost: 1, keptForSmall: 0))
    bench.clock.advance(.seconds(31))
    let probe = bench.enter(budget, mirror: "a")
    let next = bench.enter(budget, mirror: "a")
    let other = bench.enter(budget, mirror: "b")
    #expect(bench.running == [probe])
    #expect(giveWay(budget, probe))
    #expect(bench.running == [other])
    bench.leave(budget, other)
    #expect(bench.running == [next])
  }
}

/// The same with a network, and a clock that is moved by hand.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct GivingWayTests {
  private let server: ScriptedServer
  private let clock = ManualClock(monotonic: 1)

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  private func pool(perHost: Int) -> DownloaderPool {
    let limits = PlaceLimits(total: 16, perHost: perHost, keptForSmall: 0)
    let budget = TransferBudget(limits, clock: clock, random: MostRandom())
    let pool = DownloaderPool(budget: budget, clock: clock)
    pool.budget.setMirrors(["a": "\(server.plain)/1", "b": "\(server.plain)/2", "c": "\(server.plain)/3"])
    return pool
  }

  private func client(_ pool: DownloaderPool, _ mirror: String) throws -> CurlDownloader {
    var settings = NetworkSettings()
    settings.allowsPrivateAddresses = true
    settings.lowSpeedTime = 600
    return try pool.downloader(mirror: mirror, settings: settings)
  }

  @discardableResult
  private func start(
    _ client: CurlDownloader, _ behaviour: String, _ name: String, patience: Int64 = 5, to receiver: Collector
  ) -> DownloadID {
    var request = DownloadRequest(url: "\(server.plain)/\(behaviour)/way/5000/\(name)", limit: 1 << 20)
    request.patience = patience
    return client.start(request, to: receiver)
  }

  /// Blocks until so many requests have come.
  private func wait(for count: Int, _ name: String) {
    #expect(isSoInTime { server.requests("/\(name)").count >= count })
  }

  /// No head ever came, or the body stopped.
  @Test(arguments: ["head-never", "body-stalls"]) func whatHangsGivesWayToAThirdMirror(behaviour: String)
    throws
  {
    let pool = pool(perHost: 3)
    let clients = try ["a", "b", "c"].map { try client(pool, $0) }
    let name = "gives-way-\(behaviour)"
    let hanging = (0..<3).map { _ in Collector() }
    var last = DownloadID(value: 0)
    for (index, receiver) in hanging.enumerated() {
      last = start(clients[index / 2], behaviour, name, to: receiver)
      wait(for: index + 1, name)
      if behaviour == "body-stalls" { #expect(receiver.head() != nil) }
    }
    clock.advance(.seconds(4))
    let third = Collector()
    start(clients[2], "ok", name + "-third", to: third)
    #expect(isSoInTime { pool.budget.snapshot().waiting > 0 })
    #expect(hanging.allSatisfy { $0.heard.withLock { $0.outcomes.isEmpty } })
    clock.advance(.seconds(2))
    // Whatever wakes the thread, as its own timer would.
    clients[1].prioritize(last)
    #expect(third.outcome()?.head?.status == 200)
    let ended = hanging.compactMap { $0.heard.withLock { $0.outcomes.first } }
    #expect(ended.count == 1, "one place was wanted")
    let failure = try #require(ended.first?.failure)
    #expect(failure.code == .gaveWay && failure.isTransient && failure.message.contains("sent nothing for "))
    // Nothing is held against the host, or the source.
    #expect(pool.budget.snapshot().resting.isEmpty)
    for client in clients { client.shutDown() }
    #expect(pool.budget.snapshot().running == 0 && pool.budget.snapshot().waiting == 0)
  }

  /// What waits for this end, and what has been waited for longer by an agreement of its own.
  @Test func whatIsHeldUpHereGivesNoWay() throws {
    let pool = pool(perHost: 2)
    let clients = try ["a", "b", "c"].map { try client(pool, $0) }
    let full = Collector { _ in .full }
    let id = start(clients[0], "ok", "held-up", to: full)
    #expect(full.paused(1))
    let patient = Collector()
    start(clients[1], "head-never", "held-up-patient", patience: 40, to: patient)
    wait(for: 1, "held-up-patient")
    clock.advance(.seconds(30))
    let third = Collector()
    start(clients[2], "ok", "held-up-third", to: third)
    #expect(isSoInTime { pool.budget.snapshot().waiting > 0 })
    // Another host answers: a turn was made by then.
    let beside = Collector()
    _ = clients[0].start(
      DownloadRequest(url: "\(server.other)/ok/way/10/beside", limit: 1 << 20), to: beside)
    #expect(beside.outcome()?.head?.status == 200)
    for receiver in [full, patient, third] { #expect(receiver.heard.withLock { $0.outcomes.isEmpty }) }
    clients[0].cancel(id)
    #expect(third.outcome()?.head?.status == 200)
    for client in clients { client.shutDown() }
  }
}
