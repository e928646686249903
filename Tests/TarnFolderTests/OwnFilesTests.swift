import Dispatch
import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import Testing

/// What somebody puts in the place of Tarn's own files: never followed, never waited for, never written into.
@Suite struct OwnFilesTests {
  private let world: DiskWorld

  init() throws {
    world = try DiskWorld()
  }

  private func own(_ name: String) -> [CChar] { DiskWorld.raw(world.home.stateDirectory, bytes(name)) }

  /// A file outside of the folder, with these bytes.
  private func outside(_ text: String) -> String {
    #expect(DiskWorld.store(DiskWorld.raw(world.base, bytes("outside")), bytes(text), O_CREAT))
    return world.base + "/outside"
  }

  private var outsideBytes: [UInt8]? { DiskWorld.load(DiskWorld.raw(world.base, bytes("outside"))) }

  private var isMirror: Bool {
    guard case .mirror? = try? FolderHome.inspect(folder: world.folder, state: nil) else { return false }
    return true
  }

  @Test func aLinkAtTheIDIsNoID() throws {
    let path = outside(world.home.id + "\n")
    unlink(own("id"))
    #expect(symlink(path, own("id")) == 0)
    #expect(!isMirror)
    #expect(try !world.disk.isIntact())
  }

  /// Of several mirrors, whose `partial` it is has to be told.
  @Test func aDirectoryThatCannotBeListedIsNamedWhole() throws {
    let disk = world.disk
    for name in ["partial", "trash"] { #expect(rmdir(own(name)) == 0) }
    let partials = #expect(throws: FolderFailure.self) { try disk.partials() }
    #expect(partials?.message.hasPrefix("cannot list \(world.home.stateDirectory)/partial: ") == true)
    let trashed = #expect(throws: FolderFailure.self) { try disk.trashed() }
    #expect(trashed?.message.hasPrefix("cannot list \(world.home.stateDirectory)/trash: ") == true)
  }

  @Test func aLinkAtTheLockIsNotFollowed() throws {
    let path = outside("theirs")
    #expect(symlink(path, own("lock")) == 0)
    #expect(code { _ = try world.home.lock() } == .link)
    #expect(world.home.holder() == nil)
    #expect(outsideBytes == bytes("theirs"))
  }

  @Test func aLinkInPartialIsNotFollowed() throws {
    let path = outside("theirs")
    #expect(symlink(path, own("partial/p")) == 0)
    #expect(code { _ = try world.port.openPartial("p") } == .other)
    #expect(outsideBytes == bytes("theirs"))
  }

  @Test(arguments: ["id", "lock"]) func aFIFOIsNotWaitedFor(_ name: String) throws {
    unlink(own(name))
    #expect(mkfifo(own(name), 0o600) == 0)
    let home = world.home
    let isOver = ends(own(name)) {
      _ = try? FolderHome.inspect(folder: home.folder, state: nil)
      #expect(home.holder() == nil)
    }
    #expect(isOver)
  }

  /// Two that draw the same name: the second gets none, and the first one's bytes stay.
  @Test func aNameThatIsTakenIsNotTakenAgain() throws {
    let first = try world.home.open(random: SeededRandom(seed: 1)).makePartial()
    _ = try first.begin(keeping: 0, check: ContentCheck())
    try first.append(bytes("first"))
    #expect(code { _ = try world.home.open(random: SeededRandom(seed: 1)).makePartial() } == .exists)
    #expect(try world.port.partials().map(\.size) == [5])
  }
}

/// Whether a body that meets a FIFO ends. One that waits for a writer gets one in the end, so that no test hangs.
func ends(_ fifo: [CChar], _ body: @escaping @Sendable () -> Void) -> Bool {
  let done = DispatchSemaphore(value: 0)
  Thread.detachNewThread {
    body()
    done.signal()
  }
  if done.wait(timeout: .now() + 120) == .success { return true }
  while done.wait(timeout: .now() + 0.1) == .timedOut {
    let writer = open(fifo, O_WRONLY | O_NONBLOCK)
    if writer >= 0 { close(writer) }
  }
  return false
}
