package import TarnCore

/// The sessions of an agent, as its control socket sees them. All calls are thread-safe, and each may block for as long as a ledger
/// is written.
package protocol SessionPort: Sendable {
  func list() throws(ControlFailure) -> SessionList
  /// Opens the session, and makes it when there is none.
  ///
  /// - Parameters:
  ///   - settings: the wanted settings; `nil` for any. An existing session keeps its own, and the answer names those that differ.
  ///   - isUpdate: true to replace the stored settings.
  func open(
    _ id: String, _ settings: SessionSettings?, isUpdate: Bool
  ) throws(ControlFailure) -> SessionDocument
  /// - Throws: `notFound` when there is no such session.
  func show(_ id: String) throws(ControlFailure) -> SessionDocument
  /// Adds all the tasks or none.
  func add(_ tasks: [TaskRequest], to id: String) throws(ControlFailure) -> AddedTasks
  /// - Parameter limit: the most tasks, 1 to 1,000.
  func tasks(
    of id: String, in states: [TaskState], after number: Int64, limit: Int
  ) throws(ControlFailure) -> TaskPage
  /// Returns the events after a number; all events after one that the session has not reached.
  func events(of id: String, after number: Int64, limit: Int) throws(ControlFailure) -> SessionEventPage
  /// - Returns: the number of the last event that was acknowledged; 0 for none.
  func acknowledged(in id: String) throws(ControlFailure) -> Int64
  /// - Returns: what was done, as text for a person.
  func order(_ order: SessionOrder, _ id: String) throws(ControlFailure) -> ControlAnswer
  /// Registers a reader of the session's events until the subscription ends. Calls `wake` on any thread whenever there may be new
  /// events.
  func subscribe(_ id: String, _ wake: @escaping @Sendable () -> Void) throws(ControlFailure)
    -> AgentSubscription
}

extension SessionPort {
  /// Returns the next events for a stream.
  ///
  /// - Returns: the events, and the number up to which the events before them are gone because somebody acknowledged them; `nil`
  ///   where none is missing. `events-lost` tells of events that were dropped. In a session that was made anew this number is less
  ///   than the one that was asked for.
  func next(
    of id: String, after number: Int64, limit: Int
  ) throws(ControlFailure) -> (page: SessionEventPage, passed: Int64?) {
    let page = try events(of: id, after: number, limit: limit)
    let isAnew = page.events.first.map { $0.number <= number } ?? false
    if page.events.first?.code == .eventsLost, !isAnew { return (page, nil) }
    // This is read after the page: what the page lacks is below it.
    let last = if let first = page.events.first { first.number - 1 } else { try acknowledged(in: id) }
    return (page, last > number || isAnew ? last : nil)
  }
}

/// The sessions of an agent that has none.
package struct NoSessions: SessionPort {
  private static let refusal = ControlFailure(
    .notFound, code: "no-sessions", "this agent has no place for sessions: it has no state directory",
    hint: "set STATE_DIRECTORY, XDG_STATE_HOME or HOME, and start it again")

  package init() {}

  package func list() -> SessionList { SessionList([]) }
  package func open(
    _ id: String, _ settings: SessionSettings?, isUpdate: Bool
  ) throws(ControlFailure) -> SessionDocument { throw Self.refusal }
  package func show(_ id: String) throws(ControlFailure) -> SessionDocument { throw Self.refusal }
  package func add(_ tasks: [TaskRequest], to id: String) throws(ControlFailure) -> AddedTasks {
    throw Self.refusal
  }
  package func tasks(
    of id: String, in states: [TaskState], after number: Int64, limit: Int
  ) throws(ControlFailure) -> TaskPage { throw Self.refusal }
  package func events(
    of id: String, after number: Int64, limit: Int
  ) throws(ControlFailure) -> SessionEventPage { throw Self.refusal }
  package func acknowledged(in id: String) throws(ControlFailure) -> Int64 { throw Self.refusal }
  package func order(_ order: SessionOrder, _ id: String) throws(ControlFailure) -> ControlAnswer {
    throw Self.refusal
  }
  package func subscribe(
    _ id: String, _ wake: @escaping @Sendable () -> Void
  ) throws(ControlFailure) -> AgentSubscription { throw Self.refusal }
}

extension AgentPort {
  package var sessions: any SessionPort { NoSessions() }
}
