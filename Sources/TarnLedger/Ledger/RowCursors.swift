import TarnCore

/// A statement that reads the state as of its begin. It has its own reader in a read transaction, and gives it back at the end,
/// after a failure, or when it is dropped.
///
/// While it is open, the log cannot be checkpointed beyond its state, and grows with what is written.
private final class LentStatement {
  private let readers: ReaderPool
  private var lent: (connection: Connection, statement: Statement)?

  init(_ readers: ReaderPool, _ sql: String, _ values: [Value]) throws(LedgerFailure) {
    self.readers = readers
    let connection = try readers.borrow()
    try connection.run("BEGIN")
    // The transaction takes its snapshot with the first read, not before.
    _ = try connection.first("SELECT clean FROM state") { row throws(LedgerFailure) in try row.integer(0) }
    let statement = try connection.prepare(sql)
    try statement.bind(values)
    lent = (connection, statement)
  }

  deinit {
    release()
  }

  /// Returns the next row, converted by `read`. `nil` at the end.
  func next<Result>(
    _ read: (Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result? {
    guard let statement = lent?.statement else { return nil }
    do throws(LedgerFailure) {
      if try statement.step() { return try read(statement) }
    } catch {
      release()
      throw error
    }
    release()
    return nil
  }

  private func release() {
    guard let (connection, statement) = lent else { return }
    lent = nil
    statement.reset()
    // A reader that cannot end its transaction is closed.
    if (try? connection.run("COMMIT")) != nil { readers.giveBack(connection) }
  }
}

/// Reads the rows of a region.
final class SQLiteRowCursor: RowCursor {
  private let rows: LentStatement
  /// The tally that learns the count once all rows were read. `nil` when not all rows are read.
  private var tally: (tally: RowTally, begin: UInt64)?
  private var count = 0

  /// - Parameter tally: the tally of all rows; `nil` when other processes write too.
  init(_ readers: ReaderPool, _ region: Region, _ tally: RowTally?) throws(LedgerFailure) {
    self.tally = region == .everything ? tally.map { ($0, $0.begin()) } : nil
    let (sql, values) = SQL.select(Row.columns, from: Row.table, in: region)
    rows = try LentStatement(readers, sql, values)
  }

  func next() throws(LedgerFailure) -> Row? {
    do throws(LedgerFailure) {
      if let row = try rows.next({ row throws(LedgerFailure) -> Row in try row.record() }) {
        count += 1
        return row
      }
    } catch {
      // A failure ends the cursor before the last row, so the count is not known.
      tally = nil
      throw error
    }
    if let tally { tally.tally.end(tally.begin, count: count) }
    return nil
  }
}

/// Reads the paths and identities of all rows.
final class SQLiteRecordedCursor: RecordedCursor {
  private let rows: LentStatement

  init(_ readers: ReaderPool) throws(LedgerFailure) {
    rows = try LentStatement(readers, SQL.recorded, [])
  }

  func next() throws(LedgerFailure) -> Recorded? {
    try rows.next { row throws(LedgerFailure) -> Recorded in
      var reader = ColumnReader(row)
      return Recorded(path: try reader.path(), identity: try reader.identity())
    }
  }
}
