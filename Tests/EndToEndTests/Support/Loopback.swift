import Foundation

/// Servers on 127.0.0.1: on a port that was free, known to listen, ended by their pid.
enum Loopback {
  struct Failed: Error {
    var call: String
    var code: Int32
  }

  /// Starts a server on a port that nobody has; tries others when somebody was faster.
  ///
  /// - Parameters:
  ///   - directory: where the server writes `error.log`, if it does.
  ///   - port: the one that it has to be; nil for any.
  ///   - launch: starts it on this port.
  static func start(
    _ name: String, in directory: TemporaryDirectory, at port: UInt16? = nil,
    _ launch: (UInt16) throws -> Program
  ) throws -> (Program, UInt16) {
    for _ in 0..<10 {
      let port = try port ?? freePort()
      let program = try launch(port)
      let isUp: Void? = try? waitUntil("\(name) answers") {
        !program.isRunning || isListening(port)
      }
      if isUp != nil, program.isRunning { return (program, port) }
      end(program)
    }
    throw Program.TimedOut(description: "\(name) did not start: \(directory.text("error.log") ?? "")")
  }

  static func end(_ server: Program) {
    server.signal(SIGTERM)
    // It may have been held still.
    server.signal(SIGCONT)
    _ = try? server.wait()
  }

  private static func withSocket<Result>(
    _ port: UInt16, _ body: (Int32, UnsafePointer<sockaddr>) throws -> Result
  ) throws -> Result {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failed(call: "socket", code: errno) }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return try withUnsafePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body(descriptor, $0) }
    }
  }

  private static let length = socklen_t(MemoryLayout<sockaddr_in>.size)

  /// A port that was free a moment ago.
  static func freePort() throws -> UInt16 {
    try withSocket(0) { descriptor, address in
      guard bind(descriptor, address, length) == 0 else { throw Failed(call: "bind", code: errno) }
      var bound = sockaddr_in()
      var size = length
      let status = withUnsafeMutablePointer(to: &bound) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
      }
      guard status == 0 else { throw Failed(call: "getsockname", code: errno) }
      return UInt16(bigEndian: bound.sin_port)
    }
  }

  /// A socket that listens, and its port.
  static func makeListener() throws -> (listener: Int32, port: UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var size = length
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) == 0 && listen(listener, 512) == 0
          && getsockname(listener, address, &size) == 0
      }
    }
    guard listener >= 0, isListening else { throw Failed(call: "listen", code: errno) }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  static func isListening(_ port: UInt16) -> Bool {
    (try? withSocket(port) { descriptor, address in connect(descriptor, address, length) == 0 }) ?? false
  }

  /// A HEAD request, answered to its end.
  static func head(_ path: String, port: UInt16) throws {
    try withSocket(port) { descriptor, address in
      guard connect(descriptor, address, length) == 0 else { throw Failed(call: "connect", code: errno) }
      let request = Array("HEAD \(path) HTTP/1.0\r\n\r\n".utf8)
      guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
        throw Failed(call: "send", code: errno)
      }
      var buffer = [UInt8](repeating: 0, count: 4096)
      while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
    }
  }
}
