import Logging
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule
import TarnTransfer

extension Agent {
  /// Reads the settings again and takes all of them or none. Callable on any thread; reloads run one after
  /// the other.
  package func reload() -> ReloadAnswer { reloadLock.withLock { readAgain() } }

  private func readAgain() -> ReloadAnswer {
    notifier.reloading(now: parts.clock.monotonic())
    defer { wake() }
    let loaded = parts.load()
    for problem in loaded.problems { parts.log.tell(problem) }
    let before = settings.mirrors
    let outcome = shared.withLock { $0.running.reload(loaded) }
    switch outcome {
    case .kept(let problems):
      for problem in problems where !loaded.problems.contains(problem) { parts.log.tell(problem) }
      let errors = problems.filter { $0.severity == .error }
      shared.withLock { $0.rejected = errors.map(\.text) }
      parts.log.tell(
        .error, "the settings were rejected; the old ones stay in force", .of(code: "reload-rejected"))
      notifier.ready("newer settings were rejected; the old ones stay in force")
      var answer = ReloadAnswer(isTaken: false)
      answer.problems = errors.map(\.text)
      return answer
    case .taken(let changes):
      let mirrors = settings.mirrors
      mirrorsInForce.withLock { $0 = mirrors }
      apply(changes)
      notifier.ready("settings read again")
      var answer = ReloadAnswer(isTaken: true)
      answer.added = changes.added
      answer.removed = changes.removed
      answer.changed = changes.changed
      answer.needRestart = changes.needRestart
      answer.left = tellLeft(before)
      return answer
    }
  }

  /// Logs which folders are no longer named by the settings.
  ///
  /// - Returns: these folders.
  private func tellLeft(_ before: [MirrorSettings]) -> [String] {
    let tarn = parts.tarn
    let kept = Set(settings.mirrors.map { tarn.realPlace($0.folder) })
    let left = before.filter { mirror in
      !kept.contains(tarn.realPlace(mirror.folder)) && tarn.look(mirror.folder)?.home != nil
    }
    for mirror in left {
      parts.log.tell(
        .notice,
        "\(Printable.escape(mirror.folder)) stays as it is: the settings no longer name it; "
          + Tarn.stepsIfLeft(mirror.folder), .of(mirror: mirror.name))
    }
    return left.map(\.folder)
  }

  private func apply(_ changes: SettingsChanges) {
    let settings = self.settings
    // Read before removed mirrors leave the record: one may only have another name.
    let record = shared.withLock { $0.record }
    var actions: [AgentState.Action] = []
    for mirror in (changes.added + changes.changed).compactMap(settings.mirror) {
      parts.tarn.rememberMove(to: mirror.folder)
    }
    for name in changes.removed {
      actions += shared.withLock { shared in
        if shared.mirrors[name]?.works.isEmpty == true { shared.mirrors[name] = nil }
        return shared.state.remove(name)
      }
      budget.forgetReceived(mirror: name)
      parts.log.tell(.notice, "removed from the settings", .of(mirror: name))
    }
    for mirror in changes.added.compactMap(settings.mirror) {
      add(mirror, record: record)
      parts.log.tell(.notice, "added by the settings", .of(mirror: mirror.name))
    }
    for mirror in changes.changed.compactMap(settings.mirror) {
      actions += change(mirror)
      parts.log.tell(.notice, "changed by the settings", .of(mirror: mirror.name))
      dropHold(of: mirror)
    }
    shared.withLock { shared in
      shared.state.setMostPasses(settings.limits.passes)
      shared.rejected = []
      shared.needRestart = changes.needRestart
      shared.settingsRead = moment.wall
      if changes.limits { shared.limit = nil }
      // The file, or what was wrong with it, may be another one now.
      shared.metricsPace.renew()
      if settings.agent.metricsFile == nil { shared.metricsTrouble = nil }
    }
    if changes.agent, !parts.keepsLogForm {
      parts.logOutput.set(settings.agent.logFormat, environment: parts.environment)
    }
    if changes.hooks { hooks.set(settings.hooks) }
    budget.setMirrors(Self.feeds(settings))
    if changes.limits { budget.setLimits(PlaceLimits(settings.limits)) }
    for action in actions { carryOut(action) }
    parts.log.tell(
      .notice, changes.isEmpty ? "settings read again: nothing changed" : "settings read again",
      .of(code: "reloaded"))
  }

  /// Drops a held plan that the settings order no more. A mirror that cannot be examined now drops it in its
  /// next pass.
  private func dropHold(of settings: MirrorSettings) {
    guard let plan = try? parts.tarn.dropUnorderedHold(of: settings) else { return }
    parts.log.tell(
      .notice, "plan \(plan.id) is dropped: the settings order it no more",
      .of(mirror: settings.name, code: "plan-dropped"))
  }

  private func change(_ settings: MirrorSettings) -> [AgentState.Action] {
    let timing = schedules.timing(of: settings)
    let isMoved = shared.withLock { $0.mirrors[settings.name]?.isIn(settings.folder) == false }
    // Another folder has its own history, or none.
    let other = isMoved ? history(of: settings, nil) : nil
    let now = moment
    return shared.withLock { shared in
      let old = shared.mirrors[settings.name]
      shared.mirrors[settings.name] =
        old?.with(settings, now: now.wall) ?? AgentMirror(settings, added: now.wall)
      return shared.state.change(
        settings.name, timing, isOtherFeed: old.map { !$0.follows(settings.feed) } ?? false,
        isOtherWork: old.map { $0.settings.options != settings.options } ?? false, other: other, now: now,
        random: parts.random.unit())
    }
  }

  /// Sets the current rates, of all mirrors together and of each at work.
  func setRates() {
    let now = moment.wall
    let rules = schedules.local
    let (limit, rates) = shared.withLock { shared in
      (
        rateLimit(shared),
        shared.mirrors.values.flatMap { mirror in
          mirror.works.map { (control: $0.rateControl, table: mirror.rates, count: mirror.works.count) }
        }
      )
    }
    budget.setRate(limit)
    // A pass and the repairs beside it share the mirror's rate.
    for (control, table, count) in rates {
      control.set(table.limit(at: now, in: rules).map { max(1, $0 / UInt64(count)) })
    }
  }

  /// The time of the next change of a rate, in the settings or of a mirror.
  func nextRateChange(_ shared: Shared) -> Timestamp? {
    let now = moment.wall
    let rules = schedules.local
    let limits = shared.running.settings.limits
    let tables = [RateTimetable(limits.rates, standard: limits.rate)] + shared.mirrors.values.map(\.rates)
    return tables.compactMap { $0.nextChange(after: now, in: rules) }.min()
  }
}
