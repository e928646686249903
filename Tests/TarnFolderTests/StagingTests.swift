import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import Testing

@Suite struct StagingTests {
  @Test func namesAreRandomAndTheirFilesPrivate() throws {
    let world = try DiskWorld()
    let names = try (0..<50).map { _ in try world.port.makePartial().name }
    #expect(Set(names).count == 50)
    for name in names { #expect(name.utf8.count == 32 && name.allSatisfy(\.isHexDigit)) }
    #expect(try world.names(world.port.partials()) == names.sorted())
  }

  /// From 4 MiB on a file is hashed beside the writing: what is found out is the same.
  @Test func whatIsHashedBesideTheWritingIsChecked() throws {
    let world = try DiskWorld()
    let contents = noise(9 << 20)
    let (step, piece) = (100_000, 3 << 20)
    let pieces = Pieces(
      length: UInt64(piece),
      digests: (0..<3).map {
        world.hashing.digest(.sha256, of: Array(contents[$0 * piece..<($0 + 1) * piece]))
      })
    let check = ContentCheck(
      size: UInt64(contents.count), digest: world.hashing.digest(.sha256, of: contents), pieces: pieces)
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: check)
    for start in stride(from: 0, to: contents.count, by: step) {
      try partial.append(Array(contents[start..<min(start + step, contents.count)]))
    }
    #expect(try partial.seal(modified: nil).isVerified)
    var damaged = contents
    damaged[8 << 20] ^= 1
    _ = try partial.begin(keeping: 0, check: check)
    let failure = #expect(throws: FolderFailure.self) {
      for start in stride(from: 0, to: damaged.count, by: step) {
        try partial.append(Array(damaged[start..<min(start + step, damaged.count)]))
      }
    }
    #expect(failure?.code == .pieceMismatch && failure?.goodPrefix == UInt64(2 * piece))
  }

  @Test func anotherPiecesEndAndSizeAgree() throws {
    let world = try DiskWorld()
    let contents = noise(250)
    let digests = [0, 100].map { world.hashing.digest(.sha256, of: Array(contents[$0..<$0 + 100])) }
    let partial = try world.port.makePartial()
    // Pieces say where the file ends when nothing else does.
    let check = ContentCheck(pieces: Pieces(length: 100, digests: digests))
    _ = try partial.begin(keeping: 0, check: check)
    try partial.append(Array(contents[..<150]))
    #expect(code { try partial.append(Array(contents[150...])) } == .sizeMismatch)
    #expect(code { _ = try partial.seal(modified: nil) } == .pieceMismatch)
    _ = try partial.begin(keeping: 0, check: check)
    try partial.append(Array(contents[..<100]))
    let missing = #expect(throws: FolderFailure.self) { _ = try partial.seal(modified: nil) }
    #expect(missing?.goodPrefix == 100)
    for pieces in [
      Pieces(length: 0, digests: digests), Pieces(length: .max, digests: digests),
      Pieces(length: 7, digests: []),
    ] {
      _ = try partial.begin(keeping: 0, check: ContentCheck(size: 3, pieces: pieces))
      try partial.append([1, 2])
      #expect(partial.length == 2)
    }
  }

  @Test func aPieceThatWasWrongNeedsANewBeginning() throws {
    let world = try DiskWorld()
    let partial = try world.port.makePartial()
    let pieces = Pieces(length: 4, digests: [world.hashing.digest(.md5, of: [1, 2, 3, 4])])
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: 4, pieces: pieces))
    #expect(code { try partial.append([1, 2, 3, 5]) } == .pieceMismatch)
    #expect(code { try partial.append([1, 2, 3, 4]) } == .other)
    #expect(code { _ = try partial.seal(modified: nil) } == .other)
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: 4, pieces: pieces))
    try partial.append([1, 2, 3, 4])
    _ = try partial.seal(modified: nil)
    #expect(code { try partial.append([]) } == .other)
  }

  @Test(
    arguments: [0, -1, 1_700_000_000_123_456_789, -2_000_000_000_500_000_000, 7_000_000_000_000_000_001]
      as [Int64])
  func timesAreKept(_ nanoseconds: Int64) throws {
    let world = try DiskWorld()
    let partial = try world.sealed([1], modified: Timestamp(nanoseconds: nanoseconds))
    let item = Installation(path: at("f"), partial: partial, expectation: .absent, trashName: "t")
    let identity = try #require(world.port.install([item])[0].identity)
    #expect(try world.identity(at("f")) == identity)
    #expect(identity.modified == Timestamp(nanoseconds: nanoseconds))
  }

  /// `sync` runs beside `append` and `close` on another thread.
  @Test func checkpointsRunBesideWriting() throws {
    let world = try DiskWorld()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    let done = Gate()
    let highest = Locked<UInt64>(0)
    let thread = try WorkerThread.start(name: "sync") {
      while let durable = try? partial.sync() { highest.withLock { $0 = max($0, durable) } }
      done.open()
    }
    let part = noise(100_000)
    for _ in 0..<100 { try partial.append(part) }
    let length = partial.length
    partial.close()
    done.wait()
    thread.join()
    #expect(length == 10_000_000)
    #expect(highest.withLock { $0 } <= length)
    #expect(try world.port.partials().map(\.size) == [length])
  }

  /// What is cut away while it is synced is not called durable.
  @Test func aCutBesideACheckpointIsSeen() throws {
    let faults = Faults()
    let world = try DiskWorld(probe: faults.probe)
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append(noise(1000))
    faults.before(.syncData) {
      _ = try? partial.begin(keeping: 10, check: ContentCheck())
      try? partial.append(noise(5, seed: 3))
    }
    #expect(try partial.sync() == 15)
    #expect(faults.count(.syncData) == 2)
  }

  /// A group with more directories than are kept open at a time.
  @Test func aLargeGroupIsPublished() throws {
    let world = try DiskWorld()
    let partials = try (0..<700).map { try world.sealed([UInt8(truncatingIfNeeded: $0)]) }
    #expect(world.port.makeDurable(partials).allSatisfy { $0 == nil })
    let items = partials.enumerated().map { index, partial in
      Installation(
        path: at("d\(index % 300)/f\(index)"), partial: partial, expectation: .absent, trashName: "t")
    }
    let outcomes = world.port.install(items)
    #expect(outcomes.allSatisfy { $0.identity != nil })
    #expect(world.scanned().objects.count == 1000)
    #expect(world.contents(at("d7/f307")) == [UInt8(truncatingIfNeeded: 307)])
    let removals = zip(items, outcomes).compactMap { item, outcome in
      outcome.identity.map { Removal(path: item.path, expected: $0, trashName: item.partial.name) }
    }
    #expect(world.port.remove(removals).allSatisfy { $0.identity != nil })
    #expect(world.scanned().objects.isEmpty)
    #expect(try world.port.trashed().count == 700)
  }

  /// Where the file system shares the blocks nothing is written, and all is read.
  @Test(
    .enabled(if: (try? Mounts.withReflinks { _ in true }) == true, "needs the right to mount, and mkfs.xfs"))
  func aCopyThatSharesItsBlocksHasTheBytes() throws {
    _ = try Mounts.withReflinks { place in
      let world = try DiskWorld(on: place)
      let contents = noise(100_000)
      world.write(at("source"), contents)
      let identity = try world.identity(at("source"))
      let check = ContentCheck(size: 100_000, digest: world.hashing.digest(.sha256, of: contents))
      let copy = try #require(try world.port.copyPartial(of: at("source"), expected: identity, check: check))
      #expect(try copy.seal(modified: nil).isVerified)
      world.edit(at("source"), noise(100_000, seed: 2))
      let now = try world.identity(at("source"))
      #expect(
        code {
          _ = try world.port.copyPartial(of: at("source"), expected: now, check: check)?.seal(modified: nil)
        } == .digestMismatch)
    }
  }

  @Test func descriptorsAreGivenBack() throws {
    let world = try DiskWorld()
    // Other tests open and close at the same time: only what leads into this folder counts.
    func open() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { number in
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
        return target?.hasPrefix(world.base) == true
      }
    }
    func work() throws {
      for index in 0..<20 {
        let outcome = try world.install([1], at("a/b\(index)/f"))
        let identity = try #require(outcome.identity)
        _ = try world.port.copyPartial(of: at("a/b\(index)/f"), expected: identity, check: ContentCheck())?
          .discard()
        _ = world.port.remove([Removal(path: at("a/b\(index)/f"), expected: identity, trashName: "\(index)")])
        try world.port.removeTrash("\(index)")
      }
      _ = world.scanned()
      _ = try world.port.look(at("x/y"))
    }
    try work()
    let before = try open()
    #expect(before == 3)
    for _ in 0..<5 { try work() }
    #expect(try open() == before)
  }
}
