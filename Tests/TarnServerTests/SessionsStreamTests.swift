import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// Sessions that have events and nothing else.
final class FakeSessions: SessionPort {
  struct State {
    var counts: [String: Int64] = [:]
    var acknowledged: [String: Int64] = [:]
    var wakes: [Int: (id: String, wake: @Sendable () -> Void)] = [:]
    var last = 0
    /// Called before a page is handed out.
    var betweenPages: (@Sendable (FakeSessions) -> Void)?
  }
  let state = Locked(State())

  /// Adds events and wakes who reads them; the session is made if need be.
  func publish(_ id: String, _ count: Int64 = 1) {
    let wakes = state.withLock { state in
      state.counts[id, default: 0] += count
      return state.wakes.values.filter { $0.id == id }
    }
    for (_, wake) in wakes { wake() }
  }

  /// Acknowledges events in the step that adds the last of them, so that no reader sees them.
  func publishAcknowledged(_ id: String, _ count: Int64) {
    state.withLock { state in
      state.counts[id, default: 0] += count
      state.acknowledged[id] = state.counts[id]
    }
    publish(id, 0)
  }

  func acknowledged(in id: String) throws(ControlFailure) -> Int64 {
    _ = try count(id)
    return state.withLock { $0.acknowledged[id] ?? 0 }
  }

  func forget(_ id: String) { state.withLock { $0.counts[id] = nil } }

  private func count(_ id: String) throws(ControlFailure) -> Int64 {
    guard let count = state.withLock({ $0.counts[id] }) else {
      throw ControlFailure(.notFound, code: "no-such-session", "no \(id)")
    }
    return count
  }

  func events(of id: String, after number: Int64, limit: Int) throws(ControlFailure) -> SessionEventPage {
    let count = try count(id)
    let last = max(number != .max && number > count ? 0 : number, try acknowledged(in: id))
    let numbers = last < count ? Array((last + 1)...count) : []
    let events = numbers.prefix(limit).map { number in
      var event = SessionEvent(.finished, time: Timestamp(nanoseconds: 0))
      event.number = number
      return event
    }
    state.withLock { $0.betweenPages }?(self)
    return SessionEventPage(events: Array(events), hasMore: numbers.count > limit)
  }

  func subscribe(
    _ id: String, _ wake: @escaping @Sendable () -> Void
  ) throws(ControlFailure) -> AgentSubscription {
    _ = try count(id)
    let number = state.withLock { state in
      state.last += 1
      state.wakes[state.last] = (id, wake)
      return state.last
    }
    return AgentSubscription { [state] in state.withLock { $0.wakes[number] = nil } }
  }

  private let none = NoSessions()
  func list() throws(ControlFailure) -> SessionList { none.list() }
  func open(
    _ id: String, _ settings: SessionSettings?, isUpdate: Bool
  ) throws(ControlFailure) -> SessionDocument { try none.open(id, settings, isUpdate: isUpdate) }
  func show(_ id: String) throws(ControlFailure) -> SessionDocument { try none.show(id) }
  func add(_ tasks: [TaskRequest], to id: String) throws(ControlFailure) -> AddedTasks {
    try none.add(tasks, to: id)
  }
  func tasks(
    of id: String, in states: [TaskState], after number: Int64, limit: Int
  ) throws(ControlFailure) -> TaskPage { try none.tasks(of: id, in: states, after: number, limit: limit) }
  func order(_ order: SessionOrder, _ id: String) throws(ControlFailure) -> ControlAnswer {
    try none.order(order, id)
  }
}

/// One stream of several sessions.
@Suite struct SessionsStreamTests {
  /// What a stream told.
  private final class Heard: Sendable {
    struct State {
      var steps: [String] = []
      var hasBegun = false
      var end: Result<Void, any Error>?
    }
    let state = LockedCondition(State())

    func hear(_ step: NewsStream.Step) {
      state.change { state in
        switch step {
        case .begun: state.hasBegun = true
        case .news(let news):
          let passed = news.passed.map { "passed \($0)" } ?? "-"
          state.steps.append(
            "\(news.session) " + (news.event.map { String($0.number) } ?? news.failure?.code ?? passed))
        case .ended(let error): state.end = error.map { .failure($0) } ?? .success(())
        }
      }
    }

    /// Waits for so many.
    func steps(_ count: Int) -> [String] {
      state.wait(atMost: .seconds(120)) { $0.steps.count >= count ? $0.steps : nil }
        ?? state.withLock { $0.steps }
    }

    func steps(of session: String) -> [String] {
      state.withLock { $0.steps }.filter { $0.hasPrefix(session + " ") }
    }
  }

  private func follow(_ stage: Stage, _ places: [String]) -> (Heard, NewsStream) {
    let heard = Heard()
    return (heard, stage.client.news(from: places.compactMap { SessionPlace($0) }) { heard.hear($0) })
  }

  @Test func eachSessionIsReadFromItsPlace() throws {
    let stage = try Stage { $0.page = 3 }
    stage.agent.fakes.publish("a", 5)
    stage.agent.fakes.publish("b", 9)
    let (heard, stream) = follow(stage, ["a:3", "b:0", "b2:0"])
    defer { stream.end() }
    #expect(Set(heard.steps(12)) == Set(["a 4", "a 5", "b2 no-such-session"] + (1...9).map { "b \($0)" }))
    stage.agent.fakes.publish("a")
    #expect(heard.steps(13).last == "a 6")
    #expect(heard.steps(of: "b") == (1...9).map { "b \($0)" })
  }

  /// A session with much to tell does not hold up the others.
  @Test func sessionsHaveTheirTurns() throws {
    let stage = try Stage { $0.page = 2 }
    stage.agent.fakes.publish("a", 1000)
    stage.agent.fakes.publish("b", 1)
    let (heard, stream) = follow(stage, ["a:0", "b:0"])
    defer { stream.end() }
    let steps = heard.steps(1001)
    #expect(steps.firstIndex(of: "b 1").map { $0 < 10 } == true)
    #expect(heard.steps(of: "a") == (1...1000).map { "a \($0)" })
  }

  @Test func whatComesBetweenAPageAndTheWaitIsNotLost() throws {
    let stage = try Stage()
    stage.agent.fakes.publish("a")
    stage.agent.fakes.publish("b")
    stage.agent.fakes.state.withLock { state in
      state.betweenPages = { fakes in
        if fakes.state.withLock({ $0.counts["b"] ?? 0 }) < 20 { fakes.publish("b") }
      }
    }
    let (heard, stream) = follow(stage, ["a:0", "b:0"])
    defer { stream.end() }
    _ = heard.steps(21)
    #expect(heard.steps(of: "b") == (1...20).map { "b \($0)" })
  }

  /// What is gone because somebody else has acknowledged it is said to be gone, also where nothing comes after it.
  @Test func whatWasAcknowledgedMeanwhileIsPassed() throws {
    let stage = try Stage()
    stage.agent.fakes.publish("a", 3)
    let (heard, stream) = follow(stage, ["a:0"])
    defer { stream.end() }
    #expect(heard.steps(3) == ["a 1", "a 2", "a 3"])
    stage.agent.fakes.publishAcknowledged("a", 4)
    #expect(heard.steps(4).last == "a passed 7")
    stage.agent.fakes.publish("a")
    #expect(heard.steps(5).last == "a 8")
    // From the middle, and from the beginning.
    let (again, other) = follow(stage, ["a:5"])
    defer { other.end() }
    #expect(again.steps(2) == ["a passed 7", "a 8"])
    let (first, third) = follow(stage, ["a:0"])
    defer { third.end() }
    #expect(first.steps(2) == ["a passed 7", "a 8"])
  }

  /// A session that was made anew under its name has not reached the number of its reader.
  @Test func aSessionThatWasMadeAnewIsReadFromItsBeginning() throws {
    let stage = try Stage()
    stage.agent.fakes.publish("a", 2)
    let (heard, stream) = follow(stage, ["a:50"])
    defer { stream.end() }
    #expect(heard.steps(3) == ["a passed 0", "a 1", "a 2"])
    let client = stage.raw
    client.get("/v1/session/stream?session=a&after=50")
    #expect(client.read(through: "id: 50\n\n") != nil)
    #expect(client.read(through: "id: 0\n\nid: 1\n") != nil)
    // Also where it has no event yet, and one whose first events are acknowledged.
    stage.agent.fakes.publish("b", 0)
    let (later, other) = follow(stage, ["b:9"])
    defer { other.end() }
    #expect(later.state.wait(atMost: .seconds(120)) { $0.hasBegun ? true : nil } == true)
    stage.agent.fakes.publishAcknowledged("b", 3)
    stage.agent.fakes.publish("b")
    #expect(later.steps(2) == ["b passed 3", "b 4"])
    // The greatest number asks for none.
    let (none, third) = follow(stage, ["a:\(Int64.max)", "b:4"])
    defer { third.end() }
    stage.agent.fakes.publish("b")
    #expect(none.steps(1) == ["b 5"] && none.steps(of: "a").isEmpty)
  }

  @Test func theStreamOfASessionPassesTheNumber() throws {
    let stage = try Stage()
    stage.agent.fakes.publish("a", 1)
    let client = stage.raw
    client.get("/v1/session/stream?session=a&after=1")
    #expect(client.read(through: "id: 1\n\n") != nil)
    stage.agent.fakes.publishAcknowledged("a", 4)
    #expect(client.read(through: "id: 5\n\n") != nil)
  }

  /// The others go on; it is seen with the next sign of life at the latest.
  @Test func oneThatIsGoneIsTold() throws {
    let stage = try Stage { $0.heartbeat = .milliseconds(20) }
    stage.agent.fakes.publish("a")
    stage.agent.fakes.publish("b")
    let (heard, stream) = follow(stage, ["a:1", "b:1"])
    defer { stream.end() }
    #expect(heard.state.wait(atMost: .seconds(120)) { $0.hasBegun ? true : nil } == true)
    stage.agent.fakes.forget("a")
    #expect(heard.steps(1) == ["a no-such-session"])
    stage.agent.fakes.publish("b")
    #expect(heard.steps(2) == ["a no-such-session", "b 2"])
  }

  @Test func theEndIsTold() throws {
    let stage = try Stage()
    stage.agent.fakes.publish("a")
    let (heard, _) = follow(stage, ["a:0"])
    #expect(heard.steps(1) == ["a 1"])
    stage.server.stop()
    let end = heard.state.wait(atMost: .seconds(120)) { $0.end }
    #expect(throws: Never.self) { try end?.get() }
    #expect(end != nil)
    let (again, _) = follow(stage, ["a:0"])
    let refusal = again.state.wait(atMost: .seconds(120)) { $0.end }
    #expect(throws: ControlUnreachable.self) { try refusal?.get() }
  }

  @Test(arguments: ["", "?from=a", "?from=a:x", "?from=a:-1", "?from=a:1&from=a:2", "?session=a"])
  func whatIsNoPlaceIsRefused(query: String) throws {
    let stage = try Stage()
    #expect(stage.raw.request("GET", "/v1/sessions/stream" + query)?.status == 400)
  }
}
