import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// The progress of a pass, and the time since when it has not changed.
struct PassPace: Sendable {
  private let mark: (phase: PassEvent.Phase, entries: Int, files: Int, bytes: UInt64)
  private let since: Instant

  init(_ snapshot: PassProgress.Snapshot, before: PassPace?, now: Instant) {
    mark = (snapshot.phase, snapshot.entriesRead, snapshot.filesDone, snapshot.bytesDone)
    since = if let before, before.mark == mark { before.since } else { now }
  }

  /// True when the pass has waited for a server for a second or longer. Only then nothing happens in these
  /// phases.
  func isStalled(now: Instant) -> Bool {
    [.reading, .transferring].contains(mark.phase) && now.elapsed(since: since) >= .seconds(1)
  }
}

extension Agent {
  /// Tells the state which passes wait for a server.
  func noteStalled() {
    let now = parts.clock.monotonic()
    shared.withLock { shared in
      var stalled: Set<String> = []
      for (name, mirror) in shared.mirrors {
        let snapshot = mirror.work?.progress.snapshot()
        let pace = snapshot.map { PassPace($0, before: mirror.work?.pace, now: now) }
        shared.mirrors[name]?.work?.pace = pace
        if pace?.isStalled(now: now) == true { stalled.insert(name) }
      }
      shared.state.setStalled(stalled)
    }
  }
}
