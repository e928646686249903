package import TarnCore
package import TarnRuntime

/// The ledger in `ledger.sqlite`, in WAL mode: one writer, any number of readers in this process and others.
///
/// All numbers of 64 bits are kept as they are, unsigned ones beyond 2^63 - 1 by their bit pattern. A ledger
/// that is dropped without `close()` counts as stopped uncleanly, and is checked when it is next opened.
package final class SQLiteLedger: LedgerPort {
  package enum Mode: Sendable {
    /// Creates the database if need be, and brings it up to date. At most one per file (the folder's lock).
    case readWrite
    /// Changes nothing: every write throws `.readOnly`. Beside a writer, or on a directory that cannot be
    /// written.
    case readOnly
  }

  /// The connections that write. Both are used with the lock held, through commit and sync: whoever writes
  /// has to wait for the other one in any case.
  struct Writers {
    var durable: Connection?
    /// Opened when it is first needed.
    var volatile: Connection?
    /// True once a write of this run is in the database: it then says that it was not closed in order.
    var isMarked = false
    /// As they are in the database.
    var intentGroups = IntentGroups()
  }

  let opener: LedgerOpener
  let writers: Locked<Writers>
  let readers: ReaderPool
  /// nil where others write.
  let tally: RowTally?
  /// Whether this run has seen to the index of digests.
  let hasDigestIndex = Locked(false)
  /// When news of problems happen.
  let clock: any Clock

  /// - Parameter directory: exists; for `readWrite` its owner alone should be able to write in it.
  /// - Throws: `.newer` for a later schema and `.corrupt` for damage or another program's database, the file
  ///   untouched in both cases; `.missing` when there is no directory or, for `readOnly`, no ledger.
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

  /// Puts a damaged ledger out of the way, so that the next one opens empty. No ledger may be open there.
  ///
  /// - Returns: the new name, `ledger.sqlite.corrupt-20261121T043000Z`; durable.
  package static func setAside(directory: String, now: Timestamp) throws(LedgerFailure) -> String {
    let stamp = now.rfc3339.filter { $0 != ":" && $0 != "-" }
    return try DatabaseFile(directory: directory, name: DatabaseFile.ledger).setAside(stamp: stamp)
  }

  /// Whether a pass ever got so far as to record something there. True when it cannot be told.
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

  /// Reads all of it, indices as well.
  ///
  /// - Throws: `.corrupt` with what is wrong.
  package func requireWhole() throws(LedgerFailure) {
    try read { connection throws(LedgerFailure) in
      try LedgerOpener.require("PRAGMA integrity_check(20)", connection, file: opener.file.path)
    }
  }

  /// Something in it cannot be read: whoever opens it next to write looks at all of it, as after a crash.
  package func distrust() throws(LedgerFailure) {
    try writers.withLock { (writers) throws(LedgerFailure) in
      try writers.durable?.run("UPDATE state SET clean = 0")
      writers.isMarked = false
    }
  }

  /// Writes the log back into the database, unless somebody still reads an older state, and marks the
  /// database as closed in order. Afterwards every call throws; cursors that are open go on to their end.
  package func close() {
    readers.close()
    tally?.forget()
    writers.withLock { writers in
      writers.volatile = nil
      guard let durable = writers.durable else { return }
      writers.durable = nil
      // Nothing here is needed for what was applied: an unclean database is checked at the next start.
      if writers.isMarked { try? durable.run("UPDATE state SET clean = 1") }
      durable.setTimeout(milliseconds: 100)
      try? durable.run("PRAGMA wal_checkpoint(TRUNCATE)")
    }
  }
}
