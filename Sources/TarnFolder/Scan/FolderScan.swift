import Glibc
import LinuxShim
import TarnCore

/// Walks a folder in the order of whole paths as bytes: what lies in `a` sorts as `a/...`, so after `a-b` and
/// `a.txt`. Holds the names of one chain of directories.
final class FolderScan: SnapshotCursor {
  private struct Level {
    var directory: Descriptor
    /// nil for the folder itself.
    var path: RelativePath?
    var names: NameList
    var next = 0
  }

  private let beneath: Beneath
  private var levels: [Level] = []
  private var failure: FolderFailure?
  /// A directory that was announced, to be entered when its contents' turn comes.
  private var isStarted = false

  init(beneath: Beneath) {
    self.beneath = beneath
  }

  func next() throws(FolderFailure) -> Present? {
    if !isStarted {
      isStarted = true
      try enter(nil)
    }
    while let level = levels.last {
      guard level.next < level.names.count else {
        levels.removeLast()
        continue
      }
      levels[levels.count - 1].next += 1
      let (name, isContents) = level.names[level.next]
      let path = Self.child(of: level.path, name)
      if isContents {
        try enter(path)
        continue
      }
      if level.path == nil, name.elementsEqual(PathRule.reservedName) { continue }
      guard let stat = try FileStat.at(level.directory, cString(name), cached: true) else { continue }
      return Present(path: path, kind: stat.kind, identity: stat.identity)
    }
    return nil
  }

  private func enter(_ path: RelativePath?) throws(FolderFailure) {
    if path?.bytes == PathRule.reservedName { return }
    do throws(FolderFailure) {
      // Gone, or replaced by something else, since it was listed: then nothing lies in it.
      guard let directory = try path == nil ? freshRoot() : beneath.directory(path) else { return }
      levels.append(Level(directory: directory, path: path, names: try NameList(directory, path)))
    } catch {
      if error.code == .notDirectory || error.code == .link { return }
      throw error.about(path)
    }
  }

  /// The folder under a descriptor of its own: listing moves the offset of the one it is done with.
  private func freshRoot() throws(FolderFailure) -> Descriptor? {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    return Descriptor(
      try kernel("open the folder", [UInt8(ascii: ".")], tarn_open_at(beneath.root.number, ".", flags, 0)))
  }

  private static func child(of parent: RelativePath?, _ name: ArraySlice<UInt8>) -> RelativePath {
    guard let parent else { return RelativePath(trusted: Array(name)) }
    return RelativePath(trusted: parent.bytes + [UInt8(ascii: "/")] + name)
  }
}

/// The names in one directory, sorted, each directory twice: as itself, and with a slash as its contents.
private struct NameList {
  private var bytes: [UInt8] = []
  private var ranges: [Range<Int>] = []

  var count: Int { ranges.count }

  /// The name, and whether the contents of that directory are meant.
  subscript(index: Int) -> (name: ArraySlice<UInt8>, isContents: Bool) {
    let name = bytes[ranges[index]]
    return name.last == UInt8(ascii: "/") ? (name.dropLast(), true) : (name, false)
  }

  init(_ directory: Descriptor, _ path: RelativePath?) throws(FolderFailure) {
    let size = 64 << 10
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try kernel(
        "list", path?.bytes ?? [UInt8(ascii: ".")],
        tarn_read_directory(directory.number, buffer.baseAddress, size))
      if count == 0 { break }
      var offset = 0
      while offset < count { try add(buffer, at: &offset, directory) }
    }
    sort()
  }

  private mutating func add(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: inout Int, _ directory: Descriptor
  ) throws(FolderFailure) {
    let type = buffer.load(fromByteOffset: offset + 18, as: UInt8.self)
    var next = 0
    guard let name = tarn_directory_name(buffer.baseAddress, offset, &next) else {
      offset = Int.max
      return
    }
    offset = next
    let length = strlen(name)
    let text = UnsafeRawBufferPointer(start: name, count: length)
    let isDot = text.elementsEqual([UInt8(ascii: ".")])
    if isDot || text.elementsEqual([UInt8(ascii: "."), UInt8(ascii: ".")]) { return }
    append(text, slash: false)
    var isDirectory = type == 4
    if type == 0 { isDirectory = try FileStat.at(directory, cString(text))?.kind == .directory }
    if isDirectory { append(text, slash: true) }
  }

  private mutating func append(_ name: UnsafeRawBufferPointer, slash: Bool) {
    let start = bytes.count
    bytes.append(contentsOf: name)
    if slash { bytes.append(UInt8(ascii: "/")) }
    ranges.append(start..<bytes.count)
  }

  private mutating func sort() {
    bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      ranges.sort { left, right in
        let order = memcmp(base + left.lowerBound, base + right.lowerBound, min(left.count, right.count))
        return order == 0 ? left.count < right.count : order < 0
      }
    }
  }
}
