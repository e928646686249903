import TarnConfig
import TarnCore

/// The texts of argument-parser, in the manner of the rest.
enum HelpText {
  /// A help text begins with what the command does.
  static func shown(_ text: String) -> String {
    let label = "OVERVIEW: "
    let text = text.hasPrefix(label) ? String(text.dropFirst(label.count)) : text
    // A group of commands by its own name.
    return text.replacing(" SUBCOMMANDS:\n", with: ":\n")
  }

  /// What is wrong, then how the command is used, a line each.
  ///
  /// - Parameters:
  ///   - message: what is wrong alone.
  ///   - full: with the usage.
  ///   - advice: on an option that the command does not have, which goes before all else that is wrong.
  ///   - hint: where there is no advice.
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

  /// `the mirror is missing` of `Missing expected argument '<mirror>'`.
  private static func plain(_ message: String) -> String {
    let front = "Missing expected argument '<"
    guard message.hasPrefix(front) else { return message }
    return "the \(message.dropFirst(front.count).prefix { $0 != ">" }) is missing"
  }

  /// `'tarn sync --help'` of `  See 'tarn sync --help' for more information.`
  private static func quoted(_ line: String) -> String {
    let parts = line.split(separator: "'", omittingEmptySubsequences: false)
    return parts.count > 1 ? "'\(parts[1])'" : line
  }
}
