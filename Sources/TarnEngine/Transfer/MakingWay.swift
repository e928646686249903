import TarnCore

/// Whether files that Tarn placed may make way for directories that the feed has in their place: deletions like any
/// other.
enum MakingWay: Equatable {
  case allowed
  /// More than the guard lets go: they are part of a held plan.
  case held(plan: String)
  /// Nothing may be deleted by this pass, and so nothing is held either; why.
  case forbidden(String)
}

extension Conductor {
  /// A file that Tarn placed, where the feed now has a directory.
  func removeInTheWay(_ action: Action) throws {
    guard action.kind == .delete, makingWay == .allowed else { return }
    let removals = Removals(ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random)
    guard case .removed(let identity) = try removals.carryOut([action]).first?.outcome else {
      return stale.append(action)
    }
    counts.deleted += 1
    observer.pass(.done(code: action.kind.doneCode, path: action.path, bytes: identity.size))
  }

  /// An entry below a file that stays for now. The file itself is told by the plan that holds it, or by this.
  func wait(_ action: Action, for blocker: RelativePath) {
    var problem = Problem(
      name: action.path.bytes, kind: .conflict, code: "parent-not-a-directory", message: "", seen: ports.now)
    let file = "\(blocker.printable) is a file, and the feed now has a directory there"
    switch makingWay {
    case .allowed: return
    case .held(let plan):
      counts.waiting += 1
      problem.kind = .held
      problem.code = "waits-for-approval"
      problem.message = "\(file); its deletion is held in plan \(plan)"
    case .forbidden(let reason):
      counts.conflict += 1
      problem.message = "\(file), but nothing is deleted: \(reason)"
    }
    if problems.count < PassReport.mostProblems { problems.append(problem) }
    observer.pass(.problem(problem))
  }
}
