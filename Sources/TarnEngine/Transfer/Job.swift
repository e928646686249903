import TarnCore

/// A transfer of one entry into the folder. Confined to the engine's thread.
final class Job {
  let id: UInt64
  let submission: Submission
  let action: Action
  let entry: Entry
  /// The position of the action in the plan.
  let ordinal: Int
  /// The lane of its work. Small files are all made on one lane, because two threads that make files mostly wait for each other in
  /// the file system. They are filled on the next lane (`FileReceiver.end`).
  let lane: Int
  /// The requests for its bytes.
  var attempts: Attempts
  var partial: (any PartialFile)?
  var download: DownloadID?
  /// A complete file, and its origin.
  struct Checked: Sendable {
    var sealed: Sealed
    /// The head of the response that brought the last bytes; `nil` when they were at hand.
    var head: ResponseHead?
    /// True when it was made from bytes of the folder.
    var isCopy: Bool
  }

  var checked: Checked?
  /// The reason why it failed, either finally or unless a duplicate brings its bytes.
  var failure: Attempts.Trouble?
  /// True when the kernel refused it space, which is reported even if it succeeds later.
  var isRefusedByKernel = false
  /// True when it was cancelled and begins again once that is done.
  var isWantedAgain = false
  /// The number of requests to try at once that were made before its source was last asked.
  var wishes: UInt64?

  init(id: UInt64, of submission: Submission, action: Action, entry: Entry, ordinal: Int, lane: Int) {
    (self.id, self.submission) = (id, submission)
    self.action = action
    self.entry = entry
    self.ordinal = ordinal
    self.lane = lane
    attempts = Self.attempts(action, entry, of: submission)
  }

  private static func attempts(_ action: Action, _ entry: Entry, of submission: Submission) -> Attempts {
    var attempts = Attempts(action, entry, submission.retry, submission.client.random)
    attempts.keepsWithoutRoom = submission.client.keepsFailed
    attempts.mayAskForTheWhole = submission.client.mayAskForTheWhole
    attempts.knownURL = submission.client.requestOptions.knownURL
    return attempts
  }

  /// True for an unsure page that is in place and is only asked for again. When no server brings another file, it stays: a window
  /// tells of no other version, and a server need not keep what it has sent. The next pass asks again.
  private var staysWhenAskingFails: Bool { action.kind == .revalidate && action.row?.isUnsure == true }

  /// Returns the consequence of an answer.
  func next(after end: JobEnd, received: UInt64) -> Attempts.Step {
    let step = attempts.next(after: end, received: received)
    if staysWhenAskingFails, case .exhausted = step { return .unchanged }
    return step
  }

  static func isForFirstLane(_ entry: Entry) -> Bool { entry.size.map { $0 <= largestOfOneLane } == true }

  private static let largestOfOneLane: UInt64 = 64 << 10

  /// The contents that identify its duplicates; `nil` when it can have none.
  var contents: Duplicates.Contents? {
    submission.client.reusesContents ? Duplicates.Contents(entry) : nil
  }

  var check: ContentCheck { ContentCheck(size: entry.size, digest: entry.digest, pieces: entry.pieces) }

  /// The doubt about its bytes. What a user wrote in its place tells nothing of the file.
  var doubt: ContentDoubt? {
    let isRecorded = action.kind == .update || action.kind == .revalidate
    return ContentDoubt(entry, replacing: isRecorded ? action.present?.size : nil)
  }

  /// True when the file in place is as Tarn placed it.
  var displacesOwn: Bool {
    (action.kind == .update || action.kind == .revalidate) && action.row?.isAdopted == false
  }

  func fail(code: String, message: String) {
    failure = Attempts.Trouble(source: attempts.source, code: code, message: message)
  }

  /// Resets the job as if nothing had been requested. Its partial file is gone.
  func beginAnew() {
    attempts = Self.attempts(action, entry, of: submission)
    (failure, isRefusedByKernel) = (nil, false)
  }
}

/// A message to the engine about a job.
enum JobMessage: Sendable {
  case prepared(UInt64, LocalBytes)
  /// - Parameter received: the bytes that this exchange brought for the file.
  indirect case ended(UInt64, JobEnd, received: UInt64)
  indirect case published(UInt64, PublishOutcome)
  /// An optional step failed; `instead` says what is done in its place.
  case workedAround(UInt64, FolderFailure, instead: String)
  /// The ledger cannot be written: all submissions end.
  case ledgerFailed(LedgerFailure)
  /// It cannot be determined whether the folder is still the one that was opened: all submissions end.
  case folderFailed(FolderFailure)
}

/// The bytes that were at hand before anything was requested.
enum LocalBytes: Sendable {
  case nothing
  /// A partial file, and the knowledge about its bytes.
  case kept(any PartialFile, ResumeLadder.Known)
  /// A file that was made from one of the folder, and verified.
  case copied(any PartialFile, Sealed)
}

/// The end of an exchange and of writing its bytes.
enum JobEnd: Sendable {
  indirect case sealed(any PartialFile, Sealed, ResponseHead?)
  case folder(FolderFailure, (any PartialFile)?, ResumeLadder.Known?)
  case network(DownloadFailure, (any PartialFile)?, ResumeLadder.Known?)
  case verdict(ResumeLadder.Verdict, ResponseHead)
  /// The response was complete and ended before the file, whose size is `total`.
  case short(any PartialFile, ResumeLadder.Known?, total: UInt64)
  /// The server announces another size than the feed.
  ///
  /// - Parameter note: a possible explanation that follows the sentence; empty for none.
  case wrongSize(said: UInt64, note: String)
  /// The listing names it as a file, but it is the page of a directory.
  case isDirectory

  /// The partial file of an exchange that did not bring all of it, and the knowledge about its bytes.
  var atHand: (partial: any PartialFile, known: ResumeLadder.Known?)? {
    switch self {
    case .short(let partial, let known, _): (partial, known)
    case .folder(_, let partial, let known), .network(_, let partial, let known): partial.map { ($0, known) }
    case .sealed, .verdict, .wrongSize, .isDirectory: nil
    }
  }
}
