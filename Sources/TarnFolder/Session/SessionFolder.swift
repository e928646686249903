import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// The destinations of one session's tasks. The engine sees each task as a path that is its number. The partial file lies beside
/// the destination, as `.tarn-SESSION-TOKEN-TASK.part`. Any thread.
package final class SessionFolder: Sendable {
  /// The destination of a running task.
  private struct Destination {
    var place: TaskPlace
    let existing: TaskRequest.Existing
    var directory: Descriptor
    var identity: FileIdentity
    /// The file that the task itself put there before and now replaces; `nil` for none.
    let own: FileIdentity?
    /// The file name; `nil` until the server has suggested one.
    var leaf: String?
    /// The name before it got a number, and that number; 0 for none.
    var wanted: (leaf: String, number: Int)?
  }

  /// The word that names the session in its partial files.
  private let id: String
  /// The ID of the session for orders; `nil` for a single command, which takes none.
  private let session: String?
  private let names: FinalNames
  private let hashing: any Hashing
  private let renamer = Renamer(probe: nil)
  private let hashThread = HashThread(name: "tarn-hash")
  /// The mode of finished files, as any program of this user would make them.
  private let mode = 0o666 & ~ProcessMask.read()
  private let destinations = Locked<[Int64: Destination]>([:])

  /// - Parameters:
  ///   - id: the ID of the session: letters, digits, `-`, `_` and `.`.
  ///   - token: a random word, by which sessions of one ID, in other agents, do not meet in a directory; `nil` for a session that
  ///     began without one.
  ///   - isCommand: true for a single command, to which no order can be given.
  package init(
    id: String, token: String? = nil, isCommand: Bool = false, names: FinalNames, hashing: any Hashing
  ) {
    self.id = token.map { "\(id)-\($0)" } ?? id
    session = isCommand ? nil : id
    (self.names, self.hashing) = (names, hashing)
    _ = tarn_raise_open_files()
  }

  /// Opens the destination directory of a task.
  ///
  /// - Parameters:
  ///   - own: the file that the task put there before, and that may be fetched again; `nil` for none.
  ///   - hasPartial: true when a partial file lies there. Then the directory must be the one that it was written to.
  /// - Returns: the folder for the engine, the identity of the directory, and the ID of its file system.
  /// - Throws: why it cannot be used: `otherFileSystem` when its disk is not mounted now.
  package func open(
    _ task: TaskRecord, own: FileIdentity? = nil, hasPartial: Bool = false
  ) throws(FolderFailure) -> (folder: any TransferFolder, directory: FileIdentity, disk: String) {
    guard let place = TaskPlace(task.request.to) else {
      throw FolderFailure(.other, "\(Printable.escape(task.request.to)) is no absolute path")
    }
    if task.request.makeDirectories == true { try makeDirectories(place.directory) }
    let directory = try Descriptor.directory(at: place.directory)
    let identity = try FileStat.of(directory, place.directory.utf8).identity
    let disk = directory.use(MountedFileSystem.id)
    if hasPartial, task.movedFrom == nil {
      try refuseOther(directory, identity, disk, for: task, file: partialName(task.number))
    }
    var destination = Destination(
      place: place, existing: own == nil ? task.request.existing ?? .fail : .replace, directory: directory,
      identity: identity, own: own)
    // A name from an earlier answer stays, since there may be bytes for it.
    let earlier = task.path.flatMap { TaskPlace($0) }.flatMap {
      $0.directory == place.directory ? $0.name : nil
    }
    if let leaf = own == nil ? place.name ?? earlier : earlier ?? place.name {
      try claim(leaf, for: &destination, of: task.number)
      if own == nil { try refuseTaken(destination) }
    }
    destinations.withLock { $0[task.number] = destination }
    return (TaskFolder(session: self, task: task.number), identity, disk)
  }

  /// Ends the work at a task. It keeps its name until `release`, for it may continue.
  package func close(_ task: Int64) { destinations.withLock { $0[task] = nil } }

  /// Releases the name of a task that has ended.
  package func release(_ task: Int64) { names.release(owner(task)) }

  /// Releases the names of all tasks.
  package func releaseAll() { names.release(session: id) }

  /// Reserves the name of a task that has bytes and does not run.
  package func reserve(_ task: TaskRecord) {
    guard let place = TaskPlace(task.request.to), let path = task.path.flatMap({ TaskPlace($0) }),
      path.directory == place.directory, let leaf = path.name,
      let identity = try? FileStat.following(place.directory)?.identity
    else { return }
    _ = names.claim(
      FinalNames.Name(device: identity.device, inode: identity.inode, leaf: leaf), for: owner(task.number))
  }

  /// Reserves the new name of a task that has got another destination, in place of the one before.
  package func renew(_ task: TaskRecord) { if names.release(owner(task.number)) { reserve(task) } }

  private func owner(_ task: Int64) -> FinalNames.Owner { FinalNames.Owner(session: id, task: task) }

  /// Returns where the open directory of a task is by now, if somebody has renamed it; `nil` when it is at its path, or gone.
  package func renamedDirectory(of task: Int64) -> String? {
    guard let destination = destination(task), (try? refuseMoved(destination)) == nil else { return nil }
    let path = destination.directory.use { number -> String? in
      var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let count = bytes.withUnsafeMutableBytes { buffer in
        buffer.withMemoryRebound(to: CChar.self) { text in
          text.baseAddress.map { readlink("/proc/self/fd/\(number)", $0, text.count) } ?? -1
        }
      }
      return count > 0 ? String(validating: bytes.prefix(count), as: UTF8.self) : nil
    }
    guard let path, let found = try? FileStat.following(path)?.identity,
      found.inode == destination.identity.inode, found.device == destination.identity.device
    else { return nil }
    return path
  }

  /// Gives the file of a task the name that the server suggests.
  ///
  /// - Throws: `exists` when that name is taken and the task is to fail then.
  package func name(_ task: Int64, _ suggested: String) throws(FolderFailure) {
    guard var destination = destinations.withLock({ $0[task] }) else { return }
    guard destination.leaf == nil else { return }
    try claim(suggested, for: &destination, of: task)
    try refuseTaken(destination)
    destinations.withLock { $0[task] = destination }
  }

  /// Refuses a directory that is another one than before. An empty mount point has another inode. The root of another disk may have
  /// the same one, but not the file. Some file systems get another ID with each boot, so the file decides.
  private func refuseOther(
    _ directory: Descriptor, _ identity: FileIdentity, _ disk: String, for task: TaskRecord, file: String
  ) throws(FolderFailure) {
    guard let known = task.directory else { return }
    let isSame = known == identity.inode
    let isSameDisk = task.disk ?? disk == disk
    let isThere = try isSameDisk ? nil : FileStat.at(directory, cString(file))
    guard isSame, isSameDisk || isThere != nil else {
      throw isOther(task, isMadeAgain: Self.isMadeAgain(task, inode: identity.inode, disk: disk))
    }
  }

  private func isOther(_ task: TaskRecord, isMadeAgain: Bool) -> FolderFailure {
    let isOther = Self.otherDirectory(task)
    guard isMadeAgain else { return FolderFailure(.otherFileSystem, "\(isOther): is its disk mounted?") }
    let order = session.map { "'tarn retry session:\($0)/\(task.number)'" } ?? "the same command"
    return FolderFailure(
      .otherFileSystem, "\(isOther): \(Self.isAway); \(order) begins the file anew there")
  }

  private static func otherDirectory(_ task: TaskRecord) -> String {
    "\(Printable.escape(TaskPlace(task.request.to)?.directory ?? "")) is another directory than before"
  }

  private static let isAway = "that one is removed, renamed or not mounted"

  /// Says that a task begins anew in a directory that was made again, and why.
  package static func beginsAnew(_ task: TaskRecord) -> String {
    "\(otherDirectory(task)): \(isAway), so \(Printable.escape(task.request.url)) begins anew there"
  }

  /// Returns whether the directory with the partial file of a task was made again: another one is at its path, on the same disk.
  package func isMadeAgain(_ task: TaskRecord) -> Bool {
    guard task.movedFrom == nil, let directory = TaskPlace(task.request.to)?.directory,
      let inode = try? FileStat.following(directory)?.identity.inode
    else { return false }
    return Self.isMadeAgain(task, inode: inode, disk: MountedFileSystem.id(of: directory))
  }

  /// - Parameter disk: the ID of the file system. One without an ID may be any.
  private static func isMadeAgain(_ task: TaskRecord, inode: UInt64, disk: String) -> Bool {
    guard let known = task.directory, !disk.isEmpty, disk != "0" else { return false }
    return known != inode && task.disk == disk
  }

  /// Changes the destination of a task before a byte of it was fetched.
  ///
  /// - Parameter makesDirectories: true to make the directory where it is missing.
  /// - Returns: the inode of the directory; `nil` when there are bytes already: the file stays where they are.
  /// - Throws: why the destination cannot be used.
  package func place(
    _ task: Int64, at place: TaskPlace, _ suggested: String, makesDirectories: Bool
  ) throws(FolderFailure) -> UInt64? {
    guard var destination = destinations.withLock({ $0[task] }), destination.own == nil,
      try FileStat.at(destination.directory, cString(partialName(task))) == nil
    else { return nil }
    if destination.place.directory == place.directory, destination.leaf == place.name ?? suggested {
      return destination.identity.inode
    }
    if makesDirectories { try makeDirectories(place.directory) }
    destination.directory = try Descriptor.directory(at: place.directory)
    destination.identity = try FileStat.of(destination.directory, place.directory.utf8).identity
    (destination.place, destination.leaf) = (place, nil)
    try claim(place.name ?? suggested, for: &destination, of: task)
    try refuseTaken(destination)
    destinations.withLock { $0[task] = destination }
    return destination.identity.inode
  }

  /// Moves the partial file of a task to its open directory. To another file system it is copied.
  ///
  /// - Parameters:
  ///   - old: the directory that holds it; if that no longer exists, nothing happens.
  ///   - isStopped: asked for every MiB that is copied.
  /// - Throws: why it cannot be moved; then it is where it was.
  package func movePartial(
    of task: Int64, from old: String, unless isStopped: () -> Bool
  ) throws(FolderFailure) {
    guard let from = try? Descriptor.directory(at: old) else { return }
    let to = try required(task).directory
    let name = partialName(task)
    guard try FileStat.at(from, cString(name)) != nil else { return }
    let result = renamer.moveOut(from, name, to: to, cString(name), .rename)
    guard result == -EXDEV else {
      try kernel("move", name.utf8, result)
      return
    }
    let source = Descriptor(try kernel("open", name.utf8, from.open(cString(name), O_RDONLY)))
    _ = to.use { tarn_unlink($0, cString(name)) }
    let copy = Descriptor(
      try kernel("create", name.utf8, to.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)))
    do throws(FolderFailure) {
      try copy.take(allOf: source, name.utf8, unless: isStopped)
      try copy.sync(name.utf8)
    } catch {
      _ = to.use { tarn_unlink($0, cString(name)) }
      throw error
    }
    _ = from.use { tarn_unlink($0, cString(name)) }
  }

  /// A file with bytes that somebody else has fetched, open to be read.
  package struct EarlierFile {
    fileprivate let descriptor: Descriptor

    /// - Throws: why it cannot be read.
    package init(_ path: String) throws(FolderFailure) {
      descriptor = try SessionFolder.openEarlier(path)
    }
  }

  private static func openEarlier(_ file: String) throws(FolderFailure) -> Descriptor {
    guard let place = TaskPlace(file), let leaf = place.name else {
      throw FolderFailure(.missing, "\(Printable.escape(file)) is no file")
    }
    let from = try Descriptor.directory(at: place.directory)
    let source = Descriptor(try kernel("open", file.utf8, from.open(cString(leaf), O_RDONLY | O_NONBLOCK)))
    guard try FileStat.of(source, file.utf8).kind == .regular else {
      throw FolderFailure(.other, "\(Printable.escape(file)) is not a regular file")
    }
    return source
  }

  /// Begins a task with bytes that somebody else has fetched. Their file stays.
  ///
  /// - Parameter isStopped: asked for every MiB that is copied.
  /// - Returns: the name of the partial file, and its size.
  /// - Throws: why it cannot be done; then there is no partial file.
  package func adopt(
    _ file: EarlierFile, for task: Int64, unless isStopped: () -> Bool
  ) throws(FolderFailure) -> (name: String, bytes: UInt64) {
    let directory = try required(task).directory
    let staged = try makePartial(task)
    let name = staged.name
    staged.close()
    do throws(FolderFailure) {
      let copy = Descriptor(try kernel("open", name.utf8, directory.open(cString(name), O_RDWR)))
      try copy.take(allOf: file.descriptor, name.utf8, unless: isStopped)
      try copy.sync(name.utf8)
      return (name, try FileStat.of(copy, name.utf8).size)
    } catch {
      _ = directory.use { tarn_unlink($0, cString(name)) }
      throw error
    }
  }

  /// Returns the size of a task's partial file and the time of its last write; `nil` where there is none.
  package func partial(of task: TaskRecord) -> (bytes: UInt64, written: Timestamp)? {
    for place in Self.directories(of: task) {
      guard let directory = try? Descriptor.directory(at: place),
        let stat = try? FileStat.at(directory, cString(partialName(task.number)))
      else { continue }
      return (stat.size, stat.identity.modified)
    }
    return nil
  }

  /// Returns the directories that may hold the partial file.
  private static func directories(of task: TaskRecord) -> [String] {
    [task.movedFrom, TaskPlace(task.request.to)?.directory].compactMap { $0 }
  }

  /// Returns whether a task's finished file still stands unchanged where it was put.
  package func isThere(_ task: TaskRecord) -> Bool {
    guard let file = task.file, let path = task.path, let place = TaskPlace(path), let leaf = place.name,
      let directory = try? Descriptor.directory(at: place.directory),
      let stat = try? FileStat.at(directory, cString(leaf))
    else { return false }
    return stat.identity.isSame(as: file)
  }

  /// Returns the present or future path of a task's file.
  package func path(_ task: Int64) -> String? {
    destinations.withLock { destinations in
      destinations[task].flatMap { destination in destination.leaf.map(destination.place.path) }
    }
  }

  /// Ends a finished task. An object that the new file replaced is removed, now that the ledger has the new file.
  ///
  /// - Parameter replaces: true when it may have replaced something.
  package func finish(_ task: TaskRecord, replaces: Bool) {
    // A task that is sent elsewhere meanwhile has left this directory.
    if replaces, let directory = destination(task.number)?.directory {
      _ = directory.use { tarn_unlink($0, cString(partialName(task.number))) }
    } else if replaces {
      removePartial(of: task)
    }
    close(task.number)
    release(task.number)
  }

  /// - Returns: false when the file may be on a disk that is not mounted now.
  @discardableResult
  package func removePartial(of task: TaskRecord) -> Bool {
    let name = cString(partialName(task.number))
    var isGone = task.directory == nil
    for place in Self.directories(of: task) {
      guard let directory = try? Descriptor.directory(at: place) else { continue }
      if let stat = try? FileStat.at(directory, name), stat.kind != .directory {
        isGone = directory.use { tarn_unlink($0, name) } == 0 || isGone
      } else if let identity = try? FileStat.of(directory, place.utf8).identity {
        // An empty mount point, or another disk, says nothing about the file.
        let disk = directory.use(MountedFileSystem.id)
        isGone = isGone || identity.inode == task.directory && task.disk ?? disk == disk
      }
    }
    return isGone
  }

  /// Finds the file of an intent that a crash left, and makes its name durable; `nil` where it has no name.
  ///
  /// - Throws: why it cannot be determined now: the directory is missing, or cannot be read.
  package func find(
    _ intent: (task: TaskRecord, inode: UInt64, size: UInt64)
  ) throws(FolderFailure) -> (path: String, file: FileIdentity)? {
    guard let place = TaskPlace(intent.task.request.to), let path = intent.task.path,
      let leaf = TaskPlace(path)?.name
    else { return nil }
    let directory = try Descriptor.directory(at: place.directory)
    // An empty mount point, or another disk, says nothing about the file.
    let identity = try FileStat.of(directory, place.directory.utf8).identity
    try refuseOther(directory, identity, directory.use(MountedFileSystem.id), for: intent.task, file: leaf)
    // A name with a number may have come from the server, or may have got the number here.
    let firsts: [(leaf: String, number: Int)?] = [(leaf, 0), SuggestedName.withoutNumber(leaf)]
    for first in firsts.compactMap({ $0 }) {
      var (number, name) = (first.number, leaf)
      while number < Self.mostNumbers, let stat = try FileStat.at(directory, cString(name)) {
        if stat.identity.inode == intent.inode, stat.size == intent.size {
          try directory.sync(place.directory.utf8)
          return (place.path(name), stat.identity)
        }
        guard intent.task.request.existing == .keepBoth else { return nil }
        number += 1
        name = SuggestedName.numbered(first.leaf, number)
      }
    }
    return nil
  }

  // MARK: Names

  /// The highest number that is tried for a name beside others.
  private static let mostNumbers = 100_000

  private func partialName(_ task: Int64) -> String { ".tarn-\(id)-\(task).part" }

  /// - Parameter least: the first number to try; smaller ones are taken.
  private func claim(
    _ leaf: String, for destination: inout Destination, of task: Int64, from least: Int = 0
  ) throws(FolderFailure) {
    var number = least
    while true {
      let next = number == 0 ? leaf : SuggestedName.numbered(leaf, number)
      let name = FinalNames.Name(
        device: destination.identity.device, inode: destination.identity.inode, leaf: next)
      if names.claim(name, for: owner(task)) {
        (destination.leaf, destination.wanted) = (next, (leaf: leaf, number: number))
        return
      }
      guard destination.existing == .keepBoth, number < Self.mostNumbers else {
        throw FolderFailure(
          .exists, "\(Printable.escape(destination.place.path(next))): another task puts its file there")
      }
      number += 1
    }
  }

  /// Refuses a directory that is no longer at its path, because somebody renamed or removed it.
  private func refuseMoved(_ destination: Destination) throws(FolderFailure) {
    let place = destination.place.directory
    let found = try FileStat.following(place)?.identity
    guard found?.inode != destination.identity.inode || found?.device != destination.identity.device else {
      return
    }
    throw FolderFailure(
      .missing, "\(Printable.escape(place)) is not there any more, or is another directory than before")
  }

  /// Refuses a taken name before a byte is fetched that could not be kept.
  private func refuseTaken(_ destination: Destination) throws(FolderFailure) {
    guard let leaf = destination.leaf, destination.existing == .fail,
      try FileStat.at(destination.directory, cString(leaf)) != nil
    else { return }
    throw taken(destination, leaf)
  }

  private func taken(_ destination: Destination, _ leaf: String) -> FolderFailure {
    FolderFailure(.exists, "\(Printable.escape(destination.place.path(leaf))) is there already")
  }

  private func makeDirectories(_ path: String) throws(FolderFailure) {
    var made = ""
    for part in path.split(separator: "/") {
      made += "/\(part)"
      guard mkdir(made, 0o777) != 0, errno != EEXIST else { continue }
      let number = errno
      var status = stat()
      if stat(made, &status) == 0 { continue }
      throw FolderFailure(cannot: "make the directory", made.utf8, errno: number)
    }
  }

  // MARK: For the engine

  /// The engine's view of a task's destination.
  private struct TaskFolder: TransferFolder {
    let session: SessionFolder
    let task: Int64

    func look(_ path: RelativePath) throws(FolderFailure) -> Present? {
      guard let destination = session.destination(task), destination.own != nil, let leaf = destination.leaf,
        let stat = try FileStat.at(destination.directory, cString(leaf)), stat.kind == .regular
      else { return nil }
      return Present(path: path, kind: .regular, identity: stat.identity)
    }
    func makePartial(for path: RelativePath, mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile {
      try session.makePartial(path.task)
    }
    func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)? {
      try session.openPartial(task, name)
    }
    func copyPartial(of path: RelativePath, expected: FileIdentity, check: ContentCheck) -> (any PartialFile)?
    {
      nil
    }
    /// Returns `nil`: of what a task replaces, only the name is judged.
    func opening(of path: RelativePath, most: Int) -> [UInt8]? { nil }
    func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64 {
      try session.destination(task).flatMap { destination throws(FolderFailure) in
        try FileStat.at(destination.directory, cString(name))?.allocated
      } ?? 0
    }
    func removePartial(_ name: String) throws(FolderFailure) {
      guard let directory = session.destination(task)?.directory else { return }
      let result = directory.use { tarn_unlink($0, cString(name)) }
      if result != -ENOENT { try kernel("remove", name.utf8, result) }
    }
    func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] { session.makeDurable(files) }
    func install(_ items: [Installation]) -> [PublishOutcome] { session.install(items) }
    /// Refuses removals: a session removes nothing.
    func remove(_ items: [Removal]) -> [PublishOutcome] {
      items.map { _ in .stale("no session removes files") }
    }
    func trashIdentity(_ name: String) -> FileIdentity? { nil }
    func restoreMode(
      of path: RelativePath, expected: FileIdentity
    ) -> (identity: FileIdentity, before: UInt32)? { nil }
    func flush() {}
    func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?) {
      guard let destination = session.destination(task) else { return (.max, .max, nil) }
      var space = tarn_space_left()
      try kernel(
        "ask for the space of", destination.place.directory.utf8,
        destination.directory.use { tarn_space($0, &space) })
      return (space.free_bytes, space.total_bytes, space.total_files == 0 ? nil : space.free_files)
    }
    /// Returns true: each file is checked by itself.
    func isIntact() -> Bool { true }
  }

  private func destination(_ task: Int64) -> Destination? { destinations.withLock { $0[task] } }

  private func required(_ task: Int64) throws(FolderFailure) -> Destination {
    guard let destination = destination(task) else {
      throw FolderFailure(.other, "the destination of task \(task) is not open")
    }
    return destination
  }

  /// - Parameter path: the path for messages.
  private func staged(
    _ name: String, _ file: Descriptor, in directory: Descriptor, found: FileStat?, _ path: String
  ) -> StagedFile {
    StagedFile(
      name: name, directory: directory, descriptor: file, found: found, hashing: hashing, probe: nil,
      hashThread: hashThread, mode: mode, origin: .request(path))
  }

  /// Makes the partial file. A file under its name is from an earlier attempt that nothing is known about, and is removed.
  private func makePartial(_ task: Int64) throws(FolderFailure) -> any PartialFile {
    let destination = try required(task)
    let (directory, name) = (destination.directory, partialName(task))
    let path = destination.place.path(name)
    var number = directory.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    if number == -EEXIST {
      try kernel("remove", path.utf8, directory.use { tarn_unlink($0, cString(name)) })
      number = directory.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    let file = Descriptor(try kernel("create", path.utf8, number))
    return staged(name, file, in: directory, found: nil, path)
  }

  private func openPartial(_ task: Int64, _ name: String) throws(FolderFailure) -> (any PartialFile)? {
    try OwnDirectory.check(name)
    let destination = try required(task)
    let (directory, path) = (destination.directory, destination.place.path(name))
    guard let stat = try FileStat.at(directory, cString(name)) else { return nil }
    guard stat.kind == .regular, stat.owner == geteuid(), stat.links == 1, name == partialName(task) else {
      throw FolderFailure(.other, "\(Printable.escape(path)) is not one of Tarn's partial files")
    }
    let number = directory.open(cString(name), O_RDWR | O_NONBLOCK | O_NOCTTY)
    if number == -ENOENT { return nil }
    let file = Descriptor(try kernel("open", path.utf8, number))
    return staged(name, file, in: directory, found: try FileStat.of(file, path.utf8), path)
  }

  private func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] {
    files.map { file in
      guard let staged = file as? StagedFile else {
        return FolderFailure(.other, "\(file.name) is no file of this session")
      }
      do throws(FolderFailure) {
        try staged.syncAll()
        return nil
      } catch {
        return error
      }
    }
  }

  // MARK: Final names

  private func install(_ items: [Installation]) -> [PublishOutcome] {
    var outcomes: [PublishOutcome] = []
    var touched: [FileIdentity: Descriptor] = [:]
    for item in items {
      do throws(FolderFailure) {
        let destination = try required(item.path.task)
        try refuseMoved(destination)
        outcomes.append(.installed(try install(item, destination), displaced: nil))
        touched[destination.identity] = destination.directory
      } catch {
        outcomes.append(.failed(error.about(item.path)))
      }
    }
    for (identity, directory) in touched {
      do throws(FolderFailure) {
        try directory.sync("the destination".utf8)
      } catch {
        for (index, item) in items.enumerated() {
          guard case .installed = outcomes[index], destination(item.path.task)?.identity == identity else {
            continue
          }
          takeBack(item)
          outcomes[index] = .failed(error)
        }
      }
    }
    return outcomes
  }

  private func install(
    _ item: Installation, _ destination: Destination
  ) throws(FolderFailure) -> FileIdentity {
    var destination = destination
    guard let staged = item.partial as? StagedFile, let sealed = staged.sealed, var leaf = destination.leaf
    else {
      throw FolderFailure(.other, "\(item.partial.name) is not sealed, or has no name to get")
    }
    let file = try staged.opened()
    guard let named = try FileStat.at(destination.directory, cString(staged.name)),
      named.identity.isSameContents(as: sealed.identity)
    else { throw FolderFailure(.other, "\(staged.name) was changed by somebody else") }
    while true {
      let wanted = destination.wanted ?? (leaf: leaf, number: 0)
      let result = renamer.moveOut(
        destination.directory, staged.name, to: destination.directory, cString(leaf), .rename)
      guard result == -EEXIST else {
        try kernel("move into place", destination.place.path(leaf).utf8, result)
        break
      }
      switch destination.existing {
      case .fail: throw taken(destination, leaf)
      case .replace:
        // What stood there may have gone meanwhile.
        guard try exchange(staged.name, destination, leaf) else { continue }
        return try FileStat.of(file, leaf.utf8).identity
      case .keepBoth where wanted.number >= Self.mostNumbers: throw taken(destination, leaf)
      case .keepBoth:
        try claim(wanted.leaf, for: &destination, of: item.path.task, from: wanted.number + 1)
        leaf = destination.leaf ?? leaf
        destinations.withLock { $0[item.path.task] = destination }
      }
    }
    return try FileStat.of(file, leaf.utf8).identity
  }

  /// Undoes an installation whose name may not be durable: the replaced object stands there again, and the partial file is the new
  /// one.
  private func takeBack(_ item: Installation) {
    guard let destination = destination(item.path.task), let leaf = destination.leaf,
      destination.existing == .replace,
      (try? FileStat.at(destination.directory, cString(item.partial.name))) != nil
    else { return }
    _ = renamer.exchange(
      destination.directory, item.partial.name, destination.directory, cString(leaf), .exchange)
  }

  /// Exchanges the new file with what stands there. The old object keeps the partial file's name until the ledger records the new
  /// one: see `finish`.
  ///
  /// - Returns: false when nothing stands there any more.
  private func exchange(
    _ name: String, _ destination: Destination, _ leaf: String
  ) throws(FolderFailure) -> Bool {
    let path = destination.place.path(leaf)
    let standing = try FileStat.at(destination.directory, cString(leaf))
    if standing?.kind == .directory {
      throw FolderFailure(
        .exists, "\(Printable.escape(path)) is a directory, which no file takes the place of")
    }
    if let own = destination.own, standing?.identity.isSame(as: own) == false {
      throw FolderFailure(.exists, "\(Printable.escape(path)) was changed since it was downloaded")
    }
    let result = renamer.exchange(
      destination.directory, name, destination.directory, cString(leaf), .exchange)
    if result == -ENOENT { return false }
    guard !Renamer.isUnsupported(result) else {
      throw FolderFailure(
        .other,
        "cannot replace \(Printable.escape(path)): the file system cannot exchange two names; move away what is there",
        errno: Int32(-result))
    }
    try kernel("replace", path.utf8, result)
    return true
  }
}
