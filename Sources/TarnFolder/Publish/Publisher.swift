import Glibc
import LinuxShim
package import TarnCore

/// How a file gets its final name, and how it loses it (reliability.md 6.1).
extension LocalFolder {
  /// Below so many files an fsync each costs less than a syncfs.
  private static let smallGroup = 4

  package func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] {
    if files.count >= Self.smallGroup, syncAll() { return files.map { _ in nil } }
    return files.map { file in
      guard let descriptor = (file as? StagedFile)?.open else {
        return FolderFailure(.missing, "the partial file is closed")
      }
      let result = tarn_sync(descriptor.number)
      return result < 0
        ? FolderFailure(cannot: "make durable", Array("partial/\(file.name)".utf8), errno: -result) : nil
    }
  }

  /// One syncfs, over a descriptor of its own: an error of writing back is reported once per open descriptor, so
  /// one that was opened before the files were closed would do, and a shared one could have been told already.
  ///
  /// - Returns: false when some file may not be durable; then each is asked for itself.
  private func syncAll() -> Bool {
    let number = tarn_open_at(partial.descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard number >= 0 else { return false }
    let fresh = Descriptor(number)
    return tarn_sync_file_system(fresh.number) == 0
  }

  package func install(_ items: [Installation]) -> [PublishOutcome] {
    var touched = TouchedDirectories()
    var outcomes: [PublishOutcome] = []
    for item in items {
      do throws(FolderFailure) {
        outcomes.append(try install(item, &touched))
      } catch {
        outcomes.append(.failed(error.about(item.path)))
      }
    }
    touched.add(partial.descriptor, nil, items.indices)
    touched.add(trash.descriptor, nil, items.indices)
    touched.sync { index, failure in
      if case .installed = outcomes[index] { outcomes[index] = .failed(failure) }
    }
    return outcomes
  }

  private func install(
    _ item: Installation, _ touched: inout TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let parent = try beneath.makeDirectory(item.path.parent)
    let leaf = cString(item.path.name)
    switch item.expectation {
    case .absent:
      do throws(FolderFailure) {
        try Rename.noReplace(partial.descriptor, item.partial.name, parent, item.path)
      } catch  where error.code == .exists {
        return .stale("something stands there now")
      }
      touched.add(parent, item.path.parent)
      return .installed(try identity(parent, leaf, item.path), displaced: nil)
    case .present(let expected):
      guard let there = try FileStat.at(parent, leaf), there.kind == .regular,
        there.identity.isSame(as: expected)
      else { return .stale("what stands there changed") }
      return try exchange(item, parent, leaf, &touched)
    }
  }

  /// Swaps, then moves what was there into the trash, whatever it is: nothing is lost by a race.
  private func exchange(
    _ item: Installation, _ parent: Descriptor, _ leaf: [CChar], _ touched: inout TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let name = cString(item.partial.name)
    let result = tarn_rename(
      partial.descriptor.number, name, parent.number, leaf, Int32(TARN_RENAME_EXCHANGE.rawValue))
    if result == -EINVAL || result == -ENOSYS {
      return try replaceWithoutExchange(item, parent, leaf, &touched)
    }
    if result == -ENOENT { return .stale("what stood there is gone") }
    try kernel("move into place", item.path.bytes, result)
    touched.add(parent, item.path.parent)
    try trashPartialUnsynced(item.partial.name, as: item.trashName)
    guard let displaced = try FileStat.at(trash.descriptor, cString(item.trashName)) else {
      throw FolderFailure(cannot: "look at", Array("trash/\(item.trashName)".utf8), errno: ENOENT)
    }
    return .installed(try identity(parent, leaf, item.path), displaced: displaced.identity)
  }

  /// A file system without EXCHANGE: what is there goes to the trash first, so for a moment nothing stands at the
  /// path; never a plain rename over an object that nobody looked at.
  private func replaceWithoutExchange(
    _ item: Installation, _ parent: Descriptor, _ leaf: [CChar], _ touched: inout TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let moved = tarn_rename(
      parent.number, leaf, trash.descriptor.number, cString(item.trashName),
      Int32(TARN_RENAME_REPLACE.rawValue))
    try kernel("move to the trash", item.path.bytes, moved)
    touched.add(parent, item.path.parent)
    try Rename.noReplace(partial.descriptor, item.partial.name, parent, item.path)
    let displaced = try FileStat.at(trash.descriptor, cString(item.trashName))
    return .installed(try identity(parent, leaf, item.path), displaced: displaced?.identity)
  }

  private func trashPartialUnsynced(_ name: String, as trashName: String) throws(FolderFailure) {
    let result = tarn_rename(
      partial.descriptor.number, cString(name), trash.descriptor.number, cString(trashName),
      Int32(TARN_RENAME_NOREPLACE.rawValue))
    if result == -EINVAL || result == -ENOSYS {
      let plain = tarn_rename(
        partial.descriptor.number, cString(name), trash.descriptor.number, cString(trashName),
        Int32(TARN_RENAME_REPLACE.rawValue))
      try kernel("move to the trash", Array(name.utf8), plain)
    } else {
      try kernel("move to the trash", Array(name.utf8), result)
    }
  }

  private func identity(
    _ parent: Descriptor, _ leaf: [CChar], _ path: RelativePath
  ) throws(FolderFailure) -> FileIdentity {
    guard let stat = try FileStat.at(parent, leaf) else {
      throw FolderFailure(cannot: "look at", path.bytes, errno: ENOENT, path: path)
    }
    return stat.identity
  }

  package func remove(_ items: [Removal]) -> [PublishOutcome] {
    var touched = TouchedDirectories()
    var outcomes: [PublishOutcome] = []
    for item in items {
      do throws(FolderFailure) {
        outcomes.append(try remove(item, &touched))
      } catch {
        outcomes.append(.failed(error.about(item.path)))
      }
    }
    touched.add(trash.descriptor, nil, items.indices)
    touched.sync { index, failure in
      if case .removed = outcomes[index] { outcomes[index] = .failed(failure) }
    }
    for (item, outcome) in zip(items, outcomes) {
      if case .removed = outcome { removeEmptyDirectories(from: item.path.parent) }
    }
    return outcomes
  }

  private func remove(
    _ item: Removal, _ touched: inout TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    guard let parent = try beneath.directory(item.path.parent) else { return .stale("it is gone") }
    let leaf = cString(item.path.name)
    guard let there = try FileStat.at(parent, leaf), there.kind == .regular,
      there.identity.isSame(as: item.expected)
    else { return .stale("what stands there changed") }
    let moved = tarn_rename(
      parent.number, leaf, trash.descriptor.number, cString(item.trashName),
      Int32(TARN_RENAME_NOREPLACE.rawValue))
    if moved == -ENOENT { return .stale("it is gone") }
    try kernel("move to the trash", item.path.bytes, moved)
    touched.add(parent, item.path.parent)
    guard let now = try FileStat.at(trash.descriptor, cString(item.trashName)) else {
      throw FolderFailure(cannot: "look at", Array("trash/\(item.trashName)".utf8), errno: ENOENT)
    }
    guard now.identity.isSameButRenamed(as: item.expected) else {
      // Replaced in the moment before: back it goes, if its place is still free; else it stays in the trash.
      try Rename.noReplace(trash.descriptor, item.trashName, parent, item.path)
      return .stale("what stood there changed")
    }
    return .removed(now.identity)
  }

  /// Only empty ones, never the folder itself; one that is not empty ends the walk.
  private func removeEmptyDirectories(from path: RelativePath?) {
    var path = path
    while let directory = path {
      guard let parent = try? beneath.directory(directory.parent) else { return }
      guard tarn_remove_directory(parent.number, cString(directory.name)) == 0 else { return }
      path = directory.parent
    }
  }
}

/// The directories that a group changed, each once, and by which items.
struct TouchedDirectories {
  private var directories: [RelativePath?: Descriptor] = [:]
  private var own: [Descriptor] = []
  private var count = 0

  mutating func add(_ directory: Descriptor, _ path: RelativePath?) {
    directories[path] = directory
  }

  /// One of Tarn's own directories, that all of the items changed.
  mutating func add(_ directory: Descriptor, _ path: RelativePath?, _ items: Range<Int>) {
    own.append(directory)
    count = items.count
  }

  /// Makes all of them durable.
  ///
  /// - Parameter failed: called for every item of the group when one cannot be: which renames lie in it is not
  ///   worth telling apart, for a folder that cannot be synced is past use.
  func sync(failed: (Int, FolderFailure) -> Void) {
    for directory in Array(directories.values) + own {
      let result = tarn_sync(directory.number)
      guard result < 0 else { continue }
      for index in 0..<count {
        failed(index, FolderFailure(cannot: "make durable", Array("a directory".utf8), errno: -result))
      }
    }
  }
}
