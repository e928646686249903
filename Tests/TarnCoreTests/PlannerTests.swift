import TarnCore
import Testing

/// The decision table: what the feed says x what the ledger says x what stands there x policy.
@Suite struct PlannerTests {
  enum Wanted: CaseIterable { case digest, otherAlgorithm, fingerprint, nothing }
  enum Recorded: CaseIterable { case none, same, otherVersion, doubtful }
  enum Standing: CaseIterable { case absent, intact, touched, edited, directory, link, special }
  typealias Changes = PassPolicy.LocalChanges

  static func entry(_ wanted: Wanted) -> Entry {
    switch wanted {
    case .digest: Entry(path: path("a"), size: 100, digests: [digest("W")], sources: sources)
    case .otherAlgorithm: Entry(path: path("a"), size: 100, digests: [digest("W", .sha512)], sources: sources)
    case .fingerprint: Entry(path: path("a"), size: 100, modified: moment(1000), sources: sources)
    case .nothing: Entry(path: path("a"), sources: sources)
    }
  }

  private static let sources = [Source(url: "http://a/a")]

  static func row(_ recorded: Recorded, _ wanted: Wanted) -> Row? {
    let fingerprint = entry(wanted).fingerprint
    switch recorded {
    case .none: return nil
    case .same: return TarnCoreTests.row("a", "W", fingerprint: fingerprint)
    case .otherVersion: return TarnCoreTests.row("a", "V", fingerprint: Array("older".utf8))
    case .doubtful:
      var row = TarnCoreTests.row("a", "W", fingerprint: fingerprint)
      row.isDoubtful = true
      return row
    }
  }

  static func stat(_ standing: Standing) -> FileIdentity {
    switch standing {
    case .touched: identity(changed: 2001)
    case .edited: identity(size: 101, modified: 1500, changed: 2001)
    default: identity()
    }
  }

  static func present(_ standing: Standing) -> Present? {
    let kind: Present.Kind
    switch standing {
    case .absent: return nil
    case .directory: kind = .directory
    case .link: kind = .symbolicLink
    case .special: kind = .special
    case .intact, .touched, .edited: kind = .regular
    }
    return Present(path: path("a"), kind: kind, identity: stat(standing))
  }

  static func planner(_ changes: Changes) -> Planner {
    var policy = PassPolicy()
    policy.localChanges = changes
    return Planner(policy: policy)
  }

  /// The table, as a person would write it down.
  private static func expected(
    _ wanted: Wanted, _ recorded: Recorded, _ standing: Standing, _ changes: Changes
  ) -> String {
    switch (standing, recorded) {
    // What took the place of a file of Tarn's is an edit.
    case (.directory, .same), (.directory, .otherVersion), (.directory, .doubtful), (.link, .same),
      (.link, .otherVersion), (.link, .doubtful), (.special, .same), (.special, .otherVersion),
      (.special, .doubtful):
      if changes == .restore { return "replace" }
      if changes == .keep { return "kept local-edit-kept" }
      fallthrough
    case (.directory, _), (.link, _), (.special, _):
      return [
        .directory: "conflict directory-in-the-way", .link: "conflict link-in-the-way",
        .special: "conflict special-file-in-the-way",
      ][standing]!
    case (.absent, .none): return "fetch"
    case (.absent, _):
      return [.restore: "restore", .keep: "kept local-deletion-kept", .report: "conflict locally-deleted"][
        changes]!
    // Nobody knows the file: it is hashed if it may be the wanted one.
    case (.edited, .none): return "conflict foreign-file"
    case (_, .none): return wanted == .nothing ? "conflict foreign-file" : "inspect"
    case (.touched, _), (.edited, _), (_, .doubtful): return "inspect"
    case (.intact, .same):
      return [
        .digest: "current", .otherAlgorithm: "inspect", .fingerprint: "current", .nothing: "revalidate",
      ][wanted]!
    case (.intact, .otherVersion):
      return [.digest: "update", .otherAlgorithm: "inspect", .fingerprint: "update", .nothing: "revalidate"][
        wanted]!
    }
  }

  @Test(arguments: Wanted.allCases, Recorded.allCases) func decides(_ wanted: Wanted, _ recorded: Recorded) {
    for standing in Standing.allCases {
      for changes in Changes.allCases {
        let entry = Self.entry(wanted)
        let row = Self.row(recorded, wanted)
        let present = Self.present(standing)
        let decision = Self.planner(changes).decide(entry, row: row, present: present)
        #expect(decision.word == Self.expected(wanted, recorded, standing, changes), "\(standing) \(changes)")
        guard case .action(let action) = decision else { continue }
        #expect(action.entry == entry && action.row == row && action.path == entry.path)
        #expect(action.present == present?.identity, "\(standing) \(changes)")
        #expect(action.phase == .payload)
      }
    }
  }

  enum Contents: String, CaseIterable { case wanted = "W", older = "V", strange = "X" }

  private static func expectedAfterInspection(
    _ wanted: Wanted, _ recorded: Recorded, _ contents: Contents, _ standing: Standing, _ changes: Changes
  ) -> String {
    let hasDigest = wanted == .digest || wanted == .otherAlgorithm
    if hasDigest, contents == .wanted { return "adopt" }
    let edited = [
      .restore: "replace", .keep: "kept local-edit-kept", .report: "conflict locally-changed",
    ][changes]!
    switch recorded {
    case .none:
      return wanted == .fingerprint && standing != .edited ? "adopt-unverified" : "conflict foreign-file"
    case .doubtful where hasDigest || contents != .wanted: return "replace"
    case .same, .doubtful:
      if wanted == .otherAlgorithm { return standing == .intact ? "update" : edited }
      guard contents == .wanted else { return edited }
      // What was recorded stands there, and the feed says no more than it did then.
      return wanted == .fingerprint ? "adopt" : "revalidate"
    case .otherVersion:
      // The hash is of the feed's algorithm: it cannot be held against the record, but stat can.
      if wanted == .otherAlgorithm { return standing == .intact ? "update" : edited }
      guard contents == .older else { return edited }
      return wanted == .nothing ? "revalidate" : "update"
    }
  }

  @Test(arguments: Wanted.allCases, Recorded.allCases) func decidesAgain(
    _ wanted: Wanted, _ recorded: Recorded
  ) {
    for contents in Contents.allCases {
      for standing in [Standing.intact, .touched, .edited] {
        for changes in Changes.allCases {
          let entry = Self.entry(wanted)
          let row = Self.row(recorded, wanted)
          let algorithm = Planner.inspectionAlgorithm(entry, row: row)
          let stat = Self.stat(standing)
          let decision = Self.planner(changes).decide(
            entry, row: row, inspected: digest(contents.rawValue, algorithm), identity: stat)
          #expect(
            decision.word == Self.expectedAfterInspection(wanted, recorded, contents, standing, changes),
            "\(contents) \(standing) \(changes)")
          switch decision {
          case .action(let action):
            #expect(action.kind != .inspect, "that would never end")
            #expect(action.present == stat && action.entry == entry)
          case .adopt(let adopted, _): #expect(adopted == digest(contents.rawValue, algorithm))
          default: break
          }
        }
      }
    }
  }

  /// A row that was not verified stays so until a digest of the feed fits.
  @Test func adoptionKeepsWhatIsKnown() {
    let entry = Self.entry(.fingerprint)
    let row = TarnCoreTests.row("a", "W", fingerprint: entry.fingerprint, isVerified: false)
    let touched = identity(changed: 2001)
    #expect(
      Self.planner(.restore).decide(entry, row: row, inspected: digest("W"), identity: touched)
        == .adopt(digest("W"), isVerified: false))
    #expect(
      Self.planner(.restore).decide(Self.entry(.digest), row: row, inspected: digest("W"), identity: touched)
        == .adopt(digest("W"), isVerified: true))
  }

  /// On another disk each file is a copy. One with another time may be of anybody.
  @Test func whatMovedWithItsMirrorIsTarns() {
    let row = TarnCoreTests.row("a", "W")
    let moved = identity(inode: 8, changed: 2001)
    #expect(row.isTarns(moved, digest("W")))
    #expect(!row.isTarns(moved, digest("X")))
    var adopted = row
    adopted.isAdopted = true
    #expect(!adopted.isTarns(moved, digest("W")))
    for stat in [identity(inode: 8, size: 101), identity(inode: 8, modified: 1001)] {
      #expect(!row.isTarns(stat, digest("W")))
    }
  }

  @Test func hashesWithTheAlgorithmThatTellsMost() {
    let both = Entry(path: path("a"), digests: [digest("W"), digest("W", .sha512)])
    let weak = Entry(path: path("a"), digests: [digest("W", .md5)])
    let bare = Entry(path: path("a"))
    let row = TarnCoreTests.row("a")
    #expect(Planner.inspectionAlgorithm(both, row: nil) == .sha512)
    #expect(Planner.inspectionAlgorithm(both, row: row) == .sha256)
    #expect(Planner.inspectionAlgorithm(weak, row: row) == .md5)
    #expect(Planner.inspectionAlgorithm(bare, row: row) == .sha256)
    #expect(Planner.inspectionAlgorithm(bare, row: nil) == .sha256)
  }

  @Test func anyDigestOfTheRecordsAlgorithmTells() {
    let both = Entry(path: path("a"), digests: [digest("W"), digest("W", .sha512)])
    let present = Self.present(.intact)
    #expect(Self.planner(.restore).decide(both, row: TarnCoreTests.row("a"), present: present) == .current)
    let other = Self.planner(.restore).decide(both, row: TarnCoreTests.row("a", "V"), present: present)
    #expect(other.word == "update")
  }

  @Test(
    arguments: [
      // seconds after the time that the feed says, exact, taken for the same
      (0, true, true), (1, true, false), (-1, true, false), (0, false, true), (59, false, true),
      (60, false, false),
      (-1, false, false),
    ] as [(Int64, Bool, Bool)]) func quickCheck(after: Int64, isExact: Bool, same: Bool)
  {
    var entry = Self.entry(.fingerprint)
    entry.modifiedIsExact = isExact
    let present = Present(path: path("a"), kind: .regular, identity: identity(modified: 1000 + after))
    let word = Self.planner(.restore).decide(entry, row: nil, present: present).word
    #expect(word == (same ? "inspect" : "conflict foreign-file"))
  }

  @Test func absurdTimesAndSizesAreCompared() {
    for time in [Int64.min, .min + 1_000_000_000, .max] {
      for wanted in [Int64.min, .max, 0] {
        var entry = Self.entry(.fingerprint)
        entry.size = .max
        entry.modified = Timestamp(nanoseconds: wanted)
        var stat = identity(size: .max)
        stat.modified = Timestamp(nanoseconds: time)
        let present = Present(path: path("a"), kind: .regular, identity: stat)
        let word = Self.planner(.restore).decide(entry, row: nil, present: present).word
        #expect(word == (time == wanted ? "inspect" : "conflict foreign-file"))
      }
    }
  }

  @Test func indexFilesArePublishedLast() {
    let index = Entry(path: path("x/SHA256SUMS"), sources: Self.sources)
    guard case .action(let action) = Self.planner(.restore).decide(index, row: nil, present: nil) else {
      Issue.record("no action")
      return
    }
    #expect(action.phase == .index && Action.Phase.payload < .index && Action.Phase.index < .deletion)
  }

  @Test(arguments: [false, true], [false, true]) func decidesOverTheUnlisted(deletes: Bool, excluded: Bool) {
    var policy = PassPolicy()
    policy.deletes = deletes
    if excluded { policy.filter.exclude = PathPatterns(["a"]) }
    let planner = Planner(policy: policy)
    for recorded in [Recorded.same, .doubtful] {
      for standing in Standing.allCases {
        let row = Self.row(recorded, .digest)!
        let decision = planner.decideUnlisted(row, present: Self.present(standing))
        let isOwn = recorded == .same && (standing == .intact || standing == .touched)
        let word =
          excluded
          ? "unlisted" : standing == .absent ? "forget" : !deletes ? "unlisted" : isOwn ? "delete" : "forget"
        #expect(decision.word == word, "\(recorded) \(standing)")
        guard case .action(let action) = decision else { continue }
        #expect(action.phase == .deletion && action.row == row && action.entry == nil)
        #expect(action.kind != .delete || action.present == Self.present(standing)?.identity)
      }
    }
  }

  /// Every part of the identity but the time of change and the device tells an edit from what Tarn placed.
  @Test func anEditedFileIsNeverDeleted() {
    var policy = PassPolicy()
    policy.deletes = true
    for stat in [identity(inode: 8), identity(size: 101), identity(modified: 1001)] {
      let present = Present(path: path("a"), kind: .regular, identity: stat)
      #expect(
        Planner(policy: policy).decideUnlisted(TarnCoreTests.row("a"), present: present).word == "forget")
    }
    var moved = identity()
    moved.device = 99
    #expect(moved.isSame(as: identity()) && moved.isSameContents(as: identity()))
    #expect(
      !identity(changed: 1).isSame(as: identity()) && identity(changed: 1).isSameContents(as: identity()))
  }
}
