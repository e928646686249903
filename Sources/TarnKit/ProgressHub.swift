internal import TarnControl
internal import TarnCore
internal import TarnRuntime

/// Asks how far the running tasks of a session are, once for all in this process who want to know.
final class ProgressHub: Sendable {
  static let shared = ProgressHub()

  typealias Hear = @Sendable ([DownloadTask.Status]) -> Void

  private struct State {
    var watchers: [BackgroundSession: [UInt64: Hear]] = [:]
    var last: UInt64 = 0
  }

  private let state = Locked(State())

  /// - Parameter hear: quick; any thread.
  func watch(_ session: BackgroundSession, _ hear: @escaping Hear) -> UInt64 {
    let (number, isFirst) = state.withLock { state in
      state.last += 1
      let isFirst = state.watchers[session] == nil
      state.watchers[session, default: [:]][state.last] = hear
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
      // An agent that does not answer now is asked again.
      let statuses = try? await session.running()
      let watchers = state.withLock { state -> [Hear] in
        let watchers = state.watchers[session] ?? [:]
        if watchers.isEmpty { state.watchers[session] = nil }
        return Array(watchers.values)
      }
      guard !watchers.isEmpty else { return }
      if let statuses { for hear in watchers { hear(statuses) } }
      try? await Task.sleep(for: .milliseconds(500))
    }
  }
}

extension BackgroundSession {
  /// How the tasks are that run, about twice a second. Values may be left out where they are not read in time; what has ended is in none,
  /// but told by an event. Nothing of it is stored.
  ///
  /// - Returns: a stream that ends when it is not read any more.
  public func progress() -> AsyncStream<[DownloadTask.Status]> {
    let (values, source) = AsyncStream.makeStream(
      of: [DownloadTask.Status].self, bufferingPolicy: .bufferingNewest(1))
    let watcher = ProgressHub.shared.watch(self) { source.yield($0) }
    source.onTermination = { _ in ProgressHub.shared.leave(watcher, self) }
    return values
  }

  /// As many as may run at a time fit on one page.
  fileprivate func running() async throws(TarnError) -> [DownloadTask.Status] {
    try await agent.ask { try $0.tasks(of: identifier, in: [.running]) }.tasks.map {
      DownloadTask.Status($0, self)
    }
  }
}
