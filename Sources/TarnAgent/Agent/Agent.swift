import Glibc
package import Logging
package import TarnConfig
package import TarnCore
import TarnEngine
package import TarnRuntime
import TarnSchedule
package import TarnServer
import TarnTransfer
import TarnWatch

/// The long-running agent: settings, schedules, one pass per mirror at a time. `AgentState` decides, the
/// agent carries out.
///
/// `run` is the loop, on the thread that calls it. All other calls come from any thread and never wait for a
/// pass. They read or change what the lock guards, and wake the loop.
package final class Agent: Sendable {
  /// The parts that an agent is made of.
  package struct Parts: Sendable {
    package var tarn: Tarn
    package var paths: SettingsPaths
    /// Reads the settings; blocks for as long as the disk does.
    package var load: @Sendable () -> LoadedSettings
    package var log: Logger
    let logOutput: LogOutput
    /// True when the command line gives the log's form, which the settings then do not change.
    package var keepsLogForm = false
    package var clock: any Clock = SystemClock()
    package var random: any RandomSource = SystemRandom()
    /// The environment of the process, for the variables of systemd.
    package var environment: [String: String]

    package init(
      tarn: Tarn, paths: SettingsPaths, load: @escaping @Sendable () -> LoadedSettings, log: LogOutput,
      level: Logger.Level = .info, environment: [String: String]
    ) {
      self.tarn = tarn
      self.paths = paths
      self.load = load
      logOutput = log
      self.log = Logger(log, level: level)
      self.environment = environment
    }
  }

  struct Shared {
    var running: RunningSettings
    var state: AgentState
    var mirrors: [String: AgentMirror] = [:]
    var settingsRead: Timestamp
    var rejected: [String] = []
    var needRestart: [String] = []
    /// The limit of `tarn limit`, until the timetable's next row.
    var limit: (rate: UInt64?, until: Timestamp?)?
    var isEnding = false
    var wasWoken = false
    var wantsReload = false
    var record: AgentRecord
    /// The failure of the last attempt to write the record.
    var recordTrouble: AgentDocument.Trouble?
    var listeners: [UInt64: @Sendable () -> Void] = [:]
    var lastListener: UInt64 = 0
    /// The mirrors whose held plan a command carries out now; their passes wait.
    var approving: Set<String> = []
    /// The watched folders, by the mirror's name.
    var watched: [String: WatchedMirror] = [:]
    var watchNames: [WatchID: String] = [:]
    var lastWatch: UInt64 = 0
    var metricsPace = MetricsPace()
    /// The failure of the last attempt to write the text file.
    var metricsTrouble: AgentDocument.Trouble?

    /// True while a pass of the mirror is at work and has not examined the folder yet.
    func isReading(_ name: String) -> Bool { mirrors[name]?.work?.hasLooked == false }

    /// Removes a mirror that the settings no longer have, once nothing is at work in it.
    mutating func dropIfRemoved(_ name: String) {
      if !state.isKnown(name), mirrors[name]?.works.isEmpty != false { mirrors[name] = nil }
    }
  }

  let parts: Parts
  /// The mirrors of the settings in force, for `Tarn`; each reload that is taken renews them.
  let mirrorsInForce: Locked<[MirrorSettings]>
  let budget: TransferBudget
  let started: Timestamp
  let schedules: Schedules
  let notifier: ServiceNotifier
  let shared: LockedCondition<Shared>
  /// The watcher, while the loop runs.
  let watcher = Locked<WatcherProcess?>(nil)
  /// The control server, once it answers.
  let server = Locked<ControlServer?>(nil)
  /// The statuses that were last read from ledgers for the metrics, by the mirror's name.
  let keptStatuses = Locked<[String: KeptStatus]>([:])
  /// Lets only one reload, and one save, run at a time.
  let reloadLock = SlowLock()
  private let savingLock = SlowLock()
  /// Lets only one text file of metrics be written at a time.
  let metricsLock = SlowLock()
  let hooks: Hooks
  /// The lock on the state directory; `nil` when nothing is recorded.
  private let lock: FileLock?
  let ownSessions: Sessions?
  /// The sessions; without a place for them, a port that has none.
  package var sessions: any SessionPort { ownSessions ?? NoSessions() }

  /// Reads the settings and what an earlier agent left.
  ///
  /// - Throws: `configuration` when the settings have errors, which are in the log already; `locked` when
  ///   another agent uses the state directory.
  package init(_ parts: Parts) throws(PassFailure) {
    let loaded = parts.load()
    for problem in loaded.problems { parts.log.tell(problem) }
    guard let running = RunningSettings(loaded) else {
      throw PassFailure(
        .configuration, code: "settings-not-taken",
        "the settings have errors, and the agent does not start without valid ones",
        hint: parts.paths.command("config check"))
    }
    if !parts.keepsLogForm {
      parts.logOutput.set(running.settings.agent.logFormat, environment: parts.environment)
    }
    let budget = TransferBudget(PlaceLimits(running.settings.limits), clock: parts.clock)
    self.budget = budget
    var parts = parts
    let pool = DownloaderPool(budget: budget, clock: parts.clock)
    parts.tarn.pool = pool
    let mirrors = Locked(running.settings.mirrors)
    mirrorsInForce = mirrors
    // An agent asks neither another one nor itself for the meaning of a name.
    parts.tarn.configured = { word in
      mirrors.withLock { $0 }.first { $0.name == word }.map { ($0.folder, $0.state) }
    }
    parts.tarn.configuredFolders = { mirrors.withLock { $0 }.map { ($0.name, $0.folder, $0.feed) } }
    self.parts = parts
    schedules = Schedules(environment: parts.environment)
    notifier = ServiceNotifier(environment: parts.environment)
    let now = parts.clock.time
    started = now
    lock = try parts.paths.state.flatMap { directory throws(PassFailure) in
      try AgentLock.acquire(directory) { parts.log.tell(.warning, $0, .of(code: "agent-lock")) }
    }
    ownSessions = try lock.flatMap { _ in parts.paths.state }.map { directory throws(PassFailure) in
      try PassFailure.translating {
        try Sessions(
          directory: directory + "/sessions", socket: running.settings.agent.socket,
          pool: pool, log: parts.log, clock: parts.clock)
      }
    }
    hooks = Hooks(
      directory: lock == nil ? nil : parts.paths.state, credentials: parts.paths.credentials, log: parts.log,
      clock: parts.clock, random: parts.random)
    if let kept = parts.paths.state.flatMap(AgentRecord.setAside) {
      parts.log.tell(
        .warning, "the agent's record was damaged; it is kept as \(kept), and pauses may be forgotten",
        .of(code: "record-damaged"))
    }
    let record = parts.paths.state.map(AgentRecord.read) ?? AgentRecord()
    shared = LockedCondition(
      Shared(
        running: running, state: AgentState(mostPasses: running.settings.limits.passes), settingsRead: now,
        record: record))
    budget.setMirrors(Self.feeds(running.settings))
    for mirror in running.settings.mirrors { add(mirror) }
    budget.onAsked { [weak self] in self?.wake() }
  }

  /// The feed of each mirror, by the mirror's name.
  static func feeds(_ settings: Settings) -> [String: String] {
    Dictionary(settings.mirrors.map { ($0.name, $0.feed) }) { first, _ in first }
  }

  package var settings: Settings { shared.withLock { $0.running.settings } }

  var moment: Moment {
    Moment(wall: parts.clock.time, monotonic: parts.clock.monotonic())
  }

  // MARK: - The loop

  func beginSessions() { ownSessions?.begin() }

  /// Runs until `end` was called and every pass has ended.
  package func run() {
    hooks.set(settings.hooks)
    startWatching()
    notifier.ready(summary())
    tellMirrors()
    var wasBusy = false
    /// The time since when nothing is at work; `nil` once the leftovers in memory were dropped.
    var idleSince: Instant?
    while true {
      notifier.alive()
      if takeReload() { _ = reload() }
      noteStalled()
      updateWatches()
      let (actions, isIdle, isOver) = shared.withLock { shared -> ([AgentState.Action], Bool, Bool) in
        var actions = shared.state.advance(now: moment) { parts.random.unit() }
        actions += dueRepairs(&shared)
        let isIdle = shared.state.isIdle
        return (actions, isIdle, shared.isEnding && isIdle)
      }
      // The memory of passes goes back to the system: the next pass may be hours away.
      if wasBusy, isIdle {
        UnusedMemory.giveBack()
        idleSince = parts.clock.monotonic()
      }
      wasBusy = !isIdle
      if wasBusy { idleSince = nil }
      if let since = idleSince, parts.clock.monotonic() - since >= Self.afterglow {
        idleSince = nil
        forgetOwnWrites()
      }
      for action in actions { carryOut(action) }
      if isOver { break }
      setRates()
      noteAsked()
      tellProgress()
      save()
      writeMetrics()
      notifier.status(summary())
      tellListeners()
      sleep(atMost: idleSince == nil ? .longest : Self.afterglow)
    }
    writeLastMetrics()
    ownSessions?.end()
    save()
    hooks.end()
    watcher.withLock { $0 }?.close()
    tellListeners()
  }

  private func startWatching() {
    do {
      let made = try WatcherProcess { [weak self] in self?.receive($0) }
      watcher.withLock { $0 = made }
    } catch {
      parts.log.tell(.error, "no folder is watched: \(PassFailure(translating: error).message)")
    }
  }

  /// Asks the agent to end: passes keep what they fetched. Any thread.
  package func end() {
    notifier.stopping(Self.ending)
    let (actions, stops) = shared.change { shared -> ([AgentState.Action], [StopFlag]) in
      shared.isEnding = true
      shared.wasWoken = true
      return (shared.state.end(), shared.mirrors.values.flatMap { $0.works.map(\.stop) })
    }
    for action in actions { carryOut(action) }
    // This also stops approvals that follow a pass already asked to end.
    for stop in stops { stop.set() }
  }

  /// Asks the loop to read the settings again, as SIGHUP does. Callable on any thread.
  package func askReload() {
    shared.change { shared in
      shared.wantsReload = true
      shared.wasWoken = true
    }
  }

  private func takeReload() -> Bool {
    shared.withLock { shared in
      defer { shared.wantsReload = false }
      return shared.wantsReload
    }
  }

  /// How long to wait for the watcher's events about what a pass wrote.
  private static let afterglow = Duration.seconds(5)

  private func forgetOwnWrites() {
    for watched in shared.withLock({ Array($0.watched.values) }) { watched.ownWrites.forget() }
    UnusedMemory.giveBack()
  }

  private func sleep(atMost most: Duration) {
    let wait = shared.withLock { shared -> Duration in
      let now = moment
      var waits = [most, shared.state.wait(now: now) { parts.random.unit() }, repairWait(shared)]
      if let change = nextRateChange(shared) { waits.append(change - now.wall) }
      if let due = nextProgressLine(shared) { waits.append(due.remaining(at: now.monotonic)) }
      if shared.running.settings.agent.metricsFile != nil {
        waits.append(shared.metricsPace.wait(now: now.monotonic))
      }
      // Events of a pass in another process are found by polling.
      if !shared.listeners.isEmpty { waits.append(.seconds(1)) }
      return max(.milliseconds(1), waits.min() ?? most)
    }
    let half = notifier.watchdog.map { $0 / 2 } ?? .longest
    _ = shared.wait(atMost: min(wait, half)) { shared -> Void? in
      guard shared.wasWoken else { return nil }
      shared.wasWoken = false
      return ()
    }
  }

  func wake() { shared.change { $0.wasWoken = true } }

  // MARK: - Actions

  func carryOut(_ action: AgentState.Action) {
    switch action {
    case .stop(let name):
      for work in shared.withLock({ $0.mirrors[name]?.works ?? [] }) { work.stop.set() }
    case .start(let name, let run): start(name, run)
    case .repair(let name, let run): startRepair(name, run)
    }
  }

  /// Returns a new work with its share of the mirror's rate while it lasts; see `setRates`.
  func work(_ run: UInt64, of mirror: AgentMirror?) -> AgentWork {
    let count = UInt64((mirror?.works.count ?? 0) + 1)
    let rate = mirror?.rates.limit(at: moment.wall, in: schedules.local).map { max(1, $0 / count) }
    let now = parts.clock.monotonic()
    return AgentWork(
      run: run, rid: parts.random.uuid(), began: now, progress: PassProgress(clock: parts.clock),
      stop: StopFlag(), rateControl: RateControl(rate), told: now)
  }

  private func start(_ name: String, _ run: UInt64) {
    let (mirror, work) = shared.withLock { shared -> (AgentMirror?, AgentWork) in
      let work = self.work(run, of: shared.mirrors[name])
      shared.mirrors[name]?.work = work
      if shared.state.isStopping(name) { work.stop.set() }
      defer { shared.mirrors[name]?.recreates = false }
      return (shared.mirrors[name], work)
    }
    guard let mirror else { return ended(name, run, RunOutcome(Self.gone)) }
    let pass = AgentPass(agent: self, mirror: mirror, work: work)
    let since = parts.clock.monotonic()
    do {
      _ = try WorkerThread.start(name: "tarn-pass", stackSize: 8 << 20) { [self] in
        approveBefore(name, stop: work.stop)
        let outcome = pass.run()
        if outcome.hasScanned { looked(name, since: since) }
        ended(name, run, outcome)
      }
    } catch {
      ended(name, run, RunOutcome(PassFailure(translating: error)))
    }
  }

  private static let gone = PassFailure(
    .stopped, code: "stopped", "the mirror is no longer among the settings")

  private func ended(_ name: String, _ run: UInt64, _ outcome: RunOutcome) {
    var result = outcome
    // The record holds a host's Retry-After from answers for files; a later agent has no other source.
    if [.failedTransient, .failedPermanent].contains(result.outcome), result.hints.retryAfter == nil {
      result.hints.retryAfter = budget.askedRest(mirror: name)
    }
    var isOver = false
    var told: (mirror: AgentMirror, condition: MirrorCondition?)?
    while !isOver {
      let isSettled = approveAfter(name, &result)
      isOver = shared.change { shared in
        // A plan that was approved at this very moment goes first.
        guard !isSettled || shared.isEnding || shared.mirrors[name]?.approved == nil else { return false }
        shared.state.ended(
          name, result.outcome, hints: result.hints, hasReadFeed: result.hasReadFeed, now: moment,
          random: parts.random.unit())
        let took = shared.mirrors[name]?.work.map { parts.clock.monotonic().elapsed(since: $0.began) }
        shared.mirrors[name]?.tally.ended(result, after: took)
        shared.metricsPace.note()
        if let mirror = shared.mirrors[name] {
          let condition = MirrorCondition(result.outcome) ?? mirror.condition
          shared.mirrors[name]?.condition = condition
          told = (mirror, condition)
        }
        let withdrawn = shared.mirrors[name]?.withdrawn ?? 0
        // Only a look at everything, alone, counts what repairs have recorded.
        if result.wantsCount || shared.mirrors[name]?.work?.wantsCount == true {
          shared.watched[name]?.book.wantCount(now: parts.clock.monotonic())
        }
        shared.mirrors[name]?.work = nil
        shared.mirrors[name]?.lastRun = result.lastRun(max(run, withdrawn))
        shared.mirrors[name]?.withdrawn = nil
        if result.outcome != .cancelled, result.outcome != .busy {
          shared.mirrors[name]?.failure = result.failure
          shared.mirrors[name]?.busy = nil
        }
        shared.dropIfRemoved(name)
        shared.wasWoken = true
        return true
      }
    }
    if let told { tellEnded(told.mirror, told.condition, result) }
    if result.outcome == .busy { return tellBusy(name, outcome.message) }
    parts.log.tell(result.level, result.message, .of(mirror: name, code: result.code))
  }

  /// Notes the Retry-After of answers for files; the feed's host has answered before.
  private func noteAsked() {
    let names = shared.withLock { shared in
      shared.state.running.filter {
        shared.mirrors[$0]?.work.map { $0.progress.snapshot().phase != .reading } == true
      }
    }
    for name in names { setAsked(name, budget.askedRest(mirror: name).map(Double.init)) }
  }

  /// Notes a Retry-After and wakes the loop, which saves it during the pass. An agent that follows does not
  /// ask sooner.
  func setAsked(_ name: String, _ seconds: Double?) {
    let isNews = shared.withLock { $0.state.setAsked(name, seconds, now: moment) }
    if isNews { wake() }
  }

  /// Logs that another process works at the folder. Attempts repeat, so the log tells it once per process.
  func tellBusy(_ name: String, _ message: String) {
    let isNew = shared.withLock { shared in
      defer { shared.mirrors[name]?.busy = message }
      return shared.mirrors[name]?.busy != message
    }
    guard isNew else { return }
    parts.log.tell(.notice, message, .of(mirror: name, code: "folder-busy"))
  }

  // MARK: - Mirrors

  /// Adds a mirror of the settings. Reads its ledger, so the lock must not be held.
  ///
  /// - Parameter record: the record of the mirror; `nil` for the one that was saved last.
  func add(_ settings: MirrorSettings, record: AgentRecord? = nil) {
    let kept = shared.withLock { shared in
      (record ?? shared.record).mirror(settings, among: shared.running.settings.mirrors.map(\.name))
    }
    let history = history(of: settings, kept)
    let timing = schedules.timing(of: settings)
    shared.withLock { shared in
      var mirror = AgentMirror(settings, added: moment.wall)
      mirror.priority = kept?.priority ?? .normal
      let old = shared.mirrors[settings.name]
      mirror.steering =
        old.flatMap { $0.isIn(settings.folder) ? $0.steering : nil }
        ?? PassSteering(paused: Set(kept?.pausedPaths ?? []))
      mirror.failure = kept?.failure
      // What hooks were told of this name, whatever folder it had.
      mirror.condition =
        kept?.condition ?? (record ?? shared.record).mirrors[settings.name]?.condition
        ?? MirrorCondition(kept?.history.lastOutcome)
      mirror.approved = kept?.approved
      // A pass that is still ending belongs to the earlier mirror of that name.
      mirror.work = old?.work
      mirror.repairs = old?.repairs ?? []
      mirror.withdrawn = old?.withdrawn
      mirror.tally = old?.tally ?? MirrorTally()
      shared.mirrors[settings.name] = mirror
      budget.setPriority(TransferPriority(mirror.priority), mirror: settings.name)
      budget.remember(kept?.wishes ?? [], mirror: settings.name)
      shared.state.add(
        settings.name, timing, history: history, isPaused: kept?.isPaused ?? false,
        owesPass: kept?.owesPass ?? false, now: moment, random: parts.random.unit())
    }
  }

  /// Combines the last pass in the ledger, whoever made it, with what the last agent recorded.
  func history(of settings: MirrorSettings, _ kept: AgentRecord.Mirror?) -> RunSchedule.History {
    var history = kept?.history ?? RunSchedule.History()
    let recorded = parts.tarn.history(of: settings)
    // Only the folder tells of a mirror that was not the agent's.
    if kept == nil { history.wasCutShort = recorded.wasCutShort }
    history.lastAttempt = [recorded.lastAttempt, history.lastAttempt].compactMap(\.self).max()
    // The ledger of a lost folder cannot be read.
    history.lastSuccess =
      recorded.lastSuccess ?? (parts.tarn.loss(of: settings) == nil ? nil : kept?.history.lastSuccess)
    if let success = recorded.lastSuccess, let attempt = kept?.history.lastAttempt, success > attempt {
      // Somebody has synced by hand since.
      history.failures = 0
      history.lastOutcome = .succeeded
      history.wasCutShort = false
    }
    return history
  }

  // MARK: - The record

  /// Saves what is to outlive the agent, if it changed.
  ///
  /// - Returns: the reason why it could not be saved; `nil` when it is.
  @discardableResult
  func save() -> String? {
    guard let directory = parts.paths.state else { return nil }
    return savingLock.withLock { save(in: directory) }
  }

  private func save(in directory: String) -> String? {
    let wishes = budget.wishes()
    let (record, hasChanged) = shared.withLock { shared -> (AgentRecord, Bool) in
      var record = AgentRecord()
      for (name, mirror) in shared.mirrors {
        guard let history = shared.state.history(of: name) else { continue }
        var kept = AgentRecord.Mirror(folder: mirror.settings.folder)
        kept.feed = mirror.settings.feed
        kept.isPaused = shared.state.isPaused(name)
        kept.owesPass = shared.state.owesPass(name)
        kept.priority = mirror.priority
        kept.history = history
        (kept.failure, kept.condition) = (mirror.failure, mirror.condition)
        kept.approved = mirror.approved
        kept.pausedPaths = mirror.steering.paused.sorted()
        kept.wishes = Array(wishes[name, default: []].prefix(AgentRecord.mostWishes))
        record.mirrors[name] = kept
      }
      return (record, record != shared.record)
    }
    guard hasChanged else { return nil }
    guard let reason = record.save(directory) else {
      shared.withLock { ($0.record, $0.recordTrouble) = (record, nil) }
      return nil
    }
    let trouble = "cannot write \(Printable.escape(AgentRecord.path(in: directory))): \(reason)"
    let isNew = shared.withLock { shared in
      defer {
        shared.recordTrouble = AgentDocument.Trouble(
          code: "agent-record", message: "\(trouble): pauses may be forgotten",
          hint: "make room there, or make it writable")
      }
      return shared.recordTrouble == nil
    }
    if isNew {
      parts.log.tell(.warning, "\(trouble): pauses may be forgotten", .of(code: "agent-record"))
    }
    return trouble
  }

  private static let ending = "ending; what was fetched is kept"

  /// The summary for `systemctl status`.
  private func summary() -> String {
    shared.withLock { shared in
      guard !shared.isEnding else { return Self.ending }
      let running = shared.state.running.count
      let failing = shared.mirrors.values.count { $0.failure != nil }
      let paused = shared.mirrors.keys.count { shared.state.isPaused($0) }
      let parts = [
        Units.count(shared.mirrors.count, "mirror"), running > 0 ? "\(running) at work" : "idle",
        failing > 0 ? "\(failing) failing" : nil, paused > 0 ? "\(paused) paused" : nil,
        shared.rejected.isEmpty
          ? nil : "newer settings were rejected: \(self.parts.paths.command("status"))",
      ]
      return parts.compactMap { $0 }.joined(separator: ", ")
    }
  }
}

extension Logger {
  func tell(_ problem: SettingsProblem) {
    let hint = problem.hint.map { "; \($0)" } ?? ""
    tell(
      problem.severity == .error ? .error : .warning, "\(problem.origin.text): \(problem.message)\(hint)",
      .of(code: problem.code.rawValue))
  }
}
