import TarnCore

/// Actions for which memory had no room when their turn came: only their places in the plan are kept, and the plan is
/// read again.
struct Leftovers {
  /// Not begun: too many waited for duplicates.
  var postponed: Set<Int> = []
  /// Entries whose sources all failed, and why.
  private var exhausted: [Int: UInt32] = [:]
  /// The plan is being read again.
  private var walk: Walk?
  /// So it was, for the exhausted ones: it is not read again in this phase.
  private var isSettled = false

  /// Reasons that were told, each once: a source's URL is not part of them.
  private var reasons: [Reason] = []
  private var numbers: [Reason: UInt32] = [:]
  private static let mostReasons = 1000

  private struct Reason: Hashable {
    var code: String
    var source: Int
    /// nil: beyond the bound.
    var text: String?
  }

  private struct Walk {
    var actions: any ActionCursor
    var position = 0
    /// Those of the wanted that are still ahead.
    var ahead: Int
    var isOfExhausted: Bool
  }

  var isWalking: Bool { walk != nil }

  mutating func beginPhase() { (walk, isSettled) = (nil, false) }

  /// An action that is come back to.
  typealias Comeback = (ordinal: Int, action: Action, isExhausted: Bool)

  var exhaustedCount: Int { exhausted.count }

  /// Remembers an entry whose sources all failed.
  mutating func setAside(_ job: Job) {
    guard let failure = job.failure else { return }
    let message = job.attempts.troubles.last?.message ?? failure.message
    let prefix = "\(Printable.escape(job.attempts.url)): "
    let text = message.hasPrefix(prefix) ? String(message.dropFirst(prefix.count)) : message
    var reason = Reason(code: failure.code, source: job.attempts.source, text: text)
    if numbers[reason] == nil, reasons.count >= Self.mostReasons { reason.text = nil }
    if numbers[reason] == nil {
      numbers[reason] = UInt32(reasons.count)
      reasons.append(reason)
    }
    exhausted[job.ordinal] = numbers[reason]
  }

  func failure(_ ordinal: Int, _ entry: Entry) -> Attempts.Trouble? {
    guard let reason = exhausted[ordinal].map({ reasons[Int($0)] }) else { return nil }
    let source = entry.sources[min(reason.source, entry.sources.count - 1)]
    return Attempts.Trouble(
      source: reason.source, code: reason.code,
      message: "\(Printable.escape(source.url)): \(reason.text ?? "failed")")
  }

  mutating func drop(_ ordinal: Int) { exhausted[ordinal] = nil }

  /// Begins to read the plan again, for the postponed before the exhausted.
  ///
  /// - Returns: false when there is nothing to come back to.
  mutating func begin(_ actions: () throws -> any ActionCursor) rethrows -> Bool {
    guard walk == nil, !isSettled else { return false }
    let ahead = postponed.isEmpty ? exhausted.count : postponed.count
    guard ahead > 0 else { return false }
    walk = Walk(actions: try actions(), ahead: ahead, isOfExhausted: postponed.isEmpty)
    return true
  }

  enum Step {
    case comeback(Comeback)
    /// Every 1,024 actions of the plan that are passed over: the caller goes on, or ends the reading.
    case pause
    case over
  }

  /// Reads on to the next action that is come back to.
  mutating func next() throws -> Step {
    while var walk = self.walk, walk.ahead > 0, let action = try walk.actions.next() {
      let ordinal = walk.position
      walk.position += 1
      let isWanted = walk.isOfExhausted ? exhausted[ordinal] != nil : postponed.remove(ordinal) != nil
      if isWanted { walk.ahead -= 1 }
      self.walk = walk
      if isWanted { return .comeback((ordinal, action, walk.isOfExhausted)) }
      if walk.position & 1023 == 0 { return .pause }
    }
    end()
    return .over
  }

  /// Reads the plan no further.
  mutating func end() {
    guard let walk = walk.take() else { return }
    if !walk.isOfExhausted { postponed = [] }
    isSettled = walk.isOfExhausted
  }
}
