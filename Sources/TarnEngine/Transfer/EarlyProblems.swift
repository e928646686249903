import TarnCore

/// Problems of a pass at work, gathered for the ledger, which names them before the pass ends. Memory is bounded, and so is what
/// is written: beyond what a report names they are only counted.
struct EarlyProblems {
  /// By name; those that are settled by now are gone.
  private(set) var standing: [[UInt8]: Problem] = [:]
  /// What the ledger is to learn; nil: there is none of this name any more.
  private var changes: [[UInt8]: Problem?] = [:]
  /// Of what was found while the plan was made.
  private let unnamedBefore: UnnamedProblems
  private let most: Int
  /// When the pass began.
  private let began: Timestamp

  /// - Parameter report: has what was found while the plan was made.
  init(_ report: PassReport) {
    unnamedBefore = report.unnamed
    began = report.started
    most = max(0, PassReport.mostProblems - report.problems.count)
    for problem in report.problems { changes[problem.name] = problem }
  }

  mutating func tell(_ problem: Problem) {
    guard standing[problem.name] != nil || standing.count < most else { return }
    standing[problem.name] = problem
    changes[problem.name] = problem
  }

  /// What failed is in place by now, or is tried again.
  mutating func forget(_ name: [UInt8]) {
    guard standing.removeValue(forKey: name) != nil else { return }
    changes[name] = .some(nil)
  }

  /// What the ledger is to learn since this was asked last.
  ///
  /// - Parameter counts: of the pass's problems since the plan was made, by kind.
  mutating func takeChanges(counts: [Problem.Kind: Int]) -> [LedgerChange] {
    defer { changes = [:] }
    let told = changes.map { name, problem in
      problem.map { LedgerChange.problem($0) } ?? .dropProblem(name: name)
    }
    let unnamed = unnamedBefore + UnnamedProblems(all: counts, named: standing.values.countsByKind)
    return told + [unnamed.change(began: began)]
  }
}
