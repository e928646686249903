import TarnRuntime

/// How many rows there are, as far as it is known: to count them is to read all of them, and whoever read them all has counted them. Known
/// to the writer's process only, for others write unseen.
final class RowTally: Sendable {
  private struct State {
    var count: Int?
    /// How often rows were written, or may have been.
    var writes: UInt64 = 0
  }

  private let state = Locked(State())

  /// nil when rows were written since they were last counted.
  var count: Int? { state.withLock { $0.count } }

  /// Where a count begins: before its read transaction does.
  func begin() -> UInt64 { state.withLock { $0.writes } }

  /// - Parameter begin: as `begin` said.
  func end(_ begin: UInt64, count: Int) {
    state.withLock { state in
      if state.writes == begin { state.count = count }
    }
  }

  /// Rows were written: called between the commit and the return of whoever writes, or after a write that failed.
  func forget() {
    state.withLock { state in
      state.count = nil
      state.writes += 1
    }
  }
}
