import Glibc
import TarnCore

extension FolderHome {
  /// The first mirror found below a folder, whoever made it. Reads all directories there; links are not followed, and what cannot be
  /// read is passed by.
  package static func mirror(below folder: String) -> String? {
    var directories = subdirectories(of: Array(folder.utf8))
    while let directory = directories.popLast() {
      let path = String(decoding: directory, as: UTF8.self)
      if case .mirror? = try? inspect(folder: path, state: nil) { return path }
      directories += subdirectories(of: directory)
    }
    return nil
  }

  private static func subdirectories(of directory: [UInt8]) -> [[UInt8]] {
    guard let stream = opendir(cString(directory)) else { return [] }
    defer { closedir(stream) }
    var found: [[UInt8]] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: UInt8.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          Array(UnsafeBufferPointer(start: $0, count: strlen($0)))
        }
      }
      let isOwn = [".", "..", markerName].contains { name.elementsEqual($0.utf8) }
      if !isOwn, isDirectory(stream, entry.pointee.d_type, name) {
        found.append(directory + [UInt8(ascii: "/")] + name)
      }
    }
    return found
  }

  /// Not every file system tells the kind with the name (readdir(3)).
  private static func isDirectory(_ stream: OpaquePointer, _ kind: UInt8, _ name: [UInt8]) -> Bool {
    guard kind == DT_UNKNOWN else { return kind == DT_DIR }
    var status = stat()
    guard fstatat(dirfd(stream), cString(name), &status, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFDIR
  }
}
