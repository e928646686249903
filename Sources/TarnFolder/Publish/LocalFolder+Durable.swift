import Glibc
import LinuxShim
package import TarnCore

/// Group commit of contents.
extension LocalFolder {
  /// Below so many files an fsync each costs less than a syncfs.
  private static let smallGroup = 4

  /// One syncfs for a group: 20,000 files in a quarter of a second instead of five.
  ///
  /// The kernel tells an error of a file system once per descriptor, and one that somebody else was told of before
  /// this descriptor was opened not at all. So every file is asked for its own errors too: its descriptor is open
  /// since before the first byte.
  package func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] {
    let isSynced = files.count >= Self.smallGroup && syncFileSystem()
    return files.map { file in
      guard let staged = file as? StagedFile else {
        return FolderFailure(.other, "partial/\(file.name) is no file of this folder")
      }
      do throws(FolderFailure) {
        if isSynced { try staged.checkWriteback() } else { try staged.syncAll() }
        return nil
      } catch {
        return error
      }
    }
  }

  /// - Returns: false when some file may not be durable; then each is asked for itself.
  private func syncFileSystem() -> Bool {
    let number = partial.descriptor.open(cString("."), O_RDONLY | O_DIRECTORY)
    guard number >= 0 else { return false }
    let fresh = Descriptor(number)
    return probed(.syncFileSystem, mover.probe) { fresh.use(tarn_sync_file_system) } == 0
  }
}
