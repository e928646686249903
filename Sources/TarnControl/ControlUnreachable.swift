/// No answer of an agent was got.
package struct ControlUnreachable: Error, Equatable {
  package enum Reason: Sendable, Equatable {
    /// Nothing is there, or the path is longer than a socket's can be.
    case noSocket
    /// A socket that nobody listens at: the agent has ended.
    case refused
    /// This user may not connect.
    case permission
    /// No connection, answer or sign of life in time.
    case timedOut
    /// What answers is not Tarn.
    case notATarn
    /// The agent ended the connection before it had answered.
    case ended
  }

  package let reason: Reason
  package let socketPath: String
  /// An order was on its way when it came to this: the agent may still carry it out, or has done so.
  package let isOpen: Bool

  init(_ reason: Reason, _ socketPath: String, isOpen: Bool = false) {
    self.reason = reason
    self.socketPath = socketPath
    self.isOpen = isOpen
  }
}
