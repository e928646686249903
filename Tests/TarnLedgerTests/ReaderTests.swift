import Foundation
import TarnCore
import Testing

@testable import TarnLedger

/// Readers beside the writer.
@Suite struct ReaderTests {
  private let scratch = Scratch()

  @Test func aReaderBesideAWriterSeesASnapshot() throws {
    let writer = try SQLiteLedger(directory: scratch.path)
    try writer.apply((100..<200).map { .row(row(path("\($0)"))) })
    let reader = try SQLiteLedger(directory: scratch.path, mode: .readOnly)
    let cursor = try reader.rows()
    try writer.apply([.dropRow(path("150")), .row(row(path("999")))])
    try writer.applyVolatile([.fact(.phase, "planning")])
    #expect(try reader.fact(.phase) == "planning")
    #expect(try reader.row(path("150")) == nil)
    #expect(try cursor.drain().map(\.path) == (100..<200).map { path("\($0)") })
    #expect(try reader.rowCount() == 100)
    writer.close()
    #expect(try reader.rowCount() == 100)
    reader.close()
    #expect(try SQLiteLedger(directory: scratch.path).rowCount() == 100)
  }

  @Test func aReaderLeavesAnUncleanLedgerAsItIs() throws {
    let writer = try SQLiteLedger(directory: scratch.path)
    try writer.apply([.row(row(path("a")))])
    let crashed = Scratch()
    for suffix in ["", "-wal"] { try write(bytes(of: scratch.ledger + suffix), to: crashed.ledger + suffix) }
    let before = try bytes(of: crashed.ledger)
    let log = try bytes(of: crashed.ledger + "-wal")
    let reader = try SQLiteLedger(directory: crashed.path, mode: .readOnly)
    #expect(try reader.rowCount() == 1)
    reader.close()
    #expect(try bytes(of: crashed.ledger) == before)
    #expect(try bytes(of: crashed.ledger + "-wal") == log)
  }

  @Test func cursorsOutliveTheClose() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((100..<110).map { .row(row(path("\($0)"))) })
    let cursor = try ledger.rows()
    _ = try cursor.next()
    ledger.close()
    #expect(try cursor.drain().count == 9)
  }

  // MARK: How many rows there are

  /// Counts in the database itself.
  private func counted() throws -> Int {
    let reader = try SQLiteLedger(directory: scratch.path, mode: .readOnly)
    defer { reader.close() }
    return try reader.rowCount()
  }

  @Test func rowsAreCountedByWhoReadsThemAll() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((100..<200).map { .row(row(path("\($0)"))) })
    #expect(ledger.tally?.count == nil)
    let cursor = try ledger.rows()
    while try cursor.next() != nil { #expect(ledger.tally?.count == nil) }
    #expect(ledger.tally?.count == 100)
    #expect(try cursor.next() == nil)
    #expect(try ledger.rowCount() == 100)
    try ledger.apply([.fact(.feed, "a"), .dropPartial(path("100"))])
    #expect(ledger.tally?.count == 100)
  }

  @Test(arguments: [false, true]) func whatIsWrittenIsCountedAgain(isVolatile: Bool) throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    func write(_ changes: [LedgerChange]) throws {
      if isVolatile { try ledger.applyVolatile(changes) } else { try ledger.apply(changes) }
    }
    #expect(try ledger.rowCount() == 0)
    try write([.fact(.feed, "a"), .row(row(path("a"))), .row(row(path("b")))])
    #expect(try ledger.rowCount() == 2)
    // Replaced.
    try write([.row(row(path("b")))])
    #expect(try ledger.rowCount() == 2)
    try write([.dropRow(path("b")), .dropRow(path("c"))])
    #expect(try ledger.rowCount() == 1)
    #expect(try counted() == 1)
  }

  /// What it has counted by then is of an older state.
  @Test func aCursorThatIsBehindDoesNotCount() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((100..<200).map { .row(row(path("\($0)"))) })
    let cursor = try ledger.rows()
    _ = try cursor.next()
    try ledger.apply([.row(row(path("9")))])
    #expect(try cursor.drain().count == 99)
    #expect(try ledger.rowCount() == 101)
  }

  @Test func aPartDoesNotCountForAll() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply(["a", "b", "b/c", "d"].map { .row(row(path($0))) })
    #expect(try ledger.rows(in: Region(path("b"), .tree)).drain().count == 2)
    #expect(ledger.tally?.count == nil)
    #expect(try ledger.rowCount() == 4)
  }

  @Test func rowsUpToDamageAreNotAll() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((100..<200).map { .row(row(path("\($0)"))) })
    let connection = try Connection(scratch.ledger, flags: 0x2, file: scratch.ledger)
    try connection.execute("UPDATE rows SET digest = x'00' WHERE path = CAST('130' AS BLOB)")
    let cursor = try ledger.rows()
    #expect(failure { while try cursor.next() != nil {} }?.code == .corrupt)
    #expect(try cursor.next() == nil)
    #expect(try ledger.rowCount() == 100)
  }

  /// Somebody else may write.
  @Test func aReaderCountsEachTime() throws {
    let writer = try SQLiteLedger(directory: scratch.path)
    try writer.apply([.row(row(path("a")))])
    let reader = try SQLiteLedger(directory: scratch.path, mode: .readOnly)
    #expect(try reader.rows().drain().count == 1)
    #expect(try reader.rowCount() == 1)
    try writer.apply([.row(row(path("b")))])
    #expect(try reader.rowCount() == 2)
  }

  @Test func manyCursorsDoNotStopTheWriter() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    var cursors: [any RowCursor] = []
    for number in 0..<40 {
      try ledger.apply([.row(row(path("\(number + 100)")))])
      cursors.append(try ledger.rows())
    }
    for (number, cursor) in cursors.enumerated() { #expect(try cursor.drain().count == number + 1) }
  }

  @Test func manyThreadsAtOnce() async throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          for number in 0..<25 {
            let changes: [LedgerChange] = [
              .row(row(path("\(worker)-\(number)"))), .event(Event(when: moment(0), code: "c")),
            ]
            try worker == 0 ? ledger.applyVolatile(changes) : ledger.apply(changes)
            let rows = try ledger.rows().drain()
            #expect(rows.filter { $0.path.printable.hasPrefix("\(worker)-") }.count == number + 1)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try ledger.rowCount() == 100)
    #expect(try ledger.events(after: 0, limit: 1000).map(\.number) == Array(1...100))
  }
}
