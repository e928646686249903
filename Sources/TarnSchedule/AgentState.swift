package import TarnCore

/// The decisions of a running agent: which mirror runs when, and what a command means. A value that is told what happens, and
/// answers with actions that its owner carries out.
///
/// At most `mostPasses` passes work at once. A pass that waits for a server takes no place meanwhile, so that a failing mirror does
/// not delay others. A pass that a person asked for goes first, and has an extra place when all are taken, so that it does not wait
/// for passes that take days.
package struct AgentState: Sendable {
  package enum Action: Sendable, Equatable {
    case start(mirror: String, run: UInt64)
    /// Begin a repair of what changed in the folder, without asking the feed. Its end is reported with `repaired`.
    case repair(mirror: String, run: UInt64)
    /// Ask the work of a mirror to end: a pass, whose end is reported with `ended`, and repairs, whose end is reported with
    /// `repaired`.
    case stop(mirror: String)
  }

  private struct Mirror {
    var schedule: RunSchedule
    /// The number of the running pass.
    var run: UInt64?
    /// The number that was promised to the caller of the next pass.
    var promised: UInt64?
    /// True when the running work was asked to end.
    var isStopping = false
    /// The number of running repairs, beside a pass or alone.
    var repairs = 0
    /// True while one of them looks at the folder.
    var isLooking = false
    /// True when the mirror is no longer in the settings. It is dropped when nothing of it is running.
    var isRemoved = false
    /// True when a pause that still holds ended its pass, or the request for one.
    var wasEndedByPause = false
    /// True when the settings changed: another pass follows the one that was asked to end.
    var isChanged = false

    var isAtWork: Bool { run != nil || repairs > 0 }
  }

  /// The longest time between two calls of `advance`, since the wall clock may be set.
  package static let longestWait = Duration.seconds(60)

  /// The time between two calls of `advance` while a mirror waits for a place.
  package static let stallWait = Duration.milliseconds(500)

  /// The most passes that take no place because they wait for a server; each is a few threads.
  package static let mostStalled = 64

  /// The most repairs that look at their folders at a time, beside the passes. They take no place.
  package static let mostRepairs = 4

  /// The most repairs that fetch what they found missing, which may take hours, for one mirror and for all. Each is a thread, and
  /// the places of transfers are the limit.
  package static let mostRepairsOfOne = 16
  package static let mostRepairsOfAll = 128

  private var stalled: Set<String> = []
  private var mirrors: [String: Mirror] = [:]
  private var lastRun: UInt64 = 0
  private var isEnding = false
  private var mostPasses: Int

  /// - Parameter mostPasses: the most passes at once, at least 1.
  package init(mostPasses: Int) {
    self.mostPasses = max(1, mostPasses)
  }

  /// The mirrors whose passes are running.
  package var running: [String] { mirrors.filter { $0.value.run != nil }.keys.sorted() }

  /// True when no pass and no repair is running.
  package var isIdle: Bool { !mirrors.values.contains(where: \.isAtWork) }

  package func isKnown(_ name: String) -> Bool { mirrors[name].map { !$0.isRemoved } ?? false }

  package func isPaused(_ name: String) -> Bool { mirrors[name]?.schedule.isPaused ?? false }

  /// Returns whether a pause that still holds ended a pass, or the request for one.
  package func owesPass(_ name: String) -> Bool { mirrors[name]?.wasEndedByPause ?? false }

  /// Returns whether the running work was asked to end.
  package func isStopping(_ name: String) -> Bool { mirrors[name]?.isStopping ?? false }

  /// Returns the number of the running pass; `nil` when there is none.
  package func run(of name: String) -> UInt64? { mirrors[name]?.run }

  package func history(of name: String) -> RunSchedule.History? { mirrors[name]?.schedule.history }

  /// The status of a mirror.
  package struct MirrorStatus: Sendable {
    package var history: RunSchedule.History
    package var isPaused: Bool
  }

  package func status(of name: String) -> MirrorStatus? {
    mirrors[name].map {
      MirrorStatus(history: $0.schedule.history, isPaused: $0.schedule.isPaused)
    }
  }

  /// Sets which running passes wait for a server.
  package mutating func setStalled(_ names: Set<String>) { stalled = names }

  /// Sets the pause that the server of the running pass asked for, in seconds; `nil` once it has answered. Ignored without a pass,
  /// as in a repair.
  ///
  /// - Returns: true when the pause differs from the earlier one.
  package mutating func setAsked(_ name: String, _ seconds: Double?, now: Moment) -> Bool {
    guard mirrors[name]?.run != nil else { return false }
    return mirrors[name]?.schedule.setAsked(seconds, now: now) ?? false
  }

  // MARK: - Settings

  package mutating func setMostPasses(_ count: Int) { mostPasses = max(1, count) }

  /// Adds a mirror of the settings. One that was removed while its pass still ends comes back as it was.
  ///
  /// - Parameters:
  ///   - owesPass: true when the pause ended a pass.
  ///   - random: a number in 0..<1.
  package mutating func add(
    _ name: String, _ timing: RunSchedule.Timing, history: RunSchedule.History, isPaused: Bool,
    owesPass: Bool = false, now: Moment, random: Double
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
    mirrors[name]?.wasEndedByPause = isPaused && owesPass
  }

  /// Applies changed settings: a running pass ends, and another one follows with the new settings.
  ///
  /// - Parameters:
  ///   - isOtherFeed: true to forget what the old feed's server asked for, and to plan a pass soon.
  ///   - isOtherWork: true when its passes do something different now, so that one is planned soon.
  ///   - other: the history kept in another folder; `nil` where the folder is the same.
  ///   - random: a number in 0..<1.
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
    if isOtherFeed || isOtherWork { mirrors[name]?.schedule.want(now: now, urgency: .blind) }
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

  /// Ends the agent: nothing is started any more.
  package mutating func end() -> [Action] {
    isEnding = true
    return mirrors.keys.sorted().flatMap { stop($0) }
  }

  // MARK: - Commands

  /// Asks for a pass now. During a pass, another one follows it, since the feed may have been read before.
  ///
  /// - Returns: the number of the pass that will fulfil it; `nil` for an unknown mirror.
  package mutating func ask(_ name: String) -> UInt64? {
    guard isKnown(name) else { return nil }
    mirrors[name]?.schedule.ask()
    if let promised = mirrors[name]?.promised { return promised }
    lastRun += 1
    mirrors[name]?.promised = lastRun
    return lastRun
  }

  /// Pauses or resumes a mirror. A pause ends the running work and an earlier request for a pass; a later request is fulfilled. A
  /// pass after the pause makes up for both. Pausing again ends what was begun since.
  ///
  /// - Returns: `nil` when nothing had to be changed.
  package mutating func setPaused(_ name: String, _ paused: Bool) -> Ended? {
    guard isKnown(name), let mirror = mirrors[name] else { return nil }
    guard paused else {
      guard mirror.schedule.isPaused else { return nil }
      mirrors[name]?.schedule.setPaused(false)
      // The work that the pause ended continues now, not at the next planned time.
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
    /// The number that was promised to a caller and that no pass will have.
    package var withdrawn: UInt64?
    /// True when a pass is running, whose end is reported with `ended`.
    package var hasPass: Bool
  }

  /// Ends the running work and withdraws requests. The next pass comes as planned.
  ///
  /// - Returns: `nil` when nothing is running and nobody waits for a pass.
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

  /// Takes the end of a pass.
  ///
  /// - Parameters:
  ///   - hasReadFeed: true when the pass has read the feed.
  ///   - random: a number in 0..<1.
  package mutating func ended(
    _ name: String, _ outcome: RunSchedule.Outcome, hints: RunSchedule.Hints, hasReadFeed: Bool = false,
    now: Moment, random: Double
  ) {
    guard let mirror = mirrors[name], mirror.run != nil else { return }
    mirrors[name]?.run = nil
    // A removed mirror may come back while its repairs continue.
    if hasReadFeed { mirrors[name]?.schedule.hasReadFeed() }
    mirrors[name]?.schedule.end(
      outcome, hints: hints, isCutShort: isEnding && outcome == .cancelled, now: now, random: random)
    guard goesOn(name) else { return }
    if mirror.isChanged {
      mirrors[name]?.isChanged = false
      if !mirror.schedule.isPaused { _ = ask(name) }
    }
  }

  /// Takes the end of a pass or a repair.
  ///
  /// - Returns: false when the mirror is no longer in the settings.
  private mutating func goesOn(_ name: String) -> Bool {
    guard let mirror = mirrors[name], !mirror.isAtWork else { return mirrors[name]?.isRemoved == false }
    mirrors[name]?.isStopping = false
    if mirror.isRemoved { mirrors[name] = nil }
    return !mirror.isRemoved
  }

  // MARK: - Repairs

  /// Returns whether the mirror allows a repair. `hasRepairPlace` says whether another one may run at all.
  package func mayRepair(_ name: String) -> Bool {
    guard !isEnding, let mirror = mirrors[name], !mirror.isRemoved, !mirror.isStopping, !mirror.isLooking,
      mirror.repairs < Self.mostRepairsOfOne
    else { return false }
    return !mirror.schedule.isPaused
  }

  /// True when the limits over all mirrors allow another repair. It looks at each mirror.
  package var hasRepairPlace: Bool {
    let (looking, all) = mirrors.values.reduce((0, 0)) { ($0.0 + ($1.isLooking ? 1 : 0), $0.1 + $1.repairs) }
    return looking < Self.mostRepairs && all < Self.mostRepairsOfAll
  }

  /// Begins a repair, if one may run now.
  package mutating func repair(_ name: String) -> Action? {
    guard mayRepair(name), hasRepairPlace else { return nil }
    lastRun += 1
    mirrors[name]?.repairs += 1
    mirrors[name]?.isLooking = true
    return .repair(mirror: name, run: lastRun)
  }

  /// Tells that a repair has looked at the folder and fetches what it found missing. Another one may look.
  package mutating func looked(_ name: String) { mirrors[name]?.isLooking = false }

  /// Takes the end of a repair.
  ///
  /// - Parameters:
  ///   - wasLooking: true when `looked` was not called for it.
  ///   - needsPass: true when it could not repair everything. A pass is planned soon, unless the mirror runs only on command, or
  ///     backs off.
  ///   - urgency: why that pass does not wait for the back-off; `nil` when it does.
  package mutating func repaired(
    _ name: String, wasLooking: Bool = true, needsPass: Bool, urgency: RunSchedule.Urgency? = nil, now: Moment
  ) {
    guard mirrors[name]?.repairs ?? 0 > 0 else { return }
    mirrors[name]?.repairs -= 1
    if wasLooking { mirrors[name]?.isLooking = false }
    guard goesOn(name) else { return }
    if needsPass { mirrors[name]?.schedule.want(now: now, urgency: urgency) }
  }

  // MARK: - What is due

  /// Returns what to begin now. Call it after every event, and when the wait is over.
  ///
  /// - Parameter random: returns numbers in 0..<1.
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
    // The mirror that ran longest ago goes first, so that with more mirrors than places each has its turn.
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

  /// Returns whether a pass of the mirror may begin if it is due.
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

  /// Returns when a mirror runs next; `nil` for an unknown mirror.
  package mutating func next(_ name: String, now: Moment, random: Double) -> RunSchedule.NextRun? {
    mirrors[name]?.schedule.next(now: now, random: random)
  }

  /// Returns the seconds from one planned pass of a mirror to the next; `nil` where its passes come only on command.
  package func interval(of name: String, now: Moment) -> Double? {
    mirrors[name]?.schedule.plannedInterval(now: now)
  }

  /// Returns the time until `advance` may have something to do, at most `longestWait`. A pass that is due and has no place waits
  /// for another one to end, or to wait for a server.
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
