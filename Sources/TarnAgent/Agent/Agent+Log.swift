import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// Log messages about the agent's mirrors, besides those of their passes.
extension Agent {
  /// Logs the number of mirrors, and those whose passes begin only on command.
  func tellMirrors() {
    let mirrors = settings.mirrors
    guard !mirrors.isEmpty else {
      let place = parts.paths.file ?? parts.paths.directories.first.map { "\($0)/tarn.toml" }
      let hint = place.map { ": write \(Printable.escape($0)), then 'tarn reload'" } ?? ""
      return parts.log.tell(.notice, "0 mirrors\(hint)", .of(code: "no-mirrors"))
    }
    let unplanned = mirrors.filter { $0.rhythm == .command }.map(\.name)
    let rest =
      unplanned.isEmpty
      ? "" : "; without 'every' or 'schedule', and so only by command: \(unplanned.joined(separator: ", "))"
    parts.log.tell(.notice, Units.count(mirrors.count, "mirror") + rest)
  }

  /// The time between two log lines about a pass at work.
  static let progressPause = Duration.seconds(60)

  /// The time of the next log line about the progress of a pass; `nil` when none is at work.
  func nextProgressLine(_ shared: Shared) -> Instant? {
    shared.mirrors.values.lazy.flatMap(\.works).map { $0.told + Self.progressPause }.min()
  }

  /// Logs the progress of passes that have been at work for a minute since their last log line.
  func tellProgress() {
    let now = parts.clock.monotonic()
    let due = shared.withLock { shared -> [(name: String, progress: PassProgress)] in
      shared.mirrors.flatMap { name, mirror in
        mirror.works.filter { now >= $0.told + Self.progressPause }.map { work in
          shared.mirrors[name]?.change(work.run) { $0.told = now }
          return (name, work.progress)
        }
      }
    }
    for (name, progress) in due.sorted(by: { $0.name < $1.name }) {
      parts.log.tell(.info, PassWords.progress(progress.snapshot()), .of(mirror: name))
    }
  }
}
