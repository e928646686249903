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
