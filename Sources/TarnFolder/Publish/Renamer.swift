import Glibc
import LinuxShim

/// Renames that never replace an object that nobody looked at.
///
/// All give 0 or a negative errno.
struct Renamer: Sendable {
  let probe: FolderProbe?
  /// False behaves like a file system whose renames take no flags (some network and FUSE file systems).
  var hasFlags = true

  /// Out of a directory of Tarn's own, to where nothing stands: -EEXIST when something does.
  ///
  /// Without NOREPLACE: a link, which refuses what stands there, and the old name goes. Directories cannot be
  /// linked: -EPERM.
  func moveOut(
    _ from: Descriptor, _ name: String, to: Descriptor, _ leaf: [CChar], _ step: FolderStep
  ) -> Int32 {
    probed(step, probe) {
      let source = cString(name)
      let result = rename(from, source, to, leaf, TARN_RENAME_NOREPLACE)
      guard Self.isUnsupported(result) else { return result }
      let linked = from.use { from in to.use { tarn_link(from, source, $0, leaf) } }
      return linked < 0 ? linked : from.use { tarn_unlink($0, source) }
    }
  }

  /// Gives a file its first name, where nothing stands: -EEXIST when something does.
  func name(_ file: Descriptor, in directory: Descriptor, _ leaf: [CChar], _ step: FolderStep) -> Int32 {
    probed(step, probe) {
      let result = file.use { file in directory.use { tarn_link_unnamed(file, $0, leaf) } }
      if result == 0 { directory.use { tarn_tell_written($0, leaf) } }
      return result
    }
  }

  /// Into a directory of Tarn's own, whatever the object is: -EEXIST when the name is taken there.
  ///
  /// Without NOREPLACE: a look and a plain rename, for nobody else makes names there.
  func moveIn(
    _ from: Descriptor, _ leaf: [CChar], to: Descriptor, _ name: String, _ step: FolderStep
  ) -> Int32 {
    probed(step, probe) {
      let target = cString(name)
      let result = rename(from, leaf, to, target, TARN_RENAME_NOREPLACE)
      guard Self.isUnsupported(result) else { return result }
      guard let there = try? FileStat.at(to, target) else {
        return rename(from, leaf, to, target, TARN_RENAME_REPLACE)
      }
      _ = there
      return -EEXIST
    }
  }

  /// Swaps the two objects: -EINVAL or the like where the file system cannot.
  func exchange(
    _ first: Descriptor, _ name: String, _ second: Descriptor, _ leaf: [CChar], _ step: FolderStep
  ) -> Int32 {
    probed(step, probe) { rename(first, cString(name), second, leaf, TARN_RENAME_EXCHANGE) }
  }

  static func isUnsupported(_ result: Int32) -> Bool {
    result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP
  }

  private func rename(
    _ from: Descriptor, _ source: [CChar], _ to: Descriptor, _ target: [CChar], _ mode: tarn_rename_mode
  ) -> Int32 {
    if !hasFlags, mode != TARN_RENAME_REPLACE { return -EINVAL }
    return from.use { from in to.use { tarn_rename(from, source, $0, target, Int32(mode.rawValue)) } }
  }
}
