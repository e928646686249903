import TarnConfig
import TarnCore

/// The texts of argument-parser, in the manner of the rest.
enum HelpText {
  /// A help text begins with what the command does.
  static func shown(_ text: String) -> String {
    let label = "OVERVIEW: "
    return text.hasPrefix(label) ? String(text.dropFirst(label.count)) : text
  }

  /// What is wrong, then how the command is used, a line each.
  ///
  /// - Parameters:
  ///   - message: what is wrong alone.
  ///   - full: with the usage.
  static func usageError(message: String, full: String) -> [String] {
    let words = message.split(separator: "\n").map { Printable.escape(Redaction.message(String($0))) }
    let first = words.first.map { $0.prefix(1).lowercased() + $0.dropFirst() } ?? "wrong usage"
    let usage = full.split(separator: "\n").drop { !$0.hasPrefix("Usage: ") }.map(String.init)
    return [first] + words.dropFirst().map { "  \($0)" }
      + usage.map { line in
        if line.hasPrefix("Usage: ") { return "  usage: " + line.dropFirst(7) }
        return line.hasPrefix("  See '") ? "  hint: \(quoted(line)) says more" : "  " + line
      }
  }

  /// `'tarn sync --help'` of `  See 'tarn sync --help' for more information.`
  private static func quoted(_ line: String) -> String {
    let parts = line.split(separator: "'", omittingEmptySubsequences: false)
    return parts.count > 1 ? "'\(parts[1])'" : line
  }
}
