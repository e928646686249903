import Glibc
import TarnCore
import TarnFolder
import TestSupport
import Testing

/// Where temporary files lie there are files without a name.
private let areKnownHere: Bool = {
  guard let world = try? DiskWorld(), let partial = try? world.port.makePartial(mayBeUnnamed: true) else {
    return false
  }
  return partial.name.isEmpty
}()

/// Files that have no name before they are installed.
@Suite(
  .enabled(if: areKnownHere, "temporary files lie on a file system where all files have names"))
struct UnnamedTests {
  private func sealed(_ port: any FolderPort, _ contents: [UInt8]) throws -> any PartialFile {
    let partial = try port.makePartial(mayBeUnnamed: true)
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: UInt64(contents.count)))
    try partial.append(contents)
    _ = try partial.seal(modified: Timestamp(nanoseconds: 1_700_000_000_000_000_000))
    return partial
  }

  private func install(_ port: any FolderPort, _ partial: any PartialFile, _ path: RelativePath) throws
    -> PublishOutcome
  {
    let item = Installation(path: path, partial: partial, expectation: .absent, trashName: "")
    return try #require(port.install([item]).first)
  }

  @Test(arguments: Adapter.allCases) func itsFirstNameIsTheLastOne(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let partial = try sealed(world.port, bytes("new"))
    #expect(partial.name.isEmpty)
    #expect(try world.port.partials().isEmpty)
    #expect(world.port.makeDurable([partial]) == [nil])
    let outcome = try install(world.port, partial, at("a/b"))
    partial.close()
    #expect(world.contents(at("a/b")) == bytes("new"))
    #expect(try outcome.identity == world.identity(at("a/b")))
    #expect(try outcome.identity?.modified == world.identity(at("a/b")).modified)
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func whatStandsThereStays(_ adapter: Adapter) throws {
    let world = try adapter.make()
    for make in [
      { world.write($0, bytes("theirs")) }, world.makeDirectory, world.makeLink, world.makeSpecial,
    ] {
      make(at("f"))
      let before = try world.port.look(at("f"))
      let partial = try sealed(world.port, bytes("ours"))
      #expect(try install(world.port, partial, at("f")).isStale)
      partial.discard()
      #expect(try world.port.look(at("f")) == before)
      world.delete(at("f"))
    }
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func whatIsClosedIsGone(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let (first, second) = (try sealed(world.port, bytes("one")), try sealed(world.port, bytes("two")))
    first.close()
    second.discard()
    for partial in [first, second] { #expect(try install(world.port, partial, at("f")).failure == .other) }
    #expect(try world.port.look(at("f")) == nil && world.port.partials().isEmpty)
  }

  /// It is one file with one name and the mode of all, whatever the umask.
  @Test func itIsAFileAsAnyOther() throws {
    let world = try DiskWorld()
    let partial = try sealed(world.port, bytes("new"))
    _ = try install(world.port, partial, at("f"))
    partial.close()
    var status = stat()
    #expect(lstat(world.folder + "/f", &status) == 0)
    #expect(status.st_nlink == 1 && status.st_mode & 0o7777 == 0o644)
    #expect(status.st_mtim.tv_sec == 1_700_000_000)
  }

  /// Of a link the kernel tells IN_CREATE alone; programs that take up what comes wait for the end of the writing, or for a rename.
  @Test func whoWatchesHearsThatItIsWritten() throws {
    let world = try DiskWorld()
    world.makeDirectory(at("d"))
    let watcher = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    defer { close(watcher) }
    #expect(inotify_add_watch(watcher, world.folder + "/d", 0xFFF) >= 0)
    let partial = try sealed(world.port, bytes("new"))
    _ = try install(world.port, partial, at("d/f"))
    partial.close()
    #expect(
      Self.events(watcher, of: "f").suffix(3) == [UInt32(IN_CREATE), UInt32(IN_OPEN), UInt32(IN_CLOSE_WRITE)])
  }

  /// Masks of what was told of a name.
  private static func events(_ watcher: Int32, of name: String) -> [UInt32] {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = read(watcher, &buffer, buffer.count)
    var masks: [UInt32] = []
    var offset = 0
    while offset < count {
      let (mask, length) = buffer.withUnsafeBytes {
        (
          $0.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self),
          Int($0.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
        )
      }
      let text = buffer[(offset + 16)..<(offset + 16 + length)].prefix { $0 != 0 }
      if String(decoding: text, as: UTF8.self) == name { masks.append(mask) }
      offset += 16 + length
    }
    return masks
  }

  /// Where fsync is known to write a file that has no name, and nowhere else.
  @Test(
    .enabled(if: Mounts.areAllowed, "nothing can be mounted here"),
    arguments: [("mkfs.ext4 -q", true), ("mkfs.xfs -q", true), ("mkfs.btrfs -q", false)])
  func theFileSystemDecides(_ maker: String, isUnnamed: Bool) throws {
    let found = try Mounts.withImage(maker) { place in
      let world = try DiskWorld(on: place)
      let partial = try sealed(world.port, bytes("new"))
      #expect(try install(world.port, partial, at("f")).identity == world.identity(at("f")))
      return partial.name.isEmpty
    }
    // Without the program that makes it.
    if let found { #expect(found == isUnnamed) }
  }

  /// As on NFS, and much of FUSE.
  @Test func whereTheFileSystemKnowsNoneItHasAName() throws {
    let world = try DiskWorld(renameFlags: false)
    let partial = try sealed(world.port, bytes("new"))
    #expect(try world.names(world.port.partials()) == [partial.name])
    #expect(try install(world.port, partial, at("f")).identity == world.identity(at("f")))
    #expect(world.contents(at("f")) == bytes("new"))
    #expect(try world.port.partials().isEmpty)
  }

  @Test func aNameThatCannotBeGivenFailsThatFileAlone() throws {
    let faults = Faults()
    let world = try DiskWorld(probe: faults.probe)
    faults.fail(.rename, 1, ENOSPC)
    let (first, second) = (try sealed(world.port, bytes("one")), try sealed(world.port, bytes("two")))
    #expect(try install(world.port, first, at("d/f")).failure == .noSpace)
    #expect(try world.port.look(at("d")) == nil)
    #expect(try install(world.port, second, at("d/f")).identity == world.identity(at("d/f")))
  }
}
