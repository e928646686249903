import CSQLite
import TarnCore
import TarnRuntime

/// Reads and writes a task as a row of the ledger, with the columns side by side.
enum TaskRows {
  static let select = """
    SELECT number, state, request, path, bytes, digest, code, message, attempts, due, added, ended, whole, stall, fresh,
      file, directory, moved_from, wish, disk FROM tasks
    """

  /// The condition for the task that was added with a key of the client's. The first key is in its row, each later one is a fact.
  static let byKey = """
    number = coalesce((SELECT number FROM tasks WHERE client_key = ?),
      (SELECT CAST(value AS INTEGER) FROM facts WHERE name = ?))
    """

  static func values(byKey key: String) -> [Value] { [.text(key), laterKey(key)] }

  /// The name of the fact that tells which task has a later key.
  static func laterKey(_ key: String) -> Value { .text("key:\(key)") }

  static func read(_ row: Statement) throws(LedgerFailure) -> TaskRecord {
    guard let state = TaskState(rawValue: try row.text(1)) else { throw row.damaged(1) }
    guard let request = JSONText.value(TaskRequest.self, from: try row.text(2)) else { throw row.damaged(2) }
    var record = TaskRecord(
      number: try row.integer(0), state: state, request: request, added: try row.timestamp(10))
    (record.path, record.bytes, record.digest) = (
      try row.optionalText(3), try row.optionalBits(4), try row.optionalText(5)
    )
    (record.code, record.message) = (try row.optionalText(6), try row.optionalText(7))
    record.attempts = Int(try row.integer(8))
    record.nextAttempt = row.isNull(9) ? nil : try row.timestamp(9)
    record.ended = row.isNull(11) ? nil : try row.timestamp(11)
    if !row.isNull(12), !row.isNull(13) {
      record.life = TaskLife(whole: try row.integer(12), stall: try row.integer(13))
    }
    if !row.isNull(14) { record.fresh = try row.timestamp(14) }
    record.file = try row.optionalText(15).flatMap(identity)
    record.directory = try row.optionalBits(16)
    record.movedFrom = try row.optionalText(17)
    record.wish = try row.optionalText(18).flatMap { JSONText.value(TaskWish.self, from: $0) }
    record.disk = try row.optionalText(19)
    return record
  }

  static func write(_ record: TaskRecord, _ connection: Connection) throws(LedgerFailure) {
    try connection.run(
      """
      UPDATE tasks SET state = ?, rank = ?, due = ?, request = ?, path = ?, bytes = ?, digest = ?, code = ?,
        message = ?, attempts = ?, ended = ?, whole = ?, stall = ?, fresh = ?, task_group = ?, file = ?,
        directory = ?, moved_from = ?, wish = ?, client_key = ?, disk = ?
      WHERE number = ?
      """,
      [
        .text(record.state.rawValue), .integer((record.request.priority ?? .normal).rank),
        time(record.nextAttempt), .text(JSONText.line(record.request)), text(record.path),
        record.bytes.map { .bits($0) } ?? .null, text(record.digest), text(record.code),
        text(record.message), .integer(Int64(record.attempts)), time(record.ended),
        record.life.map { .integer($0.whole) } ?? .null, record.life.map { .integer($0.stall) } ?? .null,
        time(record.fresh), text(record.request.group), text(record.file.map(text(of:))),
        record.directory.map { .bits($0) } ?? .null, text(record.movedFrom),
        text(record.wish.map { JSONText.line($0) }), text(record.request.key), text(record.disk),
        .integer(record.number),
      ])
  }

  static func text(_ text: String?) -> Value { text.map { .text($0) } ?? .null }

  static func time(_ time: Timestamp?) -> Value { time.map { .integer($0.nanoseconds) } ?? .null }

  static func text(of file: FileIdentity) -> String {
    "\(file.device) \(file.inode) \(file.size) \(file.modified.nanoseconds) \(file.changed.nanoseconds)"
  }

  static func identity(_ text: String) -> FileIdentity? {
    let parts = text.split(separator: " ")
    guard parts.count == 5, let device = UInt64(parts[0]), let inode = UInt64(parts[1]),
      let size = UInt64(parts[2]), let modified = Int64(parts[3]), let changed = Int64(parts[4])
    else { return nil }
    return FileIdentity(
      device: device, inode: inode, size: size, modified: Timestamp(nanoseconds: modified),
      changed: Timestamp(nanoseconds: changed))
  }
}

extension SessionLedger {
  /// Reads an event with its number and body.
  static func event(_ row: Statement) throws(LedgerFailure) -> SessionEvent {
    guard var event = JSONText.value(SessionEvent.self, from: try row.text(1)) else { throw row.damaged(1) }
    event.number = try row.integer(0)
    event.body = try row.optionalText(2)
    return event
  }
}
