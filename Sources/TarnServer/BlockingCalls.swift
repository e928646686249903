internal import NIOCore
internal import NIOPosix
internal import TarnCore
internal import TarnRuntime

/// Calls of the agent, which may block, on threads of their own: never on an event loop or the pool of Swift's tasks.
final class BlockingCalls: Sendable {
  private let pool: NIOThreadPool
  private let most: Int
  private let time: TimeAmount
  private let count = Locked(0)

  init(_ limits: ControlLimits) {
    pool = NIOThreadPool(numberOfThreads: limits.calls)
    most = limits.calls + limits.waiting
    time = TimeAmount(limits.answering)
    pool.start()
  }

  /// Returns when the call has or its time is over; the call itself goes on then, and its result is dropped.
  ///
  /// - Parameters:
  ///   - loop: whose clock counts the time.
  ///   - isStream: not among those that are counted, for streams are counted themselves.
  func run<Value: Sendable>(
    on loop: any EventLoop, isStream: Bool = false,
    _ body: @escaping @Sendable () throws(ControlFailure) -> Value
  ) async throws(ControlFailure) -> Value {
    guard isStream || enter() else {
      throw ControlFailure(
        .unavailable, code: "busy", "the agent has too many requests at once", hint: "try again")
    }
    let once = Locked<CheckedContinuation<Outcome<Value>, Never>?>(nil)
    let finish: @Sendable (Outcome<Value>) -> Void = { outcome in
      let waiting = once.withLock { waiting in
        defer { waiting = nil }
        return waiting
      }
      waiting?.resume(returning: outcome)
    }
    let late = loop.scheduleTask(in: time) {
      finish(
        .failure(
          ControlFailure(
            .unavailable, code: "answer-timed-out",
            "the agent did not answer in time; what was asked for may still be done")))
    }
    defer { late.cancel() }
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<Outcome<Value>, Never>) in
      once.withLock { $0 = continuation }
      pool.submit { state in
        let outcome: Outcome<Value>
        do throws(ControlFailure) {
          guard state == .active else { throw .stopping }
          outcome = .success(try body())
        } catch {
          outcome = .failure(error)
        }
        // Before the answer: a client that has it may ask again at once.
        if !isStream { self.count.withLock { $0 -= 1 } }
        finish(outcome)
      }
    }
    return try result.get()
  }

  /// What waits is given up; what runs goes on to its end.
  func stop() { pool.shutdownGracefully { _ in } }

  private typealias Outcome<Value> = Result<Value, ControlFailure>

  private func enter() -> Bool {
    count.withLock { count in
      guard count < most else { return false }
      count += 1
      return true
    }
  }
}

extension ControlFailure {
  static let stopping = ControlFailure(.unavailable, code: "stopping", "the agent is ending")
}
