import TarnCore

/// One entry on its way into the folder. The engine's, on its thread.
final class Job {
  let id: UInt64
  let submission: Submission
  let action: Action
  let entry: Entry
  /// The action's place in the plan.
  let ordinal: Int
  /// The lane that its work is done on. Small files are all made on one, for to make files two threads mostly wait for each other
  /// in the file system, and filled on the next (`FileReceiver.end`).
  let lane: Int
  /// How its bytes are asked for.
  var attempts: Attempts
  var partial: (any PartialFile)?
  var download: DownloadID?
  /// What is whole, and how it came.
  struct Checked: Sendable {
    var sealed: Sealed
    /// Of the answer that brought the last of it; nil where it was at hand.
    var head: ResponseHead?
    /// Made from bytes of the folder.
    var isCopy: Bool
  }

  var checked: Checked?
  /// Why it has failed: for good, or unless a duplicate brings its bytes.
  var failure: Attempts.Trouble?
  /// The kernel refused it space: that is told even if all comes right.
  var isRefusedByKernel = false
  /// It was cancelled, and begins anew once that is done.
  var isWantedAgain = false
  /// Those who wanted it tried now, when its source was last asked.
  var wishes: UInt64?

  init(id: UInt64, of submission: Submission, action: Action, entry: Entry, ordinal: Int, lane: Int) {
    (self.id, self.submission) = (id, submission)
    self.action = action
    self.entry = entry
    self.ordinal = ordinal
    self.lane = lane
    attempts = Attempts(action, entry, submission.retry, submission.client.random)
  }

  static func isForFirstLane(_ entry: Entry) -> Bool { entry.size.map { $0 <= largestOfOneLane } == true }

  private static let largestOfOneLane: UInt64 = 64 << 10

  /// By which duplicates of it are known; nil where it has none.
  var contents: Duplicates.Contents? {
    submission.client.reusesContents ? Duplicates.Contents(entry) : nil
  }

  var check: ContentCheck { ContentCheck(size: entry.size, digest: entry.digest, pieces: entry.pieces) }

  /// What stands there is as Tarn placed it.
  var displacesOwn: Bool {
    (action.kind == .update || action.kind == .revalidate) && action.row?.isAdopted == false
  }

  func fail(code: String, message: String) {
    failure = Attempts.Trouble(source: attempts.source, code: code, message: message)
  }

  /// As if nothing had been asked for; its partial file is gone.
  func beginAnew() {
    attempts = Attempts(action, entry, submission.retry, submission.client.random)
    (failure, isRefusedByKernel) = (nil, false)
  }
}

/// What comes back to the engine: of which job.
enum JobMessage: Sendable {
  case prepared(UInt64, LocalBytes)
  /// - Parameter received: bytes that came for the file in this exchange.
  indirect case ended(UInt64, JobEnd, received: UInt64)
  indirect case published(UInt64, PublishOutcome)
  /// A step failed that can be done without; what is done instead.
  case workedAround(UInt64, FolderFailure, instead: String)
  /// The ledger cannot be written: all submissions end.
  case ledgerFailed(LedgerFailure)
  /// It cannot be told whether the folder is still the one that was opened: all submissions end.
  case folderFailed(FolderFailure)
}

/// What was at hand before the first byte was asked for.
enum LocalBytes: Sendable {
  case nothing
  /// A partial file with so many proved bytes.
  case kept(any PartialFile, ResumeLadder.Known)
  /// Made from a file of the folder, checked.
  case copied(any PartialFile, Sealed)
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

  /// The partial file of an exchange that did not bring all of it, and what is proved of its bytes.
  var atHand: (partial: any PartialFile, known: ResumeLadder.Known?)? {
    switch self {
    case .short(let partial, let known, _): (partial, known)
    case .folder(_, let partial, let known), .network(_, let partial, let known): partial.map { ($0, known) }
    case .sealed, .verdict, .wrongSize, .isDirectory: nil
    }
  }
}
