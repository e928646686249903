import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import TestSupport
import Testing

/// I12: one writer per folder.
@Suite struct FolderLockTests {
  private func home(_ base: String) throws -> FolderHome {
    try FolderHome.create(folder: base + "/folder", state: nil)
  }

  @Test func aSecondHolderIsRefusedUntilTheFirstLetsGo() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    #expect(home.holder() == nil)
    let first = try home.lock()
    #expect(home.holder() == getpid())
    let busy = #expect(throws: FolderBusy.self) { _ = try home.lock() }
    #expect(busy?.process == getpid())
    #expect(busy?.command.isEmpty == false)
    first.release()
    first.release()
    #expect(home.holder() == nil)
    let second = try home.lock()
    #expect(home.holder() == getpid())
    second.release()
  }

  @Test func theLockEndsWithItsOwner() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    do { _ = try home.lock() }
    #expect(home.holder() == nil)
  }

  /// `tarn forget` removes the file while another one is about to lock it: a lock of a file that is gone holds nobody.
  @Test func theLockIsOfTheFileThatIsThere() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let path = home.stateDirectory + "/lock"
    let faults = Faults()
    faults.before(.lock) { unlink(path) }
    let lock = try home.lock(probe: faults.probe)
    defer { lock.release() }
    #expect(faults.count(.lock) == 2)
    #expect(home.holder() == getpid())
    #expect(throws: FolderBusy.self) { _ = try home.lock() }
  }

  /// The text in the file is for others to read: without space for it the lock is held all the same.
  @Test(arguments: [ENOSPC, EDQUOT]) func aFullDiskKeepsNobodyFromTheLock(_ errno: Int32) throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let faults = Faults()
    faults.fail(.write, 1, errno)
    let lock = try home.lock(probe: faults.probe)
    #expect(faults.count(.write) == 1)
    let busy = #expect(throws: FolderBusy.self) { _ = try home.lock(pause: {}) }
    #expect(busy?.process == 0 && busy?.command == "")
    lock.release()
    try home.lock().release()
  }

  @Test(arguments: [EROFS, EIO]) func anyOtherFailureToSignIsTold(_ errno: Int32) throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let faults = Faults()
    faults.fail(.write, 1, errno)
    #expect(throws: FolderFailure.self) { _ = try home.lock(probe: faults.probe) }
    try home.lock().release()
  }

  /// A child has all descriptors until it becomes another program.
  @Test func aLockThatIsNotSignedIsGivenBackBesideAChildThatHasIt() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let path = home.stateDirectory + "/lock"
    let copy = Locked<Int32>(-1)
    defer { close(copy.withLock { $0 }) }
    let faults = Faults()
    faults.before(.write) {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
      let own = names.first { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)) == path
      }
      copy.withLock { $0 = own.flatMap { Int32($0) }.map { dup($0) } ?? -1 }
    }
    faults.fail(.write, 1, EIO)
    #expect(throws: FolderFailure.self) { _ = try home.lock(probe: faults.probe) }
    #expect(copy.withLock { $0 } >= 0)
    try home.lock().release()
  }

  @Test func anotherPathToTheFolderIsTheSameFolder() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let lock = try home(base).lock()
    defer { lock.release() }
    symlink(base + "/folder", base + "/link")
    guard case .mirror(let linked) = try FolderHome.inspect(folder: base + "/link", state: nil) else {
      Issue.record("no mirror")
      return
    }
    #expect(throws: FolderBusy.self) { _ = try linked.lock() }
    #expect(linked.holder() == getpid())
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func aBindMountIsTheSameFolder() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let lock = try home(base).lock()
    defer { lock.release() }
    mkdir(base + "/bound", 0o755)
    #expect(Mounts.bind(base + "/folder", at: base + "/bound"))
    defer { Mounts.unmount(base + "/bound") }
    guard case .mirror(let bound) = try FolderHome.inspect(folder: base + "/bound", state: nil) else {
      Issue.record("no mirror")
      return
    }
    #expect(throws: FolderBusy.self) { _ = try bound.lock() }
  }

  private static let python = "/usr/bin/python3"

  /// Another program that takes the lock and signs as Tarn does.
  private static let holderScript = """
    import fcntl, os, sys
    file = open(sys.argv[1], "r+" if os.path.exists(sys.argv[1]) else "w+")
    fcntl.lockf(file, fcntl.LOCK_EX)
    started = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
    file.truncate(0)
    file.write(f"{os.getpid()} {started}\\n")
    file.flush()
    print("held", flush=True)
    sys.stdin.read()
    """

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: python), "needs python3"))
  func anotherProcessIsNamed() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let child = Process()
    let output = Pipe()
    let input = Pipe()
    child.executableURL = URL(fileURLWithPath: Self.python)
    child.arguments = ["-c", Self.holderScript, home.stateDirectory + "/lock"]
    child.standardOutput = output
    child.standardInput = input
    try child.run()
    child.killWhenLate()
    #expect(output.fileHandleForReading.readData(ofLength: 5) == Data("held\n".utf8))
    let busy = #expect(throws: FolderBusy.self) { _ = try home.lock() }
    #expect(busy?.process == child.processIdentifier)
    #expect(busy?.command.hasPrefix(Self.python) == true)
    #expect(home.holder() == child.processIdentifier)
    kill(child.processIdentifier, SIGKILL)
    child.waitUntilExit()
    #expect(home.holder() == nil)
    try home.lock().release()
  }

  /// Between the lock and the signature of its holder the file is empty, or tells of the one before.
  @Test(arguments: ["", "1 12345678901\n"]) func whoIsStillSigningIsWaitedFor(before: String) throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let lock = try home.lock()
    defer { lock.release() }
    let path = DiskWorld.raw(home.stateDirectory, Array("lock".utf8))
    let signature = try #require(FileManager.default.contents(atPath: home.stateDirectory + "/lock"))
    #expect(DiskWorld.store(path, Array(before.utf8), O_TRUNC))
    // Signs at the second look.
    var looks = 0
    let busy = #expect(throws: FolderBusy.self) {
      _ = try home.lock(pause: {
        looks += 1
        #expect(DiskWorld.store(path, Array(signature), O_TRUNC))
      })
    }
    #expect(busy?.process == getpid() && looks == 1)
  }

  /// Nothing of the last holder stays to be taken for the next one's.
  @Test func aReleasedLockNamesNobody() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    try home.lock().release()
    #expect(FileManager.default.contents(atPath: home.stateDirectory + "/lock") == Data())
  }

  /// The number of a process that is gone may be somebody else's by now.
  @Test func aStaleSignatureNamesNobody() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let home = try home(base)
    let lock = try home.lock()
    defer { lock.release() }
    for text in ["1 12345678901\n", "", "nonsense\n", "99999999999999 1\n"] {
      #expect(
        DiskWorld.store(DiskWorld.raw(home.stateDirectory, Array("lock".utf8)), Array(text.utf8), O_TRUNC))
      let busy = #expect(throws: FolderBusy.self) { _ = try home.lock() }
      #expect(busy?.command == "")
    }
  }
}
