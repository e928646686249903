import ArgumentParser
import Testing

@testable import tarn

@Suite struct HelpTests {
  /// Every command with the commands before it.
  static let commands: [[String]] = {
    var paths: [[String]] = []
    func walk(_ type: any ParsableCommand.Type, _ path: [String]) {
      paths.append(path)
      for next in type.configuration.subcommands {
        walk(next, path + [next.configuration.commandName ?? "?"])
      }
    }
    walk(Root.self, [])
    return paths
  }()

  /// The help text without a process.
  private func help(_ command: [String]) -> String {
    var type: any ParsableCommand.Type = Root.self
    for word in command {
      type = type.configuration.subcommands.first { $0.configuration.commandName == word } ?? type
    }
    return HelpText.shown(Root.helpMessage(for: type, columns: 80))
  }

  @Test(arguments: commands) func helpIsGolden(_ command: [String]) throws {
    let result = try TarnBinary.run(command + ["--help"])
    #expect(result.status == 0)
    #expect(result.messages == "")
    try Golden.check(result.output, (["help"] + command).joined(separator: "-"))
  }

  /// A line that the terminal's width breaks looks like text, and cannot be copied.
  @Test(arguments: commands) func noExampleIsBroken(_ command: [String]) {
    let lines = help(command).split(separator: "\n", omittingEmptySubsequences: false)
    let examples = lines.drop { $0 != "Examples:" }.dropFirst().prefix { !$0.isEmpty }
    #expect(!examples.isEmpty && examples.allSatisfy { $0.hasPrefix("  tarn ") }, "\(examples)")
  }

  @Test(arguments: commands) func helpLeadsWithExamples(_ command: [String]) {
    let lines = help(command).split(separator: "\n")
    #expect(lines.dropFirst().first == "Examples:")
    #expect(lines.dropFirst(2).first?.hasPrefix("  tarn ") == true)
    #expect(lines.allSatisfy { $0.count <= 100 })
  }

  @Test func theHelpOfAllCommandsNamesTheManual() {
    #expect(help([]).split(separator: "\n").last == "  See 'man tarn' for the manual.")
    #expect(Self.commands.dropFirst().allSatisfy { !help($0).contains("man tarn'") })
  }

  @Test(arguments: commands) func helpCommandIsTheSame(_ command: [String]) throws {
    #expect(
      try TarnBinary.run(["help"] + command).output == TarnBinary.run(command + ["--help"]).output)
  }

  @Test(arguments: commands) func everyCommandTellsTheVersion(_ command: [String]) throws {
    let result = try TarnBinary.run(command + ["--version"])
    #expect(result.status == 0)
    #expect(result.output.hasPrefix("tarn 0."))
  }

  @Test func bareCommandShowsHelp() throws {
    let result = try TarnBinary.run([])
    #expect(result.status == 0)
    #expect(result.output == (try TarnBinary.run(["--help"]).output))
  }

  private static let leaves = commands.filter { ![[], ["trash"], ["config"], ["session"]].contains($0) }

  /// These are everywhere.
  @Test(arguments: leaves) func commonOptions(_ command: [String]) {
    let help = help(command)
    for option in ["--json", "-q, --quiet", "--color", "--no-input"] {
      #expect(help.contains("  \(option) "), "\(option)")
    }
  }

  /// Taken everywhere, and listed where they mean something.
  @Test(arguments: leaves) func optionsThatMeanNothingAreTakenAndNotListed(_ command: [String]) throws {
    let help = help(command)
    let asks = [["approve"], ["trash", "empty"]].contains(command)
    #expect(help.contains("  -y, --yes ") == asks)
    let says = [["sync"], ["plan"], ["status"], ["verify"], ["approve"], ["agent"]].contains(command)
    #expect(help.contains("  -v, --verbose ") == says)
    #expect(try TarnBinary.run(command + ["-v", "-y", "--no-input", "--help"]).status == 0)
  }

  @Test(arguments: ["bash", "zsh", "fish"]) func completionsForShells(_ shell: String) throws {
    let result = try TarnBinary.run(["--generate-completion-script", shell])
    #expect(result.status == 0)
    #expect(result.output.contains("explain"))
  }
}
