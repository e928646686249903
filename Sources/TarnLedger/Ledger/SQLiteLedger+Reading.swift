package import TarnCore
import TarnRuntime

extension SQLiteLedger {
  package func row(_ path: RelativePath) throws(LedgerFailure) -> Row? {
    try first("\(SQL.row) WHERE path = ?", [.blob(path.bytes)]) { row throws(LedgerFailure) in try row.row() }
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
    return try all(
      "\(SQL.row) WHERE digest = ? AND algorithm = ? AND path > ? ORDER BY path LIMIT ?",
      [
        .blob(digest.bytes), .integer(Int64(digest.algorithm.rawValue)), .blob(after?.bytes ?? []),
        .limit(limit),
      ]
    ) { row throws(LedgerFailure) in try row.row() }
  }

  package func intents() throws(LedgerFailure) -> [Intent] {
    try read { connection throws(LedgerFailure) in
      try connection.snapshot { () throws(LedgerFailure) in
        let single = try connection.all("SELECT \(SQL.intentColumns) FROM intents") {
          row throws(LedgerFailure) in try row.intent()
        }
        let groups = try IntentGroups.all(connection)
        return (single + groups.flatMap(\.intents)).sorted { $0.path < $1.path }
      }
    }
  }

  package func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow? {
    try first("SELECT \(SQL.partialColumns) FROM partials WHERE path = ?", [.blob(path.bytes)]) {
      row throws(LedgerFailure) in try row.partial()
    }
  }

  package func partials() throws(LedgerFailure) -> [PartialRow] {
    try all("SELECT \(SQL.partialColumns) FROM partials ORDER BY path") { row throws(LedgerFailure) in
      try row.partial()
    }
  }

  /// The oldest first.
  package func trash() throws(LedgerFailure) -> [TrashRow] {
    try all("SELECT \(SQL.trashColumns) FROM trash ORDER BY moved, name") { row throws(LedgerFailure) in
      try row.trash()
    }
  }

  package func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64) {
    let totals = try first("SELECT count(*), coalesce(sum(size), 0) FROM trash", []) {
      row throws(LedgerFailure) in (Int(try row.integer(0)), UInt64(clamping: try row.integer(1)))
    }
    return totals ?? (0, 0)
  }

  package func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem] {
    try all(
      "SELECT \(SQL.problemColumns) FROM problems WHERE \(SQL.isStanding) ORDER BY name LIMIT ?",
      [.integer(failedSince?.nanoseconds ?? .min), .limit(limit)]
    ) { row throws(LedgerFailure) in try row.problem() }
  }

  package func problem(name: [UInt8]) throws(LedgerFailure) -> Problem? {
    try first("SELECT \(SQL.problemColumns) FROM problems WHERE name = ?", [.blob(name)]) {
      row throws(LedgerFailure) in try row.problem()
    }
  }

  package func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem? {
    try first(
      "SELECT \(SQL.problemColumns) FROM problems WHERE name > ? AND name < ? AND code = ? ORDER BY name LIMIT 1",
      SQL.below(path) + [.text(code)]
    ) { row throws(LedgerFailure) in try row.problem() }
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
    ) { row throws(LedgerFailure) in (try row.problemKind(0), Int(try row.integer(1))) }
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
    try all("\(SQL.event) WHERE number > ? ORDER BY number LIMIT ?", [.integer(number), .limit(limit)]) {
      row throws(LedgerFailure) in try row.event()
    }
  }

  package func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event] {
    try all(
      "\(SQL.event) WHERE path = ? ORDER BY number DESC LIMIT ?", [.blob(path.bytes), .limit(limit)]
    ) { row throws(LedgerFailure) in try row.event() }
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
    try all("\(SQL.name) WHERE guid = ? ORDER BY path", [.blob(guid)]) { row throws(LedgerFailure) in
      try row.name()
    }
  }

  package func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow] {
    try all("\(SQL.name) WHERE place = ? LIMIT ?", [.blob(place), .limit(limit)]) {
      row throws(LedgerFailure) in try row.name()
    }
  }

  package func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow] {
    try all("\(SQL.name) WHERE url = ?", [.blob(url)]) { row throws(LedgerFailure) in try row.name() }
  }

  package func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow] {
    try all(
      "\(SQL.name) WHERE title = ? AND date = ? ORDER BY path", [.blob(title), .integer(date.nanoseconds)]
    ) { row throws(LedgerFailure) in try row.name() }
  }

  package func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow? {
    try first("\(SQL.name) WHERE path = ?", [.blob(path.bytes)]) { row throws(LedgerFailure) in
      try row.name()
    }
  }

  package func placedNames() throws(LedgerFailure) -> [(
    path: RelativePath, date: Timestamp?, first: Timestamp
  )] {
    try all(SQL.placedNames) { row throws(LedgerFailure) in
      (try row.path(0), row.isNull(1) ? nil : try row.timestamp(1), try row.timestamp(2))
    }
  }

  package func activity() throws(LedgerFailure) -> [Activity] {
    try all("SELECT \(SQL.activityColumns) FROM activity ORDER BY position") { row throws(LedgerFailure) in
      try row.activity()
    }
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
      let connection = try readers.take()
      defer { readers.give(connection) }
      return try body(connection)
    } catch {
      guard error.code == .tooManyFiles else { throw error }
      return try writers.withLock { (writers) throws(LedgerFailure) in
        guard let writer = writers.durable else { throw error }
        return try body(writer)
      }
    }
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
