import TarnCore

/// The last step of a pass: what a complete manifest no longer names goes to the trash, if the guard lets it.
/// On the pass's thread.
struct Deletions {
  let ports: PassPorts
  let folder: any FolderPort
  let observer: any PassObserver
  let stop: StopFlag

  struct Result {
    var deleted = 0
    var forgotten = 0
    var held: HeldPlan?
    /// Not as the plan saw them: left where they are, for the next pass.
    var changed: [RelativePath] = []
    var problems: [Problem] = []
  }

  /// - Parameters:
  ///   - first: the first action, taken from `rest` already.
  ///   - again: all actions of the plan, once more.
  ///   - planned: how many of the actions are deletions.
  ///   - rows: files recorded before the pass.
  func run(
    first: Action, rest: any ActionCursor, again: () throws -> any ActionCursor, planned: Int, rows: Int,
    manifestIsEmpty: Bool
  ) throws -> Result {
    switch try judge(planned: planned, rows: rows, manifestIsEmpty: manifestIsEmpty) {
    case .allow: return try carryOut(first: first, rest: rest)
    case .hold: return Result(held: try hold(from: .deletion, again))
    }
  }

  /// - Parameter rows: files recorded before the pass.
  func judge(planned: Int, rows: Int, manifestIsEmpty: Bool) throws -> DeletionGuard.Verdict {
    let recent = try ports.ledger.eventCount(
      code: "deleted", since: ports.now.adding(seconds: -DeletionGuard.window))
    return DeletionGuard.judge(
      planned: planned, recent: recent, rows: rows, manifestIsEmpty: manifestIsEmpty)
  }

  private func carryOut(first: Action, rest: any ActionCursor) throws -> Result {
    var result = Result()
    let removals = Removals(ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random)
    var next: Action? = first
    while next != nil, !stop.isSet {
      var group: [Action] = []
      while let action = next, group.count < PublishThread.largestGroup {
        group.append(action)
        next = try rest.next()
      }
      for (action, outcome) in try removals.carryOut(group) { take(outcome, of: action, into: &result) }
    }
    return result
  }

  private func take(_ outcome: PublishOutcome, of action: Action, into result: inout Result) {
    switch outcome {
    case .removed(let identity):
      if action.kind == .delete { result.deleted += 1 } else { result.forgotten += 1 }
      observer.pass(.done(code: action.kind.doneCode, path: action.path, bytes: identity.size))
    case .failed(let failure):
      let problem = Problem(
        name: action.path.bytes, kind: .failed, code: failure.code.rawValue, message: failure.message,
        seen: ports.now)
      result.problems.append(problem)
      observer.pass(.problem(problem))
    case .stale, .installed:
      result.changed.append(action.path)
    }
  }

  /// Changes in one transaction.
  private static let mostAtOnce = 4096

  /// Keeps the set under an id of its paths and digests. `forget` needs no asking: nothing is lost by it, but it
  /// waits with the others, so that the set stays one.
  ///
  /// - Parameters:
  ///   - phase: `deletion`, or `payload` for what makes way for directories as well.
  ///   - actions: all of the plan, from the first on at each call.
  func hold(from phase: Action.Phase, _ actions: () throws -> any ActionCursor) throws -> HeldPlan {
    let hasher = ports.hashing.hasher(.sha256)
    var count = 0
    try eachDeletion(from: phase, of: actions()) { action in
      count += 1
      (action.path.bytes + [0] + (action.row?.digest.bytes ?? [])).withUnsafeBytes { hasher.update($0) }
    }
    let plan = HeldPlan(id: String(hasher.finish().hex.prefix(8)), when: ports.now, count: count)
    // The paths first, in parts: without its plan a path means nothing, and there may be millions.
    var changes: [LedgerChange] = []
    try eachDeletion(from: phase, of: actions()) { action in
      changes.append(.heldPath(plan: plan.id, path: action.path))
      guard changes.count >= Self.mostAtOnce else { return }
      try ports.ledger.apply(changes)
      changes = []
    }
    changes += [
      .hold(plan),
      .event(
        Event(
          when: plan.when, code: "deletions-held", bytes: nil,
          detail: "plan \(plan.id): \(Units.count(plan.count, "deletion")) held until approved")),
    ]
    try ports.ledger.apply(changes)
    return plan
  }

  private func eachDeletion(
    from phase: Action.Phase, of actions: any ActionCursor, _ body: (Action) throws -> Void
  ) throws {
    while let action = try actions.next() {
      if action.kind == .delete, action.phase >= phase { try body(action) }
    }
  }
}
