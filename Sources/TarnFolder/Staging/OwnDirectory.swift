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

  func sync() throws(FolderFailure) {
    try descriptor.sync(label.utf8)
  }
}

extension RandomSource {
  /// 32 hexadecimal digits, 128 bits.
  func fileName() -> String {
    let digits = Array("0123456789abcdef".utf8)
    let text = bytes(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }
}
