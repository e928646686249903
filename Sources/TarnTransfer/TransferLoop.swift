import CurlShim
import TarnCore
import TarnRuntime

/// The network thread: owns the sources, the clients and every exchange.
///
/// A turn: take commands, admit who may run, refill the rates, let each source work, end what is done. Only then it sleeps, until a
/// socket, a timer, a rate, the budget or a command wakes it.
final class TransferLoop {
  private let servers: HTTPSource
  private let sources: [any SourceProtocol]
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
  private var urls = SourceURLs()
  /// Before, no hop has been silent for long.
  private var silenceDue = Instant.distantFuture

  init(
    _ limits: ConnectionLimits, clock: any Clock, budget: TransferBudget?, circuits: TransferBudget,
    multi: MultiHandle, inbox: Inbox
  ) {
    servers = HTTPSource(multi, clock: clock)
    sources = [servers, FileSource()]
    self.inbox = inbox
    self.clock = clock
    self.budget = budget
    self.circuits = circuits
    terms = TransferBudget.Terms(limits: limits, pace: nil)
  }

  /// Returns when the inbox is closed and all receivers have heard their end.
  func run() {
    budget?.join(inbox)
    var isOpen = true
    while isOpen {
      let (commands, closed) = inbox.drain()
      isOpen = !closed
      followTerms()
      for command in commands { obey(command) }
      guard isOpen else { break }
      admit()
      let untilRests = budget == nil && doubtful.isEmpty ? nil : circuits.look()
      let untilRates = refill()
      var isBusy = false
      for source in sources where source.step(ended) { isBusy = true }
      for client in turns { client.endTurn() }
      // Only now is known who was silent: what had come before this turn is taken.
      let untilSilence = giveWay()
      if isBusy { continue }
      servers.wait(milliseconds: min(untilRests ?? 60_000, throttleTime(untilRates), untilSilence))
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
    servers.applyLowSpeed(of: client)
  }

  /// Takes up limits and a rate of the budget that have changed.
  private func followTerms() {
    guard let now = budget?.terms, now != terms else { return }
    if now.limits != terms.limits { servers.set(now.limits) }
    if now.pace != terms.pace {
      for client in turns { client.setShared(now.pace) }
      servers.applyLowSpeed()
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
        if next.stage != .inLine || next.url.origin != taken.origin {
          client.line.leave(taken.origin, taken.hold)
          continue
        }
        next.hold = taken.hold
        if taken.origin.scheme.isRemote {
          enter(next)
        } else {
          start(next)
        }
      }
    }
  }

  /// Who waits goes ahead of all others: in its client's line, or among those who wait for a shared place.
  private func prioritize(_ exchange: Exchange) {
    exchange.isUrgent = true
    if exchange.stage == .inLine {
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
    last.enter(.inLine)
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
      exchange.enter(.queued)
      queued[place] = exchange
    case .refused(let failure): finish(exchange, .failed(failure))
    }
  }

  private func refuse(_ place: TransferBudget.Place, _ failure: DownloadFailure) {
    guard let exchange = queued.removeValue(forKey: place) else { return }
    exchange.place = nil
    finish(exchange, .failed(failure))
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

  /// Of a scheme without one no address is read.
  private func source(of exchange: Exchange) -> any SourceProtocol {
    sources.first { $0.schemes.contains(exchange.url.origin.scheme) } ?? servers
  }

  // MARK: Running

  private func resume(_ id: DownloadID) {
    guard let exchange = exchanges[id] else { return }
    source(of: exchange).resume(exchange)
    expectSilence(of: exchange)
  }

  /// Lets those go on that a rate holds up, as far as it lets bytes pass.
  ///
  /// - Returns: milliseconds until the shared rate does.
  private func refill() -> Int32 {
    let untilShared = budget?.refill() ?? 0
    let now = clock.monotonic()
    for client in turns { client.refill(now: now) }
    guard turns.contains(where: { !$0.throttled.isEmpty }) else { return untilShared }
    turns.append(turns.removeFirst())
    servers.goOn(turns)
    if budget != nil { silenceDue = min(silenceDue, servers.silenceDue) }
    return untilShared
  }

  /// - Parameter untilShared: milliseconds until the shared rate lets bytes pass.
  private func throttleTime(_ untilShared: Int32) -> Int32 {
    turns.lazy.filter { !$0.throttled.isEmpty }.map { max(1, untilShared, $0.millisecondsToOpen) }.min()
      ?? .max
  }

  // MARK: Silence

  private func expectSilence(of exchange: Exchange) {
    if budget != nil, let at = exchange.hop?.silentAt() { silenceDue = min(silenceDue, at) }
  }

  /// Ends what has received nothing for a while and keeps out a mirror that has no place at its host, those that are silent
  /// longest first.
  ///
  /// - Returns: milliseconds until it is to be called again, a minute at most.
  private func giveWay() -> Int32 {
    let now = clock.monotonic()
    if let budget, now >= silenceDue {
      let given = servers.silent(at: now).filter { giveWay($0, budget, now) }
      // They held places of their clients, too.
      if !given.isEmpty { admit() }
      // Whoever comes to wait is seen soon.
      silenceDue = max(servers.silenceDue, now + Self.silencePause)
      // Of a file that begins libcurl knows nothing.
      if !given.isEmpty { return 0 }
    }
    return min(60_000, silenceDue.remaining(at: now).milliseconds)
  }

  /// - Returns: false when nobody wants its place, and it goes on.
  private func giveWay(_ hop: Hop, _ budget: TransferBudget, _ now: Instant) -> Bool {
    // Its own patience, which grows, holds among those that give way again and again.
    let isPatient = hop.silentAt(for: hop.exchange.request.patience).map { $0 > now } ?? true
    guard let place = hop.exchange.place, budget.giveWay(place, isForOthers: isPatient) else { return false }
    hop.exchange.place = nil
    finish(hop.exchange, .failed(hop.silence))
    return true
  }

  /// Between two looks at what is silent.
  private static let silencePause = Duration.seconds(1)

  // MARK: Ending

  private func ended(_ exchange: Exchange, _ end: SourceEnd) {
    switch end {
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
      exchange.enter(.inLine)
      exchange.client.line.addFirst(
        exchange, to: target.origin, order: exchange.id.value, as: exchange.kind)
    }
  }

  /// Ends an exchange that holds a place of its client.
  private func finish(_ exchange: Exchange, _ outcome: DownloadOutcome) {
    leaveLine(exchange)
    givePlaceBack(exchange, judge(exchange, outcome), cause: outcome.cause)
    source(of: exchange).close(exchange)
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
    if exchange.stage != .inLine {
      finish(exchange, outcome)
    } else {
      exchanges[exchange.id] = nil
      exchange.end(outcome)
    }
  }

  private func endAll() {
    for id in clients.keys.sorted(by: { $0.value < $1.value }) { leave(id) }
    budget?.leave(inbox)
    servers.close()
  }
}
