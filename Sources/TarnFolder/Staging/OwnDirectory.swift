import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// One of Tarn's own directories, in which every object has a random name: `partial/` or `trash/`.
struct OwnDirectory: Sendable {
  let descriptor: Descriptor
  let label: String
  /// The path as users see it; `nil` where the label is enough.
  var path: String?

  /// - Throws: `other` for an invalid name, which would lead elsewhere.
  static func check(_ name: String) throws(FolderFailure) {
    let isName =
      !name.isEmpty && name != "." && name != ".." && name.utf8.count <= PathRule.maximumSegment
      && !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    if !isName { throw FolderFailure(.other, "'\(Printable.escape(name))' is no name of a file") }
  }

  func object(_ name: String) -> [UInt8] { Array("\(label)/\(name)".utf8) }

  func stat(_ name: String) throws(FolderFailure) -> FileStat? {
    try FileStat.at(descriptor, cString(name))
  }

  func list() throws(FolderFailure) -> [(name: String, size: UInt64)] {
    try stats().map { ($0.name, $0.stat.size) }
  }

  /// Returns everything in it, of whatever kind: an exchange may have displaced a link or a directory.
  func stats() throws(FolderFailure) -> [(name: String, stat: FileStat)] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    // A separate descriptor is used, since reading moves the offset.
    let opened = descriptor.open(cString("."), O_RDONLY | O_DIRECTORY)
    let place = Array((path ?? label).utf8)
    let fresh = Descriptor(try kernel("list", place, opened))
    let names = try NameList(fresh, place, buffer: buffer)
    var files: [(name: String, stat: FileStat)] = []
    for index in 0..<names.count {
      let name = String(decoding: names.bytes(index), as: UTF8.self)
      if let stat = try stat(name) { files.append((name, stat)) }
    }
    return files
  }

  /// Removes an object; one that is gone already is no error. A directory is removed only when it is empty.
  func remove(_ name: String) throws(FolderFailure) {
    try Self.check(name)
    var result = descriptor.use { tarn_unlink($0, cString(name)) }
    if result == -EISDIR { result = descriptor.use { tarn_remove_directory($0, cString(name)) } }
    if result != -ENOENT { try kernel("remove", object(name), result) }
  }

  /// Removes an object with all of its contents, through no link and across no mount. Deeper directories are first moved up into
  /// this directory under new names, so that depth costs no descriptors and a crash leaves everything here.
  ///
  /// - Parameter newName: returns names that nothing here has.
  func removeTree(_ name: String, newName: () -> String) throws(FolderFailure) {
    var names = [name]
    while let next = names.last {
      do throws(FolderFailure) {
        try remove(next)
        names.removeLast()
      } catch {
        guard error.errno == ENOTEMPTY || error.errno == EEXIST else { throw error }
        try empty(next) {
          names.append($0)
        } newName: {
          newName()
        }
      }
    }
  }

  /// - Parameter raised: called with the new name of each directory that was moved up.
  private func empty(
    _ name: String, raised: (String) -> Void, newName: () -> String
  ) throws(FolderFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    let opened = descriptor.openBeneath(cString(name), O_RDONLY | O_DIRECTORY)
    let directory = Descriptor(try kernel("open the directory", object(name), opened))
    let inside = try NameList(directory, object(name), buffer: buffer)
    for index in 0..<inside.count {
      let leaf = cString(inside.bytes(index))
      var result = directory.use { tarn_unlink($0, leaf) }
      if result == -EISDIR { result = directory.use { tarn_remove_directory($0, leaf) } }
      if result == -ENOTEMPTY || result == -EEXIST {
        let new = newName()
        result = directory.use { from in
          descriptor.use {
            tarn_rename(from, leaf, $0, cString(new), Int32(TARN_RENAME_NOREPLACE.rawValue))
          }
        }
        if result == 0 { raised(new) }
      }
      if result != -ENOENT { try kernel("remove", object(name), result) }
    }
  }

  func sync() throws(FolderFailure) {
    try descriptor.sync(label.utf8)
  }
}
