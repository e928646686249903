import CurlShim
import TarnCore
import TarnRuntime

/// Fetches from servers with libcurl. It makes one hop at a time: the loop asks again for the target of a redirect.
final class HTTPSource: SourceProtocol {
  private let multi: MultiHandle
  private let clock: any Clock
  /// The running hops by their easy handles.
  private var hops: [UnsafeMutableRawPointer: Hop] = [:]
  private var idle: [EasyHandle] = []
  /// Hops that ended while their receivers took held-back bytes. libcurl does not name them again.
  private var done: [(hop: Hop, code: CURLcode)] = []

  init(_ multi: MultiHandle, clock: any Clock) {
    self.multi = multi
    self.clock = clock
  }

  func close() {
    idle = []
    multi.close()
  }

  // MARK: One exchange

  func open(_ exchange: Exchange) -> DownloadOutcome? {
    exchange.hasAnswer = false
    let seconds = exchange.secondsLeft(now: clock.monotonic())
    guard seconds != 0 else { return Self.failure(exchange, CURLE_OPERATION_TIMEDOUT) }
    let (code, hop) = prepare(exchange, secondsLeft: seconds)
    guard let hop else { return Self.failure(exchange, code) }
    guard multi.add(hop.handle) else { return Self.failure(exchange, CURLE_OUT_OF_MEMORY) }
    exchange.hop = hop
    hops[hop.handle.easy] = hop
    multi.guards.began()
    return nil
  }

  /// Makes a hop on an idle handle, or on a new one. After a name that was not found, libcurl keeps a handle's buffer over a reset,
  /// and then refuses a new buffer size.
  private func prepare(_ exchange: Exchange, secondsLeft: Int?) -> (CURLcode, Hop?) {
    let client = exchange.client
    let isTrusted = exchange.url.origin == client.trusted
    let setup = secondsLeft == nil ? HopSetup(exchange, isTrusted: isTrusted) : nil
    if let setup, let handle = idle.last {
      let hop = Hop(exchange, handle: handle, guards: multi.guards)
      if handle.prepareAgain(setup, url: exchange.url.text, hop: hop) {
        idle.removeLast()
        return (CURLE_OK, hop)
      }
    }
    let chain = exchange.cookies.header(for: exchange.url)
    let cookies =
      client.settings.keepsCookies ? client.cookies.header(for: exchange.url, with: chain) : chain
    let isLedAway = exchange.isLedAway
    let options =
      client.options
      + CurlOption.hop(
        exchange.url, settings: client.settings, isTrusted: isTrusted, isLedAway: isLedAway,
        secondsLeft: secondsLeft, cookies: cookies)
      + CurlOption.own(exchange.request, of: exchange.url, isGet: exchange.becomesGet, client.settings)
    let headers = CurlOption.headers(
      exchange.request, isTrusted: isTrusted, isLedAway: isLedAway, settings: client.settings,
      cookies: cookies)
    while true {
      let used = idle.popLast()
      guard let handle = used ?? EasyHandle(multi.guards) else { return (CURLE_OUT_OF_MEMORY, nil) }
      let hop = Hop(exchange, handle: handle, guards: multi.guards)
      let code = handle.prepare(options, headers: headers, setup: setup, hop: hop)
      if code == CURLE_OK { return (code, hop) }
      if used == nil { return (code, nil) }
    }
  }

  private static func failure(_ exchange: Exchange, _ code: CURLcode) -> DownloadOutcome {
    .failed(FailureTable.failure(code, host: exchange.url.hostAndPort, detail: "", errno: 0))
  }

  func resume(_ exchange: Exchange) {
    if let hop = exchange.hop, hop.clearFull(), !hop.isThrottled { unpause(hop) }
  }

  private func unpause(_ hop: Hop) {
    hop.goOn()
    let code = hop.handle.unpause()
    // The callbacks ran inside the call. When one of them ended the transfer, libcurl does not report it again.
    if code != CURLE_OK { done.append((hop, code)) }
  }

  /// Closes an exchange. An unfinished transfer loses its connection.
  func close(_ exchange: Exchange) {
    if let hop = exchange.hop { release(hop) }
  }

  /// Releases the hop and keeps its handle.
  private func release(_ hop: Hop, isWell: Bool = false) {
    multi.remove(hop.handle)
    multi.guards.ended()
    if !isWell { hop.handle.forgetSetup() }
    hops[hop.handle.easy] = nil
    hop.exchange.hop = nil
    idle.append(hop.handle)
  }

  // MARK: All of them

  func step(_ ended: (Exchange, SourceEnd) -> Void) -> Bool {
    var isOver = multi.perform() != CURLM_OK
    if isOver { failAll(ended) }
    while let (hop, code) = nextDone() {
      isOver = true
      let result = hop.result(code)
      release(hop, isWell: code == CURLE_OK && !hop.hasConnected)
      ended(hop.exchange, result)
    }
    return isOver
  }

  private func nextDone() -> (Hop, CURLcode)? {
    while let (hop, code) = done.popLast() {
      if hop.exchange.hop === hop { return (hop, code) }
    }
    while let (easy, code) = multi.nextDone() {
      if let hop = hops[easy] { return (hop, code) }
    }
    return nil
  }

  private func failAll(_ ended: (Exchange, SourceEnd) -> Void) {
    let row = FailureTable.row(CURLE_OUT_OF_MEMORY)
    for hop in Array(hops.values) {
      release(hop)
      let failure = DownloadFailure(
        row.code, "libcurl's multi handle failed", isTransient: row.isTransient)
      ended(hop.exchange, .outcome(.failed(failure)))
    }
  }

  func set(_ limits: PlaceLimits) { multi.set(limits) }

  // MARK: Rates

  func applyLowSpeed(of client: Client?) {
    for hop in hops.values where client == nil || hop.exchange.client === client {
      hop.handle.apply(hop.exchange.client.lowSpeed)
    }
  }

  func goOn(_ exchange: Exchange) {
    guard let hop = exchange.hop, hop.isThrottled else { return }
    hop.isThrottled = false
    unpause(hop)
  }

  // MARK: Silence

  func silentSince(_ exchange: Exchange) -> Instant? { exchange.hop?.silentSince }

  var silences: [Silence] {
    hops.values.compactMap { hop in hop.silentSince.map { (exchange: hop.exchange, since: $0) } }
  }
}
