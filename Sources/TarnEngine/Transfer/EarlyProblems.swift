import TarnCore

/// Collects the problems of a running pass for the ledger, which gets them before the pass ends. Memory and writes are bounded:
/// problems beyond those that a report names are only counted.
struct EarlyProblems {
  /// The problems by name, without those that are settled by now.
  private(set) var open: [[UInt8]: Problem] = [:]
  /// The changes for the ledger by name; `nil` for a problem that is gone.
  private var changes: [[UInt8]: Problem?] = [:]
  /// The unnamed problems that were found while the plan was made.
  private let unnamedBefore: UnnamedProblems
  private let most: Int
  /// The time when the pass began.
  private let began: Timestamp

  /// - Parameter report: a report with the problems that were found while the plan was made.
  init(_ report: PassReport) {
    unnamedBefore = report.unnamed
    began = report.started
    most = max(0, PassReport.mostProblems - report.problems.count)
    for problem in report.problems { changes[problem.name] = problem }
  }

  mutating func tell(_ problem: Problem) {
    guard open[problem.name] != nil || open.count < most else { return }
    self.open[problem.name] = problem
    changes[problem.name] = problem
  }

  /// Removes the problem of an entry that is in place by now, or is retried.
  mutating func forget(_ name: [UInt8]) {
    guard open.removeValue(forKey: name) != nil else { return }
    changes[name] = .some(nil)
  }

  /// Returns the changes for the ledger since the last call.
  ///
  /// - Parameter counts: the pass's problems since the plan was made, by kind.
  mutating func takeChanges(counts: [Problem.Kind: Int]) -> [LedgerChange] {
    defer { changes = [:] }
    let told = changes.map { name, problem in
      problem.map { LedgerChange.problem($0) } ?? .dropProblem(name: name)
    }
    let unnamed = unnamedBefore + UnnamedProblems(all: counts, named: open.values.countsByKind)
    return told + [unnamed.change(began: began)]
  }
}
