import Glibc
import LinuxShim
package import TarnCore
import TarnCrypto
package import TarnRuntime

extension FolderHome {
  /// Makes the folder and its parents where they are missing, and a new mirror's state in it. Durable. What a
  /// crash left half made is finished; two that make one at a time get the same.
  ///
  /// - Parameters:
  ///   - folder: absolute.
  ///   - state: `--state`, absolute; nil for `FOLDER/.tarn`.
  /// - Throws: `otherFileSystem` when `state` is on another one: publishing is a rename.
  package static func create(
    folder: String, state: String?, random: any RandomSource = SystemRandom()
  ) throws(FolderFailure) -> FolderHome {
    try make(folder: folder, state: state, random: random).home
  }

  /// The same, and what this very call made, as the kernel told it: not what was missing in a look before.
  package static func make(
    folder: String, state: String?, random: any RandomSource = SystemRandom()
  ) throws(FolderFailure) -> (home: FolderHome, made: CreatedParts) {
    var made = CreatedParts()
    do throws(FolderFailure) {
      return (try make(folder, state, random, &made), made)
    } catch {
      made.takeBack()
      throw error
    }
  }

  private static func make(
    _ folder: String, _ state: String?, _ random: any RandomSource, _ made: inout CreatedParts
  ) throws(FolderFailure) -> FolderHome {
    try makeDirectories(folder, mode: 0o755, &made.directories)
    let root = try Descriptor.directory(at: folder)
    var home = FolderHome(folder: folder, stateDirectory: folder + "/" + markerName, id: "")
    if let state {
      try makeDirectories(state, mode: 0o700, &made.directories)
      home = FolderHome(folder: folder, stateDirectory: try realPath(state), id: "")
      try refuseNesting(try realPath(folder), home.stateDirectory)
    } else {
      try makeOwn(markerName, in: root, home.stateDirectory) { made.add($0, of: home) }
    }
    let directory = home.stateDirectory
    let held = try Descriptor.directory(at: directory)
    try checkOwn(held, directory)
    try checkMount(root, held, folder, directory)
    for part in ownDirectories {
      try makeOwn(part, in: held, directory + "/" + part) { made.add($0, of: home) }
    }
    let (id, isNew) = try makeID(held, directory, random)
    home = FolderHome(folder: folder, stateDirectory: directory, id: id)
    if isNew { made.add(directory + "/" + idName, of: home) }
    // The marker never names a state that a power cut takes back.
    try held.sync(directory.utf8)
    if state != nil, try makePointer(id, directory, held: held, root: root, folder) {
      made.add(folder + "/" + markerName, of: home)
    }
    try root.sync(folder.utf8)
    return home
  }

  /// Opens the folder; links in the path given are followed here, once.
  ///
  /// - Parameters:
  ///   - probe: for tests; called before each step that can fail.
  ///   - renameFlags: for tests; false behaves like a file system whose renames take no flags.
  /// - Throws: `permission` when Tarn's own directories belong to somebody else, or others can write in them.
  package func open(
    hashing: any Hashing = OpenSSLHashing(), random: any RandomSource = SystemRandom(),
    probe: FolderProbe? = nil, renameFlags: Bool = true
  ) throws(FolderFailure) -> LocalFolder {
    let root = try Descriptor.directory(at: folder)
    let state =
      isInner
      ? try Self.openOwn(Self.markerName, in: root, stateDirectory)
      : try Descriptor.directory(at: stateDirectory)
    try Self.checkOwn(state, stateDirectory)
    try Self.checkMount(root, state, folder, stateDirectory)
    return LocalFolder(
      home: self, root: root, partial: try own("partial", in: state), trash: try own("trash", in: state),
      hashing: hashing, random: random, mover: Renamer(probe: probe, hasFlags: renameFlags))
  }

  /// `partial` or `trash`; made when it is gone.
  private func own(_ name: String, in state: Descriptor) throws(FolderFailure) -> Descriptor {
    let path = stateDirectory + "/" + name
    if try Self.makeOwn(name, in: state, path) { try state.sync(stateDirectory.utf8) }
    return try Self.openOwn(name, in: state, path)
  }

  // MARK: Making

  /// The id, unless there is one already.
  private static func makeID(
    _ held: Descriptor, _ directory: String, _ random: any RandomSource
  ) throws(FolderFailure) -> (id: String, isNew: Bool) {
    if let id = try readID(directory) { return (id, false) }
    let id = random.name()
    do throws(FolderFailure) {
      try SmallFile.write(id + "\n", beside: "\(idName).\(random.name())", in: held, as: idName, in: held)
      return (id, true)
    } catch {
      // Another one was faster.
      guard error.code == .exists else { throw error }
    }
    guard let made = try readID(directory) else {
      throw FolderFailure(.exists, "\(Printable.escape(directory))/\(idName) is no id of a mirror")
    }
    return (made, false)
  }

  /// - Returns: false when it was there already.
  private static func makePointer(
    _ id: String, _ directory: String, held: Descriptor, root: Descriptor, _ folder: String
  ) throws(FolderFailure) -> Bool {
    let text = pointer(id: id, directory: directory)
    do throws(FolderFailure) {
      try SmallFile.write(text, beside: "\(markerName).\(id)", in: held, as: markerName, in: root)
      return true
    } catch {
      guard error.code == .exists, let there = try readPointer(folder + "/" + markerName), there.id == id
      else {
        throw error
      }
      return false
    }
  }

  /// Each missing one with this mode, durable in its parent. Links are followed: the path is the user's.
  private static func makeDirectories(
    _ path: String, mode: UInt32, _ made: inout [String]
  ) throws(FolderFailure) {
    if let stat = try FileStat.following(path) {
      guard stat.kind == .directory else {
        throw FolderFailure(cannot: "make the directory", path.utf8, errno: ENOTDIR)
      }
      return
    }
    var parent = "/"
    if let slash = path.lastIndex(of: "/"), slash != path.startIndex { parent = String(path[..<slash]) }
    try makeDirectories(parent, mode: 0o755, &made)
    let result = tarn_make_directory(AT_FDCWD, cString(path), mode)
    if result == -EEXIST { return }
    try kernel("make the directory", path.utf8, result)
    made.append(path)
    let fresh = try Descriptor.directory(at: path)
    try kernel("set the mode of", path.utf8, fresh.use { tarn_set_mode($0, mode) })
    try Descriptor.directory(at: parent).sync(parent.utf8)
  }

  /// One of Tarn's own directories, 0700 whatever the umask. The caller makes its name durable.
  ///
  /// - Parameter made: gets the path as soon as it is there.
  /// - Returns: false when it was there already: it is somebody else's doing then.
  @discardableResult
  private static func makeOwn(
    _ name: String, in parent: Descriptor, _ path: String, made: (String) -> Void = { _ in }
  ) throws(FolderFailure) -> Bool {
    let result = parent.use { tarn_make_directory($0, cString(name), 0o700) }
    if result == -EEXIST { return false }
    try kernel("make the directory", path.utf8, result)
    made(path)
    let fresh = try openOwn(name, in: parent, path)
    try kernel("set the mode of", path.utf8, fresh.use { tarn_set_mode($0, 0o700) })
    return true
  }

  private static func openOwn(
    _ name: String, in parent: Descriptor, _ path: String
  ) throws(FolderFailure) -> Descriptor {
    let number = parent.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
    if number == -ELOOP || number == -ENOTDIR {
      // A link says either, by where it leads.
      let isLink = try FileStat.at(parent, cString(name))?.kind == .symbolicLink
      throw FolderFailure(
        isLink ? .link : .notDirectory,
        "\(Printable.escape(path)) is \(isLink ? "a symbolic link" : "no directory"): Tarn keeps its own there, and "
          + "follows nothing; put the directory back, or remove what stands there, and a new one is made",
        errno: -number)
    }
    let opened = Descriptor(try kernel("open the directory", path.utf8, number))
    try checkOwn(opened, path)
    return opened
  }

  // MARK: Checking

  /// What others can write in is no place for files that are taken for checked. Root may open everybody's.
  private static func checkOwn(_ directory: Descriptor, _ path: String) throws(FolderFailure) {
    let stat = try FileStat.of(directory, path.utf8)
    guard stat.owner == geteuid() || geteuid() == 0, stat.permissions & 0o022 == 0 else {
      throw FolderFailure(
        .permission,
        "\(Printable.escape(path)) belongs to another user or can be written by others: chown it, and chmod 700",
        errno: EACCES)
    }
  }

  private static func checkMount(
    _ root: Descriptor, _ held: Descriptor, _ folder: String, _ state: String
  ) throws(FolderFailure) {
    guard try FileStat.of(root, folder.utf8).isSameMount(as: FileStat.of(held, state.utf8)) else {
      throw FolderFailure(
        .otherFileSystem,
        "\(Printable.escape(state)) is not on the file system of \(Printable.escape(folder)); --state has to be",
        errno: EXDEV)
    }
  }

  private static func realPath(_ path: String) throws(FolderFailure) -> String {
    var error: Int32 = 0
    guard let real = tarn_real_path(cString(path), &error) else {
      throw FolderFailure(cannot: "resolve", path.utf8, errno: -error)
    }
    defer { free(real) }
    guard let text = String(validatingCString: real) else {
      throw FolderFailure(.other, "\(Printable.escape(path)): its real path is not UTF-8")
    }
    return text
  }

  /// State inside of the folder would be taken for its contents, and the other way round for Tarn's own.
  private static func refuseNesting(_ folder: String, _ state: String) throws(FolderFailure) {
    guard !(state + "/").hasPrefix(folder + "/"), !(folder + "/").hasPrefix(state + "/") else {
      throw FolderFailure(
        .other,
        "\(Printable.escape(state)) and \(Printable.escape(folder)) lie in each other; --state has to lie beside"
      )
    }
  }
}
