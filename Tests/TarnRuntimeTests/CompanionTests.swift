import Foundation
import TarnRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct CompanionTests {
  private struct Told: Error {}

  @Test func bothAreDoneAtTheSameTime() throws {
    let companion = Companion(name: "aside")
    let (begun, ended) = (Gate(), Gate())
    let names = Locked<[String]>([])
    companion.share {
      names.withLock { $0.append(threadName()) }
      begun.open()
      ended.wait()
    } _: {
      begun.wait()
      ended.open()
    }
    #expect(names.withLock { $0 } == ["aside"])
  }

  /// Each time both are over when it returns, whoever did them.
  @Test func nothingIsLeftBehind() {
    let companion = Companion(name: "aside")
    let done = Locked((aside: 0, own: 0))
    for number in 1...2000 {
      companion.share {
        done.withLock { $0.aside += 1 }
      } _: {
        done.withLock { $0.own += 1 }
      }
      #expect(done.withLock { $0.aside == number && $0.own == number })
    }
  }

  @Test func whoComesMeanwhileIsNotKeptWaiting() throws {
    let companion = Companion(name: "aside")
    let (begun, over) = (Gate(), Gate())
    let first = try WorkerThread.start(name: "first") {
      companion.share {
        begun.open()
        over.wait()
      } _: {
        // Else this thread might do it itself.
        begun.wait()
      }
    }
    begun.wait()
    let name = Locked("")
    companion.share {
      name.withLock { $0 = threadName() }
    } _: {
    }
    #expect(name.withLock { $0 } != "aside" && name.withLock { !$0.isEmpty })
    over.open()
    first.join()
  }

  /// Where another one's work was handed over meanwhile, it is neither done for that one nor waited for.
  @Test func whoIsDoneIsNotKeptByTheNext() throws {
    let companion = Companion(name: "aside")
    let (isHelped, isHandedOver, isBack) = (Gate(), Gate(), Gate())
    let wasBack = Locked(false)
    let second = Locked<WorkerThread?>(nil)
    let first = try WorkerThread.start(name: "first") {
      companion.share {
        isHelped.open()
      } _: {
        isHelped.wait()
        let thread = try? WorkerThread.start(name: "second") {
          companion.share {
            let isInTime = isBack.wait(nanoseconds: 10_000_000_000)
            wasBack.withLock { $0 = isInTime }
          } _: {
            isHandedOver.open()
          }
        }
        second.withLock { $0 = thread }
        isHandedOver.wait()
      }
      isBack.open()
    }
    first.join()
    second.withLock { $0 }?.join()
    #expect(wasBack.withLock { $0 })
  }

  /// Who is done early takes back its own work, not what another one handed over meanwhile: that one would go on before it is done.
  @Test func twoThatShareItDoNotTakeEachOthersWork() throws {
    let companion = Companion(name: "aside")
    let early = Locked(0)
    let threads = try (0..<3).map { number in
      try WorkerThread.start(name: "lane-\(number)") {
        for round in 0..<5000 {
          let isDone = Locked(false)
          companion.share {
            spin((round &* 37 &+ number) % 300)
            isDone.withLock { $0 = true }
          } _: {
            spin((round &* 131 &+ number) % 3000)
          }
          if !isDone.withLock({ $0 }) { early.withLock { $0 += 1 } }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(early.withLock { $0 } == 0)
  }

  @Test func aFailureIsThrownOnceBothAreDone() {
    let companion = Companion(name: "aside")
    let isDone = Locked(false)
    for _ in 0..<100 {
      isDone.withLock { $0 = false }
      #expect(throws: Told.self) {
        try companion.share {
          isDone.withLock { $0 = true }
        } _: { () throws(Told) in
          throw Told()
        }
      }
      #expect(isDone.withLock { $0 })
    }
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
