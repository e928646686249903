import Foundation
import Glibc
import TarnRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct ThreadTests {
  @Test func threadHasItsNameAndSignalsBlocked() throws {
    let seen = Locked((name: "", blocksTerm: false, blocksFault: true))
    let thread = try WorkerThread.start(name: "a-name-that-is-too-long") {
      let name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
      var set = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &set)
      let result = (name, sigismember(&set, SIGTERM) == 1, sigismember(&set, SIGSEGV) == 1)
      seen.withLock { $0 = result }
    }
    thread.join()
    thread.join()
    seen.withLock {
      #expect($0.name == "a-name-that-is-\n")
      #expect($0.blocksTerm)
      #expect(!$0.blocksFault)
    }
  }

  @Test func joinFromManyThreads() throws {
    let gate = Gate()
    let thread = try WorkerThread.start(name: "joined") { gate.wait() }
    let joiners = try (0..<3).map { _ in try WorkerThread.start(name: "joiner") { thread.join() } }
    gate.open()
    for joiner in joiners { joiner.join() }
  }

  @Test func lanesKeepTheirOrder() throws {
    let lanes = try Lanes(name: "lane", count: 3)
    let seen = Locked([[Int]](repeating: [], count: 3))
    for number in 0..<300 {
      lanes.submit(lane: number % 3) { seen.withLock { $0[number % 3].append(number) } }
    }
    lanes.close()
    for lane in 0..<3 {
      #expect(seen.withLock { $0[lane] } == Array(stride(from: lane, to: 300, by: 3)))
    }
  }

  @Test func aBusyLaneDoesNotHoldAnother() throws {
    let lanes = try Lanes(name: "lane", count: 2)
    let busy = Gate()
    let done = Gate()
    lanes.submit(lane: 0) { busy.wait() }
    lanes.submit(lane: 1) { done.open() }
    done.wait()
    busy.open()
    lanes.close()
  }

  @Test func closedLanesRefuseWork() throws {
    let lanes = try Lanes(name: "lane", count: 1)
    lanes.close()
    lanes.close()
    #expect(!lanes.submit(lane: 0) {})
    #expect(!lanes.submit(lane: -7) {})
  }

  @Test func signalWatchHandlesOnItsThread() throws {
    // A real-time signal on a thread of its own, so that the test runner's signals stay as they are.
    let number: Int32 = 40
    let seen = LockedCondition<[Int32]>([])
    let thread = try WorkerThread.start(name: "watched") {
      let watch = try? SignalWatch([number]) { signal in seen.change { $0.append(signal) } }
      watch?.deliver(number)
      seen.wait { $0.isEmpty ? nil : () }
      watch?.stop()
    }
    thread.join()
    #expect(seen.withLock { $0 } == [number])
  }
}
