import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// Files on their way: `partial/`.
extension LocalFolder {
  package func makePartial(mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile {
    if mayBeUnnamed, let file = unnamedFiles.make(mode: Self.mode, trial: partialNames.next) {
      return staged("", file, found: nil)
    }
    return try makeStaged()
  }

  private func makeStaged() throws(FolderFailure) -> StagedFile {
    let name = partialNames.next()
    // Nobody else gets into `partial/`: it has its last mode from the beginning, as far as the umask lets it.
    let number = partial.descriptor.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: Self.mode)
    return staged(name, Descriptor(try kernel("create", partial.object(name), number)), found: nil)
  }

  package func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)? {
    try OwnDirectory.check(name)
    // A look first: opening would wake a device, and what was displaced into this name is not to be written.
    guard let stat = try partial.stat(name) else { return nil }
    guard stat.kind == .regular, stat.owner == geteuid(), stat.links == 1 else {
      throw FolderFailure(.other, "partial/\(name) is no partial file of Tarn's")
    }
    let number = partial.descriptor.open(cString(name), O_RDWR | O_NONBLOCK | O_NOCTTY)
    if number == -ENOENT { return nil }
    let file = Descriptor(try kernel("open", partial.object(name), number))
    return staged(name, file, found: try FileStat.of(file, partial.object(name)))
  }

  private func staged(_ name: String, _ file: Descriptor, found: FileStat?) -> StagedFile {
    StagedFile(
      name: name, directory: partial.descriptor, descriptor: file, found: found, hashing: hashing,
      probe: mover.probe, hashThread: hashThread)
  }

  package func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)? {
    guard let source = try beneath.file(path),
      try FileStat.of(source, path.bytes).identity.isSame(as: expected)
    else { return nil }
    if let size = check.size, size != expected.size {
      throw FolderFailure(
        .sizeMismatch,
        "\(path.printable) has \(Units.count(expected.size, "byte")), the feed says \(Units.grouped(size))",
        path: path)
    }
    let copy = try makeStaged()
    do throws(FolderFailure) {
      try fill(copy, from: source, path, size: expected.size, check)
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

  /// Shares the blocks where the file system can, and reads them for the digest; else copies, hashing what is
  /// written.
  private func fill(
    _ copy: StagedFile, from source: Descriptor, _ path: RelativePath, size: UInt64, _ check: ContentCheck
  ) throws(FolderFailure) {
    let target = try copy.opened()
    let isShared = target.use { target in source.use { tarn_clone(target, $0) } } == 0
    if isShared { copy.wasFilled() }
    let kept = try copy.begin(keeping: isShared ? size : 0, check: check)
    guard isShared else {
      try readAll(source, path.bytes) { bytes throws(FolderFailure) in try copy.append(bytes) }
      return
    }
    if kept != size {
      throw FolderFailure(
        .pieceMismatch, "the piece at byte \(kept) of \(path.printable) is not what the feed says",
        goodPrefix: kept, path: path)
    }
  }

  package func partials() throws(FolderFailure) -> [(name: String, size: UInt64)] { try partial.list() }

  package func partialIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    try OwnDirectory.check(name)
    return try partial.stat(name)?.identity
  }

  package func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64 {
    try OwnDirectory.check(name)
    return try partial.stat(name)?.allocated ?? 0
  }

  package func removePartial(_ name: String) throws(FolderFailure) { try partial.remove(name) }
}
