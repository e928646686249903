import TarnCore
import Testing

/// What everyone may read of a status, and which parts of a command go together.
@Suite struct ControlTests {
  private func full() -> StatusAnswer {
    var agent = AgentDocument(version: "1", process: 7, started: "s", settingsRead: "r")
    agent.passes = 2
    agent.rejected = ["/etc/SECRET.toml:1"]
    agent.settingsCheck = "tarn config check --config /etc/SECRET.toml"
    agent.needRestart = ["SECRET"]
    var hook = HookStatus(name: "SECRET", state: "failing")
    hook.message = "SECRET"
    agent.hooks = [hook]
    agent.troubles = [.init(code: "metrics-file", message: "SECRET", hint: "SECRET")]
    agent.restingHosts = [.init(host: "SECRET.example", until: "u")]
    var mirror = StatusDocument(
      name: "iso", feed: "https://user:SECRET@example.org:8443/SECRET/x?token=SECRET",
      folder: "/srv/SECRET/iso",
      state: "failing")
    mirror.feedBefore = "https://SECRET@example.org/SECRET"
    mirror.lastFailure = "SECRET"
    mirror.hint = "tarn forget /srv/SECRET/iso"
    mirror.lastRun = .init(number: 1, code: "http-503", message: "SECRET", exitStatus: 66)
    mirror.nextRun = "n"
    mirror.entries.failed = 3
    mirror.bytes.current = 9
    mirror.transfers = [.init(path: "SECRET", received: 1, total: 2, rate: 3, source: "https://SECRET/")]
    mirror.watch.reason = "SECRET"
    mirror.held = .init(plan: "SECRET", deletions: 5, since: "t")
    mirror.problems = [
      .init(path: "SECRET", kind: "failed", code: "c", message: "SECRET", since: "s", attempts: 1)
    ]
    mirror.moreProblems = 2
    var nameless = mirror
    nameless.name = "/srv/SECRET/other"
    nameless.feed = "/SECRET/feed"
    return StatusAnswer(agent: agent, mirrors: [mirror, nameless])
  }

  @Test func theRedactedStatusHasStatesCountsAndTimes() throws {
    let answer = full().redacted
    var text = ""
    dump(answer, to: &text)
    #expect(!text.contains("SECRET"), "\(text)")
    let mirror = try #require(answer.mirrors.first)
    #expect(mirror.name == "iso")
    #expect(mirror.folder == "iso")
    #expect(mirror.feed == "https://example.org")
    #expect(mirror.state == "failing")
    #expect(mirror.nextRun == "n")
    #expect(mirror.entries.failed == 3)
    #expect(mirror.bytes.current == 9)
    #expect(mirror.lastFailure == StatusAnswer.withheld)
    #expect(mirror.transfers.map(\.received) == [1])
    #expect(mirror.held?.deletions == 5)
    #expect(mirror.moreProblems == 3)
    #expect(answer.mirrors.last?.name == "other")
    #expect(answer.agent?.passes == 2)
    #expect(answer.agent?.process == 7)
  }

  @Test(arguments: [
    ("https://example.org/a/b", "https://example.org"), ("http://a@b@host:80?x", "http://host"),
    ("https://[::1]:8080/x", "https://[::1]"), ("https://[::1/x", "https://[::1"),
    ("https://h#f", "https://h"),
    ("https://h\\x", "https://h"), ("file:///srv/x", "file://"), ("/srv/x", "file://"),
    ("/srv/x://y", "file://"),
    ("", "withheld"), ("something", "withheld"),
  ])
  func ofAFeedTheSchemeAndHostAreShown(feed: String, shown: String) {
    let status = StatusAnswer(mirrors: [StatusDocument(name: "n", feed: feed, folder: "/", state: "idle")])
    #expect(status.redacted.mirrors.map(\.feed) == [shown])
    #expect(status.redacted.mirrors.map(\.folder) == ["withheld"])
  }

  @Test func anExpectationGoesWithSyncOfAWholeMirror() {
    for verb in ControlCommand.Verb.allCases {
      var command = ControlCommand(verb, ControlTarget(mirror: "m"))
      if verb == .prioritize { command.priority = .low }
      command.expected = ControlExpectation()
      #expect((command.fault == nil) == (verb == .sync))
      command.target = ControlTarget(mirror: "m", path: [97])
      #expect(command.fault?.code == "expectation-unexpected")
    }
  }

  @Test func aPriorityGoesWithPrioritizeAndAPlanWithApprove() {
    for verb in ControlCommand.Verb.allCases {
      var command = ControlCommand(verb, ControlTarget(mirror: "m"))
      #expect((command.fault == nil) == (verb != .prioritize))
      command.priority = .low
      #expect((command.fault == nil) == (verb == .prioritize))
      command.priority = verb == .prioritize ? .low : nil
      command.plan = "p"
      #expect((command.fault == nil) == (verb == .approve))
    }
  }

  @Test func whatIsBroughtBackIsNotInPlace() {
    var entries = StatusDocument(name: "m", feed: "f", folder: "/m", state: "idle").entries
    (entries.wanted, entries.current, entries.failed) = (21, 20, 1)
    entries.add(missing: 1)
    #expect(entries.current == 20 && entries.pending == 0)
    entries.add(missing: 3)
    #expect(entries.current == 18 && entries.pending == 2 && entries.failed == 1)
    entries.add(missing: 99)
    #expect(entries.current == 0 && entries.pending == 20)
    entries.add(missing: -1)
    #expect(entries.pending == 20)
  }
}
