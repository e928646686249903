import Glibc
package import TarnCore

/// The source of the time. Passed in, so that tests control the time.
package protocol Clock: Sendable {
  /// The wall time, which may jump either way.
  var time: Timestamp { get }
  func monotonic() -> Instant
  /// Returns a clock that continues through suspend to RAM (CLOCK_BOOTTIME).
  func boottime() -> Instant
}

extension Clock {
  package func boottime() -> Instant { monotonic() }
}

/// The machine's clocks.
package struct SystemClock: Clock {
  package init() {}

  package var time: Timestamp {
    var moment = timespec()
    clock_gettime(CLOCK_REALTIME, &moment)
    return Timestamp(nanoseconds: Int64(moment.tv_sec) &* 1_000_000_000 &+ Int64(moment.tv_nsec))
  }

  package func monotonic() -> Instant { .now }

  package func boottime() -> Instant {
    var moment = timespec()
    clock_gettime(CLOCK_BOOTTIME, &moment)
    return Instant(nanoseconds: UInt64(moment.tv_sec) &* 1_000_000_000 &+ UInt64(moment.tv_nsec))
  }
}

/// A clock for tests that moves only when told.
package final class ManualClock: Clock {
  private let state: Locked<(wall: Int64, monotonic: Instant)>

  package init(now: Int64 = 0, monotonic: Instant = Instant()) {
    state = Locked((now, monotonic))
  }

  package var time: Timestamp { Timestamp(nanoseconds: state.withLock { $0.wall }) }

  package func monotonic() -> Instant { state.withLock { $0.monotonic } }

  /// Advances both clocks.
  package func advance(_ duration: Duration) {
    state.withLock {
      $0.wall &+= duration.nanoseconds
      $0.monotonic += duration
    }
  }

  /// Sets the wall clock alone, as an administrator would.
  package func setWall(_ nanoseconds: Int64) {
    state.withLock { $0.wall = nanoseconds }
  }
}

extension Instant {
  /// The present time by the machine's monotonic clock.
  package static var now: Instant {
    var moment = timespec()
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return Instant(nanoseconds: UInt64(moment.tv_sec) &* 1_000_000_000 &+ UInt64(moment.tv_nsec))
  }
}
