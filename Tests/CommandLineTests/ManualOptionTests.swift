import ArgumentParser
import Foundation
import Testing

@testable import tarn

/// The pages of the commands name the options that the commands have, and no others; their examples are commands.
@Suite struct ManualOptionTests {
  /// A command as its parser describes it.
  private struct Described: Decodable {
    struct Argument: Decodable {
      struct Name: Decodable {
        var kind: String
        var name: String
        var written: String { (kind == "long" ? "--" : "-") + name }
      }
      var kind: String
      var names: [Name]?
      var shouldDisplay: Bool
      var valueName: String?
    }
    var commandName: String
    var arguments: [Argument]?
    var subcommands: [Described]?

    /// The commands that do something: this one, or those below it.
    var leaves: [Described] { subcommands.map { $0.flatMap(\.leaves) } ?? [self] }

    /// Options with their dashes.
    func options(hidden: Bool) -> Set<String> {
      let shown = (arguments ?? []).filter { $0.kind != "positional" && (hidden || $0.shouldDisplay) }
      return Set(shown.flatMap { ($0.names ?? []).map(\.written) })
    }
  }
  private struct Dump: Decodable { var command: Described }

  /// But for `help`, which argument-parser adds.
  private let commands: [Described]

  init() throws {
    let result = try TarnBinary.run(["--experimental-dump-help"])
    let root = try JSONDecoder().decode(Dump.self, from: Data(result.output.utf8)).command
    commands = (root.subcommands ?? []).filter { $0.commandName != "help" }
  }

  /// Pages of commands, each with these.
  private var pages: [(page: ManualPage, commands: [Described])] {
    ManualPage.all.filter { ["1", "8"].contains($0.section) && $0.file != "tarn.1" }.map { page in
      (page, commands.filter { page.names.contains("tarn-" + $0.commandName) })
    }
  }

  @Test func everyCommandHasAPageAndEveryPageACommand() throws {
    #expect(commands.count >= 20)
    let ofCommands = ManualPage.files.filter {
      $0.hasPrefix("tarn-") && ($0.hasSuffix(".1") || $0.hasSuffix(".8"))
    }
    let names = ofCommands.map { String($0.dropFirst(5).dropLast(2)) }
    #expect(names.sorted() == commands.map(\.commandName).sorted())
    for file in ManualPage.files {
      guard let target = ManualPage.target(of: file) else { continue }
      let page = try ManualPage.named(target)
      #expect(page.section == file.suffix(1))
      #expect(page.names.contains(String(file.dropLast(2))), "\(file) leads to a page that does not name it")
    }
    for (page, known) in pages { #expect(known.count == page.names.count, "\(page.file): \(page.names)") }
  }

  @Test func everyOptionIsInThePageOfItsCommand() {
    for (page, known) in pages {
      let named = Set(page.flags.filter { $0.section == "OPTIONS" }.map(\.name))
      let shown = known.flatMap(\.leaves).reduce(into: Set<String>()) {
        $0.formUnion($1.options(hidden: false))
      }
      #expect(shown.count > 8, "\(page.file)")
      #expect(shown.subtracting(named).sorted() == [], "\(page.file)")
    }
  }

  @Test func noPageHasAnOptionThatItsCommandLacks() {
    let everywhere = commands.flatMap(\.leaves).reduce(into: Set<String>()) {
      $0.formUnion($1.options(hidden: true))
    }
    for (page, known) in pages {
      let own = known.flatMap(\.leaves).reduce(into: Set<String>()) { $0.formUnion($1.options(hidden: true)) }
      for flag in page.flags {
        let all = ["OPTIONS", "SYNOPSIS"].contains(flag.section) ? own : everywhere
        #expect(all.contains(flag.name), "\(page.file), \(flag.section): \(flag.name)")
      }
    }
  }

  @Test func everyOptionTakesWhatItsPageSays() {
    for (page, known) in pages {
      let arguments = known.flatMap(\.leaves).flatMap { $0.arguments ?? [] }
      for item in page.items("OPTIONS") {
        let found = arguments.filter { argument in
          (argument.names ?? []).contains { item.flags.contains($0.written) }
        }
        for argument in found {
          let value = argument.kind == "option" ? argument.valueName : nil
          #expect(item.value == value, "\(page.file): \(item.flags)")
        }
      }
    }
  }

  /// tarn(1) has the options that every command takes.
  @Test func thePageOfTarnHasTheCommonOptions() throws {
    let page = try ManualPage.named("tarn.1")
    let leaves = commands.flatMap(\.leaves).map { $0.options(hidden: true) }
    let common = leaves.dropFirst().reduce(leaves.first ?? []) { $0.intersection($1) }
    #expect(common.count >= 12)
    #expect(page.items("OPTIONS").flatMap(\.flags).sorted() == common.sorted())
    let listed = page.items("DESCRIPTION").filter { $0.part.contains("ommands") }.flatMap(\.names)
    #expect(listed.sorted() == (commands.map(\.commandName) + ["help"]).sorted())
  }

  // MARK: - Examples

  /// The words of a `tarn` command in a line of a shell, without what comes after it.
  static func words(_ line: String) -> [String]? {
    guard let start = line.firstRange(of: "tarn ") else { return nil }
    let before = line[..<start.lowerBound]
    guard before.isEmpty || before.hasSuffix("sudo ") || before.hasSuffix("$(") || before.hasSuffix("| ")
    else {
      return nil
    }
    var (words, word, quote, hasWord): ([String], String, Character?, Bool) = ([], "", nil, false)
    for character in line[start.upperBound...] {
      if let open = quote {
        if character == open { quote = nil } else { word.append(character) }
      } else if character == "'" || character == "\"" {
        (quote, hasWord) = (character, true)
      } else if " |>)&;".contains(character) {
        if hasWord || !word.isEmpty { words.append(word) }
        (word, hasWord) = ("", false)
        if character != " " { return words }
      } else {
        word.append(character)
      }
    }
    return hasWord || !word.isEmpty ? words + [word] : words
  }

  @Test func aLineOfAShellIsTakenApart() {
    #expect(Self.words("tarn plan -q '/a b' || echo no") == ["plan", "-q", "/a b"])
    #expect(Self.words("cursor=$(tarn events --json | jq .)") == ["events", "--json"])
    #expect(Self.words("echo x | tarn sync - /a") == ["sync", "-", "/a"])
    #expect(Self.words("curl http://tarn/v1/status") == nil && Self.words("starn x") == nil)
  }

  @Test func everyExampleParses() {
    var count = 0
    for page in ManualPage.all where page.file != "tarn-session.7" {
      if page.section == "1" { #expect(!page.examples.isEmpty, "\(page.file)") }
      for line in page.examples {
        guard let words = Self.words(line.replacing("$cursor", with: "7")) else { continue }
        count += 1
        #expect(throws: Never.self, "\(page.file): \(line)") { _ = try Root.parseAsRoot(words) }
      }
    }
    #expect(count > 60)
  }

  /// Commands within a sentence may lack their arguments, and have to be commands.
  @Test func everyCommandInASentenceIsOne() {
    var count = 0
    for page in ManualPage.all {
      for text in page.quoted {
        guard text.hasPrefix("tarn "), let words = Self.words(text), words.first != "help" else {
          continue
        }
        count += 1
        let known = commands.first { $0.commandName == words.first }
        let below = known?.subcommands?.first { $0.commandName == words.dropFirst().first }
        #expect(Suggestion.unknown(words) == nil && known != nil, "\(page.file): \(text)")
        let options = (below ?? known).map { $0.leaves.map { $0.options(hidden: true) } } ?? []
        for word in words where word.hasPrefix("-") {
          #expect(options.contains { $0.contains(word) }, "\(page.file): \(text)")
        }
      }
    }
    #expect(count > 30)
  }

  // MARK: - Exit statuses

  @Test func everyExitStatusIsInThePages() throws {
    let all = ExitStatus.allCases.map { String($0.rawValue) }.sorted()
    #expect(all.count == 15)
    for file in ["tarn.1", "tarn-status.5"] {
      #expect(try ManualPage.named(file).words("EXIT STATUS") == all, "\(file)")
    }
    // A plugin of Nagios has its own.
    let nagios: [NagiosStatus] = [.ok, .warning, .critical, .unknown]
    for page in ManualPage.all where page.file != "tarn-session.7" {
      let others = page.file == "tarn-status.1" ? nagios.map { String($0.rawValue) } : []
      #expect(Set(page.words("EXIT STATUS")).subtracting(all + others) == [], "\(page.file)")
      if page.section == "1" || page.section == "8" {
        #expect(!page.words("EXIT STATUS").isEmpty, "\(page.file)")
      }
    }
  }
}
