package import TarnCore

/// Plans the next run of one mirror, with its reason: a value that is told what happens, and asked.
///
/// Calendar times follow the wall clock. All waits (back-off, a server's pause, the jitter of catching up) follow whichever clock
/// gets there first. The owner calls `next` after each event and at least once a minute, since the wall clock may be set at any
/// time.
package struct RunSchedule: Sendable {
  /// What makes a mirror run without a request.
  package enum Timing: Sendable, Hashable {
    case every(Cadence)
    /// Several calendars; the earliest time counts.
    case calendars([ZonedCalendar])
    case onDemand

    package static func calendar(_ spec: CalendarSpec, _ rules: TimeZoneRules) -> Timing {
      .calendars([ZonedCalendar(spec, rules)])
    }
  }

  /// A calendar, with the rules of the zone that its text names, or of the machine.
  package struct ZonedCalendar: Sendable, Hashable {
    let spec: CalendarSpec
    let rules: TimeZoneRules

    package init(_ spec: CalendarSpec, _ rules: TimeZoneRules) {
      self.spec = spec
      self.rules = rules
    }
  }

  /// The outcome of a run. The agent stores the raw values.
  package enum Outcome: String, Sendable, Hashable, CaseIterable {
    case succeeded
    /// A failure after which an early retry is worthwhile.
    case failedTransient = "failed-transient"
    /// A failure that only a change at the other end or in the settings can solve. It is retried seldom, or at its planned time.
    case failedPermanent = "failed-permanent"
    /// A plan waits for approval; nothing is wrong with the network.
    case held
    /// Ended on request: this says nothing about the mirror, and the next run comes as planned.
    case cancelled
    /// Another process works on the folder: this counts as no attempt, and is retried soon.
    case busy
  }

  /// The reason for the next run, in the words of the status document.
  package enum Reason: String, Sendable, Hashable, CaseIterable {
    case scheduled
    case catchingUp = "catching-up"
    case backingOff = "backing-off"
    case asked
    case paused
    case none
  }

  /// Why a wanted run comes in spite of the back-off. Each reason counts once, until a run has settled it.
  package enum Urgency: Sendable, Hashable {
    /// Nothing can be done without the run, until one has read the feed.
    case blind
    /// A file is back whose version only its server knows, until a run has succeeded. One that reads the feed may leave the same
    /// conflict again.
    case version
  }

  package struct NextRun: Sendable, Hashable {
    /// The time by the wall clock; `nil` when nothing is planned.
    package var at: Timestamp?
    /// The time from now, zero when it is due. `nil` when nothing is planned, and while it runs.
    package var wait: Duration?
    package var reason: Reason
  }

  /// The wishes of a server with its answer, and what is known about it, in seconds.
  package struct Hints: Sendable, Hashable {
    package var retryAfter: Int64?
    /// The RSS `ttl`.
    package var freshFor: Int64?
    /// How long this process leaves the server alone because it failed. It is no wish of the server's, and does not concern the
    /// next process.
    package var restFor: Int64?
    /// True when the feed's server answered, which ends its earlier wishes.
    package var isAnswer = true

    package init(retryAfter: Int64? = nil, freshFor: Int64? = nil, restFor: Int64? = nil) {
      self.retryAfter = retryAfter
      self.freshFor = freshFor
      self.restFor = restFor
    }
  }

  package struct Limits: Sendable, Hashable {
    /// The back-off after transient failures. Planned times come regardless of it.
    package var backOff = BackOff(base: 60, most: 3600)
    /// The back-off after failures that a retry alone does not solve, for mirrors whose next time is days away.
    package var seldom = BackOff(base: 3600, most: 86_400)
    /// The longest time in seconds that a server's hint may set.
    package var mostHint: Int64 = 86_400
    /// The time in seconds over which missed runs are spread; at most a quarter of the interval.
    package var catchUpSpread: Double = 300
    /// The delay in seconds after which a run counts as missed.
    package var lateness: Double = 60
    /// The least number of seconds between the starts of two runs without a request. A run that was cut short continues within this
    /// time.
    package var spacing: Double = 10

    package init() {}
  }

  /// The facts that the ledger keeps between two processes.
  package struct History: Sendable, Hashable {
    /// When the mirror became known.
    package var since: Timestamp?
    package var lastAttempt: Timestamp?
    package var lastSuccess: Timestamp?
    /// The number of failed attempts since the last success.
    package var failures = 0
    package var lastOutcome: Outcome?
    /// True when a run was at work when the process ended or was killed: what it fetched waits for the next one.
    package var wasCutShort = false
    /// The end of the pause that the server of the last run asked for, or its feed (`ttl`); `nil` where neither did.
    package var heldUntil: Timestamp?
    /// True when the feed asked for the pause, not the server.
    package var isHeldByFeed = false

    package init() {}
  }

  package private(set) var history: History
  package private(set) var isPaused = false
  package private(set) var isRunning = false
  package private(set) var isAsked = false
  private var timing: Timing
  private let limits: Limits
  /// The planned time, and the time after which it was looked for.
  private var slot: (at: Timestamp, from: Timestamp)?
  /// The pause that a server asked for, or in which a failed one is left alone. Only a person's request counts during it.
  private var hold: Wait?
  /// The wait after a failure, unless a planned time comes first.
  private var backOff: Wait?
  /// The reasons that have ended a back-off, and that no run has settled since.
  private var unsettled: Set<Urgency> = []
  /// The wait before a missed run is made up for.
  private var catchUp: Wait?
  private var lastBegin: Moment?
  /// The state before the present run, in case it turns out not to count.
  private var before: (history: History, hold: Wait?)?
  /// The last start or end of a run of this process.
  private var lastSign: Moment?
  /// The time after which the planned time is looked for. Times that passed during a run are not missed.
  private var reference: Timestamp

  /// - Parameters:
  ///   - history: the history of the last process; all `nil` for a new mirror.
  ///   - random: a number in 0..<1.
  package init(
    _ timing: Timing, limits: Limits = Limits(), history: History = History(), now: Moment, random: Double
  ) {
    self.timing = timing
    self.limits = limits
    self.history = history
    if history.since == nil { self.history.since = now.wall }
    reference = history.lastAttempt ?? history.since ?? now.wall
    // A run that was cut short continues, whatever failed before.
    if let outcome = history.lastOutcome, history.failures > 0, !history.wasCutShort {
      backOff = backOffWait(outcome, now: now, random: random)
    }
    if timing != .onDemand { hold = held(until: history.heldUntil, now: now) }
    plan(now: now)
    // The user who has just set up a mirror waits for its first run. A run that was cut short continues soon.
    if isOwed { catchUp = Wait(from: now, seconds: random * limits.spacing) }
  }

  /// True for a new mirror with an interval, and where a run was cut short.
  private var isOwed: Bool {
    let isFirst = if case .every = timing { history.lastAttempt == nil } else { false }
    return isFirst || history.wasCutShort
  }

  // MARK: - Events

  /// Asks for a run now, which comes whatever else holds, also while the mirror is paused. During a run, another one follows, since
  /// the feed may have been read before.
  package mutating func ask() {
    isAsked = true
  }

  /// Withdraws the request for a run.
  package mutating func withdraw() {
    isAsked = false
  }

  /// Tells that a run would be useful soon. It waits while the mirror is paused or backs off, and never comes where runs come only
  /// on command.
  ///
  /// - Parameter urgency: why it comes in spite of the back-off; `nil` when it waits.
  package mutating func want(now: Moment, urgency: Urgency? = nil) {
    guard timing != .onDemand else { return }
    if let urgency, backOff != nil, unsettled.insert(urgency).inserted { backOff = nil }
    if catchUp == nil { catchUp = Wait(from: now, seconds: 0) }
  }

  /// Tells that a run has read the feed: a wanted run may end the back-off again, unless it is for a version.
  package mutating func hasReadFeed() { unsettled.remove(.blind) }

  package mutating func setPaused(_ paused: Bool) {
    isPaused = paused
  }

  /// Applies changed settings.
  package mutating func setTiming(_ timing: Timing, now: Moment) {
    guard timing != self.timing else { return }
    self.timing = timing
    let next = catchUp ?? Wait(from: now, seconds: limits.spacing)
    catchUp = timing != .onDemand && !isRunning && isOwed ? next : nil
    if timing == .onDemand {
      forgetHold()
      backOff = nil
    }
    plan(now: now)
  }

  /// Forgets the wishes, failures and success of the old feed when another one is followed.
  package mutating func forgetFeed(now: Moment) {
    forgetHold()
    backOff = nil
    (history.failures, history.lastSuccess) = (0, nil)
    before?.history.failures = 0
    before?.history.lastSuccess = nil
    plan(now: now)
  }

  private mutating func forgetHold() {
    (hold, history.heldUntil) = (nil, nil)
    before?.hold = nil
    before?.history.heldUntil = nil
  }

  /// Begins a run.
  package mutating func begin(now: Moment) {
    isRunning = true
    isAsked = false
    before = (history, hold)
    catchUp = nil
    hold = nil
    // A server's wish ends with its answer, not with another server's wish.
    if history.isHeldByFeed { history.heldUntil = nil }
    history.isHeldByFeed = false
    backOff = nil
    history.lastAttempt = now.wall
    history.wasCutShort = true
    lastBegin = now
    lastSign = now
    reference = now.wall
    plan(now: now)
  }

  /// Notes the pause that the server of the present run asked for, and during which the run waits. The next process must know it.
  ///
  /// - Parameter seconds: the length of the pause; `nil` once the server has answered.
  /// - Returns: true when the pause differs from the earlier one. In whole seconds, the same pause ends a little later each time.
  @discardableResult
  package mutating func setAsked(_ seconds: Double?, now: Moment) -> Bool {
    guard isRunning else { return false }
    let until = seconds.map {
      now.wall.adding(seconds: Int64(max(0, min($0, Double(limits.mostHint))).rounded(.up)))
    }
    if let until, let before = history.heldUntil, abs(until.seconds - before.seconds) <= 2 { return false }
    defer { (history.heldUntil, history.isHeldByFeed) = (until, false) }
    return until != history.heldUntil
  }

  /// Takes the end of a run.
  ///
  /// - Parameters:
  ///   - isCutShort: true when it ended because the process ends; the next process continues it.
  ///   - random: a number in 0..<1.
  package mutating func end(
    _ outcome: Outcome, hints: Hints = Hints(), isCutShort: Bool = false, now: Moment, random: Double
  ) {
    isRunning = false
    if outcome == .busy { return endBusy(now: now, random: random) }
    history.wasCutShort = isCutShort
    if outcome != .cancelled { history.lastOutcome = outcome }
    lastSign = now
    reference = now.wall
    switch outcome {
    case .cancelled, .busy: break
    case .succeeded:
      history.lastSuccess = now.wall
      history.failures = 0
      unsettled.remove(.version)
    case .held: history.failures = 0
    case .failedTransient, .failedPermanent: history.failures += 1
    }
    backOff = backOffWait(outcome, now: now, random: random)
    var wish = hints.retryAfter.flatMap { asked($0, from: now) }
    // It ended during a pause that its server had asked for, or had no answer.
    if outcome == .cancelled || !hints.isAnswer, timing != .onDemand {
      wish = longer(wish, held(until: history.heldUntil, now: now), now)
    }
    // A feed is as old as the run that read it. What a run that continues has read is no reason to wait.
    let isRead = outcome != .failedTransient && !isCutShort
    let fresh = isRead ? hints.freshFor.flatMap { asked($0, from: lastBegin ?? now) } : nil
    hold = longer(wish, fresh, now)
    history.isHeldByFeed = hold != wish
    history.heldUntil = hold.map { now.wall + $0.remaining(at: now) }
    if let rest = hints.restFor.map({ Wait(from: now, seconds: Double(max(0, min($0, limits.mostHint)))) }),
      rest.remaining(at: now) > hold?.remaining(at: now) ?? .zero
    {
      hold = rest
    }
    plan(now: now)
  }

  /// Undoes a run that found the folder busy: it does not count, a server's wish still holds, and another run follows soon.
  private mutating func endBusy(now: Moment, random: Double) {
    if let before { (history, hold) = before }
    lastSign = now
    reference = now.wall
    if timing != .onDemand { catchUp = Wait(from: now, seconds: limits.spacing * (1 + random)) }
    plan(now: now)
  }

  // MARK: - The answer

  /// Returns when the mirror runs next, and notes what was missed meanwhile.
  ///
  /// - Parameter random: a number in 0..<1, used when a run was missed.
  package mutating func next(now: Moment, random: Double) -> NextRun {
    look(now: now, random: random)
    if isRunning {
      return NextRun(at: isPaused ? nil : slot?.at, wait: nil, reason: isPaused ? .paused : slotReason)
    }
    if isAsked { return NextRun(at: now.wall, wait: .zero, reason: .asked) }
    if isPaused { return NextRun(at: nil, wait: nil, reason: .paused) }
    let held = max(hold?.remaining(at: now) ?? .zero, spacing(at: now))
    if let backOff {
      let wait = min(backOff.remaining(at: now), distance(now) ?? .longest)
      return run(after: max(held, wait), .backingOff, now: now)
    }
    if let catchUp { return run(after: max(held, catchUp.remaining(at: now)), .catchingUp, now: now) }
    guard let distance = distance(now) else { return NextRun(at: nil, wait: nil, reason: .none) }
    return run(after: max(held, distance), .scheduled, now: now)
  }

  /// Returns the seconds from one planned run to the next at the present time. For a calendar it is the longer of the present gap
  /// and the following one. `nil` where runs come only on command.
  package func plannedInterval(now: Moment) -> Double? {
    let next = interval(now: now)
    guard next.isFinite else { return slot.map { ($0.at - $0.from).seconds } }
    guard case .calendars = timing, let slot else { return next }
    return max(next, (slot.at - slot.from).seconds)
  }

  /// Returns the time until the planned time, negative after it; `nil` without one.
  private func distance(_ now: Moment) -> Duration? { slot.map { $0.at - now.wall } }

  private var slotReason: Reason { slot == nil ? .none : .scheduled }

  private func run(after wait: Duration, _ reason: Reason, now: Moment) -> NextRun {
    NextRun(at: now.wall + wait, wait: wait, reason: reason)
  }

  /// Returns what is left of the spacing, by the monotonic clock alone: a clock that is set to and fro starts no storm.
  private func spacing(at now: Moment) -> Duration {
    guard let lastBegin, now.monotonic >= lastBegin.monotonic else { return .zero }
    return max(.zero, .seconds(limits.spacing) - (now.monotonic - lastBegin.monotonic))
  }

  // MARK: - Planning

  /// Checks whether the planned time has passed, or the clock was set back from it.
  private mutating func look(now: Moment, random: Double) {
    guard let slot else { return }
    if isSetBack(now.wall, slot) { plan(now: now) }
    guard catchUp == nil, !isRunning, isMissed(now: now) else { return }
    miss(now: now, random: random)
  }

  /// Returns whether the time came and more than the lateness has passed since.
  private func isMissed(now: Moment) -> Bool {
    let late = Duration.seconds(limits.lateness)
    for wait in [hold, backOff].compactMap(\.self) where now.elapsed(since: wait.from) - late <= wait.length {
      return false
    }
    if case .every(let cadence) = timing, let lastSign,
      now.monotonic.elapsed(since: lastSign.monotonic) > cadence.interval * 2
    {
      // The clock is set back again and again.
      return true
    }
    guard let slot else { return false }
    return now.wall > slot.at.adding(seconds: Int64(limits.lateness))
  }

  /// Returns whether the clock was set back by more than half of the way to the planned time, so that the time is planned anew. A
  /// smaller change delays a run a little, and never causes two.
  private func isSetBack(_ wall: Timestamp, _ slot: (at: Timestamp, from: Timestamp)) -> Bool {
    guard wall < slot.from else { return false }
    return slot.from - wall > (slot.at - slot.from) / 2
  }

  private mutating func plan(now: Moment) {
    slot = slot(after: reference)
    if let found = slot, isSetBack(now.wall, found) { slot = slot(after: now.wall) }
  }

  private func slot(after moment: Timestamp) -> (at: Timestamp, from: Timestamp)? {
    let at: Timestamp?
    switch timing {
    case .every(let cadence): at = cadence.next(after: moment)
    case .calendars(let calendars): at = Self.first(of: calendars, after: moment)
    case .onDemand: at = nil
    }
    return at.map { ($0, moment) }
  }

  private static func first(of calendars: [ZonedCalendar], after moment: Timestamp) -> Timestamp? {
    calendars.compactMap { $0.spec.next(after: moment, in: $0.rules) }.min()
  }

  private mutating func miss(now: Moment, random: Double) {
    catchUp = Wait(from: now, seconds: random * min(limits.catchUpSpread, interval(now: now) / 4))
  }

  /// Returns the seconds between two runs at the present time.
  private func interval(now: Moment) -> Double {
    switch timing {
    case .every(let cadence): return Double(cadence.seconds)
    case .calendars(let calendars):
      guard let first = Self.first(of: calendars, after: now.wall),
        let second = Self.first(of: calendars, after: first)
      else { return .infinity }
      return (second - first).seconds
    case .onDemand: return .infinity
    }
  }

  /// - Returns: `nil` for an outcome that is not retried before its time.
  private func backOffWait(_ outcome: Outcome, now: Moment, random: Double) -> Wait? {
    guard timing != .onDemand else { return nil }
    switch outcome {
    case .succeeded, .held, .cancelled, .busy: return nil
    case .failedTransient:
      let ceiling = min(limits.backOff.ceiling(history.failures), interval(now: now))
      return Wait(from: now, seconds: ceiling * random)
    case .failedPermanent:
      // The whole wait is certain: a permanent failure is not retried often.
      let ceiling = min(limits.seldom.ceiling(history.failures), interval(now: now))
      return Wait(from: now, seconds: ceiling * (1 + random / 4))
    }
  }

  private func asked(_ seconds: Int64, from: Moment) -> Wait? {
    seconds > 0 ? Wait(from: from, seconds: Double(min(limits.mostHint, seconds))) : nil
  }

  private func longer(_ one: Wait?, _ other: Wait?, _ now: Moment) -> Wait? {
    other?.remaining(at: now) ?? .zero > one?.remaining(at: now) ?? .zero ? other : one
  }

  /// Returns the wait that an earlier process was asked for. A clock that was set back makes it no longer than it was at the
  /// beginning, and no longer than a server may ask for.
  private func held(until: Timestamp?, now: Moment) -> Wait? {
    guard let until, until > now.wall else { return nil }
    let begun = max(now.wall, history.lastAttempt ?? now.wall)
    return Wait(from: now, seconds: min((until - begun).seconds, Double(limits.mostHint)))
  }
}
