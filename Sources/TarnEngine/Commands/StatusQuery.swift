package import TarnCore

/// Answers from the ledger, also beside a running pass. Only reads; thread-safe.
package struct StatusQuery {
  let ledger: any LedgerPort

  package init(ledger: any LedgerPort) {
    self.ledger = ledger
  }

  /// - Parameters:
  ///   - holder: the process that holds the folder's lock; `nil` when none does.
  ///   - problemLimit: the most problems to list.
  package func document(
    name: String, folder: String, holder: Int32?, problemLimit: Int = 20
  ) throws(LedgerFailure) -> StatusDocument {
    var document = StatusDocument(
      name: name, feed: try ledger.fact(.feed) ?? "", folder: folder, state: "idle")
    document.format = try ledger.fact(.format)
    document.lastSuccess = try ledger.fact(.success)
    document.lastAttempt = try ledger.fact(.attempt)
    document.verifiedAt = try ledger.fact(.verified)
    document.upstreamChangedAt = try ledger.fact(.upstreamChanged)
    document.lastFailure = try ledger.fact(.failure)
    if document.lastFailure != nil { document.hint = try ledger.fact(.failureHint) }
    document.process = holder
    if let ended = try ledger.fact(.repaired), let changes = try ledger.fact(.repair) {
      document.lastRepair = StatusDocument.LastRepair(ended: ended, changes: changes)
    }
    let since = try failedSince()
    let unnamed = try UnnamedProblems(ledger, failedSince: since)
    let counts = try ledger.problemCounts(failedSince: since).merging(unnamed.counts, uniquingKeysWith: +)
    try fillCounts(&document, counts)
    document.problems = try ledger.problems(limit: problemLimit, failedSince: since).map(
      StatusDocument.ProblemLine.init)
    document.moreProblems = max(0, counts.values.reduce(0, +) - document.problems.count)
    if let held = try ledger.held() {
      document.held = StatusDocument.Held(
        plan: held.id, deletions: held.count, since: held.when.rfc3339,
        reason: held.reason.isEmpty ? nil : held.reason)
      document.entries.held = held.count
    }
    (document.trashFiles, document.trashBytes) = try ledger.trashTotals()
    document.state = try state(document)
    if let missing = try ledger.fact(.repairPending).flatMap({ RepairPending($0) }) {
      document.add(missing, counted: try ledger.fact(.entriesCurrent).flatMap { Int($0) } ?? 0)
      if holder == nil, document.state == "idle" { document.state = "interrupted" }
    }
    if holder != nil {
      // An earlier Tarn does not record these.
      let waiting = try ledger.fact(.transfersWaiting).flatMap { Int($0) } ?? 0
      let unlisted = try ledger.fact(.transfersUnlisted).flatMap { Int($0) } ?? 0
      document.feedTransfer = try ledger.fact(.feedTransfer).flatMap { .init(encoded: $0) }
      document.progress = try ledger.fact(.progress).flatMap { .init(encoded: $0) }
      document.show(try ledger.activity(), waiting: waiting, unlisted: unlisted)
    }
    return document
  }

  private func state(_ document: StatusDocument) throws(LedgerFailure) -> String {
    if document.process != nil { return try ledger.fact(.phase) ?? "reading" }
    if document.lastFailure != nil { return "failing" }
    let outcome = try ledger.fact(.outcome)
    // The pass was killed, or asked to stop.
    if outcome == "running" || outcome == "stopped" { return "interrupted" }
    if document.held != nil { return "held" }
    if !document.problems.isEmpty || document.moreProblems > 0 { return "failing" }
    // Repairs may since have settled what kept the last pass from being in sync, but not deletions at which an approval failed.
    return outcome == "undone" || outcome == "partial" && document.entries.pending > 0 ? "failing" : "idle"
  }

  /// Returns the time from which failures count. While a pass runs, and after one that was killed, earlier failures are being
  /// retried: they are pending until they fail anew. A pass that was stopped has recorded its problems.
  ///
  /// - Returns: the begin of that pass; `nil` when the last one came to an end.
  func failedSince() throws(LedgerFailure) -> Timestamp? {
    guard try ledger.fact(.outcome) == "running" else { return nil }
    // An earlier Tarn recorded whole seconds only.
    if let began = try ledger.fact(.began).flatMap({ Int64($0) }) { return Timestamp(nanoseconds: began) }
    return try ledger.fact(.attempt).flatMap { Timestamp(rfc3339: $0) }
  }

  private func fillCounts(
    _ document: inout StatusDocument, _ counts: [Problem.Kind: Int]
  ) throws(LedgerFailure) {
    let wanted = try ledger.fact(.entriesWanted).flatMap { Int($0) } ?? 0
    document.entries.wanted = wanted
    document.entries.failed = counts[.failed] ?? 0
    document.entries.refused = counts[.refused] ?? 0
    document.entries.conflict = counts[.conflict] ?? 0
    document.entries.current = try ledger.fact(.entriesCurrent).flatMap { Int($0) } ?? 0
    // These were found since by a verification, or by a repair that could not fix them. A repair of everything has already excluded
    // them.
    if try ledger.fact(.outcome) == "in-sync" {
      let missed = try ledger.failedRowCount()
      document.entries.current = min(document.entries.current, max(0, wanted - missed))
    }
    document.entries.excluded = try ledger.fact(.entriesExcluded).flatMap { Int($0) } ?? 0
    document.entries.kept = try ledger.fact(.entriesKept).flatMap { Int($0) } ?? 0
    document.entries.countPending()
    try fillBytes(&document.bytes, missing: wanted - min(wanted, document.entries.current))
    // This includes files that the last pass did not bring.
    if document.entries.current == wanted, wanted > 0 {
      (document.bytes.wanted, document.bytes.unknownSizes) = (document.bytes.current, 0)
    }
    if document.entries.pending + document.entries.failed + document.entries.conflict == 0 {
      document.bytes.pending = 0
    }
  }

  /// - Parameter missing: the entries that are not in place. The sizes of the others are known, whatever the plan of a running pass
  ///   knew.
  private func fillBytes(_ bytes: inout StatusDocument.Bytes, missing: Int) throws(LedgerFailure) {
    let known = try ledger.fact(.bytesWanted).flatMap { UInt64($0) } ?? 0
    bytes.unknownSizes = min(missing, try ledger.fact(.sizesUnknown).flatMap { Int($0) } ?? 0)
    // The ledger of an earlier Tarn lacks this until its next pass.
    let recorded = try ledger.fact(.bytesCurrent).flatMap { UInt64($0) }
    bytes.current = if let recorded { recorded } else { try ledger.rowBytes() }
    let pending = known - min(known, bytes.current)
    bytes.wanted = known == 0 && bytes.unknownSizes > 0 ? nil : known
    bytes.pending = pending == 0 && bytes.unknownSizes > 0 ? nil : pending
  }
}

extension StatusDocument {
  /// Counts what repairs bring back as missing, besides what was missing by the last count.
  ///
  /// - Parameter counted: the entries in place by the last count, which includes what is brought back.
  fileprivate mutating func add(_ missing: RepairPending, counted: Int) {
    let wanted = bytes.wanted ?? 0
    entries.add(missing: missing.files + max(0, entries.wanted - counted))
    bytes.add(missing: missing.bytes.addingSaturated(wanted - min(wanted, bytes.current)))
  }

  /// The most waiting transfers that are listed.
  static let mostWaiting = 20

  /// - Parameters:
  ///   - waiting: the number of activities at the end of the list that wait for a place.
  ///   - unlisted: the number of further transfers that wait.
  package mutating func show(_ activities: [Activity], waiting: Int, unlisted: Int = 0) {
    let listed = min(waiting, Self.mostWaiting)
    transfers = Self.transfers(activities.dropLast(waiting - listed), waiting: listed)
    waitingTransfers = waiting + unlisted
  }

  /// - Parameter waiting: the number of activities at the end of the list that wait for a place.
  package static func transfers(_ activities: [Activity], waiting: Int) -> [Transfer] {
    activities.enumerated().map { index, activity in
      Transfer(
        path: activity.path.printable, received: activity.received, total: activity.total,
        rate: activity.rate,
        source: Printable.escape(activity.source), isWaiting: index >= activities.count - waiting)
    }
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
