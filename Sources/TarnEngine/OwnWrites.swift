package import TarnCore
import TarnRuntime

/// What Tarn itself wrote in a folder of late, so that news of it are known for its own. Bounded; any thread.
///
/// A file is noted before it gets its name, for the news may come first: then its time of change is not known yet, and bytes and
/// time of modification have to do until it is noted again.
package final class OwnWrites: Sendable {
  private struct Note {
    /// nil: nothing stands there.
    var identity: FileIdentity?
    var isExact: Bool
  }

  private struct Notes {
    var newer: [RelativePath: Note] = [:]
    var older: [RelativePath: Note] = [:]
    /// The directories that lead to these: they were made, or removed, with what lay in them.
    var newerDirectories: Set<RelativePath> = []
    var olderDirectories: Set<RelativePath> = []
  }

  /// In each of two halves; the older one goes as a whole.
  private static let half = 32_768

  private let notes = Locked(Notes())

  package init() {}

  /// Is about to stand there under that name.
  package func expect(_ path: RelativePath, _ identity: FileIdentity) {
    note(path, Note(identity: identity, isExact: false))
  }

  /// Stands there now; nil when nothing does.
  package func note(_ path: RelativePath, _ identity: FileIdentity?) {
    note(path, Note(identity: identity, isExact: true))
  }

  private func note(_ path: RelativePath, _ note: Note) {
    notes.withLock { notes in
      if max(notes.newer.count, notes.newerDirectories.count) >= Self.half {
        (notes.older, notes.newer) = (notes.newer, [:])
        (notes.olderDirectories, notes.newerDirectories) = (notes.newerDirectories, [])
      }
      notes.newer[path] = note
      var directory = path.parent
      while let path = directory, notes.newerDirectories.insert(path).inserted { directory = path.parent }
    }
  }

  /// Whether what stands at a path is what Tarn left there. What lies in a directory has news of its own.
  ///
  /// - Parameter look: what stands there; called only for paths that Tarn wrote of late.
  package func isOwn(_ path: RelativePath, look: () -> Present?) -> Bool {
    let (note, isDirectory) = notes.withLock { notes in
      (
        notes.newer[path] ?? notes.older[path],
        notes.newerDirectories.contains(path) || notes.olderDirectories.contains(path)
      )
    }
    guard note != nil || isDirectory else { return false }
    let found = look()
    if isDirectory, found == nil || found?.kind == .directory { return true }
    switch (note?.identity, found?.identity) {
    case (nil, nil): return note != nil
    case (let known?, let found?):
      return note?.isExact == true ? known.isSame(as: found) : known.isSameContents(as: found)
    default: return false
    }
  }
}
