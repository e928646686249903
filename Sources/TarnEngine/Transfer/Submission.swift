import TarnCore
import TarnRuntime

/// A plan that is carried out for a client, and the results so far.
///
/// It decides nothing about paths: a path that is not as the plan saw it is stale, and goes back to the client. It belongs to one
/// thread at a time: its maker's until `submit`, then the engine's, and after `wait` the waiting thread's.
final class Submission {
  let client: TransferClient
  let policy: PassPolicy
  /// True when its requests precede others. An urgent submission follows the manifest that was announced; any other follows the one
  /// that is announced next.
  let isUrgent: Bool
  private let engine: TransferEngine
  /// The verdict on deletions, which includes files that make way for directories.
  private let deletions: DeletionVerdict
  /// The engine's history when the folder was read for this plan.
  private var since: TransferEngine.History
  let account: TransferAccount
  let space: SpaceBudget
  private var atHand: BytesAtHand
  var plan: PlanReader
  /// The engine's id for this submission.
  var id: TransferState.ClientID = 0
  /// The pending adoptions, each with its row.
  private var adoptions: [Action] = []
  /// The actions that orders ended or kept from beginning, with their problems' codes, to be retried on request.
  private var steeredAway: [RelativePath: (action: Action, ordinal: Int, code: String)] = [:]
  /// The place of the feed's own list, which was read to there; `nil` once it was taken from there.
  var listURL: String?
  /// See `Plan.Feed.listDoubt`.
  private let listDoubt: String?
  /// Returns what a manifest wants that was accepted since; `nil` when there is none.
  var manifest: ((RelativePath) throws -> Entry?)?
  /// The number of the manifest that it follows; `nil` when it follows the one that is announced next.
  var manifestNumber: Int?
  /// True when another manifest wants some of it otherwise, so that its client has to look at all of it again.
  var isSuperseded = false {
    didSet { if isSuperseded { stale = [] } }
  }
  /// The files that could not make way, and the reasons. They are no more than the deletion guard allows.
  private var stuck: [RelativePath: String] = [:]
  /// The actions whose paths were not as the plan saw them, to be decided again: at most `mostStale`.
  private(set) var stale: [Action] = []
  /// True when nothing is decided again after this plan.
  private var isLast = false

  /// The bytes that need not be fetched.
  private struct BytesAtHand {
    /// Files of the folder that may have wanted contents.
    let unrecorded: UnrecordedFiles
    /// The names of the partial files to continue.
    var resumable: [RelativePath: String]
    private let ledger: any TransferLedger
    /// True when there were any rows at the first access. Otherwise no bytes of the folder can be reused.
    lazy var hasRows = (try? ledger.rows().next() == nil) != true

    init(_ unrecorded: UnrecordedFiles, of client: TransferClient) throws(LedgerFailure) {
      (self.unrecorded, ledger) = (unrecorded, client.ledger)
      resumable = Dictionary(try ledger.partials(in: client.region).map { ($0.path, $0.name) }) { $1 }
    }
  }

  var folder: any TransferFolder { client.folder }
  var stop: StopFlag { client.stop }
  var steering: PassSteering? { client.steering }
  var retry: RetryPolicy { RetryPolicy(retries: policy.retries) }
  var unrecorded: UnrecordedFiles { atHand.unrecorded }

  init(
    _ plan: Plan, for client: TransferClient, isUrgent: Bool, _ account: TransferAccount,
    _ engine: TransferEngine
  ) throws {
    (self.client, self.isUrgent, self.account, self.engine) = (client, isUrgent, account, engine)
    (policy, deletions, since) = (plan.policy, plan.verdict, plan.since)
    (listURL, listDoubt) = (plan.feed.listURL, plan.feed.listDoubt)
    manifestNumber = isUrgent ? since.manifests : nil
    self.plan = try PlanReader(plan)
    space = try SpaceBudget(client.folder, reserve: policy.reserve, client.promises ?? engine.promises)
    atHand = try BytesAtHand(plan.unrecorded, of: client)
  }

  /// Continues with another plan, once the first has ended. It is of the same pass, which decided again about some paths: its policy,
  /// its verdict and the unrecorded files that its scan found are those of the first.
  ///
  /// - Parameter isLast: true when what is stale after it is only reported.
  func renew(_ plan: Plan, isLast: Bool) throws {
    (since, self.isLast) = (plan.since, isLast)
    self.plan = try PlanReader(plan)
    stale = []
    atHand = try BytesAtHand(unrecorded, of: client)
  }

  /// Notes that the path of an action is not as the plan saw it.
  ///
  /// Beyond the limit a repair looks at all of its plan again, and a pass reports that the next one must look.
  func decideAgain(_ action: Action) {
    if isSuperseded { return }
    if stale.count < client.mostStale { return stale.append(action) }
    if isUrgent { return isSuperseded = true }
    account.report(Problem(changedMeanwhile: action.path, seen: client.now))
  }

  /// Returns whether an index waits for files that are decided again: it names what is there. A file that never rests is one that
  /// failed, and holds up nothing.
  func mustWait(_ action: Action) -> Bool {
    action.phase != .payload && !isUrgent && !stale.isEmpty && !isLast
  }

  /// Returns whether the path is as the plan saw it, and the manifest still wants what the plan brings. A path that nobody else can
  /// have changed is not checked.
  ///
  /// - Parameter mustLook: true when time has passed, or others used the path: they may have left a partial file.
  func isAsSeen(_ action: Action, mustLook: Bool = false) throws -> Bool {
    // When this cannot be determined, the path is looked at again.
    if let manifest, (try? manifest(action.path)) != action.entry {
      isSuperseded = true
      return false
    }
    if mustLook { atHand.resumable[action.path] = try client.ledger.partial(action.path)?.name }
    guard mustLook || mayHaveBeenBrought else { return true }
    if action.kind == .adopt {
      // The file was seen before its row was written.
      guard let row = action.row, row.isAdopted, let known = try client.ledger.row(action.path) else {
        return true
      }
      return !known.isTarns(row.identity, row.digest)
    }
    // The file may have been seen before its row was written: it is what another client has brought.
    if mayHaveBeenBrought, try client.ledger.row(action.path)?.digest != action.row?.digest { return false }
    do throws(FolderFailure) {
      guard let there = try folder.look(action.path) else { return action.present == nil }
      return action.present.map { there.kind == .directory || there.identity.isSame(as: $0) } ?? false
    } catch {
      return true
    }
  }

  private var mayHaveBeenBrought: Bool { isUrgent || engine.history.brought != since.brought }

  private func isThere(_ row: Row) -> Bool {
    (try? folder.look(row.path))?.identity.isSame(as: row.identity) == true
  }

  // MARK: Bytes at hand

  /// Returns the space in bytes that an entry needs; `nil` when it is not known.
  ///
  /// The space of its unfinished download counts as available, whatever becomes of its contents.
  func needed(_ entry: Entry) -> UInt64? {
    let held = atHand.resumable[entry.path].flatMap { try? folder.partialAllocation($0) } ?? 0
    return entry.size.map { $0 - min($0, held) }
  }

  /// Returns whether a partial file, or a file of the folder, may have bytes of it.
  func mayBeAtHand(_ job: Job) -> Bool {
    atHand.resumable[job.entry.path] != nil || (job.entry.digest != nil && atHand.hasRows)
      || !unrecorded.candidates(job.entry, row: job.action.row).isEmpty
  }

  func hasCopy(_ entry: Entry) throws -> Bool {
    guard let digest = entry.digest else { return false }
    return try RecordedCopies(ledger: client.ledger, folder: folder).exists(of: digest, for: entry.path)
  }

  /// Keeps a partial file for the next pass. An empty one is removed, and so is one without a row, because nobody could continue it.
  func leavePartial(_ job: Job) {
    guard let partial = job.partial else { return }
    guard partial.length > 0 else {
      partial.discard()
      try? client.ledger.apply([.dropPartial(job.entry.path)])
      return
    }
    let isKnown = (try? client.ledger.partial(job.entry.path)).map { $0?.name == partial.name } ?? true
    if isKnown { partial.close() } else { partial.discard() }
  }

  /// Removes a partial file whose bytes are useless, and its row: the next one may have the same name.
  func discardPartial(_ job: Job) throws(LedgerFailure) {
    job.partial?.discard()
    job.partial = nil
    let (ledger, path) = (client.ledger, job.entry.path)
    if try ledger.partial(path) != nil { try ledger.apply([.dropPartial(path)]) }
  }

  /// Keeps a partial file for whoever begins this path again.
  private func keepPartial(_ job: Job) {
    guard let partial = job.partial else { return }
    partial.close()
    atHand.resumable[job.entry.path] = partial.name
  }

  // MARK: Publishing

  func publication(_ job: Job, _ partial: any PartialFile, _ checked: Job.Checked) -> Publication {
    let row = Row(
      path: job.entry.path, identity: checked.sealed.identity, digest: checked.sealed.digest,
      isVerified: checked.sealed.isVerified,
      fingerprint: fingerprint(job, sent: checked.head?.sent, type: checked.head?.contentType),
      etag: checked.head?.etag,
      lastModified: checked.head?.lastModified, placed: client.now)
    return Publication(
      job: job.id, client: client, kind: job.action.kind, partial: partial,
      expectation: job.action.present.map { .present($0) } ?? .absent,
      trashName: job.action.present == nil ? "" : client.random.name(), row: row,
      displacesOwn: job.displacesOwn, isCopy: checked.isCopy, isCounted: countsEntry(job.action),
      brought: brought(job.action))
  }

  /// - Returns: `nil` for a pass, and for what was not missing.
  private func brought(_ action: Action) -> BroughtFile? {
    let pending = RepairPending(action)
    guard pending.files > 0 else { return nil }
    return client.repair.map { BroughtFile(repair: $0, pending: pending) }
  }

  /// Notes that a repair need not bring a file: it is in place, or another repair brings it and counts it.
  func countBrought(_ action: Action) {
    if let file = brought(action) { engine.countBrought(file, in: client.ledger) }
  }

  /// Returns whether the action newly puts an entry in place. Files that a repair restores were counted when they were first
  /// placed, unless a pass has counted since that they are missing.
  private func countsEntry(_ action: Action) -> Bool {
    guard client.countsEntries, isUrgent else { return client.countsEntries }
    return switch action.kind {
    case .fetch, .update: true
    case .restore, .replace: client.repair.map(engine.hasCountedAsMissing) ?? false
    default: false
    }
  }

  /// Handles a server that ignores conditions and sends the same bytes each time: the existing file is as good. So is an unsure page
  /// for one of its size: programs write a time or a number into each.
  ///
  /// - Returns: its row, updated from the response; `nil` when the files differ, or the existing one is gone.
  func sameAsBefore(_ job: Job, _ checked: Job.Checked) -> Row? {
    guard [.revalidate, .update].contains(job.action.kind), var row = job.action.row,
      row.digest == checked.sealed.digest || isLikePage(row, job, checked),
      row.lastModified == checked.head?.lastModified,
      (job.entry.modified ?? row.identity.modified).seconds == row.identity.modified.seconds,
      let present = try? folder.look(row.path), row.identity.isSame(as: present.identity)
    else { return nil }
    if row.digest == checked.sealed.digest { row.etag = checked.head?.etag }
    return row
  }

  private func isLikePage(_ row: Row, _ job: Job, _ checked: Job.Checked) -> Bool {
    row.isUnsure && row.identity.size == checked.sealed.identity.size
      && ContentDoubt.isUnsure(job.entry, checked.head?.contentType)
  }

  /// Returns the fingerprint. While the version could not be told from one a moment later, it is empty. After a page that may not be
  /// the file, it says so. In both cases the next pass asks for it again.
  private func fingerprint(_ job: Job, sent: Timestamp?, type: String?) -> [UInt8] {
    let isUnsure = ContentDoubt.isUnsure(job.entry, type)
    guard job.entry.isUnsettled(at: sent ?? client.now) || isUnsure else { return job.entry.fingerprint }
    account.noteUnsettled()
    return isUnsure ? Row.unsure : []
  }

  /// Records that the existing file is the server's version. Only the ledger changes, with what the listing and the server say now.
  func confirm(_ row: Row, _ job: Job) throws {
    var row = row
    // A 304 tells no type: what was a page still is one.
    let type = job.checked?.head?.contentType ?? (row.isUnsure ? "text/html" : nil)
    row.fingerprint = fingerprint(job, sent: nil, type: type)
    let restored = restoreMode(of: &row)
    // Without this, each pass would hash a file that somebody touched.
    var changes: [LedgerChange] = try client.ledger.row(row.path) == row ? [] : [.row(row)]
    if countsEntry(job.action) { changes.append(.inPlace(entries: 1, bytes: row.identity.size)) }
    if let restored {
      changes.append(
        .event(
          when: client.now, code: "restored", path: row.path, bytes: row.identity.size, detail: restored))
    }
    if !changes.isEmpty { try client.ledger.applyVolatile(changes) }
    countBrought(job.action)
  }

  // MARK: Files that are there already

  /// - Parameter isTaken: returns whether somebody uses a path, and continues to.
  func adopt(_ action: Action, isTaken: (RelativePath) -> Bool) throws {
    adoptions.append(action)
    if adoptions.count >= PublishThread.largestGroup { try flushAdoptions(isTaken: isTaken) }
  }

  /// Records the pending adoptions. Files that Tarn placed are reported only when their mode was restored. A touched file has
  /// another time of change, and on a FUSE or network file system that may happen to any file.
  func flushAdoptions(isTaken: (RelativePath) -> Bool) throws {
    guard !adoptions.isEmpty else { return }
    var adopted: [Row] = []
    var brought: [BroughtFile] = []
    for action in adoptions {
      // Another client may have replaced a file that somebody removed.
      if let row = action.row, !isTaken(row.path), !mayHaveBeenBrought || isThere(row) {
        adopted.append(row)
        if let file = self.brought(action) { brought.append(file) }
      } else {
        decideAgain(action)
      }
    }
    let recorded = Set(adoptions.filter(\.isRecorded).map(\.path))
    adoptions = []
    // The files whose mode was restored, with the former mode.
    var restored: [RelativePath: String] = [:]
    for index in adopted.indices { restored[adopted[index].path] = restoreMode(of: &adopted[index]) }
    try folder.flush()
    let now = client.now
    func code(_ row: Row) -> String? {
      row.isAdopted ? "adopted" : restored[row.path] != nil ? "restored" : nil
    }
    var changes: [LedgerChange] = []
    if client.countsEntries, !isUrgent {
      let bytes = adopted.reduce(UInt64(0)) { $0.addingSaturated($1.identity.size) }
      changes.append(.inPlace(entries: adopted.count, bytes: bytes))
    }
    for row in adopted {
      changes += [.row(row), .dropProblem(name: row.path.bytes)]
      guard let code = code(row) else { continue }
      let (bytes, detail) = (row.identity.size, restored[row.path] ?? "")
      changes.append(.event(Event(when: now, code: code, path: row.path, bytes: bytes, detail: detail)))
    }
    try engine.record(changes, brought: brought, in: client.ledger)
    for row in adopted { account.kept(row, code: code(row), isToDo: !recorded.contains(row.path)) }
  }

  /// Restores the mode of a file that Tarn placed, under the policy `restore`. A mode that cannot be set is left as it is.
  ///
  /// - Returns: the former mode, for people; `nil` when it was not changed.
  private func restoreMode(of row: inout Row) -> String? {
    guard policy.localChanges == .restore, !row.isAdopted else { return nil }
    do throws(FolderFailure) {
      guard let (identity, before) = try folder.restoreMode(of: row.path, expected: row.identity) else {
        return nil
      }
      // The chmod changes the file's time of change.
      let isSame = identity.isSame(as: row.identity)
      row.identity = identity
      client.ownWrites?.note(row.path, identity)
      let mode = String(before, radix: 8)
      return isSame ? nil : "its mode was \(String(repeating: "0", count: max(0, 3 - mode.count)))\(mode)"
    } catch {
      account.tell(.notice(code: error.code.rawValue, message: error.message))
      return nil
    }
  }

  // MARK: Files that make way

  /// Removes a file that Tarn placed where the feed now has a directory.
  func removeInTheWay(_ action: Action) throws {
    guard deletions == .allowed else { return }
    let removals = Removals(
      ledger: client.ledger, folder: folder, clock: client.clock, random: client.random,
      ownWrites: client.ownWrites)
    let outcome = try removals.carryOut([action]).first?.outcome ?? .stale("not there")
    if let problem = account.removed(action, outcome) { stuck[action.path] = problem.message }
  }

  /// Returns whether an entry is below a file that stays for now. It then waits, or has failed. A list that may be cut does not
  /// replace the one before while its server lacks the last file, or while it is the shorter one.
  func isBlocked(_ action: Action) -> Bool {
    if let entry = action.entry, entry.isList, let name = account.failedCut {
      account.fail(
        action, code: "feed-truncated",
        message:
          "its last line has no end, and may be cut: \(name.printable) failed, so the list is not put in place"
      )
      return true
    }
    if let message = shorter(action), listDoubt != message {
      account.fail(action, code: DownloadFailure.Code.lengthUnknown.rawValue, message: message)
      return true
    }
    guard let blocker = action.blocker else { return false }
    if let reason = stuck[blocker] {
      account.fail(
        action.path, code: FolderFailure.Code.notDirectory.rawValue,
        message: "\(DeletionVerdict.inTheWay(blocker)), but it could not make way: \(reason)")
      return true
    }
    guard let problem = deletions.problem(of: action.path, below: blocker, seen: client.now) else {
      return false
    }
    account.report(problem)
    return true
  }

  /// Returns why a list may be cut that is to replace a longer one; `nil` when it is not. What comes alike in the next pass is taken.
  private func shorter(_ action: Action) -> String? {
    guard let entry = action.entry, entry.isList, entry.mayBeCut, let size = entry.size,
      let present = action.present, size < present.size
    else { return nil }
    return
      "nothing marks where the list ends, and its \(Units.count(size, "byte")) are fewer than those of the one before, which stays "
      + "until the list comes alike once more"
  }

  // MARK: Orders

  private static let cancelledCode = "cancelled"

  func isPaused(_ path: RelativePath) -> Bool { steering?.isPaused(path) == true }

  /// Ends a transfer by an order: its bytes are kept, and the entry is reported.
  func cancel(_ job: Job) {
    keepPartial(job)
    let message = "its transfer was cancelled; the next pass tries again"
    noteNow(account.fail(job.action, code: Self.cancelledCode, message: message, isOrder: true))
    steeredAway[job.entry.path] = (job.action, job.ordinal, Self.cancelledCode)
  }

  func pause(_ job: Job) {
    keepPartial(job)
    hold(job.action, ordinal: job.ordinal)
  }

  /// Reports an action that no pass may begin for now.
  func hold(_ action: Action, ordinal: Int) {
    let problem = Problem(
      name: action.path.bytes, kind: .held, code: Problem.pausedCode,
      message: "its transfer is paused until 'tarn resume'", seen: client.now)
    account.report(problem)
    noteNow(problem)
    steeredAway[action.path] = (action, ordinal, Problem.pausedCode)
  }

  /// Undoes an order that ended an action, or kept it from beginning. Its problem is no longer reported.
  ///
  /// - Returns: the action to begin again; `nil` when no order concerned it, or nothing more is begun.
  func takeBack(_ path: RelativePath) -> (action: Action, entry: Entry, ordinal: Int)? {
    guard !client.stop.isSet, !isPaused(path),
      let (action, ordinal, code) = steeredAway.removeValue(forKey: path),
      let entry = action.entry
    else { return nil }
    account.takeBack(entry, code: code, wasPaused: code == Problem.pausedCode)
    // A failure does not matter: publishing the file drops the problem, too.
    try? client.ledger.applyVolatile([.dropProblem(name: path.bytes)])
    return (action, entry, ordinal)
  }

  /// Records the problem at once, for the status. It is reported again soon, so a failure does not matter. Only passes are counted.
  private func noteNow(_ problem: Problem) {
    try? client.ledger.applyVolatile([.problem(isUrgent ? problem.asLooked : problem)])
  }
}
