import CSQLite
import TarnCore

/// A connection to one database file, with its prepared statements.
///
/// Not thread-safe: it is opened without SQLite's own mutex, so its holder must be its only user. The writers lie behind a lock,
/// and a reader is taken out of its pool.
final class Connection {
  /// The database's path, for messages.
  let file: String
  private let handle: OpaquePointer
  /// The prepared statements by their SQL text. Each is reset when it is not in use.
  private var statements: [String: Statement] = [:]
  /// The last few statements, the oldest first. A list of changes runs the same ones repeatedly, and hashing their text costs as
  /// much as running them.
  private var recent: [(sql: String, statement: Statement)] = []

  /// Opens the database. Links are not followed, result codes are the extended ones, and connections share no cache.
  ///
  /// - Parameters:
  ///   - name: the database for SQLite: a path, a `file:` URI with `SQLITE_OPEN_URI`, or "" for a temporary file.
  ///   - flags: whether to read or write, and whether to create the file.
  init(_ name: String, flags: Int32, file: String) throws(LedgerFailure) {
    let always = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags | always, nil)
    guard let handle = opened else {
      throw ErrorTable.failure(code: code, errno: 0, detail: "out of memory", file: file)
    }
    guard code == SQLITE_OK else {
      let failure = ErrorTable.failure(code: code, database: handle, file: file)
      sqlite3_close_v2(handle)
      throw failure
    }
    self.handle = handle
    self.file = file
  }

  deinit {
    statements.removeAll()
    recent.removeAll()
    // Statements that a cursor still holds keep the connection alive inside SQLite until they go.
    sqlite3_close_v2(handle)
  }

  /// Prepares a separate statement, for a cursor that outlives the call.
  func prepare(_ sql: String, persistent: Bool = false) throws(LedgerFailure) -> Statement {
    var prepared: OpaquePointer?
    let flags = persistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let code = sqlite3_prepare_v3(handle, sql, -1, flags, &prepared, nil)
    guard code == SQLITE_OK, let statement = prepared else { throw failure(code) }
    return Statement(handle: statement, database: handle, file: file)
  }

  /// Runs a statement that returns no rows. It is prepared once and kept.
  func run(_ sql: String, _ values: [Value] = []) throws(LedgerFailure) {
    let statement = try cached(sql)
    defer { statement.reset() }
    try statement.bind(values)
    while try statement.step() {}
  }

  /// Runs a statement that returns no rows. `bind` binds its parameters, from the first on.
  func run(_ sql: String, bind: (Statement) throws(LedgerFailure) -> Void) throws(LedgerFailure) {
    let statement = try cached(sql)
    defer { statement.reset() }
    try bind(statement)
    while try statement.step() {}
  }

  /// Returns all rows, each converted by `read`.
  func all<Result>(
    _ sql: String, _ values: [Value] = [], _ read: (Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> [Result] {
    let statement = try cached(sql)
    defer { statement.reset() }
    try statement.bind(values)
    var results: [Result] = []
    while try statement.step() { results.append(try read(statement)) }
    return results
  }

  /// Returns the first row, converted by `read`. `nil` when there is none.
  func first<Result>(
    _ sql: String, _ values: [Value] = [], _ read: (Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result? {
    let statement = try cached(sql)
    defer { statement.reset() }
    try statement.bind(values)
    return try statement.step() ? try read(statement) : nil
  }

  /// Runs any number of statements without parameters, and discards their rows.
  func execute(_ script: String) throws(LedgerFailure) {
    let code = sqlite3_exec(handle, script, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// Begins a transaction without journal and syncs, in a database that only this connection knows. Whoever keeps the database must
  /// make it durable; a failure leaves nothing usable.
  func beginUnjournaled(cacheMiB: Int) throws(LedgerFailure) {
    try execute(
      """
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA mmap_size = 0;
      PRAGMA cache_size = \(-cacheMiB << 10);
      BEGIN;
      """)
  }

  /// Writes the cached pages to the file, and limits the cache to `cacheKiB` from now on. Does nothing while the cache holds at
  /// most `worthKiB`, which then needs no disk space.
  func releaseMemory(cacheKiB: Int, worthKiB: Int) throws(LedgerFailure) {
    var (held, most): (Int32, Int32) = (0, 0)
    let isKnown = sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &held, &most, 0) == SQLITE_OK
    if isKnown, Int(held) <= worthKiB << 10 { return }
    try execute("PRAGMA cache_size = \(-cacheKiB)")
    let code = sqlite3_db_cacheflush(handle)
    // Busy pages are in use by a statement; they are written at the next occasion.
    guard code == SQLITE_OK || code & 0xff == SQLITE_BUSY else { throw failure(code) }
    sqlite3_db_release_memory(handle)
  }

  /// Runs `body` in a transaction, as a whole or not at all. It takes the write lock first, so that it fails before anything is
  /// done.
  func transaction(_ body: () throws(LedgerFailure) -> Void) throws(LedgerFailure) {
    try run("BEGIN IMMEDIATE")
    do throws(LedgerFailure) {
      try body()
      try run("COMMIT")
    } catch {
      // On a full disk SQLite has already rolled back.
      if isInTransaction { try? run("ROLLBACK") }
      throw error
    }
  }

  /// Runs several reads on one snapshot.
  func snapshot<Result>(
    _ body: () throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result {
    try run("BEGIN")
    do throws(LedgerFailure) {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      if isInTransaction { try? run("ROLLBACK") }
      throw error
    }
  }

  /// Runs `body`, whose SQL is valid for every database. SQLite's general error then means that the file has an unknown format.
  func expectDatabase<Result>(
    _ body: () throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result {
    do throws(LedgerFailure) {
      return try body()
    } catch {
      guard error.code == .other, sqlite3_errcode(handle) == SQLITE_ERROR else { throw error }
      throw LedgerFailure(.corrupt, error.message)
    }
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// True when the file was opened for writing but cannot be written.
  var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  func setTimeout(milliseconds: Int32) {
    sqlite3_busy_timeout(handle, milliseconds)
  }

  /// Refuses SQL that could damage the file (`PRAGMA writable_schema` and its kind).
  func setDefensive() {
    _ = tarn_sqlite3_db_config_switch(handle, Int32(SQLITE_DBCONFIG_DEFENSIVE), 1)
  }

  /// Keeps the log as it is when this connection, a reader, is the last one to close.
  func keepLogOnClose() {
    _ = tarn_sqlite3_db_config_switch(handle, Int32(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE), 1)
  }

  private func cached(_ sql: String) throws(LedgerFailure) -> Statement {
    for index in recent.indices where recent[index].sql == sql { return recent[index].statement }
    let statement: Statement
    if let known = statements[sql] {
      statement = known
    } else {
      statement = try prepare(sql, persistent: true)
      statements[sql] = statement
    }
    if recent.count == 8 { recent.removeFirst() }
    recent.append((sql, statement))
    return statement
  }

  private func failure(_ code: Int32) -> LedgerFailure {
    ErrorTable.failure(code: code, database: handle, file: file)
  }
}
