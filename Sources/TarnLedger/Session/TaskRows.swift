import TarnCore
import TarnRuntime

/// The database gives the task its number when it is added. `add` also writes the identity and the position; the response and the event
/// of its end have statements of their own.
extension TaskRecord: TableRecord {
  static let table = "tasks"
  static let columns = "number, \(ownColumns)"
  /// All columns but the number. The last three repeat parts of the request for queries, and are not read.
  static let ownColumns = """
    state, request, added, path, bytes, digest, code, message, attempts, due, ended, whole, stall, fresh, file, origin,
      directory, moved_from, wish, disk, is_moved, rank, task_group, client_key
    """
  /// The last parameter is the number.
  static let put = "UPDATE tasks SET (\(ownColumns)) = (\(places(of: ownColumns))) WHERE number = ?"
  static let add = """
    INSERT INTO tasks (position, url, destination, \(ownColumns)) VALUES (?, ?, ?, \(places(of: ownColumns)))
    """

  func write<Sink: ColumnSink>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.put(state.rawValue)
    try sink.put(JSONText.line(request))
    try sink.put(added)
    try sink.put(optional: path)
    try sink.put(optional: bytes)
    try sink.put(optional: digest)
    try sink.put(optional: code)
    try sink.put(optional: message)
    try sink.put(Int64(attempts))
    try sink.put(optional: nextAttempt)
    try sink.put(optional: ended)
    try sink.put(optional: (life?.whole).map { UInt64(bitPattern: $0) })
    try sink.put(optional: (life?.stall).map { UInt64(bitPattern: $0) })
    try sink.put(fresh)
    try sink.put(optional: file?.columnText)
    try sink.put(optional: origin.map { JSONText.line($0) })
    try sink.put(optional: directory)
    try sink.put(optional: movedFrom)
    try sink.put(optional: wish.map { JSONText.line($0) })
    try sink.put(optional: disk)
    try sink.put(isMoved)
    try sink.put((request.priority ?? .normal).rank)
    try sink.put(optional: request.group)
    try sink.put(optional: request.key)
  }

  static func read<Source: ColumnSource>(from source: inout Source) throws(Source.Failure) -> TaskRecord {
    let number = try source.signed()
    let state: TaskState = try source.choice()
    guard let request = JSONText.value(TaskRequest.self, from: try source.text()) else {
      throw source.impossible()
    }
    var record = TaskRecord(number: number, state: state, request: request, added: try source.time())
    record.path = try source.optionalText()
    record.bytes = try source.optionalUnsigned()
    record.digest = try source.optionalText()
    record.code = try source.optionalText()
    record.message = try source.optionalText()
    record.attempts = try source.count()
    record.nextAttempt = try source.optionalTime()
    record.ended = try source.optionalTime()
    let (whole, stall) = (try source.optionalUnsigned(), try source.optionalUnsigned())
    if let whole, let stall {
      record.life = TaskLife(whole: Int64(bitPattern: whole), stall: Int64(bitPattern: stall))
    }
    record.fresh = try source.optionalTime() ?? record.added
    record.file = try source.optionalText().flatMap { FileIdentity(columnText: $0) }
    record.origin = try source.optionalText().flatMap { JSONText.value(FileOrigin.self, from: $0) }
    record.directory = try source.optionalUnsigned()
    record.movedFrom = try source.optionalText()
    record.wish = try source.optionalText().flatMap { JSONText.value(TaskWish.self, from: $0) }
    record.disk = try source.optionalText()
    record.isMoved = try source.flag()
    return record
  }
}

extension FileIdentity {
  /// The identity as one column has it: numbers with blanks between.
  fileprivate var columnText: String {
    "\(device) \(inode) \(size) \(modified.nanoseconds) \(changed.nanoseconds)"
  }

  fileprivate init?(columnText: String) {
    let parts = columnText.split(separator: " ")
    guard parts.count == 5, let device = UInt64(parts[0]), let inode = UInt64(parts[1]),
      let size = UInt64(parts[2]), let modified = Int64(parts[3]), let changed = Int64(parts[4])
    else { return nil }
    self.init(
      device: device, inode: inode, size: size, modified: Timestamp(nanoseconds: modified),
      changed: Timestamp(nanoseconds: changed))
  }
}

extension Connection {
  /// Writes a changed task over its row.
  func update(_ task: TaskRecord) throws(LedgerFailure) {
    try run(TaskRecord.put) { (statement) throws(LedgerFailure) in
      try statement.put(task)
      try statement.put(task.number)
    }
  }
}

extension SessionLedger {
  /// The condition for the task that was added with a key of the client's. The first key is in its row, each later one is a fact.
  static let byKey = """
    number = coalesce((SELECT number FROM tasks WHERE client_key = ?),
      (SELECT CAST(value AS INTEGER) FROM facts WHERE name = ?))
    """

  static func values(byKey key: String) -> [Value] { [.text(key), .text(Fact.laterKey(key).name)] }

  /// Returns the first task that meets a condition.
  static func task(
    _ condition: String, _ values: [Value], _ connection: Connection
  ) throws(LedgerFailure) -> TaskRecord? {
    try connection.first("\(TaskRecord.select) WHERE \(condition)", values) { row throws(LedgerFailure) in
      try row.record()
    }
  }

  /// - Parameter condition: the condition, with the order and the limit behind it.
  static func tasks(
    _ condition: String, _ values: [Value], _ connection: Connection
  ) throws(LedgerFailure) -> [TaskRecord] {
    try connection.all("\(TaskRecord.select) WHERE \(condition)", values) { row throws(LedgerFailure) in
      try row.record()
    }
  }

  /// Reads an event with its number and body.
  static func event(_ row: Statement) throws(LedgerFailure) -> SessionEvent {
    guard var event = JSONText.value(SessionEvent.self, from: try row.text(1)) else { throw row.damaged(1) }
    event.number = try row.integer(0)
    event.body = try row.optionalText(2)
    return event
  }
}
