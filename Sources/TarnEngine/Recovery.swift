import TarnCore

/// Puts right what a crash left between a rename and its row. First thing in every pass, under the lock.
struct Recovery {
  let ports: PassPorts
  let folder: any FolderPort

  /// - Parameter wasRebuilt: the ledger is new beside an old folder: then what it cannot explain is kept in the
  ///   trash, never removed.
  func run(wasRebuilt: Bool) throws {
    let intents = try ports.ledger.intents()
    let partials = Dictionary(try folder.partials().map { ($0.name, $0.size) }) { first, _ in first }
    var trashed = Dictionary(try folder.trashed().map { ($0.name, $0.size) }) { first, _ in first }
    var changes: [LedgerChange] = []
    for intent in intents {
      switch intent.kind {
      case .install: changes += try finishInstall(intent, partials: partials, trashed: &trashed)
      case .remove: changes += try finishRemoval(intent, trashed: trashed)
      }
    }
    // A rename that only the page cache knows must not be recorded as done.
    if !intents.isEmpty { try folder.flush() }
    try ports.ledger.apply(changes)
    try sweepPartials(handled: Set(intents.map(\.partialName)), wasRebuilt: wasRebuilt)
    try sweepTrash()
  }

  private func finishInstall(
    _ intent: Intent, partials: [String: UInt64], trashed: inout [String: UInt64]
  ) throws -> [LedgerChange] {
    var changes: [LedgerChange] = [.dropIntent(intent.path)]
    let present = try folder.look(intent.path)
    let placed = present.flatMap { present in
      present.kind == .regular && present.identity.isSameContents(as: intent.row.identity)
        ? present.identity : nil
    }
    if let placed {
      var row = intent.row
      row.identity = placed
      changes += [
        .row(row), .dropPartial(intent.path),
        .event(
          Event(
            when: ports.now, code: "published", path: row.path, bytes: row.identity.size,
            detail: "finished after a crash")),
      ]
    }
    if let size = partials[intent.partialName] {
      if try placed != nil || isDisplaced(intent, size: size, present: present) {
        try folder.trashPartial(intent.partialName, as: intent.trashName)
        trashed[intent.trashName] = size
        changes.append(.dropPartial(intent.path))
      } else if try ports.ledger.partial(intent.path) == nil {
        // Not renamed. One without a row is fetched again.
        try folder.removePartial(intent.partialName)
      }
    }
    if let size = trashed[intent.trashName] {
      changes.append(trashRow(intent, reason: intent.displacesOwn ? .replaced : .edited, size: size))
    }
    return changes
  }

  /// After the exchange the name in `partial/` holds what stood at the path; somebody may have changed the new
  /// file since, so that the path alone does not tell.
  private func isDisplaced(_ intent: Intent, size: UInt64, present: Present?) throws -> Bool {
    // Only what has a row is ever displaced, and it is not while it stands there.
    guard let row = try ports.ledger.row(intent.path) else { return false }
    if let present, present.kind == .regular, row.identity.isSameContents(as: present.identity) {
      return false
    }
    guard size == intent.row.identity.size else { return true }
    guard let partial = try folder.openPartial(intent.partialName) else { return false }
    defer { partial.close() }
    do throws(FolderFailure) {
      _ = try partial.begin(keeping: size, check: ContentCheck(size: size, digest: intent.row.digest))
      _ = try partial.seal(modified: nil)
      return false
    } catch {
      guard error.code == .digestMismatch else { throw error }
      return true
    }
  }

  private func finishRemoval(_ intent: Intent, trashed: [String: UInt64]) throws -> [LedgerChange] {
    guard let size = trashed[intent.trashName] else { return [.dropIntent(intent.path)] }
    return [
      .dropIntent(intent.path), .dropRow(intent.path), trashRow(intent, reason: .deleted, size: size),
      .event(
        Event(
          when: ports.now, code: "deleted", path: intent.path, bytes: size, detail: "finished after a crash")),
    ]
  }

  private func trashRow(_ intent: Intent, reason: TrashRow.Reason, size: UInt64) -> LedgerChange {
    .trash(
      TrashRow(
        name: intent.trashName, path: intent.path, reason: reason, isOwn: intent.displacesOwn, size: size,
        when: ports.now))
  }

  /// Partial files that no row speaks of.
  private func sweepPartials(handled: Set<String>, wasRebuilt: Bool) throws {
    let rows = try ports.ledger.partials()
    let known = Set(rows.map(\.name))
    let files = try folder.partials()
    for file in files where !known.contains(file.name) && !handled.contains(file.name) {
      if wasRebuilt, file.size > 0 {
        try folder.trashPartial(file.name, as: ports.random.name())
      } else {
        try folder.removePartial(file.name)
      }
    }
    let present = Set(files.map(\.name))
    let gone = rows.filter { !present.contains($0.name) }
    if !gone.isEmpty { try ports.ledger.apply(gone.map { .dropPartial($0.path) }) }
  }

  /// Files of the trash that no row speaks of: kept until `trash empty`, as if a user had made them. Rows whose
  /// file is gone are dropped.
  private func sweepTrash() throws {
    let rows = try ports.ledger.trash()
    let known = Set(rows.map(\.name))
    let files = try folder.trashed()
    let present = Set(files.map(\.name))
    var changes = rows.filter { !present.contains($0.name) }.map { LedgerChange.dropTrash(name: $0.name) }
    for file in files where !known.contains(file.name) {
      let path = RelativePath(trusted: Array("found-\(file.name)".utf8))
      changes.append(
        .trash(
          TrashRow(
            name: file.name, path: path, reason: .replaced, isOwn: false, size: file.size, when: ports.now)))
    }
    if !changes.isEmpty { try ports.ledger.apply(changes) }
  }

  /// Removes from the trash what Tarn placed and what is older than seven days.
  func expireTrash() throws {
    let limit = ports.now.adding(seconds: -Self.trashLifetime)
    for row in try ports.ledger.trash() where row.isOwn && row.when < limit {
      try folder.removeTrash(row.name)
      try ports.ledger.apply([.dropTrash(name: row.name)])
    }
  }

  /// Seconds.
  static let trashLifetime: Int64 = 7 * 24 * 3600
}
