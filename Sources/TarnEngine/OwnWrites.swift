package import TarnCore
import TarnRuntime

/// What Tarn itself wrote in a folder of late, so that news of it are known for its own. Bounded; any thread.
///
/// A file is noted before it gets its name, for the news may come first: then its time of change is not known yet, and size,
/// time of modification and mode have to do until it is noted again.
package final class OwnWrites: Sendable {
  private struct Note {
    /// nil: nothing stands there.
    var identity: FileIdentity?
    var isExact: Bool
  }

  private struct Notes {
    var newer: [RelativePath: Note] = [:]
    var older: [RelativePath: Note] = [:]
    /// The directories that lead to these: they were made, or removed, with what lay in them; and what was noted there.
    var newerDirectories: [RelativePath: Set<RelativePath>] = [:]
    var olderDirectories: [RelativePath: Set<RelativePath>] = [:]
    /// Expected, and not there when their directory was told: to be looked at again once they are noted.
    var doubts: Set<RelativePath> = []
    /// Directories whose mode somebody changed: that they have their own again is no news of Tarn's.
    var foreign: Set<RelativePath> = []
    var onDoubt: (@Sendable (RelativePath) -> Void)?
  }

  /// In each of two halves; the older one goes as a whole.
  private static let half = 32_768

  /// What Tarn gives to what it makes.
  private static let (fileMode, directoryMode): (UInt32, UInt32) = (0o644, 0o755)

  private let notes = Locked(Notes())

  package init() {}

  /// - Parameter onDoubt: called for paths that have to be looked at once more; must not block.
  package func setOnDoubt(_ onDoubt: @escaping @Sendable (RelativePath) -> Void) {
    notes.withLock { $0.onDoubt = onDoubt }
  }

  /// Late news are looked at like any other.
  package func forget() {
    notes.withLock { notes in
      let onDoubt = notes.onDoubt
      notes = Notes()
      notes.onDoubt = onDoubt
    }
  }

  /// Is about to stand there under that name.
  package func expect(_ path: RelativePath, _ identity: FileIdentity) {
    note(path, Note(identity: identity, isExact: false))
  }

  /// Does not come to stand there: whatever is told of it is looked at.
  package func withdraw(_ path: RelativePath) {
    let onDoubt = notes.withLock { notes -> (@Sendable (RelativePath) -> Void)? in
      notes.newer[path] = nil
      notes.older[path] = nil
      Self.forget(path, in: &notes.newerDirectories, notes.newer)
      Self.forget(path, in: &notes.olderDirectories, notes.older)
      return notes.doubts.remove(path) != nil ? notes.onDoubt : nil
    }
    onDoubt?(path)
  }

  /// A directory goes with the last of what was noted in it.
  private static func forget(
    _ path: RelativePath, in directories: inout [RelativePath: Set<RelativePath>],
    _ notes: [RelativePath: Note]
  ) {
    var child = path
    while let directory = child.parent, notes[child] == nil, directories[child] == nil {
      directories[directory]?.remove(child)
      guard directories[directory]?.isEmpty == true else { return }
      directories[directory] = nil
      child = directory
    }
  }

  /// Stands there now; nil when nothing does.
  package func note(_ path: RelativePath, _ identity: FileIdentity?) {
    note(path, Note(identity: identity, isExact: true))
  }

  private func note(_ path: RelativePath, _ note: Note) {
    let onDoubt = notes.withLock { notes -> (@Sendable (RelativePath) -> Void)? in
      if max(notes.newer.count, notes.newerDirectories.count) >= Self.half {
        (notes.older, notes.newer) = (notes.newer, [:])
        (notes.olderDirectories, notes.newerDirectories) = (notes.newerDirectories, [:])
        notes.doubts = []
      }
      notes.newer[path] = note
      var child = path
      while let directory = child.parent,
        notes.newerDirectories[directory, default: []].insert(child).inserted
      {
        child = directory
      }
      return note.isExact && notes.doubts.remove(path) != nil ? notes.onDoubt : nil
    }
    onDoubt?(path)
  }

  /// Whether what stands at a path is what Tarn left there. What lies in a directory has news of its own, but not what was gone
  /// before somebody listed it: so what was noted there has to stand still.
  ///
  /// - Parameter look: what stands there; called only for paths that Tarn wrote of late.
  package func isOwn(
    _ path: RelativePath, look: (RelativePath) -> (Present, permissions: UInt32)?
  ) -> Bool {
    let (note, children) = notes.withLock { notes in
      let children = [notes.newerDirectories[path], notes.olderDirectories[path]].compactMap { $0 }
      let isForeign = notes.foreign.contains(path)
      return (notes.newer[path] ?? notes.older[path], children.isEmpty || isForeign ? nil : children)
    }
    guard note != nil || children != nil else { return false }
    let found = look(path)
    if let children, found == nil || found?.0.kind == .directory {
      guard (found?.permissions ?? Self.directoryMode) == Self.directoryMode else {
        tellForeign(path)
        return false
      }
      return stand(children, look)
    }
    return note.map { fits($0, found) } ?? false
  }

  private func tellForeign(_ directory: RelativePath) {
    let isFull = notes.withLock { notes in
      notes.foreign.insert(directory)
      return notes.foreign.count > Self.half
    }
    if isFull { forget() }
  }

  private func stand(
    _ children: [Set<RelativePath>], _ look: (RelativePath) -> (Present, permissions: UInt32)?
  ) -> Bool {
    children.joined().allSatisfy { child in
      let (note, below) = notes.withLock { notes in
        (
          notes.newer[child] ?? notes.older[child],
          [notes.newerDirectories[child], notes.olderDirectories[child]].compactMap { $0 }
        )
      }
      guard let note else {
        // A directory that is there has news of its own.
        return below.isEmpty || look(child)?.0.kind == .directory || stand(below, look)
      }
      if fits(note, look(child)) { return true }
      if !note.isExact { notes.withLock { _ = $0.doubts.insert(child) } }
      return !note.isExact
    }
  }

  private func fits(_ note: Note, _ found: (Present, permissions: UInt32)?) -> Bool {
    switch (note.identity, found?.0.identity) {
    case (nil, nil): return true
    case (let known?, let identity?):
      if note.isExact { return known.isSame(as: identity) }
      return known.isSameContents(as: identity) && found?.permissions == Self.fileMode
    default: return false
    }
  }
}
