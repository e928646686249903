/// Measures bytes per second over about the last five seconds.
package struct RateMeter: Sendable {
  private var start: Instant
  private var bytes: UInt64 = 0
  private var before: Double = 0
  private static let window = Duration.seconds(3)

  package init(start: Instant) { self.start = start }

  package mutating func add(_ count: Int, now: Instant) {
    if now - start > Self.window {
      before = Double(bytes) / (now - start).seconds
      bytes = 0
      start = now
    }
    bytes += UInt64(count)
  }

  package func rate(now: Instant) -> UInt64 {
    let elapsed = now.elapsed(since: start)
    let current = Double(bytes) / max(elapsed, .milliseconds(50)).seconds
    guard before > 0, elapsed < Self.window else { return UInt64(current) }
    let share = elapsed / Self.window
    return UInt64(current * share + before * (1 - share))
  }
}
