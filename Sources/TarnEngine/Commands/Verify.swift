package import TarnCore
package import TarnRuntime

/// Hashes every recorded file again, without the network (`tarn verify`).
package struct VerifyReport: Sendable {
  /// Files that were read to their end.
  package var checked = 0
  package var bytes: UInt64 = 0
  package var good = 0
  package var damaged: [RelativePath] = []
  package var missing: [RelativePath] = []
  package var changed: [RelativePath] = []
  package var problems: [Problem] = []
  package var wasStopped = false
  /// There was nothing to compare with: no file is recorded, and no pass has found that none is wanted.
  package var isBlank = false
  /// By policy no pass brings back what was deleted here, or undoes an edit.
  package var leavesLocalChanges = false
  /// The ledger knows what the mirror follows.
  package var knowsFeed = true

  package init() {}
  package var isGood: Bool {
    damaged.isEmpty && missing.isEmpty && changed.isEmpty && problems.isEmpty && !wasStopped && !isBlank
  }
}

package struct Verification {
  /// What it finds, as the codes of its problems.
  enum Code: String {
    case damaged, missing, changed

    var message: String {
      switch self {
      case .damaged: "its bytes are not the ones that were verified, though size and time are"
      case .missing: "it is not there"
      case .changed:
        "it was edited since Tarn placed it, is no regular file any more, or changes while it is read"
      }
    }
  }

  let ports: VerifyPorts
  let folder: any FolderPort
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag

  /// What verifying needs: no network, no feed.
  package struct VerifyPorts: Sendable {
    package var ledger: any LedgerPort
    package var clock: any Clock
    /// The ledger takes nothing: what was found is only told.
    package var isReadOnly = false
    /// What the feed wanted last; nil where none is kept.
    package var catalog: (any CatalogPort)?
    package init(ledger: any LedgerPort, clock: any Clock) {
      self.ledger = ledger
      self.clock = clock
    }
  }

  package init(
    ports: VerifyPorts, folder: any FolderPort, observer: any PassObserver, progress: PassProgress,
    stop: StopFlag
  ) {
    self.ports = ports
    self.folder = folder
    self.observer = observer
    self.progress = progress
    self.stop = stop
  }

  /// Damaged: other bytes under an unchanged size and time. Changed: somebody edited it.
  ///
  /// What is found is in the ledger afterwards, unless it is read only, for `tarn status`: until a pass, or a
  /// verification that finds it no more. The next pass fetches damaged files again: their rows are marked as doubtful
  /// (`Row.isDoubtful`), whatever the policy for local changes. The caller holds the folder's lock then.
  package func run() throws(PassFailure) -> VerifyReport {
    try PassFailure.translating {
      return try check()
    }
  }

  private func check() throws -> VerifyReport {
    observer.pass(.phase(.verifying))
    // What `tarn status` shows beside it; soon stale, so a failure is of no account here.
    try? ports.ledger.applyVolatile([.fact(.phase, PassEvent.Phase.verifying.rawValue)])
    let total = try ports.ledger.rowCount()
    let totalBytes = try ports.ledger.rowBytes()
    progress.change { snapshot in
      snapshot.phase = .verifying
      snapshot.filesTotal = total
      snapshot.bytesTotal = totalBytes
    }
    var report = VerifyReport()
    report.isBlank = try total == 0 && ports.ledger.fact(.entriesWanted) != "0"
    report.knowsFeed = try ports.ledger.fact(.feed) != nil
    let catalog = try openCatalog()
    let rows = try ports.ledger.rows()
    while let row = try rows.next() {
      guard !stop.isSet else {
        report.wasStopped = true
        return report
      }
      if let catalog, try isAnybodys(row, catalog) {
        progress.finish(0, bytes: row.identity.size)
        continue
      }
      let isDamaged = check(row, into: &report)
      guard !report.wasStopped else { return report }
      if isDamaged, !ports.isReadOnly { try mark(row) }
      progress.finish(0, bytes: row.identity.size)
    }
    report.leavesLocalChanges = try leavesLocalChanges(report)
    if !ports.isReadOnly { try note(report) }
    return report
  }

  private func openCatalog() throws -> (any CatalogReading)? {
    guard let fact = try ports.ledger.fact(.catalog),
      let catalog = try ports.catalog?.open(id: CatalogFact.id(of: fact)), !catalog.isWindow
    else { return nil }
    return catalog
  }

  /// The feed names it no more, and it is gone or was edited: nobody says what should stand there.
  private func isAnybodys(_ row: Row, _ catalog: any CatalogReading) throws -> Bool {
    guard try catalog.entry(row.path) == nil else { return false }
    do throws(FolderFailure) {
      guard let present = try folder.look(row.path) else { return true }
      return !present.identity.isSame(as: row.identity)
    } catch {
      return false
    }
  }

  /// The next pass fetches it again, unless a full disk lets nothing be noted.
  private func mark(_ row: Row) throws {
    var doubtful = row
    doubtful.isDoubtful = true
    do throws(LedgerFailure) {
      try ports.ledger.apply([.row(doubtful)])
    } catch {
      guard error.code == .noSpace else { throw error }
    }
  }

  /// What was found stands, whether a full disk lets it be noted or not.
  private func note(_ report: VerifyReport) throws {
    let known = try ports.ledger.problems(limit: PassReport.mostProblems).filter {
      Code(rawValue: $0.code) != nil
    }
    var changes = known.map { LedgerChange.dropProblem(name: $0.name) }
    var found = report.damaged.map { problem($0, .damaged) }
    if !report.leavesLocalChanges {
      found +=
        try report.missing.filter { try !isExplained($0) }.map { problem($0, .missing) }
        + report.changed.map { problem($0, .changed) }
    }
    // What cannot be read, whatever hides it.
    found += report.problems
    changes += found.prefix(PassReport.mostProblems).map { .problem($0.asLooked) }
    // No pass may call it in sync without having looked.
    if !(found.isEmpty && report.missing.isEmpty && report.changed.isEmpty) {
      changes.append(.fact(.feedRecord, nil))
    }
    if report.isGood {
      changes.append(.fact(.verified, Timestamp(nanoseconds: ports.clock.now()).rfc3339))
    }
    do throws(LedgerFailure) {
      try ports.ledger.apply(changes)
    } catch {
      guard error.code == .noSpace else { throw error }
      observer.pass(
        .notice(code: error.code.rawValue, message: "'tarn status' will not tell of this: \(error.message)"))
    }
  }

  /// Whoever could not bring it knows better why it is not there.
  private func isExplained(_ path: RelativePath) throws -> Bool {
    try ports.ledger.problem(name: path.bytes).map { Code(rawValue: $0.code) == nil } ?? false
  }

  private func leavesLocalChanges(_ report: VerifyReport) throws -> Bool {
    guard let path = report.missing.first ?? report.changed.first,
      let policy = try? PassOptions(encoded: ports.ledger.fact(.options) ?? "").policy()
    else { return false }
    let isOfWindow = try ports.ledger.name(path) != nil
    return (isOfWindow ? policy.window.localChanges : policy.localChanges) != .restore
  }

  private func check(_ row: Row, into report: inout VerifyReport) -> Bool {
    do throws(FolderFailure) {
      guard let present = try folder.look(row.path) else {
        report.missing.append(row.path)
        tell(row.path, .missing)
        return false
      }
      guard present.kind == .regular,
        let (digest, identity) = try digest(row)
      else {
        report.changed.append(row.path)
        tell(row.path, .changed)
        return false
      }
      report.checked += 1
      report.bytes.addSaturated(identity.size)
      if digest == row.digest {
        report.good += 1
        return false
      }
      var recorded = row.identity
      // A doubtful row has no inode: size and time tell then.
      if row.isDoubtful { recorded.inode = identity.inode }
      if identity.isSameContents(as: recorded) {
        report.damaged.append(row.path)
        tell(row.path, .damaged)
        return true
      }
      report.changed.append(row.path)
      tell(row.path, .changed)
      return false
    } catch {
      guard error.code != .stopped else {
        report.wasStopped = true
        return false
      }
      let problem = self.problem(row.path, error.code.rawValue, error.message)
      report.problems.append(problem)
      observer.pass(.problem(problem))
      return false
    }
  }

  private func digest(_ row: Row) throws(FolderFailure) -> (Digest, FileIdentity)? {
    progress.begin(0, path: row.path, kept: 0, total: row.identity.size, source: "")
    defer { progress.end(0) }
    return try folder.digest(of: row.path, row.digest.algorithm) { count in
      progress.receive(0, bytes: count)
      return !stop.isSet
    }
  }

  private func tell(_ path: RelativePath, _ code: Code) {
    observer.pass(.problem(problem(path, code)))
  }

  private func problem(_ path: RelativePath, _ code: Code) -> Problem {
    problem(path, code.rawValue, code.message)
  }

  private func problem(_ path: RelativePath, _ code: String, _ message: String) -> Problem {
    Problem(
      name: path.bytes, kind: .failed, code: code, message: message,
      seen: Timestamp(nanoseconds: ports.clock.now()))
  }
}
