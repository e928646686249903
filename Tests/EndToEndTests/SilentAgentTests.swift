import Foundation
import TestSupport
import Testing

/// A user whom the modes of files bind, as they do not bind root.
private enum Bound {
  static let before: [String] =
    geteuid() == 0
    ? [
      Program.find("setpriv") ?? "/nonexistent/setpriv", "--bounding-set=-dac_override,-dac_read_search",
      "--inh-caps=-dac_override,-dac_read_search",
    ] : []

  static let obstacle: String? = {
    guard let setpriv = before.first else { return nil }
    let outcome = try? Program(setpriv, Array(before.dropFirst()) + ["true"]).wait()
    return outcome?.status == 0 ? nil : "setpriv takes no rights of root's away"
  }()

  static func tarn(_ words: [String], environment: [String: String], in directory: URL) throws -> Outcome {
    let all = before + [Tarn.path] + words
    return try Program(
      all[0], Array(all.dropFirst()), environment: Tarn.environment(environment), in: directory
    ).wait()
  }
}

/// What is said beside an agent that does not answer, that has nothing to tell, or that may not be asked.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class SilentAgentTests: AgentHouse {
  /// Nobody looks at the folder behind a pass: an agent that is held still in the middle of that has not ended it.
  init() throws { try super.init(files: ["f1": "one\n"], options: "watch = false") }

  /// It hangs: the ledgers answer in its place.
  @Test func theLedgersAnswerForAnAgentThatHangs() throws {
    let agent = try start()
    #expect(try tarn("sync", "files").status == 0)
    let watch = try begin("status", "--watch")
    try waitUntil("it is watched") { watch.outputSoFar.contains("agent: process") }
    agent.signal(SIGSTOP)
    defer { agent.signal(SIGCONT) }
    for words in [["status"], ["status", "files"], ["events"]] {
      let outcome = try Tarn.run(words + config, environment: home, in: place.url)
      let isEvents = words == ["events"]
      #expect(outcome.status == (isEvents ? 0 : 69), "\(words): \(outcome)")
      #expect(outcome.errors.contains("does not answer"), "\(words): \(outcome)")
      #expect(outcome.output.contains(isEvents ? "fetched  f1" : "in sync"), "\(words): \(outcome)")
    }
    try waitUntil("the watch says it") { watch.outputSoFar.contains("agent: does not answer; this is what") }
    agent.signal(SIGCONT)
    let before = watch.outputSoFar.utf8.count
    try waitUntil("it is back") {
      String(decoding: watch.outputSoFar.utf8.dropFirst(before), as: UTF8.self).contains("agent: process")
    }
    #expect(!watch.outputSoFar.contains("agent: gone"))
    agent.signal(SIGKILL)
    try waitUntil("it is missed") { watch.outputSoFar.contains("agent: gone since 2") }
    #expect(watch.isRunning)
    watch.signal(SIGINT)
    #expect(try watch.wait().status == 130)
  }

  /// What lies in its socket of somebody who went away is not done when it goes on.
  @Test func anOrderThatWasGivenUpIsNotCarriedOut() throws {
    let agent = try start()
    agent.signal(SIGSTOP)
    let order = try begin("pause", "files")
    // It goes to the socket in one piece; all that is written before are a name and a wake-up, of some bytes.
    try waitUntil("it lies in the socket") { order.written > 100 }
    order.signal(SIGKILL)
    _ = try order.wait()
    agent.signal(SIGCONT)
    let status = try tarn("status", "files")
    #expect(status.status == 0 && !status.output.contains("paused"), "\(status)")
    #expect(!agent.errorsSoFar.contains("paused"), "\(agent.errorsSoFar)")
  }

  /// Of another user's agent, which this user may not ask: once nobody listens at its socket, that is no agent.
  @Test(.enabled(if: Bound.obstacle == nil, "\(Bound.obstacle ?? "")"), arguments: [false, true])
  func aSocketThatMayNotBeWrittenIsNoAgentByItself(isListening: Bool) throws {
    for name in ["empty", "runtime/tarn"] { try place.write("", to: name + "/.keep") }
    try place.write(
      "[mirror.files]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/mine\"\n",
      to: "own/tarn.toml")
    let environment = [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/own/state",
      "RUNTIME_DIRECTORY": place.path + "/own/run", "CONFIGURATION_DIRECTORY": place.path + "/own",
      "XDG_RUNTIME_DIR": place.path + "/runtime",
    ]
    let empty = place.url.appendingPathComponent("empty")
    func run(_ words: String...) throws -> Outcome {
      try Bound.tarn(words, environment: environment, in: empty)
    }
    #expect(try run("sync", "files").status == 0)
    let socket = place.path + "/runtime/tarn/tarn.sock"
    let listener = try isListening ? RawListener(socket) : nil
    if !isListening { RawListener.leave(socket) }
    try #require(chmod(socket, 0) == 0)

    let status = try run("status", "files")
    #expect(status.status == (isListening ? 77 : 0) && status.output.contains(": in sync"), "\(status)")
    #expect(status.errors.contains("may not connect") == isListening, "\(status)")
    let pause = try run("pause", "files")
    #expect(pause.status == (isListening ? 77 : 69), "\(pause)")
    #expect(pause.errors.contains(isListening ? "may not connect" : "no agent answers at"), "\(pause)")
    withExtendedLifetime(listener) {}
  }

  @Test func anAgentWithoutMirrorsIsNoError() throws {
    try settings("[agent]\n")
    try start()
    let status = try tarn("status")
    #expect(status.status == 0 && status.output.contains("agent: process"), "\(status)")
    #expect(status.output.contains("no mirrors") && status.errors.isEmpty, "\(status)")
    let json = try tarn("status", "--json")
    let document = try #require(try JSON.documents(json.output).first)
    #expect(json.status == 0 && (document["mirrors"] as? [Any])?.isEmpty == true, "\(json)")
    #expect(document["agent"] is [String: Any])
  }

  /// The refusal of its pass says the command that mends it, and so does the status from then on.
  @Test func aRefusalKeepsItsHint() throws {
    try place.write("mine\n", to: "files/mine")
    try start()
    let sync = try tarn("sync", "files")
    #expect(sync.status == 64 && sync.errors.contains("is not empty"), "\(sync)")
    let advice = ["sync", "--adopt", "files"] + config
    let command = "tarn " + advice.joined(separator: " ")
    #expect(sync.errors.contains("hint: ") && sync.errors.contains(command), "\(sync)")
    let json = try #require(try JSON.documents(try tarn("sync", "files", "--json").output).last)
    #expect((json["hint"] as? String)?.contains(command) == true, "\(json)")
    let status = try tarn("status", "files")
    #expect(status.output.contains(command), "\(status)")
    #expect(!status.output.contains("next: tarn sync files"), "\(status)")
    for answer in [try tarn("verify", "files"), try tarn("explain", "files", "mine")] {
      #expect(answer.status == 73 && answer.errors.contains(command), "\(answer)")
    }
    let adopted = try Tarn.run(advice, environment: home, in: place.url)
    #expect(adopted.status == 0 && place.text("files/mine") == "mine\n", "\(adopted)")
    #expect(try tarn("sync", "files").status == 0)
    #expect(!(try tarn("status", "files").output.contains("--adopt")))
  }
}
