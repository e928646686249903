import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnFolder

@Suite struct StagingTests {
  /// Blocks that were lent and did not come back.
  private let lent = Locked(0)

  @Test func eachFileHasANameOfItsOwn() throws {
    let world = try DiskWorld()
    let names = try (0..<50).map { _ in try world.port.makePartial().name }
    #expect(Set(names).count == 50)
    for name in names { #expect(name.utf8.count == 16 && name.allSatisfy(\.isHexDigit)) }
    #expect(try world.names(world.port.partials()) == names.sorted())
  }

  /// From 4 MiB on a file is hashed behind the writing: what is found out is the same, if later.
  @Test func whatIsHashedBehindTheWritingIsChecked() throws {
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
    try lend(contents, to: partial, step)
    #expect(try partial.seal(modified: nil).isVerified)
    #expect(lent.withLock { $0 } == 0)
    // The last piece, so that it may be `seal` that finds it.
    for wrong in [8 << 20, (9 << 20) - 1] {
      var damaged = contents
      damaged[wrong] ^= 1
      _ = try partial.begin(keeping: 0, check: check)
      let failure = #expect(throws: FolderFailure.self) {
        try lend(damaged, to: partial, step)
        _ = try partial.seal(modified: nil)
      }
      #expect(failure?.code == .pieceMismatch && failure?.goodPrefix == UInt64(2 * piece))
      #expect(partial.length == UInt64(2 * piece))
    }
    // What is kept is good, and the rest of it follows.
    try lend(Array(contents[(2 * piece)...]), to: partial, step)
    #expect(try partial.seal(modified: nil).isVerified)
    // What came behind a wrong piece is read by nobody who is waited for.
    #expect(isSoInTime { lent.withLock { $0 } == 0 })
  }

  /// What comes behind would stand behind a hole, and the digest be that of the bytes that came.
  @Test func aFileThatSomebodyShortensIsRefused() throws {
    let world = try DiskWorld()
    let contents = noise(300_000)
    let partial = try world.port.makePartial()
    let check = ContentCheck(
      size: UInt64(contents.count), digest: world.hashing.digest(.sha256, of: contents))
    _ = try partial.begin(keeping: 0, check: check)
    try lend(Array(contents[..<200_000]), to: partial, 100_000)
    #expect(truncate(world.folder + "/.tarn/partial/" + partial.name, 0) == 0)
    let failure = #expect(throws: FolderFailure.self) {
      try lend(Array(contents[200_000...]), to: partial, 100_000)
    }
    #expect(failure?.message.contains("shortened by somebody else") == true)
    partial.close()
    // What goes on with it begins with what is there.
    let again = try #require(try world.port.openPartial(partial.name))
    #expect(try again.begin(keeping: 200_000, check: check) == 0)
    try lend(contents, to: again, 100_000)
    #expect(try again.seal(modified: nil).isVerified)
  }

  /// Of several files that come at once each is checked by its own bytes.
  @Test func filesThatComeAtOnceAreNotMixedUp() throws {
    let world = try DiskWorld()
    let contents = (1...3).map { noise(2_000_000 + Int($0) * 100_001, seed: $0) }
    let checks = contents.map {
      ContentCheck(size: UInt64($0.count), digest: world.hashing.digest(.sha256, of: $0))
    }
    let partials = try contents.map { _ in try world.port.makePartial() }
    for (partial, check) in zip(partials, checks) { _ = try partial.begin(keeping: 0, check: check) }
    func give(_ range: Range<Int>, _ damage: (Int) -> UInt8 = { _ in 0 }) throws {
      for (index, partial) in partials.enumerated() {
        var bytes = Array(contents[index][range])
        bytes[0] ^= damage(index)
        try lend(bytes, to: partial, 70_000)
      }
    }
    try give(0..<500_000)
    // One begins again in the middle.
    _ = try partials[1].begin(keeping: 500_000, check: checks[1])
    try give(500_000..<2_000_000) { $0 == 2 ? 1 : 0 }
    for (index, partial) in partials.enumerated() {
      // Not lent, and right behind what was.
      try contents[index][2_000_000...].withUnsafeBytes { try partial.append($0) }
      do throws(FolderFailure) {
        #expect(try partial.seal(modified: nil).digest == checks[index].digest && index != 2)
      } catch {
        #expect(error.code == .digestMismatch && index == 2)
      }
    }
    #expect(lent.withLock { $0 } == 0)
  }

  /// A list of b2sum looks like one of sha512sum.
  @Test func whatMayBeABLAKE2bIsSaid() throws {
    let world = try DiskWorld()
    for (algorithm, isTold) in [(DigestAlgorithm.sha512, true), (.sha256, false)] {
      let partial = try world.port.makePartial()
      let wrong = world.hashing.digest(algorithm, of: [1])
      _ = try partial.begin(keeping: 0, check: ContentCheck(digest: wrong))
      try partial.append([2])
      let failure = #expect(throws: FolderFailure.self) { try partial.seal(modified: nil) }
      #expect(failure?.code == .digestMismatch && failure?.message.contains("BLAKE2b") == isTold)
    }
  }

  /// Bytes that come in an array after such as were lent are hashed after them.
  @Test func lentBytesAndOthersKeepTheirOrder() throws {
    let world = try DiskWorld()
    let contents = noise(9 << 20)
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try lend(Array(contents[..<(5 << 20)]), to: partial, 1 << 20)
    try partial.append(Array(contents[(5 << 20)..<(6 << 20)]))
    try lend(Array(contents[(6 << 20)...]), to: partial, 1 << 20)
    #expect(try partial.seal(modified: nil).digest == world.hashing.digest(.sha256, of: contents))
    #expect(isSoInTime { lent.withLock { $0 } == 0 })
  }

  /// Two that are written at the same time share the one who hashes; each has its own digest.
  @Test func twoThatAreHashedBehindTheWritingAreNotMixedUp() throws {
    let world = try DiskWorld()
    let port = world.port
    // A failed expectation on a thread of its own would belong to no test.
    let problems = Locked<[String]>([])
    let threads = try (0..<3).map { number in
      let contents = noise((6 << 20) + number)
      let digest = world.hashing.digest(.sha256, of: contents)
      return try WorkerThread.start(name: "writer-\(number)") {
        do {
          let partial = try port.makePartial()
          _ = try partial.begin(keeping: 0, check: ContentCheck(digest: digest))
          try lend(contents, to: partial, 50_000)
          let sealed = try partial.seal(modified: nil)
          if !sealed.isVerified { problems.withLock { $0.append("\(number) is not verified") } }
        } catch {
          problems.withLock { $0.append("\(number): \(error)") }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(problems.withLock { $0 } == [])
    #expect(lent.withLock { $0 } == 0)
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

  /// Another source brings the rest: nobody begins it again.
  @Test func behindAWrongPieceItGoesOn() throws {
    let world = try DiskWorld()
    let partial = try world.port.makePartial()
    let contents: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    let pieces = Pieces(
      length: 4, digests: [0, 4].map { world.hashing.digest(.md5, of: Array(contents[$0..<$0 + 4])) })
    let check = ContentCheck(size: 8, digest: world.hashing.digest(.sha256, of: contents), pieces: pieces)
    _ = try partial.begin(keeping: 0, check: check)
    #expect(code { try partial.append([1, 2, 3, 5]) } == .pieceMismatch)
    #expect(partial.length == 0)
    try partial.append([1, 2, 3, 4, 5])
    #expect(code { try partial.append([6, 7, 9]) } == .pieceMismatch)
    #expect(partial.length == 4)
    try partial.append([5, 6, 7, 8])
    #expect(try partial.seal(modified: nil).isVerified)
    #expect(code { try partial.append([]) } == .other)
  }

  /// What was lent may be wrong, and nobody was told so far.
  @Test func whoAsksIsToldOfAWrongPiece() throws {
    let world = try DiskWorld()
    let contents = noise(9 << 20)
    let piece = 3 << 20
    let pieces = Pieces(
      length: UInt64(piece),
      digests: (0..<3).map {
        world.hashing.digest(.sha256, of: Array(contents[$0 * piece..<($0 + 1) * piece]))
      })
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck(pieces: pieces))
    var damaged = contents
    damaged[(6 << 20) - 1] ^= 1
    let failure = #expect(throws: FolderFailure.self) {
      try lend(Array(damaged[..<(6 << 20)]), to: partial, 1 << 20)
      try partial.settle()
    }
    #expect(failure?.code == .pieceMismatch && failure?.goodPrefix == UInt64(piece))
    #expect(partial.length == UInt64(piece))
    try lend(Array(contents[piece...]), to: partial, 1 << 20)
    try partial.settle()
    #expect(try partial.seal(modified: nil).digest == world.hashing.digest(.sha256, of: contents))
    #expect(lent.withLock { $0 } == 0)
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
    try done.waitOrThrow()
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

extension StagingTests {
  /// Appends in steps, from memory that is overwritten as soon as it comes back.
  private func lend(_ bytes: [UInt8], to partial: any PartialFile, _ step: Int) throws {
    let lent = lent
    for start in stride(from: 0, to: bytes.count, by: step) {
      let memory = LentMemory(bytes[start..<min(start + step, bytes.count)])
      lent.withLock { $0 += 1 }
      try partial.append(lent: memory.bytes) {
        memory.wipe()
        lent.withLock { $0 -= 1 }
      }
    }
  }
}

private final class LentMemory: @unchecked Sendable {
  // Safe because it is wiped by who has read it, as the last one.
  private let memory: UnsafeMutableRawBufferPointer

  init(_ bytes: ArraySlice<UInt8>) {
    memory = .allocate(byteCount: bytes.count, alignment: 1)
    memory.copyBytes(from: bytes)
  }

  deinit { memory.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

  func wipe() { for index in memory.indices { memory[index] = 0xFF } }
}
