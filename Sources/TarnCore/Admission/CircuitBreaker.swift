/// Keeps requests away from a host that does not answer. One value per mirror and host, by the monotonic clock.
///
/// While it is closed, all requests may go. After some transport failures in a row it opens for a while. Then one request may try
/// (half-open), and its outcome closes or opens the breaker again. Any answer counts as life, also a 404.
///
/// Requests that lose their connections together, as the streams of one connection do, are one failure. A lost connection counts
/// only if its request was let in after the last failure.
package struct CircuitBreaker: Sendable {
  package struct Settings: Sendable, Hashable {
    /// The number of transport failures in a row that opens the breaker.
    package var threshold = 5
    /// Seconds that it stays open, doubled with each opening in a row.
    package var backOff = BackOff(base: 30, most: 1800)
    /// The most seconds of a `Retry-After` that count.
    package var mostAsked: Int64 = 3600

    package init() {}
  }

  /// The outcome of a request.
  package enum Outcome: Sendable, Hashable {
    /// Any answer, also a refusal such as 404.
    case answered
    /// No connection, no answer in time, or a server's failure (5xx without a time).
    case transportFailed
    /// A connection that broke, before the answer or within it.
    case connectionLost
    /// The request did harm and would do so again: one such outcome opens the breaker.
    case harmed
    /// 429 or 503 with `Retry-After`, in seconds.
    case asked(retryAfter: Int64)
    /// The request was given up at this end, which says nothing about the host.
    case cancelled

    /// True for what brought no answer, or no whole one, or 5xx.
    package var isFailure: Bool { self == .transportFailed || self == .connectionLost }
  }

  package enum State: Sendable, Hashable {
    case closed
    case open(until: Instant)
    /// One request is on its way.
    case halfOpen
  }

  /// The right to send one request. The outcome of the request is reported with it.
  package struct Ticket: Sendable, Hashable {
    fileprivate let era: UInt64
    /// The number of failures that had counted before.
    fileprivate let counted: UInt64
  }

  package private(set) var state = State.closed
  private let settings: Settings
  /// Failures in a row while closed.
  private var failures = 0
  /// All failures that have counted.
  private var counted: UInt64 = 0
  /// Openings in a row without an answer between them.
  private var openings = 0
  /// Counts the changes of state, so that a late report about an earlier state is recognised.
  private var era: UInt64 = 0

  package init(_ settings: Settings = Settings()) { self.settings = settings }

  /// Asks to send a request.
  ///
  /// - Returns: `nil` while the host is to be left alone.
  package mutating func admit(now: Instant) -> Ticket? {
    guard wait(now: now) == .zero else { return nil }
    if state != .closed { change(to: .halfOpen) }
    return Ticket(era: era, counted: counted)
  }

  /// Ends the wait of a host that failed: one request may try.
  package mutating func tryNow(now: Instant) {
    if case .open = state { change(to: .open(until: now)) }
  }

  /// Returns the time until `admit` may say yes: zero when it may now, `nil` when that depends on the request on its way.
  package func wait(now: Instant) -> Duration? {
    switch state {
    case .closed: .zero
    case .halfOpen: nil
    case .open(let until): until.remaining(at: now)
    }
  }

  /// Reports the outcome of a request. Each ticket is reported once.
  ///
  /// - Parameters:
  ///   - isSuspect: true when others found the host dead. Then one failure opens the breaker.
  ///   - random: a number in 0..<1.
  /// - Returns: true when the outcome is about the present state; false when the state changed after the request was sent.
  @discardableResult
  package mutating func report(
    _ ticket: Ticket, _ outcome: Outcome, isSuspect: Bool = false, now: Instant, random: Double
  ) -> Bool {
    if case .asked(let seconds) = outcome {
      // The host's request counts whenever the request was sent, and never shortens a wait.
      open(until: now + .bounded(seconds: Double(min(max(seconds, 0), settings.mostAsked))))
      return true
    }
    guard ticket.era == era else { return false }
    switch outcome {
    case .answered:
      (failures, openings) = (0, 0)
      if state == .halfOpen { change(to: .closed) }
    case .cancelled: if state == .halfOpen { change(to: .open(until: now)) }
    case .connectionLost where ticket.counted != counted: break
    case .transportFailed, .connectionLost, .harmed:
      counted += 1
      failures += 1
      let isEnough = outcome == .harmed || state == .halfOpen || isSuspect
      guard failures >= (isEnough ? 1 : max(1, settings.threshold)) else { break }
      openings += 1
      // Half of the span is certain, the other half is jitter. A host that is down is never asked at once.
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
