internal import TarnControl
internal import TarnCore

/// Closures may follow the events of one task, as a convenience. They last as long as the program. A program that starts again
/// passes them anew, or reads `BackgroundSession.events(after:)`. They acknowledge nothing.
///
/// Each closure runs in its own isolation: `{ @MainActor progress in ... }` on the main actor, one without a mark on no actor. The
/// calls of one closure come one after the other.
extension DownloadTask {
  /// Calls `body` with each response of the server.
  ///
  /// - Returns: the task, for the next call in a chain.
  @discardableResult
  public func onResponse(
    _ body: @escaping @Sendable @isolated(any) (DownloadEvent.Response) async -> Void
  ) -> DownloadTask {
    Task {
      _ = try? await follow { event in
        if case .response = event.kind, let response = event.response { await body(response) }
      }
    }
    return self
  }

  /// Calls `body` about twice a second while the task runs. Values may be skipped. That of the finished file always comes, as the
  /// last one.
  ///
  /// - Returns: the task, for the next call in a chain.
  @discardableResult
  public func onProgress(
    _ body: @escaping @Sendable @isolated(any) (Progress) async -> Void
  ) -> DownloadTask {
    let (values, source) = AsyncStream.makeStream(of: Progress.self, bufferingPolicy: .bufferingNewest(1))
    let watcher = ProgressHub.shared.watch(
      session,
      ProgressHub.Watcher { statuses in
        if let status = statuses.first(where: { $0.task.number == number }) { source.yield(status.progress) }
      })
    let end = Task {
      let status = try? await ended()
      ProgressHub.shared.leave(watcher, session)
      source.finish()
      return status
    }
    Task {
      var last: Progress?
      for await value in values where value != last {
        await body(value)
        last = value
      }
      if let status = await end.value, status.state == .finished, status.progress != last {
        await body(status.progress)
      }
    }
    return self
  }

  /// Calls `body` once at the task's end, with its final state or the reason why that cannot be told.
  ///
  /// - Returns: the task, for the next call in a chain.
  @discardableResult
  public func onCompletion(
    _ body: @escaping @Sendable @isolated(any) (Result<Status, TarnError>) async -> Void
  ) -> DownloadTask {
    Task {
      do throws(TarnError) {
        let status = try await ended()
        await body(.success(status))
      } catch {
        await body(.failure(error))
      }
    }
    return self
  }

  /// Waits until the task has ended.
  ///
  /// - Returns: the final state: finished, failed or cancelled.
  /// - Throws: `TarnError` when the session or the task is gone, no agent answers for half a minute, or the calling task is
  ///   cancelled.
  public func ended() async throws(TarnError) -> Status { try await follow(nil) }

  /// Calls `each` with the task's unacknowledged events and with those that come, until the task has ended.
  private func follow(
    _ each: (@Sendable (DownloadEvent) async -> Void)?
  ) async throws(TarnError) -> Status {
    let reader = EventReader(session, task: number, after: 0)
    await reader.begun()
    // A task that ended before, and whose end was acknowledged, has no event for it any more.
    let status = try await patientStatus()
    if status.state.isEnd {
      if let each { for event in try await past() { await each(event) } }
      return status
    }
    while true {
      do {
        guard let event = try await reader.next() else { throw TarnError.failed("the waiting was cancelled") }
        await each?(event)
        guard event.kind.isEnd else { continue }
      } catch is EventQueue.Cut {
        // Another process may have acknowledged the end meanwhile.
      } catch {
        throw TarnError(error)
      }
      let status = try await patientStatus()
      // The task may have been queued again meanwhile.
      if status.state.isEnd { return status }
    }
  }

  /// Returns the task's state. Waits for an agent that starts again, as long as event readers do.
  private func patientStatus() async throws(TarnError) -> Status {
    var failures = 0
    while true {
      do throws(TarnError) {
        return try await status()
      } catch {
        guard case .agentUnavailable = error, failures < 30, !Task.isCancelled else { throw error }
        failures += 1
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  /// Returns the task's events that are not acknowledged.
  private func past() async throws(TarnError) -> [DownloadEvent] {
    var events: [DownloadEvent] = []
    var after: Int64 = 0
    while true {
      let last = after
      let page = try await session.agent.ask { try $0.events(of: session.identifier, after: last) }
      events += page.events.filter { $0.task == number }.compactMap { DownloadEvent($0, session) }
      guard page.hasMore, let next = page.events.last?.number else { return events }
      after = next
    }
  }
}
