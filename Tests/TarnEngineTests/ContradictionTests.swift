import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What feed, server and folder say does not go together: nothing is lost, and nothing is called done that is not.
@Suite struct ContradictionTests {
  /// Making way is a deletion: only with `--delete`, and only from a complete list.
  @Test(arguments: [(false, true), (true, false), (false, false)])
  func noFileMakesWayUnlessDeletionsAreAllowed(deletes: Bool, isComplete: Bool) throws {
    let world = World()
    try world.fill("a", "file")
    world.policy.deletes = deletes
    if !isComplete { world.end = FeedEnd(format: "test list", isComplete: false, incompleteReason: "cut") }
    world.unlist("a")
    world.want("a/b", "one")
    let report = try world.run()
    #expect(!report.isInSync)
    #expect(world.text("a") == "file")
    #expect(world.trash.isEmpty)
  }

  /// A 304 that vouches for another size than the feed says comes from a stale cache: asked again without it.
  @Test func aNotModifiedThatContradictsTheFeedIsNotBelieved() throws {
    let world = World()
    var entry = world.bareEntry("a", listing: "one")
    entry.size = 3
    world.server.put(World.host + "a", "one".bytes, etag: "\"1\"")
    world.add(entry)
    try world.run()
    entry.size = 5
    entry.listing = "two".bytes
    world.add(entry)
    // The cache has the old version still.
    let report = try world.run()
    #expect(!report.isInSync)
    #expect(report.counts.revalidated == 0)
    world.server.put(World.host + "a", "newer".bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "newer")
  }

  /// A cache has kept a part of the version in place, and calls it the whole. The copy stays until somebody deletes it.
  @Test(arguments: [0, 6], [true, false])
  func lessOfTheSameVersionReplacesNothing(_ left: Int, isThere: Bool) throws {
    let world = World()
    func serve(_ text: String, _ etag: String) {
      var answer = FakeAnswer(etag: etag, body: text.bytes)
      answer.honoursConditions = false
      world.server.answer(World.host + "a", answer)
    }
    func sync(_ listing: String, size: UInt64? = nil) throws -> PassReport {
      var entry = world.bareEntry("a", listing: listing)
      entry.size = size
      world.add(entry)
      return try world.run()
    }
    let (etag, text) = ("\"7c000-62a1b2c3d4e5f\"", "0123456789")
    serve(text, etag)
    #expect(try sync("one").isInSync)
    if !isThere { world.folder.delete("a".path) }
    serve(String(text.prefix(left)), etag)
    let report = try sync("two")
    #expect(report.problems.map(\.code) == (isThere ? ["unstable-source"] : []))
    #expect(world.text("a") == (isThere ? text : String(text.prefix(left))))
    // Another version may be shorter, and so may one whose size the feed gives.
    serve("new", "\"3-62a1b2c3d4e60\"")
    #expect(try sync("three").isInSync && world.text("a") == "new")
    serve("ne", "\"3-62a1b2c3d4e60\"")
    #expect(try sync("four", size: 2).isInSync && world.text("a") == "ne")
    // Tags that count versions may agree by chance.
    serve("longer", "\"1\"")
    #expect(try sync("five").isInSync)
    serve("less", "\"1\"")
    #expect(try sync("six").isInSync && world.text("a") == "less")
  }

  /// Redirects lead to another file, whose server compares dates or tags that only count versions.
  @Test(arguments: [true, false]) func aNotModifiedOfAnotherFileIsNotBelieved(isRedirected: Bool) throws {
    let world = World()
    world.add(world.bareEntry("a", listing: "one"))
    var answer = FakeAnswer(etag: "\"1\"", body: "one".bytes)
    answer.lastModified = Timestamp(nanoseconds: 1_000_000_000)
    if isRedirected { answer.finalURL = World.host + "v1/a" }
    world.server.answer(World.host + "a", answer)
    #expect(try world.run().isInSync)
    world.add(world.bareEntry("a", listing: "two"))
    answer.body = "other".bytes
    answer.lastModified = Timestamp(nanoseconds: 500_000_000)
    if isRedirected { answer.finalURL = World.host + "v0/a" }
    world.server.answer(World.host + "a", answer)
    #expect(try world.run().isInSync)
    // The same URL vouches for its own tag.
    #expect(world.text("a") == (isRedirected ? "other" : "one"))
  }

  /// Sizes that a feed claims may add up to more than a number holds.
  @Test func absurdSizesAddUp() throws {
    let world = World()
    for name in ["a", "b", "c"] {
      var entry = world.entry(name, name)
      entry.size = UInt64(Int64.max)
      world.add(entry)
    }
    #expect(try world.plan().report.bytes.planned == .max)
    let report = try world.run()
    #expect(report.counts.failed == 3)
    #expect(report.bytes.wanted == .max)
  }

  /// Nothing is read or asked for.
  @Test func aFolderThatIsNotTheOneIsNotTouched() throws {
    let world = World()
    world.want("a", "one")
    try world.run()
    world.want("b", "two")
    world.folder.setIntact(false)
    let before = world.ledger.contents.facts[.attempt]
    world.clock.advance(.seconds(1))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .folderUnusable)
    #expect(world.server.requests.isEmpty)
    #expect(world.ledger.contents.facts[.attempt] == before)
    #expect(world.files == ["a": "one"])
  }

  @Test func aFolderThatIsReplacedMeanwhileIsLeftAlone() throws {
    let world = World()
    try world.fill("a", "one")
    world.unlist("other-3")
    world.want("b", "two")
    let folder = world.folder
    world.server.onRequest { _ in folder.setIntact(false) }
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .folderUnusable)
    world.server.onRequest(nil)
    #expect(world.text("b") == nil)
    #expect(world.text("other-3") == "3")
    folder.setIntact(true)
    #expect(try world.run().isInSync)
  }

  /// What was fetched and checked is there for the next pass, and the ledger names just what lies there.
  @Test(arguments: [false, true]) func whatWasFetchedForAFolderThatIsGoneIsKept(cannotTell: Bool) throws {
    let world = World()
    let large = String(repeating: "0123456789abcdef", count: 1 << 17)
    world.want("large", large)
    // Of a name, and too short for a row.
    world.want("medium", String(repeating: "0123456789abcdef", count: 1 << 15))
    world.want("small", "small")
    let folder = world.folder
    world.server.onRequest { _ in
      if cannotTell { for number in 1...9 { folder.fail(.isIntact, number: number) } }
      if !cannotTell { folder.setIntact(false) }
    }
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == (cannotTell ? .inputOutput : .folderUnusable))
    world.server.onRequest(nil)
    let recorded = try world.ledger.partials().map(\.name)
    // The pass ends at once where it cannot tell, maybe before all of it was there: it leaves what has no row to the next pass.
    #expect(Set(recorded).isSubset(of: world.partialNames))
    if !cannotTell {
      #expect(recorded == world.partialNames)
      #expect(world.partialNames.map { folder.partialContents($0)?.count } == [large.utf8.count])
    }
    folder.setIntact(true)
    for _ in 0..<9 { _ = try? folder.isIntact() }
    #expect(try world.run().isInSync)
    #expect(world.partialNames.isEmpty)
    if !cannotTell {
      #expect(world.server.requests.map(\.url).sorted() == [World.host + "medium", World.host + "small"])
    }
    #expect(world.text("large") == large)
  }

  /// Where it cannot be told what the folder is, the pass ends: it does not go on file by file.
  @Test func aFolderThatCannotBeToldEndsThePass() throws {
    let world = World()
    world.want("small", "small")
    let folder = world.folder
    world.server.onRequest { _ in folder.fail(.isIntact) }
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .inputOutput)
    world.server.onRequest(nil)
    #expect(try world.run().isInSync)
  }

  /// Bytes that could not be made durable are gone, and no row speaks of them.
  @Test func aFileThatCannotBeMadeDurableHasNoRow() throws {
    let world = World()
    world.want("large", String(repeating: "0123456789abcdef", count: 1 << 17))
    world.folder.fail(.makeDurable)
    #expect(try world.run().counts.failed == 1)
    #expect(world.partialNames.isEmpty)
    #expect(try world.ledger.partials().isEmpty)
  }

  /// A refused name that is too long stands for no path, and its beginning may be another entry's.
  @Test func aNameThatIsTooLongRefusesNoOther() throws {
    let world = World()
    let long = String(repeating: "0123456/", count: 511) + "0123456"
    world.items = [
      .entry(world.serve(long, "text")), .refused(Refusal(name: (long + "more").bytes, .tooLong)),
    ]
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["path-too-long"])
    #expect(world.text(long) == "text")
  }

  /// 304 to a request that set no condition names no bytes: nothing is in sync by it.
  @Test(arguments: [false, true]) func aNotModifiedThatNobodyAskedForFails(hasDigest: Bool) throws {
    let world = World()
    world.rushes = true
    world.add(hasDigest ? world.entry("a", "text") : world.bareEntry("a", listing: "one"))
    world.server.answer(World.host + "a", FakeAnswer(status: 304))
    let asked = Locked(0)
    world.server.onRequest { request in
      if request.url == World.host + "a" { asked.withLock { $0 += 1 } }
    }
    let report = try world.run()
    // Asking again would get the same contradiction.
    #expect(asked.withLock { $0 } == 1)
    #expect(!report.isInSync)
    #expect(report.problems.map(\.code) == ["bad-response"])
    #expect(world.files.isEmpty)
  }

  /// Without size and digest only the framing tells a whole body from a cut one.
  @Test func aBodyWhoseEndNothingMarksIsNotTaken() throws {
    let world = World()
    world.policy.retries = 0
    world.add(world.bareEntry("a", listing: "one"))
    world.add(world.entry("b", "text"))
    for name in ["a", "b"] {
      var answer = FakeAnswer(body: "text".bytes)
      answer.isFramed = false
      world.server.answer(World.host + name, answer)
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["length-unknown"])
    #expect(report.problems.map(\.name) == ["a".bytes])
    // The digest tells that it is whole.
    #expect(world.files == ["b": "text"])
  }

  /// The length that a feed gives for an enclosure may be wrong. One that fits to the byte tells the end.
  @Test(arguments: [3, 4, 5] as [UInt64]) func aLengthOfTheFeedTellsTheEndWhereNothingMarksIt(
    _ length: UInt64
  ) throws {
    let world = World()
    world.policy.retries = 0
    var entry = world.bareEntry("a", listing: "one")
    entry.hint.length = length
    world.add(entry)
    var answer = FakeAnswer(body: "text".bytes)
    answer.isFramed = false
    world.server.answer(World.host + "a", answer)
    let report = try world.run()
    #expect(report.problems.map(\.code) == (length == 4 ? [] : ["length-unknown"]))
    #expect(world.files == (length == 4 ? ["a": "text"] : [:]))
  }
}
