import TarnCore
import Testing

@testable import TarnEngine

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
      now.monotonic += UInt64(seconds) * 1_000_000_000
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
    #expect(world.state.cancel("b") == [.stop(mirror: "b")])
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
    #expect(world.state.setPaused("a", true) == [.stop(mirror: "a")])
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
    #expect(world.state.setPaused("a", false) == [])
    #expect(world.starts() == ["a"])
  }

  @Test func aCancelledPassIsNoFailure() {
    var world = World(["a"])
    _ = world.starts()
    #expect(world.state.cancel("a") == [.stop(mirror: "a")])
    // It is asked once.
    #expect(world.state.cancel("a") == [])
    world.end("a", .cancelled)
    #expect(world.state.cancel("a") == nil)
    #expect(world.state.history(of: "a")?.failures == 0)
    #expect(world.state.history(of: "a")?.lastOutcome == nil)
    #expect(world.state.next("a", now: world.now, random: 0)?.reason == .scheduled)
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
    #expect(wait > 0 && wait <= 60_000_000_000)
    world.now.wall = Timestamp(nanoseconds: world.now.wall.nanoseconds + wait)
    world.now.monotonic += UInt64(wait)
    #expect(world.starts() == ["b"])
  }
}
