internal import Glibc
internal import NIOPosix
internal import TarnControl
internal import TarnCore

/// An agent carries out the downloads of sessions. This value names one by its control socket. It holds no connection.
public struct Agent: Sendable, Hashable {
  /// The agent listens at the control socket with this path. `nil` stands for `$TARN_SOCKET`, or else for the first that exists of
  /// `$XDG_RUNTIME_DIR/tarn/tarn.sock` and `/run/tarn/tarn.sock`.
  public var socket: String?

  /// Names an agent. It is not asked until a call needs it.
  ///
  /// - Parameter socket: the path of the control socket; see `socket`.
  public init(socket: String? = nil) { self.socket = socket }

  func client() -> ControlClient { ControlClient(socketPath: path, sharesThreads: true) }

  var path: String {
    if let socket { return socket }
    if let given = getenv("TARN_SOCKET") { return String(cString: given) }
    let system = "/run/tarn/tarn.sock"
    guard let own = getenv("XDG_RUNTIME_DIR").map({ "\(String(cString: $0))/tarn/tarn.sock" }) else {
      return system
    }
    return access(own, F_OK) != 0 && access(system, F_OK) == 0 ? system : own
  }

  /// Runs `body` on a thread of NIO's pool, which may block.
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

/// This error says why a call failed.
public enum TarnError: Error, Sendable, Hashable {
  /// No agent answers at the socket. The text says how to start one.
  case agentUnavailable(String)
  /// The agent refused the request.
  ///
  /// - Parameters:
  ///   - code: a stable code, such as `session-closed` or `no-such-session`.
  ///   - message: what was refused, and where.
  ///   - hint: how to correct it.
  case refused(code: String, message: String, hint: String?)
  /// The call failed in this process, for instance because it was cancelled. The text says why. The agent may have carried out an
  /// order all the same.
  case failed(String)

  init(_ error: any Error) {
    switch error {
    case let error as TarnError: self = error
    case let failure as ControlFailure:
      self = .refused(code: failure.code, message: failure.message, hint: failure.hint)
    case let failure as ControlUnreachable: self.init(failure)
    default: self = .failed("\(error)")
    }
  }

  private init(_ unreachable: ControlUnreachable) {
    let path = unreachable.socketPath
    switch unreachable.reason {
    case .permission:
      self = .refused(
        code: "socket-refused", message: "this user may not connect to \(path)",
        hint: "start an agent of your own: systemctl --user start tarn")
    case .notATarn: self = .failed("what answers at \(path) is no agent of Tarn")
    case .timedOut where unreachable.isOpen:
      self = .failed(
        "the agent at \(path) does not answer; the order may still be carried out when it goes on")
    case .ended where unreachable.isOpen:
      self = .failed("the agent at \(path) ended before it answered; the order may have been carried out")
    default:
      self = .agentUnavailable(
        "no agent answers at \(path); start one: systemctl --user start tarn, or tarn agent")
    }
  }
}
