/// A point of the monotonic clock, which never goes back and stands still while the machine sleeps. It means nothing to another
/// process, nor after a restart of the machine.
package struct Instant: InstantProtocol, Hashable, Sendable {
  /// From an arbitrary start.
  package let nanoseconds: UInt64

  package init(nanoseconds: UInt64 = 0) {
    self.nanoseconds = nanoseconds
  }

  /// After all others.
  package static let distantFuture = Instant(nanoseconds: .max)

  /// Stops at the ends of the range.
  package func advanced(by duration: Duration) -> Instant {
    let step = duration.nanoseconds
    let (sum, overflow) =
      step < 0
      ? nanoseconds.subtractingReportingOverflow(step.magnitude)
      : nanoseconds.addingReportingOverflow(step.magnitude)
    return Instant(nanoseconds: overflow ? (step < 0 ? 0 : .max) : sum)
  }

  package func duration(to other: Instant) -> Duration {
    other.nanoseconds >= nanoseconds
      ? .nanoseconds(Int64(clamping: other.nanoseconds - nanoseconds))
      : .nanoseconds(-Int64(clamping: nanoseconds - other.nanoseconds))
  }

  /// How long ago another one was; zero where it is yet to come.
  package func elapsed(since earlier: Instant) -> Duration { max(.zero, earlier.duration(to: self)) }

  /// How long until it comes; zero where it has come.
  package func remaining(at now: Instant) -> Duration { elapsed(since: now) }

  package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Timestamp: InstantProtocol {
  /// Stops at the ends of the range.
  package func advanced(by duration: Duration) -> Timestamp {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
    return Timestamp(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
  }

  package func duration(to other: Timestamp) -> Duration {
    .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
  }
}

extension InstantProtocol where Duration == Swift.Duration {
  package static func + (left: Self, right: Duration) -> Self { left.advanced(by: right) }

  package static func += (left: inout Self, right: Duration) { left = left + right }

  package static func - (left: Self, right: Self) -> Duration { right.duration(to: left) }
}

extension Duration {
  /// As many as there are in 64 bits: some 292 years, which a longer one counts as.
  package static let longest = Duration.nanoseconds(Int64.max)

  /// Whole ones; what does not fit into 64 bits ends at their bounds.
  package var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    return overflow || overflow2 ? (self < .zero ? .min : .max) : sum
  }

  package var seconds: Double { self / .seconds(1) }

  /// Whole seconds, rounded up.
  package var wholeSeconds: Int64 {
    let (seconds, attoseconds) = components
    return attoseconds > 0 ? seconds + 1 : seconds
  }

  /// Whole milliseconds for who waits so long: rounded up, so that nobody wakes too early; not below zero.
  package var milliseconds: Int32 {
    let (whole, rest) = max(0, nanoseconds).quotientAndRemainder(dividingBy: 1_000_000)
    return Int32(clamping: whole + (rest > 0 ? 1 : 0))
  }

  /// Of seconds that may be as many as they like, or none.
  package static func bounded(seconds: Double) -> Duration { .seconds(max(0, min(seconds, 1e9))) }
}
