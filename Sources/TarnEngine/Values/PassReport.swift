package import TarnCore
import TarnRuntime

/// How many paths ended how. Each wanted path is counted once in `wanted` and once more below.
package struct PassCounts: Sendable, Equatable {
  /// Entries of the feed after filters, refused ones included.
  package var wanted = 0
  package var current = 0
  /// To do, as planned: with these two.
  package var planned = 0
  /// Of Tarn's files, with the bytes that they had: the ledger alone learns of it.
  package var recorded = 0
  /// To ask the server about.
  package var asked = 0
  package var fetched = 0
  package var updated = 0
  package var restored = 0
  package var replaced = 0
  package var adopted = 0
  /// Put in place, for whatever reason, with bytes that were in the folder already: nothing was fetched for them.
  package var copied = 0
  /// Asked the server, and it said that nothing changed.
  package var revalidated = 0
  package var deleted = 0
  package var forgotten = 0
  /// Recorded, no longer in the feed, left in place.
  package var unlisted = 0
  package var excluded = 0
  /// Left as the user made them, by policy.
  package var kept = 0
  package var failed = 0
  package var refused = 0
  package var conflict = 0
  /// Deletions.
  package var held = 0
  /// Wanted entries that lie below a file whose deletion is held.
  package var waiting = 0

  package init() {}

  private static let all: [any WritableKeyPath<PassCounts, Int> & Sendable] = [
    \.wanted, \.current, \.planned, \.fetched, \.updated, \.restored, \.replaced, \.adopted, \.copied,
    \.revalidated, \.deleted, \.forgotten, \.unlisted, \.excluded, \.kept, \.failed, \.refused,
    \.conflict, \.held, \.waiting, \.recorded, \.asked,
  ]

  /// Adds what came to `more` since it was `before`.
  mutating func add(_ more: PassCounts, since before: PassCounts = PassCounts()) {
    for count in Self.all { self[keyPath: count] += more[keyPath: count] - before[keyPath: count] }
  }

  /// Wanted entries that are in place.
  package var inPlace: Int {
    current + fetched + updated + restored + replaced + adopted + copied + revalidated
  }

  /// Planned changes, as far as they are known.
  package var toChange: Int { planned - recorded - asked }

  /// Wanted entries that are not in place.
  package var wanting: Int { failed + refused + conflict + waiting }
}

/// How many bytes.
package struct PassBytes: Sendable, Equatable {
  /// Of all wanted entries whose size is known: from the feed, else from the file that is in place.
  package var wanted: UInt64 = 0
  /// Wanted entries whose size is not known.
  package var unknownSizes = 0
  package var current: UInt64 = 0
  /// To fetch, as planned; entries of unknown size left out.
  package var planned: UInt64 = 0
  /// Body bytes that came over the network for entries.
  package var received: UInt64 = 0
  /// Of files put in place.
  package var published: UInt64 = 0
  /// Of files that were there and were taken, or asked for and not changed.
  package var confirmed: UInt64 = 0

  package init() {}
}

extension Row {
  /// The size of an entry whose feed tells none, as far as the file that is in place tells it: where that is the entry's version.
  ///
  /// - Parameter isKept: nothing is fetched for it, unless its server says that it changed.
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
  /// Of the file that comes or goes, as far as the feed or the record tells it.
  package var sizeToTell: UInt64? {
    switch kind {
    case .delete: present?.size ?? row?.identity.size
    case .forget: nil
    default: entry.flatMap { $0.size ?? sizeCounted(of: $0) }
    }
  }

  /// What was counted of an entry without a size before anything came of the action.
  func sizeCounted(of entry: Entry) -> UInt64? {
    row?.size(of: entry, isKept: kind == .revalidate || kind == .inspect)
  }
}

/// Sizes that a pass learned of entries without one in the feed.
struct LearnedSizes {
  /// Of entries whose size was not known at all.
  private var count = 0
  private var more: UInt64 = 0
  /// What the files had before that they replace.
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
  /// Of wanted entries that are in place.
  package var inPlace: UInt64 { current.addingSaturated(published).addingSaturated(confirmed) }
}

/// What a pass did, or what a plan would do.
package struct PassReport: Sendable {
  package var feed: String
  package var folder: String
  /// What the feed is: `checksum list`.
  package var format = ""
  package var isComplete = false
  /// The feed names the newest files only (RSS, Atom, JSON Feed).
  package var isWindow = false
  package var incompleteReason = ""
  package var started: Timestamp
  package var ended: Timestamp
  package var counts = PassCounts()
  package var bytes = PassBytes()
  /// At most 10,000; `counts` has them all.
  package var problems: [Problem] = []
  /// Names of problems that the ledger has heard of before the end of the pass, and that stand.
  var namedEarly: Set<[UInt8]> = []
  /// Of a plan: what would be held. Nothing is until a pass holds it.
  package var held: HeldPlan?
  /// The feed has not changed, as its server said or the same text that it sent, and the folder stands as it did: no entry was read.
  package var isFeedUnchanged: Bool { unchanged != nil }
  /// The folder was not scanned, for somebody has watched it.
  package var isFolderUnseen: Bool { unchanged == .watched }

  /// How that was seen of the folder; nil where entries were read.
  package enum Unchanged: Sendable {
    case scanned, watched
  }
  package var unchanged: Unchanged?
  /// Says what would be done, and nothing was.
  package var isPlan = false
  /// Ended early on request: what was fetched is kept and will be resumed.
  package var wasStopped = false

  package init(feed: String, folder: String, started: Timestamp) {
    (self.feed, self.folder) = (feed, folder)
    (self.started, ended) = (started, started)
  }

  /// Transfers that orders keep from beginning, of those that wait: as far as the report names them.
  package var paused: Int {
    min(counts.waiting, problems.count { $0.kind == .held && $0.code == Problem.pausedCode })
  }

  /// True for exit status 0 of a pass; of a plan when no change is known as well.
  package var isInSync: Bool {
    (!isPlan || counts.toChange == 0) && counts.wanting == 0 && counts.held == 0 && !wasStopped
      && listingFailures == 0
  }

  /// As the ledger remembers it: `held` when nothing but deletions that wait for an approval keeps it from being in sync.
  var outcome: String {
    if isInSync { return "in-sync" }
    if wasStopped { return "stopped" }
    return counts.wanting == 0 && listingFailures == 0 ? "held" : "partial"
  }

  /// What the pass went by, without passwords; nil where nobody told.
  package var options: PassOptions?

  /// How long the feed wants to be left alone (RSS `ttl`), in seconds; nil when it does not say.
  package var refreshSeconds: Int64?

  /// Of those forgotten: what stands there is not what Tarn placed, and stays.
  package var released = 0

  /// Listings of a recursive index that could not be read.
  package var listingFailures = 0

  package static let mostProblems = 10_000
}

extension PassFailure {
  /// Any error of the parts, as users see it; what is none of theirs is a defect.
  ///
  /// - Parameter feed: what the feed is called, for its own errors.
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

  /// Does the work; every error comes as a `PassFailure`.
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
  /// Something was done to the folder.
  package var hasChanges: Bool {
    fetched + updated + restored + replaced + adopted + copied + deleted > 0
  }

  /// `12 fetched, 3 updated, 1 failed`.
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
