import TarnCore

/// A rate limit over all transfers of one or several clients: a token bucket that may go into debt by one buffer.
///
/// libcurl's own MAX_RECV_SPEED works for each transfer alone, so that idle transfers would waste their shares. Here all transfers
/// take from one bucket. A transfer that finds it empty pauses until the bucket is refilled.
struct RateBucket {
  /// Bytes per second, at least 1.
  let rate: UInt64
  private var tokens: Double
  private var filledAt: Instant

  init(rate: UInt64, now: Instant) {
    (self.rate, tokens, filledAt) = (max(1, rate), 0, now)
  }

  var isOpen: Bool { tokens > 0 }

  /// Refills the bucket. At most a tenth of a second's bytes is saved, so that idle time is not made up for.
  mutating func refill(now: Instant) {
    let seconds = now.elapsed(since: filledAt).seconds
    filledAt = now
    tokens = min(tokens + seconds * Double(rate), max(1, Double(rate) / 10))
  }

  mutating func spend(_ bytes: Int) { tokens -= Double(bytes) }

  /// Milliseconds until the bucket opens; 0 when it is open.
  var millisecondsToOpen: Int32 {
    guard tokens <= 0 else { return 0 }
    return Int32(min(1000, max(1, (1 - tokens) / Double(rate) * 1000 + 1)))
  }

  /// Returns the buffer size for an even flow: a twentieth of a second, within libcurl's bounds.
  ///
  /// - Parameter rates: all rates that apply; `nil` for no limit.
  static func bufferSize(rates: [UInt64?]) -> Int {
    guard let rate = rates.compactMap({ $0 }).min() else { return CurlLimits.buffer }
    return Int(min(UInt64(CurlLimits.buffer), max(1024, rate / 20)))
  }
}

/// Measures the bytes per second over the last few seconds.
struct WindowedRate {
  /// In seconds.
  private static let window: Int64 = 4
  /// The bytes of one second each. The last slot is the current second.
  private var slots: [(second: Int64, bytes: UInt64)] = []

  /// The number of a point's second on the clock.
  private static func second(_ now: Instant) -> Int64 { now.elapsed(since: Instant()).components.seconds }

  mutating func add(_ bytes: Int, now: Instant) {
    let second = Self.second(now)
    slots.removeAll { $0.second + Self.window < second }
    if slots.last?.second != second { slots.append((second, 0)) }
    slots[slots.count - 1].bytes.addSaturated(UInt64(bytes))
  }

  /// Returns the bytes per second over the last whole seconds, without the current one.
  func bytesPerSecond(now: Instant) -> UInt64 {
    let second = Self.second(now)
    let whole = slots.filter { $0.second < second && $0.second + Self.window >= second }
    return whole.reduce(0) { $0.addingSaturated($1.bytes) } / UInt64(Self.window)
  }
}
