package import TarnCore
package import TarnRuntime

/// A request for a pass: the feed, the folder, and the options.
package struct PassRequest: Sendable {
  package var feed: FeedLocation
  /// The folder's path as users see it, for messages only.
  package var folderName: String
  package var policy: PassPolicy
  /// True when the ledger is new beside an old folder, because it was damaged. This pass then deletes nothing.
  package var wasRebuilt = false
  /// True when its options apply to this pass alone.
  package var isOnce = false
  /// True when these options also choose other files than the mirror's own. This pass then records nothing about the mirror as a
  /// whole.
  package var choosesOthers = false
  /// True when a held plan stays held: this pass judges no deletions, or not by the mirror's own options.
  package var keepsHold = false
  /// The facts that the ledger stores once the feed was read, so that a mistyped feed is not followed later. `nil` removes a fact.
  package var facts: [(name: LedgerFact, value: String?)] = []
  /// A digest of everything besides the feed that determines the plan. `nil` makes the pass read the feed whole in any case.
  package var settings: String?
  /// The most entries in memory that wait for the same reason, such as a duplicate's bytes. For further ones the plan is read
  /// again.
  package var mostHeldBack = 4096

  /// Called when the pass fails. Returns true when the ledger, and its journal, are about to be dropped. `nil` when they always
  /// stay.
  package var isJournalLost: (@Sendable () -> Bool)?
  /// The seconds for which events are kept for readers that were away.
  package var keepEvents: Int64 = 14 * 86_400
  /// The orders about single transfers; `nil` for none.
  package var steering: PassSteering?
  /// Returns true when the folder is as the last pass or repair left it, because it has been watched ever since.
  package var isAsLeft: (@Sendable () -> Bool)?
  /// What the options give a server that asks for credentials.
  package var credentials = Credentials.none

  /// The options that give credentials.
  package enum Credentials: Sendable { case none, netrc, headers }

  package init(feed: FeedLocation, folderName: String, policy: PassPolicy) {
    self.feed = feed
    self.folderName = folderName
    self.policy = policy
  }
}

/// A feed that was read, and the plan that follows from it.
struct PlannedFeed {
  let planner: FeedPlanner
  let end: FeedEnd
  /// The walk over the directories of an index, or over pages. `nil` for a single document.
  var walk: ListingWalk?

  var isComplete: Bool { end.isComplete && walk?.failures.isEmpty != false }

  var formats: ListFormats { ListFormats(end.format, below: walk?.formats ?? []) }

  var plan: Plan {
    get { planner.writer.plan }
    nonmutating set { planner.writer.plan = newValue }
  }
}

/// One pass: read, compare, plan, carry out, record, report. It blocks, and uses one thread, which owns it.
package struct Pass {
  let ports: PassPorts
  let request: PassRequest
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag

  package init(
    ports: PassPorts, request: PassRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag
  ) {
    (self.ports, self.request, self.observer) = (ports, request, observer)
    (self.progress, self.stop) = (progress, stop)
  }

  /// Plans a sync, including what the guard would hold and which entries would wait for it. Changes nothing.
  ///
  /// - Parameter each: called with every planned action, in order, and whether it is a deletion that would be held.
  package func plan(
    folder: any FolderReading, each: (_ action: Action, _ isHeld: Bool) -> Void
  ) throws(PassFailure) -> PassReport {
    try PassFailure.translating(feed: request.feed.text) {
      let started = ports.now
      enter(.reading)
      let feed = try read(reader.open(request.feed), folder, reader, started: started)
      let (verdict, _) = try judge(feed)
      if !verdict.mayGo { feed.planner.writer.reportDirectories() }
      var report = report(feed, started: started)
      report.isPlan = true
      if case .held(let plan) = verdict { report.hold(plan) }
      let actions = try ports.stage.actions()
      while let action = try actions.next() {
        if let blocker = action.blocker,
          let problem = verdict.problem(of: action.path, below: blocker, seen: started)
        {
          observer.report(problem, into: &report)
        } else if verdict.mayGo || (action.kind != .delete && action.kind != .forget) {
          each(action, false)
        } else if report.held != nil, action.kind == .delete {
          each(action, true)
        }
      }
      if verdict.mayGo { for action in feed.plan.behindDirectories { each(action, false) } }
      report.counts.deleted = verdict.mayGo ? feed.plan.work.deletions : 0
      report.counts.planned.all += report.counts.deleted
      report.ended = ports.now
      return report
    }
  }

  /// Brings the folder into line with the feed. The caller holds the folder's lock.
  ///
  /// On return, everything that the report calls done is durable.
  package func run(folder: any FolderPort) throws(PassFailure) -> PassReport {
    let before = try PassFailure.translating(feed: request.feed.text) {
      try request.choosesOthers ? MirrorRecord(ports.ledger) : nil
    }
    do throws(PassFailure) {
      let report = try runToEnd(folder, over: before)
      // `tarn status` reads it, and the next repair or pass mends it.
      try? recordRepairPending()
      return report
    } catch {
      let failure = error
      var changes = PassProgress.Snapshot.noChanges
      changes += Self.end(with: failure)
      changes += before?.changes ?? []
      // An event in a ledger that is dropped would later be missing for readers of events.
      if failure.kind != .stopped, request.isJournalLost?() != true {
        changes += Self.event(of: failure, at: ports.now)
      }
      // The pass has failed already. If the ledger cannot take this, `failure` has its message.
      try? note(changes)
      throw failure
    }
  }

  private static func end(with failure: PassFailure) -> [LedgerChange] {
    let isStopped = failure.kind == .stopped
    return [
      .fact(.outcome, isStopped ? "stopped" : "failed"),
      .fact(.failure, isStopped ? nil : failure.message),
      .fact(.failureHint, isStopped ? nil : failure.hint), .fact(.feedRecord, nil),
    ]
  }

  private static func event(of failure: PassFailure, at now: Timestamp) -> [LedgerChange] {
    let detail = "\(failure.message) [\(failure.code)]"
    return [.event(Event(when: now, code: "pass-failed", detail: detail)), .fact(.toldFailure, failure.code)]
  }

  /// Returns the event that passes succeed again, when a failed one was reported.
  private func recovered() throws -> [LedgerChange] {
    guard let code = try ports.ledger.fact(.toldFailure) else { return [] }
    let event = Event(when: ports.now, code: ProblemNews.ended, detail: "a pass had failed [\(code)]")
    return [.event(event), .fact(.toldFailure, nil)]
  }

  /// Returns the ledger's changes for a pass that the mirror's own settings refused before it began. Until that is corrected, every
  /// pass is refused.
  package static func refused(by failure: PassFailure, at now: Timestamp) -> [LedgerChange] {
    [.fact(.attempt, now.rfc3339)] + end(with: failure) + event(of: failure, at: now)
  }

  /// Repairs what a crash left, once for all who work in the folder at a time.
  func recover(_ folder: any FolderPort) throws -> Recovery {
    let recovery = Recovery(ledger: ports.ledger, folder: folder, clock: ports.clock)
    try ports.engine.prepareOnce { try recovery.run() }
    return recovery
  }

  /// - Parameter earlier: the record of the mirror, when this pass says nothing about the mirror as a whole.
  private func runToEnd(_ folder: any FolderPort, over earlier: MirrorRecord?) throws(PassFailure)
    -> PassReport
  {
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
      ])
      enter(.reading)
      var (report, record): (PassReport, FeedRecord?)
      let reader = reader
      // This pass does not see what repairs do from here on.
      let before = ports.engine.history
      switch try open(since: known, folder, reader) {
      case .unchanged(let known, let how):
        (report, record) = (unchanged(known, how, started: started), known)
        // Facts that a pass was given for once may now be given for good.
        let facts = try request.facts.filter { try ports.ledger.fact($0.name) != $0.value }
        if !facts.isEmpty { try note(facts.map { .fact($0.name, $0.value) }) }
        observer.pass(.planned(report))
      case .document(let document):
        (report, record) = try follow(document, folder, recovery, reader, since: before, started: started)
      }
      guard try folder.isIntact() else { throw Self.replaced(folder: request.folderName) }
      try recovery.expireTrash(after: request.policy.keepTrash)
      report.ended = ports.now
      if ports.engine.history.records != before.records { record = nil }
      try self.record(report, record, over: earlier, after: lastEvent)
      // A repair may have recorded at the same time.
      report.isBesideRepairs = ports.engine.history.records != before.records
      if record != nil, report.isBesideRepairs { try note([.fact(.feedRecord, nil)]) }
      // The problems that are shown get their number of failures.
      for index in report.problems.indices.prefix(Self.mostCounted) {
        let known = try ports.ledger.problem(name: report.problems[index].name)
        report.problems[index].attempts = known?.attempts ?? 1
      }
      return report
    }
  }

  private static let mostCounted = 20

  /// Carries out what a feed asks for that was read.
  ///
  /// - Returns: the report, and the record that the next pass may use.
  private func follow(
    _ document: FeedReader.Document, _ folder: any FolderPort, _ recovery: Recovery, _ reader: FeedReader,
    since before: TransferEngine.History, started: Timestamp
  ) throws -> (PassReport, FeedRecord?) {
    let feed = try read(document, folder, reader, started: started)
    // This must come before the present format of the list is recorded.
    let (verdict, hold) = try judge(feed)
    (feed.plan.verdict, feed.plan.since) = (verdict, before)
    let plan = feed.plan
    let isRead = feed.isComplete || plan.isWindow && feed.walk?.failures.isEmpty != false
    let saysAll = isRead && !plan.hasBlindSpot && !request.choosesOthers
    try accept(feed, document, solved: plan.old.over(saysAll: saysAll))
    // The held plan belongs to an older manifest: files that it names may be wanted again.
    if !request.keepsHold { try dropHold(for: verdict) }
    // Running repairs of an earlier manifest follow this one from now on. Only the engine's thread reads this catalog. Without a
    // catalog no path is known to be wanted.
    let catalog = try openCatalog()
    ports.engine.follow { try catalog?.entry($0) }
    if saysAll, let catalog { try dropUnwanted(feed, catalog, since: started) }
    // One of these may have recorded what it brings meanwhile.
    try recordRepairPending()
    // Partial files that a repair continues are left to a later pass.
    try ports.engine.claimingFree(Array(plan.partials.over(saysAll: saysAll))) { free, _ in
      try recovery.drop(partials: Set(free))
    }
    var report = report(feed, started: started)
    if case .held(let plan) = verdict {
      try hold?.keep(plan)
      report.hold(plan)
    }
    observer.pass(.planned(report))
    let list = plan.feed.plansList ? try reader.listFile(document) : nil
    defer { withExtendedLifetime(list) {} }
    feed.plan.feed.listURL = list?.url
    try carryOut(feed.planner.writer, in: folder, hold: hold, into: &report)
    guard verdict.mayGo, report.held == nil else { return (report, nil) }
    // Only a pass that left nothing that it could have deleted lets a list of this format delete.
    if feed.isComplete || plan.isWindow, !report.wasStopped, !request.isOnce,
      report.counts.unlisted == 0, plan.filteredRows == 0
    {
      try note([.fact(.deletingFormat, feed.formats.text)])
    }
    return (report, try feedRecord(document, feed.end, feed.planner.writer.plan, report))
  }

  /// Drops a held plan in favour of the present verdict. The journal records that, unless the same plan stays held.
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

  var reader: FeedReader { FeedReader(pass: self) }

  private func read(
    _ document: FeedReader.Document, _ folder: any FolderReading, _ reader: FeedReader, started: Timestamp
  ) throws -> PlannedFeed {
    let planner = FeedPlanner(self, folder, started: started)
    switch try reader.kind(of: document) {
    case .window: return try readWindow(document, reader, planner)
    case .index: return try readInAnyOrder(document, reader, planner)
    case .list: break
    }
    do {
      try planner.begin(isInOrder: true)
      let end = try reader.parse(document, place: nil) { item in
        try stop.throwIfSet()
        try planner.add(item)
      }
      try check(end)
      enter(.planning)
      try planner.finish()
      return PlannedFeed(planner: planner, end: end)
    } catch is Comparison.OutOfOrder {
      return try readInAnyOrder(document, reader, planner)
    }
  }

  private func readInAnyOrder(
    _ document: FeedReader.Document, _ reader: FeedReader, _ planner: FeedPlanner
  ) throws -> PlannedFeed {
    try planner.begin(isInOrder: false)
    let walk = ListingWalk(reader: reader) { item in
      try stop.throwIfSet()
      try planner.add(item)
    }
    let end = try walk.root(document)
    try check(end)
    try walk.run()
    enter(.planning)
    try planner.finish()
    return PlannedFeed(planner: planner, end: end, walk: walk)
  }

  /// Records what must be remembered of the feed, which is now followed, even when the pass is stopped.
  ///
  /// - Parameter solved: the names of problems about paths that are no longer wanted, or are in place.
  private func accept(
    _ feed: PlannedFeed, _ document: FeedReader.Document, solved: Set<[UInt8]>
  ) throws {
    let (plan, end) = (feed.plan, feed.end)
    var changes = request.facts.map { LedgerChange.fact($0.name, $0.value) }
    changes += try solved.map { name in
      // A directory that could not be read is not an entry.
      let isEntry = try ports.ledger.problem(name: name)?.code != FolderFailure.Code.permission.rawValue
      return .dropProblem(name: name, isUnwanted: isEntry && plan.old.unnamed.contains(name))
    }
    if !request.choosesOthers {
      changes += [
        .fact(.entriesWanted, String(plan.counts.wanted)),
        .fact(.entriesCurrent, String(plan.counts.current)),
        // What repairs are bringing was missing for this pass.
        .fact(.repairPending, nil),
        .fact(.keptList, plan.feed.listPath.map { Base64.encode($0.bytes) }),
      ]
      changes += sizes(plan.bytes)
    }
    if let version = end.version { changes.append(.fact(.manifestVersion, String(version))) }
    changes += [
      .fact(.format, end.format), .fact(.listedFormats, feed.formats.text),
      .fact(.refresh, end.refreshSeconds.map { String($0) }),
      .fact(.upstreamChanged, end.isIndex ? nil : document.head?.changed?.rfc3339),
    ]
    changes += plan.feed.learned
    // The success of another feed says nothing about this one.
    if try ports.ledger.fact(.feed) != request.feed.text { changes.append(.fact(.success, nil)) }
    // The first format is the one that later formats are compared with.
    if try ports.ledger.fact(.deletingFormat) == nil {
      changes.append(.fact(.deletingFormat, try ports.ledger.fact(.format) ?? feed.formats.text))
    }
    changes.append(.fact(.catalog, commitCatalog(feed)))
    try note(changes)
  }

  /// Drops what repairs have told of files of the earlier manifest while this one was read, which does not name them.
  private func dropUnwanted(
    _ feed: PlannedFeed, _ catalog: any CatalogReading, since started: Timestamp
  ) throws {
    let own = Set((feed.plan.problems + (feed.walk?.failures ?? [])).map(\.name))
    let late = try ports.ledger.problems(limit: PassReport.mostProblems).filter { problem in
      guard problem.seen >= started, [.conflict, .failed].contains(problem.kind), !own.contains(problem.name),
        ![Problem.leftoverCode, FolderFailure.Code.permission.rawValue].contains(problem.code),
        let path = try? RelativePath(problem.name)
      else { return false }
      return try catalog.entry(path) == nil
    }
    try note(late.map { .dropProblem(name: $0.name, isUnwanted: true) })
  }

  // MARK: Carrying out

  /// - Parameters:
  ///   - writer: has the plan, and decides again about stale paths.
  ///   - repair: the repair, whose transfers are urgent; `nil` for a pass.
  ///   - hold: asked again just before anything is deleted, because promised files may be missing.
  /// - Returns: true when another manifest wants some of it otherwise, or may do so.
  @discardableResult
  func carryOut(
    _ writer: PlanWriter, in folder: any FolderPort, of repair: BringingRepair? = nil,
    hold: DeletionHold? = nil, into report: inout PassReport
  ) throws -> Bool {
    let plan = writer.plan
    let priority: TransferPriority = repair == nil ? .normal : .urgent
    progress.change { snapshot in
      snapshot.filesTotal = plan.counts.planned.all - plan.counts.planned.recorded
      snapshot.onlyAsks = plan.counts.toChange == 0
      snapshot.bytesTotal = plan.bytes.planned
      snapshot.bytesMissing = plan.bytesWithRecorded
      snapshot.unknownSizes = plan.work.unknownSizes
    }
    if plan.counts.planned.all > plan.counts.planned.recorded { enter(.transferring) }
    try tellSpace(folder, plan.bytes.planned)
    let transfers = try ports.engine.submit(
      plan, for: client(folder, of: repair), priority: priority, observer: observer,
      early: priority == .urgent ? nil : EarlyProblems(report))
    try transfers.wait()
    let submission = transfers.submission
    try settleStale(transfers, submission.stale, writer, into: &report)
    // The last of its plans was read up to the deletions.
    try delete(submission.plan, plan, in: folder, hold, into: &report)
    // A repair removes nothing.
    if priority != .urgent { try removeLeftovers(folder, into: &report) }
    try settleStale(transfers, plan.behindDirectories, writer, into: &report)
    report.bytes = writer.plan.bytes
    report.add(transfers.account)
    if transfers.account.hasUnsettled { writer.plan.feed.asksForEach = true }
    report.add(writer.plan, since: plan.counts)
    report.wasStopped = stop.isSet
    try forgetBrought(folder, from: &report)
    try tellTrash(report)
    return submission.isSuperseded || submission.isUrgent && !submission.stale.isEmpty
      || transfers.account.untold > 0
  }

  /// Counts entries as current that another client has brought since they failed here, or while this one looked: without their rows
  /// they were in conflict.
  private func forgetBrought(_ folder: any FolderPort, from report: inout PassReport) throws {
    // Only a mirror that keeps a catalog has repairs.
    guard report.counts.failed + report.counts.conflict > 0, let catalog = try openCatalog() else { return }
    let started = report.started
    var (brought, bytes) = (0, UInt64(0))
    try report.dropProblems { problem in
      guard problem.kind == .failed || problem.kind == .conflict,
        let path = try? RelativePath(problem.name), let row = try ports.ledger.row(path),
        let entry = try catalog.entry(path),
        // Of such an entry only its server knows the version, so its row has to be new.
        row.isVersion(of: entry)
          || problem.kind == .conflict && entry.digest == nil && row.isOfUnknownVersion
            && row.placed >= started,
        (try? folder.look(path))?.identity.isSame(as: row.identity) == true
      else { return false }
      brought += 1
      bytes.addSaturated(row.identity.size)
      return true
    }
    report.counts.current += brought
    report.bytes.current.addSaturated(bytes)
  }

  /// Carries out the last step of a plan: files that a complete manifest no longer names go to the trash.
  private func delete(
    _ rest: PlanReader, _ plan: Plan, in folder: any FolderPort, _ hold: DeletionHold?,
    into report: inout PassReport
  ) throws {
    guard let first = rest.front, plan.verdict.mayGo, !stop.isSet, try folder.isIntact() else {
      return
    }
    if let held = plan.verdict == .allowedIfReplaced ? try hold?.judge() : nil {
      try hold?.keep(held)
      return report.hold(held)
    }
    let spared = try plan.feed.newest?.spared(Set(ports.ledger.placedNames().map(\.path))) ?? []
    if plan.work.deletions > spared.count { enter(.deleting) }
    let removals = Removals(
      ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random,
      ownWrites: ports.ownWrites, code: plan.isWindow ? "expired" : "deleted")
    var next: Action? = first
    while next != nil, !stop.isSet {
      var group: [Action] = []
      while let action = next, group.count < PublishThread.largestGroup {
        if !spared.contains(action.path) { group.append(action) }
        next = try rest.actions.next()
      }
      // A client that brings a file to one of these paths has done so by then, or looks first.
      let outcomes = try ports.engine.claiming(group.map(\.path)) { try removals.carryOut(group) }
      for (action, outcome) in outcomes {
        observer.report(
          outcome, of: action, seen: ports.now, into: &report.problems, counting: &report.counts)
        if case .removed = outcome, action.kind == .forget, action.present != nil { report.released += 1 }
      }
    }
  }

  /// Tries again to remove directories that an earlier pass emptied but could not remove.
  private func removeLeftovers(_ folder: any FolderPort, into report: inout PassReport) throws {
    let known = try ports.ledger.problems(limit: PassReport.mostProblems).filter {
      $0.code == Problem.leftoverCode
    }
    guard !known.isEmpty, !stop.isSet, try folder.isIntact() else { return }
    for path in known.compactMap({ try? RelativePath($0.name) }) {
      do throws(FolderFailure) {
        try folder.removeEmptied(path)
      } catch {
        observer.report(Problem(leftover: error, of: path, seen: ports.now), into: &report)
      }
    }
  }

  /// Decides again, at most twice, about paths that changed while the plan was carried out, unless another manifest wants some of
  /// them otherwise. Paths that keep changing are reported by a pass, and checked again later by a repair.
  private func settleStale(
    _ transfers: Transfers, _ actions: [Action], _ writer: PlanWriter, into report: inout PassReport
  ) throws {
    let submission = transfers.submission
    var open = actions
    for isLast in [false, true] {
      guard !submission.isSuperseded, !open.isEmpty, !stop.isSet else { break }
      writer.plan.since = ports.engine.history
      try writer.replan(open)
      try ports.engine.resubmit(writer.plan, after: transfers, isLast: isLast).wait()
      open = submission.stale
    }
    for action in stop.isSet || submission.isSuperseded ? [] : open {
      observer.report(Problem(changedMeanwhile: action.path, seen: ports.now), into: &report)
    }
  }

  // MARK: Recording

  private func report(_ feed: PlannedFeed, started: Timestamp) -> PassReport {
    let (end, walk) = (feed.end, feed.walk)
    var report = PassReport(feed: request.feed.text, folder: request.folderName, started: started)
    report.manifest.format = end.format
    report.refreshSeconds = end.refreshSeconds.map { Int64(clamping: $0) }
    report.manifest.isComplete = feed.isComplete
    report.manifest.isWindow = feed.plan.isWindow
    report.manifest.incompleteReason = end.incompleteReason
    if end.isComplete, let failure = walk?.failures.first {
      let name = Printable.escape(failure.name)
      report.manifest.incompleteReason = "\(name) could not be read whole: \(failure.message)"
    }
    report.counts = feed.plan.counts
    report.bytes = feed.plan.bytes
    report.problems = feed.plan.problems + (walk?.failures ?? [])
    report.listingFailures = walk?.failures.count ?? 0
    return report
  }

  /// - Parameters:
  ///   - before: the record of the mirror, when this pass says nothing about the mirror as a whole.
  ///   - lastEvent: the number of the last event before the pass began.
  private func record(
    _ report: PassReport, _ feed: FeedRecord?, over before: MirrorRecord?, after lastEvent: Int64
  ) throws {
    var changes: [LedgerChange] = report.problems.map { .problem($0) }
    if !report.wasStopped, before == nil { changes.append(.dropProblems(seenBefore: report.started)) }
    changes += report.namedEarly.subtracting(report.problems.map(\.name)).map { .dropProblem(name: $0) }
    changes.append(report.unnamed.change(began: report.started))
    changes += [
      .fact(.format, report.manifest.format),
      .fact(.ended, report.ended.rfc3339),
      .fact(.entriesWanted, String(report.counts.wanted)),
      .fact(.entriesCurrent, String(report.counts.inPlace)),
      .fact(.entriesKept, String(report.counts.kept)),
      .fact(.entriesUnlisted, String(report.counts.unlisted)),
      .fact(.entriesExcluded, String(report.counts.excluded)),
      .fact(.complete, report.manifest.isComplete ? "yes" : "no: \(report.manifest.incompleteReason)"),
      .fact(.outcome, report.outcome), .fact(.trashKept, request.policy.keepTrash.map(String.init)),
    ]
    changes += PassProgress.Snapshot.noChanges + sizes(report.bytes)
    // Repairs that are still running.
    changes.append(.fact(.repairPending, ports.engine.repairPending))
    changes += before?.changes ?? []
    if before != nil, report.counts.updated + report.counts.replaced + report.counts.copied > 0 {
      changes += try staleList()
    }
    changes.append(.fact(.feedRecord, feed?.encoded))
    if !report.wasStopped { changes += try recovered() }
    if report.isInSync, before == nil { changes.append(.fact(.success, report.ended.rfc3339)) }
    changes.append(.fact(.latestTime, String(try latestTime().nanoseconds)))
    if !report.wasStopped { changes.append(try LossBook.change(ports, beganAfter: lastEvent)) }
    // Prunes events beyond the retention, except the newest 100,000, and events beyond the most that a ledger may hold.
    let now = report.ended
    changes += [
      .pruneEvents(keeping: 100_000, before: now.adding(seconds: -request.keepEvents), now: now),
      .pruneEvents(keeping: 1_000_000, before: .distantFuture, now: now),
    ]
    try note(changes)
  }

  /// Returns the problem that the checksum list is outdated. The list is kept as the mirror's own pass brought it. It does not
  /// match files that a pass with `--once` brought, until the next pass.
  private func staleList() throws -> [LedgerChange] {
    guard let known = try ports.ledger.fact(.keptList), let name = Base64.decode(Array(known.utf8)) else {
      return []
    }
    return [
      .problem(
        Problem(
          name: name, kind: .failed, code: "list-older",
          message:
            "it is older than files that a pass with --once brought, and does not fit them: the next pass brings it",
          seen: ports.now))
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
    // `tarn status` shows this beside a running pass. It is soon outdated, so a failure does not matter.
    try? ports.ledger.applyVolatile([.fact(.phase, phase.rawValue)])
  }

  // MARK: Whether a manifest may be followed at all (I7)

  /// Refuses a manifest that is expired or older than the one before it (I7).
  func check(_ end: FeedEnd) throws {
    if let notice = end.notice { observer.notice(notice.code.rawValue, notice.message) }
    let latest = try latestTime()
    if let expires = end.expires, expires < latest {
      let isBehind = expires >= ports.now
      throw PassFailure(
        .feedMalformed, code: "feed-expired",
        "the manifest expired at \(expires.rfc3339); nothing was changed"
          + (isBehind
            ? "; the last pass was at \(latest.rfc3339), and the clock says an earlier time now" : ""),
        hint: isBehind
          ? "set this machine's clock; if it was ahead then, 'tarn forget' the mirror and make it again with --adopt"
          : "ask its publisher for a new one")
    }
    if let version = end.version, let known = try ports.ledger.fact(.manifestVersion),
      let last = UInt64(known), version < last
    {
      throw PassFailure(
        .feedMalformed, code: "feed-older",
        "the manifest is version \(version), and version \(last) was accepted before; nothing was changed",
        hint: "the server sends an old copy, or somebody replays one")
    }
  }

  /// Returns the present time, or that of an earlier pass when the clock was set back since. An expired manifest stays expired
  /// (I7).
  func latestTime() throws -> Timestamp {
    let known = try ports.ledger.fact(.latestTime).flatMap { Int64($0) }
    return known.map { max(ports.now, Timestamp(nanoseconds: $0)) } ?? ports.now
  }

  // MARK: What of a plan may be deleted

  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: the verdict, and the hold to ask again.
  func judge(_ feed: PlannedFeed) throws -> (DeletionVerdict, DeletionHold?) {
    let plan = feed.plan
    if let reason = whyNothingIsDeleted(plan, isComplete: feed.isComplete) {
      if request.choosesOthers, plan.work.deletions > 0 {
        let files = Units.count(plan.work.deletions, "file")
        observer.notice("nothing-deleted", "\(files) could go, but nothing is deleted: \(reason)")
      }
      return (.forbidden(reason), nil)
    }
    // Deletions from a window are what `keep` and `max-age` ask for.
    guard !plan.isWindow else {
      feed.plan.admitBlocked()
      return (.allowed, nil)
    }
    let hold = try DeletionHold(ports, request.policy, feed)
    if let held = try hold.judge() {
      guard try hold.judge(areReplaced: true) == nil else { return (.held(held), hold) }
      guard plan.makesWay else { return (.allowedIfReplaced, hold) }
      // Files in the way of new files cannot wait for these.
      guard plan.work.deletions <= DeletionGuard.least else { return (.held(held), hold) }
    }
    feed.plan.admitBlocked()
    return (.allowed, hold)
  }

  /// Returns the reason why this pass may delete nothing. Deletions, including dropped rows, need the mirror's own options, a
  /// complete manifest or a window's age limit, and a folder that was read whole.
  ///
  /// - Returns: the reason; `nil` when deletions are allowed.
  private func whyNothingIsDeleted(_ plan: Plan, isComplete: Bool) -> String? {
    if request.choosesOthers {
      return
        "these options hold for one pass, and choose other files than the mirror's own; to delete by them, make them the mirror's own"
    }
    if !isComplete, !plan.isWindow { return "the list is not complete" }
    if plan.hasBlindSpot { return "the folder could not be read whole" }
    return request.wasRebuilt ? "the ledger is new" : nil
  }

  // MARK: A disk that is too small

  /// Reports before the first byte when the plan does not fit. Replaced versions stay in the trash, so the peak is the present use
  /// plus all that is planned.
  func tellSpace(_ folder: any FolderPort, _ planned: UInt64) throws {
    let available = try SpaceBudget(folder, reserve: request.policy.reserve).available
    guard planned > available else { return }
    observer.notice(
      "space-short",
      "the plan needs \(Units.show(planned)) at its peak, and \(Units.show(available)) are free beyond "
        + "the reserve; what does not fit is reported, the rest is done")
  }

  /// Reports where space could be freed, once something did not fit.
  func tellTrash(_ report: PassReport) throws {
    let codes = [FolderFailure.Code.noSpace.rawValue, FolderFailure.Code.quota.rawValue]
    guard report.problems.contains(where: { codes.contains($0.code) }) else { return }
    let bytes = try ports.ledger.trashTotals().bytes
    guard bytes > 0 else { return }
    observer.notice(
      "space-short",
      "the trash holds \(Units.show(bytes)); to remove it for good: tarn trash empty "
        + ShellWord.quote(request.folderName))
  }
}

/// Adds the results of transfers and plans to the report.
extension PassReport {
  mutating func add(_ account: TransferAccount) {
    counts.add(account.counts)
    bytes.current.addSaturated(account.bytes.current)
    bytes.received = account.bytes.received
    bytes.published = account.bytes.published
    bytes.confirmed = account.bytes.confirmed
    account.learned.apply(to: &bytes)
    problems.keep(account.problems)
    namedEarly = Set(account.early?.open.keys.map { $0 } ?? [])
  }

  /// Adds the results of deciding again about stale paths.
  mutating func add(_ plan: Plan, since before: PassCounts) {
    counts.add(plan.counts, since: before)
    let known = Set(problems.map(\.name))
    problems.keep(plan.problems.filter { !known.contains($0.name) })
  }

  mutating func hold(_ plan: HeldPlan) {
    held = plan
    counts.held = plan.count
  }
}
