import TarnCore
import Testing

@testable import TarnConfig

@Suite struct TableTests {
  @Test func everyOptionOfAPassIsASettingUnderItsName() {
    let names = Setting.all(in: .mirror).compactMap(\.option)
    #expect(names == PassOptions.Name.allCases)
    for name in PassOptions.Name.allCases {
      #expect(Setting.find(name.rawValue, in: .mirror)?.option == name)
    }
  }

  @Test func namesAreThereOnceAndWordsAreInOrder() {
    for scope in Setting.Scope.allCases {
      let names = Setting.all(in: scope).map(\.name)
      #expect(Set(names).count == names.count)
    }
    for setting in Setting.all {
      #expect(!setting.help.isEmpty && !setting.help.hasSuffix(".") && !setting.help.contains("\n"))
      #expect(!setting.kind.takes.isEmpty)
    }
  }

  @Test(arguments: Setting.all)
  func everyExampleIsTaken(setting: Setting) {
    let line = "\(setting.name) = \(setting.example)"
    let text: String
    switch setting.scope {
    case .agent where setting.name == "metrics-listen":
      text = "[agent]\nmetrics-token = \"\(Sample.secrets[0])\"\n\(line)"
    case .agent, .limits: text = "[\(setting.scope.rawValue)]\n\(line)"
    case .hook: text = Sample.hook(line, of: setting.name)
    case .mirror where setting.name == "feed": text = "[mirror.a]\nfolder = \"/srv/a\"\n\(line)"
    case .mirror where setting.name == "folder": text = "[mirror.a]\nfeed = \"/a\"\n\(line)"
    case .mirror: text = Sample.mirror(line)
    }
    var files = FakeFiles([Sample.main: text])
    for path in Sample.secrets + ["/etc/ssl/certs/example.pem"] {
      files.modes[path] = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)
    }
    let loaded = Sample.load(files, purpose: .check)
    #expect(loaded.settings != nil, "\(loaded.problems.map(\.text))")
    #expect(loaded.records.contains { $0.name == setting.name && $0.origin != .standard })
  }

  /// The bounds that editors are told are those of the options themselves.
  @Test(arguments: PassOptions.Name.allCases)
  func boundsAreThoseOfTheOption(name: PassOptions.Name) {
    func isTaken(_ text: String) -> Bool {
      let options = PassOptions(values: [name: [text]])
      return (try? options.policy()) != nil && (try? options.network()) != nil
    }
    guard let setting = Setting.find(name.rawValue, in: .mirror) else {
      Issue.record("no setting")
      return
    }
    switch setting.kind {
    case .number(let range, let word):
      #expect(isTaken(String(range.lowerBound)) && isTaken(String(range.upperBound)))
      #expect(!isTaken(String(range.lowerBound - 1)) && !isTaken(String(range.upperBound + 1)))
      #expect(!isTaken("word"))
      if let word { #expect(isTaken(word)) }
    case .span(let word): #expect(isTaken("1s") && !isTaken("0s") && word.map(isTaken) ?? true)
    case .choice(let words): #expect(words.allSatisfy(isTaken) && !isTaken("word"))
    case .rate: #expect(isTaken("off") && isTaken("1B/s") && !isTaken("word"))
    case .reserve: #expect(isTaken("1%") && isTaken("5") && !isTaken("word"))
    case .limit:
      #expect(isTaken("10%") && isTaken("off") && isTaken("3") && !isTaken("2") && !isTaken("word"))
    case .boolean, .interval, .text, .patterns, .path, .secretFile, .secretURL, .feed, .rates, .calendar,
      .command, .address, .socketAddress, .words, .names:
      break
    }
  }

  @Test(
    arguments: [
      ("a", true), ("Podcasts_1", true), ("é", true), ("日本", true), (String(repeating: "a", count: 64), true),
      (String(repeating: "a", count: 65), false), ("", false), ("a/b", false), ("a.b", false), ("a:b", false),
      ("a b", false), ("-a", false), ("a-", true), ("a\n", false), ("a\u{202E}", false), ("a\u{A0}b", false),
      ("a\\b", false), ("a.\u{301}", false),
      // `session:ID` is a session, in orders.
      ("session", false), ("sessions", true), ("Session", true),
    ] as [(String, Bool)]) func names(_ name: String, _ isName: Bool)
  {
    #expect(MirrorSettings.isName(name) == isName)
  }
}
