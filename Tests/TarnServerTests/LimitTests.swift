import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// What bounds a client: bytes, connections, calls, time.
@Suite struct LimitTests {
  private func code(_ answer: RawAnswer?) -> String? {
    answer.flatMap { ControlJSON.decode(ControlFailure.self, from: Array($0.body.utf8))?.code }
  }

  @Test func aHeadThatIsTooLongIsRefused() throws {
    let stage = try Stage()
    for fields in [
      "X: \(String(repeating: "x", count: 40_000))\r\n",
      (0..<90).map { "X-\($0): \(String(repeating: "x", count: 500))\r\n" }.joined(),
      (0..<200).map { "X-\($0): 1\r\n" }.joined(),
    ] {
      let client = stage.raw
      client.get("/v1/status", fields)
      #expect(client.answer()?.status == 400)
      #expect(client.readToEnd() == "")
    }
    let client = stage.raw
    client.get("/v1/status?mirror=" + String(repeating: "x", count: 40_000))
    #expect(client.answer()?.status == 400)
    #expect(stage.agent.asked == [])
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
  }

  @Test func aBodyThatIsTooLongIsRefusedAfterItWasRead() throws {
    let stage = try Stage()
    let client = stage.raw
    let long = stage.raw.request("POST", "/v1/command", body: String(repeating: " ", count: 65_537))
    #expect(long?.status == 413)
    #expect(long?.fields["connection"] == "close")
    #expect(code(long) == "body-too-large")
    let fits = client.request("POST", "/v1/command", body: String(repeating: " ", count: 65_536))
    #expect(code(fits) == "body-malformed")
    client.write("POST /v1/command HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in 0..<9 { client.write("2000\r\n\(String(repeating: "x", count: 8_192))\r\n") }
    client.write("0\r\n\r\n")
    #expect(code(client.answer()) == "body-too-large")
    #expect(client.readToEnd() == "")
  }

  @Test func aBodyWithoutEndEndsTheConnection() throws {
    let stage = try Stage()
    let client = stage.raw
    client.write("POST /v1/command HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
    let piece = "10000\r\n\(String(repeating: "x", count: 65_536))\r\n"
    var count = 0
    while client.write(piece), count < 1_000 { count += 1 }
    #expect(count < 1_000)
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
  }

  /// So many whose answer does not end.
  private func streams(_ count: Int, at stage: Stage) -> [RawClient] {
    (0..<count).map { _ in
      let client = stage.raw
      client.get("/v1/events/stream")
      #expect(client.read(through: "id: c0\n\n") != nil)
      return client
    }
  }

  @Test func beyondThoseThatWaitForAnswersOthersAreToldSo() throws {
    let stage = try Stage { $0.connections = 4 }
    var clients = streams(4, at: stage)
    let late = stage.raw.request("GET", "/v1/status")
    #expect(late?.status == 503)
    #expect(late?.fields["retry-after"] == "1")
    #expect(late?.fields["connection"] == "close")
    #expect(code(late) == "too-many-connections")
    // It asks again for a short time.
    let impatient = Stage.client(stage.path) { $0.telling = .milliseconds(100) }
    #expect(throws: ControlFailure.self) { try impatient.reload() }
    clients.removeLast().close()
    // The server sees the close when it comes to it.
    var status = 503
    let isFree = isSoInTime {
      status = stage.raw.request("GET", "/v1/status")?.status ?? 503
      return status != 503
    }
    #expect(isFree && status == 200)
  }

  private static let request = Array("GET /v1/status HTTP/1.1\r\nHost: t\r\n\r\n".utf8)

  /// Else whoever opens enough of them keeps all others out until their time is over.
  @Test(arguments: [0, 3, request.count - 1, request.count, request.count + 3])
  func whoAsksNothingKeepsNobodyOut(sent: Int) throws {
    let stage = try Stage { $0.connections = 64 }
    let text = String(decoding: (Self.request + Self.request).prefix(sent), as: UTF8.self)
    let clients = (0..<200).map { _ in
      let client = stage.raw
      client.write(text)
      if sent >= Self.request.count { #expect(client.answer()?.status == 200) }
      return client
    }
    let asked = stage.raw
    #expect(asked.request("GET", "/v1/status")?.status == 200)
    // Those that were silent longest are closed; the last ones have their places still.
    #expect(clients[0].readToEnd() == "" && clients[136].readToEnd() == "")
    let rest = Self.request.dropFirst(sent % Self.request.count)
    clients[199].write(String(decoding: rest, as: UTF8.self))
    #expect(clients[199].answer()?.status == 200)
    #expect(asked.request("GET", "/v1/status")?.status == 200)
  }

  /// Answers that are not read are none that somebody waits for.
  @Test(arguments: [false, true]) func whoReadsNoAnswerKeepsNobodyOut(isEveryone: Bool) throws {
    let stage = try Stage {
      $0.connections = 16
      $0.taking = .milliseconds(500)
    }
    let mirrors = (0..<400).map { number in
      StatusDocument(name: "mirror\(number)", feed: "https://h/x", folder: "/srv/\(number)", state: "idle")
    }
    stage.agent.state.withLock { $0.status = StatusAnswer(mirrors: mirrors) }
    let path = isEveryone ? stage.everyone : stage.path
    let requests = String(repeating: String(decoding: Self.request, as: UTF8.self), count: 200)
    let clients = (0..<60).map { _ in
      let client = RawClient(path)
      client.write(requests)
      return client
    }
    // With a sanitizer it takes its time until their buffers are full.
    for _ in 0..<3 { #expect(isSoInTime { RawClient(path).request("GET", "/v1/status")?.status == 200 }) }
    withExtendedLifetime(clients) {}
  }

  /// Where the machine lets the two stand still for half of the time, the server may have found that nobody reads: then once more, with
  /// more time.
  @Test func whoGoesOnReadingKeepsItsPlace() throws {
    let isDecided = try [2, 8, 32, 128].contains { try readsOn(taking: .seconds($0)) }
    #expect(isDecided)
  }

  /// Reads without end for twice the time; false where a round took too long to tell anything.
  private func readsOn(taking: Duration) throws -> Bool {
    let stage = try Stage {
      $0.connections = 1
      $0.taking = taking
    }
    stage.agent.state.withLock { $0.endless = String(repeating: "x", count: 10_000) }
    let (client, since) = (stage.raw, ContinuousClock.now)
    client.get("/v1/events/stream?after=c0")
    #expect(client.read(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200") == true)
    while ContinuousClock.now - since < taking * 2 {
      let round = ContinuousClock.now
      // The kernel asks for more only when half of what it keeps was taken.
      let areRead = (0..<50).allSatisfy { _ in client.read(through: "\n\n") != nil }
      let status = stage.raw.request("GET", "/v1/status")?.status
      guard ContinuousClock.now - round < taking / 2 else { return false }
      #expect(areRead && status == 503)
    }
    return true
  }

  @Test func whoHadAnAnswerLatelyStaysLonger() throws {
    let stage = try Stage { $0.connections = 2 }
    let (first, second) = (stage.raw, stage.raw)
    for client in [first, second, first] {
      #expect(client.request("GET", "/v1/status")?.status == 200)
    }
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
    #expect(second.readToEnd() == "")
    #expect(first.request("GET", "/v1/status")?.status == 200)
  }

  @Test func everyoneTakesNoPlaceOfThoseWhoSteer() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) {
      $0.connections = 1
      $0.everyone = 1
    }
    let first = RawClient(stage.everyone)
    first.get("/v1/status")
    try stage.agent.arrived.waitOrThrow()
    #expect(RawClient(stage.everyone).request("GET", "/v1/status")?.status == 503)
    let steering = stage.raw
    steering.get("/v1/status")
    // It is taken while the other one is at work.
    #expect(isSoInTime { stage.agent.arrivals.withLock { $0 } == 2 })
    gate.open()
    #expect(steering.answer()?.status == 200 && first.answer()?.status == 200)
  }

  @Test func connectionsBeyondThoseAreClosedAtOnce() throws {
    let stage = try Stage { $0.connections = 1 }
    let first = streams(1, at: stage)
    let told = (0..<16).map { _ in stage.raw }
    let last = stage.raw
    #expect(last.readToEnd() == "")
    for client in told { #expect(client.request("GET", "/v1/status")?.status == 503) }
    stage.agent.publish()
    #expect(first[0].read(through: "id: c1\n") != nil)
  }

  @Test(arguments: [
    "", "GET /v1/status HTTP/1.1\r\nHost: t",
    "POST /v1/command HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n{",
  ])
  func aRequestThatDoesNotComeIsNotWaitedFor(text: String) throws {
    let stage = try Stage { $0.requesting = .milliseconds(100) }
    let client = stage.raw
    client.write(text)
    #expect(client.readToEnd() == "")
    #expect(stage.agent.asked == [])
  }

  @Test(arguments: ["", "GET /v1/status HTTP/1.1\r\nHost: t"])
  func neitherIsTheNextOne(text: String) throws {
    let stage = try Stage { $0.idling = .milliseconds(100) }
    // Who comes to ask only after that time, on a busy machine, comes again.
    var client = stage.raw
    let isAnswered = isSoInTime {
      client = stage.raw
      return client.request("GET", "/v1/status")?.status == 200
    }
    #expect(isAnswered)
    client.write(text)
    #expect(client.readToEnd() == "")
  }

  @Test func aCallThatFindsNoThreadIsRefusedAtOnce() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) {
      $0.calls = 1
      $0.waiting = 0
    }
    let first = stage.raw
    first.get("/v1/status")
    try stage.agent.arrived.waitOrThrow()
    let second = stage.raw.request("GET", "/v1/status")
    #expect(second?.status == 503)
    #expect(code(second) == "busy")
    gate.open()
    #expect(first.answer()?.status == 200)
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
  }

  /// Who went away was told that nobody answers: what waits of it is not carried out any more.
  @Test func anOrderWhoseClientWentAwayIsDropped() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) {
      $0.calls = 1
      $0.waiting = 2
    }
    let first = stage.raw
    first.get("/v1/status")
    try stage.agent.arrived.waitOrThrow()
    let order = #"{"verb":"pause","target":{"mirror":"m"}}"#
    let gone = stage.raw
    let halfGone = stage.raw
    for client in [gone, halfGone] {
      client.write(
        "POST /v1/command HTTP/1.1\r\nHost: t\r\nContent-Length: \(order.utf8.count)\r\n\r\n\(order)")
    }
    // There is no place any more once both wait.
    #expect(isSoInTime { code(stage.raw.request("GET", "/v1/status")) == "busy" })
    gone.close()
    halfGone.endInput()
    // The server hears of what comes in the order in which it came.
    for _ in 0..<2 { #expect(stage.raw.request("GET", "/v1/nothing")?.status == 404) }
    gate.open()
    #expect(first.answer()?.status == 200)
    #expect(halfGone.answer()?.status == 200)
    #expect(stage.agent.asked.filter { $0.hasPrefix("pause") }.count == 1)
  }

  @Test func anAgentThatDoesNotAnswerIsNotWaitedForForEver() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) { $0.answering = .milliseconds(50) }
    let answer = stage.raw.request("POST", "/v1/reload")
    #expect(answer?.status == 503)
    #expect(code(answer) == "answer-timed-out")
    gate.open()
  }

  @Test func anAnswerThatIsNotReadIsGivenUp() throws {
    let stage = try Stage {
      $0.connections = 1
      $0.idling = .milliseconds(100)
    }
    let name = String(repeating: "x", count: 4 << 20)
    let mirror = StatusDocument(name: name, feed: "f", folder: "/", state: "idle")
    stage.agent.state.withLock { $0.status = StatusAnswer(mirrors: [mirror]) }
    let client = stage.raw
    client.get("/v1/status")
    // Its place is free when the server has closed it.
    var status = 503
    let isFree = isSoInTime {
      status = stage.raw.request("GET", "/v1/events")?.status ?? 503
      return status != 503
    }
    #expect(isFree && status == 200)
    #expect(client.readToEnd().utf8.count < 4 << 20)
  }
}
