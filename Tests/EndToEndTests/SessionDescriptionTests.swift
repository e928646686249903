import Foundation
import Testing

/// The answers of a running agent are as packaging/openapi describes them.
@Suite(
  .serialized,
  .enabled(if: Checker.obstacle == nil, "\(Checker.obstacle ?? "")"))
struct SessionDescriptionTests {
  private typealias House = SessionManualTests.House
  private let house: House

  init() throws { house = try House() }

  /// Asks, and keeps what was answered.
  private final class Recorder {
    private let house: House
    private(set) var lines: [String] = []

    init(_ house: House) { self.house = house }

    @discardableResult
    func ask(
      _ method: String, _ target: String, _ body: [String: Any]? = nil, status: Int = 200
    ) throws -> [String: Any] {
      var words = ["-s", "--unix-socket", house.place.path + "/run/tarn.sock", "-X", method]
      if let body {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: body), as: UTF8.self)
        words += ["--data-binary", text]
      }
      words += ["-w", "\n%{http_code}", "http://tarn" + target]
      let outcome = try Program(try #require(Program.find("curl")), words).wait()
      let parts = outcome.output.split(separator: "\n").map(String.init)
      #expect(parts.count == 2 && parts.last == String(status), "\(method) \(target): \(outcome)")
      let answer = try #require(JSON.documents(parts.first ?? "").first)
      let path = String(target.prefix { $0 != "?" })
      try note(method, path, status, answer, request: status == 200 ? body : nil)
      return answer
    }

    func note(
      _ method: String, _ path: String, _ status: Int, _ answer: [String: Any], request: [String: Any]? = nil
    ) throws {
      var line: [String: Any] = ["method": method, "path": path, "status": status, "answer": answer]
      line["request"] = request
      lines.append(String(decoding: try JSONSerialization.data(withJSONObject: line), as: UTF8.self))
    }
  }

  @Test func realAnswersAreAsTheOpenAPIFileSays() throws {
    try house.start()
    let recorder = Recorder(house)
    try makeSessions(recorder)
    try addTasks(recorder)
    try giveOrders(recorder)
    try refuse(recorder)
    try house.place.write(recorder.lines.joined(separator: "\n"), to: "answers")
    let file = SessionManualTests.root.appendingPathComponent("packaging/openapi/tarn-session.yaml").path
    let outcome = try Tool.run("openapi.py", ["check", file, house.place.path + "/answers"])
    #expect(outcome.status == 0, "\(outcome)")
    // What it does not describe is seen.
    try recorder.note("GET", "/v1/sessions", 200, ["schema": "tarn-sessions/1", "sessions": [], "more": 1])
    try house.place.write(recorder.lines.last ?? "", to: "answers")
    #expect(try Tool.run("openapi.py", ["check", file, house.place.path + "/answers"]).status == 1)
  }

  private func makeSessions(_ recorder: Recorder) throws {
    let rule: [String: Any] = [
      "status": [404], "types": ["text/*"], "leastBytes": 1, "mostBytes": 9, "then": "place",
      "to": house.out + "rule/",
    ]
    let all: [String: Any] = [
      "transfers": 3, "wake": ["/nonexistent", "word"], "hook": ["/nonexistent"], "notify": false,
      "holdsOld": true, "limits": ["idle": 5, "whole": 900, "stall": 800], "rules": [rule],
      "headers": ["X-A: b"], "cookies": true, "proxy": "http://127.0.0.1:9",
      "hosts": [
        [
          "host": "h", "ca": "/ca.pem", "pins": ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],
          "credential": "c",
        ]
      ],
      "quota": ["tasks": 50, "bytes": 1 << 30, "kept": 1 << 20, "keptFor": 60],
    ]
    try recorder.ask("PUT", "/v1/session?session=all", all)
    try recorder.ask("PUT", "/v1/session?session=s")
    let other = try recorder.ask("PUT", "/v1/session?session=s", ["transfers": 2, "cookies": true])
    #expect(other["differs"] as? [String] == ["transfers", "cookies"])
    try recorder.ask("PUT", "/v1/session?session=s&update=1", ["transfers": 8])
    try recorder.ask("GET", "/v1/session?session=all")
  }

  private func addTasks(_ recorder: Recorder) throws {
    let url = house.server.url
    let tasks = "/v1/session/tasks?session=s"
    func add(_ name: String, _ more: [String: Any] = [:]) throws {
      try recorder.ask("POST", tasks, ["url": url(name), "to": house.out].merging(more) { $1 })
    }
    try house.server.files.write(Data(repeating: 7, count: 4 << 20), to: "slow/large.bin")
    try add("slow/large.bin")
    try add("away", ["group": "g", "label": "l", "userInfo": "u", "key": "k", "existing": "keep-both"])
    try add("busy")
    try add("nothing")
    try add("private/asia.map")
    try add("europe.map", ["rules": [["then": "hold"]]])
    try add(
      "late",
      [
        "digest": "sha256:" + String(repeating: "0", count: 64), "existing": "replace",
        "makeDirectories": true,
        "expectedBytes": 7, "priority": "low", "headers": ["X-C: d"], "notBefore": "2100-01-01T00:00:00Z",
        "limits": ["idle": 9], "ignoreCache": true, "method": "POST", "body": "text",
      ])
    try add(
      "part",
      [
        "suspended": true,
        "resuming": ["file": "/a", "etag": "\"e\"", "lastModified": "Sat, 28 Nov 2026 16:43:24 GMT"],
      ])
    try waitUntil("one runs, others have ended, and others wait") {
      let page = try recorder.ask("GET", tasks)
      let found = (page["tasks"] as? [[String: Any]] ?? []).compactMap { $0["task"] as? [String: Any] }
      let states = found.compactMap { $0["state"] as? String }
      let received = (page["tasks"] as? [[String: Any]])?.first?["received"] as? Int ?? 0
      return states == [
        "running", "finished", "waiting", "failed", "waiting", "waiting", "waiting", "suspended",
      ]
        && received > 0
    }
    try recorder.ask("GET", tasks + "&after=2&limit=2&state=failed&state=waiting")
  }

  private func giveOrders(_ recorder: Recorder) throws {
    let orders = "/v1/session/order?session=s"
    for order: [String: Any] in [
      ["verb": "suspend", "task": 1], ["verb": "resume", "task": 1],
      ["verb": "prioritize", "task": 1, "priority": "high"], ["verb": "first", "task": 1],
      [
        "verb": "answer", "task": 5, "headers": ["Authorization: Bearer right"], "to": house.out + "b",
        "existing": "replace",
      ],
      ["verb": "answer", "task": 6, "url": house.server.url("europe.map?new")], ["verb": "retry", "task": 4],
      ["verb": "cancel", "task": 1, "keep": true], ["verb": "cancel"],
    ] {
      try recorder.ask("POST", orders, order)
    }
    try house.settle()
    let page = try recorder.ask("GET", "/v1/session/events?session=s&limit=1000")
    let codes = Set((page["events"] as? [[String: Any]] ?? []).compactMap { $0["code"] as? String })
    let expected = [
      "response", "finished", "failed", "cancelled", "waiting", "needs-request", "all-delivered",
      "group-delivered",
    ]
    #expect(codes.isSuperset(of: expected), "\(codes)")
    try recorder.ask("GET", "/v1/session/events?session=s&after=3&limit=1")
    try recorder.ask("GET", "/v1/session?session=s")
    try recorder.ask("GET", "/v1/sessions")
    try recorder.ask("POST", orders, ["verb": "acknowledge", "number": 3])
    try recorder.ask("POST", orders, ["verb": "close"])
  }

  private func refuse(_ recorder: Recorder) throws {
    func fails(_ status: Int, _ method: String, _ target: String, _ body: [String: Any]? = nil) throws {
      try recorder.ask(method, target, body, status: status)
    }
    let request = ["url": "http://h/a", "to": house.out]
    try fails(409, "POST", "/v1/session/tasks?session=s", request)
    try fails(404, "GET", "/v1/session?session=none")
    try fails(404, "GET", "/v1/session/stream?session=none")
    try fails(404, "POST", "/v1/session/order?session=all", ["verb": "cancel", "task": 99])
    try fails(400, "POST", "/v1/session/order?session=all", ["verb": "dance"])
    try fails(400, "POST", "/v1/session/tasks?session=all", ["uri": "http://h/a"])
    try fails(400, "PUT", "/v1/session?session=.x")
    try fails(400, "GET", "/v1/session/tasks?session=all&state=asleep")
    try fails(400, "GET", "/v1/session/events")
    try fails(405, "DELETE", "/v1/session?session=all")
    // With a wake command that is not there.
    try recorder.ask("POST", "/v1/session/tasks?session=all", request.merging(["to": "/nonexistent/"]) { $1 })
    try waitUntil("the wake command was tried") {
      let wake = try recorder.ask("GET", "/v1/session?session=all")["wake"] as? [String: Any]
      return wake?["failures"] as? Int == 1
    }
    try recorder.ask("POST", "/v1/session/order?session=all", ["verb": "forget"])
  }
}

/// The program that compares answers with the file.
private enum Checker {
  /// Why it cannot run; nil when it can.
  static let obstacle: String? = {
    if let obstacle = Tarn.obstacleWithTools { return obstacle }
    guard let python = Program.find("python3"), Program.find("curl") != nil else {
      return "curl is not installed"
    }
    let outcome = try? Program(python, ["-c", "import yaml, jsonschema"]).wait()
    return outcome?.status == 0 ? nil : "python3-yaml and python3-jsonschema are not installed"
  }()
}
