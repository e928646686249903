package import TarnCore

/// When one mirror runs next, and why: a value that is told what happens, and asked.
///
/// Times of the calendar are kept by the wall clock, all waits (back-off, what a server asked for, the jitter of catching
/// up) by whichever clock gets there first. The owner asks `next` after each event and at least once a minute, for the
/// wall clock may be set at any time.
package struct RunSchedule: Sendable {
  /// What makes a mirror run without being asked.
  package enum Timing: Sendable, Hashable {
    case every(Cadence)
    /// Whichever of them comes first.
    case calendars([ZonedCalendar])
    case onDemand

    package static func calendar(_ spec: CalendarSpec, _ rules: TimeZoneRules) -> Timing {
      .calendars([ZonedCalendar(spec, rules)])
    }
  }

  /// A calendar, and the rules of the zone that its text names, or of the machine.
  package struct ZonedCalendar: Sendable, Hashable {
    let spec: CalendarSpec
    let rules: TimeZoneRules

    package init(_ spec: CalendarSpec, _ rules: TimeZoneRules) {
      self.spec = spec
      self.rules = rules
    }
  }

  /// The raw values are kept by the agent.
  package enum Outcome: String, Sendable, Hashable, CaseIterable {
    case succeeded
    /// Worth trying again before its time.
    case failedTransient = "failed-transient"
    /// Only a change at the other end or in the settings can help: it is tried again seldom, or at its time.
    case failedPermanent = "failed-permanent"
    /// A plan waits for approval; nothing is wrong with the network.
    case held
    /// Ended on request: says nothing about the mirror, and the next run comes as planned.
    case cancelled
    /// Another process works at the folder: no attempt, and it is tried again soon.
    case busy
  }

  /// The words of the status document.
  package enum Reason: String, Sendable, Hashable, CaseIterable {
    case scheduled
    case catchingUp = "catching-up"
    case backingOff = "backing-off"
    case asked
    case paused
    case none
  }

  package struct NextRun: Sendable, Hashable {
    /// By the wall clock; nil when nothing is planned.
    package var at: Timestamp?
    /// From now, zero when it is due; nil when nothing is planned, and while it runs.
    package var wait: Duration?
    package var reason: Reason
  }

  /// What a server asked for with its answer, and what is known of it, in seconds.
  package struct Hints: Sendable, Hashable {
    package var retryAfter: Int64?
    /// The RSS `ttl`.
    package var freshFor: Int64?
    /// It failed, and this process leaves it alone for so long: no wish of the server's, and nothing to the next process.
    package var restFor: Int64?
    /// The feed's server said something: what it asked for before is over.
    package var isAnswer = true

    package init(retryAfter: Int64? = nil, freshFor: Int64? = nil, restFor: Int64? = nil) {
      self.retryAfter = retryAfter
      self.freshFor = freshFor
      self.restFor = restFor
    }
  }

  package struct Limits: Sendable, Hashable {
    /// Back-off after transient failures. Whatever failed, no planned time is let go by for it.
    package var backOff = BackOff(base: 60, most: 3600)
    /// After failures that trying again alone does not mend: for mirrors whose time is days away.
    package var seldom = BackOff(base: 3600, most: 86_400)
    /// Seconds: no hint of a server counts for more.
    package var mostHint: Int64 = 86_400
    /// Seconds over which missed runs are spread; a quarter of the interval at most.
    package var catchUpSpread: Double = 300
    /// Seconds: a run that is later is a missed one.
    package var lateness: Double = 60
    /// Seconds between the beginnings of two runs that nobody asked for; a run that was cut short goes on within them.
    package var spacing: Double = 10

    package init() {}
  }

  /// What the ledger remembers between two processes.
  package struct History: Sendable, Hashable {
    /// When the mirror became known.
    package var since: Timestamp?
    package var lastAttempt: Timestamp?
    package var lastSuccess: Timestamp?
    /// Attempts since the last success that failed.
    package var failures = 0
    package var lastOutcome: Outcome?
    /// A run was at work when the process ended, or was killed: what it fetched waits for the next one.
    package var wasCutShort = false
    /// Until then the server of the last run asked to be left alone, or its feed (`ttl`) not to be read; nil where neither did.
    package var heldUntil: Timestamp?
    /// The feed did, and no wish of the server's.
    package var isHeldByFeed = false

    package init() {}
  }

  package private(set) var history: History
  package private(set) var isPaused = false
  package private(set) var isRunning = false
  package private(set) var isAsked = false
  private var timing: Timing
  private let limits: Limits
  /// The planned time, and from when on it was looked for.
  private var slot: (at: Timestamp, from: Timestamp)?
  /// What a server asked for, or how long one that failed is left alone: until then only a person's wish counts.
  private var hold: Wait?
  /// After a failure: when it is tried again, unless a planned time comes first.
  private var backOff: Wait?
  /// For a run that was wanted, and none has read the feed since.
  private var hasEndedBackOff = false
  /// A missed run, and when it is made good.
  private var catchUp: Wait?
  private var lastBegin: Moment?
  /// What held before the run that is at work, for it may turn out to be none.
  private var before: (history: History, hold: Wait?)?
  /// The last begin or end of a run of this process.
  private var lastSign: Moment?
  /// The planned time is looked for after this one; runs whose time came while another went on are not missed.
  private var reference: Timestamp

  /// - Parameters:
  ///   - history: as the last process left it; of a new mirror all nil.
  ///   - random: in 0..<1.
  package init(
    _ timing: Timing, limits: Limits = Limits(), history: History = History(), now: Moment, random: Double
  ) {
    self.timing = timing
    self.limits = limits
    self.history = history
    if history.since == nil { self.history.since = now.wall }
    reference = history.lastAttempt ?? history.since ?? now.wall
    // Whatever failed before, a run that was cut short goes on.
    if let outcome = history.lastOutcome, history.failures > 0, !history.wasCutShort {
      backOff = backOffWait(outcome, now: now, random: random)
    }
    if timing != .onDemand { hold = held(until: history.heldUntil, now: now) }
    plan(now: now)
    // Who has just written a mirror down waits for its first run, or looks for what is wrong.
    let isFirst = if case .every = timing { history.lastAttempt == nil } else { false }
    if isFirst || history.wasCutShort { catchUp = Wait(from: now, seconds: random * limits.spacing) }
  }

  // MARK: - Events

  /// Somebody wants a run now: it comes whatever else holds, also while the mirror is paused. Asked during a run, another
  /// one follows, for the feed may have been read before.
  package mutating func ask() {
    isAsked = true
  }

  /// What was asked for is wanted no more.
  package mutating func withdraw() {
    isAsked = false
  }

  /// A run would be of use soon; it waits while the mirror is paused or backs off, and never comes where runs come by command
  /// only.
  ///
  /// - Parameter endsBackOff: nothing can be done without it, so it comes although the mirror backs off; once, until
  ///   `hasReadFeed`.
  package mutating func want(now: Moment, endsBackOff: Bool = false) {
    guard timing != .onDemand else { return }
    if endsBackOff, !hasEndedBackOff, backOff != nil { (backOff, hasEndedBackOff) = (nil, true) }
    if catchUp == nil { catchUp = Wait(from: now, seconds: 0) }
  }

  /// A run came so far: one that is wanted may end the back-off again.
  package mutating func hasReadFeed() { hasEndedBackOff = false }

  package mutating func setPaused(_ paused: Bool) {
    isPaused = paused
  }

  /// The settings were changed.
  package mutating func setTiming(_ timing: Timing, now: Moment) {
    guard timing != self.timing else { return }
    self.timing = timing
    catchUp = nil
    if timing == .onDemand {
      forgetHold()
      backOff = nil
    }
    plan(now: now)
  }

  /// Another feed is followed: what the old one's server asked for, and when it failed or did not, is nothing to it.
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

  /// A run begins.
  package mutating func begin(now: Moment) {
    isRunning = true
    isAsked = false
    before = (history, hold)
    catchUp = nil
    hold = nil
    // A wish ends with an answer, and not with somebody else's wish.
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

  /// What the server of the run at work asked for, which waits for it: a process that takes its place has to know.
  ///
  /// - Parameter seconds: to be left alone; nil once it has answered.
  /// - Returns: whether that is another wish than before: told in whole seconds, the same one comes out a little later each time.
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

  /// The run has ended.
  ///
  /// - Parameters:
  ///   - isCutShort: because the process ends: the next process goes on with it.
  ///   - random: in 0..<1.
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
    case .held: history.failures = 0
    case .failedTransient, .failedPermanent: history.failures += 1
    }
    backOff = backOffWait(outcome, now: now, random: random)
    var wish = hints.retryAfter.flatMap { asked($0, from: now) }
    // It ended while it waited as its server had asked, or had no answer.
    if outcome == .cancelled || !hints.isAnswer, timing != .onDemand {
      wish = longer(wish, held(until: history.heldUntil, now: now), now)
    }
    // A feed is as old as the run that read it. What a run that is to go on has read is no reason to wait.
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

  /// It counts as no run: what a server asked for still holds, and another run follows soon.
  private mutating func endBusy(now: Moment, random: Double) {
    if let before { (history, hold) = before }
    lastSign = now
    reference = now.wall
    if timing != .onDemand { catchUp = Wait(from: now, seconds: limits.spacing * (1 + random)) }
    plan(now: now)
  }

  // MARK: - The answer

  /// When the mirror runs next. Notes what was missed in the meantime.
  ///
  /// - Parameter random: in 0..<1; used when a run was missed.
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

  /// Seconds from one planned run to the next, about now; of a calendar's gaps the one that is at hand or the one behind it, the longer
  /// one. nil where runs come by command only.
  package func plannedInterval(now: Moment) -> Double? {
    let next = interval(now: now)
    guard next.isFinite else { return slot.map { ($0.at - $0.from).seconds } }
    guard case .calendars = timing, let slot else { return next }
    return max(next, (slot.at - slot.from).seconds)
  }

  /// Until the planned time, below zero behind it; nil without one.
  private func distance(_ now: Moment) -> Duration? { slot.map { $0.at - now.wall } }

  private var slotReason: Reason { slot == nil ? .none : .scheduled }

  private func run(after wait: Duration, _ reason: Reason, now: Moment) -> NextRun {
    NextRun(at: now.wall + wait, wait: wait, reason: reason)
  }

  /// By the monotonic clock alone: a clock that is set to and fro starts no storm.
  private func spacing(at now: Moment) -> Duration {
    guard let lastBegin, now.monotonic >= lastBegin.monotonic else { return .zero }
    return max(.zero, .seconds(limits.spacing) - (now.monotonic - lastBegin.monotonic))
  }

  // MARK: - Planning

  /// Sees whether the planned time has gone by, or the clock was set back from it.
  private mutating func look(now: Moment, random: Double) {
    guard let slot else { return }
    if isSetBack(now.wall, slot) { plan(now: now) }
    guard catchUp == nil, !isRunning, isMissed(now: now) else { return }
    miss(now: now, random: random)
  }

  /// Whether the time came, and more than the lateness has passed since it did.
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

  /// By more than half the way to the planned time: what lies behind it is waited for, the rest is planned anew. Less
  /// than that delays a run a little, and never brings one twice.
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

  /// Seconds between two runs, about now.
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

  /// - Returns: nil for what is not tried again before its time.
  private func backOffWait(_ outcome: Outcome, now: Moment, random: Double) -> Wait? {
    guard timing != .onDemand else { return nil }
    switch outcome {
    case .succeeded, .held, .cancelled, .busy: return nil
    case .failedTransient:
      let ceiling = min(limits.backOff.ceiling(history.failures), interval(now: now))
      return Wait(from: now, seconds: ceiling * random)
    case .failedPermanent:
      // All of it is certain: what fails for good is not to be asked often.
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

  /// What an earlier process was asked for. A clock that was set back makes it no longer than it was when it began, nor than a
  /// server may ask for.
  private func held(until: Timestamp?, now: Moment) -> Wait? {
    guard let until, until > now.wall else { return nil }
    let begun = max(now.wall, history.lastAttempt ?? now.wall)
    return Wait(from: now, seconds: min((until - begun).seconds, Double(limits.mostHint)))
  }
}
