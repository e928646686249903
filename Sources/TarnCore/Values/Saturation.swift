extension UInt64 {
  /// The sum, at most the largest number: sizes that a feed or a sparse file claims may add up to more.
  package func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }

  package mutating func addSaturated(_ other: UInt64) {
    self = addingSaturated(other)
  }
}
