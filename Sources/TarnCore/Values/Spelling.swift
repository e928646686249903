/// Finds the word that was meant by an unknown one.
package enum Spelling {
  /// Returns the nearest name: one that the word is the beginning of, or whose distance is at most a third of the word. Case is
  /// ignored.
  package static func nearest(_ word: String, _ names: [String]) -> String? {
    let word = word.lowercased()
    // A longer word is no misspelling, and the distance takes time in the product of the lengths.
    guard word.utf8.count <= 64 else { return nil }
    if word.count >= 2, let longer = names.first(where: { $0.hasPrefix(word) }) { return longer }
    let ranked = names.map { (distance: distance(word, $0), name: $0) }.min { $0.distance < $1.distance }
    guard let ranked, ranked.distance <= max(1, (word.count + 1) / 3) else { return nil }
    return ranked.name
  }

  /// Returns the number of insertions, deletions, replacements and swaps of neighbouring code points (optimal string alignment).
  package static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left.unicodeScalars)
    let right = Array(right.unicodeScalars)
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
