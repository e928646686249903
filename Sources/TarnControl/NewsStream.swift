internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import TarnCore
internal import TarnRuntime

/// A connection that brings the events of several sessions, without a thread that waits for them.
package final class NewsStream: Sendable {
  package enum Step: Sendable {
    /// The stream has begun: no later event is missed.
    case begun
    case news(SessionNews)
    /// The last step, with the agent's refusal or the reason why there was no answer. `nil` when the stream ended regularly.
    case ended((any Error)?)
  }

  private struct State {
    var channel: (any Channel)?
    var hasEnded = false
  }
  private let state = Locked(State())

  fileprivate init() {}

  fileprivate func hold(_ channel: any Channel) {
    let hasEnded = state.withLock { state in
      state.channel = channel
      return state.hasEnded
    }
    if hasEnded { channel.close(promise: nil) }
  }

  /// Ends the stream. May be called on any thread; returns at once. A step that is on its way may still be reported.
  package func end() {
    let channel = state.withLock { state in
      state.hasEnded = true
      return state.channel
    }
    channel?.close(promise: nil)
  }
}

extension ControlClient {
  /// Reads the events of several sessions on one connection.
  ///
  /// - Parameter hear: called with one step after the other, on a thread that must not be blocked.
  package func news(
    from places: [SessionPlace], _ hear: @escaping @Sendable (NewsStream.Step) -> Void
  ) -> NewsStream {
    let stream = NewsStream()
    let (client, time) = (self, TimeAmount(limits.silence))
    let bootstrap = ClientBootstrap(group: group).connectTimeout(TimeAmount(limits.connecting))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHTTPClientHandlers()
          // The agent sends heartbeats, so silence means that it hangs.
          try channel.pipeline.syncOperations.addHandler(IdleStateHandler(readTimeout: time))
          try channel.pipeline.syncOperations.addHandler(NewsHandler(client, hear))
        }
      }
    do {
      bootstrap.connect(to: try address()).whenComplete { result in
        switch result {
        case .success(let channel):
          stream.hold(channel)
          client.send(
            .GET, .sessionsStream, parameters: places.map { ("from", $0.text) }, body: [], to: channel)
        case .failure(let error): hear(.ended(client.unreachable(client.reason(error))))
        }
      }
    } catch {
      hear(.ended(error))
    }
    return stream
  }
}

/// Reads one stream. Used on the event loop's thread only.
private final class NewsHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  /// The most bytes of an answer that is no stream.
  private static let longest = 1 << 20

  private let client: ControlClient
  private let hear: @Sendable (NewsStream.Step) -> Void
  private var reader = EventStreamReader()
  /// An answer that is no stream.
  private var answer: Exchange.Answer?
  private var hasBegun = false
  private var hasEnded = false

  init(_ client: ControlClient, _ hear: @escaping @Sendable (NewsStream.Step) -> Void) {
    (self.client, self.hear) = (client, hear)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head)
    case .body(let buffer):
      if !read(Array(buffer.readableBytesView)) { end(client.unreachable(.notATarn), context) }
    case .end: end(hasBegun ? nil : answer.map { client.failure($0) } ?? client.unreachable(.ended), context)
    }
  }

  private func begin(_ head: HTTPResponseHead) {
    let isTarn = head.headers.first(name: "server")?.hasPrefix("tarn/") == true
    let isStream = head.headers.first(name: "content-type") == "text/event-stream"
    hasBegun = isTarn && isStream && head.status == .ok
    if hasBegun { return hear(.begun) }
    answer = Exchange.Answer(status: Int(head.status.code), isTarn: isTarn, isStream: false, body: [])
  }

  /// - Returns: false for bytes that no Tarn sends.
  private func read(_ bytes: [UInt8]) -> Bool {
    guard hasBegun else {
      answer?.body += bytes
      return answer?.body.count ?? 0 <= Self.longest
    }
    var events: [StreamEvent] = []
    guard reader.read(bytes, into: &events) else { return false }
    for event in events where !hasEnded {
      guard let data = event.data else { continue }
      if event.name == ControlRoute.failureEvent {
        guard let failure = ControlJSON.decode(ControlFailure.self, from: data) else { return false }
        end(failure, nil)
        return true
      }
      guard let news = ControlJSON.decode(SessionNews.self, from: data) else { return false }
      hear(.news(news))
    }
    return true
  }

  private func end(_ error: (any Error)?, _ context: ChannelHandlerContext?) {
    if !hasEnded { hear(.ended(error)) }
    hasEnded = true
    context?.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is IdleStateHandler.IdleStateEvent { end(client.unreachable(.timedOut), context) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(hasBegun ? nil : client.unreachable(.ended), nil)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A connection that breaks, for instance because the agent was killed, ends the stream like any other end.
    let isForeign = (error as? HTTPParserError).map { $0 != .invalidEOFState } ?? false
    end(isForeign ? client.unreachable(.notATarn) : hasBegun ? nil : client.unreachable(.ended), context)
  }
}
