import TarnCore
import TarnFolder
import TarnLedger
import TarnRuntime
import TarnTransfer

/// The partial files of a session's tasks, and the quota for them. Callable on any thread.
struct PartialFiles: Sendable {
  let ledger: SessionLedger
  let folder: SessionFolder
  /// The bytes that tasks hold which are not at work and have not ended, as `countIdle` found them.
  let idleBytes = Locked<UInt64>(0)

  /// What tasks that lacked room wait for, as far as this process knows.
  let needs = Locked<[Int64: Need]>([:])

  /// The room that a task waits for.
  struct Need {
    var bytes: UInt64
    /// True when nobody knows the size of the file.
    var isUnsized: Bool
  }

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

  /// The size of the whole file, as the server gave it with the bytes that are kept; `nil` when it is not known.
  func total(of task: TaskRecord) throws(LedgerFailure) -> UInt64? {
    task.directory == nil ? nil : try ledger.partial(RelativePath(task: task.number))?.total
  }

  /// Removes the partial file of a task that is not at work. Of a file whose disk is away only the row goes: see `dropUnwanted`.
  func remove(_ task: TaskRecord) throws(LedgerFailure) {
    let isGone = folder.removePartial(of: task)
    try ledger.apply([.dropPartial(RelativePath(task: task.number))])
    if isGone { try forget(task) }
  }

  private func forget(_ task: TaskRecord) throws(LedgerFailure) {
    try ledger.update(task.number) { task in
      var task = task
      (task.directory, task.movedFrom) = (nil, nil)
      return (task, [])
    }
  }

  /// Notes that the file of a task is at another URL now. Where only the query differs, a strong ETag identifies the fetched bytes
  /// there as well; a date does not. Elsewhere only a digest proves them, and without one the task begins anew.
  func follow(_ task: TaskRecord, to url: String) throws(LedgerFailure) {
    guard var row = try ledger.partial(RelativePath(task: task.number)),
      URLOrigin.isSameButQuery(row.url, url)
    else { return }
    row.answered = Self.answered(row.answered, asked: row.url, now: url)
    (row.url, row.lastModified, row.weakDate) = (url, nil, nil)
    try ledger.apply([.partial(row)])
  }

  /// Returns the URL that counts as the sender of a task's bytes. Where nothing was redirected, the client says that its new URL is of
  /// the same file.
  static func answered(_ answered: String?, asked: String, now url: String) -> String? {
    guard let answered, URLOrigin.isSameWithQuery(answered, asked) else { return answered }
    return url
  }

  /// True when a task with another URL begins anew, although it has bytes.
  func beginsAnew(_ number: Int64, at url: String) throws(LedgerFailure) -> Bool {
    guard let row = try ledger.partial(RelativePath(task: number)) else { return false }
    return row.digest == nil && !URLOrigin.isSameButQuery(row.url, url)
  }

  /// Returns the record of the file that a task has put in place; `nil` when it is not there unchanged. Its validators are those that
  /// identify it at the URL of the task's request, by the rule of `follow`.
  func finished(_ task: TaskRecord) throws(LedgerFailure) -> Row? {
    guard folder.isThere(task), var row = try ledger.finished(task.number) else { return nil }
    guard let url = task.origin?.url, !URLOrigin.isSameWithQuery(url, task.request.url) else { return row }
    row.lastModified = nil
    let isStrong = row.etag?.hasPrefix("W/") == false
    if !isStrong || !URLOrigin.isSameButQuery(url, task.request.url) { row.etag = nil }
    return row
  }

  /// Counts what tasks hold that are not at work, for the session's quota of bytes.
  func countIdle(besides busy: Set<Int64>) throws(LedgerFailure) {
    let bytes = try idle(besides: busy).filter { !$0.task.state.isEnd }.reduce(0) { $0 + $1.bytes }
    idleBytes.withLock { $0 = bytes }
  }

  /// Makes room after the quota of bytes has ended a transfer. A file that can never fit keeps nothing.
  ///
  /// - Parameter isAlone: true when nothing is at work, and nothing fits. Then only tasks that wait for the quota themselves could make
  ///   room, and one of them keeps its bytes.
  func makeRoom(after number: Int64, isAlone: Bool) throws(LedgerFailure) {
    guard let task = try ledger.task(number) else { return }
    if task.state == .failed, task.code == DownloadSession.StopReason.largerThanQuota { try remove(task) }
    guard isAlone, task.code == TaskRecord.lacksRoom else { return }
    for partial in try idle(besides: [number]) where partial.task.code == task.code {
      try remove(partial.task)
    }
  }

  /// Drops the partial files that are too old, and the oldest ones above the quota. Their tasks stay, and
  /// begin anew when they continue. Those of tasks that have ended may be as many bytes as unfinished ones.
  ///
  /// - Parameter age: the session's proven age.
  func dropOld(
    _ quota: SessionQuota, _ now: Timestamp, age: Int64, besides busy: Set<Int64>
  ) throws(LedgerFailure) {
    let keptFor = Int64(quota.keptFor ?? SessionQuota.standardKeptFor)
    try dropUnwanted(before: now.seconds - keptFor, besides: busy)
    let kept = try idle(besides: busy).sorted { $0.written < $1.written }
    let since = try leftAlone(kept, now, age)
    var bytes = kept.reduce(0) { $0 + $1.bytes }
    var ended = kept.filter(\.task.state.isEnd).reduce(0) { $0 + $1.bytes }
    for partial in kept {
      let hasEnded = partial.task.state.isEnd
      // The file of a task that is tried again is never too old, but it counts for the quota.
      let isOld = age - (since[partial.task.number] ?? age) > keptFor && !partial.task.state.isOpen
      guard isOld || bytes > quota.kept ?? .max || hasEnded && ended > quota.bytes ?? .max else { continue }
      try remove(partial.task)
      bytes -= partial.bytes
      if hasEnded { ended -= partial.bytes }
    }
  }

  /// Removes what cancelled tasks have left on disks that were away, and what finished ones have left when the agent was killed. A disk
  /// that stays away is given up after a while.
  private func dropUnwanted(before last: Int64, besides busy: Set<Int64>) throws(LedgerFailure) {
    let ends: Set<TaskState> = [.cancelled, .finished]
    for task in try ledger.partialTasks() where ends.contains(task.state) && !busy.contains(task.number) {
      if task.state == .finished { try ledger.apply([.dropPartial(RelativePath(task: task.number))]) }
      // One with a row was cancelled with the order to keep its file.
      guard try ledger.partial(RelativePath(task: task.number)) == nil else { continue }
      if folder.removePartial(of: task) || task.ended.map({ $0.seconds < last }) == true { try forget(task) }
    }
  }

  /// What was found by the last look at partial files.
  private struct LeftAlone: Codable {
    struct File: Codable {
      var task: Int64
      /// The time of the last write to it, in nanoseconds since 1970.
      var written: Int64
      /// The session's proven age then.
      var since: Int64
    }

    /// The session's proven age.
    var age: Int64
    var files: [File]
  }

  /// Returns since when partial files have been left alone, in seconds of the session's proven age. The times of files do not show it:
  /// by a clock that runs ahead all of them are old.
  private func leftAlone(
    _ kept: [Idle], _ now: Timestamp, _ age: Int64
  ) throws(LedgerFailure) -> [Int64: Int64] {
    let last = try ledger.fact(.leftAlone).flatMap { JSONText.value(LeftAlone.self, from: $0) }
    let known = Dictionary((last?.files ?? []).map { ($0.task, $0) }) { $1 }
    let files = kept.map { partial -> LeftAlone.File in
      let (task, written) = (partial.task.number, partial.written)
      if let file = known[task], file.written == written.nanoseconds { return file }
      // It was written after the last look.
      let most = age - (last?.age ?? age)
      let passed = max(0, min(most, now.seconds - written.seconds))
      return LeftAlone.File(task: task, written: written.nanoseconds, since: age - passed)
    }
    try ledger.set(.leftAlone, JSONText.line(LeftAlone(age: age, files: files)))
    return Dictionary(files.map { ($0.task, $0.since) }) { $1 }
  }
}
