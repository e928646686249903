package import TarnCore
import TarnRuntime

/// What came of a repair.
package struct RepairReport: Sendable {
  package var report: PassReport
  /// Something is not as the feed wants it, or only the feed can say: a pass has to follow.
  package var needsPass: Bool
  /// It did something, or found a problem that nobody was told of.
  package var hasNews = true
  /// What is in place is not what the last pass counted; a repair of everything counts anew.
  package var wantsCount = false
  /// What it was to tell the journal is there.
  package var hasJournal = true
  /// There is no catalog of these settings.
  package var hasNoCatalog = false
  /// But of others, or it was lost.
  package var hadCatalog = false
  /// Another manifest came meanwhile: its regions are to be looked at again.
  package var isSuperseded = false
  /// How long it looked at the folder, hashing and transfers left out.
  package var lookTime = Duration.zero
}

/// What a repair has begun to bring back: while it is at work, and after one that was cut short.
struct RepairPending {
  var files = 0
  /// Of those whose size is known.
  var bytes: UInt64 = 0

  /// nil for nothing.
  var text: String? { files > 0 ? "\(files) \(bytes)" : nil }

  static func + (left: Self, right: Self) -> Self {
    Self(files: left.files + right.files, bytes: left.bytes.addingSaturated(right.bytes))
  }

  static func - (left: Self, right: Self) -> Self {
    Self(files: left.files - right.files, bytes: left.bytes - min(left.bytes, right.bytes))
  }
}

extension RepairPending {
  /// - Parameter text: the fact; an earlier Tarn wrote the number of files alone.
  init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard let files = parts.first.flatMap({ Int($0) }), files > 0 else { return nil }
    self.init(files: files, bytes: parts.dropFirst().first.flatMap { UInt64($0) } ?? 0)
  }
}

/// Brings parts of the folder into line with the manifest that was last accepted, without asking the feed. It deletes nothing, and
/// leaves alone what is as it was recorded: whether that is still wanted only the feed says.
extension Pass {
  /// The folder's lock is held by the caller. When it returns, everything that the report calls done is durable.
  ///
  /// - Parameters:
  ///   - regions: that may not be as recorded. No region lies in another one.
  ///   - events: what the journal is to learn, too.
  ///   - onlyCounts: nothing calls for a look, but what is in place is to be counted: what failed is not tried again.
  ///   - looked: called once it has looked at the folder, if something is to be brought: with what that took.
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
      guard let catalog = try openCatalog() else { return try tellOnly(events, report) }
      let planner = RegionPlanner(
        self, folder, catalog, since: before, started: started, onlyCounts: onlyCounts)
      try planner.look(at: regions)
      let plan = planner.writer.plan
      (report.problems, report.counts, report.bytes) = (plan.problems, plan.counts, plan.bytes)
      let lookTime = planner.findings.lookTime
      let isSuperseded = try bring(planner.writer, in: folder, into: &report) { looked(lookTime) }
      report.wasStopped = stop.isSet
      report.ended = ports.now
      let findings = planner.findings
      let needsPass =
        findings.wantsNew || plan.hasBlindSpot || report.problems.contains { $0.kind == .failed }
      // What an order keeps from being brought is for the pass that comes after it.
      let isUnsettled = needsPass || findings.isUnsettled || report.problems.contains { $0.kind == .held }
      var mayCount = false
      let hasRecorded = try ports.engine.repairRecords.take {
        // What others did meanwhile is not in what was counted.
        let now = ports.engine.history
        mayCount =
          (now.manifests, now.records, now.passes) == (before.manifests, before.records, before.passes)
        return try recordRepair(
          regions, report, findings, events.map { .event($0) } + resized(report, plan, regions),
          isUnsettled: isUnsettled, isWhole: !report.wasStopped && !isSuperseded, mayCount: mayCount)
      }
      let isAsCounted = mayCount && ports.engine.history.records == before.records + (hasRecorded ? 1 : 0)
      let wantsCount =
        try regions == [.everything]
        ? !isAsCounted && ports.engine.pass == nil : isUnsettled || !isAllInPlace()
      return RepairReport(
        report: report, needsPass: needsPass && !isSuperseded, wantsCount: wantsCount,
        isSuperseded: isSuperseded, lookTime: lookTime)
    }
  }

  /// Without a catalog nothing is known to be wanted: the journal learns what happened, and a pass has to follow.
  private func tellOnly(_ events: [Event], _ report: PassReport) throws -> RepairReport {
    var report = report
    // What a first pass that fails takes back takes its journal along.
    let hasJournal = try ports.ledger.fact(.feed) != nil
    if !events.isEmpty, hasJournal { try note(events.map { .event($0) }) }
    report.ended = ports.now
    let hadCatalog = try ports.ledger.fact(.catalog) != nil
    return RepairReport(
      report: report, needsPass: true, hasJournal: hasJournal, hasNoCatalog: true, hadCatalog: hadCatalog)
  }

  /// - Returns: whether another manifest came meanwhile.
  private func bring(
    _ writer: PlanWriter, in folder: any FolderPort, into report: inout PassReport, begins: () -> Void
  ) throws -> Bool {
    let plan = writer.plan
    guard try ports.stage.actionCount() > 0 else { return false }
    begins()
    let pending = RepairPending(files: plan.counts.planned, bytes: plan.bytesWithRecorded)
    ports.engine.beginBringing(pending)
    var rest = RepairPending()
    defer { ports.engine.endBringing(pending, left: rest) }
    if ports.engine.pass == nil {
      try ports.ledger.applyVolatile([.fact(.repairPending, ports.engine.repairPending)])
    }
    let isSuperseded = try carryOut(writer, in: folder, priority: .urgent, into: &report)
    rest = left(report)
    return isSuperseded
  }

  /// What the ledger is to say of the regions from now on.
  ///
  /// - Returns: whether it had to be told anything.
  private func recordRepair(
    _ regions: [Region], _ report: PassReport, _ findings: RegionPlanner.Findings, _ first: [LedgerChange],
    isUnsettled: Bool, isWhole: Bool, mayCount: Bool
  ) throws -> Bool {
    var changes: [LedgerChange] = first + report.problems.map { .problem($0.asLooked) }
    if isWhole { changes += try solved(regions, report, findings).map { .dropProblem(name: $0) } }
    // What the last pass left is not what the next one finds: it has to look.
    if isUnsettled || findings.hasForgettable { changes.append(.fact(.feedRecord, nil)) }
    // What is in place, and what goes on, the pass at work tells.
    let isAlone = ports.engine.pass == nil
    let pending = ports.engine.repairPending
    if isAlone, try ports.ledger.fact(.repairPending) != pending {
      changes.append(.fact(.repairPending, pending))
    }
    if regions == [.everything], isWhole, isAlone, mayCount { changes += try counts(report, findings) }
    if ports.engine.isQuiet, try !ports.ledger.activity().isEmpty { changes.append(.activity([])) }
    if report.counts.hasChanges {
      changes += [.fact(.repaired, report.ended.rfc3339), .fact(.repair, report.counts.changes)]
    }
    guard !changes.isEmpty else { return false }
    // First: a pass that looks between the two leaves its record out.
    ports.engine.countRepairRecord()
    try note(changes)
    return true
  }

  /// What one that was cut short did not bring.
  private func left(_ report: PassReport) -> RepairPending {
    let done = report.counts.inPlace - report.counts.current
    let files = report.counts.planned - done - report.counts.failed
    guard stop.isSet, files > 0 else { return RepairPending() }
    return RepairPending(files: files, bytes: progress.snapshot().bytesMissing)
  }

  /// When all was counted last. If not, what came right since shows in no part that is as recorded.
  private func isAllInPlace() throws -> Bool {
    guard let wanted = try ports.ledger.fact(.entriesWanted) else { return true }
    return try ports.ledger.fact(.entriesCurrent) == wanted
  }

  /// What was brought back may have another size than it had, where the feed tells none. The record has the numbers of the last
  /// pass, and a pass over an unchanged feed would tell them again: it goes. A pass at work tells its own.
  private func resized(_ report: PassReport, _ plan: Plan, _ regions: [Region]) throws -> [LedgerChange] {
    let (before, after) = (plan.bytes.wanted, report.bytes.wanted)
    guard before != after, ports.engine.pass == nil else { return [] }
    var changes: [LedgerChange] = [.fact(.feedRecord, nil)]
    // What is in place is counted anew after a look at everything.
    for name in regions == [.everything] ? [LedgerFact.bytesWanted] : [.bytesWanted, .bytesCurrent] {
      guard let known = try ports.ledger.fact(name).flatMap({ UInt64($0) }) else { continue }
      let sum = known.addingSaturated(after)
      changes.append(.fact(name, String(sum - min(sum, before))))
    }
    return changes
  }

  /// How much is in place, where all of it was looked at and the numbers are others than those of the last pass.
  private func counts(
    _ report: PassReport, _ findings: RegionPlanner.Findings
  ) throws -> [LedgerChange] {
    let current = findings.asLeft.count + report.counts.inPlace
    let bytes = findings.asLeft.bytes.addingSaturated(report.bytes.inPlace)
    let facts: [(LedgerFact, String)] = [
      (.entriesCurrent, String(current)), (.entriesKept, String(report.counts.kept)),
      (.bytesCurrent, String(bytes)),
    ]
    return try facts.filter { try ports.ledger.fact($0.0) != $0.1 }.map { .fact($0.0, $0.1) }
  }

  /// Problems of the regions that were not seen again.
  private func solved(
    _ regions: [Region], _ report: PassReport, _ findings: RegionPlanner.Findings
  ) throws -> [[UInt8]] {
    let known = try ports.ledger.problems(limit: PassReport.mostProblems)
    guard !known.isEmpty else { return [] }
    let seen = Set(report.problems.map(\.name)).union(findings.leftToPasses)
    return known.filter { problem in
      // Others may have met it since.
      guard problem.kind == .failed || problem.kind == .conflict, !seen.contains(problem.name),
        problem.seen <= report.started, let path = try? RelativePath(problem.name)
      else { return false }
      return regions.contains { $0.contains(path) }
    }.map(\.name)
  }

  // MARK: The catalog

  /// The catalog of what this pass's settings make of the feed; nil when there is none.
  func openCatalog() throws -> (any CatalogReading)? {
    guard let port = ports.catalog, let settings = request.settings,
      let fact = try ports.ledger.fact(.catalog)
    else { return nil }
    let id = CatalogFact.id(of: fact)
    return fact == CatalogFact.value(id: id, settings: settings) ? try port.open(id: id) : nil
  }

  /// Puts the catalog of a manifest that is accepted in its place.
  ///
  /// - Returns: what the ledger has to know of it; nil when there is none, or it could not be written: then a repair is a pass.
  func commitCatalog(_ feed: PlannedFeed) -> String? {
    guard let settings = request.settings, let id = feed.planner.catalog?.commit(isWindow: feed.plan.isWindow)
    else { return nil }
    return CatalogFact.value(id: id, settings: settings)
  }
}
