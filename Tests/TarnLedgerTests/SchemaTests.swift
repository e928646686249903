import Foundation
import TarnCore
import Testing

@testable import TarnLedger

@Suite struct SchemaTests {
  private let scratch = Scratch()
  private let second = Schema(
    steps: Schema.current.steps + [
      "ALTER TABLE facts ADD COLUMN note TEXT; INSERT INTO facts (name, value) VALUES ('phase', 'a later step')"
    ])

  @Test func anOlderLedgerIsBackedUpAndBroughtUpToDate() throws {
    let old = try SQLiteLedger(directory: scratch.path)
    try old.apply([.row(row(path("a"))), .fact(.feed, "f")])
    old.close()
    #expect(
      failure { _ = try SQLiteLedger(directory: scratch.path, mode: .readOnly, schema: second) }?.code
        == .older)
    let new = try SQLiteLedger(directory: scratch.path, mode: .readWrite, schema: second)
    #expect(try new.row(path("a")) == row(path("a")))
    #expect(try new.fact(.feed) == "f")
    #expect(try new.fact(.phase) == "a later step")
    new.close()
    #expect(try scratch.names() == ["ledger.sqlite", "ledger.sqlite.backup-\(Schema.current.version)"])
    // The backup is a whole ledger of the old version.
    let restored = Scratch()
    try write(bytes(of: scratch.ledger + ".backup-\(Schema.current.version)"), to: restored.ledger)
    let backup = try SQLiteLedger(directory: restored.path)
    #expect(try backup.rows().drain() == [row(path("a"))])
    #expect(try backup.fact(.phase) == nil)
    try backup.requireWhole()
  }

  /// A ledger as an older version left it, filled by hand: its columns are not those of today.
  private func leave(_ steps: [String], _ filling: String) throws {
    try SQLiteLedger(directory: scratch.path, mode: .readWrite, schema: Schema(steps: steps)).close()
    let connection = try Connection(scratch.ledger, flags: 2, file: scratch.ledger)
    try connection.execute(filling)
  }

  /// An old row, or with the columns before it an old intent.
  private static func oldRow(etag: String = "NULL") -> String {
    "1, 2, 10, -5, 7, 4, x'\(String(repeating: "01", count: 32))', 1, x'00', \(etag), NULL, 9)"
  }

  /// A ledger as the first version of its schema has it.
  @Test func aLedgerOfVersionOneIsBroughtUpToDate() throws {
    try leave(
      [Schema.version1],
      """
      INSERT INTO rows VALUES (x'61', \(Self.oldRow(etag: "'\"e\"'"));
      INSERT INTO facts VALUES ('feed', 'f');
      """)
    let now = try SQLiteLedger(directory: scratch.path)
    let rows = try now.rows().drain()
    #expect(rows.map(\.path) == [path("a")] && rows.map(\.etag) == ["\"e\""])
    #expect(try now.fact(.feed) == "f")
    #expect(try now.placedNames().isEmpty)
    try now.requireWhole()
    #expect(try scratch.names().contains("ledger.sqlite.backup-1"))
  }

  /// What the journal of a ledger of version 2 says of its rows; nil for nothing any more.
  static let journals: [(events: [String], hasValidators: Bool, isAdopted: Bool)] = [
    (["adopted"], false, true), (["adopted"], true, true), (["fetched"], false, false),
    (["adopted", "failed", "updated"], false, false), (["fetched", "adopted", "kept"], true, true),
    (["published"], false, false), (["restored"], false, false), (["replaced"], false, false),
    (["copied"], false, false), (["adopted", "deleted", "fetched"], false, false),
    ([], true, false), ([], false, true), (["failed"], false, true),
  ]

  @Test(arguments: journals)
  func theJournalTellsWhoseOldRowsAre(_ events: [String], hasValidators: Bool, isAdopted: Bool) throws {
    let row = Self.oldRow(etag: hasValidators ? "'e'" : "NULL")
    let journal = events.map { "INSERT INTO events VALUES (NULL, 1, '\($0)', x'61', NULL, '');" }
    try leave(
      [Schema.version1, Schema.version2],
      """
      INSERT INTO rows VALUES (x'61', \(row);
      INSERT INTO intents VALUES (x'61', 2, '', 't', 1, \(row);
      INSERT INTO intents VALUES (x'62', 1, 'p', 'u', 0, \(row);
      INSERT INTO events VALUES (NULL, 1, 'adopted', x'6161', NULL, '');
      \(journal.joined(separator: "\n"))
      INSERT INTO events VALUES (NULL, 1, 'adopted', NULL, NULL, '');
      """)
    let ledger = try SQLiteLedger(directory: scratch.path)
    #expect(try ledger.row(path("a"))?.isAdopted == isAdopted)
    #expect(try ledger.intents().map(\.row.isAdopted) == [isAdopted, false])
    #expect(try ledger.intents().map(\.displacesOwn) == [true, false])
  }

  /// Nobody looked at it after it was moved there, nor knows who placed it.
  @Test func oldTrashIsNobodysToRemove() throws {
    try leave(
      [Schema.version1, Schema.version2],
      "INSERT INTO trash VALUES ('t', x'61', 'deleted', 1, 10, 5), ('u', x'62', 'edited', 0, 11, 6)")
    let trash = try SQLiteLedger(directory: scratch.path).trash()
    #expect(trash.map(\.name) == ["t", "u"] && trash.map(\.size) == [10, 11])
    #expect(trash.map(\.isOwn) == [false, false] && trash.map(\.identity) == [nil, nil])
    #expect(trash.map(\.reason) == [.deleted, .edited])
  }

  @Test func aStepThatFailsLeavesTheOldVersion() throws {
    let old = try SQLiteLedger(directory: scratch.path)
    try old.apply([.row(row(path("a")))])
    old.close()
    let broken = Schema(steps: second.steps + ["DELETE FROM rows; ALTER TABLE none ADD COLUMN a TEXT"])
    for _ in 0..<2 {
      #expect(
        failure { _ = try SQLiteLedger(directory: scratch.path, mode: .readWrite, schema: broken) }?.code
          == .other)
    }
    // The second step stands, the third has left no trace.
    let reached = try SQLiteLedger(directory: scratch.path, mode: .readWrite, schema: second)
    #expect(try reached.rows().drain() == [row(path("a"))])
    #expect(try reached.fact(.phase) == "a later step")
  }

  @Test func tablesThatWereChangedAreDamage() throws {
    try SQLiteLedger(directory: scratch.path).close()
    let connection = try Connection(scratch.ledger, flags: 2, file: scratch.ledger)
    try connection.execute("DROP INDEX deletions")
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path) }?.code == .corrupt)
  }

  /// A schema that changes gets another number here: the one that this prints.
  @Test func theKnownCodeIsThatOfTheSchema() throws {
    let file = try DatabaseFile(directory: scratch.path, name: "none")
    let made = try Migrator(schema: .current, file: file).model(Schema.current.steps)
    #expect(Schema.current.objects == Migrator.code(made))
  }

  /// A step would fail half-way, each time again.
  @Test func anOlderVersionWithNewerTablesIsDamage() throws {
    try SQLiteLedger(directory: scratch.path).close()
    let connection = try Connection(scratch.ledger, flags: 2, file: scratch.ledger)
    try connection.execute("PRAGMA user_version = 2")
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path) }?.code == .corrupt)
    #expect(try scratch.names().allSatisfy { !$0.contains("backup") })
  }

  /// Most passes into an empty folder ask for no digest, and an index of them is the dearest thing in the ledger to keep.
  @Test func digestsAreIndexedWhenTheyAreFirstAskedFor() throws {
    func hasIndex() throws -> Bool {
      let connection = try Connection(scratch.ledger, flags: 1, file: scratch.ledger)
      let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'rows_by_digest'"
      return try connection.first(sql) { row throws(LedgerFailure) in try row.integer(0) } == 1
    }
    let wanted = row(path("a")).digest
    let first = try SQLiteLedger(directory: scratch.path)
    try first.apply([.row(row(path("a")))])
    #expect(try !hasIndex())
    #expect(try first.rows(digest: wanted, after: nil, limit: 9).map(\.path) == [path("a")])
    #expect(try hasIndex())
    try first.apply([.row(row(path("b")))])
    #expect(try first.rows(digest: wanted, after: nil, limit: 9).map(\.path) == [path("a"), path("b")])
    try first.requireWhole()
    first.close()
    // With it, and in the hands of who may not write without it.
    #expect(try SQLiteLedger(directory: scratch.path).rows(digest: wanted, after: nil, limit: 9).count == 2)
    let bare = Scratch()
    let other = try SQLiteLedger(directory: bare.path)
    try other.apply([.row(row(path("a")))])
    other.close()
    let reader = try SQLiteLedger(directory: bare.path, mode: .readOnly)
    #expect(try reader.rows(digest: wanted, after: nil, limit: 9).count == 1)
  }

  @Test func theSettingsAreInForce() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.applyVolatile([.fact(.repair, "b")])
    func pragma(_ name: String, _ connection: Connection) throws -> Int64? {
      try connection.first("PRAGMA \(name)") { row throws(LedgerFailure) in try row.integer(0) }
    }
    ledger.close()
    do {
      let durable = try ledger.opener.openWriter()
      let volatile = try ledger.opener.openVolatileWriter()
      #expect(try pragma("synchronous", durable) == 2)
      #expect(try pragma("synchronous", volatile) == 1)
      #expect(try pragma("wal_autocheckpoint", durable) == 1000)
      #expect(try pragma("wal_autocheckpoint", volatile) == 0)
      for connection in [durable, volatile] {
        #expect(try pragma("foreign_keys", connection) == 1)
        #expect(try pragma("cell_size_check", connection) == 1)
        #expect(try pragma("trusted_schema", connection) == 0)
        #expect(try pragma("mmap_size", connection) == 0)
        #expect(try pragma("journal_size_limit", connection) == 64 << 20)
        #expect(try pragma("busy_timeout", connection) == 5000)
        #expect(try pragma("application_id", connection) == Schema.applicationID)
        // DEFENSIVE: the switch is ignored.
        try connection.execute("PRAGMA writable_schema = ON")
        #expect(throws: LedgerFailure.self) { try connection.execute("DELETE FROM sqlite_schema") }
      }
    }
  }

  @Test func everyTableIsStrictAndEveryColumnExplained() throws {
    var columns = 0
    for table in Schema.current.steps.joined().components(separatedBy: "CREATE TABLE ").dropFirst() {
      let lines = table.components(separatedBy: ";\n").first?.split(separator: "\n") ?? []
      #expect(lines.last?.contains(") STRICT") == true, "\(lines)")
      #expect(lines.dropFirst().first?.contains("-- ") == true, "\(lines)")
      for line in lines where line.contains(" INTEGER") || line.contains(" BLOB") || line.contains(" TEXT") {
        columns += 1
        #expect(line.contains("  -- "), "\(line)")
      }
    }
    for line in Schema.current.steps.joined(separator: "\n").split(separator: "\n")
    where line.hasPrefix("ALTER TABLE ") {
      columns += 1
      #expect(line.contains(";  -- "), "\(line)")
    }
    let connection = try Connection(":memory:", flags: 6, file: ":memory:")
    for step in Schema.current.steps { try connection.execute(step) }
    let sql = """
      SELECT count(*) FROM sqlite_schema AS s, pragma_table_info(s.name) WHERE s.type = 'table'
      AND s.name NOT LIKE 'sqlite_%' AND pragma_table_info.type <> ''
      """
    let real = try connection.first(sql) { row throws(LedgerFailure) in try row.integer(0) }
    #expect(real == Int64(columns))
  }
}

/// The codes as SQLite documents them: they are part of its interface and do not change.
private enum SQLite {
  static let corrupt: Int32 = 11
  static let notadb: Int32 = 26
  static let full: Int32 = 13
  static let ioerr: Int32 = 10
  static let cantopen: Int32 = 14
  static let readonly: Int32 = 8
  static let busy: Int32 = 5
  static let locked: Int32 = 6
  static let locking: Int32 = 15
  static let perm: Int32 = 3
  static let nomem: Int32 = 7
  static let error: Int32 = 1
  static let constraint: Int32 = 19
}

@Suite struct ErrorTableTests {
  @Test(
    arguments: [
      (SQLite.corrupt, 0, .corrupt), (SQLite.corrupt | 1 << 8, 0, .corrupt), (SQLite.notadb, 0, .corrupt),
      (SQLite.full, 0, .noSpace), (SQLite.ioerr | 3 << 8, EDQUOT, .noSpace),
      (SQLite.ioerr | 3 << 8, EIO, .inputOutput),
      (SQLite.ioerr | 4 << 8, ENOSPC, .noSpace), (SQLite.ioerr | 4 << 8, 0, .inputOutput),
      (SQLite.ioerr | 2 << 8, 0, .corrupt), (SQLite.ioerr | 19 << 8, 0, .noSpace),
      (SQLite.cantopen, ENOENT, .missing), (SQLite.cantopen, EACCES, .permission),
      (SQLite.cantopen, EROFS, .readOnly),
      (SQLite.cantopen, EMFILE, .tooManyFiles), (SQLite.cantopen | 6 << 8, 0, .permission),
      (SQLite.readonly, 0, .readOnly), (SQLite.readonly | 4 << 8, 0, .missing),
      (SQLite.readonly | 6 << 8, EACCES, .permission), (SQLite.busy, 0, .busy),
      (SQLite.busy | 2 << 8, 0, .busy),
      (SQLite.locked, 0, .busy), (SQLite.locking, 0, .busy), (SQLite.perm, 0, .permission),
      (SQLite.nomem, 0, .other), (SQLite.error, ENOENT, .other), (SQLite.constraint, 0, .other),
    ] as [(Int32, Int32, LedgerFailure.Code)])
  func meaning(code: Int32, errno: Int32, expected: LedgerFailure.Code) {
    #expect(ErrorTable.code(for: code, errno: errno) == expected)
  }

  /// SQLite keeps no errno of a COMMIT that fails; the thread's is taken when a disk may have given it.
  @Test(
    arguments: [
      (EDQUOT, .noSpace), (EROFS, .readOnly), (EIO, .inputOutput), (EINTR, .inputOutput),
      (ENOENT, .inputOutput),
    ]
      as [(Int32, LedgerFailure.Code)])
  func errnoOfTheThread(number: Int32, expected: LedgerFailure.Code) {
    errno = number
    let failure = ErrorTable.failure(code: SQLite.ioerr | 3 << 8, database: nil, file: "/f")
    #expect(failure.code == expected)
    #expect(failure.message.contains("errno \(number)") == (number != ENOENT))
  }

  @Test func messagesNameTheFileAndAreSafe() {
    let failure = ErrorTable.failure(
      code: SQLite.full, errno: 0, detail: "disk\nfull", file: "/srv/\u{1B}x/ledger.sqlite")
    #expect(failure.code == .noSpace)
    #expect(
      failure.message
        == "/srv/\\x1bx/ledger.sqlite: no space left for the database; free some and try again: disk\\nfull (SQLite 13)"
    )
  }
}
