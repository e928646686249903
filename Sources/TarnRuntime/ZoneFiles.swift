import Glibc

/// Reads the files of the time zone database. TarnSchedule interprets them.
package struct ZoneFiles: Sendable {
  /// The source of the machine's own zone.
  package enum Local: Equatable, Sendable {
    case utc
    /// A zone file, by its bytes (TZif).
    case file([UInt8])
    /// The value of TZ when it names no file: rules such as `CET-1CEST,M3.5.0,M10.5.0/3`, or a mistake.
    case text(String)
  }

  package struct Failure: Error, Equatable {
    /// The operation that failed, such as `read the time zone Europe/Berlin`.
    package let operation: String
    /// The errno; EINVAL for a name that would lead out of the directory, EFBIG for a file that is too large.
    package let number: Int32

    package var message: String { "cannot \(operation): \(String(cString: strerror(number)))" }
  }

  /// The largest file that is read, in bytes; the largest zone has some thousands.
  package static let mostBytes = 1 << 20

  private let directory: String
  private let localtime: String
  private let variable: String?

  /// - Parameters:
  ///   - environment: the environment, of which TZ and TZDIR are used.
  ///   - localtime: the file of the machine's zone.
  package init(environment: [String: String] = [:], localtime: String = "/etc/localtime") {
    directory = environment["TZDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/usr/share/zoneinfo"
    variable = environment["TZ"]
    self.localtime = localtime
  }

  /// Returns the bytes of a zone by its name.
  package func bytes(of name: String) throws(Failure) -> [UInt8] {
    guard Self.staysInside(name) else {
      throw Failure(operation: "read the time zone \(name)", number: EINVAL)
    }
    return try Self.read(directory + "/" + name, as: "the time zone \(name)")
  }

  /// Returns the machine's zone: TZ when it is set, as glibc reads it, otherwise `/etc/localtime`; UTC when there is none.
  package func local() throws(Failure) -> Local {
    guard let variable else {
      do {
        return .file(try Self.read(localtime, as: localtime))
      } catch {
        if error.number == ENOENT { return .utc }
        throw error
      }
    }
    let isMarked = variable.hasPrefix(":")
    let value = isMarked ? String(variable.dropFirst()) : variable
    if value.isEmpty { return .utc }
    // Unlike a name in the settings, the user's own variable may be a path anywhere.
    if value.hasPrefix("/") { return .file(try Self.read(value, as: "the time zone \(value)")) }
    do {
      return .file(try bytes(of: value))
    } catch {
      if isMarked { throw error }
      return .text(value)
    }
  }

  private static func staysInside(_ name: String) -> Bool {
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return !name.utf8.contains(0) && parts.allSatisfy { !$0.isEmpty && $0.first != UInt8(ascii: ".") }
  }

  private static func read(_ path: String, as what: String) throws(Failure) -> [UInt8] {
    func failure(_ number: Int32) -> Failure { Failure(operation: "read \(what)", number: number) }
    // Non-blocking, so that a FIFO cannot block the thread before its type is known.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else { throw failure(errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
    let kind = status.st_mode & S_IFMT
    guard kind == S_IFREG else { throw failure(kind == S_IFDIR ? EISDIR : ESPIPE) }
    guard status.st_size <= mostBytes else { throw failure(EFBIG) }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno) }
      if count == 0 { break }
      done += count
    }
    return Array(bytes.prefix(done))
  }
}
