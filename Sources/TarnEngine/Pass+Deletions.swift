import TarnCore

/// What of a plan's deletions may go.
extension Pass {
  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: what becomes of them, and whom to ask again.
  func judge(
    _ builder: PlanBuilder, _ end: FeedEnd, isComplete: Bool
  ) throws -> (DeletionVerdict, DeletionHold?) {
    if let reason = whyNothingIsDeleted(builder, isComplete: isComplete) { return (.forbidden(reason), nil) }
    // What a window lets go is what `keep` and `max-age` ask for.
    guard !builder.isWindow else {
      builder.admitBlocked()
      return (.allowed, nil)
    }
    let earlier = try ports.ledger.fact(DeletionHold.formatFact) ?? ports.ledger.fact("format")
    let hold = try DeletionHold(
      ports, limit: request.policy.deleteLimit, planned: builder.plannedDeletions,
      promised: builder.plannedNew,
      manifestIsEmpty: builder.entriesInFeed == 0, formats: (earlier, end.format))
    if let held = try hold.judge() {
      let isReplaced = try !builder.hasBlocked && hold.judge(areReplaced: true) == nil
      return (isReplaced ? .allowedIfReplaced : .held(held), hold)
    }
    builder.admitBlocked()
    return (.allowed, hold)
  }

  /// Deletions follow only from a complete manifest, or from the age of a window's files, and a folder that was read
  /// whole. Whether a row is dropped or a file is moved away: neither happens on less.
  ///
  /// - Returns: nil when deletions may follow.
  private func whyNothingIsDeleted(_ builder: PlanBuilder, isComplete: Bool) -> String? {
    if !isComplete, !builder.isWindow { return "the list is not complete" }
    if builder.hasBlindSpot { return "the folder could not be read whole" }
    return request.wasRebuilt ? "the ledger is new" : nil
  }
}
