import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// Every route, and what is refused.
@Suite struct RouteTests {
  private let stage: Stage
  private var agent: FakeAgent { stage.agent }

  init() throws { stage = try Stage() }

  // MARK: - Through the client

  @Test func theStatusIsTheAgents() throws {
    var mirror = StatusDocument(
      name: "iso", feed: "https://u@example.org/x", folder: "/srv/iso", state: "idle")
    mirror.lastFailure = "é\n"
    var document = AgentDocument(version: "9.8", process: 7, started: "s", settingsRead: "r")
    document.restingHosts = [.init(host: "h", until: "u")]
    let status = StatusAnswer(agent: document, mirrors: [mirror])
    agent.state.withLock { $0.status = status }
    let answer = try stage.client.status(mirrors: ["iso", "/srv/a b&c=%é"], problemLimit: 3)
    #expect(answer.agent == document)
    #expect(try ControlJSON.encode(answer) == ControlJSON.encode(status))
    #expect(agent.asked == [#"status ["iso", "/srv/a b&c=%é"] 3"#])
  }

  @Test func eventsComeByPages() throws {
    agent.publish(3)
    let client = stage.client
    let first = try client.events(mirrors: ["m"], limit: 2)
    #expect(first.events.map(\.number) == [1, 2])
    #expect(first.hasMore)
    let second = try client.events(after: first.cursor)
    #expect(second.events == [FakeAgent.event(3)])
    #expect(!second.hasMore)
    #expect(agent.asked == [#"events - ["m"] 2"#, "events c2 [] 100"])
  }

  @Test(arguments: ControlCommand.Verb.allCases)
  func commandsReachTheAgent(verb: ControlCommand.Verb) throws {
    var command = ControlCommand(verb, ControlTarget(mirror: "m", path: Array("a b".utf8)))
    if verb == .prioritize { command.priority = .high }
    if verb == .approve { command.plan = "abc" }
    #expect(try stage.client.perform(command) == ControlAnswer("done", run: 7))
    let more = verb == .prioritize ? " high" : verb == .approve ? " abc" : ""
    #expect(agent.asked == ["\(verb.rawValue) m a b\(more)"])
  }

  @Test func whatAMirrorIsTakenToBeReachesTheAgent() throws {
    var command = ControlCommand(.sync, ControlTarget(mirror: "/m"))
    command.expected = ControlExpectation()
    command.expected?.feed = "https://example.org/x"
    command.expected?.options = "delete=true\nkeep=3"
    command.expected?.adopts = true
    command.expected?.state = "/s"
    #expect(try stage.client.perform(command) == ControlAnswer("done", run: 7))
    #expect(agent.expected == command.expected)
  }

  @Test func reloadAndLimitsReachTheAgent() throws {
    let client = stage.client
    #expect(try client.reload().added == ["new"])
    #expect(try client.limit(ControlRate(bytesPerSecond: 1_000)).wasSo)
    _ = try client.limit(ControlRate(bytesPerSecond: nil))
    _ = try client.limit(nil)
    #expect(agent.asked == ["reload", "limit 1000", "limit none", "limit settings"])
  }

  @Test(arguments: zip(ControlFailure.Kind.allCases, [400, 403, 404, 409, 413, 503, 500, 507]))
  func aFailureOfTheAgentComesAsItIs(kind: ControlFailure.Kind, status: Int) throws {
    let failure = ControlFailure(kind, code: "x-y", "why \u{1F600}", hint: "do this")
    agent.fail(failure)
    #expect(throws: failure) { try stage.client.status() }
    #expect(throws: failure) { try stage.client.perform(ControlCommand(.sync, ControlTarget(mirror: "m"))) }
    #expect(throws: failure) { try stage.client.follow(after: nil) { _ in true } }
    #expect(stage.raw.request("GET", "/v1/status")?.status == status)
  }

  // MARK: - As it goes over the socket

  @Test func anAnswerHasItsFieldsAndSortedKeys() throws {
    let answer = try #require(stage.raw.request("GET", "/v1/status"))
    #expect(answer.status == 200)
    #expect(answer.fields["server"] == "tarn/9.8")
    #expect(answer.fields["content-type"] == "application/json")
    #expect(answer.fields["cache-control"] == "no-store")
    #expect(answer.body == #"{"mirrors":[],"schema":"tarn-status/1"}"#)
  }

  @Test func headHasTheLengthAndNoBody() throws {
    let client = stage.raw
    for target in ["/v1/status", "/v1/events"] {
      let get = try #require(client.request("GET", target))
      let head = try #require(client.request("HEAD", target))
      #expect(head.status == 200)
      #expect(head.fields["content-length"] == String(get.body.utf8.count))
    }
    #expect(client.request("HEAD", "/v1/nothing")?.status == 404)
    #expect(client.request("GET", "/v1/status")?.status == 200)
  }

  @Test func oneConnectionTakesManyRequestsAlsoAtOnce() {
    let client = stage.raw
    for _ in 0..<3 { client.get("/v1/status") }
    for _ in 0..<3 { #expect(client.answer()?.status == 200) }
    client.get("/v1/status", "Connection: close\r\n")
    client.endInput()
    #expect(client.answer()?.status == 200)
    #expect(client.readToEnd() == "")
  }

  @Test func anUnknownPathIsToldWhatThereIs() throws {
    for path in ["/", "/v1", "/v1/status/", "/v2/status", "/v1/STATUS", "/v1/%73tatus", "/v1/nothing"] {
      let answer = try #require(stage.raw.request("GET", path))
      let failure = try #require(ControlJSON.decode(ControlFailure.self, from: Array(answer.body.utf8)))
      #expect(answer.status == 404)
      #expect(failure.code == "no-such-route")
      #expect(failure.hint?.contains("/v1/events/stream") == true)
    }
  }

  @Test(arguments: ControlRoute.allCases)
  func aWrongMethodIsToldWhichOnesThereAre(route: ControlRoute) throws {
    let client = stage.raw
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    where !route.methods.contains(method) {
      let answer = try #require(client.request(method, route.rawValue))
      #expect(answer.status == 405)
      #expect(answer.fields["allow"] == route.methods.joined(separator: ", "))
      if method != "HEAD" { #expect(answer.body.contains(#""code":"method-not-allowed""#)) }
    }
    #expect(agent.asked == [])
  }

  @Test(arguments: [
    ("/v1/status?mirorr=x", "parameter-unknown"), ("/v1/status?problems=1&problems=2", "parameter-twice"),
    ("/v1/status?problems=-1", "parameter-malformed"), ("/v1/status?problems=10001", "parameter-malformed"),
    ("/v1/status?problems=", "parameter-malformed"), ("/v1/events?limit=0", "parameter-malformed"),
    ("/v1/events?limit=1001", "parameter-malformed"), ("/v1/events?limit=1e3", "parameter-malformed"),
    ("/v1/events?limit=99999999999999999999", "parameter-malformed"),
    ("/v1/session/tasks?session=s&limit=1001", "parameter-malformed"),
    ("/v1/events?problems=1", "parameter-unknown"),
    ("/v1/events/stream?limit=1", "parameter-unknown"),
    ("/v1/events/stream?after=a&after=b", "parameter-twice"),
    ("/v1/status?=", "parameter-unknown"),
  ])
  func aParameterThatIsNotUnderstoodIsRefused(target: String, code: String) throws {
    let answer = try #require(stage.raw.request("GET", target))
    #expect(answer.status == 400)
    #expect(answer.body.contains("\"code\":\"\(code)\""), "\(answer.body)")
    #expect(agent.asked == [])
  }

  @Test(arguments: [
    ("POST", "/v1/command", #"{"verb":"sync","target":{"mirror":"m"},"x":1}"#, "body-key-unknown"),
    ("POST", "/v1/command", "{", "body-malformed"), ("POST", "/v1/command", "", "body-malformed"),
    ("POST", "/v1/command", #"{"verb":"prioritize","target":{"mirror":"m"}}"#, "priority-missing"),
    (
      "POST", "/v1/command", #"{"verb":"sync","priority":"low","target":{"mirror":"m"}}"#,
      "priority-unexpected"
    ),
    ("POST", "/v1/command", #"{"verb":"sync","plan":"p","target":{"mirror":"m"}}"#, "plan-unexpected"),
    ("POST", "/v1/command?x=1", "", "parameter-unknown"), ("POST", "/v1/reload", "{}", "body-unexpected"),
    ("PUT", "/v1/limit", #"{"rate":1}"#, "body-key-unknown"), ("PUT", "/v1/limit", "7", "body-malformed"),
    ("PUT", "/v1/limit", #"{"bytesPerSecond":-1}"#, "body-malformed"),
    ("DELETE", "/v1/limit", "{}", "body-unexpected"),
    ("GET", "/v1/status", "{}", "body-unexpected"),
  ])
  func aBodyThatIsNotUnderstoodIsRefused(method: String, target: String, body: String, code: String) throws {
    let client = stage.raw
    let answer = try #require(client.request(method, target, body: body))
    #expect(answer.status == 400)
    #expect(answer.body.contains("\"code\":\"\(code)\""), "\(answer.body)")
    #expect(agent.asked == [])
    #expect(client.request("GET", "/v1/status")?.status == 200)
  }

  @Test func aClientIsToldWhenItAsksForTooMuch() {
    let mirrors = (0..<400).map { "\($0)" + String(repeating: "x", count: 100) }
    let failure = #expect(throws: ControlFailure.self) { try stage.client.status(mirrors: mirrors) }
    #expect(failure?.code == "not-http")
  }

  @Test(arguments: ["NONSENSE\r\n\r\n", "GET /v1/status HTTP/1.1\r\nHost tarn\r\n\r\n", "\0\0\0\0\r\n\r\n"])
  func whatIsNoRequestEndsTheConnection(text: String) {
    let client = stage.raw
    client.write(text)
    let answer = client.answer()
    #expect(answer?.status == 400)
    #expect(answer?.fields["server"] == "tarn/9.8")
    #expect(answer?.body.contains(#""code":"not-http""#) == true)
    #expect(client.readToEnd() == "")
    #expect(stage.raw.request("GET", "/v1/status")?.status == 200)
  }
}
