import Glibc
import Logging
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnServer

extension Agent {
  /// Runs with the control socket open, and closes it in the end.
  ///
  /// - Throws: `locked` when another agent answers at the socket; `configuration` when it cannot be made.
  package func serveAndRun() throws(PassFailure) {
    // Clients find all sessions open.
    beginSessions()
    let socket = settings.agent.socket
    if socket == nil {
      parts.log.tell(
        .warning,
        "there is no runtime directory, so no command can reach this agent: name a socket below [agent] of the settings"
      )
    }
    let metrics = metricsListener()
    guard socket != nil || metrics != nil else { return run() }
    let server = ControlServer(
      agent: self, sockets: socket.map(sockets) ?? [], metrics: metrics, version: Tarn.version)
    if let socket { try makeDirectory(of: socket) }
    do throws(ControlServerFailure) {
      try server.start()
    } catch {
      throw PassFailure(error)
    }
    self.server.withLock { $0 = server }
    if let metrics { parts.log.tell(.notice, "serves metrics at \(metrics.host), port \(metrics.port)") }
    if let socket { parts.log.tell(.notice, "answers at \(socket)") }
    run()
    server.stop()
  }

  /// The listener for metrics; `nil` when the settings name no address.
  private func metricsListener() -> MetricsListener? {
    guard let address = settings.agent.metricsListen else { return nil }
    return MetricsListener(host: address.host, port: address.port) { [weak self] () throws(ControlFailure) in
      try self?.metricsToken() ?? []
    }
  }

  /// The token of the metrics, read again each time, for it may have changed.
  private func metricsToken() throws(ControlFailure) -> [UInt8] {
    guard let place = settings.agent.metricsToken else { return [] }
    do throws(PassFailure) {
      return try Secrets.token(place, credentials: parts.paths.credentials)
    } catch {
      parts.log.tell(.warning, error.message, .of(code: error.code))
      throw ControlFailure(.unavailable, code: "token-not-readable", "the agent cannot read the token")
    }
  }

  /// Removes the sockets when the process ends at once. Callable on any thread.
  package func abandon() { server.withLock { $0 }?.removeFiles() }

  /// The socket for control, and, when everyone may see the status, a second one that shows only that.
  private func sockets(_ path: String) -> [ControlSocket] {
    let access = settings.agent.statusAccess
    guard access != .owner else { return [ControlSocket(path: path, mode: 0o600)] }
    let group: ControlSocket.Group? =
      parts.paths.instance == .system && getgrnam("tarn") != nil ? .name("tarn") : nil
    var sockets = [ControlSocket(path: path, mode: 0o660, group: group)]
    if access == .everyone, let slash = path.lastIndex(of: "/") {
      sockets.append(
        ControlSocket(path: path[...slash] + "status.sock", mode: 0o666, rights: .redactedStatus))
    }
    return sockets
  }

  /// Makes the directory of the socket. A user's is private; the system's is open to all, for the sockets
  /// have modes of their own.
  private func makeDirectory(of path: String) throws(PassFailure) {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
    let directory = String(path[..<slash])
    if mkdir(directory, parts.paths.instance == .system ? 0o755 : 0o700) == 0 || errno == EEXIST { return }
    let number = errno
    throw PassFailure(
      number == EACCES || number == EPERM ? .permission : .configuration, code: "socket-failed",
      "\(Printable.escape(directory)): the socket's directory cannot be made: \(String(cString: strerror(number)))",
      hint: "choose another with --socket or agent.socket")
  }
}

extension PassFailure {
  init(_ failure: ControlServerFailure) {
    switch failure.kind {
    case .busy:
      self.init(
        .locked, code: "agent-runs", failure.message,
        hint:
          "end that one, or name a socket in another directory: --socket PATH, or agent.socket in the settings"
      )
    case .address:
      self.init(
        .configuration, code: "socket-failed", failure.message,
        hint: "choose another with agent.metrics-listen")
    case .system(EACCES), .system(EPERM):
      self.init(.permission, code: "socket-failed", failure.message)
    case .badPath, .inTheWay, .noSuchGroup, .system:
      self.init(
        .configuration, code: "socket-failed", failure.message,
        hint: "choose another with --socket or agent.socket")
    }
  }
}
