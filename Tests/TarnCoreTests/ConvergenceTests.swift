import TarnCore
import TestSupport
import Testing

/// A folder and its ledger as dictionaries, and a feed whose downloads always work: I6 says that the second
/// plan is empty.
private struct Mirror {
  var files: [RelativePath: (contents: String, identity: FileIdentity, kind: Present.Kind)] = [:]
  var rows: [RelativePath: Row] = [:]
  var manifest: [RelativePath: (contents: String, entry: Entry)] = [:]
  var policy = PassPolicy()
  private var clock: Int64 = 10_000
  /// Bytes that only users had: they have to be somewhere for ever (I2).
  var trash: [String] = []

  var situation: Situation {
    var objects: [RelativePath: Present] = [:]
    for (path, file) in files {
      objects[path] = Present(path: path, kind: file.kind, identity: file.identity)
      for above in sequence(first: path, next: \.parent).dropFirst() {
        objects[above] = Present(path: above, kind: .directory, identity: file.identity)
      }
    }
    let entries = manifest.values.map(\.entry).filter { [filter = policy.filter] in !filter.excludes($0.path)
    }
    return Situation(
      entries: entries, rows: Array(rows.values), objects: Array(objects.values), policy: policy)
  }

  mutating func put(
    _ path: RelativePath, _ contents: String, kind: Present.Kind = .regular, modified: Int64? = nil
  ) {
    clock += 1
    files[path] = (
      contents,
      FileIdentity(
        device: 1, inode: UInt64(clock), size: UInt64(contents.utf8.count),
        modified: moment(modified ?? clock),
        changed: moment(clock)), kind
    )
  }

  mutating func touch(_ path: RelativePath) {
    clock += 1
    files[path]?.identity.changed = moment(clock)
  }

  func isFree(_ path: RelativePath) -> Bool {
    files[path] == nil && !files.keys.contains { $0.isAncestor(of: path) || path.isAncestor(of: $0) }
  }

  /// Carries a plan out as the engine does: actions by phase, then by path.
  ///
  /// - Returns: what was done, and what stood in the way.
  mutating func pass() throws -> (actions: [Action], conflicts: [String]) {
    let planner = Planner(policy: policy)
    var actions: [Action] = []
    var conflicts: [String] = []
    for finding in try situation.findings() {
      if finding.refusal != nil { continue }
      var decision = finding.decision
      if case .action(let action) = decision, action.kind == .inspect, let entry = action.entry {
        let file = files[action.path]!
        let seen = digest(file.contents, Planner.inspectionAlgorithm(entry, row: action.row))
        decision = planner.decide(entry, row: action.row, inspected: seen, identity: file.identity)
        if case .adopt(let digest, let isVerified) = decision {
          let row = Row(
            path: action.path, identity: file.identity, digest: digest, isVerified: isVerified,
            fingerprint: entry.fingerprint, placed: moment(0))
          actions.append(Action(.adopt, path: action.path, entry: entry, row: row))
        }
      }
      if case .action(let action) = decision { actions.append(action) }
      if case .conflict = decision { conflicts.append(finding.line) }
    }
    actions.sort { ($0.phase, $0.path) < ($1.phase, $1.path) }
    for action in actions { try carryOut(action) }
    return (actions, conflicts)
  }

  private mutating func carryOut(_ action: Action) throws {
    switch action.kind {
    case .fetch, .update, .restore, .replace, .revalidate:
      if action.kind == .revalidate, files[action.path]?.contents == manifest[action.path]?.contents {
        return
      }
      let standing = files[action.path]
      guard standing?.identity == action.present else { throw Stale(action: action) }
      if let standing {
        trash.append(standing.contents)
      } else if !isFree(action.path) {
        throw Stale(action: action)
      }
      let wanted = try #require(manifest[action.path])
      put(action.path, wanted.contents, modified: wanted.entry.modified?.seconds)
      let identity = try #require(files[action.path]).identity
      rows[action.path] = Row(
        path: action.path, identity: identity, digest: wanted.entry.digest ?? digest(wanted.contents),
        isVerified: wanted.entry.digest != nil, fingerprint: wanted.entry.fingerprint, placed: moment(0))
    case .adopt: rows[action.path] = action.row
    case .delete:
      guard let standing = files[action.path], standing.identity == action.present else {
        throw Stale(action: action)
      }
      trash.append(standing.contents)
      files[action.path] = nil
      rows[action.path] = nil
    case .forget: rows[action.path] = nil
    case .inspect: throw Stale(action: action)
    }
  }

  struct Stale: Error { var action: Action }
}

@Suite struct ConvergenceTests {
  private static let names = ["a", "b", "a-", "c"]

  private static func randomPath(_ random: inout Seeded) -> RelativePath {
    path((0...random.below(2)).map { _ in random.pick(names) }.joined(separator: "/"))
  }

  /// Publishes a new manifest: some entries new, some of another version, some gone.
  private static func publish(_ mirror: inout Mirror, _ random: inout Seeded) {
    for at in mirror.manifest.keys.sorted() where random.chance(30) { mirror.manifest[at] = nil }
    for _ in 0..<random.below(6) {
      let at = randomPath(&random)
      let isClear = !mirror.manifest.keys.contains { $0.isAncestor(of: at) || at.isAncestor(of: $0) }
      guard isClear || random.chance(10) else { continue }
      let contents = random.pick(["one", "two", "three", "four"])
      var entry = Entry(path: at, sources: [Source(url: "http://a/\(at.printable)")])
      switch random.below(5) {
      case 0: entry.digests = [digest(contents, .sha512)]
      case 1:
        entry.size = UInt64(contents.utf8.count)
        // Another version has another time.
        entry.modified = moment(Int64(5000 + random.below(1000)))
      case 2: break
      default: entry.digests = [digest(contents)]
      }
      mirror.manifest[at] = (contents, entry)
    }
  }

  /// What users do to the folder meanwhile.
  private static func disturb(_ mirror: inout Mirror, _ random: inout Seeded, _ serial: Int) -> String? {
    let at =
      random.chance(60) && !mirror.files.isEmpty
      ? random.pick(mirror.files.keys.sorted()) : randomPath(&random)
    switch random.below(6) {
    case 0:
      // Only what Tarn can bring back is deleted by the user here.
      if mirror.rows[at]?.identity == mirror.files[at]?.identity { mirror.files[at] = nil }
    case 1: mirror.touch(at)
    case 2: mirror.rows[at]?.isDoubtful = true
    case 3:
      guard mirror.isFree(at) || mirror.files[at]?.kind == .regular,
        mirror.files[at].map({ !$0.contents.hasPrefix("user") }) ?? true
      else { return nil }
      mirror.put(at, "user \(serial)")
      return "user \(serial)"
    case 4:
      if mirror.isFree(at), random.chance(30) {
        mirror.put(at, "", kind: random.pick([.symbolicLink, .special]))
      }
    default:
      // Somebody has put the wanted file there before Tarn did.
      if mirror.isFree(at), let wanted = mirror.manifest[at] {
        mirror.put(at, wanted.contents, modified: wanted.entry.modified?.seconds)
      }
    }
    return nil
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func theNextPlanIsEmpty(seed: UInt64) throws {
    var random = Seeded(seed)
    var done: Set<Action.Kind> = []
    var serial = 0
    for round in 0..<100 {
      var mirror = Mirror()
      mirror.policy.deletes = random.chance(70)
      mirror.policy.localChanges = random.pick(PassPolicy.LocalChanges.allCases)
      if random.chance(20) { mirror.policy.filter.exclude = PathPatterns([random.pick(Self.names)]) }
      var precious: Set<String> = []
      for _ in 0..<3 {
        Self.publish(&mirror, &random)
        for _ in 0..<random.below(4) {
          serial += 1
          if let contents = Self.disturb(&mirror, &random, serial) { precious.insert(contents) }
        }
        let context: Comment = "seed \(seed), round \(round)"
        let first = try mirror.pass()
        done.formUnion(first.actions.map(\.kind))
        // A directory that stood where a file belongs is empty only after the first pass.
        if !first.conflicts.isEmpty { _ = try mirror.pass() }
        let last = try mirror.pass()
        #expect(last.actions.allSatisfy { $0.kind == .revalidate }, context)
        let again = try mirror.situation.findings()
        let settled = again.allSatisfy { finding in
          finding.refusal != nil || ["current", "revalidate", "unlisted"].contains(finding.word)
            || finding.word.hasPrefix("conflict") || finding.word.hasPrefix("kept")
            || finding.word == "inspect"
        }
        #expect(settled, context)
        // I2: what users wrote is in the folder or in the trash.
        let kept = Set(mirror.files.values.map(\.contents)).union(mirror.trash)
        #expect(precious.isSubset(of: kept), context)
      }
    }
    #expect(
      done.isSuperset(of: [.fetch, .update, .restore, .replace, .revalidate, .adopt, .delete, .forget]))
  }

  /// Without anybody in the way, one pass is enough, and the folder is then the manifest.
  @Test(arguments: 0..<4 as Range<UInt64>) func onePassIsEnough(seed: UInt64) throws {
    var random = Seeded(seed)
    for round in 0..<100 {
      var mirror = Mirror()
      mirror.policy.deletes = true
      for _ in 0..<3 {
        Self.publish(&mirror, &random)
        mirror.manifest = mirror.manifest.filter { at, wanted in
          wanted.entry.digest != nil && !mirror.manifest.keys.contains { $0.isAncestor(of: at) }
        }
        let first = try mirror.pass()
        if !first.conflicts.isEmpty { _ = try mirror.pass() }
        let contents = mirror.files.mapValues(\.contents)
        guard try mirror.situation.findings().allSatisfy({ $0.word == "current" }),
          contents == mirror.manifest.mapValues(\.contents), mirror.rows.keys.count == contents.count
        else {
          Issue.record("seed \(seed), round \(round): \(try mirror.situation.lines())")
          return
        }
      }
    }
  }
}
