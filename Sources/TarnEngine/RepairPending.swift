import TarnCore

/// The files that a repair has begun to bring back, while it runs, and after one that was cut short.
struct RepairPending {
  var files = 0
  /// The bytes of those files whose size is known.
  var bytes: UInt64 = 0

  /// The fact's value; `nil` when there are no files.
  var text: String? { files > 0 ? "\(files) \(bytes)" : nil }

  static func + (left: Self, right: Self) -> Self {
    Self(files: left.files + right.files, bytes: left.bytes.addingSaturated(right.bytes))
  }

  /// Returns what is left of it. A repair may bring more than it planned at first.
  static func - (left: Self, right: Self) -> Self {
    Self(files: max(0, left.files - right.files), bytes: left.bytes - min(left.bytes, right.bytes))
  }
}

extension RepairPending {
  /// - Parameter text: the fact's value. An earlier Tarn recorded only the number of files.
  init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard let files = parts.first.flatMap({ Int($0) }), files > 0 else { return nil }
    self.init(files: files, bytes: parts.dropFirst().first.flatMap { UInt64($0) } ?? 0)
  }

  /// The file of an action, as it was planned; none where it is in place, or was never counted so.
  init(_ action: Action) {
    let isMissing = [.restore, .replace].contains(action.kindToTell)
    self.init(files: isMissing ? 1 : 0, bytes: isMissing ? action.bytesPlanned : 0)
  }
}

/// A repair that brings files.
struct BringingRepair: Sendable {
  let engine: TransferEngine
  let id: BringingRepairs.ID
}

/// A file that a repair was to bring.
struct BroughtFile: Sendable {
  let repair: BringingRepair
  let pending: RepairPending
}

/// The repairs that bring files, and what they still have to bring, including what was left by those that were cut short.
struct BringingRepairs {
  typealias ID = Int

  private struct Repair {
    var left: RepairPending
    var isRunning = true
  }

  private var repairs: [ID: Repair] = [:]
  private var last: ID = 0
  /// The last repair that began before a pass compared the folder with its feed.
  private var lastBeforeComparison: ID = 0
  /// The last repair whose files were missing when the pass that carries out its plan counted what is in place; 0 when there is no such
  /// pass. Files of a later repair may have gone after that, so they are taken for counted as in place: at worst they show as missing
  /// until the pass ends.
  private var lastMissing: ID = 0
  /// The number of times that the fact of what is left was written alone. After such a write beside one with brought files, nobody
  /// knows which was the last, so the fact is written again.
  var writes = 0

  var running: Int { repairs.values.count { $0.isRunning } }

  /// What is still to be brought and is counted as in place.
  var left: RepairPending { left(upTo: last) }

  /// Returns the part of `left` of the repairs up to this one.
  func left(upTo id: ID) -> RepairPending {
    repairs.filter { $0.key > lastMissing && $0.key <= id }.reduce(RepairPending()) { $0 + $1.value.left }
  }

  /// Returns what a repair still has to bring. What has failed is missing, too.
  func left(of id: ID) -> RepairPending { repairs[id]?.left ?? RepairPending() }

  func isCountedAsMissing(_ id: ID) -> Bool { repairs[id] != nil && id <= lastMissing }

  mutating func begin(_ pending: RepairPending) -> ID {
    last += 1
    repairs[last] = Repair(left: pending)
    return last
  }

  mutating func count(_ brought: [BroughtFile]) {
    for file in brought {
      guard let repair = repairs[file.repair.id] else { continue }
      repairs[file.repair.id]?.left = repair.left - file.pending
    }
  }

  /// - Parameter left: what a repair that was cut short did not bring.
  mutating func end(_ id: ID, left: RepairPending) {
    guard left.files > 0, repairs[id] != nil, id > lastMissing else { return repairs[id] = nil }
    repairs[id]?.left = left
    repairs[id]?.isRunning = false
  }

  /// A pass begins to compare the folder with its feed.
  mutating func beginComparison() { lastBeforeComparison = last }

  /// The pass has counted what is in place, and brings what is missing.
  mutating func endComparison() {
    lastMissing = lastBeforeComparison
    // The pass brings what earlier ones have left, and not what a later one was cut short at.
    repairs = repairs.filter { $0.value.isRunning || $0.key > lastMissing }
  }

  mutating func endPass() { lastMissing = 0 }

  /// Forgets what earlier repairs have left.
  mutating func forget() { repairs = [:] }
}
