import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Which files of a window `--keep` holds for the newest, with a clock that goes on while the feed is read.
@Suite struct WindowKeepTests {
  /// A mirror of the newest files of a feed. An item is its title, and behind a blank its date.
  private final class Show {
    let world: World

    init(keep: Int, _ items: [String], deletes: Bool = false, world: World = World()) {
      self.world = world
      world.moves = true
      world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
      world.policy.window.keep = keep
      world.policy.deletes = deletes
      tell(items)
    }

    func tell(_ items: [String]) {
      world.items = items.enumerated().map { position, item in
        let parts = item.split(separator: " ", maxSplits: 1)
        let url = World.host + "\(parts[0]).mp3"
        world.server.put(url, "ID3 bytes of \(parts[0])".bytes, etag: nil)
        return .enclosure(
          Enclosure(
            guid: String(parts[0]).bytes, title: String(parts[0]).bytes,
            date: parts.count > 1 ? Timestamp(rfc3339: "\(parts[1])T00:00:00Z") : nil,
            sources: [Source(url: url)], mediaType: "audio/mpeg".bytes, position: position))
      }
    }

    /// Reads the feed, a day after the last time where nothing else is said.
    ///
    /// - Returns: the titles of the files that were fetched, sorted.
    func pass(after seconds: Int = 86_400) throws -> String {
      world.clock.advance(.seconds(seconds))
      let report = try world.run()
      #expect(report.isInSync && report.held == nil)
      return Self.titles(world.log.done.filter { $0.hasPrefix("fetched ") })
    }

    func explain(_ path: String) throws -> Explanation {
      try ExplainQuery(ledger: world.ledger, folder: world.folder).explain(path.path, mirror: "m")
    }

    var files: String { Self.titles(world.files.keys) }

    private static func titles(_ names: some Sequence<String>) -> String {
      names.compactMap { $0.split(separator: " ").last?.split(separator: ".").first }.sorted().joined(
        separator: " ")
    }
  }

  /// Such a list was held, or left all the files where they are. The next answer is compared with the feed that was accepted.
  @Test(arguments: [true, false]) func aFeedGoesOnAfterAListThatTookItsPlace(deletes: Bool) throws {
    let show = Show(keep: 4, ["d", "c", "b", "a"], deletes: deletes)
    #expect(try show.pass() == "a b c d")
    let (world, feed) = (show.world, show.world.end)
    world.end = FeedEnd(format: "checksum list", isComplete: true)
    world.items = []
    world.want("other", "text")
    #expect(try (world.run().held != nil) == deletes)
    world.end = feed
    show.tell(["d", "c", "b", "a"])
    #expect(try show.pass() == "")
    #expect(world.files.keys.filter { $0.hasSuffix(".mp3") }.count == 4)
  }

  @Test func aListThatIsSuddenlyAWindowIsRefused() throws {
    let world = World()
    world.want("a", "text")
    #expect(try world.run().isInSync)
    let show = Show(keep: 4, ["d"], world: world)
    for _ in 0..<2 {
      #expect(throws: PassFailure.self) { try show.world.run() }
      #expect(world.ledger.contents.facts[.deletingFormat] != "RSS" && world.files.count == 1)
    }
    world.policy.format = .rss
    #expect(try show.pass() == "d")
  }

  /// The first reading of a feed without dates is no archive: its own order tells.
  @Test func ofUndatedItemsTheFirstOfTheFeedAreTheNewest() throws {
    let show = Show(keep: 1, ["c", "b", "a"])
    #expect(try show.pass() == "c")
    for _ in 0..<3 { #expect(try show.pass() == "" && show.files == "c") }
    show.tell(["d", "c", "b", "a"])
    #expect(try show.pass() == "d")
    show.tell(["f", "e", "d", "c", "b", "a"])
    #expect(try show.pass() == "f")
    #expect(try show.pass() == "" && show.files == "c d f")
  }

  /// However soon it is read again.
  @Test func whatComesAtTheEndIsNewerThanWhatWasThere() throws {
    let show = Show(keep: 1, ["a", "b", "c"])
    #expect(try show.pass() == "a")
    var titles = ["a", "b", "c"]
    for next in ["d", "e", "f"] {
      titles.append(next)
      show.tell(titles)
      #expect(try show.pass(after: 0) == next)
      #expect(try show.pass(after: 0) == "")
    }
    // And what comes on top of these.
    show.tell(["g"] + titles)
    #expect(try show.pass(after: 0) == "g")
  }

  @Test func whatIsDroppedGoesToTheTrashOnceAndIsNotFetchedAgain() throws {
    let show = Show(keep: 3, ["j", "i", "h", "g", "f", "e", "d", "c", "b", "a"], deletes: true)
    #expect(try show.pass() == "h i j")
    for _ in 0..<3 { #expect(try show.pass() == "" && show.files == "h i j") }
  }

  /// Whenever that came.
  @Test func aDatedItemThatComesOnTopIsNewer() throws {
    let show = Show(keep: 1, ["a"])
    #expect(try show.pass() == "a")
    show.tell(["b 1970-01-02", "a"])
    #expect(try show.pass() == "b")
    show.tell(["c 1970-01-03", "b 1970-01-02", "a"])
    #expect(try show.pass() == "c")
  }

  /// An item that is pinned to the top, or published anew, makes no others old.
  @Test(arguments: [nil, 1]) func anOldDateOnTopExpiresNothing(maxAge: Int64?) throws {
    let names = (1...10).reversed().map { "t\($0)" }
    let show = Show(keep: 10, names, deletes: true)
    show.world.clock.advance(.seconds(400 * 86_400))
    show.world.policy.window.maxAge = maxAge.map { $0 * 30 * 86_400 }
    #expect(try show.pass().split(separator: " ").count == 10)
    show.tell(["old 1970-01-02"] + names.prefix(7))
    _ = try show.pass()
    // By `keep` alone it is the newest, as in a mirror that is made anew.
    #expect(show.files.contains("old") == (maxAge == nil))
    #expect(show.world.files.count == 10 && show.files.contains("t4 t5"))
    #expect(show.files.contains("t1 ") == (maxAge != nil))
  }

  /// Also where an old item stands above them.
  @Test(arguments: ["old 1970-01-02", "old 2026-11-01"], [nil, 1])
  func newItemsWithoutDatesAreFetched(top: String, maxAge: Int64?) throws {
    let show = Show(keep: 3, ["t4", "t3", "t2", "t1"])
    show.world.clock.advance(.seconds(400 * 86_400))
    if maxAge != nil { show.world.policy.window.keep = nil }
    show.world.policy.window.maxAge = maxAge.map { $0 * 60 * 86_400 }
    #expect(try show.pass().hasSuffix("t2 t3 t4"))
    let before = ["t4", "t3", "t2", "t1"]
    show.tell([top] + before)
    _ = try show.pass()
    show.tell([top, "t5"] + before)
    #expect(try show.pass() == "t5")
    show.tell(["t6", top, "t5"] + before)
    #expect(try show.pass() == "t6")
    show.tell(["t7", "t6", "t5"] + before)
    #expect(try show.pass() == "t7")
    show.tell([top, "t8", "t7", "t6", "t5"])
    #expect(try show.pass() == "t8")
  }

  /// Whatever has a date and what has none, and whatever is pinned to the top.
  @Test(arguments: 1...(Sanitizer.takesShare ? 40 : 150)) func whatIsNewIsFetched(seed: UInt64) throws {
    var random = Seeded(seed)
    let world = World()
    let day: Int64 = 86_400
    world.clock.advance(.seconds(400 * day))
    let begin = world.clock.time
    func date(_ days: Int64, _ hour: Int64 = 0) -> String {
      " " + begin.adding(seconds: days * day - hour * 3600).rfc3339.prefix(10)
    }
    let share = Int.random(in: 0...3, using: &random)
    func isDated() -> Bool { Int.random(in: 1...3, using: &random) <= share }
    let count = Int64.random(in: 3...8, using: &random)
    var items = (1...count).reversed().map { "e\($0)" + (isDated() ? date(-3 * (count - $0) - 4) : "") }
    let pins = [nil, "pin" + date(-300), "pin" + date(-2), "pin" + date(-3 * count - 4)]
    let pin = pins.randomElement(using: &random) ?? nil
    let show = Show(keep: 3, items, world: world)
    if Bool.random(using: &random) {
      show.world.policy.window.keep = nil
      show.world.policy.window.maxAge = 60 * day
    }
    show.world.policy.deletes = Bool.random(using: &random)
    _ = try show.pass()
    var pinnedSince = Int64.random(in: 0...2, using: &random)
    var next = count + 1
    for passed in Int64(1)...6 {
      let new = (0..<Int64.random(in: 1...2, using: &random)).map { next + $0 }
      next += Int64(new.count)
      items = new.reversed().map { "e\($0)" + (isDated() ? date(passed) : "") } + items
      if Int.random(in: 0...2, using: &random) == 0 { items.removeLast() }
      pinnedSince -= 1
      show.tell((pinnedSince < 0 ? [pin].compactMap { $0 } : []) + items)
      _ = try show.pass()
      // Of three that are kept the pinned one may be one.
      let wanted = items.prefix(2).map { $0.prefix { $0 != " " } }
      #expect(Set(show.files.split(separator: " ")).isSuperset(of: wanted), "\(show.files): \(items)")
    }
  }

  /// A mirror that is made anew holds what the first one would.
  @Test func anOldItemOnTopHidesNoUndatedOnes() throws {
    let show = Show(keep: 3, ["old 1970-01-02", "t2", "t1"])
    show.world.clock.advance(.seconds(400 * 86_400))
    show.world.policy.window.keep = nil
    show.world.policy.window.maxAge = 60 * 86_400
    #expect(try show.pass() == "t1 t2")
    show.tell(["old 1970-01-02", "t3", "t2", "t1"])
    #expect(try show.pass() == "t3")
  }

  @Test func anUndatedItemIsAsOldAsTheDatedOneAboveIt() throws {
    let show = Show(keep: 1, ["n 2026-12-01", "u"])
    #expect(try show.pass() == "n")
    #expect(try show.pass() == "")
    show.tell(["m", "n 2026-12-01", "u"])
    #expect(try show.pass() == "m")
  }

  /// Ten items with dates, and five without at the end.
  @Test func anArchiveWithoutDatesStaysBelowWhatHasThem() throws {
    let dated = (1...10).reversed().map { "n\($0) 2026-11-\($0 < 10 ? "0" : "")\($0)" }
    let show = Show(keep: 3, dated + ["u5", "u4", "u3", "u2", "u1"])
    #expect(try show.pass() == "n10 n8 n9")
    #expect(try show.pass() == "")
    show.world.policy.window.keep = 12
    #expect(try show.pass() == "n1 n2 n3 n4 n5 n6 n7 u4 u5")
    // The window has moved on: what it no longer names is no younger for that.
    show.tell(["n11 2026-11-11"] + dated)
    #expect(try show.pass() == "n11")
    show.world.policy.deletes = true
    #expect(try show.pass() == "")
    #expect(show.files == "n1 n10 n11 n2 n3 n4 n5 n6 n7 n8 n9 u5")
  }

  @Test func undatedItemsBetweenDatedOnesStandWhereTheyStand() throws {
    let show = Show(keep: 2, ["a 2026-11-20", "u", "b 2026-11-10", "v"])
    #expect(try show.pass() == "a u")
    show.world.policy.window.keep = 3
    #expect(try show.pass() == "b")
  }

  /// A note that is pinned to the top of the feed is old, and what is below it is not.
  @Test func anOldItemOnTopMakesNoOtherOld() throws {
    let show = Show(keep: 2, ["pinned 2020-01-01", "u", "b 2026-11-10", "c 2026-11-09"])
    #expect(try show.pass() == "b u")
  }

  @Test func aFeedThatNamesTheOldestFirstIsReadFromItsEnd() throws {
    let show = Show(keep: 2, ["a 2026-11-01", "b 2026-11-02", "u", "c 2026-11-03", "d 2026-11-04", "v"])
    #expect(try show.pass() == "d v")
    show.tell(["a 2026-11-01", "b 2026-11-02", "u", "c 2026-11-03", "d 2026-11-04", "v", "e 2026-11-05"])
    #expect(try show.pass() == "e")
    #expect(try show.pass() == "")
  }

  /// Nothing says which way it runs, until something is added.
  @Test func anUndatedFeedMayGrowAtItsEnd() throws {
    let show = Show(keep: 1, ["a", "b"])
    #expect(try show.pass() == "a")
    show.tell(["a", "b", "c"])
    #expect(try show.pass() == "c")
    #expect(try show.pass() == "")
  }

  @Test func ofItemsOfOneDateTheFirstOfTheFeedAreTheNewest() throws {
    let show = Show(keep: 2, ["d 2026-11-01", "c 2026-11-01", "b 2026-11-01", "a 2026-11-01"])
    #expect(try show.pass() == "c d")
    #expect(try show.pass() == "")
  }

  /// The date of each item is that of the feed's last writing.
  @Test func datesThatMoveBringNoArchive() throws {
    let show = Show(keep: 1, ["c 2026-11-01", "b 2026-11-01", "a 2026-11-01"])
    #expect(try show.pass() == "c")
    for day in 2...5 {
      show.tell(["c 2026-11-0\(day)", "b 2026-11-0\(day)", "a 2026-11-0\(day)"])
      #expect(try show.pass() == "")
    }
    show.tell(["d 2026-11-06", "c 2026-11-06", "b 2026-11-06", "a 2026-11-06"])
    #expect(try show.pass() == "d")
  }

  /// A mistyped year keeps no place for ever.
  @Test func aDateThatIsToComeMakesNothingNew() throws {
    let show = Show(keep: 1, ["b 2026-11-02", "wrong 2062-11-01", "a 2026-10-01"])
    #expect(try show.pass() == "b")
    show.tell(["top 2063-01-01", "b 2026-11-02", "wrong 2062-11-01", "a 2026-10-01"])
    #expect(try show.pass() == "top")
    show.tell(["c 2027-02-01", "top 2063-01-01", "b 2026-11-02", "wrong 2062-11-01", "a 2026-10-01"])
    show.world.clock.setWall(Timestamp(rfc3339: "2027-02-02T00:00:00Z")?.nanoseconds ?? 0)
    #expect(try show.pass() == "c")
    #expect(try show.pass() == "")
  }

  @Test func whatVanishesAndComesBackIsNotNew() throws {
    let show = Show(keep: 2, ["c", "b", "a"], deletes: false)
    #expect(try show.pass() == "b c")
    show.tell(["c"])
    #expect(try show.pass() == "")
    show.tell(["d", "c", "b", "a"])
    #expect(try show.pass() == "d")
    show.tell(["b", "a"])
    #expect(try show.pass() == "")
  }

  /// What the filters leave out takes no place.
  @Test func onlyWhatIsWantedCounts() throws {
    let show = Show(keep: 1, ["trailer", "c", "b"])
    show.world.policy.filter.exclude = PathPatterns(["trailer*"])
    #expect(try show.pass() == "c")
  }

  /// Ledgers from before have rows of one pass some milliseconds apart, the lower the younger, and none of what was not kept.
  @Test func anOlderLedgerComesToTheNewestItems() throws {
    let show = Show(keep: 3, ["f", "e", "d"])
    #expect(try show.pass() == "d e f")
    let rows = show.world.ledger.contents.names.values.sorted { $1.path < $0.path }
    try show.world.ledger.apply(
      rows.enumerated().map { index, row in
        var row = row
        row.first = Timestamp(nanoseconds: row.first.nanoseconds + Int64(index) * 1_000_000)
        return .name(row)
      })
    show.tell(["i", "h", "g", "f", "e", "d", "c"])
    #expect(try show.pass() == "g h i")
    #expect(try show.pass() == "")
  }

  /// What a feed promises and cannot give empties no folder.
  @Test(arguments: [0, 2, 4])
  func whatMakesWayWaitsForWhatComes(_ coming: Int) throws {
    let old = (1...5).map { "old\($0) 2026-01-0\($0)" }
    let new = (1...5).map { "new\($0) 2026-02-0\($0)" }
    let show = Show(keep: 5, old, deletes: true)
    #expect(try show.pass() == "old1 old2 old3 old4 old5")
    show.tell(new + old)
    for number in 1...5 where number > coming { show.world.server.remove(World.host + "new\(number).mp3") }
    let stay = (1...5).map { "old\($0)" }.suffix(5 - coming)
    let came = (1...5).map { "new\($0)" }.prefix(coming)
    for _ in 0..<2 {
      #expect(try show.world.run().counts.failed == 5 - coming)
      #expect(show.files == (came + stay).joined(separator: " "))
    }
    show.tell(new + old)
    #expect(try show.world.run().isInSync)
    #expect(show.files == "new1 new2 new3 new4 new5")
  }

  /// A mirror that follows another feed from now on, whose files are all older, keeps the newest of that one.
  @Test func theFilesOfAnEarlierFeedFillNoPlaces() throws {
    let old = (1...4).map { "old\($0) 2026-02-0\($0)" }
    let new = (1...4).map { "new\($0) 2026-01-0\($0)" }
    let show = Show(keep: 3, old, deletes: true)
    // What is read there the world says.
    func follow(_ feed: String) {
      let file = #filePath.replacing("WindowKeepTests.swift", with: feed)
      show.world.location = .local(path: Array(file.utf8))
    }
    follow("PassTests.swift")
    #expect(try show.pass() == "old2 old3 old4")
    show.tell(Array(new.prefix(2)))
    follow("PagesTests.swift")
    #expect(try show.pass() == "new1 new2")
    #expect(show.files == "new1 new2 old4")
    show.tell(new)
    #expect(try show.pass() == "new3 new4")
    #expect(show.files == "new2 new3 new4")
    show.tell(["new4 2026-01-04"])
    #expect(try show.pass() == "" && show.files == "new2 new3 new4")
    show.tell(old)
    follow("PassTests.swift")
    #expect(try show.pass() == "old2 old3 old4")
    #expect(show.files == "old2 old3 old4")
    // One item may be of both.
    show.tell(["old4 2026-02-04"] + new)
    follow("PagesTests.swift")
    #expect(try show.pass() == "new3 new4")
    #expect(show.files == "new3 new4 old4")
  }

  /// A server may give another show for once: what was kept stays.
  @Test func otherItemsAtTheSameAddressExpireNothing() throws {
    let kept = (1...4).map { "kept\($0) 2026-02-0\($0)" }
    let show = Show(keep: 4, kept, deletes: true)
    #expect(try show.pass() == "kept1 kept2 kept3 kept4")
    show.tell((1...4).map { "other\($0) 2024-01-0\($0)" })
    #expect(try show.pass() == "" && show.files == "kept1 kept2 kept3 kept4")
    show.tell(kept)
    #expect(try show.pass() == "")
  }

  /// A feed of a few items may name none of those that it named before: what left it is older, and keeps its order.
  @Test func aFeedThatWentOnByMoreThanItNamesKeepsTheNewest() throws {
    let show = Show(keep: 5, ["b 2026-01-02", "a 2026-01-01"], deletes: true)
    #expect(try show.pass() == "a b")
    show.tell(["d 2026-01-04", "c 2026-01-03"])
    #expect(try show.pass() == "c d")
    show.tell(["f 2026-01-06", "e 2026-01-05"])
    #expect(try show.pass() == "e f")
    #expect(show.files == "b c d e f")
  }

  /// What the user deleted is missed by nobody.
  @Test func whatTheUserDeletedKeepsNothingElse() throws {
    let show = Show(keep: 2, ["a 2026-01-01", "b 2026-01-02", "c 2026-01-03"], deletes: true)
    #expect(try show.pass() == "b c")
    for name in show.world.files.keys where name.contains(" c.") { show.world.folder.delete(name.path) }
    show.tell(["d 2026-01-04", "c 2026-01-03", "b 2026-01-02"])
    #expect(try show.pass() == "d")
    #expect(show.files == "d")
  }

  /// Without `--delete` nothing goes, and the user is told what would.
  @Test func whatWouldGoIsCounted() throws {
    let show = Show(keep: 2, ["a 2026-01-01", "b 2026-01-02"])
    #expect(try show.pass() == "a b")
    show.tell(["c 2026-01-03", "b 2026-01-02", "a 2026-01-01"])
    #expect(try show.pass() == "c")
    let report = try show.world.run()
    #expect(report.counts.unlisted == 1 && report.manifest.isWindow && show.files == "a b c")
    let path = try #require(show.world.files.keys.first { $0.contains(" a.") })
    let answer = try show.explain(path)
    #expect(
      answer.state == "current"
        && answer.summary.contains("1 file of this mirror is beyond --keep or --max-age"))
  }

  @Test func whatWentIsExplained() throws {
    let show = Show(keep: 1, ["a 2026-01-01"], deletes: true)
    _ = try show.pass()
    let path = try #require(show.world.files.keys.first)
    show.tell(["b 2026-01-02", "a 2026-01-01"])
    _ = try show.pass()
    let answer = try show.explain(path)
    #expect(answer.state == "gone" && answer.hint?.hasPrefix("tarn trash list") == true)
  }
}
