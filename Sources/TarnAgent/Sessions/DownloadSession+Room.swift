import TarnCore
import TarnRuntime

/// The room for unfinished files in the session's quota of bytes.
extension DownloadSession {
  /// Reserves room for the file of a task at work. What is refused changes nothing. Callable on any thread.
  ///
  /// - Parameters:
  ///   - size: the size of the file, or as many bytes of it as are about to be on the disk.
  ///   - isUnsized: true when nobody knows the size of the file.
  /// - Returns: why the task may not go on; `nil` when there is room.
  func reserve(_ size: UInt64, isUnsized: Bool, for task: Int64) -> StopReason? {
    let (most, idle) = (settings.quota?.bytes, partialFiles.idleBytes.withLock { $0 })
    return atWork.withLock { tasks -> StopReason? in
      guard let work = tasks[task] else { return nil }
      let others = tasks.filter { $0.key != task }.values
      // Two that may grow for ever would both stop half-way.
      let isBeside = isUnsized && !work.isUnsized && others.contains { $0.isUnsized }
      let held = isBeside ? .max : others.reduce(idle) { $0.addingSaturated($1.size) }
      if let most, let reason = StopReason.overQuota(size, besides: held, most: most) { return reason }
      (tasks[task]?.size, tasks[task]?.isUnsized) = (size, isUnsized)
      return nil
    }
  }

  /// Returns whether a task may begin beside those at work. A file whose size nobody knows may need all the room.
  func mayBegin() -> Bool {
    settings.quota?.bytes == nil || !atWork.withLock { $0.values.contains { $0.isUnsized } }
  }
}
