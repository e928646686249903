import TarnCore
import TarnRuntime

/// Plans what parts of a folder need, by the catalog of the last manifest: nothing goes, and what no pass has brought so far is left to
/// passes, unless it was the folder that kept it out.
final class RegionPlanner {
  let writer: PlanWriter
  private let catalog: any CatalogReading
  /// It looks to count what is in place; what failed is not tried again for that.
  private let onlyCounts: Bool
  private(set) var findings = Findings()
  /// What was looked at because something above it was gone.
  private var widened: [Region] = []
  /// Of several parts, which may lie in one another: what was found not to be as it was recorded.
  private var found: Set<RelativePath>?
  /// Beyond so many all of the folder is one part.
  var mostFound = 1 << 16

  private struct TooManyFound: Error {}

  /// What a repair has to know beside its plan.
  struct Findings {
    /// Something is not as the last pass left it, and will not be.
    var isUnsettled = false
    /// Something has to be fetched that was not in place before.
    var wantsNew = false
    /// A row whose file is gone, and which nothing wants. Only a pass, which has read the feed, drops it; of a window's rows those that
    /// have expired.
    var hasForgettable = false
    /// Names of problems that only a pass may end.
    var leftToPasses: Set<[UInt8]> = []
    /// Wanted files that are as they were left.
    var asLeft: (count: Int, bytes: UInt64) = (0, 0)
    /// What the look took, hashing left out.
    var lookTime = Duration.zero
  }

  init(
    _ pass: Pass, _ folder: any FolderReading, _ catalog: any CatalogReading, since: TransferEngine.History,
    started: Timestamp, onlyCounts: Bool
  ) {
    (self.catalog, self.onlyCounts) = (catalog, onlyCounts)
    let policy = pass.request.policy
    var plan = Plan(
      pass.ports.stage, policy: catalog.isWindow ? policy.ofWindow : policy, deletions: .none,
      started: started)
    plan.since = since
    writer = PlanWriter(plan, pass, folder)
    writer.onDecision = { [unowned self] in note($0) }
  }

  private var ports: PassPorts { writer.pass.ports }

  /// - Parameter regions: none lies in another one.
  func look(at regions: [Region]) throws {
    let (begun, plan) = (ports.clock.monotonic(), writer.plan)
    do {
      try lookOnce(at: regions, plan)
    } catch is TooManyFound {
      (findings, widened) = (Findings(), [])
      try lookOnce(at: [.everything], plan)
    }
    findings.lookTime = max(.zero, ports.clock.monotonic() - begun - writer.hashedFor)
  }

  private func lookOnce(at regions: [Region], _ plan: Plan) throws {
    try writer.begin(plan)
    found = regions.count > 1 ? [] : nil
    // What lies below a path that turns out to need a look comes behind it.
    for region in regions.sorted(by: { $0.isAbove($1) }) {
      if let path = region.path, widened.contains(where: { $0.contains(path) }) { continue }
      try compare(region)
    }
  }

  private func compare(_ region: Region) throws {
    try writer.pass.stop.throwIfSet()
    if region.extent == .itself, let path = region.path { return try compare(path) }
    let comparison = try writer.comparison(region) { [unowned self] in try add($0) }
    let entries = try catalog.entries(in: region)
    while let entry = try entries.next() {
      try writer.pass.stop.throwIfSet()
      try comparison.want(entry)
    }
    try comparison.finish()
  }

  private func compare(_ path: RelativePath) throws {
    let present: Present?
    do throws(FolderFailure) {
      present = try writer.folder.look(path)
    } catch {
      writer.plan.hasBlindSpot = true
      return writer.report(
        name: path.bytes, kind: .failed, code: error.code.rawValue, message: error.message)
    }
    let row = try ports.ledger.row(path)
    guard let entry = try catalog.entry(path) else {
      if row == nil, let present, present.kind == .regular { writer.plan.unrecorded.add(present) }
      if present?.kind == .directory { try compare(beneath(path)) }
      // What stood in the way of all that belongs below it is gone.
      if present == nil { try compare(widening(path)) }
      return
    }
    var finding = Finding(
      path: path, entry: entry, row: row,
      decision: writer.planner.decide(entry, row: row, present: present))
    finding.mark = row.flatMap { FolderFingerprint.mark($0, present: present, isBelowFile: false) }
    if finding.mark != nil, let present { writer.plan.unrecorded.add(present, isInPlaceOfAnother: true) }
    try add(finding)
  }

  /// A directory changed, and by its mode nobody may see any more what lies in it, or Tarn may be let in again.
  private func beneath(_ path: RelativePath) throws -> Region {
    try ports.ledger.problem(below: path, code: FolderFailure.Code.permission.rawValue) == nil
      ? Region(path, .children) : widening(path)
  }

  private func widening(_ path: RelativePath) -> Region {
    let tree = Region(path, .tree)
    widened.append(tree)
    return tree
  }

  // MARK: Findings

  private func add(_ finding: Finding) throws {
    if writer.takeFailure(finding) { return }
    // As it was left: whether it is still wanted a pass asks.
    if let row = finding.row, finding.mark == nil {
      guard finding.entry?.isRefused == false, finding.refusal == nil,
        PlanWriter.isWanted(finding.decision)
      else { return }
      findings.asLeft.count += 1
      findings.asLeft.bytes.addSaturated(row.identity.size)
      return
    }
    if found?.insert(finding.path).inserted == false { return }
    if let found, found.count > mostFound { throw TooManyFound() }
    if try isLeftToPasses(finding) { return }
    try writer.add(finding)
  }

  /// What is as the last pass left it is a file that is recorded, as it was recorded, or restored so.
  private func note(_ finding: Finding) {
    switch finding.decision {
    case .action(let action) where [.restore, .replace, .inspect].contains(action.kind): break
    case .action(let action) where action.kind == .adopt && action.row != nil: break
    case .unlisted: break
    case .action(let action) where action.kind == .forget: findings.hasForgettable = true
    case .action(let action) where action.phase == .deletion: break
    case .action: (findings.isUnsettled, findings.wantsNew) = (true, true)
    default: findings.isUnsettled = true
    }
  }

  /// Whether it is for a pass: what none has brought so far, or what was cancelled, unless it was the folder that kept it out; and
  /// while a repair only counts, what failed.
  private func isLeftToPasses(_ finding: Finding) throws -> Bool {
    guard finding.entry != nil, case .action(let action) = finding.decision, action.phase != .deletion else {
      return false
    }
    let isNew = finding.row == nil && action.kind == .fetch
    guard isNew || onlyCounts else { return false }
    guard let problem = try ports.ledger.problem(name: finding.path.bytes) else { return isNew }
    guard onlyCounts && problem.kind == .failed || isNew && !problem.isOfFolder else { return false }
    // Its problem stands, and a pass has to look.
    findings.leftToPasses.insert(finding.path.bytes)
    findings.isUnsettled = findings.isUnsettled || onlyCounts
    return true
  }
}

extension Problem {
  /// What stood in the folder was why: a change there may be the end of it.
  fileprivate var isOfFolder: Bool {
    switch kind {
    case .conflict: true
    case .failed: FolderFailure.Code(rawValue: code).map(Self.obstacles.contains) ?? false
    case .refused, .held: false
    }
  }

  private static let obstacles: Set<FolderFailure.Code> = [
    .permission, .readOnly, .notDirectory, .link, .otherFileSystem, .missing, .exists,
  ]
}
