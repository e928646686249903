import Glibc
import LinuxShim
import TarnCore

/// The names in one directory, sorted by their bytes, in one block of memory.
struct NameList {
  /// The names, each terminated by NUL.
  private var text: [CChar] = []
  private var starts: [Int] = []

  var count: Int { starts.count }

  /// - Parameter buffer: the buffer for the kernel; its contents mean nothing before or after.
  init(
    _ directory: Descriptor, _ object: [UInt8], buffer: UnsafeMutableRawBufferPointer
  ) throws(FolderFailure) {
    while true {
      let count = try kernel(
        "list", object, directory.use { tarn_read_directory($0, buffer.baseAddress, buffer.count) })
      if count == 0 { break }
      var offset = 0
      while offset < count {
        guard let name = tarn_directory_name(buffer.baseAddress, offset, &offset) else { break }
        add(name)
      }
    }
    sort()
  }

  /// Passes the bytes of a name with its terminator, valid for the time of the call.
  func withName<Result>(
    _ index: Int, _ body: (UnsafePointer<CChar>) throws(FolderFailure) -> Result
  ) throws(FolderFailure) -> Result {
    let start = starts[index]
    return try text.withUnsafeBufferPointer { text throws(FolderFailure) in
      guard let base = text.baseAddress else {
        throw FolderFailure(.other, "an empty directory has no names")
      }
      return try body(base + start)
    }
  }

  func bytes(_ index: Int) -> [UInt8] { path(index, in: nil).bytes }

  /// Returns the path of a name in a directory; the name alone for `nil`.
  func path(_ index: Int, in directory: RelativePath?) -> RelativePath {
    let start = starts[index]
    return text.withUnsafeBytes { text in
      let length = text.baseAddress.map { strlen(($0 + start).assumingMemoryBound(to: CChar.self)) } ?? 0
      let name = UnsafeRawBufferPointer(rebasing: text[start..<(start + length)])
      guard let directory else { return RelativePath(trusted: Array(name)) }
      let before = directory.bytes.count + 1
      // Filled with zeros first: otherwise it costs four times as much, because that Array initializer is not specialized.
      var bytes = [UInt8](repeating: 0, count: before + length)
      bytes.withUnsafeMutableBytes { target in
        target.copyBytes(from: directory.bytes)
        target[before - 1] = UInt8(ascii: "/")
        UnsafeMutableRawBufferPointer(rebasing: target[before...]).copyMemory(from: name)
      }
      return RelativePath(trusted: bytes)
    }
  }

  /// True when the contents of the directory `first` precede the object `second` in the order of whole paths: `first` with a slash
  /// sorts before `second`. `first` must sort before `second`.
  func areContents(of first: Int, before second: Int) -> Bool {
    var left = starts[first]
    var right = starts[second]
    while text[left] != 0, text[left] == text[right] {
      left += 1
      right += 1
    }
    return text[left] != 0 || UInt8(ascii: "/") < UInt8(bitPattern: text[right])
  }

  private mutating func add(_ name: UnsafePointer<CChar>) {
    if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 { return }
    starts.append(text.count)
    text.append(contentsOf: UnsafeBufferPointer(start: name, count: strlen(name) + 1))
  }

  /// Sorts the names. A directory that changes while it is read may return a name twice; it is kept once.
  private mutating func sort() {
    text.withUnsafeBufferPointer { text in
      guard let base = text.baseAddress else { return }
      starts.sort { strcmp(base + $0, base + $1) < 0 }
      var kept = 0
      for start in starts where kept == 0 || strcmp(base + starts[kept - 1], base + start) != 0 {
        starts[kept] = start
        kept += 1
      }
      starts.removeLast(starts.count - kept)
    }
  }
}
