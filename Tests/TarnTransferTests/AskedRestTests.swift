import TarnCore
import TarnRuntime
import Testing

@testable import TarnTransfer

/// What the host of a mirror's feed has asked of that mirror.
@Suite struct AskedRestTests {
  private let bench = BudgetBench()

  @Test func whatAnswersForFilesAskIsKnown() {
    let budget = bench.budget(total: 10, perHost: 4)
    budget.setMirrors(["a": "http://dead/SHA256SUMS", "b": "http://dead/feed.xml", "c": "http://other/"])
    #expect(budget.askedRest(mirror: "a") == nil)
    bench.leave(budget, bench.enter(budget, mirror: "a"), .asked(retryAfter: 300))
    // Of another one, or of one whose feed is elsewhere, nobody asked it.
    bench.leave(budget, bench.enter(budget, mirror: "c"), .asked(retryAfter: 300))
    #expect(budget.askedRest(mirror: "b") == nil && budget.askedRest(mirror: "c") == nil)
    bench.clock.advance(.seconds(100))
    #expect(budget.askedRest(mirror: "a") == 200)
    bench.clock.advance(.seconds(200))
    #expect(budget.askedRest(mirror: "a") == nil)
  }

  @Test func aHostThatFailsHasAskedForNothing() {
    let budget = bench.restingBudget()
    budget.setMirrors(["a": "http://dead/SHA256SUMS"])
    #expect(budget.askedRest(mirror: "a") == nil)
  }
}
