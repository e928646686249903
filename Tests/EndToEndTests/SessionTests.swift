import Foundation
import Testing

/// Background sessions: handed over to an agent, against nginx.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct SessionTests {
  /// An agent without mirrors, and a folder for what is downloaded.
  final class House: AgentHouse {
    var out: String { place.path + "/out/" }
    /// Where the server and the agent are; nil for the machine's.
    var network: OwnNetwork?
    /// Behind `held/`, in the machine's network.
    let held: HeldServer

    init() throws {
      let held = try HeldServer(.bodies)
      self.held = held
      try super.init(
        locations: """
          location /held/ { \(held.location) }
          location /slow/ { limit_rate_after 5m; limit_rate 30k; }
          location /secret { if ($http_authorization != "Bearer right") { return 401; } try_files /a.txt =404; }
          location /busy { return 503; }
          location /named { add_header Content-Disposition 'attachment; filename="said.txt"'; return 200 "named"; }
          """, files: ["a.txt": "hello\n"])
      try settings("")
      try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
    }

    @discardableResult
    override func start() throws -> Program { try inside { try super.start() } }

    /// Of all files in `out`.
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: out).sorted()) ?? [] }

    /// The partial files of the first task of the session `s`.
    var partials: Int { names.count { $0.wholeMatch(of: /\.tarn-s-[0-9a-f]{6}-1\.part/) != nil } }

    func events(_ session: String = "s") throws -> [[String: Any]] {
      try JSON.documents(try tarn("session", "events", "--json", session).output)
    }

    func codes(_ session: String = "s") throws -> [String] {
      try events(session).compactMap { $0["code"] as? String }
    }

    func show(_ session: String = "s") throws -> (session: [String: Any], tasks: [[String: Any]]) {
      let all = try JSON.documents(try tarn("session", "show", "--json", session).output)
      return (all.first ?? [:], all.dropFirst().compactMap { $0["task"] as? [String: Any] })
    }

    func states(_ session: String = "s") throws -> [String] {
      try show(session).tasks.compactMap { $0["state"] as? String }
    }

    func wait(_ session: String = "s", for code: String) throws {
      try waitUntil("the session tells \(code)") { try codes(session).contains(code) }
    }

    @discardableResult
    func hand(_ words: String...) throws -> Outcome {
      let outcome = try Tarn.run(
        ["get", "--background", "--session", "s", "--to", out] + words + config, environment: home,
        in: place.url)
      #expect(outcome.status == 0, "\(outcome)")
      return outcome
    }
  }

  private let house: House

  init() throws { house = try House() }

  func large(_ size: Int = 8 << 20) throws {
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 >> 12) }
    try house.server.files.write(Data(bytes), to: "held/large.bin")
  }

  // MARK: Damage

  /// The other sessions go on.
  @Test func aSessionWithADamagedLedgerIsListedAndForgotten() throws {
    let agent = try house.start()
    try house.hand(house.server.url("a.txt"))
    try house.wait(for: "all-delivered")
    #expect(try house.tarn("session", "open", "other").status == 0)
    agent.signal(SIGTERM)
    #expect(try agent.wait().status == 0)
    let ledger = house.place.path + "/state/sessions/s/ledger.sqlite"
    #expect(FileManager.default.fileExists(atPath: ledger))
    try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: ledger))
    try house.start()
    let listed = try house.tarn("session", "list")
    #expect(
      listed.status == 0 && listed.output.contains("s: cannot be opened: ")
        && listed.output.contains("to give it up: tarn session forget s")
        && listed.output.contains("other: no task"), "\(listed)")
    let shown = try house.tarn("session", "show", "s")
    #expect(shown.status == 74 && shown.errors.contains("cannot be opened"), "\(shown)")
    #expect(try house.tarn("session", "forget", "s").status == 0)
    #expect(try house.tarn("session", "list").output.contains("s: ") == false)
    #expect(house.names == ["a.txt"], "what is finished stays")
    try house.hand(house.server.url("a.txt"))
    try house.wait(for: "all-delivered")
  }

  // MARK: Waiting

  /// It would wait for days: whoever waits is told what is missing.
  @Test func waitTellsOfQuestions() throws {
    try house.start()
    try house.hand(house.server.url("secret"))
    try house.wait(for: "needs-request")
    let shown = try house.tarn("session", "show", "s")
    #expect(shown.output.contains("next: tarn session answer s 1 --header-file FILE"), "\(shown)")
    let waiting = try house.begin("session", "wait", "s")
    try waitUntil("it is told") { waiting.errorsSoFar.contains("tarn session answer s 1 --header-file FILE") }
    try "Authorization: Bearer right\n".write(
      toFile: house.place.path + "/right", atomically: true, encoding: .utf8)
    #expect(
      try house.tarn("session", "answer", "s", "1", "--header-file", house.place.path + "/right").status == 0)
    let outcome = try waiting.wait()
    #expect(outcome.status == 0 && outcome.errors.components(separatedBy: "waits for an answer").count == 2)
  }

  @Test func anAnswerWithoutWordsGivesNone() throws {
    try house.start()
    try house.hand(house.server.url("secret"))
    try house.wait(for: "needs-request")
    #expect(try house.tarn("session", "answer", "s", "1").errors == "task 1 goes on\n")
  }

  // MARK: Handing over

  @Test func whatIsHandedOverIsDoneWithoutTheProgram() throws {
    try house.start()
    let outcome = try house.hand(house.server.url("a.txt"), house.server.url("named"))
    #expect(outcome.output.contains("session:s/1") && outcome.output.contains("session:s/2"), "\(outcome)")
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["a.txt", "said.txt"])
    let codes = try house.codes()
    #expect(codes.filter { $0 == "finished" }.count == 2 && codes.last == "all-delivered", "\(codes)")
  }

  @Test func followingEndsWithTheSession() throws {
    try house.start()
    try house.hand(house.server.url("a.txt"))
    let reader = try house.begin("session", "events", "--follow", "--json", "s")
    try house.wait(for: "all-delivered")
    #expect(try house.tarn("session", "close", "s").status == 0)
    let last = try #require(try house.events().last?["number"] as? Int)
    #expect(try house.tarn("session", "ack", "s", String(last)).status == 0)
    let end = try reader.wait()
    #expect(end.status == 0 && end.errors.contains("session 's' is over"), "\(end)")
    #expect(end.output.contains("all-delivered"), "\(end)")
  }

  @Test(arguments: ["http://", "http://[::1", "http://h:99999/a"])
  func aURLThatNobodyCanReadIsRefusedAtOnce(_ url: String) throws {
    try house.start()
    for words in [["--background", "--session", "s"], []] {
      let outcome = try Tarn.run(
        ["get", "--to", house.out] + words + [url] + house.config, environment: house.home,
        in: house.place.url)
      #expect(outcome.status == 64 && outcome.errors.contains(url), "\(outcome)")
    }
  }

  @Test func whichTaskIsMeantIsSaid() throws {
    try house.start()
    try house.hand(house.server.url("a.txt"))
    #expect(try house.tarn("session", "wait", "s").status == 0)
    let over = try house.tarn("session", "answer", "s", "1")
    #expect(over.status == 64 && over.errors.contains("task 1 of session 's' is over: finished"), "\(over)")
    let unknown = try house.tarn("session", "answer", "s", "9")
    #expect(unknown.status == 64 && unknown.errors.contains("session 's' has no task 9"), "\(unknown)")
    let mirror = try house.tarn("pause", "s")
    #expect(mirror.status == 64 && mirror.errors.contains("did you mean session:s?"), "\(mirror)")
    let task = try house.tarn("cancel", "s/1")
    #expect(task.status == 64 && task.errors.contains("did you mean session:s/1?"), "\(task)")
    // A folder of that name is no mirror.
    for folder in ["s", "other"] { try house.place.write("", to: "\(folder)/notes") }
    let both = try house.tarn("pause", "s")
    #expect(both.status == 64 && both.errors.contains("did you mean session:s?"), "\(both)")
    let other = try house.tarn("pause", "other")
    #expect(other.status == 64 && other.errors.contains("hint: no mirror is there"), "\(other)")
  }

  /// The command ends before the download begins.
  @Test func aFolderThatIsMissingIsToldAtOnce() throws {
    try house.start()
    let url = house.server.url("a.txt")
    let handed = try house.tarn("get", "-b", "--session", "s", "--to", house.place.path + "/none/", url)
    #expect(handed.status == 0 && handed.errors.contains("-p creates missing folders"), "\(handed)")
    let made = try house.tarn("get", "-b", "-p", "--session", "s", "--to", house.place.path + "/new/", url)
    #expect(made.status == 0 && made.errors.hasPrefix("next: tarn session wait s --config "), "\(made)")
    #expect(made.errors.split(separator: "\n").count == 1, "\(made)")
    for option in ["-q", "--json"] {
      let handed = try house.tarn("get", "-b", "-p", option, "--session", "s", "--to", house.out, url)
      #expect(handed.status == 0 && handed.errors.isEmpty, "\(handed)")
    }
  }

  /// A pipe is read, and what goes is what the file does not name.
  @Test func settingsMayComeByAPipe() throws {
    try house.start()
    let line = "echo '{\"transfers\":2}' | \"$0\" session \"$@\" --settings /dev/stdin s"
    for verb in ["open", "set"] {
      let outcome = try Program(
        "/bin/sh", ["-c", line, Tarn.path, verb] + house.config,
        environment: Tarn.environment(house.home), in: house.place.url
      ).wait()
      #expect(outcome.status == 0, "\(outcome)")
    }
    let settings = try house.show().session["settings"] as? [String: Any]
    #expect(settings?["transfers"] as? Int == 2)
    let whole = try house.tarn("session", "show", "--json", "s").output
    try house.place.write(whole, to: "whole.json")
    let refused = try house.tarn("session", "set", "--settings", house.place.path + "/whole.json", "s")
    #expect(refused.status == 78 && refused.errors.contains("under 'settings'"), "\(refused)")
    try house.place.write("{\"transfers\":99}", to: "much.json")
    let much = try house.tarn("session", "set", "--settings", house.place.path + "/much.json", "s")
    #expect(much.status == 78 && much.errors.contains("much.json: "), "\(much)")
  }

  @Test func withoutAnAgentItIsRefused() throws {
    let outcome = try house.tarn("get", "--background", house.server.url("a.txt"))
    #expect(outcome.status == 69 && outcome.errors.contains("no agent answers"), "\(outcome)")
  }

  @Test func aTaskThatIsThereIsNotAddedAgain() throws {
    try large()
    try house.start()
    try house.hand(house.server.url("held/large.bin"))
    let outcome = try house.hand(house.server.url("held/large.bin"))
    #expect(outcome.output.contains("session:s/1") && outcome.output.contains("was there"), "\(outcome)")
    #expect(try house.show().tasks.count == 1)
  }

  // MARK: The agent's own ends

  /// What was at work goes on with the next agent, where it ended.
  @Test(arguments: [SIGKILL, SIGTERM]) func theNextAgentGoesOn(signal: Int32) throws {
    try large()
    let first = try house.start()
    try house.hand(house.server.url("held/large.bin"), house.server.url("a.txt"))
    try waitUntil("some of it is written") { first.written > 3 << 20 }
    first.signal(signal)
    _ = try first.wait()
    #expect(!house.names.contains("large.bin"))
    house.held.open()
    let requests = try house.server.requests {
      try house.start()
      #expect(try house.tarn("session", "wait", "s").status == 0)
    }
    #expect(requests.filter { $0.uri == "/held/large.bin" }.map(\.status) == ["206"], "\(requests)")
    #expect(house.names == ["a.txt", "large.bin"])
    let events = try house.events()
    let numbers = events.compactMap { $0["number"] as? Int }
    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    let finished = events.filter { $0["code"] as? String == "finished" }.compactMap { $0["task"] as? Int }
    #expect(Set(finished) == [1, 2] && finished.count == 2, "\(events)")
    #expect(events.last?["code"] as? String == "all-delivered")
  }

  // MARK: Answers

  @Test func whatTheServerRefusesGoesOnWithAnAnswer() throws {
    try house.start()
    try house.hand(house.server.url("secret"))
    try house.wait(for: "needs-request")
    #expect(try house.states() == ["waiting"] && house.codes().contains("all-delivered") == false)
    try house.place.write("Authorization: Bearer right\n", to: "token")
    #expect(try house.tarn("session", "answer", "s", "1", "--header-file", "token").status == 0)
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.place.text("out/secret") == "hello\n")
  }

  @Test func anotherURLGoesOnWithWhatIsThere() throws {
    try large()
    let agent = try house.start()
    try house.hand(house.server.url("held/large.bin?signature=1"))
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    #expect(try house.tarn("pause", "session:s/1").status == 0)
    try waitUntil("it is suspended") { try house.states() == ["suspended"] }
    house.held.open()
    let requests = try house.server.requests { () throws in
      let answer = try house.tarn(
        "session", "answer", "s", "1", "--url", house.server.url("held/large.bin?signature=2"))
      #expect(answer.status == 0)
      _ = try house.tarn("resume", "session:s/1")
      let waited = try house.tarn("session", "wait", "s")
      #expect(waited.status == 0)
    }
    #expect(
      requests.map { "\($0.status) \($0.uri)" }.last == "206 /held/large.bin?signature=2", "\(requests)")
    // It is known by what it was added with.
    #expect(try house.hand(house.server.url("held/large.bin?signature=1")).output.contains("was there"))
  }

  // MARK: Turns

  /// With one at a time the next begins when the one before has ended, in the order of adding and of priorities.
  @Test func oneAtATimeInOrder() throws {
    for name in ["b", "c", "d"] { try house.server.files.write(name, to: name) }
    try house.start()
    _ = try house.tarn("session", "open", "-N", "1", "s")
    let (out, server) = (house.out, house.server)
    try large()
    try house.hand(server.url("held/large.bin"))
    try house.hand("--priority", "low", server.url("b"))
    try house.hand(server.url("c"))
    try house.hand("--priority", "high", server.url("d"))
    house.held.open()
    #expect(try house.tarn("session", "wait", "s").status == 0)
    let finished = try house.events().filter { $0["code"] as? String == "finished" }
    #expect(finished.compactMap { $0["path"] as? String } == ["large.bin", "d", "c", "b"].map { out + $0 })
  }

  @Test func neverMoreThanSoMany() throws {
    for number in 0..<24 {
      try house.server.files.write(String(repeating: "x", count: 20_000), to: "held/\(number)")
    }
    try house.start()
    _ = try house.tarn("session", "open", "-N", "3", "s")
    let list = (0..<24).map { house.server.url("held/\($0)") }.joined(separator: "\n")
    try house.place.write(list, to: "list.txt")
    try house.hand("-i", "list.txt")
    for _ in 0..<8 {
      try house.held.wait(for: 3)
      house.held.settle()
      #expect(house.held.letGo() == 3)
    }
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names.count == 24)
  }

  // MARK: Orders

  /// The transfer is still stopping when it is wanted again.
  @Test func whatIsPausedAndResumedAtOnceGoesOn() throws {
    try large()
    let agent = try house.start()
    try house.hand(house.server.url("held/large.bin"))
    try waitUntil("some of it is written") { agent.written > 1 << 20 }
    for _ in 0..<3 {
      #expect(try house.tarn("pause", "session:s").status == 0)
      #expect(try house.tarn("resume", "session:s").status == 0)
    }
    house.held.open()
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["large.bin"])
  }

  @Test func aTaskIsSuspendedAndResumedAndCancelled() throws {
    try large()
    let agent = try house.start()
    try house.hand(house.server.url("held/large.bin"))
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    #expect(try house.tarn("pause", "session:s/1").status == 0)
    try waitUntil("it is suspended") { try house.states() == ["suspended"] }
    #expect(house.partials == 1 && house.names.count == 1, "\(house.names)")
    // The server has told the size, and what is kept is known.
    let shown = try house.tarn("session", "show", "s", "--json").output
    #expect(shown.contains("\"expected\"") && shown.contains("\"received\""), "\(shown)")
    let requests = try house.server.requests {
      #expect(try house.tarn("resume", "session:s").status == 0)
      try waitUntil("it goes on") { try house.states() == ["running"] }
      try waitUntil("the server has heard of it") { try house.codes().filter { $0 == "response" }.count == 2 }
      #expect(try house.tarn("cancel", "session:s/1").status == 0)
      try waitUntil("it is cancelled") { try house.states() == ["cancelled"] }
    }
    #expect(requests.map(\.status) == ["206"], "\(requests)")
    #expect(house.names.isEmpty)
    #expect(try house.codes().suffix(2) == ["cancelled", "all-delivered"])
    // What is gone already is no error, and is said.
    let again = try house.tarn("cancel", "session:s/1")
    #expect(again.status == 0 && again.output.contains("nothing had to be changed"), "\(again)")
    house.held.open()
    #expect(try house.tarn("retry", "session:s/1").status == 0)
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["large.bin"])
  }

  /// Nothing is waited for that waits for a person.
  @Test func waitingEndsWhereTheRestIsSuspended() throws {
    try large()
    let agent = try house.start()
    try house.hand(house.server.url("held/large.bin"))
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    let waiting = try house.begin("session", "wait", "s")
    #expect(try house.tarn("pause", "session:s/1").status == 0)
    let outcome = try waiting.wait()
    #expect(outcome.status == 3 && outcome.output.contains("1 suspended"), "\(outcome)")
    #expect(outcome.errors.contains("tarn resume session:s"), "\(outcome)")
    let task = try JSON.documents(try house.tarn("session", "show", "--json", "s").output).last
    #expect(task?["received"] as? Int ?? 0 > 1 << 20)
  }

  @Test func aClosedSessionTakesNoMore() throws {
    try house.start()
    try house.hand(house.server.url("a.txt"))
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(try house.tarn("session", "close", "s").status == 0)
    let refused = try house.tarn("get", "--background", "--session", "s", house.server.url("named"))
    #expect(refused.status != 0 && refused.errors.contains("takes no more tasks"), "\(refused)")
    #expect(try house.tarn("session", "ack", "s", "\(Int64.max)").status == 0)
    try waitUntil("it is gone") {
      try house.tarn("session", "list", "--json").output.contains("\"sessions\":[]")
    }
    #expect(house.names == ["a.txt"])
  }

  @Test func aForgottenSessionLeavesFinishedFilesOnly() throws {
    try large()
    let agent = try house.start()
    try house.hand(house.server.url("a.txt"), house.server.url("held/large.bin"))
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    #expect(try house.tarn("session", "forget", "s").status == 0)
    #expect(house.names == ["a.txt"])
    #expect(try house.tarn("session", "show", "s").errors.contains("there is no session"))
  }

  // MARK: Waking

  /// Where somebody reads, nobody is woken; when that one is gone, somebody is.
  @Test func whoReadsIsNotWoken() throws {
    let script = try house.place.write(
      "#!/bin/sh\necho $TARN_EVENT >> '\(house.place.path)/woken'\n", to: "wake.sh")
    chmod(script.path, 0o755)
    try house.start()
    _ = try house.tarn("session", "open", "s")
    let reader = try house.begin("session", "events", "--follow", "--json", "s")
    func deliver(_ name: String, _ times: Int) throws {
      try house.hand(house.server.url(name))
      try waitUntil("it has heard of \(name)") {
        reader.outputSoFar.components(separatedBy: "\"all-delivered\"").count > times
      }
    }
    try deliver("a.txt", 1)
    #expect(try house.tarn("session", "ack", "s", "\(Int64.max)").status == 0)
    #expect(try house.tarn("session", "set", "s", "--wake", script.path).status == 0)
    try deliver("named", 2)
    // When its end is told, a command for the one before has been begun.
    try deliver("nothing", 3)
    #expect(try house.show().session["wake"] == nil && house.place.text("woken") == nil)
    // The first of all that are not acknowledged, though it would wake nobody.
    let oldest = try #require(try house.events().first)
    let first = try #require(oldest["number"])
    #expect(oldest["code"] as? String == "response")
    reader.signal(SIGKILL)
    _ = try reader.wait()
    try waitUntil("somebody is woken") { house.place.text("woken")?.hasSuffix("\n") == true }
    #expect(house.place.text("woken") == "\(first)\n")
    _ = try house.tarn("session", "ack", "s", "\(Int64.max)")
  }

  @Test func aProgramIsWokenUntilItAcknowledges() throws {
    let script = try house.place.write(
      """
      #!/bin/sh
      echo "$TARN_SESSION $TARN_EVENT $TARN_REASON" >> '\(house.place.path)/woken'
      """, to: "wake.sh")
    chmod(script.path, 0o755)
    try house.start()
    _ = try house.tarn("session", "open", "s", "--wake", script.path)
    try house.hand(house.server.url("a.txt"))
    try waitUntil("it was woken") { house.place.text("woken")?.contains("\n") == true }
    #expect(
      house.place.text("woken")?.hasPrefix("s 1 finished") == true, "\(house.place.text("woken") ?? "")")
    // It acknowledged nothing: once more, after a while.
    try waitUntil("it was woken again") { house.place.text("woken")?.split(separator: "\n").count ?? 0 > 1 }
    #expect(try house.tarn("session", "ack", "s", "\(Int64.max)").status == 0)
  }

  @Test func aMissingWakeCommandIsShown() throws {
    try house.start()
    _ = try house.tarn("session", "open", "s", "--wake", house.place.path + "/nothing")
    try house.hand(house.server.url("a.txt"))
    try waitUntil("that is shown") {
      try house.tarn("session", "list").output.contains("cannot be run: No such file")
    }
    for words in [["status"], ["status", "--json"]] {
      let outcome = try Tarn.run(words + house.config, environment: house.home, in: house.place.url)
      #expect(outcome.output.contains("the wake command of session s ran"), "\(outcome)")
    }
    #expect(house.names == ["a.txt"])
  }

  /// Not even root is served by another user's agent; each is told how to start one of their own.
  @Test(.enabled(if: hasOthers, "only root can be another user, and only of a program that all may run"))
  func anotherUserIsToldToStartAnAgentOfTheirOwn() throws {
    for name in ["", "/home", "/tarn.toml"] { chown(house.place.path + name, 65_534, 65_534) }
    let agent = try Program(
      "/usr/bin/env", Self.asUser(65_534) + ["agent"] + house.config,
      environment: Tarn.environment(house.home), in: house.place.url)
    house.agent = agent
    try waitUntil("it answers") { agent.errorsSoFar.contains("answers at") }
    for words in [
      ["session", "list"], ["get", "--background", "http://127.0.0.1:9/a"], ["session", "open", "s"],
    ] {
      for user in [0, 65_533] as [uid_t] {
        let refused = try Self.asUser(user, words + house.config, house.home)
        #expect(refused.status == 77 && refused.errors.contains("systemctl --user start tarn"), "\(refused)")
      }
      let own = try Self.asUser(65_534, words + house.config, house.home)
      #expect(own.status == 0, "\(own)")
    }
  }

  private static let hasOthers =
    getuid() == 0 && Program.find("setpriv") != nil && (try? asUser(65_533, ["--version"]).status) == 0

  private static func asUser(_ user: uid_t) -> [String] {
    ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", Tarn.path]
  }

  private static func asUser(
    _ user: uid_t, _ words: [String], _ variables: [String: String] = [:]
  ) throws -> Outcome {
    try Program(
      "/usr/bin/env", asUser(user) + words, environment: Tarn.environment(variables),
      in: URL(fileURLWithPath: "/")
    ).wait()
  }

  /// The socket's form, as curl has it.
  @Test(
    .enabled(
      if: Tarn.obstacleWithTools == nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
  func curlIsEnough() throws {
    try house.start()
    func curl(_ words: String...) throws -> [String: Any] {
      let outcome = try Program(
        "/usr/bin/curl", ["-s", "--unix-socket", house.place.path + "/run/tarn.sock"] + words
      ).wait()
      #expect(outcome.status == 0, "\(outcome)")
      return try JSON.documents(outcome.output).first ?? [:]
    }
    #expect(try curl("-X", "PUT", "http://tarn/v1/session?session=c")["id"] as? String == "c")
    let body = "{\"url\":\"\(house.server.url("a.txt"))\",\"to\":\"\(house.out)\",\"key\":\"k\"}\n"
    for wasThere in [false, true] {
      let added = try curl("--data-binary", body, "http://tarn/v1/session/tasks?session=c")
      let tasks = added["tasks"] as? [[String: Any]]
      #expect(tasks?.first?["number"] as? Int == 1 && tasks?.first?["wasThere"] as? Bool == wasThere)
    }
    try house.wait("c", for: "all-delivered")
    let acknowledgements: [(number: Int, code: String?)] = [(9, "no-such-event"), (3, nil)]
    for (number, code) in acknowledgements {
      let order = "{\"verb\":\"acknowledge\",\"number\":\(number)}"
      let answer = try curl("--data-binary", order, "http://tarn/v1/session/order?session=c")
      #expect(answer["code"] as? String == code && answer["message"] != nil)
    }
    let refused = try curl(
      "--data-binary", "{\"url\":\"ftp://h/a\",\"to\":\"/x\"}", "http://tarn/v1/session/tasks?session=c")
    #expect(refused["code"] as? String == "url-refused")
    let unknown = try curl("--data-binary", "{\"uri\":\"x\"}", "http://tarn/v1/session/tasks?session=c")
    #expect(unknown["code"] as? String == "body-key-unknown")
  }

  @Test func noDestinationLiesInAMirror() throws {
    try house.start()
    #expect(try Tarn.sync(house.server.url("SHA256SUMS"), house.place.path + "/mirror").status == 0)
    let refused = try house.tarn(
      "get", "--background", house.server.url("a.txt"), "--to", house.place.path + "/mirror/x/")
    #expect(refused.status != 0 && refused.errors.contains("lies in the mirror"), "\(refused)")
    let several = try house.tarn(
      "get", "--background", house.server.url("a.txt"), house.server.url("b.txt"), "--to",
      house.place.path + "/mirror/")
    #expect(several.status == 73 && several.errors.contains("lies in the mirror"), "\(several)")
    try house.hand(house.server.url("busy"))
    let moved = try house.tarn("session", "answer", "s", "1", "--to", house.place.path + "/mirror/")
    #expect(moved.status == 73 && moved.errors.contains("lies in the mirror"), "\(moved)")
    #expect(!several.errors.contains("line"), "\(several)")
  }

  /// Not through a link, and not by a rule.
  @Test func noWayLeadsIntoAMirror() throws {
    try house.start()
    #expect(try Tarn.sync(house.server.url("SHA256SUMS"), house.place.path + "/mirror").status == 0)
    try FileManager.default.createDirectory(
      atPath: house.place.path + "/mirror/sub", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: house.out + "link", withDestinationPath: house.place.path + "/mirror/sub")
    let linked = try house.tarn("get", "--background", house.server.url("a.txt"), "--to", house.out + "link/")
    #expect(linked.status == 73 && linked.errors.contains("lies in the mirror"), "\(linked)")
    try house.place.write(
      "{\"rules\":[{\"then\":\"place\",\"to\":\"\(house.place.path)/mirror/\"}]}", to: "rules.json")
    let ruled = try house.tarn("session", "open", "s", "--settings", "rules.json")
    #expect(ruled.status == 73 && ruled.errors.contains("lies in the mirror"), "\(ruled)")
  }

  /// What may be over in a while is waited for.
  @Test func aBusyServerIsAskedAgain() throws {
    try house.start()
    try house.hand(house.server.url("busy"))
    try house.wait(for: "waiting")
    let task = try house.show().tasks.first
    #expect(task?["state"] as? String == "waiting" && task?["code"] as? String == "http-503")
    #expect(task?["nextAttempt"] != nil)
  }
}
