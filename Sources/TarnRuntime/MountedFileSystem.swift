import Glibc

/// What statvfs(3) says of the file system of a path.
package enum MountedFileSystem {
  /// The file system of a path is; where nothing is there, that of the nearest directory.
  package static func isReadOnly(_ path: String) -> Bool {
    var path = path[...]
    var status = statvfs()
    while statvfs(path.isEmpty ? "/" : String(path), &status) != 0 {
      guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { return false }
      path = path[..<slash]
    }
    return status.f_flag & UInt(ST_RDONLY) != 0
  }

  /// Bytes that a user other than root may still write there; nil where nothing is known of the path.
  package static func freeBytes(_ path: String) -> UInt64? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    return UInt64(status.f_bavail) * UInt64(status.f_frsize)
  }

  /// Which one it is, as text that outlives reboots where the file system has an id.
  package static func id(of folder: String) -> String {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return "" }
    return String(UInt64(status.f_fsid), radix: 16)
  }
}
