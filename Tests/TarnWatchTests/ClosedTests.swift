import Foundation
import Glibc
import TarnCore
import TarnWatch
import TestSupport
import Testing

private let noOtherUser: String? =
  geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")
  ? nil : "only root can be another user, by setpriv"

extension WatchSuite {
  /// Directories that the watcher may not enter for a while: what happened in them meanwhile is seen once they are open again, and
  /// what comes after it as well.
  @Suite(.enabled(if: noOtherUser == nil, "\(noOtherUser ?? "")"))
  struct ClosedTests {
    /// Watched by nobody, of a tree that is root's.
    private func bench() throws -> Bench {
      let bench = try Bench(.real, asNobody: true) { folder in
        for name in ["d", "d/e", "d/e/g", "d/e/g/deep"] {
          try #require(mkdir(folder + "/" + name, 0o755) == 0)
        }
      }
      return bench
    }

    private func mode(_ bench: Bench, _ name: String, _ mode: mode_t) throws {
      try #require(chmod(bench.folder + name, mode) == 0)
    }

    /// The new directories are watched: what comes later is told, too.
    private func requireSight(_ bench: Bench, of names: [String]) throws {
      try bench.awaitLooks(names)
      for name in names {
        try bench.write(name + "/later", "x")
        try bench.awaitLook(name + "/later")
      }
    }

    /// Who may not be read, or not be searched: the directory itself, or one any number of levels above.
    @Test(arguments: ["", "/d", "/d/e", "/d/e/g"], [0o700, 0o744]) func whatIsNewBehindItIsWatched(
      _ closed: String, _ closedMode: Int
    ) throws {
      let bench = try bench()
      try mode(bench, closed, mode_t(closedMode))
      if closed == "/d/e/g" {
        try #require(mkdir(bench.folder + "/d/e/g/fresh", 0o755) == 0)
        try bench.write("d/e/g/fresh/file", "x")
      } else {
        try bench.run("rm", "-rf", bench.folder + "/d/e/g")
        try bench.run("mkdir", "-p", bench.folder + "/d/e/g/fresh")
        try bench.write("d/e/g/fresh/file", "x")
      }
      // Told behind all that happened before it.
      _ = try bench.settle()
      try mode(bench, closed, 0o755)
      try requireSight(bench, of: closed == "/d/e/g" ? ["d/e/g/fresh"] : ["d/e/g", "d/e/g/fresh"])
    }

    /// Above the folder nobody is told of anything: who watches it looks at all of it when it is open again.
    @Test func aClosedWayToTheFolderIsToldAtOnce() throws {
      let bench = try bench()
      try #require(chmod(bench.base, 0o700) == 0)
      try #require(mkdir(bench.folder + "/d/e/fresh", 0o755) == 0)
      #expect(try bench.awaitBlind(.unreadable).contains("Permission denied"))
    }

    /// It loses its watches where it waits, for nobody claims it.
    @Test func whatWasMovedOutAndBackIsWatched() throws {
      let bench = try bench()
      let before = try bench.watchCount()
      try mode(bench, "/d", 0o700)
      try #require(rename(bench.folder + "/d/e/g", bench.base + "/out") == 0)
      try bench.awaitWatches(before - 2)
      try #require(rename(bench.base + "/out", bench.folder + "/d/e/g") == 0)
      _ = try bench.settle()
      try mode(bench, "/d", 0o755)
      try requireSight(bench, of: ["d/e/g", "d/e/g/deep"])
    }

    /// A directory that is watched, and that was to be walked again.
    @Test func aWalkThatWasRefusedIsDoneLater() throws {
      let bench = try bench()
      let pid = try #require(bench.process?.processID)
      try #require(kill(pid, SIGSTOP) == 0)
      try bench.run("rm", "-rf", bench.folder + "/d/e/g")
      try bench.run("mkdir", "-p", bench.folder + "/d/e/g/fresh")
      let limit =
        Int(
          (try? String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8))?
            .trimmingCharacters(in: .newlines) ?? "") ?? 16_384
      for number in 0...(limit | 1) { try mode(bench, "/d/e", number % 2 == 0 ? 0o711 : 0o755) }
      try mode(bench, "/d", 0o700)
      try #require(kill(pid, SIGCONT) == 0)
      _ = try bench.awaitBlind(.overflow)
      try bench.awaitReady()
      try mode(bench, "/d", 0o755)
      try requireSight(bench, of: ["d/e/g", "d/e/g/fresh"])
    }

    /// Its times are nobody's concern, also where one directory in it stays closed.
    @Test func aTouchOfTheFolderAsksForNoLookAtAll() throws {
      let bench = try bench()
      try #require(mkdir(bench.folder + "/closed", 0o700) == 0)
      try bench.awaitLook("closed")
      _ = try bench.settle("before")
      for _ in 0..<5 { try bench.run("touch", bench.folder) }
      let told = try bench.settle("after")
      #expect(!told.contains(.tree(nil)), "\(told)")
    }
  }
}
