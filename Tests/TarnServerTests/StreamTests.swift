import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// The stream of events: none is lost and none comes twice.
@Suite struct StreamTests {
  /// Numbers of so many events, from the text of a stream.
  private func numbers(_ client: RawClient, _ count: Int) -> [Int] {
    var numbers: [Int] = []
    while numbers.count < count, let text = client.read(through: "\n\n") {
      guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("data: ") }) else { continue }
      let event = ControlJSON.decode(EventDocument.self, from: Array(line.dropFirst(6).utf8))
      if let event { numbers.append(Int(event.number)) }
    }
    return numbers
  }

  @Test func anEventHasItsLines() throws {
    let stage = try Stage()
    stage.agent.publish(2)
    let client = stage.raw
    client.get("/v1/events/stream?after=c1")
    let head = try #require(client.read(through: "\r\n\r\n"))
    #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(head.lowercased().contains("content-type: text/event-stream\r\n"))
    #expect(head.lowercased().contains("server: tarn/9.8\r\n"))
    #expect(client.read(through: "\n\n")?.hasSuffix("id: c1\n\n") == true)
    let text = try #require(client.read(through: "}\n\n"))
    let document =
      #"{"code":"published","cursor":"c2","mirror":"m","number":2,"path":"dir/f2","time":"2026-01-01T00:00:00Z"}"#
    #expect(text.hasSuffix("id: c2\nevent: published\ndata: \(document)\n\n"))
  }

  @Test func pagesAndWhatComesLaterAreOneStream() throws {
    let stage = try Stage { $0.page = 3 }
    stage.agent.publish(10)
    var seen: [Int64] = []
    let cursor = try stage.client.follow(after: "c0", mirrors: ["m"]) { event in
      seen.append(event.number)
      if event.number >= 10, event.number < 15 { stage.agent.publish() }
      return event.number < 15
    }
    #expect(seen == Array(1...15))
    #expect(cursor == "c15")
    #expect(stage.agent.asked.first == #"events c0 ["m"] 3"#)
  }

  @Test func withoutACursorItBeginsNow() throws {
    let stage = try Stage()
    stage.agent.publish(5)
    let client = stage.raw
    client.get("/v1/events/stream")
    #expect(client.read(through: "id: c5\n\n") != nil)
    stage.agent.publish()
    #expect(numbers(client, 1) == [6])
  }

  @Test func aReaderThatComesAgainGoesOnWhereItWas() throws {
    let stage = try Stage { $0.page = 2 }
    stage.agent.publish(9)
    let first = stage.raw
    first.get("/v1/events/stream?after=c0")
    #expect(numbers(first, 4) == [1, 2, 3, 4])
    first.close()
    let second = stage.raw
    second.get("/v1/events/stream?after=c0", "Last-Event-ID: c4\r\n")
    #expect(numbers(second, 5) == [5, 6, 7, 8, 9])
  }

  /// An event that comes after a page was read and before the stream waits.
  @Test func whatComesBetweenAPageAndTheWaitIsNotLost() throws {
    let stage = try Stage()
    stage.agent.publish()
    stage.agent.state.withLock { state in
      state.betweenPages = { agent in
        if agent.state.withLock({ $0.journal.count }) < 20 { agent.publish() }
      }
    }
    let client = stage.raw
    client.get("/v1/events/stream?after=c0")
    #expect(numbers(client, 20) == Array(1...20))
  }

  @Test func aStreamGivesSignsOfLife() throws {
    let stage = try Stage { $0.heartbeat = .milliseconds(20) }
    let client = stage.raw
    client.get("/v1/events/stream")
    for _ in 0..<3 {
      #expect(client.read(through: "\n: \n\n") != nil || client.read(through: ": \n\n") != nil)
    }
    stage.agent.publish()
    #expect(numbers(client, 1) == [1])
  }

  @Test func thereAreOnlySoManyStreams() throws {
    let stage = try Stage { $0.streams = 2 }
    let clients = [stage.raw, stage.raw]
    for client in clients {
      client.get("/v1/events/stream")
      #expect(client.read(through: "id: c0\n\n") != nil)
    }
    let third = stage.raw
    third.get("/v1/events/stream")
    let answer = third.answer()
    #expect(answer?.status == 503)
    #expect(answer?.body.contains("too-many-streams") == true)
    #expect(third.request("GET", "/v1/status")?.status == 200)
    clients[0].close()
    // Its place is free when the server has seen the close, without any event or beat.
    var status: Int?
    let isFree = isSoInTime {
      let client = stage.raw
      client.get("/v1/events/stream")
      status = client.answer()?.status
      return status != 503
    }
    #expect(isFree && status == 200)
  }

  /// A reader that takes nothing: the agent is asked for no more than fits, and the place is taken back.
  @Test func aSlowReaderHoldsLittleAndIsGivenUp() throws {
    let stage = try Stage {
      $0.page = 10
      $0.writing = .milliseconds(100)
    }
    let detail = String(repeating: "x", count: 4_000)
    stage.agent.state.withLock { $0.endless = detail }
    let client = stage.raw
    client.get("/v1/events/stream?after=c0")
    try stage.agent.unsubscribed.waitOrThrow()
    let handedOut = stage.agent.state.withLock { $0.handedOut }
    // The kernel's buffer, what the channel holds before it says that it is full, and some pages: not a megabyte.
    #expect(handedOut * 4_000 < 1 << 20)
    #expect(client.readToEnd().utf8.count < 1 << 20)
  }

  @Test func aFailureInTheMiddleIsTheStreamsLastEvent() throws {
    let stage = try Stage()
    let failure = ControlFailure(.notFound, code: "no-such-mirror", "gone")
    stage.agent.publish()
    #expect(throws: failure) {
      try stage.client.follow(after: "c0") { _ in
        stage.agent.fail(failure)
        stage.agent.publish()
        return true
      }
    }
    try stage.agent.unsubscribed.waitOrThrow()
    #expect(stage.agent.subscribers == 0)
  }

  @Test func aFailureAtTheBeginningIsAnAnswer() throws {
    let stage = try Stage { $0.streams = 1 }
    stage.agent.fail(ControlFailure(.usage, code: "cursor-malformed", "no"))
    for _ in 0..<3 { #expect(stage.raw.request("GET", "/v1/events/stream?after=zz")?.status == 400) }
    #expect(stage.agent.subscribers == 0)
  }

  @Test func whoeverFollowsCanBeEndedFromOutside() throws {
    let stage = try Stage()
    stage.agent.publish()
    let client = stage.client
    let seen = Gate()
    let following = try Aside {
      try client.follow(after: "c0") { _ in
        seen.open()
        return true
      }
    }
    try seen.waitOrThrow()
    client.end()
    #expect(try following.value() == "c1")
  }

  /// Of one that is gone it would be silent. Who named those that are meant is told so when one of them is gone.
  @Test func aStreamOfAllEndsWhenTheyAreOthers() throws {
    let stage = try Stage()
    let (all, named) = (stage.raw, stage.raw)
    all.get("/v1/events/stream")
    #expect(all.read(through: "id: c0\n\n") != nil)
    named.get("/v1/events/stream?mirror=m")
    #expect(named.read(through: "id: c0\n\n") != nil)
    stage.agent.publish()
    #expect(numbers(all, 1) == [1])
    stage.agent.state.withLock { $0.folders = ["other": "/m"] }
    stage.agent.publish()
    #expect(all.readToEnd().hasSuffix("0\r\n\r\n"))
    #expect(numbers(named, 2) == [1, 2])
  }

  @Test func aReaderThatEndsItsInputHasNoStream() throws {
    let stage = try Stage()
    let client = stage.raw
    client.get("/v1/events/stream")
    #expect(client.read(through: "id: c0\n\n") != nil)
    client.endInput()
    #expect(client.readToEnd().hasSuffix("0\r\n\r\n"))
  }
}
