import TarnCore
import TarnRuntime

/// Makes a plan from the finding at each path: hashes files where needed, stages actions, counts, and reports problems. Its memory
/// does not grow with the feed. Used on the planning thread.
final class PlanWriter {
  let pass: Pass
  let folder: any FolderReading
  private(set) var planner: Planner
  var plan: Plan
  /// The names and codes that were reported, so that a feed that is read again does not report them twice.
  private var told: Set<[UInt8]> = []
  /// Called with each decision.
  var onDecision: ((Finding) -> Void)?
  /// True for a repair: files that are as recorded stay so, and conflicts are told at its end, if they are any then.
  let isOfRepair: Bool
  /// True once paths are decided again.
  private var isAgain = false
  /// The time that hashing has taken so far.
  private(set) var hashedFor = Duration.zero

  init(_ plan: Plan, _ pass: Pass, _ folder: any FolderReading, isOfRepair: Bool = false) {
    (self.plan, self.pass, self.folder, self.isOfRepair) = (plan, pass, folder, isOfRepair)
    planner = Planner(policy: plan.policy)
  }

  /// Starts over with another plan.
  func begin(_ plan: Plan) throws {
    self.plan = plan
    planner = Planner(policy: plan.policy)
    try pass.ports.stage.clear()
    self.plan.partials = Unsettled(try pass.ports.ledger.partials().map(\.path))
  }

  /// Decides again about paths that were not as a plan saw them. The stage then holds these, and the deletions that it held, which
  /// are judged and carried out after them.
  func replan(_ actions: [Action]) throws {
    isAgain = true
    let former = try pass.ports.stage.actions()
    try pass.ports.stage.clear()
    while let action = try former.next() {
      if action.phase == .deletion { try pass.ports.stage.add(action) }
    }
    for action in actions {
      guard let entry = action.entry else { continue }
      plan.withdraw(action)
      let row = try pass.ports.ledger.row(action.path)
      let present = try folder.look(action.path)
      let decision = planner.decide(entry, row: row, present: present)
      if isOfRepair, let row, FolderFingerprint.mark(row, present: present, isBelowFile: false) == nil {
        if Self.isWanted(decision) { countAsCurrent(row.identity.size) }
        continue
      }
      try settle(Finding(path: action.path, entry: entry, row: row, decision: decision))
    }
  }

  func comparison(
    _ region: Region = .everything, emit: @escaping (Finding) throws -> Void
  ) throws -> Comparison {
    try Comparison(
      planner: planner, rows: pass.ports.ledger.rows(in: region), snapshot: folder.scan(region),
      unrecorded: { [unowned self] in plan.unrecorded.add($0, isInPlaceOfAnother: $1) },
      mayGo: { [unowned self] in plan.deletions.allows($0) }, emit: emit)
  }

  // MARK: Findings

  /// Handles the finding that a part of the folder could not be read.
  ///
  /// - Returns: false when the finding is about a path instead.
  func takeFailure(_ finding: Finding) -> Bool {
    guard let failure = finding.scanFailure else { return false }
    plan.hasBlindSpot = true
    let name = failure.path?.bytes ?? Array(".".utf8)
    report(name: name, kind: .failed, code: failure.code.rawValue, message: failure.message)
    return true
  }

  func add(_ finding: Finding) throws {
    if let entry = finding.entry, !entry.isRefused {
      plan.counts.wanted += 1
      if let size = entry.size ?? finding.row?.size(of: entry, isKept: Self.isWanted(finding.decision)) {
        plan.bytes.wanted.addSaturated(size)
      } else {
        plan.bytes.unknownSizes += 1
      }
    }
    guard let refusal = finding.refusal else { return try settle(finding) }
    plan.partials.keep(finding.path)
    if finding.entry?.isRefused != true {
      report(name: finding.path.bytes, kind: .refused, code: refusal.code, message: refusal.message)
    }
  }

  /// Returns whether the file is of the version that the manifest names, as far as that can be told here: it is as it was recorded.
  static func isWanted(_ decision: Decision) -> Bool {
    switch decision {
    case .current, .adopt: true
    case .action(let action): action.kind == .revalidate || action.kind == .inspect
    case .conflict, .kept, .unlisted: false
    }
  }

  private func settle(_ finding: Finding) throws {
    note(finding)
    onDecision?(finding)
    switch finding.decision {
    case .current where try recordAsVerified(finding): break
    case .current: countAsCurrent(finding.row?.identity.size ?? finding.entry?.size ?? 0)
    case .action(let action) where action.phase == .deletion && !mayGo(action): plan.left.add(finding.mark)
    case .action(let action) where action.kind == .inspect: try inspect(action)
    case .action(let action): try stage(action)
    case .adopt: break
    case .conflict where try goesWithDeletions(finding): break
    case .conflict(let code, let message):
      report(name: finding.path.bytes, kind: .conflict, code: code, message: message)
    case .kept:
      plan.counts.kept += 1
      plan.left.add(finding.mark)
    case .unlisted:
      plan.left.add(finding.mark)
      // The feed may still name files that a filter excludes. In a window only expired files would go.
      let wouldGo = !plan.isWindow || plan.deletions.allows(finding.path)
      if planner.policy.filter.excludes(finding.path) {
        plan.filteredRows += 1
      } else if wouldGo {
        plan.counts.unlisted += 1
      }
    }
  }

  /// Records that a file that was placed without a digest matches the one that the feed now gives.
  ///
  /// - Returns: false when there is nothing to record.
  private func recordAsVerified(_ finding: Finding) throws -> Bool {
    guard let entry = finding.entry, let row = finding.row, !row.isVerified, !row.isAdopted,
      entry.digests.contains(row.digest)
    else { return false }
    let action = Action(
      .adopt, phase: planner.policy.phase(of: entry), path: finding.path, entry: entry,
      present: row.identity, row: row)
    try adopt(action, entry, row.identity, row.digest, isVerified: true)
    return true
  }

  private func countAsCurrent(_ bytes: UInt64) {
    plan.counts.current += 1
    plan.bytes.current.addSaturated(bytes)
  }

  private func note(_ finding: Finding) {
    guard finding.entry != nil else { return }
    let (isInPlace, isKept) =
      switch finding.decision {
      case .current, .adopt: (true, false)
      case .kept: (false, true)
      default: (false, false)
      }
    plan.old.want(finding.path.bytes, isSettled: isInPlace || isKept)
    plan.partials.want(finding.path, isSettled: isInPlace)
  }

  /// Returns whether a deletion may go. In a window only expired files go. The row of another file that the user deleted stays, so
  /// that it is not fetched again. It goes when the policy restores files, because nobody can bring back a file that the feed does
  /// not name.
  private func mayGo(_ action: Action) -> Bool {
    if plan.deletions.allows(action.path) { return true }
    return plan.isWindow && action.kind == .forget && action.present == nil
      && plan.policy.localChanges == .restore
  }

  private func stage(_ action: Action) throws {
    try pass.ports.stage.add(action)
    plan.count(action)
  }

  func report(name: [UInt8], kind: Problem.Kind, code: String, message: String) {
    // A path that is decided again is seen then: a look that began before says nothing about it.
    let seen = isAgain ? pass.ports.now : plan.started
    let problem = Problem(name: name, kind: kind, code: code, message: message, seen: seen)
    plan.old.keep(name)
    var isNew = true
    if told.count < PassReport.mostProblems {
      isNew = told.insert(name + [0] + Array(code.utf8)).inserted
    }
    let isTold = isNew && !(isOfRepair && kind == .conflict)
    let observer: any PassObserver = isTold ? pass.observer : SilentObserver()
    plan.report(problem, telling: observer)
  }

  // MARK: What only the bytes of a file of the folder can say

  /// Hashes the file at the path, and decides again.
  private func inspect(_ action: Action) throws {
    guard let entry = action.entry, let present = action.present else { return }
    let algorithm = Planner.inspectionAlgorithm(entry, row: action.row)
    let decision: Decision
    var identity = present
    do throws(FolderFailure) {
      if let (digest, hashed) = try hash(action.path, algorithm) {
        identity = hashed
        decision = planner.decide(entry, row: action.row, inspected: digest, identity: hashed)
      } else {
        decision = .conflict(code: "changing", message: "the file changes while it is read; try again later")
      }
    } catch {
      if error.code == .stopped { throw PassFailure(.stopped, code: "stopped", "ended on request") }
      // Its contents are unknown, but Tarn placed a readable file there.
      if error.code == .permission, action.row != nil, planner.policy.localChanges == .restore {
        var replacing = action
        replacing.kind = .replace
        return try stage(replacing)
      }
      report(name: action.path.bytes, kind: .failed, code: error.code.rawValue, message: error.message)
      return
    }
    if case .adopt(let digest, let isVerified) = decision {
      return try adopt(action, entry, identity, digest, isVerified: isVerified)
    }
    var finding = Finding(path: action.path, entry: entry, row: action.row, decision: decision)
    finding.mark = action.row.flatMap { row in
      let present = Present(path: row.path, kind: .regular, identity: identity)
      return FolderFingerprint.mark(row, present: present, isBelowFile: false)
    }
    finding.row?.identity = identity
    try settle(finding)
  }

  private func adopt(
    _ action: Action, _ entry: Entry, _ identity: FileIdentity, _ digest: Digest, isVerified: Bool
  ) throws {
    if entry.size == nil {
      var learned = LearnedSizes()
      learned.add(identity.size, before: action.sizeCounted(of: entry))
      learned.apply(to: &plan.bytes)
    }
    var adoption = action
    adoption.kind = .adopt
    if try pass.ports.ledger.partial(action.path) != nil { plan.partials.settle(action.path) }
    let tarns = action.row.flatMap { $0.isTarns(identity, digest) ? $0 : nil }
    adoption.row = Row(
      path: action.path, identity: identity, digest: digest, isVerified: isVerified,
      fingerprint: entry.fingerprint, etag: action.row?.etag, lastModified: action.row?.lastModified,
      placed: tarns?.placed ?? plan.started, isAdopted: tarns == nil)
    adoption.restoresMode =
      tarns != nil && planner.policy.localChanges == .restore
      && (try? folder.look(action.path))?.hasOwnMode == false
    try stage(adoption)
  }

  private func hash(
    _ path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    let begun = pass.ports.clock.monotonic()
    defer { hashedFor += pass.ports.clock.monotonic() - begun }
    return try folder.digest(of: path, algorithm) { _ in !pass.stop.isSet }
  }

  // MARK: Directories that the feed has turned into files

  private static let mostBehindDirectories = 10_000

  /// Defers an entry whose place is taken by a directory with only Tarn's files. The feed names none of these, because no path lies
  /// below that of a file, so all of them go with the deletions.
  ///
  /// - Returns: false when it is a conflict.
  private func goesWithDeletions(_ finding: Finding) throws -> Bool {
    guard planner.policy.deletes, plan.deletions == .all, !isAgain, finding.row == nil,
      let entry = finding.entry,
      plan.behindDirectories.count < Self.mostBehindDirectories,
      case .conflict(code: Planner.directoryInTheWay, _) = finding.decision,
      try holdsOnlyRecorded(finding.path)
    else { return false }
    let action = Action(
      .fetch, phase: planner.policy.phase(of: entry), path: finding.path, entry: entry)
    plan.behindDirectories.append(action)
    plan.count(action)
    return true
  }

  /// Reports the conflicts of a plan whose deletions do not go.
  func reportDirectories() {
    for action in plan.behindDirectories {
      report(
        name: action.path.bytes, kind: .conflict, code: Planner.directoryInTheWay,
        message: "a directory stands where the file belongs; its files are not deleted")
    }
  }

  private func holdsOnlyRecorded(_ path: RelativePath) throws -> Bool {
    let objects = folder.scan(Region(path, .tree))
    var files = 0
    do {
      while let object = try objects.next() {
        guard object.kind != .directory else { continue }
        guard object.kind == .regular, try pass.ports.ledger.row(object.path) != nil else { return false }
        files += 1
      }
    } catch is FolderFailure {
      return false
    }
    return files > 0
  }
}
