import CSQLite
import Glibc
import TarnCore

/// Opens the connections of a ledger. Looks before it writes: a file that is not this program's to write is
/// left byte for byte as it was.
struct LedgerOpener: Sendable {
  /// How a reader opens the file.
  enum ReaderKind: Sendable {
    /// Beside a writer, with the log and its index.
    case shared
    /// The file alone: for a directory where neither can be made, and so nobody writes.
    case immutable
  }

  let file: DatabaseFile
  let schema: Schema

  private var migrator: Migrator { Migrator(schema: schema, file: file) }

  /// The connection for durable writes, on a database that exists, is Tarn's, is of the newest version and, if
  /// it was not closed in order, has been checked.
  ///
  /// What fails for a lack of descriptors, or for no reason that can be told, is tried once more: SQLite then opens for
  /// reading what it cannot open for writing, and forgets why. Never what the disk refused: a sync that fails proves
  /// nothing when it is repeated.
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
    // The header of the file has been read.
    if connection.isReadOnly {
      throw ErrorTable.failure(.corrupt, "its header forbids writing", file: file.path)
    }
    try setWriting(connection, synchronous: "FULL", checkpoint: 1000)
    try migrator.migrate(connection, from: state)
    try migrator.check(connection)
    try checkAfterCrash(connection)
    // The log may have been opened for reading only, which shows no earlier.
    try connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    return connection
  }

  /// A second writer whose commits are not synced: they are lost in a power cut, together or a last part of
  /// them, and nothing else is.
  ///
  /// NORMAL, not OFF: with OFF, a power cut just after the log was restarted could replay old pages over new
  /// ones. Its price is one sync of the log's header after such a restart, and it starts none itself.
  func openVolatileWriter() throws(LedgerFailure) -> Connection {
    let connection = try Connection(file.path, flags: SQLITE_OPEN_READWRITE, file: file.path)
    try settle(connection)
    try setWriting(connection, synchronous: "NORMAL", checkpoint: 0)
    return connection
  }

  /// A connection that cannot write.
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

  /// The first connection of a ledger that is only read, and how to open more of them.
  ///
  /// - Throws: `.missing` when there is no ledger yet; `.older` for one of an older version.
  func openForReading() throws(LedgerFailure) -> (Connection, ReaderKind) {
    guard try file.size(of: file.path) ?? 0 > 0 else { throw missing }
    do throws(LedgerFailure) {
      return (try openChecked(.shared), .shared)
    } catch {
      switch error.code {
      // Too many files are open here, which says nothing of who writes there.
      case .corrupt, .newer, .older, .busy, .tooManyFiles, .other: throw error
      case .noSpace, .readOnly, .permission, .inputOutput, .missing:
        // The files of the log could not be made. Without them the file alone is the whole truth.
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

  /// Looks at an existing file without writing to it or, if there is no log, beside it.
  private func probe() throws(LedgerFailure) {
    do throws(LedgerFailure) {
      let connection = try openReader(file.hasLog() ? .shared : .immutable)
      _ = try migrator.state(of: connection)
    } catch {
      // A journal is there only when a crash cut the creation short: opening for writing rolls it back.
      guard error.code == .corrupt, try file.size(of: file.journalPath) ?? 0 > 0 else { throw error }
    }
  }

  /// What every connection is set to.
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
    // Debian's SQLite overwrites what is dropped: each page that becomes free would be written once more.
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

  /// SQLite opens for reading what it cannot open for writing, and says nothing.
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

  /// A check of SQLite's.
  ///
  /// - Throws: `.corrupt` with what it found.
  static func require(_ check: String, _ connection: Connection, file: String) throws(LedgerFailure) {
    let lines = try connection.all(check) { row throws(LedgerFailure) in try row.text(0) }
    guard lines == ["ok"] else {
      throw ErrorTable.failure(.corrupt, lines.joined(separator: "; "), file: file)
    }
  }
}
