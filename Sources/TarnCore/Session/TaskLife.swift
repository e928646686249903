/// How long a task may take. Seconds; nil for what the session says, or for the standard.
package struct TaskLimits: Codable, Sendable, Equatable {
  /// Without a byte from the server: then the task is tried again.
  package var idle: Int?
  /// In all, from the moment when it may begin. Waiting counts, suspension does not.
  package var whole: Int?
  /// Without a byte of progress over all attempts.
  package var stall: Int?

  package static let standardIdle = 60
  package static let standardWhole = 7 * 86_400
  package static let standardStall = 14 * 86_400

  package init(idle: Int? = nil, whole: Int? = nil, stall: Int? = nil) {
    (self.idle, self.whole, self.stall) = (idle, whole, stall)
  }

  /// What is not said here is as another one says.
  package func over(_ other: TaskLimits?) -> TaskLimits {
    TaskLimits(idle: idle ?? other?.idle, whole: whole ?? other?.whole, stall: stall ?? other?.stall)
  }

  /// - Throws: what is wrong with it, for who wrote it.
  package func validate() throws(TaskRequest.Refusal) {
    guard [idle, whole, stall].allSatisfy({ $0.map { (1...315_360_000).contains($0) } ?? true }) else {
      throw TaskRequest.Refusal(
        code: "limits-refused", message: "a time limit is a number of seconds, from 1 to 315360000")
    }
  }
}

/// When a task's time is over. In seconds of its session's age while the task is open; else what was left of them.
package struct TaskLife: Sendable, Equatable {
  /// See `TaskLimits.whole`.
  package var whole: Int64
  /// See `TaskLimits.stall`.
  package var stall: Int64

  package init(whole: Int64, stall: Int64) { (self.whole, self.stall) = (whole, stall) }

  package init(_ limits: TaskLimits) {
    whole = Int64(limits.whole ?? TaskLimits.standardWhole)
    stall = Int64(limits.stall ?? TaskLimits.standardStall)
  }

  func moved(by seconds: Int64) -> TaskLife { TaskLife(whole: whole + seconds, stall: stall + seconds) }
}

/// What holds at the moment when a task changes its state.
package struct TaskTerms: Sendable {
  package var now: Timestamp
  /// Of the session, in seconds.
  package var age: Int64
  /// Of the session's settings.
  package var limits: TaskLimits

  package init(now: Timestamp, age: Int64, limits: TaskLimits = TaskLimits()) {
    (self.now, self.age, self.limits) = (now, age, limits)
  }

  /// Of a task that begins its life now.
  package func life(of request: TaskRequest) -> TaskLife {
    TaskLife((request.limits ?? TaskLimits()).over(limits)).moved(by: age)
  }
}

/// How old a session is. Within a boot it is CLOCK_BOOTTIME that counts, which goes on through suspend to RAM and which nobody sets;
/// from one boot to the next it is the wall clock, and a clock that was set back counts nothing.
package struct SessionAge: Codable, Sendable, Equatable {
  /// Seconds, as of the moment below.
  package private(set) var seconds: Int64 = 0
  private var wall: Timestamp
  private var boot: String
  /// Nanoseconds since the boot.
  private var uptime: UInt64

  package init(wall: Timestamp, boot: String, uptime: Instant) {
    (self.wall, self.boot, self.uptime) = (wall, boot, uptime.nanoseconds)
  }

  /// - Parameter boot: its id; empty when it is not known, which stands for another boot.
  package mutating func advance(wall: Timestamp, boot: String, uptime: Instant) {
    let isSameBoot = !boot.isEmpty && boot == self.boot && uptime.nanoseconds >= self.uptime
    let passed =
      isSameBoot
      ? Int64((uptime.nanoseconds - self.uptime) / 1_000_000_000) : max(0, wall.seconds - self.wall.seconds)
    // Parts of a second count with the next.
    guard passed > 0 || !isSameBoot else { return }
    seconds += passed
    let whole = self.uptime + UInt64(max(0, passed)) * 1_000_000_000
    (self.wall, self.boot, self.uptime) = (wall, boot, isSameBoot ? whole : uptime.nanoseconds)
  }
}
