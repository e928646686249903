/// A point of the monotonic clock, which never goes back and stands still while the machine sleeps. It is meaningless to another
/// process and after a restart of the machine.
package struct Instant: InstantProtocol, Hashable, Sendable {
  /// Nanoseconds from an arbitrary start.
  package let nanoseconds: UInt64

  package init(nanoseconds: UInt64 = 0) {
    self.nanoseconds = nanoseconds
  }

  /// A point after all others.
  package static let distantFuture = Instant(nanoseconds: .max)

  /// Returns the point after a duration, limited to the range.
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

  /// Returns the time since an earlier point; zero when that is yet to come.
  package func elapsed(since earlier: Instant) -> Duration { max(.zero, earlier.duration(to: self)) }

  /// Returns the time until this point; zero when it has passed.
  package func remaining(at now: Instant) -> Duration { elapsed(since: now) }

  package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Timestamp: InstantProtocol {
  /// Returns the moment after a duration, limited to the range.
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
  /// The longest duration in nanoseconds of 64 bits, some 292 years. A longer one counts as this.
  package static let longest = Duration.nanoseconds(Int64.max)

  /// Whole nanoseconds, limited to 64 bits.
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

  /// Whole milliseconds for a wait: rounded up, so that no wait ends too early, and never below zero.
  package var milliseconds: Int32 {
    let (whole, rest) = max(0, nanoseconds).quotientAndRemainder(dividingBy: 1_000_000)
    return Int32(clamping: whole + (rest > 0 ? 1 : 0))
  }

  /// Returns a duration for any number of seconds, limited to 0 and 1e9.
  package static func bounded(seconds: Double) -> Duration { .seconds(max(0, min(seconds, 1e9))) }
}
