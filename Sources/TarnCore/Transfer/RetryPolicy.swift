/// When a failed transfer is tried again: exponential back-off with full jitter; `Retry-After` is honoured up
/// to a cap. Pure.
package struct RetryPolicy: Sendable, Equatable {
  /// Attempts after the first.
  package var retries: Int
  /// Seconds: the ceiling of the first pause, doubled for each further one.
  package var base: Double = 0.5
  /// Seconds: no ceiling is higher.
  package var most: Double = 30
  /// Seconds: a server that asks for more is not waited for.
  package var mostAsked: Int64 = 120
  /// Seconds: a host that is left alone for longer, because nothing came of asking it, is not waited for.
  package var mostRest: Int64 = 60

  package init(retries: Int) {
    self.retries = retries
  }

  package enum Verdict: Sendable, Equatable {
    /// Seconds to wait first.
    case retry(after: Double)
    case giveUp
  }

  /// - Parameters:
  ///   - attempt: attempts made so far, at least 1.
  ///   - asked: Retry-After in seconds, or how long the host is left alone.
  ///   - isResting: it was not asked at all, because it is left alone.
  ///   - random: in 0..<1.
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
