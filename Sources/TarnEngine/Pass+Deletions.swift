import TarnCore

/// What of a plan's deletions may go.
extension Pass {
  /// Judges all deletions of the plan as one set: all of them go, or all are held.
  ///
  /// - Returns: what becomes of them, and whom to ask again.
  func judge(
    _ builder: PlanBuilder, _ end: FeedEnd, _ walk: ListingWalk?
  ) throws -> (DeletionVerdict, DeletionHold?) {
    if let reason = whyNothingIsDeleted(builder, isComplete: isComplete(end, walk)) {
      if request.choosesOthers, builder.plannedDeletions > 0 {
        let files = Units.count(builder.plannedDeletions, "file")
        observer.pass(
          .notice(code: "nothing-deleted", message: "\(files) could go, but nothing is deleted: \(reason)"))
      }
      return (.forbidden(reason), nil)
    }
    // What a window lets go is what `keep` and `max-age` ask for.
    guard !builder.isWindow else {
      builder.admitBlocked()
      return (.allowed, nil)
    }
    let earlier = try ports.ledger.fact(.deletingFormat) ?? ports.ledger.fact(.format)
    let hold = try DeletionHold(
      ports, limit: request.policy.deleteLimit, planned: builder.plannedDeletions,
      promised: builder.plannedNew, unfollowed: builder.filteredRows,
      manifestIsEmpty: builder.entriesInFeed == 0 && walk?.hasSkipped != true, formats: (earlier, end.format),
      list: try list(builder))
    if let held = try hold.judge() {
      guard try hold.judge(areReplaced: true) == nil else { return (.held(held), hold) }
      let areInTheWay = builder.hasBlocked || !builder.behindDirectories.isEmpty
      guard areInTheWay else { return (.allowedIfReplaced, hold) }
      // What stands in the way of new files cannot wait for them.
      guard builder.plannedDeletions <= DeletionGuard.least else { return (.held(held), hold) }
    }
    builder.admitBlocked()
    return (.allowed, hold)
  }

  /// The list that is wanted, or else the one that was kept before.
  private func list(_ builder: PlanBuilder) throws -> (path: RelativePath, isWanted: Bool)? {
    if let path = builder.listPath { return (path, true) }
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
  private func whyNothingIsDeleted(_ builder: PlanBuilder, isComplete: Bool) -> String? {
    if request.choosesOthers {
      return
        "these options hold for one pass, and choose other files than the mirror's own; to delete by them, make them the mirror's own"
    }
    if !isComplete, !builder.isWindow { return "the list is not complete" }
    if builder.hasBlindSpot { return "the folder could not be read whole" }
    return request.wasRebuilt ? "the ledger is new" : nil
  }
}
