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

  @Test func theSixtyFifthConnectionIsToldSo() throws {
    let stage = try Stage()
    var clients = (0..<64).map { _ in stage.raw }
    for client in clients { #expect(client.request("GET", "/v1/status")?.status == 200) }
    let late = stage.raw.request("GET", "/v1/status")
    #expect(late?.status == 503)
    #expect(late?.fields["retry-after"] == "1")
    #expect(late?.fields["connection"] == "close")
    #expect(code(late) == "too-many-connections")
    #expect(throws: ControlFailure.self) { try stage.client.status() }
    clients.removeLast().close()
    // The server sees the close when it comes to it.
    var status = 503
    for _ in 0..<10_000 where status == 503 { status = stage.raw.request("GET", "/v1/status")?.status ?? 503 }
    #expect(status == 200)
  }

  @Test func everyoneTakesNoPlaceOfThoseWhoSteer() throws {
    let stage = try Stage {
      $0.connections = 1
      $0.everyone = 1
    }
    let clients = (0..<20).map { _ in RawClient(stage.everyone) }
    #expect(clients[0].request("GET", "/v1/status")?.status == 200)
    #expect(clients[1].request("GET", "/v1/status")?.status == 503)
    #expect(clients[19].readToEnd() == "")
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
  }

  @Test func connectionsBeyondThoseAreClosedAtOnce() throws {
    let stage = try Stage { $0.connections = 1 }
    let first = stage.raw
    #expect(first.request("GET", "/v1/status")?.status == 200)
    let told = (0..<16).map { _ in stage.raw }
    let last = stage.raw
    #expect(last.readToEnd() == "")
    for client in told { #expect(client.request("GET", "/v1/status")?.status == 503) }
    #expect(first.request("GET", "/v1/status")?.status == 200)
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
    let client = stage.raw
    #expect(client.request("GET", "/v1/status")?.status == 200)
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
    stage.agent.arrived.wait()
    let second = stage.raw.request("GET", "/v1/status")
    #expect(second?.status == 503)
    #expect(code(second) == "busy")
    gate.open()
    #expect(first.answer()?.status == 200)
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
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
    for _ in 0..<100_000 where status == 503 {
      status = stage.raw.request("GET", "/v1/events")?.status ?? 503
    }
    #expect(status == 200)
    #expect(client.readToEnd().utf8.count < 4 << 20)
  }
}
