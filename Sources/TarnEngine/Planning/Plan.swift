import TarnCore

/// A plan for a folder, and what was found while making it. It does not change once it is submitted.
struct Plan {
  let actions: any ActionList
  /// The policy that the planner followed. A window has its own treatment of local changes.
  var policy: PassPolicy
  var deletions: Deletions
  let started: Timestamp
  /// The counts of the report, including what is to be done, in files and bytes.
  var counts = PassCounts()
  var bytes = PassBytes()
  var work = Work()
  var problems: [Problem] = []
  /// True when a part of the folder could not be read.
  var hasBlindSpot = false
  /// The number of Tarn's files that the filter excludes: the feed may or may not name them.
  var filteredRows = 0
  /// Entries where a directory is whose files are all to be deleted. They are decided again after the deletions, and are not in the
  /// stage.
  var behindDirectories: [Action] = []
  /// True when Tarn's files are in the way of others that the list names.
  var makesWay: Bool { work.blocked.count > 0 || !behindDirectories.isEmpty }
  /// Files in the folder that may have wanted contents.
  var unrecorded = UnrecordedFiles()
  /// The fingerprint of rows that are left as they are: those neither wanted nor to be deleted, and those kept by policy.
  var left = FolderFingerprint()
  /// The problems of earlier passes in the ledger, by their names.
  var old = Unsettled<[UInt8]>()
  /// The unfinished downloads. No pass continues those of paths that are in place by other means, or that the feed does not name.
  var partials = Unsettled<RelativePath>()
  var feed = Feed()
  /// The verdict on its deletions, including files that make way for directories.
  var verdict = DeletionVerdict.forbidden("only a pass that has read the feed deletes")
  /// The engine's history when the folder was read.
  var since = TransferEngine.History()

  /// The files that the plan may delete.
  enum Deletions: Equatable {
    /// All files that the feed does not name.
    case all
    /// The expired files of a window: those older than what is kept. Other files that it does not name stay.
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

  /// Counts that are not in the report.
  struct Work {
    /// The deletions: of files that are gone from the feed, and of Tarn's files that make way for a directory.
    var deletions = 0
    /// The files to fetch that did not exist before.
    var new = 0
    /// The entries to fetch whose size the feed does not tell.
    var unknownSizes = 0
    /// The bytes to restore for files that existed and whose size the feed does not tell.
    var bytesAsRecorded: UInt64 = 0
    /// The files that were in place and that the actions bring back. A repair shows them as missing until they are there.
    var missing = RepairPending()
    /// Entries below files that have to make way first. They are planned only if those files may go; see `admitBlocked`.
    var blocked: (count: Int, bytes: UInt64, unknown: Int) = (0, 0, 0)
  }

  /// What the feed said about itself.
  struct Feed {
    /// The entries of the feed, before filters.
    var entries = 0
    /// True when an entry has neither size nor time nor digest, so that only its server knows whether it has changed.
    var asksForEach = false
    /// The path of the feed's own list, if it is kept.
    var listPath: RelativePath?
    /// The URL where that list is available while the plan is carried out.
    var listURL: String?
    /// Why an earlier pass did not put such a list in place, whose end nothing marks; `nil` when there was none.
    var listDoubt: String?
    /// True when the plan changes that file.
    var plansList = false
    /// The changes about a window's files that the ledger gets once the feed is accepted.
    var learned: [LedgerChange] = []
    /// The newest files of a window with `keep`; `nil` for other feeds.
    var newest: WindowCatalog.Newest?
  }

  init(_ actions: any ActionList, policy: PassPolicy, deletions: Deletions, started: Timestamp) {
    (self.actions, self.policy, self.deletions, self.started) = (actions, policy, deletions, started)
  }

  var isWindow: Bool { if case .expired = deletions { true } else { false } }

  /// The bytes to fetch. A restored file whose size the feed does not tell counts as it was recorded.
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
      work.missing = work.missing + RepairPending(action)
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
    counts.planned.all += more
    if action.isRecorded { counts.planned.recorded += more }
    if action.kind == .revalidate { counts.planned.asked += more }
  }

  /// Removes an action from the counts, because it is decided again.
  mutating func withdraw(_ action: Action) {
    count(action, -1)
    work.missing = work.missing - RepairPending(action)
    bytes.planned -= min(bytes.planned, action.bytesToFetch)
    work.bytesAsRecorded -= min(work.bytesAsRecorded, action.bytesRecorded)
  }

  /// Counts the blocked entries like any other, because the files in their way may go.
  mutating func admitBlocked() {
    counts.planned.all += work.blocked.count
    bytes.planned.addSaturated(work.blocked.bytes)
    work.unknownSizes += work.blocked.unknown
    work.blocked = (0, 0, 0)
  }
}
