internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// Polls the progress of a session's running tasks, once for all watchers in this process.
final class ProgressHub: Sendable {
  static let shared = ProgressHub()

  /// Both are called on any thread, and must return quickly.
  struct Watcher: Sendable {
    var hear: @Sendable ([DownloadTask.Status]) -> Void
    /// Called once when there is no such session any more.
    var finish: @Sendable () -> Void = {}
  }

  private struct State {
    var watchers: [BackgroundSession: [UInt64: Watcher]] = [:]
    var last: UInt64 = 0
  }

  private let state = Locked(State())

  func watch(_ session: BackgroundSession, _ watcher: Watcher) -> UInt64 {
    let (number, isFirst) = state.withLock { state in
      state.last += 1
      let isFirst = state.watchers[session] == nil
      state.watchers[session, default: [:]][state.last] = watcher
      return (state.last, isFirst)
    }
    if isFirst { Task { await ask(session) } }
    return number
  }

  func leave(_ number: UInt64, _ session: BackgroundSession) {
    state.withLock { $0.watchers[session]?[number] = nil }
  }

  private func ask(_ session: BackgroundSession) async {
    while true {
      var (statuses, isGone) = ([DownloadTask.Status]?.none, false)
      do throws(TarnError) {
        statuses = try await session.running()
      } catch {
        // Another failure is ignored: the agent is asked again at the next turn.
        if case .refused("no-such-session", _, _) = error { isGone = true }
      }
      let watchers = state.withLock { state -> [Watcher] in
        let watchers = state.watchers[session] ?? [:]
        if watchers.isEmpty || isGone { state.watchers[session] = nil }
        return Array(watchers.values)
      }
      if isGone { return watchers.forEach { $0.finish() } }
      guard !watchers.isEmpty else { return }
      if let statuses { for watcher in watchers { watcher.hear(statuses) } }
      try? await Task.sleep(for: .milliseconds(500))
    }
  }
}

extension BackgroundSession {
  /// Returns the state of the running tasks, about twice a second. Values may be skipped when they are not read in time. Ended
  /// tasks are left out; their end comes as an event. Nothing is stored.
  ///
  /// - Returns: a stream that ends when it is no longer read, and when the session is forgotten.
  public func progress() -> AsyncStream<[DownloadTask.Status]> {
    let (values, source) = AsyncStream.makeStream(
      of: [DownloadTask.Status].self, bufferingPolicy: .bufferingNewest(1))
    let watcher = ProgressHub.shared.watch(
      self, ProgressHub.Watcher(hear: { source.yield($0) }, finish: { source.finish() }))
    source.onTermination = { _ in ProgressHub.shared.leave(watcher, self) }
    return values
  }

  /// Returns the running tasks. All that may run at a time fit on one page.
  fileprivate func running() async throws(TarnError) -> [DownloadTask.Status] {
    try await agent.ask { try $0.tasks(of: identifier, in: [.running]) }.tasks.map {
      DownloadTask.Status($0, self)
    }
  }
}
