extension StatusDocument {
  /// All values of `state`.
  package static let states = [
    "idle", "reading", "planning", "transferring", "publishing", "deleting", "verifying", "paused", "held",
    "failing", "interrupted",
  ]
}

extension MetricsPage {
  /// Adds the state of the agent itself.
  package mutating func add(_ agent: AgentDocument) {
    set(.build, 1, agent.version)
    set(.agentStart, Timestamp(rfc3339: agent.started))
    set(.settingsRead, Timestamp(rfc3339: agent.settingsRead))
    set(.settingsRejected, !agent.rejected.isEmpty)
    set(.passesAtWork, agent.passes)
    set(.transfers, agent.transfers, "running")
    set(.transfers, agent.waiting, "waiting")
    set(.restingHosts, Set(agent.restingHosts.map(\.host)).count)
  }

  /// Adds the status of a mirror.
  package mutating func add(_ mirror: StatusDocument) {
    let name = mirror.name
    func time(_ text: String?) -> Timestamp? { text.flatMap { Timestamp(rfc3339: $0) } }
    set(.mirror, 1, name, mirror.format ?? "")
    for state in StatusDocument.states { set(.state, mirror.state == state, name, state) }
    set(.lastSuccess, time(mirror.lastSuccess), name)
    set(.lastAttempt, time(mirror.lastAttempt), name)
    set(.nextRun, time(mirror.nextRun), name)
    set(.verified, time(mirror.verifiedAt), name)
    set(.feedChanged, time(mirror.upstreamChangedAt), name)
    let entries = mirror.entries
    for (state, count) in [
      ("current", entries.current), ("pending", entries.pending), ("failed", entries.failed),
      ("refused", entries.refused), ("conflict", entries.conflict), ("kept", entries.kept),
    ] {
      set(.files, count, name, state)
    }
    set(.bytes, mirror.bytes.current, name, "current")
    if let pending = mirror.bytes.pending { set(.bytes, pending, name, "pending") }
    let waiting = mirror.waitingTransfers ?? 0
    set(.mirrorTransfers, mirror.transfers.count { !$0.isWaiting }, name, "running")
    set(.mirrorTransfers, waiting, name, "waiting")
    set(.heldDeletions, mirror.held?.deletions ?? 0, name)
    set(.heldSince, time(mirror.held?.since), name)
    set(.trashFiles, mirror.trashFiles, name)
    set(.trashBytes, mirror.trashBytes, name)
    if mirror.watch.mode != "off" { set(.watched, mirror.watch.mode == "watching", name) }
  }

  /// - Parameter received: the bytes received for the session.
  package mutating func add(_ session: SessionDocument, received: UInt64) {
    // Nothing is known of one that cannot be opened.
    guard session.failure == nil else { return }
    for state in TaskState.allCases {
      set(.tasks, session.tasks[state.rawValue] ?? 0, session.id, state.rawValue)
    }
    set(.sessionReceived, received, session.id)
    set(.partialBytes, session.partialBytes ?? 0, session.id)
    set(.unacknowledged, max(0, session.lastEvent - session.acknowledged), session.id)
  }
}
