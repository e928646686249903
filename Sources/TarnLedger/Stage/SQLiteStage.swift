import CSQLite
import Glibc
package import TarnCore
import TarnRuntime

/// The stage in a scratch database: no journal, no sync, one transaction that never ends. It is gone with this object or with the
/// process.
///
/// Entries may be read while actions are added. Nothing else may be read while something is written.
package final class SQLiteStage: StagePort {
  private struct State {
    let connection: Connection
    var writer = ByteWriter()
    /// The entries that are not in the database yet.
    var buffer: RunBuffer
    /// The sorted runs of entries in the database, each with its first and last number.
    var runs: [ClosedRange<Int64>] = []
    var actions = ActionBatches()

    /// Writes the buffer as a separate run.
    mutating func flush() throws(LedgerFailure) {
      guard !buffer.isEmpty else { return }
      let first = (runs.last?.upperBound ?? 0) + 1
      var next = first
      try buffer.drain { path, body throws(LedgerFailure) in
        try connection.run(
          "INSERT INTO entries (number, path, body) VALUES (?, ?, ?)",
          [.integer(next), .blob(path), .blob(body)])
        next += 1
      }
      runs.append(first...(next - 1))
    }
  }

  private let scratch: ScratchFile
  private let runCapacity: Int
  /// The lock is held during each call, which is short: it waits for no other process and for no sync.
  private let state: Locked<State>

  /// - Parameter path: a file for the stage alone, on the file system that gives the space. An existing file is deleted, and the
  ///   new one loses its name at once. `nil` for SQLite's place for temporary files.
  package convenience init(path: String? = nil) throws(LedgerFailure) {
    try self.init(path: path, runCapacity: RunBuffer.capacity)
  }

  /// - Parameter runCapacity: the bytes of entries that are sorted in memory.
  init(path: String?, runCapacity: Int) throws(LedgerFailure) {
    let scratch = try ScratchFile(path: path)
    self.scratch = scratch
    self.runCapacity = runCapacity
    state = Locked(
      State(connection: try scratch.open(), buffer: RunBuffer(capacity: runCapacity)))
  }

  /// Accesses the scratch database. Damage there is reported as a fault of the disk: as `.corrupt` it would be taken for damage of
  /// the ledger, which would be set aside.
  private func change<Result>(
    _ body: (inout State) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result {
    do throws(LedgerFailure) {
      return try state.withLock(body)
    } catch {
      guard error.code == .corrupt else { throw error }
      throw Self.damaged(error.message)
    }
  }

  private static func damaged(_ message: String) -> LedgerFailure {
    LedgerFailure(
      .inputOutput, "what this pass wrote into its scratch file is damaged; check the disk: \(message)")
  }

  package func clear() throws(LedgerFailure) {
    try change { (state) throws(LedgerFailure) in
      // A new file gives the space back, and failures of the old one are forgotten.
      state = State(connection: try scratch.open(), buffer: RunBuffer(capacity: runCapacity))
    }
  }

  package func add(_ entry: Entry) throws(LedgerFailure) {
    try change { (state) throws(LedgerFailure) in
      state.writer.removeAll()
      EntryCodec.encode(entry, into: &state.writer)
      state.buffer.append(path: entry.path.bytes, body: state.writer.bytes)
      if state.buffer.isFull { try state.flush() }
    }
  }

  package func add(_ action: Action) throws(LedgerFailure) {
    try change { (state) throws(LedgerFailure) in
      try state.actions.add(action, state.connection)
    }
  }

  package func actionCount() throws(LedgerFailure) -> Int {
    Int(state.withLock { $0.actions.count })
  }

  package func entries() throws(LedgerFailure) -> any EntryCursor {
    let merge = try change { (state) throws(LedgerFailure) in
      try state.flush()
      // All entries have come: the memory for sorting is freed for what follows.
      state.buffer = RunBuffer(capacity: runCapacity)
      var runs: [Statement] = []
      for run in state.runs {
        let statement = try state.connection.prepare(
          "SELECT path, body FROM entries WHERE number BETWEEN ? AND ? ORDER BY number")
        try statement.bind([.integer(run.lowerBound), .integer(run.upperBound)])
        runs.append(statement)
      }
      return try RunMerge(runs)
    }
    return EntryReader(stage: self, merge: merge)
  }

  package func actions() throws(LedgerFailure) -> any ActionCursor {
    let statement = try change { (state) throws(LedgerFailure) in
      try state.actions.flush(state.connection)
      // The actions are read once, in order: the memory for sorting is now more useful to the transfers.
      try state.connection.releaseMemory(cacheKiB: 256, worthKiB: 1024)
      return try state.connection.prepare(
        "SELECT phase, body FROM actions ORDER BY phase, path, ordinal")
    }
    return ActionReader(stage: self, statement: statement)
  }

  /// Reads entries. It takes the stage's lock for each step, and keeps the stage alive.
  private final class EntryReader: EntryCursor {
    private let stage: SQLiteStage
    private var merge: RunMerge

    init(stage: SQLiteStage, merge: RunMerge) {
      self.stage = stage
      self.merge = merge
    }

    func next() throws(LedgerFailure) -> Entry? {
      try stage.change { (_) throws(LedgerFailure) in
        try merge.next { (path, row) throws(LedgerFailure) in
          try row.decoded(1) { reader throws(DamagedBytes) in
            try EntryCodec.decode(path: RelativePath(trusted: path), from: &reader)
          }
        }
      }
    }
  }

  /// Reads actions, row by row, in the same way.
  private final class ActionReader: ActionCursor {
    private let stage: SQLiteStage
    private var statement: Statement?
    /// The unread bytes of the current row.
    private var rest = ByteReader([])
    private var phase = Action.Phase.payload

    init(stage: SQLiteStage, statement: Statement) {
      self.stage = stage
      self.statement = statement
    }

    func next() throws(LedgerFailure) -> Action? {
      if rest.isAtEnd, try !readRow() { return nil }
      do throws(DamagedBytes) {
        return try ActionCodec.decode(phase: phase, from: &rest)
      } catch {
        throw SQLiteStage.damaged("an action cannot be read")
      }
    }

    /// Reads the next row.
    ///
    /// - Returns: false at the end.
    private func readRow() throws(LedgerFailure) -> Bool {
      guard let row = statement else { return false }
      let isThere = try stage.change { (_) throws(LedgerFailure) -> Bool in
        guard try row.step() else { return false }
        guard let phase = UInt8(exactly: try row.integer(0)).flatMap(Action.Phase.init(rawValue:)) else {
          throw row.damaged(0)
        }
        self.phase = phase
        rest = ByteReader(try row.blob(1))
        return true
      }
      if !isThere { statement = nil }
      return isThere
    }
  }
}
