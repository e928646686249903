import Glibc
import LinuxShim
import TarnCore

/// A small text file of a few lines, such as the marker.
enum SmallFile {
  /// - Returns: `nil` when it is missing, or is not a regular file of at most 8 KiB.
  /// - Throws: why it cannot be read, which says nothing about the file.
  static func read(_ path: String) throws(FolderFailure) -> String? {
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
    // These stand for nothing, a link, a socket, and a device without a driver.
    if [ENOENT, ENOTDIR, ELOOP, ENXIO, ENODEV].contains(-number) { return nil }
    let file = Descriptor(try kernel("open", path.utf8, number))
    let stat = try FileStat.of(file, path.utf8)
    guard stat.kind == .regular, stat.size <= 8192 else { return nil }
    return try contents(file, path)
  }

  /// Reads a file of /proc, whose size is not known.
  ///
  /// - Returns: `nil` when it cannot be read because its process has ended.
  static func readProc(_ path: String) -> String? {
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY, 0)
    return number < 0 ? nil : try? contents(Descriptor(number), path)
  }

  private static func contents(_ file: Descriptor, _ path: String) throws(FolderFailure) -> String {
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = try kernel("read", path.utf8, file.use { tarn_read_at($0, &buffer, buffer.count, 0) })
    return String(decoding: buffer[..<Int(count)], as: UTF8.self)
  }

  /// Writes a new file under a draft name, then gives it its name when it is complete. Its bytes are durable; the caller makes its
  /// name durable.
  ///
  /// - Throws: `exists` when the name is taken.
  static func write(
    _ text: String, beside draft: String, in directory: Descriptor, as name: String, in target: Descriptor
  ) throws(FolderFailure) {
    let number = directory.open(cString(draft), O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    // A draft that a crash left is written again.
    if number == -EEXIST { _ = directory.use { tarn_unlink($0, cString(draft)) } }
    let again =
      number == -EEXIST ? directory.open(cString(draft), O_WRONLY | O_CREAT | O_EXCL, mode: 0o600) : number
    let file = Descriptor(try kernel("create", draft.utf8, again))
    do throws(FolderFailure) {
      let bytes = Array(text.utf8)
      var written = 0
      while written < bytes.count {
        let rest = bytes[written...]
        let count = rest.withUnsafeBytes { rest in
          file.use { tarn_write_at($0, rest.baseAddress, rest.count, UInt64(written)) }
        }
        try kernel("write", draft.utf8, count)
        guard count > 0 else { throw FolderFailure(cannot: "write", draft.utf8, errno: EIO) }
        written += Int(count)
      }
      try file.sync(draft.utf8)
      let moved = Renamer(probe: nil).moveOut(directory, draft, to: target, cString(name), .rename)
      try kernel("make", name.utf8, moved)
    } catch {
      _ = directory.use { tarn_unlink($0, cString(draft)) }
      throw error
    }
  }
}
