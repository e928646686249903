import TarnCore
import Testing

@testable import TarnConfig

@Suite struct SecretTests {
  private static let good = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)

  private func load(
    _ line: String, _ files: [String: SettingsFileAttributes] = [:], _ environment: [String: String] = [:],
    failures: [String: SettingsReadFailure] = [:], text: String? = nil, purpose: SettingsLoader.Purpose = .run
  ) -> LoadedSettings {
    var fake = FakeFiles([Sample.main: Sample.mirror(line)])
    fake.modes = files
    fake.failures = failures
    if let text { fake.files["/s/h"] = Array(text.utf8) }
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

  /// Its text may be the secret.
  @Test func aHeaderFileThatHasNoHeadersIsToldWithoutItsText() {
    for (purpose, isTaken) in [(SettingsLoader.Purpose.run, true), (.check, false)] {
      let loaded = load(
        "header-file = \"/s/h\"", ["/s/h": Self.good], text: "A: b\nhunter2\n", purpose: purpose)
      #expect(loaded.problems.map(\.severity) == [isTaken ? .warning : .error])
      #expect((loaded.settings != nil) == isTaken)
      let problem = loaded.problems.first
      #expect(problem?.message == "line 2 of the file of 'header-file' is not a header: /s/h")
      #expect(problem?.text.contains("hunter2") == false)
      #expect(load("header-file = \"/s/h\"", ["/s/h": Self.good], text: "# c\n\nA: b\n").problems == [])
    }
  }

  /// What it is for fails later, and each time.
  @Test(arguments: [("header-file", true), ("netrc-file", true), ("cookies", false)])
  func anEmptyFileIsTold(name: String, isTold: Bool) throws {
    let empty = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true, isEmpty: true)
    for purpose in [SettingsLoader.Purpose.run, .check] {
      let loaded = load("\(name) = \"/s/h\"", ["/s/h": empty], text: "", purpose: purpose)
      #expect(loaded.problems.map(\.severity) == (isTold ? [.warning] : []) && loaded.settings != nil)
      #expect(loaded.problems.first?.message == (isTold ? "the file of '\(name)' is empty: /s/h" : nil))
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
      ("https:/\u{301}/a@b", "https:/\u{301}/a@b"), ("http://us:'pw@h/x", "http://***@h/x"),
      ("http://us:\"pw@h/x", "http://***@h/x"), ("http://'us:p\"w'@h/x'@", "http://***@h/x'@"),
    ]) func urlsWithoutNamesAndPasswords(_ text: String, _ plain: String)
  {
    #expect(Redaction.text(text) == plain)
  }

  /// A password may hold any quote that its text can hold.
  @Test(
    arguments: [
      "\"http://user:'S3kr1t@127.0.0.1:8941/x\"", "\"http://us'er:S3kr1t@127.0.0.1:8941/x\"",
      "'http://user:\"S3kr1t@127.0.0.1:8941/x'", "\"http://user:\\\"S3kr1t@127.0.0.1:8941/x\"",
      "\"http://user:'S3'kr1t@127.0.0.1:8941\"", "\"\"\"http://user:\"S3kr1t@127.0.0.1:8941/x\"\"\"",
      "\"http://user:\\u0022S3kr1t@127.0.0.1:8941/x\"", "\"http://h:1/x?of=http://user:'S3kr1t@h\"",
    ])
  func aQuoteDoesNotTakeAPasswordPastTheCheck(value: String) {
    for text in [
      "[mirror.a]\nfolder = \"/srv/a\"\nfeed = \(value)\n",
      "[mirror.a]\nfolder = \"/srv/a\"\nfeed = \"http://h/x\"\nproxy = \(value)\n",
    ] {
      let loaded = Sample.load(text)
      #expect(
        loaded.settings == nil && loaded.problems.map(\.code) == [.urlWithPassword], "\(loaded.problems)")
      for problem in loaded.problems { #expect(!problem.text.contains("kr1t"), "\(problem.text)") }
      #expect(!SettingsText.show(loaded).contains("kr1t"))
    }
  }

  @Test(
    arguments: [
      ("'http://us:'\\''pw@h/x' is a feed", "'http://***@h/x' is a feed"),
      ("there is no folder /w/http:/us:\"pw@h/x", "there is no folder /w/http:/***@h/x"),
      ("a:/b@c and http://h/a@b", "a:/b@c and http://h/a@b"), ("HTTPS://a@b", "HTTPS://***@b"),
      ("socks5h:/a@b http:/a@b", "socks5h:/***@b http:/***@b"), ("http://h: no @", "http://h: no @"),
    ]) func messagesWithoutNamesAndPasswords(_ text: String, _ plain: String)
  {
    #expect(Redaction.message(text) == plain)
  }

  /// No rule of URLs says where the password ends: nothing before the last `@` is shown.
  @Test(
    arguments: [
      "https://user:ge/heim77@127.0.0.1/x", "ftp://user:ge/heim77@127.0.0.1/x", "user:geheim77@127.0.0.1/x",
      "https:/user:geheim77@127.0.0.1/x", "https:user:geheim77@127.0.0.1/x", "//geheim77@127.0.0.1/x",
      "https://user:ge heim77@127.0.0.1/x", "https://user:ge'heim77@127.0.0.1/x", "http//user:geheim77@h/x",
      "https://user:ge#heim77@127.0.0.1/x", "https://user:ge?heim77@127.0.0.1/x", "https://user:a@heim77@h/x",
      "user:ge://heim77@127.0.0.1/x",
    ],
    ["\"#\"", "'#'", "#", "\"#", "[\"#\"]", "\"#\" # why"])
  func noMalformedAddressShowsItsPassword(address: String, quotes: String) {
    let value = quotes.replacing("#", with: address, maxReplacements: 1)
    for line in ["feed = \(value)", "feed=\(value)", "exclude = \(value)", "proxy = \(value)"] {
      let loaded = Sample.load("[mirror.a]\nfolder = \"/srv/a\"\n" + line)
      for problem in loaded.problems {
        #expect(!problem.text.contains("heim77") && !problem.text.contains("ge/"), "\(line): \(problem.text)")
      }
    }
  }

  @Test(
    arguments: [
      ("feed = \"https://u:ge/heim@h/x\" # why", "feed = \"https://***@h/x\" # why"),
      ("feed = \"u:ge/heim@h/x\"", "feed = \"***@h/x\""), ("a = 'u:p@h', b = 'c'", "a = '***@h', b = 'c'"),
      ("folder = \"/srv/a@b\"", "folder = \"/srv/a@b\""),
      ("# ann@h at https://h/x", "# ann@h at https://h/x"),
      ("x = u:p q@h # why", "x = ***@h # why"), ("feed=//tok@h", "feed=***@h"),
      ("# note: ann@h", "# note: ann@h"),
      ("x = \"see me@example.org: text\"", "x = \"see me@example.org: text\""),
      ("x = \"at 12:30 @ noon\"", "x = \"at 12:30 @ noon\""),
      ("at=12:30 @ noon", "at=12:30 @ noon"),
      ("schedule = \"Mon *-*-* 06:00:00 @ Berlin\"", "schedule = \"Mon *-*-* 06:00:00 @ Berlin\""),
      ("'*:0/15 @x'", "'*:0/15 @x'"),
      ("# 08:00-18:00 ann@example.org", "# 08:00-18:00 ann@example.org"),
      ("x = \"12:30@h\"", "x = \"***@h\""), ("x = \"12:30 u:p@h\"", "x = \"***@h\""),
      ("x = \"at 12:30 //tok@h\"", "x = \"***@h\""), ("x = \"12:30 http:/tok@h\"", "x = \"***@h\""),
      ("x = \"1:234 p@h\"", "x = \"***@h\""), ("x = 12:30 u:p q@h", "x = 12:30 ***@h"),
      ("x = \"https://12:30 p@h\"", "x = \"https://***@h\""),
      ("feed=https://u:a\"b@h", "feed=https://***@h"),
      ("{at=\"8:00\",x=\"u:p@h\"}", "{at=\"8:00\",x=\"***@h\"}"),
      ("feed = \"https://u:p\\u0040h/x\"", "feed = \"https://***\""),
      ("feed = \"u:p\\U00000040h\"", "feed = \"***\""),
      ("feed = \"https://u:p%40h/x\"", "feed = \"https://***/x\""),
      ("include = \"a\\\\*b\"", "include = \"a\\\\*b\""),
    ]) func malformedAddressesAreHiddenAlone(_ text: String, _ plain: String)
  {
    #expect(Redaction.doubtful(text, isCut: false) == plain)
  }

  /// What is a password only the front of the line tells, however far the place is.
  @Test(arguments: [75, 90, 130, 5000]) func aLongLineShowsNoPartOfAPassword(column: Int) {
    for inside in ["'", "\\\"", " "] {
      let front = "mirror.a = { feed = \"https://user:abcdefgh\(inside)s3cret@host/x\", "
      let line = front + String(repeating: "z", count: max(0, column - front.count)) + " = 3 }"
      let excerpt = SettingsProblem.Excerpt(line: line, column: column, showing: .whole)
      #expect(!excerpt.text.contains("cret") && !excerpt.text.contains("abcd"), "\(excerpt.text)")
    }
  }

  /// The caret stays at its place.
  @Test func theCaretPointsAtWhatIsHidden() throws {
    let text = "[mirror.a]\nfeed = \"https://u:ge/heim@h:x/y\"\nfolder = \"/srv/a\""
    let excerpt = try #require(Sample.load(text).problems.first?.excerpt)
    #expect(excerpt.text == "feed = \"https://***@h:x/y\"" && excerpt.offset == 7 && excerpt.length == 19)
    let inside = SettingsProblem.Excerpt(line: "x = https://u:ge/heim@h", column: 14, showing: .whole)
    #expect(inside.text == "x = https://***@h" && inside.offset == 12)
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
