import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import Testing

/// The marker and the state directory.
@Suite final class HomeTests {
  private let base: String
  private var folder: String { base + "/folder" }
  private var state: String { base + "/state" }

  init() throws {
    base = try DiskWorld.makeBase()
  }

  deinit {
    DiskWorld.removeBase(base)
  }

  private func store(_ path: String, _ text: String = "") {
    #expect(DiskWorld.store(Array(path.utf8CString), bytes(text), O_CREAT | O_TRUNC))
  }

  private func mode(_ path: String) -> mode_t? {
    DiskWorld.status(Array(path.utf8CString)).map { $0.st_mode & 0o7777 }
  }

  private func inspect(_ state: String? = nil) throws -> FolderHome.State {
    try FolderHome.inspect(folder: folder, state: state)
  }

  private func isMarkerMissing(_ state: FolderHome.State) -> Bool {
    if case .markerMissing = state { true } else { false }
  }

  // MARK: States

  /// Tarn's own directories are followed nowhere, and the failure says what stands there.
  @Test(arguments: ["partial", "trash"]) func aLinkInPlaceOfItsOwnDirectoryIsNamed(name: String) throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    let path = folder + "/.tarn/" + name
    #expect(rmdir(path) == 0 && symlink(base, path) == 0)
    var failure = #expect(throws: FolderFailure.self) { _ = try home.open() }
    #expect(failure?.code == .link)
    #expect(failure?.message.contains("\(path) is a symbolic link") == true)
    #expect(unlink(path) == 0)
    store(path)
    failure = #expect(throws: FolderFailure.self) { _ = try home.open() }
    #expect(failure?.code == .notDirectory)
    #expect(failure?.message.contains("\(path) is no directory") == true)
  }

  @Test func whatIsNoMirrorIsTold() throws {
    #expect(try inspect() == .missing)
    store(folder)
    #expect(try inspect() == .notDirectory)
    #expect(try FolderHome.inspect(folder: folder + "/x", state: nil) == .notDirectory)
    unlink(folder)
    mkdir(folder, 0o755)
    #expect(try inspect() == .empty)
    #expect(try inspect(state) == .empty)
    store(folder + "/file")
    #expect(try inspect() == .foreign)
    mkdir(folder + "/.tarn", 0o700)
    #expect(try inspect() == .foreign)
    unlink(folder + "/file")
    #expect(try inspect() == .empty)
  }

  @Test func aMirrorIsMadeWithItsParents() throws {
    let home = try FolderHome.create(folder: base + "/a/b/folder", state: nil)
    #expect(home.stateDirectory == base + "/a/b/folder/.tarn")
    #expect(home.id.utf8.count == 32)
    #expect(try FolderHome.inspect(folder: home.folder, state: nil) == .mirror(home))
    #expect(try FolderHome.inspect(folder: home.folder, state: home.stateDirectory) == .mirror(home))
    for path in ["", "/partial", "/trash"] { #expect(mode(home.stateDirectory + path) == 0o700) }
    #expect(mode(base + "/a/b") == 0o755)
    #expect(mode(home.folder) == 0o755)
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: home.stateDirectory)) == [
        "id", "partial", "trash",
      ])
    #expect(try home.open().isIntact())
    #expect(try home.open().scan().next() == nil)
  }

  @Test func theStateCanLieElsewhere() throws {
    let home = try FolderHome.create(folder: folder, state: state)
    #expect(home.stateDirectory == state)
    #expect(try inspect() == .mirror(home))
    #expect(try inspect(state) == .mirror(home))
    #expect(mode(state) == 0o700)
    var status = stat()
    #expect(lstat(folder + "/.tarn", &status) == 0 && status.st_mode & S_IFMT == S_IFREG)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [".tarn"])
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: state)) == ["id", "partial", "trash"])
    #expect(try home.open().isIntact())
    #expect(code { _ = try inspect(base + "/other") } == .exists)
    symlink(state, base + "/link")
    #expect(try inspect(base + "/link") == .mirror(home))
  }

  @Test func aLostMarkerIsNoNewFolder() throws {
    let inner = try FolderHome.create(folder: folder, state: nil)
    store(inner.stateDirectory + "/ledger.sqlite")
    for text in ["", "0123\n", String(repeating: "g", count: 32) + "\n"] {
      store(inner.stateDirectory + "/id", text)
      #expect(try isMarkerMissing(inspect()))
    }
    unlink(inner.stateDirectory + "/id")
    #expect(try isMarkerMissing(inspect()))
    try FileManager.default.removeItem(atPath: inner.stateDirectory)
    symlink(base, folder + "/.tarn")
    #expect(try isMarkerMissing(inspect()))
  }

  @Test func aLostMarkerBesideADirectoryOfItsOwnIsTold() throws {
    let home = try FolderHome.create(folder: folder, state: state)
    store(state + "/ledger.sqlite")
    rename(folder + "/.tarn", base + "/marker")
    #expect(try isMarkerMissing(inspect(state)))
    #expect(try inspect() == .empty)
    rmdir(folder)
    #expect(try isMarkerMissing(inspect(state)))
    mkdir(folder, 0o755)
    rename(base + "/marker", folder + "/.tarn")
    #expect(try inspect(state) == .mirror(home))
    store(state + "/id", String(repeating: "0", count: 32) + "\n")
    #expect(try isMarkerMissing(inspect()))
    rename(state, base + "/elsewhere")
    #expect(try isMarkerMissing(inspect()))
    store(folder + "/.tarn", "something else")
    #expect(try isMarkerMissing(inspect()))
  }

  // MARK: Making

  @Test func theUmaskDoesNotMatter() throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    let world = try home.open()
    // As a thread of its own would see it, a umask is the process's: so only modes that differ from the usual.
    for path in [home.stateDirectory, home.stateDirectory + "/partial"] { #expect(mode(path) == 0o700) }
    let partial = try world.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    // What a umask takes away, or an older Tarn did not give, comes at the end.
    chmod(home.stateDirectory + "/partial/" + partial.name, 0o600)
    _ = try partial.seal(modified: nil)
    #expect(mode(home.stateDirectory + "/partial/" + partial.name) == 0o644)
    let item = Installation(path: at("d/f"), partial: partial, expectation: .absent, trashName: "t")
    _ = world.install([item])
    #expect(mode(folder + "/d") == 0o755)
    #expect(mode(folder + "/d/f") == 0o644)
  }

  @Test func makingTwiceGivesTheSame() throws {
    let first = try FolderHome.create(folder: folder, state: nil)
    #expect(try FolderHome.create(folder: folder, state: nil) == first)
    let second = try FolderHome.create(folder: base + "/second", state: state)
    #expect(try FolderHome.create(folder: base + "/second", state: state) == second)
  }

  /// What is taken back after a failure is only what this very call made.
  @Test func makingTellsWhatItMade() throws {
    let (_, made) = try FolderHome.make(folder: base + "/a/folder", state: nil)
    #expect(made.isMirror && made.directories == [base + "/a", base + "/a/folder"])
    let (_, again) = try FolderHome.make(folder: base + "/a/folder", state: nil)
    #expect(again == FolderHome.CreatedParts())
    mkdir(folder, 0o755)
    mkdir(folder + "/.tarn", 0o700)
    let finished = try FolderHome.make(folder: folder, state: nil).made
    #expect(!finished.isMirror && finished.directories.isEmpty)
    #expect(try FolderHome.make(folder: base + "/b", state: state).made.directories == [base + "/b", state])
    #expect(try !FolderHome.make(folder: base + "/b", state: state).made.isMirror)
    made.removeDirectories()
    #expect(try FolderHome.inspect(folder: base + "/a/folder", state: nil) != .missing)
  }

  @Test func halfMadeMirrorsAreFinished() throws {
    mkdir(folder, 0o755)
    mkdir(folder + "/.tarn", 0o700)
    mkdir(folder + "/.tarn/partial", 0o700)
    store(folder + "/.tarn/id.0123", "half")
    let home = try FolderHome.create(folder: folder, state: nil)
    #expect(try inspect() == .mirror(home))
    rmdir(home.stateDirectory + "/partial")
    #expect(try home.open().partials().isEmpty)
  }

  @Test func anotherMirrorsStateIsRefused() throws {
    let first = try FolderHome.create(folder: folder, state: state)
    let second = base + "/second"
    mkdir(second, 0o755)
    store(second + "/.tarn", "\(String(repeating: "1", count: 32))\n\(state)\n")
    #expect(code { _ = try FolderHome.create(folder: second, state: state) } == .exists)
    #expect(try isMarkerMissing(FolderHome.inspect(folder: second, state: nil)))
    #expect(try inspect() == .mirror(first))
  }

  /// Tarn would take what lies there for its own, and remove it.
  @Test(
    arguments: [
      "notes.txt", "partial/film.mkv", "trash/photo", "id.pub", ".tarn.toml", "catalog.sqlite",
      "stage.sqlite",
      "ledger.sqlite-old",
    ], [true, false])
  func aDirectoryOfSomebodyElseIsNoState(name: String, isElsewhere: Bool) throws {
    let directory = isElsewhere ? state : folder + "/.tarn"
    mkdir(folder, 0o755)
    for path in [directory, directory + "/partial", directory + "/trash"] { mkdir(path, 0o700) }
    store("\(directory)/\(name)", "mine")
    let failure = #expect(throws: FolderFailure.self) {
      _ = try FolderHome.create(folder: folder, state: isElsewhere ? state : nil)
    }
    #expect(failure?.code == .exists && failure?.message.contains("choose an empty directory") == true)
    #expect(FileManager.default.fileExists(atPath: "\(directory)/\(name)"))
    unlink("\(directory)/\(name)")
    _ = try FolderHome.create(folder: folder, state: isElsewhere ? state : nil)
  }

  @Test func stateAndFolderLieBesideEachOther() {
    #expect(code { _ = try FolderHome.create(folder: folder, state: folder + "/state") } == .other)
    #expect(code { _ = try FolderHome.create(folder: base + "/x/y", state: base + "/x") } == .other)
    #expect(code { _ = try FolderHome.create(folder: base + "/z", state: base + "/z") } == .other)
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func stateOnAnotherFileSystemIsRefused()
    throws
  {
    mkdir(state, 0o700)
    #expect(Mounts.mount(at: state, "size=1m"))
    defer { Mounts.unmount(state) }
    #expect(code { _ = try FolderHome.create(folder: folder, state: state + "/s") } == .otherFileSystem)
    #expect(try inspect() == .missing)
  }

  /// One file system, but renames between the two mounts of it are refused by the kernel.
  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func stateBehindABindMountIsRefused()
    throws
  {
    for path in [state, base + "/real"] { mkdir(path, 0o700) }
    #expect(Mounts.bind(base + "/real", at: state))
    defer { Mounts.unmount(state) }
    #expect(code { _ = try FolderHome.create(folder: folder, state: state) } == .otherFileSystem)
  }

  // MARK: Opening

  @Test(arguments: ["", "/partial", "/trash"]) func whatOthersCanWriteInIsRefused(_ part: String) throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    chmod(home.stateDirectory + part, 0o770)
    #expect(code { _ = try home.open() } == .permission)
    chmod(home.stateDirectory + part, 0o755)
    _ = try home.open()
  }

  @Test(arguments: ["/partial", "/trash"]) func aLinkInPlaceOfTarnsOwnIsRefused(_ part: String) throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    rmdir(home.stateDirectory + part)
    mkdir(base + "/target", 0o700)
    symlink(base + "/target", home.stateDirectory + part)
    #expect(code { _ = try home.open() } == .link)
  }

  @Test func aLinkedFolderIsFollowedOnce() throws {
    _ = try FolderHome.create(folder: folder, state: nil)
    let link = base + "/link"
    symlink(folder, link)
    guard case .mirror(let home) = try FolderHome.inspect(folder: link, state: nil) else {
      Issue.record("no mirror")
      return
    }
    let opened = try home.open()
    #expect(try opened.isIntact())
    unlink(link)
    symlink(base, link)
    #expect(try !opened.isIntact())
  }

  @Test func aFolderThatIsAnotherOneNowIsNotIntact() throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    let opened = try home.open()
    rename(folder, base + "/moved")
    #expect(try !opened.isIntact())
    _ = try FolderHome.create(folder: folder, state: nil)
    #expect(try !opened.isIntact())
    try FileManager.default.removeItem(atPath: folder)
    rename(base + "/moved", folder)
    #expect(try opened.isIntact())
    store(home.stateDirectory + "/id", String(repeating: "a", count: 32) + "\n")
    #expect(try !opened.isIntact())
  }

  /// Copied with its marker: the id is the same, and so is the state.
  @Test func aCopyOfTheFolderIsNotIntact() throws {
    let opened = try FolderHome.create(folder: folder, state: state).open()
    rename(folder, base + "/moved")
    mkdir(folder, 0o755)
    try FileManager.default.copyItem(atPath: base + "/moved/.tarn", toPath: folder + "/.tarn")
    #expect(try inspect() == FolderHome.inspect(folder: folder, state: state))
    #expect(!isMarkerMissing(try inspect()))
    #expect(try !opened.isIntact())
  }

  /// What is written there would be lost.
  @Test func aFolderWhosePartialFilesWereMovedIsNotIntact() throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    let opened = try home.open()
    rename(home.stateDirectory + "/partial", base + "/partial")
    #expect(try !opened.isIntact())
    mkdir(home.stateDirectory + "/partial", 0o700)
    #expect(try !opened.isIntact())
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func aFolderUnderAMountIsNotIntact()
    throws
  {
    let opened = try FolderHome.create(folder: folder, state: nil).open()
    #expect(Mounts.mount(at: folder, "size=1m"))
    defer { Mounts.unmount(folder) }
    #expect(try !opened.isIntact())
    #expect(try inspect() == .empty)
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func theStateIsOnTheSameFileSystem()
    throws
  {
    mkdir(state, 0o700)
    #expect(Mounts.mount(at: state, "size=1m,mode=700"))
    defer { Mounts.unmount(state) }
    #expect(code { _ = try FolderHome.create(folder: folder, state: state) } == .otherFileSystem)
    #expect(try inspect() == .missing)
    #expect(try FileManager.default.contentsOfDirectory(atPath: state) == [])
  }

  /// Mounted there later: no rename leads from one mount to another.
  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func theStateIsOnTheSameMountLater()
    throws
  {
    let home = try FolderHome.create(folder: folder, state: state)
    #expect(Mounts.bind(state, at: state))
    defer { Mounts.unmount(state) }
    #expect(try inspect() == .mirror(home))
    #expect(code { _ = try home.open() } == .otherFileSystem)
  }

  // MARK: Leaving

  @Test func leavingKeepsTheFiles() throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    store(folder + "/file", "stays")
    for name in ["ledger.sqlite", "ledger.sqlite-wal", "lock", "partial/x", "trash/y"] {
      store(home.stateDirectory + "/" + name)
    }
    try home.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
    #expect(try inspect() == .foreign)
  }

  @Test func leavingADirectoryOfTheUsersKeepsWhatIsInIt() throws {
    let home = try FolderHome.create(folder: folder, state: state)
    for name in ["ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite.corrupt-1", "lock", "partial/x"] {
      store(state + "/" + name)
    }
    store(state + "/letters", "mine")
    try home.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: state) == ["letters"])
    unlink(state + "/letters")
    try FolderHome.create(folder: folder, state: state).remove()
    #expect(DiskWorld.status(Array(state.utf8CString)) == nil)
  }

  /// Of nobody, who is not kept from anything but by the modes.
  private func giveAway(_ home: FolderHome) throws {
    for name in ["ledger.sqlite", "lock", "partial/x", "trash/y"] { store(home.stateDirectory + "/" + name) }
    if geteuid() == 0 { #expect(try run("/bin/chown", ["-R", "65534", base]) == 0) }
  }

  /// The record and the trash are not gone before it is known that the rest may go.
  @Test(arguments: ["folder", "folder/.tarn", "folder/.tarn/trash"])
  func whatCannotGoWhollyStaysWhole(closed: String) throws {
    let home = try FolderHome.create(folder: folder, state: nil)
    try giveAway(home)
    let before = try FileManager.default.subpathsOfDirectory(atPath: base).sorted()
    chmod("\(base)/\(closed)", 0o555)
    #expect(code { try asNobody { try home.remove() } } == .permission)
    #expect(try FileManager.default.subpathsOfDirectory(atPath: base).sorted() == before)
    chmod("\(base)/\(closed)", 0o755)
    try asNobody { try home.remove() }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
  }

  @Test func aStateElsewhereGoesAsFarAsItsParentLetsIt() throws {
    let home = try FolderHome.create(folder: folder, state: state)
    try giveAway(home)
    chmod(folder, 0o555)
    #expect(code { try asNobody { try home.remove() } } == .permission)
    #expect(try inspect() == .mirror(home) && home.trashed().count == 1)
    chmod(folder, 0o755)
    // A directory that somebody else made for it.
    chmod(base, 0o555)
    try asNobody { try home.remove() }
    #expect(try inspect() == .empty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: state).isEmpty)
  }
}
