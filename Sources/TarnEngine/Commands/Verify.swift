package import TarnCore
package import TarnRuntime

/// The result of hashing every recorded file again, without the network (`tarn verify`).
package struct VerifyReport: Sendable {
  /// The files that were read to their end.
  package var checked = 0
  package var bytes: UInt64 = 0
  package var good = 0
  package var damaged: [RelativePath] = []
  package var missing: [RelativePath] = []
  package var changed: [RelativePath] = []
  package var problems: [Problem] = []
  /// The problems of changed files, as many as the ledger keeps.
  var edits: [Problem] = []
  package var wasStopped = false
  /// True when there was nothing to compare with: no file is recorded, and no pass has found that none is wanted.
  package var isBlank = false
  /// True when the policy leaves local deletions and edits as they are.
  package var leavesLocalChanges = false
  /// True when the ledger knows the mirror's feed.
  package var knowsFeed = true

  package init() {}
  package var isGood: Bool {
    damaged.isEmpty && missing.isEmpty && changed.isEmpty && problems.isEmpty && !wasStopped && !isBlank
  }
}

package struct Verification {
  /// What was found about a file that is not as Tarn placed it.
  enum Finding {
    case damaged, missing, edited, irregular, changing

    static let codes: Set = ["damaged", "missing", "changed"]

    /// The code of its problem.
    var code: String {
      switch self {
      case .damaged: "damaged"
      case .missing: "missing"
      case .edited, .irregular, .changing: "changed"
      }
    }

    var message: String {
      switch self {
      case .damaged: "its bytes are not the ones that were verified, though size and time are"
      case .missing: "it is not there"
      case .edited: "it was edited since Tarn placed it"
      case .irregular: "something that is not a file took its place"
      case .changing: "it changes while it is read"
      }
    }
  }

  let ledger: any LedgerPort
  let clock: any Clock
  let folder: any FolderPort
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag
  /// True when the ledger cannot be written: the findings are only reported.
  package var isReadOnly = false
  /// What the feed wanted last; `nil` when no catalog is kept.
  package var catalog: (any CatalogPort)?

  package init(
    ledger: any LedgerPort, clock: any Clock, folder: any FolderPort, observer: any PassObserver,
    progress: PassProgress, stop: StopFlag
  ) {
    (self.ledger, self.clock, self.folder) = (ledger, clock, folder)
    (self.observer, self.progress, self.stop) = (observer, progress, stop)
  }

  /// Checks all recorded files. A damaged file has other bytes under an unchanged size and time. A changed file was edited.
  ///
  /// Unless the ledger is read-only, the findings are recorded for `tarn status`, until a pass or a verification no longer finds
  /// them. The rows of damaged files are marked as doubtful (`Row.isDoubtful`), so the next pass fetches these again, whatever the
  /// policy for local changes. The caller then holds the folder's lock.
  package func run() throws(PassFailure) -> VerifyReport {
    try PassFailure.translating { try check() }
  }

  private func check() throws -> VerifyReport {
    observer.pass(.phase(.verifying))
    // `tarn status` shows this beside the check. It is soon outdated, so a failure does not matter.
    try? ledger.applyVolatile([.fact(.phase, PassEvent.Phase.verifying.rawValue)])
    let total = try ledger.rowCount()
    let totalBytes = try ledger.rowBytes()
    progress.change { snapshot in
      snapshot.phase = .verifying
      snapshot.filesTotal = total
      snapshot.bytesTotal = totalBytes
    }
    var report = VerifyReport()
    report.isBlank = try total == 0 && ledger.fact(.entriesWanted) != "0"
    report.knowsFeed = try ledger.fact(.feed) != nil
    let catalog = try openCatalog()
    let rows = try ledger.rows()
    while let row = try rows.next() {
      guard !stop.isSet else {
        report.wasStopped = true
        return report
      }
      if try catalog.map({ try !isAnybodys(row, $0) }) ?? true { try check(row, into: &report) }
      guard !report.wasStopped else { return report }
      progress.finish(0, bytes: row.identity.size)
    }
    report.leavesLocalChanges = try leavesLocalChanges(report)
    if !isReadOnly { try note(report) }
    return report
  }

  private func openCatalog() throws -> (any CatalogReading)? {
    guard let fact = try ledger.fact(.catalog),
      let catalog = try catalog?.open(id: CatalogFact.id(of: fact)), !catalog.isWindow
    else { return nil }
    return catalog
  }

  /// Returns whether the feed no longer names the file and it is gone or edited. Then nothing says what should be there.
  private func isAnybodys(_ row: Row, _ catalog: any CatalogReading) throws -> Bool {
    guard try catalog.entry(row.path) == nil else { return false }
    do throws(FolderFailure) {
      guard let present = try folder.look(row.path) else { return true }
      return !present.identity.isSame(as: row.identity)
    } catch {
      return false
    }
  }

  /// Marks the row, so that the next pass fetches the file again. A full disk may prevent that.
  private func mark(_ row: Row) throws {
    var doubtful = row
    doubtful.isDoubtful = true
    do throws(LedgerFailure) {
      try ledger.apply([.row(doubtful)])
    } catch {
      guard error.code == .noSpace else { throw error }
    }
  }

  /// Records the findings. They stand even when a full disk prevents this.
  private func note(_ report: VerifyReport) throws {
    let known = try ledger.problems(limit: PassReport.mostProblems).filter {
      Finding.codes.contains($0.code)
    }
    var changes = known.map { LedgerChange.dropProblem(name: $0.name) }
    var found = report.damaged.map { problem($0, .damaged) }
    if !report.leavesLocalChanges {
      found +=
        try report.missing.filter { try !isExplained($0) }.map { problem($0, .missing) }
        + report.edits
    }
    // Unreadable files are recorded, whatever the policy.
    found += report.problems
    changes += found.prefix(PassReport.mostProblems).map { .problem($0.asLooked) }
    // No pass may call the mirror in sync without having looked.
    if !(found.isEmpty && report.missing.isEmpty && report.changed.isEmpty) {
      changes.append(.fact(.feedRecord, nil))
    }
    if report.isGood {
      changes.append(.fact(.verified, clock.time.rfc3339))
    }
    do throws(LedgerFailure) {
      try ledger.apply(changes)
    } catch {
      guard error.code == .noSpace else { throw error }
      observer.notice(error.code.rawValue, "'tarn status' will not tell of this: \(error.message)")
    }
  }

  /// Returns whether a pass has recorded a better reason why the file is missing.
  private func isExplained(_ path: RelativePath) throws -> Bool {
    try ledger.problem(name: path.bytes).map { !Finding.codes.contains($0.code) } ?? false
  }

  private func leavesLocalChanges(_ report: VerifyReport) throws -> Bool {
    guard !report.missing.isEmpty || !report.changed.isEmpty,
      let policy = try? PassOptions(encoded: ledger.fact(.options) ?? "").policy()
    else { return false }
    return try (ledger.followsWindow() ? policy.ofWindow : policy).localChanges != .restore
  }

  private func check(_ row: Row, into report: inout VerifyReport) throws {
    let found: Finding?
    do throws(FolderFailure) {
      found = try look(at: row, &report)
    } catch {
      guard error.code != .stopped else { return report.wasStopped = true }
      let problem = problem(row.path, error.code.rawValue, error.message)
      report.problems.append(problem)
      return observer.pass(.problem(problem))
    }
    guard let found else { return }
    let problem = problem(row.path, found)
    switch found {
    case .damaged: report.damaged.append(row.path)
    case .missing: report.missing.append(row.path)
    case .edited, .irregular, .changing:
      report.changed.append(row.path)
      if report.edits.count < PassReport.mostProblems { report.edits.append(problem) }
    }
    observer.pass(.problem(problem))
    if found == .damaged, !isReadOnly { try mark(row) }
  }

  /// - Returns: the finding about a file; `nil` when it is good.
  private func look(at row: Row, _ report: inout VerifyReport) throws(FolderFailure) -> Finding? {
    guard let present = try folder.look(row.path) else { return .missing }
    guard present.kind == .regular else { return .irregular }
    guard let (digest, identity) = try digest(row) else { return .changing }
    report.checked += 1
    report.bytes.addSaturated(identity.size)
    guard digest != row.digest else {
      report.good += 1
      return nil
    }
    var recorded = row.identity
    // A doubtful row has no inode, so size and time decide.
    if row.isDoubtful { recorded.inode = identity.inode }
    if identity.isSameContents(as: recorded) { return .damaged }
    return .edited
  }

  private func digest(_ row: Row) throws(FolderFailure) -> (Digest, FileIdentity)? {
    progress.begin(0, path: row.path, kept: 0, total: row.identity.size, source: "")
    defer { progress.end(0) }
    return try folder.digest(of: row.path, row.digest.algorithm) { count in
      progress.receive(0, bytes: count)
      return !stop.isSet
    }
  }

  private func problem(_ path: RelativePath, _ finding: Finding) -> Problem {
    problem(path, finding.code, finding.message)
  }

  private func problem(_ path: RelativePath, _ code: String, _ message: String) -> Problem {
    Problem(
      name: path.bytes, kind: .failed, code: code, message: message,
      seen: clock.time)
  }
}
