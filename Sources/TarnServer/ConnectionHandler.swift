internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes
internal import TarnCore

/// Adds what Hummingbird lacks: a deadline for requests, the close after an answer that announces it, and reports that a client
/// asks, stalls or went away. Used on the event loop's thread only.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let time: TimeAmount
  private let taking: TimeAmount
  private let version: String
  private let asks: @Sendable (Bool) -> Void
  private let sticks: @Sendable (Bool) -> Void
  private let inputEnded: @Sendable () -> Void
  private var reader: Reader?
  private var deadline: Scheduled<Void>?
  /// The requests whose head came and whose answer has not ended.
  private var answering = 0
  /// The number of requests that came whole, and of answers that ended.
  private var (whole, answered) = (0, 0)
  private var closesAfterAnswer = false

  /// The progress of the client in reading what was written to it.
  private struct Reader {
    var check: Scheduled<Void>
    /// The bytes that the kernel had not taken at the last look.
    var pending: Int
    var progress: NIODeadline
    var isStuck = false
  }

  /// - Parameters:
  ///   - asks: called with true while a whole request waits for the end of its answer.
  ///   - sticks: called with true when the client took nothing of an answer for the time `taking`.
  init(
    time: TimeAmount, taking: TimeAmount, version: String, asks: @escaping @Sendable (Bool) -> Void,
    sticks: @escaping @Sendable (Bool) -> Void, inputEnded: @escaping @Sendable () -> Void
  ) {
    self.time = time
    self.taking = taking
    self.sticks = sticks
    self.version = version
    self.asks = asks
    self.inputEnded = inputEnded
  }

  func handlerAdded(context: ChannelHandlerContext) { arm(context) }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
    reader?.check.cancel()
  }

  // MARK: - What is not read

  private func watchReader(_ context: ChannelHandlerContext) {
    guard reader == nil else { return }
    reader = Reader(check: nextLook(context), pending: .max, progress: .now())
  }

  private func nextLook(_ context: ChannelHandlerContext) -> Scheduled<Void> {
    let (handler, context) = (
      NIOLoopBound(self, eventLoop: context.eventLoop), NIOLoopBound(context, eventLoop: context.eventLoop)
    )
    return context.value.eventLoop.scheduleTask(in: .nanoseconds(taking.nanoseconds / 4)) {
      handler.value.lookAtReader(context.value)
    }
  }

  private func lookAtReader(_ context: ChannelHandlerContext) {
    guard var reader else { return }
    let pending = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    let wasStuck = reader.isStuck
    if pending < reader.pending { reader.progress = .now() }
    reader.isStuck = pending > 0 && .now() - reader.progress >= taking
    if reader.isStuck != wasStuck { sticks(reader.isStuck) }
    // Looking goes on while an answer is being made.
    guard pending > 0 || answering > 0 else { return self.reader = nil }
    reader.pending = pending > 0 ? pending : .max
    reader.check = nextLook(context)
    self.reader = reader
  }

  /// Notes when the kernel has taken the bytes of this write.
  private func noteProgress(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?)
    -> EventLoopPromise<Void>
  {
    let promise = promise ?? context.eventLoop.makePromise()
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    promise.futureResult.whenSuccess { handler.value.reader?.progress = .now() }
    return promise
  }

  private func arm(_ context: ChannelHandlerContext) {
    let channel = context.channel
    deadline?.cancel()
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      answering += 1
      arm(context)
    case .body: break
    case .end:
      deadline?.cancel()
      whole += 1
      asks(whole > answered)
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head):
      watchReader(context)
      if head.headerFields[.connection] == "close" { closesAfterAnswer = true }
      guard head.headerFields[.server] == nil else { return context.write(data, promise: promise) }
      // Hummingbird's own answer, without a body: the request was not HTTP.
      var answer = Answer(
        ControlFailure(.usage, code: "not-http", "this is not a request of HTTP/1.1, or its head is too long")
      )
      answer.closes = true
      context.write(wrapOutboundOut(.head(answer.head(version: version))), promise: promise)
      context.write(wrapOutboundOut(.body(ByteBuffer(bytes: answer.body))), promise: nil)
    case .body: context.write(data, promise: noteProgress(context, promise))
    case .end:
      answering -= 1
      answered += 1
      asks(whole > answered)
      guard closesAfterAnswer else { return context.write(data, promise: noteProgress(context, promise)) }
      // The connection closes only after the kernel has taken the last byte.
      let channel = context.channel
      let written = promise ?? context.eventLoop.makePromise()
      written.futureResult.whenComplete { _ in channel.close(promise: nil) }
      context.writeAndFlush(data, promise: written)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ChannelShouldQuiesceEvent:
      if answering > 0 { closesAfterAnswer = true } else { context.close(promise: nil) }
    case ChannelEvent.inputClosed:
      inputEnded()
      context.fireUserInboundEventTriggered(event)
    default: context.fireUserInboundEventTriggered(event)
    }
  }
}
