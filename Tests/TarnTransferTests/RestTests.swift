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
      bench.clock.advance(seconds: later)
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
    bench.clock.advance(seconds: 890)
    budget.tryNow(mirror: "a")
    let next = bench.enter(budget, mirror: "a")
    bench.leave(budget, next, .transportFailed)
    #expect(budget.snapshot().resting.first?.isAsked == true)
    bench.clock.advance(seconds: 11)
    let rest = try #require(budget.snapshot().resting.first)
    #expect(!rest.isAsked && rest.askedUntil == nil)
    guard case .refused(let failure) = bench.admission(budget, mirror: "a") else {
      Issue.record("it is not left alone")
      return
    }
    #expect(!failure.isAsked && failure.message.contains("failed again and again"))
  }
}
