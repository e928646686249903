/// The present moment by both clocks.
package struct Moment: Hashable, Sendable {
  /// The wall clock, which may be set forward or back at any time.
  package var wall: Timestamp
  package var monotonic: Instant

  package init(wall: Timestamp, monotonic: Instant) {
    self.wall = wall
    self.monotonic = monotonic
  }

  /// Returns the time since an earlier moment of this process, never below zero. It is the larger of what the two clocks say:
  /// neither a clock set back nor a machine that slept makes a wait longer.
  package func elapsed(since earlier: Moment) -> Duration {
    max(monotonic.elapsed(since: earlier.monotonic), wall - earlier.wall)
  }
}

/// A span of time that must pass first.
package struct Wait: Hashable, Sendable {
  package let from: Moment
  /// The length of the span, never below zero.
  package let length: Duration

  package init(from: Moment, seconds: Double) {
    self.from = from
    length = .bounded(seconds: seconds)
  }

  /// Returns what is left of the wait; zero when it is over.
  package func remaining(at now: Moment) -> Duration {
    max(.zero, length - now.elapsed(since: from))
  }
}

/// The pauses after failures in a row: full jitter under a ceiling that doubles.
package struct BackOff: Hashable, Sendable {
  /// The ceiling of the first pause, in seconds.
  package var base: Double
  /// The highest ceiling, in seconds.
  package var most: Double

  package init(base: Double, most: Double) {
    self.base = base
    self.most = most
  }

  /// Returns the ceiling of a pause, in seconds.
  ///
  /// - Parameter count: the failures so far, at least 1.
  package func ceiling(_ count: Int) -> Double {
    min(most, base * Double(UInt64(1) << UInt64(min(max(count, 1), 41) - 1)))
  }
}
