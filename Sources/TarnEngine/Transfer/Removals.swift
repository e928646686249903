import TarnCore
import TarnRuntime

/// Moves recorded files to the trash in groups: intents, renames, directories, ledger. Runs on the caller's thread.
struct Removals {
  let ledger: any TransferLedger
  let folder: any TransferFolder
  let clock: any Clock
  let random: any RandomSource
  var ownWrites: OwnWrites?
  /// The code of the event for each removed file: `deleted`, or `expired` when `keep` or `max-age` demands it.
  var code = "deleted"

  /// - Parameter actions: actions of kind `delete` or `forget`, each with its row; at most one group.
  /// - Returns: the outcomes of the deletions and then of the `forget` actions. The latter are `removed` with the recorded
  ///   identity, or `stale` when the file is there as it is recorded by now, or nobody can look.
  func carryOut(_ actions: [Action]) throws -> [(action: Action, outcome: PublishOutcome)] {
    let deletions = actions.compactMap { action -> (action: Action, row: Row, removal: Removal)? in
      guard action.kind == .delete, let row = action.row, let present = action.present else { return nil }
      return (action, row, Removal(path: action.path, expected: present, trashName: random.name()))
    }
    let removals = deletions.map(\.removal)
    try ledger.apply(
      deletions.map { _, row, removal in
        .intent(
          Intent(
            kind: .remove, path: removal.path, partialName: "", trashName: removal.trashName, row: row,
            displacesOwn: Self.isTarns(row, removal)))
      })
    for removal in removals { ownWrites?.note(removal.path, nil) }
    let outcomes = folder.remove(removals)
    var changes: [LedgerChange] = []
    for (deletion, outcome) in zip(deletions, outcomes) {
      let removal = deletion.removal
      if case .removed(let identity, _) = outcome {
        changes += deleted(removal, identity, deletion.row)
      } else {
        ownWrites?.withdraw(removal.path)
        // `Recovery` finishes what failed halfway.
        if case .failed = outcome, folder.mayHoldInTrash(removal.trashName) { continue }
      }
      changes.append(.dropIntent(removal.path))
    }
    let forgotten = try actions.compactMap { action -> (action: Action, outcome: PublishOutcome)? in
      guard action.kind == .forget, let row = action.row else { return nil }
      let kept = try reasonToKeep(action.path).map { PublishOutcome.stale($0) }
      return (action, kept ?? .removed(row.identity, leftover: nil))
    }
    for case (let action, .removed) in forgotten {
      changes += [
        .dropRow(action.path), .dropProblem(name: action.path.bytes),
        .event(
          when: clock.time, code: "forgotten", path: action.path,
          detail: (code == "expired" ? "no longer wanted" : "no longer in the feed")
            + (action.present == nil ? "" : "; the file stays, because it is not as Tarn placed it")),
      ]
    }
    try ledger.apply(changes)
    return zip(deletions, outcomes).map { ($0.action, $1) } + forgotten
  }

  /// Returns why a row is not forgotten; `nil` when its file is gone. A repair has brought the file since the plan, somebody has put it
  /// back, or nobody can look. Only another plan decides about it.
  private func reasonToKeep(_ path: RelativePath) throws -> String? {
    guard let row = try ledger.row(path) else { return nil }
    do throws(FolderFailure) {
      guard let present = try folder.look(path), present.kind == .regular,
        row.identity.isSameContents(as: present.identity)
      else { return nil }
      return "the file is there again"
    } catch {
      return "nobody can tell whether the file is there: \(error.message)"
    }
  }

  private func deleted(_ removal: Removal, _ identity: FileIdentity, _ row: Row) -> [LedgerChange] {
    let now = clock.time
    return [
      .dropRow(removal.path), .dropProblem(name: removal.path.bytes), .dropHeldPath(removal.path),
      .trash(
        TrashRow(
          name: removal.trashName, path: removal.path, reason: .deleted,
          isOwn: Self.isTarns(row, removal) && identity.isSameContents(as: removal.expected),
          size: identity.size, when: now, identity: identity)),
      .event(when: now, code: code, path: removal.path, bytes: identity.size),
    ]
  }

  /// Returns whether Tarn placed the bytes that are removed. Mode and links may differ.
  private static func isTarns(_ row: Row, _ removal: Removal) -> Bool {
    !row.isAdopted && row.identity.isSameContents(as: removal.expected)
  }
}
