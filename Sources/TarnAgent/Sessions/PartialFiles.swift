import TarnCore
import TarnFolder
import TarnLedger

/// The partial files of a session's tasks, and the quota for them. Callable on any thread.
struct PartialFiles: Sendable {
  let ledger: SessionLedger
  let folder: SessionFolder

  struct Idle {
    var task: TaskRecord
    var bytes: UInt64
    /// The time of the last write to it.
    var written: Timestamp
  }

  /// Returns the partial files that no task at work uses.
  func idle(besides busy: Set<Int64>) throws(LedgerFailure) -> [Idle] {
    try ledger.partialTasks().filter { !busy.contains($0.number) }.compactMap { task in
      folder.partial(of: task).map { Idle(task: task, bytes: $0.bytes, written: $0.written) }
    }
  }

  /// Returns the number and the bytes of all partial files.
  func total() throws(LedgerFailure) -> (files: Int, bytes: UInt64) {
    let sizes = try ledger.partialTasks().compactMap { folder.partial(of: $0)?.bytes }
    return (sizes.count, sizes.reduce(0, +))
  }

  /// The bytes that were fetched for a task that does not run; `nil` for none.
  func kept(of task: TaskRecord) -> UInt64? { task.directory == nil ? nil : folder.partial(of: task)?.bytes }

  /// Removes the partial file of a task that is not at work.
  func remove(_ task: TaskRecord) throws(LedgerFailure) {
    folder.removePartial(of: task)
    try ledger.apply([.dropPartial(RelativePath(task: task.number))])
    try ledger.update(task.number) { task in
      var task = task
      (task.directory, task.movedFrom) = (nil, nil)
      return (task, [])
    }
  }

  /// Drops the partial files that are too old, and the oldest ones above the quota. Their tasks stay, and
  /// begin anew when they continue.
  func dropOld(_ quota: SessionQuota, _ now: Timestamp, besides busy: Set<Int64>) throws(LedgerFailure) {
    let last = now.seconds - Int64(quota.keptFor ?? SessionQuota.standardKeptFor)
    let kept = try idle(besides: busy).sorted { $0.written < $1.written }
    var bytes = kept.reduce(0) { $0 + $1.bytes }
    for partial in kept {
      // The file of a task that is tried again is never too old, but it counts for the quota.
      let isOld = partial.written.seconds < last && !partial.task.state.isOpen
      guard isOld || bytes > quota.kept ?? .max else { continue }
      try remove(partial.task)
      bytes -= partial.bytes
    }
  }
}
