import TarnCore
import TarnRuntime

/// The results of one client's transfers: counts and problems, for its report, its observer and the ledger. Used on the engine's
/// thread.
final class TransferAccount {
  private let client: TransferClient
  private let observer: any PassObserver
  private(set) var counts = PassCounts()
  private(set) var bytes = PassBytes()
  private(set) var learned = LearnedSizes()
  private(set) var problems: [Problem] = []
  /// The problems for the ledger while the pass runs; `nil` when it gets them only at the end.
  var early: EarlyProblems?
  /// Returns whether a failure may concern a version that a coming manifest no longer wants; `nil` when it never does.
  var mayBeSuperseded: (@Sendable () -> Bool)?
  /// The number of such failures. They are left to the next manifest and are not reported.
  private(set) var untold = 0
  /// True when files were brought that the next pass must request again, whatever the feed says.
  private(set) var hasUnsettled = false
  /// A file that failed and whose name may be cut.
  private(set) var failedCut: RelativePath?
  private var ticked = Instant()

  init(_ client: TransferClient, _ observer: any PassObserver) {
    (self.client, self.observer) = (client, observer)
  }

  var progress: PassProgress { client.progress }

  func tell(_ event: PassEvent) { observer.pass(event) }

  // MARK: What is done

  func received(_ count: UInt64) { bytes.received.addSaturated(count) }

  func placed(_ job: Job, _ identity: FileIdentity) {
    let (kind, isCopy) = (job.action.kind, job.checked?.isCopy == true)
    early?.forget(job.entry.path.bytes)
    forgetCut(job.entry)
    if isCopy { counts.copied += 1 } else { count(kind) }
    bytes.published.addSaturated(identity.size)
    if job.entry.size == nil {
      learned.add(identity.size, before: job.action.sizeCounted(of: job.entry))
    }
    progress.finish(
      job.id, bytes: identity.size, isLearned: job.entry.size == nil, planned: job.action.bytesPlanned)
    tell(.done(code: kind.doneCode(isCopy: isCopy), path: job.entry.path, bytes: identity.size))
  }

  private func count(_ kind: Action.Kind) {
    switch kind {
    case .fetch: counts.fetched += 1
    case .update, .revalidate: counts.updated += 1
    case .restore: counts.restored += 1
    case .replace: counts.replaced += 1
    default: break
    }
  }

  /// Counts a file that is the server's version already.
  func confirmed(_ job: Job) {
    counts.revalidated += 1
    bytes.confirmed.addSaturated(job.action.row?.identity.size ?? 0)
    progress.finish(job.id, bytes: 0, isLearned: job.entry.size == nil)
  }

  /// Counts a file that existed already.
  ///
  /// - Parameters:
  ///   - code: the code that is reported: `adopted`, `restored`, or `nil` for none.
  ///   - isToDo: true when it counts among the files to be done.
  func kept(_ row: Row, code: String?, isToDo: Bool) {
    switch code {
    case "adopted": counts.adopted += 1
    case "restored": counts.restored += 1
    default: counts.revalidated += 1
    }
    bytes.confirmed.addSaturated(row.identity.size)
    if let code { tell(.done(code: code, path: row.path, bytes: row.identity.size)) }
    if isToDo { progress.finish(nil, bytes: 0) }
  }

  /// Reports the result for a file that has to make way.
  ///
  /// - Returns: the reason why it stays; `nil` when it is gone.
  func removed(_ action: Action, _ outcome: PublishOutcome) -> Problem? {
    let problem = observer.report(
      outcome, of: action, seen: client.now, into: &problems, counting: &counts)
    guard let problem else { return nil }
    early?.tell(problem)
    progress.change { $0.failed += 1 }
    return problem
  }

  func noteUnsettled() { hasUnsettled = true }

  // MARK: What is not

  /// Counts a problem, keeps it for the report, and reports it.
  func report(_ problem: Problem) {
    observer.report(problem, into: &problems, counting: &counts)
    early?.tell(problem)
  }

  /// Counts an action as failed.
  @discardableResult
  func fail(_ action: Action, code: String, message: String, isOrder: Bool = false) -> Problem {
    if let entry = action.entry {
      if entry.size == nil { progress.change { $0.unknownSizes -= 1 } }
      if entry.mayBeCut, !entry.isList { failedCut = entry.path }
    }
    return fail(action.path, code: code, message: message, isOrder: isOrder)
  }

  /// - Parameter isOrder: true when a person ended it. It is then reported whatever a manifest says, and can be undone.
  @discardableResult
  func fail(_ path: RelativePath, code: String, message: String, isOrder: Bool = false) -> Problem {
    progress.change { $0.failed += 1 }
    let problem = Problem(
      name: path.bytes, kind: .failed, code: code, message: message,
      seen: early?.open[path.bytes]?.seen ?? client.now)
    if !isOrder, mayBeSuperseded?() == true { untold += 1 } else { report(problem) }
    return problem
  }

  /// Records the failure of an entry unless a duplicate of it comes. It is counted once that is known.
  func tellExhausted(_ job: Job) {
    guard let failure = job.failure, early != nil else { return }
    early?.tell(
      Problem(
        name: job.entry.path.bytes, kind: .failed, code: failure.code, message: failure.message,
        seen: client.now))
  }

  private func forgetCut(_ entry: Entry) { if failedCut == entry.path { failedCut = nil } }

  /// Forgets a failure that is retried, so that the status does not show it meanwhile.
  func forgetFailure(of path: RelativePath) { early?.forget(path.bytes) }

  /// Undoes that an order kept an entry from being brought.
  func takeBack(_ entry: Entry, code: String, wasPaused: Bool) {
    problems.removeAll { $0.code == code && $0.name == entry.path.bytes }
    forgetFailure(of: entry.path)
    forgetCut(entry)
    guard !wasPaused else { return counts.waiting -= 1 }
    counts.failed -= 1
    progress.change { snapshot in
      snapshot.failed -= 1
      if entry.size == nil { snapshot.unknownSizes += 1 }
    }
  }

  /// Ends the account with this number of entries that failed unless a duplicate came. Problems that were recorded early stay
  /// named. Naming the others would mean reading the plan to its end, which the next pass does.
  func end(exhausted: Int) {
    counts.failed += exhausted
    let told = Set(problems.map(\.name))
    problems.keep((early?.open.values).map(Array.init)?.filter { !told.contains($0.name) } ?? [])
  }

  // MARK: Beside others

  /// Records, once a second, what `tarn status` shows beside a running pass.
  ///
  /// - Parameter exhausted: returns the number of entries that have failed unless a duplicate comes.
  func tick(exhausted: () -> Int) {
    let now = client.clock.monotonic()
    guard now >= ticked + .seconds(1) else { return }
    ticked = now
    // The facts are outdated in a second, so a failure does not matter.
    var changes = progress.snapshot().changes
    if early != nil {
      let all: [Problem.Kind: Int] = [.failed: counts.failed + exhausted(), .conflict: counts.conflict]
      changes += early?.takeChanges(counts: all) ?? []
    }
    try? client.ledger.applyVolatile(changes)
  }
}
