package import TarnCore

/// Whose turn it is.
extension SessionLedger {
  /// Returns the tasks whose turn is next.
  package func next(limit: Int) throws(LedgerFailure) -> [TaskRecord] {
    try read { connection throws(LedgerFailure) in
      try Self.tasks("state = 'queued' ORDER BY rank, position LIMIT ?", [.limit(limit)], connection)
    }
  }

  /// Returns the finished tasks whose files are not known to have the digests of their requests.
  ///
  /// - Parameter number: the only task to look at; `nil` for all.
  package func uncompared(_ number: Int64? = nil) throws(LedgerFailure) -> [Int64] {
    let only = number == nil ? "" : " AND number = ?"
    let values = number.map { [Value.integer($0)] } ?? []
    return try read { connection throws(LedgerFailure) in
      let tasks = try connection.all(
        """
        SELECT number, json_extract(request, '$.digest'), digest FROM tasks
          WHERE state = 'finished' AND json_extract(request, '$.digest') IS NOT NULL\(only)
        """, values
      ) { row throws(LedgerFailure) in (try row.integer(0), try row.text(1), try row.optionalText(2)) }
      return tasks.compactMap { (number, asked, found) -> Int64? in
        guard let digest = Digest(labelled: asked) else { return nil }
        return digest == found.flatMap { Digest(labelled: $0) } ? nil : number
      }
    }
  }

  /// Returns how many tasks have their turn before this one that wait for a better request, and begin without one by a certain time; at
  /// most 64.
  package func asked(before number: Int64, dueBy time: Timestamp) throws(LedgerFailure) -> Int {
    try read { connection throws(LedgerFailure) in
      try connection.all(
        Self.askedBefore, [.integer(number), .integer(time.nanoseconds)], Self.number
      ).count
    }
  }

  /// SQLite prefers the index over states, which holds all waiting tasks. The index over these tasks does not serve a bound code.
  static let askedBefore = """
    SELECT asked.number FROM tasks AS asked INDEXED BY tasks_asked, tasks AS task WHERE task.number = ?
      AND asked.state = 'waiting' AND asked.code = '\(TaskRecord.stale)' AND asked.due IS NOT NULL AND asked.due <= ?
      AND (asked.rank, asked.position) < (task.rank, task.position) LIMIT 64
    """

  /// Brings forward the next attempts, after the wall clock was set back. Moments that requests name stay.
  package func advanceDue(bySeconds seconds: Int64) throws(LedgerFailure) {
    try change { connection throws(LedgerFailure) in
      try connection.run(
        "UPDATE tasks SET due = due - ? WHERE state = 'waiting' AND due IS NOT NULL AND code IS NOT ?",
        [.integer(seconds * 1_000_000_000), .text(TaskRecord.delayed)])
    }
  }

  /// Returns the time when the next waiting task is due. `nil` when none waits.
  package func nextDue() throws(LedgerFailure) -> Timestamp? {
    try read { connection throws(LedgerFailure) in
      try connection.first(
        "SELECT due FROM tasks WHERE state = 'waiting' AND due IS NOT NULL ORDER BY due LIMIT 1"
      ) { row throws(LedgerFailure) in try row.timestamp(0) }
    }
  }

  /// Returns the waiting tasks that are due.
  package func due(now: Timestamp, limit: Int) throws(LedgerFailure) -> [Int64] {
    try read { connection throws(LedgerFailure) in
      try connection.all(
        "SELECT number FROM tasks WHERE state = 'waiting' AND due <= ? ORDER BY due LIMIT ?",
        [.integer(now.nanoseconds), .limit(limit)]
      ) { row throws(LedgerFailure) in try row.integer(0) }
    }
  }

  /// Returns the waiting tasks that are to be tried only after a time, except those that their requests delay.
  package func waiting(after time: Timestamp, limit: Int) throws(LedgerFailure) -> [Int64] {
    try read { connection throws(LedgerFailure) in
      try connection.all(
        "SELECT number FROM tasks WHERE state = 'waiting' AND due > ? AND code IS NOT ? ORDER BY due LIMIT ?",
        [.integer(time.nanoseconds), .text(TaskRecord.delayed), .limit(limit)]
      ) { row throws(LedgerFailure) in try row.integer(0) }
    }
  }

  /// Returns the tasks whose time limit has passed.
  package func overdue(age: Int64, limit: Int) throws(LedgerFailure) -> [Int64] {
    try read { connection throws(LedgerFailure) in
      let ends = try connection.all(
        """
        SELECT number, min(whole, stall) FROM tasks WHERE state IN ('queued', 'waiting')
          AND min(whole, stall) IS NOT NULL ORDER BY min(whole, stall) LIMIT ?
        """, [.limit(limit)]
      ) { row throws(LedgerFailure) in (try row.integer(0), try row.integer(1)) }
      return ends.filter { $0.1 <= age }.map(\.0)
    }
  }

  /// Returns the session's age at which the next task's time limit passes. `nil` when there is none.
  package func nextEnd() throws(LedgerFailure) -> Int64? {
    try read { connection throws(LedgerFailure) in
      try connection.first(
        """
        SELECT min(whole, stall) FROM tasks WHERE state IN ('queued', 'waiting')
          AND min(whole, stall) IS NOT NULL ORDER BY min(whole, stall) LIMIT 1
        """, [], Self.number)
    }
  }

  /// Returns the tasks that wait for room in the session's quota, in the order of their turns. A failure of the disk has a time for the
  /// next attempt instead.
  package func lackingRoom(limit: Int) throws(LedgerFailure) -> [TaskRecord] {
    try read { connection throws(LedgerFailure) in
      try Self.tasks(
        "state = 'waiting' AND due IS NULL AND code = ? ORDER BY rank, position LIMIT ?",
        [.text(TaskRecord.lacksRoom), .limit(limit)], connection)
    }
  }
}
