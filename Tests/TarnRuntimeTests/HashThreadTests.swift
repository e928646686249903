import Foundation
import TarnRuntime
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HashThreadTests {
  private final class Client: Sendable {}

  private let hashThread = HashThread(name: "aside")

  @Test func whoHandsOverGoesOn() {
    let (client, name, gate) = (Client(), Locked(""), Gate())
    #expect(
      hashThread.handOver(of: client) {
        name.withLock { $0 = threadName() }
        // Opened by who handed it over: it is back before this is done.
        gate.wait()
      })
    gate.open()
    hashThread.settle(client)
    #expect(name.withLock { $0 } == "aside")
  }

  @Test func allIsDoneInTheOrderInWhichItCame() {
    let (client, done) = (Client(), Locked<[Int]>([]))
    for number in 0..<2000 {
      #expect(hashThread.handOver(of: client) { done.withLock { $0.append(number) } })
    }
    hashThread.settle(client)
    #expect(done.withLock { $0 } == Array(0..<2000))
  }

  /// Bytes that wait to be hashed take memory.
  @Test func whoIsFarAheadWaits() throws {
    let (client, begun, goOn) = (Client(), Gate(), Gate())
    let (count, asked, ahead) = (Locked(0), Locked(0), Locked<ThreadState?>(nil))
    let hashThread = hashThread
    let thread = try WorkerThread.start(name: "ahead") {
      ahead.withLock { $0 = .current }
      for number in 0..<100 {
        asked.withLock { $0 += 1 }
        let isTaken = hashThread.handOver(of: client) {
          begun.open()
          if number == 0 { goOn.wait() }
        }
        if isTaken { count.withLock { $0 += 1 } }
      }
    }
    begun.wait()
    // One is at work, and four wait; so does who would hand over the next.
    #expect(isSoInTime { asked.withLock { $0 } == 6 && ahead.withLock { $0 }?.isAsleep == true })
    #expect(count.withLock { $0 } == 5)
    goOn.open()
    thread.join()
    hashThread.settle(client)
    #expect(count.withLock { $0 } == 100)
  }

  @Test func whoComesMeanwhileIsNotKeptWaiting() {
    let (first, second) = (Client(), Client())
    let (begun, goOn) = (Gate(), Gate())
    #expect(
      hashThread.handOver(of: first) {
        begun.open()
        goOn.wait()
      })
    begun.wait()
    let isDone = Locked(false)
    #expect(!hashThread.handOver(of: second) { isDone.withLock { $0 = true } })
    hashThread.settle(second)
    goOn.open()
    hashThread.settle(first)
    #expect(!isDone.withLock { $0 }, "done, though it was not taken")
  }

  /// Who is refused does the work itself, and nothing that it handed over before may be left then: the order would be lost.
  @Test func theOrderHoldsAmongManyClients() throws {
    let hashThread = hashThread
    // A failed expectation on a thread of its own would belong to no test.
    let (helped, outOfOrder) = (Locked(0), Locked(0))
    let threads = try (0..<3).map { number in
      try WorkerThread.start(name: "lane-\(number)") {
        let (client, seen) = (Client(), Locked(0))
        for round in 0..<5000 {
          let work: @Sendable () -> Void = {
            spin((round &* 37 &+ number) % 100)
            seen.withLock { seen in
              if seen != round { outOfOrder.withLock { $0 += 1 } }
              seen = round + 1
            }
          }
          if hashThread.handOver(of: client, work) { helped.withLock { $0 += 1 } } else { work() }
          if round % 100 == 99 {
            hashThread.settle(client)
            if seen.withLock({ $0 }) != round + 1 { outOfOrder.withLock { $0 += 1 } }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(outOfOrder.withLock { $0 } == 0)
    #expect(helped.withLock { $0 } > 0)
  }

  @Test func whatWasHandedOverIsDoneWhenItsOwnerIsGone() {
    let (done, goOn) = (Gate(), Gate())
    var hashThread: HashThread? = HashThread(name: "short")
    #expect(hashThread?.handOver(of: Client()) { goOn.wait() } == true)
    hashThread = nil
    goOn.open()
    hashThread = HashThread(name: "short")
    #expect(hashThread?.handOver(of: Client()) { done.open() } == true)
    hashThread = nil
    done.wait()
  }
}

/// Some microseconds of work.
private func spin(_ rounds: Int) {
  let sum = Locked(0)
  for round in 0..<rounds { sum.withLock { $0 &+= round } }
}

private func threadName() -> String {
  let name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
  return name.trimmingCharacters(in: .newlines)
}
