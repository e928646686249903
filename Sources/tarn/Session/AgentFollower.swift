import TarnControl
import TarnCore
import TarnRuntime

/// Follows what an agent tells until a signal, also when the agent ends or another begins meanwhile.
struct AgentFollower {
  private let ended = Gate()
  private let client = Locked<ControlClient?>(nil)

  /// True once the signal came.
  var isOver: Bool { ended.isOpen }

  /// Repeats a round until a signal, a second after each.
  func run(_ round: () throws(PassFailure) -> Void) throws(PassFailure) -> ExitStatus {
    Interruption.shared.arm(StopFlag()) { [ended, client] in
      ended.open()
      client.withLock { $0 }?.end()
    } report: {
    }
    defer { Interruption.shared.disarm() }
    while !ended.isOpen {
      try round()
      if ended.wait(atMost: .seconds(1)) { break }
    }
    return ExitStatus.stopped(by: Interruption.shared.received)
  }

  /// Ends the rounds, as a signal does.
  func end() { ended.open() }

  /// Lets a signal end what a client waits for.
  ///
  /// - Returns: false when the signal has come already.
  func willWait(_ client: ControlClient) -> Bool {
    self.client.withLock { $0 = client }
    return !ended.isOpen
  }
}
