/// The wait of a task after failures.
enum TaskBackOff {
  /// The seconds to wait, doubled with each failure, an hour at most. Half of it is random, so that tasks do
  /// not all come at once.
  static func seconds(after attempts: Int, random: Double) -> Int64 {
    let most = min(3600, 2 << min(max(attempts, 1), 12))
    return max(1, Int64(Double(most) * (0.5 + random / 2)))
  }
}
