import TarnCore
import TarnRuntime

/// Turns the items of a feed into a plan in the stage: filters, compares, hashes what has to be hashed, counts.
/// Memory does not grow with the feed. On the pass's thread.
///
/// A feed that comes in path order is compared while it is read; any other is first put in order in the stage.
final class PlanBuilder {
  let ports: PassPorts
  let folder: any FolderReading
  private let policy: PassPolicy
  var planner: Planner
  /// Of a window: what it may delete; nil for any other feed.
  private var expired: Set<RelativePath>?
  /// Of a window with `keep`.
  private(set) var newest: WindowCatalog.Newest?
  private let observer: any PassObserver
  private let progress: PassProgress
  let stop: StopFlag
  let started: Timestamp
  private var comparison: Comparison?

  private(set) var counts = PassCounts()
  var bytes = PassBytes()
  private(set) var problems: [Problem] = []
  /// Names and codes that the observer has heard: a feed that is read again would tell them twice.
  private var told: Set<[UInt8]> = []
  private(set) var hasBlindSpot = false
  /// Files that the filter leaves alone: nobody knows whether the feed names them.
  private(set) var filteredRows = 0
  /// Of files that are gone from the feed, and of own files that a directory of the feed takes the place of.
  private(set) var plannedDeletions = 0
  /// Files to fetch that were not there before.
  private(set) var plannedNew = 0
  /// Where the feed's own list lies, if it is kept.
  private(set) var listPath: RelativePath?
  /// Something is to be done with that file.
  private(set) var plansList = false
  /// Entries in whose place a directory stands that goes with the deletions: decided again after these. Not in the stage.
  private(set) var behindDirectories: [Action] = []
  /// Decides over paths again: what is to be deleted is gone by now.
  private(set) var isAgain = false
  /// Planned entries to fetch whose size the feed does not tell.
  private(set) var plannedUnknown = 0
  /// Bytes to bring back of files that were there and whose size the feed does not tell.
  private var plannedAsRecorded: UInt64 = 0
  /// Bytes to fetch; of what is brought back, and whose size the feed does not tell, as it was.
  var plannedWithRecorded: UInt64 { bytes.planned.addingSaturated(plannedAsRecorded) }
  /// Entries below files that have to make way first, which are planned only if those may go: see `admitBlocked`.
  private var blocked: (count: Int, bytes: UInt64, unknown: Int) = (0, 0, 0)
  private(set) var unrecorded = UnrecordedFiles()
  /// What the ledger has to learn of a window's files once the feed is accepted.
  var learned: [LedgerChange] = []
  /// Entries taken from the feed, filters not applied.
  private(set) var entriesInFeed = 0
  /// An entry says neither size nor time nor digest: only its server knows whether it has changed.
  private(set) var asksForEach = false
  /// Rows that are neither wanted nor to go, or kept by policy, as they are left.
  private(set) var left = FolderFingerprint()
  /// What the manifest wants, for repairs; nil when none is kept.
  private(set) var catalog: (any CatalogMaking)?
  private var inCatalog = 0
  /// Of a repair: something is not as the last pass left it, and will not be.
  private(set) var isUnsettled = false
  /// Of a repair: something has to be fetched that was not in place before.
  private(set) var wantsNew = false
  /// Of a repair: a row whose file is gone, and which nothing wants. Only a pass, which has read the feed, drops it.
  private(set) var hasForgettable = false
  /// Of a repair: names of problems that only a pass may end.
  private(set) var leftToPasses: Set<[UInt8]> = []
  /// Of a repair: wanted files that are as they were left.
  private(set) var asLeft: (count: Int, bytes: UInt64) = (0, 0)
  private(set) var isRepair = false
  /// Of a repair: it looks to count what is in place; what failed is not tried again for that.
  private(set) var onlyCounts = false
  /// Of a repair: by the catalog of a window.
  private var isOfWindow = false
  /// Of a repair: what was looked at because something above it was gone.
  var widened: [Region] = []
  /// Of a repair of several parts, which may lie in one another: what was found not to be as it was recorded.
  private var found: Set<RelativePath>?
  /// Unfinished downloads of paths that nothing was found out about so far, and of paths that are in place.
  var partials = (unnamed: Set<RelativePath>(), settled: Set<RelativePath>())
  private(set) var old = OldProblems()
  /// What hashing took so far.
  var hashedFor = Duration.zero

  init(
    ports: PassPorts, folder: any FolderReading, policy: PassPolicy, observer: any PassObserver,
    progress: PassProgress, stop: StopFlag, started: Timestamp
  ) {
    self.ports = ports
    self.folder = folder
    self.policy = policy
    planner = Planner(policy: policy)
    self.observer = observer
    self.progress = progress
    self.stop = stop
    self.started = started
  }

  /// Starts over, comparing as the items come.
  ///
  /// `take` then throws `Comparison.OutOfOrder` when they do not come in path order.
  func beginInOrder() throws {
    try reset()
    comparison = try makeComparison()
  }

  /// Starts over, for items in any order.
  func beginInAnyOrder() throws {
    try reset()
    comparison = nil
  }

  func take(_ item: FeedItem) throws {
    switch item {
    case .entry(let entry):
      entriesInFeed += 1
      if entriesInFeed & 1023 == 0 { noteProgress() }
      guard !policy.filter.excludes(entry.path) else {
        counts.excluded += 1
        return
      }
      if !entry.hasFingerprint, entry.digest == nil { asksForEach = true }
      if entry.isList { listPath = entry.path }
      try want(entry)
    case .refused(let refusal):
      entriesInFeed += 1
      if let path = refusal.path, policy.filter.excludes(path) { return counts.excluded += 1 }
      refuse(refusal)
      if let path = refusal.path { try want(Entry(refused: path)) }
    // An enclosure has no path yet: the window's catalog hands it on as an entry.
    case .directory, .deleted, .enclosure: break
    }
  }

  /// Starts over, for a window: what it does not name stays, but for what is older than what is kept.
  func beginWindow(expired: Set<RelativePath>, newest: WindowCatalog.Newest?, tooOld: Int) throws {
    self.newest = newest
    var ofWindow = policy
    ofWindow.localChanges = policy.window.localChanges
    planner = Planner(policy: ofWindow)
    self.expired = expired
    try beginInOrder()
    counts.excluded += tooOld
  }

  var isWindow: Bool { expired != nil && !isRepair }

  /// Starts over, for parts of the folder that are compared with the catalog: nothing goes.
  func beginRepair(isWindow: Bool, onlyCounts: Bool = false) throws {
    self.onlyCounts = onlyCounts
    widened = []
    isOfWindow = isWindow
    if isWindow {
      var ofWindow = policy
      ofWindow.localChanges = policy.window.localChanges
      planner = Planner(policy: ofWindow)
    }
    expired = []
    isRepair = true
    try reset()
  }

  /// Its problem stands, and a pass has to look.
  func leave(_ path: RelativePath) {
    leftToPasses.insert(path.bytes)
    isUnsettled = isUnsettled || onlyCounts
  }

  /// Plans what parts of the folder need.
  ///
  /// - Parameter regions: none lies in another one.
  func compare(_ regions: [Region], _ catalog: any CatalogReading) throws {
    found = regions.count > 1 ? [] : nil
    // What lies below a path that turns out to need a look comes behind it.
    for region in regions.sorted(by: { $0.isAbove($1) }) {
      if let path = region.path, widened.contains(where: { $0.contains(path) }) { continue }
      try compare(region, catalog)
    }
  }

  /// - Returns: what the look took, hashing left out: that goes on beside other repairs.
  func timed(_ look: () throws -> Void) rethrows -> Duration {
    let (begun, hashed) = (ports.clock.monotonic(), hashedFor)
    try look()
    let (all, hashing) = (ports.clock.monotonic() - begun, hashedFor - hashed)
    return max(.zero, all - hashing)
  }

  private func compare(_ region: Region, _ catalog: any CatalogReading) throws {
    if stop.isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
    if region.extent == .itself, let path = region.path { return try compare(path, catalog) }
    let comparison = try makeComparison(region)
    let entries = try catalog.entries(in: region)
    while let entry = try entries.next() {
      if stop.isSet { throw PassFailure(.stopped, code: "stopped", "ended on request") }
      try comparison.want(entry)
    }
    try comparison.finish()
  }

  private func compare(_ path: RelativePath, _ catalog: any CatalogReading) throws {
    let present: Present?
    do throws(FolderFailure) {
      present = try folder.look(path)
    } catch {
      hasBlindSpot = true
      return report(name: path.bytes, kind: .failed, code: error.code.rawValue, message: error.message)
    }
    let row = try ports.ledger.row(path)
    guard let entry = try catalog.entry(path) else {
      if row == nil, let present, present.kind == .regular { unrecorded.add(present) }
      if present?.kind == .directory { try compare(beneath(path), catalog) }
      // What stood in the way of all that belongs below it is gone.
      if present == nil { try compare(widening(path), catalog) }
      return
    }
    var finding = Finding(
      path: path, entry: entry, row: row, decision: planner.decide(entry, row: row, present: present))
    finding.mark = row.flatMap { FolderFingerprint.mark($0, present: present, isBelowFile: false) }
    if finding.mark != nil, let present { unrecorded.add(inPlaceOfAnother: present) }
    try take(finding)
  }

  /// The feed is read: finishes the plan.
  func finish() throws {
    noteProgress()
    let comparison: Comparison
    if let running = self.comparison {
      comparison = running
    } else {
      comparison = try makeComparison()
      let entries = try ports.stage.entries()
      while let entry = try entries.next() { try comparison.want(entry) }
    }
    try comparison.finish()
    self.comparison = nil
  }

  /// Decides again over paths that were not as the plan saw them; the stage then holds these alone.
  func replan(_ actions: [Action]) throws {
    isAgain = true
    try ports.stage.clear()
    for action in actions {
      guard let entry = action.entry else { continue }
      counts.planned -= 1
      bytes.planned -= min(bytes.planned, action.bytesToFetch)
      plannedAsRecorded -= min(plannedAsRecorded, action.bytesRecorded)
      let row = try ports.ledger.row(action.path)
      let decision = planner.decide(entry, row: row, present: try folder.look(action.path))
      try settle(Finding(path: action.path, entry: entry, row: row, decision: decision))
    }
  }

  private func want(_ entry: Entry) throws {
    if let comparison { try comparison.want(entry) } else { try ports.stage.add(entry) }
  }

  private func reset() throws {
    try ports.stage.clear()
    counts = PassCounts()
    bytes = PassBytes()
    problems = []
    hasBlindSpot = false
    filteredRows = 0
    plannedDeletions = 0
    plannedNew = 0
    (listPath, plansList) = (nil, false)
    behindDirectories = []
    plannedUnknown = 0
    plannedAsRecorded = 0
    blocked = (0, 0, 0)
    unrecorded = UnrecordedFiles()
    entriesInFeed = 0
    asksForEach = false
    left = FolderFingerprint()
    inCatalog = 0
    makeCatalog()
    partials = (Set(try ports.ledger.partials().map(\.path)), [])
    old = isRepair ? OldProblems() : try OldProblems(ports.ledger)
  }

  /// Unfinished downloads that no pass will go on with: of paths that are in place by other means, and, where the feed says
  /// all that it wants, of paths that it does not name.
  ///
  /// - Parameter saysAll: the feed is complete, or a window, which does not name again what it dropped.
  func deadPartials(saysAll: Bool) -> Set<RelativePath> {
    saysAll ? partials.settled.union(partials.unnamed) : partials.settled
  }

  private func note(_ finding: Finding) {
    if finding.entry != nil { old.want(finding.path, finding.decision) }
    guard !partials.unnamed.isEmpty, finding.entry != nil || finding.scanFailure != nil,
      partials.unnamed.remove(finding.path) != nil
    else { return }
    switch finding.decision {
    case .current, .adopt: partials.settled.insert(finding.path)
    default: break
    }
  }

  private func noteProgress() {
    progress.change { $0.entriesRead = entriesInFeed }
  }

  /// Beyond so many entries none is kept: it would cost more than reading the feed again.
  private static let mostInCatalog = 4 << 20

  private func makeCatalog() {
    catalog = nil
    guard !isRepair, let port = ports.catalog else { return }
    keep { () throws(LedgerFailure) in catalog = try port.make() }
  }

  private func note(inCatalog entry: Entry) {
    guard let catalog else { return }
    inCatalog += 1
    guard inCatalog <= Self.mostInCatalog else { return self.catalog = nil }
    keep { () throws(LedgerFailure) in try catalog.add(entry) }
  }

  /// A catalog that cannot be written costs a repair, never a pass.
  private func keep(_ body: () throws(LedgerFailure) -> Void) {
    do throws(LedgerFailure) {
      try body()
    } catch {
      catalog = nil
      observer.pass(.notice(code: error.code.rawValue, message: "no catalog is kept: \(error.message)"))
    }
  }

  private func makeComparison(_ region: Region = .everything) throws -> Comparison {
    try Comparison(
      planner: planner, rows: ports.ledger.rows(in: region), snapshot: folder.scan(region),
      stranger: { [unowned self] in $1 ? unrecorded.add(inPlaceOfAnother: $0) : unrecorded.add($0) },
      mayGo: { [unowned self] in expired?.contains($0) ?? true },
      emit: { [unowned self] in try take($0) })
  }

  private func take(_ finding: Finding) throws {
    if let failure = finding.scanFailure {
      hasBlindSpot = true
      let name = failure.path?.bytes ?? Array(".".utf8)
      report(name: name, kind: .failed, code: failure.code.rawValue, message: failure.message)
      return
    }
    // As it was left: whether it is still wanted a pass asks.
    if isRepair, let row = finding.row, finding.mark == nil {
      guard finding.entry?.isRefused == false, finding.refusal == nil, isWanted(finding.decision) else {
        return
      }
      asLeft.count += 1
      asLeft.bytes.addSaturated(row.identity.size)
      return
    }
    if found?.insert(finding.path).inserted == false { return }
    if isRepair, try isLeftToPasses(finding) { return }
    if let entry = finding.entry, !entry.isRefused {
      if finding.refusal == nil { note(inCatalog: entry) }
      counts.wanted += 1
      if let size = entry.size ?? finding.row?.size(of: entry, isKept: isWanted(finding.decision)) {
        bytes.wanted.addSaturated(size)
      } else {
        bytes.unknownSizes += 1
      }
    }
    if let refusal = finding.refusal {
      partials.unnamed.remove(finding.path)
      if finding.entry?.isRefused != true {
        report(
          name: finding.path.bytes, kind: .refused, code: refusal.code, message: refusal.message)
      }
      return
    }
    try settle(finding)
  }

  /// What is as it was recorded is of the version that the manifest has, as far as that can be told here.
  private func isWanted(_ decision: Decision) -> Bool {
    switch decision {
    case .current, .adopt: true
    case .action(let action): action.kind == .revalidate || action.kind == .inspect
    case .conflict, .kept, .unlisted: false
    }
  }

  func settle(_ finding: Finding) throws {
    note(finding)
    if isRepair { noteUnsettled(finding) }
    switch finding.decision {
    case .current:
      counts.current += 1
      bytes.current.addSaturated(finding.row?.identity.size ?? finding.entry?.size ?? 0)
    case .action(let action) where action.phase == .deletion && !mayGo(action): left.add(finding.mark)
    case .action(let action) where action.kind == .inspect: try inspect(action)
    case .action(let action): try plan(action)
    case .adopt: break
    case .conflict where try goesWithDeletions(finding): break
    case .conflict(let code, let message):
      report(name: finding.path.bytes, kind: .conflict, code: code, message: message)
    case .kept:
      counts.kept += 1
      left.add(finding.mark)
    case .unlisted:
      left.add(finding.mark)
      // What a filter keeps may well be in the feed still. Of a window only what has expired would go.
      let wouldGo = !isWindow || expired?.contains(finding.path) == true
      if policy.filter.excludes(finding.path) {
        filteredRows += 1
      } else if wouldGo {
        counts.unlisted += 1
      }
    }
  }

  /// What a repair leaves as the last pass left it is a file that is recorded, as it was recorded, or restored so.
  private func noteUnsettled(_ finding: Finding) {
    switch finding.decision {
    case .action(let action) where [.restore, .replace, .inspect].contains(action.kind): break
    case .action(let action) where action.kind == .adopt && action.row != nil: break
    case .unlisted: break
    // A window's rows stay: what the user deleted is not fetched again.
    case .action(let action) where action.kind == .forget: hasForgettable = hasForgettable || !isOfWindow
    case .action(let action) where action.phase == .deletion: break
    case .action: (isUnsettled, wantsNew) = (true, true)
    default: isUnsettled = true
    }
  }

  /// From a window only what is expired goes. A row of what the user deleted stays, so that it is not fetched again.
  private func mayGo(_ action: Action) -> Bool {
    guard let expired else { return true }
    return action.kind == .delete && expired.contains(action.path)
  }

  func plan(_ action: Action) throws {
    try ports.stage.add(action)
    if action.kind == .delete { plannedDeletions += 1 }
    if action.entry?.isList == true { plansList = true }
    count(action)
  }

  func count(_ action: Action) {
    if action.kind == .fetch, action.entry?.isList != true { plannedNew += 1 }
    guard action.kind != .delete, action.phase != .deletion else { return }
    let size = action.bytesToFetch
    if action.blocker == nil {
      counts.planned += 1
      bytes.planned.addSaturated(size)
      plannedAsRecorded.addSaturated(action.bytesRecorded)
      if action.hasUnknownSize { plannedUnknown += 1 }
    } else {
      blocked.count += 1
      blocked.bytes.addSaturated(size)
      if action.hasUnknownSize { blocked.unknown += 1 }
    }
  }

  /// Files have to make way before others can be fetched.
  var hasBlocked: Bool { blocked.count > 0 }

  func keepBehind(_ action: Action) {
    behindDirectories.append(action)
    count(action)
  }

  /// What is in the way may go: what lies below it is to be fetched like anything else.
  func admitBlocked() {
    counts.planned += blocked.count
    bytes.planned.addSaturated(blocked.bytes)
    plannedUnknown += blocked.unknown
    blocked = (0, 0, 0)
  }

  /// An item of a window that is no file: its name is no path, so it protects none.
  func refuse(_ item: FeedItem) {
    guard case .refused(let refusal) = item else { return }
    entriesInFeed += 1
    refuse(refusal)
  }

  private func refuse(_ refusal: Refusal) {
    counts.wanted += 1
    // An address of the feed may carry a password.
    let name =
      refusal.path == nil
      ? Array(Redaction.address(String(decoding: refusal.name, as: UTF8.self)).utf8) : refusal.name
    report(name: name, kind: .refused, code: refusal.code, message: Redaction.text(refusal.reason))
  }

  func report(name: [UInt8], kind: Problem.Kind, code: String, message: String) {
    let problem = Problem(name: name, kind: kind, code: code, message: message, seen: started)
    old.keep(name)
    var isNew = true
    if told.count < PassReport.mostProblems {
      isNew = told.insert(name + [0] + Array(code.utf8)).inserted
    }
    let observer: any PassObserver = isNew ? self.observer : SilentObserver()
    observer.take(problem, into: &problems, counting: &counts)
  }
}
