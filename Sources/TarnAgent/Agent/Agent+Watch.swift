import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnFolder
import TarnRuntime
import TarnSchedule
import TarnWatch

/// What the agent knows of one folder that is watched.
struct WatchedMirror: Sendable {
  let id: WatchID
  let folder: String
  private let rescan: Int64
  var book: WatchState
  let ownWrites = OwnWrites()
  /// What the journal has to be told.
  private(set) var events: [Event] = []
  /// Before, it is not tried again.
  private var eventsDue = Instant()
  /// Why the last repair could not look; nil when it could.
  var trouble: String?

  init(_ id: WatchID, _ settings: MirrorSettings, now: Instant, random: Double) {
    (self.id, folder, rescan) = (id, settings.folder, settings.rescan)
    var pace = WatchState.Pace()
    pace.rescan = rescan
    book = WatchState(isWatched: true, hasJournal: false, pace: pace, now: now, random: random)
  }

  /// Whether what the settings say now is watched like this.
  func isAsIn(_ settings: MirrorSettings) -> Bool {
    settings.folder == folder && settings.rescan == rescan
  }

  /// Of the events that wait, the newest are kept.
  static let mostEvents = 64

  /// - Returns: whether a repair is due sooner by it, and what is to be told.
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

  /// Whoever takes them tells the journal. Those of a mirror without one wait for it.
  mutating func takeEvents() -> [Event] {
    guard book.hasJournal else { return [] }
    defer { events = [] }
    return events
  }

  /// The journal could not be told.
  mutating func giveBack(_ untold: [Event], now: Instant) {
    guard !untold.isEmpty else { return }
    events = untold + events
    dropOldest()
    eventsDue = now + Self.eventsPause
  }

  private mutating func dropOldest() { events.removeFirst(max(0, events.count - Self.mostEvents)) }

  private static let eventsPause = Duration.seconds(30)

  /// Until there is something to look at or to tell, zero when there is; nil when there is not.
  ///
  /// - Parameter isReading: see `WatchState.wait`.
  func wait(now: Instant, isReading: Bool = false) -> Duration? {
    let telling = events.isEmpty || !book.hasJournal ? nil : eventsDue.remaining(at: now)
    return [telling, book.wait(now: now, isReading: isReading)].compactMap(\.self).min()
  }
}

/// The watched folders: news of them, and the repairs that follow.
extension Agent {
  // MARK: - Which are watched

  /// Watches the folders that the settings name, and no others. On the loop's thread, and before it runs.
  func updateWatches() {
    guard let watcher = watcher.withLock({ $0 }) else { return }
    let now = parts.clock.monotonic()
    let (gone, new) = shared.withLock { shared -> ([WatchID], [(WatchID, MirrorSettings)]) in
      // One that is removed ends its pass unwatched: another may have its folder from now on.
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

  /// What the mirror's journal is told stays there from now on.
  func begunJournal(_ name: String) {
    shared.change { shared in
      guard let book = shared.watched[name]?.book, !book.hasJournal else { return }
      shared.watched[name]?.book.begunJournal()
      shared.wasWoken = true
    }
  }

  // MARK: - News

  /// On the watcher's thread; never blocks for long.
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
      // In its place: a copy of the book would be one of all that waits in it.
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

  /// Repairs that are due and may begin.
  func dueRepairs(_ shared: inout Shared) -> [AgentState.Action] {
    let now = parts.clock.monotonic()
    return shared.watched.keys.sorted().compactMap { name in
      guard wait(name, shared, now: now) == .zero else { return nil }
      return shared.state.repair(name)
    }
  }

  /// Until a repair is due that may begin.
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
    /// Of whom it is; the mirror may be watched anew since. nil when nothing is looked at.
    let watch: WatchID?
    var regions: [Region] = []
    var events: [Event] = []
    /// It has looked at the folder.
    var isBringing = false
  }

  /// Another repair may look at the folder.
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
        if repair.isBringing {
          shared.watched[name]?.book.brought(
            repair.regions, isDone: isDone, wantsCount: outcome.wantsCount, now: now.monotonic)
        } else {
          shared.watched[name]?.book.end(
            isDone: isDone, isBusy: outcome.isBusy, wantsCount: outcome.wantsCount,
            looked: outcome.lookTime, now: now.monotonic, random: random)
        }
        shared.watched[name]?.giveBack(outcome.hasTold ? [] : repair.events, now: now.monotonic)
        isNew = shared.watched[name]?.trouble != outcome.message
        if !outcome.wasBlind || outcome.message != nil {
          shared.watched[name]?.trouble = outcome.isDone && !outcome.wasBlind ? nil : outcome.message
        }
        if outcome.hasTold { shared.watched[name]?.book.begunJournal() }
      }
      // That pass asked another folder.
      isBack = repair.watch != nil && outcome.isDone && shared.mirrors[name]?.failure?.isOfFolder == true
      if isBack { shared.mirrors[name]?.failure = nil }
      shared.state.repaired(
        name, wasLooking: !repair.isBringing, needsPass: outcome.needsPass || isBack,
        endsBackOff: outcome.wasBlind || isBack, now: now)
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

  /// A pass of the mirror has looked at the whole folder.
  ///
  /// - Parameter since: when it began.
  func looked(_ name: String, since: Instant) {
    shared.withLock { shared in
      shared.watched[name]?.book.looked(
        since: since, now: parts.clock.monotonic(), random: parts.random.unit())
      shared.watched[name]?.trouble = nil
    }
    watchIfMissing(name)
  }

  /// By its first pass a folder is there, and somebody may change it before it would be tried again.
  func watchIfMissing(_ name: String) {
    let missing = shared.withLock { shared in
      shared.watched[name].flatMap { $0.book.isMissing ? (id: $0.id, folder: $0.folder) : nil }
    }
    if let missing { watcher.withLock { $0 }?.watch(missing.id, path: Array(missing.folder.utf8)) }
  }
}

/// How a repair ended.
struct RepairOutcome: Sendable {
  /// It looked at all that it was to look at.
  var isDone: Bool
  /// No mirror is there. Where there never was one, its first pass makes it; where there was one, it may come back, and with
  /// it what was to be looked at.
  var hasNoMirror = false
  /// By an order, or by another manifest: that says nothing of the folder.
  var wasStopped = false
  var needsPass = false
  /// It did not know what is wanted by these settings, and can tell nothing of what changed: only a pass can.
  var wasBlind = false
  var wantsCount = false
  /// See `RepairReport`.
  var lookTime = Duration.zero
  /// What it was to tell the journal is there.
  var hasTold = false
  /// Something in the folder is as it should be again.
  var hasChanges = false
  /// For the log; nil for nothing worth a word.
  var message: String?
  var code = "repaired"
  var level = Logger.Level.info

  init(isDone: Bool) { self.isDone = isDone }

  /// What kept it from its work is over soon.
  var isBusy: Bool { code == "folder-busy" || wasStopped }

  /// - Parameters:
  ///   - isWholeLook: at all of the folder, as after each start: nobody knows that anything changed.
  ///   - command: what brings a pass, where none comes by itself.
  init(_ report: RepairReport, isWholeLook: Bool, command: String?) {
    wasStopped = report.report.wasStopped || report.isSuperseded
    isDone = !wasStopped
    hasTold = report.hasJournal
    // Of a mirror that no pass of an agent has read so far its schedule says when.
    needsPass = report.needsPass && !(report.hasNoCatalog && isWholeLook && !report.hadCatalog)
    wasBlind = needsPass && report.hasNoCatalog
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
    // A pass may have made the folder, and taken it away before it could be opened here.
    if ["no-folder", "not-a-mirror", FolderFailure.Code.missing.rawValue].contains(failure.code) {
      hasNoMirror = true
      return
    }
    message = "local changes could not be looked at: \(failure.message)"
    level = .warning
  }
}
