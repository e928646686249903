package import TarnCore
import TarnRuntime

/// The result of a repair.
package struct RepairReport: Sendable {
  package var report: PassReport
  /// True when something is not as the feed wants it, or only the feed can tell: a pass has to follow.
  package var needsPass: Bool
  /// True when that pass has to ask for the version of a file that is back. It would be in place if the last pass had asked.
  package var wantsVersion = false
  /// True when it did something, or found a problem that was not reported before.
  package var hasNews = true
  /// True when what is in place differs from the last pass's count; a repair of everything counts again.
  package var wantsCount = false
  /// True when the journal exists that its events belong in.
  package var hasJournal = true
  /// True when there is no catalog for these settings.
  package var hasNoCatalog = false
  /// True when there was a catalog, for other settings or lost since.
  package var hadCatalog = false
  /// True when another manifest came meanwhile, so that its regions must be looked at again.
  package var isSuperseded = false
  /// The time that reading the folder took, without hashing and transfers.
  package var lookTime = Duration.zero
}

/// Brings parts of the folder into line with the last accepted manifest, without asking the feed. It deletes nothing. It leaves
/// files alone that are as recorded, because only the feed says whether they are still wanted.
extension Pass {
  /// Repairs regions. The caller holds the folder's lock. On return, everything that the report calls done is durable.
  ///
  /// - Parameters:
  ///   - regions: the regions that may not be as recorded; none lies in another.
  ///   - events: events that the journal gets, too.
  ///   - onlyCounts: true to only count what is in place. Failed entries are then not retried.
  ///   - looked: called with the time that reading the folder took, before anything is brought.
  package func repair(
    _ regions: [Region], folder: any FolderPort, events: [Event] = [], onlyCounts: Bool = false,
    looked: (Duration) -> Void = { _ in }
  ) throws(PassFailure) -> RepairReport {
    try PassFailure.translating(feed: request.feed.text) {
      guard try folder.isIntact() else { throw Self.replaced(folder: request.folderName) }
      let started = ports.now
      _ = try recover(folder)
      ports.engine.beginRepair()
      var report = PassReport(feed: request.feed.text, folder: request.folderName, started: started)
      let before = ports.engine.history
      let known = try ports.ledger.problems(limit: PassReport.mostProblems)
      guard let catalog = try openCatalog() else { return try tellOnly(events, report) }
      let planner = RegionPlanner(
        self, folder, catalog, since: before, started: started, problems: known, onlyCounts: onlyCounts)
      try planner.look(at: regions)
      let plan = planner.writer.plan
      (report.problems, report.counts, report.bytes) = (plan.problems, plan.counts, plan.bytes)
      let lookTime = planner.findings.lookTime
      let isSuperseded = try bring(planner, in: folder, into: &report) { looked(lookTime) }
      report.wasStopped = stop.isSet
      report.ended = ports.now
      let conflicts = report.problems.filter { $0.kind == .conflict }
      let paths = conflicts.compactMap { try? RelativePath($0.name) }
      return try ports.engine.claimingFree(paths) { free, transferring in
        let isLeft = try dropOutdated(&report, planner, steady: Set(free + transferring))
        return try conclude(
          regions, report, planner, plan, events, since: before, isSuperseded: isSuperseded || isLeft)
      }
    }
  }

  /// Drops problems that are over, or about what the manifest no longer wants: others may have worked in the folder since the look.
  /// What they had renamed by then, and not yet recorded, looked like somebody else's file.
  ///
  /// - Parameter steady: the paths that nobody uses, or where a transfer is not at its end yet. At another path a file is just getting
  ///   its name: a conflict there is dropped, and the path is looked at again.
  /// - Returns: whether paths must be looked at again: conflicts were left to others, or the last manifest wants entries otherwise.
  private func dropOutdated(
    _ report: inout PassReport, _ planner: RegionPlanner, steady: Set<RelativePath>
  ) throws -> Bool {
    guard !report.problems.isEmpty else { return false }
    let catalog = try openCatalog()
    var isLeft = false
    try report.dropProblems { problem in
      guard let path = try? RelativePath(problem.name) else { return false }
      let isSuperseded = try planner.isSuperseded(at: path, by: catalog)
      if isSuperseded || problem.kind == .conflict && !steady.contains(path) {
        isLeft = true
        return true
      }
      return try planner.isOutdated(problem, at: path)
    }
    for problem in report.problems where problem.kind == .conflict { observer.pass(.problem(problem)) }
    return isLeft
  }

  /// Records the results.
  ///
  /// - Parameters:
  ///   - plan: the plan as it was before it was carried out.
  ///   - before: the engine's history before the look.
  private func conclude(
    _ regions: [Region], _ report: PassReport, _ planner: RegionPlanner, _ plan: Plan, _ events: [Event],
    since before: TransferEngine.History, isSuperseded: Bool
  ) throws -> RepairReport {
    let findings = planner.findings
    let needsPass =
      findings.wantsNew || plan.hasBlindSpot || report.problems.contains { $0.kind == .failed }
    // Entries that an order keeps from being brought are left to the pass that follows the order.
    let isUnsettled = needsPass || findings.isUnsettled || report.problems.contains { $0.kind == .held }
    var mayCount = false
    let hasRecorded = try ports.engine.repairLock.withLock {
      // The count does not include what others did meanwhile. A running pass reports what is in place, unless it fails.
      let now = ports.engine.history
      mayCount =
        ports.engine.pass == nil
        && (now.manifests, now.records, now.passes) == (before.manifests, before.records, before.passes)
      return try recordRepair(
        regions, report, planner, events.map { .event($0) } + resized(report, plan, regions),
        since: before, isUnsettled: isUnsettled, isWhole: !report.wasStopped && !isSuperseded,
        mayCount: mayCount)
    }
    let isAsCounted = mayCount && ports.engine.history.records == before.records + (hasRecorded ? 1 : 0)
    let wantsCount =
      try regions == [.everything] ? !isAsCounted : isUnsettled || !isAllInPlace()
    return RepairReport(
      report: report, needsPass: needsPass && !isSuperseded, wantsVersion: findings.wantsVersion,
      wantsCount: wantsCount, isSuperseded: isSuperseded, lookTime: findings.lookTime)
  }

  /// Handles a folder without a catalog, where nothing is known to be wanted. The journal gets the events, and a pass has to
  /// follow.
  private func tellOnly(_ events: [Event], _ report: PassReport) throws -> RepairReport {
    var report = report
    // A first pass that fails is undone together with its journal.
    let hasJournal = try ports.ledger.fact(.feed) != nil
    if !events.isEmpty, hasJournal { try note(events.map { .event($0) }) }
    report.ended = ports.now
    let hadCatalog = try ports.ledger.fact(.catalog) != nil
    return RepairReport(
      report: report, needsPass: true, hasJournal: hasJournal, hasNoCatalog: true, hadCatalog: hadCatalog)
  }

  /// - Returns: whether another manifest came meanwhile.
  private func bring(
    _ planner: RegionPlanner, in folder: any FolderPort, into report: inout PassReport, begins: () -> Void
  ) throws -> Bool {
    guard try ports.stage.actionCount() > 0 else { return false }
    begins()
    let repair = ports.engine.beginBringing(planner.writer.plan.work.missing - planner.findings.triedAgain)
    var rest = RepairPending()
    defer { ports.engine.endBringing(repair, left: rest) }
    try recordRepairPending()
    let isSuperseded = try carryOut(planner.writer, in: folder, of: repair, into: &report)
    if stop.isSet { rest = ports.engine.left(of: repair) }
    return isSuperseded
  }

  /// Records what repairs still have to bring, if the ledger has it otherwise.
  func recordRepairPending() throws {
    guard try ports.ledger.fact(.repairPending) != ports.engine.repairPending else { return }
    try ports.engine.recordPending(in: ports.ledger)
  }

  /// Records the results for the regions in the ledger.
  ///
  /// - Returns: whether there was anything to record.
  private func recordRepair(
    _ regions: [Region], _ report: PassReport, _ planner: RegionPlanner, _ first: [LedgerChange],
    since before: TransferEngine.History, isUnsettled: Bool, isWhole: Bool, mayCount: Bool
  ) throws -> Bool {
    let findings = planner.findings
    var changes: [LedgerChange] = first + report.problems.map { .problem($0.asLooked) }
    changes += try solved(regions, report, planner).map { .dropProblem(name: $0) }
    // The next pass will not find what the last one left, so it has to look.
    if isUnsettled || findings.hasForgettable { changes.append(.fact(.feedRecord, nil)) }
    let pending = ports.engine.repairPending
    let writesPending = try ports.ledger.fact(.repairPending) != pending
    if writesPending { changes.append(.fact(.repairPending, pending)) }
    if regions == [.everything], isWhole, mayCount {
      changes += try counts(report, findings, others: ports.engine.left(begunBefore: before))
    }
    if ports.engine.isQuiet, try !ports.ledger.activity().isEmpty { changes.append(.activity([])) }
    if report.counts.hasChanges {
      changes += [.fact(.repaired, report.ended.rfc3339), .fact(.repair, report.counts.changes)]
    }
    guard !changes.isEmpty else { return false }
    // This must come first: a pass that checks between the two then discards its feed record.
    ports.engine.countRepairRecord()
    try note(changes)
    if writesPending { ports.engine.notePendingWritten() }
    try recordRepairPending()
    return true
  }

  /// Returns whether all was in place at the last count. Otherwise files that became right since would not show in regions that are
  /// as recorded.
  private func isAllInPlace() throws -> Bool {
    guard let wanted = try ports.ledger.fact(.entriesWanted) else { return true }
    return try ports.ledger.fact(.entriesCurrent) == wanted
  }

  /// Returns the changes for files that came back with another size, when the feed tells none. The feed record has the numbers of
  /// the last pass, which a pass over an unchanged feed would repeat, so it is dropped. A running pass records its own numbers.
  private func resized(_ report: PassReport, _ plan: Plan, _ regions: [Region]) throws -> [LedgerChange] {
    let (before, after) = (plan.bytes.wanted, report.bytes.wanted)
    guard before != after, ports.engine.pass == nil else { return [] }
    var changes: [LedgerChange] = [.fact(.feedRecord, nil)]
    // After a look at everything, what is in place is counted again.
    for name in regions == [.everything] ? [LedgerFact.bytesWanted] : [.bytesWanted, .bytesCurrent] {
      guard let known = try ports.ledger.fact(name).flatMap({ UInt64($0) }) else { continue }
      let sum = known.addingSaturated(after)
      changes.append(.fact(name, String(sum - min(sum, before))))
    }
    return changes
  }

  /// Returns the facts about what is in place, after a look at everything, that differ from those of the last pass. They include what
  /// is recorded as still to be brought; `tarn status` takes it off.
  ///
  /// - Parameter others: what other repairs still have to bring, and was missing at the look.
  private func counts(
    _ report: PassReport, _ findings: RegionPlanner.Findings, others: RepairPending
  ) throws -> [LedgerChange] {
    let current = findings.asLeft.count + report.counts.inPlace + others.files
    let bytes = findings.asLeft.bytes.addingSaturated(report.bytes.inPlace).addingSaturated(others.bytes)
    let facts: [(LedgerFact, String)] = [
      (.entriesCurrent, String(current)), (.entriesKept, String(report.counts.kept)),
      (.bytesCurrent, String(bytes)),
    ]
    return try facts.filter { try ports.ledger.fact($0.0) != $0.1 }.map { .fact($0.0, $0.1) }
  }

  /// Returns the names of the regions' problems that are over: those that this look has found so, and that nobody has met since it
  /// began.
  private func solved(
    _ regions: [Region], _ report: PassReport, _ planner: RegionPlanner
  ) throws -> [[UInt8]] {
    let seen = Set(report.problems.map(\.name))
    return try planner.known.values.filter { problem in
      guard problem.kind == .failed || problem.kind == .conflict, !seen.contains(problem.name),
        let path = try? RelativePath(problem.name), regions.contains(where: { $0.contains(path) }),
        try planner.isOver(problem, at: path)
      else { return false }
      return try ports.ledger.problem(name: problem.name) == problem
    }.map(\.name).sorted { $0.lexicographicallyPrecedes($1) }
  }

  // MARK: The catalog

  /// Returns the catalog that fits this pass's settings; `nil` when there is none.
  func openCatalog() throws -> (any CatalogReading)? {
    guard let port = ports.catalog, let settings = request.settings,
      let fact = try ports.ledger.fact(.catalog)
    else { return nil }
    let id = CatalogFact.id(of: fact)
    return fact == CatalogFact.value(id: id, settings: settings) ? try port.open(id: id) : nil
  }

  /// Puts the catalog of an accepted manifest in place.
  ///
  /// - Returns: the fact for the ledger. `nil` when there is no catalog, or it could not be written; a pass then replaces repairs.
  func commitCatalog(_ feed: PlannedFeed) -> String? {
    guard let settings = request.settings, let id = feed.planner.catalog?.commit(isWindow: feed.plan.isWindow)
    else { return nil }
    return CatalogFact.value(id: id, settings: settings)
  }
}
