package import TarnCore
import TarnRuntime

/// Carries out the plans of an open folder's clients: of a pass, and of repairs beside it. Any thread may submit. The engine's own
/// thread, its lanes and its publisher start with the first plan, and end when nothing is running any more.
///
/// Each open folder has its own engine, with its own paths and ledger, so that a failure ends nobody else's plans. All engines
/// share connections and rates; see `TransferBudget`.
package final class TransferEngine: Sendable {
  /// The messages and the state that other threads share with the engine's thread.
  struct Inbox {
    var messages: [EngineMessage] = []
    /// True while a thread reads it.
    var isRunning = false
    /// The number of the last job. Late messages about jobs of an earlier thread mean nothing to the next one.
    var lastJob: UInt64 = 0
    var history = History()
    /// The stage of the running pass; `nil` when none is running.
    var pass: PassStage?
    /// True once what a crash left was repaired.
    var isPrepared = false
    /// The reason why the folder or the ledger is not available. Unfinished steps are repaired when the mirror is opened again.
    var failure: PassFailure?
    var bringing = BringingRepairs()

    mutating func beginCarryingOut() { if pass != nil { pass = .carryingOut } }
  }

  /// The history of the folder so far. A copy is compared with later ones.
  struct History {
    /// The number of files that urgent clients have brought.
    var brought = 0
    /// The number of manifests that were announced.
    var manifests = 0
    /// The number of times that repairs have recorded something.
    var records = 0
    /// The number of passes that have ended.
    var passes = 0
    /// The last repair that has begun to bring files.
    var lastRepair: BringingRepairs.ID = 0
  }

  private let inbox = LockedCondition(Inbox())
  /// The space that transfers of all submissions were promised.
  let promises = SpaceBudget.Promises()

  private let preparationLock = SlowLock()
  /// Lets repairs record one after the other, because each adds to what is in the ledger.
  let repairLock = SlowLock()

  private let startThread: ThreadStarter

  /// Runs a function on a new thread.
  typealias ThreadStarter = @Sendable (@escaping @Sendable () -> Void) throws -> Void

  package convenience init() {
    self.init { body in _ = try WorkerThread.start(name: "tarn-engine", stackSize: 8 << 20, body: body) }
  }

  init(startThread: @escaping ThreadStarter) { self.startThread = startThread }

  /// Submits a plan, which must not change any more. After a failure of the folder or the ledger it ends with that reason.
  ///
  /// - Parameters:
  ///   - client: the client, always with the same folder and ledger.
  ///   - priority: `.urgent` to precede others, and to follow the manifest that was announced last. Other plans follow the next
  ///     one.
  ///   - observer: learns of each file, on the engine's thread.
  ///   - early: records problems in the ledger while others are running; `nil` to record them at the end.
  /// - Throws: failures of the ledger or the folder when the bytes at hand are looked up.
  func submit(
    _ plan: Plan, for client: TransferClient, priority: TransferPriority = .normal,
    observer: any PassObserver,
    early: EarlyProblems? = nil
  ) throws -> Transfers {
    let submission = try submission(of: plan, for: client, priority, observer, early)
    return submit(Transfers(submission))
  }

  /// Submits a plan for which no thread waits.
  ///
  /// - Parameter whenEnded: called once, on the engine's thread or on this one; it must not block.
  func submit(
    _ plan: Plan, for client: TransferClient, observer: any PassObserver,
    whenEnded: @escaping @Sendable (Transfers, Result<Void, PassFailure>) -> Void
  ) throws {
    submit(Transfers(try submission(of: plan, for: client, .normal, observer, nil), whenEnded: whenEnded))
  }

  private func submission(
    of plan: Plan, for client: TransferClient, _ priority: TransferPriority, _ observer: any PassObserver,
    _ early: EarlyProblems?
  ) throws -> Submission {
    let account = TransferAccount(client, observer)
    account.early = early
    let isUrgent = priority == .urgent
    if isUrgent { account.mayBeSuperseded = { [self] in pass == .reading } }
    return try Submission(plan, for: client, isUrgent: isUrgent, account, self)
  }

  /// Continues with another plan for the client of one that has ended. The results of both are reported together.
  func resubmit(_ plan: Plan, after transfers: Transfers, isLast: Bool) throws -> Transfers {
    try transfers.submission.renew(plan, isLast: isLast)
    return submit(Transfers(transfers.submission))
  }

  @discardableResult
  private func submit(_ transfers: Transfers) -> Transfers {
    if let failure = inbox.withLock({ $0.failure }) {
      transfers.end(.failure(failure))
      return transfers
    }
    post(.submit(transfers))
    transfers.submission.stop.onSet(waking: inbox) { [inbox] in inbox.change { $0.messages.append(.stopped) }
    }
    return transfers
  }

  /// Runs `body` while no transfer and no other claim uses any of the paths. After a failure it runs as soon as nothing is running
  /// any more.
  package func claiming<Result>(_ paths: [RelativePath], _ body: () throws -> Result) rethrows -> Result {
    try claiming(paths, waits: true) { _ in try body() }
  }

  /// Runs `body` likewise, with those of the paths that nobody uses now, and those where a transfer is running whose file is not
  /// getting its name yet.
  func claimingFree<Result>(
    _ paths: [RelativePath], _ body: (_ free: [RelativePath], _ transferring: [RelativePath]) throws -> Result
  ) rethrows -> Result {
    try claiming(paths, waits: false) { try body($0.paths, $0.transferring) }
  }

  private func claiming<Result>(
    _ paths: [RelativePath], waits: Bool, _ body: (PathClaim) throws -> Result
  ) rethrows -> Result {
    let claim = PathClaim(paths, waits: waits)
    guard !paths.isEmpty else { return try body(claim) }
    post(.claim(claim))
    claim.granted.wait()
    defer { post(.yield(claim)) }
    return try body(claim)
  }

  /// Announces a new manifest. What urgent clients bring by an earlier one, and the new one wants otherwise, is no longer brought.
  ///
  /// - Parameter entry: returns what the manifest wants at a path; called on the engine's thread.
  func follow(_ entry: @escaping (RelativePath) throws -> Entry?) {
    inbox.change { inbox in
      inbox.history.manifests += 1
      inbox.bringing.endComparison()
      guard inbox.isRunning else { return inbox.beginCarryingOut() }
      inbox.messages.append(.follow(entry, number: inbox.history.manifests))
    }
  }

  var history: History { inbox.withLock { $0.history } }

  func countRepairRecord() { inbox.withLock { $0.history.records += 1 } }

  // MARK: Repairs

  /// Begins a repair. It finds what earlier ones left by itself, unless others are running.
  func beginRepair() {
    inbox.withLock { if $0.bringing.running == 0 { $0.bringing.forget() } }
  }

  func beginBringing(_ pending: RepairPending) -> BringingRepair {
    let id = inbox.withLock { inbox in
      inbox.history.lastRepair = inbox.bringing.begin(pending)
      return inbox.history.lastRepair
    }
    return BringingRepair(engine: self, id: id)
  }

  /// - Parameter left: what a repair that was cut short did not bring.
  func endBringing(_ repair: BringingRepair, left: RepairPending) {
    inbox.withLock { $0.bringing.end(repair.id, left: left) }
  }

  /// Records changes, and in the same transaction what is left of repairs that have brought files by them.
  func record(
    _ changes: [LedgerChange], brought: [BroughtFile], in ledger: any TransferLedger
  ) throws(LedgerFailure) {
    guard !brought.isEmpty else { return try ledger.apply(changes) }
    var then = inbox.withLock { $0.bringing }
    then.count(brought)
    try ledger.apply(changes + [.fact(.repairPending, then.left.text)])
    let isCurrent = inbox.withLock { inbox in
      inbox.bringing.count(brought)
      return (inbox.bringing.left.text, inbox.bringing.writes) == (then.left.text, then.writes)
    }
    // The changes are recorded, so nothing may have them recorded again. The next one to record mends a fact that is not.
    if !isCurrent { try? recordPending(in: ledger) }
  }

  /// Counts a file as brought that needs no bytes of this repair. The fact is for `tarn status`, so a failure does not matter.
  func countBrought(_ file: BroughtFile, in ledger: any TransferLedger) {
    inbox.withLock { $0.bringing.count([file]) }
    try? recordPending(in: ledger)
  }

  /// Returns what a repair still has to bring.
  func left(of repair: BringingRepair) -> RepairPending { inbox.withLock { $0.bringing.left(of: repair.id) } }

  /// Returns what repairs still have to bring that began before a time in the history. Files of later repairs may have gone after it.
  func left(begunBefore history: History) -> RepairPending {
    inbox.withLock { $0.bringing.left(upTo: history.lastRepair) }
  }

  /// Records what repairs still have to bring. Others may change and record it at the same time: whoever writes last writes what it is
  /// by then.
  func recordPending(in ledger: any TransferLedger) throws(LedgerFailure) {
    var recorded: String?
    repeat {
      recorded = repairPending
      try ledger.applyVolatile([.fact(.repairPending, recorded)])
    } while recorded != notePendingWritten()
  }

  /// Notes that the fact of what repairs still have to bring was written, perhaps over what another thread is counting.
  ///
  /// - Returns: what it is by now.
  @discardableResult
  func notePendingWritten() -> String? {
    inbox.withLock { inbox in
      inbox.bringing.writes += 1
      return inbox.bringing.left.text
    }
  }

  /// Returns whether the running pass has counted what a repair brings as missing.
  func hasCountedAsMissing(_ repair: BringingRepair) -> Bool {
    inbox.withLock { $0.bringing.isCountedAsMissing(repair.id) }
  }

  /// True when neither a pass nor a repair brings anything.
  var isQuiet: Bool { inbox.withLock { $0.pass == nil && $0.bringing.running == 0 } }

  /// The fact of what repairs still have to bring and the ledger counts as in place.
  var repairPending: String? { inbox.withLock { $0.bringing.left.text } }

  /// The stage of the running pass.
  enum PassStage {
    /// Entries of the last manifest may no longer be wanted, until repairs know the next one.
    case reading
    case carryingOut
  }

  func beginPass() { inbox.withLock { $0.pass = .reading } }

  /// Notes that a pass compares the folder with its feed from here on.
  func beginComparison() { inbox.withLock { $0.bringing.beginComparison() } }

  func endPass() {
    inbox.withLock { inbox in
      inbox.pass = nil
      inbox.history.passes += 1
      inbox.bringing.endPass()
    }
  }

  /// The stage of the running pass; `nil` when none is running.
  var pass: PassStage? { inbox.withLock { $0.pass } }

  /// Runs `body` once, before anybody works in the folder. Other callers wait for it.
  ///
  /// - Throws: the errors of `body`. After a failure its reason, because unfinished steps must be repaired while nobody else is
  ///   working.
  package func prepareOnce(_ body: () throws -> Void) throws {
    try preparationLock.withLock {
      let (isPrepared, failure) = inbox.withLock { ($0.isPrepared, $0.failure) }
      if let failure { throw failure }
      guard !isPrepared else { return }
      try body()
      inbox.withLock { $0.isPrepared = true }
    }
  }

  /// True when the folder or the ledger was not available. All submissions then end with that reason.
  package var hasFailed: Bool { inbox.withLock { $0.failure != nil } }

  /// Waits for the thread, which ends by itself when nothing is submitted any more.
  package func close() { inbox.wait { $0.isRunning ? nil : () } }

  private func post(_ message: EngineMessage) {
    let isNew = inbox.change { inbox in
      inbox.messages.append(message)
      defer { inbox.isRunning = true }
      return !inbox.isRunning
    }
    if isNew { begin() }
  }

  private func begin() {
    while true {
      do {
        return try startThread { [inbox] in EngineThread(inbox).run() }
      } catch {
        if EngineThread(inbox).refuseAll(PassFailure(translating: error)) { return }
        // Clients that wait for paths keep waiting: others may use them once there is a thread.
        WorkerThread.sleep(microseconds: 100_000)
      }
    }
  }
}

/// A message to the engine's thread.
enum EngineMessage {
  case submit(Transfers)
  case claim(PathClaim)
  case yield(PathClaim)
  /// Another manifest was announced.
  case follow((RelativePath) throws -> Entry?, number: Int)
  case job(JobMessage)
  /// An order from outside, with the receiver of its answer.
  case steer(PassSteering.Order, RelativePath, @Sendable (PassSteering.Answer) -> Void)
  /// Pauses must end, so that retries happen at once.
  case hurry
  /// The stop of a client was set.
  case stopped
}

/// A running plan. Any thread may wait for it or end it.
final class Transfers {
  let submission: Submission
  private let outcome = LockedCondition<Result<Void, PassFailure>?>(nil)
  private let whenEnded: (@Sendable (Transfers, Result<Void, PassFailure>) -> Void)?

  /// - Parameter whenEnded: called once, by the thread that ends it.
  init(
    _ submission: Submission,
    whenEnded: (@Sendable (Transfers, Result<Void, PassFailure>) -> Void)? = nil
  ) {
    (self.submission, self.whenEnded) = (submission, whenEnded)
  }

  /// The counts and problems. They belong to the engine's thread until `wait` has returned, and then to the caller. The client's
  /// `progress` shows how far it is meanwhile.
  var account: TransferAccount { submission.account }

  /// Blocks until the plan is carried out up to the deletions, or was ended.
  ///
  /// - Throws: the reason why the folder, the ledger or a thread is not available. Nothing of the plan is running then either.
  func wait() throws(PassFailure) {
    try outcome.wait { $0 }.get()
  }

  /// Ends all that its client has submitted: begins nothing more, and ends jobs that nobody else waits for. Partial files stay.
  /// `wait` returns soon.
  func cancel() { submission.stop.set() }

  func end(_ result: Result<Void, PassFailure>) {
    let isFirst = outcome.change { outcome in
      defer { outcome = outcome ?? result }
      return outcome == nil
    }
    if isFirst { whenEnded?(self, result) }
  }
}

/// Paths that a client claims for itself.
final class PathClaim {
  /// The paths, sorted so that no two claims wait for each other. They belong to the engine's thread until they are granted.
  private(set) var paths: [RelativePath]
  /// The paths that were left out because a transfer is running there, whose file is not getting its name yet.
  private(set) var transferring: [RelativePath] = []
  /// True to wait for paths that somebody uses. Otherwise they are left out.
  let waits: Bool
  let granted = Gate()
  /// The jobs for the paths that it has, or waits for. Only the engine's thread uses them.
  var jobs: [UInt64] = []

  init(_ paths: [RelativePath], waits: Bool) { (self.paths, self.waits) = (Set(paths).sorted(), waits) }

  /// Leaves out the paths that somebody uses.
  func leaveOutTaken(_ state: TransferState) {
    transferring = paths.filter(state.isTransferring)
    paths.removeAll(where: state.isTaken)
  }
}
