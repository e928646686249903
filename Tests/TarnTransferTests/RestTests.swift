import TarnCore
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
}
