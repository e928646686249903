import TarnCore
import TarnLedger
import TestSupport
import Testing

/// The contract of `LedgerPort`, over the real ledger and over the fake.
@Suite struct LedgerConformanceTests {
  enum Subject: CaseIterable {
    case memory, sqlite
  }

  /// With the directory that keeps it alive.
  private func make(_ subject: Subject) throws -> (any LedgerPort, Scratch) {
    let scratch = Scratch()
    switch subject {
    case .memory: return (MemoryLedger(), scratch)
    case .sqlite: return (try SQLiteLedger(directory: scratch.path), scratch)
    }
  }

  @Test(arguments: Subject.allCases) func newOneIsEmpty(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    #expect(try ledger.rows().next() == nil)
    #expect(try ledger.row(path("a")) == nil)
    #expect(try ledger.rowCount() == 0)
    #expect(try ledger.rowBytes() == 0)
    #expect(try ledger.intents() == [])
    #expect(try ledger.partials() == [])
    #expect(try ledger.trash() == [])
    #expect(try ledger.problems(limit: 10) == [])
    #expect(try ledger.problemCounts() == [:])
    #expect(try ledger.events(after: 0, limit: 10) == [])
    #expect(try ledger.held() == nil)
    #expect(try ledger.heldPaths(plan: "00000000") == [])
    #expect(try ledger.activity() == [])
    #expect(try ledger.fact(.feed) == nil)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func keepsRowsWhole(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let plain = row(path("a"))
    var extreme = row(RelativePath(trusted: [0xFF, 0x2F, 0x80]), size: .max, digest: 2)
    extreme.identity.device = .max
    extreme.identity.inode = 1 << 63
    extreme.identity.modified = Timestamp(nanoseconds: .min)
    extreme.identity.changed = Timestamp(nanoseconds: .max)
    extreme.digest = digest(0, .sha512)
    extreme.isVerified = false
    extreme.isAdopted = true
    extreme.fingerprint = []
    extreme.etag = ""
    extreme.lastModified = String(repeating: "ö", count: 10_000)
    try ledger.apply([.row(plain), .row(extreme)])
    #expect(try ledger.row(plain.path) == plain)
    #expect(try ledger.row(extreme.path) == extreme)
    #expect(try ledger.rows().drain() == [plain, extreme])
    let recorded = try ledger.recorded()
    for row in [plain, extreme] {
      #expect(try recorded.next() == Recorded(path: row.path, identity: row.identity))
    }
    #expect(try recorded.next() == nil)
    #expect(try ledger.rowCount() == 2)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func givesTheRowsOfARegion(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let names = ["a", "a-b", "a/b", "a/b/c", "a/d", "a0", "b", "z/y/x"]
    try ledger.apply(names.map { .row(row(path($0))) })
    for top in [nil, "a", "a/b", "z", "z/y", "none"] {
      for extent in [Region.Extent.itself, .children, .tree] where top != nil || extent != .itself {
        let region = Region(top.map(path), extent)
        let rows = try ledger.rows(in: region)
        var found: [String] = []
        while let row = try rows.next() { found.append(row.path.printable) }
        #expect(found == names.filter { region.contains(path($0)) }, "\(region)")
      }
    }
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func replacesAndDropsRows(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply([.row(row(path("a"))), .row(row(path("b")))])
    try ledger.apply([.row(row(path("a"), size: 99, digest: 3)), .dropRow(path("b")), .dropRow(path("none"))])
    #expect(try ledger.rows().drain() == [row(path("a"), size: 99, digest: 3)])
    #expect(try ledger.rows(digest: digest(1), after: nil, limit: 5) == [])
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func rowsComeByMemcmp(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    var names: [[UInt8]] = [
      Array("a".utf8), Array("a/b".utf8), Array("a.txt".utf8), Array("aa".utf8), Array("a b".utf8),
      Array("B".utf8),
      [0x61, 0xFF], [0x61, 0x01], [0xC3, 0x28], [0x80], [0xFF, 0xFF], Array("é".utf8), Array("e\u{301}".utf8),
      Array("A/B/C".utf8), Array("a/b/c".utf8), Array("a/b-c".utf8), [0x61, 0x2F, 0xFE],
    ]
    let sorted = names.sorted { $0.lexicographicallyPrecedes($1) }
    var random = Seeded(1)
    names.shuffle(using: &random)
    try ledger.apply(names.map { .row(row(RelativePath(trusted: $0))) })
    #expect(try ledger.rows().drain().map(\.path.bytes) == sorted)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func rowsAreASnapshot(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply((0..<50).map { .row(row(path("\($0 + 100)"))) })
    let before = try ledger.rows()
    try ledger.apply([.dropRow(path("149")), .row(row(path("999")))])
    let after = try ledger.rows()
    let first = try before.next()
    try ledger.apply([.dropRow(path("148"))])
    #expect(first?.path == path("100"))
    #expect(try before.drain().map(\.path) == (101..<150).map { path("\($0)") })
    #expect(try before.next() == nil)
    #expect(try after.drain().count == 50)
    #expect(try ledger.rows().drain().count == 49)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func addsUpBytes(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply([.row(row(path("a"), size: 0xFFFF_FFFF)), .row(row(path("b"), size: 3))])
    #expect(try ledger.rowBytes() == 0x1_0000_0002)
    try ledger.apply([.row(row(path("c"), size: 1 << 63))])
    #expect(try ledger.rowBytes() == 1 << 63 + 0x1_0000_0002)
    try ledger.apply([.row(row(path("d"), size: .max))])
    #expect(try ledger.rowBytes() == .max)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func findsRowsByDigest(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply(
      ["c", "a", "b"].map { .row(row(path($0), digest: 7)) } + [.row(row(path("d"), digest: 8))])
    #expect(try ledger.rows(digest: digest(7), after: nil, limit: 2).map(\.path) == [path("a"), path("b")])
    #expect(try ledger.rows(digest: digest(8), after: nil, limit: 2).map(\.path) == [path("d")])
    #expect(try ledger.rows(digest: digest(7), after: nil, limit: 0) == [])
    #expect(try ledger.rows(digest: digest(7), after: nil, limit: -1) == [])
    #expect(try ledger.rows(digest: digest(7, .sha1), after: nil, limit: 2) == [])
    #expect(
      try ledger.rows(digest: digest(7), after: path("a"), limit: 2).map(\.path) == [path("b"), path("c")])
    #expect(try ledger.rows(digest: digest(7), after: path("b1"), limit: 2).map(\.path) == [path("c")])
    #expect(try ledger.rows(digest: digest(7), after: path("c"), limit: 2) == [])
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func keepsIntents(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    var removal = intent(path("b"), .remove)
    removal.partialName = ""
    removal.displacesOwn = false
    removal.row.isAdopted = true
    try ledger.apply([.intent(removal), .intent(intent(path("a"))), .intent(intent(path("c")))])
    #expect(try ledger.intents() == [intent(path("a")), removal, intent(path("c"))])
    try ledger.apply([.dropIntent(path("a")), .intent(intent(path("b"))), .dropIntent(path("none"))])
    #expect(try ledger.intents() == [intent(path("b")), intent(path("c"))])
    withExtendedLifetime(scratch) {}
  }

  /// A long list is kept as one: what leaves it, in which order ever, takes nothing else along.
  @Test(arguments: Subject.allCases) func keepsManyIntentsAtOnce(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func many(_ names: ClosedRange<Int>) -> [Intent] { names.map { intent(path("n\(100 + $0)")) } }
    try ledger.apply([.intent(intent(path("n103"), .remove)), .intent(intent(path("z")))])
    try ledger.apply(many(1...40).map { .intent($0) } + [.fact(.format, "v")])
    #expect(try ledger.intents() == many(1...40) + [intent(path("z"))])
    try ledger.apply(many(50...90).map { .intent($0) })
    try ledger.apply([.dropIntent(path("n101")), .dropIntent(path("n140")), .dropIntent(path("none"))])
    #expect(try ledger.intents() == many(2...39) + many(50...90) + [intent(path("z"))])
    // One of a list is said anew, alone and in another list.
    var other = intent(path("n102"))
    other.trashName = "other"
    try ledger.apply([.intent(other)])
    #expect(try ledger.intents() == [other] + many(3...39) + many(50...90) + [intent(path("z"))])
    try ledger.apply(many(30...60).map { .intent($0) })
    #expect(try ledger.intents() == [other] + many(3...90) + [intent(path("z"))])
    try ledger.apply(many(3...90).map { .dropIntent($0.path) })
    #expect(try ledger.intents() == [other, intent(path("z"))])
    withExtendedLifetime(scratch) {}
  }

  /// A list that says a path twice means the second, and one that cannot be written leaves nothing.
  @Test(arguments: Subject.allCases) func aListOfIntentsIsTakenWhole(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    var second = intent(path("b"))
    second.partialName = "second"
    let names = "abcdefghij".map { path(String($0)) }
    try ledger.apply(names.map { .intent(intent($0)) } + [.intent(second)])
    #expect(try ledger.intents() == names.map { $0 == path("b") ? second : intent($0) })
    var wrong = intent(path("k"))
    wrong.row.path = path("l")
    #expect(failure { try ledger.apply(names.map { .dropIntent($0) } + [.intent(wrong)]) } != nil)
    #expect(failure { try ledger.apply(names.map { .intent(intent($0)) } + [.intent(wrong)]) } != nil)
    #expect(try ledger.intents() == names.map { $0 == path("b") ? second : intent($0) })
    try ledger.apply([.dropIntent(path("b"))])
    #expect(try ledger.intents().map(\.path) == names.filter { $0 != path("b") })
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func keepsPartials(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    var second = partial(path("b"), digest: digest(4, .md5))
    second.answered = "https://cdn/b"
    (second.lastModified, second.weakDate) = (nil, "today")
    second.total = nil
    try ledger.apply([.partial(partial(path("a"))), .partial(second), .durable(path: path("none"), bytes: 1)])
    #expect(try ledger.partials() == [partial(path("a")), second])
    try ledger.apply([
      .durable(path: path("b"), bytes: .max), .dropPartial(path("a")), .dropPartial(path("a")),
    ])
    second.durable = .max
    #expect(try ledger.partial(path("b")) == second)
    #expect(try ledger.partial(path("a")) == nil)
    withExtendedLifetime(scratch) {}
  }

  /// A long list looks first whether there is anything to drop.
  @Test(arguments: Subject.allCases, [[], ["a"], ["a", "n7"]])
  func aLongListDropsAsAShortOne(_ subject: Subject, before: [String]) throws {
    let (ledger, scratch) = try make(subject)
    func problem(_ name: String) -> LedgerChange {
      .problem(
        Problem(name: Array(name.utf8), kind: .failed, code: "code", message: "", seen: moment(1)))
    }
    for name in before { try ledger.apply([problem(name), .partial(partial(path(name)))]) }
    let names = (0..<40).map { "n\($0)" }
    let drops: [LedgerChange] = names.flatMap {
      [.row(row(path($0))), .dropProblem(name: Array($0.utf8)), .dropPartial(path($0))]
    }
    try ledger.apply(drops)
    #expect(try ledger.problems(limit: 100).map(\.name) == (before.isEmpty ? [] : [Array("a".utf8)]))
    #expect(try ledger.partials().map(\.path) == (before.isEmpty ? [] : [path("a")]))
    // What comes in the list itself goes by it, too.
    try ledger.apply([problem("n1"), .partial(partial(path("n2")))] + drops)
    #expect(try ledger.problems(limit: 100).count == min(1, before.count))
    #expect(try ledger.partials().count == min(1, before.count))
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func keepsTrash(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let reasons: [TrashRow.Reason] = [.edited, .deleted, .replaced]
    let there = FileIdentity(
      device: .max, inode: 1 << 63, size: .max, modified: Timestamp(nanoseconds: .min), changed: moment(-1))
    let rows = reasons.enumerated().map { index, reason in
      TrashRow(
        name: "t\(9 - index)", path: path("a"), reason: reason, isOwn: reason == .deleted, size: .max,
        when: moment(Int64(index)), identity: reason == .replaced ? nil : there)
    }
    try ledger.apply(rows.reversed().map { .trash($0) })
    #expect(try ledger.trash() == rows)
    try ledger.apply([.dropTrash(name: "t9"), .dropTrash(name: "none")])
    #expect(try ledger.trash() == Array(rows.dropFirst()))
    withExtendedLifetime(scratch) {}
  }

  /// Told at once, and again in the report of the same pass.
  @Test(arguments: Subject.allCases) func aProblemToldTwiceIsSeenOnce(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func problem(_ time: Int64) -> Problem {
      Problem(name: [1], kind: .failed, code: "code", message: "", seen: moment(time))
    }
    try ledger.apply([.problem(problem(1)), .problem(problem(1))])
    #expect(try ledger.problem(name: [1])?.attempts == 1)
    try ledger.apply([.problem(problem(2))])
    #expect(try ledger.problem(name: [1])?.attempts == 2)
    // Seen again, and not by a pass.
    try ledger.apply([.problem(problem(3).asLooked)])
    #expect(try ledger.problem(name: [1])?.attempts == 2)
    #expect(try ledger.problem(name: [1])?.seen == moment(3))
    // The report of the pass that ran beside that look.
    try ledger.apply([.problem(problem(2))])
    #expect(try ledger.problem(name: [1])?.attempts == 2)
    #expect(try ledger.problem(name: [1])?.seen == moment(3))
    withExtendedLifetime(scratch) {}
  }

  /// A repair met it first, and reports it between the two times that the pass does.
  @Test(arguments: Subject.allCases) func aProblemOfAPassAndARepairIsCountedOnce(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func problem(_ time: Int64, _ code: String = "code") -> Problem {
      Problem(name: [1], kind: .failed, code: code, message: "", seen: moment(time))
    }
    try ledger.apply([.problem(problem(1).asLooked)])
    for _ in 1...2 {
      try ledger.apply([.problem(problem(2))])
      try ledger.apply([.problem(problem(1).asLooked)])
      #expect(try ledger.problem(name: [1])?.attempts == 1)
      #expect(try ledger.problem(name: [1])?.seen == moment(2))
    }
    try ledger.apply([.problem(problem(1, "other"))])
    #expect(try ledger.problem(name: [1])?.code == "other")
    #expect(try ledger.problem(name: [1])?.seen == moment(2))
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func rowsBelowAPath(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply(["a", "a-b", "a/x", "a/y/z", "a0", "b/x"].map { .row(row(path($0))) })
    #expect(try ledger.rowCount(below: path("a")) == 2)
    #expect(try ledger.rowCount(below: path("a/y")) == 1)
    #expect(try ledger.rowCount(below: path("a/x")) == 0)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func problemsBelowAPath(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func problem(_ name: String, _ code: String) -> Problem {
      Problem(name: Array(name.utf8), kind: .conflict, code: code, message: "", seen: moment(1))
    }
    for name in ["a", "a-b", "a/", "a/x", "a/y/z", "a0", "b/x"] {
      try ledger.apply([.problem(problem(name, name == "a/x" ? "other" : "code"))])
    }
    let path = RelativePath(trusted: Array("a".utf8))
    #expect(try ledger.problem(below: path, code: "other") == problem("a/x", "other"))
    #expect(try ledger.problem(below: path, code: "none") == nil)
    #expect(try ledger.problem(below: path, code: "code") == problem("a/y/z", "code"))
    try ledger.apply([.dropProblem(name: Array("a/y/z".utf8))])
    #expect(try ledger.problem(below: path, code: "code") == nil)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func aKnownProblemKeepsItsBeginning(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func problem(_ code: String, _ seconds: Int64, _ kind: Problem.Kind = .failed) -> Problem {
      Problem(name: [0xFF, 1], kind: kind, code: code, message: "at \(seconds)", seen: moment(seconds))
    }
    try ledger.apply([.problem(problem("timed-out", 1))])
    try ledger.apply([.problem(problem("timed-out", 2)), .problem(problem("timed-out", 3, .held))])
    var expected = problem("timed-out", 3, .held)
    expected.since = moment(1)
    expected.attempts = 3
    #expect(try ledger.problem(name: [0xFF, 1]) == expected)
    try ledger.apply([.problem(problem("no-space", 4))])
    #expect(try ledger.problem(name: [0xFF, 1]) == problem("no-space", 4))
    try ledger.apply([.dropProblem(name: [0xFF, 1]), .dropProblem(name: [])])
    #expect(try ledger.problem(name: [0xFF, 1]) == nil)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func aHeldPlanShrinks(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let plan = HeldPlan(id: "0123abcd", when: moment(1), count: 2)
    try ledger.apply([.hold(HeldPlan(id: "89ab", when: moment(0), count: 4, reason: "r", isForPerson: true))])
    #expect(try ledger.held()?.isForPerson == true)
    try ledger.apply([.dropHolds])
    #expect(try ledger.held() == nil && ledger.fact(.heldForPerson) == "89ab")
    try ledger.apply([
      .hold(plan), .heldPath(plan: plan.id, path: path("a")), .heldPath(plan: plan.id, path: path("b")),
    ])
    try ledger.apply([.dropHeldPath(path("a")), .dropHeldPath(path("a")), .dropHeldPath(path("c"))])
    #expect(try ledger.held() == HeldPlan(id: plan.id, when: plan.when, count: 1))
    #expect(try ledger.heldPaths(plan: plan.id) == [path("b")])
    try ledger.apply([.dropHeldPath(path("b"))])
    #expect(try ledger.held() == nil)
    try ledger.apply([.dropHeldPath(path("b"))])
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func problemsThatWereNotSeenAgainAreSolved(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let kinds: [Problem.Kind] = [.failed, .failed, .refused, .conflict]
    try ledger.apply(
      kinds.enumerated().map { index, kind in
        .problem(
          Problem(name: [UInt8(9 - index)], kind: kind, code: "c", message: "", seen: moment(Int64(index))))
      })
    #expect(try ledger.problemCounts() == [.failed: 2, .refused: 1, .conflict: 1])
    #expect(
      try ledger.problemCounts(failedSince: moment(1)) == [.failed: 1, .refused: 1, .conflict: 1])
    #expect(try ledger.problemCounts(seenBefore: moment(2)) == [.failed: 2])
    #expect(try ledger.problemCounts(seenBefore: moment(4)) == [.failed: 2, .refused: 1, .conflict: 1])
    #expect(try ledger.problems(limit: 9, failedSince: moment(1)).map(\.name) == [[6], [7], [8]])
    #expect(try ledger.problems(limit: 9, failedSince: moment(9)).map(\.name) == [[6], [7]])
    #expect(try ledger.problems(limit: 2).map(\.name) == [[6], [7]])
    try ledger.apply([.dropProblems(seenBefore: moment(2))])
    #expect(try ledger.problems(limit: 9).map(\.name) == [[6], [7]])
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func holdsOnePlan(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let first = HeldPlan(id: "aaaaaaaa", when: moment(1), count: 2)
    let second = HeldPlan(id: "bbbbbbbb", when: moment(2), count: 1)
    try ledger.apply([
      .hold(first), .heldPath(plan: first.id, path: path("y")), .heldPath(plan: first.id, path: path("x")),
      .heldPath(plan: first.id, path: path("x")),
    ])
    #expect(try ledger.held() == first)
    #expect(try ledger.heldPaths(plan: first.id) == [path("x"), path("y")])
    #expect(try ledger.heldPaths(plan: first.id, after: nil, limit: 1) == [path("x")])
    #expect(try ledger.heldPaths(plan: first.id, after: path("x"), limit: 9) == [path("y")])
    #expect(try ledger.isHeld(path("y"), plan: first.id))
    #expect(try !ledger.isHeld(path("y"), plan: "other") && !ledger.isHeld(path("w"), plan: first.id))
    // The paths of a large plan may be written before it, in several transactions.
    try ledger.apply([.heldPath(plan: second.id, path: path("z"))])
    #expect(try ledger.held() == first)
    try ledger.apply([.hold(second)])
    #expect(try ledger.held() == second)
    #expect(try ledger.heldPaths(plan: first.id) == [])
    #expect(try ledger.heldPaths(plan: second.id) == [path("z")])
    try ledger.apply([.dropHolds, .dropHolds])
    #expect(try ledger.held() == nil)
    #expect(try ledger.heldPaths(plan: second.id) == [])
    withExtendedLifetime(scratch) {}
  }

  /// What nobody has counted so far is not begun to be counted by a part of it.
  @Test(arguments: Subject.allCases) func whatIsInPlaceIsCountedOnceItIsKnown(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply([.inPlace(entries: 2, bytes: 10)])
    #expect(try ledger.fact(.entriesCurrent) == nil && ledger.fact(.bytesCurrent) == nil)
    try ledger.apply([.fact(.entriesCurrent, "5"), .fact(.bytesCurrent, "100")])
    try ledger.apply([.inPlace(entries: 2, bytes: 10), .inPlace(entries: 1, bytes: 0)])
    #expect(try ledger.fact(.entriesCurrent) == "8" && ledger.fact(.bytesCurrent) == "110")
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func findsNamesByWhatTheyAreKnownBy(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    func name(_ text: String, guid: String?, place: String, title: String, date: Int64?) -> NameRow {
      NameRow(
        path: path(text), guid: guid.map { Array($0.utf8) }, ordinal: 0, place: Array(place.utf8),
        url: Array("\(place)?q".utf8), title: Array(title.utf8),
        date: date.map { Timestamp(nanoseconds: $0) },
        first: Timestamp(nanoseconds: 50), rule: .new)
    }
    let one = name("b", guid: "g", place: "p", title: "t", date: 10)
    let two = name("a", guid: "g", place: "q", title: "t", date: 90)
    var three = name("c", guid: nil, place: "p", title: "", date: nil)
    try ledger.apply([.name(one), .name(two), .name(three), .row(row(path("a"))), .row(row(path("b")))])
    #expect(try ledger.names(guid: Array("g".utf8)) == [two, one])
    #expect(try ledger.names(guid: []) == [])
    #expect(try ledger.names(place: Array("p".utf8), limit: 9).sorted { $0.path < $1.path } == [one, three])
    #expect(try ledger.names(place: Array("p".utf8), limit: 1).count == 1)
    #expect(try ledger.names(url: Array("q?q".utf8)) == [two])
    #expect(try ledger.names(title: Array("t".utf8), date: Timestamp(nanoseconds: 90)) == [two])
    #expect(try ledger.name(path("c")) == three)
    #expect(try ledger.placedNames().map(\.path) == [path("a"), path("b")])
    three.rule = .titleDate
    try ledger.apply([.name(three), .dropRow(one.path), .row(row(path("c")))])
    #expect(try ledger.name(path("c"))?.rule == .titleDate)
    #expect(try ledger.name(path("b")) == one)
    #expect(try ledger.placedNames().map(\.path) == [path("a"), path("c")])
    #expect(try ledger.placedNames().map { $0.date?.nanoseconds } == [90, nil])
    #expect(try ledger.placedNames().map(\.first.nanoseconds) == [50, 50])
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func replacesActivityAndFacts(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    let two = ["b", "a"].map { Activity(path: path($0), received: .max, total: nil, rate: 3, source: "s") }
    try ledger.applyVolatile([.activity(two), .fact(.feed, "https://example.org/"), .fact(.phase, "")])
    #expect(try ledger.activity() == two)
    #expect(try ledger.fact(.feed) == "https://example.org/")
    #expect(try ledger.fact(.phase) == "")
    try ledger.apply([.activity([two[1]]), .fact(.feed, "other"), .fact(.phase, nil), .fact(.repair, nil)])
    #expect(try ledger.activity() == [two[1]])
    #expect(try ledger.fact(.feed) == "other")
    #expect(try ledger.fact(.phase) == nil)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func aFailedListChangesNothing(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply([.row(row(path("a")))])
    var wrong = intent(path("b"))
    wrong.row.path = path("c")
    let failed = failure {
      try ledger.apply([.dropRow(path("a")), .row(row(path("b"))), .fact(.format, "v"), .intent(wrong)])
    }
    #expect(failed?.code == .other)
    #expect(try ledger.rows().drain() == [row(path("a"))])
    #expect(try ledger.fact(.format) == nil)
    try ledger.apply([.row(row(path("b")))])
    #expect(try ledger.rowCount() == 2)
    withExtendedLifetime(scratch) {}
  }

  @Test(arguments: Subject.allCases) func nothingToWriteIsNothing(_ subject: Subject) throws {
    let (ledger, scratch) = try make(subject)
    try ledger.apply([])
    try ledger.applyVolatile([])
    #expect(try ledger.rowCount() == 0)
    ledger.close()
    ledger.close()
    #expect(failure { try ledger.apply([.fact(.phase, "b")]) }?.code == .readOnly)
    #expect(failure { _ = try ledger.fact(.phase) }?.code == .other)
    #expect(failure { _ = try ledger.rowCount() }?.code == .other)
    withExtendedLifetime(scratch) {}
  }
}
