package import TarnCore
import TarnRuntime

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
        for event in news.events(when: Timestamp(nanoseconds: clock.now())) {
          try connection.write(.event(event))
        }
      }
      writers.intentGroups = groups
    }
  }

  /// Makes the index of digests, if it is not there: a second for a million rows, once. A ledger that cannot be written does without,
  /// and is read from end to end for each digest.
  func indexDigests() {
    guard !hasDigestIndex.withLock({ $0 }) else { return }
    writers.withLock { writers in
      guard !hasDigestIndex.withLock({ $0 }) else { return }
      hasDigestIndex.withLock { $0 = true }
      guard let durable = writers.durable else { return }
      // Sorted in memory a million rows take 75 MB, which is done only where no file can be made.
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
  /// Whether it may change how many rows there are.
  fileprivate var isOfRow: Bool {
    switch self {
    case .row, .dropRow: true
    default: false
    }
  }
}

extension SQLiteLedger.Writers {
  /// One transaction; the first of a run says that the database is not closed in order.
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

/// Tables without a row, from which a long list need not drop any.
private struct BareTables {
  var problems = false
  var partials = false

  /// Whether the change would do nothing.
  func makesIdle(_ change: LedgerChange) -> Bool {
    switch change {
    case .dropProblem: problems
    case .dropPartial: partials
    default: false
    }
  }
}

extension Connection {
  /// In fewer changes a look costs as much as it saves.
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

  /// The same of what may be news of a problem.
  fileprivate func write(_ change: LedgerChange, news: inout ProblemNews) throws(LedgerFailure) {
    switch change {
    case .problem(let problem):
      let old = try first("SELECT kind FROM problems WHERE name = ?", [.blob(problem.name)], kind)
      try write(change)
      news.note(problem.name, from: old, to: problem)
    case .dropProblem(let name):
      let old = try first("DELETE FROM problems WHERE name = ? RETURNING kind", [.blob(name)], kind)
      news.note(name, from: old, to: nil)
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

  /// One change, inside the transaction of its list.
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
    case .dropProblem(let name): try run("DELETE FROM problems WHERE name = ?", [.blob(name)])
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
    case .dropName(let path): try run("DELETE FROM names WHERE path = ?", [.blob(path.bytes)])
    case .activity(let list): try write(list)
    case .fact(let name, let value): try writeFact(name, value)
    case .inPlace(let entries, let bytes):
      try add(.entriesCurrent, UInt64(max(0, entries)))
      try add(.bytesCurrent, bytes)
    }
  }

  /// To a number, if it is known.
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

  /// Paths of the same plan stay: they may have been written first.
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

  /// Whether the oldest event that is no deletion of the guard's window may go: those behind it are younger.
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
    // Numbers have no gaps but where older ones were dropped. Mostly there is nothing to do, and the oldest says so.
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
    // A deletion that outlived its neighbours is older than what was dropped before.
    let highest = max(last, known.flatMap { Int64($0) } ?? 0)
    try writeFact(.eventsDropped, String(highest))
  }
}
