import TarnCore

/// What a pass says of a disk that is too small.
extension Pass {
  /// Says before the first byte when the plan does not fit: replaced versions stay in the trash, so the peak is what
  /// there is and all that is planned.
  func tellSpace(_ folder: any FolderPort, _ planned: UInt64) throws {
    let available = try SpaceBudget(folder, reserve: request.policy.reserve).available
    guard planned > available else { return }
    observer.notice(
      "space-short",
      "the plan needs \(Units.show(planned)) at its peak, and \(Units.show(available)) are free beyond "
        + "the reserve; what does not fit is reported, the rest is done")
  }

  /// Says where space may come from, once something did not fit.
  func tellTrash(_ report: PassReport) throws {
    let codes = [FolderFailure.Code.noSpace.rawValue, FolderFailure.Code.quota.rawValue]
    guard report.problems.contains(where: { codes.contains($0.code) }) else { return }
    let bytes = try ports.ledger.trashTotals().bytes
    guard bytes > 0 else { return }
    observer.notice(
      "space-short",
      "the trash holds \(Units.show(bytes)); to remove it for good: tarn trash empty "
        + ShellWord.quote(request.folderName))
  }
}
