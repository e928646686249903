/// Now, by both clocks.
package struct Moment: Hashable, Sendable {
  /// What the clock on the wall shows; may be set either way at any time.
  package var wall: Timestamp
  /// Nanoseconds from an arbitrary start; never goes back, stands still while the machine sleeps.
  package var monotonic: UInt64

  package init(wall: Timestamp, monotonic: UInt64) {
    self.wall = wall
    self.monotonic = monotonic
  }

  /// Nanoseconds since an earlier moment of this process, at least 0: the larger of what the two clocks say, so that
  /// neither a clock set back nor a machine that slept makes a wait longer.
  package func elapsed(since earlier: Moment) -> Int64 {
    let monotonic = Int64(clamping: monotonic >= earlier.monotonic ? monotonic - earlier.monotonic : 0)
    let (wall, overflow) = wall.nanoseconds.subtractingReportingOverflow(earlier.wall.nanoseconds)
    return max(monotonic, overflow ? (self.wall > earlier.wall ? .max : 0) : wall, 0)
  }
}

/// A span that must pass first.
package struct Wait: Hashable, Sendable {
  package let from: Moment
  /// Nanoseconds, at least 0.
  package let length: Int64

  package init(from: Moment, seconds: Double) {
    self.from = from
    length = Int64(max(0, min(seconds, 1e9)) * 1e9)
  }

  /// Nanoseconds; 0 when it is over.
  package func remaining(at now: Moment) -> Int64 {
    max(0, length - min(length, now.elapsed(since: from)))
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
