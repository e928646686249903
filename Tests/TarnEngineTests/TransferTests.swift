import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How bytes come: sources, retries, resumes, what is at hand.
@Suite struct TransferTests {
  private let first = World.twoSources[0]
  private let second = World.twoSources[1]

  private func twoSources(_ text: String = "the text") -> World { World.ofTwoSources(text) }

  // MARK: Sources

  @Test func theNextSourceIsAsked() throws {
    let world = twoSources()
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == "the text")
    #expect(world.server.urls == [first, second])
    #expect(world.log.retries == [0])
  }

  @Test func theSourceThatFailsIsNamed() throws {
    let world = twoSources()
    world.server.remove(second)
    let report = try world.run()
    let problem = try #require(report.problems.first)
    #expect(problem.code == "http-404")
    #expect(problem.message.contains(first))
    #expect(problem.message.contains(second))
    #expect(world.server.urls == [first, second])
    #expect(report.counts.failed == 1)
    #expect(world.ledger.contents.problems["a".bytes] != nil)
  }

  @Test func anotherDigestGoesToTheNextSource() throws {
    let world = twoSources()
    world.server.put(first, "THE TEXT".bytes)
    let installed = Locked<[String]>([])
    world.folder.beforeInstall { path in installed.withLock { $0.append(path.printable) } }
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "the text")
    #expect(installed.withLock { $0 } == ["a"])
  }

  @Test func nothingUnverifiedIsInstalled() throws {
    let world = twoSources()
    world.server.put(first, "THE TEXT".bytes)
    world.server.put(second, "the tExt".bytes)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["digest-mismatch"])
    #expect(world.files.isEmpty)
    #expect(world.folder.count(.install) == 0)
    #expect(world.server.urls == [first, second])
    #expect(world.partialNames.isEmpty)
    #expect(world.ledger.contents.rows.isEmpty)
  }

  @Test func anotherSizeIsNotEvenFetched() throws {
    let world = twoSources()
    world.server.put(first, "a longer text".bytes)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == "the text")
    world.want("b", "text")
    world.server.put(World.host + "b", "t".bytes)
    let next = try world.run()
    #expect(next.problems.map(\.code) == ["size-mismatch"])
    #expect(next.problems.first?.message.contains("has 1 byte, the feed says 4") == true)
    #expect(next.bytes.received == 0)
  }

  @Test func aMissingFileIsNotAskedForAgain() throws {
    let world = World()
    world.rushes = true
    world.want("a", "text")
    world.want("b", "good")
    world.server.remove(World.host + "a")
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["http-404"])
    #expect(world.server.urls.sorted() == [World.host + "a", World.host + "b"])
    #expect(world.text("b") == "good")
    #expect(world.log.retries.isEmpty)
  }

  /// An index that names directories as files: the page of a directory is no file.
  @Test func aDirectoryThatIsListedAsAFileIsNotStored() throws {
    let world = World()
    world.rushes = true
    let ends = [
      "sub": World.host + "sub/", "secure": "https://other.example/secure/", "file": World.host + "file",
      "moved": World.host + "elsewhere/moved", "deep": World.host + "deep/index/",
    ]
    for (name, end) in ends {
      var entry = world.bareEntry(name)
      entry.mayBeDirectory = true
      world.add(entry)
      var answer = FakeAnswer(body: "page".bytes)
      answer.finalURL = end
      world.server.answer(World.host + name, answer)
    }
    // Where the list says that it is a file, it is one.
    world.add(world.bareEntry("told"))
    var answer = FakeAnswer(body: "page".bytes)
    answer.finalURL = World.host + "told/"
    world.server.answer(World.host + "told", answer)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["is-a-directory", "is-a-directory"])
    #expect(Set(report.problems.map(\.name)) == ["secure".bytes, "sub".bytes])
    #expect(world.files.keys.sorted() == ["deep", "file", "moved", "told"])
    #expect(report.bytes.received == 16)
    #expect(world.partialNames.isEmpty)
  }

  // MARK: Retries

  @Test func aTransientFailureIsTriedAgain() throws {
    let world = World()
    world.rushes = true
    world.want("a", "text")
    world.server.script(
      World.host + "a", [FakeAnswer(status: 503), FakeAnswer(status: 500), FakeAnswer(status: 429)])
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == "text")
    #expect(world.log.retries.count == 3)
    #expect(zip(world.log.retries, [0.5, 1, 2]).allSatisfy { $0 < $1 })
  }

  /// A signed address that a redirect led to may have expired since.
  @Test func theRestIsAskedForAtTheAddressOfTheFeed() throws {
    let world = World()
    world.rushes = true
    world.want("a", "the whole text")
    let etag = "\"a8f2-5e1b\""
    var signed = Server.broken("the whole text", after: 5, etag: etag)
    signed.finalURL = "http://store.example/a?expires=1"
    world.server.script(World.host + "a", [signed])
    world.server.put(World.host + "a", "the whole text".bytes, etag: etag)
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.url) == [World.host + "a", World.host + "a"])
    #expect(world.server.requests.map(\.offset) == [0, 5])
  }

  @Test func retriesEnd() throws {
    let world = World()
    world.rushes = true
    world.policy.retries = 3
    world.want("a", "text")
    world.server.answer(World.host + "a", FakeAnswer(status: 503))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["http-503"])
    #expect(world.server.requests.count == 4)
    #expect(report.counts.failed == 1)
  }

  @Test func retryAfterIsHonoured() throws {
    let world = World()
    world.rushes = true
    world.want("a", "text")
    world.server.setRetryAfter(World.host + "a", 17)
    world.server.script(World.host + "a", [FakeAnswer(status: 429)])
    #expect(try world.run().isInSync)
    #expect(world.log.retries == [17])
  }

  @Test func aServerThatAsksForMuchIsNotWaitedFor() throws {
    let world = World()
    world.rushes = true
    world.want("a", "text")
    world.server.setRetryAfter(World.host + "a", 121)
    world.server.script(World.host + "a", [FakeAnswer(status: 503)])
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["http-503"])
    #expect(report.problems.first?.message.hasSuffix("; it asked for a pause of 121 s") == true)
    #expect(world.server.requests.count == 1)
  }

  /// A pause is not over before its time: the clock stands, and the pass is told to end.
  @Test func aPauseLasts() throws {
    let world = World()
    world.want("a", "text")
    world.server.setRetryAfter(World.host + "a", 60)
    world.server.answer(World.host + "a", FakeAnswer(status: 503))
    let pass = Locked<StopFlag?>(nil)
    world.log.onEvent { _, event in
      if case .retrying = event { pass.withLock { $0 }?.set() }
    }
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    pass.withLock { $0 = world.stop }
    let report = try world.pass(downloader).run(folder: world.folder)
    #expect(report.wasStopped)
    #expect(report.problems.isEmpty)
    #expect(world.server.requests.count == 1)
  }

  // MARK: Conditional requests

  @Test func whatHasNoDigestIsAskedForConditionally() throws {
    let world = World()
    world.add(world.bareEntry("a"))
    world.server.put(World.host + "a", "one".bytes, etag: "\"1\"")
    #expect(try world.run().counts.fetched == 1)
    #expect(world.row("a")?.etag == "\"1\"")
    #expect(world.row("a")?.isVerified == false)
    var report = try world.run()
    #expect(report.counts.revalidated == 1)
    #expect(report.isInSync)
    #expect(world.server.requests.map(\.ifNoneMatch) == ["\"1\""])
    #expect(report.bytes.received == 0)
    world.server.put(World.host + "a", "two".bytes, etag: "\"2\"")
    report = try world.run()
    #expect(report.counts.updated == 1)
    #expect(world.text("a") == "two")
    #expect(world.trash == ["one"])
  }

  /// Else each pass would hash it.
  @Test(arguments: ["\"1\"", nil]) func aTouchedFileIsHashedOnce(etag: String?) throws {
    let world = World()
    world.add(world.bareEntry("a"))
    world.server.put(World.host + "a", "one".bytes, etag: etag)
    try world.run()
    world.folder.edit("a".path, "one".bytes)
    #expect(try world.run().counts.revalidated == 1)
    #expect(try world.row("a")?.identity == world.folder.look("a".path)?.identity)
    #expect(try world.plan().actions.map(\.kind) == [.revalidate])
  }

  /// A server that knows no conditions gives all of it each time; one may give a tag to every answer.
  @Test(arguments: [false, true]) func theSameBytesAreNoUpdate(_ isTagged: Bool) throws {
    let world = World()
    world.add(world.bareEntry("a"))
    for number in 0..<3 {
      world.server.put(World.host + "a", "one".bytes, etag: isTagged ? "\"\(number)\"" : nil)
      let report = try world.run()
      #expect(report.isInSync && report.counts.fetched == (number == 0 ? 1 : 0))
      #expect(report.counts.revalidated == (number == 0 ? 0 : 1) && report.counts.updated == 0)
      #expect(world.row("a")?.etag == (isTagged ? "\"\(number)\"" : nil))
      #expect(try world.trash.isEmpty && world.folder.partials().isEmpty)
      #expect(world.log.done.count == (number == 0 ? 1 : 0))
    }
    world.server.put(World.host + "a", "two".bytes, etag: nil)
    #expect(try world.run().counts.updated == 1)
    #expect(world.trash == ["one"] && world.text("a") == "two")
  }

  /// A list of another form tells versions in another way: SFV has no digest that the record has, too.
  @Test func theSameBytesInAnotherFormOfListAreNoUpdate() throws {
    let world = World()
    world.add(world.serve("a", "one"))
    try world.run()
    world.add(world.bareEntry("a", listing: "crc32 7A6C86F1"))
    let report = try world.run()
    #expect(report.isInSync && report.counts.updated == 0 && report.counts.revalidated == 1)
    #expect(world.trash.isEmpty)
    #expect(try world.plan().actions.isEmpty)
    // Another time is to be seen at the file.
    var dated = world.bareEntry("a", listing: "other")
    dated.modified = world.clock.time
    world.add(dated)
    #expect(try world.run().counts.updated == 1)
  }

  /// What is edited, or goes, while its bytes come is no confirmed file.
  @Test(arguments: [false, true]) func theSameBytesConfirmWhatStandsThere(_ isGone: Bool) throws {
    let world = World()
    world.add(world.bareEntry("a"))
    world.server.put(World.host + "a", "one".bytes, etag: nil)
    try world.run()
    let (folder, asked) = (world.folder, Locked(0))
    world.server.onRequest { _ in
      asked.withLock { $0 += 1 }
      guard asked.withLock({ $0 == 1 }) else { return }
      if isGone { folder.delete("a".path) } else { folder.edit("a".path, "two".bytes) }
    }
    let report = try world.run()
    #expect(report.counts.revalidated == 0 && world.text("a") == "one", "\(report.counts)")
    #expect(report.counts.restored + report.counts.replaced == 1 && world.trash == (isGone ? [] : ["two"]))
  }

  @Test func aListingThatOnlyPrintsDifferentlyCostsNoBody() throws {
    let world = World()
    world.add(world.bareEntry("a", listing: "3.0K"))
    world.server.put(World.host + "a", "one".bytes, etag: "\"1\"")
    try world.run()
    #expect(try world.plan().actions.isEmpty)
    world.add(world.bareEntry("a", listing: "3 KiB"))
    #expect(try world.run().counts.revalidated == 1)
    #expect(try world.plan().actions.isEmpty)
    #expect(world.trash.isEmpty)
  }

  // MARK: Resuming

  /// More than the files that are begun anew.
  private static let long = String(repeating: "0123456789abcdef", count: 40)

  /// A world with a partial file of `kept` bytes of an earlier attempt.
  private func interrupted(
    _ kept: String, text: String = long, etag: String? = "\"1\"", durable: UInt64 = 100,
    bootID: String = "boot-1",
    digest: Digest? = nil, entry: ((World) -> Entry)? = nil
  ) throws -> World {
    let world = World()
    world.rushes = true
    let entry = entry?(world) ?? world.entry("a", text)
    world.server.put(World.host + "a", text.bytes, etag: "\"1\"")
    world.add(entry)
    world.folder.leavePartial("left", kept.bytes)
    try world.ledger.apply([
      .partial(
        PartialRow(
          path: "a".path, name: "left", url: World.host + "a", etag: etag, lastModified: nil,
          total: UInt64(text.utf8.count), digest: digest ?? entry.digest, fingerprint: entry.fingerprint,
          durable: durable, bootID: bootID))
    ])
    return world
  }

  @Test func aLedgerThatFailsAfterA304EndsThePass() throws {
    let world = World()
    world.add(world.bareEntry("a", listing: "one"))
    world.server.put(World.host + "a", "one".bytes, etag: "\"1\"")
    try world.run()
    world.add(world.bareEntry("a", listing: "two"))
    let ledger = world.ledger
    world.server.onRequest { _ in ledger.failApply(1) }
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .inputOutput)
    world.server.onRequest(nil)
    #expect(try world.run().counts.revalidated == 1)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func inTheSameBootEveryByteIsKept() throws {
    let world = try interrupted(String(Self.long.prefix(300)))
    let report = try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [300])
    #expect(world.server.requests.map(\.ifRange) == ["\"1\""])
    #expect(report.bytes.received == 340)
    #expect(world.ledger.contents.partials.isEmpty)
    #expect(world.partialNames.isEmpty)
  }

  @Test(arguments: ["boot-2", ""])
  func afterABootOnlyDurableBytesAreKept(_ bootID: String) throws {
    let world = try interrupted(String(Self.long.prefix(300)), bootID: bootID)
    world.bootID = bootID == "" ? "" : "boot-1"
    try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [100])
  }

  @Test func anotherDigestStartsFromZero() throws {
    let world = try interrupted(
      String(Self.long.prefix(300)), digest: PlainHashing().digest(.sha256, of: "other".bytes))
    try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [0])
    #expect(world.partialNames.isEmpty)
  }

  @Test func wrongBytesInThePrefixAreFetchedAgain() throws {
    let world = try interrupted("X" + String(Self.long.prefix(299)))
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [300, 0])
    #expect(world.partialNames.isEmpty)
  }

  @Test func aWholeFileAtHandNeedsNoRequest() throws {
    let world = try interrupted(Self.long)
    let report = try world.run()
    #expect(report.counts.fetched == 1)
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.isEmpty)
  }

  @Test func aWholeFileWithWrongBytesIsFetched() throws {
    let world = try interrupted("X" + Self.long.dropFirst())
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [0])
  }

  /// Without a digest nothing but the listing tells that the bytes at hand are of an older version.
  @Test func aWholeFileOfAnOlderListingIsNotTaken() throws {
    let old = String(repeating: "old!", count: 160)
    let world = try interrupted(old) { world in
      Entry(
        path: "a".path, size: UInt64(Self.long.utf8.count), sources: [Source(url: World.host + "a")],
        listing: "new".bytes)
    }
    var row = try #require(world.ledger.contents.partials["a".path])
    row.fingerprint = "\(old.utf8.count) - old".bytes
    row.etag = "\"0\""
    try world.ledger.apply([.partial(row)])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.long)
  }

  /// Nor does anything, when the listing says nothing: then the server is asked.
  @Test func aWholeFileThatNothingVouchesForIsAskedAbout() throws {
    let world = try interrupted(Self.long) { $0.bareEntry("a") }
    try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [640])
    let other = try interrupted(String(repeating: "old!", count: 160), etag: "\"0\"") { $0.bareEntry("a") }
    try other.run()
    #expect(other.text("a") == Self.long)
  }

  @Test func withoutAnETagTheDigestDecides() throws {
    let world = try interrupted(String(Self.long.prefix(300)), etag: nil)
    try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [300])
    #expect(world.server.requests.map(\.ifRange) == [nil])
  }

  /// It says nothing about the bytes that are there: the server must prove them.
  @Test(arguments: [true, false]) func aDigestThatComesLaterKeepsTheBytes(hasETag: Bool) throws {
    let world = try interrupted(String(Self.long.prefix(300)), etag: hasETag ? "\"1\"" : nil)
    var row = try #require(world.ledger.contents.partials["a".path])
    row.digest = nil
    try world.ledger.apply([.partial(row)])
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [hasETag ? 300 : 0])
    #expect(world.text("a") == Self.long)
  }

  @Test func aServerWithoutRangesSendsItAll() throws {
    let world = try interrupted(String(Self.long.prefix(300)), etag: nil)
    world.server.answer(World.host + "a", FakeAnswer(body: Self.long.bytes, honoursRanges: false))
    try world.run()
    #expect(world.text("a") == Self.long)
  }

  @Test func aLostConnectionGoesOnWhereItWas() throws {
    let world = World()
    world.rushes = true
    world.want("a", Self.long, etag: "\"1\"")
    world.server.script(
      World.host + "a",
      [
        Server.broken(Self.long, after: 200, etag: "\"1\""),
        Server.broken(Self.long, after: 0, etag: "\"1\""),
      ])
    let report = try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [0, 200, 200])
    #expect(report.bytes.received == 640)
  }

  @Test func anotherSourceGoesOnWhereTheFirstWas() throws {
    let world = twoSources(Self.long)
    world.server.answer(first, Server.broken(Self.long, after: 200, etag: "\"1\""))
    try world.run()
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [0, 200])
    #expect(world.server.requests.last?.ifRange == nil)
  }

  @Test func aFailedTransferIsResumedByTheNextPass() throws {
    let world = World(hashing: QuickHashing())
    world.rushes = true
    world.policy.retries = 0
    let text = String(repeating: "0123456789abcdef", count: 70_000)
    world.want("a", text)
    world.server.answer(World.host + "a", Server.broken(text, after: 50_000, etag: "\"1\""))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["connection-lost"])
    #expect(world.partialNames.count == 1)
    #expect(world.ledger.contents.partials["a".path]?.etag == "\"1\"")
    world.server.put(World.host + "a", text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [50_000])
  }

  /// It has no row while it comes, and gets one when it is interrupted.
  @Test(arguments: [true, false]) func aSmallFileThatBrokeIsResumedByTheNextPass(hasSize: Bool) throws {
    let world = World(hashing: QuickHashing())
    world.rushes = true
    world.policy.retries = 0
    let text = String(repeating: "0123456789abcdef", count: 20_000)
    let url = World.host + "a"
    if hasSize {
      world.want("a", text)
    } else {
      world.add(Entry(path: "a".path, sources: [Source(url: url)], listing: "1".bytes))
    }
    world.server.answer(url, Server.broken(text, after: 50_000, etag: "\"1\""))
    #expect(try world.run().problems.map(\.code) == ["connection-lost"])
    #expect(world.ledger.contents.partials["a".path]?.total == UInt64(text.utf8.count))
    world.server.put(url, text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [50_000] && world.text("a") == text)
    #expect(world.ledger.contents.partials.isEmpty)
  }

  /// The next partial file would be taken for the one that the row is about.
  @Test func theRowGoesWithBytesThatAreWrong() throws {
    let world = World(hashing: QuickHashing())
    world.rushes = true
    world.policy.retries = 0
    let text = String(repeating: "0123456789abcdef", count: 20_000)
    let url = World.host + "a"
    world.want("a", text)
    world.server.answer(url, Server.broken(text, after: 50_000, etag: "\"1\""))
    #expect(try world.run().problems.map(\.code) == ["connection-lost"])
    #expect(world.ledger.contents.partials.count == 1)
    world.server.answer(url, FakeAnswer(etag: "\"1\"", body: text.bytes.reversed()))
    #expect(try world.run().problems.map(\.code) == ["digest-mismatch"])
    #expect(world.server.requests.map(\.offset) == [50_000, 0])
    #expect(world.ledger.contents.partials.isEmpty && world.partialNames.isEmpty)
  }

  @Test func aSourceThatNeverFitsIsGivenUp() throws {
    let world = try interrupted(String(Self.long.prefix(300)), etag: nil)
    world.server.answer(World.host + "a", FakeAnswer(status: 206, body: Self.long.bytes))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["unstable-source"])
    #expect(world.server.requests.count <= 5)
    #expect(world.files.isEmpty)
  }

  /// What has no digest is compared by its server, which says nothing of modes.
  @Test func theModeOfWhatHasNoDigestIsPutBack() throws {
    let world = World()
    world.server.put(World.host + "a", "text".bytes, etag: "\"1\"")
    world.add(world.bareEntry("a"))
    #expect(try world.run().isInSync)
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    #expect(try world.run().isInSync && world.folder.mode("a".path) == 0o644)
    let event = try #require(world.ledger.contents.events.last { $0.code == "restored" })
    #expect(event.detail == "its mode was 600")
    #expect(try world.run().isInSync && world.ledger.contents.events.count { $0.code == "restored" } == 1)
  }

  // MARK: Bytes at hand

  @Test func theSameBytesElsewhereAreUsed() throws {
    let world = World()
    world.want("a", "the same")
    try world.run()
    world.want("b/copy", "the same")
    let report = try world.run()
    #expect(report.counts.copied == 1)
    #expect(report.counts.fetched == 0)
    #expect(world.text("b/copy") == "the same")
    #expect(world.server.requests.isEmpty)
    #expect(report.bytes.received == 0)
    #expect(report.bytes.published == 8)
  }

  @Test(arguments: [MemoryFolder.Call.copyPartial, .makePartial, .begin, .append, .seal])
  func aCopyThatFailsIsFetched(_ call: MemoryFolder.Call) throws {
    let world = World()
    world.want("a", "the same")
    try world.run()
    world.want("b", "the same")
    world.folder.fail(call)
    #expect(try world.run().isInSync)
    #expect(world.server.requests.count == 1)
    #expect(world.partialNames.isEmpty)
  }

  /// It is fetched, but a disk that fails is not passed over in silence.
  @Test(arguments: [MemoryFolder.Call.copyPartial, .seal])
  func aCopyThatTheDiskRefusesIsTold(_ call: MemoryFolder.Call) throws {
    let world = World()
    world.want("a", "the same")
    try world.run()
    world.want("b", "the same")
    world.folder.fail(call, with: FolderFailure(.inputOutput, "as told", errno: 5))
    #expect(try world.run().isInSync)
    let notices = world.log.events.compactMap { event in
      if case .notice(let code, let message) = event { [code, message] } else { nil }
    }
    #expect(notices == [["input-output-error", "as told; b is not copied from a but looked for elsewhere"]])
  }

  @Test func changedBytesElsewhereAreNotUsed() throws {
    let world = World()
    world.policy.localChanges = .keep
    world.want("a", "the same")
    try world.run()
    world.folder.edit("a".path, "THE SAME".bytes)
    world.want("b", "the same")
    let report = try world.run()
    #expect(report.counts.copied == 0)
    #expect(world.text("b") == "the same")
    #expect(world.server.requests.count == 1)
  }

  // MARK: Pieces

  @Test func aBadPieceIsFetchedFromTheNextSource() throws {
    let world = twoSources(Self.long)
    world.items = []
    var entry = world.entry("a", Self.long, sources: [first, second])
    entry.pieces = Pieces(
      length: 100,
      digests: stride(from: 0, to: 640, by: 100).map { start in
        world.digest(String(Self.long.dropFirst(start).prefix(100)))
      })
    world.add(entry)
    world.server.put(first, (Self.long.prefix(250) + "X" + Self.long.dropFirst(251)).bytes)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == Self.long)
    #expect(world.server.requests.map(\.offset) == [0, 200])
  }
}
