import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnFolder
import TarnRuntime
import TarnSchedule
import TarnWatch

/// The agent's knowledge of one watched folder.
struct WatchedMirror: Sendable {
  let id: WatchID
  let folder: String
  private let rescan: Int64
  var book: WatchState
  let ownWrites = OwnWrites()
  /// The events that wait to be written to the journal.
  private(set) var events: [Event] = []
  /// The time before which the journal is not tried again.
  private var eventsDue = Instant()
  /// The reason why the last repair could not look at the folder; `nil` when it could.
  var trouble: String?

  init(_ id: WatchID, _ settings: MirrorSettings, now: Instant, random: Double) {
    (self.id, folder, rescan) = (id, settings.folder, settings.rescan)
    var pace = WatchState.Pace()
    pace.rescan = rescan
    book = WatchState(isWatched: true, hasJournal: false, pace: pace, now: now, random: random)
  }

  /// True when the settings still ask for the same watch.
  func isAsIn(_ settings: MirrorSettings) -> Bool {
    settings.folder == folder && settings.rescan == rescan
  }

  /// The number of waiting events, at most; the oldest are dropped.
  static let mostEvents = 64

  /// - Returns: whether a repair is due sooner because of the event, and what to log.
  mutating func receive(
    _ event: WatchNews.Event, at moment: (monotonic: Instant, wall: Timestamp), random: Double
  ) -> (isSooner: Bool, notes: [WatchState.Note]) {
    let before = wait(now: moment.monotonic)
    book.receive(event, now: moment.monotonic, random: random)
    let notes = book.takeNotes()
    events += notes.map { Event(when: moment.wall, code: $0.code, detail: $0.detail) }
    dropOldest()
    let isSooner = wait(now: moment.monotonic).map { $0 < before ?? .longest } ?? false
    return (isSooner, notes)
  }

  /// Takes the waiting events, to write them to the journal. Without a journal they stay.
  mutating func takeEvents() -> [Event] {
    guard book.hasJournal else { return [] }
    defer { events = [] }
    return events
  }

  /// Puts events back that could not be written to the journal.
  mutating func giveBack(_ untold: [Event], now: Instant) {
    guard !untold.isEmpty else { return }
    events = untold + events
    dropOldest()
    eventsDue = now + Self.eventsPause
  }

  private mutating func dropOldest() { events.removeFirst(max(0, events.count - Self.mostEvents)) }

  private static let eventsPause = Duration.seconds(30)

  /// The time until there is something to examine or to write, zero when there is already; `nil` when there
  /// is nothing.
  ///
  /// - Parameter isReading: see `WatchState.wait`.
  func wait(now: Instant, isReading: Bool = false) -> Duration? {
    let telling = events.isEmpty || !book.hasJournal ? nil : eventsDue.remaining(at: now)
    return [telling, book.wait(now: now, isReading: isReading)].compactMap(\.self).min()
  }
}

/// The watched folders: their events, and the repairs that follow.
extension Agent {
  // MARK: - Which are watched

  /// Watches the folders that the settings name, and no others. Runs on the loop's thread, or before the
  /// loop.
  func updateWatches() {
    guard let watcher = watcher.withLock({ $0 }) else { return }
    let now = parts.clock.monotonic()
    let (gone, new) = shared.withLock { shared -> ([WatchID], [(WatchID, MirrorSettings)]) in
      // A removed mirror ends its pass unwatched, for another one may have its folder now.
      let wanted = shared.mirrors.mapValues(\.settings).filter { name, settings in
        settings.watches && !settings.isDryRun && shared.state.isKnown(name)
      }
      let gone = shared.watched.filter { name, watched in
        wanted[name].map(watched.isAsIn) != true
      }
      for (name, watched) in gone {
        shared.watched[name] = nil
        shared.watchNames[watched.id] = nil
      }
      var new: [(WatchID, MirrorSettings)] = []
      for (name, settings) in wanted where shared.watched[name] == nil {
        shared.lastWatch += 1
        let id = WatchID(shared.lastWatch)
        let watched = WatchedMirror(id, settings, now: now, random: parts.random.unit())
        watched.ownWrites.setOnDoubt { [weak self] path in self?.receive(WatchNews(id, .dirty(path))) }
        shared.watched[name] = watched
        shared.watchNames[id] = name
        new.append((id, settings))
      }
      return (gone.values.map(\.id), new)
    }
    for id in gone { watcher.forget(id) }
    for (id, settings) in new {
      if parts.tarn.followsFeed(folder: settings.folder, state: settings.state) {
        begunJournal(settings.name)
      }
      watcher.watch(id, path: Array(settings.folder.utf8))
    }
  }

  /// Notes that the mirror has a journal, which keeps events from now on.
  func begunJournal(_ name: String) {
    shared.change { shared in
      guard let book = shared.watched[name]?.book, !book.hasJournal else { return }
      shared.watched[name]?.book.begunJournal()
      shared.wasWoken = true
    }
  }

  // MARK: - News

  /// Takes an event of the watcher. Runs on its thread; never blocks for long.
  func receive(_ news: WatchNews) {
    let known = shared.withLock { shared in
      shared.watchNames[news.id].flatMap { name in
        shared.watched[name].map { (name: name, folder: $0.folder, ownWrites: $0.ownWrites) }
      }
    }
    guard let (name, folder, ownWrites) = known else { return }
    if case .dirty(let path) = news.event, ownWrites.isOwn(path, look: { LocalFolder.look($0, in: folder) }) {
      return
    }
    let now = parts.clock.monotonic()
    let when = moment.wall
    let random = parts.random.unit()
    let (isSooner, notes) = shared.withLock { shared -> (Bool, [WatchState.Note]) in
      guard shared.watched[name]?.id == news.id else { return (false, []) }
      // Changed in place: a copy of the book would copy everything that waits in it.
      let heard = shared.watched[name]?.receive(news.event, at: (now, when), random: random)
      let losses = heard?.notes.count { $0.code == "watch-lost" } ?? 0
      shared.mirrors[name]?.tally.watchLosses += losses
      return heard ?? (false, [])
    }
    for note in notes {
      let isLoss = note.code == "watch-lost"
      parts.log.tell(
        isLoss ? .warning : .notice,
        isLoss ? "the folder is not watched: \(note.detail)" : note.detail,
        .of(mirror: name, code: note.code))
    }
    if isSooner { wake() }
  }

  // MARK: - Repairs

  /// Returns the repairs that are due and may begin.
  func dueRepairs(_ shared: inout Shared) -> [AgentState.Action] {
    let now = parts.clock.monotonic()
    return shared.watched.keys.sorted().compactMap { name in
      guard wait(name, shared, now: now) == .zero else { return nil }
      return shared.state.repair(name)
    }
  }

  /// The time until the next repair may begin; `.longest` when none may.
  func repairWait(_ shared: Shared) -> Duration {
    guard shared.state.hasRepairPlace else { return .longest }
    let now = parts.clock.monotonic()
    let waits = shared.watched.keys.compactMap { name in
      shared.state.mayRepair(name) ? wait(name, shared, now: now) : nil
    }
    return waits.min() ?? .longest
  }

  private func wait(_ name: String, _ shared: Shared, now: Instant) -> Duration? {
    shared.watched[name]?.wait(now: now, isReading: shared.isReading(name))
  }

  func startRepair(_ name: String, _ run: UInt64) {
    let now = parts.clock.monotonic()
    let taken = shared.withLock { shared -> (AgentPass, WatchID, [Region], [Event], Bool)? in
      guard let mirror = shared.mirrors[name], let id = shared.watched[name]?.id else { return nil }
      let work = work(run, of: mirror)
      shared.mirrors[name]?.repairs.append(work)
      if shared.state.isStopping(name) { work.stop.set() }
      let isReading = shared.isReading(name)
      let regions = shared.watched[name]?.book.begin(now: now, isReading: isReading) ?? []
      let onlyCounts = shared.watched[name]?.book.onlyCounts == true
      let pass = AgentPass(agent: self, mirror: mirror, work: work)
      return (pass, id, regions, shared.watched[name]?.takeEvents() ?? [], onlyCounts)
    }
    guard let (pass, id, regions, events, onlyCounts) = taken, !regions.isEmpty || !events.isEmpty else {
      return repaired(Repair(mirror: name, run: run, watch: nil), RepairOutcome(isDone: true))
    }
    let repair = Repair(mirror: name, run: run, watch: id, regions: regions, events: events)
    do {
      _ = try WorkerThread.start(name: "tarn-repair", stackSize: 8 << 20) { [self] in
        var repair = repair
        let outcome = pass.repair(regions, events, onlyCounts: onlyCounts) { duration in
          repair.isBringing = true
          beginBringing(repair, looked: duration)
        }
        repaired(repair, outcome)
      }
    } catch {
      repaired(repair, RepairOutcome(PassFailure(translating: error)))
    }
  }

  /// A repair at work.
  private struct Repair {
    let mirror: String
    let run: UInt64
    /// The watch that the repair belongs to; the mirror may have a new one since. `nil` when nothing is
    /// examined.
    let watch: WatchID?
    var regions: [Region] = []
    var events: [Event] = []
    /// True once it has examined the folder.
    var isBringing = false
  }

  /// Notes that the repair has examined the folder, so that another one may.
  private func beginBringing(_ repair: Repair, looked duration: Duration) {
    let (now, random) = (parts.clock.monotonic(), parts.random.unit())
    shared.change { shared in
      if shared.watched[repair.mirror]?.id == repair.watch {
        shared.watched[repair.mirror]?.book.beginBringing(looked: duration, now: now, random: random)
      }
      shared.state.looked(repair.mirror)
      shared.wasWoken = true
    }
  }

  private func repaired(_ repair: Repair, _ outcome: RepairOutcome) {
    let name = repair.mirror
    let random = parts.random.unit()
    var (isNew, isBack) = (true, false)
    shared.change { shared in
      let now = moment
      if shared.watched[name]?.id == repair.watch {
        let isUnborn = outcome.hasNoMirror && shared.watched[name]?.book.hasJournal == false
        let isDone = outcome.isDone || isUnborn
        // Beside a pass nothing can be counted.
        let isAlone = shared.mirrors[name]?.work == nil
        if outcome.wantsCount { shared.mirrors[name]?.work?.wantsCount = true }
        let wantsCount = outcome.wantsCount && isAlone
        if repair.isBringing {
          shared.watched[name]?.book.brought(
            repair.regions, isDone: isDone, wantsCount: wantsCount, now: now.monotonic)
        } else {
          shared.watched[name]?.book.end(
            isDone: isDone, isBusy: outcome.isBusy, wantsCount: wantsCount, looked: outcome.lookTime,
            now: now.monotonic, random: random)
        }
        shared.watched[name]?.giveBack(outcome.hasTold ? [] : repair.events, now: now.monotonic)
        isNew = shared.watched[name]?.trouble != outcome.message
        if !outcome.wasBlind || outcome.message != nil {
          shared.watched[name]?.trouble = outcome.isDone && !outcome.wasBlind ? nil : outcome.message
        }
        if outcome.hasTold { shared.watched[name]?.book.begunJournal() }
      }
      let urgency = outcome.urgency(after: shared.mirrors[name]?.failure)
      // The failure of the last pass no longer applies: the folder could be examined.
      isBack = repair.watch != nil && outcome.isDone && shared.mirrors[name]?.failure?.isOfFolder == true
      if isBack { shared.mirrors[name]?.failure = nil }
      shared.state.repaired(
        name, wasLooking: !repair.isBringing, needsPass: outcome.needsPass || isBack,
        urgency: isBack ? .blind : urgency, now: now)
      shared.mirrors[name]?.repairs.removeAll { $0.run == repair.run }
      if outcome.hasChanges { shared.mirrors[name]?.tally.repairs += 1 }
      shared.metricsPace.note()
      shared.dropIfRemoved(name)
      shared.wasWoken = true
    }
    if isBack {
      parts.log.tell(
        .notice, "the folder can be looked at again", .of(mirror: name, code: "folder-back"))
    }
    guard let message = outcome.message, isNew || !outcome.wasBlind else { return }
    parts.log.tell(outcome.level, message, .of(mirror: name, code: outcome.code))
    tellListeners()
  }

  /// Notes that a pass of the mirror has examined the whole folder.
  ///
  /// - Parameter since: the time when the pass began.
  func looked(_ name: String, since: Instant) {
    shared.withLock { shared in
      shared.watched[name]?.book.looked(
        since: since, now: parts.clock.monotonic(), random: parts.random.unit())
      shared.watched[name]?.trouble = nil
    }
    watchIfMissing(name)
  }

  /// Watches a folder that was missing. The first pass makes it, and it may change before the watch would be
  /// tried again.
  func watchIfMissing(_ name: String) {
    let missing = shared.withLock { shared in
      shared.watched[name].flatMap { $0.book.isMissing ? (id: $0.id, folder: $0.folder) : nil }
    }
    if let missing { watcher.withLock { $0 }?.watch(missing.id, path: Array(missing.folder.utf8)) }
  }
}

/// The outcome of a repair.
struct RepairOutcome: Sendable {
  /// True when it examined everything that it was to examine.
  var isDone: Bool
  /// True when there is no mirror. Its first pass makes one that never was; a lost one may come back, with
  /// what was to be examined.
  var hasNoMirror = false
  /// True when an order or another manifest ended it, which tells nothing of the folder.
  var wasStopped = false
  var needsPass = false
  /// True when it did not know what these settings want. Only a pass can tell what changed.
  var wasBlind = false
  /// See `RepairReport`.
  var wantsVersion = false
  var wantsCount = false
  /// See `RepairReport`.
  var lookTime = Duration.zero
  /// True when the events that it was to write are in the journal.
  var hasTold = false
  /// True when it put something in the folder right.
  var hasChanges = false
  /// The message for the log; `nil` when there is none.
  var message: String?
  var code = "repaired"
  var level = Logger.Level.info

  init(isDone: Bool) { self.isDone = isDone }

  /// True when the obstacle is expected to be over soon.
  var isBusy: Bool { code == "folder-busy" || wasStopped }

  /// Returns why the pass that has to follow is worth no wait; `nil` when it waits. A server that failed at the feed itself is left
  /// alone.
  ///
  /// - Parameter failure: the reason why the last pass did not do its work; `nil` when it did.
  func urgency(after failure: PassFault?) -> RunSchedule.Urgency? {
    if wasBlind { return .blind }
    return wantsVersion && failure == nil ? .version : nil
  }

  /// - Parameters:
  ///   - isWholeLook: true when it examined the whole folder, as after each start; then nobody knows of a
  ///     change.
  ///   - command: the command that starts a pass, when none comes by itself.
  init(_ report: RepairReport, isWholeLook: Bool, command: String?) {
    wasStopped = report.report.wasStopped || report.isSuperseded
    isDone = !wasStopped
    hasTold = report.hasJournal
    // A mirror whose catalog no pass of an agent has read waits for its schedule.
    needsPass = report.needsPass && !(report.hasNoCatalog && isWholeLook && !report.hadCatalog)
    wasBlind = needsPass && report.hasNoCatalog
    wantsVersion = needsPass && report.wantsVersion
    wantsCount = report.wantsCount
    lookTime = report.lookTime
    if wasBlind, !isWholeLook {
      let pass = command.map { "'\($0)'" } ?? "a pass"
      message = "local changes wait for \(pass): what is wanted by these settings is not known before"
      level = .notice
    }
    let counts = report.report.counts
    hasChanges = counts.hasChanges
    if report.hasNews, counts.hasChanges || !report.report.problems.isEmpty {
      let rest = command.map { "the rest waits for '\($0)'" } ?? "a pass follows"
      message = "local changes: \(counts.changes)" + (needsPass ? "; \(rest)" : "")
      if !report.report.problems.isEmpty { level = .warning }
    }
  }

  init(_ failure: PassFailure) {
    isDone = false
    code = failure.code
    if failure.kind == .stopped { return }
    // A pass may have made the folder, and removed it before it could be opened here.
    if ["no-folder", "not-a-mirror", FolderFailure.Code.missing.rawValue].contains(failure.code) {
      hasNoMirror = true
      return
    }
    message = "local changes could not be looked at: \(failure.message)"
    level = .warning
  }
}
