import Foundation
import Glibc
import TarnCore
import TarnRuntime
import TarnWatch
import Testing

/// A limit of inotify, lowered for the time of a call.
enum InotifyLimit: String {
  case queue = "max_queued_events"
  case watches = "max_user_watches"
  case instances = "max_user_instances"

  private var path: String { "/proc/sys/fs/inotify/" + rawValue }

  /// Why limits cannot be lowered; nil when they can.
  static let obstacle: String? =
    access("/proc/sys/fs/inotify/max_queued_events", W_OK) == 0
    ? nil : "the limits of inotify are not writable here"

  private func set(_ text: String) throws {
    let file = open(path, O_WRONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    try #require(write(file, text, text.utf8.count) == text.utf8.count)
  }

  func lowered<Result>(to value: Int, _ body: () throws -> Result) throws -> Result {
    let before = try String(contentsOfFile: path, encoding: .utf8)
    try set("\(value)")
    defer { try? set(before) }
    return try body()
  }
}

/// Why nothing can be mounted; nil when it can.
private let mountObstacle: String? = {
  guard geteuid() == 0, (try? Shell.run(["unshare", "--mount", "true"])) == 0 else {
    return "nothing can be mounted here"
  }
  return nil
}()

extension WatchSuite {
  /// What only the real watcher meets.
  @Suite struct LimitTests {
    private func manyDirectories(_ folder: String) throws {
      for number in 0..<20 { try #require(mkdir(folder + "/\(number)", 0o755) == 0) }
    }

    @Test(.enabled(if: InotifyLimit.obstacle == nil, "\(InotifyLimit.obstacle ?? "")"))
    func anOverflowIsToldAndHealed() throws {
      let bench = try InotifyLimit.queue.lowered(to: 16) { try Bench(.real) }
      // The program stands still, so that events pile up.
      let pid = try #require(bench.process?.processID)
      try #require(kill(pid, SIGSTOP) == 0)
      for number in 0..<100 { try bench.make("d\(number)/below") }
      try #require(kill(pid, SIGCONT) == 0)
      #expect(try bench.awaitBlind(.overflow).contains("max_queued_events"))
      // As many as there are, whatever was lost.
      #expect(try bench.awaitReady() == 201)
      try bench.write("d99/below/file", "x")
      try bench.awaitLook("d99/below/file")
    }

    @Test(.enabled(if: InotifyLimit.obstacle == nil, "\(InotifyLimit.obstacle ?? "")"))
    func theLimitOfWatches() throws {
      let clock = ManualClock()
      let bench = try InotifyLimit.watches.lowered(to: 8) {
        let bench = try Bench(.real, clock: clock, isReady: false) { try manyDirectories($0) }
        #expect(try bench.awaitBlind(.watchLimit).contains("max_user_watches"))
        return bench
      }
      // Its time to be tried again comes; the watcher looks at its clock when it is woken.
      clock.advance(.seconds(100))
      bench.watcher.watch(WatchID(1), path: Array((bench.base + "/nothing").utf8))
      #expect(try bench.awaitReady() == 21)
    }

    @Test(.enabled(if: InotifyLimit.obstacle == nil, "\(InotifyLimit.obstacle ?? "")"))
    func theLimitOfInstances() throws {
      let clock = ManualClock()
      let bench = try InotifyLimit.instances.lowered(to: 0) {
        let bench = try Bench(.real, clock: clock, isReady: false)
        #expect(try bench.awaitBlind(.instanceLimit).contains("max_user_instances"))
        return bench
      }
      clock.advance(.seconds(100))
      bench.watcher.watch(WatchID(1), path: Array((bench.base + "/nothing").utf8))
      #expect(try bench.awaitReady() == 1)
    }

    @Test func aFolderReplacedIsBlindAndSeenAgain() throws {
      let clock = ManualClock()
      let bench = try Bench(.real, clock: clock)
      try bench.make("../other/below")
      try #require(rename(bench.folder, bench.base + "/old") == 0)
      try #require(rename(bench.base + "/other", bench.folder) == 0)
      let text = try bench.await("blind") {
        if case .blind(let why) = $0 { why.code == .replaced || why.code == .gone } else { false }
      }
      #expect("\(text)".contains(bench.folder))
      clock.advance(.seconds(7))
      bench.watcher.watch(WatchID(1), path: Array((bench.base + "/nothing").utf8))
      #expect(try bench.awaitReady() == 2)
    }

    @Test func aParentRenamedIsSeen() throws {
      let bench = try Bench(.real, isReady: false)
      let (parent, id) = (bench.base + "/parent", WatchID(8))
      try FileManager.default.createDirectory(atPath: parent + "/a/folder", withIntermediateDirectories: true)
      bench.watcher.watch(id, path: Array((parent + "/a/folder").utf8))
      try bench.await("ready", of: id) { if case .ready = $0 { true } else { false } }
      try #require(rename(parent, parent + "-2") == 0)
      #expect(try bench.awaitBlind(.gone, of: id) != "")
    }

    @Test(.enabled(if: mountObstacle == nil, "\(mountObstacle ?? "")"))
    func aFileSystemUnmounted() throws {
      let bench = try Bench(.real)
      let (mount, id) = (bench.base + "/mount", WatchID(8))
      try #require(mkdir(mount, 0o755) == 0)
      try bench.run("mount", "-t", "tmpfs", "tarn-test", mount)
      var isMounted = true
      defer { if isMounted { _ = try? Shell.run(["umount", mount]) } }
      try #require(mkdir(mount + "/folder", 0o755) == 0)
      bench.watcher.watch(id, path: Array((mount + "/folder").utf8))
      try bench.await("ready", of: id) { if case .ready = $0 { true } else { false } }
      // Not lazily: the watcher does not keep it busy.
      try bench.run("umount", mount)
      isMounted = false
      #expect(try bench.awaitBlind(.unmounted, of: id) != "")
    }

    /// As a scan, which does not go there either.
    @Test(.enabled(if: mountObstacle == nil, "\(mountObstacle ?? "")"))
    func whatIsMountedBelowIsNotEntered() throws {
      let bench = try Bench(.real, isReady: false)
      let (folder, id) = (bench.base + "/other", WatchID(8))
      try FileManager.default.createDirectory(atPath: folder + "/mount", withIntermediateDirectories: true)
      try bench.run("mount", "-t", "tmpfs", "tarn-test", folder + "/mount")
      defer { _ = try? Shell.run(["umount", folder + "/mount"]) }
      try #require(mkdir(folder + "/mount/below", 0o755) == 0)
      bench.watcher.watch(id, path: Array(folder.utf8))
      let ready = try bench.await("ready", of: id) { if case .ready = $0 { true } else { false } }
      #expect(ready == .ready(directories: 1))
    }

    /// It hides what lies there, and gives it back.
    @Test(.enabled(if: mountObstacle == nil, "\(mountObstacle ?? "")"), arguments: [true, false])
    func whatIsMountedBelowIsTold(isDirectory: Bool) throws {
      let bench = try Bench(.real, isReady: false)
      let (folder, id) = (bench.base + "/other with a blank", WatchID(8))
      try FileManager.default.createDirectory(atPath: folder + "/below", withIntermediateDirectories: true)
      for name in ["/file", "/../else"] {
        _ = FileManager.default.createFile(atPath: folder + name, contents: nil)
      }
      bench.watcher.watch(id, path: Array(folder.utf8))
      func isReady(_ event: WatchNews.Event) -> Bool { if case .ready = event { true } else { false } }
      try bench.await("ready", of: id, where: isReady)
      let point = folder + (isDirectory ? "/below" : "/file")
      if isDirectory {
        try bench.run("mount", "-t", "tmpfs", "tarn-test", point)
      } else {
        try bench.run("mount", "--bind", bench.base + "/else", point)
      }
      var isMounted = true
      defer { if isMounted { _ = try? Shell.run(["umount", point]) } }
      try bench.await("ready", of: id, where: isReady)
      try bench.run("umount", point)
      isMounted = false
      #expect(try bench.await("ready", of: id, where: isReady) == .ready(directories: 2))
      let file = folder + "/below/new"
      #expect(FileManager.default.createFile(atPath: file, contents: nil))
      try bench.await("a look", of: id) { event in
        switch event {
        case .dirty(let path), .tree(let path?): path.bytes.starts(with: Array("below".utf8))
        default: false
        }
      }
    }

    @Test func oneDirectoryTwiceIsSaid() throws {
      let bench = try Bench(.real)
      let id = WatchID(8)
      try bench.make("below")
      bench.watcher.watch(id, path: Array((bench.folder + "/below").utf8))
      #expect(try bench.awaitBlind(.error, of: id).contains("in common"))
      try bench.write("below/file", "x")
      try bench.awaitLook("below/file")
    }

    @Test func aThousandLevels() throws {
      let bench = try Bench(.real, isReady: false) { folder in
        var directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        for _ in 0..<1000 {
          try #require(mkdirat(directory, "level", 0o755) == 0)
          let next = openat(directory, "level", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
          close(directory)
          directory = next
        }
        close(directory)
      }
      #expect(try bench.awaitReady() == 1001)
      let pid = try #require(bench.process?.processID)
      #expect(try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count < 20)
    }
  }
}
