import Glibc
import TarnCore

/// Settings on the disk. Callable on any thread; each call blocks for as long as the disk does.
package struct DiskSettings: SettingsReading {
  package init() {}

  package func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8] {
    // O_NONBLOCK: opening a pipe must not wait for its writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else { throw .of(errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .of(errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .of(errno) }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= limit else { throw .tooLong }
    }
  }

  package func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory {
    guard let stream = opendir(directory) else { throw .of(errno) }
    defer { closedir(stream) }
    var found = SettingsDirectory()
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw .of(errno) }
        return found
      }
      withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        let name = bytes.prefix { $0 != 0 }
        if let text = String(validating: name, as: UTF8.self) {
          found.names.append(text)
        } else {
          found.others.append(Printable.escape(name))
        }
      }
    }
  }

  package func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .of(errno) }
    return SettingsFileAttributes(
      isRegular: status.st_mode & S_IFMT == S_IFREG, isDirectory: status.st_mode & S_IFMT == S_IFDIR,
      mode: UInt32(status.st_mode) & 0o7777,
      isReadable: access(path, R_OK) == 0, isEmpty: status.st_size == 0)
  }

  package func target(ofLink path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { return nil }
    return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  package func realPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(validatingCString: resolved)
  }
}

extension SettingsReadFailure {
  fileprivate static func of(_ code: Int32) -> SettingsReadFailure {
    switch code {
    case ENOENT, ENOTDIR: .missing
    case EACCES, EPERM: .denied
    case EISDIR, ENXIO: .notRegular
    default: .other(String(cString: strerror(code)))
    }
  }
}
