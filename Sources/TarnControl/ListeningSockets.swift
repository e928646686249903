import Glibc

/// The listening sockets that the kernel knows (`/proc/net/unix`, proc_net(5)).
enum ListeningSockets {
  /// Returns whether anybody listens on a socket in the same directory. An agent makes its sockets there under another name, which
  /// the kernel keeps showing.
  ///
  /// - Returns: true also when this cannot be determined.
  static func areAny(beside path: String, table: String = "/proc/net/unix") -> Bool {
    guard let text = read(table) else { return true }
    let directory = directory(of: path[...])
    return text.split(separator: "\n").dropFirst().contains { line in
      // Num RefCount Protocol Flags Type St Inode Path
      let fields = line.split(separator: " ", maxSplits: 7)
      guard fields.count == 8, let flags = UInt32(fields[3], radix: 16), flags & accepts != 0 else {
        return false
      }
      return Self.directory(of: fields[7]) == directory
    }
  }

  /// The flag `__SO_ACCEPTCON` of a listening socket.
  private static let accepts: UInt32 = 1 << 16

  private static func directory(of path: Substring) -> String? {
    guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { return nil }
    let directory = String(path[..<slash]) + "/"
    guard let real = realpath(directory, nil) else { return directory }
    defer { free(real) }
    return String(cString: real)
  }

  private static func read(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return count < 0 ? nil : String(decoding: bytes, as: UTF8.self) }
      bytes += piece[..<count]
    }
  }
}
