package import TarnCore
import TarnRuntime

/// What to bring into line with what, and how.
package struct PassRequest: Sendable {
  package var feed: FeedLocation
  /// The folder as users see it; for messages only.
  package var folderName: String
  package var policy: PassPolicy
  /// The ledger is new beside an old folder (it was damaged): this pass deletes nothing.
  package var wasRebuilt = false
  /// Its options hold for this pass alone.
  package var isOnce = false
  /// And they choose other files than the mirror's own: this pass says nothing of the mirror as a whole, which stays as it was.
  package var choosesOthers = false
  /// Deletions that wait for an approval go on waiting: this pass judges none, or not by the mirror's own options.
  package var keepsHold = false
  /// What the ledger remembers once the feed was read: a mistyped feed is not followed from then on.
  package var facts: [(name: LedgerFact, value: String)] = []
  /// A digest of all that shapes what the feed comes to, beside the feed itself; nil to read it whole whatever is known
  /// of it.
  package var settings: String?
  /// Entries in memory that wait for a duplicate's bytes, and as many whose sources all failed; for more of them the plan is
  /// read again.
  package var mostHeldBack = 4096

  /// Asked when the pass fails: the ledger goes with it, and the journal with the ledger. nil where it always stays.
  package var isJournalLost: (@Sendable () -> Bool)?
  /// Seconds for which events are kept for readers that were away.
  package var keepEvents: Int64 = 14 * 86_400
  /// Orders about single transfers; nil for none.
  package var steering: PassSteering?
  /// Says that the folder stands as the last pass or repair left it: somebody has watched it ever since.
  package var isAsLeft: (@Sendable () -> Bool)?

  package init(feed: FeedLocation, folderName: String, policy: PassPolicy) {
    self.feed = feed
    self.folderName = folderName
    self.policy = policy
  }
}

/// A feed that was read, and what is to be done about it.
struct PlannedFeed {
  var plan: Plan
  /// Decides over stale paths again.
  let writer: PlanWriter
  /// What it wants, for repairs; nil when none is kept.
  let catalog: CatalogWriter?
  let end: FeedEnd
  /// Of an index whose directories were walked, or of pages; nil of one document.
  let walk: ListingWalk?

  init(_ planner: FeedPlanner, _ end: FeedEnd, walk: ListingWalk?) {
    (plan, writer, catalog) = (planner.writer.plan, planner.writer, planner.catalog)
    (self.end, self.walk) = (end, walk)
  }

  var isComplete: Bool { end.isComplete && walk?.failures.isEmpty != false }

  /// For a plan whose deletions do not go.
  mutating func reportDirectories() {
    writer.reportDirectories()
    plan = writer.plan
  }
}

/// One pass: read, compare, plan, carry out, record, report. Blocking; one thread, which owns the pass.
package struct Pass {
  let ports: PassPorts
  let request: PassRequest
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag

  package init(
    ports: PassPorts, request: PassRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag
  ) {
    self.ports = ports
    self.request = request
    self.observer = observer
    self.progress = progress
    self.stop = stop
  }

  /// What a sync would do: also what the guard would hold, and what would wait for it. Changes nothing.
  ///
  /// - Parameter each: gets every planned action, in order, and whether it is a deletion that would be held.
  /// - Throws: `PassFailure`.
  package func plan(
    folder: any FolderReading, each: (_ action: Action, _ isHeld: Bool) -> Void
  ) throws -> PassReport {
    try PassFailure.translating(feed: request.feed.text) {
      let started = ports.now
      enter(.reading)
      var feed = try read(reader.open(request.feed), folder, reader, started: started)
      let (verdict, _) = try judge(&feed)
      if !verdict.mayGo { feed.reportDirectories() }
      var report = report(feed, started: started)
      report.isPlan = true
      if case .held(let plan) = verdict { report.take(plan) }
      let actions = try ports.stage.actions()
      while let action = try actions.next() {
        if let blocker = action.blocker,
          let problem = verdict.problem(of: action.path, below: blocker, seen: started)
        {
          observer.take(problem, into: &report)
        } else if verdict.mayGo || (action.kind != .delete && action.kind != .forget) {
          each(action, false)
        } else if report.held != nil, action.kind == .delete {
          each(action, true)
        }
      }
      if verdict.mayGo { for action in feed.plan.behindDirectories { each(action, false) } }
      report.counts.deleted = verdict.mayGo ? feed.plan.work.deletions : 0
      report.counts.planned += report.counts.deleted
      report.ended = ports.now
      return report
    }
  }

  /// Brings the folder into line. The folder's lock is held by the caller.
  ///
  /// When it returns, everything that the report calls done is durable.
  ///
  /// - Throws: `PassFailure`.
  package func run(folder: any FolderPort) throws -> PassReport {
    let before = try PassFailure.translating(feed: request.feed.text) {
      try request.choosesOthers ? MirrorRecord(ports.ledger) : nil
    }
    do {
      return try runToEnd(folder, over: before)
    } catch let failure as PassFailure {
      let isStopped = failure.kind == .stopped
      var changes = PassProgress.Snapshot.noChanges
      changes += [
        .fact(.outcome, isStopped ? "stopped" : "failed"),
        .fact(.failure, isStopped ? nil : failure.message),
        .fact(.failureHint, isStopped ? nil : failure.hint), .fact(.feedRecord, nil),
      ]
      changes += before?.changes ?? []
      // Whoever follows the events would get one that is nowhere later.
      if !isStopped, request.isJournalLost?() != true {
        changes.append(
          .event(Event(when: ports.now, code: "pass-failed", detail: "\(failure.message) [\(failure.code)]")))
      }
      // The pass has failed already; a ledger that cannot take this has its own message in `failure`.
      try? note(changes)
      throw failure
    }
  }

  /// What a crash left is put right once for all who work in the folder at a time.
  func recover(_ folder: any FolderPort) throws -> Recovery {
    let recovery = Recovery(ledger: ports.ledger, folder: folder, clock: ports.clock)
    try ports.engine.prepareOnce { try recovery.run() }
    return recovery
  }

  /// - Parameter earlier: how the mirror stood, where this pass says nothing of all of it.
  private func runToEnd(_ folder: any FolderPort, over earlier: MirrorRecord?) throws -> PassReport {
    try PassFailure.translating(feed: request.feed.text) {
      guard try folder.isIntact() else {
        throw Self.replaced(folder: request.folderName)
      }
      let started = ports.now
      let recovery = try recover(folder)
      ports.engine.beginPass()
      defer { ports.engine.endPass() }
      let lastEvent = try ports.ledger.lastEvent()
      let known = try knownFeed(at: started)
      try note([
        .fact(.attempt, started.rfc3339), .fact(.began, String(started.nanoseconds)),
        .fact(.outcome, "running"), .fact(.failure, nil),
        .fact(.failureHint, nil),
        .fact(.feedRecord, nil), .fact(.feedTransfer, nil),
        .fact(.repairPending, nil),
      ])
      enter(.reading)
      var (report, record): (PassReport, FeedRecord?)
      let reader = reader
      // What repairs do from here on, this pass has not seen.
      let before = (brought: ports.engine.urgentlyPlaced, records: ports.engine.repairRecords)
      switch try open(since: known, folder, reader) {
      case .unchanged(let known, let isScanned):
        (report, record) = (unchanged(known, started: started), known)
        // What a pass was given for once may be given for good now.
        let facts = try request.facts.filter { try ports.ledger.fact($0.name) != $0.value }
        if !facts.isEmpty { try note(facts.map { .fact($0.name, $0.value) }) }
        report.isFolderUnseen = !isScanned
        observer.pass(.planned(report))
      case .document(let document):
        (report, record) = try follow(
          document, folder, recovery, reader, broughtBefore: before.brought, started: started)
      }
      guard try folder.isIntact() else { throw Self.replaced(folder: request.folderName) }
      try recovery.expireTrash(after: request.policy.keepTrash)
      report.ended = ports.now
      if ports.engine.repairRecords != before.records { record = nil }
      try self.record(report, record, over: earlier, after: lastEvent)
      // One that recorded at the same time.
      if record != nil, ports.engine.repairRecords != before.records { try note([.fact(.feedRecord, nil)]) }
      // How often they have failed now; those that are shown.
      for index in report.problems.indices.prefix(Self.mostCounted) {
        let known = try ports.ledger.problem(name: report.problems[index].name)
        report.problems[index].attempts = known?.attempts ?? 1
      }
      return report
    }
  }

  private static let mostCounted = 20

  /// Does what a feed asks for that was read.
  ///
  /// - Returns: what came of it, and what the next pass may build on.
  private func follow(
    _ document: FeedReader.Document, _ folder: any FolderPort, _ recovery: Recovery, _ reader: FeedReader,
    broughtBefore: Int, started: Timestamp
  ) throws -> (PassReport, FeedRecord?) {
    var feed = try read(document, folder, reader, started: started)
    // Before it is recorded which format the list has now.
    let (verdict, hold) = try judge(&feed)
    let isRead = feed.isComplete || feed.plan.isWindow && feed.walk?.failures.isEmpty != false
    let saysAll = isRead && !feed.plan.hasBlindSpot && !request.choosesOthers
    try accept(feed, document, solved: feed.plan.old.solved(saysAll: saysAll))
    // A plan that is held is of an older manifest: what it names may be wanted again.
    if !request.keepsHold { try dropHold(for: verdict) }
    try announceManifest()
    let dead = feed.plan.deadPartials(saysAll: saysAll)
    try ports.engine.claiming(Array(dead)) { try recovery.drop(partials: dead) }
    var report = report(feed, started: started)
    if case .held(let plan) = verdict {
      try hold?.keep(plan)
      report.take(plan)
    }
    observer.pass(.planned(report))
    let list = feed.plan.feed.plansList ? try reader.listFile(document) : nil
    defer { withExtendedLifetime(list) {} }
    let carrying = Carrying(
      folder: folder, writer: feed.writer, verdict: verdict, hold: hold, listURL: list?.url,
      broughtBefore: broughtBefore)
    try carryOut(feed.plan, carrying, into: &report)
    guard verdict.mayGo, report.held == nil else { return (report, nil) }
    // Only a pass that left nothing that it could have deleted says that a list of this format may delete.
    if feed.isComplete || feed.plan.isWindow, !report.wasStopped, !request.isOnce,
      report.counts.unlisted == 0, feed.plan.filteredRows == 0
    {
      try note([.fact(.deletingFormat, feed.end.format)])
    }
    return (report, try feedRecord(document, feed, report))
  }

  /// A plan that waits gives way to what is decided now: the journal hears of it, unless the same one goes on waiting.
  private func dropHold(for verdict: DeletionVerdict) throws {
    var changes: [LedgerChange] = [.dropHolds]
    if let before = try ports.ledger.held() {
      let now: String? = if case .held(let plan) = verdict { plan.id } else { nil }
      let detail = "plan \(before.id): \(Units.count(before.count, "deletion")) no longer wanted"
      if now != before.id, verdict != .allowedIfReplaced {
        changes.append(.event(Event(when: ports.now, code: "plan-dropped", detail: detail)))
      }
    }
    try note(changes)
  }

  static func replaced(folder: String) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "folder-replaced",
      "\(Printable.escape(folder)) is not the folder that was opened: it was moved, replaced or unmounted",
      hint: "what was opened is whole; bring it back to its place, or sync into another folder")
  }

  // MARK: Reading

  var reader: FeedReader {
    FeedReader(
      ports: ports, policy: request.policy, observer: observer, stop: stop, progress: progress,
      steering: request.steering)
  }

  private func read(
    _ document: FeedReader.Document, _ folder: any FolderReading, _ reader: FeedReader, started: Timestamp
  ) throws -> PlannedFeed {
    let planner = FeedPlanner(
      ports: ports, folder: folder, policy: request.policy, observer: observer, progress: progress,
      stop: stop, started: started)
    switch try reader.kind(of: document) {
    case .window: return try readWindow(document, reader, planner)
    case .index: return try readInAnyOrder(document, reader, planner)
    case .list: break
    }
    do {
      try planner.beginInOrder()
      let end = try reader.parse(document, place: nil) { item in
        if stop.isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
        try planner.take(item)
      }
      try check(end)
      enter(.planning)
      try planner.finish()
      return PlannedFeed(planner, end, walk: nil)
    } catch is Comparison.OutOfOrder {
      return try readInAnyOrder(document, reader, planner)
    }
  }

  private func readInAnyOrder(
    _ document: FeedReader.Document, _ reader: FeedReader, _ planner: FeedPlanner
  ) throws -> PlannedFeed {
    try planner.beginInAnyOrder()
    let walk = ListingWalk(reader: reader) { item in
      if stop.isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
      try planner.take(item)
    }
    let end = try walk.root(document)
    try check(end)
    try walk.run()
    enter(.planning)
    try planner.finish()
    return PlannedFeed(planner, end, walk: walk)
  }

  /// The feed was read and is followed: what is to be remembered of it, also when the pass is stopped.
  ///
  /// - Parameter solved: names of problems of what is no longer wanted, or in place.
  private func accept(
    _ feed: PlannedFeed, _ document: FeedReader.Document, solved: Set<[UInt8]>
  ) throws {
    let (plan, end) = (feed.plan, feed.end)
    var changes = request.facts.map { LedgerChange.fact($0.name, $0.value) }
    changes += solved.map { .dropProblem(name: $0) }
    changes += [
      .fact(.format, end.format)
    ]
    if !request.choosesOthers {
      changes += [
        .fact(.entriesWanted, String(plan.counts.wanted)),
        .fact(.entriesCurrent, String(plan.counts.current)),
      ]
      changes += sizes(plan.bytes)
    }
    if let version = end.version { changes.append(.fact(.manifestVersion, String(version))) }
    if !request.choosesOthers {
      changes.append(.fact(.keptList, plan.feed.listPath.map { Base64.encode($0.bytes) }))
    }
    changes.append(.fact(.refresh, end.refreshSeconds.map { String($0) }))
    changes.append(.fact(.upstreamChanged, end.isIndex ? nil : document.head?.changed?.rfc3339))
    changes += plan.feed.learned
    // The first format is the one that others are held against.
    if try ports.ledger.fact(.deletingFormat) == nil {
      changes.append(.fact(.deletingFormat, try ports.ledger.fact(.format) ?? end.format))
    }
    changes.append(.fact(.catalog, commitCatalog(feed)))
    try note(changes)
  }

  /// Repairs that are at work by an earlier manifest follow the one that was accepted.
  private func announceManifest() throws {
    let catalog = try openCatalog()
    // The engine's thread alone reads it from now on. Without one nothing is known to be wanted.
    ports.engine.follow { try catalog?.entry($0) }
  }

  // MARK: Carrying out

  /// With what a plan is carried out.
  struct Carrying {
    let folder: any FolderPort
    /// Decides over stale paths again.
    let writer: PlanWriter
    var verdict: DeletionVerdict
    /// Is asked again just before anything is deleted, for what a list promises may not be there.
    var hold: DeletionHold?
    /// Where the feed's own list can be had, for as long as this lasts.
    var listURL: String?
    /// Files that repairs had brought when the folder was looked at.
    var broughtBefore = 0
    /// Of a repair: how many manifests had been announced when its catalog was opened.
    var manifestsBefore: Int?

    var isRepair: Bool { manifestsBefore != nil }
  }

  /// - Returns: true when another manifest wants something of it otherwise, or may.
  @discardableResult
  func carryOut(_ plan: Plan, _ carrying: Carrying, into report: inout PassReport) throws -> Bool {
    progress.change { snapshot in
      snapshot.filesTotal = plan.counts.planned
      snapshot.bytesTotal = plan.bytes.planned
      snapshot.bytesMissing = plan.bytesWithRecorded
      snapshot.unknownSizes = plan.work.unknownSizes
    }
    if plan.counts.planned > 0 { enter(.transferring) }
    let account = TransferAccount(ports: ports, observer: observer, progress: progress)
    if carrying.isRepair {
      account.mayBeSuperseded = { [engine = ports.engine] in engine.pass == .reading }
    } else {
      account.early = EarlyProblems(report)
    }
    let submission = try submission(of: plan, carrying, account)
    try tellSpace(carrying.folder, plan.bytes.planned)
    try ports.engine.submit(submission).wait()
    try delete(submission, plan, carrying, into: &report)
    try removeLeftovers(carrying.folder, into: &report)
    submission.stale += plan.behindDirectories
    let (again, isSuperseded) = try settleStale(submission, plan, carrying.writer, into: &report)
    report.bytes = again.bytes
    report.take(account)
    report.take(again, since: plan.counts)
    report.wasStopped = stop.isSet
    try tellTrash(report)
    return isSuperseded || account.untold > 0
  }

  private func submission(
    of plan: Plan, _ carrying: Carrying, _ account: TransferAccount
  ) throws -> Submission {
    var terms = Submission.Terms(
      isUrgent: carrying.isRepair, steering: request.steering, deletions: carrying.verdict)
    terms.countsInPlace = !request.choosesOthers
    terms.mostHeldBack = request.mostHeldBack
    (terms.broughtBefore, terms.manifestsBefore) = (carrying.broughtBefore, carrying.manifestsBefore)
    let submission = try Submission(
      ports: ports, folder: carrying.folder, policy: plan.policy, unrecorded: plan.unrecorded,
      account: account, stop: stop, terms: terms)
    submission.listURL = carrying.listURL
    return submission
  }

  /// The last step of a plan.
  private func delete(
    _ submission: Submission, _ plan: Plan, _ carrying: Carrying, into report: inout PassReport
  ) throws {
    let (folder, verdict, hold) = (carrying.folder, carrying.verdict, carrying.hold)
    guard let first = submission.plan.front, verdict.mayGo, !stop.isSet, try folder.isIntact() else { return }
    if let held = verdict == .allowedIfReplaced ? try hold?.judge() : nil {
      try hold?.keep(held)
      return report.take(held)
    }
    let spared = try plan.feed.newest?.spared(Set(ports.ledger.placedNames().map(\.path))) ?? []
    if plan.work.deletions > spared.count { enter(.deleting) }
    let deletions = Deletions(
      ports: ports, folder: folder, observer: observer, stop: stop, areExpired: plan.isWindow, spared: spared)
    try deletions.run(first: first, rest: submission.plan.actions, into: &report)
  }

  /// Tries again to remove directories that an earlier pass emptied and could not remove.
  private func removeLeftovers(_ folder: any FolderPort, into report: inout PassReport) throws {
    let known = try ports.ledger.problems(limit: PassReport.mostProblems).filter {
      $0.code == Problem.leftoverCode
    }
    guard !known.isEmpty, !stop.isSet, try folder.isIntact() else { return }
    for path in known.compactMap({ try? RelativePath($0.name) }) {
      do throws(FolderFailure) {
        try folder.removeEmptied(path)
      } catch {
        observer.take(Problem(leftover: error, of: path, seen: ports.now), into: &report)
      }
    }
  }

  /// Paths that changed while the plan was carried out go back to the start, twice at most.
  ///
  /// - Returns: the plan with what was decided again, and true when another manifest wants something of them otherwise.
  private func settleStale(
    _ first: Submission, _ plan: Plan, _ writer: PlanWriter, into report: inout PassReport
  ) throws -> (Plan, isSuperseded: Bool) {
    var (submission, plan) = (first, plan)
    for _ in 0..<2 {
      guard !submission.isSuperseded, !submission.stale.isEmpty, !stop.isSet else { break }
      let brought = ports.engine.urgentlyPlaced
      plan = try writer.replan(submission.takeStale(), of: plan)
      submission = try Submission(again: submission, broughtBefore: brought)
      try ports.engine.submit(submission).wait()
    }
    if submission.isSuperseded { return (plan, true) }
    for action in stop.isSet ? [] : submission.takeStale() {
      observer.take(Problem(changedMeanwhile: action.path, seen: ports.now), into: &report)
    }
    return (plan, false)
  }

  // MARK: Recording

  private func report(_ feed: PlannedFeed, started: Timestamp) -> PassReport {
    let (end, walk) = (feed.end, feed.walk)
    var report = PassReport(feed: request.feed.text, folder: request.folderName, started: started)
    report.format = end.format
    report.refreshSeconds = end.refreshSeconds.map { Int64(clamping: $0) }
    report.isComplete = feed.isComplete
    report.isWindow = feed.plan.isWindow
    report.incompleteReason = end.incompleteReason
    if end.isComplete, let failure = walk?.failures.first {
      let name = Printable.escape(failure.name)
      report.incompleteReason = "\(name) could not be read whole: \(failure.message)"
    }
    report.counts = feed.plan.counts
    report.bytes = feed.plan.bytes
    report.problems = feed.plan.problems
    for failure in walk?.failures ?? [] { report.problems.append(failure) }
    report.listingFailures = walk?.failures.count ?? 0
    return report
  }

  /// - Parameter lastEvent: before the pass began.
  /// - Parameter before: how the mirror stood, where this pass says nothing of all of it.
  private func record(
    _ report: PassReport, _ feed: FeedRecord?, over before: MirrorRecord?, after lastEvent: Int64
  ) throws {
    var changes: [LedgerChange] = report.problems.map { .problem($0) }
    if !report.wasStopped, before == nil { changes.append(.dropProblems(seenBefore: report.started)) }
    changes += report.namedEarly.subtracting(report.problems.map(\.name)).map { .dropProblem(name: $0) }
    changes.append(report.unnamed.change(began: report.started))
    changes += [
      .fact(.format, report.format),
      .fact(.ended, report.ended.rfc3339),
      .fact(.entriesWanted, String(report.counts.wanted)),
      .fact(.entriesCurrent, String(report.counts.inPlace)),
      .fact(.entriesKept, String(report.counts.kept)),
      .fact(.entriesUnlisted, String(report.counts.unlisted)),
      .fact(.complete, report.isComplete ? "yes" : "no: \(report.incompleteReason)"),
      .fact(.outcome, report.outcome), .fact(.trashKept, request.policy.keepTrash.map(String.init)),
    ]
    changes += PassProgress.Snapshot.noChanges + sizes(report.bytes)
    changes += before?.changes ?? []
    changes.append(.fact(.feedRecord, feed?.encoded))
    if report.isInSync, before == nil { changes.append(.fact(.success, report.ended.rfc3339)) }
    changes.append(.fact(.latestTime, String(try latestTime().nanoseconds)))
    if !report.wasStopped { changes.append(try LossBook.change(ports, beganAfter: lastEvent)) }
    changes += prunings(now: report.ended)
    try note(changes)
  }

  /// Events that no reader has to be given any more: beyond the retention, but the newest are kept in any case, and beyond
  /// the most that a ledger is to hold.
  private func prunings(now: Timestamp) -> [LedgerChange] {
    [
      .pruneEvents(keeping: 100_000, before: now.adding(seconds: -request.keepEvents), now: now),
      .pruneEvents(keeping: 1_000_000, before: .distantFuture, now: now),
    ]
  }

  private func sizes(_ bytes: PassBytes) -> [LedgerChange] {
    [
      .fact(.bytesWanted, String(bytes.wanted)), .fact(.sizesUnknown, String(bytes.unknownSizes)),
      .fact(.bytesCurrent, String(bytes.inPlace)),
    ]
  }

  func note(_ changes: [LedgerChange]) throws {
    try ports.ledger.apply(changes)
  }

  func enter(_ phase: PassEvent.Phase) {
    progress.change { $0.phase = phase }
    observer.pass(.phase(phase))
    // What `tarn status` shows beside a running pass; soon stale, so a failure is of no account here.
    try? ports.ledger.applyVolatile([.fact(.phase, phase.rawValue)])
  }
}

extension PassFailure {
  init(_ failure: FeedFailure, feed: String) {
    let place = failure.line.map { line in ":\(line)" + (failure.column.map { ":\($0)" } ?? "") } ?? ""
    let kind: Kind = failure.code == "feed-not-readable" ? .feedUnreachable : .feedMalformed
    self.init(
      kind, code: failure.code, "\(Printable.escape(feed))\(place): \(failure.message)",
      hint: failure.hint ?? "nothing was changed")
  }
}
