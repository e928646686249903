import Glibc

/// A lock on a file or a directory (flock(2)). Other threads of this process wait for it like other processes. It is held until the
/// last reference is gone or the process ends.
package final class FileLock: Sendable {
  package struct Refusal: Error {
    /// The errno of opening or locking it.
    package let number: Int32
    /// True when somebody else holds the lock.
    package var isHeld: Bool { number == EWOULDBLOCK }
  }

  private let descriptor: Int32

  /// - Parameters:
  ///   - path: the path of a file, which is made with mode 0600 if necessary; links are not followed.
  ///   - isDirectory: true when it is an existing directory.
  ///   - attempts: the number of attempts, one every 20 ms.
  package init(_ path: String, isDirectory: Bool = false, attempts: Int = 1) throws(Refusal) {
    let descriptor =
      isDirectory
      ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      : open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Refusal(number: errno) }
    var left = attempts
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let number = errno
      left -= 1
      guard left > 0, number == EWOULDBLOCK || number == EINTR else {
        close(descriptor)
        throw Refusal(number: number)
      }
      usleep(20_000)
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// Replaces the text of the locked file. A full disk leaves it empty.
  package func write(_ text: String) {
    let bytes = Array(text.utf8)
    if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, bytes, bytes.count, 0) }
  }
}
