internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes
internal import TarnCore

/// What Hummingbird leaves open: the time for a request to come, the close after an answer that says so, and the news that a
/// client went away. The event loop's thread only.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let time: TimeAmount
  private let version: String
  private let inputEnded: @Sendable () -> Void
  private var deadline: Scheduled<Void>?
  /// Requests whose head came and whose answer has not ended.
  private var answering = 0
  private var closesAfterAnswer = false

  init(time: TimeAmount, version: String, inputEnded: @escaping @Sendable () -> Void) {
    self.time = time
    self.version = version
    self.inputEnded = inputEnded
  }

  func handlerAdded(context: ChannelHandlerContext) { arm(context) }

  func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

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
    case .end: deadline?.cancel()
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head):
      if head.headerFields[.connection] == "close" { closesAfterAnswer = true }
      guard head.headerFields[.server] == nil else { return context.write(data, promise: promise) }
      // Hummingbird's own, without a body: what came is no HTTP.
      var answer = Answer(
        ControlFailure(.usage, code: "not-http", "this is not a request of HTTP/1.1, or its head is too long")
      )
      answer.closes = true
      context.write(wrapOutboundOut(.head(answer.head(version: version))), promise: promise)
      context.write(wrapOutboundOut(.body(ByteBuffer(bytes: answer.body))), promise: nil)
    case .body: context.write(data, promise: promise)
    case .end:
      answering -= 1
      guard closesAfterAnswer else { return context.write(data, promise: promise) }
      // Closed only when the last byte is with the kernel.
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
