import TarnCore
import TarnEngine

/// Hears a repair, which may look at the same many times: problems that the ledger knows already were told.
struct UntoldProblems: PassObserver {
  private let observer: any PassObserver
  private let known: [[UInt8]: String]

  init(of observer: any PassObserver, known: [Problem]) {
    self.observer = observer
    self.known = Dictionary(known.map { ($0.name, $0.code) }) { first, _ in first }
  }

  func isNew(_ problem: Problem) -> Bool { known[problem.name] != problem.code }

  func pass(_ event: PassEvent) {
    if case .problem(let problem) = event, !isNew(problem) { return }
    observer.pass(event)
  }
}
