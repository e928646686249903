internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// Receives the events of all sessions of one agent that this process reads, over one connection and without a thread for each
/// reader.
///
/// When the set of sessions changes, a second connection is made from the readers' positions. The first one continues until the
/// second has begun, so that the agent never believes that a session has no reader. Events that both connections bring are
/// delivered once.
final class EventHub: Sendable {
  /// Identifies what a reader reads: a session, or one task of it.
  fileprivate struct Key: Hashable {
    var session: String
    var task: Int64?
  }

  /// A connection and the readers that it serves.
  fileprivate struct Link {
    let number: UInt64
    var stream: NewsStream?
    var readers: [Key: [UInt64]] = [:]
    /// The number of the last event that the connection brought, or the one that it began after, by session.
    var reached: [String: Int64] = [:]
  }

  fileprivate struct State {
    var queues: [UInt64: EventQueue] = [:]
    var lastNumber: UInt64 = 0
    /// The connection that brings events.
    var link: Link?
    /// The connection that replaces `link` once it has begun.
    var next: Link?
    /// True when the readers have changed since `next` was made.
    var isStale = false
    /// The connections in a row that failed to begin.
    var failures = 0
    /// True while the next attempt is scheduled.
    var waits = false
  }

  private static let hubs = Locked<[String: EventHub]>([:])
  private static let mostFailures = 30

  private let client: ControlClient
  private let state = Locked(State())

  private init(_ agent: Agent) { client = agent.client() }

  static func of(_ agent: Agent) -> EventHub {
    hubs.withLock { hubs in
      if let hub = hubs[agent.path] { return hub }
      let hub = EventHub(agent)
      hubs[agent.path] = hub
      return hub
    }
  }

  // MARK: Readers

  func add(_ session: BackgroundSession, _ task: Int64?, after number: Int64) -> UInt64 {
    let reader = state.withLock { state in
      state.lastNumber += 1
      state.queues[state.lastNumber] = EventQueue(session, task, after: number)
      return state.lastNumber
    }
    refresh()
    return reader
  }

  func remove(_ reader: UInt64) {
    let (wake, isLast) = state.withLock { state -> (EventQueue.Wake, Bool) in
      guard var queue = state.queues.removeValue(forKey: reader) else { return (EventQueue.Wake(), false) }
      state.leaveOut(reader, queue)
      let session = queue.session.identifier
      return (queue.finish(.success(())), !state.queues.values.contains { $0.session.identifier == session })
    }
    wake.resume()
    // No reader in this process reads the session any more, and the agent must be told.
    if isLast { refresh() }
  }

  func next(_ reader: UInt64) async throws -> DownloadEvent? {
    let event = try await withCheckedThrowingContinuation { (sleeper: EventQueue.Sleeper) in
      let wake = state.withLock { state -> EventQueue.Wake? in
        guard state.queues[reader] != nil else { return EventQueue.Wake(sleepers: [sleeper]) }
        return state.queues[reader]?.next(sleeper)
      }
      wake?.resume()
    }
    if state.withLock({ $0.queues[reader]?.comesBack() }) == true { refresh() }
    return event
  }

  /// Returns when the reader misses no more events, or has ended.
  func begun(_ reader: UInt64) async {
    await withCheckedContinuation { (beginner: CheckedContinuation<Void, Never>) in
      let wake = state.withLock { state -> EventQueue.Wake? in
        guard state.queues[reader] != nil else { return EventQueue.Wake(beginners: [beginner]) }
        return state.queues[reader]?.waitForBegin(beginner)
      }
      wake?.resume()
    }
  }

  // MARK: Connections

  /// Makes a connection for all present readers, when one is needed.
  private func refresh() {
    let (places, number, superfluous) = state.withLock { state -> ([SessionPlace], UInt64, [NewsStream]) in
      guard !state.queues.isEmpty else {
        let links = [state.link, state.next]
        (state.link, state.next, state.isStale) = (nil, nil, false)
        return ([], 0, links.compactMap { $0?.stream })
      }
      guard state.next == nil else {
        state.isStale = true
        return ([], 0, [])
      }
      guard !state.waits else { return ([], 0, []) }
      state.lastNumber += 1
      let (link, places) = state.makeLink(state.lastNumber)
      state.next = places.isEmpty ? nil : link
      return (places, link.number, [])
    }
    for stream in superfluous { stream.end() }
    guard !places.isEmpty else { return }
    let stream = client.news(from: places) { [weak self] step in self?.hear(step, number) }
    let isWanted = state.withLock { state in
      if state.next?.number == number { state.next?.stream = stream }
      if state.link?.number == number { state.link?.stream = stream }
      return state.next?.number == number || state.link?.number == number
    }
    if !isWanted { stream.end() }
  }

  private func hear(_ step: NewsStream.Step, _ number: UInt64) {
    switch step {
    case .begun: begin(number)
    case .news(let news): tell(news, number)
    case .ended(let error): end(error, number)
    }
  }

  private func begin(_ number: UInt64) {
    let (old, wakes, isStale) = state.withLock { state -> (NewsStream?, [EventQueue.Wake], Bool) in
      guard let next = state.next, next.number == number else { return (nil, [], false) }
      let (old, isAfterBreak) = (state.link?.stream, state.link == nil)
      (state.link, state.next, state.failures) = (next, nil, 0)
      let wakes = next.readers.values.joined().compactMap { reader in
        state.queues[reader]?.begin(isAfterBreak: isAfterBreak)
      }
      defer { state.isStale = false }
      return (old, wakes, state.isStale)
    }
    old?.end()
    for wake in wakes { wake.resume() }
    if isStale { refresh() }
  }

  private func tell(_ news: SessionNews, _ number: UInt64) {
    let wakes = state.withLock { state -> [EventQueue.Wake] in
      guard let link = state.link, link.number == number else { return [] }
      if let failure = news.failure { return state.finish(news.session, TarnError(failure)) }
      if let passed = news.passed {
        // The session was made anew under its name, and its events begin before the reader's place.
        let isAnew = passed < link.reached[news.session] ?? 0
        return state.skip(to: passed, news.session, isAnew: isAnew)
      }
      guard let event = news.event else { return [] }
      // What was dropped may have been the end of any task.
      let wakes = event.code == .eventsLost ? state.skip(to: event.number, news.session, ofTasks: true) : []
      state.link?.reached[news.session] = event.number
      var readers = link.readers[Key(session: news.session)] ?? []
      if let task = event.task { readers += link.readers[Key(session: news.session, task: task)] ?? [] }
      return wakes + readers.compactMap { state.give(event, to: $0) }
    }
    for wake in wakes { wake.resume() }
  }

  private func end(_ error: (any Error)?, _ number: UInt64) {
    let (wakes, isNeeded, old) = state.withLock { state -> ([EventQueue.Wake], Bool, NewsStream?) in
      if state.link?.number == number {
        state.noteReached()
        state.link = nil
        return ([], state.next == nil, nil)
      }
      guard state.next?.number == number else { return ([], false, nil) }
      (state.next, state.isStale) = (nil, false)
      state.failures += 1
      let error = TarnError(error ?? TarnError.failed("the agent ended the connection"))
      guard state.failures > Self.mostFailures || !Self.mayBeOver(error) else { return ([], true, nil) }
      state.failures = 0
      let wakes = state.queues.keys.compactMap { state.queues[$0]?.finish(.failure(error)) }
      defer { state.link = nil }
      return (wakes, false, state.link?.stream)
    }
    old?.end()
    for wake in wakes { wake.resume() }
    if isNeeded { tryAgain() }
  }

  /// Whether the error may pass: an agent that starts again is waited for.
  private static func mayBeOver(_ error: TarnError) -> Bool {
    switch error {
    case .agentUnavailable: true
    case .refused(let code, _, _):
      ["stopping", "too-many-streams", "busy", "answer-timed-out", ControlFailure.tooManyConnections]
        .contains(code)
    case .failed: false
    }
  }

  private func tryAgain() {
    let isFirst = state.withLock { state in
      defer { state.waits = true }
      return !state.waits
    }
    guard isFirst else { return }
    Task {
      try? await Task.sleep(for: .seconds(1))
      state.withLock { $0.waits = false }
      refresh()
    }
  }
}

extension EventHub.State {
  /// Makes a connection's record and its positions, for all present readers.
  fileprivate mutating func makeLink(_ number: UInt64) -> (EventHub.Link, [SessionPlace]) {
    noteReached()
    var link = EventHub.Link(number: number)
    var places: [String: Int64] = [:]
    for (reader, queue) in queues where queue.end == nil {
      let session = queue.session.identifier
      // For a reader whose queue is full the place asks for no events. The session still counts as read.
      let place = queue.isLeftOut ? Int64.max : queue.reached
      places[session] = min(places[session] ?? .max, place)
      guard !queue.isLeftOut else { continue }
      link.readers[EventHub.Key(session: session, task: queue.task), default: []].append(reader)
    }
    link.reached = places
    return (link, places.map { SessionPlace($0.key, after: $0.value) }.sorted { $0.session < $1.session })
  }

  /// Moves readers of single tasks past the events that the connection brought, so that these need not come again.
  fileprivate mutating func noteReached() {
    guard let link else { return }
    for (key, readers) in link.readers {
      guard key.task != nil, let reached = link.reached[key.session] else { continue }
      for reader in readers { queues[reader]?.pass(to: reached) }
    }
  }

  /// Gives the event to a reader. A reader without room gets no more events until it has room again.
  fileprivate mutating func give(_ event: SessionEvent, to reader: UInt64) -> EventQueue.Wake? {
    guard let session = queues[reader]?.session, let shown = DownloadEvent(event, session) else { return nil }
    let wake = queues[reader]?.take(shown)
    if let queue = queues[reader], queue.isLeftOut { leaveOut(reader, queue) }
    return wake
  }

  /// Takes the readers of a session past events that are gone. Readers of single tasks look at their task again.
  ///
  /// - Parameters:
  ///   - ofTasks: true to leave out the readers of the whole session, which get an event about it.
  ///   - isAnew: true to take them back, in a session that was made anew.
  fileprivate mutating func skip(
    to number: Int64, _ session: String, ofTasks: Bool = false, isAnew: Bool = false
  ) -> [EventQueue.Wake] {
    guard let link else { return [] }
    self.link?.reached[session] = number
    let keys = link.readers.keys.filter { $0.session == session && ($0.task != nil || !ofTasks) }
    var wakes: [EventQueue.Wake] = []
    for reader in keys.flatMap({ link.readers[$0] ?? [] }) {
      let wake = isAnew ? queues[reader]?.goBack(to: number) : queues[reader]?.skip(to: number)
      if let wake { wakes.append(wake) }
      if let queue = queues[reader], queue.isLeftOut { leaveOut(reader, queue) }
    }
    return wakes
  }

  fileprivate mutating func leaveOut(_ reader: UInt64, _ queue: EventQueue) {
    let key = EventHub.Key(session: queue.session.identifier, task: queue.task)
    link?.readers[key]?.removeAll { $0 == reader }
    next?.readers[key]?.removeAll { $0 == reader }
  }

  /// Ends all readers of a session that the agent can no longer read.
  fileprivate mutating func finish(_ session: String, _ error: TarnError) -> [EventQueue.Wake] {
    guard let link else { return [] }
    let readers = link.readers.filter { $0.key.session == session }.values.joined()
    return readers.compactMap { queues[$0]?.finish(.failure(error)) }
  }
}

/// Reads the events of a session or of one task, until it is dropped or the reading Swift task is cancelled.
final class EventReader: Sendable {
  private let hub: EventHub
  private let number: UInt64

  init(_ session: BackgroundSession, task: Int64? = nil, after number: Int64) {
    hub = EventHub.of(session.agent)
    self.number = hub.add(session, task, after: number)
  }

  deinit { hub.remove(number) }

  /// Returns when no event is missed any more, or the reader has ended.
  func begun() async {
    await withTaskCancellationHandler {
      await hub.begun(number)
    } onCancel: {
      hub.remove(number)
    }
  }

  /// - Returns: the next event; `nil` when the calling task is cancelled, after which nothing more comes.
  /// - Throws: `TarnError`.
  func next() async throws -> DownloadEvent? {
    try await withTaskCancellationHandler {
      try await hub.next(number)
    } onCancel: {
      hub.remove(number)
    }
  }
}
