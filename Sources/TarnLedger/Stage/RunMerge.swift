import HeapModule
import TarnCore

/// Merges sorted runs and returns their entries by path. Entries with the same path come in the order of their runs.
struct RunMerge {
  /// The next entry of a run.
  private struct Head: Comparable {
    var run: Int
    var path: [UInt8]
    var statement: Statement

    static func < (left: Head, right: Head) -> Bool {
      let order = compareBytes(left.path, right.path)
      return order < 0 || (order == 0 && left.run < right.run)
    }

    /// Heads are equal when they are of the same run, which has only one.
    static func == (left: Head, right: Head) -> Bool { left.run == right.run }
  }

  private var heads = Heap<Head>()

  /// - Parameter runs: statements in the order in which the runs were written; each returns path and body, sorted.
  init(_ runs: [Statement]) throws(LedgerFailure) {
    for (run, statement) in runs.enumerated() where try statement.step() {
      heads.insert(Head(run: run, path: try statement.blob(0), statement: statement))
    }
  }

  /// Returns the next entry's path and body, converted by `read`. `nil` at the end.
  mutating func next<Result>(
    _ read: (_ path: [UInt8], Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result? {
    guard var top = heads.min else { return nil }
    let result = try read(top.path, top.statement)
    if try top.statement.step() {
      top.path = try top.statement.blob(0)
      heads.replaceMin(with: top)
    } else {
      heads.removeMin()
    }
    return result
  }
}
