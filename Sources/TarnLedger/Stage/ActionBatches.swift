import TarnCore

/// Actions on their way into the scratch database: as they mostly come in the order of their paths, some lie in a row together.
///
/// A phase whose actions come in another order has a row for each from then on, and what lies together already is taken apart.
struct ActionBatches {
  private struct Batch {
    var first: RelativePath
    var ordinal: Int64
    var count = 0
    var writer = ByteWriter()
  }

  private struct Phase {
    var batch: Batch?
    /// Of the action that came last.
    var last: RelativePath?
    var isOrdered = true
    /// Emptied, to write into next.
    var spare = ByteWriter()
  }

  /// How many lie together, and their bytes: less than a page of the database.
  private static let most = 32
  private static let mostBytes = 3500

  private var phases: [Action.Phase: Phase] = [:]
  private(set) var count: Int64 = 0

  mutating func add(_ action: Action, _ connection: Connection) throws(LedgerFailure) {
    var phase = phases.removeValue(forKey: action.phase) ?? Phase()
    if phase.isOrdered, let last = phase.last, action.path < last {
      try Self.write(&phase, action.phase, connection)
      try Self.takeApart(action.phase, connection)
      phase.isOrdered = false
    }
    phase.last = action.path
    var batch = phase.batch.take() ?? Batch(first: action.path, ordinal: count, writer: phase.spare)
    ActionCodec.encode(action, into: &batch.writer)
    batch.count += 1
    let isFull = batch.count >= Self.most || batch.writer.bytes.count >= Self.mostBytes
    phase.batch = batch
    if isFull || !phase.isOrdered { try Self.write(&phase, action.phase, connection) }
    count += 1
    phases[action.phase] = phase
  }

  /// Writes what waits for more.
  mutating func flush(_ connection: Connection) throws(LedgerFailure) {
    for phase in phases.keys { try Self.write(&phases[phase, default: Phase()], phase, connection) }
  }

  private static func write(
    _ phase: inout Phase, _ key: Action.Phase, _ connection: Connection
  ) throws(LedgerFailure) {
    guard let batch = phase.batch.take() else { return }
    try put(key, batch.first, ordinal: batch.ordinal, count: batch.count, batch.writer.bytes, connection)
    phase.spare = batch.writer
    phase.spare.removeAll()
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

  /// Gives each action a row of its own, some rows at a time. Of one path the order stays: the numbers of a row's actions lie
  /// before those of the next row.
  private static func takeApart(_ phase: Action.Phase, _ connection: Connection) throws(LedgerFailure) {
    let key = Value.integer(Int64(phase.rawValue))
    while true {
      let rows = try connection.all(
        "SELECT path, ordinal, body FROM actions WHERE phase = ? AND count > 1 LIMIT 256", [key]
      ) { row throws(LedgerFailure) in
        let actions = try row.decoded(2) { reader throws(DamagedBytes) in
          var actions: [Action] = []
          while !reader.isAtEnd { actions.append(try ActionCodec.decode(phase: phase, from: &reader)) }
          return actions
        }
        return (path: try row.blob(0), ordinal: try row.integer(1), actions: actions)
      }
      guard !rows.isEmpty else { return }
      for row in rows {
        try connection.run(
          "DELETE FROM actions WHERE phase = ? AND path = ? AND ordinal = ?",
          [key, .blob(row.path), .integer(row.ordinal)])
        for (index, action) in row.actions.enumerated() {
          var writer = ByteWriter()
          ActionCodec.encode(action, into: &writer)
          try put(
            phase, action.path, ordinal: row.ordinal + Int64(index), count: 1, writer.bytes, connection)
        }
      }
    }
  }
}
