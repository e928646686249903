import TarnCore
import TarnRuntime

/// A conductor beside another one on the same thread: its actions come bit by bit, and it is stepped in turns.
extension Conductor {
  /// Another action may begin.
  var hasRoom: Bool { !stop.isSet && hasPlace && !isHeldUp }

  var isIdle: Bool { jobs.isEmpty && forlorn.isEmpty && adoptions.isEmpty && !spaceQueue.isWaiting }

  var pathsAtWork: Set<RelativePath> { Set(jobs.values.map(\.entry.path)) }

  /// Wakes it when it waits for its own messages.
  var nudge: @Sendable () -> Void {
    { [mailbox] in mailbox.change { if $0.isEmpty { $0.append(.wake) } } }
  }

  func isAtWork(on path: RelativePath) -> Bool { jobs.values.contains { $0.entry.path == path } }

  /// Jobs at work that do not wait for a server to recover.
  var busy: Set<UInt64> { Set(jobs.keys).subtracting(delayed.map(\.job)) }

  /// Handles what came in, and begins what waited for it.
  ///
  /// - Parameter waiting: when nothing came in so far.
  func turn(waiting: Duration) throws {
    publisher.setFlushing(active == publishing)
    try handleMail(waiting: min(waiting, longestWait))
    wakeDelayed()
    if stop.isSet { dropWaiting() }
    while hasRoom, startReady() || startCramped() {}
    // Of those that failed few are kept until a twin may have come.
    if jobs.isEmpty || forlorn.count >= mostJobs { _ = try copyForlorn(isLast: true) }
    if jobs.isEmpty { _ = tryCramped() }
    publisher.setFlushing(active == publishing)
  }

  /// Begins an action that no plan of its own names.
  func begin(_ action: Action, _ unrecorded: UnrecordedFiles) throws {
    context.unrecorded = unrecorded
    try admit(action, ordinal: 0, isAgain: true)
  }

  /// Ends a job whose bytes nobody wants any more; what gets its name already is not stopped.
  func abandon(_ path: RelativePath) {
    guard let (id, job) = jobs.first(where: { $0.value.entry.path == path }), !job.isPublishing else {
      return
    }
    // Whatever it is at, it goes no further than to the next step.
    abandoned.insert(id)
    if let download = job.download {
      ports.downloader.cancel(download)
    } else if delayed.contains(where: { $0.job == id }) {
      delayed.removeAll { $0.job == id }
      drop(id)
    }
  }
}
