import TarnConfig
import TarnCore

/// Adapts the texts of argument-parser.
enum HelpText {
  /// Removes the label, so that a help text begins with what the command does.
  static func shown(_ text: String) -> String {
    let label = "OVERVIEW: "
    let text = text.hasPrefix(label) ? String(text.dropFirst(label.count)) : text
    let more = "  See 'tarn help <subcommand>' for detailed help."
    // Groups of commands are shown by their names alone. The help of all commands ends with where more is said.
    return text.replacing(" SUBCOMMANDS:\n", with: ":\n")
      .replacing(more, with: more + "\n  See 'man tarn' for the manual.")
  }

  /// Returns the error and the usage of the command, as lines.
  ///
  /// - Parameters:
  ///   - message: the error alone.
  ///   - full: the error with the usage.
  ///   - advice: the advice on an unknown option, which precedes all other errors.
  ///   - hint: the hint when there is no advice.
  static func usageError(
    message: String, full: String, advice: OptionAdvice? = nil, hint: String? = nil
  ) -> [String] {
    let hint = advice.map(\.hint) ?? hint
    let message = advice.map { "unknown option '\($0.option)'" } ?? plain(message)
    let words = message.split(separator: "\n").map { Message.safe(Redaction.message(String($0))) }
    let first = words.first.map { $0.prefix(1).lowercased() + $0.dropFirst() } ?? "wrong usage"
    let usage = full.split(separator: "\n").drop { !$0.hasPrefix("Usage: ") }.map(String.init)
    return [first] + words.dropFirst().map { "  \($0)" }
      + (hint.map { ["  hint: \($0)"] } ?? [])
      + usage.map { line in
        if line.hasPrefix("Usage: ") { return "  usage: " + line.dropFirst(7) }
        return line.hasPrefix("  See '") ? "  hint: \(quoted(line)) says more" : "  " + line
      }
  }

  /// Turns `Missing expected argument '<mirror>'` into `the mirror is missing`.
  private static func plain(_ message: String) -> String {
    let front = "Missing expected argument '<"
    guard message.hasPrefix(front) else { return message }
    return "the \(message.dropFirst(front.count).prefix { $0 != ">" }) is missing"
  }

  /// Returns `'tarn sync --help'` from `  See 'tarn sync --help' for more information.`
  private static func quoted(_ line: String) -> String {
    let parts = line.split(separator: "'", omittingEmptySubsequences: false)
    return parts.count > 1 ? "'\(parts[1])'" : line
  }
}
