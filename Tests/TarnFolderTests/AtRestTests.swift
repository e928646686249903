import Foundation
import TarnCore
import TarnFolder
import Testing

/// Files that change while they are read, copied or written: what is told of them is never of two states at once.
@Suite struct AtRestTests {
  private let faults = Faults()
  private let world: DiskWorld

  init() throws {
    world = try DiskWorld(probe: faults.probe)
    world.write(at("f"), bytes("before"))
  }

  @Test func aDigestIsOfAFileAtRest() throws {
    let path = world.raw(at("f"))
    let moved = try world.port.digest(of: at("f"), .sha256) { _ in
      #expect(DiskWorld.store(path, bytes("beyond"), O_TRUNC))
      return true
    }
    #expect(moved == nil)
    let rested = try world.port.digest(of: at("f"), .sha256) { _ in true }
    #expect(rested?.0 == world.hashing.digest(.sha256, of: bytes("beyond")))
  }

  /// Whatever else could be said of the bytes that are there now.
  @Test func aCopyIsOfTheExpectedFileOnly() throws {
    let expected = try world.identity(at("f"))
    world.edit(at("f"), bytes("more than there was"))
    let check = ContentCheck(size: expected.size)
    #expect(try world.port.copyPartial(of: at("f"), expected: expected, check: check) == nil)
    #expect(try world.port.partials().isEmpty)
  }

  @Test func aCopyIsOfAFileAtRest() throws {
    let expected = try world.identity(at("f"))
    let path = world.raw(at("f"))
    faults.before(.write) { #expect(DiskWorld.store(path, bytes("beyond"), O_TRUNC)) }
    let copy = try world.port.copyPartial(of: at("f"), expected: expected, check: ContentCheck(size: 6))
    // Where blocks can be shared nothing is written, and nobody came between.
    #expect((copy == nil) == (faults.count(.write) > 0))
    copy?.discard()
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: ["longer than it was", "cut"]) func aPartialFileThatSomebodyChangedIsNotTaken(
    _ text: String
  ) throws {
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append(bytes("as sent"))
    let path = DiskWorld.raw(world.home.stateDirectory + "/partial", bytes(partial.name))
    #expect(DiskWorld.store(path, bytes(text), O_TRUNC))
    #expect(code { _ = try partial.seal(modified: nil) } == .sizeMismatch)
  }

  /// Opening a device may wake it, and whoever waits at a FIFO would be let go: nothing but a regular file is opened.
  @Test func whatIsNoRegularFileIsNotEvenOpened() throws {
    world.makeSpecial(at("fifo"))
    let watch = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    defer { close(watch) }
    #expect(inotify_add_watch(watch, world.raw(at("fifo")), UInt32(IN_OPEN)) >= 0)
    let digest = try world.port.digest(of: at("fifo"), .sha256) { _ in true }
    #expect(digest == nil)
    var events = [UInt8](repeating: 0, count: 4096)
    #expect(read(watch, &events, events.count) == -1 && errno == EAGAIN)
  }
}
