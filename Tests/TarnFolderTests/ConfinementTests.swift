import Foundation
import TarnCore
import TarnFolder
import TarnRuntime
import Testing

/// I5: nothing outside of the folder is read, written or moved because of a name. I2: nobody's bytes are lost.
@Suite struct ConfinementTests {
  @Test func aLinkedParentIsNotFollowed() throws {
    let world = try DiskWorld()
    let outside = world.base + "/outside"
    mkdir(outside, 0o755)
    #expect(DiskWorld.store(DiskWorld.raw(outside, bytes("victim")), bytes("theirs"), O_CREAT))
    world.makeLink(at("d"), to: outside)
    #expect(try world.install(bytes("ours"), at("d/new")).failure == .link)
    #expect(try world.install(bytes("ours"), at("d/deep/new")).failure == .link)
    var status = stat()
    #expect(stat(outside + "/victim", &status) == 0)
    let victim = FileIdentity(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: 6,
      modified: Timestamp(nanoseconds: 0),
      changed: Timestamp(nanoseconds: 0))
    #expect(try world.install(bytes("ours"), at("d/victim"), .present(victim)).isStale)
    #expect(try world.port.digest(of: at("d/victim"), .sha256) == nil)
    #expect(world.port.remove([Removal(path: at("d/victim"), expected: victim, trashName: "t")])[0].isStale)
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == ["victim"])
    #expect(DiskWorld.load(DiskWorld.raw(outside, bytes("victim"))) == bytes("theirs"))
    #expect(world.scanned().objects.map(\.path) == [at("d")])
  }

  @Test func aLinkAtTheLeafIsNotFollowed() throws {
    let world = try DiskWorld()
    let victim = world.base + "/victim"
    #expect(DiskWorld.store(DiskWorld.raw(world.base, bytes("victim")), bytes("theirs"), O_CREAT))
    world.makeLink(at("leaf"), to: victim)
    #expect(try world.install(bytes("ours"), at("leaf")).isStale)
    #expect(try world.port.digest(of: at("leaf"), .sha256) == nil)
    #expect(try world.port.look(at("leaf"))?.kind == .symbolicLink)
    let there = try world.identity(at("leaf"))
    #expect(try world.port.restoreMode(of: at("leaf"), expected: there) == nil)
    #expect(try world.install(bytes("ours"), at("leaf"), .present(there)).identity != nil)
    #expect(world.contents(at("leaf")) == bytes("ours"))
    #expect(DiskWorld.load(DiskWorld.raw(world.base, bytes("victim"))) == bytes("theirs"))
  }

  @Test func anotherNameOfTheReplacedFileKeepsItsBytes() throws {
    let world = try DiskWorld()
    world.write(at("f"), bytes("old"))
    #expect(link(world.raw(at("f")), DiskWorld.raw(world.base, bytes("other"))) == 0)
    let outcome = try world.install(bytes("new"), at("f"), .present(world.identity(at("f"))), trashName: "t")
    #expect(outcome.identity != nil)
    #expect(DiskWorld.load(DiskWorld.raw(world.base, bytes("other"))) == bytes("old"))
    #expect(world.contents(at("f")) == bytes("new"))
  }

  /// Opening a FIFO without a writer would wait for ever.
  @Test func aFIFOIsNeverWaitedFor() throws {
    let world = try DiskWorld()
    world.makeSpecial(at("fifo"))
    let identity = try world.identity(at("fifo"))
    let disk = world.disk
    let isOver = ends(world.raw(at("fifo"))) {
      do {
        let digest = try disk.digest(of: at("fifo"), .sha256) { _ in true }
        let copy = try disk.copyPartial(of: at("fifo"), expected: identity, check: ContentCheck())
        #expect(digest == nil && copy == nil)
      } catch {
        Issue.record(error)
      }
    }
    #expect(isOver)
    #expect(try world.install(bytes("x"), at("fifo"), .present(identity)).identity != nil)
  }

  @Test func namesAreBytes() throws {
    let world = try DiskWorld()
    let names: [[UInt8]] = [
      [0xFF, 0xFE], bytes("new\nline"), bytes("-rf"), bytes("~"), bytes("back\\slash"), [0x1B, 0x5B],
      Array(repeating: UInt8(ascii: "n"), count: 255), [0x63, 0xC3, 0xA9], [0x63, 0x65, 0xCC, 0x81],
      bytes("..."),
    ]
    for name in names {
      let path = RelativePath(trusted: bytes("d/") + name)
      #expect(try world.install(name, path).identity != nil)
    }
    for name in names { #expect(world.contents(RelativePath(trusted: bytes("d/") + name)) == name) }
    let paths = world.scanned().objects.map(\.path)
    #expect(paths.count == names.count + 1)
    #expect(paths == paths.sorted())
    let long = RelativePath(trusted: Array(repeating: UInt8(ascii: "n"), count: 256))
    #expect(try world.install([1], long).failure == .nameTooLong)
    #expect(try world.port.partials().isEmpty)
  }

  @Test(arguments: [
    "..", "../victim", "a/../../victim", "d/..", ".", "./x", "a//b", "/etc/passwd", "a/", "", ".tarn",
    ".tarn/id",
    ".tarn/ledger.sqlite", "d/.tarn", "d/.tarn/id", "d/e/.tarn/ledger.sqlite", "d/./x", "x\0y", "..\0",
  ])
  func whatIsNoPathOfTheFolderIsRefused(_ text: String) throws {
    let world = try DiskWorld()
    world.makeDirectory(at("d"))
    let path = at(text)
    #expect(code { _ = try world.port.look(path) } == .other)
    #expect(code { _ = try world.port.digest(of: path, .md5) } == .other)
    #expect(try world.install(bytes("x"), path).failure == .other)
    let identity = try world.identity(at("d"))
    #expect(try world.install(bytes("x"), path, .present(identity)).failure == .other)
    #expect(world.port.remove([Removal(path: path, expected: identity, trashName: "t")])[0].failure == .other)
    #expect(code { _ = try world.port.restoreTrash("t", to: path) } == .other)
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.base) == ["folder"])
  }

  @Test(arguments: ["..", ".", "", "a/b", "../id", "x\0y", String(repeating: "n", count: 256)])
  func whatIsNoNameIsRefused(_ name: String) throws {
    let world = try DiskWorld()
    #expect(code { _ = try world.port.openPartial(name) } == .other)
    #expect(code { _ = try world.port.partialIdentity(name) } == .other)
    #expect(code { try world.port.removePartial(name) } == .other)
    #expect(code { try world.port.removeTrash(name) } == .other)
    #expect(code { _ = try world.port.trashIdentity(name) } == .other)
    #expect(code { try world.port.unstage(name, as: "t") } == .other)
    #expect(code { try world.port.unstage("t", as: name) } == .other)
    #expect(code { _ = try world.port.restoreTrash(name, to: at("x")) } == .other)
    // Where nothing is displaced none is needed.
    #expect(try world.install(bytes("x"), at("x"), trashName: name).failure == (name.isEmpty ? nil : .other))
    #expect(try world.install(bytes("y"), at("y"), trashName: "t").failure == nil)
    let present = Installation.Expectation.present(try world.identity(at("y")))
    #expect(try world.install(bytes("z"), at("y"), present, trashName: name).failure == .other)
    #expect(try world.port.isIntact())
  }

  /// Random bytes as paths, with links to the outside on the way: the outside stays as it is.
  @Test(arguments: [1, 2, 3] as [UInt64]) func randomPathsNeverEscape(_ seed: UInt64) throws {
    let world = try DiskWorld()
    let canary = world.base + "/canary"
    mkdir(canary, 0o755)
    #expect(DiskWorld.store(DiskWorld.raw(canary, bytes("a")), bytes("canary"), O_CREAT))
    world.makeLink(at("l"), to: canary)
    world.makeLink(at("d/l"), to: "../../canary")
    let random = SeededRandom(seed: seed)
    let alphabet: [[UInt8]] = ["/", "/", "..", ".", "a", "l", "d", "canary", "\0", "\u{7f}", ".tarn"].map(
      bytes)
    for round in 0..<150 {
      var path: [UInt8] = []
      for _ in 0...random.next(below: 7) {
        let pick = random.next(below: UInt64(alphabet.count) + 1)
        path +=
          pick < alphabet.count
          ? alphabet[Int(pick)] : (0..<2).map { _ in UInt8(random.next(below: 256)) }
      }
      let relative = RelativePath(trusted: path)
      _ = try? world.port.look(relative)
      _ = try? world.port.digest(of: relative, .md5)
      let outcome = try world.install(bytes("x"), relative, trashName: "t\(round)")
      if let identity = outcome.identity, round % 3 == 0 {
        _ = world.port.remove([Removal(path: relative, expected: identity, trashName: "r\(round)")])
      }
    }
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: world.base)) == ["canary", "folder"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: canary) == ["a"])
    #expect(DiskWorld.load(DiskWorld.raw(canary, bytes("a"))) == bytes("canary"))
    #expect(try world.port.isIntact())
  }

  @Test func whatLiesInPartialIsNotWrittenUnlessItIsAPartialFile() throws {
    let world = try DiskWorld()
    let partial = world.home.stateDirectory + "/partial"
    #expect(DiskWorld.store(DiskWorld.raw(world.base, bytes("victim")), bytes("theirs"), O_CREAT))
    #expect(symlink(world.base + "/victim", partial + "/link") == 0)
    #expect(link(world.base + "/victim", partial + "/hard") == 0)
    #expect(mkfifo(partial + "/fifo", 0o600) == 0)
    mkdir(partial + "/dir", 0o700)
    for name in ["link", "hard", "fifo", "dir"] {
      #expect(code { _ = try world.port.openPartial(name) } == .other)
    }
    #expect(try world.names(world.port.partials()) == ["dir", "fifo", "hard", "link"])
    for name in ["link", "hard", "fifo", "dir"] { try world.port.removePartial(name) }
    #expect(DiskWorld.load(DiskWorld.raw(world.base, bytes("victim"))) == bytes("theirs"))
  }

  /// Whoever swaps the file in `partial/` for another one does not get it published.
  @Test func onlyTheCheckedFileIsInstalled() throws {
    let world = try DiskWorld()
    let partial = try world.sealed(bytes("good"))
    let path = world.home.stateDirectory + "/partial/" + partial.name
    unlink(path)
    #expect(DiskWorld.store(Array(path.utf8CString), bytes("evil"), O_CREAT))
    let item = Installation(path: at("f"), partial: partial, expectation: .absent, trashName: "t")
    #expect(world.port.install([item])[0].failure == .other)
    partial.discard()
    #expect(try world.port.look(at("f")) == nil)
    #expect(DiskWorld.load(Array(path.utf8CString)) == bytes("evil"))

    let edited = try world.sealed(bytes("good"))
    let place = world.home.stateDirectory + "/partial/" + edited.name
    #expect(DiskWorld.store(Array(place.utf8CString), bytes("evilevil"), O_TRUNC))
    let second = Installation(path: at("f"), partial: edited, expectation: .absent, trashName: "t")
    #expect(world.port.install([second])[0].failure == .other)
  }
}
