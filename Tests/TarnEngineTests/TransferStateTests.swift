import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Transfers as a value: every order of events, for a few jobs, and random ones for more.
@Suite struct TransferStateTests {
  // MARK: Single ways

  private static let large: UInt64 = 1 << 20

  private func contents(_ byte: UInt8) -> Duplicates.Contents {
    Duplicates.Contents(digest: Outside.digest(byte), size: Self.large)
  }

  @Test func aJobGoesFromItsSpaceToItsName() {
    var state = TransferState(mostHeldBack: 4)
    #expect(state.admit(1, path: "a".path, contents: nil, mustBegin: false) == [.reserve(1)])
    #expect(state.active == 0)
    #expect(state.reserved(1, bytes: 5, looks: false) == [.ask(1)])
    #expect(state.active == 1 && !state.isIdle)
    #expect(state.answered(1, .whole) == [.seal(1)])
    #expect(state.answered(1, .checked) == [.publish(1)])
    #expect(state.publishing == 1)
    #expect(state.published(1, .placed) == [.release(5), .end(1, .placed)])
    #expect(state.jobs.isEmpty && state.active == 0 && state.publishing == 0)
  }

  @Test func whatWaitsForItsContentsIsCopiedOnceTheyAreThere() {
    var state = TransferState(mostHeldBack: 4)
    _ = state.admit(1, path: "a".path, contents: contents(1), mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.admit(2, path: "b".path, contents: contents(1), mustBegin: false) == [])
    #expect(state.jobs[2]?.state == .waiting(.duplicate))
    #expect(state.answered(1, .exhausted) == [.release(5), .exhausted(1)])
    #expect(state.beginNext() == [.reserve(2)])
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.answered(2, .checked)
    #expect(state.published(2, .placed) == [.release(5), .end(2, .placed), .findCopy(1)])
    #expect(state.foundCopy(1, true) == [.reserve(1)])
    #expect(state.reserved(1, bytes: 5, looks: false) == [.look(1)])
    #expect(state.looked(1, .copy) == [.publish(1)])
  }

  @Test func anOrderEndsAJobAtItsNextStep() throws {
    var state = TransferState(mostHeldBack: 4)
    _ = state.admit(1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.obey(.cancel, 1) == [.cancelExchange(1)])
    #expect(state.obey(.cancel, 1) == nil)
    #expect(state.obey(.pause, 1) == [.cancelExchange(1)])
    #expect(state.answered(1, .cancelled) == [.release(5), .end(1, .paused)])
  }

  /// Its last source failed while another one brought its contents: no source is asked once more.
  @Test func whatLostItsSourcesIsCopiedAndNotAskedFor() {
    var state = TransferState(mostHeldBack: 4)
    for id in 1...2 {
      _ = state.admit(UInt64(id), path: "f\(id)".path, contents: contents(1), mustBegin: false)
    }
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.answered(1, .pause(until: nil, isNewRound: true))
    #expect(state.jobs[1]?.state == .asking && state.beginNext() == [.reserve(2)])
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.answered(2, .checked)
    #expect(state.published(2, .placed) == [.release(5), .end(2, .placed), .cancelExchange(1)])
    #expect(state.answered(1, .exhausted) == [.release(5), .exhausted(1), .findCopy(1)])
  }

  /// Somebody else may bring it: then that one is at work there.
  @Test func whatNobodyBringsIsNotAtWork() {
    var state = TransferState(mostHeldBack: 4)
    _ = state.admit(1, path: "a".path, contents: contents(1), mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.job(at: "a".path) == 1 && state.pathsAtWork == ["a".path])
    _ = state.answered(1, .exhausted)
    #expect(state.job(at: "a".path) == nil && state.pathsAtWork.isEmpty)
    _ = state.admit(2, path: "a".path, contents: contents(1), mustBegin: false)
    #expect(state.job(at: "a".path) == 2)
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.admit(3, path: "b".path, contents: nil, mustBegin: false)
    #expect(state.refused(3) == [.putBack(3)] && state.job(at: "b".path) == nil)
  }

  /// What waited for space may be so many that nothing new begins: they begin all the same.
  @Test func whatWaitedForSpaceBeginsHoweverManyWait() {
    var state = TransferState(mostHeldBack: 1)
    _ = state.admit(1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.admit(2, path: "b".path, contents: nil, mustBegin: false)
    #expect(state.refused(2) == [.putBack(2)] && state.isHeldUp)
    _ = state.answered(1, .failed)
    #expect(state.retryForSpace() == [] && state.isHeldUp)
    #expect(state.beginNext() == [.reserve(2)])
  }

  // MARK: All ways

  /// How many states are explored: with TARN_TRANSFER_STATES so many, else a share, those first that are reached first.
  private static let asked = ProcessInfo.processInfo.environment["TARN_TRANSFER_STATES"].flatMap { Int($0) }
  private static var most: Int { asked ?? (Sanitizer.isOfThreads ? 2_000 : 20_000) }

  /// Two of the same contents, one of others, one of none: every order of what may happen to them.
  @Test(arguments: [(1, 2), (3, 1), (3, 0)])
  func everyOrderOfEventsKeepsTheRules(room: Int, mostHeldBack: Int) throws {
    let outside = Outside(contents: [1, 1, 2, nil], room: room, mostHeldBack: mostHeldBack)
    var seen: Set<Int> = [outside.hashValue]
    var open = [outside]
    var (first, ends) = (0, 0)
    // All of them by depth, which needs little memory; a share of them by breadth.
    while seen.count < Self.most, first < open.count {
      let outside = Self.asked == nil ? open[first] : open.removeLast()
      if Self.asked == nil { first += 1 }
      let events = outside.events
      if events.isEmpty { ends += 1 }
      for event in events {
        var after = outside
        after.happen(event)
        if let fault = after.fault {
          Issue.record("\(fault) after \(event) of \(outside.state)")
          return
        }
        if seen.insert(after.hashValue).inserted { open.append(after) }
      }
    }
    print("transfer states: \(seen.count), \(ends) ends\(first == open.count ? ", all" : "")")
    #expect(first == open.count || seen.count >= Self.most)
  }

  /// Ten jobs, by any way.
  @Test func randomEventsKeepTheRules() throws {
    for seed in 0..<UInt64(Sanitizer.isOfThreads ? 50 : 400) {
      var random = Seeded(seed)
      var outside = Outside(
        contents: [1, 1, 1, 2, 2, nil, 3, 1, 2, nil], room: Int.random(in: 1...4, using: &random),
        mostHeldBack: Int.random(in: 0...2, using: &random))
      outside.mostAttempts = 4
      for _ in 0..<400 {
        // Mostly what comes by itself: a person's orders end all too soon.
        let events = outside.events
        let own = events.filter(\.comesByItself)
        let isOwn = Int.random(in: 0..<10, using: &random) > 0 && !own.isEmpty
        guard let event = (isOwn ? own : events).randomElement(using: &random) else { break }
        outside.happen(event)
        if let fault = outside.fault {
          Issue.record("\(fault) after \(event), seed \(seed)")
          return
        }
      }
    }
  }
}

/// Obeys a transfer state, and gives it whatever the outside may give.
private struct Outside: Hashable {
  enum Work: Hashable { case look, ask, seal, publish }

  enum Event: Hashable {
    case admit
    case looked(UInt64, TransferState.Found)
    case answered(UInt64, TransferState.Answer)
    case published(UInt64, TransferState.Ending)
    case confirmed(UInt64)
    case order(PassSteering.Order, UInt64)
    case abandon(UInt64)
    case hurry
    case tick
    case stop
    case beginNext
    case retryForSpace
    case giveUpExhausted

    var comesByItself: Bool {
      switch self {
      case .order, .abandon, .hurry, .stop: false
      default: true
      }
    }
  }

  let contents: [UInt8?]
  let room: Int
  var mostAttempts = 2
  private(set) var state: TransferState
  private var admitted: UInt64 = 0
  private var work: [UInt64: Work] = [:]
  private var attempts: [UInt64: Int] = [:]
  private var isCancelled: Set<UInt64> = []
  private var used = 0
  private var over: Set<UInt64> = []
  private(set) var fault: String?

  init(contents: [UInt8?], room: Int, mostHeldBack: Int) {
    state = TransferState(mostHeldBack: mostHeldBack)
    self.contents = contents
    self.room = room
  }

  static func digest(_ byte: UInt8) -> Digest { QuickHashing().digest(.sha256, of: [byte]) }

  // MARK: What may happen

  var events: [Event] {
    var events: [Event] = []
    let hasStopped = state.isStopping
    if admitted < contents.count, !hasStopped, !state.isHeldUp { events.append(.admit) }
    for (id, kind) in work.sorted(by: { $0.key < $1.key }) { events += answers(id, kind) }
    for (id, job) in state.jobs.sorted(by: { $0.key < $1.key }) {
      if job.wish == nil || job.wish == .copy {
        events += [.order(.cancel, id), .order(.pause, id), .abandon(id)]
      }
      if case .pausing = job.state { events.append(.order(.retry, id)) }
    }
    if state.nextDue != nil { events += [.hurry, .tick] }
    if !hasStopped, admitted > 0 { events.append(.stop) }
    var after = state
    if !hasStopped, !state.isAlone, after.beginNext() != nil { events.append(.beginNext) }
    if !hasStopped, state.isIdle, state.crampedCount > 0 { events.append(.retryForSpace) }
    if state.isIdle, state.exhaustedCount > 0 { events.append(.giveUpExhausted) }
    return events
  }

  private func answers(_ id: UInt64, _ kind: Work) -> [Event] {
    switch kind {
    case .look:
      let contents = contents[Int(id) - 1]
      return [.looked(id, .nothing), .looked(id, .part), .looked(id, .whole)]
        + (contents == nil ? [] : [.looked(id, .copy)])
    case .seal: return [.answered(id, .checked), .answered(id, .failed)]
    case .publish:
      return [.published(id, .placed), .published(id, .stale), .published(id, .failed), .confirmed(id)]
    case .ask:
      if isCancelled.contains(id) { return [.answered(id, .cancelled), .answered(id, .checked)] }
      let again: [Event] = [
        .answered(id, .again), .answered(id, .pause(until: Instant(nanoseconds: 1), isNewRound: true)),
        .answered(id, .pause(until: nil, isNewRound: false)), .answered(id, .lacksSpace),
      ]
      let isLast = attempts[id, default: 0] >= mostAttempts
      return [.answered(id, .checked), .answered(id, .exhausted), .answered(id, .failed), .confirmed(id)]
        + (isLast ? [] : again + [.answered(id, .whole)])
    }
  }

  // MARK: What happens

  mutating func happen(_ event: Event) {
    switch event {
    case .admit:
      admitted += 1
      let byte = contents[Int(admitted) - 1]
      perform(
        state.admit(
          admitted, path: "f\(admitted)".path,
          contents: byte.map { Duplicates.Contents(digest: Self.digest($0), size: 1 << 20) },
          mustBegin: false))
    case .looked(let id, let found):
      work[id] = nil
      perform(state.looked(id, found))
    case .answered(let id, let answer):
      work[id] = nil
      isCancelled.remove(id)
      perform(state.answered(id, answer))
    case .published(let id, let ending):
      work[id] = nil
      perform(state.published(id, ending))
    case .confirmed(let id):
      work[id] = nil
      perform(state.confirmed(id))
    case .order(let order, let id): perform(state.obey(order, id) ?? [])
    case .abandon(let id): perform(state.abandon(id))
    case .hurry: perform(state.hurry())
    case .tick: perform(state.tick(Instant(nanoseconds: 1)))
    case .stop: perform(state.stop())
    case .beginNext: perform(state.beginNext() ?? [])
    case .retryForSpace: perform(state.retryForSpace() ?? [])
    case .giveUpExhausted: for id in state.waitingForContents { perform(state.giveUp(id)) }
    }
    check()
  }

  private mutating func perform(_ actions: [TransferState.Action]) {
    for action in actions { perform(action) }
  }

  private mutating func perform(_ action: TransferState.Action) {
    switch action {
    case .reserve(let id):
      if state.isStopping { fault = "\(id) begins after a stop" }
      guard used < room else { return perform(state.refused(id)) }
      used += 1
      perform(state.reserved(id, bytes: 1, looks: false))
    case .look(let id): begin(.look, id)
    case .ask(let id):
      if state.isStopping { fault = "\(id) is asked for after a stop" }
      attempts[id, default: 0] += 1
      begin(.ask, id)
    case .seal(let id): begin(.seal, id)
    case .publish(let id): begin(.publish, id)
    case .cancelExchange(let id): if work[id] == .ask { isCancelled.insert(id) }
    case .prioritize, .putBack, .exhausted: break
    case .release(let bytes): used -= Int(bytes)
    case .findCopy(let id): perform(state.foundCopy(id, true))
    case .postpone(let id), .setAside(let id), .end(let id, _):
      if !over.insert(id).inserted { fault = "\(id) ends twice" }
      if work[id] != nil { fault = "\(id) ends while it is at work" }
    }
  }

  private mutating func begin(_ kind: Work, _ id: UInt64) {
    if work[id] != nil { fault = "\(id) is at work twice" }
    work[id] = kind
  }

  // MARK: Rules

  private mutating func check() {
    let jobs = state.jobs
    if used > room || used < 0 { fault = "\(used) of \(room) is taken" }
    if jobs.values.reduce(0, { $0 + $1.reserved }) != UInt64(max(0, used)) { fault = "space is lost" }
    let isActive = jobs.filter { if case .waiting = $0.value.state { false } else { true } }
    if state.active != isActive.count { fault = "\(state.active) jobs are said to be at work" }
    for (id, job) in jobs {
      let expected: Work? =
        switch job.state {
        case .looking: .look
        case .asking: .ask
        case .sealing: .seal
        case .publishing: .publish
        case .waiting, .pausing: nil
        }
      if work[id] != expected { fault = "\(id) is \(job.state), and at \(String(describing: work[id]))" }
      if case .waiting = job.state, job.reserved > 0 { fault = "\(id) waits with space" }
      if job.state == .waiting(.duplicate), !isBrought(job, id) { fault = "\(id) waits for nobody" }
    }
    if work.count != isActive.count { if state.nextDue == nil { fault = "work is left" } }
    if admitted != UInt64(over.count + jobs.count) { fault = "a job is lost" }
    if !jobs.isEmpty, work.isEmpty, state.nextDue == nil { checkProgress() }
    if state.isStopping, work.isEmpty, !jobs.isEmpty { fault = "a stop ends not all" }
  }

  private func isBrought(_ job: TransferState.Job, _ id: UInt64) -> Bool {
    state.jobs.contains { other, its in
      other != id && its.contents == job.contents && its.state != .waiting(.duplicate)
        && its.state != .waiting(.contents) && its.state != .waiting(.space)
    }
  }

  /// Nothing is at work: something may begin.
  private mutating func checkProgress() {
    var after = state
    if after.beginNext() != nil { return }
    if state.isIdle, state.crampedCount > 0 || state.exhaustedCount > 0 { return }
    fault = "all wait: \(state.jobs)"
  }
}
