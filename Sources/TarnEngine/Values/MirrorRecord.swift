import TarnCore

/// How a mirror stood as a whole after its last pass: outcome, and what was wanted and in place.
struct MirrorRecord {
  private static let kept: [LedgerFact] = [
    .format, .entriesWanted, .entriesCurrent, .entriesKept, .entriesUnlisted, .complete, .bytesWanted,
    .bytesCurrent, .sizesUnknown,
  ]
  /// Of these the ledger says itself what is left to do; after any other the mirror as a whole still waits for a pass.
  private static let settled = ["in-sync", "held", "partial", "undone"]

  private let facts: [(name: LedgerFact, value: String?)]

  init(_ ledger: any LedgerPort) throws(LedgerFailure) {
    var facts: [(name: LedgerFact, value: String?)] = []
    for name in Self.kept { facts.append((name, try ledger.fact(name))) }
    let outcome = try ledger.fact(.outcome)
    facts.append((.outcome, outcome.map { Self.settled.contains($0) ? $0 : "stopped" }))
    self.facts = facts
  }

  /// Writes it down again.
  var changes: [LedgerChange] { facts.map { .fact($0.name, $0.value) } }
}
