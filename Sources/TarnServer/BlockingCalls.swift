internal import NIOCore
internal import NIOPosix
package import TarnCore
internal import TarnRuntime

/// Runs the agent's calls, which may block, on threads of their own: never on an event loop or the pool of Swift's tasks.
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

  /// Returns when the call has returned or its time is over. A late call goes on, and its result is dropped.
  ///
  /// - Parameters:
  ///   - loop: the event loop whose clock counts the time.
  ///   - isStream: true for a call of a stream, which is not counted here, because streams are counted themselves.
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
        // The count falls before the answer: a client that has the answer may ask again at once.
        if !isStream { self.count.withLock { $0 -= 1 } }
        finish(outcome)
      }
    }
    return try result.get()
  }

  /// Stops the pool. Waiting calls are given up; running ones go on to their end.
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
  package static let stopping = ControlFailure(.unavailable, code: "stopping", "the agent is ending")
}
