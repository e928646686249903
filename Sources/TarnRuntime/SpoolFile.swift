import Glibc
package import TarnCore

/// Bytes in a file on disk without a name: written once, read any number of times, gone when closed or when the process ends. Used
/// by one thread at a time.
package final class SpoolFile {
  private let descriptor: Int32
  /// The name of the file in messages.
  private let place: String
  /// The number of bytes written.
  package private(set) var size: UInt64 = 0
  /// Returns the bytes that must stay free on a file system of a given size.
  private let reserve: (UInt64) -> UInt64
  private var lookedAt: UInt64 = 0

  /// The number of bytes written between two checks of the free space.
  private static let step: UInt64 = 4 << 20

  /// - Parameters:
  ///   - directory: the directory for the file, which must be writable.
  ///   - reserve: returns the bytes that writing leaves free, for the size of the file system.
  /// - Throws: `SpoolFailure` with the errno of the open.
  package init(directory: String, reserve: @escaping (UInt64) -> UInt64 = { _ in 0 }) throws(SpoolFailure) {
    self.reserve = reserve
    var descriptor = open(directory, openUnnamed | O_RDWR | O_CLOEXEC, 0o600)
    if descriptor < 0, errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL {
      descriptor = Self.openUnlinked(directory)
    }
    guard descriptor >= 0 else {
      throw SpoolFailure(operation: "create a temporary file in \(directory)", number: errno)
    }
    self.descriptor = descriptor
    place = "a temporary file in \(directory)"
  }

  /// Opens an existing regular file for reading, such as a local feed; it is not changed. Never waits.
  ///
  /// - Throws: `SpoolFailure` with EISDIR for a directory, ESPIPE for a FIFO and anything else without an end.
  package init(reading path: String) throws(SpoolFailure) {
    // Non-blocking, so that a FIFO cannot block the thread before its type is known.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw SpoolFailure(operation: "read \(path)", number: errno == ENXIO ? ESPIPE : errno)
    }
    var status = stat()
    fstat(descriptor, &status)
    let kind = status.st_mode & S_IFMT
    guard kind == S_IFREG else {
      close(descriptor)
      throw SpoolFailure(operation: "read \(path)", number: kind == S_IFDIR ? EISDIR : ESPIPE)
    }
    self.descriptor = descriptor
    reserve = { _ in 0 }
    place = path
    size = UInt64(clamping: status.st_size)
  }

  deinit {
    close(descriptor)
  }

  /// A URL by which this process can open the bytes again, as long as this object lives (proc(5), /proc/PID/fd).
  package var url: String { "file:///proc/self/fd/\(descriptor)" }

  /// Appends all of the bytes.
  ///
  /// - Throws: `SpoolFailure`, with ENOSPC also when the reserve would be touched.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(SpoolFailure) {
    try keepReserve(UInt64(bytes.count))
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(size))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw SpoolFailure(operation: "write \(place)", number: errno) }
      done += count
      size += UInt64(count)
    }
  }

  private func keepReserve(_ count: UInt64) throws(SpoolFailure) {
    guard size + count >= lookedAt + Self.step else { return }
    lookedAt = size + count
    var status = statvfs()
    guard fstatvfs(descriptor, &status) == 0 else { return }
    let unit = UInt64(status.f_frsize)
    let (free, total) = (UInt64(status.f_bavail) * unit, UInt64(status.f_blocks) * unit)
    guard free < reserve(total) + count else { return }
    throw SpoolFailure(operation: "write \(place) and leave the reserve free (--reserve)", number: ENOSPC)
  }

  package func append(_ bytes: [UInt8]) throws(SpoolFailure) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(SpoolFailure) in try append(bytes) }
    }
    try result.get()
  }

  /// - Parameter offset: the offset of the first byte from the beginning.
  /// - Returns: the number of bytes read; 0 at the end.
  package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(SpoolFailure) -> Int
  {
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SpoolFailure(operation: "read \(place)", number: errno) }
      return count
    }
  }

  /// Copies standard input to its end, or until it is stopped.
  ///
  /// - Parameters:
  ///   - limit: the most bytes; more is `EFBIG`.
  ///   - isStopped: called several times a second, also while nothing comes.
  package func appendStandardInput(limit: UInt64, isStopped: () -> Bool) throws(SpoolFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while !isStopped() {
      var waiting = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      if poll(&waiting, 1, 200) == 0 { continue }
      let count = Glibc.read(STDIN_FILENO, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count >= 0 else { throw SpoolFailure(operation: "read standard input", number: errno) }
      if count == 0 { return }
      guard size + UInt64(count) <= limit else {
        throw SpoolFailure(operation: "read standard input", number: EFBIG)
      }
      try append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private static func openUnlinked(_ directory: String) -> Int32 {
    let name = directory + "/.tarn-" + String(SystemRandom().next(), radix: 16)
    let descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if descriptor >= 0 { unlink(name) }
    return descriptor
  }
}

/// The value of `__O_TMPFILE | O_DIRECTORY`, since the macro is too complex for the importer.
private let openUnnamed: Int32 = 0o20_000_000 | O_DIRECTORY

/// The error of a spool that could not be written or read.
package struct SpoolFailure: Error, Equatable {
  /// The operation that failed, such as `write a temporary file`.
  package let operation: String
  /// The errno of the operation.
  package let number: Int32

  package enum Reason: Sendable { case directory, noFile, closed, noSpace, other }

  /// The reason that callers distinguish.
  package var reason: Reason {
    switch number {
    case EISDIR: .directory
    case ESPIPE: .noFile
    case EBADF: .closed
    case ENOSPC, EDQUOT: .noSpace
    default: .other
    }
  }

  package var message: String {
    "cannot \(operation): \(String(cString: strerror(number)))"
  }
}

/// A source that reads a spool from the beginning.
package struct SpoolSource: ByteSource {
  private let spool: SpoolFile
  private var offset: UInt64 = 0

  package init(_ spool: SpoolFile) {
    self.spool = spool
  }

  package mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    do {
      let count = try spool.read(at: offset, into: buffer)
      offset += UInt64(count)
      return count
    } catch {
      throw FeedFailure(code: "feed-not-readable", message: error.message)
    }
  }
}
