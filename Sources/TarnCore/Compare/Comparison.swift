/// How wanted and present are compared: one merge of three streams sorted by path bytes - the entries, pushed
/// by `want`, the rows of the ledger and the snapshot of the folder, pulled. Memory does not grow with any of
/// them. One thread.
package final class Comparison {
  private let planner: Planner
  private let rows: any RowCursor
  private let snapshot: any SnapshotCursor
  private let emit: (Finding) throws -> Void

  private var row: Row?
  private var present: Present?
  /// The newest entry, not yet settled: the next one may name the same path.
  private var newest: Wanted?
  /// Settled entries whose path is a prefix of the newest: one may turn out to be a directory of another.
  private var nested: [Settled] = []
  /// Objects of the folder that are no directories and whose path is a prefix of the newest.
  private var blockers: [Blocker] = []

  private struct Wanted {
    var entry: Entry
    /// Set when two entries of this path do not agree.
    var refusal: (code: String, message: String)?
  }

  private struct Settled {
    var entry: Entry
    var finding: Finding
  }

  private struct Blocker {
    var present: Present
    var row: Row?
    var isWanted: Bool
    /// What is said of an unlisted one that need not make way; said once that is certain.
    var finding: Finding?
    /// It was said to make way for what is wanted below its path.
    var makesWay = false
  }

  /// - Parameter emit: called for every path that is wanted or recorded, nearly in path order.
  package init(
    planner: Planner, rows: any RowCursor, snapshot: any SnapshotCursor,
    emit: @escaping (Finding) throws -> Void
  ) throws {
    self.planner = planner
    self.rows = rows
    self.snapshot = snapshot
    self.emit = emit
    try nextRow()
    try nextPresent()
  }

  /// The next entry.
  ///
  /// - Throws: `OutOfOrder` when its path sorts before the one before it; then the comparison is void.
  package func want(_ entry: Entry) throws {
    if let known = newest {
      let order = compareBytes(known.entry.path.bytes, entry.path.bytes)
      if order > 0 { throw OutOfOrder() }
      if order == 0 {
        newest = merge(known, entry)
        return
      }
      try settle(known)
    }
    newest = Wanted(entry: entry)
  }

  /// No more entries: the rest of the rows is unlisted.
  package func finish() throws {
    if let known = newest { try settle(known) }
    newest = nil
    try release(from: 0)
    while row != nil || present != nil { try passUnlisted() }
    try dropBlockers { _ in false }
  }

  package struct OutOfOrder: Error {}

  private func merge(_ known: Wanted, _ entry: Entry) -> Wanted {
    var merged = known
    guard known.refusal == nil else { return merged }
    guard let entry = known.entry.merged(with: entry) else {
      merged.refusal = ("path-twice", "two entries of the feed have this path and do not agree")
      return merged
    }
    merged.entry = entry
    return merged
  }

  /// Brings rows and snapshot up to the path, decides, and keeps the finding back while it may be a
  /// directory of a later entry.
  private func settle(_ wanted: Wanted) throws {
    let path = wanted.entry.path
    while let front = frontPath, front < path { try passUnlisted() }
    try dropNonPrefixes(of: path)

    let row = self.row?.path == path ? self.row : nil
    let present = self.present?.path == path ? self.present : nil
    if row != nil { try nextRow() }
    if present != nil { try nextPresent() }

    var finding = Finding(path: path, entry: wanted.entry, row: row, decision: .current)
    if let refusal = wanted.refusal {
      finding.refusal = refusal
    } else if nested.contains(where: { $0.entry.path.isAncestor(of: path) }) {
      refuseAncestors(of: path)
      finding.refusal = Self.fileAndDirectory
    } else if wanted.entry.sources.isEmpty {
      finding.refusal = ("refused", "")
    } else {
      finding.decision = try decide(wanted.entry, row: row, present: present)
    }
    nested.append(Settled(entry: wanted.entry, finding: finding))
    if let present, present.kind != .directory {
      blockers.append(Blocker(present: present, row: row, isWanted: true))
    }
  }

  private func decide(_ entry: Entry, row: Row?, present: Present?) throws -> Decision {
    guard let index = blockers.firstIndex(where: { $0.present.path.isAncestor(of: entry.path) }) else {
      return planner.decide(entry, row: row, present: present)
    }
    let blocker = blockers[index]
    // A file that Tarn placed, and that the feed now has as a directory, makes way.
    if let own = blocker.row, !blocker.isWanted, blocker.present.kind == .regular,
      own.identity.isSame(as: blocker.present.identity)
    {
      if !blocker.makesWay {
        blockers[index].makesWay = true
        let removal = Action(.delete, path: own.path, present: blocker.present.identity, row: own)
        try emit(Finding(path: own.path, entry: nil, row: own, decision: .action(removal)))
      }
      return planner.decide(entry, row: row, present: nil)
    }
    return .conflict(
      code: "parent-not-a-directory",
      message: "\(blocker.present.path.printable) is no directory, and Tarn did not place it")
  }

  private func refuseAncestors(of path: RelativePath) {
    for index in nested.indices where nested[index].entry.path.isAncestor(of: path) {
      nested[index].finding.refusal = Self.fileAndDirectory
    }
  }

  private static let fileAndDirectory = (
    code: "path-file-and-directory", message: "the feed has this path both as a file and as a directory"
  )

  /// Lets go of what cannot be a prefix of this path or of any later one.
  private func dropNonPrefixes(of path: RelativePath) throws {
    let keep = nested.firstIndex { !path.bytes.starts(with: $0.entry.path.bytes) } ?? nested.count
    try release(from: keep)
    try dropBlockers { path.bytes.starts(with: $0.bytes) }
  }

  /// Lets go of the blockers that cannot be in the way any more.
  private func dropBlockers(keeping isKept: (RelativePath) -> Bool) throws {
    let dropped = blockers.filter { !isKept($0.present.path) }
    guard !dropped.isEmpty else { return }
    blockers.removeAll { !isKept($0.present.path) }
    for blocker in dropped where !blocker.makesWay {
      if let finding = blocker.finding { try emit(finding) }
    }
  }

  private func release(from index: Int) throws {
    let released = nested[index...]
    nested.removeSubrange(index...)
    for settled in released { try emit(settled.finding) }
  }

  /// The path that comes first of rows and snapshot.
  private var frontPath: RelativePath? {
    guard let row else { return present?.path }
    guard let present else { return row.path }
    return min(row.path, present.path)
  }

  private func passUnlisted() throws {
    guard let path = frontPath else { return }
    let row = self.row?.path == path ? self.row : nil
    let present = self.present?.path == path ? self.present : nil
    if row != nil { try nextRow() }
    if present != nil { try nextPresent() }
    let finding = row.map { row in
      Finding(path: path, entry: nil, row: row, decision: planner.decideUnlisted(row, present: present))
    }
    if let present, present.kind != .directory {
      try dropBlockers { path.bytes.starts(with: $0.bytes) }
      blockers.append(Blocker(present: present, row: row, isWanted: false, finding: finding))
    } else if let finding {
      try emit(finding)
    }
  }

  private func nextRow() throws {
    row = try rows.next()
  }

  private func nextPresent() throws {
    while true {
      do {
        present = try snapshot.next()
        return
      } catch {
        try emit(Finding(scanFailure: error))
      }
    }
  }
}

/// What the comparison says of one path.
package struct Finding: Sendable {
  package var path: RelativePath
  package var entry: Entry?
  package var row: Row?
  package var decision: Decision
  /// The entry is not taken, whatever stands there.
  package var refusal: (code: String, message: String)?
  /// A directory could not be read: what lies in it counts as absent, so nothing in it may be deleted.
  package var scanFailure: FolderFailure?

  package init(path: RelativePath, entry: Entry?, row: Row?, decision: Decision) {
    self.path = path
    self.entry = entry
    self.row = row
    self.decision = decision
  }

  init(scanFailure: FolderFailure) {
    self.path = RelativePath(trusted: [])
    self.decision = .unlisted
    self.scanFailure = scanFailure
  }
}

extension Entry {
  /// One entry out of two of the same path.
  ///
  /// - Returns: nil when they do not agree: another digest of the same algorithm, another size, or nothing
  ///   that shows that they are the same.
  package func merged(with other: Entry) -> Entry? {
    if let size, let otherSize = other.size, size != otherSize { return nil }
    for digest in digests {
      if let twin = other.digests.first(where: { $0.algorithm == digest.algorithm }), twin != digest {
        return nil
      }
    }
    let sameURL = sources.contains { source in other.sources.contains { $0.url == source.url } }
    let sharesDigest = digests.contains { other.digests.contains($0) }
    guard sharesDigest || sameURL else { return nil }
    var merged = self
    merged.size = size ?? other.size
    merged.modified = modified ?? other.modified
    merged.digests += other.digests.filter { !digests.contains($0) }
    merged.digests.sort { $0.algorithm > $1.algorithm }
    merged.sources += other.sources.filter { !sources.contains($0) }
    merged.sources.sort { $0.priority < $1.priority }
    merged.pieces = pieces ?? other.pieces
    return merged
  }
}
