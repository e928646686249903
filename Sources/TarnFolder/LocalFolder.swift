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
  let mover: Mover

  init(
    home: FolderHome, root: Descriptor, partial: Descriptor, trash: Descriptor, hashing: any Hashing,
    random: any RandomSource, mover: Mover
  ) {
    self.home = home
    beneath = Beneath(root: root)
    self.partial = OwnDirectory(descriptor: partial, label: "partial")
    self.trash = OwnDirectory(descriptor: trash, label: "trash")
    self.hashing = hashing
    self.random = random
    self.mover = mover
    // A group keeps its files open until they are renamed.
    _ = tarn_raise_open_files()
  }

  package func scan() -> any SnapshotCursor { FolderScan(root: beneath.root) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { try beneath.look(path) }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try FolderReader(beneath: beneath, hashing: hashing).digest(of: path, algorithm, watch: watch)
  }

  // MARK: The file system

  package func flush() throws(FolderFailure) {
    let result = beneath.root.use { number in
      take(.syncFileSystem, mover.probe) { tarn_sync_file_system(number) }
    }
    try kernel("make durable", home.folder.utf8, result)
  }

  package func space() throws(FolderFailure) -> (free: UInt64, total: UInt64) {
    var free: UInt64 = 0
    var total: UInt64 = 0
    try kernel("ask for the space of", home.folder.utf8, beneath.root.use { tarn_space($0, &free, &total) })
    return (free, total)
  }

  package func isIntact() throws(FolderFailure) -> Bool {
    if isTheSame { return true }
    try checkDescriptors()
    return isTheSame
  }

  /// Without a descriptor to look with everything seems gone.
  private func checkDescriptors() throws(FolderFailure) {
    var spare: [Descriptor] = []
    for _ in 0..<Self.looking {
      let number = beneath.root.openBeneath(cString(".".utf8), O_RDONLY | O_DIRECTORY)
      guard number != -EMFILE, number != -ENFILE else {
        throw FolderFailure(cannot: "look at", home.folder.utf8, errno: -number)
      }
      if number >= 0 { spare.append(Descriptor(number)) }
    }
  }

  /// Descriptors that a look takes at a time, at most.
  private static let looking = 4

  private var isTheSame: Bool {
    guard let there = try? FileStat.following(home.folder),
      let held = try? FileStat.of(beneath.root, []), there.isSameObject(as: held),
      case .mirror(let now)? = try? FolderHome.inspect(folder: home.folder, state: nil), now.id == home.id,
      let partials = try? FileStat.following(now.stateDirectory + "/partial"),
      let staging = try? FileStat.of(partial.descriptor, [])
    else { return false }
    return partials.isSameObject(as: staging)
  }
}
