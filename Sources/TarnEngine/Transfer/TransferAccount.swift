import TarnCore
import TarnRuntime

/// What came of the transfers of one client: counts and problems, for its report, its observer and the ledger. On the engine's thread.
final class TransferAccount {
  private let client: TransferClient
  private let observer: any PassObserver
  private(set) var counts = PassCounts()
  private(set) var bytes = PassBytes()
  private(set) var learned = LearnedSizes()
  private(set) var problems: [Problem] = []
  /// nil where the ledger hears of problems only at the end.
  var early: EarlyProblems?
  /// Whether what fails may be of a version that a manifest on its way does not want any more; nil where it never is.
  var mayBeSuperseded: (@Sendable () -> Bool)?
  /// So many failed then: to be looked at again by the next manifest, and not told.
  private(set) var untold = 0
  /// Files were brought that the next pass has to ask for again, whatever the feed says.
  private(set) var hasUnsettled = false
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

  /// The server's version is the one that stands there.
  func confirmed(_ job: Job) {
    counts.revalidated += 1
    bytes.confirmed.addSaturated(job.action.row?.identity.size ?? 0)
    progress.finish(job.id, bytes: 0, isLearned: job.entry.size == nil)
  }

  /// A file that was there already.
  ///
  /// - Parameters:
  ///   - code: what is told of it: `adopted`, `restored`, or nil for nothing.
  ///   - isToDo: it counts among the files to be done.
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

  /// What became of a file that has to make way.
  ///
  /// - Returns: why it stays; nil when it is gone.
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

  /// Counts a problem, keeps it for the report, and tells it.
  func report(_ problem: Problem) {
    observer.report(problem, into: &problems, counting: &counts)
    early?.tell(problem)
  }

  @discardableResult
  func fail(_ entry: Entry, code: String, message: String, isOrder: Bool = false) -> Problem {
    if entry.size == nil { progress.change { $0.unknownSizes -= 1 } }
    return fail(entry.path, code: code, message: message, isOrder: isOrder)
  }

  /// - Parameter isOrder: a person ended it, whatever a manifest says of it: it is told, and can be taken back.
  @discardableResult
  func fail(_ path: RelativePath, code: String, message: String, isOrder: Bool = false) -> Problem {
    progress.change { $0.failed += 1 }
    let problem = Problem(
      name: path.bytes, kind: .failed, code: code, message: message,
      seen: early?.standing[path.bytes]?.seen ?? client.now)
    if !isOrder, mayBeSuperseded?() == true { untold += 1 } else { report(problem) }
    return problem
  }

  /// The entry has failed, unless a duplicate of it comes: its failure is counted once that is known.
  func tellExhausted(_ job: Job) {
    guard let failure = job.failure, early != nil else { return }
    early?.tell(
      Problem(
        name: job.entry.path.bytes, kind: .failed, code: failure.code, message: failure.message,
        seen: client.now))
  }

  /// What failed is tried again: the status does not call it failed meanwhile.
  func forgetFailure(of path: RelativePath) { early?.forget(path.bytes) }

  /// Takes back that an order kept an entry from being brought.
  func takeBack(_ entry: Entry, code: String, wasPaused: Bool) {
    problems.removeAll { $0.code == code && $0.name == entry.path.bytes }
    forgetFailure(of: entry.path)
    guard !wasPaused else { return counts.waiting -= 1 }
    counts.failed -= 1
    progress.change { snapshot in
      snapshot.failed -= 1
      if entry.size == nil { snapshot.unknownSizes += 1 }
    }
  }

  /// The pass ends: so many entries had failed unless a duplicate came. Those that were named early are named still; to name the
  /// others would mean to read the plan to its end, which the next pass does.
  func end(exhausted: Int) {
    counts.failed += exhausted
    let told = Set(problems.map(\.name))
    problems.keep((early?.standing.values).map(Array.init)?.filter { !told.contains($0.name) } ?? [])
  }

  // MARK: Beside others

  /// Once a second, what `tarn status` shows beside a running pass.
  ///
  /// - Parameter exhausted: entries that have failed unless a duplicate comes.
  func tick(exhausted: () -> Int) {
    let now = client.clock.monotonic()
    guard now >= ticked + .seconds(1) else { return }
    ticked = now
    // Stale in a second, so a failure is of no account here.
    var changes = progress.snapshot().changes
    if early != nil {
      let all: [Problem.Kind: Int] = [.failed: counts.failed + exhausted(), .conflict: counts.conflict]
      changes += early?.takeChanges(counts: all) ?? []
    }
    try? client.ledger.applyVolatile(changes)
  }
}
