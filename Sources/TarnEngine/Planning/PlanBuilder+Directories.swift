import TarnCore

/// Directories that the feed has turned into files.
extension PlanBuilder {
  private static let mostBehindDirectories = 10_000

  /// Takes an entry for later whose place a directory has that holds nothing but files of Tarn's: the feed names none of them,
  /// for no path lies below that of a file, so that all go with the deletions.
  ///
  /// - Returns: false when it is a conflict.
  func goesWithDeletions(_ finding: Finding) throws -> Bool {
    guard planner.policy.deletes, !isRepair, !isWindow, !isAgain, finding.row == nil,
      let entry = finding.entry,
      behindDirectories.count < Self.mostBehindDirectories,
      case .conflict(code: Planner.directoryInTheWay, _) = finding.decision,
      try holdsOnlyRecorded(finding.path)
    else { return false }
    keepBehind(
      Action(
        .fetch, phase: planner.policy.phase(of: entry), path: finding.path,
        entry: entry))
    return true
  }

  /// For a plan whose deletions do not go.
  func reportDirectories() {
    for action in behindDirectories {
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
        guard object.kind == .regular, try ports.ledger.row(object.path) != nil else { return false }
        files += 1
      }
    } catch is FolderFailure {
      return false
    }
    return files > 0
  }
}
