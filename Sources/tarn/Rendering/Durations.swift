import TarnCore

/// Spans of time and moments as people write and read them.
enum Durations {
  /// `0:12`, `12:34`, `1:02:03`.
  static func clock(_ seconds: Double) -> String {
    let seconds = Int(max(0, min(seconds, 3.6e6)))
    let minutes = seconds / 60
    let tail = two(seconds % 60)
    return minutes < 60 ? "\(minutes):\(tail)" : "\(minutes / 60):\(two(minutes % 60)):\(tail)"
  }

  /// `1 hour`, `90 minutes`, `24 hours`, `7 days`: of the largest unit that fits twice.
  static func span(_ seconds: Int64) -> String {
    let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute")]
    for (factor, name) in units where seconds >= 2 * factor || seconds == factor && factor <= 3600 {
      return Numbers.count(Int(seconds / factor), name)
    }
    return Numbers.count(Int(seconds), "second")
  }

  /// `just now`, `2 hours ago`.
  static func ago(_ moment: Timestamp, now: Timestamp) -> String {
    let seconds = now.seconds - moment.seconds
    if seconds < -60 { return "in the future (is the clock right?)" }
    return seconds < 5 ? "just now" : "\(span(seconds)) ago"
  }

  /// Between two moments, in seconds.
  static func between(_ start: Timestamp, _ end: Timestamp) -> Double {
    Double(end.nanoseconds - start.nanoseconds) / 1e9
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
}
