import TarnCore

/// The actions of a plan, in their order, and after them those that are come back to.
struct PlanReader {
  private let list: any ActionList
  let actions: any ActionCursor
  /// The next one; nil after the last.
  private(set) var front: Action?
  private var phases = Action.Phase.transfers[...]
  /// Actions taken so far.
  private var position = 0
  /// Those that are come back to.
  var left = Leftovers()

  init(_ plan: Plan) throws {
    list = plan.actions
    actions = try list.actions()
    front = try actions.next()
  }

  /// The next action of this phase.
  var upcoming: Action? { front.flatMap { $0.phase == phases.first ? $0 : nil } }

  /// - Returns: the next action of this phase and its place in the plan; nil when the plan has none of it any more.
  mutating func next() throws -> (action: Action, ordinal: Int)? {
    guard let action = upcoming else { return nil }
    defer { position += 1 }
    front = try actions.next()
    return (action, position)
  }

  /// None of this phase is left, and none is come back to at the moment.
  var isThrough: Bool { upcoming == nil && !left.isWalking }

  /// Nothing more is going to be placed after this one.
  var isLastPhase: Bool { phases.count <= 1 }

  /// - Returns: false after the last one that brings files.
  mutating func beginNextPhase() -> Bool {
    phases = phases.dropFirst()
    left.beginPhase()
    return !phases.isEmpty
  }

  /// Begins to read it again, for those that are come back to.
  ///
  /// - Returns: false when there is none.
  mutating func comeBack() throws -> Bool { try left.begin { try list.actions() } }
}
