import CurlShim
import DequeModule
import TarnCore
import TarnRuntime

/// The network thread: owns the sources, the clients and every exchange.
///
/// In each turn it takes commands, starts exchanges with a place, refills the rates, lets each source work, and ends what is done.
/// Then it sleeps until a socket, a timer, a rate, the budget or a command wakes it.
final class TransferLoop {
  private let servers: any SourceProtocol
  private let files: any SourceProtocol
  /// All sources. None has a turn without being in this list.
  private let sources: [any SourceProtocol]
  /// The handle in whose poll the thread sleeps (see `SourceProtocol`).
  private let multi: MultiHandle
  private let inbox: Inbox
  private let clock: any Clock
  private let budget: TransferBudget
  private var terms: TransferBudget.Terms
  private var clients: [ClientID: Client] = [:]
  /// The clients in the order in which the shared rate serves them next.
  private var turns: [Client] = []
  private var exchanges: [DownloadID: Exchange] = [:]
  /// Exchanges that wait for a place.
  private var queued: [TransferBudget.Place: Exchange] = [:]
  private var urls = SourceURLs()
  private let privateOrigins = PrivateOrigins()
  /// The earliest time at which a hop can have been silent for long.
  private var silenceDue = Instant.distantFuture

  init(
    _ limits: PlaceLimits, clock: any Clock, budget: TransferBudget, multi: MultiHandle, inbox: Inbox
  ) {
    servers = HTTPSource(multi, clock: clock)
    files = FileSource()
    sources = [servers, files]
    self.multi = multi
    self.inbox = inbox
    self.clock = clock
    self.budget = budget
    terms = TransferBudget.Terms(limits: limits, pace: nil)
  }

  /// Runs until the inbox is closed and all receivers have their outcome.
  func run() {
    var isOpen = true
    while isOpen {
      let (commands, closed) = inbox.drain()
      isOpen = !closed
      followTerms()
      for command in commands { obey(command) }
      guard isOpen else { break }
      let untilRests = budget.change { $0.look() }?.milliseconds
      let untilRates = refill()
      var isBusy = false
      for source in sources where source.step(ended) { isBusy = true }
      for client in turns { client.endTurn() }
      // Only now is it known who was silent: what had come before this turn is taken.
      let untilSilence = giveWay()
      if isBusy { continue }
      multi.poll(milliseconds: min(untilRests ?? 60_000, throttleTime(untilRates), untilSilence))
    }
    endAll()
  }

  private func obey(_ command: Inbox.Command) {
    switch command {
    case .join(let id, let settings, let mirror, let cookies): join(id, settings, mirror: mirror, cookies)
    case .start(let id, let client, let request, let receiver): begin(id, client, request, receiver)
    case .resume(let id): resume(id)
    case .cancel(let id): if let exchange = exchanges[id] { cancel(exchange) }
    case .prioritize(let id): if let exchange = exchanges[id] { prioritize(exchange) }
    case .setRate(let id, let rate): setRate(id, rate)
    case .leave(let id, let gate):
      leave(id)
      gate.open()
    case .hear(let notice): hear(notice)
    }
  }

  // MARK: Clients

  private func join(_ id: ClientID, _ settings: NetworkSettings, mirror: String, _ cookies: HostCookies) {
    let client = Client(
      id, settings: settings, mirror: mirror, clock: clock, budget: budget, pace: terms.pace,
      cookies: cookies, privateOrigins: privateOrigins)
    clients[id] = client
    turns.append(client)
  }

  /// Ends the client's exchanges and no others.
  private func leave(_ id: ClientID) {
    guard let client = clients.removeValue(forKey: id) else { return }
    turns.removeAll { $0 === client }
    let own = exchanges.values.filter { $0.client === client }
    for exchange in own.sorted(by: { $0.id.value < $1.id.value }) { cancel(exchange) }
    budget.change { $0.close(client.number) }
  }

  private func setRate(_ id: ClientID, _ rate: UInt64?) {
    guard let client = clients[id] else { return }
    client.setRate(rate)
    for source in sources { source.applyLowSpeed(of: client) }
  }

  /// Applies changed limits and rates of the budget.
  private func followTerms() {
    guard budget.isShared else { return }
    let now = budget.terms
    guard now != terms else { return }
    if now.limits != terms.limits {
      for source in sources { source.set(now.limits) }
    }
    if now.pace != terms.pace {
      for client in turns { client.setShared(now.pace) }
      for source in sources { source.applyLowSpeed(of: nil) }
    }
    terms = now
  }

  // MARK: From start to the first hop

  private func begin(
    _ id: DownloadID, _ client: ClientID, _ request: DownloadRequest, _ receiver: any DownloadReceiver
  ) {
    // The inbox accepts no start of a client that is not there.
    guard let client = clients[client] else { return }
    let values = [request.ifRange, request.ifNoneMatch, request.ifModifiedSince, request.accept]
    do throws(SourceURL.Refusal) {
      let url = try urls.read(request.url)
      guard values.allSatisfy({ HeaderValue.isSafe($0 ?? "") }) else {
        throw SourceURL.Refusal(reason: "a request header has control characters")
      }
      let exchange = Exchange(id: id, client: client, request: request, receiver: receiver, url: url)
      exchanges[id] = exchange
      enter(exchange)
    } catch {
      let failure = DownloadFailure(.urlRefused, "the URL was refused: \(error.reason)", isTransient: false)
      receiver.end(.failed(failure))
    }
  }

  /// Asks the budget for a place. A redirected exchange comes before those that have not begun.
  private func enter(_ exchange: Exchange) {
    let client = exchange.client
    let request = BudgetState.Request(
      mirror: client.mirror, route: Route(origin: exchange.url.origin, proxy: client.settings.proxy),
      client: client.number, kind: exchange.kind, isUrgent: exchange.isUrgent)
    let place = budget.change { $0.enter(request, order: exchange.firstPlace, member: inbox) }
    exchange.place = place
    exchange.firstPlace = exchange.firstPlace ?? place
    exchange.enter(.waiting)
    queued[place] = exchange
  }

  /// Moves a waiting exchange ahead of all others of its client.
  private func prioritize(_ exchange: Exchange) {
    exchange.isUrgent = true
    guard exchange.stage == .waiting else { return }
    givePlaceBack(exchange, .cancelled)
    enter(exchange)
  }

  private func hear(_ notice: BudgetNotice) {
    switch notice {
    case .granted(let place): if let exchange = queued.removeValue(forKey: place) { start(exchange) }
    case .refused(let place, let failure):
      guard let exchange = queued.removeValue(forKey: place) else { return }
      exchange.place = nil
      finish(exchange, .failed(failure))
    // `run` determines how long.
    case .held: break
    }
  }

  private func start(_ exchange: Exchange) {
    exchange.receiver.placed()
    exchange.enter(.running)
    if let outcome = source(of: exchange).open(exchange) {
      finish(exchange, outcome)
    } else {
      expectSilence(of: exchange)
    }
  }

  private func source(of exchange: Exchange) -> any SourceProtocol {
    switch exchange.url.origin.scheme {
    case .http, .https: servers
    case .file: files
    }
  }

  // MARK: Running

  private func resume(_ id: DownloadID) {
    guard let exchange = exchanges[id] else { return }
    source(of: exchange).resume(exchange)
    expectSilence(of: exchange)
  }

  /// Lets throttled transfers continue as far as the rates let bytes pass.
  ///
  /// - Returns: the milliseconds until the shared rate lets bytes pass.
  private func refill() -> Int32 {
    let untilShared = budget.isShared ? budget.refill() : 0
    let now = clock.monotonic()
    for client in turns { client.refill(now: now) }
    guard turns.contains(where: { !$0.throttled.isEmpty }) else { return untilShared }
    turns.append(turns.removeFirst())
    goOn()
    if budget.isShared { silenceDue = min(silenceDue, earliestSilence) }
    return untilShared
  }

  /// Continues throttled transfers, one buffer of each client in turn, while both rates let bytes pass.
  private func goOn() {
    var goesOn = true
    while goesOn {
      goesOn = false
      for client in turns where client.mayTake {
        guard let exchange = client.throttled.popFirst() else { continue }
        goesOn = true
        source(of: exchange).goOn(exchange)
      }
    }
  }

  /// - Parameter untilShared: the milliseconds until the shared rate lets bytes pass.
  private func throttleTime(_ untilShared: Int32) -> Int32 {
    turns.lazy.filter { !$0.throttled.isEmpty }.map { max(1, untilShared, $0.millisecondsToOpen) }.min()
      ?? .max
  }

  // MARK: Silence

  private func expectSilence(of exchange: Exchange) {
    guard budget.isShared, let since = source(of: exchange).silentSince(exchange) else { return }
    silenceDue = min(silenceDue, since + Self.shortestSilence)
  }

  /// The earliest time at which an open exchange will have been silent for long, if nothing comes.
  private var earliestSilence: Instant {
    sources.flatMap { $0.silences }.map { $0.since + Self.shortestSilence }.min() ?? .distantFuture
  }

  /// Ends exchanges that have received nothing for a while and keep out a mirror without a place at their host, the longest silence
  /// first.
  ///
  /// - Returns: the milliseconds until the next call, at most a minute.
  private func giveWay() -> Int32 {
    let now = clock.monotonic()
    if budget.isShared, now >= silenceDue {
      let silent = sources.flatMap { $0.silences }.filter { $0.since + Self.shortestSilence <= now }
      let given = silent.sorted { $0.since < $1.since }.filter { giveWay($0, now) }
      // A mirror that comes to wait is noticed soon.
      silenceDue = max(earliestSilence, now + Self.silencePause)
      // libcurl knows nothing yet of the exchange that gets the place.
      if !given.isEmpty { return 0 }
    }
    return min(60_000, silenceDue.remaining(at: now).milliseconds)
  }

  /// - Returns: false when nobody wants its place, so that it continues.
  private func giveWay(_ silence: Silence, _ now: Instant) -> Bool {
    let (exchange, since) = silence
    // The request's own patience, which grows, applies among mirrors that give way again and again.
    let isPatient = since + .seconds(max(0, exchange.request.patience)) > now
    guard let place = exchange.place,
      budget.change({ $0.giveWay(place, isForOthers: isPatient) })
    else { return false }
    exchange.place = nil
    let host = Printable.escape(exchange.url.hostAndPort)
    let seconds = now.elapsed(since: since).components.seconds
    let reason = "\(host) sent nothing for \(seconds) s, and another mirror waited for a connection"
    finish(exchange, .failed(DownloadFailure(.gaveWay, reason, isTransient: true)))
    return true
  }

  /// The silence from which on an exchange may give way.
  private static let shortestSilence = Duration.seconds(DownloadRequest.shortestPatience)

  /// The time between two looks for silent hops.
  private static let silencePause = Duration.seconds(1)

  // MARK: Ending

  private func ended(_ exchange: Exchange, _ end: SourceEnd) {
    switch end {
    case .outcome(let outcome):
      // The heads of answers were told before.
      if case .failed = outcome, CircuitBreaker.Outcome(outcome).isFailure, let place = exchange.place {
        budget.change { $0.meetTrouble(place) }
      }
      finish(exchange, outcome)
    case .redirect(let target):
      givePlaceBack(exchange, .answered)
      exchange.redirects.append(exchange.url.text)
      exchange.url = target
      enter(exchange)
    }
  }

  private func finish(_ exchange: Exchange, _ outcome: DownloadOutcome) {
    givePlaceBack(exchange, judge(exchange, outcome), cause: outcome.cause)
    source(of: exchange).close(exchange)
    exchanges[exchange.id] = nil
    exchange.end(outcome)
  }

  private func givePlaceBack(
    _ exchange: Exchange, _ outcome: CircuitBreaker.Outcome, cause: String? = nil
  ) {
    guard let place = exchange.place else { return }
    exchange.place = nil
    queued[place] = nil
    budget.change { $0.leave(place, outcome, cause: cause) }
  }

  /// Returns what the end of an exchange says about its host. Where nothing is shared, each file's own retries suffice for a host
  /// that answers, even with failures. Only a host that does not answer is left alone.
  private func judge(_ exchange: Exchange, _ outcome: DownloadOutcome) -> CircuitBreaker.Outcome {
    let said = CircuitBreaker.Outcome(outcome)
    guard exchange.url.origin.scheme.isRemote else { return .cancelled }
    guard !budget.isShared else { return said }
    switch said {
    case .harmed, .cancelled: return said
    case .transportFailed, .connectionLost: return exchange.hasAnswer ? .answered : said
    case .answered, .asked: return .answered
    }
  }

  private func cancel(_ exchange: Exchange) {
    finish(exchange, .failed(DownloadFailure(.cancelled, "cancelled", isTransient: false)))
  }

  private func endAll() {
    for id in clients.keys.sorted(by: { $0.value < $1.value }) { leave(id) }
    for source in sources { source.close() }
  }
}
