import Glibc
import TarnRuntime

/// A directory of its own, with a path short enough for sockets in it.
package final class ScratchDirectory: Sendable {
  package let path: String

  package init() {
    var template = Array("/tmp/tarn-test-XXXXXX".utf8CString)
    path = mkdtemp(&template).map { String(cString: $0) } ?? "/nonexistent"
    // Other users get through to the sockets in it.
    chmod(path, 0o755)
  }

  deinit {
    for name in names { unlink(path + "/" + name) }
    rmdir(path)
  }

  package func file(_ name: String) -> String { path + "/" + name }

  package var names: [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}

func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
  var raw = sockaddr_un()
  raw.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &raw.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
  return withUnsafePointer(to: raw) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
}

/// An answer as it came.
package struct RawAnswer: Equatable {
  package var status: Int
  /// Names in small letters.
  package var fields: [String: String]
  package var body: String
}

/// A client that sends what it is told, byte for byte. No read waits for more than two minutes.
package final class RawClient {
  private var descriptor: Int32
  private var buffer: [UInt8] = []
  private var isSilent = false
  /// Of connect; 0 when connected.
  package let error: Int32

  package init(_ path: String) {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var time = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    let descriptor = descriptor
    error = withAddress(path) { connect(descriptor, $0, $1) } == 0 ? 0 : errno
  }

  deinit { close() }

  package func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  package func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// - Returns: false when the other end is gone.
  @discardableResult package func write(_ text: String) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      bytes = bytes.dropFirst(count)
    }
    return true
  }

  package func get(_ target: String, _ fields: String = "") {
    write("GET \(target) HTTP/1.1\r\nHost: tarn\r\n\(fields)\r\n")
  }

  package func request(_ method: String, _ target: String, body: String = "") -> RawAnswer? {
    write(
      "\(method) \(target) HTTP/1.1\r\nHost: tarn\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    return answer(isHead: method == "HEAD")
  }

  private func fill() -> Bool {
    var piece = [UInt8](repeating: 0, count: 65_536)
    let count = Glibc.read(descriptor, &piece, piece.count)
    isSilent = count < 0 && errno == EAGAIN
    if count > 0 { buffer += piece[..<count] }
    return count > 0
  }

  /// Up to and with the text; nil when the other end was closed before.
  package func read(through mark: String) -> String? {
    let mark = Array(mark.utf8)
    while true {
      if let range = buffer.firstRange(of: mark) {
        defer { buffer.removeSubrange(..<range.upperBound) }
        return String(decoding: buffer[..<range.upperBound], as: UTF8.self)
      }
      guard fill() else { return nil }
    }
  }

  /// All that comes until the other end is closed; says so when it is not.
  package func readToEnd() -> String {
    while fill() {}
    defer { buffer = [] }
    return String(decoding: buffer, as: UTF8.self) + (isSilent ? " (still open)" : "")
  }

  /// nil when the other end was closed before it was whole.
  package func answer(isHead: Bool = false) -> RawAnswer? {
    guard let head = read(through: "\r\n\r\n") else { return nil }
    let lines = head.split(separator: "\r\n")
    let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    let count = isHead ? 0 : fields["content-length"].flatMap { Int($0) } ?? 0
    while buffer.count < count { guard fill() else { return nil } }
    defer { buffer.removeFirst(count) }
    return RawAnswer(status: status, fields: fields, body: String(decoding: buffer[..<count], as: UTF8.self))
  }
}

/// A listener that does with each connection what it is told, one after the other, until it goes.
package final class RawListener: Sendable {
  private let descriptor: Int32
  /// The thread closes the socket: a number that is closed while it serves may be another listener's when it comes back.
  private let hasThread: Bool

  /// - Parameter serve: nil listens only, and takes no connection.
  package init(_ path: String, _ serve: (@Sendable (Int32) -> Void)? = nil) throws {
    hasThread = serve != nil
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    _ = withAddress(path) { bind(descriptor, $0, $1) }
    listen(descriptor, 8)
    guard let serve else { return }
    _ = try WorkerThread.start(name: "test-listener") {
      defer { close(descriptor) }
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        serve(connection)
        close(connection)
      }
    }
  }

  /// Answers every request with the same bytes.
  package convenience init(_ path: String, answer: String) throws {
    try self.init(path) { connection in
      var request = [UInt8](repeating: 0, count: 65_536)
      _ = read(connection, &request, request.count)
      let bytes = Array(answer.utf8)
      _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// A socket file that nobody listens at.
  ///
  /// - Parameter mode: of the socket before it got its file.
  package static func leave(_ path: String, mode: UInt32? = nil) {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    if let mode { fchmod(descriptor, mode) }
    _ = withAddress(path) { bind(descriptor, $0, $1) }
    close(descriptor)
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    if !hasThread { close(descriptor) }
  }
}
