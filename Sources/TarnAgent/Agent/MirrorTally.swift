import TarnCore
import TarnSchedule

/// What an agent has counted of a mirror since it started, for the metrics.
struct MirrorTally: Sendable, Equatable {
  private(set) var passes: [RunSchedule.Outcome: Int] = [:]
  private(set) var errors: [MetricError: Int] = [:]
  /// Those that changed something.
  var repairs = 0
  var watchLosses = 0
  /// When a file of the folder was last changed.
  var lastChange: Timestamp?
  /// What the last pass took that did its work, or failed at it.
  private(set) var lastPass: Duration?

  /// - Parameter error: nil for what is none.
  mutating func count(_ error: MetricError?) {
    if let error { errors[error, default: 0] += 1 }
  }

  /// A pass has ended.
  mutating func ended(_ outcome: RunOutcome, after duration: Duration?) {
    passes[outcome.outcome, default: 0] += 1
    count(outcome.error)
    // One that was stopped, or never began, says nothing of how long a pass takes.
    if ![.cancelled, .busy].contains(outcome.outcome) { lastPass = duration ?? lastPass }
  }
}

/// When the text file of metrics is written: soon after something ended, and now and then.
struct MetricsPace: Sendable {
  /// Between two files while nothing ends, and at least.
  static let usual = Duration.seconds(60)
  static let least = Duration.seconds(5)

  private var last: Instant?
  private var hasNews = false
  private var isWriting = false

  /// A pass or a repair has ended.
  mutating func note() { hasNews = true }

  /// Zero when it is due. While one is written, the next one waits for its end.
  func wait(now: Instant) -> Duration {
    guard !isWriting else { return .longest }
    guard let last else { return .zero }
    return (last + (hasNews ? Self.least : Self.usual)).remaining(at: now)
  }

  /// - Returns: whether one is to be written now; `end` is called then.
  mutating func begin(now: Instant) -> Bool {
    guard wait(now: now) == .zero else { return false }
    (last, hasNews, isWriting) = (now, false, true)
    return true
  }

  mutating func end() { isWriting = false }
}

extension MetricsPage {
  /// What only the agent knows of a mirror.
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
