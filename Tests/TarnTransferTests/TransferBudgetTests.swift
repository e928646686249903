import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// The shared budget without a network: who gets a place, and what hosts that fail do to it.
@Suite struct TransferBudgetTests {
  private let bench = BudgetBench()

  @Test func mirrorsTakeTurns() {
    let budget = bench.budget(total: 1, perHost: 1)
    let first = bench.enter(budget, mirror: "blocks")
    for _ in 0..<10 { bench.enter(budget, mirror: "a") }
    for _ in 0..<10 { bench.enter(budget, mirror: "b") }
    bench.leave(budget, first)
    var served: [String] = []
    while let place = bench.running.first {
      served.append(bench.mirrors[place] ?? "")
      #expect(budget.snapshot().running == 1)
      bench.leave(budget, place)
    }
    #expect(served.count == 20)
    for count in 1...20 {
      let ahead = served.prefix(count).reduce(0) { $0 + ($1 == "a" ? 1 : -1) }
      #expect(abs(ahead) <= 1, "\(served)")
    }
  }

  @Test func aHighPriorityHasFourTurnsToOne() {
    let budget = bench.budget(total: 1, perHost: 1)
    let first = bench.enter(budget, mirror: "blocks")
    budget.setPriority(.high, mirror: "a")
    for _ in 0..<40 { bench.enter(budget, mirror: "a") }
    for _ in 0..<40 { bench.enter(budget, mirror: "b") }
    bench.leave(budget, first)
    var served: [String] = []
    while served.count < 40, let place = bench.running.first {
      served.append(bench.mirrors[place] ?? "")
      bench.leave(budget, place)
    }
    #expect((30...34).contains(served.filter { $0 == "a" }.count), "\(served)")
  }

  @Test func aHostHasItsPlacesOverAllMirrors() {
    let budget = bench.budget(total: 10, perHost: 3, keptForSmall: 0)
    for mirror in ["a", "b", "c"] { for _ in 0..<3 { bench.enter(budget, mirror: mirror) } }
    #expect(budget.snapshot().running == 3)
    #expect(budget.snapshot().waiting == 6)
    bench.enter(budget, mirror: "a", host: "other")
    #expect(budget.snapshot().running == 4)
  }

  /// Transfers that hang hold their places for half a minute and more.
  @Test(arguments: [2, 6]) func aMirrorThatHangsKeepsNoOtherWaiting(perHost: Int) {
    let budget = bench.budget(total: 10, perHost: perHost, keptForSmall: 0)
    budget.setMirrors(["a": "http://dead/SHA256SUMS", "b": "http://dead/feed.xml", "c": "/srv/local"])
    for _ in 0..<8 { bench.enter(budget, mirror: "a") }
    #expect(budget.snapshot().running == perHost - 1)
    let other = bench.enter(budget, mirror: "b")
    #expect(bench.running.contains(other))
  }

  /// Its feed is elsewhere: it is known from its first request on.
  @Test func whoCameBeforeFindsAPlaceAgain() {
    let budget = bench.budget(total: 10, perHost: 3, keptForSmall: 0)
    budget.setMirrors(["a": "http://dead/", "b": "http://elsewhere/"])
    bench.leave(budget, bench.enter(budget, mirror: "b"))
    for _ in 0..<8 { bench.enter(budget, mirror: "a") }
    #expect(budget.snapshot().running == 2)
    let other = bench.enter(budget, mirror: "b")
    #expect(bench.running.contains(other))
    bench.leave(budget, other)
    #expect(budget.snapshot().running == 2)
    // For one that is no longer among the settings nothing is kept.
    budget.setMirrors(["a": "http://dead/"])
    #expect(budget.snapshot().running == 3)
  }

  /// Over many hosts all places there are would be taken.
  @Test func theLastPlaceOfAllIsForAMirrorThatHasNone() {
    let budget = bench.budget(total: 4, perHost: 2)
    budget.setMirrors(["a": "http://h0/", "b": "http://h9/"])
    for number in 0..<8 { bench.enter(budget, mirror: "a", host: "h\(number)") }
    #expect(budget.snapshot().running == 3)
    let other = bench.enter(budget, mirror: "b", host: "h9")
    #expect(bench.running.contains(other))
  }

  @Test func aSingleMirrorHasAllPlaces() {
    let budget = bench.budget(total: 4, perHost: 4, keptForSmall: 0)
    budget.setMirrors(["a": "http://dead/"])
    for _ in 0..<8 { bench.enter(budget, mirror: "a") }
    #expect(budget.snapshot().running == 4)
  }

  @Test func smallFilesHaveAPlaceOfTheirOwn() {
    let budget = bench.budget(total: 10, perHost: 3)
    for _ in 0..<2 { bench.enter(budget, mirror: "a") }
    let large = bench.enter(budget, mirror: "a")
    #expect(!bench.running.contains(large))
    let small = bench.enter(budget, mirror: "b", isSmall: true)
    #expect(bench.running.contains(small))
  }

  /// A feed that says no sizes would have its files one by one.
  @Test func twoPlacesAreForFilesOfAnySize() {
    let budget = bench.budget(total: 10, perHost: 2)
    for _ in 0..<3 { bench.enter(budget, mirror: "a") }
    #expect(budget.snapshot().running == 2)
    let line = ClientLine(perHost: 2, keptForSmall: 1)
    for number in 0..<3 { line.add(number, to: "a") }
    #expect(line.takeAll().map(\.id) == [0, 1])
  }

  @Test func whoWaitsOnAnotherThreadIsTold() {
    let budget = bench.budget(total: 1, perHost: 1)
    let other = Member()
    let first = bench.enter(budget, mirror: "a")
    let second = bench.enter(budget, mirror: "b", member: other)
    #expect(other.heard.withLock { $0.isEmpty })
    bench.leave(budget, first)
    #expect(other.heard.withLock { $0 } == [.granted(second)])
  }

  @Test func whoGaveUpGetsNoPlace() {
    let budget = bench.budget(total: 1, perHost: 1)
    let first = bench.enter(budget, mirror: "a")
    let second = bench.enter(budget, mirror: "a")
    let third = bench.enter(budget, mirror: "a")
    bench.leave(budget, second, .cancelled)
    bench.leave(budget, first)
    #expect(bench.running == [third])
  }

  @Test func newLimitsLetInAtOnce() {
    let budget = bench.budget(total: 1, perHost: 1)
    for _ in 0..<5 { bench.enter(budget, mirror: "a") }
    budget.setLimits(PlaceLimits(total: 4, perHost: 4, keptForSmall: 0))
    #expect(budget.snapshot().running == 4)
    #expect(budget.terms.limits == PlaceLimits(total: 4, perHost: 4, keptForSmall: 0))
  }

  // MARK: Hosts that fail

  @Test func failuresInARowEndWhatWaits() throws {
    let budget = bench.budget(total: 10, perHost: 1, keptForSmall: 0)
    var place = bench.enter(budget, mirror: "a")
    for _ in 0..<4 {
      bench.leave(budget, place, .transportFailed, cause: "no answer in time")
      place = bench.enter(budget, mirror: "a")
    }
    #expect(bench.running == [place])
    let waiting = bench.enter(budget, mirror: "a")
    let beside = bench.enter(budget, mirror: "a", host: "alive")
    bench.leave(budget, place, .transportFailed, cause: "connection refused")
    let failure = try #require(bench.refused[waiting])
    #expect(failure.code == .hostResting)
    #expect(failure.isTransient)
    #expect(failure.retryAfter == 30 && !failure.isAsked)
    #expect(
      failure.message
        == "dead:80 failed again and again, and was left alone: connection refused")
    #expect(bench.running == [beside])
    // Who comes later hears it at once, and the place is not lost.
    #expect(bench.admission(budget, mirror: "a") == .refused(failure))
    #expect(budget.snapshot().waiting == 0)
    #expect(
      budget.snapshot().resting == [
        .init(host: "http://dead:80", until: Timestamp(seconds: 30), askedUntil: nil, mirrors: ["a"])
      ])
  }

  @Test func whatAHostAskedOfOneIsNoFaultOfAnother() {
    let budget = bench.restingBudget()
    bench.leave(budget, bench.enter(budget, mirror: "b"), .asked(retryAfter: 600))
    #expect(budget.snapshot().resting.map(\.isAsked) == [true, false])
    #expect(budget.snapshot().resting.map(\.mirrors) == [["b"], ["a"]])
  }

  @Test func oneTriesWhenTheRestIsOver() {
    let budget = bench.restingBudget()
    bench.clock.advance(.seconds(31))
    let probe = bench.enter(budget, mirror: "a")
    let others = (0..<3).map { _ in bench.enter(budget, mirror: "a") }
    #expect(bench.running == [probe])
    #expect(budget.snapshot().resting.map(\.until) == [nil])
    bench.leave(budget, probe, .answered)
    #expect(bench.running == others)
    #expect(budget.snapshot().resting.isEmpty)
  }

  @Test func oneThatTriesAndFailsEndsWhatWaits() {
    let budget = bench.restingBudget()
    bench.clock.advance(.seconds(31))
    let probe = bench.enter(budget, mirror: "a")
    let other = bench.enter(budget, mirror: "a")
    bench.leave(budget, probe, .transportFailed)
    #expect(bench.running.isEmpty)
    #expect(bench.refused[other]?.retryAfter == 60)
  }

  /// Somebody at the keyboard may know that the host is back; one request finds out.
  @Test func whoAsksForItMayTryBeforeTheRestIsOver() {
    let budget = bench.restingBudget()
    budget.tryNow(mirror: "a")
    let probe = bench.enter(budget, mirror: "a")
    let other = bench.enter(budget, mirror: "a")
    #expect(bench.running == [probe])
    bench.leave(budget, probe, .transportFailed)
    #expect(bench.refused[other]?.retryAfter == 60)
  }

  /// A person's wish goes before what a server asked of that mirror, for one request.
  @Test func whoAsksForItMayTryWhatAskedToBeLeftAlone() {
    let budget = bench.budget(total: 10, perHost: 1)
    bench.leave(budget, bench.enter(budget, mirror: "a"), .asked(retryAfter: 600))
    #expect(bench.admission(budget, mirror: "a").isRefused)
    budget.tryNow(mirror: "b")
    #expect(bench.admission(budget, mirror: "a").isRefused)
    budget.tryNow(mirror: "a")
    #expect(!bench.admission(budget, mirror: "a").isRefused)
  }

  /// One mirror's files may hang, or its server may ask for a rest, where another's are served.
  @Test(arguments: [false, true]) func aMirrorThatFailsKeepsNoOtherFromTheHost(_ isAsked: Bool) {
    let budget = isAsked ? bench.budget(total: 10, perHost: 4) : bench.restingBudget()
    if isAsked { bench.leave(budget, bench.enter(budget, mirror: "a"), .asked(retryAfter: 600)) }
    #expect(bench.admission(budget, mirror: "a").isRefused)
    let other = bench.enter(budget, mirror: "b")
    #expect(bench.running == [other])
    bench.leave(budget, other, .answered)
    let again = bench.enter(budget, mirror: "b")
    #expect(bench.running == [again] && bench.admission(budget, mirror: "a").isRefused)
  }

  /// Where it is really dead each mirror finds out by one request.
  @Test func oneFailureIsEnoughWhereAnotherMirrorFoundTheHostDead() {
    let budget = bench.restingBudget()
    bench.leave(budget, bench.enter(budget, mirror: "b"), .transportFailed)
    #expect(bench.admission(budget, mirror: "b").isRefused)
    #expect(budget.snapshot().resting.count == 1)
  }

  /// Or nobody would try any more.
  @Test func oneThatIsCancelledLetsTheNextTry() {
    let budget = bench.restingBudget()
    bench.clock.advance(.seconds(31))
    let probe = bench.enter(budget, mirror: "a")
    let other = bench.enter(budget, mirror: "a")
    bench.leave(budget, probe, .cancelled)
    #expect(bench.running == [other])
  }

  /// A body may take hours: the head is life enough.
  @Test func aHeadLetsTheOthersGo() {
    let budget = bench.restingBudget()
    bench.clock.advance(.seconds(31))
    let probe = bench.enter(budget, mirror: "a")
    let other = bench.enter(budget, mirror: "a")
    budget.change { $0.answered(probe) }
    #expect(bench.running == [probe, other])
  }

  @Test func aShortRestIsWaitedFor() {
    let budget = bench.budget(total: 10, perHost: 2, keptForSmall: 0)
    let first = bench.enter(budget, mirror: "a")
    bench.leave(budget, first, .asked(retryAfter: 3))
    let waiting = (0..<2).map { _ in bench.enter(budget, mirror: "a") }
    #expect(bench.running.isEmpty && bench.refused.isEmpty)
    #expect(budget.change { $0.look() } == .seconds(3))
    bench.clock.advance(.seconds(3))
    #expect(budget.change { $0.look() } == nil)
    #expect(bench.running == [waiting[0]])
    bench.leave(budget, waiting[0])
    #expect(bench.running == [waiting[1]])
  }

  /// Its thread sleeps, and knows of no rest.
  @Test func whoWaitsOnAnotherThreadHearsOfAShortRest() {
    let budget = bench.budget(total: 10, perHost: 1, keptForSmall: 0)
    let (first, other) = (bench.enter(budget, mirror: "a"), Member())
    bench.enter(budget, mirror: "a", member: other)
    bench.leave(budget, first, .asked(retryAfter: 3))
    #expect(other.heard.withLock { $0 } == [.held])
    #expect(budget.change { $0.look() } == .seconds(3))
    #expect(other.heard.withLock { $0.count } == 1)
  }

  @Test func aLongRetryAfterEndsWhatWaits() {
    let budget = bench.budget(total: 10, perHost: 1)
    let first = bench.enter(budget, mirror: "a")
    let waiting = bench.enter(budget, mirror: "a")
    bench.leave(budget, first, .asked(retryAfter: 600))
    #expect(bench.refused[waiting]?.message.contains("dead:80 asked to be left alone") == true)
    #expect(bench.refused[waiting]?.retryAfter == 600 && bench.refused[waiting]?.isAsked == true)
    let beside = bench.enter(budget, mirror: "b")
    #expect(budget.snapshot().resting.map(\.isAsked) == [true])
    #expect(budget.snapshot().resting.map(\.mirrors) == [["a"]])
    bench.leave(budget, beside)
  }

  /// Of whoever has a breaker that is open, and of nobody else.
  @Test func howLongAHostIsLeftAloneIsTold() {
    let budget = bench.restingBudget()
    func rest(mirror: String, host: String = "dead", proxy: String? = nil) -> Int64? {
      budget.change {
        $0.rest(
          at: Route(origin: Origin(scheme: .http, host: host, port: "80"), proxy: proxy), mirror: mirror)
      }
    }
    #expect(rest(mirror: "a") == 30)
    bench.clock.advance(.seconds(10))
    #expect(rest(mirror: "a") == 20)
    #expect(rest(mirror: "b") == nil && rest(mirror: "a", host: "well") == nil)
    #expect(rest(mirror: "a", proxy: "http://p") == nil)
    bench.clock.advance(.seconds(20))
    #expect(rest(mirror: "a") == nil)
  }

  /// What goes through a proxy says nothing about those who do without.
  @Test func aProxyIsAnotherWay() {
    let budget = bench.budget(total: 10, perHost: 1)
    for _ in 0..<5 {
      bench.leave(budget, bench.enter(budget, mirror: "a", proxy: "http://p"), .transportFailed)
    }
    #expect(bench.admission(budget, mirror: "a", proxy: "http://p").isRefused)
    #expect(!bench.admission(budget, mirror: "b").isRefused)
  }

  static let outcomes: [(DownloadOutcome, CircuitBreaker.Outcome)] = [
    (.complete(ResponseHead(status: 200, url: "u")), .answered),
    (.complete(ResponseHead(status: 404, url: "u")), .answered),
    (.complete(ResponseHead(status: 429, url: "u")), .answered),
    (.complete(ResponseHead(status: 500, url: "u")), .transportFailed),
    (.complete(ResponseHead(status: 503, url: "u")), .transportFailed),
    (.failed(DownloadFailure(.connect, "", isTransient: true)), .transportFailed),
    (.failed(DownloadFailure(.timeout, "", isTransient: true)), .transportFailed),
    (.failed(DownloadFailure(.truncated, "", isTransient: true)), .connectionLost),
    (.failed(DownloadFailure(.reset, "", isTransient: true)), .connectionLost),
    (.failed(DownloadFailure(.protocolError, "", isTransient: true)), .connectionLost),
    (.failed(DownloadFailure(.tls, "", isTransient: true)), .transportFailed),
    (.failed(DownloadFailure(.tls, "", isTransient: false)), .cancelled),
    (.failed(DownloadFailure(.tooLarge, "", isTransient: false)), .answered),
    (.failed(DownloadFailure(.refusedByReceiver, "", isTransient: false)), .answered),
    (.failed(DownloadFailure(.addressRefused, "", isTransient: false)), .cancelled),
    (.failed(DownloadFailure(.cancelled, "", isTransient: false)), .cancelled),
  ]

  @Test(arguments: outcomes) func whatAnEndSaysOfTheHost(end: DownloadOutcome, says: CircuitBreaker.Outcome) {
    #expect(CircuitBreaker.Outcome(end) == says)
  }

  @Test(arguments: [429, 503]) func aServerMayAskForRest(status: Int) {
    var head = ResponseHead(status: status, url: "u")
    head.retryAfter = 7
    #expect(CircuitBreaker.Outcome(.complete(head)) == .asked(retryAfter: 7))
    #expect(!head.isLife)
  }

  /// A feed may name hosts without end.
  @Test func hostsThatNobodyAsksAreForgotten() {
    let book = BudgetState(
      PlaceLimits(total: 10, perHost: 1), breaker: CircuitBreaker.Settings(), random: MostRandom())
    let client = book.open(PlaceLimits(total: 10, perHost: 1))
    for number in 0..<5000 {
      let route = Route(origin: Origin(scheme: .http, host: "h\(number)", port: "80"), proxy: nil)
      let place = book.enter(
        BudgetState.Request(mirror: "a", route: route, client: client), member: Member())
      _ = book.takeNews()
      book.leave(place, .transportFailed)
    }
    #expect(book.guestCount <= 2 * BudgetState.mostIdle)
    #expect(book.sites.count <= 2 * BudgetState.mostIdle)
  }

  /// Their number grows no faster than is heard of the connections that they need: by one with each look.
  @Test func moreStreamsComeWithTheNextLook() {
    let book = BudgetState(
      PlaceLimits(total: 10, perHost: 10), breaker: CircuitBreaker.Settings(), random: MostRandom())
    let client = book.open(PlaceLimits(total: 10, perHost: 10))
    let route = Route(origin: Origin(scheme: .https, host: "h", port: "443"), proxy: nil)
    func enter() -> TransferBudget.Place {
      book.enter(
        BudgetState.Request(mirror: "a", route: route, client: client, kind: .short), member: Member())
    }
    let first = enter()
    #expect(book.takeNews().notices.count == 1)
    book.answered(first, isStream: true, isNew: true)
    book.leave(first, .answered)
    let streams = (0..<100).map { _ in enter() }
    #expect(book.takeNews().notices.count == StreamLimit.first)
    for _ in 0..<2 {
      for place in streams.prefix(10) { book.answered(place, isStream: true) }
      let atOnce = book.takeNews().notices.count
      _ = book.look()
      let later = book.takeNews().notices.count
      #expect(atOnce == 0 && later == 1)
    }
  }

  /// Its streams are one failure. The host is left alone when five connections in a row are lost.
  @Test func oneLostConnectionIsOneFailure() {
    let budget = bench.budget(total: 100, perHost: 100, keptForSmall: 0)
    for round in 1...5 {
      let places = (0..<64).map { _ in bench.enter(budget, mirror: "a") }
      for place in places { bench.leave(budget, place, .connectionLost, cause: "reset") }
      #expect(budget.snapshot().resting.isEmpty == (round < 5), "\(round)")
    }
    #expect(bench.admission(budget, mirror: "a").isRefused)
  }

  // MARK: Rate

  @Test func theSharedRateHolds() {
    let budget = bench.budget(total: 10, perHost: 10)
    budget.setRate(1_000_000)
    var taken = 0
    while bench.clock.monotonic() < 10_000_000_000 {
      let milliseconds = budget.refill()
      while budget.mayTake {
        budget.spend(50_000, of: "m")
        taken += 50_000
      }
      bench.clock.advance(.nanoseconds(UInt64(max(1, milliseconds)) * 1_000_000))
    }
    #expect((9_500_000...10_500_000).contains(taken))
    #expect((950_000...1_050_000).contains(budget.snapshot().bytesPerSecond))
    budget.setRate(nil)
    #expect(budget.mayTake)
    #expect(budget.terms.pace == nil)
  }

  @Test func bytesAreCountedByMirror() {
    let budget = bench.budget(total: 1, perHost: 1)
    budget.spend(10, of: "a")
    budget.spend(20, of: "b")
    budget.spend(30, of: "a")
    #expect(budget.received() == ["a": 40, "b": 20])
    budget.forgetReceived(mirror: "a")
    #expect(budget.received() == ["b": 20])
  }

  @Test func theMeterForgets() {
    let budget = bench.budget(total: 1, perHost: 1)
    bench.clock.advance(.seconds(100))
    budget.spend(4000, of: "m")
    #expect(budget.snapshot().bytesPerSecond == 0)
    bench.clock.advance(.seconds(1))
    #expect(budget.snapshot().bytesPerSecond == 1000)
    bench.clock.advance(.seconds(4))
    #expect(budget.snapshot().bytesPerSecond == 0)
  }

  @Test func twoRatesMakeTheSmallerShare() {
    var settings = NetworkSettings()
    settings.connections = 4
    settings.rate = 4000
    #expect(CurlOption.lowSpeed(settings, nil).value == .long(500))
    #expect(CurlOption.lowSpeed(settings, SharedPace(rate: 800, places: 4)).value == .long(100))
    #expect(RateBucket.bufferSize(rates: [nil, 100_000]) == 5000)
  }
}

/// A network thread that only listens.
final class Member: BudgetMember {
  let heard = Locked<[BudgetNotice]>([])

  func hear(_ notice: BudgetNotice) { heard.withLock { $0.append(notice) } }
}

/// A budget with a clock of its own, and what became of each request.
final class BudgetBench {
  /// Whether there is a place.
  enum Admission: Equatable {
    case granted(TransferBudget.Place)
    /// The member hears of it.
    case waits(TransferBudget.Place)
    case refused(DownloadFailure)
  }

  let clock = ManualClock()
  private let member = Member()
  private(set) var mirrors: [TransferBudget.Place: String] = [:]
  private var clients: [String: UInt64] = [:]
  private var granted: [TransferBudget.Place] = []
  var over: Set<TransferBudget.Place> = []

  func budget(total: Int, perHost: Int, keptForSmall: Int = 1) -> TransferBudget {
    TransferBudget(
      PlaceLimits(total: total, perHost: perHost, keptForSmall: keptForSmall), clock: clock,
      random: MostRandom())
  }

  /// `dead` has failed five times, and rests for 30 s.
  func restingBudget() -> TransferBudget {
    let budget = budget(total: 10, perHost: 10, keptForSmall: 0)
    for _ in 0..<5 { leave(budget, enter(budget, mirror: "a"), .transportFailed) }
    return budget
  }

  /// One for each mirror, whose own limits keep nobody out.
  private func client(of mirror: String, _ budget: TransferBudget) -> UInt64 {
    let key = "\(ObjectIdentifier(budget)) \(mirror)"
    if let known = clients[key] { return known }
    let client = budget.change { $0.open(PlaceLimits(total: .max, perHost: .max)) }
    clients[key] = client
    return client
  }

  func admission(
    _ budget: TransferBudget, mirror: String, host: String = "dead", proxy: String? = nil,
    isSmall: Bool = false, member other: Member? = nil
  ) -> Admission {
    let route = Route(origin: Origin(scheme: .http, host: host, port: "80"), proxy: proxy)
    let request = BudgetState.Request(
      mirror: mirror, route: route, client: client(of: mirror, budget), kind: isSmall ? .small : .large)
    let member = other ?? member
    let before = member.heard.withLock { $0.count }
    let place = budget.change { $0.enter(request, member: member) }
    var admission = Admission.waits(place)
    for notice in member.heard.withLock({ $0 }).dropFirst(before) {
      switch notice {
      case .granted(place): admission = .granted(place)
      case .refused(place, let failure): admission = .refused(failure)
      default: break
      }
    }
    return admission
  }

  /// - Returns: the place; 0 when it was refused at once.
  @discardableResult
  func enter(
    _ budget: TransferBudget, mirror: String, host: String = "dead", proxy: String? = nil,
    isSmall: Bool = false, member: Member? = nil
  ) -> TransferBudget.Place {
    switch admission(
      budget, mirror: mirror, host: host, proxy: proxy, isSmall: isSmall, member: member)
    {
    case .granted(let place):
      granted.append(place)
      mirrors[place] = mirror
      return place
    case .waits(let place):
      mirrors[place] = mirror
      return place
    case .refused: return 0
    }
  }

  func leave(
    _ budget: TransferBudget, _ place: TransferBudget.Place, _ outcome: CircuitBreaker.Outcome = .answered,
    cause: String? = nil
  ) {
    over.insert(place)
    budget.change { $0.leave(place, outcome, cause: cause) }
  }

  /// Those that have a place, in the order of their numbers.
  var running: [TransferBudget.Place] {
    let heard = member.heard.withLock { $0 }.compactMap { notice -> TransferBudget.Place? in
      if case .granted(let place) = notice { place } else { nil }
    }
    return Set(granted + heard).subtracting(over).sorted()
  }

  var refused: [TransferBudget.Place: DownloadFailure] {
    var refused: [TransferBudget.Place: DownloadFailure] = [:]
    for case .refused(let place, let failure) in member.heard.withLock({ $0 }) { refused[place] = failure }
    return refused
  }
}

extension BudgetBench.Admission {
  fileprivate var isRefused: Bool {
    if case .refused = self { true } else { false }
  }
}

/// The largest number each time: rests are as long as they may be.
struct MostRandom: RandomSource {
  func next() -> UInt64 { .max }
}
