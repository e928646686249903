import Glibc

/// What time it is. Passed in, so that tests own the time.
package protocol Clock: Sendable {
  /// Wall time: nanoseconds since 1970-01-01T00:00:00Z. May jump either way.
  func now() -> Int64
  /// Nanoseconds from an arbitrary start; never goes back, stands still while the machine is suspended.
  func monotonic() -> UInt64
}

/// The machine's clocks.
package struct SystemClock: Clock {
  package init() {}

  package func now() -> Int64 {
    var moment = timespec()
    clock_gettime(CLOCK_REALTIME, &moment)
    return Int64(moment.tv_sec) &* 1_000_000_000 &+ Int64(moment.tv_nsec)
  }

  package func monotonic() -> UInt64 {
    monotonicNanoseconds()
  }
}

/// A clock that moves only when told.
package final class ManualClock: Clock {
  private let state: Locked<(wall: Int64, monotonic: UInt64)>

  package init(now: Int64 = 0, monotonic: UInt64 = 0) {
    state = Locked((now, monotonic))
  }

  package func now() -> Int64 { state.withLock { $0.wall } }

  package func monotonic() -> UInt64 { state.withLock { $0.monotonic } }

  /// Both clocks go on.
  package func advance(nanoseconds: UInt64) {
    state.withLock {
      $0.wall &+= Int64(clamping: nanoseconds)
      $0.monotonic &+= nanoseconds
    }
  }

  package func advance(seconds: UInt64) {
    advance(nanoseconds: seconds &* 1_000_000_000)
  }

  /// The wall clock alone is set, as by an administrator.
  package func setWall(_ nanoseconds: Int64) {
    state.withLock { $0.wall = nanoseconds }
  }
}

func monotonicNanoseconds() -> UInt64 {
  var moment = timespec()
  clock_gettime(CLOCK_MONOTONIC, &moment)
  return UInt64(moment.tv_sec) &* 1_000_000_000 &+ UInt64(moment.tv_nsec)
}
