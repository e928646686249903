import Glibc
import LinuxShim
package import TarnCore

/// The mode that Tarn's files have.
extension LocalFolder {
  /// Of files that Tarn places: never executable, whatever a feed says.
  static let mode: UInt32 = 0o644

  package func restoreMode(
    of path: RelativePath, expected: FileIdentity
  ) throws(FolderFailure) -> (identity: FileIdentity, before: UInt32)? {
    do throws(FolderFailure) {
      let place = try Beneath.Place(path)
      guard let parent = try beneath.parent(of: place) else { return nil }
      // Without a right to read it: a mode that forbids that is just what is to be mended.
      let number = parent.open(place.leaf, tarn_path_only)
      if number == -ENOENT { return nil }
      let file = Descriptor(try kernel("open", path.bytes, number))
      let found = try FileStat.of(file, path.bytes)
      guard found.kind == .regular, found.identity.isSame(as: expected) else { return nil }
      guard found.permissions != Self.mode else { return (found.identity, found.permissions) }
      try kernel("set the mode of", path.bytes, file.use { tarn_set_mode_of_path($0, Self.mode) })
      return (try FileStat.of(file, path.bytes).identity, found.permissions)
    } catch {
      throw error.about(path)
    }
  }
}
