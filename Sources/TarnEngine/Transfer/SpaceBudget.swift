import TarnCore
import TarnRuntime

/// The space that is promised to downloads, by file system. Shared by all sessions of a process; thread-safe.
package final class SpacePromises: Sendable {
  private let promises = Locked<[UInt64: SpaceBudget.Promises]>([:])

  package init() {}

  func of(device: UInt64) -> SpaceBudget.Promises {
    promises.withLock { promises in
      if let known = promises[device] { return known }
      let made = SpaceBudget.Promises()
      promises[device] = made
      return made
    }
  }
}

/// Decides whether bytes fit: free space, less the reserve, less what running transfers still need. Thread-safe.
final class SpaceBudget: Sendable {
  private let folder: any TransferFolder
  private let reserve: UInt64
  private struct State {
    /// The bytes that can be promised without another look at the disk, which has room for many times as many.
    var credit: UInt64 = 0
    /// The bytes beyond the reserve that were free at the last look.
    var room: UInt64 = 0
    /// True once the kernel found no room for a file: it may have none for another one, however small.
    var isDoubted = false
    /// The files that can be begun without another look at the disk, which can hold many times as many.
    var files = 0
    /// The files in a row whose size only the response told, and that did not fit, and the smallest of these sizes.
    var refused = 0
    var leastRefused = UInt64.max
  }
  /// So many refused files in a row are taken for proof that the others of unknown size do not fit either.
  private static let mostRefused = 256
  /// The bytes that running jobs may still write, for several budgets of one disk.
  struct Promises: Sendable {
    fileprivate let bytes = Locked(UInt64(0))

    func giveBack(_ bytes: UInt64) { self.bytes.withLock { $0 -= min($0, bytes) } }

    /// - Parameter most: the most bytes that may be promised in total.
    /// - Returns: the bytes promised in total; `nil` when these do not fit.
    fileprivate func add(_ bytes: UInt64, most: UInt64) -> UInt64? {
      self.bytes.withLock { promised in
        let (sum, overflow) = promised.addingReportingOverflow(bytes)
        guard !overflow, sum <= most else { return nil }
        promised = sum
        return sum
      }
    }
  }
  private let promises: Promises
  private let state = Locked(State())
  private static let mostCredit: UInt64 = 64 << 20

  init(_ folder: any TransferFolder, reserve: Reserve, _ promises: Promises = Promises()) throws {
    (self.folder, self.promises) = (folder, promises)
    self.reserve = reserve.bytes(ofTotal: try folder.space().total)
  }

  /// Reserves bytes.
  ///
  /// - Parameters:
  ///   - bytes: `nil` for a file of unknown size, for which nothing is reserved.
  ///   - others: the number of running jobs that may each make another file; `nil` when this job makes none.
  /// - Returns: false when they do not fit; nothing is reserved then.
  func reserve(_ bytes: UInt64?, besides others: Int? = nil) -> Bool {
    if bytes == nil, isTooFull { return false }
    let bytes = bytes ?? 0
    if let others, !canHoldFile(besides: others) { return false }
    let isDoubted = state.withLock(\.isDoubted)
    guard bytes > 0 || isDoubted else { return true }
    if isDoubted, hasNoFiles { return false }
    let known = state.withLock { state -> UInt64? in
      guard bytes <= state.credit else { return nil }
      state.credit -= bytes
      return state.room
    }
    // Others may have been promised the rest since.
    if let known, promises.add(bytes, most: known) != nil { return true }
    let room = self.room
    guard room > 0, let promised = promises.add(bytes, most: room) else { return false }
    state.withLock { ($0.room, $0.credit) = (room, min(Self.mostCredit, (room - promised) / 32)) }
    return true
  }

  /// Returns whether the file system can hold another file. One that can hold few more than there are jobs is asked each time, so
  /// that files without a place are not fetched.
  private func canHoldFile(besides others: Int) -> Bool {
    let isCovered = state.withLock { state in
      defer { state.files = max(0, state.files - 1) }
      return state.files > 0
    }
    // Not every file system counts its files.
    guard !isCovered, let files = try? folder.space().files else { return true }
    state.withLock { $0.files = Int(min(1024, (files - min(files, UInt64(others))) / 32)) }
    return files > others
  }

  /// Reserves bytes of a file whose size only the response told.
  ///
  /// - Returns: false when they do not fit; nothing is reserved then.
  func reserve(told bytes: UInt64) -> Bool {
    let fits = reserve(bytes)
    state.withLock { state in
      (state.refused, state.leastRefused) =
        fits ? (0, .max) : (state.refused + 1, min(state.leastRefused, bytes))
    }
    return fits
  }

  /// True when files of unknown size are not worth asking for: none of many fit, and no more space is free than then.
  private var isTooFull: Bool {
    let (refused, least) = state.withLock { ($0.refused, $0.leastRefused) }
    return refused >= Self.mostRefused && available < least
  }

  /// Notes that the kernel refused to make or to fill a file for lack of room.
  func doubt() {
    state.withLock { ($0.isDoubted, $0.credit, $0.files) = (true, 0, 0) }
  }

  func giveBack(_ bytes: UInt64) { promises.giveBack(bytes) }

  /// The free bytes beyond the reserve, promised or not.
  var room: UInt64 {
    let free = (try? folder.space().free) ?? 0
    return free - min(free, reserve)
  }

  /// The free bytes beyond the reserve and beyond what is promised.
  var available: UInt64 {
    let (room, promised) = (self.room, promises.bytes.withLock { $0 })
    return room - min(room, promised)
  }

  func refusal(_ size: UInt64?) -> String {
    if let files = try? folder.space().files, files == 0 || files < 1024 && (size ?? .max) <= available {
      let more = files == 0 ? "no more files" : "hardly any more files"
      return "does not fit: the file system can hold \(more), whatever their size (see 'df -i')"
    }
    let need = size.map { "it needs \(Units.show($0)), and " } ?? ""
    return "does not fit: \(need)\(Units.show(available)) are free beyond the reserve of "
      + Units.show(reserve)
  }

  private var hasNoFiles: Bool { (try? folder.space().files) == .some(0) }
}
