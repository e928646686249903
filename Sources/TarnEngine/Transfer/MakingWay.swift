import TarnCore

extension Conductor {
  /// A file that Tarn placed, where the feed now has a directory.
  func removeInTheWay(_ action: Action) throws {
    guard deletions == .allowed else { return }
    let removals = Removals(ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random)
    switch try removals.carryOut([action]).first?.outcome {
    case .removed(let identity):
      counts.deleted += 1
      observer.pass(.done(code: action.kind.doneCode, path: action.path, bytes: identity.size))
    case .failed(let failure): stays(action.path, code: failure.code.rawValue, message: failure.message)
    case .stale, .installed, nil:
      stays(
        action.path, code: "changed-meanwhile",
        message: "the file changed while the pass ran; the next pass looks at it again")
    }
  }

  private func stays(_ path: RelativePath, code: String, message: String) {
    stuck[path] = message
    fail(path, code: code, message: message)
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
    counts.countWaiting(problem)
    if problems.count < PassReport.mostProblems { problems.append(problem) }
    observer.pass(.problem(problem))
    return true
  }
}

extension PassCounts {
  /// An entry below a file that stays for now.
  mutating func countWaiting(_ problem: Problem) {
    if problem.kind == .held { waiting += 1 } else { conflict += 1 }
  }
}
