internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
package import TarnCore
internal import TarnRuntime

/// A client of a running agent's socket. Every call blocks and makes its own connection. Several threads may call at the same time.
///
/// Throws the agent's refusal (`ControlFailure`), or the reason why there was no answer (`ControlUnreachable`).
package final class ControlClient: Sendable {
  package struct Limits: Sendable {
    package var connecting = Duration.seconds(2)
    /// The longest time from the request to the end of the answer, for orders and a reload, which may have to wait.
    package var answering = Duration.seconds(60)
    /// The same for questions, which a healthy agent answers at once.
    package var telling = Duration.seconds(3)
    /// The longest time without a byte of a stream. The agent sends a heartbeat every 15 s.
    package var silence = Duration.seconds(60)
    /// The most bytes of an answer.
    package var answer = 64 << 20

    package init() {}
  }

  private struct Open {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var hasEnded = false
  }

  private let path: String
  let limits: Limits
  let group: MultiThreadedEventLoopGroup
  private let sharesThreads: Bool
  private let open = Locked(Open())

  /// - Parameter sharesThreads: true to use the threads that all such clients of the process share, instead of an own one.
  package init(socketPath: String, limits: Limits = Limits(), sharesThreads: Bool = false) {
    path = socketPath
    self.limits = limits
    self.sharesThreads = sharesThreads
    group = sharesThreads ? .singleton : MultiThreadedEventLoopGroup(numberOfThreads: 1)
  }

  deinit {
    // Shutdown does not wait, because this may be the loop's own thread.
    if !sharesThreads { group.shutdownGracefully { _ in } }
  }

  // MARK: - Questions and commands

  package func status(mirrors: [String] = [], problemLimit: Int = ControlRoute.usualProblems) throws
    -> StatusAnswer
  {
    try ask(.status, parameters: [("problems", String(problemLimit))] + mirrors.map { ("mirror", $0) })
  }

  /// - Parameters:
  ///   - cursor: the cursor of an earlier answer; `nil` for the oldest events that are kept.
  ///   - limit: 1 to 1,000.
  package func events(
    after cursor: String? = nil, mirrors: [String] = [], limit: Int = ControlRoute.usualEvents
  ) throws -> EventPage {
    try ask(.events, parameters: [("limit", String(limit))] + place(cursor, mirrors))
  }

  package func perform(_ command: ControlCommand) throws -> ControlAnswer {
    try ask(.command, method: .POST, body: try ControlJSON.encode(command))
  }

  package func reload() throws -> ReloadAnswer { try ask(.reload, method: .POST) }

  /// - Parameter rate: the limit; `nil` for that of the settings.
  package func limit(_ rate: ControlRate?) throws -> ControlAnswer {
    guard let rate else { return try ask(.limit, method: .DELETE) }
    return try ask(.limit, method: .PUT, body: try ControlJSON.encode(rate))
  }

  // MARK: - Sessions

  package func sessions() throws -> SessionList { try ask(.sessions) }

  package func session(_ id: String) throws -> SessionDocument {
    try ask(.session, parameters: [("session", id)])
  }

  /// Opens the session, and makes it when there is none.
  ///
  /// - Parameter isUpdate: true to replace the stored settings.
  package func openSession(
    _ id: String, _ settings: SessionSettings? = nil, isUpdate: Bool = false
  ) throws -> SessionDocument {
    try ask(
      .session, method: .PUT, parameters: [("session", id)] + (isUpdate ? [("update", "1")] : []),
      body: try settings.map { settings throws(ControlFailure) in try ControlJSON.encode(settings) } ?? [])
  }

  /// Adds all the tasks or none.
  ///
  /// - Parameter tasks: the requests, 1,000 at most.
  package func add(_ tasks: [TaskRequest], to id: String) throws -> AddedTasks {
    var body: [UInt8] = []
    for task in tasks { body += try ControlJSON.encode(task) + [UInt8(ascii: "\n")] }
    return try ask(.tasks, method: .POST, parameters: [("session", id)], body: body)
  }

  package func tasks(
    of id: String, in states: [TaskState] = [], after number: Int64 = 0, limit: Int = ControlRoute.mostTasks
  ) throws -> TaskPage {
    try ask(
      .tasks,
      parameters: [("session", id), ("after", String(number)), ("limit", String(limit))]
        + states.map { ("state", $0.rawValue) })
  }

  package func events(
    of id: String, after number: Int64 = 0, limit: Int = ControlRoute.mostEvents
  ) throws -> SessionEventPage {
    try ask(
      .sessionEvents, parameters: [("session", id), ("after", String(number)), ("limit", String(limit))])
  }

  package func order(_ order: SessionOrder, _ id: String) throws -> ControlAnswer {
    try ask(
      .sessionOrder, method: .POST, parameters: [("session", id)], body: try ControlJSON.encode(order))
  }

  /// Hands on a session's events as they come, like `follow` does for mirrors.
  ///
  /// - Returns: the number of the last event that was handed on, or `number`.
  package func followSession(
    _ id: String, after number: Int64, _ each: (SessionEvent) throws -> Bool
  ) throws -> Int64 {
    let place = [("session", id), ("after", String(number))]
    let reached = try follow(.sessionStream, place, after: String(number)) { data in
      guard let event = ControlJSON.decode(SessionEvent.self, from: data) else {
        throw unreachable(.notATarn)
      }
      return try each(event)
    }
    return reached.flatMap { Int64($0) } ?? number
  }

  // MARK: - Streams

  /// Hands on events as they come, on the calling thread. Returns when `each` returns false, the agent ends the connection, or
  /// `end()` is called. No event is lost between two calls when the second begins at the end of the first.
  ///
  /// - Parameter cursor: the place to begin after; `nil` for now.
  /// - Returns: the cursor to continue after; `nil` when none is known.
  package func follow(
    after cursor: String?, mirrors: [String] = [], _ each: (EventDocument) throws -> Bool
  ) throws -> String? {
    try follow(.stream, place(cursor, mirrors), after: cursor) { data in
      guard let document = ControlJSON.decode(EventDocument.self, from: data) else {
        throw unreachable(.notATarn)
      }
      return try each(document)
    }
  }

  private func follow(
    _ route: ControlRoute, _ parameters: [(String, String)], after cursor: String?,
    _ each: ([UInt8]) throws -> Bool
  ) throws -> String? {
    let exchange = Exchange(limit: limits.answer, isStream: true)
    let channel = try connect(exchange)
    defer { leave(channel) }
    send(.GET, route, parameters: parameters, body: [], to: channel)
    var cursor = cursor
    while true {
      channel.read()
      switch exchange.next(within: limits.silence) {
      case .events(let events):
        for event in events {
          cursor = event.id ?? cursor
          guard let data = event.data else { continue }
          if event.name == ControlRoute.failureEvent {
            throw ControlJSON.decode(ControlFailure.self, from: data) ?? unreachable(.notATarn)
          }
          if try !each(data) { return cursor }
        }
      case .ended: return cursor
      case .refused(let answer): throw failure(answer)
      case .broken(let reason):
        if open.withLock({ $0.hasEnded }) { return cursor }
        throw unreachable(reason)
      }
    }
  }

  /// Ends a running `follow`, and all later calls. May be called on any thread; returns at once.
  package func end() {
    let channels = open.withLock { open in
      open.hasEnded = true
      return Array(open.channels.values)
    }
    for channel in channels { channel.close(promise: nil) }
  }

  // MARK: - One exchange

  /// Asks again for a few seconds while the agent has too many connections, for it has done nothing yet.
  private func ask<Answer: Decodable>(
    _ route: ControlRoute, method: HTTPMethod = .GET, parameters: [(String, String)] = [], body: [UInt8] = []
  ) throws -> Answer {
    let deadline = ContinuousClock.now + min(limits.telling, limits.answering)
    while true {
      do {
        return try askOnce(route, method: method, parameters: parameters, body: body)
      } catch let failure as ControlFailure {
        guard failure.code == ControlFailure.tooManyConnections, ContinuousClock.now < deadline else {
          throw failure
        }
        usleep(50_000)
      }
    }
  }

  private func askOnce<Answer: Decodable>(
    _ route: ControlRoute, method: HTTPMethod, parameters: [(String, String)], body: [UInt8]
  ) throws -> Answer {
    let exchange = Exchange(limit: limits.answer, isStream: false)
    let channel = try connect(exchange)
    defer { leave(channel) }
    let time = method == .GET ? limits.telling : limits.answering
    send(method, route, parameters: parameters, body: body, to: channel)
    switch exchange.answer(within: time) {
    case .success(let answer):
      guard answer.isTarn else { throw unreachable(.notATarn) }
      guard answer.status == 200 else { throw failure(answer) }
      guard let value = ControlJSON.decode(Answer.self, from: answer.body) else {
        throw unreachable(.notATarn)
      }
      return value
    case .failure(let fault):
      throw ControlUnreachable(fault.reason, path, isOpen: method != .GET && fault.reason != .notATarn)
    }
  }

  private func place(_ cursor: String?, _ mirrors: [String]) -> [(String, String)] {
    (cursor.map { [("after", $0)] } ?? []) + mirrors.map { ("mirror", $0) }
  }

  func failure(_ answer: Exchange.Answer) -> any Error {
    if answer.isTarn, let failure = ControlJSON.decode(ControlFailure.self, from: answer.body) {
      return failure
    }
    return unreachable(.notATarn)
  }

  func unreachable(_ reason: ControlUnreachable.Reason) -> ControlUnreachable {
    ControlUnreachable(reason, path)
  }

  private func connect(_ exchange: Exchange) throws -> any Channel {
    let bootstrap = ClientBootstrap(group: group)
      .connectTimeout(TimeAmount(limits.connecting))
      .channelOption(.autoRead, value: !exchange.isStream)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          try channel.pipeline.syncOperations.addHandler(ExchangeHandler(exchange))
        }
      }
    let clock = ContinuousClock()
    let deadline = clock.now + limits.connecting
    while true {
      do {
        let channel = try bootstrap.connect(to: try address()).wait()
        try enter(channel)
        return channel
      } catch let failure as ControlUnreachable {
        throw failure
      } catch {
        // EAGAIN: the agent is alive, and its backlog of connections is full.
        guard (error as? IOError)?.errnoCode == EAGAIN else { throw unreachable(reason(error)) }
        guard clock.now < deadline else { throw unreachable(.timedOut) }
        usleep(20_000)
      }
    }
  }

  func address() throws -> SocketAddress { try Self.address(path) }

  /// NIO's own initializer takes 103 bytes, which all its systems allow; Linux allows 107.
  private static func address(_ path: String) throws -> SocketAddress {
    var raw = sockaddr_un()
    raw.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let capacity = MemoryLayout.size(ofValue: raw.sun_path)
    guard !bytes.isEmpty, bytes.count < capacity, !bytes.contains(0) else {
      throw ControlUnreachable(.noSocket, path)
    }
    withUnsafeMutableBytes(of: &raw.sun_path) { $0.copyBytes(from: bytes) }
    return SocketAddress(raw)
  }

  func reason(_ error: any Error) -> ControlUnreachable.Reason {
    switch error {
    case let error as IOError:
      switch error.errnoCode {
      case ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP: .noSocket
      // The mode of a socket says nothing when nobody listens on it any more.
      case EACCES, EPERM: ListeningSockets.areAny(beside: path) ? .permission : .refused
      case ECONNREFUSED: .refused
      case EPROTOTYPE: .notATarn
      default: .ended
      }
    case ChannelError.connectTimeout: .timedOut
    default: .ended
    }
  }

  private func enter(_ channel: any Channel) throws {
    let isOpen = open.withLock { open in
      if !open.hasEnded { open.channels[ObjectIdentifier(channel)] = channel }
      return !open.hasEnded
    }
    guard isOpen else {
      channel.close(promise: nil)
      throw unreachable(.ended)
    }
  }

  private func leave(_ channel: any Channel) {
    open.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
    channel.close(promise: nil)
  }

  func send(
    _ method: HTTPMethod, _ route: ControlRoute, parameters: [(String, String)], body: [UInt8],
    to channel: any Channel
  ) {
    var headers = HTTPHeaders([("host", "tarn"), ("connection", "close")])
    headers.add(name: "accept", value: route.isStream ? "text/event-stream" : "application/json")
    if method != .GET { headers.add(name: "content-length", value: String(body.count)) }
    let query = parameters.map { "\($0.0)=\(Self.encoded($0.1))" }.joined(separator: "&")
    let head = HTTPRequestHead(
      version: .http1_1, method: method, uri: route.rawValue + (query.isEmpty ? "" : "?" + query),
      headers: headers)
    // A write that fails shows as the end of the connection.
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    if !body.isEmpty {
      channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
    }
    channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
  }

  private static func encoded(_ text: String) -> String {
    String(decoding: Percent.encode(text.utf8, keeping: Percent.unreserved), as: UTF8.self)
  }
}
