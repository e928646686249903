import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// Files that have no name until they are installed (`O_TMPFILE`, then `linkat`; open(2), linkat(2)).
///
/// To make, and to rename, a file costs its file system twice the work: a name in `partial/` goes in and out again. Any thread.
struct UnnamedFiles: Sendable {
  private let directory: Descriptor
  /// Whether files can be made so; nil as long as nobody asked.
  private let canBeMade: Locked<Bool?>

  /// - Parameters:
  ///   - directory: `partial/`.
  ///   - isWanted: false behaves like a file system that has no such files.
  init(_ directory: Descriptor, isWanted: Bool) {
    self.directory = directory
    canBeMade = Locked(isWanted ? nil : false)
  }

  /// - Parameters:
  ///   - mode: as far as the umask lets it.
  ///   - trial: a name that nothing in the directory has, for the first file of all.
  /// - Returns: nil where it has to have a name: on a file system that is not known to make others durable, or that gives them none
  ///   later on (without `/proc` and privileges, on Linux before 6.10).
  func make(mode: UInt32, trial: () -> String) -> Descriptor? {
    let isTried = canBeMade.withLock { known in
      known = known ?? canGetNames(mode, cString(trial()))
      return known ?? false
    }
    guard isTried else { return nil }
    let number = directory.use { tarn_open_unnamed($0, mode) }
    return number < 0 ? nil : Descriptor(number)
  }

  /// ext2 to ext4, XFS, tmpfs: where fsync(2) of a file without a name is known to make its bytes durable. Btrfs passed such files
  /// over before Linux 6.16 ("fix fsync of files with no hard links"), and gains nothing by them.
  private static let kinds: Set<Int64> = [0xEF53, 0x5846_5342, 0x0102_1994]

  private func canGetNames(_ mode: UInt32, _ name: [CChar]) -> Bool {
    guard Self.kinds.contains(directory.use(tarn_file_system_kind)) else { return false }
    let number = directory.use { tarn_open_unnamed($0, mode) }
    guard number >= 0 else { return false }
    let file = Descriptor(number)
    let result = file.use { file in directory.use { tarn_link_unnamed(file, $0, name) } }
    guard result == 0 else { return false }
    return directory.use { tarn_unlink($0, name) } == 0
  }
}
