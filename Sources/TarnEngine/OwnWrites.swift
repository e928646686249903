package import TarnCore
import TarnRuntime

/// The recent writes of Tarn itself in a folder, so that events about them are recognised as its own. Bounded; thread-safe.
///
/// A file is noted before it gets its name, because its event may come first. Its time of change is not known then, so size,
/// modification time and mode must match until it is noted again.
package final class OwnWrites: Sendable {
  private struct Note {
    /// The file's identity; `nil` when nothing is at the path.
    var identity: FileIdentity?
    var isExact: Bool
  }

  private struct Half {
    var notes: [RelativePath: Note] = [:]
    /// The directories that lead to these paths, with what was noted in them. They may have been made or removed together with
    /// their contents.
    var directories: [RelativePath: Set<RelativePath>] = [:]

    /// Forgets a path, and each directory in which nothing else is noted.
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
    /// Paths that were expected and missing when their directory was reported. They are checked again once they are noted.
    var doubts: Set<RelativePath> = []
    /// Directories whose mode somebody else changed. An event that restores their mode is not Tarn's.
    var foreign: Set<RelativePath> = []
    var onDoubt: (@Sendable (RelativePath) -> Void)?

    func note(of path: RelativePath) -> Note? { newer.notes[path] ?? older.notes[path] }

    func children(of path: RelativePath) -> [Set<RelativePath>] {
      [newer.directories[path], older.directories[path]].compactMap { $0 }
    }
  }

  /// The most notes in each of two halves. The older half is dropped as a whole.
  private static let half = 32_768

  /// The modes of the files and directories that Tarn makes.
  private static let (fileMode, directoryMode): (UInt32, UInt32) = (0o644, 0o755)

  private let notes = Locked(Notes())

  package init() {}

  /// Sets the handler of doubts.
  ///
  /// - Parameter onDoubt: called for paths that have to be checked once more; must not block.
  package func setOnDoubt(_ onDoubt: @escaping @Sendable (RelativePath) -> Void) {
    notes.withLock { $0.onDoubt = onDoubt }
  }

  /// Forgets all writes. Late events about them are handled like any other.
  package func forget() {
    notes.withLock { $0 = Notes(onDoubt: $0.onDoubt) }
  }

  /// Notes a file that is about to get this name.
  package func expect(_ path: RelativePath, _ identity: FileIdentity) {
    note(path, Note(identity: identity, isExact: false))
  }

  /// Notes that an expected file does not get this name. Events about the path are then handled like any other.
  package func withdraw(_ path: RelativePath) {
    let onDoubt = notes.withLock { notes -> (@Sendable (RelativePath) -> Void)? in
      notes.newer.forget(path)
      notes.older.forget(path)
      return notes.doubts.remove(path) != nil ? notes.onDoubt : nil
    }
    onDoubt?(path)
  }

  /// Notes what is at the path now; `nil` when nothing is.
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

  /// Returns whether the object at a path is as Tarn left it. Contents of a directory have events of their own, except those that
  /// were gone before the directory was listed. So all that was noted in it must still match.
  ///
  /// - Parameter look: returns what is at a path; called only for paths that Tarn wrote recently.
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
    // A file that was noted here and is gone was removed by somebody else, also where a directory stood before.
    if found == nil, note?.identity != nil { return false }
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
        // An existing directory has events of its own.
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
