import TarnCore

/// Batches actions on their way into the scratch database. They mostly come in the order of their paths, so several share a row.
///
/// A phase whose actions come in another order gets a row for each from then on, and its earlier rows are split.
struct ActionBatches {
  private struct Phase {
    /// The path and the ordinal of the first action that waits.
    var path = RelativePath(trusted: [])
    var ordinal: Int64 = 0
    /// The number of actions that wait to be written, and their bytes.
    var count = 0
    var writer = ByteWriter()
    /// The path of the action that came last.
    var last: RelativePath?
    var isOrdered = true
  }

  /// The most actions in a row, and their bytes: less than a page of the database.
  private static let most = 32
  private static let mostBytes = 3500

  /// The phases, indexed by `Action.Phase.rawValue`.
  private var phases = Array(repeating: Phase(), count: 4)
  private(set) var count: Int64 = 0

  mutating func add(_ action: Action, _ connection: Connection) throws(LedgerFailure) {
    let number = Int(action.phase.rawValue)
    if phases[number].isOrdered, let last = phases[number].last, action.path < last {
      try write(action.phase, connection)
      try Self.takeApart(action.phase, connection)
      phases[number].isOrdered = false
    }
    phases[number].last = action.path
    if phases[number].count == 0 { (phases[number].path, phases[number].ordinal) = (action.path, count) }
    phases[number].count += 1
    count += 1
    ActionCodec.encode(action, into: &phases[number].writer)
    let isFull = phases[number].count >= Self.most || phases[number].writer.bytes.count >= Self.mostBytes
    if isFull || !phases[number].isOrdered { try write(action.phase, connection) }
  }

  /// Writes the actions that wait.
  mutating func flush(_ connection: Connection) throws(LedgerFailure) {
    for phase in Action.Phase.transfers + [.deletion] { try write(phase, connection) }
  }

  private mutating func write(_ phase: Action.Phase, _ connection: Connection) throws(LedgerFailure) {
    let number = Int(phase.rawValue)
    let waiting = phases[number]
    guard waiting.count > 0 else { return }
    try Self.put(
      phase, waiting.path, ordinal: waiting.ordinal, count: waiting.count, waiting.writer.bytes, connection)
    phases[number].count = 0
    phases[number].writer.removeAll()
  }

  private static func put(
    _ phase: Action.Phase, _ path: RelativePath, ordinal: Int64, count: Int, _ body: [UInt8],
    _ connection: Connection
  ) throws(LedgerFailure) {
    try connection.run(
      "INSERT INTO actions (phase, path, ordinal, count, body) VALUES (?, ?, ?, ?, ?)",
      [
        .integer(Int64(phase.rawValue)), .blob(path.bytes), .integer(ordinal), .integer(Int64(count)),
        .blob(body),
      ])
  }

  /// Splits the rows of a phase, so that each action has its own. Actions with the same path keep their order, because the ordinals
  /// of one row precede those of the next.
  private static func takeApart(_ phase: Action.Phase, _ connection: Connection) throws(LedgerFailure) {
    let key = Value.integer(Int64(phase.rawValue))
    var behind: [Value] = [.blob([]), .integer(-1)]
    while true {
      let next = try connection.first(
        """
        SELECT path, ordinal, body FROM actions WHERE phase = ? AND (path, ordinal) > (?, ?) AND count > 1
        ORDER BY path, ordinal LIMIT 1
        """, [key] + behind
      ) { row throws(LedgerFailure) in
        let actions = try row.decoded(2) { reader throws(DamagedBytes) in
          var actions: [Action] = []
          while !reader.isAtEnd { actions.append(try ActionCodec.decode(phase: phase, from: &reader)) }
          return actions
        }
        return (path: try row.blob(0), ordinal: try row.integer(1), actions: actions)
      }
      guard let row = next else { return }
      behind = [.blob(row.path), .integer(row.ordinal)]
      try connection.run("DELETE FROM actions WHERE phase = ? AND path = ? AND ordinal = ?", [key] + behind)
      for (index, action) in row.actions.enumerated() {
        var writer = ByteWriter()
        ActionCodec.encode(action, into: &writer)
        try put(phase, action.path, ordinal: row.ordinal + Int64(index), count: 1, writer.bytes, connection)
      }
    }
  }
}
