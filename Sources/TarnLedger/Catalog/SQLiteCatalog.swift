import CSQLite
import Glibc
package import TarnCore
package import TarnRuntime

/// The catalog in its own database, `catalog.sqlite`. It is written as a whole under another name, without a journal, and renamed
/// into place once it is durable.
package struct SQLiteCatalog: CatalogPort {
  /// "TarC" in ASCII.
  private static let applicationID: Int64 = 0x5461_7243
  /// The version of the tables and of `EntryCodec`. A catalog of another version is ignored.
  private static let version: Int64 = 5
  fileprivate static let name = "catalog.sqlite"

  private static let schema = """
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);

    CREATE TABLE catalog (
      -- One row.
      id TEXT NOT NULL,           -- no other catalog has it
      window INTEGER NOT NULL     -- 1: the manifest was a window
    ) STRICT;

    CREATE TABLE entries (
      path BLOB NOT NULL PRIMARY KEY,  -- below the folder
      body BLOB NOT NULL               -- EntryCodec
    ) STRICT, WITHOUT ROWID;
    """

  private let directory: String
  private let random: any RandomSource

  /// - Parameter directory: the mirror's state directory.
  package init(directory: String, random: any RandomSource = SystemRandom()) {
    self.directory = directory
    self.random = random
  }

  package func make() throws(LedgerFailure) -> any CatalogMaking {
    let file = try DatabaseFile(directory: directory, name: Self.name + ".new")
    guard unlink(file.path) == 0 || errno == ENOENT else {
      throw file.failure(errno, "removing the one before")
    }
    file.removeLeftovers()
    try file.create(file.path)
    let connection = try Connection(file.path, flags: SQLITE_OPEN_READWRITE, file: file.path)
    try connection.beginUnjournaled(cacheMiB: 2)
    try connection.execute(Self.schema)
    return Making(file: file, connection: connection, id: random.name())
  }

  package func open(id: String) throws(LedgerFailure) -> (any CatalogReading)? {
    do throws(LedgerFailure) {
      let file = try DatabaseFile(directory: directory, name: Self.name)
      guard try file.size(of: file.path) != nil else { return nil }
      // Nobody writes this file: it is only ever replaced.
      let connection = try Connection(
        file.immutableURI, flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, file: file.path)
      return try connection.expectDatabase { () throws(LedgerFailure) in try Self.read(connection, id: id) }
    } catch {
      // The next pass that reads the feed replaces a catalog that cannot be read.
      guard [.corrupt, .missing].contains(error.code) else { throw error }
      return nil
    }
  }

  private static func read(_ connection: Connection, id: String) throws(LedgerFailure) -> Reading? {
    func number(_ sql: String) throws(LedgerFailure) -> Int64? {
      try connection.first(sql) { row throws(LedgerFailure) in try row.integer(0) }
    }
    guard try number("PRAGMA application_id") == applicationID, try number("PRAGMA user_version") == version
    else { return nil }
    let found = try connection.first("SELECT id, window FROM catalog") { row throws(LedgerFailure) in
      (id: try row.text(0), isWindow: try row.integer(1) == 1)
    }
    guard let found, found.id == id else { return nil }
    return Reading(connection: connection, isWindow: found.isWindow)
  }
}

extension SQLiteCatalog {
  /// A catalog that is being made. Its file is removed unless it is committed.
  private final class Making: CatalogMaking {
    private let file: DatabaseFile
    private let id: String
    private var connection: Connection?
    private var writer = ByteWriter()

    init(file: DatabaseFile, connection: Connection, id: String) {
      self.file = file
      self.connection = connection
      self.id = id
    }

    deinit {
      guard connection != nil else { return }
      connection = nil
      unlink(file.path)
    }

    func add(_ entry: Entry) throws(LedgerFailure) {
      writer.removeAll()
      EntryCodec.encode(entry, into: &writer)
      try connection?.run(
        "INSERT OR REPLACE INTO entries (path, body) VALUES (?, ?)",
        [.blob(entry.path.bytes), .blob(writer.bytes)])
    }

    func commit(isWindow: Bool) throws(LedgerFailure) -> String {
      try connection?.run(
        "INSERT INTO catalog (id, window) VALUES (?, ?)", [.text(id), .integer(isWindow ? 1 : 0)])
      try connection?.execute("COMMIT")
      try file.makeDurable(file.path)
      guard rename(file.path, file.directory + "/" + SQLiteCatalog.name) == 0 else {
        throw file.failure(errno, "putting it in its place")
      }
      connection = nil
      try file.makeDirectoryDurable()
      return id
    }
  }

  private final class Reading: CatalogReading {
    let isWindow: Bool
    private let connection: Connection

    init(connection: Connection, isWindow: Bool) {
      self.connection = connection
      self.isWindow = isWindow
    }

    func entry(_ path: RelativePath) throws(LedgerFailure) -> Entry? {
      try connection.first("SELECT path, body FROM entries WHERE path = ?", [.blob(path.bytes)]) {
        row throws(LedgerFailure) in try row.entry()
      }
    }

    func entries(in region: Region) throws(LedgerFailure) -> any EntryCursor {
      let (sql, values) = SQL.select("path, body", from: "entries", in: region)
      let statement = try connection.prepare(sql)
      try statement.bind(values)
      return Cursor(statement: statement, connection: connection)
    }
  }

  private final class Cursor: EntryCursor {
    private var statement: Statement?
    /// The connection, which must live as long as the cursor.
    private let connection: Connection

    init(statement: Statement, connection: Connection) {
      self.statement = statement
      self.connection = connection
    }

    func next() throws(LedgerFailure) -> Entry? {
      guard let row = statement else { return nil }
      if try row.step() { return try row.entry() }
      statement = nil
      return nil
    }
  }
}

extension Statement {
  /// Decodes a row of path and body.
  fileprivate func entry() throws(LedgerFailure) -> Entry {
    let path = try path(0)
    return try decoded(1) { reader throws(DamagedBytes) in
      try EntryCodec.decode(path: path, from: &reader)
    }
  }
}
