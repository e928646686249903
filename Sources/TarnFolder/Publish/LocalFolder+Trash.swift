package import TarnCore
import TarnRuntime

/// What was displaced or removed, until it expires: `trash/`.
extension LocalFolder {
  package func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)] { try trash.list() }

  package func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity {
    try OwnDirectory.check(name)
    let place = try Beneath.Place(path)
    guard try trash.stat(name) != nil else {
      throw FolderFailure(.missing, "trash/\(name) is not there", path: path)
    }
    let touched = TouchedDirectories(beneath, mover.probe)
    do throws(FolderFailure) {
      let parent = try touched.make(place.parent, for: 0)
      let result = mover.moveOut(trash.descriptor, name, to: parent, place.leaf, .rename)
      try kernel("restore", path.bytes, result)
      touched.touch(place.parent, for: 0)
      touched.touch(trash)
      touched.sync(items: 1)
      if let failure = touched.failures[0] { throw failure }
      guard let stat = try FileStat.at(parent, place.leaf) else {
        throw FolderFailure(.missing, "\(path.printable) is gone again")
      }
      return stat.identity
    } catch {
      touched.removeMade()
      throw error.about(path)
    }
  }

  package func trashIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    try OwnDirectory.check(name)
    return try trash.stat(name)?.identity
  }

  package func unstage(_ trashName: String, as name: String) throws(FolderFailure) {
    try OwnDirectory.check(name)
    try OwnDirectory.check(trashName)
    let result = mover.moveIn(
      trash.descriptor, cString(trashName), to: partial.descriptor, name, .moveBack)
    try kernel("move back", trash.object(trashName), result)
    let touched = TouchedDirectories(beneath, mover.probe)
    touched.touch(partial)
    touched.touch(trash)
    touched.sync(items: 1)
    if let failure = touched.failures[0] { throw failure }
  }

  package func removeTrash(_ name: String) throws(FolderFailure) {
    try trash.removeTree(name) { random.name() }
  }
}
