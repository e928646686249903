import TarnCore
import Testing

@testable import TarnConfig

@Suite struct SecretTests {
  private static let good = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)

  private func load(
    _ line: String, _ files: [String: SettingsFileAttributes] = [:], _ environment: [String: String] = [:],
    failures: [String: SettingsReadFailure] = [:], purpose: SettingsLoader.Purpose = .run
  ) -> LoadedSettings {
    var fake = FakeFiles([Sample.main: Sample.mirror(line)])
    fake.modes = files
    fake.failures = failures
    return Sample.load(fake, Sample.paths(environment), purpose: purpose)
  }

  @Test func aFileOfItsOwn() throws {
    for line in ["header-file = \"/s/h\"", "header-file = { file = \"/s/h\" }"] {
      let loaded = load(line, ["/s/h": Self.good])
      #expect(loaded.problems == [])
      let mirror = try #require(loaded.settings?.mirrors.first)
      #expect(mirror.options.values == [.headerFile: ["/s/h"]])
      #expect(mirror.secrets == [.headerFile: .file("/s/h")])
    }
  }

  @Test func aCredentialOfTheService() throws {
    let directory = ["CREDENTIALS_DIRECTORY": "/run/credentials/x"]
    // systemd's own are 0440 where ACLs are at work.
    let open = SettingsFileAttributes(isRegular: true, mode: 0o440, isReadable: true)
    let loaded = load("netrc-file = { credential = \"n\" }", ["/run/credentials/x/n": open], directory)
    #expect(loaded.problems == [])
    #expect(loaded.settings?.mirrors.first?.options.values == [.netrcFile: ["/run/credentials/x/n"]])
    #expect(loaded.settings?.mirrors.first?.secrets == [.netrcFile: .credential("n")])
    let missing = load("netrc-file = { credential = \"n\" }", [:], directory)
    #expect(missing.problems.map(\.code) == [.secretMissing])
    #expect(missing.problems.first?.hint == "add LoadCredential=n:/path to the unit")
  }

  @Test func credentialsAreOnlySeenByTheService() {
    let line = "cookies = { credential = \"c\" }"
    #expect(load(line).settings == nil)
    #expect(load(line).problems.map(\.code) == [.secretMissing])
    let check = load(line, purpose: .check)
    #expect(check.settings != nil)
    #expect(check.problems.map(\.severity) == [.warning])
    #expect(check.settings?.mirrors.first?.options.values == [:])
  }

  @Test(arguments: [0o640, 0o604, 0o660, 0o644, 0o777, 0o602, 0o620] as [UInt32])
  func aFileThatOthersCanReadIsRefused(mode: UInt32) {
    let attributes = SettingsFileAttributes(isRegular: true, mode: mode, isReadable: true)
    for purpose in [SettingsLoader.Purpose.run, .check] {
      let loaded = load("cookies = \"/s/c\"", ["/s/c": attributes], purpose: purpose)
      #expect(loaded.settings == nil)
      #expect(loaded.problems.map(\.code) == [.secretExposed])
      #expect(loaded.problems.first?.hint == "chmod 600 /s/c")
      #expect(loaded.problems.first?.origin.text == "/etc/tarn/tarn.toml:4:11")
    }
  }

  @Test func aFileThatIsNotThereOrNotReadable() {
    #expect(load("cookies = \"/s/c\"").problems.map(\.code) == [.secretMissing])
    let directory = SettingsFileAttributes(isRegular: false, mode: 0o700, isReadable: true)
    #expect(load("cookies = \"/s/c\"", ["/s/c": directory]).problems.map(\.code) == [.secretNotReadable])
    let closed = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: false)
    for (files, failures) in [(["/s/c": closed], [:]), ([:], ["/s/c": SettingsReadFailure.denied])] {
      #expect(load("cookies = \"/s/c\"", files, failures: failures).settings == nil)
      let check = load("cookies = \"/s/c\"", files, failures: failures, purpose: .check)
      #expect(check.settings != nil)
      #expect(check.problems.map(\.code) == [.secretNotReadable])
    }
  }

  @Test func aSecretProxyIsReadWhenItIsUsed() throws {
    let loaded = load("proxy = { file = \"/s/p\" }", ["/s/p": Self.good])
    #expect(loaded.problems == [])
    let mirror = try #require(loaded.settings?.mirrors.first)
    #expect(mirror.options.values == [:])
    #expect(mirror.secrets == [.proxy: .file("/s/p")])
    #expect(
      load("proxy = \"http://h:1\"").settings?.mirrors.first?.options.values == [.proxy: ["http://h:1"]])
  }

  /// Of a value that another file replaces nothing is looked at.
  @Test func onlyWhatHoldsIsLookedAt() {
    var files = FakeFiles([
      Sample.main: Sample.mirror("cookies = \"/gone\""),
      "/etc/tarn/conf.d/a.toml": "[mirror.a]\ncookies = \"/s/c\"",
    ])
    files.modes = ["/s/c": Self.good]
    #expect(Sample.load(files).problems == [])
  }

  @Test(
    arguments: [
      ("https://ann:pw@h/x", "https://***@h/x"), ("a://b@c d://e:f@g", "a://***@c d://***@g"),
      ("https://h/a@b", "https://h/a@b"), ("https://h?x=a@b", "https://h?x=a@b"), ("x@y", "x@y"),
      ("://@", "://***@"),
      ("https://a@b@c/", "https://***@c/"), ("\"https://h\" ann@h", "\"https://h\" ann@h"),
      ("https:/\u{301}/a@b", "https:/\u{301}/a@b"),
    ]) func urlsWithoutNamesAndPasswords(_ text: String, _ plain: String)
  {
    #expect(Redaction.text(text) == plain)
  }

  /// What is pasted looks at the same file.
  @Test(arguments: ["cookies = \"/s/c\"", "cacert = \"/s/c\""])
  func theHintNamesTheFileOfSettings(line: String) {
    let file = "/srv/my tarn.toml"
    var fake = FakeFiles([file: Sample.mirror(line)])
    fake.failures = ["/s/c": .denied]
    let loaded = Sample.load(fake, Sample.paths(config: file), purpose: .check)
    #expect(loaded.problems.map(\.severity) == [.warning])
    #expect(
      loaded.problems.first?.hint?.hasSuffix("sudo tarn config check --config '/srv/my tarn.toml'") == true)
  }
}
