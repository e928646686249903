import TarnCore

/// What undoes all local changes of a mirror whose policy leaves them.
package enum UndoAdvice {
  /// - Parameters:
  ///   - mirror: as a word of a command.
  ///   - name: of a mirror of the settings: only they hold from then on, and where an agent keeps it nothing else holds at all.
  ///     nil for a mirror that remembers its options.
  package static func text(mirror: String, configured name: String?) -> String {
    let command = "tarn sync --local-changes restore \(mirror)"
    guard let name else { return "to undo all local changes, now and from then on: \(command)" }
    return
      "to undo all local changes from then on: local-changes = \"restore\" below [mirror.\(name)] of the settings, "
      + "then: tarn reload; for now, where no agent keeps it: \(command)"
  }
}
