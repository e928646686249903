import Foundation
import Glibc
import TarnCore
import Testing

extension WatchSuite {
  /// What every watcher tells, the real one and the fake.
  @Suite struct ConformanceTests {
    @Test(arguments: Subject.allCases) func aFolderIsReadyWithItsDirectories(_ subject: Subject) throws {
      let bench = try Bench(subject, isReady: false) { folder in
        try FileManager.default.createDirectory(atPath: folder + "/a/b/c", withIntermediateDirectories: true)
        try #require(symlink("a", folder + "/link") == 0)
      }
      #expect(try bench.awaitReady() == 4)
    }

    @Test(arguments: Subject.allCases) func files(_ subject: Subject) throws {
      let bench = try Bench(subject)
      try bench.write("file", "")
      try bench.awaitLook("file")
      try bench.write("file", "contents")
      try bench.awaitLook("file")
      try #require(truncate(bench.folder + "/file", 3) == 0)
      try bench.awaitLook("file")
      try #require(chmod(bench.folder + "/file", 0o600) == 0)
      try bench.awaitLook("file")
      try bench.move("file", "other")
      try bench.awaitLooks(["file", "other"])
      try bench.remove("other")
      try bench.awaitLook("other")
    }

    @Test(arguments: Subject.allCases) func filesMovedInAndOut(_ subject: Subject) throws {
      let bench = try Bench(subject) { try Data().write(to: URL(fileURLWithPath: $0 + "/file")) }
      try bench.move("file", "../out")
      try bench.awaitLook("file")
      try bench.move("../out", "in")
      try bench.awaitLook("in")
    }

    @Test(arguments: Subject.allCases) func aFileReplaced(_ subject: Subject) throws {
      let bench = try Bench(subject) { try Data().write(to: URL(fileURLWithPath: $0 + "/file")) }
      try bench.remove("file")
      try #require(symlink("elsewhere", bench.folder + "/file") == 0)
      try bench.awaitLook("file")
      _ = try bench.settle()
      try bench.remove("file")
      try bench.make("file")
      try bench.awaitLook("file")
      _ = try bench.settle("sentinel-2")
      try bench.write("file/below", "x")
      try bench.awaitLook("file/below")
    }

    @Test(arguments: Subject.allCases) func directoriesMadeWithContents(_ subject: Subject) throws {
      let bench = try Bench(subject)
      try bench.make("a/b/c")
      try bench.write("a/b/c/file", "x")
      try bench.awaitLooks(["a", "a/b", "a/b/c", "a/b/c/file"])
      _ = try bench.settle()
      try bench.write("a/b/c/file", "more")
      try bench.awaitLook("a/b/c/file")
    }

    @Test(arguments: Subject.allCases) func aDirectoryRenamed(_ subject: Subject) throws {
      let bench = try Bench(subject) { folder in
        try FileManager.default.createDirectory(
          atPath: folder + "/old/below", withIntermediateDirectories: true)
      }
      try bench.move("old", "new")
      try bench.awaitLooks(["old", "new"])
      _ = try bench.settle()
      try bench.write("new/below/file", "x")
      try bench.awaitLook("new/below/file")
    }

    @Test(arguments: Subject.allCases) func twoDirectoriesExchanged(_ subject: Subject) throws {
      let bench = try Bench(subject) { folder in
        for name in ["one/1", "two/2"] {
          try FileManager.default.createDirectory(
            atPath: folder + "/" + name, withIntermediateDirectories: true)
        }
      }
      // By way of a third name: renameat2 is not in Swift's Glibc.
      try bench.move("one", "../third")
      try bench.move("two", "one")
      try bench.move("../third", "two")
      try bench.awaitLooks(["one", "two"])
      _ = try bench.settle()
      try bench.write("one/2/file", "x")
      try bench.write("two/1/file", "x")
      try bench.awaitLooks(["one/2/file", "two/1/file"])
    }

    @Test(arguments: Subject.allCases) func aDirectoryMovedInWithContents(_ subject: Subject) throws {
      let bench = try Bench(subject)
      try bench.make("../outside/a/b")
      try bench.write("../outside/a/b/file", "x")
      try bench.move("../outside", "inside")
      try bench.awaitLooks(["inside", "inside/a/b/file"])
      _ = try bench.settle()
      try bench.write("inside/a/b/file", "more")
      try bench.awaitLook("inside/a/b/file")
    }

    @Test(arguments: Subject.allCases) func aDirectoryMovedOutIsSilent(_ subject: Subject) throws {
      let bench = try Bench(subject) { folder in
        try FileManager.default.createDirectory(
          atPath: folder + "/inside/a", withIntermediateDirectories: true)
      }
      try bench.move("inside", "../outside")
      try bench.awaitLook("inside")
      _ = try bench.settle()
      try bench.write("../outside/a/file", "x")
      let told = try bench.settle("sentinel-2")
      #expect(
        told.allSatisfy { Bench.covers($0, RelativePath(trusted: Array("sentinel-2".utf8))) }, "\(told)")
    }

    @Test(arguments: Subject.allCases) func directoriesDeleted(_ subject: Subject) throws {
      let bench = try Bench(subject) { folder in
        try FileManager.default.createDirectory(atPath: folder + "/a/b/c", withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: folder + "/a/b/c/file"))
      }
      try bench.remove("a")
      try bench.awaitLooks(["a", "a/b", "a/b/c", "a/b/c/file"])
      try bench.make("a/b")
      try bench.awaitLooks(["a", "a/b"])
    }

    /// Each directory is made with a file in it, faster than anybody can watch them.
    @Test(arguments: Subject.allCases) func manyDirectoriesMadeAtOnce(_ subject: Subject) throws {
      let bench = try Bench(subject)
      let names = (0..<300).map { "d\($0 % 10)/e\($0)" }
      for name in names {
        try bench.make(name)
        try bench.write(name + "/file", "x")
      }
      try bench.awaitLooks(names.map { $0 + "/file" })
      _ = try bench.settle()
      for name in names { try bench.write(name + "/later", "x") }
      try bench.awaitLooks(names.map { $0 + "/later" })
    }

    @Test(arguments: Subject.allCases) func namesThatAreNoText(_ subject: Subject) throws {
      let bench = try Bench(subject)
      let name: [UInt8] = [0x61, 0xFF, 0x20, 0xC3]
      let path = Array((bench.folder + "/").utf8) + name + [0]
      let file = path.withUnsafeBytes {
        open($0.assumingMemoryBound(to: CChar.self).baseAddress!, O_WRONLY | O_CREAT, 0o644)
      }
      try #require(file >= 0)
      close(file)
      try bench.awaitLook(RelativePath(trusted: name))
      try bench.make("d")
      _ = try bench.settle()
      // Tarn has no such paths; what holds them is looked at.
      try bench.write("d/two\nlines", "x")
      #expect(
        try bench.await("the tree of d") { Bench.covers($0, RelativePath(trusted: Array("d/x".utf8))) }
          == .tree(RelativePath(trusted: Array("d".utf8))))
    }

    @Test(arguments: Subject.allCases) func whatIsTarnsOwnIsSilent(_ subject: Subject) throws {
      let bench = try Bench(subject) { folder in
        for name in [".tarn/partial", "d/.tarn"] {
          try FileManager.default.createDirectory(
            atPath: folder + "/" + name, withIntermediateDirectories: true)
        }
      }
      try bench.write(".tarn/partial/file", "x")
      try bench.write("d/.tarn/file", "x")
      try bench.make(".tarn/more/below")
      let told = try bench.settle()
      #expect(
        told.allSatisfy { [.dirty(RelativePath(trusted: Array("sentinel".utf8)))].contains($0) }
          || subject == .fake && told.count <= 3, "\(told)")
    }

    /// Not even that it is there, when it is made below a folder that is watched already.
    @Test func whatBecomesTarnsOwnIsSilent() throws {
      let bench = try Bench(.real)
      try bench.make("d")
      try bench.awaitLook("d")
      _ = try bench.settle()
      try bench.make("d/.tarn/partial")
      try bench.write("d/.tarn/partial/file", "x")
      try #require(chmod(bench.folder + "/d/.tarn", 0o700) == 0)
      let told = try bench.settle("sentinel-2")
      let sentinel = RelativePath(trusted: Array("sentinel-2".utf8))
      #expect(told.allSatisfy { $0 == .dirty(sentinel) }, "\(told)")
    }

    @Test(arguments: Subject.allCases) func nothingIsToldOfAFolderThatIsForgotten(_ subject: Subject) throws {
      let bench = try Bench(subject)
      let other = WatchID(8)
      try bench.make("../other")
      bench.watcher.watch(other, path: Array((bench.base + "/other").utf8))
      try bench.await("ready", of: other) { if case .ready = $0 { true } else { false } }
      bench.watcher.forget(other)
      try bench.write("../other/file", "x")
      #expect(try bench.settle().count > 0)
      bench.watcher.watch(other, path: Array((bench.base + "/other").utf8))
      try bench.await("ready", of: other) { if case .ready = $0 { true } else { false } }
      try bench.write("../other/file", "y")
      try bench.await("the file", of: other) { Bench.covers($0, RelativePath(trusted: Array("file".utf8))) }
    }

    /// It may let in again what it kept out.
    @Test(arguments: Subject.allCases) func theFoldersOwnMode(_ subject: Subject) throws {
      let bench = try Bench(subject)
      try #require(utimes(bench.folder, nil) == 0)
      let sentinel = WatchNews.Event.dirty(RelativePath(trusted: Array("sentinel".utf8)))
      #expect(try bench.settle().allSatisfy { $0 == sentinel })
      try #require(chmod(bench.folder, 0o700) == 0)
      try bench.await("the whole folder") { $0 == .tree(nil) }
    }

    @Test(arguments: Subject.allCases) func aFolderThatGoesIsBlind(_ subject: Subject) throws {
      let bench = try Bench(subject)
      try #require(rmdir(bench.folder) == 0)
      #expect(try bench.awaitBlind(.gone) != "")
    }
  }
}
