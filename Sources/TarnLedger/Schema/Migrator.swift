import CSQLite
import Glibc
import TarnCore
import TarnRuntime

/// Determines the state of a database's schema, and updates it.
struct Migrator {
  enum SchemaState: Equatable {
    /// The database is empty.
    case empty
    /// The database is Tarn's, with this version or an older one.
    case version(Int64)
  }

  private static let models = Locked<[[String]: [[String?]]]>([:])

  let schema: Schema
  let file: DatabaseFile

  /// Determines the state; only reads.
  ///
  /// - Throws: `.newer` for a later version of the schema, `.corrupt` for anything that is not a ledger.
  func state(of connection: Connection) throws(LedgerFailure) -> SchemaState {
    let (application, version, objects) = try header(of: connection)
    if application == 0, version == 0, objects == 0 { return .empty }
    guard application == Schema.applicationID, version >= 1 else {
      throw ErrorTable.failure(
        .corrupt, "application id \(application), version \(version)", file: file.path)
    }
    guard version <= schema.version else {
      throw ErrorTable.failure(
        .newer, "its version is \(version), this program knows \(schema.version)", file: file.path)
    }
    return .version(version)
  }

  private func header(
    of connection: Connection
  ) throws(LedgerFailure) -> (application: Int64, version: Int64, objects: Int64) {
    try connection.expectDatabase { () throws(LedgerFailure) in
      (
        try number("PRAGMA application_id", connection), try number("PRAGMA user_version", connection),
        try number("SELECT count(*) FROM sqlite_schema", connection)
      )
    }
  }

  /// Updates the database to the newest version, with one transaction for each step. A database that is not empty is first copied
  /// durably to `ledger.sqlite.backup-VERSION`.
  ///
  /// - Throws: `.corrupt` when its tables are not those of its version, so that no step applies.
  func migrate(_ connection: Connection, from state: SchemaState) throws(LedgerFailure) {
    guard case .version(var reached) = state else { return try make(connection) }
    if reached < schema.version {
      try check(connection, version: reached)
      try backUp(connection, version: reached)
    }
    while reached < schema.version {
      let step = schema.steps[Int(reached)]
      reached += 1
      try connection.transaction { () throws(LedgerFailure) in
        try connection.execute(step)
        try mark(connection, reached)
      }
    }
  }

  /// Runs all steps in one transaction, in an empty database: separate transactions would each wait for the disk.
  private func make(_ connection: Connection) throws(LedgerFailure) {
    try connection.transaction { () throws(LedgerFailure) in
      for step in schema.steps { try connection.execute(step) }
      try mark(connection, schema.version)
    }
  }

  /// Sets the application id and the version. They are set together, so a database has both or neither.
  private func mark(_ connection: Connection, _ version: Int64) throws(LedgerFailure) {
    try connection.execute(
      "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = \(version)")
  }

  /// Compares the tables and indices of the database with those that the steps make.
  ///
  /// - Parameter version: the version to compare with; `nil` for the newest.
  /// - Throws: `.corrupt` when they differ, because a statement would fail or mean something else.
  func check(_ connection: Connection, version: Int64? = nil) throws(LedgerFailure) {
    let version = version ?? schema.version
    if version == schema.version, let known = schema.objects,
      try Self.code(objects(of: connection)) == known
    {
      return
    }
    guard try model(Array(schema.steps.prefix(Int(version)))) == objects(of: connection) else {
      throw ErrorTable.failure(.corrupt, "its tables are not those of version \(version)", file: file.path)
    }
  }

  /// Returns the FNV-1a hash of a list of objects.
  static func code(_ objects: [[String?]]) -> UInt64 {
    var code: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { code = (code ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for object in objects {
      for text in object {
        // These bytes never occur in UTF-8.
        add(text == nil ? 0xFE : 0xFF)
        for byte in (text ?? "").utf8 { add(byte) }
      }
    }
    return code
  }

  /// Returns the objects that the steps make in an empty database. They are computed once for each list of steps.
  func model(_ steps: [String]) throws(LedgerFailure) -> [[String?]] {
    if let known = Self.models.withLock({ $0[steps] }) { return known }
    let connection = try Connection(
      ":memory:", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, file: ":memory:")
    for step in steps { try connection.execute(step) }
    let objects = try objects(of: connection)
    Self.models.withLock { $0[steps] = objects }
    return objects
  }

  private func objects(of connection: Connection) throws(LedgerFailure) -> [[String?]] {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    let all = try connection.all(sql) { row throws(LedgerFailure) in
      [try row.text(0), try row.text(1), try row.text(2), try row.optionalText(3)]
    }
    return all.filter { $0 != Schema.digestIndexObject }
  }

  private func backUp(_ connection: Connection, version: Int64) throws(LedgerFailure) {
    let final = file.path + ".backup-\(version)"
    let temporary = final + ".new"
    guard unlink(temporary) == 0 || errno == ENOENT else {
      throw file.failure(errno, "making way for a backup")
    }
    // VACUUM INTO accepts an empty file as it is, so the file keeps the mode that Tarn gave it.
    try file.create(temporary)
    try connection.run("VACUUM INTO ?", [.text(temporary)])
    try file.makeDurable(temporary)
    guard rename(temporary, final) == 0 else { throw file.failure(errno, "keeping a backup") }
    try file.makeDirectoryDurable()
  }

  private func number(_ sql: String, _ connection: Connection) throws(LedgerFailure) -> Int64 {
    try connection.first(sql) { row throws(LedgerFailure) in try row.integer(0) } ?? 0
  }
}
