internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// The progress of a stream in each of its sessions. Thread-safe, with one call at a time.
final class SessionReading: Sendable {
  struct Page {
    var news: [SessionNews] = []
    var hasMore = false
  }

  fileprivate struct State {
    /// The number of the last event that was read, by session.
    var reached: [String: Int64] = [:]
    /// The sessions that may have new events, in reading order.
    var rung: [String] = []
    /// The failures of sessions that cannot be read, which are still to be reported.
    var failures: [SessionNews] = []
  }

  private let sessions: any SessionPort
  private let state: Locked<State>

  init(_ sessions: any SessionPort, _ places: [SessionPlace]) {
    self.sessions = sessions
    var state = State()
    for place in places { state.reached[place.session] = place.number }
    state.rung = places.map(\.session)
    self.state = Locked(state)
  }

  /// Subscribes to all sessions, so that later events ring.
  func subscribe(_ wake: @escaping @Sendable () -> Void) -> AgentSubscription {
    var subscriptions: [AgentSubscription] = []
    for id in state.withLock({ $0.rung }) {
      do throws(ControlFailure) {
        subscriptions.append(
          try sessions.subscribe(id) { [state] in
            state.withLock { if !$0.rung.contains(id) { $0.rung.append(id) } }
            wake()
          })
      } catch {
        state.withLock { $0.end(id, error) }
      }
    }
    return AgentSubscription { [subscriptions] in for subscription in subscriptions { subscription.end() } }
  }

  /// Returns the next events. Without a ring, for instance after a heartbeat, all sessions are read, because one may be gone.
  ///
  /// - Parameter limit: the most events.
  func page(limit: Int) throws(ControlFailure) -> Page {
    var page = Page()
    let asked = state.withLock { state in
      page.news = state.failures
      state.failures = []
      defer { state.rung = [] }
      return state.rung.isEmpty ? state.reached.keys.sorted() : state.rung
    }
    // Sessions that were not read yet come before those that have more.
    var (waiting, unfinished): ([String], [String]) = ([], [])
    for id in asked {
      guard let after = state.withLock({ $0.reached[id] }) else { continue }
      guard page.news.count < limit else {
        waiting.append(id)
        continue
      }
      do throws(ControlFailure) {
        let (events, passed) = try sessions.next(of: id, after: after, limit: limit - page.news.count)
        if let passed { page.news.append(SessionNews(id, passed: passed)) }
        page.news += events.events.map { SessionNews(id, $0) }
        if let last = events.events.last?.number ?? passed { state.withLock { $0.reached[id] = last } }
        if events.hasMore { unfinished.append(id) }
      } catch {
        guard error.kind == .notFound else { throw error }
        page.news.append(SessionNews(id, error))
        state.withLock { $0.reached[id] = nil }
      }
    }
    let later = waiting + unfinished
    page.hasMore = !later.isEmpty
    state.withLock { state in
      state.rung = later + state.rung.filter { !later.contains($0) }
    }
    return page
  }
}

extension SessionReading.State {
  fileprivate mutating func end(_ id: String, _ failure: ControlFailure) {
    reached[id] = nil
    failures.append(SessionNews(id, failure))
  }
}
