import TarnCore

/// Whether an entry fits: free space, less the reserve, less what running transfers will still need.
struct SpaceBudget {
  private let folder: any FolderPort
  private let reserve: UInt64
  /// Bytes that admitted jobs may still write.
  private var promised: UInt64 = 0

  init(_ folder: any FolderPort, reserve: Reserve) throws {
    self.folder = folder
    self.reserve = reserve.bytes(ofTotal: try folder.space().total)
  }

  /// Takes the job's bytes out of the budget.
  ///
  /// - Returns: false when they do not fit.
  mutating func take(for job: inout Job) -> Bool {
    let size = job.entry.size ?? 0
    guard size <= available else { return false }
    promised += size
    job.reserved = size
    return true
  }

  mutating func giveBack(_ job: Job) {
    promised -= min(promised, job.reserved)
  }

  /// The most bytes that the job's body may have.
  func limit(for job: Job) -> UInt64 {
    if let size = job.entry.size { return size }
    return max(available, 1)
  }

  func refusal(_ entry: Entry) -> String {
    "does not fit: it needs \(entry.size ?? 0) bytes, and \(available) are free beyond the reserve of "
      + "\(reserve) (--reserve)"
  }

  private var available: UInt64 {
    guard let free = try? folder.space().free else { return 0 }
    let taken = reserve + promised
    return free > taken ? free - taken : 0
  }
}
