import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// The folder of one mirror on disk. Made by `FolderHome.open`. Any thread.
package final class LocalFolder: FolderPort {
  private let home: FolderHome
  private let beneath: Beneath
  private let partial: OwnDirectory
  private let trash: OwnDirectory
  private let hashing: any Hashing
  private let random: any RandomSource
  private let partialNames: PartialNames
  private let unnamedFiles: UnnamedFiles
  private let renamer: Renamer
  private let hashThread = HashThread(name: "tarn-hash")

  init(
    home: FolderHome, root: Descriptor, partial: Descriptor, trash: Descriptor, hashing: any Hashing,
    random: any RandomSource, renamer: Renamer
  ) {
    self.home = home
    beneath = Beneath(root: root)
    self.partial = OwnDirectory(descriptor: partial, label: "partial", path: "\(home.stateDirectory)/partial")
    self.trash = OwnDirectory(descriptor: trash, label: "trash", path: "\(home.stateDirectory)/trash")
    self.hashing = hashing
    self.random = random
    partialNames = PartialNames(random)
    unnamedFiles = UnnamedFiles(partial, isWanted: renamer.hasFlags)
    self.renamer = renamer
    // A group keeps its files open until they are renamed.
    _ = tarn_raise_open_files()
  }

  package func scan(_ region: Region) -> any SnapshotCursor { ScanAhead(FolderScan(beneath, region)) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { try beneath.look(path) }

  /// Looks at a path below a folder that is not open, and returns its permission bits as well. `nil` also for what cannot be looked
  /// at.
  package static func look(_ path: RelativePath, in folder: String) -> (Present, permissions: UInt32)? {
    guard let stat = try? FileStat.notFollowing(Array(folder.utf8) + [UInt8(ascii: "/")] + path.bytes) else {
      return nil
    }
    return (stat.present(at: path), stat.permissions)
  }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try FolderReader(beneath: beneath, hashing: hashing).digest(of: path, algorithm, watch: watch)
  }

  package func opening(of path: RelativePath, most: Int) -> [UInt8]? {
    guard let file = try? beneath.file(path) else { return nil }
    return readOpening(file, most: most)
  }

  // MARK: The file system

  package func flush() throws(FolderFailure) {
    let result = beneath.root.use { number in
      probed(.syncFileSystem, renamer.probe) { tarn_sync_file_system(number) }
    }
    try kernel("make durable", home.folder.utf8, result)
  }

  package func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?) {
    var space = tarn_space_left()
    try kernel("ask for the space of", home.folder.utf8, beneath.root.use { tarn_space($0, &space) })
    return (space.free_bytes, space.total_bytes, space.total_files == 0 ? nil : space.free_files)
  }

  package func isIntact() throws(FolderFailure) -> Bool {
    do throws(FolderFailure) {
      return try isTheSame()
    } catch {
      switch error.code {
      // Something else stands in the way by now.
      case .missing, .notDirectory, .link: return false
      default: throw error
      }
    }
  }

  private func isTheSame() throws(FolderFailure) -> Bool {
    guard let there = try FileStat.following(home.folder),
      there.isSameObject(as: try FileStat.of(beneath.root, home.folder.utf8)),
      case .mirror(let now) = try FolderHome.inspect(folder: home.folder, state: nil), now.id == home.id,
      let partials = try FileStat.following(now.stateDirectory + "/partial")
    else { return false }
    return partials.isSameObject(as: try FileStat.of(partial.descriptor, partial.label.utf8))
  }
}

/// The files that are being transferred, in `partial/`.
extension LocalFolder {
  package func makePartial(mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile {
    if mayBeUnnamed, let file = unnamedFiles.make(mode: Self.mode, trial: partialNames.next) {
      return staged("", file, found: nil)
    }
    return try makeStaged()
  }

  private func makeStaged() throws(FolderFailure) -> StagedFile {
    let name = partialNames.next()
    // Nobody else can enter `partial/`, so the file has its final mode from the beginning, as far as the umask allows.
    let number = partial.descriptor.open(cString(name), O_RDWR | O_CREAT | O_EXCL, mode: Self.mode)
    return staged(name, Descriptor(try kernel("create", partial.object(name), number)), found: nil)
  }

  package func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)? {
    try OwnDirectory.check(name)
    // Looks before opening: opening would wake a device, and an object that was displaced into this name must not be written to.
    guard let stat = try partial.stat(name) else { return nil }
    guard stat.kind == .regular, stat.owner == geteuid(), stat.links == 1 else {
      throw FolderFailure(.other, "partial/\(name) is not one of Tarn's partial files")
    }
    let number = partial.descriptor.open(cString(name), O_RDWR | O_NONBLOCK | O_NOCTTY)
    if number == -ENOENT { return nil }
    let file = Descriptor(try kernel("open", partial.object(name), number))
    return staged(name, file, found: try FileStat.of(file, partial.object(name)))
  }

  private func staged(_ name: String, _ file: Descriptor, found: FileStat?) -> StagedFile {
    StagedFile(
      name: name, directory: partial.descriptor, descriptor: file, found: found, hashing: hashing,
      probe: renamer.probe, hashThread: hashThread)
  }

  package func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)? {
    guard let source = try beneath.file(path),
      try FileStat.of(source, path.bytes).identity.isSame(as: expected)
    else { return nil }
    if let size = check.size, size != expected.size {
      throw FolderFailure(
        .sizeMismatch,
        "\(path.printable) has \(Units.count(expected.size, "byte")), the feed says \(Units.grouped(size))",
        path: path)
    }
    let copy = try makeStaged()
    do throws(FolderFailure) {
      try fill(copy, from: source, path, size: expected.size, check)
      guard try FileStat.of(source, path.bytes).identity.isSame(as: expected) else {
        copy.discard()
        return nil
      }
      return copy
    } catch {
      copy.discard()
      throw error
    }
  }

  /// Shares the blocks where the file system supports it, and reads them for the digest. Otherwise copies, and hashes what is
  /// written.
  private func fill(
    _ copy: StagedFile, from source: Descriptor, _ path: RelativePath, size: UInt64, _ check: ContentCheck
  ) throws(FolderFailure) {
    let target = try copy.opened()
    let isShared = target.use { target in source.use { tarn_clone(target, $0) } } == 0
    if isShared { copy.wasFilled() }
    let kept = try copy.begin(keeping: isShared ? size : 0, check: check)
    guard isShared else {
      try readAll(source, path.bytes) { bytes throws(FolderFailure) in try copy.append(bytes) }
      return
    }
    if kept != size {
      throw FolderFailure(
        .pieceMismatch, "the piece at byte \(kept) of \(path.printable) is not what the feed says",
        goodPrefix: kept, path: path)
    }
  }

  package func partials() throws(FolderFailure) -> [(name: String, size: UInt64)] { try partial.list() }

  package func partialIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    try OwnDirectory.check(name)
    return try partial.stat(name)?.identity
  }

  package func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64 {
    try OwnDirectory.check(name)
    return try partial.stat(name)?.allocated ?? 0
  }

  package func removePartial(_ name: String) throws(FolderFailure) { try partial.remove(name) }
}

/// Makes the contents of a group of files durable together.
extension LocalFolder {
  /// The number of files below which an fsync for each costs less than a syncfs.
  private static let smallGroup = 4

  /// Calls syncfs once for a group: 20,000 files take a quarter of a second instead of five.
  ///
  /// The kernel reports an error of a file system once per descriptor, and not at all when another process was told before this
  /// descriptor was opened. So every file is also asked for its own errors: its descriptor has been open since before the first
  /// byte.
  package func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] {
    let isSynced = files.count >= Self.smallGroup && syncFileSystem()
    return files.map { file in
      guard let staged = file as? StagedFile else {
        return FolderFailure(.other, "partial/\(file.name) is not a file of this folder")
      }
      do throws(FolderFailure) {
        if isSynced { try staged.checkWriteback() } else { try staged.syncAll() }
        return nil
      } catch {
        return error
      }
    }
  }

  /// - Returns: false when some file may not be durable. Then each is synced by itself.
  private func syncFileSystem() -> Bool {
    let number = partial.descriptor.open(cString("."), O_RDONLY | O_DIRECTORY)
    guard number >= 0 else { return false }
    let fresh = Descriptor(number)
    return probed(.syncFileSystem, renamer.probe) { fresh.use(tarn_sync_file_system) } == 0
  }
}

/// Gives files their final names.
extension LocalFolder {
  package func install(_ items: [Installation]) -> [PublishOutcome] {
    let touched = TouchedDirectories(beneath, renamer.probe)
    var outcomes: [PublishOutcome] = []
    for (index, item) in items.enumerated() {
      touched.beginItem()
      let outcome = install(item, index, touched)
      if case .installed = outcome {} else { touched.removeMade() }
      outcomes.append(outcome)
    }
    let hasLeft = zip(items, outcomes).contains { !$0.partial.name.isEmpty && $1.isInstalled }
    if hasLeft { touched.touch(partial) }
    if outcomes.contains(where: { $0.hasDisplaced }) { touched.touch(trash) }
    touched.sync(items: items.count)
    for (index, failure) in touched.failures where outcomes[index].isInstalled {
      outcomes[index] = .failed(failure)
    }
    return outcomes
  }

  private func install(_ item: Installation, _ index: Int, _ touched: TouchedDirectories) -> PublishOutcome {
    do throws(FolderFailure) {
      let place = try Beneath.Place(item.path)
      if item.expectation != .absent || !item.trashName.isEmpty { try OwnDirectory.check(item.trashName) }
      let (file, sealed) = try checked(item.partial)
      switch item.expectation {
      case .absent:
        let parent = try touched.make(place.parent, for: index)
        let result =
          file.isUnnamed
          ? renamer.name(try file.opened(), in: parent, place.leaf, .rename)
          : renamer.moveOut(partial.descriptor, file.name, to: parent, place.leaf, .rename)
        if result == -EEXIST { return .stale("something stands at \(item.path.printable)") }
        try kernel("move into place", item.path.bytes, result)
        touched.touch(place.parent, for: index)
        return .installed(try placed(file, sealed), displaced: nil)
      case .present(let expected):
        guard let parent = try presentParent(place, touched),
          let there = try FileStat.at(parent, place.leaf), there.identity.isSame(as: expected)
        else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
        return try exchange(item, place, parent, index, touched)
      }
    } catch {
      return .failed(error.about(item.path))
    }
  }

  /// Opens the directory of a place; `nil` when there is no such directory.
  func presentParent(
    _ place: Beneath.Place, _ touched: TouchedDirectories
  ) throws(FolderFailure) -> Descriptor? {
    do throws(FolderFailure) {
      return try touched.open(place.parent)
    } catch {
      switch error.code {
      case .missing, .notDirectory, .link: return nil
      default: throw error
      }
    }
  }

  /// Checks that the file is sealed, unchanged since, and the one that its name in `partial/` stands for.
  private func checked(_ file: any PartialFile) throws(FolderFailure) -> (StagedFile, Sealed) {
    guard let staged = file as? StagedFile, let sealed = staged.sealed else {
      throw FolderFailure(.other, "partial/\(file.name) is not sealed")
    }
    // Opened first: then a name for the sealed inode stands for the file that is open.
    _ = try staged.opened()
    // Nobody else can reach a file without a name.
    if staged.isUnnamed { return (staged, sealed) }
    guard let named = try partial.stat(staged.name), named.identity.isSameContents(as: sealed.identity)
    else { throw FolderFailure(.other, "partial/\(file.name) was changed by somebody else") }
    return (staged, sealed)
  }

  /// Returns the identity under the final name. Size and time are those that were checked, so that a write after the rename looks
  /// like an edit.
  private func placed(_ file: StagedFile, _ sealed: Sealed) throws(FolderFailure) -> FileIdentity {
    var identity = sealed.identity
    let now = try FileStat.of(try file.opened(), file.label)
    // When its mode was changed already, the file has to look touched.
    if now.permissions == Self.mode { identity.changed = now.identity.changed }
    return identity
  }

  // MARK: Replacing

  /// Exchanges the new file, from the trash, with what is there. What is displaced, of whatever kind, is in the trash at once, so
  /// that neither a race nor a kill between two calls leaves it anywhere else.
  private func exchange(
    _ item: Installation, _ place: Beneath.Place, _ parent: Descriptor, _ index: Int,
    _ touched: TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let (file, sealed) = try checked(item.partial)
    let staged = renamer.moveIn(
      partial.descriptor, cString(file.name), to: trash.descriptor, item.trashName, .stage)
    try kernel("stage in the trash", item.path.bytes, staged)
    let result = renamer.exchange(trash.descriptor, item.trashName, parent, place.leaf, .exchange)
    guard result >= 0 else {
      _ = renamer.moveIn(
        trash.descriptor, cString(item.trashName), to: partial.descriptor, file.name, .moveBack)
      return try notExchanged(item, -result)
    }
    touched.touch(place.parent, for: index)
    guard let displaced = try trash.stat(item.trashName) else {
      throw FolderFailure(.other, "what stood at \(item.path.printable) is gone from trash/\(item.trashName)")
    }
    return .installed(try placed(file, sealed), displaced: displaced.identity)
  }

  private func notExchanged(_ item: Installation, _ errno: Int32) throws(FolderFailure) -> PublishOutcome {
    if errno == ENOENT { return .stale("what stood at \(item.path.printable) is gone") }
    if Renamer.isUnsupported(-errno) {
      throw FolderFailure(
        .other,
        "cannot replace \(item.path.printable): the file system cannot exchange two names; move away what is there, and the next pass fetches it",
        errno: errno)
    }
    throw FolderFailure(cannot: "move into place", item.path.bytes, errno: errno, path: item.path)
  }
}

extension PublishOutcome {
  fileprivate var isInstalled: Bool {
    if case .installed = self { true } else { false }
  }

  fileprivate var hasDisplaced: Bool {
    if case .installed(_, .some) = self { true } else { false }
  }
}

/// Moves recorded files out of the folder: into the trash, never unlinked.
extension LocalFolder {
  package func remove(_ items: [Removal]) -> [PublishOutcome] {
    let touched = TouchedDirectories(beneath, renamer.probe)
    var outcomes: [PublishOutcome] = []
    for (index, item) in items.enumerated() {
      touched.beginItem()
      do throws(FolderFailure) {
        outcomes.append(try remove(item, index, touched))
      } catch {
        outcomes.append(.failed(error.about(item.path)))
      }
    }
    removeEmptied(items, &outcomes, touched)
    if outcomes.contains(where: { $0.isRemoved }) { touched.touch(trash) }
    touched.sync(items: items.count)
    for (index, failure) in touched.failures where outcomes[index].isRemoved {
      outcomes[index] = .failed(failure)
    }
    return outcomes
  }

  package func removeEmptied(_ directory: RelativePath) throws(FolderFailure) {
    let touched = TouchedDirectories(beneath, renamer.probe)
    var next: RelativePath? = directory
    while let path = next {
      do throws(FolderFailure) {
        guard try touched.removeIfEmpty(path, for: 0) else { break }
      } catch {
        throw error.about(path)
      }
      next = path.parent
    }
    touched.sync(items: 1)
    if let failure = touched.failures[0] { throw failure }
  }

  private func remove(
    _ item: Removal, _ index: Int, _ touched: TouchedDirectories
  ) throws(FolderFailure) -> PublishOutcome {
    let place = try Beneath.Place(item.path)
    try OwnDirectory.check(item.trashName)
    guard let parent = try presentParent(place, touched),
      let there = try FileStat.at(parent, place.leaf), there.kind == .regular,
      there.identity.isSame(as: item.expected)
    else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
    let moved = renamer.moveIn(parent, place.leaf, to: trash.descriptor, item.trashName, .moveToTrash)
    if moved == -ENOENT { return .stale("\(item.path.printable) is gone") }
    try kernel("move to the trash", item.path.bytes, moved)
    touched.touch(place.parent, for: index)
    guard let found = try trash.stat(item.trashName) else {
      throw FolderFailure(.other, "\(item.path.printable) is gone from the trash")
    }
    if found.kind == .regular, found.identity.isSameContents(as: item.expected) {
      return .removed(found.identity, leftover: nil)
    }
    // The object was replaced just before, so it is moved back. If its place is taken by now, it stays in the trash, and its
    // identity shows that it is not the expected object.
    touched.touch(trash)
    let back = renamer.moveOut(trash.descriptor, item.trashName, to: parent, place.leaf, .moveBack)
    return back == 0
      ? .stale("\(item.path.printable) was replaced") : .removed(found.identity, leftover: nil)
  }

  /// Removes the directories that are empty now, innermost first, never the folder itself. The outcome of an item says why one of
  /// its directories stays.
  private func removeEmptied(
    _ items: [Removal], _ outcomes: inout [PublishOutcome], _ touched: TouchedDirectories
  ) {
    var left: [RelativePath: (index: Int, failure: FolderFailure)] = [:]
    for (index, item) in items.enumerated() where outcomes[index].isRemoved {
      touched.beginItem()
      var parent = item.path.parent
      while let directory = parent {
        do throws(FolderFailure) {
          guard try touched.removeIfEmpty(directory, for: index) else { break }
          left[directory] = nil
        } catch {
          left[directory] = (index, error.about(directory))
          break
        }
        parent = directory.parent
      }
    }
    for (index, failure) in left.values {
      if case .removed(let identity, _) = outcomes[index] {
        outcomes[index] = .removed(identity, leftover: failure)
      }
    }
  }
}

extension PublishOutcome {
  fileprivate var isRemoved: Bool {
    if case .removed = self { true } else { false }
  }
}

/// The displaced or removed objects, in `trash/` until they expire.
extension LocalFolder {
  package func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)] { try trash.list() }

  package func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity {
    try OwnDirectory.check(name)
    let place = try Beneath.Place(path)
    guard try trash.stat(name) != nil else {
      throw FolderFailure(.missing, "trash/\(name) is not there", path: path)
    }
    let touched = TouchedDirectories(beneath, renamer.probe)
    do throws(FolderFailure) {
      let parent = try touched.make(place.parent, for: 0)
      let result = renamer.moveOut(trash.descriptor, name, to: parent, place.leaf, .rename)
      try kernel("restore", path.bytes, result)
      touched.touch(place.parent, for: 0)
      touched.touch(trash)
      touched.sync(items: 1)
      if let failure = touched.failures[0] { throw failure }
      guard let stat = try FileStat.at(parent, place.leaf) else {
        throw FolderFailure(.missing, "\(path.printable) is gone again")
      }
      return stat.identity
    } catch {
      touched.removeMade()
      throw error.about(path)
    }
  }

  package func trashIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    try OwnDirectory.check(name)
    return try trash.stat(name)?.identity
  }

  package func unstage(_ trashName: String, as name: String) throws(FolderFailure) {
    try OwnDirectory.check(name)
    try OwnDirectory.check(trashName)
    let result = renamer.moveIn(
      trash.descriptor, cString(trashName), to: partial.descriptor, name, .moveBack)
    try kernel("move back", trash.object(trashName), result)
    let touched = TouchedDirectories(beneath, renamer.probe)
    touched.touch(partial)
    touched.touch(trash)
    touched.sync(items: 1)
    if let failure = touched.failures[0] { throw failure }
  }

  package func removeTrash(_ name: String) throws(FolderFailure) {
    try trash.removeTree(name) { random.name() }
  }
}

/// Restores the mode of Tarn's files.
extension LocalFolder {
  /// The mode of files that Tarn places: never executable, whatever a feed says.
  static let mode: UInt32 = 0o644

  package func restoreMode(
    of path: RelativePath, expected: FileIdentity
  ) throws(FolderFailure) -> (identity: FileIdentity, before: UInt32)? {
    do throws(FolderFailure) {
      let place = try Beneath.Place(path)
      guard let parent = try beneath.parent(of: place) else { return nil }
      // Opened without the right to read: a mode that forbids reading is just what is to be restored.
      let number = parent.open(place.leaf, tarn_path_only)
      if number == -ENOENT { return nil }
      let file = Descriptor(try kernel("open", path.bytes, number))
      let found = try FileStat.of(file, path.bytes)
      guard found.kind == .regular, found.identity.isSame(as: expected) else { return nil }
      guard found.permissions != Self.mode else { return (found.identity, found.permissions) }
      try kernel("set the mode of", path.bytes, file.use { tarn_set_mode_of_path($0, Self.mode) })
      return (try FileStat.of(file, path.bytes).identity, found.permissions)
    } catch {
      throw error.about(path)
    }
  }
}
