/// Now, by both clocks.
package struct Moment: Hashable, Sendable {
  /// What the clock on the wall shows; may be set either way at any time.
  package var wall: Timestamp
  package var monotonic: Instant

  package init(wall: Timestamp, monotonic: Instant) {
    self.wall = wall
    self.monotonic = monotonic
  }

  /// Since an earlier moment of this process, never below zero: the larger of what the two clocks say, so that neither a clock set
  /// back nor a machine that slept makes a wait longer.
  package func elapsed(since earlier: Moment) -> Duration {
    max(monotonic.elapsed(since: earlier.monotonic), wall - earlier.wall)
  }
}

/// A span that must pass first.
package struct Wait: Hashable, Sendable {
  package let from: Moment
  /// Never below zero.
  package let length: Duration

  package init(from: Moment, seconds: Double) {
    self.from = from
    length = .bounded(seconds: seconds)
  }

  /// Zero when it is over.
  package func remaining(at now: Moment) -> Duration {
    max(.zero, length - now.elapsed(since: from))
  }
}

/// How long to stay away after failures in a row: full jitter under a ceiling that doubles.
package struct BackOff: Hashable, Sendable {
  /// Seconds: the ceiling of the first pause.
  package var base: Double
  /// Seconds: no ceiling is higher.
  package var most: Double

  package init(base: Double, most: Double) {
    self.base = base
    self.most = most
  }

  /// Seconds.
  ///
  /// - Parameter count: failures so far, at least 1.
  package func ceiling(_ count: Int) -> Double {
    min(most, base * Double(UInt64(1) << UInt64(min(max(count, 1), 41) - 1)))
  }
}
