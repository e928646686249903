import CurlShim
import DequeModule
import TarnCore
import TarnRuntime

/// The network thread: owns the multi handle, the clients and every exchange.
///
/// A turn: take commands, admit who may run, refill the rates, step files, let libcurl work, end what is done. Only
/// then it sleeps, until a socket, a timer, a rate, the budget or a command wakes it.
final class TransferLoop {
  private let multi: MultiHandle
  private let inbox: Inbox
  private let clock: any Clock
  /// What is shared with other threads; nil for nothing.
  private let budget: TransferBudget?
  /// Where nothing is shared, the circuits of hosts in doubt: those that gave no answer at least once.
  private let circuits: TransferBudget
  private var doubtful: Set<Origin> = []
  private var terms: TransferBudget.Terms
  private var clients: [ClientID: Client] = [:]
  /// The clients in the order in which the shared rate serves them next.
  private var turns: [Client] = []
  private var exchanges: [DownloadID: Exchange] = [:]
  /// Exchanges that wait for a place of the budget.
  private var queued: [TransferBudget.Place: Exchange] = [:]
  /// Running exchanges, by their easy handles and by their ids for files.
  private var hops: [UnsafeMutableRawPointer: Hop] = [:]
  private var files: [DownloadID: Exchange] = [:]
  private var idle: [EasyHandle] = []
  private var urls = SourceURLs()
  /// Monotonic nanoseconds: before, no hop has been silent for long.
  private var silenceDue = UInt64.max

  init(
    _ limits: ConnectionLimits, clock: any Clock, budget: TransferBudget?, multi: MultiHandle, inbox: Inbox
  ) {
    self.multi = multi
    self.inbox = inbox
    self.clock = clock
    self.budget = budget
    circuits = budget ?? TransferBudget.unlimited(clock: clock)
    terms = TransferBudget.Terms(limits: limits, pace: nil)
  }

  /// Returns when the inbox is closed and all receivers have heard their end.
  func run() {
    budget?.join(inbox)
    var isOpen = true
    while isOpen {
      let (commands, closed) = inbox.take()
      isOpen = !closed
      followTerms()
      for command in commands { obey(command) }
      guard isOpen else { break }
      admit()
      let untilRests = budget == nil && doubtful.isEmpty ? nil : circuits.look()
      let untilRates = refill()
      let stepped = stepFiles()
      let code = multi.perform()
      if code != CURLM_OK {
        failRunning(FailureTable.row(CURLE_OUT_OF_MEMORY), "libcurl's multi handle failed")
      }
      let ended = collect()
      for client in turns { client.endTurn() }
      // Only now is known who was silent: what had come before this turn is taken.
      let untilSilence = giveWay()
      if stepped || ended { continue }
      multi.poll(milliseconds: min(untilRests ?? 60_000, throttleTime(untilRates), untilSilence))
    }
    endAll()
  }

  private func obey(_ command: Inbox.Command) {
    switch command {
    case .join(let id, let settings, let mirror): join(id, settings, mirror: mirror)
    case .start(let id, let client, let request, let receiver): begin(id, client, request, receiver)
    case .resume(let id): resume(id)
    case .cancel(let id): if let exchange = exchanges[id] { cancel(exchange) }
    case .prioritize(let id): if let exchange = exchanges[id] { prioritize(exchange) }
    case .setRate(let id, let rate): setRate(id, rate)
    case .leave(let id, let gate):
      leave(id)
      gate.open()
    case .hear(.granted(let place)): if let exchange = queued.removeValue(forKey: place) { start(exchange) }
    case .hear(.refused(let place, let failure)): refuse(place, failure)
    }
  }

  // MARK: Clients

  private func join(_ id: ClientID, _ settings: NetworkSettings, mirror: String) {
    let client = Client(
      id, settings: settings, mirror: mirror, clock: clock, budget: budget, circuits: circuits, terms: terms)
    clients[id] = client
    turns.append(client)
  }

  /// Ends what is the client's, and nothing else.
  private func leave(_ id: ClientID) {
    guard let client = clients.removeValue(forKey: id) else { return }
    turns.removeAll { $0 === client }
    let own = exchanges.values.filter { $0.client === client }
    for exchange in own.sorted(by: { $0.id.value < $1.id.value }) { cancel(exchange) }
    client.line.removeAll()
  }

  private func setRate(_ id: ClientID, _ rate: UInt64?) {
    guard let client = clients[id] else { return }
    client.setRate(rate)
    for hop in hops.values where hop.exchange.client === client { hop.handle.apply(client.lowSpeed) }
  }

  /// Takes up limits and a rate of the budget that have changed.
  private func followTerms() {
    guard let now = budget?.terms, now != terms else { return }
    if now.limits != terms.limits { multi.set(now.limits) }
    if now.pace != terms.pace {
      for client in turns { client.setShared(now.pace) }
      for hop in hops.values { hop.handle.apply(hop.exchange.client.lowSpeed) }
    }
    terms = now
  }

  // MARK: From start to the first hop

  private func begin(
    _ id: DownloadID, _ client: ClientID, _ request: DownloadRequest, _ receiver: any DownloadReceiver
  ) {
    // The inbox takes no start of a client that is not there.
    guard let client = clients[client] else { return }
    let values = [request.ifRange, request.ifNoneMatch, request.ifModifiedSince, request.accept]
    do throws(SourceURL.Refusal) {
      let url = try urls.read(request.url)
      guard values.allSatisfy({ HeaderValue.isSafe($0 ?? "") }) else {
        throw SourceURL.Refusal(reason: "a request header has control characters")
      }
      let exchange = Exchange(id: id, client: client, request: request, receiver: receiver, url: url)
      exchanges[id] = exchange
      if request.isUrgent {
        client.line.addFirst(exchange, to: url.origin, order: 0, as: exchange.kind)
      } else {
        client.line.add(exchange, to: url.origin, order: id.value, as: exchange.kind)
      }
    } catch {
      let failure = DownloadFailure(.urlRefused, "the URL was refused: \(error.reason)", isTransient: false)
      receiver.end(.failed(failure))
    }
  }

  /// Lets waiting exchanges go on while their clients have places.
  private func admit() {
    for client in turns {
      while let taken = client.line.takeNext() {
        let next = taken.element
        // Who was cancelled while waiting is still in line, and who went ahead of others stands there twice, perhaps at a host that has
        // led it on to another one meanwhile.
        if next.isEnded || !next.isWaiting || next.url.origin != taken.origin {
          client.line.leave(taken.origin, taken.hold)
          continue
        }
        next.isWaiting = false
        next.hold = taken.hold
        if taken.origin.scheme == "file" {
          open(next)
        } else {
          enter(next)
        }
      }
    }
  }

  /// Who waits goes ahead of all others: in its client's line, or among those who wait for a shared place.
  private func prioritize(_ exchange: Exchange) {
    exchange.isUrgent = true
    if exchange.isWaiting {
      makeWay(for: exchange)
      exchange.client.line.addFirst(exchange, to: exchange.url.origin, order: 0, as: exchange.kind)
      // Before anything that ends now lets another one in.
      admit()
    } else if let place = exchange.place, queued[place] != nil {
      givePlaceBack(exchange, .cancelled)
      enter(exchange)
    }
  }

  /// The newest of its client and host that waits for a shared place goes back into the line: it counts as one of those
  /// that the client may have there.
  private func makeWay(for exchange: Exchange) {
    let others = queued.values.filter {
      $0.client === exchange.client && $0.url.origin == exchange.url.origin && !$0.isUrgent
    }
    guard let last = others.max(by: { $0.id.value < $1.id.value }) else { return }
    givePlaceBack(last, .cancelled)
    leaveLine(last)
    last.isWaiting = true
    last.client.line.addFirst(last, to: last.url.origin, order: last.id.value, as: last.kind)
  }

  /// Asks the budget for a place; without one only hosts in doubt are asked about.
  private func enter(_ exchange: Exchange) {
    guard budget != nil || doubtful.contains(exchange.url.origin) else { return start(exchange) }
    let client = exchange.client
    let route = Route(origin: exchange.url.origin, proxy: client.settings.proxy)
    let priority: TransferPriority? = exchange.isUrgent ? .urgent : nil
    switch circuits.enter(
      route, mirror: client.mirror, priority: priority, isSmall: exchange.isSmall,
      isStream: exchange.hold == .stream, member: inbox)
    {
    case .granted(let place):
      exchange.place = place
      start(exchange)
    case .waits(let place):
      exchange.place = place
      queued[place] = exchange
    case .refused(let failure): finish(exchange, .failed(failure))
    }
  }

  private func refuse(_ place: TransferBudget.Place, _ failure: DownloadFailure) {
    guard let exchange = queued.removeValue(forKey: place) else { return }
    exchange.place = nil
    finish(exchange, .failed(failure))
  }

  private func open(_ exchange: Exchange) {
    exchange.receiver.placed()
    do {
      exchange.file = try FileExchange(exchange.url, exchange.request)
      files[exchange.id] = exchange
    } catch {
      finish(exchange, .failed(error))
    }
  }

  private func start(_ exchange: Exchange) {
    exchange.receiver.placed()
    exchange.hasAnswer = false
    let seconds = exchange.secondsLeft(now: clock.monotonic())
    guard seconds != 0 else { return fail(exchange, CURLE_OPERATION_TIMEDOUT) }
    let (code, hop) = prepare(exchange, secondsLeft: seconds)
    guard let hop else { return fail(exchange, code) }
    guard multi.add(hop.handle) else { return fail(exchange, CURLE_OUT_OF_MEMORY) }
    exchange.hop = hop
    hops[hop.handle.easy] = hop
    multi.guards.began()
    expectSilence(of: hop)
  }

  /// A hop on an idle handle, or on a new one: after a name that was not found libcurl keeps a handle's buffer over
  /// its reset, and then refuses to be told its size.
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
    let cookies = exchange.cookies.header(for: exchange.url)
    let options =
      client.options
      + CurlOption.hop(
        exchange.url, settings: client.settings, isTrusted: isTrusted,
        isLedAway: exchange.url.origin != exchange.asked, secondsLeft: secondsLeft, cookies: cookies)
    let headers = CurlOption.headers(
      exchange.request, isTrusted: isTrusted, settings: client.settings, cookies: cookies)
    while true {
      let used = idle.popLast()
      guard let handle = used ?? EasyHandle(multi.guards) else { return (CURLE_OUT_OF_MEMORY, nil) }
      let hop = Hop(exchange, handle: handle, guards: multi.guards)
      let code = handle.prepare(options, headers: headers, setup: setup, hop: hop)
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
    hop.goOn()
    expectSilence(of: hop)
    let code = hop.handle.unpause()
    // The callbacks ran inside; when one of them ended the transfer, libcurl does not say so again.
    if code != CURLE_OK { done(hop, code) }
  }

  /// Lets throttled hops go on, a buffer of each client in turn, while both rates let bytes pass.
  ///
  /// - Returns: milliseconds until the shared rate does.
  private func refill() -> Int32 {
    let untilShared = budget?.refill() ?? 0
    let now = clock.monotonic()
    for client in turns { client.refill(now: now) }
    guard turns.contains(where: { !$0.throttled.isEmpty }) else { return untilShared }
    turns.append(turns.removeFirst())
    var goesOn = true
    while goesOn {
      goesOn = false
      for client in turns where client.mayTake {
        guard let hop = client.throttled.popFirst() else { continue }
        goesOn = true
        hop.isThrottled = false
        if hop.exchange.hop === hop { unpause(hop) }
      }
    }
    return untilShared
  }

  /// - Parameter untilShared: milliseconds until the shared rate lets bytes pass.
  private func throttleTime(_ untilShared: Int32) -> Int32 {
    turns.lazy.filter { !$0.throttled.isEmpty }.map { max(1, untilShared, $0.millisecondsToOpen) }.min()
      ?? .max
  }

  private lazy var fileBuffer = [UInt8](repeating: 0, count: CurlLimits.buffer)

  /// - Returns: whether a file has more to read, or ended, so that a place is free.
  private func stepFiles() -> Bool {
    var ended = false
    for exchange in files.values where exchange.file?.isFull == false {
      guard let outcome = exchange.file?.step(exchange.receiver, &fileBuffer) else {
        exchange.client.tookBytes(exchange)
        continue
      }
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

  // MARK: Silence

  private func expectSilence(of hop: Hop) {
    if budget != nil, let at = hop.silentAt() { silenceDue = min(silenceDue, at) }
  }

  /// Ends what has received nothing for a while and keeps out a mirror that has no place at its host, those that are silent
  /// longest first.
  ///
  /// - Returns: milliseconds until it is to be called again, a minute at most.
  private func giveWay() -> Int32 {
    let now = clock.monotonic()
    if let budget, now >= silenceDue {
      let silent = hops.values.filter { hop in hop.silentAt().map { $0 <= now } ?? false }
      let given = silent.sorted { $0.heard < $1.heard }.filter { giveWay($0, budget, now) }
      // They held places of their clients, too.
      if !given.isEmpty { admit() }
      // Whoever comes to wait is seen soon.
      silenceDue =
        hops.values.compactMap { $0.silentAt() }.map { max($0, now + Self.silencePause) }.min() ?? .max
      // Of a file that begins libcurl knows nothing.
      if !given.isEmpty { return 0 }
    }
    return Int32(clamping: min(60_000, (silenceDue - min(now, silenceDue)) / 1_000_000 + 1))
  }

  /// - Returns: false when nobody wants its place, and it goes on.
  private func giveWay(_ hop: Hop, _ budget: TransferBudget, _ now: UInt64) -> Bool {
    // Its own patience, which grows, holds among those that give way again and again.
    let isPatient = hop.silentAt(for: hop.exchange.request.patience).map { $0 > now } ?? true
    guard let place = hop.exchange.place, budget.giveWay(place, isForOthers: isPatient) else { return false }
    hop.exchange.place = nil
    release(hop)
    finish(hop.exchange, .failed(hop.silence))
    return true
  }

  /// Nanoseconds between two looks at what is silent.
  private static let silencePause: UInt64 = 1_000_000_000

  // MARK: Ending

  private func done(_ hop: Hop, _ code: CURLcode) {
    let exchange = hop.exchange
    let result = hop.result(code)
    release(hop, isWell: code == CURLE_OK && !hop.hasConnected)
    switch result {
    case .outcome(let outcome):
      if case .failed(let failure) = outcome, failure.isTransient {
        exchange.client.noteTrouble(of: exchange.url.origin)
      }
      finish(exchange, outcome)
    case .redirect(let target):
      leaveLine(exchange)
      givePlaceBack(exchange, .answered)
      exchange.redirects += 1
      exchange.url = target
      exchange.isWaiting = true
      exchange.client.line.addFirst(
        exchange, to: target.origin, order: exchange.id.value, as: exchange.kind)
    }
  }

  /// Takes the hop's handle back; an unfinished transfer loses its connection.
  private func release(_ hop: Hop, isWell: Bool = false) {
    multi.remove(hop.handle)
    multi.guards.ended()
    if !isWell { hop.handle.forgetSetup() }
    hops[hop.handle.easy] = nil
    hop.exchange.hop = nil
    idle.append(hop.handle)
  }

  /// Ends an exchange that holds a place of its client and no hop any more.
  private func finish(_ exchange: Exchange, _ outcome: DownloadOutcome) {
    leaveLine(exchange)
    givePlaceBack(exchange, judge(exchange, outcome), cause: outcome.cause)
    files[exchange.id] = nil
    exchange.file = nil
    exchanges[exchange.id] = nil
    exchange.end(outcome)
  }

  private func leaveLine(_ exchange: Exchange) {
    if let hold = exchange.hold.take() { exchange.client.line.leave(exchange.url.origin, hold) }
  }

  private func givePlaceBack(
    _ exchange: Exchange, _ outcome: CircuitBreaker.Outcome, cause: String? = nil
  ) {
    guard let place = exchange.place else { return }
    exchange.place = nil
    queued[place] = nil
    circuits.leave(place, outcome, cause: cause)
  }

  /// What the end of an exchange says of its host. Where nothing is shared each file's own retries do for a host that answers, also
  /// with failures of its own: only one that does not is left alone.
  private func judge(_ exchange: Exchange, _ outcome: DownloadOutcome) -> CircuitBreaker.Outcome {
    let said = CircuitBreaker.Outcome(outcome)
    guard budget == nil else { return said }
    switch said {
    case .transportFailed where !exchange.hasAnswer, .harmed:
      doubtful.insert(exchange.url.origin)
      return said
    case .cancelled: return said
    case .transportFailed, .answered, .asked: return .answered
    }
  }

  private func cancel(_ exchange: Exchange) {
    let outcome = DownloadOutcome.failed(DownloadFailure(.cancelled, "cancelled", isTransient: false))
    if let hop = exchange.hop {
      release(hop)
      finish(exchange, outcome)
    } else if exchange.file != nil || exchange.place != nil {
      finish(exchange, outcome)
    } else {
      exchanges[exchange.id] = nil
      exchange.end(outcome)
    }
  }

  private func failRunning(_ row: FailureTable.Row, _ message: String) {
    for hop in Array(hops.values) {
      release(hop)
      finish(hop.exchange, .failed(DownloadFailure(row.code, message, isTransient: row.isTransient)))
    }
  }

  private func endAll() {
    for id in clients.keys.sorted(by: { $0.value < $1.value }) { leave(id) }
    budget?.leave(inbox)
    idle = []
    multi.close()
  }
}
