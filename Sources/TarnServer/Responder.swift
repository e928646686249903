internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TarnControl
internal import TarnCore

/// Answers the requests of all connections, by calls of the agent.
struct Responder: Sendable {
  let agent: any AgentPort
  let calls: BlockingCalls
  let connections: Connections
  let limits: ControlLimits
  let version: String
  /// Reads the token that clients must send; `nil` when the socket's file decides who may connect.
  var token: (@Sendable () throws(ControlFailure) -> [UInt8])?

  private enum Reply {
    case whole(Answer)
    case stream(EventStream)
  }

  /// - Throws: only errors that end the connection.
  func respond(_ request: Request, _ writer: consuming ResponseWriter, _ connection: Connection) async throws
  {
    switch try await reply(request, connection) {
    case .whole(let answer): try await send(answer, to: writer, request, connection)
    case .stream(let stream): try await stream.run(writer, connection)
    }
  }

  private func reply(_ request: Request, _ connection: Connection) async throws -> Reply {
    do {
      if let refusal = connection.refusal { throw refusal }
      if connections.isEnding { throw ControlFailure.stopping }
      if let token, try await !hasToken(request, token, connection) { return .whole(Self.wrongToken) }
      if connection.rights == .metrics, request.uri.path != ControlRoute.metrics.rawValue {
        throw Self.onlyMetrics
      }
      let asking = try ControlRequest(request)
      guard asking.route.methods.contains(request.method.rawValue) else {
        return .whole(Self.wrongMethod(asking))
      }
      if asking.route.isOfSessions { try refuseOthers(connection) }
      if asking.route.isStream, connection.rights == .full {
        return .stream(try await EventStream.open(self, asking, connection))
      }
      return .whole(try await answer(asking, request, connection))
    } catch let failure as ControlFailure {
      var answer = Answer(failure)
      answer.closes = answer.closes || connection.refusal != nil || connections.isEnding
      return .whole(answer)
    }
  }

  /// Refuses other users, because a session's files are written with the agent's rights.
  private func refuseOthers(_ connection: Connection) throws(ControlFailure) {
    guard connection.rights == .full, !connection.isOwner else { return }
    throw ControlFailure(
      .permission, code: "sessions-of-another-user",
      "this agent runs as another user, and serves sessions of that user only",
      hint: connection.user.wayToSessions)
  }

  private static func wrongMethod(_ asking: ControlRequest) -> Answer {
    let methods = asking.route.methods.joined(separator: ", ")
    var answer = Answer(
      ControlFailure(
        .usage, code: "method-not-allowed",
        "\(asking.route.rawValue) does not take \(Printable.escape(asking.method.rawValue))",
        hint: "taken are: \(methods)"))
    answer.status = .methodNotAllowed
    answer.allowed = asking.route.methods
    return answer
  }

  private func send(
    _ answer: Answer, to writer: consuming ResponseWriter, _ request: Request, _ connection: Connection
  ) async throws {
    let head = answer.head(version: version)
    let deadline = WriteDeadline(connection.channel, limits.writing)
    defer { deadline.cancel() }
    if request.method == .head {
      try await writer.writeResponse(head)
    } else {
      try await writer.write(response: head, body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
    }
  }

  // MARK: - Routes

  private static let onlyMetrics = ControlFailure(
    .permission, code: "not-on-this-socket", "this address answers for the metrics only",
    hint: "GET \(ControlRoute.metrics.rawValue)")

  private func answer(_ asking: ControlRequest, _ request: Request, _ connection: Connection) async throws
    -> Answer
  {
    let (agent, loop) = (agent, connection.channel.eventLoop)
    if asking.route == .metrics { return try await metrics(asking, connection) }
    if connection.rights == .redactedStatus { return try await redacted(asking, loop) }
    let keys = asking.route.keys(of: asking.method.rawValue)
    let body = try await ControlRequest.body(
      request, most: asking.route == .tasks ? ControlRoute.mostTaskBytes : limits.body)
    if keys.isEmpty, !body.isEmpty {
      throw ControlFailure(.usage, code: "body-unexpected", "\(asking.route.rawValue) takes no body here")
    }
    switch asking.route {
    case .status:
      let limit = try asking.number(
        "problems", usual: ControlRoute.usualProblems, range: 0...ControlRoute.mostProblems)
      return try await call(loop) { () throws(ControlFailure) in
        try agent.status(mirrors: asking.mirrors, problemLimit: limit)
      }
    case .events:
      let limit = try asking.number(
        "limit", usual: ControlRoute.usualEvents, range: 1...ControlRoute.mostEvents)
      return try await call(loop) { () throws(ControlFailure) in
        try agent.events(after: asking.cursor, mirrors: asking.mirrors, limit: limit)
      }
    case .command:
      let command = try ControlJSON.decode(ControlCommand.self, from: body, taking: keys)
      if let fault = command.fault { throw fault }
      return try await call(loop) { () throws(ControlFailure) in
        try connection.refuseAbandoned()
        return try agent.perform(command)
      }
    case .reload:
      return try await call(loop) { () throws(ControlFailure) in
        try connection.refuseAbandoned()
        return agent.reload()
      }
    case .limit:
      let isSet = asking.method == .put
      let rate = isSet ? try ControlJSON.decode(ControlRate.self, from: body, taking: keys) : nil
      return try await call(loop) { () throws(ControlFailure) in
        try connection.refuseAbandoned()
        return try agent.limit(rate)
      }
    case .stream, .sessionStream, .sessionsStream, .metrics:
      throw ControlFailure(.defect, code: "no-answer", "a stream is no answer")
    case .sessions: return try await call(loop) { () throws(ControlFailure) in try agent.sessions.list() }
    case .session, .tasks, .sessionEvents, .sessionOrder:
      return try await answerOfSession(asking, body, connection)
    }
  }

  private func answerOfSession(
    _ asking: ControlRequest, _ body: [UInt8], _ connection: Connection
  ) async throws -> Answer {
    let (sessions, loop) = (agent.sessions, connection.channel.eventLoop)
    let (id, keys) = (try asking.session(), asking.route.keys(of: asking.method.rawValue))
    switch (asking.route, asking.method) {
    case (.session, .put):
      let settings =
        body.isEmpty ? nil : try ControlJSON.decode(SessionSettings.self, from: body, taking: keys)
      return try await call(loop) { () throws(ControlFailure) in
        try connection.refuseAbandoned()
        return try sessions.open(id, settings, isUpdate: asking.isUpdate)
      }
    case (.session, _): return try await call(loop) { () throws(ControlFailure) in try sessions.show(id) }
    case (.tasks, .post):
      return try await call(loop) { () throws(ControlFailure) in
        let tasks = try Self.tasks(body, taking: keys)
        try connection.refuseAbandoned()
        return try sessions.add(tasks, to: id)
      }
    case (.tasks, _):
      let (states, after) = (try asking.states(), try ControlRequest.place(asking.cursor))
      let limit = try asking.number(
        "limit", usual: ControlRoute.usualEvents, range: 1...ControlRoute.mostTasks)
      return try await call(loop) { () throws(ControlFailure) in
        try sessions.tasks(of: id, in: states, after: after, limit: limit)
      }
    case (.sessionEvents, _):
      let after = try ControlRequest.place(asking.cursor)
      let limit = try asking.number(
        "limit", usual: ControlRoute.usualEvents, range: 1...ControlRoute.mostEvents)
      return try await call(loop) { () throws(ControlFailure) in
        try sessions.events(of: id, after: after, limit: limit)
      }
    default:
      let order = try ControlJSON.decode(SessionOrder.self, from: body, taking: keys)
      return try await call(loop) { () throws(ControlFailure) in
        try connection.refuseAbandoned()
        return try sessions.order(order, id)
      }
    }
  }

  /// Parses a batch of tasks, one JSON object on each line.
  private static func tasks(_ body: [UInt8], taking keys: [String]) throws(ControlFailure) -> [TaskRequest] {
    let lines = body.split(separator: UInt8(ascii: "\n"))
    guard lines.count <= ControlRoute.mostTasks else {
      throw ControlFailure(
        .tooLarge, code: "too-many-tasks", "a batch has \(ControlRoute.mostTasks) tasks at most")
    }
    var tasks: [TaskRequest] = []
    for (index, line) in lines.enumerated() {
      do throws(ControlFailure) {
        tasks.append(try ControlJSON.decode(TaskRequest.self, from: Array(line), taking: keys))
      } catch {
        throw error.inLine(index + 1)
      }
    }
    return tasks
  }

  /// Answers with the metrics. Everybody may read those of mirrors, which contain no path and no address. Those of sessions are for
  /// their owner and for clients with the token.
  private func metrics(
    _ asking: ControlRequest, _ connection: Connection
  ) async throws(ControlFailure) -> Answer {
    let (agent, format) = (agent, MetricsFormat(accept: asking.accept))
    let withSessions = connection.rights == .metrics || connection.rights == .full && connection.isOwner
    var answer = Answer(
      body: try await calls.run(on: connection.channel.eventLoop) { () throws(ControlFailure) in
        try agent.metrics(withSessions: withSessions).text(format)
      })
    answer.contentType = format.contentType
    return answer
  }

  /// Runs `body` and encodes its value on the same thread, because a long status takes time to encode.
  private func call(
    _ loop: any EventLoop, _ body: @escaping @Sendable () throws(ControlFailure) -> some Encodable & Sendable
  ) async throws(ControlFailure) -> Answer {
    Answer(
      body: try await calls.run(on: loop) { () throws(ControlFailure) in try ControlJSON.encode(try body()) })
  }

  /// Answers on the socket for everybody. A mirror is not found by its folder's name, and error texts are withheld, because both
  /// may reveal more than the status.
  private func redacted(_ asking: ControlRequest, _ loop: any EventLoop) async throws -> Answer {
    guard asking.route == .status else {
      throw ControlFailure(
        .permission, code: "not-on-this-socket", "this socket answers for the status and the metrics only",
        hint: "GET \(ControlRoute.status.rawValue)")
    }
    let agent = agent
    let unknown = ControlFailure(.notFound, code: "no-such-mirror", "there is no such mirror")
    guard !asking.mirrors.contains(where: { $0.contains("/") }) else { throw unknown }
    _ = try asking.number("problems", usual: 0, range: 0...ControlRoute.mostProblems)
    do throws(ControlFailure) {
      return try await call(loop) { () throws(ControlFailure) in
        try agent.status(mirrors: asking.mirrors, problemLimit: 0).redacted
      }
    } catch {
      if error.kind == .notFound { throw unknown }
      throw ControlFailure(error.kind, code: error.code, "no status now")
    }
  }
}

/// Closes a connection whose reader does not take what is written.
struct WriteDeadline: Sendable {
  private let task: Scheduled<Void>

  init(_ channel: any Channel, _ time: Duration) {
    task = channel.eventLoop.scheduleTask(in: TimeAmount(time)) { channel.close(promise: nil) }
  }

  func cancel() { task.cancel() }
}
