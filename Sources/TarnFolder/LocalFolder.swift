import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// The folder of one mirror, on disk. Made by `FolderHome.open`. Any thread.
package final class LocalFolder: FolderPort {
  let home: FolderHome
  let beneath: Beneath
  let partial: OwnDirectory
  let trash: OwnDirectory
  let hashing: any Hashing
  let random: any RandomSource
  let partialNames: PartialNames
  let unnamedFiles: UnnamedFiles
  let mover: Renamer
  let hashThread = HashThread(name: "tarn-hash")

  init(
    home: FolderHome, root: Descriptor, partial: Descriptor, trash: Descriptor, hashing: any Hashing,
    random: any RandomSource, mover: Renamer
  ) {
    self.home = home
    beneath = Beneath(root: root)
    self.partial = OwnDirectory(descriptor: partial, label: "partial", path: "\(home.stateDirectory)/partial")
    self.trash = OwnDirectory(descriptor: trash, label: "trash", path: "\(home.stateDirectory)/trash")
    self.hashing = hashing
    self.random = random
    partialNames = PartialNames(random)
    unnamedFiles = UnnamedFiles(partial, isWanted: mover.hasFlags)
    self.mover = mover
    // A group keeps its files open until they are renamed.
    _ = tarn_raise_open_files()
  }

  package func scan(_ region: Region) -> any SnapshotCursor { ScanAhead(FolderScan(beneath, region)) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { try beneath.look(path) }

  /// What stands at a path below a folder that is not open, and its permission bits; nil also for what cannot be looked at.
  package static func look(_ path: RelativePath, in folder: String) -> (Present, permissions: UInt32)? {
    guard let stat = try? FileStat.notFollowing(Array(folder.utf8) + [UInt8(ascii: "/")] + path.bytes) else {
      return nil
    }
    return (Present(path: path, kind: stat.kind, identity: stat.identity), stat.permissions)
  }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try FolderReader(beneath: beneath, hashing: hashing).digest(of: path, algorithm, watch: watch)
  }

  // MARK: The file system

  package func flush() throws(FolderFailure) {
    let result = beneath.root.use { number in
      probed(.syncFileSystem, mover.probe) { tarn_sync_file_system(number) }
    }
    try kernel("make durable", home.folder.utf8, result)
  }

  package func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?) {
    var space = tarn_space_left()
    try kernel("ask for the space of", home.folder.utf8, beneath.root.use { tarn_space($0, &space) })
    return (space.free_bytes, space.total_bytes, space.total_files == 0 ? nil : space.free_files)
  }

  package func isIntact() throws(FolderFailure) -> Bool {
    do throws(FolderFailure) {
      return try isTheSame()
    } catch {
      switch error.code {
      // Something else stands on the way by now.
      case .missing, .notDirectory, .link: return false
      default: throw error
      }
    }
  }

  private func isTheSame() throws(FolderFailure) -> Bool {
    guard let there = try FileStat.following(home.folder),
      there.isSameObject(as: try FileStat.of(beneath.root, home.folder.utf8)),
      case .mirror(let now) = try FolderHome.inspect(folder: home.folder, state: nil), now.id == home.id,
      let partials = try FileStat.following(now.stateDirectory + "/partial")
    else { return false }
    return partials.isSameObject(as: try FileStat.of(partial.descriptor, partial.label.utf8))
  }
}
