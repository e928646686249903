import TarnCore

/// One entry on its way into the folder. Owned by the conductor.
struct Job {
  /// What of a job never changes: in one object, for jobs are copied often.
  private final class Assignment: Sendable {
    let id: UInt64
    let action: Action
    let entry: Entry
    let ordinal: Int
    let lane: Int

    init(id: UInt64, action: Action, entry: Entry, ordinal: Int, lane: Int) {
      self.id = id
      self.action = action
      self.entry = entry
      self.ordinal = ordinal
      self.lane = lane
    }
  }

  private let assignment: Assignment
  /// Which source is asked now.
  var source = 0
  /// Rounds over all sources so far, the running one included.
  var round = 1
  /// The rung asked with now.
  var rung = ResumeLadder.Rung.fromZero
  /// Times that its source was asked anew, because bytes at hand were of another version or not what they should be, or hardly any
  /// came.
  var restarts = 0
  var partial: (any PartialFile)?
  /// What is proved of the bytes in `partial`; with none of these, what an answer said of the version that it brought.
  var known: ResumeLadder.Known?
  var download: DownloadID?
  /// What each source that failed told last, the newest at the end.
  private(set) var troubles: [Trouble] = []
  /// Why no source can be asked any more: only a twin can still bring its bytes.
  private(set) var failure: Trouble?
  /// Bytes held of the pass's space.
  var reserved: UInt64 = 0
  /// Times that it found no space while it ran beside others.
  var squeezes = 0
  /// How many jobs had begun with it, when it began with nothing else at work; nil when it did not.
  var begunAlone: Int?
  /// The running request set a condition, so 304 is an answer to it.
  var isConditional = false
  /// A 304 contradicted the feed: no conditions any more.
  var isUnconditional = false
  /// Made from the bytes that the pass has read as its feed.
  var isOfDocument = false
  /// Made from bytes of the folder.
  var isCopy = false
  /// Its exchange was cancelled because a twin is in place.
  var isOvertaken = false
  /// Whole and checked: it gets its name.
  var isPublishing = false
  /// An order ended it; nobody is asked any more.
  var steered: PassSteering.Order?
  /// It was cancelled, and begins anew once that is done.
  var isWantedAgain = false
  /// It gets the next connection.
  var isUrgent = false
  /// Those who wanted it tried now, when its source was last asked.
  var wishes: UInt64?
  /// Times that its place went to another mirror, because nothing came.
  var gaveWay = 0
  /// A twin was in place when its bytes were last looked for in the folder.
  var knewTwin = false

  /// More restarts than this, and the source is called unstable.
  static let mostRestarts = 3

  struct Trouble: Sendable {
    var source: Int
    var code: String
    var message: String
    var isTransient: Bool
    var retryAfter: Int64?
    /// A request for the rest of the file brought nothing, where one for the whole may.
    var mayBeOfRange = false

    /// The source was not asked: its host is left alone.
    var isRest: Bool { code == DownloadFailure.Code.hostResting.rawValue }
  }

  init(id: UInt64, action: Action, entry: Entry, ordinal: Int, lane: Int = 0) {
    assignment = Assignment(id: id, action: action, entry: entry, ordinal: ordinal, lane: lane)
  }

  var id: UInt64 { assignment.id }
  var action: Action { assignment.action }
  var entry: Entry { assignment.entry }
  /// The action's place in the plan.
  var ordinal: Int { assignment.ordinal }

  var url: String { entry.sources[source].url }

  /// The lane that its work is done on. Small files are all made on one, for to make files two threads mostly wait for each other
  /// in the file system, and filled on the next (`FileReceiver.end`).
  var lane: Int { assignment.lane }

  static func isForFirstLane(_ entry: Entry) -> Bool { entry.size.map { $0 <= largestOfOneLane } == true }

  private static let largestOfOneLane: UInt64 = 64 << 10

  /// Seconds; see `DownloadRequest.patience`.
  var patience: Int64 { DownloadRequest.patience(gaveWay: gaveWay) }

  var check: ContentCheck { ContentCheck(size: entry.size, digest: entry.digest, pieces: entry.pieces) }

  /// Servers label compressed files as encoded: the bytes are the file. Anything else that is sent encoded is
  /// another file, which only a digest would tell.
  var takesEncoding: Bool {
    let compressed = [".gz", ".tgz", ".bz2", ".xz", ".zst", ".br", ".Z", ".svgz", ".lzma"]
    let name = entry.path.bytes
    return entry.digest != nil || compressed.contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// What stands there is as Tarn placed it.
  var displacesOwn: Bool {
    (action.kind == .update || action.kind == .revalidate) && action.row?.isAdopted == false
  }

  /// Ask conditionally: what stands there may be the server's version still. Only where no digest decides.
  var conditionalRow: Row? {
    guard !isUnconditional, entry.digest == nil, entry.pieces == nil, !hasKept, let row = action.row,
      action.present != nil,
      action.kind == .update || action.kind == .revalidate, row.etag != nil || row.lastModified != nil
    else { return nil }
    return row
  }

  /// There are bytes to go on from.
  var hasKept: Bool { known.map { $0.kept > 0 } ?? false }

  /// The bytes at hand are of no use; how many the version has is known still.
  mutating func keepNothing() {
    known?.kept = 0
    known?.durable = 0
  }

  mutating func note(_ trouble: Trouble) {
    troubles.removeAll { $0.source == trouble.source }
    troubles.append(trouble)
  }

  /// The first source from this one on that did not fail for good; nil when there is none.
  func usableSource(from first: Int) -> Int? {
    (first..<entry.sources.count).first { source in
      troubles.allSatisfy { $0.source != source || $0.isTransient }
    }
  }

  /// No source is asked any more.
  mutating func forsake(_ failure: Trouble) {
    self.failure = failure
    troubles = []
  }

  /// What went wrong, source by source.
  var troubleText: String {
    guard troubles.count > 1, entry.sources.count > 1 else { return troubles.last?.message ?? "" }
    return troubles.suffix(3).map(\.message).joined(separator: "; ")
  }
}

/// What comes back to the conductor.
enum JobMessage: Sendable {
  case prepared(UInt64, LocalBytes)
  /// - Parameter received: bytes that came for the file in this exchange.
  indirect case ended(UInt64, JobEnd, received: UInt64)
  indirect case published(UInt64, PublishOutcome)
  /// A step failed that can be done without; what is done instead.
  case workedAround(FolderFailure, instead: String)
  /// An order from outside, and who waits for the answer.
  case steer(PassSteering.Order, RelativePath, @Sendable (PassSteering.Answer) -> Void)
  /// Somebody wants what pauses tried now.
  case hurry
  /// The ledger cannot be written: the pass has to end.
  case ledgerFailed(LedgerFailure)
  /// It cannot be told whether the folder is still the one that was opened: the pass has to end.
  case folderFailed(FolderFailure)
  case wake
}

/// What was at hand before the first byte was asked for.
enum LocalBytes: Sendable {
  case nothing
  /// A partial file with so many proved bytes.
  case kept(any PartialFile, ResumeLadder.Known)
  /// Made from a file of the folder, checked.
  case copied(any PartialFile, Sealed)
  case failed(FolderFailure)
}

/// How one exchange and the writing of its bytes ended.
enum JobEnd: Sendable {
  indirect case sealed(any PartialFile, Sealed, ResponseHead?)
  case folder(FolderFailure, (any PartialFile)?, ResumeLadder.Known?)
  case network(DownloadFailure, (any PartialFile)?, ResumeLadder.Known?)
  case verdict(ResumeLadder.Verdict, ResponseHead)
  /// The answer was whole and ended before the file does, which has so many bytes.
  case short(any PartialFile, ResumeLadder.Known?, total: UInt64)
  /// The server announces another size than the feed.
  /// - Parameter note: what may explain it, behind the sentence; empty for nothing.
  case wrongSize(said: UInt64, note: String)
  /// What the listing names as a file led to the page of a directory.
  case isDirectory
}
