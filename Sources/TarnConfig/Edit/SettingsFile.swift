import Glibc
import TarnCore

/// Creates and removes files of settings. Each call blocks for as long as the disk does.
package enum SettingsFile {
  /// The error of the kernel, and the path that it concerns.
  package struct Failure: Error, Sendable, Equatable {
    package var number: Int32
    /// The absolute path.
    package var path: String

    package var exists: Bool { number == EEXIST }
    package var isDenied: Bool { number == EACCES || number == EPERM || number == EROFS }
    /// The text of strerror(3), in lower case.
    package var text: String {
      strerror(number).map { String(cString: $0).lowercased() } ?? "error \(number)"
    }
  }

  /// Creates a file, complete or not at all, and durably. Never replaces another file.
  ///
  /// - Parameters:
  ///   - isPublic: true when another user's agent has to read the file, whatever the umask is.
  ///   - neighbour: a file whose owner and mode the new one takes, when it exists: an administrator chose its
  ///     readers.
  package static func create(
    _ path: String, _ text: String, isPublic: Bool, like neighbour: String? = nil
  ) throws(Failure) {
    let directory = parent(path)
    try makeDirectories(directory, mode: isPublic ? 0o755 : 0o700)
    // Settings that begin with a dot are not read.
    let fresh = "\(directory)/.\(path.split(separator: "/").last ?? "").\(getpid())"
    unlink(fresh)
    let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Failure(number: errno, path: path) }
    defer { unlink(fresh) }
    guard write(text, descriptor, mode: isPublic ? 0o644 : 0o600, like: neighbour) else {
      let number = errno
      close(descriptor)
      throw Failure(number: number, path: path)
    }
    close(descriptor)
    // A link, unlike a rename, takes no other file's place.
    guard link(fresh, path) == 0 else { throw Failure(number: errno, path: path) }
    sync(directory)
  }

  package static func remove(_ path: String) throws(Failure) {
    guard unlink(path) == 0 else { throw Failure(number: errno, path: path) }
    sync(parent(path))
  }

  private static func write(
    _ text: String, _ descriptor: Int32, mode: mode_t, like neighbour: String?
  ) -> Bool {
    var mode = mode
    var status = stat()
    if let neighbour, stat(neighbour, &status) == 0 {
      mode = status.st_mode & 0o666
      // Only root may change the owner; otherwise the file stays the writer's.
      _ = fchown(descriptor, status.st_uid, status.st_gid)
    }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return fchmod(descriptor, mode) == 0 && fsync(descriptor) == 0
  }

  private static func makeDirectories(_ path: String, mode: mode_t) throws(Failure) {
    var status = stat()
    if stat(path, &status) == 0 { return }
    let above = parent(path)
    if above != path, !above.isEmpty { try makeDirectories(above, mode: mode) }
    guard mkdir(path, mode) == 0 || errno == EEXIST else { throw Failure(number: errno, path: path) }
    if mode == 0o755 { chmod(path, mode) }
  }

  private static func parent(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
  }

  private static func sync(_ directory: String) {
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = fsync(descriptor)
    close(descriptor)
  }
}
