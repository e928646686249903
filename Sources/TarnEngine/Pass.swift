package import TarnCore
package import TarnRuntime

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
  /// What the ledger remembers once the feed was read: a mistyped feed is not followed from then on. nil takes a fact away.
  package var facts: [(name: LedgerFact, value: String?)] = []
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
  let planner: FeedPlanner
  let end: FeedEnd
  /// Of an index whose directories were walked, or of pages; nil of one document.
  var walk: ListingWalk?

  var isComplete: Bool { end.isComplete && walk?.failures.isEmpty != false }

  var plan: Plan {
    get { planner.writer.plan }
    nonmutating set { planner.writer.plan = newValue }
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
    (self.ports, self.request, self.observer) = (ports, request, observer)
    (self.progress, self.stop) = (progress, stop)
  }

  /// What a sync would do: also what the guard would hold, and what would wait for it. Changes nothing.
  ///
  /// - Parameter each: gets every planned action, in order, and whether it is a deletion that would be held.
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
      if case .held(var plan) = verdict {
        if let before = try ports.ledger.held(), before.id == plan.id { plan.when = before.when }
        report.hold(plan)
      }
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
      report.counts.planned += report.counts.deleted
      report.ended = ports.now
      return report
    }
  }

  /// Brings the folder into line. The folder's lock is held by the caller.
  ///
  /// When it returns, everything that the report calls done is durable.
  package func run(folder: any FolderPort) throws(PassFailure) -> PassReport {
    let before = try PassFailure.translating(feed: request.feed.text) {
      try request.choosesOthers ? MirrorRecord(ports.ledger) : nil
    }
    do throws(PassFailure) {
      return try runToEnd(folder, over: before)
    } catch {
      let failure = error
      var changes = PassProgress.Snapshot.noChanges
      changes += Self.end(with: failure)
      changes += before?.changes ?? []
      // Whoever follows the events would get one that is nowhere later.
      if failure.kind != .stopped, request.isJournalLost?() != true {
        changes += Self.event(of: failure, at: ports.now)
      }
      // The pass has failed already; a ledger that cannot take this has its own message in `failure`.
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

  /// That a pass does its work again, for whoever heard that one did not.
  private func recovered() throws -> [LedgerChange] {
    guard let code = try ports.ledger.fact(.toldFailure) else { return [] }
    let event = Event(when: ports.now, code: ProblemNews.ended, detail: "a pass had failed [\(code)]")
    return [.event(event), .fact(.toldFailure, nil)]
  }

  /// What the ledger keeps of a pass that was refused before it could begin, by what the mirror itself goes by: until that is mended
  /// each one will be.
  package static func refused(by failure: PassFailure, at now: Timestamp) -> [LedgerChange] {
    [.fact(.attempt, now.rfc3339)] + end(with: failure) + event(of: failure, at: now)
  }

  /// What a crash left is put right once for all who work in the folder at a time.
  func recover(_ folder: any FolderPort) throws -> Recovery {
    let recovery = Recovery(ledger: ports.ledger, folder: folder, clock: ports.clock)
    try ports.engine.prepareOnce { try recovery.run() }
    return recovery
  }

  /// - Parameter earlier: how the mirror stood, where this pass says nothing of all of it.
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
        .fact(.repairPending, nil),
      ])
      enter(.reading)
      var (report, record): (PassReport, FeedRecord?)
      let reader = reader
      // What repairs do from here on, this pass has not seen.
      let before = ports.engine.history
      switch try open(since: known, folder, reader) {
      case .unchanged(let known, let how):
        (report, record) = (unchanged(known, how, started: started), known)
        // What a pass was given for once may be given for good now.
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
      // One that recorded at the same time.
      if record != nil, ports.engine.history.records != before.records { try note([.fact(.feedRecord, nil)]) }
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
    since before: TransferEngine.History, started: Timestamp
  ) throws -> (PassReport, FeedRecord?) {
    let feed = try read(document, folder, reader, started: started)
    // Before it is recorded which format the list has now.
    let (verdict, hold) = try judge(feed)
    (feed.plan.verdict, feed.plan.since) = (verdict, before)
    let plan = feed.plan
    let isRead = feed.isComplete || plan.isWindow && feed.walk?.failures.isEmpty != false
    let saysAll = isRead && !plan.hasBlindSpot && !request.choosesOthers
    try accept(feed, document, solved: plan.old.over(saysAll: saysAll))
    // A plan that is held is of an older manifest: what it names may be wanted again.
    if !request.keepsHold { try dropHold(for: verdict) }
    // Repairs that are at work by an earlier manifest follow this one. The engine's thread alone reads the catalog from now on; without
    // one nothing is known to be wanted.
    let catalog = try openCatalog()
    ports.engine.follow { try catalog?.entry($0) }
    // What a repair goes on with is for a later pass.
    try ports.engine.claimingFree(Array(plan.partials.over(saysAll: saysAll))) {
      try recovery.drop(partials: Set($0))
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
    // Only a pass that left nothing that it could have deleted says that a list of this format may delete.
    if feed.isComplete || plan.isWindow, !report.wasStopped, !request.isOnce,
      report.counts.unlisted == 0, plan.filteredRows == 0
    {
      try note([.fact(.deletingFormat, feed.end.format)])
    }
    return (report, try feedRecord(document, feed.end, feed.planner.writer.plan, report))
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

  /// The feed was read and is followed: what is to be remembered of it, also when the pass is stopped.
  ///
  /// - Parameter solved: names of problems of what is no longer wanted, or in place.
  private func accept(
    _ feed: PlannedFeed, _ document: FeedReader.Document, solved: Set<[UInt8]>
  ) throws {
    let (plan, end) = (feed.plan, feed.end)
    var changes = request.facts.map { LedgerChange.fact($0.name, $0.value) }
    changes += try solved.map { name in
      // A directory that could not be read is no entry.
      let isEntry = try ports.ledger.problem(name: name)?.code != FolderFailure.Code.permission.rawValue
      return .dropProblem(name: name, isUnwanted: isEntry && plan.old.unnamed.contains(name))
    }
    if !request.choosesOthers {
      changes += [
        .fact(.entriesWanted, String(plan.counts.wanted)),
        .fact(.entriesCurrent, String(plan.counts.current)),
        .fact(.keptList, plan.feed.listPath.map { Base64.encode($0.bytes) }),
      ]
      changes += sizes(plan.bytes)
    }
    if let version = end.version { changes.append(.fact(.manifestVersion, String(version))) }
    changes += [
      .fact(.format, end.format), .fact(.refresh, end.refreshSeconds.map { String($0) }),
      .fact(.upstreamChanged, end.isIndex ? nil : document.head?.changed?.rfc3339),
    ]
    changes += plan.feed.learned
    // What another feed came to says nothing of this one.
    if try ports.ledger.fact(.feed) != request.feed.text { changes.append(.fact(.success, nil)) }
    // The first format is the one that others are held against.
    if try ports.ledger.fact(.deletingFormat) == nil {
      changes.append(.fact(.deletingFormat, try ports.ledger.fact(.format) ?? end.format))
    }
    changes.append(.fact(.catalog, commitCatalog(feed)))
    try note(changes)
  }

  // MARK: Carrying out

  /// - Parameters:
  ///   - writer: has the plan, and decides over stale paths again.
  ///   - priority: `.urgent` for a repair.
  ///   - hold: asked again just before anything is deleted, for what a list promises may not be there.
  /// - Returns: true when another manifest wants something of it otherwise, or may.
  @discardableResult
  func carryOut(
    _ writer: PlanWriter, in folder: any FolderPort, priority: TransferPriority = .normal,
    hold: DeletionHold? = nil, into report: inout PassReport
  ) throws -> Bool {
    let plan = writer.plan
    progress.change { snapshot in
      snapshot.filesTotal = plan.counts.planned - plan.counts.recorded
      snapshot.onlyAsks = plan.counts.toChange == 0
      snapshot.bytesTotal = plan.bytes.planned
      snapshot.bytesMissing = plan.bytesWithRecorded
      snapshot.unknownSizes = plan.work.unknownSizes
    }
    if plan.counts.planned > plan.counts.recorded { enter(.transferring) }
    try tellSpace(folder, plan.bytes.planned)
    let transfers = try ports.engine.submit(
      plan, for: client(folder), priority: priority, observer: observer,
      early: priority == .urgent ? nil : EarlyProblems(report))
    try transfers.wait()
    let submission = transfers.submission
    try delete(submission, plan, in: folder, hold, into: &report)
    try removeLeftovers(folder, into: &report)
    try settleStale(transfers, writer, and: plan.behindDirectories, into: &report)
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

  /// What failed here, and another client has brought since, is in place.
  private func forgetBrought(_ folder: any FolderPort, from report: inout PassReport) throws {
    // Only who keeps a catalog has repairs.
    guard report.counts.failed > 0, let catalog = try openCatalog() else { return }
    var brought: Set<[UInt8]> = []
    for problem in report.problems where problem.kind == .failed {
      guard let path = try? RelativePath(problem.name), let row = try ports.ledger.row(path),
        let entry = try catalog.entry(path), row.isVersion(of: entry),
        (try? folder.look(path))?.identity.isSame(as: row.identity) == true
      else { continue }
      brought.insert(problem.name)
      report.counts.failed -= 1
      report.counts.current += 1
      report.bytes.current.addSaturated(row.identity.size)
    }
    report.problems.removeAll { $0.kind == .failed && brought.contains($0.name) }
  }

  /// The last step of a plan: what a complete manifest no longer names goes to the trash.
  private func delete(
    _ submission: Submission, _ plan: Plan, in folder: any FolderPort, _ hold: DeletionHold?,
    into report: inout PassReport
  ) throws {
    guard let first = submission.plan.front, plan.verdict.mayGo, !stop.isSet, try folder.isIntact() else {
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
        next = try submission.plan.actions.next()
      }
      // Whoever brings a file to one of these paths has done so by then, or looks first.
      let outcomes = try ports.engine.claiming(group.map(\.path)) { try removals.carryOut(group) }
      for (action, outcome) in outcomes {
        observer.report(
          outcome, of: action, seen: ports.now, into: &report.problems, counting: &report.counts)
        if action.kind == .forget, action.present != nil { report.released += 1 }
      }
    }
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
        observer.report(Problem(leftover: error, of: path, seen: ports.now), into: &report)
      }
    }
  }

  /// Paths that changed while the plan was carried out go back to the start, twice at most; unless another manifest wants something of
  /// them otherwise. What goes on changing a pass tells, and a repair looks at again later.
  private func settleStale(
    _ transfers: Transfers, _ writer: PlanWriter, and others: [Action], into report: inout PassReport
  ) throws {
    let submission = transfers.submission
    var open = submission.stale + others
    for _ in 0..<2 {
      guard !submission.isSuperseded, !open.isEmpty, !stop.isSet else { break }
      writer.plan.since = ports.engine.history
      try writer.replan(open)
      try ports.engine.resubmit(writer.plan, after: transfers).wait()
      open = submission.stale
    }
    for action in stop.isSet || submission.isUrgent ? [] : open {
      observer.report(Problem(changedMeanwhile: action.path, seen: ports.now), into: &report)
    }
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
    report.problems = feed.plan.problems + (walk?.failures ?? [])
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
      .fact(.entriesExcluded, String(report.counts.excluded)),
      .fact(.complete, report.isComplete ? "yes" : "no: \(report.incompleteReason)"),
      .fact(.outcome, report.outcome), .fact(.trashKept, request.policy.keepTrash.map(String.init)),
    ]
    changes += PassProgress.Snapshot.noChanges + sizes(report.bytes)
    // Of repairs that go on.
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
    // Events that no reader has to be given any more: beyond the retention, but the newest are kept in any case, and beyond the most
    // that a ledger is to hold.
    let now = report.ended
    changes += [
      .pruneEvents(keeping: 100_000, before: now.adding(seconds: -request.keepEvents), now: now),
      .pruneEvents(keeping: 1_000_000, before: .distantFuture, now: now),
    ]
    try note(changes)
  }

  /// The checksum list is kept as the mirror's own pass brought it. A pass for once brings newer files, and the list does not fit these
  /// until the next pass.
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
    // What `tarn status` shows beside a running pass; soon stale, so a failure is of no account here.
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
        hint: "an old copy is served, or somebody plays it back")
    }
  }

  /// Now, or the time of an earlier pass where the clock was set back since: what has expired stays so (I7).
  func latestTime() throws -> Timestamp {
    let known = try ports.ledger.fact(.latestTime).flatMap { Int64($0) }
    return known.map { max(ports.now, Timestamp(nanoseconds: $0)) } ?? ports.now
  }

  // MARK: What of a plan may be deleted

  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: what becomes of them, and whom to ask again.
  func judge(_ feed: PlannedFeed) throws -> (DeletionVerdict, DeletionHold?) {
    let plan = feed.plan
    if let reason = whyNothingIsDeleted(plan, isComplete: feed.isComplete) {
      if request.choosesOthers, plan.work.deletions > 0 {
        let files = Units.count(plan.work.deletions, "file")
        observer.notice("nothing-deleted", "\(files) could go, but nothing is deleted: \(reason)")
      }
      return (.forbidden(reason), nil)
    }
    // What a window lets go is what `keep` and `max-age` ask for.
    guard !plan.isWindow else {
      feed.plan.admitBlocked()
      return (.allowed, nil)
    }
    let hold = try DeletionHold(ports, request.policy, feed)
    if let held = try hold.judge() {
      guard try hold.judge(areReplaced: true) == nil else { return (.held(held), hold) }
      guard plan.makesWay else { return (.allowedIfReplaced, hold) }
      // What stands in the way of new files cannot wait for them.
      guard plan.work.deletions <= DeletionGuard.least else { return (.held(held), hold) }
    }
    feed.plan.admitBlocked()
    return (.allowed, hold)
  }

  /// Deletions follow only from the mirror's own options, from a complete manifest, or from the age of a window's files, and a folder that was read
  /// whole. Whether a row is dropped or a file is moved away: neither happens on less.
  ///
  /// - Returns: nil when deletions may follow.
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

  /// Says before the first byte when the plan does not fit: replaced versions stay in the trash, so the peak is what
  /// there is and all that is planned.
  func tellSpace(_ folder: any FolderPort, _ planned: UInt64) throws {
    let available = try SpaceBudget(folder, reserve: request.policy.reserve).available
    guard planned > available else { return }
    observer.notice(
      "space-short",
      "the plan needs \(Units.show(planned)) at its peak, and \(Units.show(available)) are free beyond "
        + "the reserve; what does not fit is reported, the rest is done")
  }

  /// Says where space may come from, once something did not fit.
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

/// What a report takes from those who did the work.
extension PassReport {
  mutating func add(_ account: TransferAccount) {
    counts.add(account.counts)
    bytes.current.addSaturated(account.bytes.current)
    bytes.received = account.bytes.received
    bytes.published = account.bytes.published
    bytes.confirmed = account.bytes.confirmed
    account.learned.apply(to: &bytes)
    problems.keep(account.problems)
    namedEarly = Set(account.early?.standing.keys.map { $0 } ?? [])
  }

  /// What deciding again over stale paths added.
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
