/// How many deletions go through without being asked for (I8): over a window of 24 hours at most
/// max(1, floor(10 % of rows)) and never more than 1,000. Beyond it the whole set is held.
package enum DeletionGuard {
  package static let window: Int64 = 24 * 3600
  package static let most = 1000

  package enum Verdict: Sendable, Equatable {
    case allow
    /// The most that would have gone through now.
    case hold(limit: Int)
  }

  /// - Parameters:
  ///   - planned: deletions of this pass.
  ///   - recent: deletions in the window before it.
  ///   - rows: files recorded before the pass.
  ///   - manifestIsEmpty: a complete manifest that names nothing: then nothing goes unasked.
  package static func judge(planned: Int, recent: Int, rows: Int, manifestIsEmpty: Bool) -> Verdict {
    guard planned > 0 else { return .allow }
    if manifestIsEmpty { return .hold(limit: 0) }
    // The share is of the rows that there were before the deletions of the window.
    let gone = max(0, recent)
    let (before, overflow) = max(0, rows).addingReportingOverflow(gone)
    let limit = overflow ? most : min(most, max(1, before / 10))
    let left = max(0, limit - gone)
    return planned <= left ? .allow : .hold(limit: left)
  }
}
