import Foundation
import Testing

/// `[hook.NAME]` under a real agent, with a real server.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class HookTests: AgentHouse {
  private let receiver: HookServer
  private static let key = "hunter2-key"
  private static let path = "hunter2-path"

  init() throws {
    receiver = try HookServer()
    try super.init(files: ["one": "one\n"])
  }

  /// The mirror, hooks, and files of secrets for them.
  private func hooks(_ text: String) throws {
    try place.write("\(Self.key)\n", to: "secret/key")
    try place.write("\(receiver.url(Self.path))\n", to: "secret/url")
    try place.write("Authorization: Bearer hunter2-token\n", to: "secret/headers")
    for name in ["key", "url", "headers"] {
      chmod(place.path + "/secret/\(name)", 0o600)
    }
    try settings(
      """
      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/files"
      retries = 0
      \(text)
      """)
  }

  private func secret(_ name: String) -> String { "{ file = \"\(place.path)/secret/\(name)\" }" }

  private func sync() throws -> Int32 { try tarn("sync", "files").status }

  private func fail() throws {
    if server.files.exists("SHA256SUMS") { try server.files.remove("SHA256SUMS") }
    #expect(try sync() == 66)
  }

  private func mend() throws {
    try Feeds.publish(["one": "one\n"], in: server.files)
    #expect(try sync() == 0)
  }

  private func statuses() throws -> [String: [String: Any]] {
    let status = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    let hooks = (status["agent"] as? [String: Any])?["hooks"] as? [[String: Any]] ?? []
    return Dictionary(uniqueKeysWithValues: hooks.map { ($0["name"] as? String ?? "", $0) })
  }

  private func waitUntilAllIsTold() throws {
    try waitUntil("all is told") { try self.statuses().values.allSatisfy { $0["waiting"] as? Int == 0 } }
  }

  private func end() throws -> String {
    let agent = try #require(agent)
    agent.signal(SIGTERM)
    return try agent.wait().errors
  }

  /// By another program than Tarn: the key's file, without its line's end, signs the body.
  private func signature(of body: Data) throws -> String {
    try place.write(String(decoding: body, as: UTF8.self), to: "body")
    let openssl = try #require(Program.find("openssl"))
    let outcome = try Program(openssl, ["dgst", "-sha256", "-hmac", Self.key, "-r", place.path + "/body"])
      .wait()
    return "sha256=" + (outcome.output.split(separator: " ").first.map(String.init) ?? "")
  }

  /// One of each, though passes fail again and again, and an agent that comes later knows what was told.
  @Test func aFailureAndARecoveryAreToldOnceEach() throws {
    try hooks(
      """
      [hook.chat]
      webhook = \(secret("url"))
      secret = \(secret("key"))
      header-file = \(secret("headers"))
      [hook.tell]
      command = ["/bin/sh", "-c", 'cat >> "$HOME/told"; echo "$TARN_EVENT $TARN_CODE" >> "$HOME/events"']
      """)
    try start()
    #expect(try sync() == 0)
    for _ in 0..<3 { try fail() }
    try waitUntil("the failure is told") { self.receiver.requests.count == 1 }
    let restarted = try end()
    try start()
    try fail()
    try mend()
    #expect(try sync() == 0)
    try waitUntilAllIsTold()
    let requests = receiver.requests
    #expect(requests.map(\.event) == ["failing", "recovered"] && requests.map(\.method) == ["POST", "POST"])
    for request in requests {
      #expect(request.target == "/\(Self.path)" && request.headers["content-type"] == "application/json")
      #expect(request.headers["authorization"] == "Bearer hunter2-token")
      #expect(try request.headers["x-hub-signature-256"] == signature(of: request.body))
      #expect(request.headers["x-tarn-delivery"] == request.document["id"] as? String)
    }
    let document = requests[0].document
    #expect(document["schema"] as? String == "tarn-hook/1" && document["mirror"] as? String == "files")
    #expect(document["state"] as? String == "failing" && document["before"] as? String == "good")
    #expect(document["code"] as? String == "http-404" && document["exitStatus"] as? Int == 66)
    #expect(place.text("home/events") == "failing http-404\nrecovered in-sync\n")
    #expect(place.text("home/told")?.contains("\"event\":\"recovered\"") == true)
    // A secret is nowhere but in its file and on its way.
    var seen = [restarted, try end()]
    seen += [try tarn("config", "show").output, try tarn("config", "check").output]
    seen += ["agent", "hooks.json"].compactMap { place.text("state/" + $0) }
    #expect(!seen.joined().contains("hunter2"), "\(seen)")
    #expect(place.text("state/hooks.json") == "[]\n")
  }

  /// As healthchecks.io has it: each pass begins and ends under one id.
  /// Who was told of a failure is told of its end, also where another folder mended it.
  @Test(arguments: [true, false]) func anotherFolderIsARecoveryAsWell(reloads: Bool) throws {
    try place.write("in the way\n", to: "files")
    try hooks(
      """
      [hook.tell]
      command = ["/bin/sh", "-c", 'echo "$TARN_EVENT" >> "$HOME/events"']
      """)
    try start()
    #expect(try sync() != 0)
    try waitUntil("the failure is told") { self.place.text("home/events") == "failing\n" }
    if !reloads { _ = try end() }
    let text = try #require(place.text("tarn.toml"))
    try settings(text.replacing("\(place.path)/files\"", with: "\(place.path)/elsewhere\""))
    if reloads {
      #expect(try tarn("reload").status == 0)
    } else {
      try start()
    }
    #expect(try sync() == 0)
    try waitUntilAllIsTold()
    #expect(place.text("home/events") == "failing\nrecovered\n")
  }

  @Test func aPingTellsPassesInOrder() throws {
    try hooks("[hook.monitor]\nping = \(secret("url"))\n")
    try start()
    #expect(try sync() == 0)
    try fail()
    try Feeds.publish(["one": "one\n", "gone": "x"], in: server.files)
    try server.files.remove("gone")
    #expect(try sync() == 3)
    try mend()
    try waitUntilAllIsTold()
    let requests = receiver.requests
    let parts = requests.map { $0.target.split(separator: "?").map(String.init) }
    let front = "/\(Self.path)"
    #expect(
      parts.map { $0[0] } == [
        front + "/start", front, front + "/start", front + "/fail", front + "/start", front + "/3",
        front + "/start", front,
      ], "\(parts)")
    let rids = parts.map { $0[1] }
    for pass in 0..<4 { #expect(rids[2 * pass] == rids[2 * pass + 1] && rids[2 * pass].hasPrefix("rid=")) }
    #expect(Set(rids).count == 4 && rids.allSatisfy { UUID(uuidString: String($0.dropFirst(4))) != nil })
  }

  /// Led on by another redirect than 307 and 308, the event would not come.
  @Test(arguments: [301, 302, 303, 307, 308]) func aRedirectThatDropsTheEventIsAFailure(status: Int) throws {
    receiver.answer(status, 200)
    try hooks("[hook.chat]\nwebhook = \(secret("url"))\n")
    try start()
    try fail()
    let repeats = status > 306
    try waitUntil("it is told") {
      try self.statuses()["chat"]?["waiting"] as? Int == 0
        && self.receiver.requests.count == (repeats ? 2 : 1)
    }
    let requests = receiver.requests
    #expect(requests.map(\.method) == (repeats ? ["POST", "POST"] : ["POST"]))
    #expect(requests.map(\.target) == ["/\(Self.path)"] + (repeats ? ["/elsewhere"] : []))
    #expect(requests.allSatisfy { $0.event == "failing" })
    let state = try statuses()["chat"]?["state"] as? String
    #expect(state == (repeats ? "good" : "failing"))
    let text = try tarn("status").output
    let why = "the answer was HTTP \(status), a redirect that drops the event: give the final URL"
    #expect(text.contains(why) == !repeats, "\(text)")
  }

  /// 500 and silence are tried again; the status warns meanwhile, and no pass waits.
  @Test func aHookThatFailsIsAWarningAndTriedAgain() throws {
    receiver.answer(500)
    try hooks(
      """
      [hook.chat]
      webhook = "\(receiver.url("chat"))"
      timeout = "10s"
      [hook.bad]
      command = ["/bin/sh", "-c", "exit 7"]
      retries = 0
      [hook.slow]
      command = ["/bin/sleep", "600"]
      timeout = "1h"
      """)
    try start()
    try fail()
    try waitUntil("the warnings") {
      let statuses = try self.statuses()
      return ["chat", "bad"].allSatisfy { statuses[$0]?["state"] as? String == "failing" }
    }
    let text = try tarn("status").output
    #expect(text.contains("hook: chat: fails since") && text.contains("the answer was HTTP 500"), "\(text)")
    #expect(text.contains("hook: bad: fails since") && text.contains("it ended with status 7"))
    let silent = receiver.requests.count
    receiver.answer(HookServer.silence, 200)
    // With a hook at work that would take ten minutes.
    try mend()
    // The pauses between attempts grow.
    try waitUntil(limit: 300, "it is told after silence") {
      self.receiver.requests.count > silent + 1 && self.receiver.requests.last?.event == "recovered"
    }
    try waitUntil("it is well again") { try self.statuses()["chat"]?["state"] as? String == "good" }
    let requests = receiver.requests
    #expect(requests.dropLast().allSatisfy { $0.event == "failing" } && requests.count >= 4, "\(requests)")
    #expect(Set(requests.dropLast().map { $0.headers["x-tarn-delivery"] }).count == 1, "the same event")
    let log = try end()
    #expect(log.contains("hook chat: the answer was HTTP 500; trying again in"), "\(log)")
    #expect(log.contains("notice: hook chat: told"), "\(log)")
  }
}
