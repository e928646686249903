import Glibc
import LinuxShim
import TarnCore

/// The values of stat for an object.
struct FileStat {
  private let raw: tarn_stat

  /// Looks at an object by its name in a directory; a link is not followed.
  ///
  /// - Parameter cached: true to accept attributes that a network file system has cached.
  /// - Returns: `nil` when nothing stands there.
  static func at(
    _ directory: Descriptor, _ name: UnsafePointer<CChar>, cached: Bool = false
  ) throws(FolderFailure) -> FileStat? {
    var raw = tarn_stat()
    let result = directory.use { tarn_stat_at($0, name, cached ? 1 : 0, &raw) }
    if result == -ENOENT { return nil }
    try kernel("look at", UnsafeRawBufferPointer(start: name, count: strlen(name)), result)
    return FileStat(raw: raw)
  }

  static func of<Object: Sequence<UInt8>>(
    _ descriptor: Descriptor, _ object: @autoclosure () -> Object
  ) throws(FolderFailure) -> FileStat {
    var raw = tarn_stat()
    try kernel("look at", object(), descriptor.use { tarn_stat_descriptor($0, &raw) })
    return FileStat(raw: raw)
  }

  /// Looks at an object by a path from outside; links are followed.
  static func following(_ path: String) throws(FolderFailure) -> FileStat? {
    var raw = tarn_stat()
    let result = tarn_stat_path(cString(path), &raw)
    if result == -ENOENT { return nil }
    try kernel("look at", path.utf8, result)
    return FileStat(raw: raw)
  }

  /// Looks at an object by a path; a link at its end is not followed.
  static func notFollowing(_ path: [UInt8]) throws(FolderFailure) -> FileStat? {
    var raw = tarn_stat()
    let result = tarn_stat_at(AT_FDCWD, cString(path), 0, &raw)
    if result == -ENOENT { return nil }
    try kernel("look at", path, result)
    return FileStat(raw: raw)
  }

  init(raw: tarn_stat) {
    self.raw = raw
  }

  var kind: Present.Kind {
    switch raw.mode & UInt32(S_IFMT) {
    case UInt32(S_IFREG): .regular
    case UInt32(S_IFDIR): .directory
    case UInt32(S_IFLNK): .symbolicLink
    default: .special
    }
  }

  var identity: FileIdentity {
    FileIdentity(
      device: raw.device, inode: raw.inode, size: raw.size,
      modified: timestamp(raw.modified_seconds, raw.modified_nanoseconds),
      changed: timestamp(raw.changed_seconds, raw.changed_nanoseconds))
  }

  func present(at path: RelativePath) -> Present {
    Present(
      path: path, kind: kind, identity: identity,
      hasOwnMode: kind != .regular || permissions == LocalFolder.mode)
  }

  var size: UInt64 { raw.size }
  var owner: UInt32 { raw.owner }
  /// The number of names of the object.
  var links: UInt32 { raw.links }
  /// The bytes that it takes on the disk, including reserved ones.
  var allocated: UInt64 { raw.blocks.multipliedReportingOverflow(by: 512).partialValue }
  /// The permission bits.
  var permissions: UInt32 { raw.mode & 0o7777 }

  func isSameObject(as other: FileStat) -> Bool {
    raw.device == other.raw.device && raw.inode == other.raw.inode
  }

  /// Returns whether a rename between the two can work: one file system and one mount (bind mounts of it refuse renames).
  func isSameMount(as other: FileStat) -> Bool {
    raw.device == other.raw.device
      && (raw.mount == other.raw.mount || raw.mount == 0 || other.raw.mount == 0)
  }
}

/// Converts a time. One outside the range of `Timestamp` becomes the nearest end.
private func timestamp(_ seconds: Int64, _ nanoseconds: UInt32) -> Timestamp {
  Timestamp(seconds: seconds, nanoseconds: Int64(nanoseconds))
    ?? Timestamp(nanoseconds: seconds < 0 ? .min : .max)
}
