import Foundation
package import TarnCore

/// A folder in memory: a tree, `partial/` and `trash/`, with the outcomes of the port and failures on demand.
///
/// Paths come and go through the port; what other programs would do goes through `write`, `makeDirectory`,
/// `makeLink`, `makeSpecial` and `delete`. Any thread.
package final class MemoryFolder: FolderPort, @unchecked Sendable {
  // Safe because `state` is touched only with `lock` held.
  let lock = NSLock()
  private var state: MemoryState
  package let hashing: any Hashing

  package init(hashing: any Hashing = PlainHashing()) {
    self.hashing = hashing
    state = MemoryState()
  }

  func withState<Result>(
    _ body: (inout MemoryState) throws(FolderFailure) -> Result
  ) throws(FolderFailure) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }

  /// The same for bodies that cannot fail.
  func reading<Result>(_ body: (inout MemoryState) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body(&state)
  }

  // MARK: Reading

  package func scan(_ region: Region) -> any SnapshotCursor {
    let (objects, unreadable) = reading { state in
      state.note(.scan)
      return (state.objects().filter { region.contains($0.path) }, state.unreadable)
    }
    return MemoryCursor(objects, unreadable: unreadable)
  }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? {
    try withState { state throws(FolderFailure) in
      try state.run(.look)
      return state.present(path)
    }
  }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    reading { $0.beforeDigest }?(path)
    let found = try withState { state throws(FolderFailure) -> (bytes: [UInt8], identity: FileIdentity)? in
      try state.run(.digest)
      guard let node = state.reachable(path), node.kind == .regular else { return nil }
      return (node.file.bytes, node.file.identity)
    }
    guard watch(found?.bytes.count ?? 0) else { throw FolderFailure(.stopped, "ended on request") }
    return found.map { (hashing.digest(algorithm, of: $0.bytes), $0.identity) }
  }

  package func opening(of path: RelativePath, most: Int) -> [UInt8]? {
    reading { $0.reachable(path)?.regular.map { Array($0.bytes.prefix(most)) } }
  }

  // MARK: Partial files

  package func makePartial(mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile {
    try withState { state throws(FolderFailure) in
      try state.run(.makePartial)
      if state.files == 0 { throw FolderFailure(.noSpace, "No space left on device", errno: 28) }
      let file = state.newFile([])
      if mayBeUnnamed {
        state.unnamed[file.inode] = file
        return MemoryPartial(name: "", folder: self, file: file)
      }
      let name = state.nextPartialName()
      state.partial[name] = .file(file)
      return MemoryPartial(name: name, folder: self, file: file)
    }
  }

  package func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)? {
    try withState { state throws(FolderFailure) in
      try state.run(.openPartial)
      guard let file = state.partial[name]?.regular else { return nil }
      return MemoryPartial(name: name, folder: self, file: file)
    }
  }

  package func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)? {
    let bytes = try withState { state throws(FolderFailure) -> [UInt8]? in
      try state.run(.copyPartial)
      guard let node = state.reachable(path), node.kind == .regular, node.file.identity.isSame(as: expected)
      else { return nil }
      return node.file.bytes
    }
    guard let bytes else { return nil }
    let copy = try makePartial()
    do throws(FolderFailure) {
      _ = try copy.begin(keeping: 0, check: check)
      let result = bytes.withUnsafeBytes { bytes in
        Result { () throws(FolderFailure) in try copy.append(bytes) }
      }
      try result.get()
      return copy
    } catch {
      copy.discard()
      throw error
    }
  }

  package func partials() throws(FolderFailure) -> [(name: String, size: UInt64)] {
    try withState { state throws(FolderFailure) in
      try state.run(.partials)
      return MemoryState.list(state.partial)
    }
  }

  package func partialIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    reading { $0.partial[name]?.file.identity }
  }

  package func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64 {
    reading { $0.partial[name].map { UInt64($0.file.bytes.count) } ?? 0 }
  }

  package func removePartial(_ name: String) throws(FolderFailure) {
    try withState { state throws(FolderFailure) in
      try state.run(.removePartial)
      state.partial[name] = nil
    }
  }

  package func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?] {
    reading { state in
      files.map { file in
        do throws(FolderFailure) {
          try state.run(.makeDurable)
          guard let file = file as? MemoryPartial, file.isOpen else {
            throw FolderFailure(.other, "partial/\(file.name) is not open")
          }
          return nil
        } catch {
          return error
        }
      }
    }
  }

  // MARK: Publishing

  package func install(_ items: [Installation]) -> [PublishOutcome] {
    items.map { item in
      let hook = reading { $0.beforeInstall }
      hook?(item.path)
      return reading { $0.install(item) }
    }
  }

  package func remove(_ items: [Removal]) -> [PublishOutcome] {
    items.map { item in
      let hook = reading { $0.beforeRemove }
      hook?(item.path)
      return reading { $0.remove(item) }
    }
  }

  package func removeEmptied(_ directory: RelativePath) throws(FolderFailure) {
    let result = reading { state in
      Result { () throws(FolderFailure) in try state.removeEmptied(directory) }
    }
    try result.get()
  }

  // MARK: Trash

  package func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)] {
    try withState { state throws(FolderFailure) in
      try state.run(.trashed)
      return MemoryState.list(state.trash)
    }
  }

  package func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity {
    try withState { state throws(FolderFailure) in
      try state.run(.restoreTrash)
      guard let node = state.trash[name] else { throw FolderFailure(.missing, "no trash/\(name)") }
      guard state.present(path) == nil else {
        throw FolderFailure(.exists, "\(path.printable) is in the way")
      }
      try state.makeParents(of: path)
      state.trash[name] = nil
      node.file.touch(&state)
      state.tree[path] = node
      return node.file.identity
    }
  }

  package func trashIdentity(_ name: String) throws(FolderFailure) -> FileIdentity? {
    try withState { state throws(FolderFailure) in
      try state.run(.trashIdentity)
      return state.trash[name]?.file.identity
    }
  }

  package func unstage(_ trashName: String, as name: String) throws(FolderFailure) {
    try withState { state throws(FolderFailure) in
      try state.run(.unstage)
      guard let node = state.trash[trashName] else { throw FolderFailure(.missing, "no trash/\(trashName)") }
      guard state.partial[name] == nil else { throw FolderFailure(.exists, "partial/\(name) is there") }
      state.trash[trashName] = nil
      state.partial[name] = node
    }
  }

  package func removeTrash(_ name: String) throws(FolderFailure) {
    try withState { state throws(FolderFailure) in
      try state.run(.removeTrash)
      state.trash[name] = nil
    }
  }

  // MARK: The file system

  package func restoreMode(
    of path: RelativePath, expected: FileIdentity
  ) throws(FolderFailure) -> (identity: FileIdentity, before: UInt32)? {
    try withState { state throws(FolderFailure) in
      try state.run(.restoreMode)
      guard let file = state.reachable(path)?.regular, file.identity.isSame(as: expected) else { return nil }
      let before = file.mode
      if before != 0o644 {
        file.mode = 0o644
        file.touch(&state)
      }
      return (file.identity, before)
    }
  }

  package func flush() throws(FolderFailure) {
    try withState { state throws(FolderFailure) in try state.run(.flush) }
  }

  package func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?) {
    try withState { state throws(FolderFailure) in
      try state.run(.space)
      return (state.free, state.total, state.files)
    }
  }

  package func isIntact() throws(FolderFailure) -> Bool {
    try withState { state throws(FolderFailure) in
      try state.run(.isIntact)
      return state.intact
    }
  }
}

/// The objects of a moment, in order.
private final class MemoryCursor: SnapshotCursor {
  private var rest: ArraySlice<Present>
  private let unreadable: [RelativePath: FolderFailure]

  init(_ objects: [Present], unreadable: [RelativePath: FolderFailure]) {
    rest = objects[...]
    self.unreadable = unreadable
  }

  private var pending: FolderFailure?

  func next() throws(FolderFailure) -> Present? {
    if let failure = pending {
      pending = nil
      throw failure
    }
    guard let present = rest.popFirst() else { return nil }
    if let failure = unreadable[present.path] {
      rest = rest.filter { !present.path.isAncestor(of: $0.path) }[...]
      pending = failure.path == nil ? failure.aboutDirectory(present.path) : failure
    }
    return present
  }
}

extension FolderFailure {
  fileprivate func aboutDirectory(_ path: RelativePath) -> FolderFailure {
    var failure = self
    failure.path = path
    return failure
  }
}
