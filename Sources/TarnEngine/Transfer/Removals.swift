import TarnCore
import TarnRuntime

/// Moves recorded files to the trash: intents, renames, directories, ledger, in groups. On its caller's thread.
struct Removals {
  let ledger: any LedgerPort
  let folder: any FolderPort
  let clock: any Clock
  let random: any RandomSource
  var ownWrites: OwnWrites?
  /// Of the event of each file that went: `deleted`, or `expired` for what `keep` and `max-age` let go.
  var code = "deleted"

  private var now: Timestamp { Timestamp(nanoseconds: clock.now()) }

  /// - Parameter actions: `delete` or `forget`, each with its row; at most one group.
  /// - Returns: one outcome per action, in order; `forget` gives `removed` with the recorded identity.
  func carryOut(_ actions: [Action]) throws -> [(action: Action, outcome: PublishOutcome)] {
    let deletions = actions.filter { $0.kind == .delete }
    let removals = deletions.compactMap { action -> Removal? in
      guard let present = action.present else { return nil }
      return Removal(path: action.path, expected: present, trashName: random.name())
    }
    let rows = Dictionary(actions.compactMap { $0.row }.map { ($0.path, $0) }) { first, _ in first }
    try ledger.apply(
      removals.compactMap { removal in
        guard let row = rows[removal.path] else { return nil }
        return .intent(
          Intent(
            kind: .remove, path: removal.path, partialName: "", trashName: removal.trashName, row: row,
            displacesOwn: Self.isTarns(row, removal)))
      })
    for removal in removals { ownWrites?.note(removal.path, nil) }
    let outcomes = folder.remove(removals)
    var changes: [LedgerChange] = []
    for (removal, outcome) in zip(removals, outcomes) {
      changes.append(.dropIntent(removal.path))
      if case .removed(let identity, _) = outcome, let row = rows[removal.path] {
        changes += deleted(removal, identity, row)
      }
    }
    let forgotten = actions.filter { $0.kind == .forget }
    let now = self.now
    for action in forgotten {
      changes += [
        .dropRow(action.path), .dropProblem(name: action.path.bytes),
        .event(Event(when: now, code: "forgotten", path: action.path, detail: Self.whyForgotten(action))),
      ]
    }
    try ledger.apply(changes)
    return zip(deletions, outcomes).map { ($0, $1) }
      + forgotten.compactMap { action in action.row.map { (action, .removed($0.identity, leftover: nil)) } }
  }

  private static func whyForgotten(_ action: Action) -> String {
    action.present == nil
      ? "no longer in the feed" : "no longer in the feed; the file stays, for it is not as Tarn placed it"
  }

  private func deleted(_ removal: Removal, _ identity: FileIdentity, _ row: Row) -> [LedgerChange] {
    let now = self.now
    return [
      .dropRow(removal.path), .dropProblem(name: removal.path.bytes), .dropHeldPath(removal.path),
      .trash(
        TrashRow(
          name: removal.trashName, path: removal.path, reason: .deleted,
          isOwn: Self.isTarns(row, removal) && identity.isSameContents(as: removal.expected),
          size: identity.size, when: now, identity: identity)),
      .event(Event(when: now, code: code, path: removal.path, bytes: identity.size)),
    ]
  }

  /// Whether Tarn placed the bytes that are to go. Mode and links may be others.
  private static func isTarns(_ row: Row, _ removal: Removal) -> Bool {
    !row.isAdopted && row.identity.isSameContents(as: removal.expected)
  }
}
