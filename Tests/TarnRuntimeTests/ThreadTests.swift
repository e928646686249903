import Glibc
import TarnRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct ThreadTests {
  @Test func threadHasItsNameAndSignalsBlocked() throws {
    let seen = Locked((name: "", blocksTerm: false, blocksFault: true))
    let thread = try WorkerThread.start(name: "a-name-that-is-too-long") {
      var name = [CChar](repeating: 0, count: 64)
      pthread_getname_np(pthread_self(), &name, name.count)
      var set = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &set)
      let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      let result = (
        String(decoding: bytes, as: UTF8.self), sigismember(&set, SIGTERM) == 1,
        sigismember(&set, SIGSEGV) == 1
      )
      seen.withLock { $0 = result }
    }
    thread.join()
    thread.join()
    seen.withLock {
      #expect($0.name == "a-name-that-is-")
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
    // A real-time signal, so that the test runner's own signals stay as they are.
    let number: Int32 = 40
    let seen = LockedCondition<[Int32]>([])
    let thread = try WorkerThread.start(name: "watched") {
      // Each thread has all blocked here; only the watch takes the signal.
      let watch = try? SignalWatch([number]) { signal in seen.change { $0.append(signal) } }
      kill(getpid(), number)
      seen.wait { $0.isEmpty ? nil : () }
      watch?.stop()
    }
    thread.join()
    #expect(seen.withLock { $0 } == [number])
  }
}
