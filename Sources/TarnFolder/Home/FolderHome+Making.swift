import Glibc
import LinuxShim
package import TarnCore
package import TarnRuntime

extension FolderHome {
  /// Makes the folder and its parents where they are missing, and a new mirror's state in it. Durable.
  ///
  /// - Parameter state: `--state`, absolute; nil for `FOLDER/.tarn`.
  /// - Throws: `otherFileSystem` when `state` is on another one: publishing is a rename.
  package static func create(
    folder: String, state: String?, random: any RandomSource = SystemRandom()
  ) throws(FolderFailure) -> FolderHome {
    try makeDirectories(folder, mode: 0o755)
    let directory = state ?? folder + "/" + markerName
    try makeDirectories(directory, mode: 0o700)
    if state != nil { try checkMount(folder, directory) }
    for part in ["partial", "trash"] { try makeDirectories(directory + "/" + part, mode: 0o700) }
    let id = random.fileName()
    try SmallFile.write(id + "\n", to: directory + "/" + idName)
    if let state { try SmallFile.write("\(id)\n\(state)\n", to: folder + "/" + markerName) }
    try syncDirectory(folder)
    return FolderHome(folder: folder, stateDirectory: directory, id: id)
  }

  private static func checkMount(_ folder: String, _ state: String) throws(FolderFailure) {
    guard let first = try FileStat.following(Array(folder.utf8)),
      let second = try FileStat.following(Array(state.utf8)), first.isSameMount(as: second)
    else {
      throw FolderFailure(
        .otherFileSystem,
        "\(Printable.escape(state)) is not on the file system of \(Printable.escape(folder)); --state has to be"
      )
    }
  }

  /// Each missing one with this mode, durable in its parent.
  private static func makeDirectories(_ path: String, mode: UInt32) throws(FolderFailure) {
    if let stat = try FileStat.following(Array(path.utf8)) {
      guard stat.kind == .directory else {
        throw FolderFailure(cannot: "make the directory", Array(path.utf8), errno: ENOTDIR)
      }
      return
    }
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      try make(path, mode: mode)
      return
    }
    let parent = String(path[..<slash])
    try makeDirectories(parent, mode: 0o755)
    try make(path, mode: mode)
    try syncDirectory(parent)
  }

  private static func make(_ path: String, mode: UInt32) throws(FolderFailure) {
    let result = tarn_make_directory(AT_FDCWD, cString(path), mode)
    if result == -EEXIST { return }
    try kernel("make the directory", Array(path.utf8), result)
    let fresh = try openDirectory(path)
    try kernel("set the mode of", Array(path.utf8), tarn_set_mode(fresh.number, mode))
  }

  private static func syncDirectory(_ path: String) throws(FolderFailure) {
    let directory = try openDirectory(path)
    try kernel("make durable", Array(path.utf8), tarn_sync(directory.number))
  }

  private static func openDirectory(_ path: String) throws(FolderFailure) -> Descriptor {
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    return Descriptor(try kernel("open", Array(path.utf8), number))
  }

  /// Opens the folder; links in the path given are followed here, once.
  ///
  /// - Throws: `permission` when Tarn's own directories belong to somebody else, or others can write in them.
  package func open(
    hashing: any Hashing = OpenSSLHashing(), random: any RandomSource = SystemRandom()
  ) throws(FolderFailure) -> LocalFolder {
    let root = try Self.openDirectory(folder)
    let state = try Self.openDirectory(stateDirectory)
    try Self.checkOwn(state, stateDirectory)
    return LocalFolder(
      home: self, root: root, partial: try own("partial", in: state), trash: try own("trash", in: state),
      hashing: hashing, random: random)
  }

  /// `partial` or `trash`; made when it is gone.
  private func own(_ name: String, in state: Descriptor) throws(FolderFailure) -> Descriptor {
    let path = stateDirectory + "/" + name
    let made = tarn_make_directory(state.number, cString(name), 0o700)
    if made != -EEXIST { try kernel("make the directory", Array(path.utf8), made) }
    let number = tarn_open_beneath(state.number, cString(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    let directory = Descriptor(try kernel("open", Array(path.utf8), number))
    try Self.checkOwn(directory, path)
    return directory
  }

  private static func checkOwn(_ directory: Descriptor, _ path: String) throws(FolderFailure) {
    let stat = try FileStat.of(directory, Array(path.utf8))
    guard stat.owner == geteuid() || geteuid() == 0, stat.permissions & 0o022 == 0 else {
      throw FolderFailure(
        .permission,
        "\(Printable.escape(path)) belongs to another user or can be written by others: chown it, and chmod 700",
        errno: EACCES)
    }
  }

  /// Removes what is Tarn's own; the files of the folder stay. The lock is held by the caller.
  package func remove() throws(FolderFailure) {
    let state = try Self.openDirectory(stateDirectory)
    for name in ["partial", "trash"] {
      let number = tarn_open_beneath(state.number, cString(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
      guard number >= 0 else { continue }
      let own = OwnDirectory(descriptor: Descriptor(number), label: name)
      for file in try own.files() { try own.remove(file.name) }
      try kernel("remove", Array(name.utf8), tarn_remove_directory(state.number, cString(name)))
    }
    let names = OwnDirectory(descriptor: state, label: "state")
    for file in try names.files() { try names.remove(file.name) }
    let isInner = stateDirectory == folder + "/" + Self.markerName
    if isInner {
      try kernel(
        "remove", Array(stateDirectory.utf8), tarn_remove_directory(AT_FDCWD, cString(stateDirectory)))
    } else {
      try kernel("remove", Array(folder.utf8), tarn_unlink(AT_FDCWD, cString(folder + "/" + Self.markerName)))
    }
  }
}

extension Descriptor {
  /// The working directory, for paths that are absolute.
  static func current() -> Descriptor { Descriptor(AT_FDCWD) }
}

/// The marker and the like: a few lines of text.
enum SmallFile {
  /// - Returns: nil when it is not there, cannot be read, or is no regular file of at most 8 KiB.
  static func read(_ path: String) -> String? {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    let number = tarn_open_at(AT_FDCWD, cString(path), flags, 0)
    guard number >= 0 else { return nil }
    let file = Descriptor(number)
    guard let stat = try? FileStat.of(file, []), stat.kind == .regular, stat.size <= 8192 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = tarn_read_at(file.number, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer[..<Int(count)], as: UTF8.self)
  }

  /// By a new file and a rename; the contents are durable, the name once its directory is synced.
  static func write(_ text: String, to path: String) throws(FolderFailure) {
    let fresh = path + ".new"
    _ = tarn_unlink(AT_FDCWD, cString(fresh))
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let number = tarn_open_at(AT_FDCWD, cString(fresh), flags, 0o600)
    let file = Descriptor(try kernel("create", Array(fresh.utf8), number))
    let bytes = Array(text.utf8)
    let count = try kernel("write", Array(fresh.utf8), tarn_write_at(file.number, bytes, bytes.count, 0))
    guard Int(count) == bytes.count else {
      throw FolderFailure(cannot: "write", Array(fresh.utf8), errno: EIO)
    }
    try kernel("make durable", Array(fresh.utf8), tarn_sync(file.number))
    let result = tarn_rename(
      AT_FDCWD, cString(fresh), AT_FDCWD, cString(path), Int32(TARN_RENAME_REPLACE.rawValue))
    try kernel("rename", Array(path.utf8), result)
    guard let slash = path.lastIndex(of: "/") else { return }
    let parent = slash == path.startIndex ? "/" : String(path[..<slash])
    let directory = tarn_open_at(AT_FDCWD, cString(parent), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    let opened = Descriptor(try kernel("open", Array(parent.utf8), directory))
    try kernel("make durable", Array(parent.utf8), tarn_sync(opened.number))
  }
}
