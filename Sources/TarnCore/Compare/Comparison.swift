/// Compares what is wanted with what is present, in one merge of three streams sorted by path bytes. The entries are pushed by
/// `want`; the rows of the ledger and the snapshot of the folder are pulled. Memory does not grow with any of them. Used by one
/// thread.
package final class Comparison {
  private let planner: Planner
  private let rows: any RowCursor
  private let snapshot: any SnapshotCursor
  private let emit: (Finding) throws -> Void
  private let unrecorded: (Present, _ isRecorded: Bool) -> Void
  private let mayGo: (RelativePath) -> Bool

  private var row: Row?
  private var present: Present?
  /// The newest entry, not yet settled because the next one may name the same path.
  private var newest: Wanted?
  /// Settled entries whose path is a prefix of the newest path: one of them may turn out to be a directory of a later entry. An
  /// entry that is no such prefix when it is settled is not kept.
  private var nested: [Settled] = []
  /// Objects of the folder that are not directories and whose path is a prefix of the last one seen.
  private var blockers: [Blocker] = []

  private struct Wanted {
    var entry: Entry
    /// The refusal of this path, set when two of its entries do not agree.
    var refusal: (code: String, message: String)?
  }

  private struct Settled {
    let isRefused: Bool
    var finding: Finding

    /// True when this entry's path is a directory of `path`.
    func holds(_ path: RelativePath) -> Bool { finding.path.isAncestor(of: path) }
  }

  private struct Blocker {
    var present: Present
    /// The finding of its row when no entry wants it. It is kept back while a wanted path may lie below it.
    var unlisted: Finding?
    /// True when something is going to be fetched below it.
    var makesWay = false
  }

  /// - Parameters:
  ///   - unrecorded: called for every regular file that is not wanted and not recorded, and for every regular file that differs
  ///     from the row of its path, with `isRecorded` set.
  ///   - mayGo: returns whether an unlisted file of Tarn's may be deleted, where the policy deletes at all.
  ///   - emit: called for every path that is wanted or recorded, nearly in path order.
  package init(
    planner: Planner, rows: any RowCursor, snapshot: any SnapshotCursor,
    unrecorded: @escaping (Present, _ isRecorded: Bool) -> Void = { _, _ in },
    mayGo: @escaping (RelativePath) -> Bool = { _ in true },
    emit: @escaping (Finding) throws -> Void
  ) throws {
    self.planner = planner
    self.rows = rows
    self.snapshot = snapshot
    self.unrecorded = unrecorded
    self.mayGo = mayGo
    self.emit = emit
    row = try rows.next()
    try nextPresent()
  }

  /// Takes the next entry.
  ///
  /// - Throws: `OutOfOrder` when its path sorts before the previous one. The comparison is void then.
  package func want(_ entry: Entry) throws {
    let order = newest.map { compareBytes($0.entry.path.bytes, entry.path.bytes) }
    if let order, order > 0 { throw OutOfOrder() }
    let known = newest.take()
    if let known, order == 0 {
      newest = merge(known, entry)
    } else {
      newest = Wanted(entry: entry)
      if let known { try settle(known, next: entry.path) }
    }
  }

  /// Ends the entries: the remaining rows are unlisted.
  package func finish() throws {
    if let known = newest.take() { try settle(known, next: nil) }
    while row != nil || present != nil { try passUnlisted(before: nil) }
    try release(from: 0)
    while let blocker = blockers.popLast() { try release(blocker) }
  }

  package struct OutOfOrder: Error {}

  private func merge(_ known: Wanted, _ entry: Entry) -> Wanted {
    if entry.isVoucher || known.entry.isVoucher {
      var vouched = known
      vouched.entry =
        known.entry.isVoucher && !entry.isVoucher
        ? entry.vouched(by: known.entry) : known.entry.vouched(by: entry)
      return vouched
    }
    guard !entry.isRefused else { return known }
    guard !known.entry.isRefused else { return Wanted(entry: entry) }
    var merged = known
    guard known.refusal == nil else { return merged }
    guard let entry = known.entry.merged(with: entry) else {
      merged.refusal = ("path-twice", "two entries of the feed have this path and do not agree")
      return merged
    }
    merged.entry = entry
    return merged
  }

  /// Advances rows and snapshot to the path and decides. The finding is kept back while its path may be a directory of a later
  /// entry. Otherwise it is emitted at once, perhaps before the feed turns out to be cut off or out of order.
  ///
  /// - Parameter next: the next wanted path; `nil` when there are no more.
  private func settle(_ wanted: Wanted, next: RelativePath?) throws {
    // A list may name files that the index does not have.
    guard !wanted.entry.isVoucher else { return }
    let path = wanted.entry.path
    while let isRow = isRowFirst, (isRow ? row?.path : present?.path).map({ $0 < path }) == true {
      try passUnlisted(before: path)
    }
    try dropNonPrefixes(of: path)
    let row = try takeRow(at: path)
    let present = try takePresent(at: path)
    var finding = Finding(path: path, entry: wanted.entry, row: row, decision: .current)
    finding.mark = mark(row, present)
    if finding.mark != nil, let present, present.kind == .regular { unrecorded(present, true) }
    if wanted.entry.isRefused {
      finding.refusal = ("refused", "")
    } else if !nested.isEmpty, nested.contains(where: { !$0.isRefused && $0.holds(path) }) {
      refuseAncestors(of: path)
      finding.refusal = Self.fileAndDirectory
    } else if let refusal = wanted.refusal {
      finding.refusal = refusal
    } else {
      finding.decision = decide(wanted.entry, row: row, present: present)
    }
    if let present, present.kind != .directory, mayLieBelow(path, next) {
      blockers.append(Blocker(present: present))
    }
    // Most often nothing lies below it, so the finding need not be kept and copied.
    if nested.isEmpty, !wanted.entry.isRefused, next?.begins(with: path) != true {
      try release(finding)
    } else {
      nested.append(Settled(isRefused: wanted.entry.isRefused, finding: finding))
    }
  }

  private func decide(_ entry: Entry, row: Row?, present: Present?) -> Decision {
    guard !blockers.isEmpty,
      let blocker = blockers.first(where: { $0.present.path.isAncestor(of: entry.path) })
    else {
      return planner.decide(entry, row: row, present: present)
    }
    if canMakeWay(blocker) {
      let decision = planner.decide(entry, row: row, present: nil)
      guard case .action(var action) = decision else { return decision }
      action.blocker = blocker.present.path
      return .action(action)
    }
    let name = blocker.present.path.printable
    return .conflict(
      code: "parent-not-a-directory",
      message: isOwn(blocker)
        ? "\(name) is a file, and the feed now has a directory there; "
          + (planner.policy.deletes
            ? "this file may not be deleted: move it away"
            : "--delete lets the file go to the trash")
        : "\(name) is no directory, and not as Tarn placed it")
  }

  /// Returns whether the blocker is a file that Tarn placed and that the feed now has as a directory. It goes as any other deletion
  /// does; what a refused name protects, and what must not be deleted, stays.
  private func canMakeWay(_ blocker: Blocker) -> Bool {
    guard isOwn(blocker), case .action(let action)? = blocker.unlisted?.decision else { return false }
    return action.kind == .delete && mayGo(action.path)
  }

  private func isOwn(_ blocker: Blocker) -> Bool {
    guard let own = blocker.unlisted?.row, blocker.present.kind == .regular else { return false }
    // The same test as for a deletion: a file whose mode or links changed is the same file.
    return own.identity.isSameContents(as: blocker.present.identity)
      && !planner.policy.filter.excludes(own.path)
  }

  private func refuseAncestors(of path: RelativePath) {
    for index in nested.indices where !nested[index].isRefused && nested[index].holds(path) {
      nested[index].finding.refusal = Self.fileAndDirectory
    }
  }

  private static let fileAndDirectory = (
    code: "path-file-and-directory", message: "the feed has this path both as a file and as a directory"
  )

  /// Releases what cannot be a prefix of this path or of any later one. Blockers come last, since a released finding may make one
  /// of them give way.
  private func dropNonPrefixes(of path: RelativePath) throws {
    if nested.isEmpty, blockers.isEmpty { return }
    if let keep = nested.firstIndex(where: { !path.begins(with: $0.finding.path) }) {
      try release(from: keep)
    }
    while let last = blockers.indices.last, !path.begins(with: blockers[last].present.path) {
      try release(blockers.removeLast())
    }
  }

  private func release(from index: Int) throws {
    // Most often there is only one, which is moved, not copied.
    guard nested.count - index > 1 else {
      if nested.count > index { try release(nested.removeLast().finding) }
      return
    }
    let released = Array(nested[index...])
    nested.removeSubrange(index...)
    for settled in released { try release(settled.finding) }
  }

  private func release(_ finding: Finding) throws {
    noteWay(for: finding)
    try emit(finding)
  }

  private func noteWay(for finding: Finding) {
    guard !blockers.isEmpty, finding.refusal == nil, case .action = finding.decision else { return }
    for index in blockers.indices where blockers[index].present.path.isAncestor(of: finding.path) {
      blockers[index].makesWay = true
    }
  }

  private func release(_ blocker: Blocker) throws {
    guard var finding = blocker.unlisted else { return }
    if blocker.makesWay {
      finding.decision = .action(
        Action(.delete, path: finding.path, present: blocker.present.identity, row: finding.row))
    }
    try emit(finding)
  }

  /// True when the path that comes first is that of the row; `nil` when both streams are over.
  private var isRowFirst: Bool? {
    guard let row else { return present == nil ? nil : false }
    guard let present else { return true }
    return compareBytes(row.path.bytes, present.path.bytes) <= 0
  }

  private func takeRow(at path: RelativePath) throws -> Row? {
    guard row?.path == path else { return nil }
    let taken = row.take()
    row = try rows.next()
    return taken
  }

  private func takePresent(at path: RelativePath) throws -> Present? {
    guard present?.path == path else { return nil }
    let taken = present.take()
    try nextPresent()
    return taken
  }

  /// - Parameter wanted: the next wanted path; `nil` when there are no more.
  private func passUnlisted(before wanted: RelativePath?) throws {
    guard let isRow = isRowFirst, let path = isRow ? row?.path : present?.path else { return }
    try dropNonPrefixes(of: path)
    let row = try takeRow(at: path)
    let present = try takePresent(at: path)
    var finding: Finding?
    if let row {
      let decision = isBelowRefused(path) ? .unlisted : planner.decideUnlisted(row, present: present)
      finding = Finding(path: path, entry: nil, row: row, decision: decision)
      finding?.mark = mark(row, present)
    } else if let present, present.kind == .regular {
      unrecorded(present, false)
    }
    if let present, present.kind != .directory, mayLieBelow(path, wanted) {
      blockers.append(Blocker(present: present, unlisted: finding))
    } else if let finding {
      try emit(finding)
    }
  }

  /// Returns whether a later path may begin with this one. If any does, the next one does.
  private func mayLieBelow(_ path: RelativePath, _ wanted: RelativePath?) -> Bool {
    func begins(_ next: RelativePath?) -> Bool { next?.begins(with: path) == true }
    return begins(wanted) || begins(row?.path) || begins(present?.path)
  }

  private func mark(_ row: Row?, _ present: Present?) -> UInt64? {
    guard let row else { return nil }
    let isBelowFile = present == nil && blockers.contains { $0.present.path.isAncestor(of: row.path) }
    return FolderFingerprint.mark(row, present: present, isBelowFile: isBelowFile)
  }

  /// True below a name that was refused, which may have been a directory's name.
  private func isBelowRefused(_ path: RelativePath) -> Bool {
    nested.contains { $0.isRefused && $0.holds(path) }
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

/// What the comparison found about one path.
package struct Finding: Sendable {
  package var path: RelativePath
  package var entry: Entry?
  package var row: Row?
  package var decision: Decision
  /// The mark of what stands there in place of what the row records (`FolderFingerprint.mark`). `nil` when it is as recorded, and
  /// when there is no row.
  package var mark: UInt64?
  /// Why the entry is not taken, whatever stands at the path.
  package var refusal: (code: String, message: String)?
  /// Set when a directory could not be read. What lies in it counts as absent, so nothing in it may be deleted.
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
  /// Makes one entry of two that have the same path.
  ///
  /// - Returns: `nil` when they do not agree: another digest of the same algorithm, another size, or nothing that shows that they
  ///   are the same file.
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
    if modified == nil {
      merged.modified = other.modified
      merged.modifiedIsExact = other.modifiedIsExact
    }
    if listing.isEmpty { merged.listing = other.listing }
    merged.digests += other.digests.filter { !digests.contains($0) }
    merged.digests.sort { $0.algorithm > $1.algorithm }
    merged.sources = Self.best(of: sources + other.sources)
    merged.pieces = pieces ?? other.pieces
    merged.mayBeDirectory = mayBeDirectory && other.mayBeDirectory
    merged.mayBeCut = mayBeCut || other.mayBeCut
    return merged
  }

  /// The most sources that are kept of merged entries, since a feed may name one path any number of times.
  package static let mostSources = 64

  /// Returns the best sources first, each URL once.
  private static func best(of sources: [Source]) -> [Source] {
    var seen: Set<String> = []
    let sorted = sources.sorted { $0.priority < $1.priority }.filter { seen.insert($0.url).inserted }
    return Array(sorted.prefix(mostSources))
  }
}
