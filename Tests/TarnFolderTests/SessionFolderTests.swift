import Foundation
import TarnCore
import TarnCrypto
import TarnFolder
import Testing

/// The destinations of a session's tasks, on disk.
@Suite struct SessionFolderTests {
  private final class Place {
    let path: String
    let names = FinalNames()

    init() throws { path = try DiskWorld.makeBase() }
    deinit { DiskWorld.removeBase(path) }

    func folder(_ id: String = "s") -> SessionFolder {
      SessionFolder(id: id, names: names, hashing: OpenSSLHashing())
    }

    func text(_ name: String) -> String? { try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }

    func write(_ text: String, _ name: String) throws {
      try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
    }

    var all: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path).sorted()) ?? [] }
  }

  private let place: Place

  init() throws { place = try Place() }

  private func task(_ number: Int64, to: String, _ existing: TaskRequest.Existing? = nil) -> TaskRecord {
    var request = TaskRequest(url: "https://h/\(number)", to: "\(place.path)/\(to)")
    request.existing = existing
    return TaskRecord(number: number, state: .queued, request: request, added: Timestamp(nanoseconds: 0))
  }

  /// Puts a file with this text in place.
  @discardableResult
  private func install(
    _ folder: SessionFolder, _ task: TaskRecord, _ text: String, suggested: String? = nil,
    meanwhile: () throws -> Void = {}
  ) throws -> PublishOutcome {
    let port = try folder.open(task).folder
    try meanwhile()
    if let suggested { try folder.name(task.number, suggested) }
    let path = RelativePath(task: task.number)
    let partial = try port.makePartial(for: path, mayBeUnnamed: true)
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try Array(text.utf8).withUnsafeBytes { try partial.append($0) }
    _ = try partial.seal(modified: nil)
    #expect(port.makeDurable([partial]) == [nil])
    let outcomes = port.install([
      Installation(path: path, partial: partial, expectation: .absent, trashName: "")
    ])
    partial.close()
    return try #require(outcomes.first)
  }

  private func failure(_ outcome: PublishOutcome) -> FolderFailure.Code? {
    if case .failed(let failure) = outcome { failure.code } else { nil }
  }

  @Test func aFileGetsTheNameThatWasAskedFor() throws {
    let folder = place.folder()
    let outcome = try install(folder, task(1, to: "a.txt"), "one")
    #expect(failure(outcome) == nil && place.text("a.txt") == "one" && place.all == ["a.txt"])
  }

  @Test func theServersNameIsTakenInAFolder() throws {
    try install(place.folder(), task(1, to: ""), "one", suggested: "said.bin")
    #expect(place.text("said.bin") == "one")
  }

  @Test func whatIsThereStays() throws {
    let folder = place.folder()
    let outcome = try install(folder, task(1, to: "a"), "new") { try place.write("old", "a") }
    // Its bytes are kept.
    #expect(failure(outcome) == .exists && place.text("a") == "old" && place.text(".tarn-s-1.part") == "new")
    // The next time it is refused before a byte is fetched.
    folder.close(1)
    let refused = #expect(throws: FolderFailure.self) { try folder.open(task(1, to: "a")) }
    #expect(refused?.code == .exists)
  }

  /// Before a byte is fetched.
  @Test func aNameThatIsTakenIsRefusedWithTheHead() throws {
    try place.write("old", "said")
    let folder = place.folder()
    _ = try folder.open(task(1, to: ""))
    let failure = #expect(throws: FolderFailure.self) { try folder.name(1, "said") }
    #expect(failure?.code == .exists)
  }

  @Test func whatIsReplacedGoesWhenTheNewOneIsRecorded() throws {
    try place.write("old", "a")
    let folder = place.folder()
    let task = task(1, to: "a", .replace)
    try install(folder, task, "new")
    #expect(place.text("a") == "new" && place.text(".tarn-s-1.part") == "old")
    folder.finish(task, replaces: true)
    #expect(place.all == ["a"])
  }

  @Test func noDirectoryIsReplaced() throws {
    try FileManager.default.createDirectory(atPath: place.path + "/a", withIntermediateDirectories: false)
    let outcome = try install(place.folder(), task(1, to: "a", .replace), "new")
    #expect(failure(outcome) == .exists && place.all == [".tarn-s-1.part", "a"])
  }

  @Test func bothAreKept() throws {
    try place.write("old", "a.txt")
    try install(place.folder(), task(1, to: "a.txt", .keepBoth), "new")
    #expect(place.text("a.txt") == "old" && place.text("a (1).txt") == "new")
  }

  /// Numbers go on, and none is put behind another.
  @Test func severalAreKept() throws {
    try place.write("old", "a.tar.gz")
    let folder = place.folder()
    try install(folder, task(1, to: "a.tar.gz", .keepBoth), "one") {
      try install(folder, task(2, to: "a.tar.gz", .keepBoth), "two")
    }
    #expect(place.all == ["a (1).tar.gz", "a (2).tar.gz", "a.tar.gz"])
    #expect(place.text("a (1).tar.gz") == "two" && place.text("a (2).tar.gz") == "one")
    // A crash came between the name and the record.
    var known = task(1, to: "a.tar.gz", .keepBoth)
    known.path = place.path + "/a (1).tar.gz"
    var status = stat()
    #expect(stat(place.path + "/a (2).tar.gz", &status) == 0)
    let found = try place.folder().find((known, inode: UInt64(status.st_ino), size: 3))?.path
    #expect(found == place.path + "/a (2).tar.gz")
  }

  /// There is no feed, and nothing lies in `partial/`.
  @Test func messagesAreOfTheRequest() throws {
    let port = try place.folder().open(task(1, to: "a")).folder
    let partial = try port.makePartial(for: RelativePath(task: 1), mayBeUnnamed: false)
    let wanted = OpenSSLHashing().digest(.sha256, of: Array("other".utf8))
    _ = try partial.begin(keeping: 0, check: ContentCheck(digest: wanted))
    try Array("text".utf8).withUnsafeBytes { try partial.append($0) }
    let wrong = #expect(throws: FolderFailure.self) { try partial.seal(modified: nil) }
    #expect(wrong?.message.hasSuffix(", wanted: \(wanted.hex)") == true, "\(wrong?.message ?? "")")
    partial.close()
    let closed = #expect(throws: FolderFailure.self) {
      try Array("text".utf8).withUnsafeBytes { try partial.append($0) }
    }
    #expect(closed?.message.hasPrefix("\(place.path)/.tarn-s-1.part ") == true, "\(closed?.message ?? "")")
    // As in a folder that is read-only, for who may write everywhere.
    let folder = place.folder("t")
    let other = try folder.open(task(2, to: "b")).folder
    try FileManager.default.createDirectory(
      atPath: place.path + "/.tarn-t-2.part", withIntermediateDirectories: false)
    let taken = #expect(throws: FolderFailure.self) {
      try other.makePartial(for: RelativePath(task: 2), mayBeUnnamed: false)
    }
    #expect(taken?.message.contains("\(place.path)/.tarn-t-2.part") == true, "\(taken?.message ?? "")")
  }

  /// Of one session or of two, also where only the suggested names meet.
  @Test func noTwoLiveTasksHaveOneName() throws {
    let (first, second) = (place.folder("s"), place.folder("t"))
    _ = try first.open(task(1, to: "a"))
    #expect(throws: FolderFailure.self) { try second.open(task(1, to: "a")) }
    _ = try first.open(task(2, to: ""))
    #expect(throws: FolderFailure.self) { try first.name(2, "a") }
    _ = try second.open(task(3, to: "", .keepBoth))
    try second.name(3, "a")
    #expect(second.path(3) == "\(place.path)/a (1)")
    first.close(1)
    #expect(throws: FolderFailure.self, "it may continue") { try second.open(task(4, to: "a")) }
    first.release(1)
    _ = try second.open(task(4, to: "a"))
    first.release(1)
    #expect(throws: FolderFailure.self, "the name is another's by now") { try first.open(task(1, to: "a")) }
    second.releaseAll()
    _ = try first.open(task(1, to: "a"))
  }

  /// The roots of two disks have one inode; the file is on one of them.
  @Test func anotherDiskIsAnotherDirectory() throws {
    let folder = place.folder()
    var task = task(1, to: "a")
    let (port, directory, disk) = try folder.open(task)
    (task.directory, task.disk) = (directory.inode, "another")
    folder.close(1)
    let failure = #expect(throws: FolderFailure.self) { try folder.open(task, hasPartial: true) }
    #expect(failure?.code == .otherFileSystem)
    (task.disk, task.directory) = (disk, directory.inode)
    _ = try folder.open(task, hasPartial: true)
    // Some file systems get another ID with each boot.
    task.disk = "another"
    let partial = try port.makePartial(for: RelativePath(task: 1), mayBeUnnamed: false)
    folder.close(1)
    _ = try folder.open(task, hasPartial: true)
    partial.close()
  }

  /// An empty mount point is on another disk.
  @Test func aDirectoryThatWasMadeAgainIsTold() throws {
    let folder = place.folder()
    var task = task(1, to: "a")
    let (_, directory, disk) = try folder.open(task)
    folder.close(1)
    (task.directory, task.disk) = (directory.inode, disk)
    #expect(!folder.isMadeAgain(task))
    for (before, isMadeAgain) in [(disk, true), ("another", false), (nil, false)] as [(String?, Bool)] {
      (task.directory, task.disk) = (directory.inode ^ 1, before)
      #expect(folder.isMadeAgain(task) == isMadeAgain)
      let failure = #expect(throws: FolderFailure.self) { try folder.open(task, hasPartial: true) }
      #expect(failure?.code == .otherFileSystem)
      #expect(failure?.message.contains("'tarn retry session:s/1' begins") == isMadeAgain)
      #expect(failure?.message.contains("removed, renamed or not mounted") == isMadeAgain)
    }
  }

  @Test func twoSessionsHavePartialFilesOfTheirOwn() throws {
    let (first, second) = (place.folder("s"), place.folder("t"))
    let one = try first.open(task(1, to: "a")).folder.makePartial(
      for: RelativePath(task: 1), mayBeUnnamed: false)
    let two = try second.open(task(1, to: "b")).folder.makePartial(
      for: RelativePath(task: 1), mayBeUnnamed: false)
    #expect(place.all == [".tarn-s-1.part", ".tarn-t-1.part"])
    one.close()
    two.close()
  }

  @Test func aMissingDirectoryIsMadeOnlyIfThatIsAskedFor() throws {
    let folder = place.folder()
    var deep = task(1, to: "x/y/a")
    #expect(throws: FolderFailure.self) { try folder.open(deep) }
    deep.request.makeDirectories = true
    try install(folder, deep, "one")
    #expect(place.text("x/y/a") == "one")
  }

  /// A crash came between the name and the record.
  @Test func whatGotItsNameIsFound() throws {
    try place.write("old", "a.txt")
    let folder = place.folder()
    var task = task(1, to: "a.txt", .keepBoth)
    task.path = place.path + "/a.txt"
    guard case .installed(let identity, _) = try install(folder, task, "new") else {
      Issue.record("not installed")
      return
    }
    let found = try place.folder().find((task, inode: identity.inode, size: identity.size))?.path
    #expect(found == place.path + "/a (1).txt")
    let other = try place.folder().find((task, inode: identity.inode, size: 99))
    #expect(other == nil)
    // An empty mount point says nothing: the disk with the file is not there now.
    task.directory = identity.inode
    #expect(throws: FolderFailure.self) {
      try place.folder().find((task, inode: identity.inode, size: identity.size))
    }
  }

  /// It may be gigabytes.
  @Test func aCopyIsEndedInItsMiddle() throws {
    try place.write(String(repeating: "x", count: 3 << 20), "begun")
    let folder = place.folder()
    _ = try folder.open(task(1, to: "a"))
    var asked = 0
    let failure = #expect(throws: FolderFailure.self) {
      try folder.adopt(SessionFolder.EarlierFile(place.path + "/begun"), for: 1) {
        asked += 1
        return asked == 3
      }
    }
    #expect(failure?.code == .stopped && asked == 3 && place.all == ["begun"])
    #expect(
      try folder.adopt(SessionFolder.EarlierFile(place.path + "/begun"), for: 1) { false }.bytes == 3 << 20)
  }

  /// To another file system it is copied; what could not be copied whole stays where it was.
  @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm"), "needs a second file system"))
  func aPartialFileGoesToAnotherFileSystem() throws {
    let other = "/dev/shm/tarn-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: other) }
    let text = String(repeating: "x", count: 3 << 20)
    try place.write(text, ".tarn-s-1.part")
    let folder = place.folder()
    var moved = task(1, to: "a")
    moved.request.to = other + "/a"
    _ = try folder.open(moved)
    var asked = 0
    let failure = #expect(throws: FolderFailure.self) {
      try folder.movePartial(of: 1, from: place.path) {
        asked += 1
        return asked == 3
      }
    }
    #expect(failure?.code == .stopped && place.text(".tarn-s-1.part") == text)
    #expect(try FileManager.default.contentsOfDirectory(atPath: other).isEmpty)
    try folder.movePartial(of: 1, from: place.path) { false }
    #expect(place.all.isEmpty)
    #expect(try String(contentsOfFile: other + "/.tarn-s-1.part", encoding: .utf8) == text)
  }

  /// Not through a link that somebody puts there instead.
  @Test func aPartialFileIsNoLink() throws {
    try place.write("mine", "precious")
    try FileManager.default.createSymbolicLink(
      atPath: place.path + "/.tarn-s-1.part", withDestinationPath: "precious")
    let folder = place.folder()
    let port = try folder.open(task(1, to: "a")).folder
    #expect(throws: FolderFailure.self) { try port.openPartial(".tarn-s-1.part") }
    let partial = try port.makePartial(for: RelativePath(task: 1), mayBeUnnamed: false)
    partial.discard()
    #expect(place.text("precious") == "mine")
  }
}
