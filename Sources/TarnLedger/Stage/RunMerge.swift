import TarnCore

/// Reads sorted runs side by side and gives their entries by path; of one path, those of the earlier run first.
///
/// A heap of the runs' next entries, the least on top.
struct RunMerge {
  private struct Head {
    var run: Int
    var path: [UInt8]
    var statement: Statement
  }

  private var heads: [Head] = []

  /// - Parameter runs: in the order they were written; each gives path and body, sorted.
  init(_ runs: [Statement]) throws(LedgerFailure) {
    for (run, statement) in runs.enumerated() where try statement.step() {
      heads.append(Head(run: run, path: try statement.blob(0), statement: statement))
    }
    for index in heads.indices.reversed() { sink(index) }
  }

  /// The next entry's path and body, through `read`; nil at the end.
  mutating func next<Result>(
    _ read: (_ path: [UInt8], Statement) throws(LedgerFailure) -> Result
  ) throws(LedgerFailure) -> Result? {
    guard let top = heads.first else { return nil }
    let result = try read(top.path, top.statement)
    if try top.statement.step() {
      heads[0].path = try top.statement.blob(0)
    } else {
      heads[0] = heads[heads.count - 1]
      heads.removeLast()
    }
    sink(0)
    return result
  }

  private mutating func sink(_ start: Int) {
    var parent = start
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heads.count && precedes(child, least) {
        least = child
      }
      if least == parent { return }
      heads.swapAt(parent, least)
      parent = least
    }
  }

  private func precedes(_ left: Int, _ right: Int) -> Bool {
    let order = compareBytes(heads[left].path, heads[right].path)
    return order < 0 || (order == 0 && heads[left].run < heads[right].run)
  }
}
