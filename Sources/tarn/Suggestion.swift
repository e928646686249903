import ArgumentParser
import TarnCore

/// What somebody who typed an unknown command meant.
enum Suggestion {
  /// Words of other tools for what Tarn does.
  static let otherWords = [
    "pull": "sync", "fetch": "sync", "mirror": "sync", "update": "sync", "run": "sync", "add": "sync",
    "diff": "plan", "dry-run": "plan", "ls": "status", "info": "status", "show": "status", "why": "explain",
    "check": "verify", "fsck": "verify", "repair": "verify", "remove": "forget", "delete": "forget",
    "unfollow": "forget", "undelete": "trash", "restore": "trash", "settings": "config",
  ]

  /// A word that stands where a command is expected and is none.
  struct Unknown: Equatable {
    /// The commands before it: `tarn trash`.
    var command: String
    var word: String
    var suggestion: String?
  }

  /// - Parameter arguments: without the program's name.
  /// - Returns: nil when every command in front is known.
  static func unknown(_ arguments: [String]) -> Unknown? {
    var type: any ParsableCommand.Type = Root.self
    var path = "tarn"
    for (index, word) in arguments.enumerated() {
      let commands = type.configuration.subcommands
      guard !commands.isEmpty, !word.hasPrefix("-") else { return nil }
      if index == 0, word == "help" { continue }
      guard let next = commands.first(where: { $0.configuration.commandName == word }) else {
        let names = commands.compactMap { $0.configuration.commandName }
        return Unknown(command: path, word: word, suggestion: nearest(word, names))
      }
      type = next
      path += " \(word)"
    }
    return nil
  }

  private static func nearest(_ word: String, _ names: [String]) -> String? {
    let word = word.lowercased()
    if word == "version" { return "--version" }
    if let known = otherWords[word], names.contains(known) { return known }
    return Spelling.nearest(word, names)
  }
}
