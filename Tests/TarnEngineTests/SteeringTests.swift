import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Orders about single transfers while a pass runs.
@Suite struct SteeringTests {
  private let world = World()
  private let steering = PassSteering()

  /// An entry whose server never answers, beside one that comes.
  private func makeStuck() {
    world.steering = steering
    world.want("stuck", "never")
    world.want("well", "good")
    world.server.answer(World.host + "stuck", FakeAnswer(hangs: true))
  }

  /// Gives an order from another thread as soon as a request for the path has gone out.
  private func order(_ order: PassSteering.Order, _ path: String) -> Answers {
    let answers = Answers()
    let steering = steering
    world.server.onRequest { request in
      guard request.url == World.host + path else { return }
      answers.collect { [steering.give(order, path.path)] }
    }
    return answers
  }

  @Test func aCancelledTransferFailsAndTheOthersGoOn() throws {
    makeStuck()
    let answers = order(.cancel, "stuck")
    let report = try world.run()
    #expect(answers.all == [.done])
    #expect(report.problems.map(\.code) == ["cancelled"])
    #expect(report.counts.failed == 1)
    #expect(world.text("well") == "good")
    world.server.onRequest(nil)
    world.want("stuck", "never")
    #expect(try world.run().isInSync)
  }

  /// Begins a pass that is told to cancel `late` at its first request, and then to try it again, before it may give up `stuck`.
  private func beginRetrying(isAtOnce: Bool, _ answers: Answers) throws -> World.Running<PassReport> {
    let (ledger, steering) = (world.ledger, steering)
    let requests = Locked(0)
    return try world.begin { request in
      guard request.url == World.host + "late" else { return }
      requests.withLock { $0 += 1 }
      guard requests.withLock({ $0 }) == 1 else { return }
      answers.collect {
        var given = [steering.give(.cancel, "late".path)]
        if !isAtOnce { _ = isSoInTime { (try? ledger.problem(name: "late".bytes)) != .some(.none) } }
        given.append(steering.give(.retry, "late".path))
        _ = isSoInTime { steering.give(.cancel, "stuck".path) != .notThere }
        return given
      }
    }
  }

  /// In the pass that it was cancelled in, whether its exchange has ended by then or not; what holds the pass up is another.
  @Test(arguments: [false, true]) func whatWasCancelledIsTriedAgainInTheSamePass(isAtOnce: Bool) throws {
    makeStuck()
    world.want("late", "text")
    world.server.script(World.host + "late", [FakeAnswer(hangs: true)])
    let answers = Answers()
    let pass = try beginRetrying(isAtOnce: isAtOnce, answers)
    let report = try pass.wait()
    #expect(answers.all == [.done, .done])
    #expect(world.text("late") == "text")
    #expect(report.problems.map(\.name) == ["stuck".bytes] && report.counts.failed == 1)
    #expect(try world.ledger.problem(name: "late".bytes) == nil)
  }

  /// The last name of the list may be cut, and its file came after all.
  @Test func theListFollowsALastFileThatWasTriedAgain() throws {
    makeStuck()
    var late = world.serve("late", "text")
    late.mayBeCut = true
    world.add(late)
    let list = world.serve("SHA256SUMS", "a list")
    world.add(
      Entry(path: list.path, size: list.size, digests: list.digests, sources: list.sources, isList: true))
    world.server.script(World.host + "late", [FakeAnswer(hangs: true)])
    let answers = Answers()
    let pass = try beginRetrying(isAtOnce: false, answers)
    let report = try pass.wait()
    #expect(answers.all == [.done, .done])
    #expect(report.problems.map(\.name) == ["stuck".bytes], "\(report.problems)")
    #expect(world.text("late") == "text" && world.text("SHA256SUMS") == "a list")
  }

  /// Who asks beside the pass is not told that it goes on.
  @Test func theLedgerKnowsAtOnce() throws {
    makeStuck()
    let seen = Locked<Problem?>(nil)
    let (ledger, steering) = (world.ledger, steering)
    world.want("later", "never")
    world.server.answer(World.host + "later", FakeAnswer(hangs: true))
    let pass = try world.begin { request in
      guard request.url == World.host + "stuck" else { return }
      _ = try? WorkerThread.start(name: "order") {
        _ = isSoInTime { steering.give(.cancel, "stuck".path) == .notThere }
        let problem = (try? ledger.problem(name: "stuck".bytes)) ?? nil
        seen.withLock { $0 = problem }
        _ = isSoInTime { steering.give(.cancel, "later".path) != .notThere }
      }
    }
    let report = try pass.wait()
    #expect(Set(report.problems.map(\.code)) == ["cancelled"])
    #expect(seen.withLock { $0?.code } == "cancelled")
    #expect(try world.ledger.problem(name: "stuck".bytes)?.attempts == 1)
  }

  /// Paused during the pass, or before it; what holds the pass up is another.
  @Test(arguments: [false, true]) func whatIsResumedGoesOnInTheSamePass(isFromBefore: Bool) throws {
    makeStuck()
    let steering = PassSteering(paused: isFromBefore ? ["late".path] : [])
    world.steering = steering
    world.want("late", "text")
    if !isFromBefore { world.server.script(World.host + "late", [FakeAnswer(hangs: true)]) }
    let ledger = world.ledger
    let answers = Answers()
    let pass = try world.begin { request in
      guard request.url == World.host + "stuck" else { return }
      answers.collect {
        if !isFromBefore { _ = isSoInTime { steering.give(.pause, "late".path) != .notThere } }
        _ = isSoInTime { (try? ledger.problem(name: "late".bytes)) != .some(.none) }
        let isResumed = steering.resume("late".path)
        let answer = steering.give(.retry, "late".path)
        _ = isSoInTime { steering.give(.cancel, "stuck".path) != .notThere }
        return [isResumed ? answer : .notThere]
      }
    }
    let report = try pass.wait()
    #expect(answers.all == [.done])
    #expect(world.text("late") == "text")
    #expect(report.problems.map(\.name) == ["stuck".bytes] && report.counts.waiting == 0)
    #expect(try ledger.problem(name: "late".bytes) == nil)
  }

  @Test func aPausedTransferWaitsUntilItIsResumed() throws {
    makeStuck()
    let answers = order(.pause, "stuck")
    let first = try world.run()
    #expect(answers.all == [.done])
    #expect(first.problems.map(\.code) == ["paused"])
    #expect(first.counts.waiting == 1)
    #expect(steering.paused == ["stuck".path])
    world.server.onRequest(nil)
    world.want("stuck", "never")
    let second = try world.run()
    #expect(second.problems.map(\.code) == ["paused"])
    #expect(!second.isInSync)
    #expect(world.server.requests.isEmpty)
    #expect(steering.resume("stuck".path))
    #expect(!steering.resume("stuck".path))
    #expect(try world.run().isInSync)
    #expect(world.text("stuck") == "never")
  }

  /// Its pause is over at once: the clock of this world stands still.
  @Test func whatWaitsAfterAFailureIsTriedNow() throws {
    world.steering = steering
    world.want("late", "text")
    world.server.script(World.host + "late", [FakeAnswer(status: 503)])
    let steering = steering
    let answers = Answers()
    let pass = try world.begin { _ in
      answers.collect {
        var answer = PassSteering.Answer.wasSo
        // It does not wait yet, or not any more.
        _ = isSoInTime {
          answer = steering.give(.retry, "late".path)
          return answer != .wasSo
        }
        return [answer]
      }
    }
    #expect(try pass.wait().isInSync)
    #expect(world.server.requests.count == 2)
    #expect(answers.all.contains(.done))
  }

  /// Both pause when somebody wants them now: the clock of this world stands still.
  @Test func aWishEndsThePausesOfTransfers() throws {
    world.steering = steering
    for path in ["one", "two"] {
      world.want(path, path)
      world.server.script(World.host + path, [FakeAnswer(status: 503)])
    }
    let (steering, log) = (steering, world.log)
    log.onEvent { _, event in
      guard case .retrying = event, log.retries.count == 2 else { return }
      steering.tryNow()
    }
    #expect(try world.run().isInSync)
    #expect(world.server.requests.count == 4)
  }

  @Test func aWishDuringTheAttemptCounts() throws {
    world.steering = steering
    world.want("late", "text")
    world.server.script(World.host + "late", [FakeAnswer(status: 503)])
    let steering = steering
    world.server.onRequest { _ in steering.tryNow() }
    #expect(try world.run().isInSync)
    #expect(world.server.requests.count == 2)
  }

  /// A person's wish goes before what a server asked for.
  @Test func aWishEndsWhatAServerAskedFor() throws {
    world.steering = steering
    let rest = DownloadFailure(.hostResting, "it asked for it", isTransient: true, retryAfter: 40)
    world.want("asked", "asked")
    world.server.script(World.host + "asked", [FakeAnswer(body: "asked".bytes, failure: (0, rest))])
    let (steering, log) = (steering, world.log)
    log.onEvent { _, event in
      if case .retrying = event { steering.tryNow() }
    }
    #expect(try world.run().isInSync)
    #expect(world.clock.monotonic() < 40_000_000_000)
  }

  /// The feed's host rests for the rest of a minute: who wants it now does not wait for that.
  @Test func aWishEndsThePauseOfTheFeed() throws {
    world.steering = steering
    let url = World.host + "feed"
    world.location = .remote(url: url)
    let rest = DownloadFailure(.hostResting, "it rests", isTransient: true, retryAfter: 50)
    world.server.script(url, [FakeAnswer(body: "text".bytes, failure: (0, rest))])
    world.server.put(url, [])
    let steering = steering
    world.server.onRequest { _ in steering.tryNow() }
    _ = try world.run()
    #expect(world.server.requests.count == 2)
  }

  @Test func theNextWishOpensThePause() {
    let pause = Gate()
    steering.end(pause, since: steering.wishes)
    #expect(!pause.isOpen)
    steering.tryNow()
    #expect(pause.isOpen)
  }

  @Test func whatIsNotTransferredIsSaid() throws {
    #expect(steering.give(.cancel, "stuck".path) == .notThere)
    makeStuck()
    let path = "no-such"
    let answers = Answers()
    let steering = steering
    world.server.onRequest { request in
      guard request.url == World.host + "stuck" else { return }
      answers.collect {
        let orders: [(PassSteering.Order, String)] = [
          (.pause, path), (.prioritize, "stuck"), (.cancel, "stuck"),
        ]
        return orders.map { steering.give($0, $1.path) }
      }
    }
    _ = try world.run()
    #expect(answers.all == [.notThere, .done, .done])
    #expect(steering.paused.isEmpty)
    #expect(steering.give(.prioritize, "stuck".path) == .notThere)
  }
}

/// The answers to orders that other threads give.
private final class Answers: Sendable {
  private let state = LockedCondition((running: 0, answers: [PassSteering.Answer]()))

  func collect(_ orders: @escaping @Sendable () -> [PassSteering.Answer]) {
    state.withLock { $0.running += 1 }
    do {
      _ = try WorkerThread.start(name: "order") { [state] in
        let answers = orders()
        state.change {
          $0.answers += answers
          $0.running -= 1
        }
      }
    } catch {
      state.change { $0.running -= 1 }
    }
  }

  /// Once all have come: a pass may be over before its last answer is read.
  var all: [PassSteering.Answer] {
    state.wait(atMost: .seconds(300)) { $0.running == 0 ? $0.answers : nil } ?? []
  }
}
