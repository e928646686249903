import TarnCore
import Testing

@testable import TarnConfig

/// The settings of metrics.
@Suite struct MetricsSettingTests {
  private static let good = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)

  private func load(_ lines: String, token: SettingsFileAttributes? = Self.good) -> LoadedSettings {
    var files = FakeFiles([Sample.main: "[agent]\n\(lines)\n"])
    files.modes["/s/token"] = token
    return Sample.load(files)
  }

  @Test func allThree() throws {
    let loaded = load(
      "metrics-file = \"/m/tarn.prom\"\nmetrics-listen = \"127.0.0.1:9754\"\nmetrics-token = \"/s/token\"")
    #expect(loaded.problems == [])
    let agent = try #require(loaded.settings?.agent)
    #expect(agent.metricsFile == "/m/tarn.prom" && agent.metricsToken == .file("/s/token"))
    #expect(agent.metricsListen?.host == "127.0.0.1" && agent.metricsListen?.port == 9754)
    let none = try #require(load("").settings?.agent)
    #expect(none.metricsFile == nil && none.metricsListen == nil && none.metricsToken == nil)
  }

  @Test(arguments: [
    ("9754", "127.0.0.1", 9754), ("localhost:1", "localhost", 1), ("[::1]:65535", "::1", 65_535),
    ("0.0.0.0:80", "0.0.0.0", 80), ("[2001:db8::1]:80", "2001:db8::1", 80),
  ])
  func anAddress(text: String, host: String, port: Int) {
    let address = ListenAddress(text)
    #expect(address?.host == host && address?.port == port)
  }

  @Test(arguments: [
    "", ":", "127.0.0.1", "127.0.0.1:", ":9754", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x", "::1:80",
    "[::1]", "[127.0.0.1]:80", "example.org:80", "300.0.0.1:80", "127.0.0.1:+80", "127.0.0.1: 80", "1:2:3",
  ])
  func noAddress(text: String) {
    #expect(ListenAddress(text) == nil)
    let loaded = load("metrics-listen = \"\(text)\"\nmetrics-token = \"/s/token\"")
    #expect(loaded.problems.map(\.code) == [.badValue])
  }

  @Test func theNetworkWantsAToken() {
    let number = load("metrics-listen = 9754").problems.first?.message ?? ""
    #expect(number.contains("or a port in quotes"), "\(number)")
    let loaded = load("metrics-listen = \"9754\"")
    #expect(loaded.settings == nil && loaded.problems.map(\.code) == [.missing])
    #expect(loaded.problems.first?.origin.text == "/etc/tarn/tarn.toml:2:18")
  }

  /// As every other secret.
  @Test func theTokenIsLookedAt() {
    let lines = "metrics-listen = \"9754\"\nmetrics-token = \"/s/token\""
    let open = SettingsFileAttributes(isRegular: true, mode: 0o644, isReadable: true)
    #expect(load(lines, token: open).problems.map(\.code) == [.secretExposed])
    #expect(load(lines, token: nil).problems.map(\.code) == [.secretMissing])
  }

  @Test func theFileHasANameThatIsRead() {
    #expect(load("metrics-file = \"/m/tarn.txt\"").problems.map(\.code) == [.badValue])
    #expect(load("metrics-file = \"tarn.prom\"").problems.map(\.code) == [.badValue])
  }

  @Test func anotherAddressWantsARestart() throws {
    var running = try #require(RunningSettings(load("")))
    let token = "metrics-token = \"/s/token\""
    guard case .taken(let changes) = running.reload(load("metrics-listen = \"9754\"\n\(token)")) else {
      Issue.record("not taken")
      return
    }
    #expect(changes.needRestart == ["agent.metrics-listen"])
    guard case .taken(let others) = running.reload(load("metrics-file = \"/m/a.prom\"\n\(token)")) else {
      Issue.record("not taken")
      return
    }
    #expect(others.needRestart == [] && others.agent)
  }
}
