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

    try connection.releaseMemory(cacheKiB: 1024)
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

  private func size(_ path: String) -> Int64 {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : -1
  }
}
