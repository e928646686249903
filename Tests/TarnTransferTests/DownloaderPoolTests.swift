import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// Several clients over one budget, against the scripted server.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct DownloaderPoolTests {
  private let server: ScriptedServer

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  private func pool(
    total: Int = 16, perHost: Int = 16, keptForSmall: Int = 0, clock: any Clock = SystemClock(),
    breaker: CircuitBreaker.Settings = CircuitBreaker.Settings()
  ) -> DownloaderPool {
    let limits = PlaceLimits(total: total, perHost: perHost, keptForSmall: keptForSmall)
    let budget = TransferBudget(limits, breaker: breaker, clock: clock, random: MostRandom())
    return DownloaderPool(budget: budget, clock: clock)
  }

  private func settings(_ change: (inout NetworkSettings) -> Void = { _ in }) -> NetworkSettings {
    .patient(change)
  }

  @discardableResult
  private func start(
    _ downloader: CurlDownloader, _ behaviour: String, _ name: String, size: Int = 10,
    on origin: String? = nil,
    expected: UInt64? = nil, to receiver: Collector
  ) -> DownloadID {
    var request = DownloadRequest(
      url: "\(origin ?? server.plain)/\(behaviour)/pool/\(size)/\(name)", limit: 1 << 30)
    request.expected = expected
    return downloader.start(request, to: receiver)
  }

  private func get(
    _ downloader: CurlDownloader, _ behaviour: String, _ name: String, on origin: String? = nil
  )
    -> DownloadOutcome?
  {
    let receiver = Collector()
    start(downloader, behaviour, name, on: origin, to: receiver)
    return receiver.outcome()
  }

  // MARK: Turns and places

  /// Its mirror's own line is short, and others of it stand in that for the shared place.
  @Test func whoIsPrioritizedPassesThoseWhoWaitForAPlace() throws {
    let pool = pool(total: 1, perHost: 1)
    let a = try pool.downloader(mirror: "a", settings: settings { $0.connectionsPerHost = 3 })
    let isOpen = Locked(false)
    let blocking = Collector { _ in isOpen.withLock { $0 } ? .taken : .full }
    let block = start(a, "ok", "urgent-block", to: blocking)
    #expect(blocking.paused(1))
    let ended = Locked<[Int]>([])
    let receivers = (0..<8).map { number in Collector(onEnd: { ended.withLock { $0.append(number) } }) }
    let ids = receivers.enumerated().map { start(a, "ok", "urgent-\($0)", to: $1) }
    #expect(isSoInTime { pool.budget.snapshot().waiting >= 2 })
    a.prioritize(ids[5])
    isOpen.withLock { $0 = true }
    a.resume(block)
    for receiver in receivers { #expect(receiver.outcome()?.head != nil) }
    #expect(ended.withLock { $0 } == [5, 0, 1, 2, 3, 4, 6, 7])
    a.shutDown()
  }

  @Test func twoClientsTakeTurnsAtOneHost() throws {
    let pool = pool(total: 1, perHost: 1)
    let a = try pool.downloader(mirror: "a", settings: settings())
    let b = try pool.downloader(mirror: "b", settings: settings())
    let blocking = Collector { _ in .full }
    let block = start(a, "ok", "turns-block", to: blocking)
    #expect(blocking.paused(1))
    let ended = Locked<[String]>([])
    let receivers = ["a", "b"].flatMap { mirror in
      (0..<20).map { _ in
        let receiver = Collector(onEnd: { ended.withLock { $0.append(mirror) } })
        start(mirror == "a" ? a : b, "ok", "turns", to: receiver)
        return receiver
      }
    }
    a.cancel(block)
    for receiver in receivers { #expect(receiver.outcome()?.head?.status == 200) }
    let order = ended.withLock { $0 }
    for count in 1...40 {
      let ahead = order.prefix(count).reduce(0) { $0 + ($1 == "a" ? 1 : -1) }
      #expect(abs(ahead) <= 2, "\(order)")
    }
    a.shutDown()
    b.shutDown()
  }

  @Test func theHostsLimitHoldsOverClients() throws {
    let pool = pool(total: 16, perHost: 3)
    let clients = try ["a", "b"].map { try pool.downloader(mirror: $0, settings: settings()) }
    let ended = LockedCondition(0)
    let heads = LockedCondition(0)
    let receivers = (0..<10).map { _ in
      Collector(
        onBytes: { heard in
          if heard.pauses == 0 { heads.change { $0 += 1 } }
          return .full
        }, onEnd: { ended.change { $0 += 1 } })
    }
    // The host's last free place is for a mirror that has none there: had both come while the first two places were free, each would
    // have one, and the third would stay kept.
    for receiver in receivers.prefix(2) { start(clients[0], "ok", "crowd-of-two", to: receiver) }
    #expect(heads.wait(atMost: Collector.patience) { $0 >= 2 ? true : nil } == true)
    for (index, receiver) in receivers.enumerated().dropFirst(2) {
      start(clients[index % 2], "ok", "crowd-of-two", to: receiver)
    }
    #expect(heads.wait(atMost: Collector.patience) { $0 >= 3 ? true : nil } == true)
    // One more on another host: by then a fourth would have come, too.
    #expect(get(clients[0], "ok", "beside", on: server.other)?.head?.status == 200)
    #expect(heads.withLock { $0 } == 3)
    #expect(server.requests("/crowd-of-two").count == 3)
    #expect(pool.budget.snapshot().running == 3)
    for client in clients { client.shutDown() }
    #expect(ended.withLock { $0 } == 10)
    #expect(pool.budget.snapshot().running == 0)
    #expect(pool.budget.snapshot().waiting == 0)
  }

  @Test func smallFilesPassByLargeOnes() throws {
    let pool = pool(total: 16, perHost: 3, keptForSmall: 1)
    let client = try pool.downloader(mirror: "a", settings: settings { $0.connectionsPerHost = 3 })
    let large = (0..<4).map { _ in Collector { _ in .full } }
    for receiver in large { start(client, "ok", "lane-large", size: 5000, expected: 5 << 20, to: receiver) }
    for receiver in large.prefix(2) { #expect(receiver.paused(1)) }
    for _ in 0..<3 {
      let small = Collector()
      start(client, "ok", "lane-small", size: 500, expected: 500, to: small)
      #expect(small.outcome()?.head?.status == 200)
    }
    #expect(server.requests("/lane-large").count == 2)
    client.shutDown()
  }

  /// Its own two places are for any file: it leaves the host's others free.
  @Test func aMirrorWithFewPlacesKeepsNoneForSmallFiles() throws {
    let pool = pool(total: 16, perHost: 3, keptForSmall: 1)
    let client = try pool.downloader(mirror: "a", settings: settings { $0.connectionsPerHost = 2 })
    let large = (0..<2).map { _ in Collector { _ in .full } }
    for receiver in large { start(client, "ok", "few-large", size: 5000, expected: 5 << 20, to: receiver) }
    for receiver in large { #expect(receiver.paused(1)) }
    client.shutDown()
  }

  @Test func aPlaceThatGetsFreeWakesAnotherThread() throws {
    let pool = pool(total: 1, perHost: 1)
    let a = try pool.downloader(mirror: "a", settings: settings())
    let b = try pool.downloader(mirror: "b", settings: settings { $0.headers = ["X-Canary: b"] })
    let blocking = Collector { _ in .full }
    let block = start(a, "ok", "wake-block", to: blocking)
    #expect(blocking.paused(1))
    let waiting = Collector()
    start(b, "ok", "wake", to: waiting)
    #expect(isSoInTime { pool.budget.snapshot().waiting > 0 })
    #expect(waiting.heard.withLock { $0.outcomes.isEmpty })
    a.cancel(block)
    #expect(waiting.outcome()?.head?.status == 200)
    a.shutDown()
    b.shutDown()
  }

  // MARK: Connections

  @Test func clientsUseEachOthersConnections() throws {
    let pool = pool()
    let clients = try ["a", "b"].map { mirror in
      try pool.downloader(mirror: mirror, settings: settings { $0.userAgent = mirror })
    }
    #expect(pool.sharedThreads == 1)
    for client in clients { #expect(get(client, "ok", "shared-connection")?.head?.status == 200) }
    let requests = server.requests("/shared-connection")
    #expect(Set(requests.map(\.connection)).count == 1)
    #expect(requests.map { $0.headers["user-agent"] } == ["a", "b"])
    for client in clients { client.shutDown() }
    #expect(pool.sharedThreads == 0)
  }

  @Test(arguments: ["header", "cookies", "netrc"]) func secretsHaveConnectionsOfTheirOwn(kind: String) throws
  {
    let pool = pool()
    let file = server.folder.appending(path: "pool-\(kind)")
    try Data().write(to: file)
    let secret = settings {
      switch kind {
      case "header":
        $0.headers = ["X-Canary: sings"]
        $0.credentialOrigin = server.plain
      case "cookies": $0.cookieFile = file.path
      default: $0.netrcFile = file.path
      }
    }
    let plain = try pool.downloader(mirror: "a", settings: settings())
    let first = try pool.downloader(mirror: "b", settings: secret)
    let second = try pool.downloader(mirror: "c", settings: secret)
    #expect(pool.sharedThreads == 1)
    for client in [plain, first, second, plain] {
      #expect(get(client, "ok", "secret-\(kind)")?.head?.status == 200)
    }
    let requests = server.requests("/secret-\(kind)")
    #expect(Set(requests.map(\.connection)).count == 3)
    #expect(requests.first?.connection == requests.last?.connection)
    if kind == "header" {
      #expect(requests.map { $0.headers["x-canary"] } == [nil, "sings", "sings", nil])
    }
    for client in [plain, first, second] { client.shutDown() }
  }

  /// A connection that is used again would not be judged again.
  @Test func whatMayReachPrivateAddressesLeavesNoConnectionToOthers() throws {
    let pool = pool()
    let trusting = try pool.downloader(mirror: "a", settings: settings())
    let other = try pool.downloader(mirror: "b", settings: settings { $0.allowsPrivateAddresses = false })
    #expect(get(trusting, "ok", "private-pool")?.head?.status == 200)
    #expect(get(other, "ok", "private-pool")?.failure?.code == .addressRefused)
    #expect(server.requests("/private-pool").count == 1)
    trusting.shutDown()
    other.shutDown()
  }

  /// The first hop goes over a connection that another client has opened.
  @Test func aRedirectBetweenPrivateHostsNeedsNoNewConnection() throws {
    let pool = pool()
    let asked = settings { ($0.allowsPrivateAddresses, $0.allowsAskedPrivateAddresses) = (false, true) }
    let first = try pool.downloader(mirror: "a", settings: asked)
    let second = try pool.downloader(mirror: "b", settings: asked)
    #expect(get(first, "ok", "kept-open")?.head?.status == 200)
    #expect(get(second, "redirect-other-and-back", "led-on")?.head?.status == 200)
    #expect(server.requests("/kept-open").first?.connection == server.requests("/led-on").first?.connection)
    first.shutDown()
    second.shutDown()
  }

  // MARK: Leaving

  @Test func shutDownEndsOneClientOnly() throws {
    let pool = pool(total: 2, perHost: 2)
    let a = try pool.downloader(mirror: "a", settings: settings())
    let b = try pool.downloader(mirror: "b", settings: settings())
    let held = Collector { heard in heard.pauses == 0 ? .full : .taken }
    let id = start(b, "ok", "leaving-b", size: 3000, to: held)
    #expect(held.paused(1))
    let own = (0..<10).map { _ in Collector() }
    for receiver in own { start(a, "head-never", "leaving-a", to: receiver) }
    a.shutDown()
    for receiver in own {
      // No waiting here: after shutDown all must have been heard.
      #expect(receiver.heard.withLock { $0.outcomes.first?.failure?.code } == .cancelled)
      #expect(receiver.offences == [])
    }
    let late = Collector()
    start(a, "ok", "leaving-late", to: late)
    #expect(late.heard.withLock { $0.outcomes.first?.failure?.code } == .cancelled)
    #expect(held.heard.withLock { $0.outcomes.isEmpty })
    b.resume(id)
    #expect(held.outcome()?.head?.status == 200)
    #expect(get(b, "ok", "leaving-after")?.head?.status == 200)
    a.shutDown()
    b.shutDown()
    #expect(pool.sharedThreads == 0)
    #expect(server.requests("/leaving-late").isEmpty)
  }

  /// From a callback nobody can wait for the thread; the pool goes on with another.
  @Test func aClientMayLeaveInACallback() throws {
    let pool = pool()
    let client = try pool.downloader(mirror: "a", settings: settings())
    let receiver = Collector(onEnd: { client.shutDown() })
    start(client, "ok", "leaving-inside", to: receiver)
    #expect(receiver.outcome()?.head?.status == 200)
    client.shutDown()
    let next = try pool.downloader(mirror: "b", settings: settings())
    #expect(get(next, "ok", "leaving-next")?.head?.status == 200)
    next.shutDown()
  }

  // MARK: Rates

  /// At 1 byte per second it would take a year.
  @Test(arguments: [false, true]) func aRateChangesWhileBytesFlow(isShared: Bool) throws {
    let pool = pool()
    if isShared { pool.budget.setRate(1) }
    let slow = try pool.downloader(mirror: "a", settings: settings { $0.rate = isShared ? nil : 1 })
    let receivers = (0..<3).map { _ in Collector() }
    for receiver in receivers { start(slow, "ok", "rate-changes", size: 1 << 20, to: receiver) }
    for receiver in receivers { #expect(receiver.head()?.status == 200) }
    if !isShared {
      let other = try pool.downloader(mirror: "b", settings: settings())
      #expect(get(other, "ok", "rate-beside")?.head?.status == 200)
      other.shutDown()
    }
    // As many bytes come to somebody who has no limit.
    let quick = try CurlDownloader(settings: settings())
    for number in 0..<3 {
      let receiver = Collector()
      start(quick, "ok", "rate-free-\(number)", size: 1 << 20, to: receiver)
      #expect(receiver.outcome()?.head?.status == 200)
    }
    quick.shutDown()
    #expect(receivers.allSatisfy { $0.heard.withLock { $0.outcomes.isEmpty } })
    if isShared { pool.budget.setRate(nil) } else { slow.setRate(nil) }
    for receiver in receivers {
      #expect(receiver.outcome()?.head?.status == 200)
      #expect(receiver.bytes.count == 1 << 20)
    }
    slow.shutDown()
  }

  // MARK: Hosts that fail

  @Test func aDeadHostIsLeftAloneAndOthersAreNot() throws {
    let pool = pool(total: 16, perHost: 4)
    let a = try pool.downloader(mirror: "a", settings: settings { $0.connectionsPerHost = 4 })
    let b = try pool.downloader(mirror: "b", settings: settings())
    let receivers = (0..<100).map { _ in Collector() }
    for receiver in receivers {
      _ = a.start(DownloadRequest(url: "http://127.0.0.1:1/x", limit: 1), to: receiver)
    }
    let alive = (0..<20).map { _ in Collector() }
    for receiver in alive { start(a, "ok", "alive", to: receiver) }
    let codes = receivers.map { $0.outcome()?.failure?.code }
    // Five in a row, and who was on the way by then.
    let asked = codes.filter { $0 == .connect }.count
    #expect((5...8).contains(asked))
    #expect(codes.filter { $0 == .hostResting }.count == 100 - asked)
    for receiver in alive { #expect(receiver.outcome()?.head?.status == 200) }
    // Another mirror finds out by one request.
    let others = [Collector(), Collector()]
    for (other, code) in zip(others, [DownloadFailure.Code.connect, .hostResting]) {
      _ = b.start(DownloadRequest(url: "http://127.0.0.1:1/x", limit: 1), to: other)
      #expect(other.outcome()?.failure?.code == code)
    }
    #expect(pool.budget.snapshot().resting.map(\.host) == ["http://127.0.0.1:1"])
    a.shutDown()
    b.shutDown()
  }

  @Test func aHostThatIsBackIsTriedByOne() throws {
    let clock = ManualClock(monotonic: 1)
    var breaker = CircuitBreaker.Settings()
    breaker.threshold = 2
    let pool = pool(clock: clock, breaker: breaker)
    let client = try pool.downloader(mirror: "a", settings: settings())
    for _ in 0..<2 { #expect(get(client, "status-500", "fails")?.head?.status == 500) }
    #expect(get(client, "ok", "tried")?.failure?.code == .hostResting)
    #expect(server.requests("/tried").isEmpty)
    clock.advance(.seconds(31))
    let probe = Collector { heard in heard.pauses == 0 ? .full : .taken }
    let id = start(client, "ok", "tried", to: probe)
    #expect(probe.paused(1))
    // Its head was life enough for all others.
    for _ in 0..<2 { #expect(get(client, "ok", "tried")?.head?.status == 200) }
    client.resume(id)
    #expect(probe.outcome()?.head?.status == 200)
    client.shutDown()
  }

  /// Who asks again while one tries waits for what comes of it.
  @Test func onlyOneTries() throws {
    let clock = ManualClock(monotonic: 1)
    var breaker = CircuitBreaker.Settings()
    breaker.threshold = 1
    let pool = pool(clock: clock, breaker: breaker)
    let client = try pool.downloader(mirror: "a", settings: settings())
    #expect(get(client, "status-500", "fails-once")?.head?.status == 500)
    clock.advance(.seconds(31))
    let probe = Collector()
    let id = start(client, "head-never", "only-one", to: probe)
    let others = (0..<5).map { _ in Collector() }
    for receiver in others { start(client, "ok", "only-one", to: receiver) }
    // Another host answers: all commands were taken by then.
    #expect(get(client, "ok", "only-beside", on: server.other)?.head?.status == 200)
    #expect(server.requests("/only-one").count <= 1)
    #expect(others.allSatisfy { $0.heard.withLock { $0.outcomes.isEmpty } })
    client.cancel(id)
    for receiver in others { #expect(receiver.outcome()?.head?.status == 200) }
    client.shutDown()
  }

  /// Redirects leave the one host and ask for a place at the other.
  @Test func redirectsGivePlacesBack() throws {
    let pool = pool(total: 1, perHost: 1)
    let client = try pool.downloader(mirror: "a", settings: settings())
    for _ in 0..<3 {
      let head = get(client, "redirect-other-and-back", "back")?.head
      #expect(head?.url == "\(server.plain)/ok/pool/10/back")
    }
    #expect(pool.budget.snapshot().running == 0)
    client.shutDown()
  }

  /// Clients come and go on several threads while limits, rate and priorities change: each exchange has one end, and all
  /// places are given back.
  @Test func manyClientsComeAndGo() throws {
    let pool = pool(total: 6, perHost: 4, keptForSmall: 1)
    let left = LockedCondition(4)
    let offences = Locked<[String]>([])
    let ends = Locked(0)
    var threads: [WorkerThread] = []
    for number in 0..<4 {
      let settings = settings { if number == 3 { $0.headers = ["X-Canary: \(number)"] } }
      let url = "\(number % 2 == 0 ? server.plain : server.other)/ok/many/2000/come-and-go"
      threads.append(
        try WorkerThread.start(name: "client-\(number)") {
          for _ in 0..<5 {
            guard let client = try? pool.downloader(mirror: "m\(number)", settings: settings) else {
              return offences.withLock { $0.append("no downloader") }
            }
            let receivers = (0..<12).map { _ in Collector(onEnd: { ends.withLock { $0 += 1 } }) }
            let ids = receivers.enumerated().map { index, receiver in
              var request = DownloadRequest(url: url, limit: 1 << 20)
              request.expected = index % 2 == 0 ? 2000 : nil
              return client.start(request, to: receiver)
            }
            for id in ids.suffix(4) { client.cancel(id) }
            _ = receivers[number].outcome()
            client.shutDown()
            let wrong = receivers.flatMap(\.offences)
            offences.withLock { $0 += wrong }
          }
          left.change { $0 -= 1 }
        })
    }
    var round = 0
    while left.withLock({ $0 }) > 0, offences.withLock({ $0.isEmpty }) {
      round += 1
      pool.budget.setLimits(PlaceLimits(total: 1 + round % 6, perHost: 1 + round % 4))
      pool.budget.setRate(round % 3 == 0 ? 1 << 20 : nil)
      pool.budget.setPriority(round % 2 == 0 ? .high : .low, mirror: "m\(round % 4)")
      #expect(pool.budget.snapshot().resting.isEmpty)
      _ = left.wait(atMost: .milliseconds(1)) { $0 == 0 ? true : nil }
    }
    for thread in threads { thread.join() }
    #expect(offences.withLock { $0 } == [])
    #expect(ends.withLock { $0 } == 4 * 5 * 12)
    #expect(pool.budget.snapshot().running == 0)
    #expect(pool.budget.snapshot().waiting == 0)
    #expect(pool.sharedThreads == 0)
  }

  @Test func filesAskForNoPlace() throws {
    let pool = pool(total: 1, perHost: 1)
    try Data("x".utf8).write(to: server.folder.appending(path: "pool-file"))
    let client = try pool.downloader(mirror: "a", settings: settings(), readsFiles: true)
    let blocking = Collector { _ in .full }
    start(client, "ok", "files-block", to: blocking)
    #expect(blocking.paused(1))
    let receiver = Collector()
    _ = client.start(
      DownloadRequest(url: "file://\(server.folder.path)/pool-file", limit: 10), to: receiver)
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(pool.sharedThreads == 0)
    client.shutDown()
  }
}
