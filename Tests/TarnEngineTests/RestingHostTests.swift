import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Hosts that are left alone for a while: a source that fails at once, not one that is asked without end.
@Suite struct RestingHostTests {
  private let first = "http://one.example/a"
  private let second = "http://two.example/a"
  private let text = "the text"

  private func world(_ sources: [String]) -> World {
    let world = World()
    world.rushes = true
    world.policy.retries = 3
    world.add(world.entry("a", text, sources: sources))
    return world
  }

  private func broken(after count: Int) -> FakeAnswer {
    Server.broken(text, after: count, etag: "\"1\"")
  }

  private func resting(_ seconds: Int64, etag: String? = nil) -> FakeAnswer {
    let failure = DownloadFailure(
      .hostResting, "one.example:80 rests", isTransient: true, retryAfter: seconds)
    return FakeAnswer(etag: etag, body: text.bytes, failure: (0, failure))
  }

  @Test func theNextSourceIsAsked() throws {
    let world = world([first, second])
    world.server.answer(first, resting(600))
    world.server.put(second, text.bytes)
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [first, second])
    #expect(world.log.retries == [0])
  }

  @Test func aLongRestIsNotWaitedFor() throws {
    let world = world([first, second])
    world.server.answer(first, resting(61))
    world.server.answer(second, resting(600))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["host-resting"])
    #expect(report.problems.first?.message.contains("one.example:80 rests") == true)
    #expect(world.server.urls == [first, second])
  }

  @Test func aShortRestIsWaitedFor() throws {
    let world = world([first])
    world.server.script(first, [resting(7)])
    world.server.put(first, text.bytes)
    #expect(try world.run().isInSync)
    #expect(world.log.retries == [7])
  }

  /// Who rests long must not keep a source that fails for once from being asked again.
  @Test func anotherSourceIsTriedAgain() throws {
    let world = world([first, second])
    world.server.answer(first, resting(600))
    world.server.script(second, [Server.broken(text, after: 2)])
    world.server.put(second, text.bytes)
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [first, second, first, second])
    #expect(world.log.retries.max().map { $0 < 1 } == true)
  }

  @Test func itIsNotAskedWithoutEnd() throws {
    let world = world([first])
    world.server.answer(first, resting(1))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["host-resting"])
    #expect(world.server.urls.count == 4)
  }

  /// A pause is told only where a source may be asked after it.
  @Test(arguments: [(false, false, true), (true, false, true), (false, true, true), (true, true, false)])
  func aPauseIsToldWhereItHolds(restsFirst: Bool, restsSecond: Bool, isTold: Bool) throws {
    let world = world([first, second])
    world.policy.retries = 1
    for (url, rests) in [(first, restsFirst), (second, restsSecond)] {
      world.server.script(url, [Server.broken(text, after: 0)])
      world.server.answer(url, resting(600))
      if rests { world.server.leaveAlone(url, seconds: 600) }
    }
    #expect(try world.run().problems.map(\.code) == ["host-resting"])
    let pauses = world.log.retries.filter { $0 > 0 }
    #expect(pauses.count == (isTold ? 1 : 0), "\(world.log.retries)")
  }

  /// A server that breaks each request for the rest of a file is left alone in the end. Then all of the file is asked for.
  @Test(arguments: [1, 2, 5]) func whatBrokeForItsRangesIsAskedForWholeAfterTheRest(retries: Int) throws {
    let world = world([first])
    world.policy.retries = retries
    world.server.script(
      first, [broken(after: 3), broken(after: 0), resting(30, etag: "\"1\"")])
    world.server.put(first, text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    // Without another try it is asked for whole at once, and again after the rest.
    #expect(world.server.requests.map(\.offset) == [0, 3, retries == 1 ? 0 : 3, 0])
  }

  /// Nothing says that the server fails at ranges.
  @Test func whatWasNotAskedForGoesOnAfterTheRest() throws {
    let world = world([first])
    world.server.script(first, [broken(after: 3), resting(30, etag: "\"1\"")])
    world.server.put(first, text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 3, 3])
  }

  @Test func aRestThatIsTooLongEndsIt() throws {
    let world = world([first])
    world.policy.retries = 2
    world.server.script(first, [broken(after: 3), broken(after: 0)])
    world.server.answer(first, resting(61, etag: "\"1\""))
    #expect(try world.run().problems.map(\.code) == ["host-resting"])
    #expect(world.server.urls.count == 3)
  }

  @Test func allOfAFileIsWaitedForOnce() throws {
    let world = world([first])
    world.policy.retries = 1
    world.server.script(first, [broken(after: 3), broken(after: 0)])
    world.server.answer(first, resting(1, etag: "\"1\""))
    #expect(try world.run().problems.map(\.code) == ["host-resting"])
    #expect(world.server.requests.map(\.offset) == [0, 3, 0, 0])
  }

  /// Small files have places of their own: the network is told what to expect.
  @Test func theNetworkIsToldHowMuchWillCome() throws {
    let world = world([first])
    world.server.script(first, [Server.broken(text, after: 3, etag: "\"1\"")])
    world.server.put(first, text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    let requests = world.server.requests
    #expect(requests.map(\.expected) == requests.map { 8 - $0.offset })
    #expect(requests.count == 2)
  }

  @Test func theFeedsHostIsNotWaitedForLong() {
    let world = World()
    world.rushes = true
    let url = World.host + "feed"
    world.location = .remote(url: url)
    world.server.answer(url, resting(600))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .feedUnreachable)
    #expect(failure?.code == "host-resting")
    #expect(failure?.message == "cannot read the feed \(url): one.example:80 rests")
    #expect(world.server.urls == [url])
  }

  @Test(arguments: [
    DownloadFailure.Code.headersTooLarge, .resolve, .connect, .reset, .timeout, .tooManyRedirects,
    .addressRefused,
  ])
  func aFeedThatCannotBeReadHasAHint(code: DownloadFailure.Code) {
    let world = World()
    world.rushes = true
    world.policy.retries = 0
    let url = World.host + "feed"
    world.location = .remote(url: url)
    world.server.answer(url, FakeAnswer(failure: (0, DownloadFailure(code, "it failed", isTransient: false))))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == code.rawValue && failure?.hint != nil, "\(String(describing: failure))")
  }

  /// What is left alone because it failed asked for nothing.
  @Test(arguments: [true, false]) func whoseWishItIsIsTold(isAsked: Bool) {
    let world = World()
    world.rushes = true
    let url = World.host + "feed"
    world.location = .remote(url: url)
    var (short, long) = (
      DownloadFailure(.hostResting, "it rests", isTransient: true, retryAfter: 7),
      DownloadFailure(.hostResting, "it rests", isTransient: true, retryAfter: 600)
    )
    (short.isAsked, long.isAsked) = (isAsked, isAsked)
    world.server.script(url, [FakeAnswer(failure: (0, short)), FakeAnswer(failure: (0, long))])
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.retryAfter == 600 && failure?.isAsked == isAsked)
    let told = world.log.events.compactMap { event in
      if case .feedRetrying(_, _, let isAsked) = event { isAsked } else { nil }
    }
    #expect(told == [isAsked])
  }

  /// Whoever says that it tries again does so.
  @Test(arguments: [7, 61] as [Int64]) func aFeedsHostThatComesToBeLeftAloneIsNotAskedBefore(_ seconds: Int64)
  {
    let world = World()
    world.rushes = true
    let url = World.host + "feed"
    world.location = .remote(url: url)
    world.server.answer(url, FakeAnswer(status: 500))
    world.server.leaveAlone(url, seconds: seconds)
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == "http-500")
    let told = world.log.events.compactMap { event in
      if case .feedRetrying(_, let seconds, _) = event { seconds } else { nil }
    }
    #expect(told == (seconds > 60 ? [] : [7, 7, 7]))
    #expect(world.server.urls.count == told.count + 1)
  }

  // MARK: Giving way

  private var silent: FakeAnswer {
    let failure = DownloadFailure(.gaveWay, "one.example:80 sent nothing for 5 s", isTransient: true)
    return FakeAnswer(body: text.bytes, failure: (2, failure))
  }

  /// It is no failure of the source: no other one is asked, no attempt is used up, and what came is kept. Longer patience each
  /// time lets a server that takes its time come to its end.
  @Test func whoGaveItsPlaceAwayAsksTheSameSourceAgain() throws {
    let world = world([first, second])
    world.policy.retries = 0
    world.server.script(first, [silent, silent, silent])
    world.server.put(first, text.bytes)
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [first, first, first, first])
    #expect(world.server.requests.map(\.patience) == [5, 10, 20, 40])
    #expect(world.log.retries == [5, 10, 20])
    #expect(DownloadRequest.patience(gaveWay: 1_000_000) == 5120)
  }

  @Test func aFeedThatGaveItsPlaceAwayIsAskedForAgain() throws {
    let world = world([first])
    world.server.put(first, text.bytes)
    world.policy.retries = 0
    let url = World.host + "feed"
    world.location = .remote(url: url)
    world.server.script(url, [silent, silent])
    world.server.put(url, text.bytes)
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [url, url, url, first])
    #expect(world.server.requests.prefix(3).map(\.patience) == [5, 10, 20])
  }
}
