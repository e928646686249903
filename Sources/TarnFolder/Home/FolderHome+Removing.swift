import Glibc
import LinuxShim
package import TarnCore

extension FolderHome {
  /// Removes what is Tarn's own; the files of the folder stay. The lock is held by the caller. After a crash it
  /// can be called again: the marker goes when all else is gone. The folder may be gone itself.
  ///
  /// What Tarn did not make there stays, and its directory with it.
  package func remove() throws(FolderFailure) {
    let state = OwnDirectory(descriptor: try Descriptor.directory(at: stateDirectory), label: "state")
    for name in Self.ownDirectories { try Self.removeAll(name, in: state) }
    // Only now: a first pass that had hardly any descriptors is taken back, too.
    let root = try FileStat.following(folder) == nil ? nil : Descriptor.directory(at: folder)
    let last: Set<String> = [Self.idName, Self.lockName]
    let names = try state.list().map(\.name)
    for name in names where !last.contains(name) && Self.isOwn(name) { try state.remove(name) }
    if !isInner, let root { try kernel("remove", folder.utf8, Self.unlink(Self.markerName, in: root)) }
    for name in last.sorted() { try state.remove(name) }
    let result = tarn_remove_directory(AT_FDCWD, cString(stateDirectory))
    if result != -ENOTEMPTY { try kernel("remove", stateDirectory.utf8, result) }
    try root?.sync(folder.utf8)
  }

  /// Whether the folder holds nothing but Tarn's own, and the state nothing but what a first pass makes: no ledger
  /// that was set aside, no file on its way or in the trash. False when it cannot be told.
  package func isBare() -> Bool {
    do throws(FolderFailure) {
      guard try Self.isEmpty(Descriptor.directory(at: folder)) else { return false }
      return try isStateBare()
    } catch {
      return false
    }
  }

  /// The half of `isBare` that is about the state.
  func isStateBare() throws(FolderFailure) -> Bool {
    let state = OwnDirectory(descriptor: try Descriptor.directory(at: stateDirectory), label: "state")
    for name in Self.ownDirectories {
      let number = state.descriptor.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
      if number == -ENOENT { continue }
      let own = OwnDirectory(descriptor: Descriptor(try kernel("open", name.utf8, number)), label: name)
      guard try own.list().isEmpty else { return false }
    }
    return try state.list().allSatisfy { Self.isOfFirstPass($0.name) }
  }

  private static func isOfFirstPass(_ name: String) -> Bool {
    ownDirectories.contains(name) || [lockName, idName].contains(name)
      || isOwn(name) && !name.hasPrefix(ledgerName + ".")
  }

  /// Removes a file `FOLDER/.tarn` that names a state which is gone.
  ///
  /// - Returns: false when it is no file.
  package static func removePointer(folder: String) throws(FolderFailure) -> Bool {
    let root = try Descriptor.directory(at: folder)
    guard try FileStat.at(root, cString(markerName))?.kind == .regular else { return false }
    try kernel("remove", folder.utf8, unlink(markerName, in: root))
    try root.sync(folder.utf8)
    return true
  }

  /// What lies in `trash/`, of whatever kind. Needs no lock, and makes nothing.
  package func trashed() throws(FolderFailure) -> [(name: String, identity: FileIdentity)] {
    let path = stateDirectory + "/trash"
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
    if number == -ENOENT { return [] }
    return try OwnDirectory(descriptor: Descriptor(try kernel("open", path.utf8, number)), label: "trash")
      .stats().map { ($0.name, $0.stat.identity) }
  }

  private static func removeAll(_ name: String, in state: OwnDirectory) throws(FolderFailure) {
    let number = state.descriptor.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
    if number == -ENOENT { return }
    let own = OwnDirectory(descriptor: Descriptor(try kernel("open", name.utf8, number)), label: name)
    for file in try own.list() { try own.remove(file.name) }
    try kernel("remove", name.utf8, state.descriptor.use { tarn_remove_directory($0, cString(name)) })
  }

  /// The databases with what SQLite and a rebuilding put beside them, the marker in the making, and a spool that a
  /// crash left.
  private static func isOwn(_ name: String) -> Bool {
    ["ledger.sqlite", "stage.sqlite", "catalog.sqlite", "id.", markerName + ".", markerName + "-"].contains {
      name.hasPrefix($0)
    }
  }

  private static func unlink(_ name: String, in directory: Descriptor) -> Int32 {
    let result = directory.use { tarn_unlink($0, cString(name)) }
    return result == -ENOENT ? 0 : result
  }
}
