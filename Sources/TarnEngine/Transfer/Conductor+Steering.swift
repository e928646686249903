import TarnCore
import TarnRuntime

/// Orders about single transfers.
extension Conductor {
  /// Carries an order out, or says why there is nothing to do.
  func steer(_ order: PassSteering.Order, _ path: RelativePath) -> PassSteering.Answer {
    guard let (id, job) = jobs.first(where: { $0.value.entry.path == path }), !job.isPublishing else {
      if order == .retry, beginAgain(path) { return .done }
      return steerBeside?(order, path) ?? .notThere
    }
    switch order {
    case .cancel, .pause:
      // What ends already can still be paused; a pause ends it as well.
      guard job.steered == nil || (order == .pause && job.steered == .cancel) else { return .wasSo }
      jobs[id]?.steered = order
      wake(id)
      return .done
    case .retry where job.steered != nil && !isPaused(path):
      jobs[id]?.isWantedAgain = true
      return .done
    case .retry:
      guard delayed.contains(where: { $0.job == id }) else { return .wasSo }
      wake(id)
      return .done
    case .prioritize:
      guard !job.isUrgent else { return .wasSo }
      jobs[id]?.isUrgent = true
      job.download.map(ports.downloader.prioritize)
      return .done
    }
  }

  /// Ends all pauses: a person's wish goes before what a server asked for.
  func hurry() {
    for index in delayed.indices { delayed[index].due = Instant() }
  }

  /// Ends its exchange if it was ended by an order, and its pause.
  private func wake(_ id: UInt64) {
    if jobs[id]?.steered != nil { jobs[id]?.download.map(ports.downloader.cancel) }
    for index in delayed.indices where delayed[index].job == id { delayed[index].due = Instant() }
  }

  /// An order ended it: its bytes are kept, and the entry is told.
  ///
  /// - Returns: false when none did.
  func endSteered(_ id: UInt64) -> Bool {
    guard !stop.isSet, let order = jobs[id]?.steered, let job = jobs.removeValue(forKey: id) else {
      return false
    }
    job.partial?.close()
    space.giveBack(job.reserved)
    if let partial = job.partial { resumable[job.entry.path] = partial.name }
    if order == .pause {
      hold(job.action, ordinal: job.ordinal)
    } else {
      let message = "its transfer was cancelled; the next pass tries again"
      noteNow(fail(job, code: Self.cancelledCode, message: message))
      steeredAway[job.entry.path] = (job.action, job.ordinal, Self.cancelledCode)
    }
    over(job)
    if job.isWantedAgain { _ = beginAgain(job.entry.path) }
    return true
  }

  private static let cancelledCode = "cancelled"
  private static let pausedCode = "paused"

  /// Takes back that an order ended it, or kept it from beginning: its problem is told no more.
  ///
  /// - Returns: false when none did, or this pass begins nothing more.
  private func beginAgain(_ path: RelativePath) -> Bool {
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
    begin(makeJob(action, entry, ordinal: ordinal), mustBegin: true)
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
  private func noteNow(_ problem: Problem) {
    try? ports.ledger.applyVolatile([.problem(problem)])
  }
}
