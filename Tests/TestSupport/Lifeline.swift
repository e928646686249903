import TarnRuntime

/// Of a process that may be killed: from then on nothing that it asks for is done. Any thread.
package final class Lifeline: Sendable {
  private let left = Locked<Int?>(nil)

  package init() {}

  /// - Parameter calls: of the folder and the ledger that are still done.
  package func kill(after calls: Int) { left.withLock { $0 = calls } }

  /// Another process takes its place.
  package func revive() { left.withLock { $0 = nil } }

  /// Counts a call.
  ///
  /// - Returns: false when the process is dead.
  func survives() -> Bool {
    left.withLock { left in
      guard let before = left else { return true }
      left = max(0, before - 1)
      return before > 0
    }
  }
}
