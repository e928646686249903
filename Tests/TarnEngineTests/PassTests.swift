import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What one pass makes of a feed and a folder.
@Suite struct PassTests {
  private func filled() throws -> World {
    let world = World()
    for name in ["a", "b/c", "b/d/e", "f"] { world.want(name, "text of \(name)") }
    try world.run()
    return world
  }

  @Test func aFreshPassBringsEverything() throws {
    let world = World()
    world.want("a", "one")
    world.want("b/c", "two")
    world.want("empty", "")
    let report = try world.run()
    #expect(world.files == ["a": "one", "b/c": "two", "empty": ""])
    #expect(report.isInSync)
    #expect(report.counts.fetched == 3)
    #expect(report.counts.wanted == 3)
    #expect(report.counts.planned.all == 3)
    #expect(report.counts.inPlace == 3)
    #expect(report.bytes.wanted == 6)
    #expect(report.bytes.received == 6)
    #expect(report.bytes.published == 6)
    #expect(report.manifest.format == "test list")
    #expect(world.log.done.sorted() == ["fetched a", "fetched b/c", "fetched empty"])
    #expect(world.partialNames.isEmpty)
    let ledger = world.ledger.contents
    #expect(ledger.rows.count == 3)
    #expect(ledger.rows.values.map(\.isVerified) == [true, true, true])
    #expect(ledger.intents.isEmpty)
    #expect(ledger.partials.isEmpty)
    #expect(ledger.facts[.outcome] == "in-sync")
    #expect(ledger.events.map(\.code) == ["fetched", "fetched", "fetched"])
  }

  @Test func theNextPassDoesNothing() throws {
    let world = try filled()
    #expect(try world.plan().actions.isEmpty)
    let installs = world.folder.count(.install)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.current == 4)
    #expect(report.counts.planned.all == 0)
    #expect(world.server.requests.isEmpty)
    #expect(world.folder.count(.install) == installs)
    #expect(world.folder.count(.makePartial) == 4)
    #expect(world.trash.isEmpty)
  }

  @Test func planningChangesNothing() throws {
    let world = World()
    world.want("a", "one")
    world.want("Release", "index")
    let before = world.ledger.contents
    let (report, actions) = try world.plan()
    #expect(actions.map(\.path) == ["a".path, "Release".path])
    #expect(actions.map(\.kind) == [.fetch, .fetch])
    #expect(actions.map(\.phase) == [.payload, .index])
    #expect(report.counts.planned.all == 2)
    #expect(world.files.isEmpty)
    #expect(world.ledger.contents.rows == before.rows)
    #expect(world.server.requests.isEmpty)
  }

  @Test func theOrderOfTheFeedDoesNotMatter() throws {
    let names = ["a-b", "a/b", "b/c/d", "z", "zz"]
    var files: [[String: String]] = []
    for seed in 0..<6 {
      let world = World()
      for name in names { world.want(name, name) }
      if seed > 0 {
        let random = SeededRandom(seed: UInt64(seed))
        world.items = world.items.map { ($0, random.next()) }.sorted { $0.1 < $1.1 }.map(\.0)
      }
      let report = try world.run()
      #expect(report.counts.fetched == names.count)
      files.append(world.files)
      #expect(try world.plan().actions.isEmpty)
    }
    #expect(Set(files).count == 1)
  }

  @Test func aNewVersionReplacesTheOldOne() throws {
    let world = try filled()
    world.want("a", "the new text of a")
    let report = try world.run()
    #expect(report.counts.updated == 1)
    #expect(report.counts.current == 3)
    #expect(world.text("a") == "the new text of a")
    #expect(world.trash == ["text of a"])
    let row = try #require(world.ledger.contents.trash.values.first)
    #expect(row.isOwn)
    #expect(row.reason == .replaced)
    #expect(row.path == "a".path)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aVanishedFileComesBack() throws {
    let world = try filled()
    world.folder.delete("b/c".path)
    let report = try world.run()
    #expect(report.counts.restored == 1)
    #expect(world.isConverged)
    #expect(world.log.done == ["restored b/c"])
  }

  @Test func anEditedFileIsRestoredAndTheEditKept() throws {
    let world = try filled()
    world.folder.edit("a".path, "mine".bytes)
    let report = try world.run()
    #expect(report.counts.replaced == 1)
    #expect(world.text("a") == "text of a")
    #expect(world.trash == ["mine"])
    let row = try #require(world.ledger.contents.trash.values.first)
    #expect(!row.isOwn)
    #expect(row.reason == .edited)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aTouchedFileIsOnlyRecordedAgain() throws {
    let world = try filled()
    world.folder.edit("a".path, "text of a".bytes)
    let events = world.ledger.contents.events.count
    let report = try world.run()
    #expect(report.isInSync && !report.counts.hasChanges && world.log.done.isEmpty)
    #expect(world.ledger.contents.events.count == events)
    #expect(world.server.requests.isEmpty)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aTouchedFileWithANewVersionIsUpdated() throws {
    let world = try filled()
    world.folder.edit("a".path, "text of a".bytes)
    world.want("a", "new")
    let report = try world.run()
    #expect(report.counts.updated == 1)
    #expect(world.text("a") == "new")
    #expect(world.ledger.contents.trash.values.map(\.isOwn) == [true])
  }

  @Test(arguments: [PassPolicy.LocalChanges.keep, .report])
  func localChangesStayByPolicy(_ policy: PassPolicy.LocalChanges) throws {
    let world = try filled()
    world.policy.localChanges = policy
    world.folder.edit("a".path, "mine".bytes)
    world.folder.delete("f".path)
    for _ in 0..<2 {
      let report = try world.run()
      #expect(world.text("a") == "mine")
      #expect(world.text("f") == nil)
      #expect(world.trash.isEmpty)
      #expect(report.counts.kept == (policy == .keep ? 2 : 0))
      #expect(report.counts.conflict == (policy == .keep ? 0 : 2))
      #expect(report.isInSync == (policy == .keep))
    }
    guard policy == .report else { return }
    #expect(Set(world.log.problems.map(\.code)) == ["locally-changed", "locally-deleted"])
  }

  @Test func aKeptEditSurvivesANewVersion() throws {
    let world = try filled()
    world.policy.localChanges = .keep
    world.folder.edit("a".path, "mine".bytes)
    world.want("a", "new")
    try world.run()
    #expect(world.text("a") == "mine")
  }

  @Test func whatIsThereAlreadyIsAdopted() throws {
    let world = World()
    world.want("a", "one")
    world.want("b", "two")
    world.folder.write("a".path, "one".bytes)
    let flushes = world.folder.count(.flush)
    let report = try world.run()
    #expect(report.counts.adopted == 1)
    #expect(report.counts.fetched == 1)
    #expect(world.server.urls == [World.host + "b"])
    #expect(world.folder.count(.flush) > flushes)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func foreignObjectsAreConflictsAndStay() throws {
    let world = World()
    for name in ["file", "longer", "link", "directory", "special", "good"] { world.want(name, "wanted") }
    world.folder.write("file".path, "WANTED".bytes)
    world.folder.write("longer".path, "other bytes".bytes)
    world.folder.makeLink("link".path)
    world.folder.makeDirectory("directory".path)
    world.folder.makeSpecial("special".path)
    for _ in 0..<2 {
      world.clock.advance(.seconds(1))
      let report = try world.run()
      #expect(report.counts.conflict == 5)
      #expect(!report.isInSync)
      #expect(world.text("file") == "WANTED")
      #expect(world.text("longer") == "other bytes")
      #expect(world.text("good") == "wanted")
      let codes = Dictionary(
        uniqueKeysWithValues: report.problems.map { (String(decoding: $0.name, as: UTF8.self), $0.code) })
      #expect(
        codes == [
          "file": "foreign-file", "longer": "foreign-file", "link": "link-in-the-way",
          "directory": "directory-in-the-way", "special": "special-file-in-the-way",
        ])
    }
    #expect(world.ledger.contents.problems["file".bytes]?.attempts == 2)
    world.folder.delete("file".path)
    #expect(try world.run().counts.conflict == 4)
    #expect(world.ledger.contents.problems["file".bytes] == nil)
  }

  @Test func nothingGoesBelowALinkOrAForeignFile() throws {
    let world = World()
    world.want("link/a", "one")
    world.want("file/a", "two")
    world.folder.makeLink("link".path)
    world.folder.write("file".path, "mine".bytes)
    let report = try world.run()
    #expect(report.counts.conflict == 2)
    #expect(report.problems.map(\.code) == ["parent-not-a-directory", "parent-not-a-directory"])
    #expect(world.text("file") == "mine")
    #expect(world.server.requests.isEmpty)
  }

  @Test func aPathThatIsFileAndDirectoryIsRefused() throws {
    let world = World()
    world.want("a", "file")
    world.want("a-b", "between")
    world.want("a/b", "below")
    world.want("c", "good")
    let report = try world.run()
    #expect(report.counts.refused == 2)
    #expect(report.counts.wanted == 4)
    #expect(Set(report.problems.map(\.code)) == ["path-file-and-directory"])
    #expect(world.files == ["a-b": "between", "c": "good"])
  }

  @Test func twoEntriesOfOnePathHaveToAgree() throws {
    let world = World()
    let one = world.entry("a", "text", sources: ["http://one.example/a"])
    let two = world.entry("a", "text", sources: ["http://two.example/a"])
    world.server.put("http://two.example/a", "text".bytes)
    world.items = [
      .entry(one), .entry(two), .entry(world.serve("b", "x")), .entry(world.entry("b", "y")),
    ]
    let report = try world.run()
    #expect(world.files == ["a": "text"])
    #expect(report.counts.wanted == 2)
    #expect(report.counts.refused == 1)
    #expect(report.problems.map(\.code) == ["path-twice"])
    #expect(world.server.urls == ["http://one.example/a", "http://two.example/a"])
  }

  @Test func whatRefusedEntriesNameIsNeverDeleted() throws {
    let world = try filled()
    world.policy.deletes = true
    world.items =
      world.items.dropLast() + [
        .refused(Refusal(path: "f".path, code: "path-not-portable", reason: "as told"))
      ]
    let report = try world.run()
    #expect(report.counts.refused == 1)
    #expect(report.counts.wanted == 4)
    #expect(report.counts.deleted == 0)
    #expect(world.text("f") == "text of f")
    #expect(world.row("f") != nil)
  }

  /// A name that is longer than what is shown of one that is no path.
  @Test func whatLongRefusedNamesStandForIsNeverDeleted() throws {
    let world = World()
    let long = "\(String(repeating: "d", count: 200))/\(String(repeating: "n", count: 202))"
    world.want(long, "text")
    world.want("below/\(long)", "text")
    try world.run()
    world.policy.deletes = true
    world.items = [
      .refused(Refusal(name: "below".bytes, code: "type-not-supported", reason: "as told")),
      .refused(Refusal(name: long.bytes, code: "digest-malformed", reason: "as told")),
    ]
    let report = try world.run()
    #expect(report.counts.deleted == 0)
    #expect(report.problems.map(\.name) == ["below".bytes, long.bytes])
    #expect(world.files == [long: "text", "below/\(long)": "text"])
  }

  /// A heading of a checksum list, `a%2Fb` in an index.
  @Test func whatNamesNoPathRefusesNothingElse() throws {
    let world = World()
    let good = [world.serve("a/b", "ab"), world.serve("pool/x", "x")]
    world.items = [
      .refused(Refusal(text: "a/b".bytes, code: "path-encoded-slash", reason: "as told")),
      .refused(Refusal(text: "pool".bytes, code: "line-malformed", reason: "as told")),
    ]
    world.items += good.map { .entry($0) }
    let report = try world.run()
    #expect(report.counts.refused == 2)
    #expect(report.counts.conflict == 0)
    #expect(world.files == ["a/b": "ab", "pool/x": "x"])
  }

  @Test func refusedNamesAreReportedAsTheyCame() throws {
    let world = World()
    world.items = [.refused(Refusal(name: "../x".bytes, .dotSegment))]
    let report = try world.run()
    #expect(report.problems.map(\.name) == ["../x".bytes])
    #expect(report.problems.map(\.kind) == [.refused])
    #expect(!report.isInSync)
  }

  @Test func filtersLeaveOutAndDoNotDelete() throws {
    let world = try filled()
    world.policy.deletes = true
    world.policy.filter.exclude = PathPatterns(["b/"])
    world.want("b/new", "new")
    var report = try world.run()
    #expect(report.counts.excluded == 3)
    #expect(report.counts.unlisted == 0)
    #expect(report.counts.wanted == 2)
    #expect(report.counts.deleted == 0)
    #expect(world.text("b/c") == "text of b/c")
    #expect(world.text("b/new") == nil)
    world.policy.filter = PathFilter()
    world.policy.filter.include = PathPatterns(["a"])
    report = try world.run()
    #expect(report.counts.wanted == 1)
    #expect(world.text("f") == "text of f")
    #expect(report.isInSync)
  }

  @Test func payloadComesBeforeIndexAndDeletionsLast() throws {
    let world = World()
    for number in 0..<20 { world.want("old-\(number)", "old") }
    try world.run()
    world.policy.deletes = true
    world.unlist("old-7")
    let order = Locked<[String]>([])
    for name in ["Release", "index.html", "p/a", "p/b", "zz"] { world.want(name, "new \(name)") }
    world.folder.beforeInstall { path in order.withLock { $0.append(path.printable) } }
    world.folder.beforeRemove { path in order.withLock { $0.append("-" + path.printable) } }
    try world.run()
    let steps = order.withLock { $0 }
    #expect(Set(steps.prefix(3)) == ["p/a", "p/b", "zz"])
    #expect(Set(steps.dropFirst(3).prefix(2)) == ["Release", "index.html"])
    #expect(steps.last == "-old-7")
    #expect(steps.count == 6)
  }

  @Test func aFileMakesWayForADirectory() throws {
    let world = World()
    try world.fill("a", "file")
    world.unlist("a")
    world.want("a/b", "one")
    world.want("a/c", "two")
    let report = try world.run()
    #expect(world.text("a/b") == "one")
    #expect(world.text("a/c") == "two")
    #expect(report.isInSync)
    #expect(report.counts.fetched == 2)
    #expect(report.counts.planned.all == 2)
    #expect(world.trash == ["file"])
    #expect(world.row("a") == nil)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func aFileThatAppearsMeanwhileIsLookedAtAgain() throws {
    let world = World()
    world.want("a", "one")
    world.want("b", "two")
    let folder = world.folder
    folder.beforeInstall { path in
      if path == "a".path, folder.contents(path) == nil { folder.write(path, "mine".bytes) }
    }
    let report = try world.run()
    #expect(world.text("a") == "mine")
    #expect(world.text("b") == "two")
    #expect(report.counts.conflict == 1)
    #expect(report.counts.failed == 0)
    #expect(report.problems.map(\.code) == ["foreign-file"])
    #expect(report.counts.planned.all == 1 && report.bytes.planned == 3)
  }

  @Test func aFileEditedMeanwhileGoesToTheTrash() throws {
    let world = try filled()
    world.want("a", "new")
    let folder = world.folder
    let isEdited = Locked(false)
    folder.beforeInstall { path in
      let isFirst = isEdited.withLock { isEdited in
        defer { isEdited = true }
        return !isEdited
      }
      if isFirst { folder.edit(path, "mine".bytes) }
    }
    let report = try world.run()
    #expect(world.text("a") == "new")
    #expect(world.trash == ["mine"])
    #expect(report.counts.replaced == 1)
    #expect(report.counts.planned.all == 1 && report.bytes.planned == 3)
    #expect(report.isInSync)
  }

  @Test func aFileThatNeverRestsIsReported() throws {
    let world = try filled()
    world.want("a", "new")
    let folder = world.folder
    let count = Locked(0)
    folder.beforeInstall { path in
      let number = count.withLock { count in
        count += 1
        return count
      }
      folder.edit(path, "edit \(number)".bytes)
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["changed-meanwhile"])
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(report.counts.failed == 1)
    #expect(!report.isInSync)
    #expect(world.text("a") == "edit 3")
    folder.beforeInstall(nil)
    #expect(try world.run().isInSync)
    #expect(world.trash == ["edit 3"])
  }

  // MARK: Feeds that are not taken

  @Test func aBrokenFeedChangesNothing() throws {
    let world = try filled()
    world.policy.deletes = true
    world.items = []
    world.want("new", "new")
    world.feedFailure = FeedFailure(code: "feed-truncated", message: "it ends early", line: 3, column: 1)
    let before = world.files
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .feedMalformed)
    #expect(failure?.code == "feed-truncated")
    #expect(failure?.message.contains(":3:1") == true)
    #expect(world.files == before)
    #expect(world.ledger.contents.facts[.outcome] == "failed")
  }

  @Test func anExpiredOrOlderManifestChangesNothing() throws {
    let world = try filled()
    world.end.version = 7
    try world.run()
    world.want("a", "new")
    world.end.version = 6
    var failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == "feed-older")
    world.end.version = 8
    world.end.expires = Timestamp(nanoseconds: world.clock.time.nanoseconds - 1)
    failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == "feed-expired")
    #expect(world.text("a") == "text of a")
    #expect(world.ledger.contents.facts[.manifestVersion] == "7")
    world.end.expires = Timestamp(nanoseconds: world.clock.time.nanoseconds + 1)
    try world.run()
    #expect(world.text("a") == "new")
    #expect(world.ledger.contents.facts[.manifestVersion] == "8")
  }

  @Test func anUnreachableFeedSaysSo() throws {
    let world = World()
    world.location = .remote(url: "http://feed.example/list")
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .feedUnreachable)
    #expect(failure?.code == "http-404")
  }
}
