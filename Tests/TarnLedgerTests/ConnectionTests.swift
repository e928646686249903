import CSQLite
import Foundation
import TarnCore
import Testing

@testable import TarnLedger

@Suite struct ConnectionTests {
  /// The rows of a transaction that nobody ended: they stay readable in the middle of a query.
  @Test func releasedMemoryIsInTheFile() throws {
    let path = NSTemporaryDirectory() + "tarn-connection-\(UUID())"
    defer { unlink(path) }
    let connection = try Connection(path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, file: path)
    try connection.beginUnjournaled(cacheMiB: 16)
    try connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, body BLOB)")
    let body = [UInt8](repeating: 7, count: 1000)
    for _ in 0..<5000 { try connection.run("INSERT INTO t (body) VALUES (?)", [.blob(body)]) }
    let rows = try connection.prepare("SELECT number, body FROM t ORDER BY number")
    for _ in 0..<100 { #expect(try rows.step()) }
    #expect(size(path) < 1 << 20)

    // What is little stays where it is.
    try connection.releaseMemory(cacheKiB: 1024, worthKiB: 16 << 10)
    #expect(size(path) < 1 << 20)
    try connection.releaseMemory(cacheKiB: 1024, worthKiB: 1024)
    #expect(size(path) >= 5_000_000)
    for number in 101...5000 {
      #expect(try rows.step())
      #expect(try rows.integer(0) == Int64(number))
      #expect(try rows.blob(1) == body)
    }
    #expect(try !rows.step())
    try connection.run("INSERT INTO t (body) VALUES (?)", [.blob(body)])
    let count = try connection.first("SELECT count(*) FROM t") { (row) throws(LedgerFailure) in
      try row.integer(0)
    }
    #expect(count == 5001)
  }

  /// Values of all lengths, a few of which need memory of their own, side by side with a query that is still being read.
  @Test func whatIsBoundIsWhatIsWritten() throws {
    let connection = try Connection("", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, file: "memory")
    try connection.execute(
      "CREATE TABLE t (number INTEGER PRIMARY KEY, a BLOB NOT NULL, b TEXT NOT NULL, c BLOB)")
    let lengths = [0, 1, 31, 300, 511, 512, 513, 700, 100_000, 3]
    func blob(_ length: Int) -> [UInt8] { (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ length) } }
    func text(_ length: Int) -> String { String(repeating: "ä", count: length / 2) + "\(length)" }
    for (number, length) in lengths.enumerated() {
      let last: Value = length == 300 ? .null : .blob(blob(length + 1))
      try connection.run(
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        [.integer(Int64(number)), .blob(blob(length)), .text(text(length)), last])
    }
    try connection.run("INSERT INTO t VALUES (99, ?, ?, NULL)", [.blob([]), .text("")])
    let largest = try connection.prepare("SELECT number FROM t WHERE a <> ? AND b <> ? ORDER BY number")
    try largest.bind([.blob(blob(100_000)), .text(text(513))])
    #expect(try largest.step())
    let rows = try connection.all("SELECT a, b, c FROM t WHERE number < ? ORDER BY number", [.integer(50)]) {
      (row) throws(LedgerFailure) in
      (try row.blob(0), try row.text(1), row.isNull(2) ? nil : try row.blob(2))
    }
    for (length, row) in zip(lengths, rows) {
      #expect(row.0 == blob(length) && row.1 == text(length))
      #expect(row.2 == (length == 300 ? nil : blob(length + 1)))
    }
    var rest = 1
    while try largest.step() { rest += 1 }
    #expect(rest == lengths.count + 1 - 2)
    let empty = try connection.first("SELECT a, b FROM t WHERE number = 99") { (row) throws(LedgerFailure) in
      (try row.blob(0), try row.text(1))
    }
    #expect(empty?.0 == [] && empty?.1 == "")
  }

  private func size(_ path: String) -> Int64 {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : -1
  }
}
