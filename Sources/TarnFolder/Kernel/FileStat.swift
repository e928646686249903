import Glibc
import LinuxShim
import TarnCore

/// What stat says of an object.
struct FileStat {
  private let raw: tarn_stat

  /// An object by its name in a directory; a link is not followed.
  ///
  /// - Parameter cached: attributes that a network file system has at hand will do.
  /// - Returns: nil when nothing stands there.
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

  /// An object by a path from the outside; links are followed.
  static func following(_ path: String) throws(FolderFailure) -> FileStat? {
    var raw = tarn_stat()
    let result = tarn_stat_path(cString(path), &raw)
    if result == -ENOENT { return nil }
    try kernel("look at", path.utf8, result)
    return FileStat(raw: raw)
  }

  /// The same, but a link at its end is not followed.
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
  /// Names of the object.
  var links: UInt32 { raw.links }
  /// Bytes of the disk that it has, reserved ones included.
  var allocated: UInt64 { raw.blocks.multipliedReportingOverflow(by: 512).partialValue }
  /// The permission bits.
  var permissions: UInt32 { raw.mode & 0o7777 }

  func isSameObject(as other: FileStat) -> Bool {
    raw.device == other.raw.device && raw.inode == other.raw.inode
  }

  /// A rename between the two can work: one file system, one mount (bind mounts of it refuse renames).
  func isSameMount(as other: FileStat) -> Bool {
    raw.device == other.raw.device
      && (raw.mount == other.raw.mount || raw.mount == 0 || other.raw.mount == 0)
  }
}

/// Times outside of the range of `Timestamp` become its nearest end.
private func timestamp(_ seconds: Int64, _ nanoseconds: UInt32) -> Timestamp {
  Timestamp(seconds: seconds, nanoseconds: Int64(nanoseconds))
    ?? Timestamp(nanoseconds: seconds < 0 ? .min : .max)
}
