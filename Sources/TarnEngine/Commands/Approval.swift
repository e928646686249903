package import TarnCore
package import TarnRuntime

/// The result of an approval.
package struct ApprovalReport: Sendable {
  package var plan: HeldPlan
  package var deleted = 0
  /// The files of the plan that were not deleted: wanted again, edited, or gone already.
  package var spared = 0
  /// The files of the plan that are still held because the approval was stopped.
  package var left = 0
  package var wasStopped = false
  package var problems: [Problem] = []

  package init(plan: HeldPlan) {
    self.plan = plan
  }
}

/// Carries out a held plan: that set of deletions, never a newer or larger one. Uses no network. The caller holds the folder's
/// lock.
package struct Approval {
  let ledger: any LedgerPort
  let folder: any FolderPort
  let clock: any Clock
  let random: any RandomSource
  let observer: any PassObserver
  let stop: StopFlag
  let engine: TransferEngine
  let ownWrites: OwnWrites?

  /// - Parameters:
  ///   - stop: checked between two groups.
  ///   - engine: the folder's engine, which keeps others from the paths meanwhile.
  ///   - ownWrites: the own writes in the folder; `nil` when it is not watched.
  package init(
    ledger: any LedgerPort, folder: any FolderPort, clock: any Clock, random: any RandomSource,
    observer: any PassObserver, stop: StopFlag, engine: TransferEngine, ownWrites: OwnWrites?
  ) {
    (self.ledger, self.folder, self.engine) = (ledger, folder, engine)
    (self.clock, self.random) = (clock, random)
    (self.observer, self.stop) = (observer, stop)
    self.ownWrites = ownWrites
  }

  /// - Parameter id: the plan's id; `nil` for the plan that is held.
  /// - Throws: `PassFailure` of kind `usage` when no plan or another one is held.
  package func run(plan id: String?) throws(PassFailure) -> ApprovalReport {
    try PassFailure.translating { try approve(id) }
  }

  /// Returns the plan that is held. `id` and errors are as for `run`.
  package static func held(_ id: String?, in ledger: any LedgerPort) throws -> HeldPlan {
    guard let held = try ledger.held() else {
      throw PassFailure(
        .usage, code: "nothing-held", "no plan is held for this mirror",
        hint: "there is nothing to approve: 'tarn status' shows what waits")
    }
    if let id, id != held.id {
      throw PassFailure(
        .usage, code: "other-plan", "plan \(Printable.escape(id)) is not held; the held one is \(held.id)",
        hint: "look at it with 'tarn status', then approve \(held.id)")
    }
    return held
  }

  private func approve(_ id: String?) throws -> ApprovalReport {
    let held = try Self.held(id, in: ledger)
    var report = ApprovalReport(plan: held)
    let removals = Removals(
      ledger: ledger, folder: folder, clock: clock, random: random, ownWrites: ownWrites)
    var counts = PassCounts()
    var asked = try page(held, after: nil)
    while !asked.isEmpty, !stop.isSet {
      let outcomes = try engine.claiming(asked) {
        let group = try asked.compactMap(action)
        report.spared += asked.count - group.count
        return try removals.carryOut(group)
      }
      for (action, outcome) in outcomes {
        switch outcome {
        case .stale, .installed: report.spared += 1
        case .removed, .failed:
          observer.report(outcome, of: action, seen: clock.time, into: &report.problems, counting: &counts)
        }
      }
      let next = try page(held, after: asked.last)
      // Paths that are done are no longer held, whatever comes next.
      if !next.isEmpty { try ledger.apply(asked.map { .dropHeldPath($0) }) }
      asked = next
    }
    (report.wasStopped, report.deleted) = (!asked.isEmpty, counts.deleted)
    report.left = report.wasStopped ? try ledger.held()?.count ?? 0 : 0
    let left = report.wasStopped ? ", \(report.left) left" : ""
    let end = Event(
      when: clock.time, code: "plan-approved",
      detail: "plan \(held.id): \(Units.count(report.deleted, "deletion"))\(left)")
    let waiting =
      try report.wasStopped ? [] : Self.freed(held, in: ledger, because: "was approved", now: end.when)
    // A person has looked at the list in its present format.
    let format = try ledger.fact(.listedFormats) ?? ledger.fact(.format)
    try ledger.apply(
      (report.wasStopped ? [] : [.dropHolds, .fact(.deletingFormat, format), .fact(.heldForPerson, nil)])
        + [.event(end)] + waiting + settled(report))
    return report
  }

  /// Drops the held plan because the mirror no longer deletes: nothing is left to approve.
  ///
  /// - Returns: the plan; `nil` when none was held.
  package static func withdraw(in ledger: any LedgerPort, now: Timestamp) throws(LedgerFailure) -> HeldPlan? {
    guard let held = try ledger.held() else { return nil }
    let reason = "is dropped, because nothing is left to delete"
    let waiting = try freed(held, in: ledger, because: reason, now: now)
    let event = Event(
      when: now, code: "plan-dropped",
      detail: "plan \(held.id): \(Units.count(held.count, "deletion")) no longer wanted")
    try ledger.apply(
      [.dropHolds, .fact(.heldForPerson, nil), .event(event)] + waiting + inSync(ledger))
    return held
  }

  /// Makes the entries that waited for the plan wait for the next pass. They are wanted, and only a pass brings new files. The
  /// files in their way may still be there, edited or impossible to remove.
  private static func freed(
    _ held: HeldPlan, in ledger: any LedgerPort, because reason: String, now: Timestamp
  ) throws(LedgerFailure) -> [LedgerChange] {
    let waiting = try ledger.problems(limit: PassReport.mostProblems).filter {
      $0.code == DeletionVerdict.waiting
    }
    return waiting.map { problem in
      var problem = problem
      (problem.kind, problem.code) = (.failed, "waits-for-pass")
      problem.message =
        "plan \(held.id), which it waited for, \(reason): the next pass brings it, or tells what is in its way"
      problem.seen = now
      return .problem(problem)
    }
  }

  /// Returns the changes that put the mirror in sync, as of the feed that was read, when only these deletions kept it from that.
  private func settled(_ report: ApprovalReport) throws(LedgerFailure) -> [LedgerChange] {
    // The outcome is "partial" when entries waited for the deletions.
    guard try ledger.fact(.outcome) == "held" else { return [] }
    guard report.problems.isEmpty else { return [.fact(.outcome, "undone")] }
    return report.wasStopped ? [] : try Self.inSync(ledger)
  }

  /// Returns the changes that make the last pass in sync as of its end, when only deletions kept it from that.
  private static func inSync(_ ledger: any LedgerPort) throws(LedgerFailure) -> [LedgerChange] {
    guard try ledger.fact(.outcome) == "held" else { return [] }
    let ended = try ledger.fact(.ended)
    return [.fact(.outcome, "in-sync")] + (ended.map { [.fact(.success, $0)] } ?? [])
  }

  /// Returns one group of the plan's paths, of which there may be millions.
  private func page(_ held: HeldPlan, after: RelativePath?) throws(LedgerFailure) -> [RelativePath] {
    try ledger.heldPaths(plan: held.id, after: after, limit: PublishThread.largestGroup)
  }

  /// Returns the deletion of a path, if the file there is still the one that was to be deleted.
  private func action(_ path: RelativePath) throws -> Action? {
    guard let row = try ledger.row(path), let present = try folder.look(path), present.kind == .regular,
      row.identity.isSameContents(as: present.identity)
    else { return nil }
    return Action(.delete, phase: .deletion, path: path, present: present.identity, row: row)
  }
}

/// The files and bytes that were removed from the trash for good.
package struct EmptyReport: Sendable, Equatable {
  package var files = 0
  package var bytes: UInt64 = 0
  /// The files that are left because of a stop.
  package var left = 0

  package init() {}
}

/// The trash of a mirror (`tarn trash`). The caller holds the folder's lock, except for listing.
package struct TrashCan {
  let ledger: any LedgerPort
  let folder: any FolderPort
  let clock: any Clock

  package init(ledger: any LedgerPort, folder: any FolderPort, clock: any Clock) {
    self.ledger = ledger
    self.folder = folder
    self.clock = clock
  }

  /// Moves a file back to a path where nothing is now. The file then belongs to the user: the next pass treats it like any file
  /// that Tarn did not place.
  ///
  /// - Parameters:
  ///   - row: a row of the trash.
  ///   - path: the target; `nil` for the original path.
  package func restore(_ row: TrashRow, to path: RelativePath?) throws(PassFailure) {
    try PassFailure.translating {
      let target = path ?? row.path
      try putBack(row.name, at: target)
      try ledger.apply([
        .dropTrash(name: row.name),
        .event(when: clock.time, code: "trash-restored", path: target, bytes: row.size),
      ])
    }
  }

  private func putBack(_ name: String, at target: RelativePath) throws(PassFailure) {
    do {
      _ = try folder.restoreTrash(name, to: target)
    } catch {
      guard error.code == .exists else { throw PassFailure(error) }
      throw PassFailure(
        .usage, code: error.code.rawValue, "\(target.printable) is there already, and is never replaced",
        hint: "put it elsewhere with --to PATH, or move what is there away")
    }
  }

  /// Removes files for good, in groups, each file before its row. `Recovery` drops rows whose file is gone.
  ///
  /// On a full disk the ledger may be writable only after files are removed. Rows then wait for the next group.
  ///
  /// - Parameter stop: checked between two groups.
  package func empty(_ rows: [TrashRow], stop: StopFlag) throws(PassFailure) -> EmptyReport {
    try PassFailure.translating {
      var report = EmptyReport()
      var rest = rows[...]
      var unrecorded: [LedgerChange] = []
      while !rest.isEmpty, !stop.isSet {
        let group = rest.prefix(PublishThread.largestGroup)
        for row in group { try folder.removeTrash(row.name) }
        unrecorded += group.map { .dropTrash(name: $0.name) }
        if try record(unrecorded) { unrecorded = [] }
        report.files += group.count
        report.bytes = group.reduce(report.bytes) { $0.addingSaturated($1.size) }
        rest = rest.dropFirst(PublishThread.largestGroup)
      }
      if !unrecorded.isEmpty {
        // Some file systems free the space of removed files only then.
        try folder.flush()
        try ledger.apply(unrecorded)
      }
      report.left = rest.count
      return report
    }
  }

  /// - Returns: false when the ledger has no space now.
  private func record(_ changes: [LedgerChange]) throws(LedgerFailure) -> Bool {
    do throws(LedgerFailure) {
      try ledger.apply(changes)
      return true
    } catch {
      guard error.code == .noSpace else { throw error }
      return false
    }
  }

  /// Removes the files alone, when the ledger can be read but not written. `Recovery` drops the rows later. Files of unfinished
  /// intents stay, because nobody knows yet whose bytes they are.
  ///
  /// - Parameter names: names of files in the trash.
  /// - Returns: the files that existed and were removed.
  package func removeFiles(_ names: Set<String>) throws(PassFailure) -> EmptyReport {
    try PassFailure.translating {
      let unfinished = Set(try ledger.intents().map(\.trashName))
      var report = EmptyReport()
      for file in try folder.trashed()
      where !unfinished.contains(file.name) && names.contains(file.name) {
        try folder.removeTrash(file.name)
        report.files += 1
        report.bytes.addSaturated(file.size)
      }
      return report
    }
  }
}
