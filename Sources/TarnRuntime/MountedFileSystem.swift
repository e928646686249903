import Glibc

/// Asks statvfs(3) about the file system of a path.
package enum MountedFileSystem {
  /// Returns whether the file system of a path is read-only. Where the path does not exist, the nearest existing directory counts.
  package static func isReadOnly(_ path: String) -> Bool {
    var path = path[...]
    var status = statvfs()
    while statvfs(path.isEmpty ? "/" : String(path), &status) != 0 {
      guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { return false }
      path = path[..<slash]
    }
    return status.f_flag & UInt(ST_RDONLY) != 0
  }

  /// Returns the bytes that a user other than root may still write there, and all of the file system; `nil` where nothing is known
  /// about the path.
  package static func space(_ path: String) -> (free: UInt64, total: UInt64)? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    let block = UInt64(status.f_frsize)
    return (UInt64(status.f_bavail) * block, UInt64(status.f_blocks) * block)
  }

  /// Returns an ID of the file system as text, which outlives reboots where the file system has one.
  package static func id(of folder: String) -> String {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return "" }
    return String(UInt64(status.f_fsid), radix: 16)
  }

  /// - Parameter descriptor: an open file or directory.
  package static func id(of descriptor: Int32) -> String {
    var status = statvfs()
    guard fstatvfs(descriptor, &status) == 0 else { return "" }
    return String(UInt64(status.f_fsid), radix: 16)
  }
}
