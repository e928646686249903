internal import Glibc
internal import NIOPosix
internal import TarnControl
internal import TarnCore

/// Which agent is asked.
public struct Agent: Sendable, Hashable {
  /// Of its control socket; nil for the first of `$TARN_SOCKET`, the user's and the system's where one is.
  public var socket: String?

  /// - Parameter socket: see `socket`.
  public init(socket: String? = nil) { self.socket = socket }

  func client() -> ControlClient { ControlClient(socketPath: path, sharesThreads: true) }

  var path: String {
    if let socket { return socket }
    if let given = getenv("TARN_SOCKET") { return String(cString: given) }
    let own = getenv("XDG_RUNTIME_DIR").map { "\(String(cString: $0))/tarn/tarn.sock" }
    if let own, access(own, F_OK) == 0 { return own }
    return own ?? "/run/tarn/tarn.sock"
  }

  /// Asks on a thread that may block.
  func ask<Answer: Sendable>(
    _ body: @escaping @Sendable (ControlClient) throws -> Answer
  ) async throws(TarnError) -> Answer {
    let client = client()
    do {
      return try await NIOThreadPool.singleton.runIfActive { try body(client) }
    } catch {
      throw TarnError(error)
    }
  }
}

/// Why a call failed.
public enum TarnError: Error, Sendable, Hashable {
  /// No agent answers; how to start one is in the text.
  case agentUnavailable(String)
  /// The agent refused.
  ///
  /// - Parameters:
  ///   - code: stable, such as `session-closed` or `no-such-session`.
  ///   - message: what and where.
  ///   - hint: how to mend it.
  case refused(code: String, message: String, hint: String?)
  /// This process lacks something.
  case failed(String)

  init(_ error: any Error) {
    switch error {
    case let error as TarnError: self = error
    case let failure as ControlFailure:
      self = .refused(code: failure.code, message: failure.message, hint: failure.hint)
    case let failure as ControlUnreachable:
      self = .agentUnavailable(
        "no agent answers at \(failure.socketPath); start one: systemctl --user start tarn, or tarn agent")
    default: self = .failed("\(error)")
    }
  }
}
