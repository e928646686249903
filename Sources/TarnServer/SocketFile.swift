internal import Glibc
internal import TarnCore
internal import TarnRuntime

/// A listening socket and its file. The file appears under its name only when the socket listens and has its mode and group.
struct SocketFile: Sendable {
  /// The listening socket. Whoever serves it closes it.
  let descriptor: Int32
  let socket: ControlSocket
  /// The file's group.
  let group: UInt32
  private let identity: Identity

  private struct Identity: Sendable, Equatable {
    var device: UInt
    var inode: UInt
  }

  /// Makes the socket. Replaces that of an agent that is gone; refuses when somebody answers.
  static func bind(_ socket: ControlSocket) throws(ControlServerFailure) -> SocketFile {
    let shown = Printable.escape(socket.path)
    guard let cut = socket.path.lastIndex(of: "/"), socket.path.hasPrefix("/"), !socket.path.hasSuffix("/")
    else {
      throw ControlServerFailure(
        kind: .badPath, message: "\(shown): a socket wants an absolute path to a file")
    }
    let made = "\(socket.path[..<cut])/.tarn-\(String(getpid(), radix: 36))"
    let address = try address(socket.path)
    let madeAddress = try Self.address(made)
    let lock = try lockDirectory(String(socket.path[...cut]), shown)
    defer { withExtendedLifetime(lock) {} }
    try makeWay(socket.path, address, shown)
    let group = try socket.group.map { group throws(ControlServerFailure) in try number(group) }
    return try make(socket, group, made, madeAddress, shown)
  }

  /// Removes the file if it still is the one that was made.
  func remove() {
    guard Self.look(socket.path)?.identity == identity else { return }
    unlink(socket.path)
  }

  // MARK: - Steps

  /// Locks the directory, so that two agents that start at once do not both find a dead socket.
  private static func lockDirectory(_ directory: String, _ shown: String) throws(ControlServerFailure)
    -> FileLock
  {
    do throws(FileLock.Refusal) {
      return try FileLock(directory, isDirectory: true, attempts: 100)
    } catch {
      guard error.isHeld else { throw failure("\(shown): its directory cannot be opened", error.number) }
      throw ControlServerFailure(
        kind: .busy(process: nil), message: "\(shown): another program has locked its directory")
    }
  }

  private static func makeWay(
    _ path: String, _ address: sockaddr_un, _ shown: String
  ) throws(ControlServerFailure) {
    guard let found = look(path) else { return }
    guard found.isSocket else {
      throw ControlServerFailure(
        kind: .inTheWay,
        message: "\(shown): something that is no socket stands there; remove it or name another path")
    }
    let descriptor = Glibc.socket(AF_UNIX, stream, 0)
    guard descriptor >= 0 else { throw failure("\(shown): no socket can be made") }
    defer { close(descriptor) }
    let status = with(address) { connect(descriptor, $0, $1) }
    // EAGAIN: somebody listens, and the backlog is full.
    if status == 0 || errno == EAGAIN {
      let process = PeerCredentials.read(descriptor).map(\.process)
      throw ControlServerFailure(
        kind: .busy(process: process),
        message: "\(shown): another agent answers there" + (process.map { " (process \($0))" } ?? ""))
    }
    guard errno == ECONNREFUSED || errno == ENOENT else {
      throw failure("\(shown): a socket is there, and whether somebody answers cannot be told")
    }
  }

  private static func make(
    _ socket: ControlSocket, _ group: UInt32?, _ made: String, _ address: sockaddr_un, _ shown: String
  ) throws(ControlServerFailure) -> SocketFile {
    let descriptor = Glibc.socket(AF_UNIX, stream, 0)
    guard descriptor >= 0 else { throw failure("\(shown): no socket can be made") }
    var isWhole = false
    defer { if !isWhole { close(descriptor) } }
    // On Linux the file gets the mode of the socket. So nobody else can connect at any moment, and the umask, which all threads
    // share, does not change.
    guard fchmod(descriptor, 0o600) == 0 else { throw failure("\(shown): no mode can be set") }
    unlink(made)
    guard with(address, { Glibc.bind(descriptor, $0, $1) }) == 0 else {
      throw failure("\(shown): cannot be made")
    }
    defer { if !isWhole { unlink(made) } }
    // The group is changed only when it differs: the service's system call filter refuses chown, and files that the service makes
    // have its group.
    if let group, look(made)?.group != group, chown(made, uid_t.max, group) != 0 {
      throw failure("\(shown): cannot be given to group \(group)")
    }
    guard chmod(made, socket.mode & 0o777) == 0 else { throw failure("\(shown): no mode can be set") }
    guard listen(descriptor, 128) == 0 else { throw failure("\(shown): cannot be listened at") }
    guard let found = look(made), found.isSocket else { throw failure("\(shown): is gone again") }
    guard rename(made, socket.path) == 0 else { throw failure("\(shown): cannot be put in place") }
    isWhole = true
    return SocketFile(descriptor: descriptor, socket: socket, group: found.group, identity: found.identity)
  }

  // MARK: - Small things

  private static let stream =
    Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)

  private static func look(_ path: String) -> (isSocket: Bool, identity: Identity, group: UInt32)? {
    var found = stat()
    guard lstat(path, &found) == 0 else { return nil }
    return (
      found.st_mode & S_IFMT == S_IFSOCK, Identity(device: UInt(found.st_dev), inode: UInt(found.st_ino)),
      found.st_gid
    )
  }

  private static func address(_ path: String) throws(ControlServerFailure) -> sockaddr_un {
    var raw = sockaddr_un()
    raw.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let most = MemoryLayout.size(ofValue: raw.sun_path) - 1
    guard bytes.count <= most, !bytes.contains(0) else {
      throw ControlServerFailure(
        kind: .badPath,
        message:
          "\(Printable.escape(path)): \(bytes.count) bytes, and the path of a socket has at most \(most)")
    }
    withUnsafeMutableBytes(of: &raw.sun_path) { $0.copyBytes(from: bytes) }
    return raw
  }

  private static func with(_ address: sockaddr_un, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32)
    -> Int32
  {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  private static func number(_ group: ControlSocket.Group) throws(ControlServerFailure) -> UInt32 {
    switch group {
    case .number(let number): return number
    case .name(let name):
      var entry = Glibc.group()
      var found: UnsafeMutablePointer<Glibc.group>?
      var buffer = [CChar](repeating: 0, count: 64 << 10)
      guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
        throw ControlServerFailure(
          kind: .noSuchGroup, message: "there is no group \(Printable.escape(name)) to give the socket to")
      }
      return entry.gr_gid
    }
  }

  private static func failure(_ what: String, _ number: Int32 = errno) -> ControlServerFailure {
    ControlServerFailure(
      kind: .system(number), message: "\(what): \(String(cString: strerror(number)))")
  }
}
