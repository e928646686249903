import TarnCore

/// Reads the actions of a plan in order, and then the deferred ones again.
struct PlanReader {
  private let list: any ActionList
  let actions: any ActionCursor
  /// The next action; `nil` after the last.
  private(set) var front: Action?
  private var phases = Action.Phase.transfers[...]
  /// The number of actions taken so far.
  private var position = 0
  /// The deferred actions.
  var deferred = DeferredActions()

  init(_ plan: Plan) throws {
    list = plan.actions
    actions = try list.actions()
    front = try actions.next()
  }

  /// The next action of this phase.
  var upcoming: Action? { front.flatMap { $0.phase == phases.first ? $0 : nil } }

  /// - Returns: the next action of this phase and its position in the plan; `nil` when this phase has no more.
  mutating func next() throws -> (action: Action, ordinal: Int)? {
    guard let action = upcoming else { return nil }
    defer { position += 1 }
    front = try actions.next()
    return (action, position)
  }

  /// True when none of this phase is left, and no deferred actions are being read.
  var isThrough: Bool { upcoming == nil && !deferred.isWalking }

  /// True when nothing more will be placed after this phase.
  var isLastPhase: Bool { phases.count <= 1 }

  /// Begins the next phase.
  ///
  /// - Returns: false after the last one that brings files.
  mutating func beginNextPhase() -> Bool {
    phases = phases.dropFirst()
    deferred.beginPhase()
    return !phases.isEmpty
  }

  /// Begins to read the plan again for the deferred actions.
  ///
  /// - Returns: false when there are none.
  mutating func comeBack() throws -> Bool { try deferred.begin { try list.actions() } }
}
