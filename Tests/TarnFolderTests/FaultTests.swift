import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import Testing

/// Steps that fail, and other programs that come between two steps: no byte is lost, and nothing is called done
/// that is not.
@Suite struct FaultTests {
  private let faults = Faults()

  private func makeWorld(old: String? = nil, renameFlags: Bool = true) throws -> DiskWorld {
    let world = try DiskWorld(probe: faults.probe, renameFlags: renameFlags)
    if let old { world.write(at("d/f"), bytes(old)) }
    return world
  }

  private func replace(_ world: DiskWorld) throws -> PublishOutcome {
    try world.install(bytes("new"), at("d/f"), .present(world.identity(at("d/f"))), trashName: "t")
  }

  private func removal(_ world: DiskWorld) throws -> PublishOutcome {
    let removal = Removal(path: at("d/f"), expected: try world.identity(at("d/f")), trashName: "t")
    return try #require(world.port.remove([removal]).first)
  }

  // MARK: Others come between

  @Test func whatComesBeforeTheRenameStays() throws {
    let world = try makeWorld()
    let path = world.raw(at("f"))
    faults.before(.rename) { #expect(DiskWorld.store(path, bytes("theirs"), O_CREAT)) }
    #expect(try world.install(bytes("new"), at("f")).isStale)
    #expect(world.contents(at("f")) == bytes("theirs"))
  }

  @Test func whatComesBeforeTheExchangeLiesInTheTrash() throws {
    let world = try makeWorld(old: "old")
    let expected = try world.identity(at("d/f"))
    let path = world.raw(at("d/f"))
    faults.before(.exchange) {
      unlink(path)
      #expect(DiskWorld.store(path, bytes("theirs"), O_CREAT))
    }
    let outcome = try replace(world)
    #expect(world.contents(at("d/f")) == bytes("new"))
    #expect(world.trashContents("t") == bytes("theirs"))
    #expect(outcome.displaced?.isSameContents(as: expected) == false)
  }

  @Test func anEditBeforeTheExchangeLiesInTheTrash() throws {
    let world = try makeWorld(old: "old")
    let expected = try world.identity(at("d/f"))
    let path = world.raw(at("d/f"))
    faults.before(.exchange) { #expect(DiskWorld.store(path, bytes("edited"), O_TRUNC)) }
    let outcome = try replace(world)
    #expect(world.trashContents("t") == bytes("edited"))
    #expect(outcome.displaced?.isSameContents(as: expected) == false)
  }

  @Test func aDirectoryBeforeTheExchangeLiesInTheTrashWithAllInIt() throws {
    let world = try makeWorld(old: "old")
    let path = world.raw(at("d/f"))
    let inner = world.raw(at("d/f/inner"))
    faults.before(.exchange) {
      unlink(path)
      mkdir(path, 0o755)
      #expect(DiskWorld.store(inner, bytes("theirs"), O_CREAT))
    }
    #expect(try replace(world).displaced != nil)
    #expect(world.contents(at("d/f")) == bytes("new"))
    #expect(world.trashContents("t/inner") == bytes("theirs"))
    #expect(try world.names(world.port.trashed()) == ["t"])
    try world.port.removeTrash("t")
    #expect(try world.port.trashed().isEmpty)
  }

  @Test func whatGoesBeforeTheExchangeIsStale() throws {
    let world = try makeWorld(old: "old")
    let path = world.raw(at("d/f"))
    faults.before(.exchange) { unlink(path) }
    #expect(try replace(world).isStale)
    #expect(try world.port.look(at("d/f")) == nil)
  }

  @Test func whatIsReplacedBeforeTheRemovalGoesBack() throws {
    let world = try makeWorld(old: "old")
    let path = world.raw(at("d/f"))
    faults.before(.moveToTrash) {
      unlink(path)
      #expect(DiskWorld.store(path, bytes("theirs"), O_CREAT))
    }
    #expect(try removal(world).isStale)
    #expect(world.contents(at("d/f")) == bytes("theirs"))
    #expect(try world.port.trashed().isEmpty)
  }

  /// It is not even moved: for a moment its place would be empty.
  @Test func whatWasEditedBeforeTheRemovalStaysInItsPlace() throws {
    let world = try makeWorld(old: "old")
    let removal = Removal(path: at("d/f"), expected: try world.identity(at("d/f")), trashName: "t")
    world.edit(at("d/f"), bytes("edited"))
    #expect(world.port.remove([removal]).first?.isStale == true)
    #expect(faults.count(.moveToTrash) == 0)
    #expect(world.contents(at("d/f")) == bytes("edited"))
  }

  @Test func whatCannotGoBackStaysInTheTrash() throws {
    let world = try makeWorld(old: "old")
    let expected = try world.identity(at("d/f"))
    let path = world.raw(at("d/f"))
    faults.before(.moveToTrash) { #expect(DiskWorld.store(path, bytes("edited"), O_TRUNC)) }
    faults.before(.moveBack) { #expect(DiskWorld.store(path, bytes("another"), O_CREAT)) }
    let outcome = try removal(world)
    #expect(outcome.identity?.isSameContents(as: expected) == false)
    #expect(world.contents(at("d/f")) == bytes("another"))
    #expect(world.trashContents("t") == bytes("edited"))
  }

  /// What is written into the new file after it was checked must look like an edit by somebody else.
  @Test func anEditOfTheNewFileIsNotTakenForOurs() throws {
    let world = try makeWorld(old: "old")
    let staged = DiskWorld.raw(world.home.stateDirectory + "/trash", bytes("t"))
    faults.before(.exchange) { #expect(DiskWorld.store(staged, bytes("edited"), O_TRUNC)) }
    let identity = try #require(try replace(world).identity)
    #expect(world.contents(at("d/f")) == bytes("edited"))
    #expect(try !world.identity(at("d/f")).isSameContents(as: identity))
    #expect(identity.size == 3)
  }

  /// At no step does what is displaced lie anywhere but at its place or in the trash.
  @Test func whatIsDisplacedIsInTheTrashAtOnce() throws {
    let world = try makeWorld(old: "old")
    let staged = DiskWorld.raw(world.home.stateDirectory + "/trash", bytes("t"))
    let path = world.raw(at("d/f"))
    faults.before(.exchange) {
      #expect(DiskWorld.load(path) == bytes("old"))
      #expect(DiskWorld.load(staged) == bytes("new"))
    }
    faults.before(.syncDirectory) { #expect(DiskWorld.load(staged) == bytes("old")) }
    #expect(try replace(world).displaced != nil)
    #expect(try world.port.partials().isEmpty)
  }

  // MARK: Steps fail

  @Test(arguments: [FolderStep.stage, .exchange]) func aFailedStepChangesNothing(_ step: FolderStep) throws {
    let world = try makeWorld(old: "old")
    let before = try world.identity(at("d/f"))
    faults.fail(step, 1, ENOSPC)
    #expect(try replace(world).failure == .noSpace)
    #expect(world.contents(at("d/f")) == bytes("old"))
    #expect(try world.identity(at("d/f")).isSameContents(as: before))
    #expect(try world.port.partials().isEmpty)
    #expect(try world.port.trashed().isEmpty)
  }

  @Test func whenNothingWorksTheOldFileStaysAndTheNewOneIsInTheTrash() throws {
    let world = try makeWorld(old: "old")
    faults.failAlways(.exchange)
    faults.failAlways(.moveBack)
    #expect(try replace(world).failure == .inputOutput)
    #expect(world.contents(at("d/f")) == bytes("old"))
    #expect(world.trashContents("t") == bytes("new"))
  }

  @Test func aTakenNameInTheTrashIsNotOverwritten() throws {
    let world = try makeWorld(old: "old")
    let trash = DiskWorld.raw(world.home.stateDirectory + "/trash", bytes("t"))
    #expect(DiskWorld.store(trash, bytes("earlier"), O_CREAT))
    #expect(try replace(world).failure == .exists)
    #expect(world.contents(at("d/f")) == bytes("old"))
    #expect(try removal(world).failure == .exists)
    #expect(world.contents(at("d/f")) == bytes("old"))
    #expect(world.trashContents("t") == bytes("earlier"))
  }

  @Test func anEmptiedDirectoryThatCannotGoIsTold() throws {
    let world = try makeWorld()
    for path in ["d/e/1", "d/e/2", "d/f"] { world.write(at(path), bytes("old")) }
    func removals(_ paths: String...) throws -> [Removal] {
      try paths.map {
        let trashName = $0.replacing("/", with: "-")
        return Removal(path: at($0), expected: try world.identity(at($0)), trashName: trashName)
      }
    }
    // Of two files that leave it, the first fails at it and the second does not: nothing is left to tell.
    faults.fail(.removeDirectory)
    #expect(
      world.port.remove(try removals("d/e/1", "d/e/2")).allSatisfy {
        $0.identity != nil && $0.leftover == nil
      })
    #expect(try world.port.look(at("d/e")) == nil)
    faults.fail(.removeDirectory, 1, EDQUOT)
    let outcome = try #require(world.port.remove(try removals("d/f")).first)
    #expect(outcome.identity != nil)
    #expect(outcome.leftover?.code == .quota && outcome.leftover?.path == at("d"))
    #expect(try world.port.look(at("d"))?.kind == .directory)
  }

  @Test func aDirectoryThatIsNotDurableFailsItsItemsOnly() throws {
    let world = try makeWorld()
    world.makeDirectory(at("a"))
    let items = try ["a/1", "a/2"].map {
      Installation(path: at($0), partial: try world.sealed([1]), expectation: .absent, trashName: "t")
    }
    faults.fail(.syncDirectory)
    #expect(world.port.install(items).map(\.failure) == [.inputOutput, .inputOutput])
    #expect(try world.install([1], at("b")).failure == nil)
    world.write(at("r"), [1])
    faults.fail(.syncDirectory)
    let removal = Removal(path: at("r"), expected: try world.identity(at("r")), trashName: "r")
    #expect(world.port.remove([removal]).map(\.failure) == [.inputOutput])
    #expect(world.trashContents("r") == [1])
    faults.fail(.syncDirectory)
    #expect(code { _ = try world.port.restoreTrash("r", to: at("r")) } == .inputOutput)
  }

  @Test func directoriesOfAFileThatDoesNotComeAreTakenBack() throws {
    let world = try makeWorld()
    faults.fail(.makeDirectory, 3, ENOSPC)
    #expect(try world.install([1], at("a/b/c/f")).failure == .noSpace)
    #expect(world.scanned().objects.isEmpty)
    world.makeDirectory(at("a"))
    faults.fail(.rename, 1, EDQUOT)
    #expect(try world.install([1], at("a/b/f")).failure == .quota)
    #expect(world.scanned().objects.map(\.path) == [at("a")])
    #expect(try world.install([1], at("a/b/f")).identity != nil)
  }

  @Test func everyStepIsDurableBeforeTheOutcome() throws {
    let world = try makeWorld(old: "old")
    #expect(try world.install([1], at("a/b/f")).identity != nil)
    // The folder, a, a/b and partial/.
    #expect(faults.count(.syncDirectory) == 4)
    #expect(try replace(world).identity != nil)
    // d, partial/ and trash/.
    #expect(faults.count(.syncDirectory) == 7)
  }

  @Test func whatGoesBackToPartialIsDurableInBoth() throws {
    let world = try makeWorld(old: "old")
    #expect(try replace(world).displaced != nil)
    let before = faults.count(.syncDirectory)
    faults.fail(.syncDirectory, 2)
    #expect(code { try world.port.unstage("t", as: "p") } == .inputOutput)
    #expect(faults.count(.syncDirectory) == before + 2)
    #expect(try world.port.partialIdentity("p") != nil)
  }

  @Test func whatGoesIsDurableBeforeTheOutcome() throws {
    let world = try makeWorld(old: "old")
    world.write(at("d/g"), bytes("stays"))
    #expect(try removal(world).identity != nil)
    // d and trash/.
    #expect(faults.count(.syncDirectory) == 2)
    let last = Removal(path: at("d/g"), expected: try world.identity(at("d/g")), trashName: "u")
    #expect(world.port.remove([last]).first?.identity != nil)
    // d is gone: the folder that it was in, and trash/.
    #expect(try world.port.look(at("d")) == nil)
    #expect(faults.count(.syncDirectory) == 4)
  }

  // MARK: Contents

  @Test func afterAFailedSyncfsEachFileIsAskedFor() throws {
    let world = try makeWorld()
    let files = try (0..<6).map { try world.sealed([UInt8($0)]) }
    faults.fail(.syncFileSystem)
    faults.fail(.syncFile, 3, ENOSPC)
    let codes = world.port.makeDurable(files).map { $0?.code }
    #expect(codes == [nil, nil, .noSpace, nil, nil, nil])
    #expect(faults.count(.syncFile) == 6)
    // Once failed, always failed: the next fsync of the same file would say that all is well.
    #expect(world.port.makeDurable(files).map { $0?.code } == codes)
  }

  @Test func aGroupIsAskedForItsOwnErrorsToo() throws {
    let world = try makeWorld()
    let files = try (0..<4).map { try world.sealed([UInt8($0)]) }
    faults.fail(.checkWriteback, 2)
    #expect(world.port.makeDurable(files).map { $0?.code } == [nil, .inputOutput, nil, nil])
    #expect(faults.count(.syncFileSystem) == 1)
    #expect(faults.count(.syncFile) == 0)
    #expect(world.port.makeDurable(Array(files.suffix(2))) == [nil, nil])
    #expect(faults.count(.syncFile) == 2)
  }

  /// Asking is cheap, and not every kernel or container answers: fsync does.
  @Test(arguments: [EPERM, ENOMEM, EINTR, EINVAL, ENOSYS]) func whatCannotBeAskedIsSynced(errno: Int32) throws
  {
    let world = try makeWorld()
    let files = try (0..<4).map { try world.sealed([UInt8($0)]) }
    faults.failAlways(.checkWriteback, errno)
    #expect(world.port.makeDurable(files).map { $0?.code } == [nil, nil, nil, nil])
    #expect(faults.count(.syncFile) == 4)
  }

  /// Beginning early is a hint; only what says that bytes are lost counts.
  @Test(arguments: [(EPERM, nil), (ENOMEM, nil), (EIO, FolderFailure.Code.inputOutput)])
  func theHintMayFail(errno: Int32, expected: FolderFailure.Code?) throws {
    let world = try makeWorld()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    faults.failAlways(.startWriteback, errno)
    let bytes = [UInt8](repeating: 7, count: 9 << 20)
    #expect(code { try partial.append(bytes) } == expected)
    #expect(faults.count(.startWriteback) == 1)
    #expect(code { _ = try partial.seal(modified: nil) } == expected)
  }

  @Test func aFailedCheckpointSpoilsTheFile() throws {
    let world = try makeWorld()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append([1, 2, 3])
    faults.fail(.syncData)
    #expect(code { _ = try partial.sync() } == .inputOutput)
    #expect(code { _ = try partial.sync() } == .inputOutput)
    #expect(code { try partial.append([4]) } == .inputOutput)
    #expect(code { _ = try partial.seal(modified: nil) } == .inputOutput)
    #expect(code { _ = try partial.begin(keeping: 0, check: ContentCheck()) } == .inputOutput)
    partial.discard()
    #expect(try world.port.partials().isEmpty)
  }

  @Test func aWriteThatFailsLeavesWhatWasCounted() throws {
    let world = try makeWorld()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try partial.append([1, 2, 3])
    faults.fail(.write, 1, ENOSPC)
    #expect(code { try partial.append([4, 5]) } == .noSpace)
    #expect(partial.length == 3)
    #expect(try world.port.partials().map(\.size) == [3])
    try partial.append([4, 5])
    let digest = world.hashing.digest(.sha256, of: [1, 2, 3, 4, 5])
    #expect(try partial.seal(modified: nil).digest == digest)
  }

  /// What could not be written is not hashed, where hashing goes on behind the writing too; the memory comes back at once.
  @Test func aWriteThatFailsIsNotHashed() throws {
    let world = try makeWorld()
    let partial = try world.port.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    let front = noise(5 << 20)
    try partial.append(front)
    faults.fail(.write, 1, ENOSPC)
    let isBack = Locked(false)
    let failure = #expect(throws: FolderFailure.self) {
      try [4, 5].withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
        try partial.append(lent: bytes) { isBack.withLock { $0 = true } }
      }
    }
    #expect(failure?.code == .noSpace && isBack.withLock { $0 })
    #expect(partial.length == UInt64(front.count))
    try partial.append([4, 5])
    #expect(try partial.seal(modified: nil).digest == world.hashing.digest(.sha256, of: front + [4, 5]))
  }

  @Test func roomIsTakenAtTheStart() throws {
    let world = try makeWorld()
    let partial = try world.port.makePartial()
    faults.fail(.reserve, 1, ENOSPC)
    #expect(code { _ = try partial.begin(keeping: 0, check: ContentCheck(size: 2 << 20)) } == .noSpace)
    faults.fail(.reserve, 1, EOPNOTSUPP)
    #expect(try partial.begin(keeping: 0, check: ContentCheck(size: 2 << 20)) == 0)
    #expect(code { _ = try partial.begin(keeping: 0, check: ContentCheck(size: .max)) } == .other)
    #expect(try partial.begin(keeping: 0, check: ContentCheck(size: 2 << 20)) == 0)
    var status = stat()
    stat(world.home.stateDirectory + "/partial/" + partial.name, &status)
    #expect(status.st_size == 0)
    #expect(status.st_blocks * 512 >= 2 << 20)
  }

  // MARK: Without flags of rename

  @Test func withoutNoReplaceALinkRefusesWhatStandsThere() throws {
    let world = try makeWorld(old: "old", renameFlags: false)
    #expect(try world.install(bytes("new"), at("a/f")).identity != nil)
    #expect(world.contents(at("a/f")) == bytes("new"))
    #expect(try world.port.partials().isEmpty)
    #expect(try world.install(bytes("newer"), at("a/f")).isStale)
    #expect(world.contents(at("a/f")) == bytes("new"))
    #expect(try world.port.partials().isEmpty)
  }

  @Test func withoutExchangeNothingIsReplaced() throws {
    let world = try makeWorld(old: "old", renameFlags: false)
    #expect(try replace(world).failure == .other)
    #expect(world.contents(at("d/f")) == bytes("old"))
    #expect(try world.port.trashed().isEmpty)
  }

  @Test func withoutNoReplaceTheTrashStillWorks() throws {
    let world = try makeWorld(old: "old", renameFlags: false)
    #expect(try removal(world).identity != nil)
    #expect(world.trashContents("t") == bytes("old"))
    world.write(at("d/f"), bytes("again"))
    #expect(try removal(world).failure == .exists)
    #expect(code { _ = try world.port.restoreTrash("t", to: at("d/f")) } == .exists)
    #expect(try world.port.restoreTrash("t", to: at("e/f")).size == 3)
    #expect(world.contents(at("e/f")) == bytes("old"))
    #expect(try world.port.trashed().isEmpty)
  }
}
