import Glibc
import LinuxShim
package import TarnCore
import TarnCrypto
package import TarnRuntime

/// The place where a mirror keeps its own data: `FOLDER/.tarn/` with the ID (the marker), the ledger, `partial/`, `trash/` and the
/// lock. With `--state DIR` it is that directory, and a small file `FOLDER/.tarn` names it.
package struct FolderHome: Sendable, Equatable {
  /// The absolute path of the folder, as given.
  package let folder: String
  /// The absolute path of the state directory, on the folder's file system.
  package let stateDirectory: String
  /// The ID: 32 hexadecimal digits.
  package let id: String

  /// What a folder is to Tarn.
  package enum State: Sendable, Equatable {
    case missing
    case empty
    /// The folder has contents and is not a mirror.
    case foreign
    case mirror(FolderHome)
    /// The folder was a mirror, but its marker is missing or a different one. The text says why, for people.
    case markerMissing(String)
    case notDirectory
  }

  package static let markerName = ".tarn"
  package static let idName = "id"
  package static let ledgerName = "ledger.sqlite"
  static let lockName = "lock"
  static let ownDirectories = ["partial", "trash"]

  /// Returns whether a directory is the state of some mirror, so that its contents belong to that mirror.
  package static func isRecord(_ path: String) -> Bool {
    func kind(_ name: String) -> Present.Kind? { (try? FileStat.following("\(path)/\(name)"))?.kind }
    return kind(idName) == .regular && ownDirectories.allSatisfy { kind($0) == .directory }
  }

  var isInner: Bool { stateDirectory == folder + "/" + Self.markerName }

  /// Inspects a folder without changing anything.
  ///
  /// - Parameters:
  ///   - folder: an absolute path. A link at its end is followed.
  ///   - state: the absolute path of `--state`; `nil` for what the marker says.
  /// - Throws: `exists` when `state` is a different directory from the mirror's.
  package static func inspect(folder: String, state: String?) throws(FolderFailure) -> State {
    do throws(FolderFailure) {
      guard let stat = try FileStat.following(folder) else {
        return try missingMarker("the folder is gone", state) ?? .missing
      }
      if stat.kind != .directory { return .notDirectory }
    } catch {
      if error.code == .notDirectory { return .notDirectory }
      throw error
    }
    let root = try Descriptor.directory(at: folder)
    guard let marker = try FileStat.at(root, cString(markerName)) else {
      if let missing = try missingMarker("\(markerName) is gone", state) { return missing }
      return try isEmpty(root) ? .empty : .foreign
    }
    switch marker.kind {
    case .directory: return try inspectInner(folder, root, state)
    case .regular: return try inspectPointer(folder, state)
    default: return .markerMissing("\(markerName) is neither a directory nor a file")
    }
  }

  /// Finds what is left of a mirror whose marker is gone, for `tarn forget`.
  ///
  /// - Parameter state: the absolute path of `--state`; `nil` for the one in the folder.
  /// - Returns: `nil` when nothing is left. The ID is empty when it cannot be read.
  package static func remains(folder: String, state: String?) throws(FolderFailure) -> FolderHome? {
    let directory = state ?? folder + "/" + markerName
    let id = try readID(directory)
    if id == nil, try !knowsMirror(directory) { return nil }
    return FolderHome(folder: folder, stateDirectory: directory, id: id ?? "")
  }

  /// Returns whether the marker of a folder is a directory, which then holds the state.
  package static func hasOwnDirectory(_ folder: String) -> Bool {
    (try? Descriptor.directory(at: folder + "/" + markerName)) != nil
  }

  /// - Returns: `nil` when `state` knows no mirror either.
  private static func missingMarker(_ reason: String, _ state: String?) throws(FolderFailure) -> State? {
    guard let state, try knowsMirror(state) else { return nil }
    return .markerMissing("\(reason), and \(Printable.escape(state)) knows a mirror")
  }

  private static func inspectInner(
    _ folder: String, _ root: Descriptor, _ state: String?
  ) throws(FolderFailure) -> State {
    let directory = folder + "/" + markerName
    if let state, try !isSame(state, directory) {
      throw FolderFailure(
        .exists,
        "the mirror in \(Printable.escape(folder)) keeps its state in \(markerName)")
    }
    if let id = try readID(directory) {
      return .mirror(FolderHome(folder: folder, stateDirectory: directory, id: id))
    }
    if try knowsMirror(directory) { return .markerMissing("\(markerName)/\(idName) is gone or damaged") }
    // The marker was made just before a crash; nothing is recorded in it yet.
    return try isEmpty(root) ? .empty : .foreign
  }

  private static func inspectPointer(_ folder: String, _ state: String?) throws(FolderFailure) -> State {
    guard let (id, directory) = try readPointer(folder + "/" + markerName) else {
      return .markerMissing("\(markerName) is damaged")
    }
    if let state, try !isSame(state, directory) {
      throw FolderFailure(
        .exists,
        "the mirror in \(Printable.escape(folder)) keeps its state in \(Printable.escape(directory))"
      )
    }
    guard try readID(directory) == id else {
      return .markerMissing("its state in \(Printable.escape(directory)) is gone, or that of another mirror")
    }
    return .mirror(FolderHome(folder: folder, stateDirectory: directory, id: id))
  }

  // MARK: Parts

  /// Returns the contents of `FOLDER/.tarn` when the state is elsewhere: the ID, then the directory.
  static func pointer(id: String, directory: String) -> String { "\(id)\n\(directory)\n" }

  static func readPointer(_ path: String) throws(FolderFailure) -> (id: String, directory: String)? {
    let lines = (try SmallFile.read(path) ?? "").split(separator: "\n", maxSplits: 1).map(String.init)
    guard lines.count == 2, isID(lines[0]), lines[1].hasPrefix("/"), lines[1].hasSuffix("\n") else {
      return nil
    }
    return (lines[0], String(lines[1].dropLast()))
  }

  static func readID(_ directory: String) throws(FolderFailure) -> String? {
    guard let text = try SmallFile.read(directory + "/" + idName), text.hasSuffix("\n") else { return nil }
    let id = String(text.dropLast())
    return isID(id) ? id : nil
  }

  private static func isID(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy { $0.hexDigitValue != nil }
  }

  private static func knowsMirror(_ directory: String) throws(FolderFailure) -> Bool {
    do throws(FolderFailure) {
      return try FileStat.following(directory + "/" + ledgerName) != nil
    } catch {
      if error.code == .notDirectory { return false }
      throw error
    }
  }

  /// Returns whether both paths lead to the same object, or are equal where there is none.
  private static func isSame(_ first: String, _ second: String) throws(FolderFailure) -> Bool {
    guard let left = try FileStat.following(first), let right = try FileStat.following(second) else {
      return first == second
    }
    return left.isSameObject(as: right)
  }

  /// Returns whether a folder is empty; Tarn's own name does not count.
  static func isEmpty(_ root: Descriptor) throws(FolderFailure) -> Bool {
    try FolderScan(Beneath(root: root), .everything).next() == nil
  }
}

extension FolderHome {
  /// Makes the folder and its missing parents, and the state of a new mirror. Durable. Completes what a crash left half made; two
  /// calls at the same time get the same result.
  ///
  /// - Parameters:
  ///   - folder: an absolute path.
  ///   - state: the absolute path of `--state`; `nil` for `FOLDER/.tarn`.
  /// - Throws: `otherFileSystem` when `state` is on another file system, since publishing is a rename.
  package static func create(
    folder: String, state: String?, random: any RandomSource = SystemRandom()
  ) throws(FolderFailure) -> FolderHome {
    try make(folder: folder, state: state, random: random).home
  }

  /// Makes the folder and the state as `create` does, and returns what this very call made, by what the kernel reports.
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
    try refuseForeign(home)
    for part in ownDirectories {
      try makeOwn(part, in: held, directory + "/" + part) { made.add($0, of: home) }
    }
    let (id, isNew) = try makeID(held, directory, random)
    home = FolderHome(folder: folder, stateDirectory: directory, id: id)
    if isNew { made.add(directory + "/" + idName, of: home) }
    // The marker must never name a state that a power cut removes.
    try held.sync(directory.utf8)
    if state != nil, try makePointer(id, directory, held: held, root: root, folder) {
      made.add(folder + "/" + markerName, of: home)
    }
    try root.sync(folder.utf8)
    return home
  }

  /// Opens the folder. Links in the given path are followed here, once.
  ///
  /// - Parameters:
  ///   - probe: for tests; called before each step that can fail.
  ///   - renameFlags: for tests; false simulates a file system whose renames take no flags.
  /// - Throws: `permission` when Tarn's own directories belong to somebody else, or others can write to them.
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
      hashing: hashing, random: random, renamer: Renamer(probe: probe, hasFlags: renameFlags))
  }

  /// Opens `partial` or `trash`, and makes it when it is missing.
  private func own(_ name: String, in state: Descriptor) throws(FolderFailure) -> Descriptor {
    let path = stateDirectory + "/" + name
    if try Self.makeOwn(name, in: state, path) { try state.sync(stateDirectory.utf8) }
    return try Self.openOwn(name, in: state, path)
  }

  // MARK: Making

  /// Returns the ID, and makes one unless it exists.
  private static func makeID(
    _ held: Descriptor, _ directory: String, _ random: any RandomSource
  ) throws(FolderFailure) -> (id: String, isNew: Bool) {
    if let id = try readID(directory) { return (id, false) }
    let id = random.name()
    do throws(FolderFailure) {
      try SmallFile.write(id + "\n", beside: "\(idName).\(random.name())", in: held, as: idName, in: held)
      return (id, true)
    } catch {
      // Another process was faster.
      guard error.code == .exists else { throw error }
    }
    guard let made = try readID(directory) else {
      throw FolderFailure(.exists, "\(Printable.escape(directory))/\(idName) is no id of a mirror")
    }
    return (made, false)
  }

  /// - Returns: false when it existed already.
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

  /// Makes each missing directory with this mode, durable in its parent. Links are followed, since the path is the user's.
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

  /// Makes one of Tarn's own directories, with mode 0700 whatever the umask is. The caller makes its name durable.
  ///
  /// - Parameter made: called with the path as soon as the directory exists.
  /// - Returns: false when it existed already, so that somebody else made it.
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
      // Both errors can mean a link, depending on where it leads.
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

  /// Refuses a directory that others can write to: files in it could not be trusted after a check. Root may open anybody's.
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

  /// Refuses a directory that somebody else uses: Tarn would take what lies in it for its own, and remove it.
  private static func refuseForeign(_ home: FolderHome) throws(FolderFailure) {
    let directory = home.stateDirectory
    guard try readID(directory) == nil, try !knowsMirror(directory), try !home.isHalfMade() else { return }
    throw FolderFailure(
      .exists,
      "\(Printable.escape(directory)) is to hold the state of the mirror, but has other files: move them away, or choose an "
        + "empty directory")
  }

  /// Refuses a state inside the folder, which would be taken for its contents, and a folder inside the state.
  private static func refuseNesting(_ folder: String, _ state: String) throws(FolderFailure) {
    guard !(state + "/").hasPrefix(folder + "/"), !(folder + "/").hasPrefix(state + "/") else {
      throw FolderFailure(
        .other,
        "\(Printable.escape(state)) and \(Printable.escape(folder)) lie in each other; --state has to lie beside"
      )
    }
  }
}

extension FolderHome {
  /// Finds the first mirror below a folder, whoever made it. Reads all directories there, without following links; what cannot be
  /// read is skipped.
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

  /// Returns whether an entry is a directory. Some file systems do not return the kind with the name (readdir(3)).
  private static func isDirectory(_ stream: OpaquePointer, _ kind: UInt8, _ name: [UInt8]) -> Bool {
    guard kind == DT_UNKNOWN else { return kind == DT_DIR }
    var status = stat()
    guard fstatat(dirfd(stream), cString(name), &status, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFDIR
  }
}

extension FolderHome {
  /// Removes Tarn's own data; the files of the folder stay. The caller holds the lock. After a crash it can be called again, since
  /// the marker is removed last. The folder itself may be gone.
  ///
  /// Objects that Tarn did not make stay, and their directory with them. A state directory elsewhere also stays where its parent
  /// does not allow the removal.
  ///
  /// - Throws: before anything is removed, when permissions would not allow all of it.
  package func remove() throws(FolderFailure) {
    try refuseUnremovable()
    let state = OwnDirectory(descriptor: try Descriptor.directory(at: stateDirectory), label: "state")
    for name in Self.ownDirectories { try Self.removeAll(name, in: state) }
    // Opened only now, so that a first pass with hardly any descriptors can be undone, too.
    let root = try FileStat.following(folder) == nil ? nil : Descriptor.directory(at: folder)
    let last: Set<String> = [Self.idName, Self.lockName]
    let names = try state.list().map(\.name)
    for name in names where !last.contains(name) && Self.isOwn(name) { try state.remove(name) }
    if !isInner, let root { try kernel("remove", folder.utf8, Self.unlink(Self.markerName, in: root)) }
    for name in last.sorted() { try state.remove(name) }
    let result = tarn_remove_directory(AT_FDCWD, cString(stateDirectory))
    let mayStay = isInner ? [-ENOTEMPTY] : [-ENOTEMPTY, -EACCES, -EPERM, -EROFS, -EBUSY]
    if !mayStay.contains(result) { try kernel("remove", stateDirectory.utf8, result) }
    try root?.sync(folder.utf8)
  }

  /// Refuses a removal that could not be finished. The marker is removed last, and a mirror with half of its record would be
  /// useless.
  private func refuseUnremovable() throws(FolderFailure) {
    let own = [stateDirectory] + Self.ownDirectories.map { stateDirectory + "/" + $0 }
    let places =
      [(folder, "remove", folder + "/" + Self.markerName, W_OK | X_OK)]
      + own.map { ($0, "remove what is in", $0, R_OK | W_OK | X_OK) }
    for (directory, operation, object, access) in places
    where faccessat(AT_FDCWD, directory + "/.", access, AT_EACCESS) != 0 {
      let number = errno
      if number != ENOENT { throw FolderFailure(cannot: operation, object.utf8, errno: number) }
    }
  }

  /// Returns whether the folder holds nothing but Tarn's own data, and the state only what a first pass makes. It then has no
  /// ledger that was set aside, no partial file and no file in the trash. False when it cannot be determined.
  package func isBare() -> Bool {
    do throws(FolderFailure) {
      guard try Self.isEmpty(Descriptor.directory(at: folder)) else { return false }
      return try isStateBare()
    } catch {
      return false
    }
  }

  /// Returns whether the state holds only what a crash leaves of one that is being made. Databases come after the ID.
  fileprivate func isHalfMade() throws(FolderFailure) -> Bool {
    try isStateBare { name in
      if Self.ownDirectories.contains(name) || name == Self.lockName { return true }
      guard let dot = name.lastIndex(of: ".") else { return false }
      let random = name[name.index(after: dot)...]
      return [Self.idName, Self.markerName].contains(String(name[..<dot]))
        && !random.isEmpty && random.utf8.allSatisfy { $0.hexDigitValue != nil }
    }
  }

  /// Checks the part of `isBare` that concerns the state.
  ///
  /// - Parameter isOwn: returns whether an object in it is Tarn's.
  func isStateBare(_ isOwn: (String) -> Bool = Self.isOfFirstPass) throws(FolderFailure) -> Bool {
    let state = OwnDirectory(descriptor: try Descriptor.directory(at: stateDirectory), label: "state")
    for name in Self.ownDirectories {
      let number = state.descriptor.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
      if number == -ENOENT { continue }
      let own = OwnDirectory(descriptor: Descriptor(try kernel("open", name.utf8, number)), label: name)
      guard try own.list().isEmpty else { return false }
    }
    return try state.list().allSatisfy { isOwn($0.name) }
  }

  static func isOfFirstPass(_ name: String) -> Bool {
    ownDirectories.contains(name) || [lockName, idName].contains(name)
      || isOwn(name) && !name.hasPrefix(ledgerName + ".")
  }

  /// Removes a file `FOLDER/.tarn` that names a state which no longer exists.
  ///
  /// - Returns: false when it is not a file.
  package static func removePointer(folder: String) throws(FolderFailure) -> Bool {
    let root = try Descriptor.directory(at: folder)
    guard try FileStat.at(root, cString(markerName))?.kind == .regular else { return false }
    try kernel("remove", folder.utf8, unlink(markerName, in: root))
    try root.sync(folder.utf8)
    return true
  }

  /// Lists the objects in `trash/`, of whatever kind. Needs no lock and creates nothing.
  package func trashed() throws(FolderFailure) -> [(name: String, identity: FileIdentity)] {
    let path = stateDirectory + "/trash"
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
    if number == -ENOENT { return [] }
    return try OwnDirectory(descriptor: Descriptor(try kernel("open", path.utf8, number)), label: "trash")
      .stats().map { ($0.name, $0.stat.identity) }
  }

  private static func removeAll(_ name: String, in state: OwnDirectory) throws(FolderFailure) {
    let number = state.descriptor.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
    if number == -ENOENT { return }
    let own = OwnDirectory(descriptor: Descriptor(try kernel("open", name.utf8, number)), label: name)
    for file in try own.list() { try own.remove(file.name) }
    try kernel("remove", name.utf8, state.descriptor.use { tarn_remove_directory($0, cString(name)) })
  }

  /// Returns whether a name is Tarn's: the databases with what SQLite and a rebuild put beside them, a marker being made, and a
  /// spool that a crash left.
  private static func isOwn(_ name: String) -> Bool {
    ["ledger.sqlite", "stage.sqlite", "catalog.sqlite", "id.", markerName + ".", markerName + "-"].contains {
      name.hasPrefix($0)
    }
  }

  private static func unlink(_ name: String, in directory: Descriptor) -> Int32 {
    let result = directory.use { tarn_unlink($0, cString(name)) }
    return result == -ENOENT ? 0 : result
  }
}

extension FolderHome {
  /// What one call of `make` made, and nobody else.
  package struct CreatedParts: Sendable, Equatable {
    /// The folder, the state, and the directories made above them, outermost first.
    package var directories: [String] = []
    /// The home in which something of Tarn's was made; `nil` when all of it existed.
    private var home: FolderHome?
    /// Tarn's own objects, the marker and those in the state, in the order in which they were made.
    private var parts: [String] = []

    package init() {}

    /// True when the mirror itself was made: its marker and its ID.
    package var isMirror: Bool {
      home.map { hasID && parts.contains($0.folder + "/" + FolderHome.markerName) } ?? false
    }

    /// True when a new marker leads to a state that existed.
    package var isLinkedAnew: Bool {
      home.map { !hasID && parts.contains($0.folder + "/" + FolderHome.markerName) } ?? false
    }

    private var hasID: Bool {
      home.map { parts.contains($0.stateDirectory + "/" + FolderHome.idName) } ?? false
    }

    mutating func add(_ path: String, of home: FolderHome) {
      self.home = home
      parts.append(path)
    }

    /// Removes the directories that are empty.
    package func removeDirectories() {
      for path in directories.reversed() { _ = tarn_remove_directory(AT_FDCWD, cString(path)) }
    }

    /// Removes all of it again, innermost first, unless somebody else uses the mirror by now.
    ///
    /// - Parameter isUsed: returns whether anything was recorded in that state. It is called under the lock when a ledger or the
    ///   like lies beside what was made; if it returns false, that is removed as well.
    package func takeBack(isUsed: (_ stateDirectory: String) -> Bool = { _ in true }) {
      defer { removeDirectories() }
      guard let home else { return }
      do {
        if hasID {
          try removeLocked(home, isUsed)
        } else if try FileStat.following(home.stateDirectory + "/" + FolderHome.idName) == nil {
          removeParts()
        }
      } catch {
        // If it cannot be determined, the mirror may be in use. The next sync accepts an empty mirror as it is.
      }
    }

    private func removeLocked(_ home: FolderHome, _ isUsed: (String) -> Bool) throws {
      let hadLock = try FileStat.following(home.lockPath) != nil
      let lock: FolderLock
      do {
        lock = try home.lock()
      } catch let failure as FolderFailure where !hadLock && failure.code != .missing {
        // Where no lock file can be made, nobody holds the lock.
        return removeParts()
      }
      defer { lock.release() }
      // Another first pass may have removed it, and a third one may have made it again.
      guard try FolderHome.readID(home.stateDirectory) == home.id, try home.isStateBare() else { return }
      guard try others(home).isEmpty || !isUsed(home.stateDirectory) else { return }
      // The names are read again, since a look may create files.
      let state = try Self.state(home)
      for name in try others(home) { try state.remove(name) }
      removeParts { try? state.remove(FolderHome.lockName) }
    }

    /// Returns the names in the state beside its parts, which are bare. No descriptor stays open, since they may be scarce.
    private func others(_ home: FolderHome) throws -> [String] {
      let parts = FolderHome.ownDirectories + [FolderHome.idName, FolderHome.lockName]
      return try Self.state(home).list().map(\.name).filter { !parts.contains($0) }
    }

    private static func state(_ home: FolderHome) throws -> OwnDirectory {
      OwnDirectory(descriptor: try Descriptor.directory(at: home.stateDirectory), label: "state")
    }

    /// - Parameter last: called when the state is empty except for the lock.
    private func removeParts(_ last: () -> Void = {}) {
      for path in parts.reversed() {
        if path == home?.stateDirectory { last() }
        if tarn_unlink(AT_FDCWD, cString(path)) != 0 { _ = tarn_remove_directory(AT_FDCWD, cString(path)) }
      }
      if parts.first != home?.stateDirectory { last() }
    }
  }
}
