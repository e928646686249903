import TarnCore

/// The actions that memory had no room for in their turn. Their positions in the plan are kept, and the plan is read again.
struct DeferredActions {
  /// The positions of actions that were not begun because too many waited for duplicates.
  var postponed: Set<Int> = []
  /// The entries whose sources all failed, with the numbers of the reasons.
  private var exhausted: [Int: UInt32] = [:]
  /// The repeated reading of the plan, while it goes on.
  private var walk: Walk?
  /// True when the plan was read again for the exhausted ones. It is not read again in this phase.
  private var isSettled = false

  /// The distinct failure reasons, without the source's URL.
  private var reasons: [Reason] = []
  private var numbers: [Reason: UInt32] = [:]
  private static let mostReasons = 1000

  private struct Reason: Hashable {
    var code: String
    var source: Int
    /// The text; `nil` beyond the limit of reasons.
    var text: String?
  }

  private struct Walk {
    var actions: any ActionCursor
    var position = 0
    /// The number of wanted actions that are still ahead.
    var ahead: Int
    var isOfExhausted: Bool
  }

  var isWalking: Bool { walk != nil }

  mutating func beginPhase() { (walk, isSettled) = (nil, false) }

  /// A deferred action that is returned.
  typealias Comeback = (ordinal: Int, action: Action, isExhausted: Bool)

  var exhaustedCount: Int { exhausted.count }

  /// Stores an entry whose sources all failed.
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

  /// Begins to read the plan again, first for the postponed actions, then for the exhausted ones.
  ///
  /// - Returns: false when there is nothing to return to.
  mutating func begin(_ actions: () throws -> any ActionCursor) rethrows -> Bool {
    guard walk == nil, !isSettled else { return false }
    let ahead = postponed.isEmpty ? exhausted.count : postponed.count
    guard ahead > 0 else { return false }
    walk = Walk(actions: try actions(), ahead: ahead, isOfExhausted: postponed.isEmpty)
    return true
  }

  enum Step {
    case comeback(Comeback)
    /// Comes after every 1,024 actions that are passed over. The caller continues or ends the reading.
    case pause
    case over
  }

  /// Reads on to the next deferred action.
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

  /// Ends the reading of the plan.
  mutating func end() {
    guard let walk = walk.take() else { return }
    if !walk.isOfExhausted { postponed = [] }
    isSettled = walk.isOfExhausted
  }
}
