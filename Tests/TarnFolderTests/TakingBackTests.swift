import Foundation
import TarnCore
import TarnFolder
import Testing

/// A mirror that cannot be made leaves nothing of what was made for it, and takes nothing that is somebody's.
@Suite final class TakingBackTests {
  private let base: String
  private var folder: String { base + "/folder" }
  private var state: String { base + "/state" }

  init() throws {
    base = try DiskWorld.makeBase()
  }

  deinit {
    DiskWorld.removeBase(base)
  }

  private func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  /// A folder in which nobody may make a marker, and a state beside it in which everybody may write.
  private func makeUnwritableFolder(state hasState: Bool) {
    mkdir(folder, 0o755)
    chmod(folder, 0o555)
    chmod(base, 0o777)
    guard hasState else { return }
    mkdir(state, 0o700)
    if geteuid() == 0 { chown(state, 65534, 65534) }
  }

  private func makeAsNobody() -> FolderFailure.Code? {
    code { try asNobody { _ = try FolderHome.make(folder: folder, state: state) } }
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount"), arguments: 2...9)
  func withoutInodesNothingIsLeft(inodes: Int) throws {
    try Mounts.withTemporary("size=4m,nr_inodes=\(inodes)") { mount in
      let failure = code { _ = try FolderHome.make(folder: mount + "/above/folder", state: nil) }
      let left = try names(mount)
      #expect(failure == nil || failure == .noSpace)
      #expect(left == (failure == nil ? ["above"] : []))
      // The root, both directories, four of Tarn's own.
      #expect((failure == nil) == (inodes > 6))
    }
  }

  @Test func aMarkerThatCannotBeMadeLeavesNoState() throws {
    makeUnwritableFolder(state: false)
    #expect(makeAsNobody() == .permission)
    #expect(try names(base) == ["folder"])
    #expect(try names(folder).isEmpty)
  }

  @Test func aStateThatWasThereStaysAsItWas() throws {
    makeUnwritableFolder(state: true)
    mkdir(state + "/trash", 0o700)
    if geteuid() == 0 { chown(state + "/trash", 65534, 65534) }
    #expect(makeAsNobody() == .permission)
    #expect(try names(state) == ["trash"])
  }

  @Test(arguments: [false, true]) func allOfItGoesAgain(hasState: Bool) throws {
    let (home, made) = try FolderHome.make(folder: base + "/a/folder", state: hasState ? state : nil)
    #expect(made.isMirror)
    #expect(DiskWorld.store(Array((home.stateDirectory + "/ledger.sqlite").utf8CString), [1], O_CREAT))
    made.takeBack { directory in directory != home.stateDirectory }
    #expect(try names(base).isEmpty)
  }

  /// Taken back and made anew by others, or with files that are on their way.
  @Test(arguments: ["id", "partial/1", "trash/1"]) func aMirrorThatIsAnothersByNowIsKept(name: String) throws
  {
    let (home, made) = try FolderHome.make(folder: folder, state: nil)
    let text = Array((String(repeating: "0123456789abcdef", count: 2) + "\n").utf8)
    #expect(
      DiskWorld.store(Array((home.stateDirectory + "/" + name).utf8CString), text, O_CREAT | O_TRUNC))
    made.takeBack { _ in false }
    #expect(try Set(names(home.stateDirectory)).isSuperset(of: ["id", "partial", "trash"]))
  }

  /// Between its id and the failure another process has begun to use the mirror.
  @Test(arguments: ["lock", "ledger.sqlite"]) func whatOthersUseIsKept(name: String) throws {
    makeUnwritableFolder(state: true)
    let file = open(state + "/" + name, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
    defer { close(file) }
    chmod(state + "/" + name, 0o666)
    // flock and OFD locks are not the same kind: fcntl's own.
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    #expect(fcntl(file, 37 /* F_OFD_SETLK */, &lock) == 0)
    #expect(makeAsNobody() == .permission)
    #expect(Set(try names(state)).isSuperset(of: ["id", "partial", "trash", name]))
  }
}
