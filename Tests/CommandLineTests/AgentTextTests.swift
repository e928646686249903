import TarnCore
import TarnEngine
import Testing

@testable import TarnControl
@testable import tarn

/// What is said of a running agent.
@Suite struct AgentTextTests {
  private func hostLine(_ seconds: Int64, asked: Bool?, _ mirrors: [String]?) -> String? {
    var agent = AgentDocument(version: "1", process: 7, started: Samples.now.rfc3339, settingsRead: "")
    var host = AgentDocument.RestingHost(
      host: "http://h:80", until: Samples.now.adding(seconds: seconds).rfc3339)
    (host.asked, host.mirrors) = (asked, mirrors)
    agent.restingHosts = [host]
    return AgentText.lines(agent, now: Samples.now, style: Style(isOn: false), check: "c").last
  }

  /// A host that asks for a pause does answer, and others may be served meanwhile.
  @Test func whyAHostRestsAndForWhom() {
    let until = "until 2026-11-21T12:00:30Z"
    #expect(hostLine(30, asked: true, ["a"]) == "host: http://h:80 asked to be left alone \(until) (a)")
    #expect(
      hostLine(30, asked: false, ["a", "b"])
        == "host: http://h:80 failed again and again, and is left alone by a, b \(until); other mirrors still ask it"
    )
    #expect(hostLine(30, asked: nil, nil) == "host: http://h:80 is left alone \(until)")
  }

  /// Who asks about one mirror is told what keeps that one waiting.
  @Test func theHostsOfOtherMirrorsAreNotToldBesideOne() {
    var agent = AgentDocument(version: "1", process: 7, started: Samples.now.rfc3339, settingsRead: "")
    agent.restingHosts = [["a"], ["b", "c"], nil].map { mirrors in
      var host = AgentDocument.RestingHost(host: mirrors?[0] ?? "old", until: Samples.now.rfc3339)
      host.mirrors = mirrors
      return host
    }
    func hosts(_ mirrors: [String]?) -> [String] {
      AgentText.lines(agent, of: mirrors, now: Samples.now, style: Style(isOn: false), check: "c").dropFirst()
        .compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) }
    }
    #expect(hosts(["c"]) == ["b", "old"])
    #expect(hosts([]) == ["old"])
    #expect(hosts(nil) == ["a", "b", "old"])
  }

  /// No host is left alone for longer than an hour; what it asked for may be more.
  @Test func whatAHostAskedForIsToldWhole() {
    var agent = AgentDocument(version: "1", process: 7, started: Samples.now.rfc3339, settingsRead: "")
    var host = AgentDocument.RestingHost(
      host: "http://h:80", until: Samples.now.adding(seconds: 3600).rfc3339)
    (host.asked, host.askedUntil) = (true, Samples.now.adding(seconds: 7200).rfc3339)
    agent.restingHosts = [host]
    #expect(
      AgentText.lines(agent, now: Samples.now, style: Style(isOn: false), check: "c").last
        == "host: http://h:80 asked to be left alone until 2026-11-21T14:00:00Z; what needs it may try it from "
        + "2026-11-21T13:00:00Z on")
  }

  /// Whatever codes there will be: the time, the mirror, the code, and what it is about.
  @Test func anyEventIsALine() {
    var event = EventDocument(
      number: 1, mirror: "iso", time: "2026-11-21T12:00:00Z", code: "failed", cursor: "c")
    (event.path, event.detail) = ("a\u{7}.iso", "the server has no such file [http-404]")
    let plain = Style(isOn: false)
    #expect(
      Journal.line(event, plain)
        == "2026-11-21T12:00:00Z  iso  failed  a\\x07.iso: the server has no such file [http-404]")
    (event.code, event.detail, event.bytes) = ("recovered", nil, 2048)
    #expect(Journal.line(event, plain) == "2026-11-21T12:00:00Z  iso  recovered  a\\x07.iso (2.0 KiB)")
    (event.code, event.path, event.bytes) = ("of-a-newer-tarn", nil, nil)
    #expect(Journal.line(event, plain) == "2026-11-21T12:00:00Z  iso  of-a-newer-tarn")
  }

  @Test func eventsSinceATime() {
    func isNew(_ time: String) -> Bool {
      let event = EventDocument(number: 1, mirror: "iso", time: time, code: "failed", cursor: "c")
      return Journal.isNew(event, since: Samples.now)
    }
    #expect(isNew("2026-11-21T12:00:00Z") && !isNew("2026-11-21T11:59:59Z"))
  }

  /// What an order waits for.
  @Test func whatAPassWaitsFor() {
    var status = Samples.status()
    #expect(AgentSync.word(status, 7) == "waiting for a free slot")
    (status.state, status.run, status.runKind) = ("transferring", 5, "repair")
    #expect(AgentSync.word(status, 7) == "waiting for a repair of local changes to end")
    status.runKind = "pass"
    #expect(AgentSync.word(status, 7) == "waiting for the pass before it to end")
    status.run = 7
    #expect(AgentSync.word(status, 7) == "transferring")
  }

  /// Who waits for a long pass sees how far it is, and nothing of another one.
  @Test func howFarThePassIsIsTold() {
    var status = Samples.status()
    (status.state, status.run, status.runKind) = ("transferring", 7, "pass")
    #expect(AgentSync.line(status, 7) == "the agent: transferring")
    status.progress = StatusDocument.Progress(
      filesDone: 1, filesTotal: 4, bytesDone: 512 << 20, bytesTotal: 1 << 30, unknownSizes: 0,
      rate: 1 << 20)
    #expect(
      AgentSync.line(status, 7)
        == "the agent: transferring  50%  1 of 4 files  0.5 of 1.0 GiB  1.0 MiB/s  ETA 8:32")
    #expect(AgentSync.line(status, 8) == "the agent: waiting for the pass before it to end")
  }

  /// An order lies in the socket of an agent that does not answer; a question changes nothing.
  @Test func anOrderWithoutAnswerMayStillBeCarriedOut() {
    for (reason, text) in [
      (ControlUnreachable.Reason.timedOut, "may still be carried out when it goes on"),
      (.ended, "may have been carried out"),
    ] {
      let order = PassFailure(ControlUnreachable(reason, "/s", isOpen: true))
      #expect(order.kind == .noAgent && order.message.contains(text), "\(order)")
      #expect(order.hint?.contains("tarn status") == true, "\(order)")
      let question = PassFailure(ControlUnreachable(reason, "/s"))
      #expect(question.kind == .noAgent && !question.message.contains("order"), "\(question)")
    }
  }

  /// As the ledgers say it where no agent is asked.
  @Test func aFolderThatTheAgentDoesNotFindIsNoUsage() {
    let kinds = ["no-folder", "not-a-mirror", "marker-missing", "no-such-mirror", "no-such-transfer"].map {
      PassFailure(ControlFailure(.notFound, code: $0, "m")).kind
    }
    #expect(kinds == [.folderUnusable, .folderUnusable, .folderUnusable, .usage, .usage])
  }

  @Test(arguments: [0, -40] as [Int64]) func aTimeThatIsPastIsNotPromised(seconds: Int64) {
    #expect(hostLine(seconds, asked: false, ["a"]) == "host: http://h:80 is tried again now (a)")
  }

  @Test func hooksThatFailAndWhatTheyLost() {
    var agent = AgentDocument(version: "1", process: 7, started: Samples.now.rfc3339, settingsRead: "")
    var (bad, lossy) = (HookStatus(name: "chat", state: "failing"), HookStatus(name: "tell", state: "good"))
    (bad.since, bad.failures, bad.waiting) = ("2026-11-21T12:00:30Z", 3, 2)
    bad.message = "the answer was HTTP 500"
    lossy.dropped = 1
    agent.hooks = [HookStatus(name: "fine", state: "good"), bad, lossy]
    let lines = AgentText.lines(agent, now: Samples.now, style: Style(isOn: false), check: "c")
    #expect(
      lines.dropFirst() == [
        "hook: chat: fails since 2026-11-21T12:00:30Z, 3 attempts: the answer was HTTP 500; 2 events waiting",
        "hook: tell: 1 event lost since the agent began",
      ])
  }

  /// Of errors beyond the hundredth nobody knows.
  @Test func rejectedSettings() {
    var agent = AgentDocument(version: "1", process: 7, started: Samples.now.rfc3339, settingsRead: "")
    for (count, said) in [(2, "for 2 errors"), (100, "for at least 100 errors")] {
      agent.rejected = Array(repeating: "e", count: count)
      let lines = AgentText.lines(agent, now: Samples.now, style: Style(isOn: false), check: "c")
      #expect(lines.last?.contains(said) == true && lines.last?.hasSuffix(": c") == true, "\(lines)")
    }
    // Who checks them may read what the agent may not, and find nothing wrong.
    agent.rejected = ["/etc/tarn/tarn.toml:9:10: error: the file cannot be read\n  9 | secret\n"]
    let one = AgentText.lines(agent, now: Samples.now, style: Style(isOn: false), check: "c").last
    #expect(
      one == "settings: newer ones were rejected for 1 error, the old ones stay in force: "
        + "/etc/tarn/tarn.toml:9:10: error: the file cannot be read; to check them: c")
    // The agent's settings are not always those of whoever asks.
    agent.settingsCheck = "tarn config check --config /srv/t.toml"
    let lines = AgentText.lines(
      agent, now: Samples.now, style: Style(isOn: false), check: "tarn config check")
    #expect(lines.last?.hasSuffix(": tarn config check --config /srv/t.toml") == true, "\(lines)")
  }
}
