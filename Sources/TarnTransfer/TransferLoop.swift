import CurlShim
import TarnCore
import TarnRuntime

/// The network thread: owns the multi handle and every exchange.
///
/// A turn: take commands, admit who may run, refill the rate, step files, let libcurl work, end what is done. Only
/// then it sleeps, until a socket, a timer, the rate or a command wakes it.
final class TransferLoop {
  private let multi: MultiHandle
  private let inbox: Inbox
  private let network: Network
  private var exchanges: [DownloadID: Exchange] = [:]
  private var line: WaitingLine<Exchange>
  /// Running exchanges, by their easy handles and by their ids for files.
  private var hops: [UnsafeMutableRawPointer: Hop] = [:]
  private var files: [DownloadID: Exchange] = [:]
  private var idle: [EasyHandle] = []

  init(_ settings: NetworkSettings, clock: any Clock, multi: MultiHandle, inbox: Inbox) {
    self.multi = multi
    self.inbox = inbox
    network = Network(settings: settings, clock: clock)
    line = WaitingLine(perHost: settings.connectionsPerHost)
  }

  /// Returns when the inbox is closed and all receivers have heard their end.
  func run() {
    var isOpen = true
    while isOpen {
      let (commands, closed) = inbox.take()
      isOpen = !closed
      for command in commands { obey(command) }
      guard isOpen else { break }
      admit()
      refill()
      let stepped = stepFiles()
      let code = multi.perform()
      if code != CURLM_OK {
        failRunning(FailureTable.row(CURLE_OUT_OF_MEMORY), "libcurl's multi handle failed")
      }
      let ended = collect()
      if stepped || ended { continue }
      multi.poll(milliseconds: sleepTime)
    }
    cancelAll()
  }

  private func obey(_ command: Inbox.Command) {
    switch command {
    case .start(let id, let request, let receiver): begin(id, request, receiver)
    case .resume(let id): resume(id)
    case .cancel(let id): cancel(id)
    }
  }

  // MARK: From start to the first hop

  private func begin(_ id: DownloadID, _ request: DownloadRequest, _ receiver: any DownloadReceiver) {
    let values = [request.ifRange, request.ifNoneMatch, request.ifModifiedSince, request.accept]
    do throws(SourceURL.Refusal) {
      let url = try SourceURL(request.url)
      guard values.allSatisfy({ HeaderValue.isSafe($0 ?? "") }) else {
        throw SourceURL.Refusal(reason: "a request header has control characters")
      }
      let exchange = Exchange(id: id, request: request, receiver: receiver, url: url)
      exchanges[id] = exchange
      line.add(exchange, to: url.origin, order: id.value)
    } catch {
      let failure = DownloadFailure(.urlRefused, "the URL was refused: \(error.reason)", isTransient: false)
      receiver.end(.failed(failure))
    }
  }

  /// Starts waiting exchanges while there are places. Handles never outnumber the connections.
  private func admit() {
    while hops.count + files.count < max(1, network.settings.connections),
      let (next, origin) = line.takeNext()
    {
      // Who was cancelled while waiting is still in line.
      if next.isEnded {
        line.leave(origin)
      } else if origin.scheme == "file" {
        open(next)
      } else {
        start(next)
      }
    }
  }

  private func open(_ exchange: Exchange) {
    do {
      exchange.file = try FileExchange(exchange.url, exchange.request)
      files[exchange.id] = exchange
    } catch {
      finish(exchange, .failed(error))
    }
  }

  private func start(_ exchange: Exchange) {
    let seconds = exchange.secondsLeft(now: network.clock.monotonic())
    guard seconds != 0 else { return fail(exchange, CURLE_OPERATION_TIMEDOUT) }
    let settings = network.settings
    let isTrusted = exchange.url.origin == network.trusted
    let options = CurlOption.hop(exchange.url, settings: settings, isTrusted: isTrusted, secondsLeft: seconds)
    let headers = CurlOption.headers(exchange.request, isTrusted: isTrusted, settings: settings)
    let (code, hop) = prepare(exchange, network.options + options, headers: headers)
    guard let hop else { return fail(exchange, code) }
    guard multi.add(hop.handle) else { return fail(exchange, CURLE_OUT_OF_MEMORY) }
    exchange.hop = hop
    hops[hop.handle.easy] = hop
  }

  /// A hop on an idle handle, or on a new one: after a name that was not found libcurl keeps a handle's buffer over
  /// its reset, and then refuses to be told its size.
  private func prepare(
    _ exchange: Exchange, _ options: [CurlOption], headers: [String]
  ) -> (CURLcode, Hop?) {
    while true {
      let used = idle.popLast()
      guard let handle = used ?? EasyHandle() else { return (CURLE_OUT_OF_MEMORY, nil) }
      let hop = Hop(exchange, handle: handle, network: network)
      let code = handle.prepare(options, headers: headers, hop: hop)
      if code == CURLE_OK { return (code, hop) }
      if used == nil { return (code, nil) }
    }
  }

  private func fail(_ exchange: Exchange, _ code: CURLcode) {
    let failure = FailureTable.failure(code, origin: exchange.url.origin, detail: "", errno: 0)
    finish(exchange, .failed(failure))
  }

  // MARK: Running

  private func resume(_ id: DownloadID) {
    guard let exchange = exchanges[id] else { return }
    exchange.file?.clearFull()
    if let hop = exchange.hop, hop.clearFull(), !hop.isThrottled { unpause(hop) }
  }

  private func unpause(_ hop: Hop) {
    let code = hop.handle.unpause()
    // The callbacks ran inside; when one of them ended the transfer, libcurl does not say so again.
    if code != CURLE_OK { done(hop, code) }
  }

  /// Lets throttled hops go on, in turn, while there are tokens.
  private func refill() {
    guard network.bucket != nil else { return }
    network.bucket?.refill(now: network.clock.monotonic())
    while network.bucket?.isOpen == true, let hop = network.throttled.popFirst() {
      hop.isThrottled = false
      if hop.exchange.hop === hop { unpause(hop) }
    }
  }

  /// - Returns: whether a file has more to read, or ended, so that a place is free.
  private func stepFiles() -> Bool {
    var ended = false
    for exchange in files.values where exchange.file?.isFull == false {
      guard let outcome = exchange.file?.step(exchange.receiver) else { continue }
      finish(exchange, outcome)
      ended = true
    }
    return ended || files.values.contains { $0.file?.isFull == false }
  }

  /// - Returns: whether anything ended, so that places are free.
  private func collect() -> Bool {
    var ended = false
    while let (easy, code) = multi.nextDone() {
      ended = true
      if let hop = hops[easy] { done(hop, code) }
    }
    return ended
  }

  private var sleepTime: Int32 {
    guard let bucket = network.bucket, !network.throttled.isEmpty else { return 60_000 }
    return max(1, bucket.millisecondsToOpen)
  }

  // MARK: Ending

  private func done(_ hop: Hop, _ code: CURLcode) {
    let exchange = hop.exchange
    let result = hop.result(code)
    release(hop)
    switch result {
    case .outcome(let outcome): finish(exchange, outcome)
    case .redirect(let target):
      line.leave(exchange.url.origin)
      exchange.redirects += 1
      exchange.url = target
      line.addFirst(exchange, to: target.origin, order: exchange.id.value)
    }
  }

  /// Takes the hop's handle back; an unfinished transfer loses its connection.
  private func release(_ hop: Hop) {
    multi.remove(hop.handle)
    hops[hop.handle.easy] = nil
    hop.exchange.hop = nil
    idle.append(hop.handle)
  }

  /// Ends an exchange that holds a place and no hop any more.
  private func finish(_ exchange: Exchange, _ outcome: DownloadOutcome) {
    line.leave(exchange.url.origin)
    files[exchange.id] = nil
    exchange.file = nil
    exchanges[exchange.id] = nil
    exchange.end(outcome)
  }

  private func cancel(_ id: DownloadID) {
    guard let exchange = exchanges[id] else { return }
    let outcome = DownloadOutcome.failed(DownloadFailure(.cancelled, "cancelled", isTransient: false))
    if let hop = exchange.hop {
      release(hop)
      finish(exchange, outcome)
    } else if exchange.file != nil {
      finish(exchange, outcome)
    } else {
      exchanges[id] = nil
      exchange.end(outcome)
    }
  }

  private func failRunning(_ row: FailureTable.Row, _ message: String) {
    for hop in Array(hops.values) {
      release(hop)
      finish(hop.exchange, .failed(DownloadFailure(row.code, message, isTransient: row.isTransient)))
    }
  }

  private func cancelAll() {
    for id in exchanges.keys.sorted(by: { $0.value < $1.value }) { cancel(id) }
    line.removeAll()
    idle = []
    multi.close()
  }
}
