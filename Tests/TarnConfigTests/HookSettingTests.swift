import TarnCore
import Testing

@testable import TarnConfig

/// `[hook.NAME]`.
@Suite struct HookSettingTests {
  private static let good = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)

  private func load(_ lines: String, more: String = "") -> LoadedSettings {
    var files = FakeFiles([Sample.main: Sample.mirror("") + "[hook.chat]\n\(lines)\n\(more)"])
    for path in ["/s/url", "/s/key", "/s/h"] { files.modes[path] = Self.good }
    return Sample.load(files)
  }

  @Test func eachWayHasItsEvents() throws {
    let loaded = load(
      "webhook = \"https://example.org/x\"",
      more: """
        [hook.monitor]
        ping = { file = "/s/url" }
        [hook.tell]
        command = ["/usr/bin/tell", "-x"]
        mirrors = ["a"]
        events = ["recovered"]
        timeout = "5s"
        retries = 0
        """)
    #expect(loaded.problems == [])
    let hooks = try #require(loaded.settings?.hooks)
    #expect(hooks.map(\.name) == ["chat", "monitor", "tell"])
    #expect(hooks[0].way == .webhook(.url("https://example.org/x")) && hooks[0].mirrors == nil)
    #expect(
      hooks[0].events == [.failing, .held, .recovered] && (hooks[0].timeout, hooks[0].retries) == (30, 10))
    #expect(hooks[1].way == .ping(.secret(.file("/s/url"))) && hooks[1].events == [.started, .ended])
    #expect(hooks[2].way == .command(["/usr/bin/tell", "-x"]))
    #expect((hooks[2].timeout, hooks[2].retries) == (5, 0))
    #expect(hooks[2].hears(.recovered, of: "a") && !hooks[2].hears(.recovered, of: "b"))
    #expect(!hooks[2].hears(.failing, of: "a") && hooks[0].hears(.failing, of: "b"))
  }

  @Test func aKeyAndHeadersLieElsewhere() throws {
    let loaded = load(
      "webhook = \"http://h/x\"\nsecret = \"/s/key\"\nheader-file = { file = \"/s/h\" }")
    let hook = try #require(loaded.settings?.hooks.first)
    #expect(hook.secret == .file("/s/key") && hook.headerFile == .file("/s/h"))
    let gone = load("webhook = \"http://h/x\"\nsecret = \"/s/gone\"")
    #expect(gone.settings == nil && gone.problems.map(\.code) == [.secretMissing])
  }

  @Test(
    arguments: [
      ("retries = 1", "missing", "[hook.chat] has none of command, webhook and ping"),
      (
        "command = [\"/a\"]\nping = \"http://h/\"", "contradiction",
        "'ping' cannot be combined with 'command'"
      ),
      ("command = \"/a b\"", "wrong-type", "'command' takes a list such as"),
      ("command = []", "bad-value", "'command' takes a list such as"),
      ("command = [\"\"]", "bad-value", "'command' takes a list such as"),
      ("command = [\"/a\"]\nsecret = \"/s/key\"", "contradiction", "'secret' has no effect here"),
      ("ping = \"http://h/\"\nsecret = \"/s/key\"", "contradiction", "'secret' has no effect here"),
      ("command = [\"/a\"]\nheader-file = \"/s/h\"", "contradiction", "'header-file' has no effect here"),
      (
        "command = [\"/a\"]\nmirrors = [\"aa\"]", "bad-value",
        "'mirrors' names 'aa', and there is no such mirror"
      ),
      ("command = [\"/a\"]\nevents = [\"failed\"]", "bad-value", "'events' takes a list of"),
      ("command = [\"/a\"]\nurl = \"x\"", "unknown-setting", "[hook.chat] has no setting 'url'"),
    ])
  func aMistakeIsTold(_ lines: String, _ code: String, _ message: String) {
    let loaded = load(lines)
    #expect(loaded.settings == nil)
    #expect(loaded.problems.map(\.code.rawValue) == ["config-\(code)"], "\(loaded.problems.map(\.text))")
    #expect(loaded.problems.first?.message.hasPrefix(message) == true, "\(loaded.problems.map(\.message))")
  }

  /// What stands there by mistake may be the secret, or hold it.
  @Test(
    arguments: [
      "webhook = \"hunter2\"", "webhook = \"https://u:hunter2@h/\"", "ping = \"ftp://h/hunter2\"",
      "ping = \"https:///hunter2\"", "webhook = \"https://h:99999/hunter2\"",
      "ping = [\"https://h/hunter2\"]",
      "webhook = \"https://h/a hunter2\"",
      "webhook = \"https://h/\"\nsecret = \"hunter2\"", "webhook = { url = \"hunter2\" }",
    ]) func noSecretIsTold(line: String)
  {
    let loaded = load(line)
    #expect(loaded.settings == nil && !loaded.problems.isEmpty)
    for problem in loaded.problems { #expect(!problem.text.contains("hunter2"), "\(problem.text)") }
  }

  @Test func changesOfHooksTouchNoMirror() throws {
    let old = try #require(load("command = [\"/a\"]").settings)
    let new = try #require(load("command = [\"/b\"]").settings)
    let changes = new.changes(from: old)
    #expect(changes.hooks && !changes.agent && !changes.isEmpty && changes.untouched == ["a"])
    #expect(old.changes(from: old).isEmpty)
  }

  @Test func hooksAreShownAsTheyAreWritten() {
    let lines = "command = [\"/a\", \"b c\"]\nevents = [\"held\"]"
    let shown = SettingsText.show(load(lines), standard: false)
    #expect(
      shown.contains("[hook.chat]\ncommand = [\"/a\", \"b c\"]  # /etc/tarn/tarn.toml:6:11\n"), "\(shown)")
    #expect(load(lines, more: "[mirror.b]\nfeed = \"/f\"\nfolder = \"/srv/b\"").settings?.hooks.count == 1)
  }
}
