import TarnCore
import TarnLedger
import TestSupport
import Testing

/// The journal's part of `LedgerPort`, over the real ledger and over the fake.
@Suite struct EventConformanceTests {
  typealias Subject = LedgerConformanceTests.Subject

  private let scratch = Scratch()

  private func make(_ subject: Subject) throws -> any LedgerPort {
    switch subject {
    case .memory: MemoryLedger()
    case .sqlite: try SQLiteLedger(directory: scratch.path)
    }
  }

  private func numbers(_ ledger: any LedgerPort) throws -> [Int64] {
    try ledger.events(after: 0, limit: 1000).map(\.number)
  }

  @Test(arguments: Subject.allCases) func numbersOnlyGrow(_ subject: Subject) throws {
    let ledger = try make(subject)
    let event = Event(
      number: 77, when: moment(1), code: "published", path: path("a"), bytes: .max, detail: "d")
    let bare = Event(when: moment(1), code: "started")
    try ledger.apply([.event(event), .event(bare)])
    var stored = try ledger.events(after: 0, limit: 10)
    #expect(stored.map(\.number) == [1, 2])
    stored[0].number = 77
    stored[1].number = 0
    #expect(stored == [event, bare])
    try ledger.apply([.pruneEvents(keeping: 0, before: .distantFuture, now: moment(1_000_000))])
    try ledger.apply([.event(bare)])
    #expect(try numbers(ledger) == [3])
  }

  @Test(arguments: Subject.allCases) func readsAfterANumber(_ subject: Subject) throws {
    let ledger = try make(subject)
    try ledger.apply((0..<10).map { .event(Event(when: moment($0), code: "c", path: path("\($0 % 2)"))) })
    #expect(try ledger.events(after: 3, limit: 2).map(\.number) == [4, 5])
    #expect(try ledger.events(after: 10, limit: 2) == [])
    #expect(try ledger.events(after: -1, limit: 0) == [])
    #expect(try ledger.events(path: path("1"), limit: 3).map(\.number) == [10, 8, 6])
    #expect(try ledger.events(path: path("none"), limit: 3) == [])
    #expect(try ledger.eventCount(code: "c", after: 4) == 6)
    #expect(try ledger.eventCount(code: "other", after: 0) == 0)
  }

  @Test(arguments: Subject.allCases) func whatIsYoungIsKeptBeyondTheNumber(_ subject: Subject) throws {
    let ledger = try make(subject)
    try ledger.apply((0..<6).map { .event(Event(when: moment($0), code: "c")) })
    try ledger.apply([.pruneEvents(keeping: 2, before: moment(3), now: moment(100))])
    #expect(try numbers(ledger) == [4, 5, 6])
    #expect(try ledger.fact(.eventsDropped) == "3")
    try ledger.apply([.pruneEvents(keeping: 2, before: moment(3), now: moment(100))])
    try ledger.apply([.pruneEvents(keeping: 2, before: moment(90), now: moment(100))])
    #expect(try numbers(ledger) == [5, 6])
  }

  @Test(arguments: Subject.allCases) func pruningKeepsTheGuardsWindow(_ subject: Subject) throws {
    let ledger = try make(subject)
    let day: Int64 = 86_400
    let now = moment(10 * day)
    try ledger.apply([
      .event(Event(when: moment(1), code: "published")),
      .event(Event(when: moment(9 * day - 1), code: "deleted")),
      .event(Event(when: moment(9 * day), code: "deleted")),
      .event(Event(when: moment(10 * day), code: "published")),
      .event(Event(when: moment(10 * day), code: "published")),
      .event(Event(when: moment(10 * day), code: "published")),
    ])
    try ledger.apply([.pruneEvents(keeping: 6, before: .distantFuture, now: now)])
    #expect(try numbers(ledger) == [1, 2, 3, 4, 5, 6])
    #expect(try ledger.fact(.eventsDropped) == nil)
    try ledger.apply([.pruneEvents(keeping: 2, before: .distantFuture, now: now)])
    #expect(try numbers(ledger) == [3, 5, 6])
    #expect(try ledger.fact(.eventsDropped) == "4")
    // The deletion goes later; what the fact says never goes down.
    try ledger.apply([.pruneEvents(keeping: 2, before: .distantFuture, now: moment(11 * day))])
    #expect(try numbers(ledger) == [5, 6])
    #expect(try ledger.fact(.eventsDropped) == "4")
    try ledger.apply([.pruneEvents(keeping: -1, before: .distantFuture, now: Timestamp(nanoseconds: .min))])
    #expect(try numbers(ledger) == [])
    #expect(try ledger.fact(.eventsDropped) == "6")
  }
}

/// Problems that begin and end are events, in the transaction that records them.
@Suite struct ProblemEventConformanceTests {
  typealias Subject = LedgerConformanceTests.Subject

  private let scratch = Scratch()

  private func make(_ subject: Subject) throws -> any LedgerPort {
    switch subject {
    case .memory: MemoryLedger()
    case .sqlite: try SQLiteLedger(directory: scratch.path)
    }
  }

  private func problem(
    _ name: String, _ kind: Problem.Kind = .failed, _ code: String = "http-404", at second: Int64 = 1
  ) -> LedgerChange {
    .problem(
      Problem(name: Array(name.utf8), kind: kind, code: code, message: "\(code) it is", seen: moment(second)))
  }

  private func drop(_ name: String) -> LedgerChange { .dropProblem(name: Array(name.utf8)) }

  /// `failed a: why`, of all events so far.
  private func told(_ ledger: any LedgerPort) throws -> [String] {
    try ledger.events(after: 0, limit: 10_000).map { "\($0.code) \($0.path?.printable ?? "-"): \($0.detail)" }
  }

  @Test(arguments: Subject.allCases) func eachChangeIsToldOnce(_ subject: Subject) throws {
    let ledger = try make(subject)
    try ledger.apply([problem("a")])
    try ledger.apply([problem("a", at: 2)])
    // Another reason is no other state.
    try ledger.apply([problem("a", .failed, "http-500", at: 3)])
    try ledger.apply([problem("a", .conflict, "in-the-way", at: 4), drop("b")])
    try ledger.apply([drop("a")])
    try ledger.applyVolatile([drop("a"), problem("c", .held, "paused")])
    try ledger.apply([drop("c"), problem("../x", .refused, "path", at: 5)])
    #expect(
      try told(ledger) == [
        "failed a: http-404 it is", "conflict a: in-the-way it is", "recovered a: was in conflict",
        "refused -: ../x: path it is",
      ])
  }

  @Test(arguments: Subject.allCases) func whatIsFoundAgainAtOnceIsNoNews(_ subject: Subject) throws {
    let ledger = try make(subject)
    try ledger.apply([problem("a"), problem("b")])
    try ledger.apply([drop("a"), drop("b"), problem("a", at: 2)])
    try ledger.apply([problem("n", at: 2), drop("n")])
    #expect(
      try told(ledger) == [
        "failed a: http-404 it is", "failed b: http-404 it is", "recovered b: had failed",
      ])
  }

  /// Nothing has come: the feed names it no more. A listing is in no feed.
  @Test(arguments: Subject.allCases) func whatIsNoLongerWantedHasNotComeRight(_ subject: Subject) throws {
    let ledger = try make(subject)
    let names = ["a", "b", "c/"].map { Array($0.utf8) }
    try ledger.apply([problem("a"), problem("b", .conflict), problem("c/")])
    try ledger.apply(
      names.map { .dropProblem(name: $0, isUnwanted: true) } + [problem("b", .conflict, at: 2)])
    #expect(
      try told(ledger).dropFirst(3) == [
        "recovered a: had failed, and is no longer wanted", "recovered -: c/: had failed",
      ])
    try ledger.apply([drop("b")])
    #expect(try told(ledger).last == "recovered b: was in conflict")
  }

  @Test(arguments: Subject.allCases) func whatAPassDoesNotSeeAgainHasRecovered(_ subject: Subject) throws {
    let ledger = try make(subject)
    try ledger.apply([problem("a"), problem("b", .refused)])
    try ledger.apply([problem("a", at: 9), .dropProblems(seenBefore: moment(9))])
    #expect(try told(ledger).last == "recovered b: was refused")
    #expect(try told(ledger).count == 3)
  }

  @Test(arguments: Subject.allCases) func manyAreSummedUp(_ subject: Subject) throws {
    let ledger = try make(subject)
    let many = (0..<1000).map { problem("\($0)") }
    try ledger.apply(many)
    #expect(try told(ledger).count == ProblemNews.most + 1)
    #expect(try told(ledger).last == "failed -: 900 more entries: tarn status -v")
    try ledger.apply(many)
    #expect(try told(ledger).count == ProblemNews.most + 1)
    try ledger.apply([.dropProblems(seenBefore: moment(2)), problem("x", at: 2)])
    #expect(try told(ledger).count == 2 * (ProblemNews.most + 1) + 1)
  }
}
