/// The error when the agent gave no answer.
package struct ControlUnreachable: Error, Equatable {
  package enum Reason: Sendable, Equatable {
    /// There is nothing at the path, or the path is longer than that of a socket can be.
    case noSocket
    /// Nobody listens on the socket any more: the agent has ended.
    case refused
    /// This user may not connect.
    case permission
    /// The connection, the answer or a heartbeat did not come in time.
    case timedOut
    /// Something other than Tarn answers.
    case notATarn
    /// The agent ended the connection before it answered.
    case ended
  }

  package let reason: Reason
  package let socketPath: String
  /// True when an order had been sent: the agent may still carry it out, or may have done so.
  package let isOpen: Bool

  init(_ reason: Reason, _ socketPath: String, isOpen: Bool = false) {
    self.reason = reason
    self.socketPath = socketPath
    self.isOpen = isOpen
  }
}
