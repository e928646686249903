import Glibc
import LinuxShim

/// Renames that never replace an object that nobody looked at.
///
/// All return 0 or a negative errno.
struct Renamer: Sendable {
  let probe: FolderProbe?
  /// False simulates a file system whose renames take no flags (some network and FUSE file systems).
  var hasFlags = true

  /// Moves an object out of one of Tarn's own directories to a free name; -EEXIST when the name is taken.
  ///
  /// Without NOREPLACE it makes a link, which fails when the name is taken, and removes the old name. Directories cannot be linked:
  /// -EPERM.
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

  /// Gives a file its first name; -EEXIST when the name is taken.
  func name(_ file: Descriptor, in directory: Descriptor, _ leaf: [CChar], _ step: FolderStep) -> Int32 {
    probed(step, probe) {
      let result = file.use { file in directory.use { tarn_link_unnamed(file, $0, leaf) } }
      if result == 0 { directory.use { tarn_tell_written($0, leaf) } }
      return result
    }
  }

  /// Moves an object of whatever kind into one of Tarn's own directories; -EEXIST when the name is taken there.
  ///
  /// Without NOREPLACE it looks first and then renames, since nobody else makes names there.
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

  /// Exchanges the two objects; -EINVAL or the like where the file system cannot.
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
