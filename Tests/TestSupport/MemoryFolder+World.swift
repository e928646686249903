package import TarnCore

/// What tests do to the folder behind Tarn's back, ask of it, and make fail.
extension MemoryFolder {
  /// The calls of the port that are counted and can be made to fail.
  package enum Call: String, Sendable, CaseIterable {
    case scan, look, digest, makePartial, openPartial, copyPartial, partials, removePartial
    case begin, append, sync, seal
    /// Counted per file or item of the group.
    case makeDurable, install, remove, removeDirectory
    /// Of the directories, once a file is in the trash.
    case syncRemoval
    case trashed, restoreTrash, trashIdentity, unstage, removeTrash, restoreMode, flush, space, isIntact
  }

  /// The `number`th call of that kind from now (1 is the next) fails and changes nothing. `scan` cannot fail:
  /// see `makeUnreadable`.
  package func fail(
    _ call: Call, number: Int = 1, with failure: FolderFailure = FolderFailure(.inputOutput, "as told")
  ) {
    reading { state in
      state.planned[call, default: [:]][state.calls[call, default: 0] + number] = failure
    }
  }

  package func hang(on lifeline: Lifeline) { reading { $0.lifeline = lifeline } }

  /// How often a call was made.
  package func count(_ call: Call) -> Int {
    reading { $0.calls[call, default: 0] }
  }

  /// A scan throws `failure` in place of the contents of that directory.
  package func makeUnreadable(
    _ path: RelativePath, _ failure: FolderFailure? = FolderFailure(.permission, "as told")
  ) {
    reading { $0.unreadable[path] = failure }
  }

  /// Called without a lock before each item: the place for what somebody else does at that moment.
  package func beforeInstall(_ body: (@Sendable (RelativePath) -> Void)?) {
    reading { $0.beforeInstall = body }
  }

  package func beforeDigest(_ body: (@Sendable (RelativePath) -> Void)?) {
    reading { $0.beforeDigest = body }
  }

  package func beforeRemove(_ body: (@Sendable (RelativePath) -> Void)?) {
    reading { $0.beforeRemove = body }
  }

  /// - Parameter files: that it can hold altogether; nil for any number.
  package func setFiles(_ files: UInt64?) {
    reading { $0.mostFiles = files }
  }

  package func setSpace(free: UInt64, total: UInt64 = 1 << 41) {
    reading {
      $0.told = free
      $0.total = total
    }
  }

  /// A disk that fills up with what is written: so many bytes for all files together.
  package func setCapacity(_ bytes: UInt64) {
    reading {
      $0.capacity = bytes
      $0.total = bytes
    }
  }

  package func setIntact(_ isIntact: Bool) {
    reading { $0.intact = isIntact }
  }

  // MARK: Other programs

  /// A file by somebody else: a new inode, with the directories above it.
  @discardableResult
  package func write(_ path: RelativePath, _ bytes: [UInt8], modified: Timestamp? = nil) -> FileIdentity {
    reading { state in
      let file = state.newFile(bytes)
      if let modified { file.modified = modified }
      state.place(MemoryNode(kind: .regular, file: file), path)
      return file.identity
    }
  }

  /// An edit in place: the same inode with other bytes.
  package func edit(_ path: RelativePath, _ bytes: [UInt8]) {
    reading { state in
      guard let file = state.tree[path]?.regular else { return }
      file.bytes = bytes
      file.modified = state.tick()
      file.changed = file.modified
    }
  }

  /// Writes a file as a user does: into the one that stands there, or anew where its place is free.
  ///
  /// - Returns: whether it could, and what it held before.
  package func overwrite(_ path: RelativePath, _ bytes: [UInt8]) -> (isDone: Bool, old: [UInt8]?) {
    reading { state in
      if let file = state.tree[path]?.regular {
        defer {
          file.bytes = bytes
          file.modified = state.tick()
          file.changed = file.modified
        }
        return (true, file.bytes)
      }
      var parent = path.parent
      while let directory = parent {
        if state.tree[directory]?.regular != nil { return (false, nil) }
        parent = directory.parent
      }
      guard state.tree[path] == nil, !state.tree.keys.contains(where: path.isAncestor) else {
        return (false, nil)
      }
      state.place(MemoryNode(kind: .regular, file: state.newFile(bytes)), path)
      return (true, nil)
    }
  }

  /// The same bytes at another time.
  package func touch(_ path: RelativePath) {
    reading { state in
      guard let file = state.tree[path]?.regular else { return }
      file.modified = state.tick()
      file.changed = file.modified
    }
  }

  /// A descriptor for writing, as another program holds it.
  package struct OpenFile: @unchecked Sendable {
    // Safe because the file is touched only with the folder's lock held.
    fileprivate let file: MemoryFile
  }

  /// nil when no regular file stands there.
  package func open(_ path: RelativePath) -> OpenFile? {
    reading { $0.reachable(path)?.regular.map(OpenFile.init) }
  }

  /// Writes into the file, wherever it is by now.
  ///
  /// - Returns: what it held before; nil, and nothing is written, when no name leads to it any more.
  package func write(_ open: OpenFile, _ bytes: [UInt8]) -> [UInt8]? {
    reading { state in
      let nodes = [Array(state.tree.values), Array(state.partial.values), Array(state.trash.values)].joined()
      guard nodes.contains(where: { $0.file === open.file }) else { return nil }
      defer {
        open.file.bytes = bytes
        open.file.modified = state.tick()
        open.file.changed = open.file.modified
      }
      return open.file.bytes
    }
  }

  /// Another mode or number of links: only the time of change moves.
  package func changeMode(_ open: OpenFile) {
    reading { state in
      open.file.mode = 0o600
      open.file.touch(&state)
    }
  }

  /// Of the regular file there.
  package func mode(_ path: RelativePath) -> UInt32? {
    reading { $0.reachable(path)?.regular?.mode }
  }

  /// Moves a file, as `mv` does: the same inode at another path.
  package func rename(_ path: RelativePath, to target: RelativePath) {
    reading { $0.tree[target] = $0.tree.removeValue(forKey: path) }
  }

  package func makeDirectory(_ path: RelativePath) { make(.directory, path) }
  package func makeLink(_ path: RelativePath) { make(.symbolicLink, path) }
  package func makeSpecial(_ path: RelativePath) { make(.special, path) }

  private func make(_ kind: Present.Kind, _ path: RelativePath) {
    reading { state in state.place(MemoryNode(kind: kind, file: state.newFile([])), path) }
  }

  /// The object and all below it.
  ///
  /// - Returns: what the files held.
  @discardableResult
  package func delete(_ path: RelativePath) -> [[UInt8]] {
    reading { state in
      let gone = state.tree.filter { $0.key == path || path.isAncestor(of: $0.key) }
      for path in gone.keys { state.tree[path] = nil }
      return gone.values.compactMap { $0.regular?.bytes }
    }
  }

  // MARK: Looking

  /// nil when no regular file stands there.
  package func contents(_ path: RelativePath) -> [UInt8]? {
    reading { $0.reachable(path)?.regular?.bytes }
  }

  package func trashContents(_ name: String) -> [UInt8]? {
    reading { $0.trash[name]?.regular?.bytes }
  }

  /// Of all files in a directory in the trash.
  package func trashContents(below name: String) -> [[UInt8]] {
    reading { state in
      state.trash[name] == nil ? [] : state.belowTrash[name, default: []].map(\.bytes)
    }
  }

  package func partialContents(_ name: String) -> [UInt8]? {
    reading { $0.partial[name]?.regular?.bytes }
  }

  /// Every path, sorted, directories too.
  package func paths() -> [RelativePath] {
    reading { $0.tree.keys.sorted() }
  }

  // MARK: What a crash leaves

  /// A new file where it waits for the exchange.
  package func stage(_ name: String, as trashName: String) {
    reading { $0.trash[trashName] = $0.partial.removeValue(forKey: name) }
  }

  /// A file in `partial/` by an earlier process.
  package func leavePartial(_ name: String, _ bytes: [UInt8]) {
    reading { $0.partial[name] = .file($0.newFile(bytes)) }
  }

  package func leaveTrash(_ name: String, _ bytes: [UInt8]) {
    reading { $0.trash[name] = .file($0.newFile(bytes)) }
  }
}

extension MemoryState {
  /// Puts a node where it is told, whatever stood there; what stands above it becomes directories.
  mutating func place(_ node: MemoryNode, _ path: RelativePath) {
    var parent = path.parent
    while let directory = parent {
      if tree[directory]?.kind != .directory {
        tree[directory] = MemoryNode(kind: .directory, file: newFile([]))
      }
      parent = directory.parent
    }
    tree[path] = node
  }
}
