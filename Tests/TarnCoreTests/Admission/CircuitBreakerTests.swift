import TestSupport
import Testing

@testable import TarnCore

/// A breaker by reference: an expectation may not change a value.
private final class Circuit {
  private var breaker = CircuitBreaker()

  var state: CircuitBreaker.State { breaker.state }

  func admit(now: Instant) -> CircuitBreaker.Ticket? { breaker.admit(now: now) }
  func wait(now: Instant) -> Duration? { breaker.wait(now: now) }
  func report(
    _ ticket: CircuitBreaker.Ticket, _ outcome: CircuitBreaker.Outcome, now: Instant, random: Double
  ) {
    breaker.report(ticket, outcome, now: now, random: random)
  }
}

@Suite struct CircuitBreakerTests {
  /// Lets so many requests fail, one after the other.
  private func fail(_ breaker: Circuit, _ count: Int, now: Instant = 0, random: Double = 1) {
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
    #expect(breaker.state == .open(until: .at(30)))
    #expect(breaker.admit(now: .before(30)) == nil)
    #expect(breaker.wait(now: .at(10)) == .seconds(20))
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
    let probe = breaker.admit(now: .at(31))
    #expect(probe != nil)
    #expect(breaker.state == .halfOpen)
    #expect(breaker.admit(now: .at(99)) == nil)
    #expect(breaker.wait(now: .at(99)) == nil)
    breaker.report(probe!, .answered, now: .at(99), random: 0)
    #expect(breaker.state == .closed)
    // One failure more does not open it again.
    fail(breaker, 4)
    #expect(breaker.state == .closed)
  }

  @Test func spansDoubleUpToTheirLimit() {
    let breaker = Circuit()
    fail(breaker, 5)
    var now: Instant = 0
    var spans: [Double] = [30]
    for _ in 0..<8 {
      now += breaker.wait(now: now) ?? .zero
      fail(breaker, 1, now: now)
      spans.append((breaker.wait(now: now) ?? .zero).seconds)
    }
    #expect(spans == [30, 60, 120, 240, 480, 960, 1800, 1800, 1800])
    now += breaker.wait(now: now) ?? .zero
    breaker.report(breaker.admit(now: now)!, .answered, now: now, random: 0)
    fail(breaker, 5, now: now)
    #expect(breaker.wait(now: now) == .seconds(30))
  }

  @Test func jitterIsHalfOfTheSpan() {
    for (random, seconds) in [(0.0, 15), (0.5, 22.5)] as [(Double, Double)] {
      let breaker = Circuit()
      fail(breaker, 5, random: random)
      #expect(breaker.wait(now: 0) == .seconds(seconds))
    }
  }

  @Test func aProbeThatWasGivenUpIsRepeated() {
    let breaker = Circuit()
    fail(breaker, 5)
    let now = Instant.at(31)
    breaker.report(breaker.admit(now: now)!, .cancelled, now: now, random: 0)
    #expect(breaker.admit(now: now) != nil)
  }

  @Test func whatAHostAsksForIsKeptAndCapped() {
    let breaker = Circuit()
    let early = breaker.admit(now: 0)!
    breaker.report(breaker.admit(now: 0)!, .asked(retryAfter: 100), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == .seconds(100))
    // A shorter wish does not shorten it; a longer one counts, even from an older request.
    breaker.report(early, .asked(retryAfter: 5), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == .seconds(100))
    breaker.report(early, .asked(retryAfter: .max), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == .seconds(3600))
    breaker.report(early, .asked(retryAfter: .min), now: 0, random: 0)
    #expect(breaker.wait(now: 0) == .seconds(3600))
    #expect(breaker.admit(now: .at(3600)) != nil)
  }

  /// As the streams of one connection do, in whatever order others are let in.
  @Test func whatIsLostTogetherIsOneFailure() {
    let breaker = Circuit()
    var tickets = (0..<64).map { _ in breaker.admit(now: 0)! }
    for failures in 1...4 {
      let next = tickets.map { ticket in
        breaker.report(ticket, .connectionLost, now: .at(failures), random: 1)
        return breaker.admit(now: .at(failures))!
      }
      tickets = next
    }
    #expect(breaker.state == .closed)
    breaker.report(tickets[0], .connectionLost, now: .at(5), random: 1)
    #expect(breaker.state == .open(until: .at(35)))
    // A probe stands for itself.
    breaker.report(breaker.admit(now: .at(35))!, .connectionLost, now: .at(35), random: 1)
    #expect(breaker.state == .open(until: .at(95)))
  }

  /// What finds no connection, or waits for an answer in vain, says as much each time.
  @Test func whatFailsByItselfCounts() {
    let breaker = Circuit()
    let tickets = (0..<6).map { _ in breaker.admit(now: 0)! }
    for ticket in tickets.prefix(3) { breaker.report(ticket, .transportFailed, now: 0, random: 1) }
    // A connection was lost when there was trouble already.
    breaker.report(tickets[3], .connectionLost, now: 0, random: 1)
    breaker.report(tickets[4], .transportFailed, now: 0, random: 1)
    #expect(breaker.state == .closed)
    breaker.report(tickets[5], .transportFailed, now: 0, random: 1)
    #expect(breaker.state == .open(until: .at(30)))
  }

  /// Requests that were sent before it opened end after it.
  @Test func lateNewsChangesNothing() {
    let breaker = Circuit()
    let tickets = (0..<20).map { _ in breaker.admit(now: 0)! }
    for ticket in tickets[..<5] { breaker.report(ticket, .transportFailed, now: 0, random: 1) }
    for ticket in tickets[5..<10] { breaker.report(ticket, .transportFailed, now: .at(1), random: 1) }
    breaker.report(tickets[10], .answered, now: .at(1), random: 0)
    #expect(breaker.state == .open(until: .at(30)))
    let probe = breaker.admit(now: .at(30))!
    breaker.report(tickets[11], .answered, now: .at(30), random: 0)
    breaker.report(tickets[12], .cancelled, now: .at(30), random: 0)
    #expect(breaker.state == .halfOpen)
    breaker.report(probe, .answered, now: .at(30), random: 0)
    for ticket in tickets[13...] {
      breaker.report(ticket, .transportFailed, now: .at(31), random: 0)
    }
    #expect(breaker.state == .closed)
  }

  @Test(arguments: 1...20) func itAlwaysLetsSomebodyInAgain(seed: Int) {
    var random = Seeded(UInt64(seed))
    let breaker = Circuit()
    var now: Instant = 0
    var out: [CircuitBreaker.Ticket] = []
    for _ in 0..<2000 {
      if let ticket = breaker.admit(now: now) { out.append(ticket) }
      if !out.isEmpty, random.chance(70) {
        let outcome = random.pick([
          CircuitBreaker.Outcome.answered, .transportFailed, .transportFailed, .connectionLost, .cancelled,
          .asked(retryAfter: Int64(random.below(5000))),
        ])
        breaker.report(
          out.remove(at: random.below(out.count)), outcome, now: now, random: Double(random.below(100)) / 100)
      }
      now += .seconds(random.below(20))
      // Bounded by the longest wish of the host, and half-open only with its probe on the way.
      guard let wait = breaker.wait(now: now) else {
        #expect(!out.isEmpty)
        continue
      }
      #expect(wait <= .seconds(3600))
    }
  }
}
