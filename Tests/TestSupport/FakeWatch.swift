import Glibc
package import TarnCore
import TarnRuntime

/// A watcher without a thread: its news are what a test tells it to tell, or what `look` finds.
///
/// News are received on the thread that calls `tell` or `look`.
package final class FakeWatch: Watching {
  private struct Entry: Equatable {
    var inode: UInt64
    var mode: UInt32
    var size: Int
    var times: [Int]
    var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
  }

  private struct Folder {
    var path: [UInt8]
    var inode: UInt64?
    var mode: UInt32 = 0
    /// By path below the folder; nil while it is not seen.
    var entries: [[UInt8]: Entry]?
  }

  private let folders = Locked<[WatchID: Folder]>([:])
  private let isClosed = Locked(false)
  private let receiver: @Sendable (WatchNews) -> Void

  package init(receiver: @escaping @Sendable (WatchNews) -> Void) {
    self.receiver = receiver
  }

  /// What is watched: path by id.
  package var watched: [WatchID: [UInt8]] { folders.withLock { $0.mapValues(\.path) } }

  package func watch(_ id: WatchID, path: [UInt8]) {
    if !isClosed.withLock({ $0 }) { folders.withLock { $0[id] = Folder(path: path) } }
  }

  package func forget(_ id: WatchID) {
    folders.withLock { $0[id] = nil }
  }

  package func close() {
    isClosed.withLock { $0 = true }
    folders.withLock { $0 = [:] }
  }

  /// Tells an event of a folder that is watched.
  package func tell(_ id: WatchID, _ event: WatchNews.Event) {
    if folders.withLock({ $0[id] != nil }) { receiver(WatchNews(id, event)) }
  }

  /// Compares all folders with how they were at the last look, and tells the differences: `ready` for one that is seen
  /// for the first time, `blind` (gone) for one that is there no more.
  package func look() {
    for (id, folder) in folders.withLock({ $0 }).sorted(by: { $0.key.number < $1.key.number }) {
      let root = Self.entry(folder.path)
      guard let root, root.isDirectory, folder.inode == nil || folder.inode == root.inode else {
        folders.withLock {
          $0[id]?.entries = nil
          $0[id]?.inode = nil
        }
        if folder.entries != nil {
          tell(id, .blind(.init(root == nil ? .gone : .replaced, "not there any more")))
        }
        continue
      }
      var entries: [[UInt8]: Entry] = [:]
      Self.list(folder.path, [], &entries)
      folders.withLock {
        $0[id]?.entries = entries
        $0[id]?.inode = root.inode
        $0[id]?.mode = root.mode
      }
      guard let before = folder.entries else {
        tell(id, .ready(directories: 1 + entries.values.filter(\.isDirectory).count))
        continue
      }
      if folder.mode != root.mode { tell(id, .tree(nil)) }
      for path in Set(before.keys).union(entries.keys).sorted(by: { compareBytes($0, $1) < 0 })
      where before[path] != entries[path] {
        let isNew = entries[path]?.isDirectory == true && before[path]?.inode != entries[path]?.inode
        tell(id, .init(path: path, isTree: isNew))
      }
    }
  }

  private static func entry(_ path: [UInt8]) -> Entry? {
    var status = stat()
    let result = (path + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { lstat($0.baseAddress!, &status) }
    }
    guard result == 0 else { return nil }
    let times = [status.st_mtim, status.st_ctim].flatMap { [$0.tv_sec, $0.tv_nsec] }
    return Entry(inode: UInt64(status.st_ino), mode: status.st_mode, size: status.st_size, times: times)
  }

  private static func list(_ root: [UInt8], _ below: [UInt8], _ entries: inout [[UInt8]: Entry]) {
    let slash = UInt8(ascii: "/")
    let path = below.isEmpty ? root : root + [slash] + below
    let stream = (path + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { opendir($0.baseAddress!) }
    }
    guard let stream else { return }
    defer { closedir(stream) }
    while let found = readdir(stream) {
      let name = withUnsafeBytes(of: &found.pointee.d_name) { $0.prefix { $0 != 0 }.map { $0 } }
      if [".", "..", ".tarn"].contains(where: { name.elementsEqual($0.utf8) }) { continue }
      let child = below.isEmpty ? name : below + [slash] + name
      guard let entry = entry(root + [slash] + child) else { continue }
      entries[child] = entry
      if entry.isDirectory { list(root, child, &entries) }
    }
  }
}
