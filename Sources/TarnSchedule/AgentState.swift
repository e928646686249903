package import TarnCore

/// What a running agent decides: which mirror runs when, and what a command means. A value: it is told what happens, and
/// answers with actions, which its owner carries out.
///
/// At most so many passes work at once; one that waits for a server takes no place meanwhile, so that a failing mirror delays no
/// other. What a person asked for goes first, and has a place of its own when all are taken, so that no wish waits behind
/// passes that take days.
package struct AgentState: Sendable {
  package enum Action: Sendable, Equatable {
    case start(mirror: String, run: UInt64)
    /// Brings into line what changed in the folder, without asking the feed; its end is told by `repaired`.
    case repair(mirror: String, run: UInt64)
    /// Asks what is at work to end: a pass, whose end is told by `ended`, and a repair, whose end is told by `repaired`.
    case stop(mirror: String)
  }

  private struct Mirror {
    var schedule: RunSchedule
    /// The number of the pass at work.
    var run: UInt64?
    /// The number that was promised to who asked; the next pass has it.
    var promised: UInt64?
    /// What is at work is asked to end already.
    var isStopping = false
    /// Repairs at work, beside a pass or alone.
    var repairs = 0
    /// One of them looks at the folder.
    var isLooking = false
    /// No longer among the settings: goes once nothing of it is at work.
    var isRemoved = false
    /// Its pass, or the wish for one, by a pause that still holds.
    var wasEndedByPause = false
    /// The settings were changed: another pass follows the one that was asked to end.
    var isChanged = false

    var isAtWork: Bool { run != nil || repairs > 0 }
  }

  /// Longest time between two looks, for the wall clock may be set.
  package static let longestWait = Duration.seconds(60)

  /// Time between two looks while a mirror waits for a place.
  package static let stallWait = Duration.milliseconds(500)

  /// So many passes that wait for a server take no place; each is a few threads.
  package static let mostStalled = 64

  /// So many repairs look at their folders at a time, beside the passes; they hold no place.
  package static let mostRepairs = 4

  /// So many repairs of a mirror bring what they found, which may take hours, and of all mirrors: each is a thread, and the places of
  /// transfers are the limit.
  package static let mostRepairsOfOne = 16
  package static let mostRepairsOfAll = 128

  private var stalled: Set<String> = []
  private var mirrors: [String: Mirror] = [:]
  private var lastRun: UInt64 = 0
  private var isEnding = false
  private var mostPasses: Int

  /// - Parameter mostPasses: at least 1.
  package init(mostPasses: Int) {
    self.mostPasses = max(1, mostPasses)
  }

  /// Passes at work.
  package var running: [String] { mirrors.filter { $0.value.run != nil }.keys.sorted() }

  /// No pass and no repair is at work.
  package var isIdle: Bool { !mirrors.values.contains(where: \.isAtWork) }

  package func isKnown(_ name: String) -> Bool { mirrors[name].map { !$0.isRemoved } ?? false }

  package func isPaused(_ name: String) -> Bool { mirrors[name]?.schedule.isPaused ?? false }

  /// What is at work is asked to end.
  package func isStopping(_ name: String) -> Bool { mirrors[name]?.isStopping ?? false }

  /// The number of the pass at work; nil when none is.
  package func run(of name: String) -> UInt64? { mirrors[name]?.run }

  package func history(of name: String) -> RunSchedule.History? { mirrors[name]?.schedule.history }

  /// How a mirror stands.
  package struct MirrorStatus: Sendable {
    package var history: RunSchedule.History
    package var isPaused: Bool
  }

  package func status(of name: String) -> MirrorStatus? {
    mirrors[name].map {
      MirrorStatus(history: $0.schedule.history, isPaused: $0.schedule.isPaused)
    }
  }

  /// Those of the passes at work that wait for a server.
  package mutating func setStalled(_ names: Set<String>) { stalled = names }

  /// What the server of the pass at work asked for, in seconds; nil once it has answered. Of a repair it says nothing.
  ///
  /// - Returns: whether that is another wish than before.
  package mutating func setAsked(_ name: String, _ seconds: Double?, now: Moment) -> Bool {
    guard mirrors[name]?.run != nil else { return false }
    return mirrors[name]?.schedule.setAsked(seconds, now: now) ?? false
  }

  // MARK: - Settings

  package mutating func setMostPasses(_ count: Int) { mostPasses = max(1, count) }

  /// A mirror of the settings. One that was removed while its pass still ends comes back as it was.
  ///
  /// - Parameter random: in 0..<1.
  package mutating func add(
    _ name: String, _ timing: RunSchedule.Timing, history: RunSchedule.History, isPaused: Bool, now: Moment,
    random: Double
  ) {
    if mirrors[name] != nil {
      mirrors[name]?.isRemoved = false
      let hasPass = run(of: name) != nil
      mirrors[name]?.isChanged = hasPass
      mirrors[name]?.schedule.setTiming(timing, now: now)
      return
    }
    var schedule = RunSchedule(timing, history: history, now: now, random: random)
    schedule.setPaused(isPaused)
    mirrors[name] = Mirror(schedule: schedule)
  }

  /// Its settings are others: a pass at work ends, and another one follows with the new ones.
  ///
  /// - Parameters:
  ///   - isOtherFeed: what the old one's server asked for is forgotten, and a pass is to come soon.
  ///   - isOtherWork: what its passes bring about is another thing: one is to come soon.
  ///   - other: of another folder, where it is kept from now on; nil where the folder is the same.
  ///   - random: in 0..<1.
  package mutating func change(
    _ name: String, _ timing: RunSchedule.Timing, isOtherFeed: Bool = false, isOtherWork: Bool = false,
    other: RunSchedule.History? = nil, now: Moment, random: Double = 0
  ) -> [Action] {
    guard let old = mirrors[name]?.schedule else { return [] }
    if let other {
      mirrors[name]?.schedule = RunSchedule(timing, history: other, now: now, random: random)
      mirrors[name]?.schedule.setPaused(old.isPaused)
      if old.isAsked { mirrors[name]?.schedule.ask() }
    }
    mirrors[name]?.schedule.setTiming(timing, now: now)
    if isOtherFeed { mirrors[name]?.schedule.forgetFeed(now: now) }
    if isOtherFeed || isOtherWork { mirrors[name]?.schedule.want(now: now, endsBackOff: true) }
    guard mirrors[name]?.isAtWork == true else { return [] }
    let hasPass = run(of: name) != nil
    mirrors[name]?.isChanged = hasPass
    return stop(name)
  }

  package mutating func remove(_ name: String) -> [Action] {
    guard mirrors[name]?.isAtWork == true else {
      mirrors[name] = nil
      return []
    }
    mirrors[name]?.isRemoved = true
    return stop(name)
  }

  /// The agent ends: nothing is started any more.
  package mutating func end() -> [Action] {
    isEnding = true
    return mirrors.keys.sorted().flatMap { stop($0) }
  }

  // MARK: - Commands

  /// A pass now. Asked during a pass, another one follows it, for the feed may have been read before.
  ///
  /// - Returns: the number of the pass that will do; nil for a mirror that is not known.
  package mutating func ask(_ name: String) -> UInt64? {
    guard isKnown(name) else { return nil }
    mirrors[name]?.schedule.ask()
    if let promised = mirrors[name]?.promised { return promised }
    lastRun += 1
    mirrors[name]?.promised = lastRun
    return lastRun
  }

  /// A pause ends what is at work, and a wish for a pass that came before it; one that comes later has its pass. With the end of the
  /// pause a pass makes good for both. A pause that holds already ends what was begun since.
  ///
  /// - Returns: nil when it was so.
  package mutating func setPaused(_ name: String, _ paused: Bool) -> Ended? {
    guard isKnown(name), let mirror = mirrors[name] else { return nil }
    guard paused else {
      guard mirror.schedule.isPaused else { return nil }
      mirrors[name]?.schedule.setPaused(false)
      // What the pause ended goes on now, and not when the schedule has the next pass.
      if mirror.wasEndedByPause { _ = ask(name) }
      mirrors[name]?.wasEndedByPause = false
      return Ended(actions: [], withdrawn: nil, hasPass: mirror.run != nil)
    }
    let hasWish = mirror.promised != nil
    guard !mirror.schedule.isPaused || hasWish || (mirror.isAtWork && !mirror.isStopping) else { return nil }
    mirrors[name]?.schedule.setPaused(true)
    mirrors[name]?.wasEndedByPause = mirror.wasEndedByPause || hasWish || mirror.run != nil
    return endWork(name)
  }

  /// What a pause or `cancel` ended.
  package struct Ended: Sendable, Equatable {
    package var actions: [Action]
    /// The number that was promised to who asked for a pass, and that none will have.
    package var withdrawn: UInt64?
    /// A pass is at work, whose end is told by `ended`.
    package var hasPass: Bool
  }

  /// What is at work ends, and what was asked for is wanted no more; the next pass comes as planned.
  ///
  /// - Returns: nil when nothing is at work, and nobody waits for a pass.
  package mutating func cancel(_ name: String) -> Ended? {
    guard let mirror = mirrors[name], mirror.isAtWork || mirror.promised != nil else { return nil }
    mirrors[name]?.wasEndedByPause = false
    return endWork(name)
  }

  private mutating func endWork(_ name: String) -> Ended {
    let withdrawn = mirrors[name]?.promised
    mirrors[name]?.schedule.withdraw()
    mirrors[name]?.promised = nil
    mirrors[name]?.isChanged = false
    return Ended(actions: stop(name), withdrawn: withdrawn, hasPass: run(of: name) != nil)
  }

  private mutating func stop(_ name: String) -> [Action] {
    guard let mirror = mirrors[name], mirror.isAtWork, !mirror.isStopping else { return [] }
    mirrors[name]?.isStopping = true
    return [.stop(mirror: name)]
  }

  // MARK: - Passes

  /// A pass has ended.
  ///
  /// - Parameters:
  ///   - hasReadFeed: it came so far.
  ///   - random: in 0..<1.
  package mutating func ended(
    _ name: String, _ outcome: RunSchedule.Outcome, hints: RunSchedule.Hints, hasReadFeed: Bool = false,
    now: Moment, random: Double
  ) {
    guard let mirror = mirrors[name], mirror.run != nil else { return }
    mirrors[name]?.run = nil
    // One that was removed may come back while repairs of it go on.
    if hasReadFeed { mirrors[name]?.schedule.hasReadFeed() }
    mirrors[name]?.schedule.end(
      outcome, hints: hints, isCutShort: isEnding && outcome == .cancelled, now: now, random: random)
    guard goesOn(name) else { return }
    if mirror.isChanged {
      mirrors[name]?.isChanged = false
      if !mirror.schedule.isPaused { _ = ask(name) }
    }
  }

  /// Something of the mirror has ended.
  ///
  /// - Returns: false when it is no longer among the settings.
  private mutating func goesOn(_ name: String) -> Bool {
    guard let mirror = mirrors[name], !mirror.isAtWork else { return mirrors[name]?.isRemoved == false }
    mirrors[name]?.isStopping = false
    if mirror.isRemoved { mirrors[name] = nil }
    return !mirror.isRemoved
  }

  // MARK: - Repairs

  /// Whether the mirror lets it; `hasRepairPlace` says whether another may be at work at all.
  package func mayRepair(_ name: String) -> Bool {
    guard !isEnding, let mirror = mirrors[name], !mirror.isRemoved, !mirror.isStopping, !mirror.isLooking,
      mirror.repairs < Self.mostRepairsOfOne
    else { return false }
    return !mirror.schedule.isPaused
  }

  /// The same for all mirrors: it looks at each.
  package var hasRepairPlace: Bool {
    let (looking, all) = mirrors.values.reduce((0, 0)) { ($0.0 + ($1.isLooking ? 1 : 0), $0.1 + $1.repairs) }
    return looking < Self.mostRepairs && all < Self.mostRepairsOfAll
  }

  /// Begins a repair, if one may be at work now.
  package mutating func repair(_ name: String) -> Action? {
    guard mayRepair(name), hasRepairPlace else { return nil }
    lastRun += 1
    mirrors[name]?.repairs += 1
    mirrors[name]?.isLooking = true
    return .repair(mirror: name, run: lastRun)
  }

  /// The repair that looks at the folder has done so, and brings what it found: another one may look.
  package mutating func looked(_ name: String) { mirrors[name]?.isLooking = false }

  /// A repair has ended.
  ///
  /// - Parameters:
  ///   - wasLooking: `looked` was not told of it.
  ///   - needsPass: it could not bring all into line: a pass is to look soon, unless the mirror runs by command only, or backs off.
  ///   - endsBackOff: that pass does not wait for the back-off.
  package mutating func repaired(
    _ name: String, wasLooking: Bool = true, needsPass: Bool, endsBackOff: Bool = false, now: Moment
  ) {
    guard mirrors[name]?.repairs ?? 0 > 0 else { return }
    mirrors[name]?.repairs -= 1
    if wasLooking { mirrors[name]?.isLooking = false }
    guard goesOn(name) else { return }
    if needsPass { mirrors[name]?.schedule.want(now: now, endsBackOff: endsBackOff) }
  }

  // MARK: - What is due

  /// What is to be begun now. Call it after every event, and when the wait is over.
  ///
  /// - Parameter random: gives numbers in 0..<1.
  package mutating func advance(now: Moment, random: () -> Double) -> [Action] {
    guard !isEnding else { return [] }
    var due: [(name: String, isAsked: Bool, at: Timestamp)] = []
    for name in mirrors.keys.sorted() where mayBegin(name) {
      guard let next = mirrors[name]?.schedule.next(now: now, random: random()), next.wait == .zero else {
        continue
      }
      due.append(
        (
          name, next.reason == .asked,
          mirrors[name]?.schedule.history.lastAttempt ?? Timestamp(nanoseconds: .min)
        ))
    }
    // Who ran longest ago goes first, so that with more mirrors than places each has its turn.
    due.sort { ($0.isAsked ? 0 : 1, $0.at, $0.name) < ($1.isAsked ? 0 : 1, $1.at, $1.name) }
    let passes = running
    var count = passes.count - min(Self.mostStalled, passes.count { stalled.contains($0) })
    var actions: [Action] = []
    for mirror in due {
      guard count < mostPasses || (mirror.isAsked && count == mostPasses) else { continue }
      count += 1
      actions.append(.start(mirror: mirror.name, run: begin(mirror.name, now: now)))
    }
    return actions
  }

  /// Whether a pass of the mirror may begin, were it due.
  private func mayBegin(_ name: String) -> Bool {
    guard let mirror = mirrors[name] else { return false }
    return mirror.run == nil && !mirror.isRemoved && !mirror.isStopping
  }

  private mutating func begin(_ name: String, now: Moment) -> UInt64 {
    let run = mirrors[name]?.promised ?? lastRun + 1
    lastRun = max(lastRun, run)
    mirrors[name]?.promised = nil
    mirrors[name]?.run = run
    mirrors[name]?.wasEndedByPause = false
    mirrors[name]?.schedule.begin(now: now)
    return run
  }

  // MARK: - Answers

  /// When a mirror runs next; nil for one that is not known.
  package mutating func next(_ name: String, now: Moment, random: Double) -> RunSchedule.NextRun? {
    mirrors[name]?.schedule.next(now: now, random: random)
  }

  /// Seconds from one planned pass of a mirror to the next; nil where its passes come by command only.
  package func interval(of name: String, now: Moment) -> Double? {
    mirrors[name]?.schedule.plannedInterval(now: now)
  }

  /// Until `advance` may have something to do, at most `longestWait`. What is due and has no place waits for
  /// the end of a pass, or for one that comes to wait for a server.
  package mutating func wait(now: Moment, random: () -> Double) -> Duration {
    var least = Self.longestWait
    for name in Array(mirrors.keys) {
      guard mayBegin(name), let wait = mirrors[name]?.schedule.next(now: now, random: random()).wait
      else { continue }
      least = min(least, wait > .zero ? wait : Self.stallWait)
    }
    return least
  }
}
