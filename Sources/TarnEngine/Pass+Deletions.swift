import TarnCore

/// What of a plan's deletions may go.
extension Pass {
  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: what becomes of them, and whom to ask again.
  func judge(_ feed: PlannedFeed) throws -> (DeletionVerdict, DeletionHold?) {
    let plan = feed.plan
    if let reason = whyNothingIsDeleted(plan, isComplete: feed.isComplete) {
      if request.choosesOthers, plan.work.deletions > 0 {
        let files = Units.count(plan.work.deletions, "file")
        observer.notice("nothing-deleted", "\(files) could go, but nothing is deleted: \(reason)")
      }
      return (.forbidden(reason), nil)
    }
    // What a window lets go is what `keep` and `max-age` ask for.
    guard !plan.isWindow else {
      feed.plan.admitBlocked()
      return (.allowed, nil)
    }
    let hold = try DeletionHold(ports, request.policy, feed)
    if let held = try hold.judge() {
      guard try hold.judge(areReplaced: true) == nil else { return (.held(held), hold) }
      guard plan.makesWay else { return (.allowedIfReplaced, hold) }
      // What stands in the way of new files cannot wait for them.
      guard plan.work.deletions <= DeletionGuard.least else { return (.held(held), hold) }
    }
    feed.plan.admitBlocked()
    return (.allowed, hold)
  }

  /// Deletions follow only from the mirror's own options, from a complete manifest, or from the age of a window's files, and a folder that was read
  /// whole. Whether a row is dropped or a file is moved away: neither happens on less.
  ///
  /// - Returns: nil when deletions may follow.
  private func whyNothingIsDeleted(_ plan: Plan, isComplete: Bool) -> String? {
    if request.choosesOthers {
      return
        "these options hold for one pass, and choose other files than the mirror's own; to delete by them, make them the mirror's own"
    }
    if !isComplete, !plan.isWindow { return "the list is not complete" }
    if plan.hasBlindSpot { return "the folder could not be read whole" }
    return request.wasRebuilt ? "the ledger is new" : nil
  }
}
