package import TarnCore

/// A running agent, as its control socket sees it. All calls are thread-safe. Each may block for as long as a ledger is read,
/// `reload` for as long as the settings files are read.
package protocol AgentPort: Sendable {
  /// The agent's background sessions.
  var sessions: any SessionPort { get }

  /// - Parameters:
  ///   - mirrors: names or folders; empty for all mirrors.
  ///   - problemLimit: the number of problems that are listed for each mirror.
  func status(mirrors: [String], problemLimit: Int) throws(ControlFailure) -> StatusAnswer

  /// - Parameter withSessions: true to include the metrics of background sessions.
  func metrics(withSessions: Bool) throws(ControlFailure) -> MetricsPage

  /// - Parameters:
  ///   - cursor: the cursor of an earlier answer; `nil` for the oldest events that are kept.
  ///   - limit: the most events, 1 to 1,000.
  func events(after cursor: String?, mirrors: [String], limit: Int) throws(ControlFailure) -> EventPage

  /// Returns the present folders of the mirrors by their names. Does not read a ledger.
  func mirrorFolders() -> [String: String]

  /// Returns the place after the newest event, to begin a stream at.
  func eventsEnd() throws(ControlFailure) -> String

  /// Calls `wake` on any thread whenever there may be new events, until the subscription ends. `wake` must return quickly.
  func subscribe(_ wake: @escaping @Sendable () -> Void) -> AgentSubscription

  func perform(_ command: ControlCommand) throws(ControlFailure) -> ControlAnswer

  /// Reads the settings again. They are adopted as a whole or not at all, and are in effect on return.
  func reload() -> ReloadAnswer

  /// Sets the limit over all mirrors. It lasts until the agent ends, the settings' timetable reaches its next row, or the settings
  /// change. `nil` returns to the limit of the settings.
  func limit(_ rate: ControlRate?) throws(ControlFailure) -> ControlAnswer
}

/// A subscription. After `end()` its `wake` is not called again.
package struct AgentSubscription: Sendable {
  private let ending: @Sendable () -> Void

  package init(end: @escaping @Sendable () -> Void) {
    ending = end
  }

  package func end() { ending() }
}

/// A network address that serves the metrics and nothing else.
package struct MetricsListener: Sendable {
  /// An IP address, or `localhost`.
  package var host: String
  package var port: Int
  /// Reads the token that clients must send. Blocks while its file is read.
  package var token: @Sendable () throws(ControlFailure) -> [UInt8]

  package init(host: String, port: Int, token: @escaping @Sendable () throws(ControlFailure) -> [UInt8]) {
    (self.host, self.port, self.token) = (host, port, token)
  }
}
