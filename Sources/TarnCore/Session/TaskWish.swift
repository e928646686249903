/// What a client wants of a running task.
package enum TaskWish: Codable, Sendable, Equatable {
  case suspend
  /// - Parameter keeps: true to keep the partial file.
  case cancel(keeps: Bool)
  /// The file gets another destination.
  case move(to: String, TaskRequest.Existing?)
}

extension TaskRecord {
  /// Carries out what a client wants.
  package func obeying(_ wish: TaskWish, _ terms: TaskTerms) -> Transition? {
    switch wish {
    case .suspend: suspended(terms)
    case .cancel: cancelled(terms)
    case .move(let to, let existing): moved(to: to, existing, terms)
    }
  }
}
