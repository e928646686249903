import TarnCore
import Testing

/// What a hook is told of, and what of it waits.
@Suite struct HookTests {
  private func document(_ number: Int, _ event: HookEvent = .failing) -> HookDocument {
    HookDocument(
      id: String(number), time: Timestamp(nanoseconds: 0), event: event, mirror: "iso", feed: "/f",
      folder: "/srv/iso", run: UInt64(number), rid: "r\(number)", host: "h")
  }

  private func moment(_ seconds: Int64) -> Moment {
    Moment(
      wall: Timestamp(nanoseconds: seconds * 1_000_000_000), monotonic: Instant() + .seconds(seconds))
  }

  private func failed(_ asked: Int64? = nil) -> HookQueue.Result {
    .failed("no", isTransient: true, retryAfter: asked)
  }

  // MARK: - Changes

  /// One event for each change, and none for a state that goes on.
  @Test(
    arguments: [
      ([MirrorCondition.good, .good], []), ([.failing, .failing, .failing], [HookEvent.failing]),
      ([.failing, .good, .good], [.failing, .recovered]),
      ([.held, .failing, .good], [.held, .failing, .recovered]),
      ([.good, .failing, .good, .failing], [.failing, .recovered, .failing]),
    ] as [([MirrorCondition], [HookEvent])])
  func eachChangeIsToldOnce(_ conditions: [MirrorCondition], _ events: [HookEvent]) {
    var before: MirrorCondition?
    var told: [HookEvent] = []
    for condition in conditions {
      told += [condition.event(after: before)].compactMap(\.self)
      before = condition
    }
    #expect(told == events)
  }

  @Test func aPingHasTheSuffixOfHealthchecks() {
    func suffix(_ event: HookEvent, _ status: Int32? = nil, hasReport: Bool = false) -> String {
      var document = document(1, event)
      (document.exitStatus, document.hasReport) = (status, hasReport)
      return document.pingSuffix
    }
    #expect(suffix(.started) == "/start" && suffix(.ended, 0, hasReport: true) == "")
    #expect(suffix(.ended, 66) == "/fail" && suffix(.ended, 3, hasReport: true) == "/3")
    #expect(suffix(.recovered, 0, hasReport: true) == "" && suffix(.failing, 66) == "/fail")
    #expect(suffix(.held, 3, hasReport: true) == "/3" && suffix(.failing) == "/fail")
  }

  @Test func aCommandHasWhatIsKnown() {
    var document = document(7, .recovered)
    document.message = "in sync: 5 files"
    document.setText()
    let environment = document.environment
    #expect(environment.contains("TARN_TEXT=iso: recovered: in sync: 5 files"))
    #expect(environment.contains("TARN_EVENT=recovered") && environment.contains("TARN_RUN=7"))
    #expect(!environment.contains { $0.hasPrefix("TARN_CODE=") })
  }

  /// Many servers take a token in the query of a URL.
  @Test func noQueryLeavesTheMachine() {
    var document = HookDocument(
      id: "1", time: Timestamp(nanoseconds: 0), event: .failing, mirror: "iso",
      feed: "https://h/SUMS?token=X", folder: "/srv/iso?", run: 1, rid: "r", host: "h")
    document.setEnd(
      code: "http", message: "'https://h/SUMS?token=X' is gone; https://h/a and http://i#X: why?",
      hint: "tarn sync https://h/SUMS?a=X&b=https://X")
    document.setText()
    #expect(document.feed == "https://h/SUMS?***" && document.folder == "/srv/iso?")
    #expect(document.message == "'https://h/SUMS?***' is gone; https://h/a and http://i#***: why?")
    #expect(document.hint == "tarn sync https://h/SUMS?***")
    #expect(!document.text.contains("X"), "\(document.text)")
  }

  // MARK: - The queue

  @Test func eachHookIsToldInOrderAndOneByOne() {
    var queue = HookQueue()
    for number in 1...3 { #expect(queue.add(document(number), to: "a") == nil) }
    _ = queue.add(document(9), to: "b")
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["1", "9"])
    #expect(queue.begin(now: moment(0).monotonic) == [] && !queue.isResting)
    #expect(
      queue.ended("a", "1", .delivered, retries: 0, now: moment(0), random: 0) == .delivered(isBack: false))
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["2"])
    #expect(queue.health(of: "a").waiting == 2 && queue.count == 3)
  }

  /// The first pause is of 5 s at most, each one twice as long, none over 15 min; half of it is chance.
  @Test func whatFailsIsTriedAgainLaterAndLater() {
    var queue = HookQueue()
    _ = queue.add(document(1), to: "a")
    _ = queue.add(document(2), to: "b")
    var now = moment(0)
    var pauses: [Double] = []
    for attempt in 0..<12 {
      let begun = queue.begin(now: now.monotonic)
      #expect(begun.map(\.hook) == (attempt == 0 ? ["a", "b"] : ["a"]))
      #expect(begun.first?.attempts == attempt)
      let verdict = queue.ended("a", "1", failed(), retries: 11, now: now, random: 1)
      guard case .again(let seconds, let isFirst) = verdict else {
        #expect(verdict == .gaveUp && attempt == 11)
        break
      }
      #expect(isFirst == (attempt == 0))
      pauses.append(seconds)
      #expect(queue.begin(now: now.monotonic) == [], "before its time")
      #expect(queue.wait(now: now.monotonic) == .seconds(seconds))
      now = Moment(wall: now.wall, monotonic: now.monotonic + .seconds(seconds))
    }
    #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900])
    let health = queue.health(of: "a")
    #expect(health.failures == 12 && health.dropped == 1 && health.waiting == 0 && health.message == "no")
    #expect(health.since == moment(0).wall)
    #expect(queue.health(of: "b").failures == 0 && queue.health(of: "b").waiting == 1)
  }

  @Test func thePauseIsAtLeastWhatTheOtherEndAskedFor() {
    for (asked, seconds) in [(Int64(100), 100.0), (1, 2.5), (1_000_000, 3600)] {
      var queue = HookQueue()
      _ = queue.add(document(1), to: "a")
      _ = queue.begin(now: moment(0).monotonic)
      let verdict = queue.ended("a", "1", failed(asked), retries: 3, now: moment(0), random: 0)
      #expect(verdict == .again(in: seconds, isFirst: true))
    }
  }

  @Test func whatCannotHelpIsNotTriedAgain() {
    var queue = HookQueue()
    for number in 1...2 { _ = queue.add(document(number), to: "a") }
    _ = queue.begin(now: moment(0).monotonic)
    let never = HookQueue.Result.failed("404", isTransient: false)
    #expect(queue.ended("a", "1", never, retries: 10, now: moment(0), random: 0) == .gaveUp)
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["2"], "the next one is tried")
    #expect(
      queue.ended("a", "2", .delivered, retries: 0, now: moment(1), random: 0) == .delivered(isBack: true))
    #expect(queue.health(of: "a").failures == 0 && queue.health(of: "a").message == nil)
    #expect(queue.ended("a", "2", .delivered, retries: 0, now: moment(1), random: 0) == .unknown)
  }

  /// The oldest goes of the hook that has most, never the one on its way; the others lose nothing.
  @Test func aFullQueueDropsTheOldest() {
    var queue = HookQueue()
    _ = queue.add(document(0), to: "b")
    for number in 1..<HookQueue.most { #expect(queue.add(document(number), to: "a") == nil) }
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["1", "0"])
    let dropped = queue.add(document(5000), to: "b")
    #expect(dropped?.hook == "a" && dropped?.document.id == "2" && queue.count == HookQueue.most)
    #expect(queue.health(of: "a").dropped == 1 && queue.health(of: "b").dropped == 0)
    #expect(queue.items.first?.document.id == "1" && queue.items.last?.document.id == "5000")
  }

  @Test func aFewAreAtWorkAtATime() {
    var queue = HookQueue()
    for number in 0..<20 { _ = queue.add(document(number), to: "hook\(number)") }
    #expect(queue.begin(now: moment(0).monotonic).count == HookQueue.mostAtWork)
    #expect(queue.begin(now: moment(0).monotonic) == [] && queue.wait(now: moment(0).monotonic) == nil)
    _ = queue.ended("hook0", "0", .delivered, retries: 0, now: moment(0), random: 0)
    #expect(queue.begin(now: moment(0).monotonic).count == 1)
  }

  /// Also what was at work: nobody knows whether it came through.
  @Test func anotherProcessGoesOn() {
    var queue = HookQueue()
    for number in 1...3 { _ = queue.add(document(number), to: "a") }
    _ = queue.begin(now: moment(0).monotonic)
    _ = queue.ended("a", "1", failed(), retries: 3, now: moment(0), random: 0)
    var next = HookQueue(queue.items)
    #expect(next.items == queue.items && next.generation == 0)
    // Since when it fails is known as well.
    #expect(next.health(of: "a").failures == 1 && next.health(of: "a").since == queue.health(of: "a").since)
    #expect(next.health(of: "a").message == "an earlier process of the agent tried last")
    #expect(queue.health(of: "a").since != nil && HookQueue([queue.items[1]]).health(of: "a").since == nil)
    #expect(next.begin(now: moment(0).monotonic).map(\.attempts) == [1], "at once, and counted")
    #expect(HookQueue(Array(repeating: queue.items[0], count: 2000)).count == HookQueue.most)
  }

  @Test func newSettingsEndPausesAndDropWhatIsGone() {
    var queue = HookQueue()
    _ = queue.add(document(1), to: "a")
    _ = queue.add(document(2), to: "gone")
    _ = queue.begin(now: moment(0).monotonic)
    _ = queue.ended("a", "1", failed(), retries: 3, now: moment(0), random: 1)
    #expect(queue.keep(["a"]).map(\.document.id) == ["2"])
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["1"])
    #expect(queue.ended("gone", "2", .delivered, retries: 0, now: moment(0), random: 0) == .unknown)
  }

  /// A hook goes and comes back while it is told something: that end is not the one of what it is told next.
  @Test func theEndOfWhatIsGoneIsNotAnothersEnd() {
    var queue = HookQueue()
    _ = queue.add(document(1), to: "a")
    _ = queue.begin(now: moment(0).monotonic)
    #expect(queue.keep([]).map(\.document.id) == ["1"])
    #expect(queue.keep(["a"]) == [])
    _ = queue.add(document(2), to: "a")
    #expect(queue.begin(now: moment(0).monotonic).map(\.document.id) == ["2"])
    #expect(queue.ended("a", "1", .delivered, retries: 3, now: moment(1), random: 0) == .unknown)
    let verdict = queue.ended("a", "2", failed(), retries: 3, now: moment(1), random: 0)
    #expect(verdict == .again(in: 2.5, isFirst: true))
  }
}
