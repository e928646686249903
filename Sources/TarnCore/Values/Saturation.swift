extension Int {
  /// Returns the sum, limited to the range of the type.
  package func addingSaturated(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    guard overflow else { return sum }
    return other < 0 ? .min : .max
  }

  package func subtractingSaturated(_ other: Int) -> Int {
    let (difference, overflow) = subtractingReportingOverflow(other)
    guard overflow else { return difference }
    return other < 0 ? .max : .min
  }
}

extension UInt64 {
  /// Returns the sum, at most the largest number: sizes that a feed or a sparse file claims may add up to more.
  package func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }

  package mutating func addSaturated(_ other: UInt64) {
    self = addingSaturated(other)
  }
}
