import Foundation
import TarnCore
import Testing

@testable import TarnLedger

/// Damaged files are reported, or still readable: never a crash, never a row that cannot be (I11).
@Suite struct DamageTests {
  private let scratch = Scratch()

  private func sample() throws -> [UInt8] {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((0..<60).map { .row(row(path("\($0 + 1000)"))) })
    try ledger.apply([.event(Event(when: moment(1), code: "c", path: path("a"))), .intent(intent(path("b")))])
    try ledger.apply([.problem(Problem(name: [1], kind: .held, code: "c", message: "m", seen: moment(2)))])
    ledger.close()
    return try bytes(of: scratch.ledger)
  }

  /// Opens and reads everything.
  private func readAll(_ mode: SQLiteLedger.Mode) throws {
    let ledger = try SQLiteLedger(directory: scratch.path, mode: mode)
    _ = try ledger.rows().drain()
    _ = try ledger.row(path("1001"))
    _ = try ledger.rows(digest: digest(1), after: nil, limit: 100)
    _ = try ledger.rowBytes()
    _ = try ledger.intents()
    _ = try ledger.partials()
    _ = try ledger.trash()
    _ = try ledger.problems(limit: 100)
    _ = try ledger.events(after: 0, limit: 100)
    _ = try ledger.held()
    _ = try ledger.activity()
    _ = try ledger.fact(.phase)
    ledger.close()
  }

  /// Damage that no pass comes by, such as in an index: who asks finds it, and the next one to write looks at all of it.
  @Test func aDistrustedLedgerIsCheckedWhenItIsOpened() throws {
    var damaged = try sample()
    let index = try SQLiteLedger(directory: scratch.path)
    #expect(throws: Never.self) { try index.requireWhole() }
    index.close()
    let root = try page(of: "deletions")
    for offset in 0..<4096 {
      damaged[(root - 1) * 4096 + offset] = UInt8(truncatingIfNeeded: offset &* 31 &+ 7)
    }
    try write(damaged, to: scratch.ledger)
    let ledger = try SQLiteLedger(directory: scratch.path)
    let failure = #expect(throws: LedgerFailure.self) { try ledger.requireWhole() }
    #expect(failure?.code == .corrupt)
    try ledger.distrust()
    ledger.close()
    let opening = #expect(throws: LedgerFailure.self) { try SQLiteLedger(directory: scratch.path) }
    #expect(opening?.code == .corrupt)
  }

  /// The root page of an index, from 1.
  private func page(of name: String) throws -> Int {
    let connection = try Connection(scratch.ledger, flags: 1, file: scratch.ledger)
    let page = try connection.first("SELECT rootpage FROM sqlite_schema WHERE name = ?", [Value.text(name)]) {
      row throws(LedgerFailure) in try row.integer(0)
    }
    return Int(try #require(page))
  }

  private func check(_ damaged: [UInt8], _ mode: SQLiteLedger.Mode, _ what: String) throws {
    try write(damaged, to: scratch.ledger)
    for suffix in ["-wal", "-shm"] { unlink(scratch.ledger + suffix) }
    do {
      try readAll(mode)
    } catch let error as LedgerFailure {
      #expect([.corrupt, .newer].contains(error.code), "\(what): \(error)")
    }
  }

  /// The header of the file, and what follows it up to the first cells, in more ways than the rest.
  @Test(arguments: 0..<4) func everyByteOfThePageOne(_ part: Int) throws {
    let whole = try sample()
    for index in stride(from: part, to: 4096, by: 4) {
      let flips: [UInt8] = index < 200 ? [0xFF, 0x01, 0x80] : [0xFF]
      for flip in flips {
        var damaged = whole
        damaged[index] ^= flip
        try check(
          damaged, index < 100 || index % 32 == part ? .readWrite : .readOnly, "byte \(index) ^ \(flip)")
      }
    }
  }

  @Test func everyNinetySeventhByteElsewhere() throws {
    let whole = try sample()
    for index in stride(from: 4096, to: whole.count, by: 97) {
      var damaged = whole
      damaged[index] ^= 0xFF
      try check(damaged, .readWrite, "byte \(index)")
    }
  }

  @Test func everyTruncation() throws {
    let whole = try sample()
    for count in stride(from: 2, to: whole.count, by: 1021) {
      try check(Array(whole[..<count]), .readWrite, "\(count) bytes")
      try write(Array(whole[..<count]), to: scratch.ledger)
      // Less than half of it cannot hold the rows.
      if count < whole.count / 2 { #expect(throws: LedgerFailure.self) { try readAll(.readWrite) } }
    }
  }

  @Test func aRowThatCannotBeIsDamage() throws {
    _ = try sample()
    let connection = try Connection(scratch.ledger, flags: 0x2, file: scratch.ledger)
    try connection.execute("UPDATE rows SET digest = x'00' WHERE path = CAST('1030' AS BLOB)")
    let ledger = try SQLiteLedger(directory: scratch.path)
    let cursor = try ledger.rows()
    #expect(failure { while try cursor.next() != nil {} }?.code == .corrupt)
    #expect(try cursor.next() == nil)
    #expect(failure { _ = try ledger.row(path("1030")) }?.code == .corrupt)
    #expect(try ledger.row(path("1031")) != nil)
    // The connection is not left in the cursor's transaction.
    try ledger.apply([.row(row(path("9")))])
    #expect(try ledger.row(path("9")) != nil)
  }

  @Test func anUncleanLedgerIsChecked() throws {
    let whole = try sample()
    // The kind of a leaf that holds rows: nothing that opens the ledger or writes a fact looks at it.
    let marker = Array("1059".utf8)
    let place = try #require(whole.indices.last { whole[$0...].starts(with: marker) })
    var damaged = whole
    damaged[place / 4096 * 4096] ^= 0xFF
    try write(damaged, to: scratch.ledger)
    let trusting = try SQLiteLedger(directory: scratch.path)
    #expect(throws: LedgerFailure.self) { try trusting.requireWhole() }
    try trusting.apply([.fact(.phase, "b")])
    // Dropped without close: not clean any more.
    let crashed = Scratch()
    for suffix in ["", "-wal"] {
      try write(bytes(of: scratch.ledger + suffix), to: crashed.ledger + suffix)
    }
    #expect(failure { _ = try SQLiteLedger(directory: crashed.path) }?.code == .corrupt)
    _ = try SQLiteLedger.setAside(directory: crashed.path, now: moment(0))
    #expect(try SQLiteLedger(directory: crashed.path).rowCount() == 0)
  }
}
