import TarnCore
import TarnEngine
import TarnLedger
import TarnRuntime

/// The room for unfinished files in the session's quota of bytes.
extension DownloadSession {
  /// Reserves room for the file of a task at work. What is refused reserves nothing. Callable on any thread.
  ///
  /// - Parameters:
  ///   - size: the size of the file, or as many bytes of it as are about to be on the disk.
  ///   - isUnsized: true when nobody knows the size of the file.
  /// - Returns: why the task may not go on; `nil` when there is room.
  func reserve(_ size: UInt64, isUnsized: Bool, for task: Int64) -> StopReason? {
    let (most, idle) = (settings.quota?.bytes, partialFiles.idleBytes.withLock { $0 })
    let reason = atWork.withLock { tasks -> StopReason? in
      guard var work = tasks[task] else { return nil }
      let others = tasks.filter { $0.key != task }.values
      // Two that may grow for ever would both stop half-way.
      let isBeside = isUnsized && work.responded == nil && others.contains { $0.isUnsized }
      let held = others.reduce(isBeside ? UInt64.max : idle) { $0.addingSaturated($1.size) }
      if let most, let reason = StopReason.overQuota(size, besides: held, most: most) { return reason }
      (work.size, work.isUnsized) = (size, isUnsized)
      tasks[task] = work
      return nil
    }
    if reason != nil {
      partialFiles.needs.withLock { $0[task] = PartialFiles.Need(bytes: size, isUnsized: isUnsized) }
    }
    return reason
  }

  /// Returns whether a task may begin beside those at work. A file whose size nobody knows may need all the room, and nobody overtakes
  /// who waits for room.
  ///
  /// - Parameter waiting: the rank of the first task that waits for room; `nil` when none does.
  func mayBegin(_ task: TaskRecord, behind waiting: Int64?) -> Bool {
    guard settings.quota?.bytes != nil, running > 0 else { return true }
    if atWork.withLock({ $0.values.contains { $0.isUnsized } }) { return false }
    guard let waiting, task.code != TaskRecord.lacksRoom else { return true }
    return (task.request.priority ?? .normal).rank < waiting
  }

  /// Queues the first task that waits for room, if it fits now. Where nothing is at work, it is the first that fits.
  ///
  /// - Returns: the rank of the first that still waits; `nil` when none does.
  func queueFitting() throws(LedgerFailure) -> Int64? {
    let waiting = try lackingRoom()
    let numbers = Set(waiting.map(\.number)).union(atWork.withLock { Array($0.keys) })
    partialFiles.needs.withLock { $0 = $0.filter { numbers.contains($0.key) } }
    guard !waiting.isEmpty else { return nil }
    try countIdle()
    let fitting = try firstFitting(running > 0 ? Array(waiting.prefix(1)) : waiting)
    if let fitting {
      let terms = terms
      try ledger.update(fitting.number) { $0.state == .waiting ? $0.queued(terms) : nil }
    }
    return waiting.first { $0.number != fitting?.number }.map { ($0.request.priority ?? .normal).rank }
  }

  /// Others wait for somebody to order that they are sent again.
  private func lackingRoom() throws(LedgerFailure) -> [TaskRecord] {
    try ledger.lackingRoom(limit: Self.askedAtOnce).filter(\.request.isRepeatable)
  }

  private func firstFitting(_ tasks: [TaskRecord]) throws(LedgerFailure) -> TaskRecord? {
    for task in tasks where try fits(task) { return task }
    return nil
  }

  private func fits(_ task: TaskRecord) throws(LedgerFailure) -> Bool {
    guard let most = settings.quota?.bytes, let need = try need(of: task) else { return true }
    // One that can never fit fails, and says so.
    if need.bytes > most { return true }
    let own = partialFiles.kept(of: task) ?? 0
    let idle = partialFiles.idleBytes.withLock { $0 - min($0, own) }
    return atWork.withLock { tasks -> Bool in
      if need.isUnsized, tasks.values.contains(where: \.isUnsized) { return false }
      return tasks.values.reduce(idle.addingSaturated(need.bytes)) { $0.addingSaturated($1.size) } <= most
    }
  }

  /// Returns the room that a task waits for, or has waited for; `nil` for one that lacked none. The task's code tells, which stays while
  /// it is queued and when it begins.
  func need(of task: TaskRecord) throws(LedgerFailure) -> PartialFiles.Need? {
    guard task.code == TaskRecord.lacksRoom else { return nil }
    if let need = partialFiles.needs.withLock({ $0[task.number] }) { return need }
    // It began to wait under an earlier agent.
    let size = try ledger.response(task.number)?.contentLength ?? task.request.expectedBytes
    return PartialFiles.Need(bytes: size ?? partialFiles.kept(of: task) ?? 0, isUnsized: size == nil)
  }

  /// Counts the bytes that a transfer has left, and makes room where nothing else would: nothing is at work, and nothing fits.
  func makeRoom(after number: Int64) throws(LedgerFailure) {
    guard settings.quota?.bytes != nil else { return }
    try countIdle()
    var isStuck = running == 0
    if isStuck { isStuck = try firstFitting(lackingRoom()) == nil }
    try partialFiles.makeRoom(after: number, isAlone: isStuck)
    if isStuck { try countIdle() }
  }
}

// MARK: - Tasks that stand still

extension DownloadSession {
  /// Ends tasks at work of which no byte has come within their limit since the server answered. Their bytes are compared only when it
  /// is over, so that an attempt has at most twice that time. Without an answer the attempt ends by itself.
  func endStalled(_ terms: TaskTerms) throws(LedgerFailure) {
    let due = atWork.withLock { $0.filter { $1.stall.map { $0.end <= terms.age } == true } }
    guard !due.isEmpty else { return }
    let received = Dictionary(progress.snapshot().transfers.map { ($0.path.task, $0.received) }) { first, _ in
      first
    }
    for (number, work) in due {
      let bytes = received[number] ?? work.kept
      let isStill = bytes == work.stall?.bytes && work.responded != nil
      atWork.withLock { $0[number]?.stall = isStill ? nil : (terms.life(of: work.request).stall, bytes) }
      if isStill {
        _ = try give(
          .fail(code: TaskRecord.noProgress.code, message: TaskRecord.noProgress.message), number)
      }
    }
  }
}
