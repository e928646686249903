import Foundation
import TarnKitTesting
import TestSupport
import Testing

@testable import TarnKit

/// Readers, closures and progress of the library, by its test kit.
@Suite(
  .serialized, .timeLimit(.minutes(10)), .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct KitEventTests {
  private let agent: TestAgent
  private let server: TestServer
  private let place: TemporaryDirectory

  init() async throws {
    (agent, server, place) = (
      try TestAgent(program: Tarn.path), try await TestServer(), try TemporaryDirectory()
    )
    try await agent.start()
  }

  private func session(_ id: String = "s") async throws -> BackgroundSession {
    try await BackgroundSession.open(id, agent: agent.agent).session
  }

  private func request(_ name: String, in folder: String = "") -> DownloadRequest {
    var request = DownloadRequest(server.url(name), to: place.path + "/" + folder)
    request.makesDirectories = true
    return request
  }

  /// What the main actor heard.
  @MainActor private final class Heard {
    var statuses: [Int] = []
    var progress: [DownloadTask.Progress] = []
    var ends: [Result<DownloadTask.Status, TarnError>] = []
  }

  private func wait(_ what: String, _ isSo: () async throws -> Bool) async throws {
    let deadline = Date().addingTimeInterval(patience)
    while try await !isSo() {
      guard Date() < deadline else { throw Program.TimedOut(description: what) }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  // MARK: Closures

  @Test func closuresChainAndRunWhereTheySay() async throws {
    // It runs until it has been heard of: the machine may be busy.
    server.serve("a.bin", [UInt8](repeating: 7, count: 1_800_000), .goesSlowly(bytesPerSecond: 20_000))
    let heard = Heard()
    try await session().download(request("a.bin"))
      .onResponse { @MainActor response in heard.statuses.append(response.status) }
      .onProgress { @MainActor progress in heard.progress.append(progress) }
      .onCompletion { @MainActor end in heard.ends.append(end) }
    try await wait("a value while it runs") {
      await heard.progress.contains { $0.timeLeft.map { $0 > .zero } == true }
    }
    server.change("a.bin", to: .finishes)
    try await wait("the last value") { await heard.progress.last?.isFinished == true }
    try await wait("its end") { await heard.ends.count == 1 }
    #expect(await heard.statuses == [200])
    #expect(try await heard.ends[0].get().state == .finished)
    let values = await heard.progress
    #expect(values.map(\.received) == values.map(\.received).sorted(), "\(values)")
    #expect(values.count > 1 && values.allSatisfy { $0.expected ?? 1_800_000 == 1_800_000 })
    #expect(values.dropLast().allSatisfy { !$0.isFinished && $0.fraction ?? 0 < 1 })
    #expect(
      values.last?.fraction == 1 && values.last?.received == 1_800_000 && values.last?.timeLeft == .zero)
    #expect(values.dropLast().contains { $0.timeLeft.map { $0 > .zero } == true })
  }

  @Test func withoutALengthThereIsNoFraction() async throws {
    let contents = [UInt8](repeating: 7, count: 3_600_000)
    server.serve("a.bin", contents, .goesSlowly(bytesPerSecond: 20_000), tellsLength: false)
    let heard = Heard()
    let task = try await session().download(request("a.bin"))
    task.onProgress { @MainActor progress in heard.progress.append(progress) }
    try await wait("a value while it runs") { await heard.progress.contains { $0.received > 0 } }
    server.change("a.bin", to: .finishes)
    #expect(try await task.ended().progress.fraction == 1)
    try await wait("the last value") { await heard.progress.last?.isFinished == true }
    let values = await heard.progress.dropLast()
    #expect(!values.isEmpty)
    #expect(values.allSatisfy { $0.fraction == nil && $0.expected == nil && $0.timeLeft == nil }, "\(values)")
  }

  /// What ended while no closure was there, and was acknowledged, is told all the same.
  @Test func closuresHearOfWhatEndedBefore() async throws {
    server.serve("a.bin", [1])
    let session = try await session()
    let task = try await session.download(request("a.bin"))
    _ = try await task.ended()
    let heard = Heard()
    task.onResponse { @MainActor response in heard.statuses.append(response.status) }
    try await wait("the answer") { await heard.statuses == [200] }
    try await session.acknowledge(.max)
    session.task(task.number).onCompletion { @MainActor end in heard.ends.append(end) }
    try await wait("its end") { await heard.ends.count == 1 }
    #expect(try await heard.ends[0].get().path == place.path + "/a.bin")
  }

  @Test func closuresHearThatNobodyCanTell() async throws {
    server.serve("a.bin", [1], .hangs)
    let session = try await session()
    let heard = Heard()
    try await session.download(request("a.bin")).onCompletion { @MainActor end in heard.ends.append(end) }
    session.task(99).onCompletion { @MainActor end in heard.ends.append(end) }
    try await wait("the end of what is none") { await heard.ends.count == 1 }
    guard case .failure(.refused("no-such-task", _, _)) = await heard.ends[0] else {
      throw Program.TimedOut(description: "another end")
    }
    try await session.forget()
    try await wait("the end of the other") { await heard.ends.count == 2 }
    guard case .failure(.refused("no-such-session", _, _)) = await heard.ends[1] else {
      throw Program.TimedOut(description: "another end")
    }
  }

  @Test func progressOfASessionIsOfAllThatRun() async throws {
    for name in ["a", "b"] {
      server.serve(name, [UInt8](repeating: 7, count: 1 << 22), .goesSlowly(bytesPerSecond: 20_000))
    }
    let session = try await session()
    _ = try await session.download([request("a"), request("b")])
    var both: [DownloadTask.Status] = []
    for await statuses in session.progress() where statuses.count == 2 {
      both = statuses
      break
    }
    #expect(both.map(\.task.number) == [1, 2] && both.allSatisfy { $0.state == .running }, "\(both)")
  }

  // MARK: What a server sees

  /// A signed URL that dies in the middle: the task asks, and goes on with another one from where it was.
  @Test func aURLThatDiesInTheMiddleIsRefreshed() async throws {
    let contents = (0..<9_000_000).map { UInt8(truncatingIfNeeded: $0 >> 10) }
    // Each attempt brings a part, until the server refuses: that may take this program a while.
    server.serve("a.bin", contents, .breaksOff(after: 1_500_000))
    let session = try await session()
    let task = try await session.download(request("a.bin?signature=1"))
    var asked: DownloadEvent?
    read: for try await event in session.events() {
      asked = event
      switch event.kind {
      // Of the first answer; the next one refuses.
      case .response: server.change("a.bin", to: .fails(status: 403))
      case .needsRequest, .allDelivered: break read
      default: break
      }
    }
    guard case .needsRequest("http-403", _) = asked?.kind else {
      throw Program.TimedOut(description: "it asks: \(String(describing: asked))")
    }
    #expect(asked?.response?.status == 403)
    let status = try await task.status()
    #expect(status.state == .waiting && status.reason == "http-403")
    let kept = status.progress.received
    #expect(kept > 0 && kept < 9_000_000, "\(kept)")
    server.change("a.bin", to: .finishes)
    try await task.refresh(url: server.url("a.bin?signature=2"))
    #expect(try await task.ended().state == .finished)
    let requests = server.requests
    #expect(requests.dropLast().allSatisfy { $0.target == "/a.bin?signature=1" }, "\(requests)")
    #expect(requests.last?.target == "/a.bin?signature=2")
    #expect(requests.last?.headers["range"] == "bytes=\(kept)-", "\(requests)")
    #expect(FileManager.default.contents(atPath: place.path + "/a.bin") == Data(contents))
    #expect(task.number == 1 && !task.wasThere)
    #expect(try await session.download(request("a.bin?signature=1")).wasThere)
  }

  /// The server counts: what it has not answered is at work.
  @Test func ofAHundredNoMoreThanThreeAreAtWork() async throws {
    for number in 0..<100 { server.serve("\(number)", [1], .hangs) }
    let configuration = BackgroundSession.Configuration(maximumTransfers: 3)
    let session = try await BackgroundSession.open("s", configuration: configuration, agent: agent.agent)
      .session
    _ = try await session.download((0..<100).map { request("\($0)") })
    for answered in 0..<100 {
      let most = min(100, answered + 3)
      try await wait("three are at work") { server.requests.count >= most }
      #expect(server.requests.count == most)
      server.change(String(server.requests[answered].target.dropFirst()), to: .finishes)
    }
    try await wait("all are there") {
      try await session.snapshot().tasks.allSatisfy { $0.state == .finished }
    }
    #expect(Set(server.requests.map(\.target)).count == 100 && server.requests.count == 100)
  }

  // MARK: Readers

  private static func numbers(_ session: BackgroundSession, _ count: Int) async throws -> [Int64] {
    var numbers: [Int64] = []
    for try await event in session.events() {
      numbers.append(event.number)
      if numbers.count == count { break }
    }
    return numbers
  }

  /// A number from before the session was forgotten is beyond what there is now.
  @Test func aSessionThatWasMadeAnewIsReadFromItsBeginning() async throws {
    server.serve("a", [1])
    let session = try await session()
    _ = try await session.download(request("a")).ended()
    var heard: [DownloadEvent.Kind] = []
    for try await event in session.events(after: 50) {
      heard.append(event.kind)
      if heard.count == 3 { break }
    }
    #expect(heard.prefix(2) == [.eventsLost(upTo: 0), .response] && heard.last == .finished)
  }

  /// Connections to the agent's socket, whose name is another one until it listens.
  private func connections() throws -> Int {
    // Its size is 0, and what it has comes in many pieces.
    let table = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/unix")).readToEnd() ?? Data()
    return String(decoding: table, as: UTF8.self).split(separator: "\n").count { line in
      let fields = line.split(separator: " ", maxSplits: 7)
      return fields.count == 8 && fields[5] == "03" && fields[7].hasPrefix(agent.directory + "/run/")
    }
  }

  private func threads() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(agent.processIdentifier ?? 0)/task").count
  }

  @Test func handlesOfAProcessAreOneConnection() async throws {
    server.serve("a", [1], .hangs)
    let session = try await session()
    let readers = (0..<256).map { _ in Task { try await Self.numbers(session, 3) } }
    try await session.download(request("a"))
    try await wait("it is asked for") { !server.requests.isEmpty }
    try await wait("they are one connection") { try connections() == 1 }
    server.change("a", to: .finishes)
    for reader in readers { #expect(try await reader.value == [1, 2, 3]) }
    try await wait("it is closed") { try connections() == 0 }
  }

  @Test func nothingIsLostWhileHandlesComeAndGo() async throws {
    for number in 0..<40 { server.serve("\(number)", [1]) }
    var sessions: [BackgroundSession] = []
    for number in 0..<8 { sessions.append(try await session("s\(number)")) }
    let first = sessions[0]
    // Two events of each of 40 tasks, and those of being done.
    let reading = Task { try await Self.numbers(first, 80) }
    var others: [Task<[Int64], any Error>] = []
    for number in 0..<160 {
      let session = sessions[number % 8]
      others.append(Task { try await Self.numbers(session, 2) })
      guard number % 4 == 0 else { continue }
      for session in sessions {
        try await session.download(request("\(number / 4)", in: session.identifier + "/"))
      }
    }
    let read = try await reading.value
    #expect(read == Array(1...80), "\(read)")
    for other in others { #expect(try await other.value == [1, 2]) }
  }

  /// Streams of other programs.
  @Test func streamsCostNoThread() async throws {
    let session = try await session()
    let before = try threads()
    let path = try #require(session.agent.socket)
    let streams = (0..<256).map { _ in RawClient(path) }
    for stream in streams { stream.get("/v1/session/stream?session=s") }
    for stream in streams { #expect(stream.read(through: "id: 0\n\n") != nil) }
    let open = try connections()
    #expect(open >= 256, "\(open)")
    #expect(try threads() <= before)
    // Each is served; and others are still answered.
    try await session.download(request("nothing"))
    for stream in streams { #expect(stream.read(through: "event: failed\n") != nil) }
    #expect(try await session.snapshot().tasks.map(\.state) == [.failed])
  }

  /// The first part was read before anything happened, the second one afterwards.
  @Test func eventsThatALaterPartIncludesDoNotCome() async throws {
    let session = try await session()
    let tasks = try await session.download([request("nothing/1"), request("nothing/2")])
    try await wait("both have failed") {
      try await session.snapshot().tasks.allSatisfy { $0.state == .failed }
    }
    var snapshot = try await session.snapshot()
    #expect(snapshot.parts.map(\.last) == [2] && snapshot.parts.map(\.asOf) == [snapshot.asOf])
    let last = snapshot.asOf
    snapshot.asOf = 0
    snapshot.parts = [(tasks[0].number, 0), (tasks[1].number, last)]
    var heard: [Int64?] = []
    for try await event in session.events(after: snapshot) {
      heard.append(event.task?.number)
      if event.number == last { break }
    }
    #expect(heard == [1, 1, nil])
  }

  /// What it does not take stays with the agent, and comes later.
  @Test func aSlowReaderLosesNothing() async throws {
    let session = try await session()
    let stream = session.events()
    // Two events each: more than a stream holds for one reader.
    _ = try await session.download((0..<700).map { request("nothing/\($0)") })
    try await wait("all have failed") {
      try await session.snapshot().tasks.allSatisfy { $0.state == .failed }
    }
    let last = try await session.snapshot().asOf
    #expect(last > 1400)
    var numbers: [Int64] = []
    for try await event in stream {
      numbers.append(event.number)
      if event.number == last { break }
    }
    #expect(numbers == Array(1...last))
  }

  /// The program stands still while another one acknowledges everything: no event tells it the end of its task any more.
  @Test func whoLagsBehindAnAcknowledgementIsToldTheEnd() async throws {
    server.serve("a", [1], .hangs)
    let session = try await session()
    let task = try await session.download(request("a"))
    let socket = try #require(agent.agent.socket)
    let relay = try #require(HeldRelay(to: socket, at: agent.directory + "/relay.sock"))
    let lagging = try await BackgroundSession.open("s", agent: Agent(socket: relay.path)).session
    let heard = Heard()
    lagging.task(task.number).onCompletion { @MainActor end in heard.ends.append(end) }
    // The connections that opened the session and asked for the task are over, and the stream is there.
    try await wait("it waits for the end") { relay.hasStream && relay.ended == 2 }
    relay.hold(true)
    // More than the sockets hold.
    let others = (0..<200).map { number in
      var other = request("nothing/\(number)")
      other.label = String(repeating: "l", count: 4000)
      return other
    }
    _ = try await session.download(others)
    try await wait("they have failed") {
      try await session.snapshot().tasks.dropFirst().allSatisfy { $0.state == .failed }
    }
    server.change("a", to: .finishes)
    try await wait("it has finished") { try await task.status().state == .finished }
    try await session.acknowledge(.max)
    relay.hold(false)
    try await wait("its end is told") { await heard.ends.count == 1 }
    #expect(try await heard.ends[0].get().state == .finished)
  }

  /// The agent is killed, and the next one goes on; so do readers and closures.
  @Test func readersOutliveTheAgent() async throws {
    server.serve("a", [1])
    server.serve("b", [1], .hangs)
    let session = try await session()
    let heard = Heard()
    let reading = Task { try await Self.numbers(session, 5) }
    let tasks = try await session.download([request("a"), request("b")])
    tasks[1].onCompletion { @MainActor end in heard.ends.append(end) }
    try await wait("both are asked for") { server.requests.count == 2 }
    agent.kill()
    server.change("b", to: .finishes)
    try await agent.start()
    try await wait("its end") { await heard.ends.count == 1 }
    #expect(try await heard.ends[0].get().state == .finished)
    #expect(try await reading.value == [1, 2, 3, 4, 5])
  }

  @Test func whoIsCancelledReadsNoMore() async throws {
    let session = try await session()
    let reading = Task { try await Self.numbers(session, 1) }
    reading.cancel()
    #expect(try await reading.value.isEmpty)
    try await session.forget()
    await #expect(throws: TarnError.self) {
      for try await _ in session.events() {}
    }
  }
}
