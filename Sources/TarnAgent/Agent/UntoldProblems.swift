import TarnCore
import TarnEngine

/// Observes a repair, which may examine the same files many times. It passes on only problems that the ledger
/// does not know yet.
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
