import Foundation
import TarnKit
import TarnKitTesting
import TestSupport
import Testing

/// The library for programs, against an agent and nginx.
@Suite(
  .serialized, .timeLimit(.minutes(10)),
  .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct KitTests {
  private let house: SessionTests.House
  private let agent: Agent

  init() throws {
    house = try SessionTests.House()
    agent = Agent(socket: house.place.path + "/run/tarn.sock")
  }

  private func request(_ name: String) -> DownloadRequest {
    DownloadRequest(house.server.url(name), to: house.out)
  }

  /// Reads events up to the one that ends it.
  private func events(
    of session: BackgroundSession, after number: Int64? = nil, until isLast: (DownloadEvent.Kind) -> Bool
  ) async throws -> [DownloadEvent] {
    var events: [DownloadEvent] = []
    for try await event in session.events(after: number) {
      events.append(event)
      if isLast(event.kind) { break }
    }
    return events
  }

  private func isDelivered(_ kind: DownloadEvent.Kind) -> Bool {
    if case .allDelivered = kind { true } else { false }
  }

  @Test func aDownloadIsHandedOverAndCollected() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    var request = request("a.txt")
    (request.label, request.userInfo) = ("greeting", "{\"id\":7}")
    let task = try await session.download(request)
    #expect(task.number == 1 && !task.wasThere)
    let events = try await events(of: session, until: isDelivered)
    let finished = try #require(events.first { $0.kind == .finished })
    #expect(finished.task?.number == 1 && finished.path == house.out + "a.txt" && finished.bytes == 6)
    #expect(
      finished.label == "greeting" && finished.userInfo == "{\"id\":7}" && finished.response?.status == 200)
    #expect(events.last?.kind == .allDelivered(finished: 1, failed: 0))
    let snapshot = try await session.snapshot()
    #expect(snapshot.tasks.map(\.state) == [.finished] && snapshot.tasks[0].progress.fraction == 1)
    #expect(snapshot.asOf == events.last?.number)
    try await session.acknowledge(snapshot.asOf)
    #expect(try house.events("kit").isEmpty)
  }

  /// Any number of handles see the same session; what is handed over later than the first does not change it.
  @Test func aSessionIsOpenedAgain() async throws {
    try house.start()
    let first = try await BackgroundSession.open(
      "kit", configuration: .init(maximumTransfers: 2), agent: agent)
    #expect(first.differing.isEmpty && first.configuration.maximumTransfers == 2)
    let second = try await BackgroundSession.open(
      "kit", configuration: .init(maximumTransfers: 5), agent: agent)
    #expect(second.session == first.session && second.differing == ["transfers"])
    #expect(second.configuration.maximumTransfers == 2)
    try await second.session.update(.init(maximumTransfers: 5))
    #expect(try await first.session.configuration.maximumTransfers == 5)
    #expect(try await BackgroundSession.all(agent: agent).map(\.identifier) == ["kit"])
  }

  @Test func aSignedURLIsRefreshed() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    let task = try await session.download(request("secret"))
    let asked = try await events(of: session) { if case .needsRequest = $0 { true } else { false } }
    #expect(asked.last?.task == session.task(task.number))
    try await task.refresh(headers: ["Authorization": "Bearer right"])
    let rest = try await events(of: session, after: asked.last?.number, until: isDelivered)
    #expect(rest.contains { $0.kind == .finished })
  }

  /// The test kit, as a program's own tests use it: without nginx, and without the command line.
  @Test(arguments: SessionFateTests.End.allCases)
  func theTestKitMakesItSo(end: SessionFateTests.End) async throws {
    let (agent, server) = (try TestAgent(program: Tarn.path), try await TestServer())
    try await agent.start()
    let behaviours: [SessionFateTests.End: TestServer.Behaviour] = [
      .finishes: .finishes, .fails: .fails(status: 410), .asks: .asks("Authorization: Bearer right"),
    ]
    server.serve("a.bin", [1, 2, 3], try #require(behaviours[end]))
    let session = try await BackgroundSession.open("kit", agent: agent.agent).session
    let task = try await session.download(DownloadRequest(server.url("a.bin"), to: house.out))
    switch end {
    case .finishes:
      #expect(try await task.ended().state == .finished)
      #expect(house.place.text("out/a.bin") == "\u{1}\u{2}\u{3}")
    case .fails:
      let status = try await task.ended()
      #expect(status.state == .failed && status.reason == "http-410", "\(status)")
    case .asks:
      _ = try await events(of: session) { if case .needsRequest = $0 { true } else { false } }
      #expect(try await task.status().state == .waiting)
      try await task.refresh(headers: ["Authorization": "Bearer right"])
      #expect(try await task.ended().state == .finished)
      #expect(server.requests.last?.headers["authorization"] == "Bearer right")
    }
  }

  /// What a session is set to comes back as it was handed over.
  @Test func aConfigurationComesBack() async throws {
    try house.start()
    var configuration = BackgroundSession.Configuration(maximumTransfers: 3)
    configuration.hook = ["/bin/true", "word"]
    (configuration.notifiesDesktop, configuration.holdsOldRequests, configuration.keepsCookies) = (
      true, true, true
    )
    configuration.limits = TimeLimits(idle: .seconds(5), whole: .seconds(600))
    configuration.rules = [
      DownloadRule(.place(house.out + "audio/"), mediaTypes: ["audio/*"], leastBytes: 10),
      DownloadRule(.hold, statuses: [404]),
    ]
    configuration.headers = ["X-Own": "a: b"]
    configuration.hosts = [TrustedHost("h", pinnedKeys: ["sha256//AAAA"], credential: "name")]
    configuration.quota = Quota(tasks: 5, bytes: 1 << 30, partialAge: .seconds(60))
    let opened = try await BackgroundSession.open("kit", configuration: configuration, agent: agent)
    #expect(opened.configuration == configuration)
    let again = try await BackgroundSession.open("kit", configuration: .init(), agent: agent)
    #expect(
      Set(again.differing) == [
        "transfers", "hook", "notify", "holdsOld", "cookies", "limits", "rules", "headers", "hosts", "quota",
      ])
  }

  /// Another client may have given a name twice: a dictionary has it once, and loses nothing.
  @Test func headerLinesOfOneNameAreOneField() async throws {
    try house.start()
    try house.place.write(
      #"{"headers": ["X-Own: a", "x-own: b", "Cookie: c=1", "Cookie: d=2", "X-Two: t"]}"#, to: "settings.json"
    )
    #expect(try house.tarn("session", "open", "kit", "--settings", "settings.json").status == 0)
    let session = try await BackgroundSession.open("kit", agent: agent).session
    var configuration = try await session.configuration
    let joined = ["X-Own": "a, b", "Cookie": "c=1; d=2", "X-Two": "t"]
    #expect(configuration.headers == joined)
    configuration.maximumTransfers = 7
    try await session.update(configuration)
    #expect(try await session.configuration.headers == joined)
  }

  @Test func aRuleHoldsATaskUntilTheProgramHasSeenTheHead() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    var request = request("a.txt")
    (request.rules, request.group) = ([DownloadRule(.hold)], "texts")
    let task = try await session.download(request)
    let held = try await events(of: session) { if case .needsRequest("held", _) = $0 { true } else { false } }
    #expect(held.last?.response?.contentLength == 6)
    #expect(held.last?.response?.headers.contains { $0.lowercased().hasPrefix("etag:") } == true)
    try await task.move(to: house.out + "moved.txt")
    let rest = try await events(of: session, after: held.last?.number, until: isDelivered)
    let finished = try #require(rest.first { $0.kind == .finished })
    #expect(finished.path == house.out + "moved.txt" && finished.times != nil)
    #expect(rest.contains { $0.kind == .groupDelivered("texts", finished: 1, failed: 0) })
    #expect(house.names == ["moved.txt"])
  }

  @Test func aRefusalBringsItsBody() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    try await session.download(request("nothing"))
    let events = try await events(of: session, until: isDelivered)
    let failed = try #require(events.first { if case .failed = $0.kind { true } else { false } })
    #expect(failed.body?.contains("404") == true && failed.response?.status == 404)
  }

  @Test func aTaskIsDelayedAndPutFirst() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    var request = request("a.txt")
    request.notBefore = Int64(Date().timeIntervalSince1970) + 3600
    let task = try await session.download(request)
    let status = try await task.status()
    #expect(status.state == .waiting && status.reason == "not-before")
    try await task.refresh()
    let events = try await events(of: session, until: isDelivered)
    #expect(events.contains { $0.kind == .finished })
    try await task.putFirst()
    try await task.cancel(keepingPartialFile: true)
    #expect(try await task.status().state == .finished)
  }

  /// Nobody hears of it any more.
  @Test func theProgressOfAForgottenSessionEnds() async throws {
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    let values = session.progress()
    let reader = Task { for await _ in values {} }
    try await session.forget()
    await reader.value
  }

  /// An order may have been carried out although no answer came.
  @Test func anOrderWithoutAnAnswerIsNoMissingAgent() async throws {
    let (ending, other) = (house.place.path + "/ending.sock", house.place.path + "/other.sock")
    let listeners = [
      try RawListener(ending) { shutdown($0, Int32(SHUT_RDWR)) },
      try RawListener(other, answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    ]
    for (socket, said) in [(ending, "may have been carried out"), (other, "is no agent of Tarn")] {
      do throws(TarnError) {
        _ = try await BackgroundSession.open("kit", agent: Agent(socket: socket))
        Issue.record("nobody opened it")
      } catch {
        guard case .failed(let text) = error else { throw error }
        #expect(text.contains(said), "\(text)")
      }
    }
    withExtendedLifetime(listeners) {}
  }

  @Test func errorsAreTyped() async throws {
    await #expect(throws: TarnError.self) { try await BackgroundSession.open("kit", agent: agent) }
    do throws(TarnError) {
      _ = try await BackgroundSession.open("kit", agent: agent)
      Issue.record("no agent runs")
    } catch {
      guard case .agentUnavailable(let text) = error else { throw error }
      #expect(text.contains("systemctl --user start tarn"))
    }
    try house.start()
    let session = try await BackgroundSession.open("kit", agent: agent).session
    var waiting = request("a.txt")
    waiting.isSuspended = true
    try await session.download(waiting)
    try await session.close()
    do throws(TarnError) {
      try await session.download(request("named"))
      Issue.record("a closed session takes no task")
    } catch {
      guard case .refused("session-closed", _, _) = error else { throw error }
    }
  }
}
