import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// What the log says of the agent's mirrors, beside what their passes tell.
extension Agent {
  /// What it looks after, and what of that it does not begin by itself.
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

  /// Between two lines about a pass that goes on.
  static let progressPause = Duration.seconds(60)

  /// When the log is to tell next how far a pass is; nil when none is at work.
  func nextProgressLine(_ shared: Shared) -> Instant? {
    shared.mirrors.values.compactMap { $0.work.map { $0.told + Self.progressPause } }.min()
  }

  /// Why a transfer of a pass is tried again: kept for the status, and told at first and once a minute while that goes on.
  func tellTrouble(_ trouble: PassTrouble, of name: String, _ fields: Logger.Metadata) {
    let now = parts.clock.monotonic()
    let isDue = shared.withLock { shared -> Bool in
      shared.mirrors[name]?.work?.trouble = trouble
      let last = shared.mirrors[name]?.work?.toldTrouble
      guard last.map({ now >= $0 + Self.progressPause }) ?? true else { return false }
      shared.mirrors[name]?.work?.toldTrouble = now
      return true
    }
    parts.log.tell(isDue ? .notice : .debug, trouble.text(now: moment.wall), fields)
  }

  /// How far passes are that have been at work for a minute since the log last told.
  func tellProgress() {
    let now = parts.clock.monotonic()
    let due = shared.withLock { shared -> [(name: String, progress: PassProgress)] in
      shared.mirrors.compactMap { name, mirror in
        guard let work = mirror.work, now >= work.told + Self.progressPause else { return nil }
        shared.mirrors[name]?.work?.told = now
        return (name, work.progress)
      }
    }
    for (name, progress) in due.sorted(by: { $0.name < $1.name }) {
      parts.log.tell(.info, PassWords.progress(progress.snapshot()), .of(mirror: name))
    }
  }
}
