import Glibc
import LinuxShim
import TarnCore

/// Renames that never remove an object that nobody looked at.
enum Rename {
  /// Moves where nothing stands.
  ///
  /// - Throws: `exists` when something does.
  static func noReplace(
    _ from: Descriptor, _ name: String, _ to: Descriptor, _ path: RelativePath
  ) throws(FolderFailure) {
    let leaf = cString(path.name)
    let result = tarn_rename(
      from.number, cString(name), to.number, leaf, Int32(TARN_RENAME_NOREPLACE.rawValue))
    guard result == -EINVAL || result == -ENOSYS else {
      try kernel("move into place", path.bytes, result)
      return
    }
    // A file system without the flag: a link is refused where something stands.
    try kernel("link into place", path.bytes, tarn_link(from.number, cString(name), to.number, leaf))
    _ = tarn_unlink(from.number, cString(name))
  }
}
