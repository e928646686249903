import Foundation
import Glibc
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// What the kernel may hold unread of a body is fetched twice after a kill: of a near peer's it is little.
struct ReceiveBufferTests {
  /// Before the body of a file comes; of a document nothing is fetched twice, but files come by the same connection later.
  @Test(arguments: [DownloadRequest.Encoding.refused, .gzipAsked])
  func aNewConnectionToANearPeerGetsASmallOne(_ encoding: DownloadRequest.Encoding) throws {
    let listener = try #require(Listener())
    // The kernel doubles it (socket(7)).
    let small = 2 * CurlLimits.receiveBuffer
    // Under load a round trip may take longer than a near peer's.
    var sizes = (during: Int32(0), after: Int32(0))
    let isSmall = try isSoInTime {
      sizes = try receiveBuffers(of: listener, encoding)
      return sizes.after == small
    }
    #expect(isSmall, "\(sizes)")
    #expect((sizes.during == small) == (encoding == .refused))
  }

  /// Of the connection of a fresh downloader: when half of the body has come, and after the exchange.
  private func receiveBuffers(
    of listener: Listener, _ encoding: DownloadRequest.Encoding
  ) throws -> (during: Int32, after: Int32) {
    let downloader = try CurlDownloader(settings: .patient())
    defer { downloader.shutDown() }
    let receiver = Collector()
    var request = DownloadRequest(url: "http://127.0.0.1:\(listener.port)/f", limit: 10)
    request.encoding = encoding
    _ = downloader.start(request, to: receiver)
    let (connection, client) = listener.answerHalf()
    defer { close(connection) }
    _ = receiver.heard.wait(atMost: Collector.patience) { $0.bytes.isEmpty ? nil : () }
    let own = try #require((3..<Int32(1024)).first { Listener.port(of: $0, getsockname) == client })
    let during = Self.receiveBuffer(of: own)
    _ = send(connection, "k", 1, Int32(MSG_NOSIGNAL))
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(receiver.bytes == Array("ok".utf8))
    return (during, Self.receiveBuffer(of: own))
  }

  private static func receiveBuffer(of number: Int32) -> Int32 {
    var size: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    #expect(getsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0)
    return size
  }
}

/// A port of 127.0.0.1 that answers one request at a time, when it is told to.
private final class Listener {
  private let number: Int32
  let port: UInt16

  init?() {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    // accept(2) gives up then, too.
    var patience = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    guard bound == 0, listen(number, 8) == 0, let port = Self.port(of: number, getsockname) else {
      close(number)
      return nil
    }
    self.number = number
    self.port = port
  }

  deinit {
    close(number)
  }

  /// - Returns: the connection, by which one of the body's two bytes has been sent, and the client's port.
  func answerHalf() -> (connection: Int32, client: UInt16?) {
    let connection = accept(number, nil, nil)
    let client = Self.port(of: connection, getpeername)
    var head = [UInt8](repeating: 0, count: 4096)
    _ = recv(connection, &head, head.count, 0)
    let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no".utf8)
    _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
    return (connection, client)
  }

  typealias Name = (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32

  /// Of one end of a socket of IPv4; nil for anything else.
  static func port(of number: Int32, _ name: Name) -> UInt16? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(number, $0, &length) }
    }
    return result == 0 && address.sin_family == sa_family_t(AF_INET)
      ? UInt16(bigEndian: address.sin_port) : nil
  }
}
