/// How many files may be lost in 24 hours before deletions wait for approval (`--delete-limit`).
package enum DeleteLimit: Sendable, Equatable {
  /// A tenth of the rows, at most 1,000: the limit unless one is set.
  case standard
  /// A percentage of the rows, above 0 and at most 100.
  case share(percent: Double)
  /// A number of files, at least `DeletionGuard.least`.
  case count(Int)
  case off

  /// Reads `10%`, a whole number of files, or `off`.
  ///
  /// - Returns: nil for anything else.
  package init?(_ text: String) {
    if text == "off" {
      self = .off
    } else if text.hasSuffix("%") {
      guard let percent = Double(text.dropLast()), percent > 0, percent <= 100 else { return nil }
      self = .share(percent: percent)
    } else {
      guard let count = Int(text), count >= DeletionGuard.least else { return nil }
      self = .count(count)
    }
  }

  package static let expected =
    "a share such as 10%, a number of files of at least \(DeletionGuard.least), or off"

  /// Returns the most files that may be lost of this many rows.
  func most(of rows: Int) -> Int {
    switch self {
    case .standard: min(1000, max(DeletionGuard.least, rows / 10))
    case .share(let percent):
      max(DeletionGuard.least, Int(min(Double(rows) * percent / 100, Double(Int32.max))))
    case .count(let count): max(DeletionGuard.least, count)
    case .off: .max
    }
  }
}
