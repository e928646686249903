package import TarnCore
import TarnRuntime

/// The numbers of paths by result. Each wanted path counts once in `wanted` and once more below.
package struct PassCounts: Sendable, Equatable {
  /// The entries of the feed after filters, including refused ones.
  package var wanted = 0
  package var current = 0
  package var planned = Planned()
  package var fetched = 0
  package var updated = 0
  package var restored = 0
  package var replaced = 0
  package var adopted = 0
  /// The files that were put in place, for whatever reason, with bytes of the folder, so that nothing was fetched.
  package var copied = 0
  /// The entries that the server confirmed as unchanged.
  package var revalidated = 0
  package var deleted = 0
  package var forgotten = 0
  /// The recorded files that are no longer in the feed and were left in place.
  package var unlisted = 0
  package var excluded = 0
  /// The files that were left as the user made them, by policy.
  package var kept = 0
  package var failed = 0
  package var refused = 0
  package var conflict = 0
  /// The deletions that are held.
  package var held = 0
  /// The wanted entries below a file whose deletion is held, or whose transfer is paused.
  package var waiting = 0

  package init() {}

  /// The planned entries.
  package struct Planned: Sendable, Equatable {
    /// All of them, including the next two.
    package var all = 0
    /// Those that only the ledger has to record: Tarn's files, with unchanged bytes.
    package var recorded = 0
    /// Those about which the server is asked.
    package var asked = 0
  }

  private static let all: [any WritableKeyPath<PassCounts, Int> & Sendable] = [
    \.wanted, \.current, \.planned.all, \.fetched, \.updated, \.restored, \.replaced, \.adopted, \.copied,
    \.revalidated, \.deleted, \.forgotten, \.unlisted, \.excluded, \.kept, \.failed, \.refused,
    \.conflict, \.held, \.waiting, \.planned.recorded, \.planned.asked,
  ]

  /// Adds the difference of `more` and `before`.
  mutating func add(_ more: PassCounts, since before: PassCounts = PassCounts()) {
    for count in Self.all { self[keyPath: count] += more[keyPath: count] - before[keyPath: count] }
  }

  /// The wanted entries that are in place.
  package var inPlace: Int {
    current + fetched + updated + restored + replaced + adopted + copied + revalidated
  }

  /// The planned changes, as far as they are known.
  package var toChange: Int { planned.all - planned.recorded - planned.asked }

  /// The wanted entries that are not in place.
  package var wanting: Int { failed + refused + conflict + waiting }
}

/// The numbers of bytes by result.
package struct PassBytes: Sendable, Equatable {
  /// The bytes of all wanted entries whose size is known: from the feed, else from the file in place.
  package var wanted: UInt64 = 0
  /// The number of wanted entries whose size is not known.
  package var unknownSizes = 0
  package var current: UInt64 = 0
  /// The bytes to fetch, as planned, without entries of unknown size.
  package var planned: UInt64 = 0
  /// The body bytes that came over the network for entries.
  package var received: UInt64 = 0
  /// The bytes of files that were put in place.
  package var published: UInt64 = 0
  /// The bytes of files that existed and were adopted, or were confirmed as unchanged.
  package var confirmed: UInt64 = 0

  package init() {}
}

extension Row {
  /// Returns the size of an entry whose feed tells none, from the file in place, if that is of the entry's version.
  ///
  /// - Parameter isKept: true when nothing is fetched for it unless its server says that it changed.
  func size(of entry: Entry, isKept: Bool) -> UInt64? {
    let isSame: Bool
    if let wanted = entry.digests.first(where: { $0.algorithm == digest.algorithm }) {
      isSame = wanted == digest
    } else if entry.digest != nil {
      isSame = isKept
    } else {
      isSame = !entry.hasFingerprint || entry.fingerprint == fingerprint
    }
    return isSame ? identity.size : nil
  }
}

extension Action {
  /// The size of the file that comes or goes, as far as the feed or the record tells it.
  package var sizeToTell: UInt64? {
    switch kind {
    case .delete: present?.size ?? row?.identity.size
    case .forget: nil
    default: entry.flatMap { $0.size ?? sizeCounted(of: $0) }
    }
  }

  /// Returns the size that was counted for an entry without a size before the action had a result.
  func sizeCounted(of entry: Entry) -> UInt64? {
    row?.size(of: entry, isKept: kind == .revalidate || kind == .inspect)
  }
}

/// The sizes that a pass learned for entries without one in the feed.
struct LearnedSizes {
  /// The number of entries whose size was not known at all.
  private var count = 0
  private var more: UInt64 = 0
  /// The former sizes of the files that were replaced.
  private var less: UInt64 = 0

  mutating func add(_ size: UInt64, before: UInt64?) {
    more.addSaturated(size)
    if let before { less.addSaturated(before) } else { count += 1 }
  }

  func apply(to bytes: inout PassBytes) {
    bytes.wanted.addSaturated(more)
    bytes.wanted -= min(bytes.wanted, less)
    bytes.unknownSizes -= count
  }
}

extension PassBytes {
  /// The bytes of wanted entries that are in place.
  package var inPlace: UInt64 { current.addingSaturated(published).addingSaturated(confirmed) }
}

/// The results of a pass, or the changes that a plan would make.
package struct PassReport: Sendable {
  package var feed: String
  package var folder: String
  package var manifest = Manifest()
  package var started: Timestamp
  package var ended: Timestamp
  package var counts = PassCounts()
  package var bytes = PassBytes()
  /// The problems, at most 10,000. `counts` includes all of them.
  package var problems: [Problem] = []
  /// The names of open problems that the ledger got before the end of the pass.
  var namedEarly: Set<[UInt8]> = []
  /// The held plan. For a plan, what would be held; nothing is until a pass holds it.
  package var held: HeldPlan?
  /// True when the feed has not changed, by its server's word or by the same text, and the folder is unchanged. No entry was read
  /// then.
  package var isFeedUnchanged: Bool { unchanged != nil }
  /// True when the folder was not scanned, because somebody has watched it.
  package var isFolderUnseen: Bool { unchanged == .watched }

  /// The way in which the folder was found to be unchanged.
  package enum Unchanged: Sendable {
    case scanned, watched
  }
  package var unchanged: Unchanged?
  /// True for a plan: nothing was done.
  package var isPlan = false
  /// True when it ended early on request. Fetched bytes are kept and will be resumed.
  package var wasStopped = false
  /// True when a repair recorded something meanwhile, which `counts` may not have.
  package var isBesideRepairs = false

  package init(feed: String, folder: String, started: Timestamp) {
    (self.feed, self.folder) = (feed, folder)
    (self.started, ended) = (started, started)
  }

  /// The number of transfers that orders keep from beginning, as far as the report names them.
  package var paused: Int {
    min(counts.waiting, problems.count { $0.kind == .held && $0.code == Problem.pausedCode })
  }

  /// True for exit status 0 of a pass. For a plan, true only when it also knows no changes.
  package var isInSync: Bool {
    (!isPlan || counts.toChange == 0) && counts.wanting == 0 && counts.held == 0 && !wasStopped
      && listingFailures == 0
  }

  /// The outcome for the ledger: `held` when only deletions that wait for an approval keep it from being in sync.
  var outcome: String {
    if isInSync { return "in-sync" }
    if wasStopped { return "stopped" }
    return counts.wanting == 0 && listingFailures == 0 ? "held" : "partial"
  }

  /// The options of the pass, without passwords; `nil` when they were not given.
  package var options: PassOptions?

  /// The seconds for which the feed wants to be left alone (RSS `ttl`); `nil` when it does not say.
  package var refreshSeconds: Int64?

  /// The number of forgotten files that stay because they are not as Tarn placed them.
  package var released = 0

  /// The number of listings of a recursive index that could not be read.
  package var listingFailures = 0

  package static let mostProblems = 10_000

  /// What the feed says about itself.
  package struct Manifest: Sendable, Equatable {
    /// The format, such as `checksum list`.
    package var format = ""
    package var isComplete = false
    /// True when it names only the newest files (RSS, Atom, JSON Feed).
    package var isWindow = false
    /// Why it may not name all files; empty when it does.
    package var incompleteReason = ""

    package init() {}
  }
}

extension PassFailure {
  /// Translates any error of the parts for users. An unknown error is a defect.
  ///
  /// - Parameter feed: the name of the feed, for its own errors.
  package init(translating error: any Error, feed: String = "the feed") {
    switch error {
    case let failure as PassFailure: self = failure
    case let failure as FeedFailure: self.init(failure, feed: feed)
    case let failure as LedgerFailure: self.init(failure)
    case let failure as FolderFailure: self.init(failure)
    case let failure as ThreadFailure:
      self.init(.inputOutput, code: "no-thread", "a thread could not be made (errno \(failure.number))")
    default:
      self.init(.defect, code: "defect", "\(error)", hint: "this is a defect in Tarn; please report it")
    }
  }

  /// Runs `body`, and throws every error as a `PassFailure`.
  package static func translating<Result>(
    feed: String = "the feed", _ body: () throws -> Result
  ) throws(PassFailure) -> Result {
    do {
      return try body()
    } catch {
      throw PassFailure(translating: error, feed: feed)
    }
  }
}

extension StopFlag {
  func throwIfSet() throws(PassFailure) {
    if isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
  }
}

extension PassCounts {
  /// True when the folder was changed.
  package var hasChanges: Bool {
    fetched + updated + restored + replaced + adopted + copied + deleted > 0
  }

  /// The counts as text: `12 fetched, 3 updated, 1 failed`.
  package var changes: String {
    let named: [(Int, String)] = [
      (fetched, "fetched"), (updated, "updated"), (restored, "restored"), (replaced, "replaced"),
      (adopted, "adopted"), (copied, "copied"), (deleted, "deleted"), (failed, "failed"),
      (refused, "refused"),
      (conflict, "in conflict"), (held, "held"), (waiting, "waiting"),
    ]
    let parts = named.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    return parts.isEmpty ? Self.noChanges : parts.joined(separator: ", ")
  }

  package static let noChanges = "nothing to do"
}
