/// The status of one mirror. Its keys are those of the JSON document.
package struct StatusDocument: Codable, Sendable {
  package struct Entries: Codable, Sendable {
    package var wanted = 0
    package var current = 0
    /// Wanted entries that are neither in place nor in one of the counts below.
    package var pending = 0
    package var failed = 0
    package var refused = 0
    package var conflict = 0
    package var held = 0
    /// Files that the user deleted or edited, and that the policy leaves so.
    package var kept = 0
    /// Entries left out by `include`, `exclude` or `max-age`, and in none of the counts above. `nil` from an agent that does not
    /// report them.
    @NullIfUnknown package var excluded: Int? = 0

    /// Counts entries that are being brought back as pending; they were counted as in place.
    package mutating func add(missing: Int) {
      let most = max(0, wanted - max(0, missing))
      guard current > most else { return }
      current = most
      countPending()
    }

    /// Counts as pending what is wanted and in no other count.
    package mutating func countPending() {
      pending = max(0, wanted - current - failed - refused - conflict - kept)
    }
  }
  package struct Bytes: Codable, Sendable {
    /// Bytes of wanted entries whose size is known from the feed or from the file in place; `nil` when none is known.
    @NullIfUnknown package var wanted: UInt64? = 0
    /// Bytes of the files in place that the feed wants.
    package var current: UInt64 = 0
    /// Bytes that are missing; `nil` when nothing is known of them.
    @NullIfUnknown package var pending: UInt64? = 0
    /// The number of wanted entries whose size is not known.
    package var unknownSizes = 0

    /// Counts bytes that are being brought back as pending; they were counted as in place.
    package mutating func add(missing: UInt64) {
      guard let wanted else { return }
      let most = wanted - min(wanted, missing)
      guard current > most else { return }
      pending = (pending ?? 0) + (current - most)
      current = most
    }
  }
  package struct Transfer: Codable, Sendable {
    package var path: String
    package var received: UInt64
    @NullIfUnknown package var total: UInt64?
    package var rate: UInt64
    package var source: String
    /// Either `running`, or `waiting` for a place. `nil` from an agent that does not report it.
    @NullIfUnknown package var state: String?

    package var isWaiting: Bool { state == "waiting" }

    package init(
      path: String, received: UInt64, total: UInt64?, rate: UInt64, source: String, isWaiting: Bool = false
    ) {
      self.path = path
      self.received = received
      self.total = total
      self.rate = rate
      self.source = source
      state = isWaiting ? "waiting" : "running"
    }
  }
  /// The progress of the feed that is being fetched.
  package struct FeedTransfer: Codable, Sendable, Equatable {
    package var received: UInt64
    /// The size of the feed as its server gave it; `nil` when it did not.
    @NullIfUnknown package var total: UInt64?
    /// Bytes per second.
    package var rate: UInt64

    package init(received: UInt64, total: UInt64?, rate: UInt64) {
      self.received = received
      self.total = total
      self.rate = rate
    }
  }
  /// The progress of the running pass or repair with the files that it puts in place.
  package struct Progress: Codable, Sendable, Equatable {
    package var filesDone: Int
    package var filesTotal: Int
    package var bytesDone: UInt64
    /// Bytes of the files whose size is known so far.
    package var bytesTotal: UInt64
    /// The number of files whose size is not known yet.
    package var unknownSizes: Int
    /// Bytes per second.
    package var rate: UInt64

    package init(
      filesDone: Int, filesTotal: Int, bytesDone: UInt64, bytesTotal: UInt64, unknownSizes: Int, rate: UInt64
    ) {
      (self.filesDone, self.filesTotal) = (filesDone, filesTotal)
      (self.bytesDone, self.bytesTotal) = (bytesDone, bytesTotal)
      (self.unknownSizes, self.rate) = (unknownSizes, rate)
    }
  }
  package struct Watch: Codable, Sendable {
    package var mode = "off"
    package var reason = "one pass at a time; no agent watches this folder"
  }
  package struct Held: Codable, Sendable {
    package var plan: String
    package var deletions: Int
    package var since: String
    /// Why the deletions wait, for people; `nil` for those that an older Tarn held.
    package var reason: String?

    package init(plan: String, deletions: Int, since: String, reason: String? = nil) {
      self.plan = plan
      self.deletions = deletions
      self.since = since
      self.reason = reason
    }
  }
  package struct ProblemLine: Codable, Sendable {
    package var path: String
    package var kind: String
    package var code: String
    package var message: String
    package var since: String
    package var attempts: Int
    /// When the agent's next pass tries again. `nil` without an agent, and for what a pass alone cannot fix.
    @NullIfUnknown package var nextAttempt: String?
    /// The path's bytes in Base64, set when `path` does not hold them exactly.
    package var pathBytes: String?

    /// The path's bytes.
    package var name: [UInt8] {
      pathBytes.flatMap { Base64.decode(Array($0.utf8)) } ?? Array(path.utf8)
    }

    package init(path: String, kind: String, code: String, message: String, since: String, attempts: Int) {
      self.path = path
      self.kind = kind
      self.code = code
      self.message = message
      self.since = since
      self.attempts = attempts
    }
  }

  /// The last pass of this agent that ended.
  package struct LastRun: Codable, Sendable, Equatable {
    /// The number that was promised to the caller of the pass.
    package var number: UInt64
    /// `in-sync`, `partial`, `held`, `planned` (where the settings say dry-run), `stopped`, or the code of a failure.
    package var code: String
    package var message: String
    /// How to fix a failure; a command where there is one.
    package var hint: String?
    /// The exit status that `tarn sync` would have had.
    package var exitStatus: Int32
    /// The counts by the names of the summary of `sync --json`. `nil` for a pass that failed before it did anything.
    package var counts: [String: Int]?
    package var bytes: [String: UInt64]?

    package init(number: UInt64, code: String, message: String, hint: String? = nil, exitStatus: Int32) {
      self.number = number
      self.code = code
      self.message = message
      self.hint = hint
      self.exitStatus = exitStatus
    }
  }

  /// The last local changes that an agent undid without a pass.
  package struct LastRepair: Codable, Sendable, Equatable {
    package var ended: String
    /// The changes in words, such as `2 restored, 1 replaced`.
    package var changes: String

    package init(ended: String, changes: String) {
      self.ended = ended
      self.changes = changes
    }
  }

  package var name: String
  package var feed: String
  /// The feed that the folder was filled from, where the settings now name another one that no pass has read yet; `nil` otherwise.
  @NullIfUnknown package var feedBefore: String?
  package var folder: String
  /// The state: idle, reading, planning, transferring, publishing, deleting, verifying, paused, held, failing, or interrupted when
  /// the last pass was stopped or killed.
  package var state: String
  /// The process that holds the folder now.
  @NullIfUnknown package var process: Int32?
  @NullIfUnknown package var format: String?
  @NullIfUnknown package var lastSuccess: String?
  @NullIfUnknown package var lastAttempt: String?
  @NullIfUnknown package var nextRun: String?
  /// The reason for `nextRun`: `scheduled`, `catching-up`, `backing-off`, `asked`, `paused` or `none`. `nil` without an agent.
  @NullIfUnknown package var nextRunReason: String?
  /// The end of the pause that the server asked for, or the feed (`ttl`). `nil` where neither did, and when the time is over.
  @NullIfUnknown package var askedUntil: String?
  /// The number of the agent's running pass or repair; `nil` without one.
  @NullIfUnknown package var run: UInt64?
  /// The kind of the present run: `pass` or `repair`; `nil` without one.
  @NullIfUnknown package var runKind: String?
  @NullIfUnknown package var lastRun: LastRun?
  @NullIfUnknown package var verifiedAt: String?
  /// When the feed last changed, as its server said at the last reading.
  @NullIfUnknown package var upstreamChangedAt: String?
  /// Why the list may not be whole, as the last pass read it; then nothing is deleted. `nil` for a whole list, and for a window.
  @NullIfUnknown package var incompleteReason: String?
  /// Why the last pass ended without doing its work.
  @NullIfUnknown package var lastFailure: String?
  /// How to fix `lastFailure`; `nil` without a failure, or where it is not known.
  @NullIfUnknown package var hint: String?
  package var entries = Entries()
  package var bytes = Bytes()
  /// The progress of the files. `nil` when none is being put in place, and from an agent that does not report it.
  @NullIfUnknown package var progress: Progress?
  /// The progress of the feed; `nil` when it is not being fetched.
  @NullIfUnknown package var feedTransfer: FeedTransfer?
  /// All running transfers, and the first of those that wait.
  package var transfers: [Transfer] = []
  /// The number of all waiting transfers; `nil` from an agent that does not report it.
  @NullIfUnknown package var waitingTransfers: Int?
  package var watch = Watch()
  @NullIfUnknown package var lastRepair: LastRepair?
  /// True when the settings let its passes only plan. `nil` where no settings are known.
  @NullIfUnknown package var dryRun: Bool?
  /// True when the settings no longer name the mirror, as they did at its last pass: no pass or check of all mirrors includes it.
  /// `nil` otherwise.
  @NullIfUnknown package var leftSettings: Bool?
  /// True when the settings name the mirror and the running agent has not read that yet: the agent takes it with `tarn reload`.
  /// `nil` otherwise.
  @NullIfUnknown package var awaitsReload: Bool?
  /// The options of the last pass by name, without passwords. `nil` where they must not be shown.
  @NullIfUnknown package var options: [String: [String]]?
  @NullIfUnknown package var held: Held?
  package var problems: [ProblemLine] = []
  /// The number of problems beyond those listed.
  package var moreProblems = 0
  /// Files and bytes in the trash.
  package var trashFiles = 0
  package var trashBytes: UInt64 = 0

  package init(name: String, feed: String, folder: String, state: String) {
    self.name = name
    self.feed = feed
    self.folder = folder
    self.state = state
  }
}

/// A value whose key is always in the document: null stands for an unknown value.
@propertyWrapper
package struct NullIfUnknown<Value: Codable & Sendable>: Codable, Sendable {
  package var wrappedValue: Value?

  package init(wrappedValue: Value? = nil) { self.wrappedValue = wrappedValue }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}

extension NullIfUnknown: Equatable where Value: Equatable {}

extension KeyedDecodingContainer {
  /// Returns an unknown value where the key is missing, as in a document of an older Tarn.
  package func decode<Value>(
    _ type: NullIfUnknown<Value>.Type, forKey key: Key
  ) throws -> NullIfUnknown<Value> {
    try decodeIfPresent(type, forKey: key) ?? NullIfUnknown()
  }
}
