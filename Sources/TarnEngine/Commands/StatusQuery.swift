package import TarnCore

/// Answers from the ledger, also beside a running pass. Reads only; any thread.
package struct StatusQuery {
  let ledger: any LedgerPort

  package init(ledger: any LedgerPort) {
    self.ledger = ledger
  }

  /// - Parameters:
  ///   - holder: the process that holds the folder's lock; nil when nobody does.
  ///   - problemLimit: how many problems to list.
  package func document(
    name: String, folder: String, holder: Int32?, problemLimit: Int = 20
  ) throws(LedgerFailure) -> StatusDocument {
    var document = StatusDocument(
      name: name, feed: try ledger.fact("feed") ?? "", folder: folder, state: "idle")
    document.format = try ledger.fact("format")
    document.lastSuccess = try ledger.fact("success")
    document.lastAttempt = try ledger.fact("attempt")
    document.verifiedAt = try ledger.fact("verified")
    document.upstreamChangedAt = try ledger.fact("upstream-changed")
    document.lastFailure = try ledger.fact("failure")
    document.process = holder
    if let ended = try ledger.fact("repaired"), let changes = try ledger.fact("repair") {
      document.lastRepair = StatusDocument.LastRepair(ended: ended, changes: changes)
    }
    try fillCounts(&document)
    try fillProblems(&document, limit: problemLimit)
    if let held = try ledger.held() {
      document.held = StatusDocument.Held(plan: held.id, deletions: held.count, since: held.when.rfc3339)
      document.entries.held = held.count
    }
    (document.trashFiles, document.trashBytes) = try ledger.trashTotals()
    document.state = try state(document)
    if holder != nil { document.transfers = try ledger.activity().map(StatusDocument.Transfer.init) }
    return document
  }

  private func state(_ document: StatusDocument) throws(LedgerFailure) -> String {
    if document.process != nil { return try ledger.fact("phase") ?? "reading" }
    if document.lastFailure != nil { return "failing" }
    let outcome = try ledger.fact("outcome")
    // It was killed, or asked to stop.
    if outcome == "running" || outcome == "stopped" { return "interrupted" }
    if document.held != nil { return "held" }
    // After a pass that ended in sync only a verification finds any.
    return outcome == "partial" || !document.problems.isEmpty ? "failing" : "idle"
  }

  private func fillCounts(_ document: inout StatusDocument) throws(LedgerFailure) {
    let wanted = try ledger.fact("entries-wanted").flatMap { Int($0) } ?? 0
    let counts = try ledger.problemCounts()
    document.entries.wanted = wanted
    document.entries.failed = counts[.failed] ?? 0
    document.entries.refused = counts[.refused] ?? 0
    document.entries.conflict = counts[.conflict] ?? 0
    document.entries.current = try ledger.fact("entries-current").flatMap { Int($0) } ?? 0
    if try ledger.fact("outcome") == "in-sync" { document.entries.current -= document.entries.failed }
    document.entries.kept = try ledger.fact("entries-kept").flatMap { Int($0) } ?? 0
    document.entries.pending = max(
      0,
      wanted - document.entries.current - document.entries.failed - document.entries.refused
        - document.entries.conflict - document.entries.kept)
    try fillBytes(&document.bytes)
  }

  private func fillBytes(_ bytes: inout StatusDocument.Bytes) throws(LedgerFailure) {
    let known = try ledger.fact("bytes-wanted").flatMap { UInt64($0) } ?? 0
    bytes.unknownSizes = try ledger.fact("sizes-unknown").flatMap { Int($0) } ?? 0
    // A ledger of an earlier Tarn does not say; its next pass does.
    let recorded = try ledger.fact("bytes-current").flatMap { UInt64($0) }
    bytes.current = if let recorded { recorded } else { try ledger.rowBytes() }
    let pending = known - min(known, bytes.current)
    bytes.wanted = known == 0 && bytes.unknownSizes > 0 ? nil : known
    bytes.pending = pending == 0 && bytes.unknownSizes > 0 ? nil : pending
  }

  private func fillProblems(_ document: inout StatusDocument, limit: Int) throws(LedgerFailure) {
    let counts = try ledger.problemCounts()
    document.problems = try ledger.problems(limit: limit).map(StatusDocument.ProblemLine.init)
    document.moreProblems = max(0, counts.values.reduce(0, +) - document.problems.count)
  }
}

extension StatusDocument.Transfer {
  package init(_ activity: Activity) {
    self.init(
      path: activity.path.printable, received: activity.received, total: activity.total, rate: activity.rate,
      source: Printable.escape(activity.source))
  }
}

extension StatusDocument.ProblemLine {
  package init(_ problem: Problem) {
    let path = Printable.escape(problem.name)
    self.init(
      path: path, kind: problem.kind.rawValue, code: problem.code, message: problem.message,
      since: problem.since.rfc3339, attempts: problem.attempts)
    pathBytes = path.utf8.elementsEqual(problem.name) ? nil : Base64.encode(problem.name)
  }
}
