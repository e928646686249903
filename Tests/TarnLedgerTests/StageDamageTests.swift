import Foundation
import TarnCore
import Testing

@testable import TarnLedger

/// The scratch file goes bad under a pass. It must not be taken for damage of the ledger, which is set aside for that.
@Suite struct StageDamageTests {
  private let scratch = Scratch()

  /// Overwrites the file without a name that this process holds open.
  private func damage(_ name: String) throws {
    let numbers = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    let paths = numbers.map { "/proc/self/fd/\($0)" }
    let path = try #require(
      paths.first {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: $0))?.hasPrefix(name) == true
      })
    let file = try #require(FileHandle(forWritingAtPath: path))
    let size = try file.seekToEnd()
    try file.seek(toOffset: 4096)
    try file.write(contentsOf: Data(repeating: 0xA5, count: Int(size) - 4096))
    try file.close()
  }

  @Test func damageIsAFailureOfTheDisk() throws {
    let path = scratch.path + "/stage"
    let stage = try SQLiteStage(path: path, runCapacity: 1 << 20)
    let long = String(repeating: "x", count: 64 << 10)
    // More than SQLite keeps in memory.
    for number in 1000..<1600 {
      let name = TarnLedgerTests.path("\(number)")
      try stage.add(Entry(path: name, size: 1, sources: [Source(url: "https://example.org/\(long)")]))
    }
    _ = try stage.entries()
    try damage(path)
    let failed = failure {
      let cursor = try stage.entries()
      while try cursor.next() != nil {}
    }
    #expect(failed?.code == .inputOutput)
    #expect(failed?.message.contains("scratch") == true)
    // A new file, and nothing of the old one.
    try stage.clear()
    #expect(try stage.entries().next() == nil)
  }

  @Test func damagedActionsAreAFailureOfTheDisk() throws {
    let path = scratch.path + "/stage"
    let stage = try SQLiteStage(path: path, runCapacity: 1 << 20)
    let long = String(repeating: "x", count: 64 << 10)
    for number in 1000..<1600 {
      let name = TarnLedgerTests.path("\(number)")
      let entry = Entry(path: name, size: 1, sources: [Source(url: "https://example.org/\(long)")])
      try stage.add(Action(.fetch, path: name, entry: entry))
    }
    _ = try stage.actions()
    try damage(path)
    let failed = failure {
      let cursor = try stage.actions()
      while try cursor.next() != nil {}
    }
    #expect(failed?.code == .inputOutput)
    #expect(failed?.message.contains("scratch") == true)
  }
}
