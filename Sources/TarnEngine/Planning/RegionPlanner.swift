import TarnCore
import TarnRuntime

/// Plans the repair of parts of a folder by the catalog of the last manifest. Nothing is deleted. Files that no pass has brought so
/// far are left to passes, unless the folder itself had kept them out.
final class RegionPlanner {
  let writer: PlanWriter
  private let catalog: any CatalogReading
  /// True to only count what is in place. Failed entries are then not retried.
  private let onlyCounts: Bool
  private(set) var findings = Findings()
  /// The problems in the ledger before the look, by name. A look ends no others, for they were met since.
  let known: [[UInt8]: Problem]
  /// The regions that were read because something above them was gone.
  private var widened: [Region] = []
  /// The paths that are not as recorded, when several regions are read, which may lie in one another. `nil` for a single region.
  private var found: Set<RelativePath>?
  /// The most such paths. Beyond it the whole folder is read as one region.
  var mostFound = 1 << 16

  private struct TooManyFound: Error {}

  /// Findings of a repair besides its plan.
  struct Findings {
    /// True when something is not as the last pass left it, and will not be.
    var isUnsettled = false
    /// True when something has to be fetched that was not in place before.
    var wantsNew = false
    /// True when only its server knows which version is wanted of a file that is back. The last pass did not ask.
    var wantsVersion: Bool { !back.isEmpty }
    /// The names of these files.
    fileprivate var back: Set<[UInt8]> = []
    /// True when a row's file is gone and nothing wants it. Only a pass, which has read the feed, drops such a row; of a window's
    /// rows only those that have expired.
    var hasForgettable = false
    /// The names of known problems whose paths are as the manifest wants them.
    var settled: Set<[UInt8]> = []
    /// The files to bring back that have failed or were in conflict before, so that the last count has them as missing.
    var triedAgain = RepairPending()
    /// The wanted files that are as they were left.
    var asLeft: (count: Int, bytes: UInt64) = (0, 0)
    /// The time that reading took, without hashing.
    var lookTime = Duration.zero
  }

  /// - Parameter problems: those in the ledger, read before the catalog was opened.
  init(
    _ pass: Pass, _ folder: any FolderReading, _ catalog: any CatalogReading, since: TransferEngine.History,
    started: Timestamp, problems: [Problem] = [], onlyCounts: Bool
  ) {
    (self.catalog, self.onlyCounts) = (catalog, onlyCounts)
    known = Dictionary(problems.map { ($0.name, $0) }) { $1 }
    let policy = pass.request.policy
    var plan = Plan(
      pass.ports.stage, policy: catalog.isWindow ? policy.ofWindow : policy, deletions: .none,
      started: started)
    plan.since = since
    writer = PlanWriter(plan, pass, folder, isOfRepair: true)
    writer.onDecision = { [unowned self] in note($0) }
  }

  private var ports: PassPorts { writer.pass.ports }

  /// - Parameter regions: the regions to read, none of which lies in another.
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
    // Paths below one that turns out to need a wider look come after it.
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
      // Whatever was in the way of entries below this path is gone.
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

  /// Returns the region to read when a directory has changed. Its mode may now hide its contents, or admit Tarn again.
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
    // The file is as it was left. Only a pass asks whether it is still wanted.
    if let row = finding.row, finding.mark == nil {
      settle(finding)
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

  /// Notes what a decision means for the repair. A recorded file that is as recorded, or is restored so, is as the last pass left
  /// it.
  private func note(_ finding: Finding) {
    settle(finding)
    if case .action(let action) = finding.decision, action.kind != .inspect, known[finding.path.bytes] != nil
    {
      findings.triedAgain = findings.triedAgain + RepairPending(action)
    }
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

  /// Returns whether a finding is left to passes: files that no pass has brought, or that were cancelled, unless the folder itself
  /// had kept them out. While a repair only counts, failed entries are left as well.
  private func isLeftToPasses(_ finding: Finding) throws -> Bool {
    guard finding.entry != nil, case .action(let action) = finding.decision, action.phase != .deletion else {
      return false
    }
    let isNew = finding.row == nil && action.kind == .fetch
    guard isNew || onlyCounts else { return false }
    guard let problem = try ports.ledger.problem(name: finding.path.bytes) else { return isNew }
    guard onlyCounts && problem.kind == .failed || isNew && !problem.isOfFolder else { return false }
    // A pass has to look.
    findings.isUnsettled = findings.isUnsettled || onlyCounts
    return true
  }

  // MARK: Problems that are over

  /// Returns whether another manifest wants the entry of this repair's problem otherwise, so that only another look tells of it.
  ///
  /// - Parameter now: the catalog of the manifest that was accepted last; `nil` when there is none.
  func isSuperseded(at path: RelativePath, by now: (any CatalogReading)?) throws -> Bool {
    // A directory that could not be read is not an entry.
    guard let entry = try catalog.entry(path) else { return false }
    return try now?.entry(path) != entry
  }

  /// Returns whether a problem of this repair is a conflict that is none any more.
  func isOutdated(_ problem: Problem, at path: RelativePath) throws -> Bool {
    guard problem.kind == .conflict, let entry = try catalog.entry(path) else { return false }
    return try !isInConflict(entry)
  }

  private func isInConflict(_ entry: Entry) throws -> Bool {
    let row = try ports.ledger.row(entry.path)
    do throws(FolderFailure) {
      let present = try writer.folder.look(entry.path)
      if present == nil, try isBelowFile(entry.path) { return true }
      switch writer.planner.decide(entry, row: row, present: present) {
      case .conflict: return true
      case .current, .adopt, .kept, .unlisted: return false
      case .action(let action):
        guard let present, action.kind == .inspect else { return false }
        // The look has hashed it, and nobody has placed another one since.
        return row?.identity.isSame(as: present.identity) != true
      }
    } catch {
      return true
    }
  }

  private func isBelowFile(_ path: RelativePath) throws(FolderFailure) -> Bool {
    var above = path.parent
    while let directory = above {
      if let present = try writer.folder.look(directory) { return present.kind != .directory }
      above = directory.parent
    }
    return false
  }

  /// Notes whether the problem of an entry is over. One that is not as the manifest wants it keeps its problem: only who brings it
  /// learns more.
  private func settle(_ finding: Finding) {
    let name = finding.path.bytes
    guard !known.isEmpty, let problem = known[name], finding.entry != nil else { return }
    let isOver =
      switch finding.decision {
      case .current, .kept: finding.refusal == nil
      // Only its server knows the wanted version.
      case .action(let action) where action.kind == .revalidate: finding.refusal == nil && problem.isOfFolder
      default: false
      }
    // The pass that met the problem did not ask the server.
    if isOver, case .action = finding.decision {
      (findings.isUnsettled, findings.wantsNew) = (true, true)
      findings.back.insert(name)
    } else {
      findings.back.remove(name)
    }
    if isOver { findings.settled.insert(name) } else { findings.settled.remove(name) }
  }

  /// Returns whether a problem that the ledger had before the look is over. Then its path is as the manifest wants it, or the
  /// manifest does not name it and nothing is left of the cause.
  func isOver(_ problem: Problem, at path: RelativePath) throws -> Bool {
    if findings.settled.contains(problem.name) { return true }
    guard try catalog.entry(path) == nil else { return false }
    do throws(FolderFailure) {
      guard let present = try writer.folder.look(path) else { return true }
      guard present.kind == .directory, problem.code != Problem.leftoverCode else { return false }
      // It could not be read.
      let contents = writer.folder.scan(Region(path, .children))
      while try contents.next() != nil {}
      return true
    } catch {
      return false
    }
  }
}

extension Problem {
  /// Whether the folder's contents were the cause, so that a change there may end the problem.
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
