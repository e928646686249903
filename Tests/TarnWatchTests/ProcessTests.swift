import Foundation
import Glibc
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnWatch

extension WatchSuite {
  /// The program's life: its death, its absence, and the end of who started it.
  @Suite struct ProcessTests {
    private func isAlive(_ pid: pid_t) -> Bool { kill(pid, 0) == 0 }

    /// Waits until a process is gone, reaped by whoever has to.
    private func awaitEnd(of pid: pid_t) -> Bool {
      isSoInTime { !isAlive(pid) || isZombie(pid) }
    }

    private func isZombie(_ pid: pid_t) -> Bool {
      let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ") Z"
      return text.split(separator: ")").last?.hasPrefix(" Z") ?? true
    }

    @Test func aKilledProgramIsReportedAndStartedAgain() throws {
      let bench = try Bench(.real)
      let pid = try #require(bench.process?.processID)
      try #require(kill(pid, SIGKILL) == 0)
      #expect(try bench.awaitBlind(.watcherDied).contains("was killed by signal 9"))
      try bench.awaitReady()
      let next = try #require(bench.process?.processID)
      #expect(next != pid && !isAlive(pid))
      try bench.write("file", "x")
      try bench.awaitLook("file")
    }

    /// The system stopped it, or it hangs: nobody would see what happens meanwhile.
    @Test func aProgramThatHangsIsReportedAndStartedAgain() throws {
      let bench = try Bench(.real, longestSilence: .seconds(8))
      let pid = try #require(bench.process?.processID)
      try #require(kill(pid, SIGSTOP) == 0)
      #expect(try bench.awaitBlind(.watcherDied).contains("said nothing any more"))
      try bench.awaitReady()
      let next = try #require(bench.process?.processID)
      #expect(next != pid && !isAlive(pid))
    }

    @Test func aMissingProgramSaysWhereItWasLookedFor() throws {
      let news = LockedCondition<[WatchNews]>([])
      let watcher = try WatcherProcess(places: ["/nowhere/tarn-watch", "/nowhere/else"]) { one in
        news.change { $0.append(one) }
      }
      defer { watcher.close() }
      watcher.watch(WatchID(1), path: Array("/tmp".utf8))
      let first = news.wait(atMost: Bench.deadline) { $0.first }
      guard case .blind(let why) = first?.event else {
        Issue.record("not blind: \(String(describing: first))")
        return
      }
      #expect(why.code == .watcherMissing)
      #expect(why.text.contains("/nowhere/tarn-watch") && why.text.contains("/nowhere/else"))
    }

    @Test func aProgramThatTalksNonsenseIsEnded() throws {
      let news = LockedCondition<[WatchNews]>([])
      // `yes` writes lines without end.
      let watcher = try WatcherProcess(places: ["/usr/bin/yes"]) { one in news.change { $0.append(one) } }
      watcher.watch(WatchID(1), path: Array("/tmp".utf8))
      let first = news.wait(atMost: Bench.deadline) { $0.first }
      guard case .blind(let why) = first?.event else {
        Issue.record("not blind: \(String(describing: first))")
        return
      }
      #expect(why.code == .watcherDied && why.text.contains("not a record"))
      watcher.close()
      #expect(watcher.processID == nil)
    }

    @Test func closingEndsTheProgramAndLeavesNoZombie() throws {
      let bench = try Bench(.real)
      let pid = try #require(bench.process?.processID)
      bench.watcher.close()
      #expect(!isAlive(pid) && bench.process?.processID == nil)
      bench.watcher.close()
      bench.watcher.watch(bench.id, path: Array("/tmp".utf8))
      bench.watcher.forget(bench.id)
    }

    /// The system stops it, or a debugger: it is not waited for.
    @Test func closingEndsAProgramThatStandsStill() throws {
      let bench = try Bench(.real)
      let pid = try #require(bench.process?.processID)
      try #require(kill(pid, SIGSTOP) == 0)
      bench.watcher.close()
      #expect(!isAlive(pid))
    }

    /// Descriptors, environment, signals and privileges of its parent are not the program's.
    @Test func itInheritsNothing() throws {
      let secret = open("/etc/hostname", O_RDONLY)
      try #require(secret >= 0)
      defer { close(secret) }
      let bench = try Bench(.real)
      let pid = try #require(bench.process?.processID)
      let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/fd/\($0)")
      }
      #expect(files.count > 3 && !files.contains("/etc/hostname"), "\(files)")
      let environment = try String(contentsOfFile: "/proc/\(pid)/environ", encoding: .utf8)
      #expect(environment.split(separator: "\0").allSatisfy { $0.hasPrefix("LD_LIBRARY_PATH=") })
      let lines = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8).split(separator: "\n")
      for line in ["SigBlk:\t0000000000000000", "NoNewPrivs:\t1"] {
        #expect(lines.contains { $0 == line }, "\(line)")
      }
      // A terminal's Ctrl-C is not for it.
      #expect(getpgid(pid) == pid && getpgid(0) != pid)
    }

    /// The shell holds the pipes of the program as an agent does, and is killed.
    @Test func theProgramEndsWithItsParent() throws {
      var template = Array("/tmp/tarn-watch-test-XXXXXX".utf8CString)
      let base = try #require(mkdtemp(&template).map { String(cString: $0) })
      defer { try? FileManager.default.removeItem(atPath: base) }
      let script = """
        mkfifo "$1/in" "$1/out"
        "$0" "$1" < "$1/in" > "$1/out" 3>&- 4>&- &
        exec 3> "$1/in" 4< "$1/out"
        echo $! > "$1/pid.new"
        mv "$1/pid.new" "$1/pid"
        read -r never < "$1/in"
        """
      let shell = try Shell.start(["bash", "-c", script, TarnWatchProgram.path, base])
      var pid: pid_t?
      _ = isSoInTime {
        pid = (try? String(contentsOfFile: base + "/pid", encoding: .utf8)).flatMap {
          pid_t($0.split(separator: "\n").first.map(String.init) ?? "")
        }
        return pid != nil
      }
      let program = try #require(pid)
      #expect(isAlive(program))
      kill(shell, SIGKILL)
      var status: Int32 = 0
      waitpid(shell, &status, 0)
      #expect(awaitEnd(of: program))
    }

    /// Also of what came in one piece with the news that made somebody forget it.
    @Test func nothingIsToldOnceAFolderIsForgotten() throws {
      struct Told {
        var watcher: WatcherProcess?
        var readies = 0
        var dirty = 0
      }
      let bench = try Bench(.real, isReady: false)
      let (folder, id) = (bench.base + "/other", WatchID(8))
      try bench.make("../other")
      let told = LockedCondition<Told>(Told())
      let watcher = try WatcherProcess(places: [TarnWatchProgram.path]) { one in
        switch one.event {
        case .ready: told.change { $0.readies += 1 }
        case .dirty, .tree:
          guard one.id == id, told.withLock({ $0.readies > 0 }) else { return }
          told.change { $0.dirty += 1 }
          told.withLock { $0.watcher }?.forget(id)
        case .blind: break
        }
      }
      defer {
        told.change { $0.watcher = nil }
        watcher.close()
      }
      told.change { $0.watcher = watcher }
      watcher.watch(id, path: Array(folder.utf8))
      #expect(told.wait(atMost: Bench.deadline) { $0.readies > 0 ? true : nil } == true)
      let pid = try #require(watcher.processID)
      try #require(kill(pid, SIGSTOP) == 0)
      for number in 0..<100 { try bench.write("../other/\(number)", "x") }
      try #require(kill(pid, SIGCONT) == 0)
      #expect(told.wait(atMost: Bench.deadline) { $0.dirty > 0 ? true : nil } == true)
      // Another folder that is ready says that all before it was read.
      watcher.watch(WatchID(9), path: Array((bench.base + "/folder").utf8))
      #expect(told.wait(atMost: Bench.deadline) { $0.readies > 1 ? true : nil } == true)
      #expect(told.withLock { $0.dirty } == 1)
    }

    /// Also where somebody else still reads what it says.
    @Test func theEndOfItsInputEndsTheProgram() throws {
      let words = ["sh", "-c", "\"$0\" /tmp/nowhere </dev/null >/dev/null", TarnWatchProgram.path]
      #expect(try Shell.run(words) == 0)
    }

    /// Other programs that are started meanwhile do not hold them, and nobody waits for one who does not read.
    @Test func itsPipesAreOursAlone() throws {
      let (ours, theirs) = try #require(WatcherChild.pair())
      defer {
        close(ours)
        close(theirs)
      }
      for end in [ours, theirs] {
        #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0 && fcntl(end, F_GETFL) & O_NONBLOCK != 0)
      }
    }

    @Test func aFolderInTheUsualPlacesIsNone() throws {
      let bench = try Bench(.real, isReady: false)
      let id = WatchID(8)
      bench.watcher.watch(id, path: Array("relative".utf8))
      #expect(try bench.awaitBlind(.error, of: id).contains("not an absolute path"))
    }
  }
}
