internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOHTTP1

struct ServedFile: Sendable {
  var contents: [UInt8]
  var behaviour: TestServer.Behaviour
  var tellsLength: Bool

  /// The entity tag: FNV-1a of the contents.
  var tag: String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in contents { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return "\"\(String(hash, radix: 16))\""
  }
}

/// The files that are served and the requests that came. Thread-safe.
final class ServedFiles: Sendable {
  private struct State {
    var files: [String: ServedFile] = [:]
    var requests: [TestServer.Request] = []
    /// Called when the file changes its behaviour.
    var hanging: [String: [@Sendable () -> Void]] = [:]
    var channels: [ObjectIdentifier: any Channel] = [:]
  }

  private let state = NIOLockedValueBox(State())

  var requests: [TestServer.Request] { state.withLockedValue { $0.requests } }

  func set(_ name: String, _ file: ServedFile) {
    wake(
      state.withLockedValue { state in
        state.files[name] = file
        return state.hanging.removeValue(forKey: name)
      })
  }

  func change(_ name: String, _ behaviour: TestServer.Behaviour) {
    wake(
      state.withLockedValue { state in
        state.files[name]?.behaviour = behaviour
        return state.hanging.removeValue(forKey: name)
      })
  }

  private func wake(_ hanging: [@Sendable () -> Void]?) { for answer in hanging ?? [] { answer() } }

  /// Returns the present behaviour of a file; `nil` when there is no such file.
  func behaviour(_ name: String) -> TestServer.Behaviour? {
    state.withLockedValue { $0.files[name]?.behaviour }
  }

  func note(_ request: TestServer.Request) { state.withLockedValue { $0.requests.append(request) } }

  /// - Parameter again: called when a file that hangs changes its behaviour, to ask once more.
  /// - Returns: the file; `nil` while it hangs.
  func file(_ name: String, again: @escaping @Sendable () -> Void) -> ServedFile? {
    state.withLockedValue { state in
      let file =
        state.files[name] ?? ServedFile(contents: [], behaviour: .fails(status: 404), tellsLength: true)
      guard file.behaviour == .hangs else { return file }
      state.hanging[name, default: []].append(again)
      return nil
    }
  }

  func enter(_ channel: any Channel) {
    state.withLockedValue { $0.channels[ObjectIdentifier(channel)] = channel }
  }
  func leave(_ channel: any Channel) {
    state.withLockedValue { $0.channels[ObjectIdentifier(channel)] = nil }
  }
  func closeAll() {
    for channel in state.withLockedValue({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }
}

/// Answers the requests of one connection. Used on the event loop's thread only.
final class FileHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let files: ServedFiles
  private var head: HTTPRequestHead?

  init(_ files: ServedFiles) { self.files = files }

  func channelActive(context: ChannelHandlerContext) {
    files.enter(context.channel)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    files.leave(context.channel)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      var headers: [String: String] = [:]
      for (name, value) in head.headers { headers[name.lowercased()] = value }
      files.note(TestServer.Request(method: head.method.rawValue, target: head.uri, headers: headers))
    case .body: break
    case .end:
      if let head { answer(head, context) }
      head = nil
    }
  }

  private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let name = String(head.uri.dropFirst().prefix { $0 != "?" })
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let loop = context.eventLoop
    let file = files.file(name) {
      loop.execute {
        let (handler, context) = bound.value
        if context.channel.isActive { handler.answer(head, context) }
      }
    }
    guard let file else { return }
    switch file.behaviour {
    case .fails(let status): refuse(status, context)
    case .asks(let line) where !Self.has(head, line): refuse(401, context)
    default: send(file, head, context)
    }
  }

  private static func has(_ head: HTTPRequestHead, _ line: String) -> Bool {
    let parts = line.split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { return false }
    return head.headers[String(parts[0])].contains(String(parts[1].drop { $0 == " " }))
  }

  private func refuse(_ status: Int, _ context: ChannelHandlerContext) {
    let body = Array("refused\n".utf8)
    var headers = HTTPHeaders([("content-length", String(body.count)), ("content-type", "text/plain")])
    if status == 401 { headers.add(name: "www-authenticate", value: "Bearer") }
    write(HTTPResponseStatus(statusCode: status), headers, context)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  private func write(_ status: HTTPResponseStatus, _ headers: HTTPHeaders, _ context: ChannelHandlerContext) {
    context.write(
      wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
      promise: nil)
  }

  // MARK: Files

  private func send(_ file: ServedFile, _ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let (total, start) = (file.contents.count, Self.start(of: head, file))
    var headers = HTTPHeaders([("content-type", "application/octet-stream"), ("etag", file.tag)])
    if file.tellsLength {
      headers.add(name: "accept-ranges", value: "bytes")
      headers.add(name: "content-length", value: String(total - (start ?? 0)))
    } else {
      headers.add(name: "transfer-encoding", value: "chunked")
    }
    if let start {
      headers.add(name: "content-range", value: "bytes \(start)-\(total - 1)/\(total)")
    }
    write(start == nil ? .ok : .partialContent, headers, context)
    guard head.method != .HEAD else {
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      return
    }
    let body = file.contents.dropFirst(start ?? 0)
    switch file.behaviour {
    case .breaksOff(let count):
      let written = context.eventLoop.makePromise(of: Void.self)
      let channel = context.channel
      written.futureResult.whenComplete { _ in channel.close(promise: nil) }
      context.writeAndFlush(
        wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body.prefix(count))))), promise: written)
    case .goesSlowly(let rate):
      sendSlowly(String(head.uri.dropFirst().prefix { $0 != "?" }), body, max(1, rate / 20), context)
    default:
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
  }

  /// Returns the start of a range `bytes=N-`, the only form that is supported. `nil` for the whole file.
  private static func start(of head: HTTPRequestHead, _ file: ServedFile) -> Int? {
    guard file.tellsLength, let range = head.headers.first(name: "range"), range.hasPrefix("bytes="),
      let first = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).first,
      let start = Int(first), start < file.contents.count, range.hasSuffix("-")
    else { return nil }
    if let wanted = head.headers.first(name: "if-range"), wanted != file.tag { return nil }
    return start
  }

  /// Sends twenty pieces a second. The rest goes at once when the file changes its behaviour.
  private func sendSlowly(
    _ name: String, _ body: ArraySlice<UInt8>, _ piece: Int, _ context: ChannelHandlerContext
  ) {
    guard context.channel.isActive else { return }
    let isSlow = if case .goesSlowly = files.behaviour(name) { true } else { false }
    let piece = isSlow ? piece : max(1, body.count)
    guard !body.isEmpty else {
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      return
    }
    context.writeAndFlush(
      wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body.prefix(piece))))), promise: nil)
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: .milliseconds(50)) {
      let (handler, context) = bound.value
      handler.sendSlowly(name, body.dropFirst(piece), piece, context)
    }
  }
}
