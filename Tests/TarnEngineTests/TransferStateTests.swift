import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Transfers as a value: every order of events, for a few jobs, and random ones for more.
@Suite struct TransferStateTests {
  // MARK: Single ways

  private static let large: UInt64 = 1 << 20

  private func ready(_ mostHeldBack: Int) -> TransferState {
    var state = TransferState()
    state.open(1, isUrgent: false, mostHeldBack: mostHeldBack)
    state.open(2, isUrgent: true, mostHeldBack: mostHeldBack)
    return state
  }

  private func contents(_ byte: UInt8) -> Duplicates.Contents {
    Duplicates.Contents(digest: Outside.digest(byte), size: Self.large)
  }

  @Test func aJobGoesFromItsSpaceToItsName() {
    var state = ready(4)
    #expect(state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false) == [.reserve(1)])
    #expect(state.active == 0)
    #expect(state.reserved(1, bytes: 5, looks: false) == [.ask(1)])
    #expect(state.active == 1 && !state.isIdle(1))
    #expect(state.answered(1, .whole) == [.seal(1)])
    #expect(state.answered(1, .checked) == [.publish(1)])
    #expect(state.load(isUrgent: false).publishing == 1)
    #expect(state.published(1, .placed) == [.release(1, 5), .end(1, .placed)])
    #expect(state.jobs.isEmpty && state.active == 0)
  }

  @Test func whatWaitsForItsContentsIsCopiedOnceTheyAreThere() {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: contents(1), mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.admit(2, of: 1, path: "b".path, contents: contents(1), mustBegin: false) == [])
    #expect(state.jobs[2]?.state == .waiting(.duplicate))
    #expect(state.answered(1, .exhausted) == [.release(1, 5), .exhausted(1)])
    #expect(state.beginNext(1) == [.reserve(2)])
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.answered(2, .checked)
    #expect(state.published(2, .placed) == [.release(2, 5), .end(2, .placed), .findCopy(1)])
    #expect(state.foundCopy(1, true) == [.reserve(1)])
    #expect(state.reserved(1, bytes: 5, looks: false) == [.look(1)])
    #expect(state.looked(1, .copy) == [.publish(1)])
  }

  /// Who looked for it and asks for it now is waited for like the first one.
  @Test func whatSomebodyTookAwayIsBroughtOnceMore() {
    var state = ready(4)
    for id in [1, 2, 3] as [UInt64] {
      let path = "f\(id)".path
      let begins = state.admit(id, of: 1, path: path, contents: contents(1), mustBegin: false)
      guard id < 3 else {
        #expect(begins == [] && state.jobs[id]?.state == .waiting(.duplicate))
        continue
      }
      #expect(begins == [.reserve(id)])
      #expect(state.reserved(id, bytes: 5, looks: false) == (id == 1 ? [.ask(id)] : [.look(id)]))
      if id == 2 { #expect(state.looked(id, .nothing) == [.ask(id)]) }
      guard id == 1 else { continue }
      _ = state.answered(id, .checked)
      _ = state.published(id, .placed)
    }
    _ = state.answered(2, .checked)
    _ = state.published(2, .placed)
    #expect(state.beginNext(1) == [.reserve(3)])
  }

  @Test func anOrderEndsAJobAtItsNextStep() throws {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.obey(.cancel, 1) == [.cancelExchange(1)])
    #expect(state.obey(.cancel, 1) == nil)
    #expect(state.obey(.pause, 1) == [.cancelExchange(1)])
    #expect(state.answered(1, .cancelled) == [.release(1, 5), .end(1, .paused)])
  }

  /// Whatever became of the exchange that it was to end.
  @Test(arguments: [TransferState.Answer.failed, .lacksSpace, .exhausted, .cancelled])
  func anOrderIsHeededHoweverItsExchangeEnds(answer: TransferState.Answer) {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: contents(1), mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.obey(.pause, 1) == [.cancelExchange(1)])
    #expect(state.answered(1, answer) == [.release(1, 5), .end(1, .paused)])
  }

  /// Its last source failed while another one brought its contents: no source is asked once more.
  @Test func whatLostItsSourcesIsCopiedAndNotAskedFor() {
    var state = ready(4)
    for id in 1...2 {
      _ = state.admit(UInt64(id), of: 1, path: "f\(id)".path, contents: contents(1), mustBegin: false)
    }
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.answered(1, .pause(until: nil, isNewRound: true))
    #expect(state.jobs[1]?.state == .asking && state.beginNext(1) == [.reserve(2)])
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.answered(2, .checked)
    #expect(state.published(2, .placed) == [.release(2, 5), .end(2, .placed), .cancelExchange(1)])
    #expect(state.answered(1, .exhausted) == [.release(1, 5), .exhausted(1), .findCopy(1)])
  }

  /// Somebody else may bring it: then that one is at work there.
  @Test func whatNobodyBringsIsNotAtWork() {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: contents(1), mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.job(at: "a".path) == 1 && state.isTaken("a".path))
    _ = state.answered(1, .exhausted)
    #expect(state.job(at: "a".path) == nil && !state.isTaken("a".path))
    _ = state.admit(2, of: 2, path: "a".path, contents: contents(1), mustBegin: false)
    #expect(state.job(at: "a".path) == 2)
    _ = state.reserved(2, bytes: 5, looks: false)
    _ = state.admit(3, of: 1, path: "b".path, contents: nil, mustBegin: false)
    _ = state.admit(4, of: 1, path: "c".path, contents: nil, mustBegin: false)
    _ = state.reserved(4, bytes: 5, looks: false)
    #expect(state.refused(3) == [.putBack(3)] && state.job(at: "b".path) == nil)
  }

  /// What stands there afterwards is another file.
  @Test func whoWaitsForAPathIsStaleThen() {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false)
    #expect(state.reserved(1, bytes: 5, looks: false) == [.ask(1)])
    // Who is urgent makes whom it waits for so.
    #expect(state.admit(2, of: 2, path: "a".path, contents: nil, mustBegin: false) == [.prioritize(1)])
    #expect(state.jobs[2]?.state == .waiting(.path) && !state.isIdle(2))
    _ = state.answered(1, .checked)
    #expect(state.published(1, .placed) == [.release(1, 5), .end(1, .placed), .end(2, .stale)])
    #expect(state.jobs.isEmpty && state.isIdle(2))
  }

  /// Of another client: it goes on in its turn, once it is looked whether what it saw still holds.
  @Test(arguments: [TransferState.Answer.failed, .exhausted, .lacksSpace, .cancelled])
  func whoWaitsForAPathGoesOnWhereNothingWasBrought(answer: TransferState.Answer) {
    var state = ready(4)
    _ = state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.admit(2, of: 2, path: "a".path, contents: nil, mustBegin: false)
    if answer == .cancelled { #expect(state.stop(1) == [.cancelExchange(1)]) }
    let actions = state.answered(1, answer)
    #expect(actions == [.release(1, 5), .end(1, answer == .cancelled ? .stopped : .failed)])
    #expect(state.job(at: "a".path) == 2 && state.jobs[2]?.hasWaited == true && !state.isIdle(2))
    #expect(state.beginNext(2) == [.reserve(2)])
    var changed = state
    #expect(changed.changed(2) == [.end(2, .stale)] && !changed.isTaken("a".path))
    #expect(state.reserved(2, bytes: 5, looks: true) == [.look(2)])
  }

  /// What another manifest does not want may be what somebody else brings.
  @Test func whoWaitsForWhatIsWantedNoMoreGoesOn() {
    var state = ready(4)
    _ = state.admit(1, of: 2, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    for id in 2...3 as ClosedRange<UInt64> {
      _ = state.admit(id, of: 1, path: "a".path, contents: nil, mustBegin: false)
    }
    _ = state.abandon(1)
    #expect(state.answered(1, .cancelled) == [.release(1, 5), .end(1, .abandoned)])
    #expect(state.transfers(at: "a".path) == [2, 3] && state.jobs[3]?.state == .waiting(.path))
  }

  /// Its last source is gone: it waits for its contents as before.
  @Test func aCopyThatWaitedForItsPathIsACopyStill() {
    var state = ready(4)
    _ = state.admit(1, of: 2, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    #expect(state.admitCopy(2, of: 1, path: "a".path, contents: contents(1)) == [])
    #expect(state.jobs[2]?.state == .waiting(.path))
    #expect(state.answered(1, .failed) == [.release(1, 5), .end(1, .failed), .findCopy(2)])
    #expect(state.foundCopy(2, true) == [.reserve(2)])
    #expect(state.reserved(2, bytes: 5, looks: false) == [.look(2)])
    #expect(state.looked(2, .nothing) == [.release(2, 5), .end(2, .failed)], "no source is asked")
  }

  /// A person's order names a path, whoever brings the file.
  @Test(arguments: [PassSteering.Order.cancel, .pause]) func anOrderEndsThoseWhoWaitForThePath(
    order: PassSteering.Order
  ) {
    var state = ready(4)
    let ending = order == .cancel ? TransferState.Ending.cancelled : .paused
    _ = state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.admit(2, of: 2, path: "a".path, contents: nil, mustBegin: false)
    #expect(state.obey(order, 1) == [.cancelExchange(1)])
    #expect(state.answered(1, .cancelled) == [.release(1, 5), .end(1, ending), .end(2, ending)])
    #expect(state.jobs.isEmpty && !state.isTaken("a".path))
  }

  /// Eight more ask once the first has failed; they are as urgent as who waits still.
  @Test func whoAsksInPlaceOfAnotherIsAsUrgent() {
    var state = ready(20)
    for id in 1...12 as ClosedRange<UInt64> {
      let isLast = id == 12
      let begins = state.admit(
        id, of: isLast ? 2 : 1, path: "f\(id)".path, contents: contents(1), mustBegin: false)
      #expect(begins == (id == 1 ? [.reserve(1)] : isLast ? [.prioritize(1)] : []))
      if id == 1 { _ = state.reserved(1, bytes: 5, looks: false) }
    }
    _ = state.answered(1, .failed)
    let asking = state.jobs.filter { $0.value.state == .waiting(.turn) }
    #expect(asking.count == Duplicates.widening && asking.allSatisfy(\.value.isPrioritized))
    #expect(state.jobs[12]?.state == .waiting(.duplicate))
  }

  /// It gets its name already; should it not, the manifest that wanted it holds no more.
  @Test func aFailureOfWhatIsWantedNoMoreIsNotTold() {
    var state = ready(4)
    _ = state.admit(1, of: 2, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.answered(1, .checked)
    #expect(state.abandon(1) == [] && state.jobs[1]?.isEnding == false)
    var placed = state
    #expect(placed.published(1, .placed) == [.release(1, 5), .end(1, .placed)])
    #expect(state.published(1, .failed) == [.release(1, 5), .end(1, .abandoned)])
  }

  @Test func aClaimHasAPathForItself() {
    var state = ready(4)
    #expect(state.claim(1, path: "a".path) == [.granted(1)])
    #expect(state.admit(2, of: 1, path: "a".path, contents: nil, mustBegin: false) == [])
    #expect(state.claim(3, path: "a".path) == [] && state.job(at: "a".path) == nil)
    // In the order that they came; what it saw may hold no more.
    #expect(state.yield(1) == [] && state.jobs[2]?.hasWaited == true)
    #expect(state.beginNext(1) == [.reserve(2)])
    #expect(state.changed(2) == [.end(2, .stale), .granted(3)])
    #expect(state.yield(3) == [] && !state.isTaken("a".path))
  }

  /// The stop of a client is none of the other one.
  @Test func aStopEndsTheJobsOfOneClient() {
    var state = ready(4)
    for (id, client) in [(1, 1), (2, 2)] as [(UInt64, UInt32)] {
      _ = state.admit(id, of: client, path: "f\(id)".path, contents: nil, mustBegin: false)
      _ = state.reserved(id, bytes: 5, looks: false)
    }
    #expect(state.stop(1) == [.cancelExchange(1)] && !state.goesOn(1) && state.goesOn(2))
    #expect(state.answered(1, .cancelled) == [.release(1, 5), .end(1, .stopped)])
    #expect(state.clients[1]?.jobs == 0 && state.active == 1)
  }

  /// What waited for space may be so many that nothing new begins: they begin all the same.
  @Test func whatWaitedForSpaceBeginsHoweverManyWait() {
    var state = ready(1)
    _ = state.admit(1, of: 1, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.admit(2, of: 1, path: "b".path, contents: nil, mustBegin: false)
    #expect(state.refused(2) == [.putBack(2)] && state.isSpaceQueueFull(1))
    _ = state.answered(1, .failed)
    #expect(state.retryForSpace(1) == [] && state.isSpaceQueueFull(1))
    #expect(state.beginNext(1) == [.reserve(2)])
  }

  /// What the others bring takes it.
  @Test func nobodyWaitsForTheSpaceOfAnotherClient() {
    var state = ready(4)
    _ = state.admit(1, of: 2, path: "a".path, contents: nil, mustBegin: false)
    _ = state.reserved(1, bytes: 5, looks: false)
    _ = state.admit(2, of: 1, path: "b".path, contents: nil, mustBegin: false)
    #expect(state.refused(2) == [.end(2, .noSpace)] && state.active == 1)
  }

  // MARK: All ways

  /// How many states are explored: with TARN_TRANSFER_STATES so many, else a share, those first that are reached first.
  private static let asked = ProcessInfo.processInfo.environment["TARN_TRANSFER_STATES"].flatMap { Int($0) }
  private static var most: Int { asked ?? (Sanitizer.takesShare ? 2_000 : 20_000) }

  /// A pass and a repair want one path both, and share contents; a claim wants it, too: every order of what may happen.
  private static let shared: [Outside.Wanted] = [
    .init(client: 1, path: 1, contents: 1), .init(client: 2, path: 1, contents: 1),
    .init(client: 1, path: 2, contents: 1), .init(client: 2, path: 3, looks: true),
    .init(client: nil, path: 1),
  ]
  /// One client alone: two of the same contents, one of others, one of none.
  private static let alone: [Outside.Wanted] = [
    .init(client: 1, path: 1, contents: 1), .init(client: 1, path: 2, contents: 1),
    .init(client: 1, path: 3, contents: 2), .init(client: 1, path: 4, looks: true),
  ]

  @Test(arguments: [(true, 1, 2), (true, 3, 1), (true, 3, 0), (false, 1, 2), (false, 3, 1), (false, 3, 0)])
  func everyOrderOfEventsKeepsTheRules(isShared: Bool, room: Int, mostHeldBack: Int) throws {
    let outside = Outside(isShared ? Self.shared : Self.alone, room: room, mostHeldBack: mostHeldBack)
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

  /// Ten jobs of both clients, and claims, by any way.
  @Test func randomEventsKeepTheRules() throws {
    for seed in 0..<UInt64(Sanitizer.takesShare ? 50 : 400) {
      var random = Seeded(seed)
      var wanted = (0..<10).map { _ in
        let byte = Int.random(in: 0...3, using: &random)
        return Outside.Wanted(
          client: Bool.random(using: &random) ? 1 : 2, path: Int.random(in: 1...6, using: &random),
          contents: byte == 0 ? nil : UInt8(byte), looks: Bool.random(using: &random))
      }
      // A client has each path once.
      wanted = wanted.enumerated().filter { index, job in
        !wanted[..<index].contains { $0.client == job.client && $0.path == job.path }
      }.map(\.element)
      wanted += (0..<2).map { _ in
        Outside.Wanted(client: nil, path: Int.random(in: 1...6, using: &random), contents: nil)
      }
      var outside = Outside(
        wanted, room: Int.random(in: 1...4, using: &random),
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
  /// A job that a client admits, or a claim.
  struct Wanted: Hashable {
    /// nil for a claim.
    var client: TransferState.ClientID?
    var path: Int
    var contents: UInt8?
    /// Bytes of it may be at hand.
    var looks = false
  }

  struct Returning: Hashable {
    let id: UInt64
    let isCopy: Bool
  }

  enum Work: Hashable { case look, ask, seal, publish }

  enum Event: Hashable {
    case admit(TransferState.ClientID?)
    /// The plan is read again, for one that there was no room for.
    case comeBack(TransferState.ClientID)
    case looked(UInt64, TransferState.Found)
    case answered(UInt64, TransferState.Answer)
    case published(UInt64, TransferState.Ending)
    case confirmed(UInt64)
    case yield(UInt64)
    case order(PassSteering.Order, UInt64)
    case abandon(UInt64)
    case hurry
    case tick
    case stop(TransferState.ClientID)
    /// What it submitted has ended, and it submits the rest anew.
    case reopen(TransferState.ClientID)
    /// Somebody takes away what was brought.
    case lose
    case beginNext(TransferState.ClientID)
    case retryForSpace(TransferState.ClientID)
    case giveUpExhausted(TransferState.ClientID)

    var comesByItself: Bool {
      switch self {
      case .order, .abandon, .hurry, .stop, .lose: false
      default: true
      }
    }
  }

  let wanted: [Wanted]
  let room: Int
  var mostAttempts = 2
  private(set) var state = TransferState()
  /// Indices of those that were not admitted so far.
  private var waiting: [Int]
  /// Those that there was no room for, and whether they had no source left.
  private var returning: [Returning] = []
  private var admitted = 0
  private var work: [UInt64: Work] = [:]
  private var attempts: [UInt64: Int] = [:]
  private var isCancelled: Set<UInt64> = []
  private var granted: Set<UInt64> = []
  private var used = 0
  private var over: Set<UInt64> = []
  private var isLost = false
  /// Files that were placed at each path, and claims there that are over; and those that each job has seen.
  private var placed: [Int: Int] = [:]
  private var claimed: [Int: Int] = [:]
  private var seen: [UInt64: [Int]] = [:]
  private var abandoned: Set<UInt64> = []
  /// Those who had their paths before what happens now.
  private var holders: Set<UInt64> = []
  /// It says itself that its path is not as it was.
  private var saysSo: UInt64?
  private let mostHeldBack: Int
  private(set) var fault: String?

  /// Each with the number that it has now.
  private var clients: [TransferState.ClientID: TransferState.ClientID] = [1: 1, 2: 2]

  init(_ wanted: [Wanted], room: Int, mostHeldBack: Int) {
    self.wanted = wanted
    (self.room, self.mostHeldBack) = (room, mostHeldBack)
    waiting = Array(wanted.indices)
    for client in 1...2 { open(TransferState.ClientID(client)) }
  }

  /// The second one is a repair.
  private mutating func open(_ client: TransferState.ClientID) {
    state.open(clients[client] ?? 0, isUrgent: client == 2, mostHeldBack: mostHeldBack)
  }

  static func digest(_ byte: UInt8) -> Digest { QuickHashing().digest(.sha256, of: [byte]) }

  /// Its number is its place in the list, from 1; and 100 more each time that it comes back.
  private func of(_ id: UInt64) -> Wanted { wanted[(Int(id) - 1) % 100] }

  // MARK: What may happen

  var events: [Event] {
    var events: [Event] = []
    for client in clients.keys.sorted() { events += begins(client) }
    if waiting.contains(where: { wanted[$0].client == nil }) { events.append(.admit(nil)) }
    if !isLost, state.jobs.values.contains(where: { $0.state == .waiting(.contents) }) {
      events.append(.lose)
    }
    events += granted.sorted().map { .yield($0) }
    for (id, kind) in work.sorted(by: { $0.key < $1.key }) { events += answers(id, kind) }
    for (id, job) in state.jobs.sorted(by: { $0.key < $1.key }) where !job.isClaim {
      if job.wish == nil || job.wish == .copy {
        events += [.order(.cancel, id), .order(.pause, id), .abandon(id), .order(.prioritize, id)]
      }
      if case .pausing = job.state { events.append(.order(.retry, id)) }
    }
    if state.nextDue != nil { events += [.hurry, .tick] }
    return events
  }

  private func begins(_ client: TransferState.ClientID) -> [Event] {
    guard let number = clients[client], let mine = state.clients[number] else { return [] }
    var events: [Event] = []
    if mine.isIdle, mine.exhaustedCount > 0 { events.append(.giveUpExhausted(client)) }
    guard !mine.isStopping else {
      return events + (mine.jobs == 0 && number == client ? [.reopen(client)] : [])
    }
    if waiting.contains(where: { wanted[$0].client == client }), !state.isAlone(number),
      !state.isSpaceQueueFull(number)
    {
      events.append(.admit(client))
    }
    // As the plan is read: once there is nothing new in it.
    if !waiting.contains(where: { wanted[$0].client == client }), !state.isAlone(number),
      !state.isSpaceQueueFull(number), returning.contains(where: { of($0.id).client == client })
    {
      events.append(.comeBack(client))
    }
    if waiting.count < wanted.count { events.append(.stop(client)) }
    var after = state
    if after.beginNext(number) != nil { events.append(.beginNext(client)) }
    after = state
    if after.retryForSpace(number) != nil { events.append(.retryForSpace(client)) }
    return events
  }

  private func answers(_ id: UInt64, _ kind: Work) -> [Event] {
    switch kind {
    case .look:
      return [.looked(id, .nothing), .looked(id, .part), .looked(id, .whole)]
        + (of(id).contents == nil ? [] : [.looked(id, .copy)])
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
    holders = Set(state.jobs.filter { isHolder($0, of: $0.value.path) }.map(\.key))
    happenNow(event)
    (holders, saysSo) = ([], nil)
  }

  private mutating func happenNow(_ event: Event) {
    switch event {
    case .admit(let client): admit(client)
    case .comeBack(let client): comeBack(client)
    case .looked(let id, let found):
      work[id] = nil
      perform(state.looked(id, found))
    case .answered(let id, let answer):
      work[id] = nil
      isCancelled.remove(id)
      perform(state.answered(id, answer))
    case .published(let id, let ending):
      work[id] = nil
      if ending == .placed { placed[of(id).path, default: 0] += 1 }
      if ending == .stale { saysSo = id }
      perform(state.published(id, ending))
    case .confirmed(let id):
      work[id] = nil
      placed[of(id).path, default: 0] += 1
      perform(state.confirmed(id))
    case .yield(let id):
      granted.remove(id)
      over.insert(id)
      claimed[of(id).path, default: 0] += 1
      perform(state.yield(id))
    case .order(let order, let id): perform(state.obey(order, id) ?? [])
    case .abandon(let id):
      abandoned.insert(id)
      perform(state.abandon(id))
    case .hurry: perform(state.hurry())
    case .tick: perform(state.tick(Instant(nanoseconds: 1)))
    case .stop(let client): perform(state.stop(number(client)))
    case .reopen(let client):
      state.close(number(client))
      clients[client] = client + 2
      open(client)
    case .lose: isLost = true
    case .beginNext(let client): perform(state.beginNext(number(client)) ?? [])
    case .retryForSpace(let client): perform(state.retryForSpace(number(client)) ?? [])
    case .giveUpExhausted(let client):
      for id in state.waitingForContents(number(client)) { perform(state.giveUp(id)) }
    }
    check()
  }

  private func number(_ client: TransferState.ClientID) -> TransferState.ClientID { clients[client] ?? 0 }

  private mutating func admit(_ client: TransferState.ClientID?) {
    guard let next = waiting.first(where: { wanted[$0].client == client }) else { return }
    waiting.removeAll { $0 == next }
    admitted += 1
    let id = UInt64(next) + 1
    look(id)
    guard let client else { return perform(state.claim(id, path: path(id))) }
    perform(
      state.admit(id, of: number(client), path: path(id), contents: contents(id), mustBegin: false))
  }

  private mutating func comeBack(_ client: TransferState.ClientID) {
    guard let index = returning.firstIndex(where: { of($0.id).client == client }) else { return }
    let earlier = returning.remove(at: index)
    let id = earlier.id + 100
    admitted += 1
    look(id)
    if earlier.isCopy {
      perform(state.admitCopy(id, of: number(client), path: path(id), contents: contents(id)))
    } else {
      perform(state.admit(id, of: number(client), path: path(id), contents: contents(id), mustBegin: true))
    }
  }

  private mutating func look(_ id: UInt64) { seen[id] = there(id) }

  private func there(_ id: UInt64) -> [Int] {
    [placed[of(id).path, default: 0], claimed[of(id).path, default: 0]]
  }

  private func path(_ id: UInt64) -> RelativePath { "f\(of(id).path)".path }

  private func contents(_ id: UInt64) -> Duplicates.Contents? {
    of(id).contents.map { Duplicates.Contents(digest: Self.digest($0), size: 1 << 20) }
  }

  private mutating func perform(_ actions: [TransferState.Action]) {
    for action in actions { perform(action) }
  }

  private func isStopping(_ id: UInt64) -> Bool {
    state.jobs[id].map { !$0.isClaim && state.clients[$0.client]?.isStopping != false } ?? false
  }

  private mutating func perform(_ action: TransferState.Action) {
    switch action {
    case .reserve(let id):
      if isStopping(id) { fault = "\(id) begins after a stop" }
      if state.jobs[id]?.hasWaited == true, seen[id] != there(id) { return perform(state.changed(id)) }
      if seen[id]?.first != there(id).first { fault = "\(id) begins over what was placed" }
      guard used < room else { return perform(state.refused(id)) }
      used += 1
      perform(state.reserved(id, bytes: 1, looks: of(id).looks))
    case .look(let id): begin(.look, id)
    case .ask(let id):
      if isStopping(id) { fault = "\(id) is asked for after a stop" }
      attempts[id, default: 0] += 1
      begin(.ask, id)
    case .seal(let id): begin(.seal, id)
    case .publish(let id): begin(.publish, id)
    case .cancelExchange(let id): if work[id] == .ask { isCancelled.insert(id) }
    case .prioritize, .putBack, .exhausted: break
    case .release(_, let bytes): used -= Int(bytes)
    case .findCopy(let id): perform(state.foundCopy(id, !isLost))
    case .granted(let id):
      if !granted.insert(id).inserted { fault = "\(id) is granted twice" }
    case .postpone(let id), .setAside(let id), .end(let id, _):
      if case .end(_, let ending) = action { check(id, ending) }
      (seen[id], _) = (nil, abandoned.remove(id))
      switch action {
      case .postpone: returning.append(Returning(id: id, isCopy: false))
      // A second time it has failed for good.
      case .setAside where id <= 100: returning.append(Returning(id: id, isCopy: true))
      default: break
      }
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
    let active = jobs.filter { isActive($0.value) }
    if state.active != active.count { fault = "\(state.active) jobs are said to be at work" }
    for (id, job) in jobs { check(id, job) }
    checkPaths()
    for client in clients.values
    where state.clients[client]?.jobs != jobs.values.count(where: { $0.client == client }) {
      fault = "the jobs of \(client) are miscounted"
    }
    for client in clients.values { checkSpace(client) }
    if work.count != active.count, state.nextDue == nil { fault = "work is left" }
    if admitted != over.count + jobs.count { fault = "a job is lost" }
    let isQuiet = work.isEmpty && state.nextDue == nil && granted.isEmpty
    if !jobs.isEmpty, isQuiet { checkProgress() }
  }

  /// How it ended is so, and those who waited for its path go on, or end as they should.
  private mutating func check(_ id: UInt64, _ ending: TransferState.Ending) {
    if ending == .stale, saysSo != id, seen[id] == there(id) {
      fault = "\(id) is stale, and nothing was placed"
    }
    if ending == .failed, abandoned.contains(id) { fault = "\(id) is wanted no more, and is told" }
    guard ending == .cancelled || ending == .paused, holders.contains(id) else { return }
    if let other = state.jobs.first(where: { !$0.value.isClaim && $0.value.path == path(id) }) {
      fault = "\(other.key) begins anew what an order ended"
    }
  }

  /// Who waits for space waits for its own client alone.
  private mutating func checkSpace(_ client: TransferState.ClientID) {
    guard let mine = state.clients[client], mine.isIdle, mine.spaceWaiters > 0 else { return }
    var after = state
    if after.retryForSpace(client) == nil { fault = "\(client) waits for the space of others" }
  }

  private func isActive(_ job: TransferState.Job) -> Bool {
    switch job.state {
    case .waiting, .claimed: false
    default: true
    }
  }

  private mutating func check(_ id: UInt64, _ job: TransferState.Job) {
    let expected: Work? =
      switch job.state {
      case .looking: .look
      case .asking: .ask
      case .sealing: .seal
      case .publishing: .publish
      case .waiting, .pausing, .claimed: nil
      }
    if work[id] != expected { fault = "\(id) is \(job.state), and at \(String(describing: work[id]))" }
    if case .waiting = job.state, job.reserved > 0 { fault = "\(id) waits with space" }
    if job.state == .waiting(.duplicate) {
      let bringing = bringing(job, id)
      if bringing.isEmpty { fault = "\(id) waits for nobody" }
      if job.isPrioritized, !bringing.contains(where: \.isPrioritized) {
        fault = "\(id) goes first, and waits for contents that do not"
      }
    }
    if (job.state == .claimed) != granted.contains(id) { fault = "\(id) is \(job.state), and granted" }
    if job.state == .waiting(.path),
      let holder = state.jobs.first(where: { isHolder($0, of: job.path) })?.value
    {
      if job.isPrioritized, !holder.isPrioritized, !holder.isClaim {
        fault = "\(id) goes first, and waits for who does not"
      }
    }
  }

  /// No path is at work twice, and who waits for one waits for somebody.
  private mutating func checkPaths() {
    for path in Set(state.jobs.values.map(\.path)) {
      let holders = state.jobs.filter { isHolder($0, of: path) }
      if holders.count > 1 { fault = "two are at work on \(path)" }
      let isWaitedFor = state.jobs.values.contains { $0.path == path && $0.state == .waiting(.path) }
      if isWaitedFor, holders.isEmpty { fault = "\(path) is waited for, and nobody is there" }
    }
  }

  private func isHolder(_ job: (key: UInt64, value: TransferState.Job), of path: RelativePath) -> Bool {
    guard job.value.path == path else { return false }
    switch job.value.state {
    case .waiting(.path), .waiting(.space), .waiting(.contents): return false
    default: return true
    }
  }

  private func bringing(_ job: TransferState.Job, _ id: UInt64) -> [TransferState.Job] {
    state.jobs.filter { other, its in
      other != id && its.contents == job.contents && its.state != .waiting(.duplicate)
        && its.state != .waiting(.contents) && its.state != .waiting(.space) && its.state != .waiting(.path)
    }.map(\.value)
  }

  /// Nothing is at work: something may begin.
  private mutating func checkProgress() {
    for client in clients.values {
      guard let mine = state.clients[client], mine.jobs > 0 else { continue }
      var after = state
      if after.beginNext(client) != nil { return }
      after = state
      if after.retryForSpace(client) != nil { return }
      if mine.isIdle, mine.exhaustedCount > 0 { return }
    }
    fault = "all wait: \(state.jobs)"
  }
}
