import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnLedger

/// What is opened, what is refused, and what is left untouched.
@Suite struct OpeningTests {
  private let scratch = Scratch()

  private func filled(_ count: Int = 3) throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply((0..<count).map { .row(row(path("\($0 + 1000)"))) } + [.fact(.feed, "f")])
    ledger.close()
  }

  /// What a killed pass said of its group is there for the next process, which drops it path by path.
  @Test func intentsThatWereSaidTogetherOutliveTheProcess() throws {
    let scratch = Scratch()
    let names = (10..<40).map { path("n\($0)") }
    let first = try SQLiteLedger(directory: scratch.path)
    try first.apply(names.map { .intent(intent($0)) })
    first.close()
    let reader = try SQLiteLedger(directory: scratch.path, mode: .readOnly)
    #expect(try reader.intents() == names.map { intent($0) })
    reader.close()
    let second = try SQLiteLedger(directory: scratch.path)
    try second.apply([.dropIntent(names[3]), .intent(intent(path("z")))])
    try second.apply(names.prefix(10).map { .dropIntent($0) })
    #expect(try second.intents() == names.dropFirst(10).map { intent($0) } + [intent(path("z"))])
    try second.apply(names.map { .dropIntent($0) })
    second.close()
    #expect(try SQLiteLedger(directory: scratch.path).intents() == [intent(path("z"))])
  }

  @Test func reopenKeepsAll() throws {
    let changes: [LedgerChange] = [
      .row(row(path("a"))), .intent(intent(path("b"))), .partial(partial(path("c"))),
      .trash(TrashRow(name: "t", path: path("d"), reason: .edited, isOwn: false, size: 1, when: moment(1))),
      .problem(Problem(name: [1], kind: .held, code: "c", message: "m", seen: moment(2))),
      .event(Event(when: moment(3), code: "published")),
      .hold(HeldPlan(id: "12345678", when: moment(4), count: 1)),
      .heldPath(plan: "12345678", path: path("e")),
      .activity([Activity(path: path("f"), received: 1, total: 2, rate: 3, source: "s")]), .fact(.phase, "h"),
    ]
    let first = try SQLiteLedger(directory: scratch.path)
    try first.apply(changes)
    first.close()
    #expect(try scratch.names() == ["ledger.sqlite"])
    let second = try SQLiteLedger(directory: scratch.path)
    #expect(try second.rows().drain() == [row(path("a"))])
    #expect(try second.intents() == [intent(path("b"))])
    #expect(try second.partials() == [partial(path("c"))])
    #expect(try second.trash().map(\.name) == ["t"])
    #expect(try second.problems(limit: 9).map(\.code) == ["c"])
    #expect(try second.events(after: 0, limit: 9).map(\.code) == ["published"])
    #expect(try second.held()?.id == "12345678")
    #expect(try second.heldPaths(plan: "12345678") == [path("e")])
    #expect(try second.activity().map(\.source) == ["s"])
    #expect(try second.fact(.phase) == "h")
    try second.requireWhole()
  }

  @Test func onlyTheOwnerReadsIt() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply([.fact(.phase, "b")])
    for name in try scratch.names() {
      var status = stat()
      #expect(stat(scratch.path + "/" + name, &status) == 0)
      #expect(status.st_mode & 0o777 == 0o600, "\(name)")
    }
    #expect(try scratch.names() == ["ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal"])
  }

  /// Nor is its log: what it leads to may be anybody's.
  @Test(arguments: ["ledger.sqlite", "ledger.sqlite-wal"]) func aLinkIsNoLedger(_ name: String) throws {
    try filled()
    let elsewhere = Scratch()
    let file = scratch.path + "/" + name
    if name == "ledger.sqlite" { try write(bytes(of: file), to: elsewhere.ledger) }
    unlink(file)
    #expect(symlink(elsewhere.ledger, file) == 0)
    for mode in [SQLiteLedger.Mode.readWrite, .readOnly] {
      let refused = failure { _ = try SQLiteLedger(directory: scratch.path, mode: mode) }
      #expect(refused?.code == .permission)
      #expect(refused?.message.contains("symbolic link") == true)
    }
  }

  @Test func aNewerSchemaIsRefusedUntouched() throws {
    let newer = Schema(steps: Schema.current.steps + ["CREATE TABLE later (a INTEGER) STRICT"])
    let ledger = try SQLiteLedger(directory: scratch.path, mode: .readWrite, schema: newer)
    try ledger.apply([.fact(.phase, "b")])
    // As a crash leaves it: the version stands in the log only.
    let crashed = Scratch()
    for name in ["ledger.sqlite", "ledger.sqlite-wal"] {
      try write(bytes(of: scratch.path + "/" + name), to: crashed.path + "/" + name)
    }
    ledger.close()
    for (directory, log) in [(scratch, false), (crashed, true)] {
      let before = try bytes(of: directory.ledger)
      let logBefore = log ? try bytes(of: directory.ledger + "-wal") : []
      for mode in [SQLiteLedger.Mode.readWrite, .readOnly] {
        let refused = failure { _ = try SQLiteLedger(directory: directory.path, mode: mode) }
        #expect(refused?.code == .newer)
        #expect(refused?.message.contains(directory.ledger) == true)
        #expect(refused?.message.contains("version is \(newer.version)") == true)
        #expect(try bytes(of: directory.ledger) == before)
        if log { #expect(try bytes(of: directory.ledger + "-wal") == logBefore) }
      }
    }
    let again = try SQLiteLedger(directory: crashed.path, mode: .readWrite, schema: newer)
    #expect(try again.fact(.phase) == "b")
  }

  @Test func anotherProgramsDatabaseIsRefusedUntouched() throws {
    let other = try Connection(scratch.ledger, flags: 0x6, file: scratch.ledger)
    try other.execute("CREATE TABLE a (b); INSERT INTO a VALUES (1)")
    let before = try bytes(of: scratch.ledger)
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path) }?.code == .corrupt)
    #expect(try bytes(of: scratch.ledger) == before)
    #expect(try scratch.names() == ["ledger.sqlite"])
  }

  @Test func garbageIsReportedUntouched() throws {
    var random = Seeded(3)
    for count in [2, 15, 16, 99, 100, 512, 4096, 10_000] {
      let garbage = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      try write(garbage, to: scratch.ledger)
      for mode in [SQLiteLedger.Mode.readWrite, .readOnly] {
        let refused = failure { _ = try SQLiteLedger(directory: scratch.path, mode: mode) }
        #expect(refused?.code == .corrupt, "\(count) bytes: \(refused?.message ?? "")")
      }
      #expect(try bytes(of: scratch.ledger) == garbage)
    }
  }

  /// A crash right after the file was made leaves no byte; SQLite takes one byte for none.
  @Test(arguments: [0, 1]) func anEmptyFileIsABeginning(_ count: Int) throws {
    try write([UInt8](repeating: 0, count: count), to: scratch.ledger)
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path, mode: .readOnly) }?.code == .missing)
    #expect(try SQLiteLedger(directory: scratch.path).rowCount() == 0)
  }

  @Test func aLogWithoutItsDatabaseIsDropped() throws {
    let ledger = try SQLiteLedger(directory: scratch.path)
    try ledger.apply([.row(row(path("a")))])
    let fresh = Scratch()
    try write(bytes(of: scratch.ledger + "-wal"), to: fresh.ledger + "-wal")
    #expect(try SQLiteLedger(directory: fresh.path).rowCount() == 0)
  }

  @Test func missingOnesAreToldApart() throws {
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path + "/none") }?.code == .missing)
    #expect(failure { _ = try SQLiteLedger(directory: scratch.path, mode: .readOnly) }?.code == .missing)
    #expect(try scratch.names() == [])
    try filled()
    let reader = try SQLiteLedger(directory: scratch.path, mode: .readOnly)
    #expect(failure { try reader.apply([.fact(.phase, "b")]) }?.code == .readOnly)
    #expect(failure { try reader.applyVolatile([.fact(.phase, "b")]) }?.code == .readOnly)
  }

  @Test func linksAreRefusedAndLinkedDirectoriesAreNot() throws {
    try filled()
    let links = Scratch()
    try FileManager.default.createSymbolicLink(
      atPath: links.path + "/folder", withDestinationPath: scratch.path)
    #expect(try SQLiteLedger(directory: links.path + "/folder").rowCount() == 3)
    try FileManager.default.createSymbolicLink(atPath: links.ledger, withDestinationPath: scratch.ledger)
    #expect(failure { _ = try SQLiteLedger(directory: links.path) }?.code == .permission)
    try FileManager.default.removeItem(atPath: links.ledger)
    try FileManager.default.createDirectory(atPath: links.ledger, withIntermediateDirectories: false)
    #expect(failure { _ = try SQLiteLedger(directory: links.path) }?.code == .corrupt)
  }

  @Test func setAsideMakesRoom() throws {
    let now = try #require(Timestamp(year: 2026, month: 11, day: 21, hour: 4, minute: 30))
    #expect(failure { _ = try SQLiteLedger.setAside(directory: scratch.path, now: now) }?.code == .missing)
    for suffix in ["", ".2", ".3"] {
      try write(Array("garbage".utf8), to: scratch.ledger)
      try write([1], to: scratch.ledger + "-wal")
      let name = try SQLiteLedger.setAside(directory: scratch.path, now: now)
      #expect(name == "ledger.sqlite.corrupt-20261121T043000Z" + suffix)
      #expect(try bytes(of: scratch.path + "/" + name) == Array("garbage".utf8))
      #expect(try bytes(of: scratch.path + "/" + name + "-wal") == [1])
    }
    #expect(try SQLiteLedger(directory: scratch.path).rowCount() == 0)
  }

  @Test func namesWithEveryKindOfByteWork() throws {
    let odd = scratch.path + "/a b%41?mode=x#ä&\u{7}"
    try FileManager.default.createDirectory(atPath: odd, withIntermediateDirectories: false)
    for _ in 0..<2 {
      let ledger = try SQLiteLedger(directory: odd)
      try ledger.apply([.event(Event(when: moment(0), code: "c"))])
      ledger.close()
    }
    #expect(try SQLiteLedger(directory: odd, mode: .readOnly).events(after: 0, limit: 9).count == 2)
    #expect(try scratch.names() == [odd.split(separator: "/").last.map(String.init)])
  }
}
