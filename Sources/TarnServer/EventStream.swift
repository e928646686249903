internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// One reader's stream of events. At most one page of events is held for it: the next page is read from the agent after the last
/// was taken.
struct EventStream: Sendable {
  /// A page of events as text.
  private struct Page: Sendable {
    var text: [UInt8]
    var cursor: String
    var hasMore: Bool
  }

  /// The source of the events. Each call may block.
  private enum Source: Sendable {
    /// - Parameter folders: the mirrors' folders at the beginning, when all mirrors are read; else `nil`.
    case mirrors(any AgentPort, [String], folders: [String: String]?)
    case session(any SessionPort, String)
    case sessions(SessionReading)

    /// - Returns: `nil` when the mirrors have changed. The stream has no events of a mirror that is gone, so the reader must look
    ///   anew.
    func page(after cursor: String, limit: Int) throws(ControlFailure) -> Page? {
      switch self {
      case .mirrors(let agent, let mirrors, let folders):
        if let folders, folders != agent.mirrorFolders() { return nil }
        return try EventStream.page(try agent.events(after: cursor, mirrors: mirrors, limit: limit))
      case .session(let sessions, let id):
        let after = try ControlRequest.place(cursor)
        let (page, passed) = try sessions.next(of: id, after: after, limit: limit)
        return try EventStream.page(page, passed: passed, after: after)
      case .sessions(let reading): return try EventStream.page(try reading.page(limit: limit))
      }
    }
  }

  private let responder: Responder
  private let source: Source
  private let bell: Bell
  private let subscription: Subscription
  private let beginning: String
  private let first: Page

  /// Opens the stream. All that may fail is done here, before the head is written.
  ///
  /// - Throws: `ControlFailure`; nothing is left behind then.
  static func open(
    _ responder: Responder, _ asking: ControlRequest, _ connection: Connection
  ) async throws(ControlFailure) -> EventStream {
    guard responder.connections.enterStream() else {
      if responder.connections.isEnding { throw .stopping }
      throw ControlFailure(
        .unavailable, code: "too-many-streams", "\(responder.limits.streams) streams are read already")
    }
    let (bell, subscription) = (Bell(), Subscription())
    connection.wakes(bell)
    do throws(ControlFailure) {
      let (agent, limit) = (responder.agent, responder.limits.page)
      // A reader that reconnects sends both, and the id of its last event is later.
      let asked = asking.lastEventID ?? asking.cursor
      return try await responder.calls.run(on: connection.channel.eventLoop, isStream: true) {
        () throws(ControlFailure) in
        // Subscribes first, so that an event between a page and the next one rings.
        let (source, beginning): (Source, String)
        if asking.route == .sessionsStream {
          let reading = SessionReading(agent.sessions, try asking.places())
          subscription.hold(reading.subscribe { bell.ring() })
          (source, beginning) = (.sessions(reading), "")
        } else if asking.route == .sessionStream {
          let id = try asking.session()
          subscription.hold(try agent.sessions.subscribe(id) { bell.ring() })
          (source, beginning) = (.session(agent.sessions, id), asked ?? "0")
        } else {
          subscription.hold(agent.subscribe { bell.ring() })
          let folders = asking.mirrors.isEmpty ? agent.mirrorFolders() : nil
          source = .mirrors(agent, asking.mirrors, folders: folders)
          beginning = if let asked { asked } else { try agent.eventsEnd() }
        }
        let page = try source.page(after: beginning, limit: limit)
        return EventStream(
          responder: responder, source: source, bell: bell, subscription: subscription,
          beginning: beginning, first: page ?? Page(text: [], cursor: beginning, hasMore: true))
      }
    } catch {
      await subscription.end(responder, connection)
      connection.wakes(nil)
      responder.connections.leaveStream()
      throw error
    }
  }

  /// Returns when the reader is gone, the server ends, the agent fails, or all mirrors are read and their set has changed. The
  /// stream is complete then.
  ///
  /// - Throws: the error that ended the connection.
  func run(_ writer: consuming ResponseWriter, _ connection: Connection) async throws {
    let (bell, beat) = (bell, TimeAmount(responder.limits.heartbeat))
    let heart = connection.channel.eventLoop.scheduleRepeatedTask(initialDelay: beat, delay: beat) { _ in
      bell.beat()
    }
    defer {
      heart.cancel()
      connection.wakes(nil)
      responder.connections.leaveStream()
    }
    do {
      var body = try await writer.writeHead(head)
      try await write(Self.place(beginning), to: &body, connection)
      try await send(to: &body, connection)
      try await body.finish(nil)
    } catch {
      await subscription.end(responder, connection)
      throw error
    }
    await subscription.end(responder, connection)
  }

  private func send(to body: inout some ResponseBodyWriter, _ connection: Connection) async throws {
    var page = first
    do {
      while !bell.hasEnded {
        if !page.text.isEmpty { try await write(page.text, to: &body, connection) }
        if !page.hasMore {
          switch await bell.wait() {
          case .ended: continue
          case .beat: try await write(Array(": \n\n".utf8), to: &body, connection)
          case .events: break
          }
        }
        guard let next = try await next(after: page.cursor, connection.channel.eventLoop) else { return }
        page = next
      }
    } catch let failure as ControlFailure {
      let text = try Self.block(name: ControlRoute.failureEvent, data: ControlJSON.encode(failure))
      try await write(text, to: &body, connection)
    }
  }

  private func next(after cursor: String, _ loop: any EventLoop) async throws(ControlFailure) -> Page? {
    let (source, limit) = (source, responder.limits.page)
    return try await responder.calls.run(on: loop, isStream: true) { () throws(ControlFailure) in
      try source.page(after: cursor, limit: limit)
    }
  }

  private func write(
    _ bytes: [UInt8], to body: inout some ResponseBodyWriter, _ connection: Connection
  ) async throws {
    let deadline = WriteDeadline(connection.channel, responder.limits.writing)
    defer { deadline.cancel() }
    try await body.write(ByteBuffer(bytes: bytes))
  }

  // MARK: - Text

  private var head: HTTPResponse {
    HTTPResponse(
      status: .ok,
      headerFields: [
        .server: "tarn/\(responder.version)", .contentType: "text/event-stream", .cacheControl: "no-store",
        .connection: "close",
      ])
  }

  /// Tells a reader its place before the first event comes. The block has no data, so the reader dispatches no event for it.
  private static func place(_ cursor: String) -> [UInt8] { Array("id: \(oneLine(cursor))\n\n".utf8) }

  private static func page(_ page: EventPage) throws(ControlFailure) -> Page {
    var text: [UInt8] = []
    for event in page.events { text += try Self.text(event) }
    return Page(text: text, cursor: page.cursor, hasMore: page.hasMore)
  }

  /// - Parameter passed: the number that the reader's place goes on to before the events, as at the beginning; `nil` for none.
  private static func page(
    _ page: SessionEventPage, passed: Int64?, after number: Int64
  ) throws(ControlFailure) -> Page {
    var text = passed.map { place(String($0)) } ?? []
    for event in page.events {
      text +=
        Array("id: \(event.number)\n".utf8)
        + block(name: event.code.rawValue, data: try ControlJSON.encode(event))
    }
    let cursor = page.events.last?.number ?? passed ?? number
    return Page(text: text, cursor: String(cursor), hasMore: page.hasMore)
  }

  private static func page(_ page: SessionReading.Page) throws(ControlFailure) -> Page {
    var text: [UInt8] = []
    for news in page.news {
      let name = news.event?.code.rawValue ?? (news.passed == nil ? "session-ended" : "events-passed")
      text += block(name: name, data: try ControlJSON.encode(news))
    }
    return Page(text: text, cursor: "", hasMore: page.hasMore)
  }

  private static func text(_ event: EventDocument) throws(ControlFailure) -> [UInt8] {
    Array("id: \(oneLine(event.cursor))\n".utf8)
      + block(name: oneLine(event.code), data: try ControlJSON.encode(event))
  }

  private static func block(name: String, data: [UInt8]) -> [UInt8] {
    Array("event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
  }

  private static func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 }))
  }
}

/// A subscription that ends once, even when the agent makes it after the reader was given up.
private final class Subscription: Sendable {
  private struct State {
    var subscription: AgentSubscription?
    var hasEnded = false
  }
  private let state = Locked(State())

  func hold(_ subscription: AgentSubscription) {
    let hasEnded = state.withLock { state in
      if !state.hasEnded { state.subscription = subscription }
      return state.hasEnded
    }
    if hasEnded { subscription.end() }
  }

  func end(_ responder: Responder, _ connection: Connection) async {
    let subscription = state.withLock { state in
      defer { state = State(subscription: nil, hasEnded: true) }
      return state.subscription
    }
    guard let subscription else { return }
    try? await responder.calls.run(on: connection.channel.eventLoop, isStream: true) {
      () throws(ControlFailure) in
      subscription.end()
    }
  }
}
