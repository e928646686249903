import TarnCore

/// Puts right what a crash left between a rename and its row. First thing in every pass, under the lock.
struct Recovery {
  let ports: PassPorts
  let folder: any FolderPort

  func run() throws {
    let intents = try ports.ledger.intents()
    try makeRoom(intents)
    var trashed = Dictionary(try folder.trashed().map { ($0.name, $0.size) }) { first, _ in first }
    var changes: [LedgerChange] = []
    for intent in intents {
      switch intent.kind {
      case .install: changes += try finishInstall(intent, trashed: &trashed)
      case .remove: changes += try finishRemoval(intent, trashed: trashed)
      }
    }
    // A rename that only the page cache knows must not be recorded as done.
    if !intents.isEmpty { try folder.flush() }
    try ports.ledger.apply(changes)
    try sweepPartials(handled: Set(intents.map(\.partialName)))
    try sweepTrash()
  }

  /// On a full disk not even the ledger can be written: unfinished downloads go first.
  private func makeRoom(_ intents: [Intent]) throws {
    guard try folder.space().free < Self.leastRoom else { return }
    let needed = Set(intents.map(\.partialName))
    for file in try folder.partials() where !needed.contains(file.name) {
      try folder.removePartial(file.name)
    }
  }

  /// Bytes that the ledger may need.
  private static let leastRoom: UInt64 = 4 << 20

  private func finishInstall(
    _ intent: Intent, trashed: inout [String: UInt64]
  ) throws -> [LedgerChange] {
    var changes: [LedgerChange] = [.dropIntent(intent.path)]
    let present = try folder.look(intent.path)
    if let present, present.kind == .regular, present.identity.isSameContents(as: intent.row.identity) {
      var row = intent.row
      row.identity = present.identity
      changes += [
        .row(row), .dropPartial(intent.path),
        .event(
          Event(
            when: ports.now, code: "published", path: row.path, bytes: row.identity.size,
            detail: "finished after a crash")),
      ]
    }
    if let waiting = try folder.trashIdentity(intent.trashName),
      waiting.isSameContents(as: intent.row.identity)
    {
      // The new file, not yet exchanged.
      try folder.unstage(intent.trashName, as: intent.partialName)
      trashed[intent.trashName] = nil
    }
    // Not renamed, or left by a step that failed. A file without a row is fetched again.
    if try folder.partialIdentity(intent.partialName) != nil, try ports.ledger.partial(intent.path) == nil {
      try folder.removePartial(intent.partialName)
    }
    if let size = trashed[intent.trashName] {
      // What somebody wrote into before the exchange does not expire.
      let isOwn =
        try intent.displacesOwn && ports.ledger.row(intent.path).map { $0.identity.size == size } ?? true
      changes.append(trashRow(intent, reason: isOwn ? .replaced : .edited, isOwn: isOwn, size: size))
    }
    return changes
  }

  private func finishRemoval(_ intent: Intent, trashed: [String: UInt64]) throws -> [LedgerChange] {
    guard let size = trashed[intent.trashName] else { return [.dropIntent(intent.path)] }
    return [
      .dropIntent(intent.path), .dropRow(intent.path),
      trashRow(
        intent, reason: .deleted, isOwn: intent.displacesOwn && size == intent.row.identity.size, size: size),
      .event(
        Event(
          when: ports.now, code: "deleted", path: intent.path, bytes: size, detail: "finished after a crash")),
    ]
  }

  private func trashRow(
    _ intent: Intent, reason: TrashRow.Reason, isOwn: Bool, size: UInt64
  ) -> LedgerChange {
    .trash(
      TrashRow(
        name: intent.trashName, path: intent.path, reason: reason, isOwn: isOwn, size: size,
        when: ports.now))
  }

  /// Partial files that no row speaks of: what lies there came from a server, never from a user.
  private func sweepPartials(handled: Set<String>) throws {
    let rows = try ports.ledger.partials()
    let known = Set(rows.map(\.name))
    let files = try folder.partials()
    for file in files where !known.contains(file.name) && !handled.contains(file.name) {
      try folder.removePartial(file.name)
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
