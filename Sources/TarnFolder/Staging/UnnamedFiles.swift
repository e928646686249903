import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// Makes files that have no name until they are installed (`O_TMPFILE`, then `linkat`; open(2), linkat(2)).
///
/// Making and renaming a file costs the file system twice the work, since a name in `partial/` is added and removed. Any thread.
struct UnnamedFiles: Sendable {
  private let directory: Descriptor
  /// Whether files without a name can be made; `nil` until the first request.
  private let canBeMade: Locked<Bool?>

  /// - Parameters:
  ///   - directory: the directory `partial/`.
  ///   - isWanted: false simulates a file system without such files.
  init(_ directory: Descriptor, isWanted: Bool) {
    self.directory = directory
    canBeMade = Locked(isWanted ? nil : false)
  }

  /// - Parameters:
  ///   - mode: the mode, as far as the umask allows.
  ///   - trial: returns a name that nothing in the directory has, for the very first file.
  /// - Returns: `nil` where the file needs a name. That is so on a file system that is not known to make unnamed files durable, or
  ///   where they cannot be named later (without `/proc` and privileges, on Linux before 6.10).
  func make(mode: UInt32, trial: () -> String) -> Descriptor? {
    let isTried = canBeMade.withLock { known in
      known = known ?? canGetNames(mode, cString(trial()))
      return known ?? false
    }
    guard isTried else { return nil }
    let number = directory.use { tarn_open_unnamed($0, mode) }
    return number < 0 ? nil : Descriptor(number)
  }

  /// The file systems ext2 to ext4, XFS and tmpfs, where fsync(2) of a file without a name is known to make its bytes durable.
  /// Btrfs skipped such files before Linux 6.16 ("fix fsync of files with no hard links"), and gains nothing from them.
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
