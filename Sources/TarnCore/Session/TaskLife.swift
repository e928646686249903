/// The time limits of a task in seconds; `nil` for those of the session, or else the standard.
package struct TaskLimits: Codable, Sendable, Equatable {
  /// The time without a byte from the server after which the task is tried again.
  package var idle: Int?
  /// The whole time from the moment when it may begin. Waiting counts, suspension does not.
  package var whole: Int?
  /// The time without a byte of progress over all attempts.
  package var stall: Int?

  package static let standardIdle = 60
  package static let standardWhole = 7 * 86_400
  package static let standardStall = 14 * 86_400

  package init(idle: Int? = nil, whole: Int? = nil, stall: Int? = nil) {
    (self.idle, self.whole, self.stall) = (idle, whole, stall)
  }

  /// Returns these limits, with those of `other` where they are not set.
  package func over(_ other: TaskLimits?) -> TaskLimits {
    TaskLimits(idle: idle ?? other?.idle, whole: whole ?? other?.whole, stall: stall ?? other?.stall)
  }

  /// - Throws: what is wrong with the limits, for their author.
  package func validate() throws(TaskRequest.Refusal) {
    guard [idle, whole, stall].allSatisfy({ $0.map { (1...315_360_000).contains($0) } ?? true }) else {
      throw TaskRequest.Refusal(
        code: "limits-refused", message: "a time limit is a number of seconds, from 1 to 315360000")
    }
  }
}

/// The end of a task's time: in seconds of its session's age while the task is open, otherwise as the seconds that were left.
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

/// The facts at the moment when a task changes its state.
package struct TaskTerms: Sendable {
  package var now: Timestamp
  /// The age of the session in seconds.
  package var age: Int64
  /// The limits of the session's settings.
  package var limits: TaskLimits

  package init(now: Timestamp, age: Int64, limits: TaskLimits = TaskLimits()) {
    (self.now, self.age, self.limits) = (now, age, limits)
  }

  /// Returns the life of a task that begins now.
  package func life(of request: TaskRequest) -> TaskLife {
    TaskLife((request.limits ?? TaskLimits()).over(limits)).moved(by: age)
  }
}

/// The age of a session. Within a boot CLOCK_BOOTTIME counts, which continues through suspend to RAM and which nobody sets. Between
/// boots the wall clock counts, and a clock that was set back adds nothing.
package struct SessionAge: Codable, Sendable, Equatable {
  /// The age in seconds at the moment stored below.
  package private(set) var seconds: Int64 = 0
  /// The part of these seconds that only the wall clock tells; `nil` for none.
  private var doubted: Int64?
  private var wall: Timestamp
  private var boot: String
  /// The clock of the boot.
  private var uptime: Instant

  /// The age without what a clock that runs ahead may have added. From one boot to the next at most a day counts.
  package var proven: Int64 { seconds - (doubted ?? 0) }
  private static let mostBetweenBoots: Int64 = 86_400

  package init(wall: Timestamp, boot: String, uptime: Instant) {
    (self.wall, self.boot, self.uptime) = (wall, boot, uptime)
  }

  /// - Parameter boot: the ID of the boot; empty when it is not known, which counts as another boot.
  /// - Returns: by how many seconds the wall clock was set back meanwhile, 0 across boots. Less than three are not told from others.
  @discardableResult
  package mutating func advance(wall: Timestamp, boot: String, uptime: Instant) -> Int64 {
    let isSameBoot = !boot.isEmpty && boot == self.boot && uptime >= self.uptime
    let passed =
      isSameBoot
      ? uptime.elapsed(since: self.uptime).components.seconds : max(0, wall.seconds - self.wall.seconds)
    // Fractions of a second count with the next call.
    guard passed > 0 || !isSameBoot else { return 0 }
    let setBack = isSameBoot ? self.wall.seconds + passed - wall.seconds : 0
    seconds += passed
    if !isSameBoot, passed > Self.mostBetweenBoots {
      doubted = (doubted ?? 0) + passed - Self.mostBetweenBoots
    }
    let whole = self.uptime + .seconds(passed)
    (self.wall, self.boot, self.uptime) = (wall, boot, isSameBoot ? whole : uptime)
    return setBack < 3 ? 0 : setBack
  }
}

/// In documents a point of a clock is its nanoseconds. It is kept only beside the ID of the boot that it belongs to.
extension Instant: Codable {
  package init(from decoder: any Decoder) throws {
    self.init(nanoseconds: try decoder.singleValueContainer().decode(UInt64.self))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(nanoseconds)
  }
}
