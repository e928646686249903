import ArgumentParser

/// What somebody who typed an unknown command meant.
enum Suggestion {
  /// Words of other tools for what Tarn does.
  static let otherWords = [
    "pull": "sync", "fetch": "sync", "mirror": "sync", "update": "sync", "run": "sync", "add": "sync",
    "diff": "plan", "dry-run": "plan", "ls": "status", "info": "status", "show": "status", "why": "explain",
    "check": "verify", "fsck": "verify", "repair": "verify", "remove": "forget", "delete": "forget",
    "unfollow": "forget", "undelete": "trash", "restore": "trash",
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

  /// The name that is at most a third of the word away, or that the word is the front of.
  static func nearest(_ word: String, _ names: [String]) -> String? {
    let word = word.lowercased()
    if word == "version" { return "--version" }
    if let known = otherWords[word], names.contains(known) { return known }
    if word.count >= 2, let longer = names.first(where: { $0.hasPrefix(word) }) { return longer }
    let ranked = names.map { (distance: distance(word, $0), name: $0) }.min { $0.distance < $1.distance }
    guard let ranked, ranked.distance <= max(1, (word.count + 1) / 3) else { return nil }
    return ranked.name
  }

  /// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
  static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left)
    let right = Array(right)
    var rows = [Array(0...right.count)]
    for (i, character) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var best = min(row[j] + 1, rows[i][j + 1] + 1, rows[i][j] + (character == other ? 0 : 1))
        if i > 0, j > 0, character == right[j - 1], left[i - 1] == other {
          best = min(best, rows[i - 1][j - 1] + 1)
        }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}
