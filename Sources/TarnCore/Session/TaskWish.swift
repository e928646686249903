/// What a client wants of a running task.
package enum TaskWish: Codable, Sendable, Equatable {
  case suspend
  /// - Parameter keeps: true to keep the partial file.
  case cancel(keeps: Bool)
  /// The file gets another destination. The same holds as for `again`.
  case move(to: String, TaskRequest.Existing?)
  /// The task goes on, although an earlier wish has stopped its transfer.
  case goOn
  /// The task begins again, for its request has changed. A file that gets its name meanwhile is not yet the task's.
  case again
}

extension TaskWish {
  /// True when a file that gets its name meanwhile is none of the task's, which begins again.
  package var isOfAnotherRequest: Bool {
    switch self {
    case .move, .again: true
    case .suspend, .cancel, .goOn: false
    }
  }
}

extension TaskRecord {
  /// Carries out what a client wants.
  package func obeying(_ wish: TaskWish, _ terms: TaskTerms) -> Transition? {
    switch wish {
    case .suspend: suspended(terms)
    case .cancel: cancelled(terms)
    case .move(let to, let existing): moved(to: to, existing, terms)
    case .goOn, .again: resumed(terms)
    }
  }

  /// True when a wish stops the transfer of a running task, and the task would get one of these states.
  package func isBound(for states: [TaskState]) -> Bool {
    switch wish {
    case .suspend: states.contains(.suspended)
    case .cancel: states.contains(.cancelled)
    case .move, .goOn, .again, nil: false
    }
  }
}
