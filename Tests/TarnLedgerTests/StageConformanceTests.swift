import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnLedger

/// The contract of `StagePort`, over the scratch database and over the fake.
@Suite struct StageConformanceTests {
  enum Subject: CaseIterable {
    case memory, temporary, file
    /// Every few entries are a run of their own.
    case shortRuns
  }

  private let scratch = Scratch()
  private var file: String { scratch.path + "/stage" }

  private func make(_ subject: Subject) throws -> any StagePort {
    switch subject {
    case .memory: MemoryStage()
    case .temporary: try SQLiteStage()
    case .file: try SQLiteStage(path: file)
    case .shortRuns: try SQLiteStage(path: nil, runCapacity: 100)
    }
  }

  private func entry(_ path: RelativePath, _ number: Int = 0) -> Entry {
    Entry(path: path, size: UInt64(number), sources: [Source(url: "https://example.org/\(number)")])
  }

  @Test(arguments: Subject.allCases) func newOneIsEmpty(_ subject: Subject) throws {
    let stage = try make(subject)
    #expect(try stage.entries().next() == nil)
    #expect(try stage.actions().next() == nil)
    #expect(try stage.actionCount() == 0)
    try stage.clear()
    #expect(try stage.entries().next() == nil)
  }

  /// What is dropped can be read on, and does not mix with what comes then.
  @Test(arguments: Subject.allCases) func aCursorOutlivesWhatIsDropped(_ subject: Subject) throws {
    let stage = try make(subject)
    let actions = ["a", "b"].map { Action(.fetch, phase: .payload, path: path($0), entry: entry(path($0))) }
    for action in actions { try stage.add(action) }
    let former = try stage.actions()
    try stage.clear()
    try stage.add(actions[1])
    #expect(try former.drain() == actions)
    #expect(try stage.actions().drain() == [actions[1]])
  }

  @Test(arguments: Subject.allCases) func entriesComeByPathThenInTheirOrder(_ subject: Subject) throws {
    let stage = try make(subject)
    var random = Seeded(5)
    var entries: [Entry] = []
    for number in 0..<2000 {
      let name = [0x61] + random.bytes(upTo: 2).map { $0 % 4 &* 85 }
      entries.append(entry(RelativePath(trusted: name), number))
      try stage.add(entries[number])
    }
    let sorted = entries.sorted { left, right in
      left.path == right.path
        ? left.size! < right.size! : left.path.bytes.lexicographicallyPrecedes(right.path.bytes)
    }
    #expect(try stage.entries().drain() == sorted)
    // Reading is no end: it can be done again, and more can be added.
    try stage.add(entry(path("a"), 3000))
    #expect(try stage.entries().drain().count == 2001)
    #expect(try stage.entries().drain().filter { $0.path == path("a") }.last?.size == 3000)
  }

  @Test(arguments: Subject.allCases) func actionsComeByPhaseThenByPath(_ subject: Subject) throws {
    let stage = try make(subject)
    var below = Action(.fetch, phase: .payload, path: path("c"), entry: entry(path("c"), 2))
    below.blocker = path("blocker")
    below.restoresMode = true
    var adopted = row(path("q"))
    adopted.isAdopted = true
    let actions = [
      Action(.delete, phase: .deletion, path: path("a"), row: row(path("a"))),
      Action(.fetch, phase: .index, path: path("b"), entry: entry(path("b"))),
      Action(.update, phase: .payload, path: path("z"), entry: entry(path("z"))),
      Action(
        .inspect, phase: .payload, path: path("c"), entry: entry(path("c")), present: row(path("c")).identity),
      Action(.forget, phase: .payload, path: RelativePath(trusted: [0xFF]), row: adopted),
      below,
    ]
    for action in actions { try stage.add(action) }
    #expect(try stage.actionCount() == 6)
    #expect(try stage.actions().drain() == [3, 5, 2, 4, 1, 0].map { actions[$0] })
  }

  /// Many, in order as far as they go: some phases stay in order, some do not, early or late, and paths come twice.
  @Test(arguments: Subject.allCases, [0, 3, 50, 1000])
  func manyActionsComeInOrder(_ subject: Subject, ordered: Int) throws {
    let (stage, expected) = (try make(subject), MemoryStage())
    var random = Seeded(UInt64(ordered))
    for number in 0..<600 {
      let isLate = number > ordered && number.isMultiple(of: 7)
      let name = path("\(isLate ? 1000 + Int(random.next() % 600) : 1000 + number / 2)")
      var action = Action(
        [.fetch, .replace, .delete][number % 3], phase: [.payload, .deletion, .index][number % 5 % 3],
        path: name)
      if number % 4 > 0 { action.entry = entry(number % 4 == 1 ? name : path("other"), number) }
      if number % 3 == 0 { action.present = row(name, size: UInt64(number)).identity }
      try stage.add(action)
      try expected.add(action)
      // Reading is no end.
      if number == 299 { #expect(try stage.actions().drain() == expected.actions().drain()) }
    }
    #expect(try stage.actionCount() == 600)
    #expect(try stage.actions().drain() == expected.actions().drain())
  }

  /// What cannot be removed is named, and not what follows from it.
  @Test func anOldStageThatStaysIsReported() throws {
    let scratch = Scratch()
    let path = scratch.path + "/stage.sqlite"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let failure = #expect(throws: LedgerFailure.self) { _ = try SQLiteStage(path: path) }
    #expect(failure?.message.contains("removing the one before: Is a directory (errno 21)") == true)
  }

  @Test(arguments: Subject.allCases) func everyKindOfActionIsKept(_ subject: Subject) throws {
    let stage = try make(subject)
    let actions = Action.Kind.allCases.enumerated().map { Action($1, path: path("\($0 + 10)")) }
    for action in actions { try stage.add(action) }
    #expect(try stage.actions().drain() == actions)
  }

  @Test(arguments: Subject.allCases) func actionsAreAddedWhileEntriesAreRead(_ subject: Subject) throws {
    let stage = try make(subject)
    for number in 0..<500 { try stage.add(entry(path("\(number + 1000)"), number)) }
    let entries = try stage.entries()
    var count = 0
    while let entry = try entries.next() {
      #expect(entry.size == UInt64(count))
      try stage.add(Action(.fetch, phase: count % 3 == 0 ? .index : .payload, path: entry.path, entry: entry))
      count += 1
    }
    #expect(count == 500)
    #expect(try stage.actions().drain().count == 500)
  }

  @Test(arguments: Subject.allCases) func clearForgets(_ subject: Subject) throws {
    let stage = try make(subject)
    for round in 0..<3 {
      for number in 0..<100 { try stage.add(entry(path("\(round)-\(number)"))) }
      try stage.add(Action(.fetch, path: path("a")))
      let open = try stage.entries()
      _ = try open.next()
      #expect(try stage.entries().drain().count == 100)
      try stage.clear()
      #expect(try stage.entries().next() == nil)
      #expect(try stage.actions().next() == nil)
      #expect(try stage.actionCount() == 0)
    }
  }

  /// A plan is read on while the stage takes over a part of it.
  @Test(arguments: Subject.allCases) func actionsAreReadBeyondAClear(_ subject: Subject) throws {
    let stage = try make(subject)
    for number in 0..<500 {
      let phase: Action.Phase = number.isMultiple(of: 5) ? .payload : .deletion
      try stage.add(Action(.delete, phase: phase, path: path("\(1000 + number)"), row: row(path("a"))))
    }
    let deletions = try stage.actions().drain().filter { $0.phase == .deletion }
    let former = try stage.actions()
    try stage.clear()
    while let action = try former.next() {
      if action.phase == .deletion { try stage.add(action) }
    }
    #expect(try stage.actionCount() == 400 && stage.actions().drain() == deletions)
  }

  @Test func theFileHasNoNameWhileItIsUsed() throws {
    try write(Array("left over".utf8), to: file)
    try write(Array("left over".utf8), to: file + "-journal")
    let stage = try SQLiteStage(path: file, runCapacity: 10_000)
    #expect(try scratch.names() == [])
    for number in 0..<5000 { try stage.add(entry(path("\(number)"))) }
    #expect(try stage.entries().drain().count == 5000)
    try stage.clear()
    #expect(try scratch.names() == [])
  }

  @Test func aStageThatCannotBeIsToldWhy() throws {
    #expect(failure { _ = try SQLiteStage(path: scratch.path + "/none/stage") }?.code == .missing)
  }

  @Test func theFakeFailsWhenTold() throws {
    let stage = MemoryStage()
    stage.failAdd(2)
    try stage.add(entry(path("a")))
    #expect(failure { try stage.add(Action(.fetch, path: path("a"))) }?.code == .noSpace)
    try stage.add(entry(path("b")))
    #expect(try stage.entries().drain().count == 2)
    let ledger = MemoryLedger()
    ledger.failApply(1, with: LedgerFailure(.inputOutput, "x"))
    #expect(failure { try ledger.apply([.fact(.phase, "b")]) }?.code == .inputOutput)
    #expect(try ledger.fact(.phase) == nil)
    try ledger.apply([.fact(.phase, "b")])
    #expect(ledger.contents.history == [[.fact(.phase, "b")]])
  }
}
