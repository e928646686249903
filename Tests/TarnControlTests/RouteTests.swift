import TarnControl
import TarnCore
import Testing

/// The table of routes, and JSON as it goes over the socket.
@Suite struct RouteTests {
  @Test func thePathsCarryTheVersionAndNoneIsThereTwice() {
    // Prometheus asks for this path unless told otherwise; its formats have versions of their own.
    let others = ControlRoute.allCases.filter { $0 != .metrics }
    #expect(ControlRoute.metrics.rawValue == "/metrics")
    #expect(others.allSatisfy { $0.rawValue.hasPrefix("/v1/") })
    #expect(Set(ControlRoute.allCases.map(\.rawValue)).count == ControlRoute.allCases.count)
    #expect(ControlRoute.allCases.allSatisfy { !$0.methods.isEmpty })
  }

  /// What the table says is taken is what the documents have.
  @Test func theKeysOfABodyAreThoseOfItsDocument() throws {
    var command = ControlCommand(.prioritize, ControlTarget(mirror: "m", path: [0xFF]))
    command.priority = .high
    command.plan = "x"
    command.expected = ControlExpectation()
    command.expected?.feed = "f"
    command.expected?.options = "o"
    command.expected?.adopts = true
    command.expected?.recreates = true
    command.expected?.state = "s"
    #expect(try keys(command) == ControlRoute.command.keys(of: "POST"))
    #expect(try keys(ControlRate(bytesPerSecond: 1)) == ControlRoute.limit.keys(of: "PUT"))
    #expect(ControlRoute.limit.keys(of: "DELETE") == [])
  }

  private func keys(_ value: some Encodable) throws -> [String] {
    let text = String(decoding: try ControlJSON.encode(value), as: UTF8.self)
    let names = text.split(separator: "\"").filter { text.contains("\"\($0)\":") }.map(String.init)
    return names.map { name in
      if ["mirror", "path", "pathBytes"].contains(name) { return "target.\(name)" }
      return ["adopts", "feed", "options", "recreates", "state"].contains(name) ? "expected.\(name)" : name
    }.sorted()
  }

  @Test func keysAreSortedAndTheTextIsOneLine() throws {
    var command = ControlCommand(.sync, ControlTarget(mirror: "a\n/é", path: Array("b".utf8)))
    command.plan = nil
    let text = String(decoding: try ControlJSON.encode(command), as: UTF8.self)
    #expect(text == #"{"target":{"mirror":"a\n/é","path":"b"},"verb":"sync"}"#)
  }

  @Test func whatWasEncodedIsDecoded() throws {
    let keys = ControlRoute.command.keys(of: "POST")
    for verb in ControlCommand.Verb.allCases {
      let command = ControlCommand(verb, ControlTarget(mirror: "m"))
      #expect(
        try ControlJSON.decode(ControlCommand.self, from: ControlJSON.encode(command), taking: keys)
          == command)
    }
  }

  @Test(arguments: [
    (#"{"verb":"sync","target":{"mirror":"m"},"plam":null}"#, "body-key-unknown", "plam"),
    (#"{"verb":"sync","target":{"mirror":"m","folder":"x"}}"#, "body-key-unknown", "target.folder"),
    (#"{"verb":"sync"}"#, "body-malformed", "target"),
    (#"{"verb":"sync","target":{}}"#, "body-malformed", "target.mirror"),
    (#"{"verb":"dance","target":{"mirror":"m"}}"#, "body-malformed", "verb"),
    (#"{"verb":"sync","target":{"mirror":7}}"#, "body-malformed", "target.mirror"),
    (#"{"verb":"sync""#, "body-malformed", "JSON"),
    ("", "body-malformed", "JSON"),
    ("[]", "body-malformed", "JSON"),
    ("null", "body-malformed", "JSON"),
    (#""sync""#, "body-malformed", "JSON"),
    (String(repeating: "[", count: 60_000), "body-malformed", "JSON"),
    (String(repeating: #"{"verb":"#, count: 8_000), "body-malformed", "JSON"),
  ])
  func aBodyThatIsNotUnderstoodIsRefusedWithItsPlace(body: String, code: String, place: String) throws {
    let failure = #expect(throws: ControlFailure.self) {
      try ControlJSON.decode(
        ControlCommand.self, from: Array(body.utf8), taking: ControlRoute.command.keys(of: "POST"))
    }
    #expect(failure?.kind == .usage)
    #expect(failure?.code == code)
    #expect(failure?.message.contains(place) == true, "\(failure?.message ?? "")")
    #expect(failure?.hint?.contains("target.mirror") == true)
  }

  @Test func aClientPassesOverWhatItDoesNotKnow() {
    let text = #"{"schema":"tarn-control/1","message":"m","wasSo":false,"newer":[1]}"#
    #expect(ControlJSON.decode(ControlAnswer.self, from: Array(text.utf8)) == ControlAnswer("m"))
    #expect(ControlJSON.decode(ControlAnswer.self, from: Array("{}".utf8)) == nil)
  }
}
