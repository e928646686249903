import TarnCore

/// What is in a `MemoryFolder`, behind its lock.
struct MemoryState {
  var tree: [RelativePath: MemoryNode] = [:]
  var partial: [String: MemoryNode] = [:]
  /// Partial files without a name, by inode.
  var unnamed: [UInt64: MemoryFile] = [:]
  var trash: [String: MemoryNode] = [:]
  var unreadable: [RelativePath: FolderFailure] = [:]
  /// Free whatever is written, where there is no `capacity`.
  var told: UInt64 = 1 << 40
  /// Bytes that all files may have together; nil for no limit.
  var capacity: UInt64?

  var free: UInt64 {
    guard let capacity else { return told }
    let nodes = [Array(tree.values), Array(partial.values), Array(trash.values)].joined()
    let files = nodes.map(\.file) + unnamed.values
    return capacity - min(capacity, files.reduce(0) { $0 + UInt64($1.bytes.count) })
  }

  var total: UInt64 = 1 << 41
  /// Files that it can hold altogether; nil for any number.
  var mostFiles: UInt64?

  /// How many more files it can hold; nil for any number.
  var files: UInt64? {
    let count = UInt64(tree.count + partial.count + trash.count + unnamed.count)
    return mostFiles.map { $0 - min($0, count) }
  }

  var intact = true
  var beforeInstall: (@Sendable (RelativePath) -> Void)?
  var beforeDigest: (@Sendable (RelativePath) -> Void)?
  var beforeRemove: (@Sendable (RelativePath) -> Void)?
  private(set) var calls: [MemoryFolder.Call: Int] = [:]
  var planned: [MemoryFolder.Call: [Int: FolderFailure]] = [:]
  /// What directories in the trash hold, by their names there.
  var belowTrash: [String: [MemoryFile]] = [:]
  var lifeline: Lifeline?
  private var lastInode: UInt64 = 1
  private var lastPartial = 0
  /// One tick a change, nanoseconds: two changes never have the same time.
  private var clock: Int64 = 1_700_000_000_000_000_000

  mutating func note(_ call: MemoryFolder.Call) {
    calls[call, default: 0] += 1
  }

  /// Counts a call, and fails it when that was asked for.
  mutating func run(_ call: MemoryFolder.Call) throws(FolderFailure) {
    note(call)
    guard lifeline?.survives() != false else { throw FolderFailure(.inputOutput, "killed") }
    try failAsPlanned(call)
  }

  /// Fails the call that was counted last, when that was asked for.
  private func failAsPlanned(_ call: MemoryFolder.Call) throws(FolderFailure) {
    if let failure = planned[call]?[calls[call, default: 0]] { throw failure }
  }

  mutating func tick() -> Timestamp {
    clock += 1
    return Timestamp(nanoseconds: clock)
  }

  mutating func newFile(_ bytes: [UInt8]) -> MemoryFile {
    lastInode += 1
    let now = tick()
    return MemoryFile(inode: lastInode, bytes: bytes, modified: now, changed: now)
  }

  mutating func nextPartialName() -> String {
    lastPartial += 1
    let text = String(lastPartial, radix: 16)
    return String(repeating: "0", count: 32 - text.count) + text
  }

  static func list(_ nodes: [String: MemoryNode]) -> [(name: String, size: UInt64)] {
    nodes.map { (name: $0.key, size: UInt64($0.value.file.bytes.count)) }.sorted { $0.name < $1.name }
  }

  // MARK: Looking

  /// The object at a path when every directory above it is one.
  func reachable(_ path: RelativePath) -> MemoryNode? {
    var parent = path.parent
    while let directory = parent {
      guard tree[directory]?.kind == .directory else { return nil }
      parent = directory.parent
    }
    return tree[path]
  }

  func present(_ path: RelativePath) -> Present? {
    reachable(path).map {
      Present(
        path: path, kind: $0.kind, identity: $0.file.identity,
        hasOwnMode: $0.kind != .regular || $0.file.mode == 0o644)
    }
  }

  func objects() -> [Present] {
    tree.keys.sorted().compactMap { present($0) }
  }

  // MARK: Changing

  mutating func makeParents(of path: RelativePath) throws(FolderFailure) {
    let segments = path.segments
    for count in 1..<max(1, segments.count) {
      let directory = RelativePath(
        trusted: Array(segments.prefix(count).joined(separator: [UInt8(ascii: "/")])))
      switch tree[directory]?.kind {
      case .directory: continue
      case nil: tree[directory] = MemoryNode(kind: .directory, file: newFile([]))
      case .symbolicLink: throw FolderFailure(.link, "\(directory.printable) is a link", path: path)
      case .regular, .special:
        throw FolderFailure(.notDirectory, "\(directory.printable) is no directory", path: path)
      }
    }
  }

  mutating func removeEmptied(_ path: RelativePath?) throws(FolderFailure) {
    var next = path
    while let directory = next, tree[directory].map({ $0.kind == .directory }) ?? true,
      !tree.keys.contains(where: { directory.isAncestor(of: $0) })
    {
      do throws(FolderFailure) {
        try run(.removeDirectory)
      } catch {
        throw FolderFailure(error.code, error.message, errno: error.errno, path: directory)
      }
      tree[directory] = nil
      next = directory.parent
    }
  }

  mutating func install(_ item: Installation) -> PublishOutcome {
    do throws(FolderFailure) {
      try run(.install)
      guard let partial = item.partial as? MemoryPartial, let sealed = partial.sealedIdentity,
        partial.isOpen, let file = unnamed[sealed.inode] ?? self.partial[partial.name]?.regular,
        file.inode == sealed.inode
      else { throw FolderFailure(.other, "partial/\(item.partial.name) is not sealed", path: item.path) }
      if case .present(let expected) = item.expectation {
        guard let there = reachable(item.path), there.file.identity.isSame(as: expected)
        else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
        // A directory goes with what it holds.
        let below = tree.filter { item.path.isAncestor(of: $0.key) }
        for path in below.keys { tree[path] = nil }
        belowTrash[item.trashName] = below.values.compactMap(\.regular)
        file.touch(&self)
        there.file.touch(&self)
        tree[item.path] = .file(file)
        self.partial[partial.name] = nil
        trash[item.trashName] = there
        return .installed(file.identity, displaced: there.file.identity)
      }
      guard present(item.path) == nil else { return .stale("something stands at \(item.path.printable)") }
      try makeParents(of: item.path)
      file.touch(&self)
      tree[item.path] = .file(file)
      self.partial[partial.name] = nil
      unnamed[file.inode] = nil
      return .installed(file.identity, displaced: nil)
    } catch {
      return .failed(error)
    }
  }

  mutating func remove(_ item: Removal) -> PublishOutcome {
    do throws(FolderFailure) {
      try run(.remove)
      guard let there = reachable(item.path), there.kind == .regular,
        there.file.identity.isSame(as: item.expected)
      else { return .stale("what stands at \(item.path.printable) is not what was planned for") }
      there.file.touch(&self)
      tree[item.path] = nil
      trash[item.trashName] = there
      var leftover: FolderFailure?
      do throws(FolderFailure) { try removeEmptied(item.path.parent) } catch { leftover = error }
      note(.syncRemoval)
      try failAsPlanned(.syncRemoval)
      return .removed(there.file.identity, leftover: leftover)
    } catch {
      return .failed(error)
    }
  }
}

/// An object: regular files keep their bytes, the others only their identity.
struct MemoryNode {
  var kind: Present.Kind
  var file: MemoryFile

  static func file(_ file: MemoryFile) -> MemoryNode { MemoryNode(kind: .regular, file: file) }
  /// nil when it is no regular file.
  var regular: MemoryFile? { kind == .regular ? file : nil }
}

/// An inode. Touched only with the folder's lock held.
final class MemoryFile {
  let inode: UInt64
  var bytes: [UInt8]
  var modified: Timestamp
  var changed: Timestamp
  var mode: UInt32 = 0o644

  init(inode: UInt64, bytes: [UInt8], modified: Timestamp, changed: Timestamp) {
    self.inode = inode
    self.bytes = bytes
    self.modified = modified
    self.changed = changed
  }

  var identity: FileIdentity {
    FileIdentity(device: 1, inode: inode, size: UInt64(bytes.count), modified: modified, changed: changed)
  }

  /// What a rename does to the time of change.
  func touch(_ state: inout MemoryState) {
    changed = state.tick()
  }
}
