import TarnCore
import Testing

@testable import TarnSchedule

/// Runs that the end of the process cut short.
extension RunScheduleTests {
  /// Whatever its rhythm: what was fetched waits for the rest, and the next planned time may be days away.
  @Test(arguments: [Self.hourly, Self.early, .onDemand]) func aRunThatWasCutShortGoesOnSoon(
    timing: RunSchedule.Timing
  ) {
    let killed = World(timing, history: history(attempt: "2026-11-20T11:50:00"))
    killed.schedule.begin(now: killed.now)
    // kill -9: the next process has what was known in the middle of it.
    let next = World(timing, history: killed.schedule.history)
    #expect(next.next().reason == .catchingUp)
    #expect(next.next().wait == .seconds(5))
    next.live(3000)
    #expect(next.runs.map(\.reason).prefix(2) != [.catchingUp, .catchingUp])
    #expect(next.runs.first?.reason == .catchingUp && !next.schedule.history.wasCutShort)
    // A stop in order says it as well; a person's cancel does not.
    killed.schedule.end(.cancelled, isCutShort: true, now: killed.now, random: 0.5)
    #expect(World(timing, history: killed.schedule.history).next().reason == .catchingUp)
    killed.schedule.end(.cancelled, now: killed.now, random: 0.5)
    #expect(World(timing, history: killed.schedule.history).next().reason != .catchingUp)
  }

  /// Also where runs before it failed: what it fetched waits.
  @Test(arguments: [Self.hourly, Self.early], [RunSchedule.Outcome.failedPermanent, .failedTransient])
  func aRunThatWasCutShortGoesOnAfterFailures(timing: RunSchedule.Timing, outcome: RunSchedule.Outcome) {
    let before = history(attempt: "2026-11-20T11:50:00", outcome, failures: 3)
    #expect(World(timing, history: before).next().reason == .backingOff)
    let killed = World(timing, history: before)
    killed.schedule.begin(now: killed.now)
    for isKilled in [true, false] {
      if !isKilled { killed.schedule.end(.cancelled, isCutShort: true, now: killed.now, random: 0.5) }
      let next = World(timing, history: killed.schedule.history)
      #expect(next.next().reason == .catchingUp && next.next().wait == .seconds(5))
      // A failure of that one counts with the ones before it.
      next.pass(5)
      next.run(outcome)
      #expect(next.next().reason == .backingOff && next.schedule.history.failures == 4)
    }
  }

  /// A folder at which another process works is no attempt: what was cut short still is.
  @Test func aBusyFolderForgetsNothingOfIt() {
    let killed = World(Self.early, history: history(attempt: "2026-11-20T11:50:00"))
    killed.schedule.begin(now: killed.now)
    let second = World(Self.early, history: killed.schedule.history)
    second.pass(5)
    second.run(.busy)
    #expect(second.schedule.history.wasCutShort)
    #expect(World(Self.early, history: second.schedule.history).next().reason == .catchingUp)
  }

  @Test func aPauseHoldsBackWhatWasCutShort() {
    let world = World(Self.hourly, history: history(attempt: "2026-11-20T11:50:00"))
    world.schedule.begin(now: world.now)
    let next = World(Self.hourly, history: world.schedule.history)
    next.schedule.setPaused(true)
    #expect(next.next().wait == nil)
    next.schedule.setPaused(false)
    #expect(next.next().reason == .catchingUp)
  }
}
