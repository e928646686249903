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

  private struct Half {
    var notes: [RelativePath: Note] = [:]
    /// The directories that lead to these: they were made, or removed, with what lay in them; and what was noted there.
    var directories: [RelativePath: Set<RelativePath>] = [:]

    /// A directory goes with the last of what was noted in it.
    mutating func forget(_ path: RelativePath) {
      notes[path] = nil
      var child = path
      while let directory = child.parent, notes[child] == nil, directories[child] == nil {
        directories[directory]?.remove(child)
        guard directories[directory]?.isEmpty == true else { return }
        directories[directory] = nil
        child = directory
      }
    }
  }

  private struct Notes {
    var newer = Half()
    var older = Half()
    /// Expected, and not there when their directory was told: to be looked at again once they are noted.
    var doubts: Set<RelativePath> = []
    /// Directories whose mode somebody changed: that they have their own again is no news of Tarn's.
    var foreign: Set<RelativePath> = []
    var onDoubt: (@Sendable (RelativePath) -> Void)?

    func note(of path: RelativePath) -> Note? { newer.notes[path] ?? older.notes[path] }

    func children(of path: RelativePath) -> [Set<RelativePath>] {
      [newer.directories[path], older.directories[path]].compactMap { $0 }
    }
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
    notes.withLock { $0 = Notes(onDoubt: $0.onDoubt) }
  }

  /// Is about to stand there under that name.
  package func expect(_ path: RelativePath, _ identity: FileIdentity) {
    note(path, Note(identity: identity, isExact: false))
  }

  /// Does not come to stand there: whatever is told of it is looked at.
  package func withdraw(_ path: RelativePath) {
    let onDoubt = notes.withLock { notes -> (@Sendable (RelativePath) -> Void)? in
      notes.newer.forget(path)
      notes.older.forget(path)
      return notes.doubts.remove(path) != nil ? notes.onDoubt : nil
    }
    onDoubt?(path)
  }

  /// Stands there now; nil when nothing does.
  package func note(_ path: RelativePath, _ identity: FileIdentity?) {
    note(path, Note(identity: identity, isExact: true))
  }

  private func note(_ path: RelativePath, _ note: Note) {
    let onDoubt = notes.withLock { notes -> (@Sendable (RelativePath) -> Void)? in
      if max(notes.newer.notes.count, notes.newer.directories.count) >= Self.half {
        (notes.older, notes.newer, notes.doubts) = (notes.newer, Half(), [])
      }
      notes.newer.notes[path] = note
      var child = path
      while let directory = child.parent,
        notes.newer.directories[directory, default: []].insert(child).inserted
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
      let children = notes.children(of: path)
      let isForeign = notes.foreign.contains(path)
      return (notes.note(of: path), children.isEmpty || isForeign ? nil : children)
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
      let (note, below) = notes.withLock { ($0.note(of: child), $0.children(of: child)) }
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
