import CSQLite
import Glibc
import TarnCore

/// Opens the connections of a ledger. It inspects before it writes: a file that this program must not write stays byte for byte as
/// it was.
struct LedgerOpener: Sendable {
  /// The way in which a reader opens the file.
  enum ReaderKind: Sendable {
    /// The reader works beside a writer, with the log and its index.
    case shared
    /// The reader uses the file alone, in a directory where neither log nor index can be made, so that nobody writes.
    case immutable
  }

  let file: DatabaseFile
  let schema: Schema

  private var migrator: Migrator { Migrator(schema: schema, file: file) }

  /// Opens the connection for durable writes. The database then exists, is Tarn's and has the newest version. One that was not
  /// closed in order has been checked.
  ///
  /// A failure for a lack of descriptors, or without a known reason, is retried once. SQLite then opens read-only what it cannot
  /// open for writing, and forgets the reason. A disk error is never retried, because a repeated sync that succeeds proves nothing.
  func openWriter() throws(LedgerFailure) -> Connection {
    do throws(LedgerFailure) {
      return try openWriterOnce()
    } catch {
      switch error.code {
      case .inputOutput where error.errno == 0, .readOnly where error.errno == 0, .tooManyFiles:
        return try openWriterOnce()
      case .inputOutput, .readOnly, .corrupt, .newer, .older, .noSpace, .permission, .busy, .missing, .other:
        throw error
      }
    }
  }

  private func openWriterOnce() throws(LedgerFailure) -> Connection {
    if try file.size(of: file.path) == nil {
      file.removeLeftovers()
      try file.create(file.path)
    } else {
      try probe()
    }
    errno = 0
    let connection = try Connection(file.path, flags: SQLITE_OPEN_READWRITE, file: file.path)
    try requireOpenedWritable(connection)
    try settle(connection)
    let state = try migrator.state(of: connection)
    // By now the file's header has been read.
    if connection.isReadOnly {
      throw ErrorTable.failure(.corrupt, "its header forbids writing", file: file.path)
    }
    try setWriting(connection, synchronous: "FULL", checkpoint: 1000)
    try migrator.migrate(connection, from: state)
    try migrator.check(connection)
    try checkAfterCrash(connection)
    // SQLite may have opened the log read-only, which only shows here.
    try connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    return connection
  }

  /// Opens a second writer whose commits are not synced. A power cut may lose all of them or the last ones, and nothing else.
  ///
  /// It uses synchronous NORMAL instead of OFF: with OFF, a power cut just after a restart of the log could replay old pages over
  /// new ones. NORMAL costs one sync of the log's header after such a restart, which this connection itself never begins.
  func openVolatileWriter() throws(LedgerFailure) -> Connection {
    let connection = try Connection(file.path, flags: SQLITE_OPEN_READWRITE, file: file.path)
    try settle(connection)
    try setWriting(connection, synchronous: "NORMAL", checkpoint: 0)
    return connection
  }

  /// Opens a connection that cannot write.
  func openReader(_ kind: ReaderKind) throws(LedgerFailure) -> Connection {
    let connection: Connection
    switch kind {
    case .shared: connection = try Connection(file.path, flags: SQLITE_OPEN_READONLY, file: file.path)
    case .immutable:
      connection = try Connection(
        file.immutableURI, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, file: file.path)
    }
    connection.keepLogOnClose()
    try settle(connection)
    return connection
  }

  /// Opens the first connection of a ledger that is only read, and tells how to open more of them.
  ///
  /// - Throws: `.missing` when there is no ledger yet; `.older` when its version is older.
  func openForReading() throws(LedgerFailure) -> (Connection, ReaderKind) {
    guard try file.size(of: file.path) ?? 0 > 0 else { throw missing }
    do throws(LedgerFailure) {
      return (try openChecked(.shared), .shared)
    } catch {
      switch error.code {
      // Too many files are open in this process, which says nothing about writers.
      case .corrupt, .newer, .older, .busy, .tooManyFiles, .other: throw error
      case .noSpace, .readOnly, .permission, .inputOutput, .missing:
        // The log's files could not be made. Without a log the file alone is complete.
        guard try !file.hasLog() else { throw error }
        return (try openChecked(.immutable), .immutable)
      }
    }
  }

  private func openChecked(_ kind: ReaderKind) throws(LedgerFailure) -> Connection {
    let connection = try openReader(kind)
    switch try migrator.state(of: connection) {
    case .empty: throw missing
    case .version(let version):
      guard version == schema.version else {
        throw ErrorTable.failure(
          .older, "its version is \(version), this Tarn's is \(schema.version)", file: file.path)
      }
    }
    try migrator.check(connection)
    return connection
  }

  private var missing: LedgerFailure {
    ErrorTable.failure(.missing, "no pass has written one yet", file: file.path)
  }

  /// Inspects an existing file. Writes nothing to it and, when there is no log, nothing beside it.
  private func probe() throws(LedgerFailure) {
    do throws(LedgerFailure) {
      let connection = try openReader(file.hasLog() ? .shared : .immutable)
      _ = try migrator.state(of: connection)
    } catch {
      // A journal exists only when a crash interrupted the creation. Opening for writing rolls it back.
      guard error.code == .corrupt, try file.size(of: file.journalPath) ?? 0 > 0 else { throw error }
    }
  }

  /// Applies the settings that all connections share.
  private func settle(_ connection: Connection) throws(LedgerFailure) {
    connection.setTimeout(milliseconds: 5000)
    connection.setDefensive()
    try connection.expectDatabase { () throws(LedgerFailure) in
      try connection.execute(
        """
        PRAGMA trusted_schema = OFF;
        PRAGMA cell_size_check = ON;
        PRAGMA foreign_keys = ON;
        PRAGMA mmap_size = 0;
        PRAGMA temp_store = MEMORY;
        """)
    }
  }

  private func setWriting(
    _ connection: Connection, synchronous: String, checkpoint pages: Int
  ) throws(LedgerFailure) {
    let mode = try connection.first("PRAGMA journal_mode = WAL") { row throws(LedgerFailure) in
      try row.text(0)
    }
    guard mode == "wal" else {
      throw ErrorTable.failure(.other, "the file system has no shared memory for it", file: file.path)
    }
    // Debian's SQLite overwrites deleted content, so that each freed page would be written once more.
    try connection.execute(
      """
      PRAGMA secure_delete = OFF;
      PRAGMA synchronous = \(synchronous);
      PRAGMA locking_mode = NORMAL;
      PRAGMA wal_autocheckpoint = \(pages);
      PRAGMA journal_size_limit = \(64 << 20);
      PRAGMA max_page_count = \(4 << 20);
      PRAGMA cache_size = -1024;
      """)
  }

  /// Throws when SQLite has silently opened the file read-only, because it could not open it for writing.
  private func requireOpenedWritable(_ connection: Connection) throws(LedgerFailure) {
    guard connection.isReadOnly else { return }
    let last = errno
    if access(file.path, W_OK) != 0 { throw file.failure(errno, "opening it for writing") }
    guard ErrorTable.faults.contains(last) else {
      throw ErrorTable.failure(.inputOutput, "opening it for writing", file: file.path)
    }
    throw file.failure(last, "opening it for writing")
  }

  private func checkAfterCrash(_ connection: Connection) throws(LedgerFailure) {
    let isClean = try connection.first("SELECT clean FROM state") { row throws(LedgerFailure) in
      try row.flag(0)
    }
    guard isClean != true else { return }
    try Self.require("PRAGMA quick_check(1)", connection, file: file.path)
  }

  /// Runs one of SQLite's checks.
  ///
  /// - Throws: `.corrupt` with the findings.
  static func require(_ check: String, _ connection: Connection, file: String) throws(LedgerFailure) {
    let lines = try connection.all(check) { row throws(LedgerFailure) in try row.text(0) }
    guard lines == ["ok"] else {
      throw ErrorTable.failure(.corrupt, lines.joined(separator: "; "), file: file)
    }
  }
}
