/// What `tarn status` says of one mirror. Its keys are those of the JSON document.
package struct StatusDocument: Codable, Sendable {
  package struct Entries: Codable, Sendable {
    package var wanted = 0
    package var current = 0
    /// Neither there nor told of below.
    package var pending = 0
    package var failed = 0
    package var refused = 0
    package var conflict = 0
    package var held = 0
    /// Deleted or edited by the user, and left so by policy.
    package var kept = 0
    /// Left out by `include`, `exclude` or `max-age`: none of those above; nil from an agent that does not say.
    @NullIfUnknown package var excluded: Int? = 0

    /// So many are being brought back, which were counted as in place.
    package mutating func add(missing: Int) {
      let most = max(0, wanted - max(0, missing))
      guard current > most else { return }
      pending += current - most
      current = most
    }
  }
  package struct Bytes: Codable, Sendable {
    /// Of wanted entries whose size is known, from the feed or from the file in place; nil when none is known.
    @NullIfUnknown package var wanted: UInt64? = 0
    /// Of files that the feed wants and that are in place.
    package var current: UInt64 = 0
    /// nil when nothing is known of what is missing.
    @NullIfUnknown package var pending: UInt64? = 0
    /// Wanted entries whose size is not known.
    package var unknownSizes = 0

    /// So many are being brought back, which were counted as in place.
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
    /// `running`, or `waiting` for a place; nil from an agent that does not say.
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
  /// How far the feed has come that is being fetched.
  package struct FeedTransfer: Codable, Sendable, Equatable {
    package var received: UInt64
    /// As its server said; nil when it did not.
    @NullIfUnknown package var total: UInt64?
    /// Bytes per second.
    package var rate: UInt64

    package init(received: UInt64, total: UInt64?, rate: UInt64) {
      self.received = received
      self.total = total
      self.rate = rate
    }
  }
  /// How far the pass or repair at work has come with what it puts in place.
  package struct Progress: Codable, Sendable, Equatable {
    package var filesDone: Int
    package var filesTotal: Int
    package var bytesDone: UInt64
    /// Of the files whose size is known by now.
    package var bytesTotal: UInt64
    /// Files whose size nobody has told yet.
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
    /// Why they wait, for a person; nil for what an older Tarn held.
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
    /// When the agent's next pass tries again; nil without an agent, and for what no pass alone mends.
    @NullIfUnknown package var nextAttempt: String?
    /// The path's bytes in Base64, when `path` is not them.
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
    /// As promised to who asked for it.
    package var number: UInt64
    /// `in-sync`, `partial`, `held`, `planned` (where the settings say dry-run), `stopped`, or the code of a failure.
    package var code: String
    package var message: String
    /// How to mend a failure; a command where there is one.
    package var hint: String?
    /// What `tarn sync` would have ended with.
    package var exitStatus: Int32
    /// By the names of the summary of `sync --json`; nil of a pass that failed before it did anything.
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
    /// `2 restored, 1 replaced`.
    package var changes: String

    package init(ended: String, changes: String) {
      self.ended = ended
      self.changes = changes
    }
  }

  package var name: String
  package var feed: String
  /// The feed that the folder is of, where the settings name another one since, which no pass has read so far; nil for all others.
  @NullIfUnknown package var feedBefore: String?
  package var folder: String
  /// idle, reading, planning, transferring, publishing, deleting, verifying, paused, held, failing, or interrupted: the last pass
  /// was stopped or killed.
  package var state: String
  /// The process that holds the folder now.
  @NullIfUnknown package var process: Int32?
  @NullIfUnknown package var format: String?
  @NullIfUnknown package var lastSuccess: String?
  @NullIfUnknown package var lastAttempt: String?
  @NullIfUnknown package var nextRun: String?
  /// Why then: `scheduled`, `catching-up`, `backing-off`, `asked`, `paused` or `none`; nil without an agent.
  @NullIfUnknown package var nextRunReason: String?
  /// Until then the server asked to be left alone, or the feed (`ttl`) not to be read; nil where neither did, or the time is over.
  @NullIfUnknown package var askedUntil: String?
  /// The number of the agent's pass or repair at work; nil without one.
  @NullIfUnknown package var run: UInt64?
  /// What that is: `pass` or `repair`; nil without one.
  @NullIfUnknown package var runKind: String?
  @NullIfUnknown package var lastRun: LastRun?
  @NullIfUnknown package var verifiedAt: String?
  /// When the feed last changed, as its server said when it was last read.
  @NullIfUnknown package var upstreamChangedAt: String?
  /// Why the last pass ended without doing its work.
  @NullIfUnknown package var lastFailure: String?
  /// How to mend `lastFailure`; nil without one, or where it is not known.
  @NullIfUnknown package var hint: String?
  package var entries = Entries()
  package var bytes = Bytes()
  /// nil when nothing is being put in place, and from an agent that does not say.
  @NullIfUnknown package var progress: Progress?
  /// nil when the feed is not being fetched.
  @NullIfUnknown package var feedTransfer: FeedTransfer?
  /// All that run, and of those that wait the first ones.
  package var transfers: [Transfer] = []
  /// So many wait in all; nil from an agent that does not say.
  @NullIfUnknown package var waitingTransfers: Int?
  package var watch = Watch()
  @NullIfUnknown package var lastRepair: LastRepair?
  /// Its passes only plan, as its settings say; nil where no settings are known.
  @NullIfUnknown package var dryRun: Bool?
  /// The settings named it at its last pass, and do not any more: no pass or check of all mirrors takes it. nil for all others.
  @NullIfUnknown package var leftSettings: Bool?
  /// The settings name it, and the agent that goes by them has not read so: it is the agent's from `tarn reload` on. nil for all
  /// others.
  @NullIfUnknown package var awaitsReload: Bool?
  /// The options of the last pass, by their names; passwords in them are left out. nil where nobody may know them.
  @NullIfUnknown package var options: [String: [String]]?
  @NullIfUnknown package var held: Held?
  package var problems: [ProblemLine] = []
  /// Problems beyond those listed.
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

/// A value whose key is in a document in any case: null stands for what is not known.
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
  /// A document of an older Tarn may be without the key.
  package func decode<Value>(
    _ type: NullIfUnknown<Value>.Type, forKey key: Key
  ) throws -> NullIfUnknown<Value> {
    try decodeIfPresent(type, forKey: key) ?? NullIfUnknown()
  }
}
