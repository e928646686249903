import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// A directory of Tarn's own in which every object has a random name: `partial/` or `trash/`.
struct OwnDirectory: Sendable {
  let descriptor: Descriptor
  let label: String
  /// Where it lies, as users see it; nil where the label says enough.
  var path: String?

  /// - Throws: `other` for what is no name, which would lead elsewhere.
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

  /// Everything in it, of whatever kind: what an exchange displaced may be a link or a directory.
  func stats() throws(FolderFailure) -> [(name: String, stat: FileStat)] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    // A descriptor of its own: reading moves the offset.
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

  /// Gone already is as good. A directory goes only when it is empty.
  func remove(_ name: String) throws(FolderFailure) {
    try Self.check(name)
    var result = descriptor.use { tarn_unlink($0, cString(name)) }
    if result == -EISDIR { result = descriptor.use { tarn_remove_directory($0, cString(name)) } }
    if result != -ENOENT { try kernel("remove", object(name), result) }
  }

  /// An object with all that it holds, through no link and across no mount. What lies deeper is first brought up into this
  /// directory under names of its own: no depth costs descriptors, and what a crash leaves is found here.
  ///
  /// - Parameter newName: gives names that nothing here has.
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

  /// - Parameter raised: gets the new name of each directory that was brought up.
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
