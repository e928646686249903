package import TarnCore

/// A running agent as its control socket sees it. Any thread; every call may block for as long as a read of a ledger
/// takes, `reload` for as long as the files of settings do.
package protocol AgentPort: Sendable {
  /// Its background sessions.
  var sessions: any SessionPort { get }

  /// - Parameters:
  ///   - mirrors: names or folders; empty for all.
  ///   - problemLimit: how many problems of each mirror are listed.
  func status(mirrors: [String], problemLimit: Int) throws(ControlFailure) -> StatusAnswer

  /// - Parameter withSessions: those of its background sessions are among them.
  func metrics(withSessions: Bool) throws(ControlFailure) -> MetricsPage

  /// - Parameters:
  ///   - cursor: of an earlier answer; nil for the oldest events that are kept.
  ///   - limit: 1 to 1,000.
  func events(after cursor: String?, mirrors: [String], limit: Int) throws(ControlFailure) -> EventPage

  /// The folders of its mirrors as they are now, by their names. Reads no ledger.
  func mirrorFolders() -> [String: String]

  /// The place after the newest event, to follow from.
  func eventsEnd() throws(ControlFailure) -> String

  /// Calls `wake` whenever there may be new events, on any thread, until the subscription is ended. `wake` is quick.
  func subscribe(_ wake: @escaping @Sendable () -> Void) -> AgentSubscription

  func perform(_ command: ControlCommand) throws(ControlFailure) -> ControlAnswer

  /// Reads the settings again; they are taken whole or not at all. Returns when the new ones hold.
  func reload() -> ReloadAnswer

  /// The limit over all mirrors from now until the agent ends, the settings' timetable comes to its next row, or they are
  /// changed. nil for what the settings say.
  func limit(_ rate: ControlRate?) throws(ControlFailure) -> ControlAnswer
}

/// Ends with `end()`, after which `wake` is not called again.
package struct AgentSubscription: Sendable {
  private let ending: @Sendable () -> Void

  package init(end: @escaping @Sendable () -> Void) {
    ending = end
  }

  package func end() { ending() }
}

/// An address of the network at which the metrics are told, and nothing else.
package struct MetricsListener: Sendable {
  /// An IP address, or `localhost`.
  package var host: String
  package var port: Int
  /// Reads what a client has to know; it blocks for as long as its file does.
  package var token: @Sendable () throws(ControlFailure) -> [UInt8]

  package init(host: String, port: Int, token: @escaping @Sendable () throws(ControlFailure) -> [UInt8]) {
    (self.host, self.port, self.token) = (host, port, token)
  }
}
