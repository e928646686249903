package import TarnCore
package import TarnRuntime

/// Repairs what a crash left between a rename and its row. The first user of an opened folder runs it, under the lock.
package struct Recovery {
  let ledger: any LedgerPort
  let folder: any FolderPort
  let clock: any Clock

  package init(ledger: any LedgerPort, folder: any FolderPort, clock: any Clock) {
    (self.ledger, self.folder, self.clock) = (ledger, folder, clock)
  }

  package func run() throws {
    _ = try makeRoom()
    let intents = try ledger.intents()
    var changes: [LedgerChange] = []
    for intent in intents {
      switch intent.kind {
      case .install: changes += try finishInstall(intent)
      case .remove: changes += try finishRemoval(intent)
      }
    }
    // A rename that is only in the page cache must not be recorded as done.
    if !intents.isEmpty { try folder.flush() }
    try ledger.apply(changes)
    try sweepPartials(handled: Set(intents.map(\.partialName)))
    try sweepTrash()
  }

  /// Runs the first step of `run`, which writes nothing. It also works while the ledger cannot be written.
  ///
  /// - Returns: whether anything was removed.
  package func makeRoom() throws -> Bool {
    // On a full disk not even the ledger can be written, so unfinished downloads are removed first.
    guard try folder.space().free < Self.leastRoom else { return false }
    let needed = Set(try ledger.intents().map(\.partialName))
    let removable = try folder.partials().filter { !needed.contains($0.name) }
    for file in removable { try folder.removePartial(file.name) }
    return !removable.isEmpty
  }

  /// The bytes that the ledger may need.
  private static let leastRoom: UInt64 = 4 << 20

  private func finishInstall(_ intent: Intent) throws -> [LedgerChange] {
    var changes: [LedgerChange] = [.dropIntent(intent.path)]
    let present = try folder.look(intent.path)
    if let present, present.kind == .regular, present.identity.isSameContents(as: intent.row.identity),
      !intent.isUnnamed || holds(intent.row)
    {
      var row = intent.row
      row.identity = present.identity
      changes += [
        .row(row), .dropPartial(intent.path),
        .event(
          when: clock.time, code: "published", path: row.path, bytes: row.identity.size,
          detail: "finished after a crash"),
      ]
    }
    var lying = intent.trashName.isEmpty ? nil : try folder.trashIdentity(intent.trashName)
    if let waiting = lying, waiting.isSameContents(as: intent.row.identity) {
      // This is the new file, which was not exchanged yet.
      try folder.unstage(intent.trashName, as: intent.partialName)
      lying = nil
    }
    // The file was not renamed, or a failed step left it. A file without a row is fetched again.
    if !intent.isUnnamed, try folder.partialIdentity(intent.partialName) != nil,
      try ledger.partial(intent.path) == nil
    {
      try folder.removePartial(intent.partialName)
    }
    if let lying { changes.append(try displaced(intent, by: ledger.row(intent.path), lying)) }
    return changes
  }

  /// Returns whether a file has the row's bytes. A file without a name is gone unless it got its final one, and its inode may since
  /// be reused, so only its bytes tell. An unreadable file does not count as Tarn's until a pass has looked.
  private func holds(_ row: Row) -> Bool {
    (try? folder.digest(of: row.path, row.digest.algorithm))?.0 == row.digest
  }

  private func finishRemoval(_ intent: Intent) throws -> [LedgerChange] {
    guard let lying = try folder.trashIdentity(intent.trashName) else { return [.dropIntent(intent.path)] }
    return [
      .dropIntent(intent.path), .dropRow(intent.path), .dropProblem(name: intent.path.bytes),
      .dropHeldPath(intent.path), displaced(intent, by: intent.row, lying),
      .event(
        when: clock.time, code: "deleted", path: intent.path, bytes: lying.size,
        detail: "finished after a crash"),
    ]
  }

  /// Returns the row for a file in the trash. It is Tarn's when it is the very file of the row, with its bytes. A file that
  /// somebody wrote to, before the move or since, does not expire.
  ///
  /// - Parameter row: the row of the file that was there; `nil` when Tarn knew of none.
  private func displaced(_ intent: Intent, by row: Row?, _ lying: FileIdentity) -> LedgerChange {
    let isAsRecorded = row.map { lying.isSameContents(as: $0.identity) } ?? false
    let isOwn = isAsRecorded && intent.displacesOwn && row?.isAdopted == false
    let reason: TrashRow.Reason = isAsRecorded ? .replaced : .edited
    return .trash(
      TrashRow(
        name: intent.trashName, path: intent.path, reason: intent.kind == .remove ? .deleted : reason,
        isOwn: isOwn, size: lying.size, when: clock.time, identity: lying))
  }

  /// Removes partial files that have no row. They came from a server, never from a user. Also drops rows without a file.
  private func sweepPartials(handled: Set<String>) throws {
    let rows = try ledger.partials()
    let known = Set(rows.map(\.name))
    let files = try folder.partials()
    for file in files where !known.contains(file.name) && !handled.contains(file.name) {
      try folder.removePartial(file.name)
    }
    let present = Set(files.map(\.name))
    let gone = rows.filter { !present.contains($0.name) }
    if !gone.isEmpty { try ledger.apply(gone.map { .dropPartial($0.path) }) }
  }

  /// Removes unfinished downloads that no pass will continue, and their rows.
  func drop(partials paths: Set<RelativePath>) throws {
    guard !paths.isEmpty else { return }
    let rows = try ledger.partials().filter { paths.contains($0.path) }
    for row in rows { try folder.removePartial(row.name) }
    try ledger.apply(rows.map { .dropPartial($0.path) })
  }

  /// Adds rows for files in the trash that have none. They are kept until `trash empty`, like a user's files. Rows whose file is
  /// gone are dropped.
  private func sweepTrash() throws {
    let rows = try ledger.trash()
    let known = Set(rows.map(\.name))
    let files = try folder.trashed()
    let present = Set(files.map(\.name))
    var changes = rows.filter { !present.contains($0.name) }.map { LedgerChange.dropTrash(name: $0.name) }
    for file in files where !known.contains(file.name) {
      changes.append(.trash(TrashRow(found: file.name, size: file.size, when: clock.time)))
    }
    if !changes.isEmpty { try ledger.apply(changes) }
  }

  /// Removes files from the trash that Tarn placed and that are older, except those that somebody has written to there.
  ///
  /// - Parameter seconds: the age; `nil` to keep all files.
  func expireTrash(after seconds: Int64?) throws {
    guard let seconds else { return }
    let limit = clock.time.adding(seconds: -seconds)
    for row in try ledger.trash() where row.isOwn && row.when < limit {
      let now = try folder.trashIdentity(row.name).map(row.lying) ?? row
      if now.isOwn { try folder.removeTrash(row.name) }
      try ledger.apply([now.isOwn ? .dropTrash(name: row.name) : .trash(now)])
    }
  }
}

extension TrashRow {
  /// Makes the row for a file in the trash that has none. Nobody knows who placed it, so it counts as a user's.
  package init(found name: String, size: UInt64, when: Timestamp) {
    self.init(
      name: name, path: RelativePath(trusted: Array("found-\(name)".utf8)), reason: .replaced, isOwn: false,
      size: size, when: when)
  }
}
