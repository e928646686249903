/// How often a mirror's requests come before those of other mirrors.
package enum TransferPriority: Int, Sendable, Hashable, CaseIterable, Comparable {
  /// `urgent` is for single requests that somebody waits for.
  case low, normal, high, urgent

  /// The number of turns for each turn of the lowest priority.
  package var weight: UInt64 {
    switch self {
    case .low: 1
    case .normal: 4
    case .high: 16
    case .urgent: 64
    }
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
