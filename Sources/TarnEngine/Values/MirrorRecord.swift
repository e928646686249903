import TarnCore

/// How a mirror stood as a whole before a pass that says nothing of all of it: outcome, and what was wanted and in place.
struct MirrorRecord {
  private static let kept: [LedgerFact] = [
    .format, .entriesWanted, .entriesKept, .entriesUnlisted, .complete, .bytesWanted, .sizesUnknown, .failure,
    .failureHint,
  ]

  private let facts: [(name: LedgerFact, value: String?)]
  /// nil where no pass has ended, or failed, so far.
  private let outcome: String?
  private let current: Int
  private let bytesCurrent: String?

  init(_ ledger: any LedgerPort) throws(LedgerFailure) {
    var facts: [(name: LedgerFact, value: String?)] = []
    for name in Self.kept { facts.append((name, try ledger.fact(name))) }
    self.facts = facts
    outcome = try ledger.fact(.outcome)
    current = try ledger.fact(.entriesCurrent).flatMap { Int($0) } ?? 0
    bytesCurrent = try ledger.fact(.bytesCurrent)
  }

  /// Writes it down again, without what the pass deleted. A mirror that waited for a pass to end, and one that misses files now,
  /// waits for one still.
  func changes(deleted: Int) -> [LedgerChange] {
    guard let outcome else { return [.fact(.outcome, "stopped")] }
    var changes: [LedgerChange] = facts.map { .fact($0.name, $0.value) }
    changes.append(.fact(.entriesCurrent, String(max(0, current - deleted))))
    // What is left is counted by the rows.
    changes.append(.fact(.bytesCurrent, deleted == 0 ? bytesCurrent : nil))
    let isWhole = outcome != "running" && deleted == 0
    changes.append(.fact(.outcome, isWhole || outcome == "failed" ? outcome : "stopped"))
    return changes
  }
}
