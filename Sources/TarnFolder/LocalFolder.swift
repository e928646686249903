import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// The folder of one mirror, on disk.
package final class LocalFolder: FolderPort {
  let home: FolderHome
  let beneath: Beneath
  let partial: OwnDirectory
  let trash: OwnDirectory
  let hashing: any Hashing
  let random: any RandomSource

  init(
    home: FolderHome, root: Descriptor, partial: Descriptor, trash: Descriptor, hashing: any Hashing,
    random: any RandomSource
  ) {
    self.home = home
    beneath = Beneath(root: root)
    self.partial = OwnDirectory(descriptor: partial, label: "partial")
    self.trash = OwnDirectory(descriptor: trash, label: "trash")
    self.hashing = hashing
    self.random = random
    _ = tarn_raise_open_files()
  }

  package func scan() -> any SnapshotCursor { FolderScan(beneath: beneath) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? {
    try FolderReader(beneath: beneath, hashing: hashing).look(path)
  }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try FolderReader(beneath: beneath, hashing: hashing).digest(of: path, algorithm)
  }

  // MARK: Partial files

  package func makePartial() throws(FolderFailure) -> any PartialFile {
    let name = random.fileName()
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let number = tarn_open_at(partial.descriptor.number, cString(name), flags, 0o600)
    let file = Descriptor(try kernel("create a file in", Array("partial/".utf8), number))
    return StagedFile(name: name, directory: partial.descriptor, descriptor: file, hashing: hashing)
  }

  package func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)? {
    let flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let number = tarn_open_at(partial.descriptor.number, cString(name), flags, 0)
    if number == -ENOENT { return nil }
    let file = Descriptor(try kernel("open", Array("partial/\(name)".utf8), number))
    let stat = try FileStat.of(file, Array(name.utf8))
    guard stat.kind == .regular, stat.owner == geteuid() else { return nil }
    return StagedFile(name: name, directory: partial.descriptor, descriptor: file, hashing: hashing)
  }

  package func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)? {
    guard let source = try beneath.file(path),
      try FileStat.of(source, path.bytes).identity.isSame(as: expected)
    else { return nil }
    let copy = try makePartial()
    do throws(FolderFailure) {
      try fill(copy, from: source, path, check: check)
      guard try FileStat.of(source, path.bytes).identity.isSame(as: expected) else {
        copy.discard()
        return nil
      }
      return copy
    } catch {
      copy.discard()
      throw error
    }
  }

  /// Shares the blocks where the file system can, and hashes them; else copies.
  private func fill(
    _ copy: any PartialFile, from source: Descriptor, _ path: RelativePath, check: ContentCheck
  ) throws(FolderFailure) {
    if let staged = copy as? StagedFile, let target = staged.open,
      tarn_clone(target.number, source.number) == 0
    {
      let size = try FileStat.of(target, path.bytes).size
      if try copy.begin(keeping: size, check: check) == size { return }
    }
    _ = try copy.begin(keeping: 0, check: check)
    try FolderReader.read(source, path) { bytes throws(FolderFailure) in try copy.append(bytes) }
  }

  package func partials() throws(FolderFailure) -> [(name: String, size: UInt64)] { try partial.files() }

  package func removePartial(_ name: String) throws(FolderFailure) { try partial.remove(name) }

  // MARK: Trash

  package func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)] { try trash.files() }

  package func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity {
    let parent = try beneath.makeDirectory(path.parent)
    try Rename.noReplace(trash.descriptor, name, parent, path)
    try kernel("make durable", path.bytes, tarn_sync(parent.number))
    try kernel("make durable", Array("trash".utf8), tarn_sync(trash.descriptor.number))
    guard let stat = try FileStat.at(parent, cString(path.name)) else {
      throw FolderFailure(cannot: "look at", path.bytes, errno: ENOENT, path: path)
    }
    return stat.identity
  }

  package func trashPartial(_ name: String, as trashName: String) throws(FolderFailure) {
    let result = tarn_rename(
      partial.descriptor.number, cString(name), trash.descriptor.number, cString(trashName),
      Int32(TARN_RENAME_NOREPLACE.rawValue))
    try kernel("move to the trash", Array("partial/\(name)".utf8), result)
    try kernel("make durable", Array("trash".utf8), tarn_sync(trash.descriptor.number))
    try kernel("make durable", Array("partial".utf8), tarn_sync(partial.descriptor.number))
  }

  package func removeTrash(_ name: String) throws(FolderFailure) { try trash.remove(name) }

  // MARK: The file system

  package func flush() throws(FolderFailure) {
    try kernel("make durable", Array(home.folder.utf8), tarn_sync_file_system(beneath.root.number))
  }

  package func space() throws(FolderFailure) -> (free: UInt64, total: UInt64) {
    var free: UInt64 = 0
    var total: UInt64 = 0
    try kernel(
      "ask for the space of", Array(home.folder.utf8), tarn_space(beneath.root.number, &free, &total))
    return (free, total)
  }

  package func isIntact() -> Bool {
    guard let there = try? FileStat.following(Array(home.folder.utf8)),
      let held = try? FileStat.of(beneath.root, []), there.isSameObject(as: held),
      case .mirror(let now)? = try? FolderHome.inspect(folder: home.folder, state: nil)
    else { return false }
    return now.id == home.id
  }
}

/// Reads files of a folder.
struct FolderReader {
  let beneath: Beneath
  let hashing: any Hashing

  func look(_ path: RelativePath) throws(FolderFailure) -> Present? {
    do throws(FolderFailure) {
      guard let parent = try beneath.directory(path.parent),
        let stat = try FileStat.at(parent, cString(path.name))
      else { return nil }
      return Present(path: path, kind: stat.kind, identity: stat.identity)
    } catch {
      // A parent that is no directory, or a link: nothing of the folder stands at the path.
      if error.code == .notDirectory || error.code == .link { return nil }
      throw error.about(path)
    }
  }

  func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    guard let file = try beneath.file(path) else { return nil }
    let before = try FileStat.of(file, path.bytes).identity
    let hasher = hashing.hasher(algorithm)
    try Self.read(file, path) { bytes throws(FolderFailure) in hasher.update(bytes) }
    guard try FileStat.of(file, path.bytes).identity == before else { return nil }
    return (hasher.finish(), before)
  }

  static func read(
    _ file: Descriptor, _ path: RelativePath, _ body: (UnsafeRawBufferPointer) throws(FolderFailure) -> Void
  ) throws(FolderFailure) {
    _ = tarn_advise_sequential(file.number)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: UInt64 = 0
    while true {
      let count = try kernel(
        "read", path.bytes, tarn_read_at(file.number, buffer.baseAddress, buffer.count, offset))
      if count == 0 { return }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
      offset += UInt64(count)
    }
  }
}

/// A folder that is no mirror yet, read for a plan.
package struct ForeignFolder: FolderReading {
  private let reader: FolderReader

  /// - Parameter folder: links are followed here, once.
  package init(folder: String, hashing: any Hashing = OpenSSLHashing()) throws(FolderFailure) {
    let number = tarn_open_at(AT_FDCWD, cString(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    let root = Descriptor(try kernel("open", Array(folder.utf8), number))
    reader = FolderReader(beneath: Beneath(root: root), hashing: hashing)
  }

  package func scan() -> any SnapshotCursor { FolderScan(beneath: reader.beneath) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { try reader.look(path) }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? { try reader.digest(of: path, algorithm) }
}
