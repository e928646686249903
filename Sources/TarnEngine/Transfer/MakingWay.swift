import TarnCore

extension Conductor {
  /// A file that Tarn placed, where the feed now has a directory.
  func removeInTheWay(_ action: Action) throws {
    guard deletions == .allowed else { return }
    let removals = Removals(
      ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random,
      ownWrites: ports.ownWrites)
    let outcome = try removals.carryOut([action]).first?.outcome ?? .stale("not there")
    let problem = observer.take(
      outcome, of: action, seen: ports.now, into: &problems, counting: &counts)
    guard let problem else { return }
    early?.tell(problem)
    stuck[action.path] = problem.message
    progress.change { $0.failed += 1 }
  }

  /// Whether an entry lies below a file that stays for now; then it waits, or has failed.
  func isBlocked(_ action: Action, by blocker: RelativePath) -> Bool {
    if let reason = stuck[blocker] {
      fail(
        action.path, code: FolderFailure.Code.notDirectory.rawValue,
        message: "\(DeletionVerdict.inTheWay(blocker)), but it could not make way: \(reason)")
      return true
    }
    guard let problem = deletions.problem(of: action.path, below: blocker, seen: ports.now) else {
      return false
    }
    take(problem)
    return true
  }
}
