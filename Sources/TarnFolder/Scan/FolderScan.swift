import Glibc
import LinuxShim
import TarnCore

/// Walks a folder in the order of whole paths as bytes: the contents of `a` sort as `a/...`, so after `a-b` and `a.txt`. Holds only
/// the names and one descriptor for each directory of one chain. Used by one thread.
final class FolderScan: SnapshotCursor {
  private struct Level {
    let directory: Descriptor
    /// The path of the directory; `nil` for the folder itself.
    let path: RelativePath?
    let names: NameList
    var next = 0
    /// Directories that were returned and whose contents are still to come. Each begins with the previous one (`a`, `a-b`), so the
    /// contents of the last one come first.
    var waiting: [Int] = []
  }

  private enum Step {
    case announce(Int)
    case enter(Int)
    case leave
  }

  private let beneath: Beneath
  private let region: Region
  private var levels: [Level] = []
  private var isStarted = false
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

  init(_ beneath: Beneath, _ region: Region) {
    self.beneath = beneath
    self.region = region
  }

  deinit {
    buffer.deallocate()
  }

  func next() throws(FolderFailure) -> Present? {
    if !isStarted {
      isStarted = true
      if let present = try begin() { return present }
    }
    while let level = levels.indices.last {
      switch step(level) {
      case .announce(let index):
        if let present = try announce(index, level) { return present }
      case .enter(let index):
        let (names, directory) = (levels[level].names, levels[level].directory)
        let path = child(level, index)
        try names.withName(index) { name throws(FolderFailure) in try enter(name, of: directory, path) }
      case .leave:
        levels.removeLast()
      }
    }
    return nil
  }

  /// - Returns: what stands at the path of the region.
  private func begin() throws(FolderFailure) -> Present? {
    guard let path = region.path else {
      try enter(".", of: beneath.root, nil)
      return nil
    }
    guard let present = try beneath.look(path) else { return nil }
    if present.kind == .directory, region.extent > .itself {
      try enter(cString(path.bytes), of: beneath.root, path)
    }
    return present
  }

  private func step(_ level: Int) -> Step {
    let next = levels[level].next
    let isOver = next == levels[level].names.count
    if let directory = levels[level].waiting.last,
      isOver || levels[level].names.areContents(of: directory, before: next)
    {
      levels[level].waiting.removeLast()
      return .enter(directory)
    }
    if isOver { return .leave }
    levels[level].next += 1
    return .announce(next)
  }

  /// - Returns: `nil` when it is Tarn's own, or gone since it was listed.
  private func announce(_ index: Int, _ level: Int) throws(FolderFailure) -> Present? {
    let path = child(level, index)
    // This holds at any depth: a mirror that the user made below this one is separate.
    if path.name.elementsEqual(PathRule.reservedName) { return nil }
    do throws(FolderFailure) {
      let (names, directory) = (levels[level].names, levels[level].directory)
      let stat = try names.withName(index) { name throws(FolderFailure) in
        try FileStat.at(directory, name, cached: true)
      }
      guard let stat else { return nil }
      if stat.kind == .directory, region.extent == .tree { levels[level].waiting.append(index) }
      return stat.present(at: path)
    } catch {
      guard error.code == .permission else { throw error.about(path) }
      // The names can be listed but not looked at, so nothing is known about the whole directory. This is reported once.
      let directory = levels[level].path
      levels.removeLast()
      throw error.about(directory)
    }
  }

  private func enter(
    _ name: UnsafePointer<CChar>, of directory: Descriptor, _ path: RelativePath?
  ) throws(FolderFailure) {
    let number = directory.use { tarn_open_beneath($0, name, O_RDONLY | O_DIRECTORY, 0) }
    // It is gone since it was returned, so it has no contents.
    if number == -ENOENT, path != nil { return }
    let object = path?.bytes ?? [UInt8(ascii: ".")]
    do throws(FolderFailure) {
      let opened = Descriptor(try kernel("read the directory", object, number))
      let names = try NameList(opened, object, buffer: buffer)
      levels.append(Level(directory: opened, path: path, names: names))
    } catch {
      throw error.about(path)
    }
  }

  private func child(_ level: Int, _ index: Int) -> RelativePath {
    levels[level].names.path(index, in: levels[level].path)
  }
}
