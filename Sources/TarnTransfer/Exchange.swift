import CurlShim
import Glibc
import TarnCore
import TarnRuntime

extension DownloadRequest {
  /// True when it may have a place that is kept for small files. Urgent requests may have one up to a larger size.
  var isSmall: Bool {
    guard let expected else { return isUrgent }
    return expected <= (isUrgent ? TransferBudget.largestUrgent : TransferBudget.largestSmall)
  }

  /// The largest file of known size, in bytes, that is transferred in a moment and needs little memory.
  static let largestShort: UInt64 = 64 << 10
}

/// An exchange from `start` to `end`: a chain of hops. Network thread only.
final class Exchange {
  enum Stage {
    /// Waits for a place, at first and after each redirect.
    case waiting
    /// A source delivers the bytes.
    case running
    case ended
  }

  let id: DownloadID
  let client: Client
  let request: DownloadRequest
  let receiver: any DownloadReceiver
  /// Its place in the budget, or in the queue for one.
  var place: TransferBudget.Place?
  /// The first place that it had.
  var firstPlace: TransferBudget.Place?
  private(set) var stage = Stage.waiting
  /// True when it goes ahead of others wherever it waits.
  var isUrgent: Bool
  /// The URL of the hop that runs or waits.
  var url: SourceURL
  /// The origin of the first hop.
  let asked: Origin
  /// True when a redirect led to another origin.
  var isLedAway: Bool { url.origin != asked }
  /// The URLs of the redirects so far, and the cookies that their servers set.
  var redirects: [String] = []
  var cookies = ChainCookies()
  /// True when a redirect has changed the method to GET.
  var becomesGet = false
  /// True when the host of the running hop has sent a head.
  var hasAnswer = false
  /// The end of the request's time, set when the first hop starts.
  var deadline: Instant?
  /// The running hop, where the source is `HTTPSource`.
  var hop: Hop?
  /// True when it took bytes in this turn.
  var isFresh = false

  init(
    id: DownloadID, client: Client, request: DownloadRequest, receiver: any DownloadReceiver, url: SourceURL
  ) {
    self.id = id
    self.client = client
    self.request = request
    self.receiver = receiver
    self.url = url
    asked = url.origin
    isUrgent = request.isUrgent
  }

  /// The kind of place that it needs.
  var kind: TransferKind {
    guard let expected = request.expected else { return request.isUrgent ? .short : .unknown }
    guard request.isSmall else { return .large }
    return expected <= DownloadRequest.largestShort ? .short : .small
  }

  /// Changes the stage, unless the exchange has ended.
  func enter(_ next: Stage) {
    if stage != .ended { stage = next }
  }

  /// Tells the receiver the outcome, once.
  func end(_ outcome: DownloadOutcome) {
    guard stage != .ended else { return }
    stage = .ended
    receiver.end(outcome)
  }

  /// Returns the seconds left of the request's time, rounded up; `nil` for no limit. The first call starts the time.
  func secondsLeft(now: Instant) -> Int? {
    guard let seconds = request.totalTimeout else { return nil }
    let deadline = self.deadline ?? now + .seconds(max(1, seconds))
    self.deadline = deadline
    return Int(deadline.remaining(at: now).wholeSeconds)
  }
}

/// One request and its response. It takes what libcurl reads and decides what it means. Network thread only.
final class Hop {
  enum Taken {
    case goOn
    case pause
    /// libcurl ends the transfer with an error; `result` knows the real reason.
    case stop
  }

  private enum Stage {
    case head
    case body
    /// The head was the answer. The body is read only to keep the connection.
    case dropping
    case redirecting(SourceURL)
  }

  let exchange: Exchange
  let handle: EasyHandle
  private let client: Client
  private let guards: FloodGuard
  private let route: Route
  /// The number of floods of its route when it began.
  private let floods: Int
  private var reader: HeadReader
  private var stage = Stage.head
  private var failure: DownloadFailure?
  /// The body bytes given to the receiver, or dropped.
  private var count: UInt64 = 0
  /// True when more came than a short file has.
  private var isLong = false
  /// True while the receiver has no room.
  private(set) var isFull = false
  var isThrottled = false
  /// When it began, last received something, or last continued after a pause here.
  private var heard: Instant
  private var sockets = (opened: 0, refused: "")
  /// The sockets that were opened and not looked at since. libcurl may have closed some, and their numbers may have been reused.
  private var fresh: [curl_socket_t] = []
  /// The errno of the last socket that the kernel refused; 0 for none.
  private var socketError: Int32 = 0

  init(_ exchange: Exchange, handle: EasyHandle, guards: FloodGuard) {
    self.exchange = exchange
    self.handle = handle
    self.guards = guards
    client = exchange.client
    route = Route(sharedBy: exchange.url.origin, proxy: client.settings.proxy)
    floods = guards.floods(of: route)
    reader = HeadReader(
      url: exchange.url.text, dates: client.dates, keepsFields: exchange.request.keepsFields)
    heard = client.clock.monotonic()
  }

  /// True when it made a connection of its own, perhaps because the previous one was dead.
  var hasConnected: Bool { sockets.opened > 0 }

  // MARK: Silence

  /// Continues after a pause here.
  func goOn() { heard = client.clock.monotonic() }

  /// When it last received something; `nil` while it is paused here.
  var silentSince: Instant? {
    guard !isFull, !isThrottled else { return nil }
    return heard
  }

  // MARK: Callbacks

  /// - Returns: false to end the transfer.
  func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    heard = client.clock.monotonic()
    switch reader.read(line, now: client.clock.time) {
    case .more: return true
    case .failed(let failure): return fail(failure)
    case .complete:
      guards.took(reader.bytes, from: route)
      if !isDocument { narrowReceiveBuffers() }
      exchange.hasAnswer = true
      tell(reader.head)
      if client.settings.keepsCookies {
        client.cookies.store(reader.cookies, of: exchange.url, client.clock.time)
      }
      var head = reader.head
      if exchange.request.keepsFields { head.redirects = exchange.redirects }
      return takeHead(head)
    }
  }

  /// Tells the budget of an answer at once, since a body may take hours.
  private func tell(_ head: ResponseHead) {
    guard let place = exchange.place else { return }
    client.budget.change { budget in
      if head.isLife {
        // The connections of a host that another one redirects to are not the place's.
        let isNew = hasConnected && !exchange.isLedAway
        budget.answered(place, isStream: reader.isStream, isNew: isNew)
      } else {
        budget.meetTrouble(place)
      }
    }
  }

  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Taken {
    heard = client.clock.monotonic()
    guards.took(bytes.count, from: route)
    guard case .body = stage else {
      count += UInt64(bytes.count)
      return count <= CurlLimits.drained ? .goOn : .stop
    }
    guard count + UInt64(bytes.count) <= exchange.request.limit else {
      _ = fail(tooLarge)
      return .stop
    }
    guard client.mayTake else {
      isThrottled = true
      client.throttled.append(exchange)
      return .pause
    }
    switch exchange.receiver.receive(bytes) {
    case .taken:
      count += UInt64(bytes.count)
      client.spend(bytes.count)
      client.tookBytes(exchange)
      if count > DownloadRequest.largestShort, !isLong, let place = exchange.place {
        isLong = true
        client.budget.change { $0.outgrow(place) }
      }
      return .goOn
    case .full:
      isFull = true
      return .pause
    case .abort:
      _ = fail(DownloadFailure(.refusedByReceiver, "the receiver gave up", isTransient: false))
      return .stop
    }
  }

  /// Makes the socket for an address of the resolver, if the address is allowed.
  func openSocket(to address: UnsafePointer<sockaddr>, _ kind: curl_sockaddr) -> curl_socket_t {
    // Behind a proxy the address is the proxy's, which the user chose.
    let isFree = client.settings.allowsPrivateAddresses || client.settings.proxy != nil
    if !isFree, AddressRule.isPrivate(address, length: Int(kind.addrlen)), !mayAskPrivately() {
      sockets.refused = AddressRule.text(address, length: Int(kind.addrlen))
      return -1
    }
    sockets.opened += 1
    let made = socket(kind.family, kind.socktype | Int32(SOCK_CLOEXEC.rawValue), kind.protocol)
    guard made >= 0 else {
      socketError = errno
      return made
    }
    fresh.append(made)
    guards.opened(made, to: route)
    return made
  }

  /// Returns whether the exchange was for a private address from the beginning, and may reach it.
  private func mayAskPrivately() -> Bool {
    guard client.settings.allowsAskedPrivateAddresses else { return false }
    if !exchange.isLedAway { client.privateOrigins.add(exchange.asked) }
    return client.privateOrigins.contains(exchange.asked)
  }

  /// True for a feed or a listing: no other process needs what was received of it.
  private var isDocument: Bool { exchange.request.encoding == .gzipAsked }

  /// Makes the kernel hold less of what a near peer sends. The hop that opened a connection adjusts it once, since libcurl does not
  /// name the socket of a running transfer (CURLINFO_ACTIVESOCKET(3)). It does so before the body of a file, and after the body of
  /// a document. With a window of two segments, as large as they are on loopback, the last one may wait for 40 ms.
  private func narrowReceiveBuffers() {
    for number in fresh where (0..<CurlLimits.nearestRoundTrip).contains(tarn_curl_round_trip(number)) {
      tarn_curl_set_receive_buffer(number, CurlLimits.receiveBuffer)
    }
    fresh = []
  }

  // MARK: Pausing

  /// Tells that the receiver has room again.
  ///
  /// - Returns: false when the hop was not waiting for room.
  func clearFull() -> Bool {
    defer { isFull = false }
    return isFull
  }

  // MARK: Decisions

  private func takeHead(_ head: ResponseHead) -> Bool {
    if RedirectRule.isRedirect(head.status), let location = reader.location,
      !(exchange.request.keepsBody && RedirectRule.dropsBody(head.status))
    {
      return redirect(to: location)
    }
    if (200..<300).contains(head.status), exchange.request.encoding == .refused,
      let encoding = head.contentEncoding
    {
      return fail(
        DownloadFailure(
          .contentEncoding, "\(place) sent the encoding \(Printable.escape(encoding)) without being asked",
          isTransient: false))
    }
    switch exchange.receiver.begin(head) {
    case .headOnly:
      stage = .dropping
      return isWorthDraining(head)
    case .accept:
      stage = .body
      if let length = head.contentLength, head.status != 304, length > exchange.request.limit {
        return fail(tooLarge)
      }
      return true
    }
  }

  private func redirect(to location: String) -> Bool {
    let target: SourceURL
    do throws(SourceURL.Refusal) {
      target = try exchange.url.resolving(location)
    } catch {
      return fail(refusedRedirect("to a URL that was refused, \(error.reason)"))
    }
    if let refusal = RedirectRule.refusal(from: exchange.url.origin, to: target.origin) {
      return fail(refusedRedirect(refusal))
    }
    guard exchange.redirects.count < RedirectRule.mostHops else {
      return fail(
        DownloadFailure(
          .tooManyRedirects, "more than \(RedirectRule.mostHops) redirects, the last by \(place)",
          isTransient: false))
    }
    exchange.cookies.store(
      reader.cookies, from: exchange.url, now: client.clock.time)
    if RedirectRule.dropsBody(reader.head.status) { exchange.becomesGet = true }
    stage = .redirecting(target)
    return isWorthDraining(reader.head)
  }

  private func isWorthDraining(_ head: ResponseHead) -> Bool {
    head.status == 304 || (head.contentLength ?? 0) <= CurlLimits.drained
  }

  private func refusedRedirect(_ why: String) -> DownloadFailure {
    DownloadFailure(.redirectRefused, "\(place) redirects \(why)", isTransient: false)
  }

  private var tooLarge: DownloadFailure {
    DownloadFailure(
      .tooLarge, "\(place) sends more than the \(Units.count(exchange.request.limit, "byte")) expected",
      isTransient: false)
  }

  private var place: String { Printable.escape(exchange.url.hostAndPort) }

  /// - Returns: false, for the callback.
  private func fail(_ failure: DownloadFailure) -> Bool {
    self.failure = failure
    return false
  }

  /// Returns the failure that libcurl's code does not show.
  private func unreadable(_ code: CURLcode) -> DownloadFailure? {
    // libcurl may take the end of such a connection for the end of a stream that was broken off before.
    if guards.floods(of: route) != floods, code != CURLE_OK || reader.head.contentLength != count {
      return DownloadFailure(
        .flooded, "\(place) sent \(Units.show(FloodGuard.mostWasted)) and more without any content",
        isTransient: false)
    }
    // libcurl treats a line beyond its own limit like a lack of memory.
    if case .head = stage, code == CURLE_OUT_OF_MEMORY, handle.hasHeard {
      return DownloadFailure(
        .headersTooLarge, "a header line of more than \(CurlLimits.headerLine >> 10) KiB came from \(place)",
        isTransient: false)
    }
    return nil
  }

  /// Returns the result of the hop when libcurl has finished it.
  func result(_ code: CURLcode) -> SourceEnd {
    // After a failure libcurl has closed the connection.
    if code == CURLE_OK { narrowReceiveBuffers() }
    if let failure { return .outcome(.failed(failure)) }
    if let failure = unreadable(code) { return .outcome(.failed(failure)) }
    switch stage {
    case .redirecting(let target): return .redirect(target)
    case .dropping: return .outcome(.complete(reader.head))
    case .body where code == CURLE_OK: return .outcome(.complete(reader.head))
    case .head where code == CURLE_COULDNT_CONNECT && sockets.opened == 0 && !sockets.refused.isEmpty:
      return .outcome(
        .failed(
          DownloadFailure(
            .addressRefused, "\(place) is at \(sockets.refused), a private or local address",
            isTransient: false)))
    case .head where code == CURLE_COULDNT_CONNECT && [EMFILE, ENFILE].contains(socketError):
      return .outcome(
        .failed(
          DownloadFailure(
            .tooManyOpenFiles,
            "no connection to \(place): too many open files; raise the limit (ulimit -n)",
            isTransient: true)))
    case .head, .body:
      let code = code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code
      return .outcome(
        .failed(
          FailureTable.failure(
            code, host: exchange.url.hostAndPort, detail: handle.detail, errno: handle.errno,
            isProxied: client.settings.proxy != nil)))
    }
  }
}
