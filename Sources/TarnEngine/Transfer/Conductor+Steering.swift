import TarnCore
import TarnRuntime

/// Orders about single transfers.
extension Conductor {
  static let cancelledCode = "cancelled"
  static let pausedCode = "paused"

  /// Carries an order out, or says why there is nothing to do.
  func steer(_ order: PassSteering.Order, _ path: RelativePath) throws -> PassSteering.Answer {
    guard let id = state.job(at: path), let job = state.jobs[id], job.state != .publishing else {
      if order == .retry, try beginAgain(path) { return .done }
      return try steerBeside?(order, path) ?? .notThere
    }
    if order == .retry, job.isEnding, !isPaused(path) {
      wantAgain(id)
      return .done
    }
    guard let actions = state.obey(order, id) else { return .wasSo }
    try perform(actions)
    return .done
  }

  /// Takes back that an order ended it, or kept it from beginning: its problem is told no more.
  ///
  /// - Returns: false when none did, or this pass begins nothing more.
  func beginAgain(_ path: RelativePath) throws -> Bool {
    guard !stop.isSet, !isPaused(path), let (action, ordinal, code) = steeredAway.removeValue(forKey: path),
      let entry = action.entry
    else { return false }
    problems.removeAll { $0.code == code && $0.name == path.bytes }
    if code == Self.pausedCode {
      counts.waiting -= 1
    } else {
      counts.failed -= 1
      progress.change { snapshot in
        snapshot.failed -= 1
        if entry.size == nil { snapshot.unknownSizes += 1 }
      }
    }
    early?.settle(path.bytes)
    // A failure is of no account: what publishes it drops the problem, too.
    try? ports.ledger.applyVolatile([.dropProblem(name: path.bytes)])
    try begin(makeJob(action, entry, ordinal: ordinal), mustBegin: true)
    return true
  }

  /// Reports an action that no pass is to begin for now.
  func hold(_ action: Action, ordinal: Int) {
    let problem = Problem(
      name: action.path.bytes, kind: .held, code: Self.pausedCode,
      message: "its transfer is paused until 'tarn resume'", seen: ports.now)
    take(problem)
    noteNow(problem)
    steeredAway[action.path] = (action, ordinal, Self.pausedCode)
  }

  /// Questions beside the pass hear of it now; soon told again, so a failure is of no account here.
  func noteNow(_ problem: Problem) {
    try? ports.ledger.applyVolatile([.problem(problem)])
  }
}
