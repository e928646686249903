import TarnCore
import TarnRuntime

/// What a client hands to the engine: a plan, the folder and the ledger that it is for, its limits. And what came of it.
///
/// It decides nothing over a path: what is not as the plan saw it is stale, and goes back to the client. It is of one thread at a time: its
/// maker's until `submit`, then the engine's, and from the end of `wait` on of who waited.
final class Submission {
  let ports: PassPorts
  let folder: any FolderPort
  let policy: PassPolicy
  let terms: Terms
  let stop: StopFlag
  let account: TransferAccount
  let space: SpaceBudget
  let retry: RetryPolicy
  private var atHand: BytesAtHand
  /// Its place in the ports' stage, which nobody changes any more.
  var plan: PlanReader
  /// As the engine calls who submitted it.
  var client: TransferState.ClientID = 0
  private var adoptions: [Row] = []
  /// What orders ended or kept from beginning, and as which problem it is told, to be tried again if somebody wants that.
  private var steeredAway: [RelativePath: (action: Action, ordinal: Int, code: String)] = [:]
  /// Where the feed's own list was read to; nil once it was taken from there.
  var listURL: String?
  /// What its transfers are made with, once the engine has made it.
  var context: FileReceiverContext?
  /// What another manifest wants that was accepted since.
  var manifest: ((RelativePath) throws -> Entry?)?
  /// Of the manifest that it goes by, as they are announced; nil where it goes by the one that is announced next.
  var manifestNumber: Int?
  /// Another manifest wants something of it otherwise: its client has to look again.
  private(set) var isSuperseded = false
  /// Files that could not make way, and why: no more than the deletion guard lets go.
  private var stuck: [RelativePath: String] = [:]
  /// Actions whose path was not as the plan saw it, to be decided over again.
  var stale: [Action] = []

  /// What its client says of it.
  struct Terms {
    /// Its requests go ahead of others.
    var isUrgent = false
    /// Orders about single transfers.
    var steering: PassSteering?
    /// Whether files may make way for directories: they are deletions like any other.
    var deletions = DeletionVerdict.allowed
    /// It is about all of the mirror, or what it is about belongs to that.
    var countsInPlace = true
    /// Entries in memory that wait for the same reason.
    var mostHeldBack = 4096
    /// Files that repairs had brought when this plan's folder was looked at.
    var broughtBefore = 0
    /// How many manifests had been announced when its own was opened; nil where it goes by the one that is announced next.
    var manifestsBefore: Int?
  }

  /// What need not be fetched.
  private struct BytesAtHand {
    /// Files of the folder that may hold what is wanted.
    let unrecorded: UnrecordedFiles
    /// Names of the partial files to go on with.
    var resumable: [RelativePath: String]
    /// Any rows at the start: else no bytes of the folder can be used again.
    let hasRows: Bool
  }

  var isUrgent: Bool { terms.isUrgent }
  var steering: PassSteering? { terms.steering }
  var unrecorded: UnrecordedFiles { atHand.unrecorded }

  init(
    ports: PassPorts, folder: any FolderPort, policy: PassPolicy, unrecorded: UnrecordedFiles,
    account: TransferAccount, stop: StopFlag, terms: Terms
  ) throws {
    self.terms = terms
    manifestNumber = terms.manifestsBefore
    self.ports = ports
    plan = try PlanReader(ports.stage.actions())
    self.folder = folder
    self.policy = policy
    self.account = account
    self.stop = stop
    space = try SpaceBudget(folder, reserve: policy.reserve, ports.engine.promises)
    retry = RetryPolicy(retries: policy.retries)
    atHand = BytesAtHand(
      unrecorded: unrecorded,
      resumable: Dictionary(try ports.ledger.partials().map { ($0.path, $0.name) }) { $1 },
      hasRows: try ports.ledger.rows().next() != nil)
  }

  /// What is left of one that has ended, by the plan that is in its stage now.
  ///
  /// - Parameter broughtBefore: files that repairs had brought when that plan was made.
  convenience init(again other: Submission, broughtBefore: Int) throws {
    var terms = other.terms
    terms.broughtBefore = broughtBefore
    try self.init(
      ports: other.ports, folder: other.folder, policy: other.policy, unrecorded: other.unrecorded,
      account: other.account, stop: other.stop, terms: terms)
    (listURL, stuck) = (other.listURL, other.stuck)
    (manifest, manifestNumber) = (other.manifest, other.manifestNumber)
    steeredAway = other.steeredAway
  }

  /// The stale actions so far; they are the caller's now.
  func takeStale() -> [Action] {
    defer { stale = [] }
    return stale
  }

  /// What stands at a path is what the plan saw there, and the manifest still wants what the plan brings. What nobody else can have brought
  /// is not looked at.
  func isAsSeen(_ action: Action) throws -> Bool {
    if let manifest, try manifest(action.path) != action.entry {
      supersede()
      return false
    }
    guard isUrgent || ports.engine.urgentlyPlaced != terms.broughtBefore else { return true }
    if action.kind == .adopt {
      // Seen before its row was written.
      guard let row = action.row, row.isAdopted, let known = try ports.ledger.row(action.path) else {
        return true
      }
      return !known.isTarns(row.identity, row.digest)
    }
    do throws(FolderFailure) {
      guard let there = try folder.look(action.path) else { return action.present == nil }
      return action.present.map { there.kind == .directory || there.identity.isSame(as: $0) } ?? false
    } catch {
      return true
    }
  }

  func supersede() { isSuperseded = true }

  // MARK: Bytes at hand

  /// Bytes of space for an entry; nil where that is not known.
  ///
  /// What an unfinished download of it has already serves again, whatever becomes of its contents.
  func needed(_ entry: Entry) -> UInt64? {
    let held = atHand.resumable[entry.path].flatMap { try? folder.partialAllocation($0) } ?? 0
    return entry.size.map { $0 - min($0, held) }
  }

  /// A partial file, or a file of the folder, may hold bytes of it.
  func mayBeAtHand(_ job: Job) -> Bool {
    atHand.resumable[job.entry.path] != nil || (job.entry.digest != nil && atHand.hasRows)
      || !unrecorded.candidates(job.entry, row: job.action.row).isEmpty
  }

  func hasCopy(_ entry: Entry) throws -> Bool {
    guard let digest = entry.digest else { return false }
    return try RecordedCopies(ledger: ports.ledger, folder: folder).exists(of: digest, for: entry.path)
  }

  /// Keeps a partial file for the next pass. Without a row nobody could go on with it: it would only take space.
  func leavePartial(_ job: Job) {
    guard let partial = job.partial else { return }
    let isKnown = (try? ports.ledger.partial(job.entry.path)).map { $0?.name == partial.name } ?? true
    if isKnown { partial.close() } else { partial.discard() }
  }

  /// Keeps it for who begins with this path again.
  private func keepPartial(_ job: Job) {
    guard let partial = job.partial else { return }
    partial.close()
    atHand.resumable[job.entry.path] = partial.name
  }

  // MARK: Publishing

  /// A checked file on its way to its name.
  func publication(_ job: Job, _ partial: any PartialFile, _ checked: Job.Checked) -> Publication {
    let row = Row(
      path: job.entry.path, identity: checked.sealed.identity, digest: checked.sealed.digest,
      isVerified: checked.sealed.isVerified, fingerprint: job.entry.fingerprint, etag: checked.head?.etag,
      lastModified: checked.head?.lastModified, placed: ports.now)
    return Publication(
      job: job.id, kind: job.action.kind, partial: partial,
      expectation: job.action.present.map { .present($0) } ?? .absent,
      trashName: job.action.present == nil ? "" : ports.random.name(), row: row,
      displacesOwn: job.displacesOwn, isCopy: checked.isCopy, isCounted: countsEntry(job.action))
  }

  /// Whether an entry counts as in place by what is done now. What a repair brings back was counted when it was brought.
  private func countsEntry(_ action: Action) -> Bool {
    guard terms.countsInPlace else { return false }
    return !isUrgent || action.kind == .fetch || action.kind == .update
  }

  /// A server that knows no conditions sends the same bytes each time: the file that is there is as good.
  ///
  /// - Returns: its row, with what the server says now; nil where it is another file, or stands there no more.
  func sameAsBefore(_ job: Job, _ checked: Job.Checked) -> Row? {
    guard job.action.kind == .revalidate, var row = job.action.row, row.digest == checked.sealed.digest,
      row.lastModified == checked.head?.lastModified,
      let present = try? folder.look(row.path), row.identity.isSame(as: present.identity)
    else { return nil }
    row.etag = checked.head?.etag
    return row
  }

  /// The server's copy is the one that is there: only the ledger learns what the listing and the server say now.
  func confirm(_ row: Row, _ job: Job) throws {
    var row = row
    row.fingerprint = job.entry.fingerprint
    let restored = restoreMode(of: &row)
    // Until the ledger knows its times, each pass hashes a file that somebody touched.
    var changes: [LedgerChange] = try ports.ledger.row(row.path) == row ? [] : [.row(row)]
    if countsEntry(job.action) { changes.append(.inPlace(entries: 1, bytes: row.identity.size)) }
    if let restored {
      changes.append(
        .event(
          Event(
            when: ports.now, code: "restored", path: row.path, bytes: row.identity.size, detail: restored)))
    }
    if !changes.isEmpty { try ports.ledger.applyVolatile(changes) }
  }

  // MARK: Files that are there already

  func adopt(_ row: Row) throws {
    adoptions.append(row)
    if adoptions.count >= PublishThread.largestGroup { try flushAdoptions() }
  }

  /// Only the ledger learns them. Those that Tarn placed are told of only where their mode was put back: a touched file has another
  /// time of change, and on a FUSE or network file system any file may.
  func flushAdoptions() throws {
    guard !adoptions.isEmpty else { return }
    let restored = restoreModes()
    try folder.flush()
    let now = ports.now
    func code(_ row: Row) -> String? {
      row.isAdopted ? "adopted" : restored[row.path] != nil ? "restored" : nil
    }
    let counted: [LedgerChange] =
      terms.countsInPlace && !isUrgent
      ? [
        .inPlace(
          entries: adoptions.count, bytes: adoptions.reduce(0) { $0.addingSaturated($1.identity.size) })
      ] : []
    try ports.ledger.apply(
      counted
        + adoptions.flatMap { row -> [LedgerChange] in
          let event = code(row).map {
            Event(
              when: now, code: $0, path: row.path, bytes: row.identity.size, detail: restored[row.path] ?? "")
          }
          return [.row(row), .dropProblem(name: row.path.bytes)] + (event.map { [.event($0)] } ?? [])
        })
    for row in adoptions { account.kept(row, code: code(row)) }
    adoptions = []
  }

  /// Of the files that wait to be adopted.
  ///
  /// - Returns: those whose mode was another one, and which, for people.
  private func restoreModes() -> [RelativePath: String] {
    var restored: [RelativePath: String] = [:]
    for index in adoptions.indices { restored[adoptions[index].path] = restoreMode(of: &adoptions[index]) }
    return restored
  }

  /// Of a file that Tarn placed: nobody changes it under `restore`. One that cannot be set is left as it is.
  ///
  /// - Returns: which it was, for people; nil where it was not changed.
  private func restoreMode(of row: inout Row) -> String? {
    guard policy.localChanges == .restore, !row.isAdopted else { return nil }
    do throws(FolderFailure) {
      guard let (identity, before) = try folder.restoreMode(of: row.path, expected: row.identity) else {
        return nil
      }
      // By a chmod the file has another time of change.
      let isSame = identity.isSame(as: row.identity)
      row.identity = identity
      ports.ownWrites?.note(row.path, identity)
      let mode = String(before, radix: 8)
      return isSame ? nil : "its mode was \(String(repeating: "0", count: max(0, 3 - mode.count)))\(mode)"
    } catch {
      account.tell(.notice(code: error.code.rawValue, message: error.message))
      return nil
    }
  }

  // MARK: Files that make way

  /// A file that Tarn placed, where the feed now has a directory.
  func removeInTheWay(_ action: Action) throws {
    guard terms.deletions == .allowed else { return }
    let removals = Removals(
      ledger: ports.ledger, folder: folder, clock: ports.clock, random: ports.random,
      ownWrites: ports.ownWrites)
    let outcome = try removals.carryOut([action]).first?.outcome ?? .stale("not there")
    if let problem = account.removed(action, outcome) { stuck[action.path] = problem.message }
  }

  /// Whether an entry lies below a file that stays for now; then it waits, or has failed.
  func isBlocked(_ action: Action) -> Bool {
    guard let blocker = action.blocker else { return false }
    if let reason = stuck[blocker] {
      account.fail(
        action.path, code: FolderFailure.Code.notDirectory.rawValue,
        message: "\(DeletionVerdict.inTheWay(blocker)), but it could not make way: \(reason)")
      return true
    }
    guard let problem = terms.deletions.problem(of: action.path, below: blocker, seen: ports.now) else {
      return false
    }
    account.take(problem)
    return true
  }

  // MARK: Orders

  private static let cancelledCode = "cancelled"

  func isPaused(_ path: RelativePath) -> Bool { steering?.isPaused(path) == true }

  /// Another client has brought an entry: nothing of it is left to do here.
  func settle(_ path: RelativePath, broughtByOther size: UInt64) {
    steeredAway[path] = nil
    account.settle(path, broughtByOther: size)
  }

  /// An order ended its transfer: its bytes are kept, and the entry is told.
  func cancel(_ job: Job) {
    keepPartial(job)
    let message = "its transfer was cancelled; the next pass tries again"
    noteNow(account.fail(job.entry, code: Self.cancelledCode, message: message))
    steeredAway[job.entry.path] = (job.action, job.ordinal, Self.cancelledCode)
  }

  func pause(_ job: Job) {
    keepPartial(job)
    hold(job.action, ordinal: job.ordinal)
  }

  /// Reports an action that no pass is to begin for now.
  func hold(_ action: Action, ordinal: Int) {
    let problem = Problem(
      name: action.path.bytes, kind: .held, code: Problem.pausedCode,
      message: "its transfer is paused until 'tarn resume'", seen: ports.now)
    account.take(problem)
    noteNow(problem)
    steeredAway[action.path] = (action, ordinal, Problem.pausedCode)
  }

  /// Takes back that an order ended it, or kept it from beginning: its problem is told no more.
  ///
  /// - Returns: what is to begin again; nil when no order did, or nothing more is begun.
  func takeBack(_ path: RelativePath) -> (action: Action, entry: Entry, ordinal: Int)? {
    guard !stop.isSet, !isPaused(path), let (action, ordinal, code) = steeredAway.removeValue(forKey: path),
      let entry = action.entry
    else { return nil }
    account.takeBack(entry, code: code, wasPaused: code == Problem.pausedCode)
    // A failure is of no account: what publishes it drops the problem, too.
    try? ports.ledger.applyVolatile([.dropProblem(name: path.bytes)])
    return (action, entry, ordinal)
  }

  /// Questions beside the pass hear of it now; soon told again, so a failure is of no account here.
  private func noteNow(_ problem: Problem) {
    try? ports.ledger.applyVolatile([.problem(problem)])
  }
}
