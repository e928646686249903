import TarnCore

/// Writes spans of time and moments for people.
enum Durations {
  /// Returns `0:12`, `12:34` or `1:02:03`.
  static func clock(_ seconds: Double) -> String {
    let seconds = Int(max(0, min(seconds, 3.6e6)))
    let minutes = seconds / 60
    let tail = two(seconds % 60)
    return minutes < 60 ? "\(minutes):\(tail)" : "\(minutes / 60):\(two(minutes % 60)):\(tail)"
  }

  /// Returns `1 hour`, `90 minutes`, `24 hours` or `7 days`, in the largest unit that fits at least twice, or
  /// exactly one hour or minute.
  static func span(_ seconds: Int64) -> String {
    let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute")]
    for (factor, name) in units where seconds >= 2 * factor || seconds == factor && factor <= 3600 {
      return Numbers.count(Int(seconds / factor), name)
    }
    return Numbers.count(Int(seconds), "second")
  }

  /// Returns `just now` or `2 hours ago`.
  static func ago(_ moment: Timestamp, now: Timestamp) -> String {
    let seconds = now.seconds - moment.seconds
    if seconds < -60 { return "in the future (is the clock right?)" }
    return seconds < 5 ? "just now" : "\(span(seconds)) ago"
  }

  /// The seconds between two moments.
  static func between(_ start: Timestamp, _ end: Timestamp) -> Double {
    Double(end.nanoseconds - start.nanoseconds) / 1e9
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
}
