import CSQLite
package import TarnCore
package import TarnRuntime

/// The record of one session: its tasks, its events, and the state of the engine's transfers. To the engine a task is a path made
/// of its number. Thread-safe; used by one process at a time.
package final class SessionLedger: TransferLedger {
  private struct Writer {
    var connection: Connection?
    var isMarked = false
  }

  private let writer: Locked<Writer>
  private let clock: any Clock
  private let sources = Locked(Sources(path: { _ in nil }, response: { _ in nil }))
  /// The responses that the present transaction has written.
  private let written = Locked<[(task: Int64, serial: Int)]>([])
  /// The most events that are kept. Beyond it the oldest tenth is dropped.
  private let mostEvents: Int64
  package static let usualEvents: Int64 = 200_000
  private static let mostUntold = 100
  package static let tooManyTasks = LedgerFailure(.other, "the session would have too many tasks")
  /// The number of events that keep the bodies of refused responses.
  private static let mostBodies = 100

  /// - Parameter directory: an existing directory that only its owner can write in.
  /// - Throws: `.newer` for a later schema, `.corrupt` for damage or another program's database.
  package init(
    directory: String, clock: any Clock = SystemClock(), mostEvents: Int64 = usualEvents
  ) throws(LedgerFailure) {
    self.mostEvents = mostEvents
    let file = try DatabaseFile(directory: directory, name: DatabaseFile.ledger)
    let connection = try LedgerOpener(file: file, schema: .session).openWriter()
    writer = Locked(Writer(connection: connection))
    self.clock = clock
  }

  /// Closes the ledger. Afterwards every call throws.
  package func close() {
    writer.withLock { writer in
      guard let connection = writer.connection else { return }
      writer.connection = nil
      if writer.isMarked { try? connection.run("UPDATE state SET clean = 1") }
      try? connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
    }
  }

  /// - Parameter sources: the sources, called within the transactions that write what they return, so that the order is right.
  package func attach(_ sources: Sources) { self.sources.withLock { $0 = sources } }

  // MARK: Access

  func change(_ body: (Connection) throws(LedgerFailure) -> Void) throws(LedgerFailure) {
    try writer.withLock { (writer) throws(LedgerFailure) in
      guard let connection = writer.connection else { throw Self.closed }
      written.withLock { $0 = [] }
      try connection.transaction { () throws(LedgerFailure) in
        if !writer.isMarked { try connection.run("UPDATE state SET clean = 0") }
        try body(connection)
      }
      writer.isMarked = true
      let noted = sources.withLock { $0 }.noted
      for (task, serial) in written.withLock({ $0 }) { noted(task, serial) }
    }
  }

  func read<Result>(
    _ body: (Connection) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result {
    try writer.withLock { (writer) throws(LedgerFailure) in
      guard let connection = writer.connection else { throw Self.closed }
      return try body(connection)
    }
  }

  private static let closed = LedgerFailure(.other, "the session is closed")

  // MARK: Facts

  package func fact(_ name: Fact) throws(LedgerFailure) -> String? {
    try read { connection throws(LedgerFailure) in try Self.fact(name, connection) }
  }

  private static func fact(_ name: Fact, _ connection: Connection) throws(LedgerFailure) -> String? {
    try connection.first(SQL.fact, [.text(name.name)]) { row throws(LedgerFailure) in try row.text(0) }
  }

  package func set(_ name: Fact, _ value: String) throws(LedgerFailure) {
    try change { connection throws(LedgerFailure) in try Self.set(name, value, connection) }
  }

  private static func set(_ name: Fact, _ value: String, _ connection: Connection) throws(LedgerFailure) {
    try connection.run(
      "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", [.text(name.name), .text(value)])
  }

  // MARK: Tasks

  /// Adds tasks: all of them or none. A request whose URL and destination match a known task is not added again. A known task that
  /// failed or was cancelled is queued once more.
  ///
  /// - Parameter renews: true to give a known task that is not running the new request; otherwise it only gets another digest.
  /// - Parameter most: the most tasks that may not have ended. A batch that adds none is never refused.
  /// - Returns: the tasks in the order of the requests.
  /// - Throws: `tooManyTasks` when there would be too many; nothing was added then.
  package func add(
    _ requests: [TaskRequest], _ terms: TaskTerms, renews: Bool = false, most: Int = .max
  ) throws(LedgerFailure) -> [Added] {
    var added: [Added] = []
    try change { connection throws(LedgerFailure) in
      var addsLive = false
      for request in requests {
        var request = request
        // Equal destinations get equal spellings.
        request.to = TaskPlace(request.to)?.text ?? request.to
        let (task, isNewlyLive) = try Self.add(request, terms, renews, connection)
        added.append(task)
        addsLive = addsLive || isNewlyLive
      }
      if addsLive, try Self.liveCount(connection) > most { throw Self.tooManyTasks }
    }
    return added
  }

  private static func add(
    _ request: TaskRequest, _ terms: TaskTerms, _ renews: Bool, _ connection: Connection
  ) throws(LedgerFailure) -> (Added, isNewlyLive: Bool) {
    if let key = request.key, let known = try task(byKey, values(byKey: key), connection) {
      return (Added(task: known, wasThere: true, isRepeated: true), false)
    }
    let asked = try task("url = ? AND destination = ?", [.text(request.url), .text(request.to)], connection)
    if var known = asked {
      let hadEnded = known.state.isEnd
      if known.renew(with: request, terms, takesAll: renews) { try connection.update(known) }
      if let key = request.key, key != known.request.key {
        try Self.set(.laterKey(key), String(known.number), connection)
      }
      return (Added(task: known, wasThere: true), hadEnded && !known.state.isEnd)
    }
    var record = TaskRecord(number: 0, state: .suspended, request: request, added: terms.now)
    record.path = place(request)
    record.begin(request.first, terms)
    let next = try connection.first(
      "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'tasks'", [], Self.number)
    try connection.run(TaskRecord.add) { (statement) throws(LedgerFailure) in
      try statement.put(next ?? 1)
      try statement.put(request.url)
      try statement.put(request.to)
      try statement.put(record)
    }
    let number = try connection.first("SELECT last_insert_rowid()", [], Self.number)
    record.number = number ?? 0
    return (Added(task: record, wasThere: false), true)
  }

  /// Returns the path that the file will have, if the request names it.
  private static func place(_ request: TaskRequest) -> String? {
    TaskPlace(request.to).flatMap { place in place.name.map(place.path) }
  }

  package func task(_ number: Int64) throws(LedgerFailure) -> TaskRecord? {
    try read { connection throws(LedgerFailure) in
      try Self.task("number = ?", [.integer(number)], connection)
    }
  }

  /// Returns at most `limit` tasks with numbers greater than `after`, in the order in which they were added.
  package func tasks(
    in states: [TaskState] = TaskState.allCases, after: Int64 = 0, limit: Int
  ) throws(LedgerFailure) -> [TaskRecord] {
    let list = states.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    return try read { connection throws(LedgerFailure) in
      try Self.tasks(
        "number > ? AND state IN (\(list)) ORDER BY number LIMIT ?", [.integer(after), .limit(limit)],
        connection)
    }
  }

  /// Returns the tasks with these numbers and this code.
  package func tasks(_ numbers: ClosedRange<Int64>, code: String) throws(LedgerFailure) -> [TaskRecord] {
    try read { connection throws(LedgerFailure) in
      try Self.tasks(
        "number BETWEEN ? AND ? AND code = ? ORDER BY number",
        [.integer(numbers.lowerBound), .integer(numbers.upperBound), .text(code)], connection)
    }
  }

  /// Returns tasks, and the number of the last event that they include, so that later events follow without a gap and without
  /// duplicates.
  package func snapshot(
    in states: [TaskState], after: Int64, limit: Int
  ) throws(LedgerFailure) -> (asOf: Int64, tasks: [TaskRecord]) {
    let list = states.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    return try read { connection throws(LedgerFailure) in
      let last = try connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'events'") {
        row throws(LedgerFailure) in try row.integer(0)
      }
      let tasks = try Self.tasks(
        "number > ? AND state IN (\(list)) ORDER BY number LIMIT ?", [.integer(after), .limit(limit)],
        connection)
      return (last ?? 0, tasks)
    }
  }

  package func counts() throws(LedgerFailure) -> [TaskState: Int] {
    let counts = try read { connection throws(LedgerFailure) in
      try connection.all("SELECT state, count(*) FROM tasks GROUP BY state") { row throws(LedgerFailure) in
        (try row.text(0), Int(try row.integer(1)))
      }
    }
    return Dictionary(
      counts.compactMap { state, count in TaskState(rawValue: state).map { ($0, count) } }
    ) { $1 }
  }

  /// Returns the tasks that keep a partial file, or write one now.
  package func partialTasks() throws(LedgerFailure) -> [TaskRecord] {
    try read { connection throws(LedgerFailure) in
      try Self.tasks("directory IS NOT NULL ORDER BY number", [], connection)
    }
  }

  /// Returns whether a task was added with this client's key.
  package func knows(key: String) throws(LedgerFailure) -> Bool {
    try read { connection throws(LedgerFailure) in
      try Self.task(Self.byKey, Self.values(byKey: key), connection) != nil
    }
  }

  /// Returns the number of tasks that have not ended.
  package func liveCount() throws(LedgerFailure) -> Int {
    try read { connection throws(LedgerFailure) in try Self.liveCount(connection) }
  }

  private static func liveCount(_ connection: Connection) throws(LedgerFailure) -> Int {
    let states = TaskState.allCases.filter { !$0.isEnd }.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    return Int(try connection.first("SELECT count(*) FROM tasks WHERE state IN (\(states))", [], number) ?? 0)
  }

  /// Puts a task before all others of its priority.
  ///
  /// - Returns: false when there is no such task, or it has ended.
  package func putFirst(_ number: Int64) throws(LedgerFailure) -> Bool {
    var isDone = false
    try change { connection throws(LedgerFailure) in
      guard let task = try Self.task("number = ?", [.integer(number)], connection), !task.state.isEnd else {
        return
      }
      try connection.run(
        "UPDATE tasks SET position = (SELECT min(position) FROM tasks) - 1 WHERE number = ?",
        [.integer(number)])
      isDone = true
    }
    return isDone
  }

  /// Writes a changed task and its events. After the last task of the session has ended, `all-delivered` follows.
  ///
  /// - Parameter change: called within the transaction; returns `nil` to leave the task as it is.
  @discardableResult
  package func update(
    _ number: Int64, _ change: (TaskRecord) -> (TaskRecord, [SessionEvent])?
  ) throws(LedgerFailure) -> TaskRecord? {
    try update([number], change).first
  }

  /// Writes changed tasks in one transaction.
  ///
  /// - Returns: the tasks that have changed.
  package func update(
    _ numbers: [Int64], _ change: (TaskRecord) -> (TaskRecord, [SessionEvent])?
  ) throws(LedgerFailure) -> [TaskRecord] {
    var result: [TaskRecord] = []
    try self.change { connection throws(LedgerFailure) in
      var ended: [TaskRecord] = []
      for number in numbers {
        guard let record = try Self.task("number = ?", [.integer(number)], connection),
          let (changed, events) = change(record)
        else { continue }
        try connection.update(changed)
        for event in events { try append(completed(event, changed, connection), connection) }
        if changed.state.isEnd, !record.state.isEnd { ended.append(changed) }
        result.append(changed)
      }
      try tellEnds(of: ended, connection)
      // Tasks that ended before were not announced as all delivered while these were active.
      let suspended = result.filter { $0.state == .suspended }
      guard ended.isEmpty, !suspended.isEmpty else { return }
      for group in Set(suspended.compactMap(\.request.group)).sorted() {
        try tellEnd(of: group, onlyIfAny: true, connection)
      }
      try tellEnd(of: nil, onlyIfAny: true, connection)
    }
    return result
  }

  /// Returns the numbers of the tasks in these states.
  package func numbers(in states: [TaskState]) throws(LedgerFailure) -> [Int64] {
    let list = states.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    return try read { connection throws(LedgerFailure) in
      try connection.all("SELECT number FROM tasks WHERE state IN (\(list)) ORDER BY number", []) {
        row throws(LedgerFailure) in try row.integer(0)
      }
    }
  }

  /// Returns the engine's row for a file that was finished before. `nil` when not enough is known.
  package func finished(_ number: Int64) throws(LedgerFailure) -> Row? {
    try read { connection throws(LedgerFailure) in
      guard let task = try Self.task("number = ?", [.integer(number)], connection), let file = task.file,
        let digest = task.digest.flatMap({ Digest(labelled: $0) })
      else { return nil }
      return Row(
        path: RelativePath(task: number), identity: file, digest: digest,
        isVerified: task.request.digest != nil,
        fingerprint: [], etag: task.origin?.etag, lastModified: task.origin?.lastModified,
        placed: task.ended ?? task.added)
    }
  }

  /// Records the last response of a task's server, unless that was done before.
  package func noteResponse(of number: Int64) throws(LedgerFailure) {
    try change { connection throws(LedgerFailure) in try noteResponse(of: number, connection) }
  }

  private func noteResponse(of number: Int64, _ connection: Connection) throws(LedgerFailure) {
    let sources = sources.withLock { $0 }
    guard let response = sources.response(number),
      var record = try Self.task("number = ?", [.integer(number)], connection)
    else { return }
    let now = clock.time
    record.path = sources.path(number) ?? record.path
    if let to = response.to {
      (record.request.to, record.directory, record.disk) = (to.place, to.directory, nil)
    }
    if response.head.status < 400 { record.fresh = now }
    try connection.update(record)
    try connection.run(
      "UPDATE tasks SET response = ? WHERE number = ?",
      [.text(JSONText.line(response.head)), .integer(number)])
    var event = SessionEvent(.response, time: now, of: record)
    event.response = response.head
    try append(event, connection)
    written.withLock { $0.append((number, response.serial)) }
  }

  // MARK: Events

  /// Returns at most `limit` events after a number, the oldest first. Acknowledged events are gone.
  package func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [SessionEvent] {
    try read { connection throws(LedgerFailure) in
      try connection.all(
        """
        SELECT events.number, events.body, bodies.body FROM events
          LEFT JOIN bodies ON bodies.number = events.number
          WHERE events.number > ? ORDER BY events.number LIMIT ?
        """,
        [.integer(number), .limit(limit)], Self.event)
    }
  }

  /// Returns the first unacknowledged event that a program is woken for.
  package func firstNews() throws(LedgerFailure) -> SessionEvent? {
    let codes = SessionEvent.Code.allCases.filter(\.isNews).map { "'\($0.rawValue)'" }.joined(separator: ", ")
    return try read { connection throws(LedgerFailure) in
      try connection.first(
        "SELECT number, body, NULL FROM events WHERE code IN (\(codes)) ORDER BY number LIMIT 1", [],
        Self.event)
    }
  }

  /// Returns the `all-delivered` events that were not returned before, whether they are acknowledged or not.
  package func takeDelivered() throws(LedgerFailure) -> [SessionEvent] {
    guard try fact(.untold) != nil else { return [] }
    var events: [SessionEvent] = []
    try change { connection throws(LedgerFailure) in
      events = try Self.untold(connection)
      try connection.run("DELETE FROM facts WHERE name = ?", [.text(Fact.untold.name)])
    }
    return events
  }

  private static func untold(_ connection: Connection) throws(LedgerFailure) -> [SessionEvent] {
    try Self.fact(.untold, connection).flatMap { JSONText.value([SessionEvent].self, from: $0) } ?? []
  }

  /// Returns the number of the newest event; 0 when there never was one.
  package func lastEvent() throws(LedgerFailure) -> Int64 {
    try read { connection throws(LedgerFailure) in
      try connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'events'") {
        row throws(LedgerFailure) in try row.integer(0)
      } ?? 0
    }
  }

  /// Returns the number of the last event that was acknowledged; 0 for none.
  package func acknowledged() throws(LedgerFailure) -> Int64 {
    try fact(.acknowledged).flatMap { Int64($0) } ?? 0
  }

  /// Acknowledges the events up to a number, which are then dropped.
  ///
  /// - Returns: the number up to which events are acknowledged now.
  package func acknowledge(_ number: Int64) throws(LedgerFailure) -> Int64 {
    var reached: Int64 = 0
    try change { connection throws(LedgerFailure) in
      let last = try connection.first(
        "SELECT seq FROM sqlite_sequence WHERE name = 'events'", [], Self.number)
      let before = try Self.fact(.acknowledged, connection).flatMap { Int64($0) } ?? 0
      reached = max(min(number, last ?? 0), before)
      guard reached > before else { return }
      try Self.set(.acknowledged, String(reached), connection)
      try Self.dropEvents(upTo: reached, connection)
    }
    return reached
  }

  private static func dropEvents(upTo number: Int64, _ connection: Connection) throws(LedgerFailure) {
    try connection.run("DELETE FROM events WHERE number <= ?", [.integer(number)])
    try connection.run("DELETE FROM bodies WHERE number <= ?", [.integer(number)])
  }

  /// Adds to the event of a task that failed or was cancelled what came before that.
  private func completed(
    _ event: SessionEvent, _ task: TaskRecord, _ connection: Connection
  ) throws(LedgerFailure) -> SessionEvent {
    guard event.code == .failed || event.code == .cancelled else { return event }
    var event = event
    let sources = sources.withLock { $0 }
    (event.bytes, event.times) = (sources.kept(task), sources.times(task.number))
    // An attempt without a response does not show that of an earlier one.
    let hasResponse = event.times.map { $0.response != nil } ?? true
    if event.response == nil, hasResponse { event.response = try Self.response(task.number, connection) }
    return event
  }

  private func append(_ event: SessionEvent, _ connection: Connection) throws(LedgerFailure) {
    var event = event
    let body = event.body
    event.body = nil
    if let number = event.task, event.times == nil { event.times = sources.withLock { $0 }.times(number) }
    try connection.run(
      "INSERT INTO events (code, task, body) VALUES (?, ?, ?)",
      [
        .text(event.code.rawValue), event.task.map { .integer($0) } ?? .null, .text(JSONText.line(event)),
      ])
    if let body {
      try connection.run("INSERT INTO bodies (number, body) VALUES (last_insert_rowid(), ?)", [.text(body)])
      try connection.run(
        """
        DELETE FROM bodies WHERE number NOT IN (SELECT number FROM bodies ORDER BY number DESC LIMIT ?)
        """, [.limit(Self.mostBodies)])
    }
    try dropOldest(connection)
  }

  /// Drops the oldest events when there are too many. An event `events-lost` replaces the last one dropped.
  private func dropOldest(_ connection: Connection) throws(LedgerFailure) {
    let number = try connection.first("SELECT max(number) FROM events", [], Self.number)
    // This is not counted each time: the number shows when there may be too many.
    guard let number, number % max(1, mostEvents / 10) == 0,
      let count = try connection.first("SELECT count(*) FROM events", [], Self.number), count > mostEvents,
      let last = try connection.first(
        "SELECT number FROM events ORDER BY number LIMIT 1 OFFSET ?",
        [.integer(count - mostEvents + mostEvents / 10)], Self.number)
    else { return }
    try Self.dropEvents(upTo: last, connection)
    var event = SessionEvent(.eventsLost, time: clock.time)
    event.lostUpTo = last
    try connection.run(
      "INSERT INTO events (number, code, task, body) VALUES (?, ?, NULL, ?)",
      [.integer(last), .text(event.code.rawValue), .text(JSONText.line(event))])
  }

  static func number(_ row: Statement) throws(LedgerFailure) -> Int64 { try row.integer(0) }

  /// Announces what ended with these tasks, which have just ended. Their events are the newest.
  private func tellEnds(of tasks: [TaskRecord], _ connection: Connection) throws(LedgerFailure) {
    guard !tasks.isEmpty else { return }
    for task in tasks {
      try connection.run(
        "UPDATE tasks SET end_event = (SELECT seq FROM sqlite_sequence WHERE name = 'events') WHERE number = ?",
        [.integer(task.number)])
    }
    for group in Set(tasks.compactMap(\.request.group)).sorted() { try tellEnd(of: group, connection) }
    try tellEnd(of: nil, connection)
  }

  /// - Parameters:
  ///   - group: the group; `nil` for all tasks of the session.
  ///   - onlyIfAny: true to announce nothing when no task has ended since the last time.
  private func tellEnd(
    of group: String?, onlyIfAny: Bool = false, _ connection: Connection
  ) throws(LedgerFailure) {
    let open = "SELECT 1 FROM tasks WHERE state IN ('queued', 'running', 'waiting')"
    let isOpen = try connection.first(
      open + (group == nil ? " LIMIT 1" : " AND task_group = ? LIMIT 1"), group.map { [.text($0)] } ?? [],
      Self.number)
    guard isOpen == nil else { return }
    let last = try Self.fact(.delivered(group: group), connection).flatMap { Int64($0) } ?? 0
    // Each task counts once, however often it was retried.
    let counts = try connection.all(
      "SELECT state, count(*) FROM tasks WHERE end_event > ?" + (group == nil ? "" : " AND task_group = ?")
        + " GROUP BY state",
      [.integer(last)] + (group.map { [.text($0)] } ?? [])
    ) { row throws(LedgerFailure) in (try row.text(0), Int(try row.integer(1))) }
    func count(_ state: TaskState) -> Int { counts.first { $0.0 == state.rawValue }?.1 ?? 0 }
    var event = SessionEvent(group == nil ? .allDelivered : .groupDelivered, time: clock.time)
    (event.group, event.finished, event.failed) = (group, count(.finished), count(.failed))
    if onlyIfAny, event.finished == 0, event.failed == 0 { return }
    try append(event, connection)
    event.number =
      try connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'events'", [], Self.number) ?? 0
    try Self.set(.delivered(group: group), String(event.number), connection)
    guard group == nil else { return }
    let untold = try Self.untold(connection) + [event]
    try Self.set(.untold, JSONText.line(Array(untold.suffix(Self.mostUntold))), connection)
  }

  // MARK: The engine's record

  package func apply(_ changes: [LedgerChange]) throws(LedgerFailure) {
    try change { connection throws(LedgerFailure) in
      // This is decided before a row says that the file is another one.
      var applied: [LedgerChange] = []
      for change in changes where try !keepsIntent(change, in: changes, connection) { applied.append(change) }
      for change in applied { try apply(change, connection) }
    }
  }

  /// Returns whether an intent must stay because the file that a new one replaced has still to be removed; see `forgetIntent`.
  private func keepsIntent(
    _ change: LedgerChange, in changes: [LedgerChange], _ connection: Connection
  ) throws(LedgerFailure) -> Bool {
    guard case .dropIntent(let path) = change,
      changes.contains(where: { if case .row(let row) = $0 { row.path == path } else { false } })
    else { return false }
    return try Self.task("number = ?", [.integer(path.task)], connection)?.replaces == true
  }

  /// Records that a queued task has its file already, and needs no transfer.
  ///
  /// - Returns: false when it is not queued any more, and nothing was recorded.
  package func finishQueued(_ row: Row) throws(LedgerFailure) -> Bool {
    var isQueued = false
    try change { connection throws(LedgerFailure) in
      let task = try Self.task("number = ?", [.integer(row.path.task)], connection)
      isQueued = task?.state == .queued
      if isQueued {
        try finish(
          row.path.task, row.identity, digest: row.digest.labelled, from: task?.origin, connection)
      }
    }
    return isQueued
  }

  /// Drops the intent of a task, once the file that was replaced is gone.
  package func forgetIntent(of number: Int64) throws(LedgerFailure) {
    try change { connection throws(LedgerFailure) in
      try connection.run("DELETE FROM intents WHERE task = ?", [.integer(number)])
    }
  }

  /// Applies the changes durably, because there is only one connection.
  package func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure) {
    let kept = changes.filter {
      switch $0 {
      case .partial, .dropPartial, .durable, .row, .intent, .dropIntent: true
      default: false
      }
    }
    if !kept.isEmpty { try apply(kept) }
  }

  private func apply(_ change: LedgerChange, _ connection: Connection) throws(LedgerFailure) {
    switch change {
    case .partial(let row): try connection.put(row)
    case .durable(let path, let bytes):
      try connection.run(
        "UPDATE partials SET durable = ? WHERE path = ?", [.bits(bytes), .blob(path.bytes)])
    case .dropPartial(let path):
      try connection.run("DELETE FROM partials WHERE path = ?", [.blob(path.bytes)])
    case .intent(let intent):
      // The response is recorded before the file has its name, because after a crash the file is searched by that.
      try noteResponse(of: intent.path.task, connection)
      try connection.run(
        "INSERT OR REPLACE INTO intents (task, inode, size, digest) VALUES (?, ?, ?, ?)",
        [
          .integer(intent.path.task), .bits(intent.row.identity.inode), .bits(intent.row.identity.size),
          .text(intent.row.digest.labelled),
        ])
    case .dropIntent(let path):
      try connection.run("DELETE FROM intents WHERE task = ?", [.integer(path.task)])
    case .row(let row):
      let number = row.path.task
      try noteResponse(of: number, connection)
      try finish(
        number, row.identity, digest: row.digest.labelled, from: try Self.origin(of: row, connection),
        connection)
    // A session has no feed, no trash and no list of problems, and it has its own events.
    default: break
    }
  }

  /// Returns where the file of a transfer came from: the last answer has brought or confirmed it. Without validators that is of no use.
  private static func origin(of row: Row, _ connection: Connection) throws(LedgerFailure) -> FileOrigin? {
    guard row.etag != nil || row.lastModified != nil,
      let response = try Self.response(row.path.task, connection)
    else { return nil }
    return FileOrigin(
      url: response.redirects?.first ?? response.url, answered: response.url,
      etag: row.etag, lastModified: row.lastModified)
  }

  /// Records that the file of a task has its name.
  private func finish(
    _ number: Int64, _ file: FileIdentity, digest: String, from origin: FileOrigin?,
    _ connection: Connection
  ) throws(LedgerFailure) {
    guard var record = try Self.task("number = ?", [.integer(number)], connection) else { return }
    let now = clock.time
    // A file that was there already did not take the name of the partial one, which the session still has to remove.
    let leavesPartial = record.file == file && sources.withLock { $0 }.kept(record) != nil
    if !leavesPartial { (record.directory, record.movedFrom) = (nil, nil) }
    let wish = record.wish
    let beginsAgain = wish?.isOfAnotherRequest == true
    (record.state, record.wish) = (.finished, nil)
    (record.file, record.origin) = (file, origin)
    (record.bytes, record.digest) = (file.size, digest)
    record.path = sources.withLock { $0 }.path(number) ?? record.path
    (record.code, record.message, record.nextAttempt, record.attempts) = (nil, nil, nil, 0)
    (record.life, record.ended) = (nil, now)
    var event = SessionEvent(.finished, time: now, of: record)
    event.response = try Self.response(number, connection)
    // A file that is fetched again in its place is no end of the task. One that stays while the task goes elsewhere is told of.
    let isTold = !beginsAgain || wish?.destination != nil
    if beginsAgain {
      (record.state, record.ended) = (.queued, nil)
      if let (to, existing) = wish?.destination { record.move(to: to, existing) }
    }
    // Its request has reached the server, and is not sent again without an order.
    let isAsked = beginsAgain && !record.request.isRepeatable
    if isAsked {
      record.state = .waiting
      (record.code, record.message) = (TaskRecord.interruptedCode, TaskRecord.interruptedMessage)
    }
    try connection.update(record)
    if isTold {
      try append(event, connection)
      try tellEnds(of: [record], connection)
    }
    if isAsked { try append(SessionEvent(.needsRequest, time: now, of: record), connection) }
  }

  /// Returns the last response of a task's server. `nil` when there was none.
  package func response(_ number: Int64) throws(LedgerFailure) -> TaskResponse? {
    try read { connection throws(LedgerFailure) in try Self.response(number, connection) }
  }

  private static func response(
    _ number: Int64, _ connection: Connection
  ) throws(LedgerFailure) -> TaskResponse? {
    let text = try connection.first("SELECT response FROM tasks WHERE number = ?", [.integer(number)]) {
      row throws(LedgerFailure) in try row.optionalText(0)
    }
    return text.flatMap { $0 }.flatMap { JSONText.value(TaskResponse.self, from: $0) }
  }

  package func unfinished() throws(LedgerFailure) -> [Unfinished] {
    try read { connection throws(LedgerFailure) in
      let intents = try connection.all("SELECT task, inode, size, digest FROM intents") {
        row throws(LedgerFailure) in
        (try row.integer(0), try row.bits(1), try row.bits(2), try row.text(3))
      }
      var found: [Unfinished] = []
      for (number, inode, size, digest) in intents {
        guard let task = try Self.task("number = ?", [.integer(number)], connection) else { continue }
        found.append(Unfinished(task: task, inode: inode, size: size, digest: digest))
      }
      return found
    }
  }

  /// Resolves an intent that is left after a crash.
  ///
  /// - Parameter found: the path and identity of the file that got its name; `nil` when none did.
  package func settle(
    _ intent: Unfinished, _ found: (path: String, file: FileIdentity)?
  ) throws(LedgerFailure) {
    let number = intent.task.number
    try change { connection throws(LedgerFailure) in
      try connection.run("DELETE FROM intents WHERE task = ?", [.integer(number)])
      guard let (path, file) = found, var record = try Self.task("number = ?", [.integer(number)], connection)
      else { return }
      record.path = path
      try connection.update(record)
      try apply(.dropPartial(RelativePath(task: number)), connection)
      // The answer that brought it may not be the last one. Without its validators it is fetched again when it is asked about.
      try finish(number, file, digest: intent.digest, from: nil, connection)
    }
  }

  /// Returns whether an unfinished download keeps its bytes.
  package func hasPartials() throws(LedgerFailure) -> Bool {
    try read { connection throws(LedgerFailure) in
      try connection.first("SELECT 1 FROM partials LIMIT 1") { row throws(LedgerFailure) in try row.integer(0)
      }
        != nil
    }
  }

  /// Always `nil`: only its task knows a finished file.
  package func row(_ path: RelativePath) -> Row? { nil }
  package func rows(in region: Region) -> any RowCursor { NoRows() }
  package func rows(digest: Digest, after: RelativePath?, limit: Int) -> [Row] { [] }

  package func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow? {
    try read { connection throws(LedgerFailure) in
      try connection.first("\(PartialRow.select) WHERE path = ?", [.blob(path.bytes)]) {
        row throws(LedgerFailure) in try row.record()
      }
    }
  }

  package func partials(in region: Region) throws(LedgerFailure) -> [PartialRow] {
    guard region.extent == .itself, let path = region.path else { return [] }
    return try partial(path).map { [$0] } ?? []
  }
}

/// A cursor without rows.
private final class NoRows: RowCursor {
  func next() -> Row? { nil }
}
