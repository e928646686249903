import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnLedger

/// Any moment may be the last: images of the files as a kill, or a cut through the log, leaves them.
@Suite struct CrashTests {
  private let scratch = Scratch()

  private func image(_ cut: Int? = nil) throws -> Scratch {
    let copy = Scratch()
    try write(bytes(of: scratch.ledger), to: copy.ledger)
    let log = try bytes(of: scratch.ledger + "-wal")
    try write(Array(log.prefix(cut ?? log.count)), to: copy.ledger + "-wal")
    return copy
  }

  /// The numbers in the rows are those of the lists applied: 0, 1, 2 and so on, each list whole.
  private func numbers(_ image: Scratch) throws -> (rows: [String], last: String?) {
    let ledger = try SQLiteLedger(directory: image.path)
    try ledger.requireWhole()
    let rows = try ledger.rows().drain().map(\.path.printable)
    try ledger.apply([.row(row(path("new")))])
    ledger.close()
    return (rows, try SQLiteLedger(directory: image.path, mode: .readOnly).fact(.phase))
  }

  @Test func everyApplySurvivesAKill() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    for number in 100..<130 {
      try ledger.apply([.row(row(path("\(number)"))), .fact(.phase, "\(number)")])
      if number % 3 == 0 { try ledger.applyVolatile([.activity([])]) }
      let (rows, last) = try numbers(image())
      #expect(rows == (100...number).map(String.init))
      #expect(last == "\(number)")
    }
  }

  @Test func everyCutOfTheLogIsAPrefix() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply([.row(row(path("100"))), .fact(.phase, "100")])
    let start = try bytes(of: scratch.ledger + "-wal").count
    for number in 101..<115 {
      let changes: [LedgerChange] = [.row(row(path("\(number)"))), .fact(.phase, "\(number)")]
      try number % 2 == 0 ? ledger.apply(changes) : ledger.applyVolatile(changes)
    }
    let end = try bytes(of: scratch.ledger + "-wal").count
    for cut in stride(from: start, through: end, by: 4999) {
      let (rows, last) = try numbers(image(cut))
      let reached = try #require(last.flatMap { Int($0) })
      #expect(rows == (100...reached).map(String.init))
    }
  }

  @Test func aCutOfTheFirstLogIsABeginning() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    let end = try bytes(of: scratch.ledger + "-wal").count
    for cut in stride(from: 0, through: end, by: 4001) {
      #expect(try numbers(image(cut)).rows == [])
    }
    ledger.close()
  }

  @Test func aLostLogIsTheOlderState() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply([.row(row(path("100"))), .fact(.phase, "100")])
    ledger.close()
    let again = try SQLiteLedger(directory: scratch.path)
    try again.apply([.row(row(path("101"))), .fact(.phase, "101")])
    #expect(try numbers(image(0)).rows == ["100"])
  }
}

/// A full disk, and a file system that cannot be written: small ones of their own, which root alone can mount.
@Suite(.enabled(if: Mounted.isPossible, "needs root and tmpfs")) struct FullDiskTests {
  @Test func aFullDiskChangesNothingAndPasses() throws {
    let disk = try Mounted("size=2m")
    let ledger = try SQLiteLedger(directory: disk.path)
    try ledger.apply([.row(row(path("a")))])
    let ballast = disk.path + "/ballast"
    _ = try? write([UInt8](repeating: 1, count: 4 << 20), to: ballast)
    let descriptor = open(ballast, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    let page = [UInt8](repeating: 1, count: 4096)
    while Glibc.write(descriptor, page, page.count) > 0 {}
    close(descriptor)
    let many = (0..<5000).map { LedgerChange.row(row(path("\($0 + 10_000)"))) }
    for _ in 0..<3 {
      let full = failure { try ledger.apply(many) }
      #expect(full?.code == .noSpace)
      #expect(full?.message.contains(disk.path) == true)
      #expect(failure { try ledger.applyVolatile(many) }?.code == .noSpace)
      #expect(try ledger.rows().drain() == [row(path("a"))])
    }
    unlink(ballast)
    try ledger.apply([.row(row(path("b")))])
    #expect(try ledger.rowCount() == 2)
    try ledger.requireWhole()
    ledger.close()
    #expect(try SQLiteLedger(directory: disk.path).rowCount() == 2)
  }

  @Test func aFullDiskRefusesANewLedger() throws {
    let disk = try Mounted("size=16k")
    #expect(failure { _ = try SQLiteLedger(directory: disk.path) }?.code == .noSpace)
  }

  @Test func aFullStageIsClearedAndUsedAgain() throws {
    let disk = try Mounted("size=2m")
    let stage = try SQLiteStage(path: disk.path + "/stage", runCapacity: 64 << 10)
    let entry = Entry(path: path("a"), listing: [UInt8](repeating: 7, count: 4000))
    #expect(failure { while true { try stage.add(entry) } }?.code == .noSpace)
    try stage.clear()
    for _ in 0..<100 { try stage.add(entry) }
    #expect(try stage.entries().drain().count == 100)
  }

  @Test func aReadOnlyFileSystemIsRead() throws {
    let disk = try Mounted("size=2m")
    let ledger = try SQLiteLedger(directory: disk.path)
    try ledger.apply([.row(row(path("a")))])
    ledger.close()
    let view = try Mounted(readOnly: disk)
    let reader = try SQLiteLedger(directory: view.path, mode: .readOnly)
    let cursor = try reader.rows()
    #expect(try reader.row(path("a")) != nil)
    #expect(try cursor.drain().count == 1)
    #expect(failure { _ = try SQLiteLedger(directory: view.path) }?.code == .readOnly)
  }
}

/// A tmpfs of its own, or a view of one.
final class Mounted {
  private let scratch = Scratch()
  var path: String { scratch.path }

  static let isPossible: Bool = {
    guard geteuid() == 0 else { return false }
    return (try? Mounted("size=64k")) != nil
  }()

  init(_ options: String) throws {
    try Self.run("/bin/mount", ["-t", "tmpfs", "-o", options, "tarn-test", scratch.path])
  }

  deinit {
    try? Self.run("/bin/umount", ["-l", scratch.path])
  }

  /// The same files, which nobody can write to here. The disk itself cannot be made read-only while a process that is just being started
  /// elsewhere holds copies of its descriptors.
  init(readOnly disk: Mounted) throws {
    try Self.run("/bin/mount", ["--bind", disk.path, scratch.path])
    try Self.run("/bin/mount", ["-o", "remount,bind,ro", scratch.path])
  }

  private static func run(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.killWhenLate()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
  }
}
