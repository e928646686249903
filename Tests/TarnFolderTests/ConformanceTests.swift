import TarnCore
import TarnFolder
import TestSupport
import Testing

/// What every folder behind the port does, on disk and in memory.
@Suite struct FolderConformanceTests {
  // MARK: Reading

  @Test(arguments: Adapter.allCases) func anEmptyFolderHasNothing(_ adapter: Adapter) throws {
    let world = try adapter.make()
    #expect(try world.port.scan().next() == nil)
    #expect(try world.port.look(at("a")) == nil)
    #expect(try world.port.look(at("a/b")) == nil)
    #expect(try world.port.digest(of: at("a"), .sha256) == nil)
    #expect(try world.port.partials().isEmpty)
    #expect(try world.port.trashed().isEmpty)
    #expect(try world.port.isIntact())
  }

  @Test(arguments: Adapter.allCases) func aRegionIsScannedAlone(_ adapter: Adapter) throws {
    let world = try adapter.make()
    for file in ["a/b/c", "a/d", "a-b", "b", "z/y/x"] { world.write(at(file), bytes(file)) }
    world.makeLink(at("link"))
    let all = world.scanned().objects
    for top in [nil, "a", "a/b", "a/d", "z", "none", "b"] {
      for extent in [Region.Extent.itself, .children, .tree] where top != nil || extent != .itself {
        let region = Region(top.map(at), extent)
        let cursor = world.port.scan(region)
        var found: [Present] = []
        while let present = try cursor.next() { found.append(present) }
        #expect(found == all.filter { region.contains($0.path) }, "\(region)")
      }
    }
    for below in ["link/a", "b/a", "none/a"] {
      #expect(try world.port.scan(Region(at(below), .tree)).next() == nil)
    }
  }

  /// The contents of `a` sort as `a/`, behind `a-b` and `a.txt`.
  @Test(arguments: Adapter.allCases) func aScanComesInTheOrderOfWholePaths(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let files = [
      "a/b", "a/b/../x", "a-b/c", "a-b/c-d", "a.txt", "a0", "a/b.d/e", "a/b/c/d", "a/b-c", "b", "B", "a/b0",
      "a ",
      "caf\u{e9}", "cafe\u{301}", "z/z/z/z", "a-b-/q", "a!/a!/a", "a!/a!b", ".tarnx", ".tarm", "q/.tarnx",
    ].filter { !$0.contains("..") && $0 != "a/b" }
    for file in files { world.write(at(file), bytes(file)) }
    let (objects, failures) = world.scanned()
    #expect(failures.isEmpty)
    let paths = objects.map(\.path)
    #expect(paths == paths.sorted())
    #expect(Set(paths).count == paths.count)
    var expected = Set(files.map(at))
    for file in files {
      var parent = at(file).parent
      while let directory = parent {
        expected.insert(directory)
        parent = directory.parent
      }
    }
    #expect(Set(paths) == expected)
  }

  @Test(arguments: Adapter.allCases) func aScanTellsKindsAndFollowsNoLink(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("d/file"), bytes("12345"))
    world.makeLink(at("link"))
    world.makeSpecial(at("special"))
    world.makeDirectory(at("void"))
    let objects = world.scanned().objects
    #expect(objects.map(\.path) == ["d", "d/file", "link", "special", "void"].map(at))
    #expect(objects.map(\.kind) == [.directory, .regular, .symbolicLink, .special, .directory])
    #expect(objects[1].identity.size == 5)
    for object in objects { #expect(try world.port.look(object.path) == object) }
  }

  @Test(arguments: Adapter.allCases) func nothingStandsBelowALinkOrAFile(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.makeLink(at("link"))
    world.write(at("file"), bytes("x"))
    #expect(try world.port.look(at("link/folder")) == nil)
    #expect(try world.port.look(at("file/x")) == nil)
    #expect(try world.port.digest(of: at("link/folder"), .sha256) == nil)
    #expect(try world.port.digest(of: at("file/x"), .sha256) == nil)
  }

  @Test(arguments: Adapter.allCases) func aDigestIsOfARegularFileAndComesWithItsIdentity(_ adapter: Adapter)
    throws
  {
    let world = try adapter.make()
    let contents = noise(adapter.large)
    world.write(at("d/file"), contents)
    let (digest, identity) = try #require(try world.port.digest(of: at("d/file"), .sha256))
    #expect(digest == world.hashing.digest(.sha256, of: contents))
    #expect(try identity == world.identity(at("d/file")))
    world.makeSpecial(at("special"))
    world.makeLink(at("link"))
    for path in ["special", "link", "d"] { #expect(try world.port.digest(of: at(path), .md5) == nil) }
  }

  // MARK: Staging

  @Test(arguments: Adapter.allCases) func aFileIsWrittenHashedAndSealed(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let contents = noise(100_000)
    let digest = world.hashing.digest(.sha512, of: contents)
    let partial = try world.port.makePartial()
    let check = ContentCheck(size: 100_000, digest: digest)
    #expect(try partial.begin(keeping: 0, check: check) == 0)
    try partial.append(Array(contents[..<70_000]))
    #expect(partial.length == 70_000)
    #expect(try partial.sync() == 70_000)
    try partial.append(Array(contents[70_000...]))
    let time = try #require(Timestamp(seconds: 1_000_000_000, nanoseconds: 5))
    let sealed = try partial.seal(modified: time)
    #expect(sealed.digest == digest)
    #expect(sealed.isVerified)
    #expect(sealed.identity.size == 100_000)
    #expect(sealed.identity.modified == time)
    #expect(try world.port.partials().map(\.name) == [partial.name])
    #expect(try world.port.partials().map(\.size) == [100_000])
    #expect(try world.port.partialIdentity(partial.name) == sealed.identity)
    #expect(try world.port.partialIdentity("none") == nil)
    #expect(try world.port.partialAllocation(partial.name) >= sealed.identity.size)
    #expect(try world.port.partialAllocation("none") == 0)
    partial.discard()
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func aPartialFileTellsItsFirstBytes(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let partial = try world.port.makePartial()
    #expect(partial.opening(most: 10).isEmpty)
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append(bytes("12345"))
    #expect(partial.opening(most: 10) == bytes("12345"))
    #expect(partial.opening(most: 3) == bytes("123"))
  }

  @Test(arguments: Adapter.allCases) func withoutADigestSHA256IsComputed(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    let sealed = try partial.seal(modified: nil)
    #expect(sealed.digest == world.hashing.digest(.sha256, of: []))
    #expect(!sealed.isVerified)
  }

  @Test(arguments: Adapter.allCases) func aWrongDigestOrSizeIsRefused(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let digest = world.hashing.digest(.sha1, of: bytes("right"))
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: 5, digest: digest))
    try partial.append(bytes("wron"))
    #expect(code { try partial.append(bytes("gg")) } == .sizeMismatch)
    #expect(partial.length == 4)
    #expect(code { _ = try partial.seal(modified: nil) } == .sizeMismatch)
    try partial.append(bytes("g"))
    #expect(code { _ = try partial.seal(modified: nil) } == .digestMismatch)
    #expect(try partial.begin(keeping: 0, check: ContentCheck(size: 5, digest: digest)) == 0)
    try partial.append(bytes("right"))
    #expect(try partial.seal(modified: nil).isVerified)
  }

  @Test(arguments: Adapter.allCases) func aResumedFileKeepsItsPrefix(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let size = adapter.large
    let part = size - 11_111
    let contents = noise(size)
    let first = try world.port.makePartial()
    _ = try first.begin(keeping: 0, check: ContentCheck(size: UInt64(size)))
    try first.append(Array(contents[..<(size - 5000)]))
    first.close()
    let second = try #require(try world.port.openPartial(first.name))
    let check = ContentCheck(size: UInt64(size), digest: world.hashing.digest(.sha256, of: contents))
    #expect(try second.begin(keeping: UInt64(part), check: check) == UInt64(part))
    #expect(second.length == UInt64(part))
    try second.append(Array(contents[part...]))
    #expect(try second.seal(modified: nil).isVerified)
    second.close()
    let third = try #require(try world.port.openPartial(first.name))
    #expect(try third.begin(keeping: .max, check: ContentCheck()) == UInt64(size))
    #expect(try third.begin(keeping: 10, check: ContentCheck(size: 5)) == 5)
    third.discard()
    #expect(try world.port.openPartial(first.name) == nil)
    #expect(code { _ = try third.sync() } != nil)
    #expect(code { try third.append([1]) } != nil)
  }

  @Test(arguments: Adapter.allCases) func piecesAreCheckedAsTheyFill(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let contents = noise(1050)
    let pieces = Pieces(
      length: 100,
      digests: stride(from: 0, to: 1050, by: 100).map {
        world.hashing.digest(.sha1, of: Array(contents[$0..<min($0 + 100, 1050)]))
      })
    let check = ContentCheck(size: 1050, pieces: pieces)
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: check)
    try partial.append(Array(contents[..<250]))
    var wrong = Array(contents[250..<900])
    wrong[400] ^= 1
    let failure = #expect(throws: FolderFailure.self) { try partial.append(wrong) }
    #expect(failure?.code == .pieceMismatch)
    #expect(failure?.goodPrefix == 600)
    #expect(partial.length == 600)
    try partial.append(Array(contents[600...]))
    #expect(try partial.seal(modified: nil).identity.size == 1050)

    var last = contents
    last[1049] ^= 1
    _ = try partial.begin(keeping: 0, check: check)
    let end = #expect(throws: FolderFailure.self) {
      try partial.append(last)
      _ = try partial.seal(modified: nil)
    }
    #expect(end?.code == .pieceMismatch)
    #expect(end?.goodPrefix == 1000)
    #expect(partial.length == 1000)
  }

  @Test(arguments: Adapter.allCases) func aWrongPieceInTheKeptPrefixIsCutOff(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let contents = noise(1000)
    var damaged = contents
    damaged[555] ^= 1
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append(damaged)
    let pieces = Pieces(
      length: 100,
      digests: (0..<10).map { world.hashing.digest(.md5, of: Array(contents[$0 * 100..<$0 * 100 + 100])) })
    let check = ContentCheck(
      size: 1000, digest: world.hashing.digest(.sha256, of: contents), pieces: pieces)
    #expect(try partial.begin(keeping: 1000, check: check) == 500)
    try partial.append(Array(contents[500...]))
    #expect(try partial.seal(modified: nil).isVerified)
  }

  @Test(arguments: Adapter.allCases) func aCopyHasTheBytesOfTheExpectedFile(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let contents = noise(adapter.large)
    world.write(at("d/source"), contents)
    let identity = try world.identity(at("d/source"))
    let check = ContentCheck(size: UInt64(adapter.large), digest: world.hashing.digest(.sha256, of: contents))
    let copy = try #require(try world.port.copyPartial(of: at("d/source"), expected: identity, check: check))
    #expect(try copy.seal(modified: nil).isVerified)
    copy.discard()
    world.edit(at("d/source"), noise(adapter.large, seed: 2))
    #expect(try world.port.copyPartial(of: at("d/source"), expected: identity, check: check) == nil)
    #expect(try world.port.copyPartial(of: at("nothing"), expected: identity, check: check) == nil)
    let now = try world.identity(at("d/source"))
    #expect(
      code { _ = try world.port.copyPartial(of: at("d/source"), expected: now, check: ContentCheck(size: 7)) }
        == .sizeMismatch)
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func everyFileOfAGroupIsMadeDurableOrReported(_ adapter: Adapter) throws
  {
    let world = try adapter.make()
    for count in [0, 1, 3, 4, 9] {
      let files = try (0..<count).map { try world.sealed(noise($0 * 1000)) }
      #expect(world.port.makeDurable(files) == Array(repeating: nil, count: count))
      files.first?.close()
      let results = world.port.makeDurable(files)
      #expect(results.count == count)
      if count > 0 { #expect(results.first.flatMap { $0 } != nil) }
      #expect(results.dropFirst().allSatisfy { $0 == nil })
    }
  }
}
