internal import NIOCore
internal import NIOHTTP1
internal import TarnRuntime

/// The response on one connection. The event loop fills it, and the thread that asked waits for it.
final class Exchange: Sendable {
  struct Answer: Sendable {
    var status: Int
    /// Whether the `Server` header names Tarn.
    var isTarn: Bool
    /// Whether this is the event stream that was asked for.
    var isStream: Bool
    var body: [UInt8]
  }
  struct Fault: Error {
    var reason: ControlUnreachable.Reason
  }
  enum Step {
    case events([StreamEvent])
    /// The stream ended regularly.
    case ended
    /// The response was not a stream.
    case refused(Answer)
    case broken(ControlUnreachable.Reason)
  }

  private enum End { case whole, broken(ControlUnreachable.Reason) }
  private struct State {
    var answer: Answer?
    var reader = EventStreamReader()
    var events: [StreamEvent] = []
    /// The bytes of the stream so far, each of them a sign of life.
    var heard: UInt64 = 0
    var end: End?
  }

  let isStream: Bool
  private let limit: Int
  private let state = LockedCondition(State())

  init(limit: Int, isStream: Bool) {
    self.limit = limit
    self.isStream = isStream
  }

  // MARK: - The thread that asked

  func answer(within time: Duration) -> Result<Answer, Fault> {
    let end = state.wait(atMost: time) { $0.end }
    switch end {
    case nil: return .failure(Fault(reason: .timedOut))
    case .broken(let reason): return .failure(Fault(reason: reason))
    case .whole:
      return state.withLock { $0.answer }.map { .success($0) } ?? .failure(Fault(reason: .ended))
    }
  }

  /// Blocks until the next events come. `time` counts from the last byte that came.
  func next(within time: Duration) -> Step {
    var heard: UInt64?
    while true {
      let step: Step?? = state.wait(atMost: time) { state -> Step?? in
        if !state.events.isEmpty {
          defer { state.events = [] }
          return .events(state.events)
        }
        switch state.end {
        // A connection that breaks, for instance because the agent was killed, ends the stream like any other end.
        case .broken(.ended) where state.answer?.isStream == true: return .ended
        case .broken(let reason): return .broken(reason)
        case .whole:
          guard let answer = state.answer, !answer.isStream else { return .ended }
          return .refused(answer)
        case nil: break
        }
        defer { heard = state.heard }
        // A sign of life came: wait anew.
        return heard.map { $0 != state.heard } == true ? .some(nil) : nil
      }
      switch step {
      case nil: return .broken(.timedOut)
      case .some(nil): continue
      case .some(let step?): return step
      }
    }
  }

  // MARK: - The event loop

  func begin(status: Int, server: String?, type: String?) {
    let isTarn = server?.hasPrefix("tarn/") == true
    let isStream = isStream && isTarn && status == 200 && type == "text/event-stream"
    state.change { $0.answer = Answer(status: status, isTarn: isTarn, isStream: isStream, body: []) }
  }

  /// - Returns: false when these are more bytes than are accepted.
  func receive(_ bytes: [UInt8]) -> Bool {
    state.change { state in
      guard let answer = state.answer else { return false }
      if answer.isStream {
        state.heard += UInt64(bytes.count)
        return state.reader.read(bytes, into: &state.events)
      }
      guard answer.body.count + bytes.count <= limit else { return false }
      state.answer?.body += bytes
      return true
    }
  }

  /// Whether the caller has nothing to do until more is read.
  var wantsMore: Bool { state.withLock { $0.events.isEmpty && $0.end == nil } }

  func finish() { state.change { $0.end = $0.end ?? .whole } }

  func fail(_ reason: ControlUnreachable.Reason) { state.change { $0.end = $0.end ?? .broken(reason) } }
}

/// Feeds an exchange from its channel. Used on the event loop's thread only.
final class ExchangeHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let exchange: Exchange

  init(_ exchange: Exchange) {
    self.exchange = exchange
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      exchange.begin(
        status: Int(head.status.code), server: head.headers.first(name: "server"),
        type: head.headers.first(name: "content-type"))
    case .body(let buffer):
      if !exchange.receive(Array(buffer.readableBytesView)) {
        exchange.fail(.notATarn)
        context.close(promise: nil)
      }
    case .end: exchange.finish()
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if exchange.isStream, exchange.wantsMore { context.read() }
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    exchange.fail(.ended)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    let isForeign = (error as? HTTPParserError).map { $0 != .invalidEOFState } ?? false
    exchange.fail(isForeign ? .notATarn : .ended)
    context.close(promise: nil)
  }
}
