import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// What is told of hosts that rest.
@Suite struct RestTests {
  private let bench = BudgetBench()

  /// The breaker keeps to an hour of it; what was asked for is more.
  @Test func aLongWishIsToldWhole() throws {
    let budget = bench.budget(total: 10, perHost: 1)
    let first = bench.enter(budget, mirror: "a")
    let waiting = bench.enter(budget, mirror: "a")
    bench.leave(budget, first, .asked(retryAfter: 7200))
    let rest = try #require(budget.snapshot().resting.first)
    #expect(rest.isAsked && rest.until == Timestamp(seconds: 3600))
    #expect(rest.askedUntil == Timestamp(seconds: 7200))
    // Nor is another one told of less.
    #expect(bench.refused[waiting]?.retryAfter == 7200)
  }

  /// What was sent before the host asked says nothing against it, however it ends.
  @Test(arguments: [CircuitBreaker.Outcome.answered, .transportFailed, .cancelled])
  func anEarlierRequestTakesNoWishAway(outcome: CircuitBreaker.Outcome) throws {
    let budget = bench.budget(total: 10, perHost: 4)
    let places = (0..<3).map { _ in bench.enter(budget, mirror: "a") }
    bench.leave(budget, places[0], .asked(retryAfter: 900))
    bench.leave(budget, places[1], outcome)
    let rest = try #require(budget.snapshot().resting.first)
    #expect(rest.isAsked && rest.askedUntil == Timestamp(seconds: 900))
    bench.leave(budget, places[2], .asked(retryAfter: 60))
    #expect(budget.snapshot().resting.first?.askedUntil == Timestamp(seconds: 900))
  }

  /// Nor does one that somebody let through: no connection is no answer. By its time it ends.
  @Test func aFailureIsNoAnswer() throws {
    let budget = bench.budget(total: 10, perHost: 4)
    let first = bench.enter(budget, mirror: "a")
    bench.leave(budget, first, .asked(retryAfter: 900))
    for (later, isAsked) in [(60, true), (900, false)] as [(UInt64, Bool)] {
      bench.clock.advance(.seconds(later))
      budget.tryNow(mirror: "a")
      let next = bench.enter(budget, mirror: "a")
      bench.leave(budget, next, .transportFailed)
      let rest = try #require(budget.snapshot().resting.first)
      #expect(rest.isAsked == isAsked && rest.askedUntil == (isAsked ? Timestamp(seconds: 900) : nil))
    }
  }

  /// It is left alone for a failure, after its wish is over.
  @Test func aWishThatIsOverIsNoReason() throws {
    let budget = bench.budget(total: 10, perHost: 4)
    let first = bench.enter(budget, mirror: "a")
    bench.leave(budget, first, .asked(retryAfter: 900))
    bench.clock.advance(.seconds(890))
    budget.tryNow(mirror: "a")
    let next = bench.enter(budget, mirror: "a")
    bench.leave(budget, next, .transportFailed)
    #expect(budget.snapshot().resting.first?.isAsked == true)
    bench.clock.advance(.seconds(11))
    let rest = try #require(budget.snapshot().resting.first)
    #expect(!rest.isAsked && rest.askedUntil == nil)
    guard case .refused(let failure) = bench.admission(budget, mirror: "a") else {
      Issue.record("it is not left alone")
      return
    }
    #expect(!failure.isAsked && failure.message.contains("failed again and again"))
  }

  /// Told with a time of the wall's clock, which the next process understands; only that mirror was asked.
  @Test func aWishOutlivesTheProcess() throws {
    let budget = bench.budget(total: 10, perHost: 4)
    budget.setMirrors(["a": "http://feed/list", "b": "http://feed/list"])
    bench.leave(budget, bench.enter(budget, mirror: "a", host: "dead"), .asked(retryAfter: 900))
    bench.leave(budget, bench.enter(budget, mirror: "a", host: "feed"), .asked(retryAfter: 900))
    let wishes = budget.wishes()["a", default: []]
    // The feed's host holds up passes, too; repairs ask it for files without any.
    #expect(
      wishes
        == ["http://dead:80", "http://feed:80"].map {
          TransferBudget.Wish(host: $0, until: Timestamp(nanoseconds: 900 * 1_000_000_000))
        })
    bench.clock.advance(.seconds(100))
    #expect(budget.wishes()["a"] == wishes && budget.wishes()["b", default: []].isEmpty)

    let next = bench.budget(total: 10, perHost: 4)
    next.remember(
      wishes + [
        TransferBudget.Wish(host: "nonsense", until: Timestamp(nanoseconds: 900 * 1_000_000_000)),
        TransferBudget.Wish(host: "http://over:80", until: Timestamp(nanoseconds: 100 * 1_000_000_000)),
      ], mirror: "a")
    #expect(next.wishes()["a"] == wishes)
    guard case .refused(let failure) = bench.admission(next, mirror: "a", host: "dead") else {
      Issue.record("it is asked again")
      return
    }
    #expect(failure.isAsked && failure.retryAfter == 800)
    #expect(next.wishes()["a"] == wishes)
    #expect(bench.enter(next, mirror: "b", host: "dead") != 0)
    // What is remembered a second time is no news, and no answer is undone by it.
    next.tryNow(mirror: "a")
    bench.leave(next, bench.enter(next, mirror: "a", host: "dead"), .answered)
    #expect(next.wishes()["a"]?.map(\.host) == ["http://feed:80"])
  }

  /// A person wants it now, before anything was asked: one request tries, and the wish ends with an answer only.
  @Test func aPersonMayTryWhatIsRemembered() throws {
    let budget = bench.budget(total: 10, perHost: 4)
    let wish = TransferBudget.Wish(host: "http://dead:80", until: Timestamp(nanoseconds: 900 * 1_000_000_000))
    budget.remember([wish], mirror: "a")
    budget.tryNow(mirror: "a")
    #expect(budget.wishes()["a"] == [wish])
    guard case .granted(let first) = bench.admission(budget, mirror: "a"),
      case .waits = bench.admission(budget, mirror: "a")
    else {
      Issue.record("not one tries")
      return
    }
    budget.change { $0.leave(first, .transportFailed) }
    #expect(budget.wishes()["a"] == [wish])
    budget.tryNow(mirror: "a")
    guard case .granted(let second) = bench.admission(budget, mirror: "a") else {
      Issue.record("a person is not let in")
      return
    }
    budget.change { $0.leave(second, .answered) }
    #expect(budget.wishes()["a", default: []].isEmpty)
  }

  /// The clock was a year ahead when the host asked.
  @Test func aRememberedWishIsNoLongerThanAny() {
    let budget = bench.budget(total: 10, perHost: 4)
    budget.remember(
      [
        TransferBudget.Wish(
          host: "http://dead:80", until: Timestamp(nanoseconds: 365 * 86_400 * 1_000_000_000))
      ], mirror: "a")
    #expect(budget.wishes()["a"]?.map(\.until) == [Timestamp(nanoseconds: 7 * 86_400 * 1_000_000_000)])
  }

  /// The same, and it was set right before that host was asked.
  @Test func aClockThatIsSetBackMakesNoWishLonger() {
    let budget = bench.budget(total: 10, perHost: 4)
    bench.clock.setWall(365 * 86_400 * 1_000_000_000)
    let until = Timestamp(nanoseconds: 366 * 86_400 * 1_000_000_000)
    budget.remember([TransferBudget.Wish(host: "http://dead:80", until: until)], mirror: "a")
    bench.clock.setWall(0)
    guard case .refused(let failure) = bench.admission(budget, mirror: "a", host: "dead") else {
      Issue.record("it is asked")
      return
    }
    #expect(failure.retryAfter == 604_800)
    #expect(budget.wishes()["a"]?.map(\.until) == [Timestamp(nanoseconds: 7 * 86_400 * 1_000_000_000)])
  }

  /// It ends by its time, asked there or not.
  @Test(arguments: [true, false]) func aRememberedWishEndsByItsTime(isAsked: Bool) {
    let budget = bench.budget(total: 10, perHost: 4)
    budget.remember(
      [TransferBudget.Wish(host: "http://dead:80", until: Timestamp(nanoseconds: 900 * 1_000_000_000))],
      mirror: "a")
    if isAsked { bench.enter(budget, mirror: "a", host: "dead") }
    bench.clock.advance(.seconds(901))
    #expect(budget.wishes()["a", default: []].isEmpty)
    #expect(bench.enter(budget, mirror: "a", host: "dead") != 0)
  }
}
