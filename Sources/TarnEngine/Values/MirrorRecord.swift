import TarnCore

/// The state of a whole mirror before a pass that does not concern all of it: outcome, and what was wanted and in place.
struct MirrorRecord {
  private static let kept: [LedgerFact] = [
    .format, .entriesWanted, .entriesCurrent, .entriesKept, .entriesUnlisted, .entriesExcluded, .complete,
    .bytesWanted, .bytesCurrent,
    .sizesUnknown, .failure, .failureHint,
  ]

  private let facts: [(name: LedgerFact, value: String?)]
  /// The outcome; `nil` when no pass has ended or failed so far.
  private let outcome: String?

  init(_ ledger: any LedgerPort) throws(LedgerFailure) {
    facts = try Self.kept.map { name throws(LedgerFailure) in (name, try ledger.fact(name)) }
    outcome = try ledger.fact(.outcome)
  }

  /// The changes that restore the state. A mirror that waited for a pass to end still does, and one that was never synced still
  /// waits for its first.
  var changes: [LedgerChange] {
    guard let outcome else { return [.fact(.outcome, nil)] }
    return facts.map { .fact($0.name, $0.value) }
      + [.fact(.outcome, outcome == "running" ? "stopped" : outcome)]
  }
}
