import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

/// What an agent decides.
@Suite struct AgentStateTests {
  /// A state and the clock that it is shown.
  private struct World {
    var state: AgentState
    var now = Moment(wall: Timestamp(seconds: 1_800_000_000)!, monotonic: 1_000_000_000)

    init(_ mirrors: [String] = ["a", "b"], mostPasses: Int = 4, every seconds: Int64 = 3600) {
      state = AgentState(mostPasses: mostPasses)
      for name in mirrors { add(name, every: seconds) }
    }

    mutating func add(_ name: String, every seconds: Int64? = 3600, isPaused: Bool = false) {
      let cadence = seconds.flatMap { Cadence(every: $0, machine: "m".utf8, mirror: name.utf8) }
      state.add(
        name, cadence.map { .every($0) } ?? .onDemand, history: RunSchedule.History(), isPaused: isPaused,
        now: now, random: 0)
    }

    mutating func pass(_ seconds: Int64) {
      now.wall = now.wall.adding(seconds: seconds)
      now.monotonic += .seconds(seconds)
    }

    mutating func starts() -> [String] {
      state.advance(now: now) { 0 }.compactMap { action in
        if case .start(let mirror, _) = action { mirror } else { nil }
      }
    }

    mutating func end(_ name: String, _ outcome: RunSchedule.Outcome = .succeeded) {
      state.ended(name, outcome, hints: RunSchedule.Hints(), now: now, random: 0)
    }
  }

  @Test func newMirrorsRunSoonAndThenOncePerInterval() {
    var world = World()
    #expect(world.starts() == ["a", "b"])
    #expect(world.starts().isEmpty)
    world.end("a")
    world.end("b")
    var runs: [String: Int] = [:]
    for _ in 0..<(4 * 60) {
      world.pass(60)
      for name in world.starts() {
        runs[name, default: 0] += 1
        world.end(name)
      }
    }
    #expect(runs == ["a": 4, "b": 4])
  }

  /// The end of the agent is no wish of anybody's for the mirror; `tarn cancel` is.
  @Test func whatTheAgentsEndCutsShortIsKnownToTheNextOne() {
    var world = World()
    #expect(world.starts() == ["a", "b"])
    #expect(world.state.cancel("b")?.actions == [.stop(mirror: "b")])
    world.end("b", .cancelled)
    #expect(world.state.end() == [.stop(mirror: "a")])
    #expect(world.state.history(of: "a")?.wasCutShort == true)
    world.end("a", .cancelled)
    #expect(world.state.history(of: "a")?.wasCutShort == true)
    #expect(world.state.history(of: "b")?.wasCutShort == false)
  }

  @Test func noMorePassesThanAllowedButOneThatWasAskedFor() {
    var world = World(["a", "b", "c", "d"], mostPasses: 2)
    #expect(world.starts() == ["a", "b"])
    #expect(world.starts().isEmpty)
    let run = world.state.ask("d")
    #expect(world.state.advance(now: world.now) { 0 } == [.start(mirror: "d", run: run ?? 0)])
    _ = world.state.ask("c")
    #expect(world.starts().isEmpty)
    world.end("a")
    // The place is the asked one's now; then whoever ran longest ago.
    #expect(world.starts() == ["c"])
  }

  @Test func aWishDuringAPassIsAPassOfItsOwn() {
    var world = World(["a"])
    #expect(world.starts() == ["a"])
    let first = world.state.run(of: "a")
    let promised = world.state.ask("a")
    #expect(promised != first)
    #expect(world.state.ask("a") == promised)
    world.end("a")
    #expect(world.state.advance(now: world.now) { 0 } == [.start(mirror: "a", run: promised ?? 0)])
    #expect(world.state.ask("nobody") == nil)
  }

  @Test func aPauseEndsThePassAndStartsNone() {
    var world = World(["a"])
    #expect(world.starts() == ["a"])
    #expect(world.state.setPaused("a", true)?.actions == [.stop(mirror: "a")])
    #expect(world.state.setPaused("a", true) == nil)
    world.end("a", .cancelled)
    world.pass(100_000)
    #expect(world.starts().isEmpty)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason == .paused)
    // A person's wish comes all the same, once.
    _ = world.state.ask("a")
    #expect(world.starts() == ["a"])
    world.end("a")
    world.pass(100_000)
    #expect(world.starts().isEmpty)
    #expect(world.state.setPaused("a", false)?.actions == [])
    #expect(world.starts() == ["a"])
  }

  /// The agent may have been restarted since the pause.
  @Test(arguments: [true, false]) func aPauseOfAnEarlierAgentOwesItsPass(owes: Bool) {
    var world = World([])
    world.state.add(
      "b", .onDemand, history: RunSchedule.History(), isPaused: true, owesPass: owes, now: world.now,
      random: 0)
    #expect(world.starts().isEmpty)
    #expect(world.state.owesPass("b") == owes)
    #expect(world.state.setPaused("b", false) != nil)
    #expect(world.starts() == (owes ? ["b"] : []))
    #expect(!world.state.owesPass("b"))
  }

  /// Who asked for the next pass may have gone long ago: nothing but the pause would end it.
  @Test(arguments: [true, false]) func aPauseEndsTheWishesBeforeIt(wasAtWork: Bool) {
    var world = World(["a"])
    if wasAtWork { #expect(world.starts() == ["a"]) }
    let promised = world.state.ask("a")
    let paused = world.state.setPaused("a", true)
    #expect(
      paused
        == .init(
          actions: wasAtWork ? [.stop(mirror: "a")] : [], withdrawn: promised, hasPass: wasAtWork))
    if wasAtWork { world.end("a", .cancelled) }
    world.pass(100_000)
    #expect(world.starts().isEmpty)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason == .paused)
    // With the end of the pause it comes after all.
    #expect(world.state.setPaused("a", false)?.withdrawn == nil)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason == .asked)
    #expect(world.starts() == ["a"])
  }

  /// What was asked for in spite of the pause is ended by another one.
  @Test func aSecondPauseEndsWhatWasBegunSince() {
    var world = World(["a"], every: 86_400)
    for name in world.starts() { world.end(name) }
    #expect(world.state.setPaused("a", true)?.actions == [])
    #expect(world.state.setPaused("a", true) == nil)
    let promised = world.state.ask("a")
    #expect(world.state.setPaused("a", true) == .init(actions: [], withdrawn: promised, hasPass: false))
    #expect(world.starts().isEmpty)
    _ = world.state.ask("a")
    #expect(world.starts() == ["a"])
    #expect(
      world.state.setPaused("a", true)
        == .init(actions: [.stop(mirror: "a")], withdrawn: nil, hasPass: true))
    // It is asked once.
    #expect(world.state.setPaused("a", true) == nil)
    world.end("a", .cancelled)
    #expect(world.starts().isEmpty)
    #expect(world.state.setPaused("a", false)?.actions == [])
    #expect(world.starts() == ["a"])
  }

  /// What was at work goes on at once, also where no schedule ever would.
  @Test(arguments: [true, false]) func whatAPauseEndedGoesOnWithTheEndOfThePause(wasAtWork: Bool) {
    var world = World(["a"])
    #expect(world.starts() == ["a"])
    if !wasAtWork { world.end("a") }
    _ = world.state.change("a", .onDemand, now: world.now)
    _ = world.state.setPaused("a", true)
    if wasAtWork { world.end("a", .cancelled) }
    #expect(world.starts().isEmpty)
    #expect(world.state.setPaused("a", false)?.actions == [])
    #expect(world.starts() == (wasAtWork ? ["a"] : []))
  }

  @Test func aCancelledPassIsNoFailure() {
    var world = World(["a"])
    _ = world.starts()
    #expect(world.state.cancel("a")?.actions == [.stop(mirror: "a")])
    // It is asked once.
    #expect(world.state.cancel("a")?.actions == [])
    world.end("a", .cancelled)
    #expect(world.state.cancel("a") == nil)
    #expect(world.state.history(of: "a")?.failures == 0)
    #expect(world.state.history(of: "a")?.lastOutcome == nil)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason == .scheduled)
  }

  /// What its passes bring about is another thing, such as `restore` where it was `keep`: that is not left until the next one is due.
  @Test(arguments: [false, true]) func otherOptionsAskForAPass(isBackingOff: Bool) throws {
    var world = World(["a"])
    let cadence = try #require(Cadence(every: 3600, machine: "m".utf8, mirror: "a".utf8))
    #expect(world.starts() == ["a"])
    world.end("a", isBackingOff ? .failedPermanent : .succeeded)
    world.pass(1)
    _ = world.state.change("a", .every(cadence), now: world.now)
    #expect(world.starts().isEmpty)
    _ = world.state.change("a", .every(cadence), isOtherWork: true, now: world.now)
    world.pass(10)
    #expect(world.starts() == ["a"])
  }

  @Test func anotherFeedAsksForAPassAndAnotherFolderForItsFirst() throws {
    var world = World(["a", "b"])
    let cadence = try #require(Cadence(every: 3600, machine: "m".utf8, mirror: "a".utf8))
    #expect(world.starts() == ["a", "b"])
    for name in ["a", "b"] { world.end(name) }
    world.pass(1)
    #expect(world.state.history(of: "a")?.lastSuccess != nil)
    _ = world.state.change("a", .every(cadence), isOtherFeed: true, now: world.now)
    // It was in sync with the other one.
    #expect(world.state.history(of: "a").map { $0.lastSuccess == nil && $0.lastAttempt != nil } == true)
    _ = world.state.change("b", .every(cadence), other: RunSchedule.History(), now: world.now)
    let history = world.state.history(of: "b")
    #expect(history?.lastSuccess == nil && history?.lastAttempt == nil)
    world.pass(10)
    #expect(world.starts().sorted() == ["a", "b"])
  }

  /// What was said to the mirror holds, whatever its folder.
  @Test func anotherFolderEndsNoPauseAndNoWish() throws {
    var world = World(["a", "b"])
    let cadence = try #require(Cadence(every: 3600, machine: "m".utf8, mirror: "a".utf8))
    #expect(world.starts() == ["a", "b"])
    for name in ["a", "b"] { world.end(name) }
    _ = world.state.setPaused("a", true)
    _ = world.state.ask("b")
    for name in ["a", "b"] {
      _ = world.state.change(name, .every(cadence), other: RunSchedule.History(), now: world.now)
    }
    #expect(world.starts() == ["b"])
    world.pass(30)
    #expect(world.starts().isEmpty && world.state.isPaused("a"))
  }

  @Test func onlyWhatChangedIsDisturbed() {
    var world = World(["a", "b", "c"])
    #expect(world.starts() == ["a", "b", "c"])
    world.end("c")
    #expect(world.state.change("a", .onDemand, now: world.now) == [.stop(mirror: "a")])
    #expect(world.state.change("c", .onDemand, now: world.now) == [])
    #expect(world.state.remove("b") == [.stop(mirror: "b")])
    #expect(!world.state.isKnown("b"))
    world.end("a", .cancelled)
    world.end("b", .cancelled)
    // What was cut short goes on with the new settings; what was idle waits for its time.
    #expect(world.starts() == ["a"])
    #expect(world.state.running == ["a"])
  }

  @Test func aRemovedMirrorThatComesBackWhileItEndsIsStartedAnew() {
    var world = World(["a"])
    _ = world.starts()
    _ = world.state.remove("a")
    world.add("a")
    #expect(world.starts().isEmpty)
    world.end("a", .cancelled)
    #expect(world.starts() == ["a"])
  }

  /// Its pass has ended by then, and a repair has not.
  @Test func aRemovedMirrorThatComesBackKnowsHowItsPassEnded() {
    var world = World(["a"])
    #expect(world.starts() == ["a"] && world.state.repair("a") != nil)
    _ = world.state.remove("a")
    #expect(world.state.isStopping("a"))
    world.end("a")
    world.add("a")
    world.state.repaired("a", needsPass: false, now: world.now)
    #expect(!world.state.isStopping("a") && world.state.history(of: "a")?.lastOutcome == .succeeded)
    #expect(world.starts().isEmpty)
  }

  @Test func aFailingMirrorDelaysNoOther() {
    var world = World(["bad", "good"], mostPasses: 1)
    var runs: [String: Int] = [:]
    for _ in 0..<(6 * 3600 / 10) {
      for name in world.starts() {
        runs[name, default: 0] += 1
        world.end(name, name == "bad" ? .failedTransient : .succeeded)
      }
      world.pass(10)
    }
    #expect(runs["good"] == 7 || runs["good"] == 6)
    #expect((runs["bad"] ?? 0) > (runs["good"] ?? 0))
  }

  /// A server that never answers may take its pass hours.
  @Test func aPassThatWaitsForAServerTakesNoPlace() {
    var world = World(["a", "b", "c", "d"], mostPasses: 2)
    #expect(world.starts() == ["a", "b"])
    #expect(world.state.wait(now: world.now) { 0 } == AgentState.stallWait)
    world.state.setStalled(["a", "d"])
    #expect(world.starts() == ["c"])
    #expect(world.starts().isEmpty)
    // It goes on: who has begun is not stopped, and nobody else begins.
    world.state.setStalled([])
    world.end("b")
    #expect(world.starts().isEmpty)
    world.end("c")
    #expect(world.starts() == ["d"])
    #expect(world.state.running == ["a", "d"])
  }

  /// Each is a few threads.
  @Test func notAnyNumberOfPassesWait() {
    let names = (0..<100).map { "m\(1000 + $0)" }
    var world = World(names, mostPasses: 4)
    var begun: Set<String> = []
    for _ in 0..<100 {
      begun.formUnion(world.starts())
      world.state.setStalled(begun)
    }
    #expect(begun.count == 4 + AgentState.mostStalled)
  }

  @Test func anEndingAgentStopsAllAndStartsNothing() {
    var world = World(["a", "b"], mostPasses: 1)
    #expect(world.starts() == ["a"])
    #expect(world.state.end() == [.stop(mirror: "a")])
    world.end("a", .cancelled)
    _ = world.state.ask("b")
    #expect(world.starts().isEmpty)
    #expect(world.state.running.isEmpty)
  }

  @Test func itIsLookedAgainWhenSomethingIsDueAndAtLeastOnceAMinute() {
    var world = World([], every: 3600)
    #expect(world.state.wait(now: world.now) { 0 } == AgentState.longestWait)
    world.add("a", every: nil)
    #expect(world.state.wait(now: world.now) { 0 } == AgentState.longestWait)
    world.add("b", every: 60)
    _ = world.starts()
    world.end("b")
    let wait = world.state.wait(now: world.now) { 0 }
    #expect(wait > .zero && wait <= .seconds(60))
    world.now.wall += wait
    world.now.monotonic += wait
    #expect(world.starts() == ["b"])
  }

  /// Somebody asked for another pass meanwhile, or a retry; or the settings are others.
  @Test(arguments: [false, true]) func whatWasCancelledIsNotBegunAgain(isChanged: Bool) {
    var world = World(["a"])
    #expect(world.starts() == ["a"])
    let promised = isChanged ? nil : world.state.ask("a")
    if isChanged { _ = world.state.change("a", .onDemand, now: world.now) }
    let cancelled = world.state.cancel("a")
    #expect(cancelled?.withdrawn == promised && cancelled?.hasPass == true)
    world.end("a", .cancelled)
    world.pass(10)
    #expect(world.starts().isEmpty)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason != .asked)
    // A later wish is one of its own.
    let later = world.state.ask("a")
    #expect(later != promised)
    #expect(world.state.advance(now: world.now) { 0 } == [.start(mirror: "a", run: later ?? 0)])
  }

  /// A pause ends a pass, which a resume would begin again.
  @Test(arguments: [false, true]) func whatAPauseEndedAndSomebodyCancelledIsNotBegunAgain(isCancelled: Bool) {
    var world = World(["a"])
    #expect(world.starts() == ["a"])
    #expect(world.state.setPaused("a", true)?.actions == [.stop(mirror: "a")])
    if isCancelled { #expect(world.state.cancel("a")?.hasPass == true) }
    world.end("a", .cancelled)
    world.pass(20)
    #expect(world.state.setPaused("a", false)?.actions == [])
    #expect(world.starts() == (isCancelled ? [] : ["a"]))
  }

  /// It has no place so far.
  @Test func aWishThatWaitsIsCancelled() {
    var world = World(["a", "b", "c"], mostPasses: 1)
    _ = world.starts()
    _ = world.state.ask("b")
    #expect(world.starts() == ["b"])
    let promised = world.state.ask("c")
    #expect(world.starts().isEmpty)
    #expect(world.state.cancel("c") == .init(actions: [], withdrawn: promised, hasPass: false))
    #expect(world.state.cancel("c") == nil)
    world.end("b")
    #expect(world.starts().isEmpty)
  }

  /// Looking at folders costs this machine something, waiting for servers nothing.
  @Test func repairsThatBringKeepNoOtherWaiting() {
    let names = (0..<100).map { "m\($0)" }
    var world = World(names)
    for name in world.starts() { world.end(name) }
    func begun() -> [String] { names.filter { world.state.repair($0) != nil } }
    var looking = begun()
    #expect(looking.count == AgentState.mostRepairs && begun().isEmpty && !world.state.hasRepairPlace)
    for name in looking { world.state.looked(name) }
    // Another one of the same mirrors.
    #expect(begun() == looking)
    var all = looking.count * 2
    while all < 1000 {
      for name in looking { world.state.looked(name) }
      looking = begun()
      guard !looking.isEmpty else { break }
      all += looking.count
    }
    #expect(all == AgentState.mostRepairsOfAll && !world.state.hasRepairPlace)
    world.state.repaired("m0", wasLooking: false, needsPass: false, now: world.now)
    #expect(world.state.hasRepairPlace && world.state.mayRepair("m0") && world.state.repair("m0") != nil)
    #expect(!world.state.mayRepair("m0"), "one of it looks at its folder")
  }

  /// Neither waits for the other one, and a pause ends both.
  @Test func aPassAndARepairAreBesideEachOther() {
    var world = World(["a"], every: 60)
    for name in world.starts() { world.end(name) }
    #expect(world.state.repair("a") != nil)
    let run = world.state.ask("a")
    #expect(world.state.advance(now: world.now) { 0 } == run.map { [.start(mirror: "a", run: $0)] })
    #expect(!world.state.mayRepair("a"))
    world.state.looked("a")
    #expect(world.state.repair("a") != nil && world.state.running == ["a"])
    #expect(world.state.setPaused("a", true)?.actions == [.stop(mirror: "a")])
    world.end("a", .cancelled)
    #expect(world.state.running.isEmpty && !world.state.isIdle && !world.state.mayRepair("a"))
    #expect(world.state.setPaused("a", false)?.actions == [])
    // What was asked to end has to end first.
    #expect(world.state.advance(now: world.now) { 0 }.isEmpty)
    world.state.repaired("a", wasLooking: false, needsPass: false, now: world.now)
    #expect(world.state.advance(now: world.now) { 0 }.isEmpty && !world.state.isIdle)
    world.state.repaired("a", needsPass: false, now: world.now)
    #expect(world.state.isIdle && world.starts() == ["a"])
  }

  @Test func aMirrorThatIsRemovedGoesOnceNothingOfItIsAtWork() {
    var world = World(["a"])
    for name in world.starts() { world.end(name) }
    #expect(world.state.repair("a") != nil)
    _ = world.state.ask("a")
    #expect(world.starts() == ["a"])
    #expect(world.state.remove("a") == [.stop(mirror: "a")])
    world.end("a", .cancelled)
    #expect(!world.state.isKnown("a") && !world.state.isIdle)
    world.state.repaired("a", needsPass: true, now: world.now)
    #expect(world.state.isIdle && world.state.status(of: "a") == nil)
  }

  /// Repairs do nothing before a pass has read the feed by these settings; that pass comes in spite of the back-off, but not again
  /// and again for a feed that fails.
  @Test func aBlindRepairEndsTheBackOffOnce() {
    var world = World(["a"], every: 86_400)
    for name in world.starts() { world.end(name, .failedPermanent) }
    func repair(isBlind: Bool) {
      world.pass(60)
      #expect(world.state.repair("a") != nil)
      world.state.repaired("a", needsPass: true, urgency: isBlind ? .blind : nil, now: world.now)
    }
    for hasReadFeed in [false, true, true, false] {
      repair(isBlind: false)
      #expect(world.starts().isEmpty, "it backs off")
      repair(isBlind: true)
      #expect(world.starts() == ["a"])
      world.state.ended(
        "a", .failedPermanent, hints: RunSchedule.Hints(), hasReadFeed: hasReadFeed, now: world.now, random: 0
      )
      guard !hasReadFeed else { continue }
      repair(isBlind: true)
      #expect(world.starts().isEmpty, "the last such pass came to nothing")
      world.pass(86_400)
      #expect(world.starts() == ["a"])
      world.state.ended(
        "a", .failedPermanent, hints: RunSchedule.Hints(), hasReadFeed: true, now: world.now, random: 0)
    }
  }

  /// A pass that reads the feed and leaves the same conflict again may be followed by any number of such repairs.
  @Test func aVersionEndsTheBackOffOnceUntilAPassSucceeds() {
    var world = World(["a"], every: 86_400)
    func end(_ outcome: RunSchedule.Outcome) {
      world.state.ended(
        "a", outcome, hints: RunSchedule.Hints(), hasReadFeed: true, now: world.now, random: 0)
    }
    func repair() {
      world.pass(60)
      #expect(world.state.repair("a") != nil)
      world.state.repaired("a", needsPass: true, urgency: .version, now: world.now)
    }
    #expect(world.starts() == ["a"])
    for _ in 0..<2 {
      end(.failedPermanent)
      repair()
      #expect(world.starts() == ["a"])
      end(.failedPermanent)
      for _ in 0..<3 {
        repair()
        #expect(world.starts().isEmpty, "the last such pass came to nothing")
      }
      world.pass(86_400)
      #expect(world.starts() == ["a"])
      end(.succeeded)
      world.pass(86_400)
      #expect(world.starts() == ["a"])
    }
  }
}
