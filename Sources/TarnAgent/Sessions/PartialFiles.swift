import TarnCore
import TarnFolder
import TarnLedger

/// The partial files of a session's tasks: how many bytes they have, and which are kept no longer. Any thread.
struct PartialFiles: Sendable {
  let ledger: SessionLedger
  let folder: SessionFolder

  struct Idle {
    var task: TaskRecord
    var bytes: UInt64
    /// When something was written to it.
    var written: Timestamp
  }

  /// Those that nothing works at.
  func idle(besides busy: Set<Int64>) throws(LedgerFailure) -> [Idle] {
    try ledger.partialTasks().filter { !busy.contains($0.number) }.compactMap { task in
      folder.partial(of: task).map { Idle(task: task, bytes: $0.bytes, written: $0.written) }
    }
  }

  /// All of them.
  func total() throws(LedgerFailure) -> (files: Int, bytes: UInt64) {
    let sizes = try ledger.partialTasks().compactMap { folder.partial(of: $0)?.bytes }
    return (sizes.count, sizes.reduce(0, +))
  }

  /// Bytes that were fetched of a task that does not run; nil for none.
  func kept(of task: TaskRecord) -> UInt64? { task.directory == nil ? nil : folder.partial(of: task)?.bytes }

  /// It is worked at no more.
  func remove(_ task: TaskRecord) throws(LedgerFailure) {
    folder.removePartial(of: task)
    try ledger.apply([.dropPartial(RelativePath(task: task.number))])
    try ledger.update(task.number) { task in
      var task = task
      (task.directory, task.movedFrom) = (nil, nil)
      return (task, [])
    }
  }

  /// Drops those that are kept too long, and the oldest of those that are too many. Their tasks stay, and begin anew when they go on.
  func dropOld(_ quota: SessionQuota, _ now: Timestamp, besides busy: Set<Int64>) throws(LedgerFailure) {
    let last = now.seconds - Int64(quota.keptFor ?? SessionQuota.standardKeptFor)
    let kept = try idle(besides: busy).sorted { $0.written < $1.written }
    var bytes = kept.reduce(0) { $0 + $1.bytes }
    for partial in kept {
      // What is going to be tried again is no leftover, but for the room that it takes.
      let isOld = partial.written.seconds < last && !partial.task.state.isOpen
      guard isOld || bytes > quota.kept ?? .max else { continue }
      try remove(partial.task)
      bytes -= partial.bytes
    }
  }
}
