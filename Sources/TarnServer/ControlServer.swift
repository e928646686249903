internal import Glibc
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// The server of an agent's control socket. It has one event loop, some threads for the agent's blocking calls, and a task on the
/// loop for each connection.
package final class ControlServer: Sendable {
  private struct Running {
    var files: [SocketFile]
    var listeners: [any Channel]
    var group: MultiThreadedEventLoopGroup
    var calls: BlockingCalls
    var connections: [Connections]
  }

  private let agent: any AgentPort
  private let sockets: [ControlSocket]
  private let metrics: MetricsListener?
  private let version: String
  private let limits: ControlLimits
  private let running = Locked<Running?>(nil)
  // Connections log nothing that the agent's journal of events should hold.
  private let logger = Logger(label: "tarn.control") { _ in SwiftLogNoOpLogHandler() }

  /// The listener through which a connection came.
  private enum Door: Sendable {
    case file(ControlSocket, PeerPolicy)
    case network

    var rights: ControlSocket.Rights {
      switch self {
      case .file(let socket, _): socket.rights
      case .network: .metrics
      }
    }

    func kind(of peer: Peer?) -> PeerUser {
      if case .file(_, let policy) = self { policy.kind(of: peer) } else { .other }
    }
  }

  /// - Parameter version: the version of Tarn.
  package init(
    agent: any AgentPort, sockets: [ControlSocket], metrics: MetricsListener? = nil, version: String,
    limits: ControlLimits = ControlLimits()
  ) {
    self.agent = agent
    self.sockets = sockets
    self.metrics = metrics
    self.version = version
    self.limits = limits
  }

  /// Starts listening on all sockets; when it throws, on none. May be called once; a stopped server cannot start again.
  package func start() throws(ControlServerFailure) {
    var files: [SocketFile] = []
    for socket in sockets {
      do throws(ControlServerFailure) {
        files.append(try SocketFile.bind(socket))
      } catch {
        for file in files {
          file.remove()
          close(file.descriptor)
        }
        throw error
      }
    }
    let calls = BlockingCalls(limits)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    var started = Running(files: files, listeners: [], group: group, calls: calls, connections: [])
    for (index, file) in files.enumerated() {
      let connections = Connections(limits, file.socket.rights)
      started.connections.append(connections)
      let responder = Responder(
        agent: agent, calls: calls, connections: connections, limits: limits, version: version)
      do {
        started.listeners.append(try listen(file, responder, group))
      } catch {
        for file in files[(index + 1)...] { close(file.descriptor) }
        Self.stop(started, limits)
        let path = Printable.escape(file.socket.path)
        let number = (error as? IOError)?.errnoCode ?? EIO
        throw ControlServerFailure(kind: .system(number), message: "\(path): cannot be listened at")
      }
    }
    if let metrics { try listen(metrics, &started) }
    let whole = started
    running.withLock { $0 = whole }
  }

  /// Refuses new connections, lets running answers end, ends streams, and removes the sockets' files. Takes at most half a second
  /// more than `limits.stopping`. Does nothing when the server does not run. Must not run on an event loop.
  package func stop() {
    let running = running.withLock { running in
      defer { running = nil }
      return running
    }
    if let running { Self.stop(running, limits) }
  }

  /// Removes the sockets' files, nothing else, before the process ends. May be called on any thread. Does nothing when the server
  /// does not run.
  package func removeFiles() {
    for file in running.withLock({ $0?.files ?? [] }) { file.remove() }
  }

  private static func stop(_ running: Running, _ limits: ControlLimits) {
    for file in running.files { file.remove() }
    for listener in running.listeners { try? listener.close().wait() }
    for connections in running.connections { connections.end() }
    let deadline = ContinuousClock.now + limits.stopping
    for connections in running.connections where !connections.areGone(by: deadline) { connections.close() }
    // Closed connections end at once, except those that still wait for the agent.
    let last = ContinuousClock.now + .milliseconds(500)
    let areGone = running.connections.allSatisfy { $0.areGone(by: last) }
    running.calls.stop()
    // A task that still waits for the agent will need its event loop later; the process ends soon.
    if areGone { try? running.group.syncShutdownGracefully() }
  }

  // MARK: - Connections

  /// - Throws: after it has stopped again all that was started.
  private func listen(_ metrics: MetricsListener, _ started: inout Running) throws(ControlServerFailure) {
    let connections = Connections(limits, .metrics)
    let responder = Responder(
      agent: agent, calls: started.calls, connections: connections, limits: limits, version: version,
      token: metrics.token)
    started.connections.append(connections)
    do {
      let listener = try ServerBootstrap(group: started.group)
        .serverChannelOption(.backlog, value: 128)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.allowRemoteHalfClosure, value: true)
        .childChannelInitializer { channel in self.welcome(channel, .network, responder) }
        .bind(host: metrics.host, port: metrics.port)
        .wait()
      started.listeners.append(listener)
    } catch {
      Self.stop(started, limits)
      let number = (error as? IOError)?.errnoCode ?? EIO
      throw ControlServerFailure(
        kind: .address(number),
        message:
          "\(metrics.host), port \(metrics.port): cannot be listened at: \(String(cString: strerror(number)))"
      )
    }
  }

  private func listen(
    _ file: SocketFile, _ responder: Responder, _ group: MultiThreadedEventLoopGroup
  ) throws -> any Channel {
    let policy = PeerPolicy(file)
    return try ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 128)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        self.welcome(channel, .file(file.socket, policy), responder)
      }
      .withBoundSocket(file.descriptor)
      .wait()
  }

  private func welcome(
    _ channel: any Channel, _ door: Door, _ responder: Responder
  ) -> EventLoopFuture<Void> {
    guard let place = responder.connections.enter(channel) else { return channel.close() }
    return Peer.read(channel).flatMap { peer in
      let connection = Connection(
        channel, rights: door.rights,
        refusal: self.refusal(place, responder.connections.most, peer, door),
        user: door.kind(of: peer))
      responder.connections.serve(connection)
      let http = self.http(connection, responder)
      let logger = self.logger
      return http.setup(channel: channel, logger: logger).map { requests in
        Task(executorPreference: LoopTasks(channel.eventLoop)) {
          await http.handle(value: requests, logger: logger)
          responder.connections.leave(channel)
        }
        return
      }
    }.flatMapErrorThrowing { error in
      responder.connections.leave(channel)
      throw error
    }
  }

  private func refusal(
    _ place: Connections.Place, _ most: Int, _ peer: Peer?, _ door: Door
  ) -> ControlFailure? {
    if case .file(let socket, let policy) = door, socket.rights == .full, !(peer.map(policy.admits) ?? false)
    {
      let who = peer.map { "user \($0.user)" } ?? "a user that the kernel does not name"
      let members = policy.group.map { ", and members of group \($0)" } ?? ""
      return ControlFailure(
        .permission, code: "peer-refused", "\(who) may not steer this agent",
        hint: "user \(policy.user) and root may\(members)")
    }
    if place == .surplus {
      return ControlFailure(
        .unavailable, code: ControlFailure.tooManyConnections, "\(most) connections wait for answers already",
        hint: "try again in a moment")
    }
    return nil
  }

  private func http(_ connection: Connection, _ responder: Responder) -> HTTP1Channel {
    let (time, taking) = (TimeAmount(limits.requesting), TimeAmount(limits.taking))
    let (version, channel) = (version, connection.channel)
    return HTTP1Channel(
      responder: { request, writer, _ in try await responder.respond(request, writer, connection) },
      configuration: HTTP1Channel.Configuration(
        additionalChannelHandlers: [
          ConnectionHandler(time: time, taking: taking, version: version) { isAsking in
            responder.connections.note(channel, isAsking: isAsking)
          } sticks: { isStuck in
            responder.connections.note(channel, isStuck: isStuck)
          } inputEnded: {
            connection.endStream()
          }
        ],
        idleTimeout: TimeAmount(limits.idling),
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: limits.head, maxHeaderListSize: limits.head, maxHeaderFieldCount: 100)))
  }
}
