import Glibc
import LinuxShim
import TarnCore

/// An open descriptor, closed with its last reference.
final class Descriptor: Sendable {
  private let number: Int32

  /// Takes ownership.
  init(_ number: Int32) {
    self.number = number
  }

  deinit {
    _ = tarn_close(number)
  }

  /// Passes the number to a system call. There is no other access to it: a descriptor whose last reference is the one that the
  /// number is read from would be closed before the call.
  func use<Result>(_ body: (Int32) -> Result) -> Result {
    withExtendedLifetime(self) { body(number) }
  }

  // MARK: Opening

  /// Opens a directory by a path from outside; links are followed.
  static func directory(at path: String) throws(FolderFailure) -> Descriptor {
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_DIRECTORY, 0)
    return Descriptor(try kernel("open the directory", path.utf8, number))
  }

  /// Opens an object by its name in this directory; a link is not followed.
  ///
  /// - Returns: a descriptor, or a negative errno.
  func open(_ name: [CChar], _ flags: Int32, mode: UInt32 = 0) -> Int32 {
    use { tarn_open_at($0, name, flags | O_NOFOLLOW, mode) }
  }

  /// Opens what lies beneath, through no link and across no mount.
  ///
  /// - Returns: a descriptor, or a negative errno.
  func openBeneath(_ path: [CChar], _ flags: Int32) -> Int32 {
    use { tarn_open_beneath($0, path, flags, 0) }
  }

  // MARK: Contents

  /// Appends all bytes of another file.
  func take(
    allOf source: Descriptor, _ object: some Sequence<UInt8>, unless isStopped: () -> Bool = { false }
  ) throws(FolderFailure) {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      if isStopped() { throw FolderFailure(.stopped, "ended before all of it was copied") }
      let count = source.use { read($0, &buffer, buffer.count) }
      if count == 0 { return }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FolderFailure(cannot: "read", object, errno: errno) }
      var written = 0
      while written < count {
        let more = use { number in
          buffer.withUnsafeBytes { write(number, $0.baseAddress! + written, count - written) }
        }
        if more < 0, errno == EINTR { continue }
        guard more > 0 else { throw FolderFailure(cannot: "write", object, errno: errno) }
        written += more
      }
    }
  }

  // MARK: Durability

  /// Calls fsync.
  func sync(_ object: some Sequence<UInt8>) throws(FolderFailure) {
    try kernel("make durable", object, use(tarn_sync))
  }
}

/// Returns bytes in the kernel's form, terminated by NUL. The caller has refused names with a NUL.
func cString(_ bytes: some Collection<UInt8>) -> [CChar] {
  // Filled with zeros first: otherwise it costs four times as much, because that Array initializer is not specialized.
  var name = [CChar](repeating: 0, count: bytes.count + 1)
  name.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
  return name
}

func cString(_ text: String) -> [CChar] {
  cString(text.utf8)
}
