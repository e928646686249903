import ArgumentParser
import Glibc
import TarnCore
import TarnEngine
import TarnRuntime

/// Parses the command line, runs the command, and ends with its exit status.
///
/// The process ends by `_exit`: `exit` would run the exit handlers of libraries while other threads use what they free. One of
/// libcrypto's, beside a thread that ended at that moment, damaged the heap.
@main
enum Main {
  static func main() {
    // This comes first, for the thread of the signals opens files of its own.
    StandardInput.occupy()
    UnusedMemory.shareArenas(4)
    Interruption.shared.start()
    // Swift reads the words from /proc. If that fails, even the program's name is missing, and the empty list
    // would print the help.
    guard !CommandLine.arguments.isEmpty else {
      _exit(Console.shared.finish(tell(noArguments, isJSON: false)))
    }
    let arguments = Array(CommandLine.arguments.dropFirst())
    _exit(Console.shared.finish(run(arguments)))
  }

  private static let noArguments = PassFailure(
    .defect, code: "no-arguments", "the words of the command line cannot be read from /proc/self/cmdline",
    hint: "mount /proc, or raise the limit of open files")

  private static func run(_ arguments: [String]) -> Int32 {
    let isJSON = arguments.prefix { $0 != "--" }.contains("--json")
    if let refusal = RawArguments.refusal() { return tell(refusal, isJSON: isJSON) }
    if arguments == ["help", "exit-status"] { return listExitStatuses() }
    let unknown = Suggestion.unknown(arguments)
    if let unknown, !unknown.mayBeMirror { return tell(unknown.failure, isJSON: isJSON) }
    do {
      var command = try Root.parseAsRoot(arguments)
      try command.run()
      return ExitStatus.inSync.rawValue
    } catch let failure as PassFailure {
      let isNoMirror = [.usage, .folderUnusable].contains(failure.kind)
      return tell(isNoMirror ? unknown?.failure ?? failure : failure, isJSON: isJSON)
    } catch let code as ExitCode {
      return code.rawValue
    } catch {
      return end(with: error, arguments, isJSON: isJSON)
    }
  }

  /// Handles an error of argument-parser: help and version were asked for, anything else is wrong usage.
  private static func end(with error: any Error, _ arguments: [String], isJSON: Bool) -> Int32 {
    switch Root.exitCode(for: error) {
    case .success:
      Console.shared.data(HelpText.shown(Root.fullMessage(for: error)))
      return ExitStatus.inSync.rawValue
    case .validationFailure where arguments.first == "---completion":
      // A shell asks while somebody types a line, so nothing is printed.
      return ExitStatus.failed(.usage).rawValue
    case .validationFailure:
      let advice = OptionAdvice.first(in: arguments)
      let taker = OptionAdvice.taker(of: Root.message(for: error), in: arguments)
      let lines = HelpText.usageError(
        message: Root.message(for: error), full: Root.fullMessage(for: error), advice: advice, hint: taker)
      if isJSON {
        return tell(PassFailure(.usage, code: "usage", lines[0], hint: advice?.hint ?? taker), isJSON: true)
      }
      let first = Terminal.messages.style(.auto).paint("tarn:", .bad) + " " + lines[0]
      for line in FittedLines.of([first] + lines.dropFirst(), Terminal.messages.width) {
        Console.shared.message(line)
      }
      return ExitStatus.failed(.usage).rawValue
    default:
      return tell(PassFailure(.defect, code: "defect", Root.message(for: error)), isJSON: isJSON)
    }
  }

  private static func tell(_ failure: PassFailure, isJSON: Bool) -> Int32 {
    let failure = failure.withSettings
    let status = ExitStatus(failure.kind, signal: Interruption.shared.received)
    let style = Terminal.messages.style(.auto)
    let lines = FailureText.lines(
      failure, status: status, json: isJSON, style: style, width: Terminal.messages.width)
    for line in lines {
      Console.shared.message(line)
    }
    return status.rawValue
  }

  private static func listExitStatuses() -> Int32 {
    for status in ExitStatus.allCases {
      let number = Columns.padded(String(status.rawValue), 3, right: true)
      let lines = FittedLines.of([status.meaning], Terminal.output.width.map { max(20, $0 - 5) })
      for (index, line) in lines.enumerated() {
        Console.shared.data((index == 0 ? "\(number)  " : "     ") + line)
      }
    }
    return ExitStatus.inSync.rawValue
  }
}

extension Suggestion.Unknown {
  var failure: PassFailure {
    let word = Printable.escape(word)
    let meant = suggestion.map { suggestion in
      if suggestion.hasPrefix("man ") { return "a manual page is about that: \(suggestion)" }
      return "did you mean '\(suggestion.hasPrefix("tarn ") ? suggestion : "\(command) \(suggestion)")'?"
    }
    return PassFailure(
      .usage, code: "unknown-command", "'\(word)' is not a command of \(command)",
      hint: meant ?? "'\(command) --help' lists the commands")
  }
}
