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
  ///   - again: the deletions from the first on, once more.
  ///   - planned: how many of the actions are deletions.
  ///   - rows: files recorded before the pass.
  func run(
    first: Action, rest: any ActionCursor, again: () throws -> any ActionCursor, planned: Int, rows: Int,
    manifestIsEmpty: Bool
  ) throws -> Result {
    let now = ports.now
    let recent = try ports.ledger.eventCount(
      code: "deleted", since: now.adding(seconds: -DeletionGuard.window))
    let verdict = DeletionGuard.judge(
      planned: planned, recent: recent, rows: rows, manifestIsEmpty: manifestIsEmpty)
    switch verdict {
    case .allow: return try carryOut(first: first, rest: rest)
    case .hold: return try hold(first: first, rest: rest, again: again, now: now)
    }
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
  private func hold(
    first: Action, rest: any ActionCursor, again: () throws -> any ActionCursor, now: Timestamp
  ) throws -> Result {
    let hasher = ports.hashing.hasher(.sha256)
    var count = 0
    var next: Action? = first
    while let action = next {
      if action.kind == .delete {
        count += 1
        (action.path.bytes + [0] + (action.row?.digest.bytes ?? [])).withUnsafeBytes { hasher.update($0) }
      }
      next = try rest.next()
    }
    let plan = HeldPlan(id: String(hasher.finish().hex.prefix(8)), when: now, count: count)
    // The paths first, in parts: without its plan a path means nothing, and there may be millions.
    var changes: [LedgerChange] = []
    let cursor = try again()
    while let action = try cursor.next() {
      guard action.kind == .delete, action.phase == .deletion else { continue }
      changes.append(.heldPath(plan: plan.id, path: action.path))
      if changes.count >= Self.mostAtOnce {
        try ports.ledger.apply(changes)
        changes = []
      }
    }
    changes += [
      .hold(plan),
      .event(
        Event(
          when: now, code: "deletions-held", bytes: nil,
          detail: "plan \(plan.id): \(plan.count) deletions wait for approval")),
    ]
    try ports.ledger.apply(changes)
    var result = Result()
    result.held = plan
    return result
  }
}
