package import TarnCore
package import TarnRuntime

/// The ledger in `ledger.sqlite`, in WAL mode: one writer, and any number of readers in this and other processes.
///
/// All 64-bit numbers are kept unchanged, unsigned ones beyond 2^63 - 1 by their bit pattern. A ledger that is dropped without
/// `close()` counts as not closed in order, and is checked when it is next opened.
package final class SQLiteLedger: LedgerPort {
  package enum Mode: Sendable {
    /// Creates the database when it is missing, and updates its schema. At most one per file, which the folder's lock ensures.
    case readWrite
    /// Changes nothing: every write throws `.readOnly`. Works beside a writer, and on a directory that cannot be written.
    case readOnly
  }

  /// The connections that write. Both are used with the lock held, through commit and sync, because one writer has to wait for the
  /// other in any case.
  fileprivate struct Writers {
    var durable: Connection?
    /// The connection for writes without a sync; opened when it is first needed.
    var volatile: Connection?
    /// True once this run has written to the database, which is then marked as not closed in order.
    var isMarked = false
    /// The groups of intents that are in the database.
    var intentGroups = IntentGroups()
  }

  let opener: LedgerOpener
  private let writers: Locked<Writers>
  private let readers: ReaderPool
  /// The number of rows; `nil` when other processes write.
  let tally: RowTally?
  /// True once this run has made the index of digests, or has tried to.
  private let hasDigestIndex = Locked(false)
  /// The clock for the events about problems.
  private let clock: any Clock

  /// - Parameter directory: an existing directory; for `readWrite` only its owner should be able to write in it.
  /// - Throws: `.newer` for a later schema and `.corrupt` for damage or another program's database; the file is untouched in both
  ///   cases. `.missing` when there is no directory or, for `readOnly`, no ledger.
  package convenience init(
    directory: String, mode: Mode = .readWrite, clock: any Clock = SystemClock()
  ) throws(LedgerFailure) {
    try self.init(directory: directory, mode: mode, schema: .current, clock: clock)
  }

  init(directory: String, mode: Mode, schema: Schema, clock: any Clock = SystemClock()) throws(LedgerFailure)
  {
    self.clock = clock
    let opener = LedgerOpener(
      file: try DatabaseFile(directory: directory, name: DatabaseFile.ledger), schema: schema)
    self.opener = opener
    switch mode {
    case .readWrite:
      writers = Locked(Writers(durable: try opener.openWriter()))
      readers = ReaderPool(opener: opener, kind: .shared)
      tally = RowTally()
    case .readOnly:
      let (first, kind) = try opener.openForReading()
      writers = Locked(Writers())
      readers = ReaderPool(opener: opener, kind: kind)
      tally = nil
      readers.giveBack(first)
    }
  }

  /// Renames a damaged ledger, so that the next one opens empty. No ledger may be open there.
  ///
  /// - Returns: the new name, such as `ledger.sqlite.corrupt-20261121T043000Z`. It is durable.
  package static func setAside(directory: String, now: Timestamp) throws(LedgerFailure) -> String {
    let stamp = now.rfc3339.filter { $0 != ":" && $0 != "-" }
    return try DatabaseFile(directory: directory, name: DatabaseFile.ledger).setAside(stamp: stamp)
  }

  /// Returns whether a pass ever recorded anything there. True also when this cannot be determined.
  package static func isUsed(directory: String) -> Bool {
    do throws(LedgerFailure) {
      let ledger = try SQLiteLedger(directory: directory, mode: .readOnly)
      defer { ledger.close() }
      let follows = try ledger.fact(.feed) != nil
      let rows = try ledger.rowCount()
      return follows || rows > 0
    } catch {
      return error.code != .missing
    }
  }

  /// Checks the whole database, indices included.
  ///
  /// - Throws: `.corrupt` with the findings.
  package func requireWhole() throws(LedgerFailure) {
    try read { connection throws(LedgerFailure) in
      try LedgerOpener.require("PRAGMA integrity_check(20)", connection, file: opener.file.path)
    }
  }

  /// Marks the database as not trusted, because something in it cannot be read. The next writer that opens it checks all of it, as
  /// after a crash.
  package func distrust() throws(LedgerFailure) {
    try writers.withLock { (writers) throws(LedgerFailure) in
      try writers.durable?.run("UPDATE state SET clean = 0")
      writers.isMarked = false
    }
  }

  /// Checkpoints the log, unless somebody still reads an older state, and marks the database as closed in order. Afterwards every
  /// call throws; open cursors go on to their end.
  package func close() {
    readers.close()
    tally?.forget()
    writers.withLock { writers in
      writers.volatile = nil
      guard let durable = writers.durable else { return }
      writers.durable = nil
      // None of this is needed for what was applied: an unclean database is checked at the next start.
      if writers.isMarked { try? durable.run("UPDATE state SET clean = 1") }
      durable.setTimeout(milliseconds: 100)
      try? durable.run("PRAGMA wal_checkpoint(TRUNCATE)")
    }
  }
}

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

  /// Returns the sum of the sizes, at most `UInt64.max`. The sum is made in two halves, because SQLite's own fails beyond 2^63 - 1.
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

  package func partials(in region: Region) throws(LedgerFailure) -> [PartialRow] {
    let (sql, values) = SQL.select(PartialRow.columns, from: PartialRow.table, in: region)
    return try all(sql, values) { row throws(LedgerFailure) in try row.record() }
  }

  /// Returns the trash, the oldest first.
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
      "WHERE \(SQL.isOpen) ORDER BY name LIMIT ?",
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
    try problemCounts(where: SQL.isOpen, failedSince?.nanoseconds ?? .min)
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
    // With IN, SQLite would scan all rows.
    let sql =
      "SELECT count(*) FROM problems WHERE kind = 'failed' AND EXISTS (SELECT 1 FROM rows WHERE path = name)"
    return try first(sql, []) { row throws(LedgerFailure) in Int(try row.integer(0)) } ?? 0
  }

  package func lastEvent() throws(LedgerFailure) -> Int64 {
    // Events that were dropped had numbers, too.
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

  /// Lends a reader to `body`. When descriptors are short it lends the writer instead, so that a pass can still end in order.
  /// `body` may be called twice.
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

  /// - Parameter clause: the SQL after `FROM table`, with the condition and the order.
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

extension SQLiteLedger {
  package func apply(_ changes: [LedgerChange]) throws(LedgerFailure) {
    try write(changes, isDurable: true)
  }

  package func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure) {
    try write(changes, isDurable: false)
  }

  private func write(_ changes: [LedgerChange], isDurable: Bool) throws(LedgerFailure) {
    guard !changes.isEmpty else { return }
    try writers.withLock { (writers) throws(LedgerFailure) in
      guard let durable = writers.durable else {
        throw ErrorTable.failure(.readOnly, "it is open for reading only, or closed", file: opener.file.path)
      }
      if !isDurable, writers.volatile == nil { writers.volatile = try opener.openVolatileWriter() }
      let connection = isDurable ? durable : writers.volatile ?? durable
      var groups = writers.intentGroups
      defer { if changes.contains(where: \.isOfRow) { tally?.forget() } }
      try writers.change(on: connection) { () throws(LedgerFailure) in
        let bare = try connection.bareTables(for: changes)
        var together = IntentGroups.intents(in: changes)
        let areTogether = together != nil
        var news = ProblemNews()
        for change in changes where !bare.makesIdle(change) {
          switch change {
          case .intent(let intent):
            try groups.load(connection)
            if let intents = together.take() { try groups.add(intents, connection) }
            guard !areTogether else { continue }
            _ = groups.leave(intent.path)
            try connection.write(change)
          case .dropIntent(let path):
            try groups.load(connection)
            if !groups.leave(path) { try connection.write(change) }
          default: try connection.write(change, news: &news)
          }
        }
        try groups.settle(connection)
        for event in news.events(when: clock.time) {
          try connection.write(.event(event))
        }
      }
      writers.intentGroups = groups
    }
  }

  /// Makes the index of digests when it is missing, which takes a second for a million rows, once. A ledger that cannot be written
  /// is scanned for each digest instead.
  func indexDigests() {
    guard !hasDigestIndex.withLock({ $0 }) else { return }
    writers.withLock { writers in
      guard !hasDigestIndex.withLock({ $0 }) else { return }
      hasDigestIndex.withLock { $0 = true }
      guard let durable = writers.durable else { return }
      // Sorting a million rows in memory takes 75 MB, which is only done when no file can be made.
      for place in ["FILE", "MEMORY"] {
        try? durable.execute("PRAGMA temp_store = \(place)")
        let made: Void? = try? writers.change(on: durable) { () throws(LedgerFailure) in
          try durable.run(Schema.digestIndex)
        }
        if made != nil { break }
      }
      try? durable.execute("PRAGMA temp_store = MEMORY")
    }
  }
}

extension LedgerChange {
  /// Whether the change may alter the number of rows.
  fileprivate var isOfRow: Bool {
    switch self {
    case .row, .dropRow: true
    default: false
    }
  }
}

extension SQLiteLedger.Writers {
  /// Runs one transaction. The first of a run marks the database as not closed in order.
  fileprivate mutating func change(
    on connection: Connection, _ body: () throws(LedgerFailure) -> Void
  ) throws(LedgerFailure) {
    let isMarked = isMarked
    try connection.transaction { () throws(LedgerFailure) in
      if !isMarked { try connection.run("UPDATE state SET clean = 0") }
      try body()
    }
    self.isMarked = true
  }
}

/// The tables that have no rows, so that a long list need not drop any from them.
private struct BareTables {
  var problems = false
  var partials = false

  /// Returns whether the change would do nothing.
  func makesIdle(_ change: LedgerChange) -> Bool {
    switch change {
    case .dropProblem: problems
    case .dropPartial: partials
    default: false
    }
  }
}

extension Connection {
  /// The fewest changes of a list for which looking first is worth its cost.
  private static let longList = 32

  fileprivate func bareTables(for changes: [LedgerChange]) throws(LedgerFailure) -> BareTables {
    var bare = BareTables()
    guard changes.count >= Self.longList else { return bare }
    bare.problems = try isBare("problems")
    bare.partials = try isBare("partials")
    for change in changes {
      if case .problem = change { bare.problems = false }
      if case .partial = change { bare.partials = false }
    }
    return bare
  }

  private func isBare(_ table: String) throws(LedgerFailure) -> Bool {
    try first("SELECT 1 FROM \(table) LIMIT 1") { row throws(LedgerFailure) in try row.integer(0) } == nil
  }

  /// Writes a change, and notes what it changes about problems.
  fileprivate func write(_ change: LedgerChange, news: inout ProblemNews) throws(LedgerFailure) {
    switch change {
    case .problem(let problem):
      let old = try first("SELECT kind FROM problems WHERE name = ?", [.blob(problem.name)], kind)
      try write(change)
      news.note(problem.name, from: old, to: problem)
    case .dropProblem(let name, let isUnwanted):
      let old = try first("DELETE FROM problems WHERE name = ? RETURNING kind", [.blob(name)], kind)
      news.note(name, from: old, to: nil, isUnwanted: isUnwanted)
    case .dropProblems(let seenBefore):
      let dropped = try all(SQL.dropProblems, [.integer(seenBefore.nanoseconds)]) {
        (row) throws(LedgerFailure) in (name: try row.blob(0), kind: try kind(row, at: 1))
      }
      for problem in dropped { news.note(problem.name, from: problem.kind, to: nil) }
    default: try write(change)
    }
  }

  private func kind(_ row: Statement) throws(LedgerFailure) -> Problem.Kind { try kind(row, at: 0) }

  private func kind(_ row: Statement, at column: Int32) throws(LedgerFailure) -> Problem.Kind {
    guard let kind = Problem.Kind(rawValue: try row.text(column)) else {
      throw ErrorTable.failure(.corrupt, "a problem of no kind that there is", file: file)
    }
    return kind
  }

  /// Writes one change, inside the transaction of its list.
  fileprivate func write(_ change: LedgerChange) throws(LedgerFailure) {
    switch change {
    case .row(let row): try put(row)
    case .dropRow(let path): try run("DELETE FROM rows WHERE path = ?", [.blob(path.bytes)])
    case .intent(let intent): try write(intent)
    case .dropIntent(let path): try run("DELETE FROM intents WHERE path = ?", [.blob(path.bytes)])
    case .partial(let partial): try put(partial)
    case .durable(let path, let bytes):
      try run("UPDATE partials SET durable = ? WHERE path = ?", [.bits(bytes), .blob(path.bytes)])
    case .dropPartial(let path): try run("DELETE FROM partials WHERE path = ?", [.blob(path.bytes)])
    case .trash(let row): try put(row)
    case .dropTrash(let name): try run("DELETE FROM trash WHERE name = ?", [.text(name)])
    case .problem(let problem): try put(problem, by: SQL.putProblem)
    case .dropProblem(let name, _): try run("DELETE FROM problems WHERE name = ?", [.blob(name)])
    case .dropProblems(let seenBefore): try run(SQL.dropProblems, [.integer(seenBefore.nanoseconds)])
    case .event(let event): try put(event, by: SQL.addEvent)
    case .pruneEvents(let keeping, let before, let now):
      try pruneEvents(keeping: keeping, before: before, now: now)
    case .hold(let plan): try write(plan)
    case .heldPath(let plan, let path):
      try run(
        "INSERT OR IGNORE INTO held_paths (plan, path) VALUES (?, ?)", [.text(plan), .blob(path.bytes)])
    case .dropHeldPath(let path):
      try run(SQL.countHeldPathDown, [.blob(path.bytes)])
      try run("DELETE FROM held_paths WHERE plan = (SELECT plan FROM held) AND path = ?", [.blob(path.bytes)])
      try run("DELETE FROM held WHERE count < 1")
    case .dropHolds:
      try run("DELETE FROM held")
      try run("DELETE FROM held_paths")
      try writeFact(.heldReason, nil)
    case .name(let name): try put(name)
    case .activity(let list): try write(list)
    case .fact(let name, let value): try writeFact(name, value)
    case .inPlace(let entries, let bytes):
      try add(.entriesCurrent, UInt64(max(0, entries)))
      try add(.bytesCurrent, bytes)
    }
  }

  /// Adds to a number, when it is known.
  private func add(_ name: LedgerFact, _ more: UInt64) throws(LedgerFailure) {
    let text = try first(SQL.fact, [.text(name.rawValue)]) { row throws(LedgerFailure) in try row.text(0) }
    guard let known = text.flatMap({ UInt64($0) }) else { return }
    try writeFact(name, String(known.addingSaturated(more)))
  }

  private func write(_ intent: Intent) throws(LedgerFailure) {
    try requireOnePath(intent)
    try put(intent)
  }

  func requireOnePath(_ intent: Intent) throws(LedgerFailure) {
    guard intent.row.path == intent.path else {
      throw ErrorTable.failure(.other, "an intent for one path has the row of another", file: file)
    }
  }

  /// Replaces the held plan. Paths of the same plan stay, because they may have been written first.
  private func write(_ plan: HeldPlan) throws(LedgerFailure) {
    try run("DELETE FROM held")
    try run("DELETE FROM held_paths WHERE plan <> ?", [.text(plan.id)])
    try run(
      "INSERT INTO held (slot, plan, since, count) VALUES (1, ?, ?, ?)",
      [.text(plan.id), .integer(plan.when.nanoseconds), .integer(Int64(plan.count))])
    try writeFact(.heldReason, plan.reason.isEmpty ? nil : plan.reason)
    if plan.isForPerson { try writeFact(.heldForPerson, plan.id) }
  }

  private func write(_ list: [Activity]) throws(LedgerFailure) {
    try run("DELETE FROM activity")
    for (position, activity) in list.enumerated() {
      try run(SQL.addActivity) { (statement) throws(LedgerFailure) in
        try statement.put(Int64(position))
        try statement.put(activity)
      }
    }
  }

  private func writeFact(_ name: LedgerFact, _ value: String?) throws(LedgerFailure) {
    if let value {
      try run(
        "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", [.text(name.rawValue), .text(value)])
    } else {
      try run("DELETE FROM facts WHERE name = ?", [.text(name.rawValue)])
    }
  }

  /// Returns whether the oldest event may be dropped that is not a deletion of the guard's window. Later events are younger.
  private func mayPrune(
    upTo newest: Int64, before: Timestamp, now: Timestamp
  ) throws(LedgerFailure) -> Bool {
    let day = now.adding(seconds: -DeletionGuard.window).nanoseconds
    let oldest = try first(SQL.oldestPrunable, [.integer(day)]) { row throws(LedgerFailure) in
      (number: try row.integer(0), moment: try row.integer(1))
    }
    guard let oldest else { return false }
    return oldest.number <= newest && oldest.moment < before.nanoseconds
  }

  private func pruneEvents(keeping: Int, before: Timestamp, now: Timestamp) throws(LedgerFailure) {
    // Numbers have gaps only where older events were dropped. Mostly there is nothing to drop, and the oldest event shows that.
    let newest = try first("SELECT max(number) FROM events") { row throws(LedgerFailure) in
      row.isNull(0) ? 0 : try row.integer(0)
    }
    let newestDropped = (newest ?? 0) - Int64(clamping: max(0, keeping))
    guard try mayPrune(upTo: newestDropped, before: before, now: now) else { return }
    let (start, overflow) = now.nanoseconds.subtractingReportingOverflow(86_400 * 1_000_000_000)
    let window: [Value] = [
      .integer(newestDropped), .integer(before.nanoseconds), .integer(overflow ? .min : start),
    ]
    let last = try first(SQL.lastPrunable, window) { row throws(LedgerFailure) in try row.integer(0) }
    guard let last else { return }
    try run(SQL.prune, window)
    let known = try first(SQL.fact, [.text(LedgerFact.eventsDropped.rawValue)]) { row throws(LedgerFailure) in
      try row.text(0)
    }
    // A deletion that outlived its neighbours may be older than events that were dropped before.
    let highest = max(last, known.flatMap { Int64($0) } ?? 0)
    try writeFact(.eventsDropped, String(highest))
  }
}
