import TarnCore

/// What repairs leave to passes.
extension PlanBuilder {
  /// Whether it is for a pass: what none has brought so far, or what was cancelled, unless it was the folder that kept it out; and
  /// while a repair only counts, what failed.
  func isLeftToPasses(_ finding: Finding) throws -> Bool {
    guard finding.entry != nil, case .action(let action) = finding.decision, action.phase != .deletion else {
      return false
    }
    let isNew = finding.row == nil && action.kind == .fetch
    guard isNew || onlyCounts else { return false }
    guard let problem = try ports.ledger.problem(name: finding.path.bytes) else { return isNew }
    guard onlyCounts && problem.kind == .failed || isNew && !problem.isOfFolder else { return false }
    leave(finding.path)
    return true
  }

  /// A directory changed, and by its mode nobody may see any more what lies in it, or Tarn may be let in again.
  func beneath(_ path: RelativePath) throws -> Region {
    try ports.ledger.problem(below: path, code: FolderFailure.Code.permission.rawValue) == nil
      ? Region(path, .children) : widening(path)
  }

  func widening(_ path: RelativePath) -> Region {
    let tree = Region(path, .tree)
    widened.append(tree)
    return tree
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
