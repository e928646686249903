import TarnCore

extension PassObserver {
  /// Reports a problem of a pass: counts it by its kind, keeps it while there is room, and passes it on.
  func report(_ problem: Problem, into problems: inout [Problem], counting counts: inout PassCounts) {
    counts.count(problem)
    problems.keep(CollectionOfOne(problem))
    pass(.problem(problem))
  }

  func report(_ problem: Problem, into report: inout PassReport) {
    self.report(problem, into: &report.problems, counting: &report.counts)
  }

  /// Reports the result of a removal.
  ///
  /// - Parameter seen: the time of the result.
  /// - Returns: the reason why the file stays; `nil` when it is gone, or its row was forgotten.
  @discardableResult
  func report(
    _ outcome: PublishOutcome, of action: Action, seen: Timestamp, into problems: inout [Problem],
    counting counts: inout PassCounts
  ) -> Problem? {
    let problem: Problem
    switch outcome {
    case .removed(let identity, let leftover):
      if action.kind == .delete { counts.deleted += 1 } else { counts.forgotten += 1 }
      pass(.done(code: action.kind.doneCode, path: action.path, bytes: identity.size))
      if let leftover {
        report(Problem(leftover: leftover, of: action.path, seen: seen), into: &problems, counting: &counts)
      }
      return nil
    case .failed(let failure):
      problem = Problem(
        name: action.path.bytes, kind: .failed, code: failure.code.rawValue, message: failure.message,
        seen: seen)
    case .stale, .installed: problem = Problem(changedMeanwhile: action.path, seen: seen)
    }
    report(problem, into: &problems, counting: &counts)
    return problem
  }
}

extension Problem {
  static let leftoverCode = "directory-not-removed"
  /// The code of a transfer that an order keeps from beginning.
  static let pausedCode = "paused"

  /// Makes the problem of a directory that stays although its last file was deleted. The next pass tries again.
  init(leftover failure: FolderFailure, of file: RelativePath, seen: Timestamp) {
    self.init(
      name: (failure.path ?? file).bytes, kind: .failed, code: Self.leftoverCode, message: failure.message,
      seen: seen)
  }

  /// Makes the problem of a file that is not as the plan saw it.
  init(changedMeanwhile path: RelativePath, seen: Timestamp) {
    self.init(
      name: path.bytes, kind: .failed, code: "changed-meanwhile",
      message: "the file changed while the pass ran; the next pass looks at it again", seen: seen)
  }
}

extension [Problem] {
  /// Appends problems, up to the limit of a report.
  mutating func keep(_ more: some Sequence<Problem>) {
    self += more.prefix(Swift.max(0, PassReport.mostProblems - count))
  }
}

extension PassReport {
  /// Drops problems that are over, and counts them no longer.
  mutating func dropProblems(where isOver: (Problem) throws -> Bool) rethrows {
    let all = problems
    problems = []
    for problem in all {
      if try isOver(problem) { counts.count(problem, -1) } else { problems.append(problem) }
    }
  }
}

extension PassCounts {
  fileprivate mutating func count(_ problem: Problem, _ step: Int = 1) {
    switch problem.kind {
    case .failed: failed += step
    case .refused: refused += step
    case .conflict: conflict += step
    case .held: waiting += step
    }
  }
}
