package import Glibc

/// Reads and writes small text files of the user's.
package enum TextFile {
  /// Why a file is not read.
  package enum Refusal: Error, Equatable {
    /// Opening or reading failed with this errno.
    case cannotRead(Int32)
    /// It is a directory, a FIFO, a device or a socket.
    case notRegular
    /// It is longer than the limit.
    case tooLarge
  }

  /// - Returns: `nil` when the file cannot be read, is not a regular file, or is longer than `limit` bytes.
  package static func read(_ path: String, limit: Int) -> String? {
    try? contents(path, limit: limit)
  }

  /// Reads a regular file of at most `limit` bytes. Never waits: a FIFO is not opened for reading until its type is known.
  package static func contents(_ path: String, limit: Int) throws(Refusal) -> String {
    let descriptor = try openRegular(path, limit: limit)
    defer { close(descriptor) }
    return try all(of: descriptor, limit: limit)
  }

  /// Reads a path that may also be a FIFO or a terminal. Waits for the writer.
  package static func contentsWaiting(_ path: String, limit: Int) throws(Refusal) -> String {
    let kind = status(path).map { $0.st_mode & S_IFMT }
    guard kind == S_IFIFO || kind == S_IFCHR else { return try contents(path, limit: limit) }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else { throw .cannotRead(errno) }
    defer { close(descriptor) }
    return try all(of: descriptor, limit: limit)
  }

  /// Reads an open descriptor to its end, also a pipe.
  package static func all(of descriptor: Int32, limit: Int) throws(Refusal) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .cannotRead(errno) }
      // The size was checked before, but may have grown since.
      guard bytes.count + count <= limit else { throw .tooLarge }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer[..<count]
    }
  }

  /// Checks whether a path may be given to a library, without reading the file.
  package static func check(_ path: String, limit: Int) throws(Refusal) {
    close(try openRegular(path, limit: limit))
  }

  private static func openRegular(_ path: String, limit: Int) throws(Refusal) -> Int32 {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    // ENXIO is the answer of a socket.
    guard descriptor >= 0 else { throw errno == ENXIO ? .notRegular : .cannotRead(errno) }
    var status = stat()
    let refusal: Refusal? =
      fstat(descriptor, &status) != 0
      ? .cannotRead(errno)
      : status.st_mode & S_IFMT != S_IFREG ? .notRegular : status.st_size > limit ? .tooLarge : nil
    guard let refusal else { return descriptor }
    close(descriptor)
    throw refusal
  }

  /// Writes all bytes. write(2) may write only a part; then it continues with the rest.
  @discardableResult
  package static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Replaces a file with a new one by a rename. Makes the directory.
  ///
  /// - Parameters:
  ///   - mark: the ending of the new file's temporary name.
  ///   - mode: the permissions of the new file, less the umask.
  ///   - isDurable: true to sync the file and the directory.
  /// - Returns: the errno when the new text may not be in place, and the file is complete, old or new;
  ///   `nil` when it is.
  package static func replace(
    _ path: String, with text: String, mark: String = "new", mode: UInt32 = 0o600, isDurable: Bool = true
  ) -> Int32? {
    guard let slash = path.lastIndex(of: "/") else { return EINVAL }
    let directory = String(path[..<slash])
    makeDirectories(directory)
    let fresh = "\(path).\(mark)"
    let descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode)
    guard descriptor >= 0 else { return errno }
    let isWritten = writeAll(Array(text.utf8), to: descriptor) && (!isDurable || fsync(descriptor) == 0)
    let number = errno
    close(descriptor)
    guard isWritten, rename(fresh, path) == 0 else {
      let number = isWritten ? errno : number
      unlink(fresh)
      return number
    }
    guard isDurable else { return nil }
    let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { return errno }
    defer { close(parent) }
    return fsync(parent) == 0 ? nil : errno
  }

  package static func makeDirectories(_ path: String) {
    var prefix = ""
    for segment in path.split(separator: "/") {
      prefix += "/" + segment
      mkdir(prefix, 0o700)
    }
  }
}

extension TextFile {
  package static func isDirectory(_ path: String) -> Bool {
    status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
  }

  /// Returns the status of a path, following links; `nil` when it cannot be looked at.
  package static func status(_ path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }
}
