package import TarnCore

/// The sessions of an agent, as its control socket sees them. Any thread; every call may block for as long as a write to a ledger
/// takes.
package protocol SessionPort: Sendable {
  func list() throws(ControlFailure) -> SessionList
  /// Makes the session if need be.
  ///
  /// - Parameters:
  ///   - settings: nil for no opinion. Those of a session that was there stay, and the answer says which ones differ.
  ///   - isUpdate: they take the place of those.
  func open(
    _ id: String, _ settings: SessionSettings?, isUpdate: Bool
  ) throws(ControlFailure) -> SessionDocument
  /// - Throws: `notFound` where there is none.
  func show(_ id: String) throws(ControlFailure) -> SessionDocument
  /// All of them or none.
  func add(_ tasks: [TaskRequest], to id: String) throws(ControlFailure) -> AddedTasks
  /// - Parameter limit: 1 to 10,000.
  func tasks(
    of id: String, in states: [TaskState], after number: Int64, limit: Int
  ) throws(ControlFailure) -> TaskPage
  func events(of id: String, after number: Int64, limit: Int) throws(ControlFailure) -> SessionEventPage
  /// - Returns: what was done, for a person.
  func order(_ order: SessionOrder, _ id: String) throws(ControlFailure) -> ControlAnswer
  /// Somebody reads its events, until the subscription ends; `wake` is called whenever there may be new ones, on any thread.
  func subscribe(_ id: String, _ wake: @escaping @Sendable () -> Void) throws(ControlFailure)
    -> AgentSubscription
}

/// An agent without sessions.
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
