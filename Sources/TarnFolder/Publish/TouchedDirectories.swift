import Glibc
import LinuxShim
import TarnCore

/// The directories that one call works in: each is opened once, made when it is missing, and fsynced once at the end. Used by one
/// thread.
final class TouchedDirectories {
  private final class Touched {
    let descriptor: Descriptor
    /// The items whose names depend on the directory.
    var items: [Int] = []

    init(descriptor: Descriptor) {
      self.descriptor = descriptor
    }
  }

  /// The most directories that stay open at a time. Beyond that they are made durable early.
  private static let limit = 256

  private let beneath: Beneath
  private let probe: FolderProbe?
  private var directories: [RelativePath?: Touched] = [:]
  private var own: [OwnDirectory] = []
  /// The directories that were made for the current item, outermost first.
  private var made: [RelativePath] = []
  /// The items whose directories could not be made durable, with the reason.
  private(set) var failures: [Int: FolderFailure] = [:]

  init(_ beneath: Beneath, _ probe: FolderProbe?) {
    self.beneath = beneath
    self.probe = probe
  }

  /// Begins the next item. Must be called between items.
  func beginItem() {
    made = []
    if directories.count > Self.limit {
      syncDirectories()
      directories = [:]
    }
  }

  /// Opens an existing directory.
  func open(_ path: RelativePath?) throws(FolderFailure) -> Descriptor {
    if let known = directories[path] { return known.descriptor }
    let opened = try beneath.directory(path)
    directories[path] = Touched(descriptor: opened)
    return opened
  }

  /// Opens a directory, and makes it and its parents when they are missing: with mode 0755, whatever the umask is.
  func make(_ path: RelativePath?, for item: Int) throws(FolderFailure) -> Descriptor {
    do throws(FolderFailure) {
      return try open(path)
    } catch {
      guard error.code == .missing, let path else { throw error }
      return try makeEach(path, for: item)
    }
  }

  private func makeEach(_ path: RelativePath, for item: Int) throws(FolderFailure) -> Descriptor {
    var parentPath: RelativePath?
    var parent = beneath.root
    for end in path.bytes.indices
    where end + 1 == path.bytes.count || path.bytes[end + 1] == UInt8(ascii: "/") {
      let current = RelativePath(trusted: Array(path.bytes[...end]))
      parent = try makeOne(current, in: parent, parentPath, for: item)
      parentPath = current
    }
    return parent
  }

  private func makeOne(
    _ path: RelativePath, in parent: Descriptor, _ parentPath: RelativePath?, for item: Int
  ) throws(FolderFailure) -> Descriptor {
    if let known = directories[path] { return known.descriptor }
    let name = cString(path.name)
    let result = parent.use { number in
      probed(.makeDirectory, probe) { tarn_make_directory(number, name, 0o755) }
    }
    if result == -EEXIST { return try open(path) }
    try kernel("make the directory", path.bytes, result)
    made.append(path)
    if parentPath == nil, directories[nil] == nil { directories[nil] = Touched(descriptor: parent) }
    touch(parentPath, for: item)
    let fresh = Descriptor(
      try kernel("open the directory", path.bytes, parent.openBeneath(name, O_RDONLY | O_DIRECTORY)))
    try kernel("set the mode of", path.bytes, fresh.use { tarn_set_mode($0, 0o755) })
    directories[path] = Touched(descriptor: fresh)
    return fresh
  }

  /// Tells that a name in the directory changed. It was opened with `open` or `make` before.
  func touch(_ path: RelativePath?, for item: Int) {
    directories[path]?.items.append(item)
  }

  /// Tells that one of Tarn's own directories changed, for all items.
  func touch(_ directory: OwnDirectory) {
    own.append(directory)
  }

  /// Removes the directories that were made for the current item and are still empty.
  func removeMade() {
    for path in made.reversed() {
      directories[path] = nil
      guard (try? removeIfEmpty(path, for: nil)) == true else { break }
    }
    made = []
  }

  /// Calls rmdir, which never removes a directory with contents.
  ///
  /// - Returns: false when the directory stays: it has contents, something is mounted there, or it is gone already.
  /// - Throws: why a directory stays although it is empty.
  func removeIfEmpty(_ path: RelativePath, for item: Int?) throws(FolderFailure) -> Bool {
    let parent: Descriptor
    do throws(FolderFailure) {
      parent = try open(path.parent)
    } catch  where [.missing, .notDirectory, .link].contains(error.code) {
      return false
    }
    let name = cString(path.name)
    let result = probed(.removeDirectory, probe) { parent.use { tarn_remove_directory($0, name) } }
    if [-ENOTEMPTY, -EEXIST, -EBUSY, -ENOENT, -ENOTDIR].contains(result) { return false }
    try kernel("remove the empty directory", path.bytes, result)
    directories[path] = nil
    if let item { touch(path.parent, for: item) }
    return true
  }

  /// Makes all of it durable. Failures are added to `failures`.
  ///
  /// - Parameter items: the number of items.
  func sync(items: Int) {
    syncDirectories()
    for directory in own {
      do throws(FolderFailure) {
        try sync(directory.descriptor, Array(directory.label.utf8))
      } catch {
        for item in 0..<items { failures[item] = error }
      }
    }
  }

  private func syncDirectories() {
    for (path, touched) in directories where !touched.items.isEmpty {
      do throws(FolderFailure) {
        try sync(touched.descriptor, path?.bytes ?? [UInt8(ascii: ".")])
      } catch {
        for item in touched.items { failures[item] = error.about(path) }
      }
    }
  }

  private func sync(_ directory: Descriptor, _ object: [UInt8]) throws(FolderFailure) {
    try kernel("make durable", object, probed(.syncDirectory, probe) { directory.use(tarn_sync) })
  }
}
