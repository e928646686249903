import TarnCore

/// What of a plan's deletions may go.
extension Pass {
  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: what becomes of them, and whom to ask again.
  func judge(
    _ feed: inout PlannedFeed
  ) throws -> (DeletionVerdict, DeletionHold?) {
    let plan = feed.plan
    if let reason = whyNothingIsDeleted(plan, isComplete: feed.isComplete) {
      if request.choosesOthers, plan.work.deletions > 0 {
        let files = Units.count(plan.work.deletions, "file")
        observer.pass(
          .notice(code: "nothing-deleted", message: "\(files) could go, but nothing is deleted: \(reason)"))
      }
      return (.forbidden(reason), nil)
    }
    // What a window lets go is what `keep` and `max-age` ask for.
    guard !plan.isWindow else {
      feed.plan.admitBlocked()
      return (.allowed, nil)
    }
    let earlier = try ports.ledger.fact(.deletingFormat) ?? ports.ledger.fact(.format)
    let hold = try DeletionHold(
      ports, limit: request.policy.deleteLimit, planned: plan.work.deletions,
      promised: plan.work.new, unfollowed: plan.filteredRows,
      manifestIsEmpty: plan.feed.entries == 0 && feed.walk?.hasSkipped != true,
      formats: (earlier, feed.end.format), list: try list(plan))
    if let held = try hold.judge() {
      guard try hold.judge(areReplaced: true) == nil else { return (.held(held), hold) }
      let areInTheWay = plan.hasBlocked || !plan.behindDirectories.isEmpty
      guard areInTheWay else { return (.allowedIfReplaced, hold) }
      // What stands in the way of new files cannot wait for them.
      guard plan.work.deletions <= DeletionGuard.least else { return (.held(held), hold) }
    }
    feed.plan.admitBlocked()
    return (.allowed, hold)
  }

  /// The list that is wanted, or else the one that was kept before.
  private func list(_ plan: Plan) throws -> (path: RelativePath, isWanted: Bool)? {
    if let path = plan.feed.listPath { return (path, true) }
    // One that a filter keeps is among the files that are not followed.
    guard let known = try ports.ledger.fact(.keptList), let bytes = Base64.decode(Array(known.utf8)),
      let path = try? RelativePath(bytes), !request.policy.filter.excludes(path)
    else { return nil }
    return (path, false)
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
