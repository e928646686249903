import TarnCore

/// Actions for which memory had no room when their turn came: only their places in the plan are kept, and the plan is
/// read again. On the pass's thread.
struct Leftovers {
  /// Not begun: too many waited for twins.
  var untried: Set<Int> = []
  /// Entries whose sources all failed, and why.
  private var forsaken: [Int: UInt32] = [:]
  /// The plan is being read again.
  var walk: Walk?
  /// In this phase the forsaken ones were come back to.
  var isSettled = false

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

  struct Walk {
    var actions: any ActionCursor
    var position = 0
    /// Those of the wanted that are still ahead.
    var ahead: Int
    var isOfForsaken: Bool
  }

  var forsakenCount: Int { forsaken.count }

  /// Remembers an entry whose sources all failed.
  mutating func forsake(_ job: Job, code: String, message: String) {
    let prefix = "\(Printable.escape(job.url)): "
    let text = message.hasPrefix(prefix) ? String(message.dropFirst(prefix.count)) : message
    var reason = Reason(code: code, source: job.source, text: text)
    if numbers[reason] == nil, reasons.count >= Self.mostReasons { reason.text = nil }
    if numbers[reason] == nil {
      numbers[reason] = UInt32(reasons.count)
      reasons.append(reason)
    }
    forsaken[job.ordinal] = numbers[reason]
  }

  /// Why the entry failed.
  func failure(_ ordinal: Int, _ entry: Entry) -> Job.Trouble? {
    guard let reason = forsaken[ordinal].map({ reasons[Int($0)] }) else { return nil }
    let source = entry.sources[min(reason.source, entry.sources.count - 1)]
    return Job.Trouble(
      code: reason.code, message: "\(Printable.escape(source.url)): \(reason.text ?? "failed")",
      isTransient: false, retryAfter: nil)
  }

  mutating func drop(_ ordinal: Int) { forsaken[ordinal] = nil }

  /// Begins to read the plan again, for the untried before the forsaken.
  ///
  /// - Returns: false when there is nothing to come back to.
  mutating func begin(_ actions: () throws -> any ActionCursor) rethrows -> Bool {
    guard !untried.isEmpty || (!forsaken.isEmpty && !isSettled) else { return false }
    let isOfForsaken = untried.isEmpty
    if isOfForsaken { isSettled = true }
    walk = Walk(
      actions: try actions(), ahead: isOfForsaken ? forsaken.count : untried.count,
      isOfForsaken: isOfForsaken)
    return true
  }

  /// The next action that is come back to.
  ///
  /// - Parameter mayGoOn: asked every 1,024 actions of the plan; false ends the reading.
  mutating func next(while mayGoOn: () -> Bool) throws -> (ordinal: Int, action: Action)? {
    guard var walk else { return nil }
    while walk.ahead > 0, let action = try walk.actions.next() {
      let ordinal = walk.position
      walk.position += 1
      guard walk.isOfForsaken ? forsaken[ordinal] != nil : untried.remove(ordinal) != nil else {
        if walk.position & 1023 == 0, !mayGoOn() { break }
        continue
      }
      walk.ahead -= 1
      self.walk = walk
      return (ordinal, action)
    }
    if !walk.isOfForsaken { untried = [] }
    self.walk = nil
    return nil
  }
}
