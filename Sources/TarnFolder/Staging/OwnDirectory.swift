import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// A directory of Tarn's own in which every file has a random name: `partial/` or `trash/`.
struct OwnDirectory: Sendable {
  let descriptor: Descriptor
  let label: String

  func files() throws(FolderFailure) -> [(name: String, size: UInt64)] {
    let cursor = FolderScan(beneath: Beneath(root: descriptor))
    var files: [(name: String, size: UInt64)] = []
    while let present = try cursor.next() {
      guard present.kind == .regular else { continue }
      files.append((String(decoding: present.path.bytes, as: UTF8.self), present.identity.size))
    }
    return files
  }

  func remove(_ name: String) throws(FolderFailure) {
    let result = tarn_unlink(descriptor.number, cString(name))
    if result != -ENOENT { try kernel("remove", Array("\(label)/\(name)".utf8), result) }
  }
}

extension RandomSource {
  /// 32 hexadecimal digits.
  func fileName() -> String {
    let digits = Array("0123456789abcdef".utf8)
    let text = bytes(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }
}
