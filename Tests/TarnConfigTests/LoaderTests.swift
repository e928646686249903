import TarnCore
import TarnSchedule
import Testing

@testable import TarnConfig

@Suite struct LoaderTests {
  /// The smallest form.
  @Test func theSmallestForm() throws {
    let loaded = Sample.load(
      """
      [mirror.podcasts]
      feed = "https://example.org/show/feed.xml"
      folder = "/srv/podcasts"
      every = "1h"
      keep = 20

      [mirror.iso]
      feed = "https://example.org/iso/SHA256SUMS"
      folder = "/srv/iso"
      schedule = "*-*-* 03:00"
      delete = true
      local-changes = "restore"
      """)
    #expect(loaded.problems == [])
    let settings = try #require(loaded.settings)
    #expect(settings.mirrors.map(\.name) == ["iso", "podcasts"])
    let podcasts = try #require(settings.mirror("podcasts"))
    #expect(podcasts.rhythm == .every(3600))
    #expect(podcasts.options.values == [.keep: ["20"]])
    let iso = try #require(settings.mirror("iso"))
    #expect(iso.rhythm == .calendar(["*-*-* 03:00"]))
    #expect(iso.options.values == [.delete: ["true"], .localChanges: ["restore"]])
    #expect(iso.feed == "https://example.org/iso/SHA256SUMS" && iso.folder == "/srv/iso" && iso.state == nil)
    #expect(settings.limits == LimitSettings())
    #expect(settings.agent.socket == "/run/tarn/tarn.sock")
  }

  @Test func everySettingOfAPassIsTaken() throws {
    let lines = Setting.all(in: .mirror).filter { $0.option != nil && !$0.kind.isSecret }.map {
      "\($0.name) = \($0.example)"
    }
    var files = FakeFiles([Sample.main: Sample.mirror(lines.joined(separator: "\n"))])
    files.modes["/etc/ssl/certs/example.pem"] = SettingsFileAttributes(
      isRegular: true, mode: 0o644, isReadable: true)
    let loaded = Sample.load(files)
    #expect(loaded.problems == [])
    let values = try #require(loaded.settings?.mirrors.first).options.values
    let expected = Set(PassOptions.Name.allCases).subtracting([.headerFile, .cookies, .netrcFile, .proxy])
    #expect(Set(values.keys) == expected)
    #expect(values[.exclude] == ["*.tmp", "old/"])
    #expect(values[.maxAge] == ["90d"])
    #expect(values[.netrc] == ["true"])
  }

  @Test func theOtherSettingsOfAMirror() throws {
    let loaded = Sample.load(
      Sample.mirror(
        """
        adopt = true
        dry-run = true
        watch = false
        rescan = "1 week"
        state = "~/.local/tarn//a/./"
        schedule = ["Mon 06:00", "Sat 10:00"]
        rate = [{ at = "08:00-18:00", limit = "2MiB/s" }, { limit = "off", at = "Sat,Sun 00:00-24:00" }]
        reserve = 1073741824
        max-age = "1w 2 days"
        keep = "all"
        limit-rate = "off"
        """))
    #expect(loaded.problems == [])
    let mirror = try #require(loaded.settings?.mirrors.first)
    #expect(mirror.adopts && mirror.isDryRun)
    #expect(!mirror.watches && mirror.rescan == 604_800)
    #expect(mirror.state == "/users/ann/.local/tarn/a")
    #expect(mirror.rhythm == .calendar(["Mon 06:00", "Sat 10:00"]))
    #expect(mirror.rates.map(\.limit) == [2_097_152, nil])
    let shown = loaded.records.first { $0.name == "rate" && $0.table == .mirror("a") }?.toml
    #expect(
      shown
        == "[{ at = \"08:00-18:00\", limit = \"2MiB/s\" }, { at = \"Sat,Sun 00:00-24:00\", limit = \"off\" }]"
    )
    #expect(try mirror.options.policy().reserve == .bytes(1 << 30))
    #expect(try mirror.options.policy().window.maxAge == 777_600)
    #expect(try mirror.options.policy().window.keep == nil)
    #expect(try mirror.options.network().rate == nil)
  }

  /// Also where it is written down.
  @Test(arguments: ["", "watch = true"]) func aFolderIsWatchedUnlessItIsSaid(line: String) throws {
    let mirror = try #require(Sample.load(Sample.mirror(line)).settings?.mirrors.first)
    #expect(mirror.watches && mirror.rescan == 86_400)
  }

  @Test func aRescanHasTheBoundsOfEvery() {
    for (text, number) in [("\"30s\"", 30), ("\"367d\"", 31_708_800)] {
      let problems = Sample.load(Sample.mirror("rescan = \(text)")).problems
      #expect(problems.map(\.code) == [.outOfRange], "\(number) s")
      // A pass by command, or a schedule, is no rescan.
      let hint = problems.first?.hint ?? ""
      #expect(["write rescan = \"1min\"", "write rescan = \"366d\""].contains(hint), "\(hint)")
    }
    #expect(Sample.load(Sample.mirror("rescan = true")).problems.map(\.code) == [.wrongType])
    #expect(Sample.load(Sample.mirror("watch = \"yes\"")).problems.map(\.code) == [.wrongType])
  }

  @Test func limitsAndAgent() throws {
    let loaded = Sample.load(
      """
      [limits]
      passes = 2
      connections = 64
      connections-per-host = 3
      limit-rate = "10MiB/s"
      rate = [{ at = "Mon..Fri 08:00-18:00", limit = "1MB/s" }]
      [agent]
      socket = "/run/other.sock"
      log-format = "json"
      keep-events = "30 days"
      status-access = "owner"
      """)
    #expect(loaded.problems == [])
    let settings = try #require(loaded.settings)
    #expect(settings.limits.passes == 2 && settings.limits.connections == 64)
    #expect(settings.limits.connectionsPerHost == 3 && settings.limits.rate == 10 << 20)
    #expect(settings.limits.rates.first?.limit == 1_000_000)
    #expect(settings.agent.socket == "/run/other.sock" && settings.agent.logFormat == .json)
    #expect(settings.agent.keepEvents == 2_592_000 && settings.agent.statusAccess == .owner)
  }

  @Test func withoutAnyFileThereAreNoMirrors() {
    let loaded = Sample.load(FakeFiles())
    #expect(loaded.problems == [])
    #expect(loaded.settings?.mirrors == [])
    #expect(loaded.files == [SettingsFileState(path: Sample.main, state: .missing)])
  }

  // MARK: - Several files

  @Test func laterFilesAddAndReplace() throws {
    let files = FakeFiles([
      "/etc/tarn/conf.d/20-b.toml": "[mirror.a]\nkeep = 30\nexclude = [\"x\"]\n[limits]\npasses = 1",
      "/etc/tarn/conf.d/10-a.toml": "[mirror.a]\nkeep = 10\n[mirror.b]\nfeed = \"/b\"\nfolder = \"/srv/b\"",
      "/etc/tarn/tarn.toml": Sample.mirror("keep = 20\ndelete = true"),
      "/etc/tarn/conf.d/.30.toml": "[mirror.a]\nkeep = 40", "/etc/tarn/conf.d/30.toml~": "[",
    ])
    let loaded = Sample.load(files)
    #expect(loaded.problems == [])
    #expect(
      loaded.files.map(\.path) == [
        "/etc/tarn/tarn.toml", "/etc/tarn/conf.d/10-a.toml", "/etc/tarn/conf.d/20-b.toml",
      ])
    let mirror = try #require(loaded.settings?.mirror("a"))
    #expect(mirror.options.values == [.keep: ["30"], .delete: ["true"], .exclude: ["x"]])
    #expect(loaded.settings?.mirror("b")?.feed == "/b")
    let record = try #require(loaded.records.first { $0.table == .mirror("a") && $0.name == "keep" })
    #expect(record.toml == "30" && record.origin.text == "/etc/tarn/conf.d/20-b.toml:2:8")
    #expect(record.shadowed.map(\.value) == [.number(10), .number(20)])
    #expect(
      record.shadowed.map(\.origin.text) == ["/etc/tarn/conf.d/10-a.toml:2:8", "/etc/tarn/tarn.toml:4:8"])
  }

  @Test func aLaterRhythmReplacesTheOtherKind() throws {
    let files = FakeFiles([
      Sample.main: Sample.mirror("every = \"1h\""),
      "/etc/tarn/conf.d/x.toml": "[mirror.a]\nschedule = \"06:00\"",
    ])
    let loaded = Sample.load(files)
    #expect(loaded.problems == [])
    #expect(loaded.settings?.mirrors.first?.rhythm == .calendar(["06:00"]))
    let record = try #require(loaded.records.first { $0.name == "schedule" })
    #expect(record.shadowed.map(\.name) == ["every"])
    #expect(!loaded.records.contains { $0.name == "every" })

    let back = FakeFiles([
      Sample.main: Sample.mirror("schedule = \"06:00\""),
      "/etc/tarn/conf.d/x.toml": "[mirror.a]\nevery = \"2h\"",
    ])
    #expect(Sample.load(back).settings?.mirrors.first?.rhythm == .every(7200))
  }

  @Test func flagsStandAboveTheEnvironmentAndThatAboveFiles() throws {
    let files = FakeFiles([Sample.main: "[agent]\nsocket = \"/run/file.sock\"\n[limits]\npasses = 3"])
    #expect(Sample.load(files).settings?.agent.socket == "/run/file.sock")
    let byEnvironment = Sample.load(files, Sample.paths(["TARN_SOCKET": "/run/env.sock"]))
    #expect(byEnvironment.settings?.agent.socket == "/run/env.sock")
    let flags = [SettingOverride(.limits, "passes", "5", origin: .flag("--passes"))]
    let byFlag = Sample.load(
      files, Sample.paths(["TARN_SOCKET": "/run/env.sock"], socket: "flag.sock", flags: flags))
    #expect(byFlag.settings?.agent.socket == "/here/flag.sock")
    #expect(byFlag.settings?.limits.passes == 5)
    let record = try #require(byFlag.records.first { $0.name == "socket" })
    #expect(record.origin == .flag("--socket"))
    #expect(record.shadowed.map(\.origin.text) == ["$TARN_SOCKET", "/etc/tarn/tarn.toml:2:10"])
  }

  @Test func aBadFlagIsToldByItsName() {
    let flags = [
      SettingOverride(.limits, "passes", "many", origin: .flag("--passes")),
      SettingOverride(.limits, "passes", "0", origin: .flag("--passes")),
      SettingOverride(.agent, "nothing", "", origin: .flag("--nothing")),
      SettingOverride(.mirror, "feed", "/x", origin: .flag("--feed")),
    ]
    let loaded = Sample.load(FakeFiles(), Sample.paths(flags: flags))
    #expect(loaded.settings == nil)
    #expect(loaded.problems.map(\.code) == [.wrongType, .outOfRange, .unknownSetting, .unknownSetting])
    #expect(loaded.problems[0].text.hasPrefix("--passes: error: 'passes' takes a whole number from 1 to 64"))
  }

  @Test func oneFileByFlagReplacesAllOthers() {
    let files = FakeFiles([Sample.main: "[", "/here/my.toml": Sample.mirror("")])
    let loaded = Sample.load(files, Sample.paths(config: "my.toml"))
    #expect(loaded.problems == [])
    #expect(loaded.settings?.mirrors.count == 1)
    let missing = Sample.load(files, Sample.paths(config: "/none.toml"))
    #expect(missing.settings == nil)
    #expect(missing.problems.map(\.code) == [.fileMissing])
  }

  @Test func filesThatCannotBeReadAreErrors() {
    var files = FakeFiles(["/etc/tarn/conf.d/a.toml": Sample.mirror("")])
    files.failures = [
      Sample.main: .denied, "/etc/tarn/conf.d/a.toml": .notRegular,
    ]
    files.otherNames = ["x\\xff.toml", "y\\xff.txt"]
    let loaded = Sample.load(files)
    #expect(loaded.problems.map(\.code) == [.fileNotReadable, .fileNotReadable, .fileNotReadable])
    #expect(loaded.files.map(\.state) == [.failed, .failed])
    var closed = FakeFiles()
    closed.failures = ["/etc/tarn/conf.d": .denied]
    #expect(Sample.load(closed).problems.map(\.code) == [.fileNotReadable])
    var long = FakeFiles()
    long.files[Sample.main] = [UInt8](repeating: 0x20, count: SettingsLoader.longestFile + 1)
    #expect(Sample.load(long).problems.map(\.code) == [.fileTooLong])
  }

  /// Passed over it would take its mirrors out of the settings without a word.
  @Test func aLinkToNothingIsAnError() throws {
    let path = "/etc/tarn/conf.d/b.toml"
    var files = FakeFiles([Sample.main: Sample.mirror("")])
    files.deadLinks = [path: "/srv/settings/b.toml", "/etc/tarn/conf.d/.#b.toml": "ann@host.7"]
    let loaded = Sample.load(files)
    #expect(loaded.settings == nil && loaded.files.map(\.state) == [.read, .failed])
    let problem = try #require(loaded.problems.first)
    #expect(loaded.problems.count == 1 && problem.code == .fileMissing)
    #expect(
      problem.text == """
        \(path):1:1: error: this file cannot be read: it is a link to /srv/settings/b.toml, which is not there
          put back what it leads to, or remove the link

        """)
    for path in [Sample.main, "/etc/tarn/conf.d"] {
      var files = FakeFiles()
      files.deadLinks = [path: "gone"]
      #expect(Sample.load(files).problems.map(\.code) == [.fileMissing])
    }
    var running = try #require(RunningSettings(Sample.load(FakeFiles([Sample.main: Sample.mirror("")]))))
    #expect(running.reload(loaded) == .kept(loaded.problems))
  }

  /// What is missing may stand in the file that is broken.
  @Test func aBrokenFileMakesNoOtherLookIncomplete() {
    let files = FakeFiles([
      Sample.main: "[mirror.a]\nfeed = \"/a\"\nkepe = 1",
      "/etc/tarn/conf.d/a.toml": "[mirror.a]\nfolder = /srv/a",
    ])
    #expect(Sample.load(files).problems.map(\.code) == [.unknownSetting, .syntax])
  }
}
