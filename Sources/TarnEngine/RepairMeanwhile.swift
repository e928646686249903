import TarnCore
import TarnRuntime

/// Repairs what changed in the folder while a pass is at work, or a longer repair, on its thread and in turns with it: between its
/// transfers, while it waits for its feed, and while it compares and hashes. What was begun goes on beside the pass until it is done,
/// however long a server takes for it.
///
/// What it is told are hints, and who gave them looks again after the pass: nothing is reported here, and what is not done is left.
final class RepairMeanwhile {
  /// What a look found to be done.
  private struct Plan {
    /// Holds the actions.
    let stage: any StagePort
    let actions: any ActionCursor
    let unrecorded: UnrecordedFiles
    let regions: [Region]
  }

  private let pass: Pass
  private let folder: any FolderPort
  private let clock: any Clock
  /// That of the pass, once it transfers.
  private weak var engine: TransferEngine?
  /// Wakes the pass when there is something to do here.
  private let bell = Locked<(@Sendable () -> Void)?>(nil)
  /// Carries the repairs out; nil while there are none.
  private var beside: TransferEngine?
  private var stop = StopFlag()
  private var plans: [Plan] = []
  /// What is to be looked at once more.
  private var again: [Region] = []
  /// Paths that somebody was at work on when they were to be looked at.
  private var later: Set<RelativePath> = []
  private var laterDue = Instant()
  /// Paths that are hashed at the moment, each in a look that the next one interrupts.
  private var hashed: [RelativePath] = []
  /// Looks that interrupt one another.
  private var depth = 0
  /// What was begun by the manifest that holds: where the pass has planned to bring it as well, it decides over it again.
  private var begun: Set<RelativePath> = []
  /// The manifest is the one that the pass goes by. Before, what fails may be of another version by now: the pass is to see.
  private var hasManifest: Bool
  /// What failed until then: looked at again by the new one.
  private var failed: Set<RelativePath> = []
  /// By the monotonic clock: none begins before, and none at everything.
  private var (rest, longRest) = (Instant(), Instant())
  /// Whether a manifest is known; nil until that was asked.
  private var hasCatalog: Bool?
  private var noted = (counts: "", at: Instant())

  private static let deepest = 3
  private static let mostPlans = 4
  private static let mostLater = 4096
  private static let mostBegun = 65_536
  /// Actions begun in a turn.
  private static let handful = 512
  /// Between two looks at parts at most, whatever the last one took.
  private static let longestRest = Duration.milliseconds(500)
  /// What a turn takes while the pass itself waits.
  private static let longestTurn = Duration.milliseconds(250)

  /// - Parameter hasManifest: no other is going to be read.
  init(_ pass: Pass, _ folder: any FolderPort, hasManifest: Bool = false) {
    self.pass = pass
    self.hasManifest = hasManifest
    self.folder = folder
    clock = pass.ports.clock
  }

  /// While it plans and hashes.
  func attach(_ builder: PlanBuilder) {
    builder.meanwhile = { [unowned self] path in try run(hashing: path) }
  }

  /// While it transfers; `detach` ends it.
  func attach(_ engine: TransferEngine) {
    self.engine = engine
    bell.withLock { $0 = engine.nudge }
    engine.meanwhile = { [unowned self] in try run() }
    engine.submission.account.isMendedBeside = true
    engine.steerBeside = { [unowned self] in try beside?.steer($0, $1) ?? .notThere }
    engine.isBroughtBeside = { [unowned self] in isBrought($0) }
  }

  func detach() {
    bell.withLock { $0 = nil }
    engine = nil
  }

  /// Whether it is being brought, or was since the pass decided over it: told once of what is over.
  private func isBrought(_ path: RelativePath) -> Bool {
    beside?.isAtWork(on: path) == true || begun.remove(path) != nil
  }

  /// Paths that are being brought: their partial files are in use.
  var pathsAtWork: Set<RelativePath> { beside?.pathsAtWork ?? [] }

  // MARK: Turns

  /// One turn.
  ///
  /// - Parameters:
  ///   - waits: the pass has nothing to do for now.
  ///   - path: is hashed by whoever calls.
  /// - Throws: `PassFailure`.
  func run(waits: Bool = false, hashing path: RelativePath? = nil) throws(PassFailure) {
    if let path { hashed.append(path) }
    defer { if path != nil { hashed.removeLast() } }
    try noteEvents()
    try PassFailure.translating(feed: pass.request.feed.text) {
      try step(waiting: .zero)
      try look()
      guard beside != nil else { return }
      try begin()
      if waits { try step(waiting: Self.longestTurn) }
      try endIfIdle()
    }
  }

  /// What happened to the watch goes to the journal now: the pass may take days.
  private func noteEvents() throws(PassFailure) {
    guard let events = pass.request.watchEvents?(), !events.isEmpty else { return }
    try PassFailure.translating(feed: pass.request.feed.text) { try pass.note(events.map { .event($0) }) }
  }

  private func step(waiting: Duration) throws {
    if pass.stop.isSet { stop.set() }
    try beside?.turn(waiting: waiting)
    // Whoever changed them meanwhile is heard of.
    _ = beside?.submission.takeStale()
    try noteCounts(isLast: false)
  }

  /// Begins what was found, of each look in turn, so that a long one keeps no other waiting.
  private func begin() throws {
    // With no room there is nothing to look for.
    guard let beside, !plans.isEmpty, beside.hasRoom else { return }
    var atWork = beside.pathsAtWork.union(engine?.pathsAtWork ?? []).union(hashed)
    for _ in 0..<Self.handful {
      guard beside.hasRoom, !plans.isEmpty else { break }
      let plan = plans.removeFirst()
      // Nothing is deleted here.
      guard let action = try plan.actions.next(), action.phase != .deletion else { continue }
      plans.append(plan)
      if try isAsSeen(action), atWork.insert(action.path).inserted {
        if begun.count < Self.mostBegun { begun.insert(action.path) }
        try beside.begin(action, plan.unrecorded)
      } else {
        postpone(action.path)
      }
    }
    if plans.isEmpty { try beside.submission.flushAdoptions() }
    if beside.hasRoom, !plans.isEmpty { bell.withLock { $0 }?() }
  }

  /// It may have waited for its turn, and somebody have brought the file meanwhile: the pass, or a person.
  private func isAsSeen(_ action: Action) throws -> Bool {
    if action.kind == .adopt {
      // It may have been brought here: seen before its row was written.
      guard let row = action.row, row.isAdopted, let known = try pass.ports.ledger.row(action.path) else {
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

  /// No more than that: who gave the hint gives it again after the pass.
  private func postpone(_ path: RelativePath) {
    if later.count < Self.mostLater { later.insert(path) }
  }

  private func endIfIdle() throws {
    guard let beside, depth == 0, plans.isEmpty, beside.isIdle else { return }
    try noteCounts(isLast: true)
    failed.formUnion(beside.submission.account.untold ?? [])
    pass.progress.setBeside(nil)
    beside.close()
    self.beside = nil
  }

  /// What was done goes to the ledger once a second.
  private func noteCounts(isLast: Bool) throws {
    guard let counts = beside?.submission.account.counts, counts.hasChanges, counts.changes != noted.counts
    else { return }
    let now = clock.monotonic()
    guard isLast || now >= noted.at + .seconds(1) else { return }
    noted = (counts.changes, now)
    try pass.note([.fact(.repaired, pass.ports.now.rfc3339), .fact(.repair, counts.changes)])
  }

  // MARK: Looks

  private func look() throws {
    guard depth < Self.deepest, plans.count < Self.mostPlans, clock.monotonic() >= rest else { return }
    let regions = try takeRegions()
    guard !regions.isEmpty, let stage = try pass.ports.makeStage?(), let catalog = try pass.openCatalog(),
      try folder.isIntact()
    else { return }
    var ports = pass.ports
    ports.stage = stage
    let builder = PlanBuilder(
      ports: ports, folder: folder, policy: pass.request.policy, observer: SilentObserver(),
      progress: PassProgress(clock: clock), stop: pass.stop, started: ports.now)
    attach(builder)
    depth += 1
    defer { depth -= 1 }
    do {
      try builder.beginRepair(isWindow: catalog.isWindow)
      let took = try builder.timed { try builder.compare(regions, catalog) }
      let now = clock.monotonic()
      // Half of the time at most, whatever somebody does to the folder.
      if regions == [.everything] { longRest = now + took }
      rest = now + min(took, Self.longestRest)
    } catch let failure as PassFailure where failure.kind == .stopped {
      return
    }
    guard try stage.actionCount() > 0 else { return }
    if beside == nil { beside = try makeEngine(ports, builder.planner.policy) }
    plans.append(
      Plan(stage: stage, actions: try stage.actions(), unrecorded: builder.unrecorded, regions: regions))
  }

  private func takeRegions() throws -> [Region] {
    guard pass.request.localChanges != nil, pass.ports.makeStage != nil, !pass.stop.isSet else { return [] }
    // Before a manifest is known nothing can be done about them: they stay where they are.
    if hasCatalog == nil { hasCatalog = try pass.catalogID() != nil }
    guard hasCatalog == true else { return [] }
    var regions = again + (pass.request.localChanges?(engine != nil) ?? []) + takeLater()
    again = []
    if regions.contains(.everything), depth > 0 || clock.monotonic() < longRest {
      again = [.everything]
      regions.removeAll { $0 == .everything }
    }
    regions.removeAll { region in
      guard region.extent == .itself, let path = region.path, hashed.contains(path) else { return false }
      postpone(path)
      return true
    }
    return Self.outermost(regions)
  }

  /// Those that nobody is at work on any more.
  private func takeLater() -> [Region] {
    guard !later.isEmpty, clock.monotonic() >= laterDue else { return [] }
    laterDue = clock.monotonic() + Self.longestTurn
    let free = later.subtracting(pathsAtWork).subtracting(engine?.pathsAtWork ?? []).subtracting(hashed)
    later.subtract(free)
    return free.map { Region($0, .itself) }
  }

  /// None lies in another one.
  private static func outermost(_ regions: [Region]) -> [Region] {
    guard regions.count > 1 else { return regions }
    if regions.contains(.everything) { return [.everything] }
    let all = Set(regions)
    let wide = all.filter { $0.extent != .itself }
    return all.filter { region in !wide.contains { $0 != region && $0.contains(region) } }
  }

  private func makeEngine(_ ports: PassPorts, _ policy: PassPolicy) throws -> TransferEngine {
    stop = StopFlag()
    noted = ("", Instant())
    let progress = PassProgress(clock: clock)
    pass.progress.setBeside(progress)
    let account = TransferAccount(ports: ports, observer: pass.observer, progress: progress)
    account.standing = nil
    if !hasManifest { account.untold = [] }
    let submission = try Submission(
      ports: ports, folder: folder, policy: policy, unrecorded: UnrecordedFiles(), account: account,
      stop: stop, steering: pass.request.steering)
    // Behind all that the pass has asked for they would wait as long as it does.
    submission.isUrgent = true
    submission.deletions = .forbidden("")
    return try TransferEngine(
      submission, mostHeldBack: pass.request.mostHeldBack, bell: { [bell] in bell.withLock { $0 }?() })
  }

  // MARK: The pass

  /// The pass has accepted another manifest: what that wants otherwise is brought no more.
  func followNewManifest() throws {
    hasCatalog = nil
    again = Self.outermost(again + plans.flatMap(\.regions))
    plans = []
    begun = []
    hasManifest = true
    for path in failed.union(beside?.submission.account.untold ?? []) { postpone(path) }
    failed = []
    guard let beside else { return }
    beside.submission.account.untold = nil
    let catalog = try pass.openCatalog()
    for entry in beside.entriesAtWork where try catalog?.entry(entry.path) != entry {
      postpone(entry.path)
      try beside.abandon(entry.path)
    }
  }

  /// Before the end of the pass: waits for what has begun, for to end it would mean to begin anew. What changes meanwhile is
  /// begun, too, but not for ever; and no server is waited for that has to recover.
  func finish() throws(PassFailure) {
    for _ in 0..<Self.mostRounds {
      guard let beside, !beside.busy.isEmpty else { break }
      let round = beside.busy
      while self.beside === beside, !beside.busy.isDisjoint(with: round) { try run(waits: true) }
    }
  }

  private static let mostRounds = 3

  /// What is not done is kept as far as it came.
  func close() {
    // Who comes next counts it again.
    try? noteCounts(isLast: true)
    pass.progress.setBeside(nil)
    beside?.close()
    beside = nil
    plans = []
  }
}
