import TarnCore
import TestSupport
import Testing

final class Rows: RowCursor {
  private var rest: ArraySlice<Row>

  init(_ rows: [Row]) { rest = rows.sorted { $0.path < $1.path }[...] }

  func next() throws(LedgerFailure) -> Row? { rest.popFirst() }
}

final class Snapshot: SnapshotCursor {
  private var rest: ArraySlice<Present>
  /// Directories that cannot be read, by where they come up.
  private var blind: Set<RelativePath>

  init(_ objects: [Present], blind: Set<RelativePath> = []) {
    rest = objects.sorted { $0.path < $1.path }[...]
    self.blind = blind
  }

  func next() throws(FolderFailure) -> Present? {
    if let front = rest.first, blind.remove(front.path) != nil {
      throw FolderFailure(.permission, "cannot read \(front.path.printable)")
    }
    return rest.popFirst()
  }
}

/// What the comparison is given, for hand-written and random cases.
struct Situation {
  var entries: [Entry] = []
  var rows: [Row] = []
  var objects: [Present] = []
  var policy = PassPolicy()

  func findings(blind: Set<RelativePath> = []) throws -> [Finding] {
    var findings: [Finding] = []
    let comparison = try Comparison(
      planner: Planner(policy: policy), rows: Rows(rows), snapshot: Snapshot(objects, blind: blind)
    ) { findings.append($0) }
    for entry in entries.sorted(by: { $0.path < $1.path }) { try comparison.want(entry) }
    try comparison.finish()
    return findings
  }

  /// One line per finding, in the order of the paths: `a/b restore`.
  func lines() throws -> [String] {
    try findings().sorted { $0.path < $1.path }.map(\.line)
  }
}

extension Finding {
  var word: String {
    if let refusal { return "refused \(refusal.code)" }
    if case .action(let action) = decision, action.kind == .delete, action.phase == .payload {
      return "make-way"
    }
    return decision.word
  }

  var line: String { "\(path.printable) \(word)" }
}

func object(_ at: String, _ kind: Present.Kind = .regular, _ stat: FileIdentity = identity()) -> Present {
  Present(path: path(at), kind: kind, identity: stat)
}

@Suite struct ComparisonTests {
  private static let deletes: PassPolicy = {
    var policy = PassPolicy()
    policy.deletes = true
    return policy
  }()

  @Test func meetsRowsAndObjectsByPath() throws {
    let situation = Situation(
      entries: [entry("a"), entry("b"), entry("c", "V"), entry("d/e")],
      rows: [row("a"), row("c"), row("gone"), row("old")],
      objects: [object("a"), object("c"), object("d", .directory), object("old"), object("strange")],
      policy: Self.deletes)
    #expect(
      try situation.lines() == [
        "a current", "b fetch", "c update", "d/e fetch", "gone forget", "old delete",
      ])
  }

  @Test func nothingAtAll() throws {
    #expect(try Situation().lines() == [])
    #expect(try Situation(objects: [object("a"), object("b", .directory), object("b/c")]).lines() == [])
    #expect(try Situation(rows: [row("a")], objects: [object("a")]).lines() == ["a unlisted"])
  }

  @Test func entriesOutOfOrderAreToldApart() throws {
    for (first, second) in [("b", "a"), ("a/b", "a"), ("a/b", "a-b"), ("aa", "a/b")] {
      let comparison = try Comparison(
        planner: Planner(policy: PassPolicy()), rows: Rows([]), snapshot: Snapshot([])
      ) { _ in }
      try comparison.want(entry(first))
      #expect(throws: Comparison.OutOfOrder.self) { try comparison.want(entry(second)) }
    }
  }

  @Test func twoEntriesOfOnePath() throws {
    let two = [Source(url: "http://b/x")]
    #expect(try Situation(entries: [entry("a"), entry("a", sources: two)]).lines() == ["a fetch"])
    let disagreeing = Situation(
      entries: [entry("a"), entry("a", "V"), entry("a")], rows: [row("a")], objects: [object("a")],
      policy: Self.deletes)
    #expect(try disagreeing.lines() == ["a refused path-twice"])
  }

  /// `a-b` sorts between `a` and what lies in it.
  @Test func fileAndDirectory() throws {
    let situation = Situation(
      entries: [entry("a"), entry("a-b"), entry("a/b"), entry("a/b/c"), entry("ab")],
      rows: [row("a")], objects: [object("a")], policy: Self.deletes)
    #expect(
      try situation.lines() == [
        "a refused path-file-and-directory", "a-b fetch", "a/b refused path-file-and-directory",
        "a/b/c refused path-file-and-directory", "ab fetch",
      ])
  }

  /// A directory is one even when the entries in it do not agree.
  @Test func fileAndRefusedDirectory() throws {
    let situation = Situation(entries: [entry("a"), entry("a/b"), entry("a/b", "V")])
    #expect(
      try situation.lines() == [
        "a refused path-file-and-directory", "a/b refused path-file-and-directory",
      ])
  }

  @Test func aFileOfTarnsMakesWayForADirectory() throws {
    var situation = Situation(
      entries: [entry("a-b"), entry("a/b"), entry("a/c"), entry("a/d/e")], rows: [row("a")],
      objects: [object("a")], policy: Self.deletes)
    #expect(try situation.lines() == ["a make-way", "a-b fetch", "a/b fetch", "a/c fetch", "a/d/e fetch"])
    let way = try situation.findings().first { $0.path == path("a") }
    let action = Action(.delete, path: path("a"), present: identity(), row: row("a"))
    #expect(way?.decision == .action(action))
    // To give way is to be deleted.
    situation.policy.deletes = false
    let conflict = "conflict parent-not-a-directory"
    #expect(
      try situation.lines() == [
        "a unlisted", "a-b fetch", "a/b \(conflict)", "a/c \(conflict)", "a/d/e \(conflict)",
      ])
  }

  @Test(
    arguments: [
      // Nobody recorded it.
      (nil, Present.Kind.regular, identity(), "parent-not-a-directory", nil),
      // Edited: not as it was placed.
      (row("a"), .regular, identity(size: 5), "parent-not-a-directory", "a forget"),
      // Something else was put in its place.
      (row("a"), .symbolicLink, identity(), "parent-not-a-directory", "a forget"),
      (row("a"), .special, identity(), "parent-not-a-directory", "a forget"),
    ] as [(Row?, Present.Kind, FileIdentity, String, String?)])
  func whatOthersPutThereStays(
    _ row: Row?, _ kind: Present.Kind, _ stat: FileIdentity, _ code: String, _ unlisted: String?
  ) throws {
    let situation = Situation(
      entries: [entry("a/b"), entry("a/c/d")], rows: row.map { [$0] } ?? [],
      objects: [object("a", kind, stat)],
      policy: Self.deletes)
    #expect(
      try situation.lines() == (unlisted.map { [$0] } ?? []) + [
        "a/b conflict \(code)", "a/c/d conflict \(code)",
      ])
  }

  /// A file whose mode or links changed is deleted like any other, so it makes way like any other.
  @Test func whatOnlyItsInodeTellsApartMakesWay() throws {
    let situation = Situation(
      entries: [entry("a/b")], rows: [row("a")], objects: [object("a", .regular, identity(changed: 5))],
      policy: Self.deletes)
    #expect(try situation.lines() == ["a make-way", "a/b fetch"])
  }

  /// A file makes way for a directory only if something is going to be in it.
  @Test func nothingMakesWayForWhatIsNotFetched() throws {
    // Both are refused.
    var situation = Situation(
      entries: [entry("a/b"), entry("a/b/c")], rows: [row("a")], objects: [object("a")])
    let refused = ["a/b refused path-file-and-directory", "a/b/c refused path-file-and-directory"]
    #expect(try situation.lines() == ["a unlisted"] + refused)
    situation.policy.deletes = true
    #expect(try situation.lines() == ["a delete"] + refused)
    // The user deleted it, and it stays deleted.
    situation = Situation(entries: [entry("a/b")], rows: [row("a"), row("a/b")], objects: [object("a")])
    situation.policy.deletes = true
    situation.policy.localChanges = .keep
    #expect(try situation.lines() == ["a delete", "a/b kept local-deletion-kept"])
  }

  @Test func whatIsExcludedMakesNoWay() throws {
    var situation = Situation(
      entries: [entry("a/b")], rows: [row("a")], objects: [object("a")], policy: Self.deletes)
    situation.policy.filter.include = PathPatterns(["/a/b"])
    #expect(try situation.lines() == ["a unlisted", "a/b conflict parent-not-a-directory"])
  }

  @Test func aDirectoryInTheWayOfAFile() throws {
    let situation = Situation(
      entries: [entry("a")], rows: [row("a/b")], objects: [object("a", .directory), object("a/b")],
      policy: Self.deletes)
    #expect(try situation.lines() == ["a conflict directory-in-the-way", "a/b delete"])
  }

  /// An entry without sources marks a name that the feed gave and that was refused: it protects the path.
  @Test func refusedEntriesProtectTheirPath() throws {
    let situation = Situation(
      entries: [Entry(refused: path("a"))], rows: [row("a"), row("b")], objects: [object("a"), object("b")],
      policy: Self.deletes)
    #expect(try situation.lines() == ["a refused refused", "b delete"])
  }

  /// It may have been a directory: `a-b` sorts between it and what lies in it.
  @Test func refusedEntriesProtectWhatLiesBelow() throws {
    let situation = Situation(
      entries: [Entry(refused: path("a")), entry("a/new")],
      rows: [row("a-b"), row("a/b"), row("a/gone"), row("ab")],
      objects: [object("a", .directory)] + ["a-b", "a/b", "ab"].map { object($0) }, policy: Self.deletes)
    #expect(
      try situation.lines() == [
        "a refused refused", "a-b delete", "a/b unlisted", "a/gone unlisted", "a/new fetch", "ab delete",
      ])
  }

  /// Neither an entry of the same path nor one above or below is refused because of a refused name.
  @Test func refusedEntriesRefuseNoOther() throws {
    let refused = ["a", "b", "c/d"].map { Entry(refused: path($0)) }
    let situation = Situation(entries: refused + [entry("a"), entry("b/x"), entry("c")] + refused)
    #expect(
      try situation.lines() == [
        "a fetch", "b refused refused", "b/x fetch", "c fetch", "c/d refused refused",
      ])
  }

  @Test func directoriesThatCannotBeReadAreReported() throws {
    let situation = Situation(
      entries: [entry("a"), entry("d/x")], objects: [object("a"), object("d", .directory), object("e")])
    let findings = try situation.findings(blind: [path("a"), path("e")])
    #expect(findings.compactMap(\.scanFailure?.code) == [.permission, .permission])
    #expect(findings.filter { $0.scanFailure == nil }.map(\.line) == ["a inspect", "d/x fetch"])
  }

  @Test func failuresOfTheLedgerAndTheReceiverArePassedOn() throws {
    final class Broken: RowCursor {
      func next() throws(LedgerFailure) -> Row? { throw LedgerFailure(.corrupt, "broken") }
    }
    #expect(throws: LedgerFailure.self) {
      try Comparison(planner: Planner(policy: PassPolicy()), rows: Broken(), snapshot: Snapshot([])) { _ in }
    }
    struct Full: Error {}
    let comparison = try Comparison(
      planner: Planner(policy: PassPolicy()), rows: Rows([]), snapshot: Snapshot([])
    ) { _ in throw Full() }
    try comparison.want(entry("a"))
    #expect(throws: Full.self) { try comparison.finish() }
  }

  /// Findings that wait are bounded by the depth of a path, not by the number of entries.
  @Test func littleIsHeldBack() throws {
    var emitted = 0
    let comparison = try Comparison(
      planner: Planner(policy: PassPolicy()), rows: Rows([]), snapshot: Snapshot([])
    ) { _ in emitted += 1 }
    for number in 10_000..<15_000 { try comparison.want(entry("d/\(number)")) }
    #expect(emitted >= 4998)
  }
}

/// The merge against a model that looks everything up.
@Suite struct ComparisonModelTests {
  private static let names = ["a", "b", "a-", "ab", "A"]

  private static func randomPath(_ random: inout Seeded) -> String {
    (0...random.below(3)).map { _ in random.pick(names) }.joined(separator: "/")
  }

  /// Objects as a file system can hold them: all that is above an object is a directory.
  static func randomFolder(_ random: inout Seeded, rows: [Row]) -> [Present] {
    var folder: [RelativePath: Present] = [:]
    let paths = rows.map(\.path.printable) + (0..<random.below(6)).map { _ in randomPath(&random) }
    for name in paths.shuffled(using: &random) where random.chance(75) {
      let at = path(name)
      let above = sequence(first: at, next: \.parent).dropFirst()
      guard folder[at] == nil, above.allSatisfy({ folder[$0].map { $0.kind == .directory } ?? true }) else {
        continue
      }
      for directory in above {
        folder[directory] = Present(path: directory, kind: .directory, identity: identity())
      }
      let kind: Present.Kind =
        random.chance(85) ? .regular : random.pick([.directory, .symbolicLink, .special])
      let stat = random.pick([identity(), identity(), identity(), identity(changed: 2001), identity(size: 9)])
      folder[at] = Present(path: at, kind: kind, identity: stat)
    }
    return Array(folder.values)
  }

  static func randomSituation(_ random: inout Seeded) -> Situation {
    var situation = Situation()
    let rowPaths = Set((0..<random.below(8)).map { _ in randomPath(&random) })
    situation.rows = rowPaths.sorted().map { name in
      var made = row(name, random.pick(["W", "W", "V"]))
      if random.chance(10) { made.isDoubtful = true }
      return made
    }
    situation.entries = (0..<random.below(8)).map { _ in
      let at = random.chance(50) && !rowPaths.isEmpty ? random.pick(rowPaths.sorted()) : randomPath(&random)
      if random.chance(8) { return Entry(refused: path(at)) }
      return entry(at, random.pick(["W", "W", "W", "V", nil]), size: random.pick([nil, 100]))
    }
    situation.objects = randomFolder(&random, rows: situation.rows)
    situation.policy.deletes = random.chance(60)
    situation.policy.localChanges = random.pick(PassPolicy.LocalChanges.allCases)
    if random.chance(20) { situation.policy.filter.exclude = PathPatterns([random.pick(names)]) }
    if random.chance(10) { situation.policy.filter.include = PathPatterns(["/a/b", "b"]) }
    // What is excluded is never handed to the comparison.
    situation.entries.removeAll { [filter = situation.policy.filter] in filter.excludes($0.path) }
    return situation
  }

  /// What each path should come to, by looking at all paths at once.
  private static func model(_ situation: Situation) -> [String] {
    let planner = Planner(policy: situation.policy)
    let rows = Dictionary(uniqueKeysWithValues: situation.rows.map { ($0.path, $0) })
    let objects = Dictionary(uniqueKeysWithValues: situation.objects.map { ($0.path, $0) })
    // In the order that they came, as the stage keeps them.
    let wanted = Dictionary(grouping: situation.entries.filter { !$0.isRefused }, by: \.path)
    let refused = Set(situation.entries.map(\.path)).subtracting(wanted.keys)
    var lines: [RelativePath: String] = [:]
    var makeWay: Set<RelativePath> = []
    for (at, all) in wanted {
      let merged = all.dropFirst().reduce(Optional(all[0])) { $0?.merged(with: $1) }
      let isTwofold = wanted.keys.contains { $0.isAncestor(of: at) || at.isAncestor(of: $0) }
      if isTwofold {
        lines[at] = "refused path-file-and-directory"
      } else if merged == nil {
        lines[at] = "refused path-twice"
      } else if let merged {
        let above = sequence(first: at, next: \.parent).dropFirst()
        guard let blocker = above.first(where: { objects[$0].map { $0.kind != .directory } ?? false }) else {
          lines[at] = planner.decide(merged, row: rows[at], present: objects[at]).word
          continue
        }
        if situation.policy.deletes, !refused.contains(blocker), let own = rows[blocker],
          let object = objects[blocker], object.kind == .regular,
          own.identity.isSameContents(as: object.identity), !situation.policy.filter.excludes(blocker)
        {
          let decision = planner.decide(merged, row: rows[at], present: nil)
          lines[at] = decision.word
          if case .action = decision { makeWay.insert(blocker) }
        } else {
          lines[at] = "conflict parent-not-a-directory"
        }
      }
    }
    for row in situation.rows where wanted[row.path] == nil {
      let decision = planner.decideUnlisted(row, present: objects[row.path])
      let isKept = refused.contains { $0.isAncestor(of: row.path) }
      lines[row.path] = makeWay.contains(row.path) ? "make-way" : isKept ? "unlisted" : decision.word
    }
    for at in refused { lines[at] = "refused refused" }
    return lines.sorted { $0.key < $1.key }.map { "\($0.key.printable) \($0.value)" }
  }

  @Test(arguments: 0..<3 as Range<UInt64>) func mergeAgreesWithTheModel(seed: UInt64) throws {
    var random = Seeded(seed)
    var words: Set<String> = []
    for round in 0..<500 {
      let situation = Self.randomSituation(&random)
      let lines = try situation.lines()
      guard lines == Self.model(situation) else {
        Issue.record(
          """
          seed \(seed), round \(round)
          entries \(situation.entries.map { "\($0.path.printable)\($0.isRefused ? " refused" : "")" })
          rows \(situation.rows.map(\.path.printable))
          objects \(situation.objects.map { "\($0.path.printable) \($0.kind)" })
          merge \(lines)
          model \(Self.model(situation))
          """)
        return
      }
      let protected = Set(situation.entries.map(\.path))
      for finding in try situation.findings() {
        words.insert(finding.word)
        guard case .action(let action) = finding.decision, action.kind == .delete else { continue }
        if protected.contains(action.path) || situation.policy.filter.excludes(action.path) {
          Issue.record("seed \(seed), round \(round): \(finding.line)")
        }
      }
    }
    // The cases that matter came up.
    #expect(
      words.isSuperset(of: [
        "fetch", "current", "update", "inspect", "delete", "forget", "unlisted", "make-way",
        "refused path-twice",
        "refused path-file-and-directory", "conflict parent-not-a-directory", "conflict directory-in-the-way",
        "conflict foreign-file",
      ]))
  }
}
