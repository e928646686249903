import Foundation
import Testing

/// The rules hold for this repository, and each rule can fail.
@Suite struct HouseTests {
  private static let sources = Repository.sources(in: "Sources")
  private static let code = sources.map(Repository.Code.init)
  private static let tests = Repository.sources(in: "Tests")

  private func sample(_ text: String, target: String = "TarnCore") -> Repository.Code {
    Repository.Code(source(text, target: target))
  }

  private func source(_ text: String, target: String = "TarnCore") -> Repository.Source {
    Repository.Source(path: "Sources/\(target)/Sample.swift", text: text)
  }

  @Test func theSourcesAreFound() {
    #expect(Self.sources.count > 10)
    #expect(Set(Self.sources.map(\.target)).isSubset(of: Rules.arrows.keys))
  }

  @Test func topLevelHoldsWhatTheHouseNames() {
    let names = Repository.topLevel().filter { !$0.hasPrefix(".") }
    #expect(names.subtracting(Rules.topLevel).sorted() == [])
    #expect(Rules.topLevel.subtracting(names).sorted() == [])
  }

  @Test func importsFollowTheArrows() {
    #expect(Self.code.flatMap(Rules.imports) == [])
  }

  @Test(arguments: [
    ("import Foundation", "TarnCore"), ("package import Glibc", "TarnCore"),
    ("import TarnLedger", "TarnFolder"),
    ("@preconcurrency import Dispatch", "TarnEngine"), ("import struct Foundation.URL", "TarnAgent"),
    ("  internal import CCurl", "TarnFeeds"), ("import TarnCore", "TarnUnknown"),
  ])
  func aForbiddenImportIsSeen(line: String, target: String) {
    #expect(Rules.imports(sample("// import nothing\n\(line)\n", target: target)).count == 1)
  }

  @Test func allowedImportsAndCommentsAreNot() {
    #expect(
      Rules.imports(
        sample("import TarnCore\ninternal import CXML\n// import Foundation", target: "TarnFeeds")) == [])
    #expect(Rules.imports(sample("let text = \"\"\"\n  import Foundation\n  \"\"\"")) == [])
  }

  @Test func eachCModuleHasOneImporter() {
    #expect(Rules.sharedModules(Self.code) == [])
    let two = [
      sample("import CCrypto", target: "TarnFolder"), sample("import CCrypto", target: "TarnTransfer"),
    ]
    #expect(Rules.sharedModules(two).count == 1)
  }

  /// What users took for jargon, or for no English: neither in messages nor in help and pages. Codes have hyphens.
  @Test func usersReadTheirOwnWords() throws {
    let words = [
      " polled", "foreign ", "catching up", "backing off", "looked at from time to time",
      "as the policy says",
      "not seen again yet", "the body was cut short by", "this is a text", "no digest to verify it by",
      "fetched are kept",
    ]
    let pages = try ["README.md", "config/tarn.toml", "config/example.env"].map {
      Repository.Source(path: $0, text: try Repository.text($0))
    }
    let golden = Repository.sources(in: "Tests/Fixtures/golden", suffixes: [".txt"])
    let manual = Repository.sources(in: "packaging/man", suffixes: [".1", ".5", ".7", ".8"])
    let messages = Self.sources.flatMap { file in
      file.lines.filter { $0.contains("\"") && !$0.drop { $0 == " " }.hasPrefix("//") }.map {
        (file.path, String($0))
      }
    }
    let texts = (pages + golden + manual).map { ($0.path, $0.text) }
    #expect(golden.count > 10 && manual.count > 30 && messages.count > 1000)
    for (path, text) in messages + texts {
      let text = text.lowercased()
      for word in words { #expect(!text.contains(word), "\(path): \(word)") }
    }
  }

  /// zsh takes what is not quoted for a pattern of files, and refuses the command when there are none.
  @Test func whatAShellWouldReadIsQuoted() throws {
    let golden = Repository.sources(in: "Tests/Fixtures/golden", suffixes: [".txt"])
    let texts = try golden.map(\.text) + [Repository.text("README.md")]
    var arguments: [Substring] = []
    for line in texts.flatMap({ $0.split(separator: "\n") }) {
      for before in ["jq -r ", "jq ", "--include ", "--exclude ", "--publish-last "] {
        arguments += line.ranges(of: before).map { line[$0.upperBound...] }
      }
    }
    #expect(arguments.count > 8)
    for argument in arguments where !argument.hasPrefix("'") && !argument.hasPrefix("\"") {
      let word = argument.prefix { !" `".contains($0) }
      #expect(!word.contains { "*?[]{}|".contains($0) }, "\(word)")
    }
  }

  @Test func nothingIsPublicAndNothingTraps() {
    #expect(Self.code.flatMap(Rules.words) == [])
  }

  @Test(arguments: [
    "public func f() {}", "  public static let x = 1", "@frozen public struct S {}", "open class C {}",
    "public private(set) var x = 1", "public import Glibc", "let x = try! f()", "fatalError(\"no\")",
    "let y = x as! Int",
  ])
  func aForbiddenWordIsSeen(line: String) {
    #expect(Rules.words(sample(line)).count == 1)
  }

  @Test(arguments: [
    "// public func f() {}", "let open = 1", "package func publicName() {}",
    "let t = \"try! fatalError as! public func\"",
    "try f()", "x as? Int", "let t = \"\\(f(\"public\")) public func x\"", "open(path, O_RDONLY)",
    "case .public: f()",
  ])
  func ordinaryCodeIsNotForbidden(line: String) {
    #expect(Rules.words(sample(line)) == [])
  }

  @Test func theLibraryForProgramsIsPublicAndShowsNoOther() {
    #expect(Rules.words(sample("public func f() {}", target: "TarnKit")) == [])
    #expect(Rules.words(sample("public import TarnCore", target: "TarnKit")).count == 1)
    #expect(Rules.words(sample("public import TarnKit", target: "TarnKitTesting")) == [])
    #expect(Rules.words(sample("public import NIOCore", target: "TarnKitTesting")).count == 1)
  }

  @Test func theLibraryForProgramsIsDescribed() {
    #expect(Self.code.flatMap(Rules.undocumented) == [])
    let described = "/// A value.\n@frozen\npublic struct S {\n  /// It is here.\n  case here\n}\n"
    #expect(Rules.undocumented(sample(described, target: "TarnKit")) == [])
    let bare = "public struct S {\n  public var x = 1\n\n  // A note.\n  public init() {}\n  case a(Int)\n}\n"
    #expect(Rules.undocumented(sample(bare, target: "TarnKit")).count == 4)
    let others = "struct S { var x = 1 }\nswitch x {\ncase .a: f()\ncase let y: g()\n}\n"
    #expect(Rules.undocumented(sample(others, target: "TarnKit")) == [])
    #expect(Rules.undocumented(sample(bare)) == [])
  }

  @Test func whoeverVouchesSaysWhy() {
    #expect(Self.code.flatMap(Rules.vouching) == [])
    let bare = "final class C: @unchecked Sendable {}"
    #expect(Rules.vouching(sample(bare, target: "TarnRuntime")).count == 1)
    #expect(Rules.vouching(sample("// Safe because x.\n" + bare, target: "TarnRuntime")) == [])
    #expect(Rules.vouching(sample("// Safe because x.\n" + bare, target: "TarnEngine")).count == 1)
    let far = "// Safe because x.\n" + String(repeating: "\n", count: 6) + "nonisolated(unsafe) var x = 1"
    #expect(Rules.vouching(sample(far, target: "TarnRuntime")).count == 1)
  }

  @Test func filesAreShort() {
    #expect((Self.sources + Self.tests).flatMap { Rules.size($0, limit: 800) } == [])
    #expect(Rules.size(source(String(repeating: "\n", count: 801)), limit: 800).count == 1)
    #expect(Rules.size(source(String(repeating: "\n", count: 800)), limit: 800) == [])
  }

  @Test func functionsAreShort() {
    let all = Self.code + Self.tests.map(Repository.Code.init)
    #expect(all.flatMap { Rules.longFunctions($0, limit: 60) } == [])
    func body(_ lines: Int) -> String {
      "struct S {\n  func f(\n    _ x: Int\n  ) {\n" + String(repeating: "    g { h() }\n", count: lines - 4)
        + "  }\n  func small() {}\n}\n"
    }
    #expect(Rules.longFunctions(sample(body(61)), limit: 60).count == 1)
    #expect(Rules.longFunctions(sample(body(60)), limit: 60) == [])
    let initializer = body(70).replacingOccurrences(of: "func f(", with: "package init(")
    #expect(Rules.longFunctions(sample(initializer), limit: 60).count == 1)
  }

  @Test func noFileNamesAPathOfAMachine() {
    let directories = ["Sources", "Tests", "packaging", "config"]
    let all = directories.flatMap { directory in
      Repository.sources(in: directory, suffixes: [""]).filter { !$0.path.hasPrefix("Tests/Fixtures/") }
    }
    #expect(all.flatMap(Rules.machinePaths) == [])
    #expect(Rules.machinePaths(source("let x = \"" + "/ho" + "me/someone/x\"")).count == 1)
    #expect(Rules.machinePaths(source("let x = \"/srv/mirrors\"")) == [])
  }

  @Test func commentsCiteOnlyWhatIsHere() {
    let all = ["Sources", "Tests", "packaging", "config"].flatMap { directory in
      Repository.sources(
        in: directory, suffixes: [".swift", ".py", ".sh", ".c", ".cpp", ".h", ".toml", ".service"])
    }
    #expect(all.count > 100)
    #expect(all.flatMap(Rules.citations) == [])
    let elsewhere = "design" + ".md"
    #expect(Rules.citations(source("  /// As it stands there (\(elsewhere), Paths).")).count == 1)
    #expect(Rules.citations(source("/// README.md says so.\nlet name = \"\(elsewhere)\"")) == [])
  }
}
