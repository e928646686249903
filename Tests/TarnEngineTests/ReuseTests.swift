import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// The same bytes elsewhere in the folder, or named twice by the feed, are not fetched again.
@Suite struct ReuseTests {
  private static let long = String(repeating: "0123456789abcdef", count: 5000)

  @Test func aFileThatTheUserRenamedIsCopiedBack() throws {
    let world = World()
    world.want("a", Self.long)
    try world.run()
    world.folder.rename("a".path, to: "renamed".path)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == 1)
    #expect(world.text("a") == Self.long)
    #expect(world.text("renamed") == Self.long)
    #expect(world.server.requests.isEmpty)
  }

  /// The copy that is left comes behind those that are gone, in the folder and at the source.
  @Test(arguments: [6, 150]) func aCopyIsFoundBehindThoseThatAreGone(count: Int) throws {
    let world = World(hashing: QuickHashing())
    world.policy.retries = 0
    for number in 1...count { world.want("d\(1000 + number)", Self.long) }
    try world.run()
    for number in 1..<count {
      world.folder.delete("d\(1000 + number)".path)
      world.server.remove(World.host + "d\(1000 + number)")
    }
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == count - 1)
    #expect(world.server.requests.isEmpty)
    #expect(world.files.count == count)
  }

  /// However many rows there are, a bounded number of them is looked at.
  @Test func aBoundedNumberOfRowsIsLookedAt() throws {
    let world = World(hashing: QuickHashing())
    for number in 0..<600 { world.want("d\(1000 + number)", "wanted") }
    try world.run()
    let recorded = RecordedCopies(ledger: world.ledger, folder: world.folder)
    var seen: [RelativePath] = []
    let found = try recorded.first(of: world.digest("wanted"), for: "d1001".path) { row -> Bool? in
      seen.append(row.path)
      return nil
    }
    #expect(found == nil)
    #expect(seen == (0..<RecordedCopies.most).filter { $0 != 1 }.map { "d\(1000 + $0)".path })
    world.folder.delete("d1000".path)
    #expect(try recorded.exists(of: world.digest("wanted"), for: "d1001".path))
    for number in 0..<600 { world.folder.edit("d\(1000 + number)".path, "other".bytes) }
    #expect(try !recorded.exists(of: world.digest("wanted"), for: "d1001".path))
  }

  /// Neither its own row nor that of another file that is gone is a duplicate: both wait for the one that comes later.
  @Test(arguments: [4096, 0]) func rowsOfWhatIsGoneAreNoDuplicates(mostHeldBack: Int) throws {
    let world = World()
    world.policy.retries = 0
    world.mostHeldBack = mostHeldBack
    for name in ["a", "b"] { world.want(name, "wanted") }
    try world.run()
    for name in ["a", "b"] {
      world.folder.delete(name.path)
      world.server.remove(World.host + name)
    }
    world.policy.publishLast = PathPatterns(["/z"])
    world.want("z", "wanted")
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files == ["a": "wanted", "b": "wanted", "z": "wanted"])
  }

  /// A cut list has the beginning of a name, and the digest of a file that is there.
  @Test func aNameThatMayBeCutIsTakenFromItsServerOnly() throws {
    let world = World()
    world.policy.retries = 0
    world.want("app-1.10", Self.long)
    try world.run()
    var cut = world.entry("app-1.1", Self.long)
    cut.mayBeCut = true
    world.add(cut)
    let list = world.serve("SUMS", "the list")
    world.add(
      Entry(path: list.path, size: list.size, digests: list.digests, sources: list.sources, isList: true))
    #expect(try world.run().counts.failed == 2)
    #expect(world.files == ["app-1.10": Self.long])
    world.server.put(World.host + "app-1.1", Self.long.bytes)
    #expect(try world.run().isInSync)
    #expect(world.files == ["app-1.10": Self.long, "app-1.1": Self.long, "SUMS": "the list"])
  }

  @Test func aStrangerThatLooksLikeItIsHashed() throws {
    for (text, copied) in [(Self.long, 1), (String(Self.long.dropLast() + "X"), 0)] {
      let world = World()
      world.folder.write("mine".path, text.bytes)
      world.want("a", Self.long)
      let report = try world.run()
      #expect(report.isInSync)
      #expect(report.counts.copied == copied)
      #expect(world.server.requests.count == 1 - copied)
      #expect(world.text("a") == Self.long)
      #expect(world.text("mine") == text)
      #expect(world.partialNames.isEmpty)
    }
  }

  /// First the file that Tarn placed, by all of its names; of the others, four, and none of another size.
  @Test func fewStrangersAreTried() {
    let time = Timestamp(nanoseconds: 0)
    func identity(_ inode: UInt64, size: UInt64) -> FileIdentity {
      FileIdentity(device: 1, inode: inode, size: size, modified: time, changed: time)
    }
    var unrecorded = UnrecordedFiles()
    for number in 0..<40 as Range<UInt64> {
      let size: UInt64 = number % 2 == 0 ? 5 : 7
      let found = identity(number == 30 ? 6 : number, size: size)
      unrecorded.add(Present(path: "s-\(10 + number)".path, kind: .regular, identity: found))
    }
    let world = World()
    let entry = world.entry("a", "12345")
    let row = Row(
      path: "a".path, identity: identity(6, size: 5), digest: world.digest("12345"), isVerified: true,
      fingerprint: [], placed: time)
    #expect(
      unrecorded.candidates(entry, row: row).map(\.path)
        == ["s-16", "s-40", "s-10", "s-12", "s-14", "s-18"].map(\.path))
    #expect(
      unrecorded.candidates(entry, row: nil).map(\.path) == ["s-10", "s-12", "s-14", "s-16"].map(\.path))
    #expect(unrecorded.candidates(world.entry("a", "1234"), row: row).isEmpty)
  }

  @Test(arguments: [2, 300]) func twoNamesOfOneContentAreFetchedOnce(count: Int) throws {
    let world = World()
    for number in 0..<count { world.want("f\(number)", Self.long) }
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == count - 1)
    #expect(world.server.requests.count == 1)
    #expect(Set(world.files.values) == [Self.long])
    #expect(try world.plan().actions.isEmpty)
  }

  /// The first one fails: the next one that waited is asked for, and once its bytes are there the first one gets them.
  @Test(arguments: [long, "short"]) func aFailureIsCopiedFromItsDuplicate(text: String) throws {
    let world = World()
    world.policy.retries = 0
    for number in 0..<4 { world.want("f\(number)", text) }
    world.server.answer(World.host + "f0", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files == ["f0": text, "f1": text, "f2": text, "f3": text])
    #expect(world.log.problems.isEmpty && world.ledger.contents.problems.isEmpty)
    #expect(world.partialNames.isEmpty)
    #expect(try world.plan().actions.isEmpty)
  }

  /// The duplicate comes long after the failure, and in the other phase.
  @Test func aFailureIsCopiedFromADuplicateThatComesLater() throws {
    let world = World()
    world.policy.retries = 0
    world.policy.publishLast = PathPatterns(["/z"])
    world.want("a", "wanted")
    for number in 0..<1500 { world.want("f\(number)", "text \(number)") }
    world.want("z", "wanted")
    world.server.answer(World.host + "a", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.text("a") == "wanted")
  }

  /// All of them fail, each for its own reason, and what came of one of them is kept.
  @Test func failuresWithoutADuplicateAreReported() throws {
    let world = World()
    world.policy.retries = 0
    for name in ["a", "b", "c"] { world.want(name, Self.long) }
    world.want("d", "other")
    world.server.answer(World.host + "a", FakeAnswer(status: 404))
    world.server.answer(World.host + "b", FakeAnswer(status: 403))
    world.server.answer(World.host + "c", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(report.counts.failed == 3)
    #expect(
      Set(report.problems.map { "\($0.name.map { String(UnicodeScalar($0)) }.joined()) \($0.code)" }).count
        == 3)
    #expect(report.problems.count == 3 && world.log.problems.count == 3)
    #expect(world.files == ["d": "other"])
  }

  /// What was not fetched is not called so.
  @Test func copiesAreCountedAsCopies() throws {
    let world = World()
    for number in 0..<300 { world.want("f\(number)", Self.long) }
    let report = try world.run()
    #expect(report.counts.fetched == 1)
    #expect(report.counts.copied == 299)
    #expect(report.counts.inPlace == 300)
    #expect(report.bytes.received == UInt64(Self.long.utf8.count))
    #expect(world.log.done.filter { $0.hasPrefix("copied ") }.count == 299)
    #expect(world.ledger.contents.events.filter { $0.code == "copied" }.count == 299)
  }

  /// Small files are not waited for; all the same each is there once it is asked for.
  @Test func smallDuplicatesDoNotWait() throws {
    let world = World()
    for number in 0..<500 { world.want("f\(number)", "") }
    #expect(try world.run().isInSync)
    #expect(world.files.count == 500)
  }
}
