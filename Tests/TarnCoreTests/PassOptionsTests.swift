import TarnCore
import TestSupport
import Testing

@Suite struct PassOptionsTests {
  private static func options(_ values: [PassOptions.Name: [String]]) -> PassOptions {
    PassOptions(values: values)
  }

  /// Byte for byte: `String` would hold NFC and NFD for equal.
  private static func bytes(_ options: PassOptions) -> [PassOptions.Name: [[UInt8]]] {
    options.values.mapValues { $0.map { Array($0.utf8) } }
  }

  @Test(arguments: [
    "", "plain", "a=b", "=", "a\nb", "\n", "\\", "\\n", "\\\\n", "a\r", "\r\n", "\r", "\u{301}accent",
    "\u{200D}",
    "e\u{301}", "\u{E9}", "delete=true", "\nexclude=x", " ", "😀\u{FE0F}", "\0",
  ]) func valuesReadBack(_ value: String) {
    let given = Self.options([.include: [value, "x", value], .cookies: [value], .proxy: ["p"]])
    #expect(Self.bytes(PassOptions(encoded: given.encoded)) == Self.bytes(given))
  }

  /// What changes nothing is not told apart, however it is written.
  @Test func whatWouldChangeAPassIsFound() {
    let settings = Self.options([
      .delete: ["true"], .limitRate: ["2MiB/s"], .maxAge: ["24h"], .headerFile: ["/h"],
      .exclude: ["e\u{301}"],
    ])
    func changing(_ values: [PassOptions.Name: [String]]) -> [PassOptions.Name] {
      Self.options(values).changing(settings)
    }
    #expect(changing([:]) == [])
    #expect(changing(settings.values) == [])
    #expect(
      changing([
        .limitRate: ["2097152"], .maxAge: ["1d"], .netrc: ["false"],
        .netrcFile: [""],
        .proxy: [""], .userAgent: [""], .keepList: ["true"], .connections: ["16"], .include: [],
      ]) == [])
    let others: [PassOptions.Name: [String]] = [
      .delete: ["false"], .exclude: ["\u{E9}"], .include: ["a"], .keep: ["1"], .maxAge: ["1h"],
      .template: ["{name}"],
      .deleteLimit: ["25%"], .keepTrash: ["1d"], .localChanges: ["keep"], .publishLast: ["x"],
      .keepList: ["false"], .portableNames: ["true"], .format: ["links"], .connections: ["1"],
      .connectionsPerHost: ["1"], .retries: ["0"], .limitRate: ["off"], .reserve: ["1GiB"], .headerFile: [""],
      .cookies: ["/c"], .netrc: ["true"], .netrcFile: ["/n"], .cacert: ["/a"], .proxy: ["http://h:1"],
      .userAgent: ["x"],
    ]
    for (name, value) in others { #expect(changing([name: value]) == [name]) }
    #expect(Set(changing(others)) == Set(PassOptions.Name.allCases))
    // Of these some make it another choice of files.
    let choosing = PassOptions.Name.allCases.filter { name in
      let other = Self.options(others.filter { $0.key == name }).over(settings)
      return (try? other.policy().choosesOthers(than: settings.policy())) != false
    }
    #expect(choosing == [.include, .exclude, .keep, .maxAge, .template, .keepList, .portableNames, .format])
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func anythingReadsBack(seed: UInt64) {
    var random = Seeded(seed)
    let scalars: [Unicode.Scalar] = [
      "a", "=", "\n", "\r", "\\", "n", "\u{301}", "\u{200D}", "\u{1F600}", "\u{FE0F}", "\0",
    ]
    for _ in 0..<500 {
      var values: [PassOptions.Name: [String]] = [:]
      for name in PassOptions.Name.allCases where random.chance(30) {
        values[name] = (0...random.below(3)).map { _ in
          var text = ""
          for _ in 0..<random.below(6) { text.unicodeScalars.append(random.pick(scalars)) }
          return text
        }
      }
      let given = Self.options(values)
      guard Self.bytes(PassOptions(encoded: given.encoded)) == Self.bytes(given) else {
        Issue.record("\(Printable.escape(given.encoded))")
        return
      }
    }
  }

  @Test func wordsAreThoseThatAreTyped() {
    let options = Self.options([
      .delete: ["true"], .netrc: ["false"], .exclude: ["*.tmp", "true"], .limitRate: ["1MiB/s"],
      .template: ["{date} x"],
    ])
    #expect(
      options.words == [
        "--delete", "--exclude '*.tmp'", "--exclude true", "--template '{date} x'", "--limit-rate 1MiB/s",
        "--no-netrc",
      ])
    #expect(PassOptions(named: options.named) == options)
    #expect(PassOptions(named: ["of-another-tarn": ["1"]]).values.isEmpty)
  }

  @Test func linesOfANewerTarnAreLeftOut() {
    let read = PassOptions(encoded: "delete=true\nsparkle=yes\nnonsense\n\n=x\ncookies=a")
    #expect(read == Self.options([.delete: ["true"], .cookies: ["a"]]))
    #expect(PassOptions(encoded: "") == PassOptions())
  }

  @Test func givenOptionsReplaceRememberedOnes() {
    let remembered = Self.options([.include: ["a", "b"], .delete: ["true"]])
    let given = Self.options([.include: ["c"], .retries: ["1"]])
    #expect(given.over(remembered) == Self.options([.include: ["c"], .delete: ["true"], .retries: ["1"]]))
    #expect(PassOptions().over(remembered) == remembered)
  }

  @Test func defaults() throws {
    #expect(try PassOptions().policy() == PassPolicy())
    #expect(try PassOptions().network() == NetworkSettings())
    #expect(PassOptions.Name.allCases.filter(\.isList) == [.include, .exclude, .publishLast])
  }

  @Test func everyOptionArrives() throws {
    let given = Self.options([
      .delete: ["true"], .localChanges: ["keep"], .include: ["*.iso"], .exclude: ["tmp/", "*.o"],
      .publishLast: ["INDEX"], .keepList: ["false"], .portableNames: ["true"], .format: ["links"],
      .retries: ["0"],
      .reserve: ["1GiB"],
      .connections: ["256"],
      .connectionsPerHost: ["64"], .limitRate: ["1k/s"], .cookies: ["/c"], .cacert: ["/ca"],
      .proxy: ["http://p:1"], .userAgent: ["Mozilla/5.0 (compatible)"],
    ])
    let policy = try given.policy()
    #expect(policy.deletes && policy.localChanges == .keep && policy.pathRule.portable && policy.retries == 0)
    #expect(policy.format == .links)
    #expect(policy.reserve == .bytes(1 << 30))
    #expect(isIndex("x/INDEX", policy) && !isIndex("Release", policy))
    #expect(!policy.filter.excludes(path("a.iso")) && policy.filter.excludes(path("a.txt")))
    #expect(policy.filter.excludes(path("tmp/a.iso")))
    let network = try given.network()
    #expect(network.connections == 256 && network.connectionsPerHost == 64 && network.rate == 1024)
    #expect(network.cookieFile == "/c" && network.caFile == "/ca" && network.proxy == "http://p:1")
    #expect(network.userAgent == "Mozilla/5.0 (compatible)")
  }

  @Test(arguments: ["a\nb", "a\u{7F}", "é", String(repeating: "x", count: 257)])
  func aUserAgentIsOneLineOfASCII(text: String) {
    let failure = #expect(throws: PassOptions.Failure.self) {
      try Self.options([.userAgent: [text]]).network()
    }
    #expect(failure?.name == .userAgent)
  }

  @Test(
    arguments: [
      (.localChanges, "Restore", "restore, keep or report"), (.retries, "101", "a number from 0 to 100"),
      (.retries, "-1", "a number from 0 to 100"), (.retries, "", "a number from 0 to 100"),
      (.retries, "99999999999999999999", "a number from 0 to 100"),
      (.reserve, "100%", "a size such as 10GiB or a share such as 1%"),
      (.format, "html", "auto, rss, index, links, manifest, metalink, checksums, sfv or urls"),
    ] as [(PassOptions.Name, String, String)])
  func policyRefuses(_ name: PassOptions.Name, _ value: String, _ expected: String) {
    let failure = #expect(throws: PassOptions.Failure.self) { try Self.options([name: [value]]).policy() }
    #expect(failure?.message == "--\(name.rawValue): '\(value)' is not \(expected)")
  }

  @Test(
    arguments: [
      (.connections, "0", "a number from 1 to 256"), (.connections, "257", "a number from 1 to 256"),
      (.connectionsPerHost, "65", "a number from 1 to 64"),
      (.connectionsPerHost, "six", "a number from 1 to 64"),
      (.limitRate, "0", "a rate such as 2MiB/s, or off"),
    ] as [(PassOptions.Name, String, String)])
  func networkRefuses(_ name: PassOptions.Name, _ value: String, _ expected: String) {
    let failure = #expect(throws: PassOptions.Failure.self) { try Self.options([name: [value]]).network() }
    #expect(failure?.message == "--\(name.rawValue): '\(value)' is not \(expected)")
  }

  @Test(arguments: ["foo", "http://", "http:///x", "ftp://h:1", "http://a b", "http://:1"])
  func aProxyIsAURL(text: String) {
    let failure = #expect(throws: PassOptions.Failure.self) { try Self.options([.proxy: [text]]).network() }
    #expect(failure?.message.contains("http://host:port") == true)
  }

  @Test func anEmptyProxyIsNone() throws {
    #expect(try Self.options([.proxy: ["http://p:1", ""]]).network().proxy == nil)
    #expect(try Self.options([.proxy: ["SOCKS5h://p"]]).network().proxy == "SOCKS5h://p")
  }

  @Test func theLastOfSeveralCounts() throws {
    #expect(try Self.options([.retries: ["x", "7"]]).policy().retries == 7)
    #expect(try Self.options([.limitRate: ["1k", "off"]]).network().rate == nil)
    #expect(try !Self.options([.delete: ["true", "false"]]).policy().deletes)
    let failure = #expect(throws: PassOptions.Failure.self) {
      try Self.options([.retries: ["\u{1B}[1m"]]).policy()
    }
    #expect(failure?.message == "--retries: '\\x1b[1m' is not a number from 0 to 100")
  }
}

@Suite struct PolicyTests {
  @Test(arguments: [
    ("repodata/repomd.xml", true), ("os/x86_64/repodata/repomd.xml", true),
    ("repodata/primary.xml.gz", false),
    ("dists/bookworm/Release", true), ("dists/bookworm/InRelease", true), ("SHA256SUMS", true),
    ("a/index.html", true),
    ("SHA256SUMS.txt", false), ("repomd.xml", false), ("release", false),
  ])
  func indexFilesComeLast(_ name: String, _ isIndex: Bool) {
    #expect((PassPolicy().phase(of: Entry(path: path(name), sources: [])) == .index) == isIndex)
  }

  /// Whatever it is called: files of --publish-last come before it, for it names them.
  @Test(arguments: ["SHA256SUMS", "list.txt"]) func theFeedsOwnListComesLast(_ name: String) {
    let list = Entry(path: path(name), isList: true)
    let index = Entry(path: path("Release"), sources: [])
    #expect(PassPolicy().phase(of: list) > PassPolicy().phase(of: index))
  }

  @Test(
    arguments: [
      ([], [], "a", false), (["*.iso"], [], "a.iso", false), (["*.iso"], [], "a.txt", true),
      ([], ["*.iso"], "a.iso", true),
      (["*.iso"], ["old/"], "old/a.iso", true), (["*.iso"], ["old/"], "new/a.iso", false),
      (["data/"], [], "data/x/y", false),
      (["data/"], [], "x/data", true), ([], ["*", "!keep"], "keep", false), (["*", "!no"], [], "no", true),
    ] as [([String], [String], String, Bool)])
  func filters(include: [String], exclude: [String], name: String, excluded: Bool) {
    var filter = PathFilter()
    filter.include = PathPatterns(include)
    filter.exclude = PathPatterns(exclude)
    #expect(filter.excludes(path(name)) == excluded)
  }

  @Test func thePatternThatDecidesIsNamed() {
    var filter = PathFilter()
    filter.exclude = PathPatterns(["*.iso", "", "tmp/", "!keep.iso", "a*.iso"])
    #expect(filter.exclusion(of: path("b.iso")) == .excluded(by: "*.iso"))
    #expect(filter.exclusion(of: path("tmp/keep.iso")) == .excluded(by: "tmp/"))
    #expect(filter.exclusion(of: path("a.iso")) == .excluded(by: "a*.iso"))
    for name in ["keep.iso", "a.txt"] { #expect(filter.exclusion(of: path(name)) == nil) }
    filter.include = PathPatterns(["*.txt", "!b.txt"])
    #expect(filter.exclusion(of: path("a.txt")) == nil)
    #expect(filter.exclusion(of: path("b.txt")) == .takenBack(by: "!b.txt"))
    #expect(filter.exclusion(of: path("c.bin")) == .notIncluded)
    #expect(filter.exclusion(of: path("b.iso")) == .excluded(by: "*.iso"))
  }
}

private func isIndex(_ name: String, _ policy: PassPolicy) -> Bool {
  policy.phase(of: Entry(path: path(name), sources: [])) == .index
}
