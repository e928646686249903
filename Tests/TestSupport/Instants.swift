package import TarnCore

/// A test says nanoseconds, from an arbitrary start.
extension Instant: ExpressibleByIntegerLiteral {
  package init(integerLiteral nanoseconds: UInt64) { self.init(nanoseconds: nanoseconds) }
}

extension Instant {
  /// So many seconds after the start.
  package static func at(_ seconds: Int) -> Instant { Instant() + .seconds(seconds) }

  /// A nanosecond before that.
  package static func before(_ seconds: Int) -> Instant { at(seconds) + .nanoseconds(-1) }
}
