import TestSupport
import Testing

@testable import TarnCore

/// A breaker by reference: an expectation may not change a value.
private final class Circuit {
  private var breaker = CircuitBreaker()

  var state: CircuitBreaker.State { breaker.state }

  func admit(now: UInt64) -> CircuitBreaker.Ticket? { breaker.admit(now: now) }
  func wait(now: UInt64) -> UInt64? { breaker.wait(now: now) }
  func report(_ ticket: CircuitBreaker.Ticket, _ outcome: CircuitBreaker.Outcome, now: UInt64, random: Double)
  {
    breaker.report(ticket, outcome, now: now, random: random)
  }
}

@Suite struct CircuitBreakerTests {
  private static let second: UInt64 = 1_000_000_000

  /// Lets so many requests fail, one after the other.
  private func fail(_ breaker: Circuit, _ count: Int, now: UInt64 = 0, random: Double = 1) {
    for _ in 0..<count {
      guard let ticket = breaker.admit(now: now) else { return }
      breaker.report(ticket, .transportFailed, now: now, random: random)
    }
  }

  @Test func failuresInARowOpenIt() {
    let breaker = Circuit()
    fail(breaker, 4)
    #expect(breaker.state == .closed)
    fail(breaker, 1)
    #expect(breaker.state == .open(until: 30 * Self.second))
    #expect(breaker.admit(now: 30 * Self.second - 1) == nil)
    #expect(breaker.wait(now: 10 * Self.second) == 20 * Self.second)
  }

  @Test func anyAnswerCounts() {
    let breaker = Circuit()
    for _ in 0..<20 {
      fail(breaker, 4)
      let ticket = breaker.admit(now: 0)
      breaker.report(ticket!, .answered, now: 0, random: 0)
    }
    #expect(breaker.state == .closed)
    for _ in 0..<5 {
      fail(breaker, 1)
      guard let ticket = breaker.admit(now: 0) else { break }
      breaker.report(ticket, .cancelled, now: 0, random: 0)
    }
    // What was given up here is no answer.
    #expect(breaker.state != .closed)
  }

  @Test func oneProbeDecides() {
    let breaker = Circuit()
    fail(breaker, 5)
    let probe = breaker.admit(now: 31 * Self.second)
    #expect(probe != nil)
    #expect(breaker.state == .halfOpen)
    #expect(breaker.admit(now: 99 * Self.second) == nil)
    #expect(breaker.wait(now: 99 * Self.second) == nil)
    breaker.report(probe!, .answered, now: 99 * Self.second, random: 0)
    #expect(breaker.state == .closed)
    // One failure more does not open it again.
    fail(breaker, 4)
    #expect(breaker.state == .closed)
  }

  @Test func spansDoubleUpToTheirLimit() {
    let breaker = Circuit()
    fail(breaker, 5)
    var now: UInt64 = 0
    var spans: [UInt64] = [30]
    for _ in 0..<8 {
      now += breaker.wait(now: now) ?? 0
      fail(breaker, 1, now: now)
      spans.append((breaker.wait(now: now) ?? 0) / Self.second)
    }
    #expect(spans == [30, 60, 120, 240, 480, 960, 1800, 1800, 1800])
    now += breaker.wait(now: now) ?? 0
    breaker.report(breaker.admit(now: now)!, .answered, now: now, random: 0)
    fail(breaker, 5, now: now)
    #expect(breaker.wait(now: now) == 30 * Self.second)
  }

  @Test func jitterIsHalfOfTheSpan() {
    for (random, seconds) in [(0.0, 15), (0.5, 22.5)] as [(Double, Double)] {
      let breaker = Circuit()
      fail(breaker, 5, random: random)
      #expect(breaker.wait(now: 0) == UInt64(seconds * 1e9))
    }
  }

  @Test func aProbeThatWasGivenUpIsRepeated() {
    let breaker = Circuit()
    fail(breaker, 5)
    let now = 31 * Self.second
    breaker.report(breaker.admit(now: now)!, .cancelled, now: now, random: 0)
    #expect(breaker.admit(now: now) != nil)
  }

  @Test func whatAHostAsksForIsKeptAndCapped() {
    let breaker = Circuit()
    let early = breaker.admit(now: 0)!
    breaker.report(breaker.admit(now: 0)!, .asked(retryAfter: 100), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == 100 * Self.second)
    // A shorter wish does not shorten it; a longer one counts, even from an older request.
    breaker.report(early, .asked(retryAfter: 5), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == 100 * Self.second)
    breaker.report(early, .asked(retryAfter: .max), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == 3600 * Self.second)
    breaker.report(early, .asked(retryAfter: .min), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == 3600 * Self.second)
    #expect(breaker.admit(now: 3600 * Self.second) != nil)
  }

  /// Requests that were sent before it opened end after it.
  @Test func lateNewsChangesNothing() {
    let breaker = Circuit()
    let tickets = (0..<20).map { _ in breaker.admit(now: 0)! }
    for ticket in tickets[..<5] { breaker.report(ticket, .transportFailed, now: 0, random: 1) }
    for ticket in tickets[5..<10] { breaker.report(ticket, .transportFailed, now: Self.second, random: 1) }
    breaker.report(tickets[10], .answered, now: Self.second, random: 0)
    #expect(breaker.state == .open(until: 30 * Self.second))
    let probe = breaker.admit(now: 30 * Self.second)!
    breaker.report(tickets[11], .answered, now: 30 * Self.second, random: 0)
    breaker.report(tickets[12], .cancelled, now: 30 * Self.second, random: 0)
    #expect(breaker.state == .halfOpen)
    breaker.report(probe, .answered, now: 30 * Self.second, random: 0)
    for ticket in tickets[13...] {
      breaker.report(ticket, .transportFailed, now: 31 * Self.second, random: 0)
    }
    #expect(breaker.state == .closed)
  }

  @Test(arguments: 1...20) func itAlwaysLetsSomebodyInAgain(seed: Int) {
    var random = Seeded(UInt64(seed))
    let breaker = Circuit()
    var now: UInt64 = 0
    var out: [CircuitBreaker.Ticket] = []
    for _ in 0..<2000 {
      if let ticket = breaker.admit(now: now) { out.append(ticket) }
      if !out.isEmpty, random.chance(70) {
        let outcome = random.pick([
          CircuitBreaker.Outcome.answered, .transportFailed, .transportFailed, .transportFailed, .cancelled,
          .asked(retryAfter: Int64(random.below(5000))),
        ])
        breaker.report(
          out.remove(at: random.below(out.count)), outcome, now: now, random: Double(random.below(100)) / 100)
      }
      now += UInt64(random.below(20)) * Self.second
      // Bounded by the longest wish of the host, and half-open only with its probe on the way.
      guard let wait = breaker.wait(now: now) else {
        #expect(!out.isEmpty)
        continue
      }
      #expect(wait <= 3600 * Self.second)
    }
  }
}
