import Glibc
import LinuxShim
import TarnCore

/// Opens what lies beneath a directory's descriptor, never through a link, never across a mount (I5).
struct Beneath {
  let root: Descriptor

  /// A directory of the folder; the folder itself for nil.
  ///
  /// - Returns: nil when it is not there.
  func directory(_ path: RelativePath?) throws(FolderFailure) -> Descriptor? {
    guard let path else { return root }
    let number = tarn_open_beneath(root.number, cString(path.bytes), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    if number == -ENOENT { return nil }
    return Descriptor(try kernel("open the directory", path.bytes, number))
  }

  /// A regular file, for reading; never blocks on a FIFO.
  ///
  /// - Returns: nil when it is not there, or no regular file.
  func file(_ path: RelativePath) throws(FolderFailure) -> Descriptor? {
    guard let parent = try directory(path.parent) else { return nil }
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let number = tarn_open_at(parent.number, cString(path.name), flags, 0)
    if number == -ENOENT || number == -ELOOP || number == -ENXIO { return nil }
    let file = Descriptor(try kernel("open", path.bytes, number))
    return try FileStat.of(file, path.bytes).kind == .regular ? file : nil
  }

  /// The directory that a file goes into, made with its parents where they are missing: mode 0755, each durable
  /// in its parent.
  func makeDirectory(_ path: RelativePath?) throws(FolderFailure) -> Descriptor {
    if let there = try directory(path) { return there }
    guard let path else { return root }
    let parent = try makeDirectory(path.parent)
    let name = cString(path.name)
    let made = tarn_make_directory(parent.number, name, 0o755)
    if made != -EEXIST { try kernel("make the directory", path.bytes, made) }
    guard let fresh = try directory(path) else {
      throw FolderFailure(cannot: "open the directory", path.bytes, errno: ENOENT, path: path)
    }
    if made == 0 {
      try kernel("set the mode of", path.bytes, tarn_set_mode(fresh.number, 0o755))
      try kernel("make durable", path.bytes, tarn_sync(parent.number))
    }
    return fresh
  }
}
