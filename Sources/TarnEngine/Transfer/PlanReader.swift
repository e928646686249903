import TarnCore

/// The actions of a plan, in their order, and after them those that are come back to.
struct PlanReader {
  private var actions: any ActionCursor
  /// The next one; nil after the last.
  private(set) var front: Action?
  /// Actions taken so far.
  private var position = 0
  /// Those that are come back to.
  var left = Leftovers()

  init(_ actions: any ActionCursor) throws {
    self.actions = actions
    front = try actions.next()
  }

  /// - Returns: the next action of a phase and its place in the plan; nil when the plan has none of it any more.
  mutating func next(of phase: Action.Phase) throws -> (action: Action, ordinal: Int)? {
    guard let action = front, action.phase == phase else { return nil }
    defer { position += 1 }
    front = try actions.next()
    return (action, position)
  }

  /// None of this phase is left, and none is come back to at the moment.
  func isThrough(_ phase: Action.Phase) -> Bool { front?.phase != phase && !left.isWalking }
}
