import TarnRuntime

/// The number of rows, when it is known. Counting means reading all rows, so a cursor that read them all reports its count. It
/// works in the writer's process only, because writes of other processes are not seen.
final class RowTally: Sendable {
  private struct State {
    var count: Int?
    /// The number of times that rows were written, or may have been.
    var writes: UInt64 = 0
  }

  private let state = Locked(State())

  /// The number of rows. `nil` when rows were written since they were last counted.
  var count: Int? { state.withLock { $0.count } }

  /// Begins a count. Must be called before its read transaction begins.
  func begin() -> UInt64 { state.withLock { $0.writes } }

  /// - Parameter begin: the value that `begin()` returned.
  func end(_ begin: UInt64, count: Int) {
    state.withLock { state in
      if state.writes == begin { state.count = count }
    }
  }

  /// Notes that rows were written. Must be called between the commit and the return of the writer, or after a write that failed.
  func forget() {
    state.withLock { state in
      state.count = nil
      state.writes += 1
    }
  }
}
