/// Decides when a failed transfer is tried again: exponential back-off with full jitter, and `Retry-After` up to a limit. Pure.
package struct RetryPolicy: Sendable, Equatable {
  /// The number of attempts after the first.
  package var retries: Int
  /// The ceiling of the first pause in seconds, doubled for each further one.
  package var base: Double = 0.5
  /// The highest ceiling, in seconds.
  package var most: Double = 30
  /// The most seconds to wait for a server that asks for a pause.
  package var mostAsked: Int64 = 120
  /// The most seconds to wait for a host that is left alone because it failed.
  package var mostRest: Int64 = 60

  package init(retries: Int) {
    self.retries = retries
  }

  package enum Verdict: Sendable, Equatable {
    /// Try again after so many seconds.
    case retry(after: Double)
    case giveUp
  }

  /// - Parameters:
  ///   - attempt: the attempts so far, at least 1.
  ///   - asked: Retry-After in seconds, or how long the host is left alone.
  ///   - isResting: true when the host was not asked at all because it is left alone.
  ///   - random: a number in 0..<1.
  package func judge(
    attempt: Int, isTransient: Bool, asked: Int64?, isResting: Bool = false, random: Double
  ) -> Verdict {
    guard isTransient, attempt <= retries else { return .giveUp }
    let ceiling = min(most, base * Double(1 << (min(max(attempt, 1), 21) - 1)))
    let pause = ceiling * random
    guard let asked else { return .retry(after: pause) }
    guard asked <= (isResting ? mostRest : mostAsked) else { return .giveUp }
    return .retry(after: max(Double(asked), pause))
  }
}
