import TarnRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct LockTests {
  @Test func countsFromManyThreads() throws {
    let counter = Locked(0)
    let threads = try (0..<4).map { number in
      try WorkerThread.start(name: "count-\(number)") {
        for _ in 0..<1000 { counter.withLock { $0 += 1 } }
      }
    }
    for thread in threads { thread.join() }
    #expect(counter.withLock { $0 } == 4000)
  }

  @Test func lockIsReleasedWhenTheBodyThrows() {
    struct Refused: Error {}
    let value = Locked(1)
    #expect(throws: Refused.self) { try value.withLock { _ throws(Refused) in throw Refused() } }
    #expect(value.withLock { $0 } == 1)
  }

  @Test func changeWakesTheWaiter() throws {
    let number = LockedCondition(0)
    let thread = try WorkerThread.start(name: "changer") {
      for _ in 0..<3 { number.change { $0 += 1 } }
    }
    let seen = number.wait { $0 == 3 ? $0 : nil }
    thread.join()
    #expect(seen == 3)
  }

  @Test func waitGivesUpWhenTheTimePassed() {
    let number = LockedCondition(0)
    #expect(number.wait(atMost: .milliseconds(1)) { $0 > 0 ? $0 : nil } == nil)
    #expect(number.wait(atMost: .seconds(Int64.max)) { _ in true } == true)
  }

  @Test func gateStaysOpen() throws {
    let gate = Gate()
    #expect(!gate.isOpen)
    #expect(!gate.wait(atMost: .nanoseconds(1000)))
    let thread = try WorkerThread.start(name: "opener") { gate.open() }
    gate.wait()
    gate.wait()
    thread.join()
    #expect(gate.isOpen)
  }
}
