import TarnCore
import Testing

@testable import TarnConfig

@Suite struct ShowTests {
  /// What a mirror made by hand remembers, as settings.
  @Test func whatIsRememberedIsShownAsSettings() {
    let options = PassOptions(values: [
      .delete: ["true"], .exclude: ["*.tmp"], .keep: ["20"], .headerFile: ["/h"], .proxy: ["http://***@p:1"],
    ])
    let records = RememberedSettings.records(
      feed: "https://example.org/x", folder: "/srv/my.iso", state: nil, options: options)
    #expect(
      SettingsText.show(records, standard: false) == """
        [mirror.mirror]
        feed = "https://example.org/x"  # remembered
        folder = "/srv/my.iso"  # remembered
        delete = true  # remembered
        exclude = ["*.tmp"]  # remembered
        keep = 20  # remembered
        header-file = { file = "/h" }  # remembered
        proxy = "http://***@p:1"  # remembered

        """)
    let all = RememberedSettings.records(
      feed: nil, folder: "/srv/iso", state: "/var/s", options: PassOptions())
    #expect(
      all.first?.table == .mirror("iso")
        && all.contains { $0.name == "delete" && $0.toml == "false" && $0.origin == .standard })
  }

  @Test func eachValueWithItsOrigin() {
    let files = FakeFiles([
      Sample.main: Sample.mirror("every = \"1h\"\nkeep = 20\ncookies = { credential = \"c\" }"),
      "/etc/tarn/conf.d/a.toml": "[mirror.a]\nkeep = \"all\"\nschedule = \"06:00\"",
    ])
    let loaded = Sample.load(files, Sample.paths(["TARN_SOCKET": "/s"]), purpose: .check)
    #expect(
      SettingsText.show(loaded, standard: false) == """
        [agent]
        socket = "/s"  # $TARN_SOCKET

        [mirror.a]
        feed = "https://example.org/SHA256SUMS"  # /etc/tarn/tarn.toml:2:8
        folder = "/srv/a"  # /etc/tarn/tarn.toml:3:10
        schedule = ["06:00"]  # /etc/tarn/conf.d/a.toml:3:12, instead of every = "1h" from /etc/tarn/tarn.toml:4:9
        keep = "all"  # /etc/tarn/conf.d/a.toml:2:8, instead of 20 from /etc/tarn/tarn.toml:5:8
        cookies = { credential = "c" }  # /etc/tarn/tarn.toml:6:11

        """)
    let all = SettingsText.show(loaded)
    for line in [
      "# delete-limit is not set: 10%, at least 3 and at most 1000  # standard\n",
      "# local-changes is not set: restore; keep for RSS, Atom and JSON Feed  # standard\n",
      "# portable-names is not set: ", "# user-agent is not set: tarn/VERSION  # standard\n",
    ] { #expect(all.contains(line), "\(all)") }
    let set = Sample.load(Sample.mirror("delete-limit = \"5%\""), purpose: .check)
    #expect(!SettingsText.show(set).contains("# delete-limit is not set"))
    #expect(
      all.contains("\n[limits]\npasses = 4  # standard\n") && all.contains("\nretries = 5  # standard\n"))
  }

  /// What is shown can be read again and asks for the same.
  @Test(arguments: [
    Sample.mirror(
      "exclude = [\"a\\\"b\", \"c\\\\d\", \"\\u0007é\\u202E\"]\ntemplate = '{title} \"x\"'\nkeep = 3"),
    Sample.mirror(
      "rate = [{ at = \"22:00-06:00\", limit = \"off\" }]\nreserve = 5\ndelete = true\nmax-age = \"1h 30min\""
    ),
    "[mirror.\"é-1\"]\nfeed = \"/a b\"\nfolder = \"/srv/é\"\nschedule = [\"06:00\", \"Mon  7:5\"]\nstate = \"/var/x\"",
    "[limits]\npasses = 3\nrate = []\n[agent]\nlog-format = \"text\"\nsocket = \"/s\"",
    Sample.mirror("proxy = { credential = \"p\" }\nheader-file = { credential = \"h\" }\ninclude = []"),
  ])
  func whatIsShownReadsBack(text: String) throws {
    let loaded = Sample.load(text, purpose: .check)
    #expect(loaded.settings != nil, "\(loaded.problems)")
    let again = Sample.load(SettingsText.show(loaded, standard: false), purpose: .check)
    #expect(again.settings == loaded.settings, "\(again.problems.map(\.text))")
    let whole = Sample.load(SettingsText.show(loaded), purpose: .check)
    let mirrors = try (#require(whole.settings).mirrors, #require(loaded.settings).mirrors)
    #expect(mirrors.0.count == mirrors.1.count)
    for (one, other) in zip(mirrors.0, mirrors.1) {
      #expect(try one.options.policy() == other.options.policy())
      #expect(try one.options.network() == other.options.network())
    }
  }

  @Test func standardValuesAreWhatHoldsWithoutThem() throws {
    let lines = Setting.all(in: .mirror).compactMap { setting in
      setting.standard.map { "\(setting.name) = \($0)" }
    }
    let set = try #require(Sample.load(Sample.mirror(lines.joined(separator: "\n"))).settings?.mirrors.first)
    #expect(try set.options.policy() == PassOptions().policy())
    #expect(try set.options.network() == PassOptions().network())
    #expect(!set.adopts && !set.isDryRun)
    let shared = [Setting.Scope.limits, .agent].map { scope in
      "[\(scope.rawValue)]\n"
        + Setting.all(in: scope).compactMap { setting in setting.standard.map { "\(setting.name) = \($0)\n" }
        }
        .joined()
    }
    #expect(Sample.load(shared.joined()).settings == Sample.load("").settings)
  }

  @Test func pathsAreListed() {
    let files = FakeFiles([Sample.main: "", "/etc/tarn/conf.d/a.toml": "["])
    let loaded = Sample.load(files)
    #expect(
      SettingsText.paths(Sample.paths(), loaded) == """
        settings    /etc/tarn/tarn.toml
        settings    /etc/tarn/conf.d/a.toml (not taken)
        settings    /etc/tarn/conf.d/*.toml
        socket      "/run/tarn/tarn.sock" (standard)
        state       /var/lib/tarn
        credentials none: $CREDENTIALS_DIRECTORY is not set

        """)
    let one = Sample.paths(["HOME": ""], isRoot: false, config: "/x\u{1B}.toml")
    #expect(
      SettingsText.paths(one, Sample.load(FakeFiles(), one)) == """
        settings    /x\\x1b.toml (not there)
        socket      none: there is no runtime directory
        state       none: $HOME is not set
        credentials none: $CREDENTIALS_DIRECTORY is not set

        """)
  }
}
