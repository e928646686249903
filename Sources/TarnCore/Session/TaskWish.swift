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
  /// The request has changed, and the task is suspended.
  case suspendAgain
  /// The file gets another destination, and the task is suspended.
  case suspendMove(to: String, TaskRequest.Existing?)
}

extension TaskWish {
  /// True when a file that gets its name meanwhile is none of the task's, which begins again.
  package var isOfAnotherRequest: Bool {
    switch self {
    case .move, .again, .suspendAgain, .suspendMove: true
    case .suspend, .cancel, .goOn: false
    }
  }

  package var suspends: Bool {
    switch self {
    case .suspend, .suspendAgain, .suspendMove: true
    case .cancel, .move, .goOn, .again: false
    }
  }

  /// The other destination; `nil` for the same one.
  package var destination: (to: String, existing: TaskRequest.Existing?)? {
    switch self {
    case .move(let to, let existing), .suspendMove(let to, let existing): (to, existing)
    case .suspend, .cancel, .goOn, .again, .suspendAgain: nil
    }
  }

  /// Returns what is wanted after an earlier wish that was not carried out yet. Only a cancelled task forgets the rest.
  package func after(_ earlier: TaskWish?) -> TaskWish {
    guard let earlier, earlier.isOfAnotherRequest || earlier.suspends else { return self }
    if case .cancel = self { return self }
    let isSuspended = self != .goOn && (suspends || earlier.suspends)
    if let (to, existing) = destination ?? earlier.destination {
      return isSuspended ? .suspendMove(to: to, existing) : .move(to: to, existing)
    }
    guard isOfAnotherRequest || earlier.isOfAnotherRequest else { return self }
    return isSuspended ? .suspendAgain : .again
  }
}

extension TaskRecord {
  /// Carries out what a client wants.
  package func obeying(_ wish: TaskWish, _ terms: TaskTerms) -> Transition? {
    switch wish {
    case .suspend, .suspendAgain: suspended(terms)
    case .suspendMove(let to, let existing): movedAndSuspended(to: to, existing, terms)
    case .cancel: cancelled(terms)
    case .move(let to, let existing): moved(to: to, existing, terms)
    case .goOn, .again: resumed(terms)
    }
  }

  /// True when a wish stops the transfer of a running task, and the task would get one of these states.
  package func isBound(for states: [TaskState]) -> Bool {
    switch wish {
    case .suspend, .suspendAgain, .suspendMove: states.contains(.suspended)
    case .cancel: states.contains(.cancelled)
    case .move, .goOn, .again, nil: false
    }
  }
}
