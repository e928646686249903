import TarnCore
import TarnSchedule
import TestSupport
import Testing

/// What the server of a run asks for while the run waits for it.
@Suite struct AskedScheduleTests {
  private let minutely = RunSchedule.Timing.every(Cadence(every: 60, machine: "m".utf8, mirror: "x".utf8)!)
  private let begin = Moment(wall: Timestamp(seconds: 1_800_000_000)!, monotonic: 1_000_000_000_000)

  private func moment(_ seconds: Int64) -> Moment {
    Moment(
      wall: begin.wall.adding(seconds: seconds), monotonic: begin.monotonic + .seconds(seconds))
  }

  private func running() -> RunSchedule {
    var schedule = RunSchedule(minutely, now: begin, random: 0)
    // Nobody waits without a run.
    schedule.setAsked(300, now: begin)
    #expect(schedule.history.heldUntil == nil)
    schedule.begin(now: begin)
    return schedule
  }

  /// Of a process that is killed, or asked to end.
  @Test(arguments: [true, false]) func itOutlivesTheRun(isKilled: Bool) {
    var schedule = running()
    schedule.setAsked(300, now: begin)
    let until = moment(300).wall
    #expect(schedule.history.heldUntil == until)
    let now = moment(100)
    if !isKilled { schedule.end(.cancelled, isCutShort: true, now: now, random: 0) }
    #expect(schedule.history.heldUntil == until)
    var next = RunSchedule(minutely, history: schedule.history, now: now, random: 0.9)
    #expect(next.next(now: now, random: 0).at == until)
  }

  /// A feed that may not be read for a day (`ttl`) hides neither a wish nor what waits to go on.
  @Test(arguments: [300.0, nil]) func itOutlivesAFeedThatWasRead(wish: Double?) {
    let hints = RunSchedule.Hints(freshFor: 86_400)
    var schedule = running()
    schedule.setAsked(wish, now: begin)
    let now = moment(100)
    schedule.end(.cancelled, hints: hints, isCutShort: true, now: now, random: 0)
    var next = RunSchedule(minutely, history: schedule.history, now: now, random: 0)
    #expect(next.next(now: now, random: 0).at == (wish == nil ? now.wall : moment(300).wall))
    // Of a run that a person ended the feed was read, and whoever asks for longer counts.
    for (wish, until) in [(300.0, 86_400), (nil, 86_400)] as [(Double?, Int64)] {
      var schedule = running()
      schedule.setAsked(wish, now: begin)
      schedule.end(.cancelled, hints: hints, now: now, random: 0)
      #expect(schedule.next(now: now, random: 0).at == moment(until).wall)
    }
    var brief = running()
    brief.setAsked(300, now: begin)
    brief.end(.cancelled, hints: RunSchedule.Hints(freshFor: 200), now: now, random: 0)
    #expect(brief.next(now: now, random: 0).at == moment(300).wall)
  }

  /// It begins with the answer, whatever was read before it.
  @Test(arguments: [RunSchedule.Outcome.failedTransient, .failedPermanent, .succeeded])
  func theRunsOwnTimeIsNotTakenOff(outcome: RunSchedule.Outcome) {
    var schedule = running()
    let now = moment(1000)
    schedule.end(outcome, hints: RunSchedule.Hints(retryAfter: 7200, freshFor: 60), now: now, random: 0)
    #expect(schedule.history.heldUntil == moment(8200).wall)
  }

  /// Not even one that somebody's wish has begun, in another process, and that came to no answer; an answer does.
  @Test(arguments: ["killed", "cancelled", "no answer", "answer"]) func aRunAloneDoesNotEndIt(end: String) {
    var first = running()
    first.end(.failedTransient, hints: RunSchedule.Hints(retryAfter: 3600), now: begin, random: 0)
    #expect(!first.history.isHeldByFeed)
    let now = moment(100)
    var schedule = RunSchedule(minutely, history: first.history, now: now, random: 0)
    schedule.begin(now: now)
    #expect(schedule.history.heldUntil == moment(3600).wall)
    var hints = RunSchedule.Hints()
    hints.isAnswer = end == "answer"
    switch end {
    case "killed": schedule = RunSchedule(minutely, history: schedule.history, now: now, random: 0)
    case "cancelled": schedule.end(.cancelled, now: now, random: 0)
    default: schedule.end(.failedTransient, hints: hints, now: now, random: 0)
    }
    #expect((schedule.next(now: now, random: 0).at == moment(3600).wall) == (end != "answer"))
  }

  /// The age of a feed is no wish: a run that fails is tried again as usual.
  @Test func aFeedsAgeEndsWithARun() {
    var first = running()
    first.end(.succeeded, hints: RunSchedule.Hints(freshFor: 3600), now: begin, random: 0)
    #expect(first.history.isHeldByFeed && first.history.heldUntil == moment(3600).wall)
    let now = moment(100)
    var schedule = RunSchedule(minutely, history: first.history, now: now, random: 0)
    schedule.begin(now: now)
    var hints = RunSchedule.Hints()
    hints.isAnswer = false
    schedule.end(.failedTransient, hints: hints, now: now, random: 0)
    #expect((schedule.next(now: now, random: 0).wait ?? .longest) <= .seconds(60))
  }

  @Test func anAnswerEndsIt() {
    var schedule = running()
    schedule.setAsked(300, now: begin)
    schedule.setAsked(nil, now: begin)
    schedule.end(.cancelled, now: begin, random: 0)
    #expect((schedule.next(now: begin, random: 0).wait ?? .longest) <= .seconds(60))
    #expect(schedule.history.heldUntil == nil)
  }

  @Test func itIsADayAtMost() {
    var schedule = running()
    schedule.setAsked(.infinity, now: begin)
    #expect(schedule.history.heldUntil == moment(86_400).wall)
  }

  /// Who runs by command only asks as often as its user does.
  @Test func whoHasNoScheduleIsNotHeld() {
    var schedule = RunSchedule(.onDemand, now: begin, random: 0)
    schedule.begin(now: begin)
    schedule.setAsked(300, now: begin)
    schedule.end(.cancelled, now: begin, random: 0)
    #expect(schedule.history.heldUntil == nil)
  }
}
