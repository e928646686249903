package import TarnCore
import TarnRuntime

extension SQLiteLedger {
  package func row(_ path: RelativePath) throws(LedgerFailure) -> Row? {
    try record("WHERE path = ?", [.blob(path.bytes)])
  }

  package func rows(in region: Region) throws(LedgerFailure) -> any RowCursor {
    try SQLiteRowCursor(readers, region, tally)
  }

  package func recorded() throws(LedgerFailure) -> any RecordedCursor { try SQLiteRecordedCursor(readers) }

  package func rowCount() throws(LedgerFailure) -> Int {
    if let known = tally?.count { return known }
    let begin = tally?.begin() ?? 0
    let count = try first("SELECT count(*) FROM rows") { row throws(LedgerFailure) in try row.integer(0) }
    tally?.end(begin, count: Int(count ?? 0))
    return Int(count ?? 0)
  }

  package func rowCount(below path: RelativePath) throws(LedgerFailure) -> Int {
    let count = try first("SELECT count(*) FROM rows WHERE path > ? AND path < ?", SQL.below(path)) {
      row throws(LedgerFailure) in try row.integer(0)
    }
    return Int(count ?? 0)
  }

  /// Stops at `UInt64.max`. The sum goes in two halves, because SQLite's own fails beyond 2^63 - 1.
  package func rowBytes() throws(LedgerFailure) -> UInt64 {
    let sql = """
      SELECT coalesce(sum((size >> 32) & 0xFFFFFFFF), 0), coalesce(sum(size & 0xFFFFFFFF), 0) FROM rows
      """
    let halves = try first(sql) { row throws(LedgerFailure) in (try row.bits(0), try row.bits(1)) }
    guard let (high, low) = halves else { return 0 }
    let carried = high + low >> 32
    return carried >> 32 == 0 ? carried << 32 | low & 0xFFFF_FFFF : .max
  }

  package func rows(digest: Digest, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [Row] {
    indexDigests()
    return try records(
      "WHERE digest = ? AND algorithm = ? AND path > ? ORDER BY path LIMIT ?",
      [
        .blob(digest.bytes), .integer(Int64(digest.algorithm.rawValue)), .blob(after?.bytes ?? []),
        .limit(limit),
      ])
  }

  package func intents() throws(LedgerFailure) -> [Intent] {
    try read { connection throws(LedgerFailure) in
      try connection.snapshot { () throws(LedgerFailure) in
        let single = try connection.all(Intent.select) { row throws(LedgerFailure) -> Intent in
          try row.record()
        }
        let groups = try IntentGroups.all(connection)
        return (single + groups.flatMap(\.intents)).sorted { $0.path < $1.path }
      }
    }
  }

  package func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow? {
    try record("WHERE path = ?", [.blob(path.bytes)])
  }

  package func partials() throws(LedgerFailure) -> [PartialRow] {
    try records("ORDER BY path")
  }

  /// The oldest first.
  package func trash() throws(LedgerFailure) -> [TrashRow] {
    try records("ORDER BY moved, name")
  }

  package func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64) {
    let totals = try first("SELECT count(*), coalesce(sum(size), 0) FROM trash", []) {
      row throws(LedgerFailure) in (Int(try row.integer(0)), UInt64(clamping: try row.integer(1)))
    }
    return totals ?? (0, 0)
  }

  package func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem] {
    try records(
      "WHERE \(SQL.isStanding) ORDER BY name LIMIT ?",
      [.integer(failedSince?.nanoseconds ?? .min), .limit(limit)])
  }

  package func problem(name: [UInt8]) throws(LedgerFailure) -> Problem? {
    try record("WHERE name = ?", [.blob(name)])
  }

  package func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem? {
    try record(
      "WHERE name > ? AND name < ? AND code = ? ORDER BY name LIMIT 1", SQL.below(path) + [.text(code)])
  }

  package func problemCounts(failedSince: Timestamp?) throws(LedgerFailure) -> [Problem.Kind: Int] {
    try problemCounts(where: SQL.isStanding, failedSince?.nanoseconds ?? .min)
  }

  package func problemCounts(seenBefore: Timestamp) throws(LedgerFailure) -> [Problem.Kind: Int] {
    try problemCounts(where: "seen < ?", seenBefore.nanoseconds)
  }

  private func problemCounts(
    where condition: String, _ moment: Int64
  ) throws(LedgerFailure) -> [Problem.Kind: Int] {
    let counts = try all(
      "SELECT kind, count(*) FROM problems WHERE \(condition) GROUP BY kind", [.integer(moment)]
    ) { row throws(LedgerFailure) -> (Problem.Kind, Int) in
      var reader = ColumnReader(row)
      return (try reader.choice(), try reader.count())
    }
    return Dictionary(counts, uniquingKeysWith: +)
  }

  package func failedRowCount() throws(LedgerFailure) -> Int {
    // With IN, SQLite walks all rows.
    let sql =
      "SELECT count(*) FROM problems WHERE kind = 'failed' AND EXISTS (SELECT 1 FROM rows WHERE path = name)"
    return try first(sql, []) { row throws(LedgerFailure) in Int(try row.integer(0)) } ?? 0
  }

  package func lastEvent() throws(LedgerFailure) -> Int64 {
    // What was dropped had numbers, too.
    let dropped = try fact(.eventsDropped).flatMap { Int64($0) } ?? 0
    let last = try first("SELECT max(number) FROM events", []) { row throws(LedgerFailure) in
      row.isNull(0) ? 0 : try row.integer(0)
    }
    return max(dropped, last ?? 0)
  }

  package func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [Event] {
    try records("WHERE number > ? ORDER BY number LIMIT ?", [.integer(number), .limit(limit)])
  }

  package func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event] {
    try records("WHERE path = ? ORDER BY number DESC LIMIT ?", [.blob(path.bytes), .limit(limit)])
  }

  package func eventCount(code: String, after number: Int64) throws(LedgerFailure) -> Int {
    let count = try first(
      "SELECT count(*) FROM events WHERE number > ?2 AND +code = ?1", [.text(code), .integer(number)]
    ) { row throws(LedgerFailure) in try row.integer(0) }
    return Int(count ?? 0)
  }

  package func held() throws(LedgerFailure) -> HeldPlan? {
    let (reason, forPerson) = (try fact(.heldReason) ?? "", try fact(.heldForPerson))
    return try first("SELECT plan, since, count FROM held") { row throws(LedgerFailure) in
      let id = try row.text(0)
      return HeldPlan(
        id: id, when: try row.timestamp(1), count: Int(try row.integer(2)), reason: reason,
        isForPerson: id == forPerson)
    }
  }

  package func heldPaths(
    plan: String, after: RelativePath?, limit: Int
  ) throws(LedgerFailure) -> [RelativePath] {
    try all(
      "SELECT path FROM held_paths WHERE plan = ? AND path > ? ORDER BY path LIMIT ?",
      [.text(plan), .blob(after?.bytes ?? []), .limit(limit)]
    ) { row throws(LedgerFailure) in try row.path(0) }
  }

  package func isHeld(_ path: RelativePath, plan: String) throws(LedgerFailure) -> Bool {
    let sql = "SELECT 1 FROM held_paths WHERE plan = ? AND path = ?"
    return try first(sql, [.text(plan), .blob(path.bytes)]) { row throws(LedgerFailure) in
      try row.integer(0)
    } != nil
  }

  package func names(guid: [UInt8]) throws(LedgerFailure) -> [NameRow] {
    try records("WHERE guid = ? ORDER BY path", [.blob(guid)])
  }

  package func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow] {
    try records("WHERE place = ? LIMIT ?", [.blob(place), .limit(limit)])
  }

  package func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow] {
    try records("WHERE url = ?", [.blob(url)])
  }

  package func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow] {
    try records("WHERE title = ? AND date = ? ORDER BY path", [.blob(title), .integer(date.nanoseconds)])
  }

  package func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow? {
    try record("WHERE path = ?", [.blob(path.bytes)])
  }

  package func placedNames() throws(LedgerFailure) -> [NameRow] {
    try records("WHERE path IN (SELECT path FROM rows) ORDER BY coalesce(date, first) DESC, path")
  }

  package func activity() throws(LedgerFailure) -> [Activity] {
    try records("ORDER BY position")
  }

  package func fact(_ name: LedgerFact) throws(LedgerFailure) -> String? {
    try first(SQL.fact, [.text(name.rawValue)]) { row throws(LedgerFailure) in try row.text(0) }
  }

  /// Lends a reader to `body`; the writer, for want of descriptors, which then does not keep a pass from ending in
  /// order. `body` may be called twice.
  func read<Result>(
    _ body: (Connection) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result {
    do throws(LedgerFailure) {
      let connection = try readers.borrow()
      defer { readers.giveBack(connection) }
      return try body(connection)
    } catch {
      guard error.code == .tooManyFiles else { throw error }
      return try writers.withLock { (writers) throws(LedgerFailure) in
        guard let writer = writers.durable else { throw error }
        return try body(writer)
      }
    }
  }

  /// - Parameter clause: which one, and in which order: what follows `FROM table`.
  private func record<Record: TableRecord>(
    _ clause: String, _ values: [Value] = []
  ) throws(LedgerFailure) -> Record? {
    try first("\(Record.select) \(clause)", values) { row throws(LedgerFailure) -> Record in try row.record()
    }
  }

  private func records<Record: TableRecord>(
    _ clause: String, _ values: [Value] = []
  ) throws(LedgerFailure) -> [Record] {
    try all("\(Record.select) \(clause)", values) { row throws(LedgerFailure) -> Record in try row.record() }
  }

  private func first<Result>(
    _ sql: String, _ values: [Value] = [], _ body: (Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result? {
    try read { connection throws(LedgerFailure) in try connection.first(sql, values, body) }
  }

  private func all<Result>(
    _ sql: String, _ values: [Value] = [], _ body: (Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> [Result] {
    try read { connection throws(LedgerFailure) in try connection.all(sql, values, body) }
  }
}
