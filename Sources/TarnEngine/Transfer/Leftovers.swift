import TarnCore

/// Actions for which memory had no room when their turn came: only their places in the plan are kept, and the plan is
/// read again.
struct Leftovers {
  /// Not begun: too many waited for duplicates.
  var untried: Set<Int> = []
  /// Entries whose sources all failed, and why.
  private var forsaken: [Int: UInt32] = [:]
  /// How far it has come in this phase.
  private var stage = Stage.waiting

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

  private enum Stage {
    /// The plan is not being read again.
    case waiting
    /// It is being read again.
    case walking(Walk)
    /// So it was, for the forsaken ones: it is not read again in this phase.
    case settled
  }

  private struct Walk {
    var actions: any ActionCursor
    var position = 0
    /// Those of the wanted that are still ahead.
    var ahead: Int
    var isOfForsaken: Bool
  }

  /// The plan is being read again.
  var isWalking: Bool { if case .walking = stage { true } else { false } }

  mutating func beginPhase() { stage = .waiting }

  /// An action that is come back to.
  struct Comeback {
    var ordinal: Int
    var action: Action
    var isForsaken: Bool
  }

  var forsakenCount: Int { forsaken.count }

  /// Remembers an entry whose sources all failed.
  mutating func forsake(_ job: Job) {
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
    forsaken[job.ordinal] = numbers[reason]
  }

  /// Why the entry failed.
  func failure(_ ordinal: Int, _ entry: Entry) -> Attempts.Trouble? {
    guard let reason = forsaken[ordinal].map({ reasons[Int($0)] }) else { return nil }
    let source = entry.sources[min(reason.source, entry.sources.count - 1)]
    return Attempts.Trouble(
      source: reason.source, code: reason.code,
      message: "\(Printable.escape(source.url)): \(reason.text ?? "failed")",
      isTransient: false, retryAfter: nil)
  }

  mutating func drop(_ ordinal: Int) { forsaken[ordinal] = nil }

  /// Begins to read the plan again, for the untried before the forsaken.
  ///
  /// - Returns: false when there is nothing to come back to.
  mutating func begin(_ actions: () throws -> any ActionCursor) rethrows -> Bool {
    guard case .waiting = stage else { return false }
    let ahead = untried.isEmpty ? forsaken.count : untried.count
    guard ahead > 0 else { return false }
    stage = .walking(Walk(actions: try actions(), ahead: ahead, isOfForsaken: untried.isEmpty))
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
    guard case .walking(var walk) = stage else { return .over }
    while walk.ahead > 0, let action = try walk.actions.next() {
      let ordinal = walk.position
      walk.position += 1
      guard walk.isOfForsaken ? forsaken[ordinal] != nil : untried.remove(ordinal) != nil else {
        guard walk.position & 1023 == 0 else { continue }
        stage = .walking(walk)
        return .pause
      }
      walk.ahead -= 1
      stage = .walking(walk)
      return .comeback(Comeback(ordinal: ordinal, action: action, isForsaken: walk.isOfForsaken))
    }
    stage = .walking(walk)
    end()
    return .over
  }

  /// Reads the plan no further.
  mutating func end() {
    guard case .walking(let walk) = stage else { return }
    if !walk.isOfForsaken { untried = [] }
    stage = walk.isOfForsaken ? .settled : .waiting
  }
}
