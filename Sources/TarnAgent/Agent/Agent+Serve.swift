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
    // Whoever asks finds all of them.
    beginSessions()
    guard let socket = settings.agent.socket else {
      parts.log.tell(
        .warning,
        "there is no runtime directory, so nobody can ask this agent: set $XDG_RUNTIME_DIR, or agent.socket")
      return run()
    }
    let server = ControlServer(agent: self, sockets: sockets(socket), version: Tarn.version)
    try makeDirectory(of: socket)
    do throws(ControlServerFailure) {
      try server.start()
    } catch {
      throw PassFailure(error)
    }
    self.server.withLock { $0 = server }
    parts.log.tell(.notice, "answers at \(socket)")
    run()
    server.stop()
  }

  /// The process ends at once: no socket stays behind. Any thread.
  package func abandon() { server.withLock { $0 }?.removeFiles() }

  /// The socket for who steers, and, where everyone may know how things stand, one that tells just that.
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

  /// A user's is for the user alone; the system's may be entered by all, for the sockets have modes of their own.
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
    case .system(EACCES), .system(EPERM):
      self.init(.permission, code: "socket-failed", failure.message)
    case .badPath, .inTheWay, .noSuchGroup, .system:
      self.init(
        .configuration, code: "socket-failed", failure.message,
        hint: "choose another with --socket or agent.socket")
    }
  }
}
