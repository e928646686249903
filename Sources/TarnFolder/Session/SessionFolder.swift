import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// The destinations of one session's tasks. In the engine's eyes each task is a path that is its number; its partial file lies beside
/// the destination, as `.tarn-SESSION-TASK.part`. Any thread.
package final class SessionFolder: Sendable {
  /// Of a task at work.
  private struct Destination {
    let place: TaskPlace
    let existing: TaskRequest.Existing
    let directory: Descriptor
    let identity: FileIdentity
    /// nil until the server has named it.
    var leaf: String?
    var claimed: FinalNames.Name?
  }

  private let id: String
  private let names: FinalNames
  private let hashing: any Hashing
  private let renamer = Renamer(probe: nil)
  private let hashThread = HashThread(name: "tarn-hash")
  private let destinations = Locked<[Int64: Destination]>([:])

  /// - Parameter id: of the session: letters, digits, `-`, `_` and `.`.
  package init(id: String, names: FinalNames, hashing: any Hashing) {
    (self.id, self.names, self.hashing) = (id, names, hashing)
    _ = tarn_raise_open_files()
  }

  /// Opens the directory that a task's file goes to.
  ///
  /// - Throws: why it cannot be used.
  package func open(_ task: TaskRecord) throws(FolderFailure) -> any TransferFolder {
    guard let place = TaskPlace(task.request.to) else {
      throw FolderFailure(.other, "\(Printable.escape(task.request.to)) is no absolute path")
    }
    if task.request.makeDirectories == true { try makeDirectories(place.directory) }
    let directory = try Descriptor.directory(at: place.directory)
    let identity = try FileStat.of(directory, place.directory.utf8).identity
    var destination = Destination(
      place: place, existing: task.request.existing ?? .fail, directory: directory, identity: identity)
    if let leaf = place.name { try claim(leaf, for: &destination) }
    destinations.withLock { $0[task.number] = destination }
    return TaskFolder(session: self, task: task.number)
  }

  /// The task is at work no more.
  package func close(_ task: Int64) {
    let claimed = destinations.withLock { $0.removeValue(forKey: task)?.claimed }
    if let claimed { names.giveBack(claimed) }
  }

  /// Gives a task's file the name that the server suggests.
  ///
  /// - Returns: where the file is going to be.
  /// - Throws: `exists` where that name is taken, and the task says to fail then.
  package func name(_ task: Int64, _ suggested: String) throws(FolderFailure) -> String? {
    guard var destination = destinations.withLock({ $0[task] }) else { return nil }
    if destination.leaf == nil {
      try claim(suggested, for: &destination)
      try refuseTaken(destination)
      destinations.withLock { $0[task] = destination }
    }
    return destination.leaf.map(destination.place.path)
  }

  /// Where the file of a task is, or is going to be.
  package func path(_ task: Int64) -> String? {
    destinations.withLock { destinations in
      destinations[task].flatMap { destination in destination.leaf.map(destination.place.path) }
    }
  }

  /// What the new file took the place of goes: the ledger has the new one.
  package func finish(_ task: TaskRecord) {
    if task.request.existing == .replace { removePartial(of: task) }
    close(task.number)
  }

  package func removePartial(of task: TaskRecord) {
    guard let place = TaskPlace(task.request.to),
      let directory = try? Descriptor.directory(at: place.directory)
    else { return }
    let name = cString(partialName(task.number))
    guard let stat = try? FileStat.at(directory, name), stat.kind != .directory else { return }
    _ = directory.use { tarn_unlink($0, name) }
  }

  /// Where the file of an intent that a crash left has its name; nil where it has none.
  package func find(_ intent: (task: TaskRecord, inode: UInt64, size: UInt64)) -> String? {
    guard let place = TaskPlace(intent.task.request.to), let path = intent.task.path,
      let leaf = path.split(separator: "/").last.map(String.init),
      let directory = try? Descriptor.directory(at: place.directory)
    else { return nil }
    var (number, name) = (0, leaf)
    while let stat = try? FileStat.at(directory, cString(name)) {
      if stat.identity.inode == intent.inode, stat.size == intent.size { return place.path(name) }
      guard intent.task.request.existing == .keepBoth else { return nil }
      number += 1
      name = SuggestedName.numbered(leaf, number)
    }
    return nil
  }

  // MARK: Names

  private func partialName(_ task: Int64) -> String { ".tarn-\(id)-\(task).part" }

  private func claim(_ leaf: String, for destination: inout Destination) throws(FolderFailure) {
    var (number, next) = (0, leaf)
    while true {
      let name = FinalNames.Name(
        device: destination.identity.device, inode: destination.identity.inode, leaf: next)
      if names.claim(name) {
        (destination.leaf, destination.claimed) = (next, name)
        return
      }
      guard destination.existing == .keepBoth else {
        throw FolderFailure(
          .exists, "\(Printable.escape(destination.place.path(next))): another task puts its file there")
      }
      number += 1
      next = SuggestedName.numbered(leaf, number)
    }
  }

  /// Before a byte is fetched that could not be kept.
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

  /// What the engine sees of a task's destination.
  private struct TaskFolder: TransferFolder {
    let session: SessionFolder
    let task: Int64

    func look(_ path: RelativePath) -> Present? { nil }
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
    /// A session removes nothing.
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
    /// Each file is looked after by itself.
    func isIntact() -> Bool { true }
  }

  private func destination(_ task: Int64) -> Destination? { destinations.withLock { $0[task] } }

  private func required(_ task: Int64) throws(FolderFailure) -> Destination {
    guard let destination = destination(task) else {
      throw FolderFailure(.other, "the destination of task \(task) is not open")
    }
    return destination
  }

  private func staged(_ name: String, _ file: Descriptor, in directory: Descriptor, found: FileStat?)
    -> StagedFile
  {
    StagedFile(
      name: name, directory: directory, descriptor: file, found: found, hashing: hashing, probe: nil,
      hashThread: hashThread)
  }

  /// What lies there under the task's own name is of an earlier attempt that nothing is known of.
  private func makePartial(_ task: Int64) throws(FolderFailure) -> any PartialFile {
    let directory = try required(task).directory
    let name = partialName(task)
    var number = directory.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    if number == -EEXIST {
      try kernel("remove", name.utf8, directory.use { tarn_unlink($0, cString(name)) })
      number = directory.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    }
    return staged(name, Descriptor(try kernel("create", name.utf8, number)), in: directory, found: nil)
  }

  private func openPartial(_ task: Int64, _ name: String) throws(FolderFailure) -> (any PartialFile)? {
    try OwnDirectory.check(name)
    let directory = try required(task).directory
    guard let stat = try FileStat.at(directory, cString(name)) else { return nil }
    guard stat.kind == .regular, stat.owner == geteuid(), stat.links == 1, name == partialName(task) else {
      throw FolderFailure(.other, "\(name) is no partial file of Tarn's")
    }
    let number = directory.open(cString(name), O_RDWR | O_NONBLOCK | O_NOCTTY)
    if number == -ENOENT { return nil }
    let file = Descriptor(try kernel("open", name.utf8, number))
    return staged(name, file, in: directory, found: try FileStat.of(file, name.utf8))
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
        for (index, item) in items.enumerated() where destination(item.path.task)?.identity == identity {
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
    var number = 0
    let first = leaf
    while true {
      let result = renamer.moveOut(
        destination.directory, staged.name, to: destination.directory, cString(leaf), .rename)
      guard result == -EEXIST else {
        try kernel("move into place", destination.place.path(leaf).utf8, result)
        break
      }
      switch destination.existing {
      case .fail: throw taken(destination, leaf)
      case .replace:
        try exchange(staged.name, destination, leaf)
        return try FileStat.of(file, leaf.utf8).identity
      case .keepBoth:
        if let claimed = destination.claimed { names.giveBack(claimed) }
        number += 1
        leaf = SuggestedName.numbered(first, number)
        try claim(leaf, for: &destination)
        leaf = destination.leaf ?? leaf
        destinations.withLock { $0[item.path.task] = destination }
      }
    }
    return try FileStat.of(file, leaf.utf8).identity
  }

  /// Its name may not be durable: what it took the place of stands there again, and the partial file is the new one.
  private func takeBack(_ item: Installation) {
    guard let destination = destination(item.path.task), let leaf = destination.leaf,
      destination.existing == .replace,
      (try? FileStat.at(destination.directory, cString(item.partial.name))) != nil
    else { return }
    _ = renamer.exchange(
      destination.directory, item.partial.name, destination.directory, cString(leaf), .exchange)
  }

  /// What stood there is under the partial file's name then, until the ledger knows of the new one: see `finish`.
  private func exchange(_ name: String, _ destination: Destination, _ leaf: String) throws(FolderFailure) {
    let path = destination.place.path(leaf)
    if try FileStat.at(destination.directory, cString(leaf))?.kind == .directory {
      throw FolderFailure(
        .exists, "\(Printable.escape(path)) is a directory, which no file takes the place of")
    }
    let result = renamer.exchange(
      destination.directory, name, destination.directory, cString(leaf), .exchange)
    try kernel("replace", path.utf8, result)
  }
}
