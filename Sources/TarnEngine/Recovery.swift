package import TarnCore
package import TarnRuntime

/// Puts right what a crash left between a rename and its row. Whoever works first in a folder that was opened runs it, under the lock.
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
    // A rename that only the page cache knows must not be recorded as done.
    if !intents.isEmpty { try folder.flush() }
    try ledger.apply(changes)
    try sweepPartials(handled: Set(intents.map(\.partialName)))
    try sweepTrash()
  }

  /// The first step of `run`, which writes nothing: also where the ledger cannot be written yet.
  ///
  /// - Returns: whether anything was removed.
  package func makeRoom() throws -> Bool {
    // On a full disk not even the ledger can be written: unfinished downloads go first.
    guard try folder.space().free < Self.leastRoom else { return false }
    let needed = Set(try ledger.intents().map(\.partialName))
    let removable = try folder.partials().filter { !needed.contains($0.name) }
    for file in removable { try folder.removePartial(file.name) }
    return !removable.isEmpty
  }

  /// Bytes that the ledger may need.
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
      // The new file, not yet exchanged.
      try folder.unstage(intent.trashName, as: intent.partialName)
      lying = nil
    }
    // Not renamed, or left by a step that failed. A file without a row is fetched again.
    if !intent.isUnnamed, try folder.partialIdentity(intent.partialName) != nil,
      try ledger.partial(intent.path) == nil
    {
      try folder.removePartial(intent.partialName)
    }
    if let lying { changes.append(try displaced(intent, by: ledger.row(intent.path), lying)) }
    return changes
  }

  /// A file that had no name is gone unless it has got its last one, and its inode may be anybody's since: only its bytes tell.
  /// One that cannot be read is none of Tarn's until a pass has looked.
  private func holds(_ row: Row) -> Bool {
    (try? folder.digest(of: row.path, row.digest.algorithm))?.0 == row.digest
  }

  private func finishRemoval(_ intent: Intent) throws -> [LedgerChange] {
    guard let lying = try folder.trashIdentity(intent.trashName) else { return [.dropIntent(intent.path)] }
    return [
      .dropIntent(intent.path), .dropRow(intent.path), .dropHeldPath(intent.path),
      displaced(intent, by: intent.row, lying),
      .event(
        when: clock.time, code: "deleted", path: intent.path, bytes: lying.size,
        detail: "finished after a crash"),
    ]
  }

  /// What lies in the trash. It is Tarn's when it is the very file that the row speaks of, with the bytes that it had:
  /// what somebody wrote into before the move, or since, does not expire.
  ///
  /// - Parameter row: of what stood there; nil when nothing did that Tarn knew.
  private func displaced(_ intent: Intent, by row: Row?, _ lying: FileIdentity) -> LedgerChange {
    let isAsRecorded = row.map { lying.isSameContents(as: $0.identity) } ?? false
    let isOwn = isAsRecorded && intent.displacesOwn && row?.isAdopted == false
    let reason: TrashRow.Reason = isAsRecorded ? .replaced : .edited
    return .trash(
      TrashRow(
        name: intent.trashName, path: intent.path, reason: intent.kind == .remove ? .deleted : reason,
        isOwn: isOwn, size: lying.size, when: clock.time, identity: lying))
  }

  /// Partial files that no row speaks of: what lies there came from a server, never from a user.
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

  /// Removes unfinished downloads that no pass will go on with, and their rows.
  func drop(partials paths: Set<RelativePath>) throws {
    guard !paths.isEmpty else { return }
    let rows = try ledger.partials().filter { paths.contains($0.path) }
    for row in rows { try folder.removePartial(row.name) }
    try ledger.apply(rows.map { .dropPartial($0.path) })
  }

  /// Files of the trash that no row speaks of: kept until `trash empty`, as if a user had made them. Rows whose
  /// file is gone are dropped.
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

  /// Removes from the trash what Tarn placed and what has been there for longer; not what somebody wrote into there.
  ///
  /// - Parameter seconds: nil to keep all of it.
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
  /// A file of the trash that no row speaks of: nobody knows who placed it, so it counts as a user's.
  package init(found name: String, size: UInt64, when: Timestamp) {
    self.init(
      name: name, path: RelativePath(trusted: Array("found-\(name)".utf8)), reason: .replaced, isOwn: false,
      size: size, when: when)
  }
}
