import TarnCore

/// The files of a folder that are recorded with a given digest. Thread-safe.
struct RecordedCopies: Sendable {
  let ledger: any TransferLedger
  let folder: any FolderLooking

  /// The most rows that are examined for one digest. Many of them may be of files that are gone.
  static let most = 512
  /// The rows that are read at a time. The first ones are nearly always sufficient.
  private static let pages = (first: 4, next: 64)

  /// Calls `body` with the rows, in the order of their paths.
  ///
  /// - Parameter path: the wanted file, whose own row is skipped.
  /// - Returns: the first result that is not `nil`; `nil` when `most` rows gave none.
  func first<Result>(
    of digest: Digest, for path: RelativePath, _ body: (Row) -> Result?
  ) throws(LedgerFailure) -> Result? {
    var last: RelativePath?
    var seen = 0
    while seen < Self.most {
      let page = min(last == nil ? Self.pages.first : Self.pages.next, Self.most - seen)
      let rows = try ledger.rows(digest: digest, after: last, limit: page)
      for row in rows where row.path != path {
        if let result = body(row) { return result }
      }
      guard rows.count == page else { return nil }
      last = rows.last?.path
      seen += page
    }
    return nil
  }

  /// Returns whether one of the files is as it was recorded.
  func exists(of digest: Digest, for path: RelativePath) throws(LedgerFailure) -> Bool {
    try first(of: digest, for: path) { row -> Bool? in
      guard let present = try? folder.look(row.path), present.kind == .regular else { return nil }
      return present.identity.isSame(as: row.identity) ? true : nil
    } ?? false
  }
}
