import Foundation
import TarnCore
import TarnCrypto
import TarnFolder
import Testing

@Suite struct ScanTests {
  @Test func twentyThousandFilesComeInOrder() throws {
    let world = try DiskWorld()
    for directory in 0..<200 {
      world.makeDirectory(at("d\(directory)"))
      for file in 0..<100 { mknod(world.raw(at("d\(directory)/\(file).x")), S_IFREG | 0o644, 0) }
    }
    let cursor = world.port.scan()
    var count = 0
    var disordered = 0
    var last: RelativePath?
    while let present = try cursor.next() {
      if let last, present.path < last { disordered += 1 }
      last = present.path
      count += 1
    }
    #expect(count == 20_200)
    #expect(disordered == 0)
  }

  /// A large folder is walked by a thread of its own, which ends with who reads.
  @Test(arguments: [0, 1, 1024, 1025, 2500, 4999]) func aLargeFolderCanBeLeftHalfWay(_ count: Int) throws {
    let world = try DiskWorld()
    for file in 0..<5000 { mknod(world.raw(at(String(file))), S_IFREG | 0o644, 0) }
    var cursor: (any SnapshotCursor)? = world.port.scan()
    var paths: Set<RelativePath> = []
    for _ in 0..<count { if let present = try cursor?.next() { paths.insert(present.path) } }
    #expect(paths.count == count)
    cursor = nil
    // Whoever comes next sees all of it.
    #expect(world.scanned().objects.count == 5000)
  }

  /// The order is the same as that of sorting whole paths, for names around the slash.
  @Test(arguments: [1, 2] as [UInt64]) func theOrderIsThatOfWholePaths(_ seed: UInt64) throws {
    let world = try DiskWorld()
    let choices = noise(4000, seed: seed)
    let letters = bytes("a-./0\u{1}\u{7f}".filter { $0 != "/" })
    for round in 0..<120 {
      var path: [UInt8] = []
      for segment in 0..<(1 + Int(choices[round * 9]) % 3) {
        if segment > 0 { path.append(UInt8(ascii: "/")) }
        for letter in 0...Int(choices[round * 9 + segment + 1] % 3) {
          path.append(letters[Int(choices[round * 9 + segment * 3 + letter]) % letters.count])
        }
        path.append(UInt8(ascii: "x"))
      }
      _ = try world.install([1], RelativePath(trusted: path))
    }
    let paths = world.scanned().objects.map(\.path)
    #expect(paths.count > 100)
    #expect(paths == paths.sorted())
    #expect(Set(paths).count == paths.count)
  }

  /// `.tarn` is Tarn's own in every directory: a mirror below this one, a pointer file, a link.
  @Test func mirrorsBelowAreLeftOut() throws {
    let world = try DiskWorld()
    world.makeDirectory(at("sub"))
    world.makeDirectory(at("sub/.tarn"))
    world.write(at("sub/.tarn-x"), [1])
    for file in ["sub/.tarn/id", "deep/er/.tarn"] {
      try? FileManager.default.createDirectory(
        atPath: world.folder + "/deep/er", withIntermediateDirectories: true)
      #expect(DiskWorld.store(world.raw(at(file)), [1], O_CREAT))
    }
    world.makeDirectory(at("z"))
    #expect(symlink("../sub/.tarn", world.folder + "/z/.tarn") == 0)
    let (objects, failures) = world.scanned()
    #expect(failures.isEmpty)
    #expect(objects.map(\.path) == ["deep", "deep/er", "sub", "sub/.tarn-x", "z"].map(at))
    // The directory stays when the last file beside it goes.
    let own = try world.identity(at("sub/.tarn-x"))
    let outcomes = world.port.remove([Removal(path: at("sub/.tarn-x"), expected: own, trashName: "0123")])
    #expect(outcomes.first?.failure == nil)
    #expect(FileManager.default.fileExists(atPath: world.folder + "/sub/.tarn/id"))
  }

  /// Deeper than a path may be long: every step goes from the directory above.
  @Test func aTreeDeeperThanAPathIsWalked() throws {
    let world = try DiskWorld()
    let name = String(repeating: "n", count: 100)
    var directory = open(world.folder, O_RDONLY | O_DIRECTORY)
    for _ in 0..<60 {
      #expect(mkdirat(directory, name, 0o755) == 0)
      let next = openat(directory, name, O_RDONLY | O_DIRECTORY)
      close(directory)
      directory = next
    }
    close(directory)
    let (objects, failures) = world.scanned()
    #expect(failures.isEmpty)
    #expect(objects.count == 60)
    #expect(objects.last?.path.bytes.count == 60 * 101 - 1)
    #expect(code { _ = try world.port.look(#require(objects.last).path) } == .nameTooLong)
  }

  @Test func whatCannotBeReadIsSaidOnceAndTheRestGoesOn() throws {
    let world = try DiskWorld()
    for file in ["a/1", "b/1", "b/2", "b/c/3", "d/1", "d/2", "e"] { world.write(at(file), [1]) }
    chmod(world.raw(at("b")), 0)
    // Names can be listed, objects cannot be looked at.
    chmod(world.raw(at("d")), 0o444)
    let (objects, failures) = asNobody { world.scanned() }
    #expect(objects.map(\.path) == ["a", "a/1", "b", "d", "e"].map(at))
    #expect(failures.map(\.code) == [.permission, .permission])
    #expect(failures.map(\.path) == ["b", "d"].map(at))
    chmod(world.folder, 0)
    let blind = asNobody { world.scanned() }
    #expect(blind.objects.isEmpty)
    #expect(blind.failures.map(\.code) == [.permission])
    #expect(blind.failures.map(\.path) == [nil])
    chmod(world.folder, 0o755)
  }

  @Test func aFolderThatChangesMeanwhileIsWalkedToItsEnd() throws {
    let world = try DiskWorld()
    for file in ["a/1", "b/1", "c/1", "d", "e/1", "f"] { world.write(at(file), [1]) }
    let cursor = world.port.scan()
    #expect(try cursor.next()?.path == at("a"))
    try FileManager.default.removeItem(atPath: world.folder + "/a")
    try FileManager.default.removeItem(atPath: world.folder + "/b")
    world.delete(at("d"))
    #expect(try cursor.next()?.path == at("c"))
    try FileManager.default.removeItem(atPath: world.folder + "/c")
    world.makeLink(at("c"), to: world.base)
    // A link now: what lies behind it is not the folder's.
    #expect(code { _ = try cursor.next() } == .link)
    var rest: [RelativePath] = []
    while let present = try cursor.next() { rest.append(present.path) }
    #expect(rest == ["e", "e/1", "f"].map(at))
  }

  @Test(.enabled(if: Mounts.areAllowed, "needs the right to mount")) func aMountIsNotEntered() throws {
    let world = try DiskWorld()
    world.makeDirectory(at("m"))
    world.write(at("z"), [1])
    let mount = world.folder + "/m"
    #expect(Mounts.mount(at: mount, "size=1m"))
    defer { Mounts.unmount(mount) }
    #expect(DiskWorld.store(world.raw(at("m/x")), [1], O_CREAT))
    let (objects, failures) = world.scanned()
    #expect(objects.map(\.path) == ["m", "z"].map(at))
    #expect(failures.map(\.code) == [.otherFileSystem])
    #expect(failures.allSatisfy { $0.message.contains("something is mounted there") })
    #expect(failures.map(\.path) == [at("m")])
    #expect(try world.install([1], at("m/y")).failure == .otherFileSystem)
    #expect(code { _ = try world.port.look(at("m/x")) } == .otherFileSystem)
  }

  @Test func aForeignFolderCanBeRead() throws {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    #expect(DiskWorld.store(DiskWorld.raw(base, bytes("f")), bytes("abc"), O_CREAT))
    let folder = try ForeignFolder(folder: base)
    #expect(try folder.scan().next()?.path == at("f"))
    #expect(try folder.look(at("f"))?.identity.size == 3)
    #expect(try folder.digest(of: at("f"), .md5)?.0 == OpenSSLHashing().digest(.md5, of: bytes("abc")))
    #expect(code { _ = try ForeignFolder(folder: base + "/none") } == .missing)
  }
}
