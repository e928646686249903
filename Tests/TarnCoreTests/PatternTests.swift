import Foundation
import TarnCore
import TestSupport
import Testing

struct PatternCase: CustomTestStringConvertible, Sendable {
  var patterns: [String]
  var matched: [String]
  var others: [String]
  var testDescription: String { patterns.joined(separator: " ") }

  init(_ patterns: String..., matches matched: [String], not others: [String]) {
    self.patterns = patterns
    self.matched = matched
    self.others = others
  }
}

@Suite struct PatternTests {
  /// What would never match is told, with its place.
  @Test(
    arguments: [
      ("dir0[", "at character 5 the bracket is never closed"), ("!/é[a-", "at character 4 the bracket"),
      ("[]", "at character 1 the bracket is never closed"), ("a/[!]/", "at character 3 the bracket"),
      ("a\\", "at character 2 nothing follows the backslash"),
      ("a\\/", "at character 2 nothing follows the backslash"),
      ("[z-a]", "runs backwards"), ("x[[:foo:]]", "names no class [:foo:]"),
      ("#recycle", "with a backslash in front"), ("!", "names nothing"),
      ("/", "names nothing"), ("./old", "no path begins with './'"), ("!./*.tmp", "no path begins with './'"),
    ]) func brokenPatterns(_ text: String, _ said: String)
  {
    let fault = PathPatterns.fault(in: text)
    #expect(fault?.contains(said) == true, "\(fault ?? "sound")")
    #expect(throws: PassOptions.Failure.self) { try PassOptions(values: [.exclude: ["a", text]]).policy() }
  }

  @Test(arguments: [
    "", "a", "*.tmp", "[a-z]", "[!a]", "[]a]", "[^]-]", "a\\[", "[\\]]", "[[:digit:]x]", "[a-]", "**/b/",
    "\\#a",
    "\\!a", "!a", "[[]", "[a-\\z]", ".*", ".a/b", "...", "a/..b",
  ]) func soundPatterns(_ text: String) {
    #expect(PathPatterns.fault(in: text) == nil)
  }

  /// gitignore(5), PATTERN FORMAT, in its order.
  static let manual: [PatternCase] = [
    PatternCase("", matches: [], not: ["a", " "]),
    PatternCase("#a", matches: [], not: ["#a", "a"]),
    PatternCase("\\#a", matches: ["#a"], not: ["a", "\\#a"]),
    PatternCase("!a", matches: [], not: ["a", "!a"]),
    PatternCase("\\!a", matches: ["!a"], not: ["a"]),
    PatternCase(
      "*.html", "!foo.html", matches: ["bar.html", "x/bar.html"], not: ["foo.html", "x/foo.html"]),
    // It is not possible to take back a file when a directory above it is matched.
    PatternCase("x/", "!x/a", matches: ["x/a", "x/b"], not: ["a"]),
    PatternCase("x", "!a", matches: ["x/a", "x"], not: ["a"]),
    PatternCase(
      "/*", "!/foo", "/foo/*", "!/foo/bar", matches: ["a", "foo/x", "b/bar"], not: ["foo/bar", "foo/bar/x"]),
    // Later patterns win.
    PatternCase("!a", "a", matches: ["a"], not: []),
    PatternCase("a", "!a", "a", matches: ["a"], not: []),
    // A slash at the beginning or in the middle anchors.
    PatternCase("doc/frotz/", matches: ["doc/frotz/a"], not: ["doc/frotz", "a/doc/frotz/a"]),
    PatternCase("frotz/", matches: ["frotz/a", "a/frotz/b", "a/frotz/b/c"], not: ["frotz", "a/frotz"]),
    PatternCase("/foo", matches: ["foo", "foo/a"], not: ["a/foo"]),
    PatternCase("foo", matches: ["foo", "foo/a", "a/foo", "a/foo/b"], not: ["foox", "xfoo", "fo", "FOO"]),
    PatternCase("foo/bar", matches: ["foo/bar", "foo/bar/c"], not: ["x/foo/bar", "foo/x/bar"]),
    // Star and question mark stay in a segment.
    PatternCase("foo/*", matches: ["foo/test.json", "foo/bar", "foo/bar/hello.c"], not: ["foo", "x/foo/a"]),
    PatternCase("/a*b", matches: ["ab", "axxb", "a*b"], not: ["a/b", "a/xb", "abx"]),
    PatternCase("a?c", matches: ["abc", "a/x/abc", "a?c"], not: ["ac", "a/c", "abbc"]),
    PatternCase("/a?c", matches: ["abc"], not: ["a/c"]),
    PatternCase("*", matches: ["a", "a/b", ".a"], not: []),
    PatternCase("/*", matches: ["a", "a/b", ".a"], not: []),
    PatternCase("*/b", matches: ["a/b", "x/b/c"], not: ["b", "a/x/b"]),
    PatternCase("/*/b*c/d", matches: ["a/bc/d", "a/bxc/d"], not: ["a/b/c/d", "a/bc/x/d", "bc/d"]),
    PatternCase("a*a*b", matches: ["aab", "axaxb", "aaaaab"], not: ["ab", "aabx", "baab"]),
    PatternCase("[a-zA-Z]", matches: ["a", "Z", "1/q"], not: ["1", "ab", "_"]),
    // Two stars.
    PatternCase(
      "**/foo", matches: ["foo", "a/foo", "a/b/foo", "foo/x"], not: ["xfoo", "a/xfoo", "foox", "a/bfoo"]),
    PatternCase(
      "**/foo/bar", matches: ["foo/bar", "x/foo/bar", "x/y/foo/bar/z"], not: ["foo/x/bar", "xfoo/bar"]),
    PatternCase("abc/**", matches: ["abc/a", "abc/a/b"], not: ["abc", "x/abc/a", "abcd/a"]),
    PatternCase(
      "a/**/b", matches: ["a/b", "a/x/b", "a/x/y/b", "a/b/c"], not: ["a/xb", "ab", "x/a/b", "a/x/yb", "a"]),
    PatternCase(
      "a/**/b/**/c", matches: ["a/b/c", "a/b/b/c", "a/x/b/y/z/c"], not: ["a/c", "a/b/xc", "a/xb/c"]),
    PatternCase("/**", matches: ["a", "a/b"], not: []),
    PatternCase("**", matches: ["a", "a/b"], not: []),
    PatternCase("**/", matches: ["a/b", "a/b/c"], not: ["a"]),
    PatternCase("a/**/", matches: ["a/b/c"], not: ["a/b", "a"]),
    PatternCase("/**/*.c", matches: ["a.c", "x/a.c", "x/y/a.c"], not: ["a.h", "x/a.cc"]),
    PatternCase("**/*a*/b", matches: ["a/b", "x/xax/b", "x/y/za/b"], not: ["b", "x/b", "a/x/b"]),
    // Other consecutive stars are ordinary ones.
    PatternCase("/a**b", matches: ["ab", "axb"], not: ["a/b", "a/x/b"]),
    PatternCase("/a/x**", matches: ["a/x", "a/xy", "a/xy/z"], not: ["a/y", "a"]),
    PatternCase("/***/b", matches: ["b", "a/b", "a/x/b"], not: ["ab"]),
    PatternCase("/x**y/b", matches: ["xy/b", "xzy/b"], not: ["x/y/b"]),
    PatternCase("/**a", matches: ["a", "xa"], not: ["x/a", "ax"]),
  ]

  /// What the manual leaves to git.
  static let practice: [PatternCase] = [
    PatternCase("[!a]", matches: ["b", "]"], not: ["a", "bb"]),
    PatternCase("[^a]", matches: ["b"], not: ["a"]),
    PatternCase("[]a]", matches: ["]", "a"], not: ["b", "[]a]"]),
    PatternCase("[!]a]", matches: ["b"], not: ["]", "a"]),
    PatternCase("[a-]", matches: ["a", "-"], not: ["b"]),
    PatternCase("[-a]", matches: ["a", "-"], not: ["b"]),
    PatternCase("[a-c-e]", matches: ["a", "b", "-", "e"], not: ["d"]),
    PatternCase("[c-a]", matches: ["c"], not: ["a", "b"]),
    PatternCase("[\\]]", matches: ["]"], not: ["\\", "a"]),
    PatternCase("[\\\\]", matches: ["\\"], not: ["a"]),
    PatternCase("[a\\-c]", matches: ["a", "-", "c"], not: ["b", "\\"]),
    PatternCase("[[:digit:]x]", matches: ["1", "x"], not: ["d", ":", "["]),
    PatternCase("[[:upper:]]", matches: ["A"], not: ["a", "1"]),
    PatternCase("[![:space:]]", matches: ["a"], not: [" "]),
    PatternCase("[[:nonsense:]]", matches: [], not: ["n", ":"]),
    PatternCase("[[:]", matches: ["[", ":"], not: ["a"]),
    PatternCase("a[b", matches: [], not: ["a[b", "ab"]),
    PatternCase("[", matches: [], not: ["[", "a"]),
    PatternCase("a[/]b", matches: [], not: ["a/b", "a[/]b"]),
    PatternCase("/a[!x]b", matches: ["ayb"], not: ["a/b", "axb"]),
    PatternCase("\\*", matches: ["*"], not: ["a", "\\*"]),
    PatternCase("a\\", matches: [], not: ["a", "a\\"]),
    PatternCase("\\a\\b", matches: ["ab"], not: ["\\a\\b"]),
    PatternCase("/", matches: [], not: ["a"]), PatternCase("!", matches: [], not: ["a", "!"]),
    PatternCase("!/", matches: [], not: ["a"]),
    PatternCase("foo//", matches: [], not: ["foo", "foo/a"]),
    PatternCase("//foo", matches: [], not: ["foo", "a/foo"]),
    PatternCase("a//b", matches: [], not: ["a/b"]),
    PatternCase("\u{E9}", matches: ["\u{E9}"], not: ["e\u{301}"]),
    PatternCase("?", matches: ["a"], not: ["\u{E9}"]),
    PatternCase(" a", matches: [" a"], not: ["a"]),
  ]

  @Test(arguments: manual + practice) func patterns(_ example: PatternCase) {
    let patterns = PathPatterns(example.patterns)
    for name in example.matched { #expect(patterns.matches(path(name)) == true, "\(name)") }
    for name in example.others { #expect(patterns.matches(path(name)) != true, "\(name)") }
  }

  @Test func saysWhenNothingSpeaksOfAPath() {
    #expect(PathPatterns([]).matches(path("a")) == nil)
    #expect(PathPatterns([]).isEmpty)
    #expect(PathPatterns(["", "#x", "/"]).isEmpty)
    #expect(PathPatterns(["b"]).matches(path("a")) == nil)
    #expect(PathPatterns(["a", "!a"]).matches(path("a")) == false)
    #expect(PathPatterns(["!b", "a"]).texts == ["!b", "a"])
  }

  @Test func namesThatAreNoTextMatchByBytes() {
    let name = RelativePath(trusted: [0xFF, 0x2F, 0x61, 0xC3])
    #expect(PathPatterns(["*"]).matches(name) == true)
    #expect(PathPatterns(["?/a?"]).matches(name) == true)
    #expect(PathPatterns(["?/a"]).matches(name) == nil)
  }

  /// Time must not grow with the number of ways to match.
  @Test func hostileNamesAreMatchedInTime() {
    let name = path((0..<16).map { _ in String(repeating: "a", count: 250) }.joined(separator: "/"))
    let stars = String(repeating: "*a", count: 60) + "b"
    #expect(PathPatterns([stars]).matches(name) == nil)
    #expect(PathPatterns(["**/" + stars]).matches(name) == nil)
    let deep = path(String(repeating: "a/", count: 500) + "a")
    #expect(PathPatterns([String(repeating: "**/a/", count: 30) + "b"]).matches(deep) == nil)
    #expect(PathPatterns([String(repeating: "**/", count: 300) + "b"]).matches(deep) == nil)
  }

  /// A matcher that tries everything, written from the manual: segments against segments.
  private static func naive(_ glob: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
    let parts = glob.split(separator: 0x2F, omittingEmptySubsequences: false)
    let names = text.split(separator: 0x2F, omittingEmptySubsequences: false)
    return segments(parts[...], names[...])
  }

  private static func segments(_ parts: ArraySlice<ArraySlice<UInt8>>, _ names: ArraySlice<ArraySlice<UInt8>>)
    -> Bool
  {
    guard let part = parts.first else { return names.isEmpty }
    if part.count > 1, part.allSatisfy({ $0 == 0x2A }) {
      if parts.count == 1 { return !names.isEmpty }
      return (0...names.count).contains { segments(parts.dropFirst(), names.dropFirst($0)) }
    }
    guard let name = names.first else { return false }
    return segment(part, name) && segments(parts.dropFirst(), names.dropFirst())
  }

  private static func segment(_ part: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
    guard let first = part.first else { return name.isEmpty }
    if first == 0x2A { return (0...name.count).contains { segment(part.dropFirst(), name.dropFirst($0)) } }
    guard let byte = name.first else { return false }
    return (first == 0x3F || first == byte) && segment(part.dropFirst(), name.dropFirst())
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func matchesWhatANaiveMatcherMatches(seed: UInt64) {
    var random = Seeded(seed)
    var hits = 0
    for _ in 0..<1200 {
      let pattern = "/" + randomGlob(&random, ["a", "b", "*", "?"])
      let name = randomName(&random)
      // The pattern may match a directory above: what lies in it is matched then.
      let ends = name.indices.filter { name[$0] == 0x2F } + [name.count]
      let expected = ends.contains { Self.naive(Array(pattern.utf8)[1...], name[..<$0]) }
      if expected { hits += 1 }
      if (PathPatterns([pattern]).matches(RelativePath(trusted: name)) == true) != expected {
        Issue.record("\(pattern) on \(String(decoding: name, as: UTF8.self)): expected \(expected)")
        return
      }
    }
    #expect(hits > 120)
  }
}

private func randomGlob(_ random: inout Seeded, _ pieces: [String]) -> String {
  (0...random.below(4)).map { _ in
    random.chance(20) ? "**" : (0...random.below(3)).map { _ in random.pick(pieces) }.joined()
  }.joined(separator: "/")
}

private func randomName(_ random: inout Seeded) -> [UInt8] {
  Array(
    (0...random.below(4)).map { _ in random.bytes([0x61, 0x62], count: 1 + random.below(3)) }.joined(
      separator: [0x2F]))
}

/// What git says of the same patterns and names, on machines that have it.
@Suite struct GitTests {
  private static let git = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { "\($0)/git" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  private struct Repository {
    let git: String
    let directory: URL

    init(git: String) throws {
      self.git = git
      directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "tarn-patterns-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      _ = try run(["init", "--quiet"], input: "")
    }

    func remove() { try? FileManager.default.removeItem(at: directory) }

    /// The names that git ignores.
    func ignored(_ names: [String], by patterns: [String]) throws -> Set<String> {
      let list = patterns.joined(separator: "\n") + "\n"
      try list.write(to: directory.appendingPathComponent(".gitignore"), atomically: false, encoding: .utf8)
      let output = try run(
        ["check-ignore", "--no-index", "-z", "--stdin"], input: names.map { $0 + "\0" }.joined())
      return Set(output.split(separator: "\0").map(String.init))
    }

    private func run(_ arguments: [String], input: String) throws -> String {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: git)
      process.arguments = arguments
      process.currentDirectoryURL = directory
      process.environment = [
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": directory.path,
      ]
      let standardInput = Pipe()
      let output = Pipe()
      process.standardInput = standardInput
      process.standardOutput = output
      process.standardError = FileHandle.nullDevice
      try process.run()
      process.killWhenLate()
      try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
      try standardInput.fileHandleForWriting.close()
      let data = output.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      guard process.terminationStatus <= 1 else { throw Failed(status: process.terminationStatus) }
      return String(decoding: data, as: UTF8.self)
    }

    struct Failed: Error { var status: Int32 }
  }

  @Test(.enabled(if: git != nil, "git is not installed"))
  func tableAgrees() throws {
    let repository = try Repository(git: #require(Self.git))
    defer { repository.remove() }
    for example in PatternTests.manual + PatternTests.practice where !quirks.contains(example.patterns[0]) {
      // git takes a colon in front for pathspec magic.
      let matched = example.matched.filter { !$0.hasPrefix(":") }
      let others = example.others.filter { !$0.hasPrefix(":") }
      guard !(matched + others).isEmpty else { continue }
      let ignored = try repository.ignored(matched + others, by: example.patterns)
      #expect(ignored == Set(matched), "\(example.patterns)")
    }
  }

  /// git compares the part before the first special character apart, and then takes `**` behind it for a part
  /// of its own; the manual calls them ordinary stars, and so does Tarn.
  private let quirks: Set = ["/a**b", "/a/x**", "/x**y/b"]

  @Test(.enabled(if: git != nil, "git is not installed"), arguments: 0..<2 as Range<UInt64>)
  func randomPatternsAgree(seed: UInt64) throws {
    let repository = try Repository(git: #require(Self.git))
    defer { repository.remove() }
    var random = Seeded(seed)
    let pieces = ["a", "b", "ab", "*", "?", "[ab]", "[!a]", "\\a", "[a-b]", "[", "]", "[[:alpha:]]", "\\*"]
    for _ in 0..<50 {
      let patterns = (0...random.below(4)).map { _ in
        (random.chance(25) ? "!" : "") + (random.chance(30) ? "/" : "") + randomGlob(&random, pieces)
          + (random.chance(20) ? "/" : "")
      }.filter { !$0.contains("**") || !hasStarsInASegment($0) }
      let names = Set((0..<40).map { _ in String(decoding: randomName(&random), as: UTF8.self) }).sorted()
      let ignored = try repository.ignored(names, by: patterns)
      let own = PathPatterns(patterns)
      for name in names where (own.matches(path(name)) == true) != ignored.contains(name) {
        Issue.record("\(patterns) on \(name): git says \(ignored.contains(name))")
        return
      }
    }
  }

  /// See `quirks`.
  private func hasStarsInASegment(_ pattern: String) -> Bool {
    pattern.split(separator: "/").contains { $0.contains("**") && $0 != "**" && $0 != "!**" }
  }
}
