/// Keeps requests away from a host that does not answer. A value per mirror and host, by the monotonic clock.
///
/// Closed: all may go. After some transport failures in a row it opens for a while; then one request may try (half-open),
/// and what comes of it closes or opens it again. An answer is an answer: a 404 counts as life.
package struct CircuitBreaker: Sendable {
  package struct Settings: Sendable, Hashable {
    /// Transport failures in a row that open it.
    package var threshold = 5
    /// Seconds open: doubled each time in a row.
    package var backOff = BackOff(base: 30, most: 1800)
    /// Seconds: a `Retry-After` counts for no more.
    package var mostAsked: Int64 = 3600

    package init() {}
  }

  /// What became of a request.
  package enum Outcome: Sendable, Hashable {
    /// Any answer, also a refusal such as 404.
    case answered
    /// No connection, no answer, an answer cut off, or a server's failure (5xx without a time).
    case transportFailed
    /// It did harm, which it would do again: one opens it.
    case harmed
    /// 429 or 503 with `Retry-After`, in seconds.
    case asked(retryAfter: Int64)
    /// Given up at this end: says nothing about the host.
    case cancelled
  }

  package enum State: Sendable, Hashable {
    case closed
    case open(until: Instant)
    /// One request is on its way.
    case halfOpen
  }

  /// The right to send one request; its outcome is reported with it.
  package struct Ticket: Sendable, Hashable {
    fileprivate let era: UInt64
  }

  package private(set) var state = State.closed
  private let settings: Settings
  /// In a row, while closed.
  private var failures = 0
  /// In a row, without an answer between them.
  private var openings = 0
  /// Counts the changes of state, so that late news of an earlier one is told apart.
  private var era: UInt64 = 0

  package init(_ settings: Settings = Settings()) { self.settings = settings }

  /// Asks to send a request.
  ///
  /// - Returns: nil while the host is to be left alone.
  package mutating func admit(now: Instant) -> Ticket? {
    guard wait(now: now) == .zero else { return nil }
    if state != .closed { change(to: .halfOpen) }
    return Ticket(era: era)
  }

  /// Ends the waiting of a host that failed: one request may try.
  package mutating func tryNow(now: Instant) {
    if case .open = state { change(to: .open(until: now)) }
  }

  /// Until `admit` may say yes: zero when it may now, nil when that hangs on the request on its way.
  package func wait(now: Instant) -> Duration? {
    switch state {
    case .closed: .zero
    case .halfOpen: nil
    case .open(let until): until.remaining(at: now)
    }
  }

  /// Tells what became of a request; each ticket once.
  ///
  /// - Parameters:
  ///   - isSuspect: others found the host dead: one failure opens it.
  ///   - random: in 0..<1.
  /// - Returns: whether it says something of the host as it is now: false where the request was sent before the state changed.
  @discardableResult
  package mutating func report(
    _ ticket: Ticket, _ outcome: Outcome, isSuspect: Bool = false, now: Instant, random: Double
  ) -> Bool {
    if case .asked(let seconds) = outcome {
      // A wish of the host counts whenever the request was sent, and is never made shorter.
      open(until: now + .bounded(seconds: Double(min(max(seconds, 0), settings.mostAsked))))
      return true
    }
    guard ticket.era == era else { return false }
    switch outcome {
    case .answered:
      (failures, openings) = (0, 0)
      if state == .halfOpen { change(to: .closed) }
    case .cancelled: if state == .halfOpen { change(to: .open(until: now)) }
    case .transportFailed, .harmed:
      failures += 1
      let isEnough = outcome == .harmed || state == .halfOpen || isSuspect
      guard failures >= (isEnough ? 1 : max(1, settings.threshold)) else { break }
      openings += 1
      // Half of the span is certain, the other half is jitter: a host that is down is never asked at once.
      let span = settings.backOff.ceiling(openings)
      open(until: now + .bounded(seconds: span / 2 + span / 2 * random))
    case .asked: break
    }
    return true
  }

  private mutating func open(until: Instant) {
    if case .open(let before) = state {
      state = .open(until: max(before, until))
    } else {
      change(to: .open(until: until))
    }
  }

  private mutating func change(to state: State) {
    self.state = state
    failures = 0
    era += 1
  }
}
