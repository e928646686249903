import TarnCore
import TarnSchedule

/// What an agent has counted of a mirror since it started, for the metrics.
struct MirrorTally: Sendable, Equatable {
  private(set) var passes: [RunSchedule.Outcome: Int] = [:]
  private(set) var errors: [MetricError: Int] = [:]
  /// The number of repairs that changed something.
  var repairs = 0
  var watchLosses = 0
  /// The time of the last change to a file of the folder.
  var lastChange: Timestamp?
  /// The duration of the last pass that did its work or failed at it.
  private(set) var lastPass: Duration?

  /// - Parameter error: the kind of error; `nil` when there was none.
  mutating func count(_ error: MetricError?) {
    if let error { errors[error, default: 0] += 1 }
  }

  /// Counts a pass that has ended.
  mutating func ended(_ outcome: RunOutcome, after duration: Duration?) {
    passes[outcome.outcome, default: 0] += 1
    count(outcome.error)
    // A pass that was stopped or never began tells nothing of how long a pass takes.
    if ![.cancelled, .busy].contains(outcome.outcome) { lastPass = duration ?? lastPass }
  }
}

/// Decides when the text file of metrics is written: soon after something ended, and once a minute.
struct MetricsPace: Sendable {
  /// The time between two files while nothing ends, and the shortest time between two.
  static let usual = Duration.seconds(60)
  static let least = Duration.seconds(5)

  private var last: Instant?
  private var hasNews = false
  private var isWriting = false

  /// Notes that a pass or a repair has ended.
  mutating func note() { hasNews = true }

  /// Makes the next file due now, or as soon as the present one is written.
  mutating func renew() { last = nil }

  /// The time until the next file is due, zero when it is. While one is being written, there is none.
  func wait(now: Instant) -> Duration {
    guard !isWriting else { return .longest }
    guard let last else { return .zero }
    return (last + (hasNews ? Self.least : Self.usual)).remaining(at: now)
  }

  /// - Returns: whether a file is to be written now; the caller then calls `end`.
  mutating func begin(now: Instant) -> Bool {
    guard wait(now: now) == .zero else { return false }
    (last, hasNews, isWriting) = (now, false, true)
    return true
  }

  mutating func end() { isWriting = false }
}

extension MetricsPage {
  /// Adds what only the agent knows of a mirror.
  mutating func add(_ tally: MirrorTally, _ name: String) {
    for result in RunSchedule.Outcome.allCases {
      set(.passes, tally.passes[result] ?? 0, name, result.rawValue)
    }
    for kind in MetricError.allCases { set(.errors, tally.errors[kind] ?? 0, name, kind.rawValue) }
    set(.repairs, tally.repairs, name)
    set(.watchLosses, tally.watchLosses, name)
    set(.lastChange, tally.lastChange, name)
    if let duration = tally.lastPass { set(.passDuration, duration, name) }
  }
}
