import TarnCore

/// What is to be done in a folder, and what was found out on the way. Nothing of it changes once it is submitted.
struct Plan {
  let actions: any ActionList
  /// As the planner went by it: a window has ways of its own with what changes locally.
  var policy: PassPolicy
  var deletions: Deletions
  let started: Timestamp
  /// Also what is to be done, in files and bytes.
  var counts = PassCounts()
  var bytes = PassBytes()
  var work = Work()
  var problems: [Problem] = []
  /// A part of the folder could not be read.
  var hasBlindSpot = false
  /// Files that the filter leaves alone: nobody knows whether the feed names them.
  var filteredRows = 0
  /// Entries in whose place a directory stands that goes with the deletions: decided again after these. Not in the stage.
  var behindDirectories: [Action] = []
  /// Files of Tarn's stand in the way of others that the list names.
  var makesWay: Bool { work.blocked.count > 0 || !behindDirectories.isEmpty }
  /// Files of the folder that may hold what is wanted.
  var unrecorded = UnrecordedFiles()
  /// Rows that are neither wanted nor to go, or kept by policy, as they are left.
  var left = FolderFingerprint()
  /// Problems that the ledger has of earlier passes, by their names.
  var old = Unsettled<[UInt8]>()
  /// Unfinished downloads: no pass goes on with those of paths that are in place by other means, or that the feed does not name.
  var partials = Unsettled<RelativePath>()
  var feed = Feed()
  /// What becomes of its deletions, and of files that make way for directories.
  var verdict = DeletionVerdict.forbidden("only a pass that has read the feed deletes")
  /// What had become of the folder when it was looked at.
  var since = TransferEngine.History()

  /// What of it may go.
  enum Deletions: Equatable {
    /// What the feed does not name.
    case all
    /// Of a window: what is older than what is kept. What it does not name stays.
    case expired(Set<RelativePath>)
    case none

    func allows(_ path: RelativePath) -> Bool {
      switch self {
      case .all: true
      case .expired(let paths): paths.contains(path)
      case .none: false
      }
    }
  }

  /// Beyond the counts of the report.
  struct Work {
    /// Of files that are gone from the feed, and of own files that a directory of the feed takes the place of.
    var deletions = 0
    /// Files to fetch that were not there before.
    var new = 0
    /// Entries to fetch whose size the feed does not tell.
    var unknownSizes = 0
    /// Bytes to bring back of files that were there and whose size the feed does not tell.
    var bytesAsRecorded: UInt64 = 0
    /// Entries below files that have to make way first, which are planned only if those may go: see `admitBlocked`.
    var blocked: (count: Int, bytes: UInt64, unknown: Int) = (0, 0, 0)
  }

  /// What the feed said of itself.
  struct Feed {
    /// Entries taken from it, filters not applied.
    var entries = 0
    /// An entry says neither size nor time nor digest: only its server knows whether it has changed.
    var asksForEach = false
    /// Where its own list lies, if it is kept.
    var listPath: RelativePath?
    /// Where that list can be had while the plan is carried out.
    var listURL: String?
    /// Something is to be done with that file.
    var plansList = false
    /// What the ledger has to learn of a window's files once the feed is accepted.
    var learned: [LedgerChange] = []
    /// Of a window with `keep`.
    var newest: WindowCatalog.Newest?
  }

  init(_ actions: any ActionList, policy: PassPolicy, deletions: Deletions, started: Timestamp) {
    (self.actions, self.policy, self.deletions, self.started) = (actions, policy, deletions, started)
  }

  var isWindow: Bool { if case .expired = deletions { true } else { false } }

  /// Bytes to fetch; of what is brought back, and whose size the feed does not tell, as it was.
  var bytesWithRecorded: UInt64 { bytes.planned.addingSaturated(work.bytesAsRecorded) }

  mutating func report(_ problem: Problem, telling observer: any PassObserver) {
    observer.report(problem, into: &problems, counting: &counts)
  }

  mutating func count(_ action: Action) {
    if action.kind == .delete { work.deletions += 1 }
    if action.entry?.isList == true { feed.plansList = true }
    if action.kind == .fetch, action.entry?.isList != true { work.new += 1 }
    guard action.kind != .delete, action.phase != .deletion else { return }
    let size = action.bytesToFetch
    if action.blocker == nil {
      count(action, 1)
      bytes.planned.addSaturated(size)
      work.bytesAsRecorded.addSaturated(action.bytesRecorded)
      if action.hasUnknownSize { work.unknownSizes += 1 }
    } else {
      work.blocked.count += 1
      work.blocked.bytes.addSaturated(size)
      if action.hasUnknownSize { work.blocked.unknown += 1 }
    }
  }

  private mutating func count(_ action: Action, _ more: Int) {
    counts.planned += more
    if action.isRecorded { counts.recorded += more }
    if action.kind == .revalidate { counts.asked += more }
  }

  /// It is decided over again.
  mutating func withdraw(_ action: Action) {
    count(action, -1)
    bytes.planned -= min(bytes.planned, action.bytesToFetch)
    work.bytesAsRecorded -= min(work.bytesAsRecorded, action.bytesRecorded)
  }

  /// What is in the way may go: what lies below it is to be fetched like anything else.
  mutating func admitBlocked() {
    counts.planned += work.blocked.count
    bytes.planned.addSaturated(work.blocked.bytes)
    work.unknownSizes += work.blocked.unknown
    work.blocked = (0, 0, 0)
  }
}
