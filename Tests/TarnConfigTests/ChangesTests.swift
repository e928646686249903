import Testing

@testable import TarnConfig

@Suite struct ChangesTests {
  private static let mirrors = """
    [mirror.a]
    feed = "/a"
    folder = "/srv/a"
    [mirror.b]
    feed = "/b"
    folder = "/srv/b"

    """

  private func running(_ text: String) throws -> RunningSettings {
    try #require(RunningSettings(Sample.load(text)))
  }

  @Test func onlyWhatChangedIsTold() throws {
    var running = try running(Self.mirrors)
    let fresh = Sample.load(
      "# a line more\n" + Self.mirrors + "keep = 3\n[mirror.c]\nfeed = \"/c\"\nfolder = \"/srv/c\"")
    guard case .taken(let changes) = running.reload(fresh) else {
      Issue.record("not taken")
      return
    }
    var expected = SettingsChanges()
    expected.added = ["c"]
    expected.changed = ["b"]
    expected.untouched = ["a"]
    #expect(changes == expected && !changes.isEmpty)
    #expect(running.settings.mirrors.count == 3)
    var back = SettingsChanges()
    back.removed = ["c"]
    back.changed = ["b"]
    back.untouched = ["a"]
    #expect(running.reload(Sample.load(Self.mirrors)) == .taken(back))
  }

  @Test func anotherPlaceIsNoChange() throws {
    var running = try running(Self.mirrors)
    guard case .taken(let changes) = running.reload(Sample.load("\n\n" + Self.mirrors)) else {
      Issue.record("not taken")
      return
    }
    #expect(changes.isEmpty && changes.untouched == ["a", "b"])
    // The origins are the new ones all the same.
    #expect(running.loaded.records.contains { $0.origin.text == "/etc/tarn/tarn.toml:4:8" })
  }

  @Test func aBadFileKeepsTheOldSettings() throws {
    var running = try running(Self.mirrors)
    let old = running.settings
    let bad = Sample.load(Self.mirrors + "kepe = 3")
    #expect(running.reload(bad) == .kept(bad.problems))
    #expect(running.settings == old && running.loaded.problems == [])
  }

  /// An editor's or a package manager's moment without the file.
  @Test func aFileThatIsGoneKeepsTheOldSettings() throws {
    let more = "/etc/tarn/conf.d/b.toml"
    let both = FakeFiles([
      Sample.main: "[mirror.a]\nfeed = \"/a\"\nfolder = \"/srv/a\"",
      more: "[mirror.b]\nfeed = \"/b\"\nfolder = \"/srv/b\"",
    ])
    var running = try #require(RunningSettings(Sample.load(both)))
    func paths(_ reload: RunningSettings.Reload) -> [String] {
      guard case .kept(let problems) = reload else { return [] }
      return problems.map { "\($0.code.rawValue) \($0.origin.text)" }
    }
    var files = both
    files.files[Sample.main] = nil
    for _ in 0..<2 {
      #expect(paths(running.reload(Sample.load(files))) == ["config-file-missing \(Sample.main):1:1"])
    }
    #expect(running.settings.mirrors.map(\.name) == ["a", "b"])
    #expect(paths(running.reload(Sample.load(FakeFiles([:])))).count == 2)
    files = both
    files.files[more] = nil
    files.directories = ["/etc/tarn/conf.d"]
    guard case .taken(let changes) = running.reload(Sample.load(files)) else {
      Issue.record("a file of conf.d is removed on purpose")
      return
    }
    #expect(changes.removed == ["b"])
    // Nothing was read there any more: an empty directory may go.
    guard case .taken = running.reload(Sample.load("")) else {
      Issue.record("not taken")
      return
    }
    #expect(running.settings.mirrors == [])
  }

  @Test func whatConfigNamesIsToldOnce() throws {
    let files = FakeFiles(["/x.toml": Self.mirrors])
    var running = try #require(RunningSettings(Sample.load(files, Sample.paths(config: "/x.toml"))))
    let fresh = Sample.load(FakeFiles([:]), Sample.paths(config: "/x.toml"))
    #expect(running.reload(fresh) == .kept(fresh.problems) && fresh.problems.count == 1)
  }

  @Test func limitsAndAgent() throws {
    var running = try running("")
    guard
      case .taken(let changes) = running.reload(Sample.load("[limits]\npasses = 1\n[agent]\nsocket = \"/s\""))
    else {
      Issue.record("not taken")
      return
    }
    #expect(changes.limits && changes.agent && changes.needRestart == ["agent.socket"] && !changes.isEmpty)
  }

  /// However often they are read again: until the agent restarts, or they are what it began with.
  @Test func whatNeedsARestartGoesOnNeedingIt() throws {
    var running = try running("")
    let texts = ["[agent]\nsocket = \"/s\"", "[agent]\nsocket = \"/s\"\nstatus-access = \"group\"", ""]
    var needed: [[String]] = []
    for text in texts.flatMap({ [$0, $0] }) {
      guard case .taken(let changes) = running.reload(Sample.load(text)) else { continue }
      needed.append(changes.needRestart)
    }
    let both = ["agent.socket", "agent.status-access"]
    #expect(needed == [["agent.socket"], ["agent.socket"], both, both, [], []])
  }

  @Test func twoSpellingsOfOneFolderAreTwo() throws {
    func settings(_ folder: String) throws -> Settings {
      try #require(Sample.load("[mirror.a]\nfeed = \"/a\"\nfolder = \"\(folder)\"").settings)
    }
    let changes = try settings("/srv/caf\u{E9}").changes(from: settings("/srv/cafe\u{301}"))
    #expect(changes.changed == ["a"])
  }

  @Test func badSettingsAreNotStartedWith() {
    #expect(RunningSettings(Sample.load("kepe = 3")) == nil)
  }
}
