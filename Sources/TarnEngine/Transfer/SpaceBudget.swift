import TarnCore
import TarnRuntime

/// Whether bytes fit: free space, less the reserve, less what running transfers will still need. Any thread.
final class SpaceBudget: Sendable {
  private let folder: any FolderPort
  private let reserve: UInt64
  fileprivate struct State {
    /// Bytes that running jobs may still write.
    var promised: UInt64 = 0
    /// Bytes that can be promised without another look at the disk, which has room for many times as many.
    var credit: UInt64 = 0
    /// The kernel found no room for a file: it may have none for another one, however small.
    var isDoubted = false
    /// Files that can be begun without another look at the disk, which can hold many times as many.
    var files = 0
  }
  /// What several budgets of one disk have promised.
  struct Promises: Sendable {
    fileprivate let state = Locked(State())

    func giveBack(_ bytes: UInt64) {
      state.withLock { $0.promised -= min($0.promised, bytes) }
    }
  }
  private let promises: Promises
  private var state: Locked<State> { promises.state }
  private static let mostCredit: UInt64 = 64 << 20

  init(_ folder: any FolderPort, reserve: Reserve, _ promises: Promises = Promises()) throws {
    (self.folder, self.promises) = (folder, promises)
    self.reserve = reserve.bytes(ofTotal: try folder.space().total)
  }

  /// Takes bytes out of the budget.
  ///
  /// - Parameter others: how many jobs at work may each make a file still; nil where it makes none itself.
  /// - Returns: false when they do not fit; then nothing was taken.
  func reserve(_ bytes: UInt64, besides others: Int? = nil) -> Bool {
    if let others, !canHoldFile(besides: others) { return false }
    let isDoubted = state.withLock(\.isDoubted)
    guard bytes > 0 || isDoubted else { return true }
    if isDoubted, hasNoFiles { return false }
    let isCovered = state.withLock { state in
      guard bytes <= state.credit else { return false }
      state.credit -= bytes
      state.promised += bytes
      return true
    }
    if isCovered { return true }
    let free = self.free
    return state.withLock { state in
      let (taken, overflow) = state.promised.addingReportingOverflow(bytes)
      guard !overflow, free > reserve, taken <= free - reserve else { return false }
      state.promised = taken
      state.credit = min(Self.mostCredit, (free - reserve - taken) / 32)
      return true
    }
  }

  /// A file system that can hold few more than there are jobs is asked for each: what finds no place is not fetched.
  private func canHoldFile(besides others: Int) -> Bool {
    let isCovered = state.withLock { state in
      defer { state.files = max(0, state.files - 1) }
      return state.files > 0
    }
    // Not every file system counts them.
    guard !isCovered, let files = try? folder.space().files else { return true }
    state.withLock { $0.files = Int(min(1024, (files - min(files, UInt64(others))) / 32)) }
    return files > others
  }

  /// The kernel refused to make or to fill a file for want of room.
  func doubt() {
    state.withLock { ($0.isDoubted, $0.credit, $0.files) = (true, 0, 0) }
  }

  func giveBack(_ bytes: UInt64) { promises.giveBack(bytes) }

  /// Bytes free beyond the reserve, promised or not.
  var room: UInt64 {
    let free = self.free
    return free > reserve ? free - reserve : 0
  }

  /// Bytes free beyond the reserve and beyond what is promised.
  var available: UInt64 {
    let taken = state.withLock { $0.promised }.addingReportingOverflow(reserve)
    let free = self.free
    return !taken.overflow && free > taken.partialValue ? free - taken.partialValue : 0
  }

  func refusal(_ size: UInt64?) -> String {
    if let files = try? folder.space().files, files == 0 || files < 1024 && (size ?? .max) <= available {
      let more = files == 0 ? "no more files" : "hardly any more files"
      return "does not fit: the file system can hold \(more), whatever their size (see 'df -i')"
    }
    let need = size.map { "it needs \(Units.show($0)), and " } ?? ""
    return "does not fit: \(need)\(Units.show(available)) are free beyond the reserve of "
      + "\(Units.show(reserve)) (--reserve)"
  }

  private var hasNoFiles: Bool { (try? folder.space().files) == .some(0) }

  private var free: UInt64 { (try? folder.space().free) ?? 0 }
}
