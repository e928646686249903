/// The changes that a watcher reported for one folder since the last look: merged, and bounded however many there are.
///
/// The result covers everything that was reported. More than `entryLimit` entries of one directory become that directory. More than
/// `directoryLimit` directories and trees become the whole folder, since one look at everything then costs less than many at parts.
/// The caller passes the time.
package struct DirtySet: Sendable {
  /// The most entries of one directory that are kept apart.
  package static let entryLimit = 128
  /// The most directories and trees that are kept apart.
  package static let directoryLimit = 512
  /// The set is due when nothing was reported for this long.
  package static let quiet = Duration.milliseconds(100)
  /// The set is due this long after the first report, even when more keep coming.
  package static let longest = Duration.seconds(1)

  private enum Contents {
    case entries(Set<RelativePath>)
    /// All entries of the directory, but nothing below them.
    case all
  }

  /// The reported entries by the directory that holds them; `nil` is the folder itself.
  private var directories: [RelativePath?: Contents] = [:]
  /// The reported trees; none lies below another.
  private var trees: Set<RelativePath> = []
  private var isEverything = false
  private var first: Instant?
  private var last = Instant()

  package init() {}

  package var isEmpty: Bool { first == nil }

  /// When the set is to be taken; `nil` while it is empty.
  package var dueAt: Instant? {
    first.map { min($0 + Self.longest, last + Self.quiet) }
  }

  /// Adds one entry that may have changed.
  package mutating func add(path: RelativePath, at now: Instant) {
    touch(now)
    guard !isEverything, !isCovered(path) else { return }
    switch directories[path.parent] {
    case .all: return
    case nil: directories[path.parent] = .entries([path])
    case .entries(var entries):
      // The set is taken out of the dictionary first, so that it is changed in place.
      directories[path.parent] = .all
      entries.insert(path)
      if entries.count <= Self.entryLimit { directories[path.parent] = .entries(entries) }
    }
    bound()
  }

  /// Adds a tree: anything at or below the path may have changed. `nil` is the whole folder.
  package mutating func add(tree: RelativePath?, at now: Instant) {
    touch(now)
    guard !isEverything else { return }
    guard let tree else { return becomeEverything() }
    guard !isCovered(tree) else { return }
    trees = trees.filter { !tree.isAncestor(of: $0) }
    directories = directories.filter { directory, _ in
      guard let directory else { return true }
      return directory != tree && !tree.isAncestor(of: directory)
    }
    if case .entries(var entries) = directories[tree.parent], entries.remove(tree) != nil {
      directories[tree.parent] = entries.isEmpty ? nil : .entries(entries)
    }
    trees.insert(tree)
    bound()
  }

  /// Returns what to look at when it is due, and empties the set. `nil` before, and while it is empty.
  package mutating func take(at now: Instant) -> DirtyScope? {
    guard let dueAt, now >= dueAt else { return nil }
    return takeAll()
  }

  /// Returns what to look at, due or not, and empties the set. `nil` while it is empty.
  package mutating func takeAll() -> DirtyScope? {
    guard !isEmpty else { return nil }
    defer { self = DirtySet() }
    guard !isEverything else { return .everything }
    var paths: [RelativePath] = []
    var whole: [RelativePath?] = []
    for (directory, contents) in directories {
      switch contents {
      case .entries(let entries): paths += entries
      case .all: whole.append(directory)
      }
    }
    // The folder itself comes first.
    whole.sort { left, right in
      guard let right else { return false }
      return left.map { $0 < right } ?? true
    }
    return .parts(paths: paths.sorted(), directories: whole, trees: trees.sorted())
  }

  private mutating func touch(_ now: Instant) {
    if first == nil { first = now }
    last = max(last, now)
  }

  /// True when a tree holds the path already.
  private func isCovered(_ path: RelativePath) -> Bool {
    guard !trees.isEmpty else { return false }
    var step: RelativePath? = path
    while let current = step {
      if trees.contains(current) { return true }
      step = current.parent
    }
    return false
  }

  private mutating func bound() {
    if directories.count + trees.count > Self.directoryLimit { becomeEverything() }
  }

  private mutating func becomeEverything() {
    isEverything = true
    directories = [:]
    trees = []
  }
}

/// The parts of a folder to look at.
package enum DirtyScope: Equatable, Sendable {
  case everything
  /// Parts, sorted and without duplicates: single entries; directories with all their entries but nothing below these (`nil` is the
  /// folder itself); trees with everything below them, none below another.
  case parts(paths: [RelativePath], directories: [RelativePath?], trees: [RelativePath])

  /// True when a look at this scope includes the entry `path`.
  package func covers(_ path: RelativePath) -> Bool {
    switch self {
    case .everything: true
    case .parts(let paths, let directories, let trees):
      paths.contains(path) || directories.contains(path.parent)
        || trees.contains { $0 == path || $0.isAncestor(of: path) }
    }
  }
}
