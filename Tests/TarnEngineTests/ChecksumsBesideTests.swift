import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// A directory index that also lists checksums of its files: these are verified against them.
@Suite struct ChecksumsBesideTests {
  private static let root = "http://mirror.example/"

  private func world() -> World {
    let world = World()
    world.policy.retries = 0
    world.location = .remote(url: Self.root)
    return world
  }

  /// The listing of a directory.
  private func serve(_ world: World, _ place: String = "", _ items: [FeedItem]) {
    world.server.put(Self.root + place, "a listing".bytes)
    world.documents[Self.root + place] = items
    world.ends[Self.root + place] = FeedEnd(format: "index", isComplete: true)
    world.ends[Self.root + place]?.isIndex = true
  }

  /// As an index has it: without a digest.
  private func file(_ world: World, _ path: String, _ text: String) -> FeedItem {
    var entry = world.serve(path, text)
    entry.digests = []
    entry.modified = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    return .entry(entry)
  }

  /// A list of digests, as one of the files of the index.
  private func list(_ world: World, _ path: String, _ digests: [(String, Digest)]) -> FeedItem {
    world.documents[Self.root + path] = digests.map {
      .entry(Entry(path: $0.0.path, digests: [$0.1], sources: [Source(url: Self.root + $0.0)]))
    }
    return file(world, path, digests.map { "\($0.1.hex)  \($0.0)\n" }.joined())
  }

  private func asked(_ world: World, _ path: String) -> Int {
    world.server.urls.count { $0 == Self.root + path }
  }

  @Test func itsFilesAreVerifiedAgainstTheListBesideThem() throws {
    let world = world()
    let sums = list(
      world, "SHA256SUMS",
      [
        ("a", world.digest("one")), ("sub/b", world.digest("two", .sha512)), ("gone", world.digest("x")),
      ])
    serve(
      world, "",
      [
        sums, file(world, "a", "one"), file(world, "c", "three"),
        .directory(url: Self.root + "sub/", path: "sub".path),
      ])
    serve(world, "sub/", [file(world, "sub/b", "two"), file(world, "sub/d", "four")])
    let report = try world.run()
    #expect(
      report.isInSync && report.manifest.isComplete && report.counts.wanted == 5 && report.problems.isEmpty)
    #expect(world.files.keys.sorted() == ["SHA256SUMS", "a", "c", "sub/b", "sub/d"])
    let verified = world.files.keys.filter { world.row($0)?.isVerified == true }.sorted()
    #expect(verified == ["a", "sub/b"])
    #expect(world.row("sub/b")?.digest == world.digest("two", .sha512))
    #expect(world.log.notices.isEmpty)
    #expect(try world.plan().actions.isEmpty)
  }

  /// The digest of a file that is there, and the beginning of its name.
  @Test func aNameThatMayBeCutIsNoOtherFilesName() throws {
    let world = world()
    serve(world, "", [file(world, "app-1.10", "ten")])
    #expect(try world.run().isInSync)
    let sums = list(world, "SHA256SUMS", [("app-1.1", world.digest("ten"))])
    var cut = Entry(
      path: "app-1.1".path, digests: [world.digest("ten")], sources: [Source(url: Self.root + "app-1.1")])
    cut.mayBeCut = true
    world.documents[Self.root + "SHA256SUMS"] = [.entry(cut)]
    serve(world, "", [sums, file(world, "app-1.1", "one"), file(world, "app-1.10", "ten")])
    #expect(try world.run().problems.map(\.code) == ["digest-mismatch"])
    #expect(world.files["app-1.1"] == nil)
  }

  @Test func aListBelowIsOfItsOwnDirectory() throws {
    let world = world()
    serve(
      world, "", [file(world, "a", "one"), .directory(url: Self.root + "sub/", path: "sub".path)])
    serve(
      world, "sub/",
      [file(world, "sub/a", "two"), list(world, "sub/checksums.txt", [("a", world.digest("two"))])])
    #expect(try world.run().isInSync)
    #expect(world.row("sub/a")?.isVerified == true && world.row("a")?.isVerified == false)
  }

  /// The server has the new list and not yet the new file, or the list is simply wrong.
  @Test func aFileThatIsNotAsItsListSaysFails() throws {
    let world = world()
    serve(world, "", [file(world, "a", "one"), list(world, "SHA256SUMS", [("a", world.digest("one"))])])
    #expect(try world.run().isInSync)
    serve(world, "", [file(world, "a", "two!"), list(world, "SHA256SUMS", [("a", world.digest("new"))])])
    let report = try world.run()
    #expect(report.counts.failed == 1 && !report.isInSync)
    let problem = try #require(report.problems.first)
    #expect(problem.code == "digest-mismatch" && problem.name == "a".bytes)
    #expect(problem.message.contains("SHA256SUMS"), "\(problem.message)")
    #expect(world.text("a") == "one")
    // Once both are there all is well.
    serve(world, "", [file(world, "a", "new"), list(world, "SHA256SUMS", [("a", world.digest("new"))])])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "new" && world.row("a")?.isVerified == true)
  }

  @Test func aListThatCannotBeReadOrBreaksOffGivesNoDigests() throws {
    for broken in 0..<3 {
      let world = world()
      let sums = list(world, "SHA256SUMS", [("a", world.digest("other"))])
      serve(world, "", [file(world, "a", "one"), sums])
      switch broken {
      case 0:
        world.server.script(Self.root + "SHA256SUMS", [FakeAnswer(status: 404)])
      case 1:
        world.ends[Self.root + "SHA256SUMS"] = FeedEnd(format: "checksum list", isComplete: false)
        world.ends[Self.root + "SHA256SUMS"]?.isCut = true
      default:
        world.server.script(Self.root + "SHA256SUMS", [Server.broken("a list", after: 3)])
      }
      let report = try world.run()
      #expect(report.isInSync && report.manifest.isComplete && report.problems.isEmpty, "\(broken)")
      #expect(world.text("a") == "one" && world.row("a")?.isVerified == false)
      #expect(world.log.notices.map(\.code) == ["checksums-not-read"])
      #expect(world.log.notices.first?.message.contains("SHA256SUMS") == true)
    }
  }

  @Test func whoLeavesAListOutGoesWithoutIt() throws {
    let world = world()
    world.policy.filter.exclude = PathPatterns(["SHA256SUMS", "b"])
    serve(
      world, "",
      [
        file(world, "a", "one"), file(world, "b", "two"),
        list(world, "SHA256SUMS", [("a", world.digest("stale"))]),
        list(world, "b.sha256", [("b", world.digest("two"))]),
      ])
    #expect(try world.run().isInSync)
    #expect(world.files.keys.sorted() == ["a", "b.sha256"])
    #expect(asked(world, "SHA256SUMS") == 0 && asked(world, "b.sha256") == 1)
    // Which files are wanted says nothing of what they are verified by.
    world.policy.filter.exclude = PathPatterns([])
    world.policy.filter.include = PathPatterns(["a"])
    serve(world, "", [file(world, "a", "one"), list(world, "SHA256SUMS", [("a", world.digest("one"))])])
    #expect(try world.run().isInSync && world.row("a")?.isVerified == true)
  }

  /// The strongest of those of one file; and where nothing has changed none of them.
  @Test func theDigestOfOneFileIsAskedForWhenItMayHaveChanged() throws {
    let world = world()
    func serve(_ text: String) {
      self.serve(
        world, "",
        [
          file(world, "a", text), list(world, "a.md5", [("a", world.digest(text, .md5))]),
          list(world, "a.sha256", [("a", world.digest(text))]),
        ])
    }
    serve("one")
    #expect(try world.run().isInSync && world.row("a")?.isVerified == true)
    #expect(asked(world, "a.md5") == 1 && asked(world, "a.sha256") == 2)
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [Self.root])
    serve("second")
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "second" && world.row("a")?.isVerified == true)
    #expect(asked(world, "a.sha256") > 0)
  }

  /// A mirror that an earlier Tarn made.
  @Test func whatIsInPlaceIsKnownToBeVerifiedFromThenOn() throws {
    let world = world()
    serve(world, "", [file(world, "a", "one")])
    #expect(try world.run().isInSync && world.row("a")?.isVerified == false)
    let sums = list(world, "SHA256SUMS", [("a", world.digest("one"))])
    serve(world, "", [file(world, "a", "one"), sums])
    #expect(try world.run().isInSync)
    #expect(world.row("a")?.isVerified == true && asked(world, "a") == 0)
    #expect(!world.log.done.contains { $0.hasSuffix(" a") })
  }

  /// What such names say in a feed that is no index is what the feed says.
  @Test func onlyOfAnIndexAreTheyRead() throws {
    let world = world()
    world.location = .remote(url: Self.root + "list")
    world.server.put(Self.root + "list", "a list".bytes)
    world.documents[Self.root + "list"] = [
      file(world, "b", "two"), list(world, "SHA256SUMS", [("b", world.digest("other"))]),
    ]
    #expect(try world.run().isInSync)
    #expect(world.text("b") == "two" && asked(world, "SHA256SUMS") == 1)
  }

  /// What a list says twice and differently it does not say; another list beside it does.
  @Test(arguments: [true, false]) func aListThatContradictsItselfSaysNothing(isGoodFirst: Bool) throws {
    let (good, other) = ("one", String(repeating: "0", count: 3))
    for hasOwn in [false, true] {
      let world = world()
      let texts = isGoodFirst ? [good, other] : [other, good]
      let sums = list(
        world, "SHA256SUMS",
        texts.map { ("x.iso", world.digest($0)) } + [
          ("b", world.digest("two")), ("b", world.digest("two", .sha512)),
        ])
      let own = list(world, "x.iso.sha256", [("x.iso", world.digest(good))])
      serve(world, "", [file(world, "x.iso", "one"), file(world, "b", "two"), sums] + (hasOwn ? [own] : []))
      #expect(try world.run().isInSync)
      #expect(world.row("x.iso")?.isVerified == hasOwn && world.row("b")?.isVerified == true)
      #expect(world.log.notices.map(\.code) == ["checksums-not-read"])
      #expect(world.log.notices.first?.message.contains("SHA256SUMS") == true)
      #expect(world.log.notices.first?.message.contains("two digests of x.iso") == true)
    }
  }

  /// The first one counts, and the other is named.
  @Test(arguments: [true, false]) func twoListsThatContradictEachOtherAreTold(isSame: Bool) throws {
    let world = world()
    let sums = list(world, "SHA256SUMS", [("x.iso", world.digest("one")), ("b", world.digest("two"))])
    let own = list(world, "x.iso.sha256", [("x.iso", world.digest(isSame ? "one" : "other"))])
    serve(world, "", [file(world, "x.iso", "one"), file(world, "b", "two"), sums, own])
    #expect(try world.run().isInSync)
    #expect(world.row("x.iso")?.isVerified == true && world.row("b")?.isVerified == true)
    #expect(world.log.notices.map(\.code) == (isSame ? [] : ["checksums-not-read"]))
    let message = world.log.notices.first?.message ?? ""
    #expect(
      isSame
        || message.contains("x.iso.sha256") && message.contains("another list has another digest of x.iso"))
  }

  /// The path is that of the file where the list was made.
  @Test func theListOfOneFileIsOfTheFileBesideIt() throws {
    let world = world()
    let sums = list(world, "x.iso.sha256", [("out/x.iso", world.digest("one"))])
    serve(world, "", [file(world, "x.iso", "one"), sums])
    #expect(try world.run().isInSync)
    #expect(world.row("x.iso")?.isVerified == true && world.log.notices.isEmpty)
    let other = self.world()
    let strange = list(other, "x.iso.sha256", [("y.iso", other.digest("one"))])
    serve(other, "", [file(other, "x.iso", "one"), strange])
    #expect(try other.run().isInSync)
    #expect(other.row("x.iso")?.isVerified == false)
    #expect(other.log.notices.first?.message.contains("does not name x.iso") == true)
  }

  /// Repairs, too, go by what the list said.
  @Test func repairsKnowTheDigest() throws {
    let world = world()
    world.settings = "settings"
    world.catalog = MemoryCatalog()
    serve(world, "", [file(world, "a", "one"), list(world, "SHA256SUMS", [("a", world.digest("one"))])])
    #expect(try world.run().isInSync)
    let id = CatalogFact.id(of: try #require(world.ledger.contents.facts[.catalog]))
    let entry = try #require(try world.catalog?.open(id: id)?.entry("a".path))
    #expect(entry.digests == [world.digest("one")] && entry.voucher == "SHA256SUMS".path)
  }
}
