package import TarnCore
import TarnRuntime

/// Carries out the plans of an open folder's clients: of a pass, and of repairs beside it. Any thread may submit. The engine's own thread,
/// its lanes and its publisher begin with the first plan, and end when nothing is at work any more.
///
/// Each open folder has one, and so each has its own paths, its own ledger, and failures that end nobody else's plans. Places and
/// rates are shared by all of them: see `TransferBudget`.
package final class TransferEngine: Sendable {
  /// What others say to the engine's thread.
  struct Inbox {
    var messages: [EngineMessage] = []
    /// There is a thread that reads it.
    var isRunning = false
    /// The last job's number: those of an earlier thread, which may still be told of, mean nothing to the next one.
    var lastJob: UInt64 = 0
    var history = History()
    /// How far the pass at work is; nil when none is.
    var pass: PassStage?
    /// What a crash left was put right.
    var isPrepared = false
    /// Why the folder or the ledger cannot be had: what is in the middle of it is put right when the mirror is opened again.
    var failure: PassFailure?
    /// Repairs that bring something, and what they are to bring still, also of those that were cut short beside them.
    var bringing: (repairs: Int, left: RepairPending) = (0, RepairPending())

    mutating func beginCarryingOut() { if pass != nil { pass = .carryingOut } }
  }

  /// What became of the folder so far: taken once, and compared with later.
  struct History {
    /// Files that urgent clients have brought.
    var brought = 0
    /// Manifests that were announced.
    var manifests = 0
    /// How often repairs have recorded something.
    var records = 0
    /// Passes that have ended.
    var passes = 0
  }

  private let inbox = LockedCondition(Inbox())
  /// Space that transfers were promised, of whichever submission.
  let promises = SpaceBudget.Promises()

  private let preparation = Turns()
  /// Repairs record one after the other: what they add to is in the ledger.
  let repairRecords = Turns()

  private let startThread: ThreadStarter

  /// Runs something on a thread of its own.
  typealias ThreadStarter = @Sendable (@escaping @Sendable () -> Void) throws -> Void

  package convenience init() {
    self.init { body in _ = try WorkerThread.start(name: "tarn-engine", stackSize: 8 << 20, body: body) }
  }

  init(startThread: @escaping ThreadStarter) { self.startThread = startThread }

  /// Hands a plan over, which nobody changes any more. After a failure of the folder or the ledger it ends with the reason of that.
  ///
  /// - Parameters:
  ///   - client: for whom, always with the same folder and ledger.
  ///   - priority: `.urgent` goes ahead of others, and goes by the manifest that was announced last; any other by the next one.
  ///   - observer: hears of each file, on the engine's thread.
  ///   - early: tells the ledger of problems while others are at work; nil where it hears of them at the end.
  /// - Throws: what the ledger or the folder says when they are asked what is at hand.
  func submit(
    _ plan: Plan, for client: TransferClient, priority: TransferPriority = .normal,
    observer: any PassObserver,
    early: EarlyProblems? = nil
  ) throws -> Transfers {
    let submission = try submission(of: plan, for: client, priority, observer, early)
    return submit(Transfers(submission))
  }

  /// The same, without anybody who waits.
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

  /// Goes on with another plan for the client of one that has ended. What came of both is told together.
  func resubmit(_ plan: Plan, after transfers: Transfers) throws -> Transfers {
    try transfers.submission.renew(plan)
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

  /// Does something of a client's own to paths, while no transfer and no other claim is at work on any of them. After a failure, when
  /// nothing is at work any more, at once.
  package func claiming<Result>(_ paths: [RelativePath], _ body: () throws -> Result) rethrows -> Result {
    try claiming(paths, waits: true) { _ in try body() }
  }

  /// The same of those alone at which nobody is at work now.
  func claimingFree(_ paths: [RelativePath], _ body: ([RelativePath]) throws -> Void) rethrows {
    try claiming(paths, waits: false, body)
  }

  private func claiming<Result>(
    _ paths: [RelativePath], waits: Bool, _ body: ([RelativePath]) throws -> Result
  ) rethrows -> Result {
    guard !paths.isEmpty else { return try body([]) }
    let claim = PathClaim(paths, waits: waits)
    post(.claim(claim))
    claim.granted.wait()
    defer { post(.yield(claim)) }
    return try body(claim.paths)
  }

  /// Another manifest holds from now on: what urgent clients bring by an earlier one, and it wants otherwise, is brought no more.
  ///
  /// - Parameter entry: what it wants at a path; called on the engine's thread.
  func follow(_ entry: @escaping (RelativePath) throws -> Entry?) {
    inbox.change { inbox in
      inbox.history.manifests += 1
      guard inbox.isRunning else { return inbox.beginCarryingOut() }
      inbox.messages.append(.follow(entry, number: inbox.history.manifests))
    }
  }

  var history: History { inbox.withLock { $0.history } }

  func countRepairRecord() { inbox.withLock { $0.history.records += 1 } }

  // MARK: What repairs are to bring

  /// A repair begins. What earlier ones left it looks for itself, unless others are at work.
  func beginRepair() {
    inbox.withLock { if $0.bringing.repairs == 0 { $0.bringing.left = RepairPending() } }
  }

  func beginBringing(_ pending: RepairPending) {
    inbox.withLock { $0.bringing = ($0.bringing.repairs + 1, $0.bringing.left + pending) }
  }

  /// - Parameter left: of one that was cut short.
  func endBringing(_ pending: RepairPending, left: RepairPending = RepairPending()) {
    inbox.withLock { $0.bringing = ($0.bringing.repairs - 1, $0.bringing.left - pending + left) }
  }

  /// Neither a pass nor a repair brings anything.
  var isQuiet: Bool { inbox.withLock { $0.pass == nil && $0.bringing.repairs == 0 } }

  /// Of all repairs, for the ledger.
  var repairPending: String? { inbox.withLock { $0.bringing.left.text } }

  /// How far the pass at work is.
  enum PassStage {
    /// What the last manifest wants may be wanted no more: until repairs know of the next one.
    case reading
    case carryingOut
  }

  func beginPass() { inbox.withLock { $0.pass = .reading } }

  func endPass() { inbox.withLock { ($0.pass, $0.history.passes) = (nil, $0.history.passes + 1) } }

  /// nil when no pass is at work.
  var pass: PassStage? { inbox.withLock { $0.pass } }

  /// Does what has to be done once before anybody works in the folder; who comes meanwhile waits for it.
  ///
  /// - Throws: what `body` throws; after a failure its reason, for what is in the middle of it is put right beside nobody.
  package func prepareOnce(_ body: () throws -> Void) throws {
    try preparation.take {
      let (isPrepared, failure) = inbox.withLock { ($0.isPrepared, $0.failure) }
      if let failure { throw failure }
      guard !isPrepared else { return }
      try body()
      inbox.withLock { $0.isPrepared = true }
    }
  }

  /// The folder or the ledger could not be had: whatever is submitted ends with the reason of that.
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
        return try startThread { [inbox, promises] in EngineThread(inbox, promises).run() }
      } catch {
        if EngineThread(inbox, promises).refuseAll(PassFailure(translating: error)) { return }
        // Who waits for paths goes on waiting: others may be at work there once there is a thread.
        WorkerThread.sleep(microseconds: 100_000)
      }
    }
  }
}

/// What is said to the engine's thread.
enum EngineMessage {
  case submit(Transfers)
  case claim(PathClaim)
  case yield(PathClaim)
  /// Another manifest holds.
  case follow((RelativePath) throws -> Entry?, number: Int)
  case job(JobMessage)
  /// An order from outside, and who waits for the answer.
  case steer(PassSteering.Order, RelativePath, @Sendable (PassSteering.Answer) -> Void)
  /// Somebody wants what pauses tried now.
  case hurry
  /// The stop of a client was set.
  case stopped
}

/// A plan at work. Any thread may wait for it or end it.
final class Transfers {
  let submission: Submission
  private let outcome = LockedCondition<Result<Void, PassFailure>?>(nil)
  private let whenEnded: (@Sendable (Transfers, Result<Void, PassFailure>) -> Void)?

  /// - Parameter whenEnded: called once, by who ends it.
  init(
    _ submission: Submission,
    whenEnded: (@Sendable (Transfers, Result<Void, PassFailure>) -> Void)? = nil
  ) {
    (self.submission, self.whenEnded) = (submission, whenEnded)
  }

  /// Counts and problems: the engine's thread's until `wait` has returned, then the caller's. How far it is meanwhile the client's
  /// `progress` says.
  var account: TransferAccount { submission.account }

  /// Blocks until all of its plan is carried out up to the deletions, or it was ended.
  ///
  /// - Throws: why the folder, the ledger or a thread cannot be had: nothing of it is at work any more then either.
  func wait() throws(PassFailure) {
    try outcome.wait { $0 }.get()
  }

  /// Begins nothing more, and ends what nobody else waits for: of all that its client submitted. Partial files stay. `wait` returns soon.
  func cancel() { submission.stop.set() }

  func end(_ result: Result<Void, PassFailure>) {
    let isFirst = outcome.change { outcome in
      defer { outcome = outcome ?? result }
      return outcome == nil
    }
    if isFirst { whenEnded?(self, result) }
  }
}

/// Paths that a client wants for itself.
final class PathClaim {
  /// In their order, so that no two claims wait for each other. The engine's thread's until they are granted.
  var paths: [RelativePath]
  /// For those at which somebody is at work; else they are left out.
  let waits: Bool
  let granted = Gate()
  /// Of as many of them as it has, or waits for: the engine's thread's alone.
  var jobs: [UInt64] = []

  init(_ paths: [RelativePath], waits: Bool) { (self.paths, self.waits) = (Set(paths).sorted(), waits) }
}
