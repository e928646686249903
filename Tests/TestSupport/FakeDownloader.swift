package import TarnCore
import TarnRuntime

/// What a fake server answers.
package struct FakeAnswer: Sendable {
  package var status = 200
  package var etag: String?
  package var lastModified: Timestamp?
  /// The response's Date.
  package var sent: Timestamp?
  package var body: [UInt8] = []
  package var honoursRanges = true
  /// The exchange fails after so many body bytes.
  package var failure: (after: Int, DownloadFailure)?
  /// No head ever comes.
  package var hangs = false
  /// The head comes once it is open.
  package var gate: AnswerGate?
  /// After so many body bytes nothing comes until it is open.
  package var pause: (after: Int, gate: AnswerGate)?
  /// False: the end of the body is that of the connection, and no length is told.
  package var isFramed = true
  /// False: the end of the body is marked, and its length is not told before.
  package var hasLength = true
  /// Where redirects led; nil for none.
  package var finalURL: String?
  package var contentType: String?
  package var contentEncoding: String?
  /// The most bytes of an answer to a range.
  package var mostOfRange: Int?
  /// The status of answers to ranges, without a body.
  package var rangeStatus: Int?
  /// The connection is lost where a range is asked for.
  package var rangeFails = false
  /// Requests for a range fail so, before any byte.
  package var rangeFailure: DownloadFailure?
  /// False: conditions are ignored, and the body comes each time.
  package var honoursConditions = true

  package init(
    status: Int = 200, etag: String? = nil, body: [UInt8] = [], honoursRanges: Bool = true,
    failure: (after: Int, DownloadFailure)? = nil, hangs: Bool = false
  ) {
    self.status = status
    self.etag = etag
    self.body = body
    self.honoursRanges = honoursRanges
    self.failure = failure
    self.hangs = hangs
  }
}

/// Holds answers back until somebody opens it.
package final class AnswerGate: Sendable {
  private let state = Locked((isOpen: false, wakers: [@Sendable () -> Void]()))

  package init() {}

  package var isOpen: Bool { state.withLock { $0.isOpen } }

  package func open() {
    let wakers = state.withLock { state in
      state.isOpen = true
      return state.wakers
    }
    for wake in wakers { wake() }
  }

  func onOpen(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wakers.append(wake) } }
}

/// The download port without a network: answers come from a closure, on one thread, a chunk of each exchange in turn.
package final class FakeDownloader: Downloading {
  private struct Running {
    let id: DownloadID
    let request: DownloadRequest
    let receiver: any DownloadReceiver
    var answer: FakeAnswer
    var head: ResponseHead?
    var position = 0
    var isFull = false

    var isHeld: Bool { isFull || answer.hangs || answer.gate?.isOpen == false || isPaused }

    private var isPaused: Bool {
      answer.pause.map { position >= $0.after && !$0.gate.isOpen } ?? false
    }
  }

  private enum Command {
    case start(DownloadID, DownloadRequest, any DownloadReceiver)
    case resume(DownloadID)
    case cancel(DownloadID)
    case prioritize(DownloadID)
  }

  private struct State {
    var commands: [Command] = []
    var lastID: UInt64 = 0
    var isClosed = false
  }

  /// Seconds for which the hosts of URLs are left alone.
  private let rests = Locked<[String: Int64]>([:])
  private let state: LockedCondition<State>
  private let thread: WorkerThread

  package init(connections: Int = 4, answer: @escaping @Sendable (DownloadRequest) -> FakeAnswer) throws {
    let state = LockedCondition(State())
    self.state = state
    thread = try WorkerThread.start(name: "fake-network") {
      Self.run(state, connections: connections, answer: answer)
    }
  }

  package func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
    let (id, isOpen) = state.change { state in
      state.lastID += 1
      let id = DownloadID(value: state.lastID)
      if !state.isClosed { state.commands.append(.start(id, request, receiver)) }
      return (id, !state.isClosed)
    }
    if !isOpen { receiver.end(Self.cancelled) }
    return id
  }

  package func resume(_ id: DownloadID) { state.change { $0.commands.append(.resume(id)) } }

  package func cancel(_ id: DownloadID) { state.change { $0.commands.append(.cancel(id)) } }

  package func prioritize(_ id: DownloadID) { state.change { $0.commands.append(.prioritize(id)) } }

  package func rest(of url: String) -> Int64? { rests.withLock { $0[url] } }

  package func leaveAlone(_ url: String, seconds: Int64) { rests.withLock { $0[url] = seconds } }

  package func shutDown() {
    state.change { $0.isClosed = true }
    thread.join()
  }

  private static let cancelled = DownloadOutcome.failed(
    DownloadFailure(.cancelled, "cancelled", isTransient: false))

  private static func run(
    _ state: LockedCondition<State>, connections: Int, answer: @Sendable (DownloadRequest) -> FakeAnswer
  ) {
    var running: [Running] = []
    while true {
      let (commands, isClosed) = state.wait { state -> ([Command], Bool)? in
        let isBusy = running.prefix(connections).contains { !$0.isHeld }
        guard isBusy || state.isClosed || !state.commands.isEmpty else { return nil }
        defer { state.commands = [] }
        return (state.commands, state.isClosed)
      }
      for command in commands {
        switch command {
        case .start(let id, let request, let receiver):
          guard request.url.contains("://") else {
            receiver.end(.failed(DownloadFailure(.urlRefused, "malformed", isTransient: false)))
            continue
          }
          let answer = answer(request)
          for gate in [answer.gate, answer.pause?.gate] { gate?.onOpen { state.change { _ in } } }
          running.append(Running(id: id, request: request, receiver: receiver, answer: answer))
        case .resume(let id):
          if let index = running.firstIndex(where: { $0.id == id }) { running[index].isFull = false }
        case .cancel(let id):
          guard let index = running.firstIndex(where: { $0.id == id }) else { continue }
          running.remove(at: index).receiver.end(cancelled)
        case .prioritize(let id):
          guard let index = running.firstIndex(where: { $0.id == id }), index > connections else { continue }
          running.insert(running.remove(at: index), at: connections)
        }
      }
      if isClosed { break }
      step(&running, connections: connections)
    }
    for exchange in running { exchange.receiver.end(cancelled) }
  }

  private static func step(_ running: inout [Running], connections: Int) {
    var kept: [Running] = []
    for (index, exchange) in running.enumerated() {
      var exchange = exchange
      if index < connections { exchange.receiver.placed() }
      guard index < connections, !exchange.isHeld, let outcome = advance(&exchange)
      else {
        exchange.receiver.turnEnded()
        kept.append(exchange)
        continue
      }
      exchange.receiver.end(outcome)
    }
    running = kept
  }

  /// - Returns: the outcome when the exchange is over.
  private static func advance(_ exchange: inout Running) -> DownloadOutcome? {
    guard let head = exchange.head else {
      let head = respond(&exchange)
      exchange.head = head
      return exchange.receiver.begin(head) == .headOnly ? .complete(head) : nil
    }
    let body = exchange.answer.body
    if let failure = exchange.answer.failure, exchange.position >= failure.after { return .failed(failure.1) }
    guard exchange.position < body.count else { return .complete(head) }
    let end = min(body.count, exchange.position + 1000, exchange.answer.failure?.after ?? .max)
    guard end <= exchange.request.limit else {
      return .failed(DownloadFailure(.tooLarge, "too large", isTransient: false))
    }
    switch body[exchange.position..<end].withUnsafeBytes(exchange.receiver.receive) {
    case .taken: exchange.position = end
    case .full: exchange.isFull = true
    case .abort: return .failed(DownloadFailure(.refusedByReceiver, "gave up", isTransient: false))
    }
    return nil
  }

  /// The head, and the body cut to the range.
  private static func respond(_ exchange: inout Running) -> ResponseHead {
    let (request, answer) = (exchange.request, exchange.answer)
    var head = ResponseHead(status: answer.status, url: answer.finalURL ?? request.url)
    if answer.finalURL != nil, request.keepsFields { head.redirects = [request.url] }
    head.etag = answer.etag
    head.modified = answer.lastModified
    head.lastModified = answer.lastModified?.rfc3339
    head.sent = answer.sent
    head.contentType = answer.contentType
    head.contentEncoding = answer.contentEncoding
    let total = UInt64(answer.body.count)
    if request.offset > 0, answer.rangeFails {
      exchange.answer.failure = (0, DownloadFailure(.reset, "connection lost", isTransient: true))
    }
    if request.offset > 0, let failure = answer.rangeFailure { exchange.answer.failure = (0, failure) }
    if request.offset > 0, let refusal = answer.rangeStatus {
      head.status = refusal
      exchange.answer.body = []
      return head
    }
    if answer.status == 200, answer.honoursConditions, isUnchanged(request, head) {
      head.status = 304
      exchange.answer.body = []
      return head
    }
    if answer.status == 200, request.offset > 0, answer.honoursRanges,
      request.ifRange == nil || request.ifRange == answer.etag
    {
      let isWithin = request.offset < total
      let end = min(total, answer.mostOfRange.map { request.offset + UInt64($0) } ?? total)
      head.status = isWithin ? 206 : 416
      head.contentRange = ContentRange(
        first: isWithin ? request.offset : nil, last: isWithin ? end - 1 : nil, total: total)
      exchange.answer.body = isWithin ? Array(answer.body[Int(request.offset)..<Int(end)]) : []
      if answer.mostOfRange != nil { exchange.answer.failure = nil }
    }
    head.isFramed = answer.isFramed
    if answer.isFramed, answer.hasLength { head.contentLength = UInt64(exchange.answer.body.count) }
    return head
  }
  /// As RFC 9110 13.2.2 has it: the date counts only where no tag was sent.
  private static func isUnchanged(_ request: DownloadRequest, _ head: ResponseHead) -> Bool {
    if let tag = request.ifNoneMatch { return tag == head.etag }
    return request.ifModifiedSince != nil && request.ifModifiedSince == head.lastModified
  }
}
