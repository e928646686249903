import TarnCore
import TarnRuntime

/// Repairs what changed in the folder while a pass is at work, or a longer repair: between its transfers, and while it waits for its
/// feed. On its thread.
///
/// What it is told are hints, and who gave them looks again after the pass: nothing is reported here, and what is not done is left.
final class RepairMeanwhile {
  private let pass: Pass
  private let folder: any FolderPort
  /// What took too long the last time, and when it is gone on with.
  private var unfinished: (regions: [Region], due: UInt64) = ([], 0)

  /// Nanoseconds: so long the pass goes on without its thread, and so long it has it again then.
  private static let longest: UInt64 = 1_500_000_000

  init(_ pass: Pass, _ folder: any FolderPort) {
    self.pass = pass
    self.folder = folder
  }

  /// - Parameter atWork: paths that the pass itself is bringing: these, and their partial files, are its own.
  /// - Throws: `PassFailure`.
  func run(atWork: () -> Set<RelativePath> = { [] }) throws(PassFailure) {
    try noteEvents()
    let regions = takeRegions()
    guard !regions.isEmpty else { return }
    try PassFailure.translating(feed: pass.request.feed.text) { try repair(regions, atWork) }
  }

  /// What happened to the watch goes to the journal now: the pass may take days.
  private func noteEvents() throws(PassFailure) {
    guard let events = pass.request.watchEvents?(), !events.isEmpty else { return }
    try PassFailure.translating(feed: pass.request.feed.text) { try pass.note(events.map { .event($0) }) }
  }

  private func takeRegions() -> [Region] {
    guard pass.ports.makeStage != nil, !pass.stop.isSet else { return [] }
    var regions = pass.request.localChanges?() ?? []
    if !unfinished.regions.isEmpty, pass.ports.clock.monotonic() >= unfinished.due {
      regions = Self.outermost(unfinished.regions + regions)
      unfinished.regions = []
    }
    return regions
  }

  /// None lies in another one.
  private static func outermost(_ regions: [Region]) -> [Region] {
    let all = Set(regions)
    return all.filter { region in !all.contains { $0 != region && $0.contains(region) } }
  }

  private func repair(_ regions: [Region], _ atWork: () -> Set<RelativePath>) throws {
    guard let stage = try pass.ports.makeStage?(), let catalog = try pass.openCatalog(), try folder.isIntact()
    else { return }
    var ports = pass.ports
    ports.stage = stage
    let (clock, end) = (ports.clock, ports.clock.monotonic() + Self.longest)
    let stop = StopFlag()
    let builder = PlanBuilder(
      ports: ports, folder: folder, policy: pass.request.policy, observer: SilentObserver(),
      progress: PassProgress(clock: clock), stop: stop, started: ports.now)
    try builder.beginRepair(isWindow: catalog.isWindow)
    try builder.compare(regions, catalog)
    guard try stage.actionCount() > 0 else { return }
    let conductor = try Conductor(
      ports: ports, folder: folder, policy: pass.request.policy, strangers: builder.strangers,
      observer: pass.observer, progress: PassProgress(clock: clock), stop: stop,
      mostHeldBack: pass.request.mostHeldBack)
    defer { conductor.close() }
    conductor.standing = nil
    // Behind all that the pass has asked for they would wait as long as it does.
    conductor.areUrgent = regions != [.everything]
    conductor.deletions = .forbidden("")
    conductor.meanwhile = { [passStop = pass.stop] in
      if passStop.isSet || clock.monotonic() > end { stop.set() }
    }
    _ = try conductor.run(ActionsBeside(stage.actions(), atWork: atWork()))
    // What came of it so far is in a partial file.
    if stop.isSet {
      unfinished = (Self.outermost(unfinished.regions + regions), clock.monotonic() + Self.longest)
    }
    guard conductor.counts.hasChanges else { return }
    try pass.note([.fact("repaired", ports.now.rfc3339), .fact("repair", conductor.counts.changes)])
  }
}

/// Actions but those of some paths.
private final class ActionsBeside: ActionCursor {
  private let actions: any ActionCursor
  private let atWork: Set<RelativePath>

  init(_ actions: any ActionCursor, atWork: Set<RelativePath>) {
    self.actions = actions
    self.atWork = atWork
  }

  func next() throws(LedgerFailure) -> Action? {
    while let action = try actions.next() {
      if !atWork.contains(action.path) { return action }
    }
    return nil
  }
}
