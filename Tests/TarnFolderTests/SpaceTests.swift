import Foundation
import Glibc
import TarnCore
import Testing

@testable import TarnFolder

/// A full disk, for real: on a small tmpfs.
@Suite(.enabled(if: Mounts.areAllowed, "needs the right to mount")) struct SpaceTests {
  @Test func aFileThatDoesNotFitIsRefusedBeforeItIsFetched() throws {
    try Mounts.withTemporary("size=4m") { mount in
      let world = try DiskWorld(on: mount)
      let space = try world.port.space()
      #expect(space.total == 4 << 20)
      #expect(space.free <= space.total)
      let big = try world.port.makePartial()
      #expect(code { _ = try big.begin(keeping: 0, check: ContentCheck(size: 64 << 20)) } == .noSpace)
      // Nothing of it is kept back.
      #expect(try world.port.space().free == space.free)
      #expect(try big.begin(keeping: 0, check: ContentCheck(size: 3 << 20)) == 0)
      big.discard()
      #expect(try world.install([1], at("small")).identity != nil)
    }
  }

  @Test func aDiskThatFillsUpKeepsThePrefix() throws {
    try Mounts.withTemporary("size=2m") { mount in
      let world = try DiskWorld(on: mount)
      let partial = try world.port.makePartial()
      _ = try partial.begin(keeping: 0, check: ContentCheck())
      let part = noise(200_000)
      let full = #expect(throws: FolderFailure.self) { while true { try partial.append(part) } }
      #expect(full?.code == .noSpace)
      #expect(partial.length % 200_000 == 0)
      #expect(try world.port.partials().map(\.size) == [partial.length])
      let length = partial.length
      partial.close()
      let again = try #require(try world.port.openPartial(partial.name))
      #expect(try again.begin(keeping: .max, check: ContentCheck()) == length)
    }
  }

  /// A write that stops in the middle is no fault of the disk: the next one says what is.
  @Test func aMarkerThatDoesNotFitIsALackOfSpace() throws {
    try Mounts.withTemporary("size=1m") { mount in
      let filler = open(mount + "/filler", O_WRONLY | O_CREAT, 0o600)
      defer { close(filler) }
      let page = [UInt8](repeating: 1, count: 4096)
      var size = 0
      while true {
        let count = write(filler, page, page.count)
        guard count > 0 else { break }
        size += count
      }
      // One page is free, and the text needs two.
      #expect(ftruncate(filler, size - 4096) == 0)
      let directory = Descriptor(open(mount, O_RDONLY | O_DIRECTORY))
      let failure = #expect(throws: FolderFailure.self) {
        try SmallFile.write(
          String(repeating: "x", count: 6000), beside: "draft", in: directory, as: "id", in: directory)
      }
      #expect(failure?.code == .noSpace)
      #expect(access(mount + "/draft", F_OK) != 0 && access(mount + "/id", F_OK) != 0)
      try SmallFile.write("small", beside: "draft", in: directory, as: "id", in: directory)
      #expect(try SmallFile.read(mount + "/id") == "small")
    }
  }

  @Test func withoutInodesNoDirectoriesAreLeftBehind() throws {
    try Mounts.withTemporary("size=4m,nr_inodes=14") { mount in
      let world = try DiskWorld(on: mount)
      let partial = try world.sealed([1])
      let item = Installation(
        path: at("1/2/3/4/5/6/7/8/9/10/11/12/f"), partial: partial, expectation: .absent, trashName: "t")
      #expect(world.port.install([item])[0].failure == .noSpace)
      #expect(world.scanned().objects.isEmpty)
      let fits = Installation(path: at("f"), partial: partial, expectation: .absent, trashName: "t")
      #expect(world.port.install([fits])[0].identity != nil)
    }
  }

  @Test func aReadOnlyDiskIsNamed() throws {
    try Mounts.withTemporary("size=4m") { mount in
      let world = try DiskWorld(on: mount)
      let partial = try world.sealed([1])
      _ = try world.install([1], at("there"))
      partial.close()
      #expect(try run("/bin/mount", ["-o", "remount,ro", mount]) == 0)
      #expect(code { _ = try world.port.makePartial() } == .readOnly)
      #expect(code { try world.port.removePartial(partial.name) } == .readOnly)
      let removal = Removal(path: at("there"), expected: try world.identity(at("there")), trashName: "t")
      #expect(world.port.remove([removal])[0].failure == .readOnly)
      #expect(try world.port.digest(of: at("there"), .md5) != nil)
      #expect(try run("/bin/mount", ["-o", "remount,rw", mount]) == 0)
    }
  }
}
