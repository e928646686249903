import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Feeds that are asked for only if they have changed.
@Suite struct UnchangedFeedTests {
  static let list = World.host + "list"

  /// Three files, by a list on the server.
  private func world(etag: String? = "\"1\"") -> World {
    let world = World()
    world.location = .remote(url: Self.list)
    world.settings = "settings"
    world.policy.retries = 0
    for name in ["a", "b", "sub/c"] { world.want(name, "text of \(name)") }
    publish(world, etag: etag)
    return world
  }

  /// - Parameter text: nil for one that goes with the tag.
  private func publish(_ world: World, etag: String?, text: String? = nil) {
    world.server.answer(Self.list, FakeAnswer(etag: etag, body: (text ?? "list \(etag ?? "")").bytes))
  }

  /// The conditions of the requests for the feed.
  private func asked(_ world: World) -> [String?] {
    world.server.requests.filter { $0.url == Self.list }.map(\.ifNoneMatch)
  }

  @Test func itIsAskedForAndNotReadAgain() throws {
    let world = world()
    let first = try world.run()
    #expect(first.isInSync && !first.isFeedUnchanged)
    #expect(asked(world) == [nil])
    world.clock.advance(.seconds(3600))
    // A full pass would complain.
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "read")
    let second = try world.run()
    #expect(asked(world) == ["\"1\""])
    #expect(world.server.urls == [Self.list])
    #expect(second.isInSync && second.isFeedUnchanged && second.manifest.isComplete)
    #expect(second.counts.wanted == 3 && second.counts.current == 3 && second.counts.inPlace == 3)
    #expect(second.bytes.wanted == first.bytes.wanted && second.bytes.inPlace == first.bytes.inPlace)
    #expect(second.manifest.format == first.manifest.format)
    let facts = world.ledger.contents.facts
    #expect(facts[.success] == second.ended.rfc3339 && facts[.attempt] == second.started.rfc3339)
    #expect(facts[.outcome] == "in-sync" && facts[.entriesCurrent] == "3")
    // The work does not grow with the folder: to count the rows reads all of an index.
    let counted = world.ledger.rowCounts.withLock { $0 }
    #expect(try world.run().isFeedUnchanged)
    #expect(world.ledger.rowCounts.withLock { $0 } == counted)
  }

  @Test func itIsAskedForByItsTime() throws {
    let world = world()
    var answer = FakeAnswer(body: "list".bytes)
    answer.lastModified = Timestamp(seconds: 1000)
    answer.sent = Timestamp(seconds: 1030)
    world.server.answer(Self.list, answer)
    try world.run()
    // Half a minute old: it may have been written twice.
    try world.run()
    #expect(world.server.requests.map(\.ifModifiedSince) == [nil])
    answer.sent = Timestamp(seconds: 2000)
    world.server.answer(Self.list, answer)
    try world.run()
    #expect(try world.run().isFeedUnchanged)
    #expect(world.server.requests.map(\.ifModifiedSince) == [answer.lastModified?.rfc3339])
    #expect(world.ledger.contents.facts[.upstreamChanged] == answer.lastModified?.rfc3339)
  }

  @Test func aFeedThatChangedIsRead() throws {
    let world = world()
    try world.run()
    world.want("d", "new")
    publish(world, etag: "\"2\"")
    let report = try world.run()
    #expect(asked(world) == ["\"1\""])
    #expect(report.counts.fetched == 1 && report.isInSync && !report.isFeedUnchanged)
    #expect(try world.run().isFeedUnchanged)
    #expect(asked(world) == ["\"2\""])
  }

  /// Of a file whose size the feed does not tell, and which is another one by now.
  @Test func aSizeThatARepairLearnedHolds() throws {
    let world = world()
    world.catalog = MemoryCatalog()
    world.add(world.bareEntry("d", listing: "new"))
    world.server.put(World.host + "d", "short".bytes, etag: "\"1\"")
    try world.run()
    #expect(try world.run().isFeedUnchanged)
    func sizes() -> [String?] { [.bytesWanted, .bytesCurrent].map { world.ledger.contents.facts[$0] } }
    let before = sizes()
    world.folder.delete("d".path)
    world.server.put(World.host + "d", "much longer".bytes, etag: "\"2\"")
    #expect(try world.repair([Region("d".path, .itself)]).report.counts.restored == 1)
    let learned = sizes()
    #expect(learned != before)
    for isUnchanged in [false, true] {
      #expect(try world.run().isFeedUnchanged == isUnchanged)
      #expect(sizes() == learned)
    }
  }

  /// What to do about it only the entries say: the feed is read without a condition in the same pass.
  @Test(arguments: ["delete", "edit", "touch", "replace", "directory"])
  func aFolderThatChangedIsMendedInTheSamePass(_ change: String) throws {
    let world = world()
    try world.run()
    switch change {
    case "delete": world.folder.delete("a".path)
    case "edit": world.folder.edit("a".path, "mine".bytes)
    case "touch": world.folder.edit("a".path, "text of a".bytes)
    case "replace": world.folder.write("a".path, "mine".bytes)
    default:
      world.folder.delete("a".path)
      world.folder.makeDirectory("a".path)
    }
    let report = try world.run()
    #expect(asked(world) == ["\"1\"", nil])
    #expect(!report.isFeedUnchanged)
    #expect(report.isInSync && world.text("a") == "text of a")
    #expect(try world.run().isFeedUnchanged)
  }

  @Test func whatVerifyDoubtsIsFetchedAgain() throws {
    let world = world()
    try world.run()
    var row = try #require(world.row("a"))
    row.isDoubtful = true
    try world.ledger.apply([.row(row)])
    try world.run()
    #expect(asked(world) == ["\"1\"", nil])
    #expect(world.row("a")?.isDoubtful == false)
  }

  /// Other files beside the mirror's are nobody's business.
  @Test func aStrangerChangesNothing() throws {
    let world = world()
    try world.run()
    world.folder.write("stranger".path, "mine".bytes)
    #expect(try world.run().isFeedUnchanged)
  }

  /// With files of the mirror in the directory, and without.
  @Test(arguments: ["sub", "mine"])
  func aFolderThatCannotBeReadWholeIsNotCalledTheSame(directory: String) throws {
    let world = world()
    world.folder.write("mine/x".path, "mine".bytes)
    try world.run()
    world.folder.makeUnreadable(directory.path)
    let report = try world.run()
    #expect(asked(world) == ["\"1\"", nil])
    #expect(!report.isInSync)
  }

  @Test func whatDoesNotEndInSyncIsFollowedByAWholeReading() throws {
    let world = world()
    world.server.answer(World.host + "b", FakeAnswer(status: 404))
    #expect(try !world.run().isInSync)
    world.want("b", "text of b")
    #expect(try world.run().isInSync)
    #expect(asked(world) == [nil])
    // The feed cannot be had.
    world.server.script(Self.list, [FakeAnswer(status: 503)])
    #expect(throws: PassFailure.self) { try world.run() }
    #expect(asked(world) == ["\"1\""])
    #expect(try world.run().isInSync)
    #expect(asked(world) == [nil])
    #expect(try world.run().isFeedUnchanged)
    // It fails before it has begun.
    world.folder.setIntact(false)
    #expect(throws: PassFailure.self) { try world.run() }
    world.folder.setIntact(true)
    #expect(try world.run().isInSync)
    #expect(asked(world) == [nil])
  }

  /// Killed at any moment: what was known of the feed went when the pass began.
  @Test func aPassThatNeverEndsIsFollowedByAWholeReading() throws {
    let world = world()
    try world.run()
    world.want("d", "new")
    publish(world, etag: "\"2\"")
    let ledger = world.ledger
    let seen = Locked<[Bool]>([])
    world.server.onRequest { _ in
      seen.withLock { $0.append(ledger.contents.facts[.feedRecord] == nil) }
    }
    try world.run()
    #expect(seen.withLock { $0 } == [true, true])
    #expect(ledger.contents.facts[.feedRecord] != nil)
  }

  @Test func aDayOfAnswersIsEnough() throws {
    let world = world()
    try world.run()
    for _ in 0..<23 {
      world.clock.advance(.seconds(3600))
      #expect(try world.run().isFeedUnchanged)
    }
    world.clock.advance(.seconds(3600))
    #expect(try !world.run().isFeedUnchanged)
    #expect(asked(world) == [nil])
    #expect(try world.run().isFeedUnchanged)
    world.clock.setWall(world.clock.time.nanoseconds - 7200 * 1_000_000_000)
    #expect(try !world.run().isFeedUnchanged)
    #expect(asked(world) == [nil])
  }

  /// The feed is the same, and so are the options, but they were not the mirror's own then.
  @Test func whatWasForOnceIsRememberedWhenItIsGivenForGood() throws {
    let world = world()
    try world.run()
    try world.choose([.delete: ["yes"]])
    world.settings = "deletes"
    world.isOnce = true
    try world.run()
    #expect(world.ledger.contents.facts[.options] != world.options.encoded)
    world.isOnce = false
    #expect(try world.run().isFeedUnchanged)
    #expect(world.ledger.contents.facts[.options] == world.options.encoded)
  }

  @Test func otherSettingsReadItWhole() throws {
    let world = world()
    try world.run()
    world.settings = "others"
    world.policy.filter.exclude = PathPatterns(["b"])
    #expect(try !world.run().isFeedUnchanged)
    #expect(asked(world) == [nil])
    #expect(try world.run().counts.excluded == 1)
    world.settings = nil
    try world.run()
    try world.run()
    #expect(asked(world) == [nil])
  }

  /// Where the same text may come to something else, or is not all that is to be known.
  @Test(
    arguments: [
      "expires", "index", "asks", "incomplete", "cut", "max-age", "rebuilt", "directory",
    ])
  func whatMayChangeWithoutTheFeedIsReadWhole(_ why: String) throws {
    let world = world()
    switch why {
    case "expires": world.end.expires = world.clock.time.adding(seconds: 7200)
    case "index": world.end.isIndex = true
    case "asks":
      world.add(world.bareEntry("bare"))
      world.server.put(World.host + "bare", "x".bytes, etag: "\"x\"")
    case "incomplete": world.end.isComplete = false
    case "cut":
      var answer = FakeAnswer(etag: "\"1\"", body: "list".bytes)
      answer.isFramed = false
      world.server.answer(Self.list, answer)
    case "max-age":
      makeWindow(world, [1])
      world.policy.window.maxAge = 1_000_000_000
    case "directory":
      world.items.append(.directory(url: World.host + "dir/", path: "dir".path))
      world.server.put(World.host + "dir/", "list".bytes)
      world.documents[World.host + "dir/"] = []
      world.end.isIndex = true
    default: world.wasRebuilt = true
    }
    #expect(try world.run().isInSync)
    world.wasRebuilt = false
    let report = try world.run()
    #expect(report.isInSync && !report.isFeedUnchanged)
    #expect(asked(world) == [nil], "\(why)")
  }

  /// The text was read whole; what it says is known.
  @Test(arguments: ["no tag", "star", "new tag", "new date"]) func theSameTextIsNoOtherFeed(_ what: String)
    throws
  {
    let world = world()
    let tags = ["no tag": nil, "star": "*"]
    var answer = FakeAnswer(etag: tags[what] ?? "\"1\"", body: "list".bytes)
    world.server.answer(Self.list, answer)
    #expect(try world.run().isInSync)
    if what == "new tag" { answer.etag = "\"2\"" }
    if what == "new date" {
      answer.etag = nil
      answer.lastModified = Timestamp(seconds: 1000)
      answer.sent = Timestamp(seconds: 2000)
    }
    world.server.answer(Self.list, answer)
    // A parse would complain.
    world.feedFailure = FeedFailure(code: "feed-malformed", message: "parsed")
    let report = try world.run()
    #expect(report.isFeedUnchanged && report.isInSync && report.counts.current == 3)
    #expect(world.server.urls == [Self.list])
    // What it has now is what is asked by next.
    try world.run()
    #expect(asked(world) == [what == "new tag" ? "\"2\"" : nil])
    #expect(world.server.requests.map(\.ifModifiedSince) == [answer.lastModified?.rfc3339])
    world.feedFailure = nil
    // It is at hand: it is not asked for again.
    world.folder.delete("a".path)
    publish(world, etag: nil, text: "list")
    #expect(try world.run().counts.restored == 1)
    #expect(asked(world).count == 1)
  }

  /// Told by the digest of what came, which is made while it comes: in pieces, and from the beginning again after an attempt that broke.
  @Test(arguments: [0, 1, 700_000]) func theDigestIsOfTheAttemptThatCameToItsEnd(size: Int) throws {
    let world = world()
    world.policy.retries = 1
    let text = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    world.server.answer(Self.list, FakeAnswer(body: text))
    #expect(try world.run().isInSync)
    let broken = FakeAnswer(
      body: text + [1, 2, 3], failure: (after: size / 2 + 1, Server.lost))
    world.server.script(Self.list, [broken])
    #expect(try world.run().isFeedUnchanged)
    #expect(asked(world) == [nil, nil])
    world.server.answer(Self.list, FakeAnswer(body: text + [0]))
    #expect(try !world.run().isFeedUnchanged)
  }

  /// The same bytes say something else below another address, and may be read by another format.
  @Test(arguments: ["url", "type", "text", "cut"]) func theSameTextOfAnotherIsRead(_ what: String) throws {
    let world = world()
    var answer = FakeAnswer(body: "list".bytes)
    world.server.answer(Self.list, answer)
    try world.run()
    #expect(try world.run().isFeedUnchanged)
    switch what {
    case "url": answer.finalURL = "http://two.example/list"
    case "type": answer.contentType = "text/html"
    case "cut": answer.isFramed = false
    default: answer = FakeAnswer(body: "lisT".bytes)
    }
    world.server.answer(Self.list, answer)
    let report = try world.run()
    #expect(!report.isFeedUnchanged && report.isInSync && asked(world) == [nil])
  }

  @Test func aPlanReadsItWhole() throws {
    let world = world()
    try world.run()
    _ = try world.plan()
    #expect(asked(world) == [nil])
    #expect(try world.run().isFeedUnchanged)
  }

  /// The tag is that of what answered: where redirects lead elsewhere, it says nothing.
  @Test func anotherPlaceIsReadWhole() throws {
    let world = world()
    var answer = FakeAnswer(etag: "\"1\"", body: "list".bytes)
    answer.finalURL = "http://one.example/list"
    world.server.answer(Self.list, answer)
    try world.run()
    #expect(try world.run().isFeedUnchanged)
    answer.finalURL = "http://two.example/list"
    world.server.answer(Self.list, answer)
    #expect(try !world.run().isFeedUnchanged)
    #expect(asked(world) == ["\"1\"", nil])
    #expect(try world.run().isFeedUnchanged)
  }

  @Test func aServerThatRefusesConditionsIsAskedWithoutOne() throws {
    let world = world()
    try world.run()
    world.server.script(Self.list, [FakeAnswer(status: 412)])
    #expect(try world.run().isInSync)
    #expect(asked(world) == ["\"1\"", nil])
  }

  /// A cache on the way that knows another version: what it vouches for is not what was read.
  @Test(arguments: ["\"1\"", "W/\"1\"", nil, "\"2\""] as [String?]) func a304IsAboutTheTagItHas(
    _ tag: String?
  ) throws {
    let world = world()
    try world.run()
    world.server.script(Self.list, [FakeAnswer(status: 304, etag: tag)])
    #expect(try world.run().isFeedUnchanged)
    // Then the text says it.
    #expect(asked(world) == (tag == "\"2\"" ? ["\"1\"", nil] : ["\"1\""]))
  }

  /// To a request that set no condition it names no bytes.
  @Test func a304ThatNobodyAskedForIsAFailure() throws {
    let world = world()
    world.server.answer(Self.list, FakeAnswer(status: 304))
    #expect(throws: PassFailure.self) { try world.run() }
    publish(world, etag: "\"1\"")
    try world.run()
    world.folder.delete("a".path)
    world.server.answer(Self.list, FakeAnswer(status: 304))
    #expect(throws: PassFailure.self) { try world.run() }
  }

  /// A list that no longer names a file leaves it there; that a user takes it away is told to the ledger.
  @Test func whatIsNoLongerListedIsWatchedToo() throws {
    let world = world()
    try world.run()
    world.unlist("b")
    publish(world, etag: "\"2\"")
    #expect(try world.run().counts.unlisted == 1)
    let unchanged = try world.run()
    #expect(unchanged.isFeedUnchanged && unchanged.counts.unlisted == 1 && unchanged.counts.current == 2)
    world.folder.edit("b".path, "mine".bytes)
    #expect(try world.run().counts.unlisted == 1)
    #expect(asked(world) == ["\"2\"", nil])
    #expect(try world.run().isFeedUnchanged)
    world.folder.delete("b".path)
    #expect(try world.run().counts.unlisted == 0)
    #expect(asked(world) == ["\"2\"", nil])
    #expect(world.row("b") == nil)
    #expect(try world.run().isFeedUnchanged)
  }

  /// Something was recorded that the plan knows nothing of: the pass cannot say how the folder stands.
  @Test func aRowThatNobodyAccountsForIsFollowedByAWholeReading() throws {
    let world = world()
    try world.run()
    var stray = try #require(world.row("a"))
    stray.path = "stray".path
    world.want("d", "new")
    publish(world, etag: "\"2\"")
    let (ledger, row) = (world.ledger, stray)
    world.server.onRequest { request in
      if request.url.hasSuffix("/d") { try? ledger.apply([.row(row)]) }
    }
    #expect(try world.run().isInSync)
    try world.run()
    #expect(asked(world) == [nil])
  }

  // MARK: Windows

  private func makeWindow(_ world: World, _ numbers: [Int]) {
    world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window", refreshSeconds: 1800)
    world.items = numbers.enumerated().map { position, number in
      let url = World.host + "\(number).mp3"
      world.server.put(url, "ID3 bytes \(number)".bytes)
      return .enclosure(
        Enclosure(
          guid: "\(number)".bytes, title: "Episode \(number)".bytes,
          date: Timestamp(year: 2025, month: 1, day: number), sources: [Source(url: url)],
          mediaType: "audio/mpeg".bytes, position: position))
    }
  }

  /// What the user deleted stays deleted, and does not make every pass read the feed.
  @Test func deletedEpisodesAreLeftSo() throws {
    let world = world()
    makeWindow(world, [3, 2, 1])
    try world.run()
    // It is a window, read or not: it is no list that lacks something.
    let same = try world.run()
    #expect(same.isFeedUnchanged && same.manifest.isWindow && same.refreshSeconds == 1800)
    world.folder.delete("2025-01-02 Episode 2.mp3".path)
    let reading = try world.run()
    #expect(asked(world) == ["\"1\"", nil])
    #expect(reading.counts.kept == 1 && reading.isInSync)
    let quiet = try world.run()
    #expect(quiet.isFeedUnchanged && quiet.counts.kept == 1 && quiet.counts.current == 2)
    #expect(asked(world) == ["\"1\""])
    // It leaves the feed; a new one comes.
    makeWindow(world, [4, 3])
    publish(world, etag: "\"2\"")
    #expect(try world.run().counts.fetched == 1)
    #expect(try world.run().isFeedUnchanged)
    world.folder.delete("2025-01-01 Episode 1.mp3".path)
    #expect(try !world.run().isFeedUnchanged)
    #expect(try world.run().isFeedUnchanged)
    #expect(Set(world.files.keys) == ["2025-01-03 Episode 3.mp3", "2025-01-04 Episode 4.mp3"])
  }

  @Test func theNewestFewAreKeptAsBefore() throws {
    let world = world()
    world.policy.window.keep = 2
    world.policy.deletes = true
    makeWindow(world, [2, 1])
    try world.run()
    makeWindow(world, [3, 2, 1])
    publish(world, etag: "\"2\"")
    #expect(try world.run().counts.deleted == 1)
    let quiet = try world.run()
    #expect(quiet.isFeedUnchanged && quiet.counts.current == 2 && quiet.counts.excluded == 1)
  }

  // MARK: The record

  @Test func theRecordReadsBack() throws {
    let tags = ["\"a\\n=\t\"", "W/\"e\u{301}=\"", nil]
    for (tag, time) in zip(tags, [nil, "Wed, 01 Jan", nil]) {
      var record = FeedRecord(
        validators: FeedValidators(etag: tag, lastModified: time), url: "http://a/?b=c",
        text: world().hashing.digest(.sha256, of: "text".bytes), settings: "s",
        read: Timestamp(nanoseconds: 7), fingerprint: FolderFingerprint(rows: 1, odd: 2, sum: .max))
      record.manifest.incompleteReason = "one\r\ntwo"
      record.refreshSeconds = tag == nil ? nil : 5
      record.manifest.isWindow = tag == nil
      record.counts.wanted = 1
      record.counts.current = 2
      record.counts.kept = 3
      record.counts.unlisted = 4
      record.counts.excluded = 5
      record.bytes.wanted = 6
      record.bytes.current = .max
      record.bytes.unknownSizes = 8
      #expect(FeedRecord(encoded: record.encoded) == record)
      for cut in 0..<record.encoded.utf8.count where cut % 7 == 0 {
        let text = String(decoding: record.encoded.utf8.prefix(cut), as: UTF8.self)
        #expect(FeedRecord(encoded: text) != record)
      }
    }
    #expect(FeedRecord(encoded: "") == nil)
  }
}
