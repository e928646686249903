import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

@Suite struct RunScheduleTests {
  /// A schedule and the two clocks that it is shown.
  final class World {
    var now = Moment(wall: instant("2026-11-20T12:00:00"), monotonic: 1_000_000_000)
    var schedule: RunSchedule
    var runs: [(at: Moment, reason: RunSchedule.Reason)] = []

    init(
      _ timing: RunSchedule.Timing, history: RunSchedule.History = RunSchedule.History(), random: Double = 0.5
    ) {
      schedule = RunSchedule(timing, history: history, now: now, random: random)
    }

    func pass(_ seconds: Double) {
      now.wall += .seconds(seconds)
      now.monotonic += .seconds(seconds)
    }

    func setWall(by seconds: Double) {
      now.wall += .seconds(seconds)
    }

    func next(random: Double = 0.5) -> RunSchedule.NextRun {
      schedule.next(now: now, random: random)
    }

    func run(
      _ outcome: RunSchedule.Outcome = .succeeded, hints: RunSchedule.Hints = RunSchedule.Hints(),
      taking seconds: Double = 1, random: Double = 0.5
    ) {
      runs.append((now, next().reason))
      schedule.begin(now: now)
      pass(seconds)
      schedule.end(outcome, hints: hints, now: now, random: random)
    }

    /// Lets time go by as the agent does: sleeps as long as it is told, a minute at most.
    func live(
      _ seconds: Double, outcome: RunSchedule.Outcome = .succeeded,
      hints: RunSchedule.Hints = RunSchedule.Hints()
    ) {
      let end = now.monotonic + .seconds(seconds)
      while now.monotonic < end {
        let answer = next()
        if answer.wait == .zero {
          run(outcome, hints: hints)
        } else {
          pass(min(60, (answer.wait ?? .longest).seconds + 0.001))
        }
      }
    }
  }

  static let hourly = RunSchedule.Timing.every(
    Cadence(every: 3600, machine: "m".utf8, mirror: "x".utf8)!)
  static let early = RunSchedule.Timing.calendar((try? CalendarSpec("06:00"))!, .utc)

  func history(
    attempt: String?, _ outcome: RunSchedule.Outcome? = .succeeded, failures: Int = 0
  ) -> RunSchedule.History {
    var history = RunSchedule.History()
    history.since = instant("2026-01-01")
    history.lastAttempt = attempt.map(instant)
    history.lastOutcome = outcome
    history.failures = failures
    return history
  }

  /// For who asks whether a mirror is late.
  @Test func theIntervalOfACalendarIsTheLongerOneOfTwoGaps() {
    // 2026-11-20 is a Friday.
    let working = RunSchedule.Timing.calendar((try? CalendarSpec("Mon..Fri 06:00"))!, .utc)
    let world = World(working, history: history(attempt: "2026-11-20T06:00:00"))
    #expect(world.schedule.plannedInterval(now: world.now) == 259_200)
    world.pass(72 * 3600)
    world.run()
    #expect(world.schedule.plannedInterval(now: world.now) == 86_400)
    #expect(World(Self.hourly).schedule.plannedInterval(now: world.now) == 3600)
    #expect(World(.onDemand).schedule.plannedInterval(now: world.now) == nil)
    let once = RunSchedule.Timing.calendar((try? CalendarSpec("2026-11-21"))!, .utc)
    #expect(World(once).schedule.plannedInterval(now: World(once).now) == 43_200)
  }

  /// Whoever has just written a mirror down looks at it.
  @Test(arguments: [nil, "2026-01-01"]) func aFirstRunComesSoon(since: String?) {
    var history = RunSchedule.History()
    history.since = since.map(instant)
    let world = World(Self.hourly, history: history, random: 0.99)
    #expect(world.next().reason == .catchingUp && (world.next().wait ?? .longest) < .seconds(10))
  }

  @Test func hoursGoByOneRunEach() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.live(24 * 3600)
    #expect((23...25).contains(world.runs.count))
    #expect(world.runs.allSatisfy { $0.reason == .scheduled })
    #expect(world.schedule.history.lastSuccess == world.schedule.history.lastAttempt?.adding(seconds: 1))
  }

  @Test func aCalendarIsKept() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    let next = world.next()
    #expect(next.at == instant("2026-11-21T06:00:00"))
    #expect(next.wait == .seconds(64_800))
    #expect(next.reason == .scheduled)
    world.live(72 * 3600)
    #expect(world.runs.count == 3)
  }

  // MARK: - After downtime

  @Test func whatWasMissedIsMadeGoodOnce() {
    let world = World(Self.early, history: history(attempt: "2026-11-01T06:00:00"))
    let next = world.next(random: 0.5)
    #expect(next.reason == .catchingUp)
    #expect(next.wait == .seconds(150))
    world.live(3600)
    #expect(world.runs.map(\.reason) == [.catchingUp])
    #expect(world.next().at == instant("2026-11-21T06:00:00"))
  }

  @Test func aNewMirrorRunsSoonByIntervalAndInTimeByCalendar() {
    let every = World(Self.hourly)
    #expect(every.next().reason == .catchingUp)
    let calendar = World(Self.early)
    #expect(calendar.next().reason == .scheduled)
    #expect(calendar.next().at == instant("2026-11-21T06:00:00"))
    // Known for long, and never run: its time was missed.
    let missed = World(Self.early, history: history(attempt: nil, nil))
    #expect(missed.next().reason == .catchingUp)
  }

  @Test func catchingUpIsSpread() {
    var waits: Set<Duration> = []
    for step in 0..<10 {
      let world = World(Self.hourly, history: history(attempt: "2026-11-19T00:00:00"))
      waits.insert(world.next(random: Double(step) / 10).wait ?? .longest)
    }
    #expect(waits.count == 10)
    #expect(waits.allSatisfy { (.zero ... .seconds(300)).contains($0) })
  }

  @Test func aMachineThatSleptRunsOnce() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.setWall(by: 10 * 3600)
    world.live(600)
    #expect(world.runs.map(\.reason) == [.catchingUp])
  }

  @Test func aLongRunMissesNothing() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.run(taking: 5 * 3600)
    #expect(world.next().reason == .scheduled)
    #expect((world.next().wait ?? .zero) > .zero)
  }

  // MARK: - Failures and hints

  @Test func pausesGrowToTheHour() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    var pauses: [Double] = []
    for _ in 0..<9 {
      world.run(.failedTransient, random: 0.999999)
      #expect(world.next().reason == .backingOff)
      pauses.append((world.next().wait ?? .zero).seconds.rounded())
    }
    #expect(pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600])
    #expect(world.schedule.history.failures == 9)
    world.run()
    #expect(world.schedule.history.failures == 0)
    #expect(world.next().reason == .scheduled)
  }

  @Test func pausesAreBoundedByTheInterval() {
    let often = RunSchedule.Timing.every(Cadence(every: 300, machine: "m".utf8, mirror: "x".utf8)!)
    let world = World(often)
    for _ in 0..<9 { world.run(.failedTransient, random: 0.999999) }
    #expect((world.next().wait ?? .longest) <= .seconds(300))
  }

  @Test func retriesAreSpacedHoweverTheDiceFall() {
    let world = World(Self.hourly)
    world.run(.failedTransient, taking: 0, random: 0)
    #expect(world.next().wait == .seconds(10))
  }

  @Test func heldPlansWaitForTheirTime() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    world.run(.held)
    #expect(world.next().reason == .scheduled)
    #expect(world.next().at == instant("2026-11-21T06:00:00"))
    #expect(world.schedule.history.failures == 0)
  }

  /// A feed that is not there, or malformed, may be there again long before its next time.
  @Test func whatFailsForGoodIsTriedAgainSeldom() {
    let weekly = RunSchedule.Timing.calendar((try? CalendarSpec("Mon 06:00"))!, .utc)
    let world = World(weekly, history: history(attempt: "2026-11-20T06:00:00"))
    var pauses: [Double] = []
    for _ in 0..<7 {
      world.run(.failedPermanent, taking: 0, random: 0)
      #expect(world.next().reason == .backingOff)
      pauses.append((world.next().wait ?? .zero) / .seconds(3600))
    }
    #expect(pauses == [1, 2, 4, 8, 16, 24, 24])
    world.live(4 * 86_400, outcome: .failedPermanent)
    #expect(world.runs.contains { $0.at.wall.rfc3339.hasPrefix("2026-11-23T06:00:0") })
    #expect(world.runs.count < 7 + 6)
  }

  /// Who asked for a time of the day gets it, whatever failed before.
  @Test(arguments: [RunSchedule.Outcome.failedTransient, .failedPermanent])
  func noPlannedTimeIsLetGoBy(outcome: RunSchedule.Outcome) {
    var before = history(attempt: "2026-11-20T05:59:00")
    before.failures = 20
    let world = World(Self.early, history: before)
    world.now.wall = instant("2026-11-21T05:50:00")
    world.run(outcome, random: 0.999999)
    #expect(world.next().at == instant("2026-11-21T06:00:00"))
  }

  @Test func aServerCanOnlyMakeItLater() {
    // ttl of two hours: every second hour, and never called missed.
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.live(24 * 3600, hints: RunSchedule.Hints(freshFor: 7200))
    #expect((11...13).contains(world.runs.count))
    #expect(world.runs.allSatisfy { $0.reason == .scheduled })
    // As long as the interval, or shorter: nothing is skipped.
    for ttl in [60, 3600] as [Int64] {
      let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
      world.live(24 * 3600, hints: RunSchedule.Hints(freshFor: ttl))
      #expect((23...25).contains(world.runs.count))
    }
  }

  @Test func whatAServerAsksForIsCapped() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: .max))
    #expect(world.next().wait == .seconds(86_400))
    world.run(.succeeded, hints: RunSchedule.Hints(freshFor: .max), taking: 0)
    #expect(world.next().wait == .seconds(86_400))
    world.run(.succeeded, hints: RunSchedule.Hints(retryAfter: -5, freshFor: .min))
    #expect((world.next().wait ?? .longest) <= .seconds(3600))
    world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: 1800))
    #expect(world.next().wait == .seconds(1800))
    #expect(world.next().reason == .backingOff)
  }

  /// It is waited for as well, but nobody asked for it, and the next process has not seen it fail.
  @Test func howLongAHostRestsIsNoWish() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.run(.failedTransient, hints: RunSchedule.Hints(restFor: 1800))
    #expect(world.next().wait == .seconds(1800))
    #expect(world.schedule.history.heldUntil == nil)
    world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: 2400, restFor: 1800))
    #expect(world.next().wait == .seconds(2400))
    #expect(world.schedule.history.heldUntil == world.next().at)
  }

  @Test func backOffOutlivesTheProcess() {
    let world = World(
      Self.early, history: history(attempt: "2026-11-20T11:59:00", .failedTransient, failures: 3), random: 0.5
    )
    #expect(world.next().reason == .backingOff)
    #expect(world.next().wait == .seconds(120))
    let seldom = World(
      Self.early, history: history(attempt: "2026-11-20T11:59:00", .failedPermanent, failures: 1), random: 0)
    #expect(seldom.next().wait == .seconds(3600))
  }

  // MARK: - People

  @Test func whoAsksIsServedAtOnce() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    world.run(.failedTransient)
    world.schedule.setPaused(true)
    #expect(world.next() == RunSchedule.NextRun(at: nil, wait: nil, reason: .paused))
    world.schedule.ask()
    #expect(world.next() == RunSchedule.NextRun(at: world.now.wall, wait: .zero, reason: .asked))
    world.run()
    #expect(world.next().reason == .paused)
    world.schedule.setPaused(false)
    #expect(world.next().reason == .scheduled)
  }

  @Test func askedDuringARunAnotherFollows() {
    let world = World(Self.early)
    world.schedule.begin(now: world.now)
    world.schedule.ask()
    #expect(world.next().wait == nil)
    world.schedule.end(.succeeded, now: world.now, random: 0)
    #expect(world.next().reason == .asked)
    world.run()
    #expect(world.next().reason == .scheduled)
  }

  @Test func onDemandRunsOnlyWhenAsked() {
    let world = World(.onDemand)
    #expect(world.next() == RunSchedule.NextRun(at: nil, wait: nil, reason: .none))
    world.schedule.ask()
    world.run(.failedTransient)
    #expect(world.next().reason == .none)
    world.live(48 * 3600)
    #expect(world.runs.count == 1)
    world.schedule.setTiming(Self.hourly, now: world.now)
    world.live(7200)
    #expect(world.runs.count > 1)
  }

  /// What a mirror is owed comes whatever its settings say now.
  @Test func anotherIntervalTakesNoFirstRunAway() {
    let daily = RunSchedule.Timing.every(
      Cadence(every: 86_400, machine: "m".utf8, mirror: "x".utf8)!)
    func runs(_ world: World) -> Int {
      world.live(30)
      return world.runs.count
    }
    let new = World(Self.hourly)
    new.schedule.setTiming(daily, now: new.now)
    #expect(runs(new) == 1)
    let called = World(.onDemand)
    called.schedule.setTiming(daily, now: called.now)
    #expect(runs(called) == 1)
    var cut = history(attempt: "2026-11-20T11:50:00")
    cut.wasCutShort = true
    let killed = World(Self.hourly, history: cut)
    killed.schedule.setTiming(daily, now: killed.now)
    #expect(runs(killed) == 1)
    // One that is at work, or that was just made, is not owed another.
    let working = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    working.schedule.begin(now: working.now)
    working.schedule.setTiming(daily, now: working.now)
    working.schedule.end(.succeeded, now: working.now, random: 0)
    #expect(runs(working) == 0)
    new.schedule.setTiming(Self.hourly, now: new.now)
    #expect(runs(new) == 1)
  }

  @Test func afterAPauseWhatWasMissedIsMadeGood() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.schedule.setPaused(true)
    world.live(10 * 3600)
    #expect(world.runs.isEmpty)
    world.schedule.setPaused(false)
    world.live(600)
    #expect(world.runs.filter { $0.reason == .catchingUp }.count == 1)
    #expect(world.runs.count <= 2)
  }

  // MARK: - Clocks that are set

  @Test(arguments: [-10, -3000, -86_400, -400 * 86_400, -20 * 365 * 86_400] as [Double])
  func aClockSetBackStopsNothing(seconds: Double) {
    for timing in [Self.hourly, Self.early] {
      let world = World(timing, history: history(attempt: "2026-11-20T11:50:00"))
      world.run()
      world.setWall(by: seconds)
      let period: Double = timing == Self.hourly ? 3600 : 86_400
      world.live(period * 2.6)
      // One a period, and the slot that the clock came by again.
      #expect((2...5).contains(world.runs.count), "\(seconds) \(world.runs.count)")
      for (one, other) in zip(world.runs.dropFirst(), world.runs.dropFirst(2)) {
        #expect(other.at.monotonic - one.at.monotonic > .seconds(period * 0.4), "\(seconds)")
      }
    }
  }

  @Test func aClockSetBackALittleBringsNoRunTwice() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    world.live(18 * 3600 + 1)
    #expect(world.runs.count == 1)
    world.setWall(by: -30)
    world.live(3600)
    #expect(world.runs.count == 1)
    // Nor does a restart.
    let again = World(Self.early, history: history(attempt: "2026-11-20T12:00:10"))
    #expect(again.next().at == instant("2026-11-21T06:00:00"))
  }

  @Test func aWaitEndsByWhicheverClockGetsThere() {
    for jump in [-86_400.0, 0, 50, 100_000] {
      let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
      world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: 100))
      world.pass(40)
      world.setWall(by: jump)
      #expect(world.next().reason == .backingOff)
      #expect(world.next().wait == (jump > 50 ? .zero : jump > 0 ? .seconds(10) : .seconds(60)))
    }
    let early = Moment(wall: Timestamp(nanoseconds: .min), monotonic: 0)
    let late = Moment(wall: Timestamp(nanoseconds: .max), monotonic: .distantFuture)
    #expect(late.elapsed(since: early) == .longest * 2 + .nanoseconds(1))
    #expect(early.elapsed(since: late) == .zero)
  }

  @Test func anAttemptInTheFutureIsNoReasonToWait() {
    let world = World(Self.early, history: history(attempt: "2031-01-01"))
    #expect(world.next().at == instant("2026-11-21T06:00:00"))
  }

  /// However the clock is set, there is a run now and then, and never a storm.
  @Test(arguments: 1...20) func neitherStormNorStandstill(seed: Int) {
    var random = Seeded(UInt64(seed))
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    let start = world.now.monotonic
    var settings = 0
    while world.now.monotonic - start < .seconds(100 * 3600) {
      world.live(Double(60 + random.below(7200)), outcome: random.chance(80) ? .succeeded : .failedPermanent)
      if random.chance(30) {
        let range = random.pick([10, 1000, 100_000, 100_000_000])
        world.setWall(by: Double(random.below(2 * range) - range))
        settings += 1
      }
    }
    #expect(world.runs.count <= 102 + 2 * settings)
    for (one, other) in zip(world.runs, world.runs.dropFirst()) {
      let gap = other.at.monotonic - one.at.monotonic
      #expect(gap >= .seconds(10))
      #expect(gap < .seconds(9000))
    }
  }

  /// Each half hour the clock is put back by half an hour: it shows the same times again and again.
  @Test func aClockThatDoesNotGetOnStopsNothing() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.run()
    for _ in 0..<40 {
      world.live(1800)
      world.setWall(by: -1800)
    }
    #expect(world.runs.count >= 8)
  }

  /// Another process works at the folder: no attempt and no failure, and the wait does not grow with it.
  @Test func aBusyFolderIsTriedAgainSoon() {
    let world = World(Self.early, history: history(attempt: "2026-11-20T06:00:00"))
    for _ in 0..<20 {
      world.run(.busy, random: 0.999)
      #expect(world.next().reason == .catchingUp)
      #expect((.seconds(9) ... .seconds(20)).contains(world.next().wait ?? .zero))
      world.pass(20)
    }
    #expect(world.schedule.history.failures == 0 && world.schedule.history.lastOutcome == .succeeded)
    #expect(world.schedule.history.lastAttempt == instant("2026-11-20T06:00:00"))
    world.run()
    #expect(world.next().reason == .scheduled && world.next().at == instant("2026-11-21T06:00:00"))
    // What a server asked for holds on.
    world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: 1800))
    world.schedule.ask()
    world.run(.busy, taking: 0)
    #expect(world.next().wait == .seconds(1800))
    let byHand = World(.onDemand, history: history(attempt: "2026-11-20T06:00:00"))
    byHand.run(.busy)
    #expect(byHand.next().wait == nil)
  }

  /// What the old feed's server asked for, and how it failed.
  @Test func anotherFeedIsAskedAtOnce() {
    let minutely = RunSchedule.Timing.every(Cadence(every: 60, machine: "m".utf8, mirror: "x".utf8)!)
    let world = World(minutely)
    world.run(.failedTransient, hints: RunSchedule.Hints(retryAfter: 3000))
    #expect((world.next().wait ?? .zero) > .seconds(1000))
    world.schedule.forgetFeed(now: world.now)
    #expect((world.next().wait ?? .longest) <= .seconds(60))
    #expect(world.schedule.history.heldUntil == nil && world.schedule.history.failures == 0)
  }

  /// Killed and started anew, it asks no sooner than the server wants.
  @Test(arguments: [
    (RunSchedule.Outcome.failedTransient, RunSchedule.Hints(retryAfter: 1800)),
    (.succeeded, RunSchedule.Hints(freshFor: 1801)),
  ]) func whatAServerAsksForOutlivesTheProcess(outcome: RunSchedule.Outcome, hints: RunSchedule.Hints) {
    let minutely = RunSchedule.Timing.every(Cadence(every: 60, machine: "m".utf8, mirror: "x".utf8)!)
    let world = World(minutely)
    world.run(outcome, hints: hints)
    let until = world.now.wall.adding(seconds: 1800)
    #expect(world.schedule.history.heldUntil == until)
    world.pass(600)
    let later = World(minutely, history: world.schedule.history)
    (later.now, later.schedule) = (
      world.now, RunSchedule(minutely, history: world.schedule.history, now: world.now, random: 0)
    )
    #expect(later.next().at == until)
    // A person's wish goes before it; then it is over.
    later.schedule.ask()
    #expect(later.next().wait == .zero)
    later.run()
    #expect(later.schedule.history.heldUntil == nil && (later.next().wait ?? .longest) <= .seconds(60))
    // A clock that was set back makes it no longer than a day.
    var history = world.schedule.history
    history.heldUntil = world.now.wall.adding(seconds: 10_000_000)
    let schedule = RunSchedule(minutely, history: history, now: world.now, random: 0)
    later.schedule = schedule
    later.now = world.now
    #expect(later.next().wait == .seconds(86_400))
    // Nor longer than it was at the attempt that got it, 40 days ahead of this clock.
    let attempt = world.now.wall.adding(seconds: 3_456_000)
    (history.lastAttempt, history.heldUntil) = (attempt, attempt.adding(seconds: 120))
    later.schedule = RunSchedule(minutely, history: history, now: world.now, random: 0)
    #expect((later.next().wait ?? .longest) <= .seconds(120))
  }
}
