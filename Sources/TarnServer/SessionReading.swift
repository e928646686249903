internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// Where a stream of several sessions is in each of them. Any thread, one call at a time.
final class SessionReading: Sendable {
  struct Page {
    var news: [SessionNews] = []
    var hasMore = false
  }

  fileprivate struct State {
    /// Numbers of the last events that were read, by session.
    var reached: [String: Int64] = [:]
    /// Those that may have news, in the order in which they are read.
    var rung: [String] = []
    /// Of sessions that cannot be read.
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

  /// Of all sessions: what comes later rings.
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

  /// The next events. Without a ring, as after a sign of life, all sessions are looked at: one may be gone.
  ///
  /// - Parameter limit: of events.
  func page(limit: Int) throws(ControlFailure) -> Page {
    var page = Page()
    let asked = state.withLock { state in
      page.news = state.failures
      state.failures = []
      defer { state.rung = [] }
      return state.rung.isEmpty ? state.reached.keys.sorted() : state.rung
    }
    // Who was not read yet goes before those who have more.
    var (waiting, unfinished): ([String], [String]) = ([], [])
    for id in asked {
      guard let after = state.withLock({ $0.reached[id] }) else { continue }
      guard page.news.count < limit else {
        waiting.append(id)
        continue
      }
      do throws(ControlFailure) {
        let events = try sessions.events(of: id, after: after, limit: limit - page.news.count)
        page.news += events.events.map { SessionNews(id, $0) }
        if let last = events.events.last { state.withLock { $0.reached[id] = last.number } }
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
