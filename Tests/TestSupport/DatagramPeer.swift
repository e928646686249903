import Glibc

/// A socket that datagrams are sent to, as systemd and its journal have one.
package final class DatagramPeer {
  private let descriptor: Int32

  /// - Parameter address: a path, or `@` and an abstract name; at most 107 bytes.
  package init(_ address: String) {
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let isAbstract = address.hasPrefix("@")
    withUnsafeMutableBytes(of: &name.sun_path) { buffer in
      buffer.copyBytes(from: address.utf8.prefix(107))
      if isAbstract { buffer[0] = 0 }
    }
    let length = MemoryLayout<sa_family_t>.size + address.utf8.count + (isAbstract ? 0 : 1)
    let descriptor = descriptor
    _ = withUnsafePointer(to: name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(length))
      }
    }
  }

  deinit { close(descriptor) }

  /// The next one, which was sent already; nil when there is none.
  package func next() -> String? {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }

  /// The contents of the file that the next one carries (SCM_RIGHTS); nil when there is none, or it carries no file.
  package func nextFile() -> String? {
    var (byte, count) = (UInt8(0), 0)
    // A header of 16 bytes, and one number behind it (cmsg(3)).
    var control = [UInt8](repeating: 0, count: 24)
    let size = control.count
    withUnsafeMutablePointer(to: &byte) { byte in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: UnsafeMutableRawPointer(byte), iov_len: 1)
        withUnsafeMutablePointer(to: &part) { part in
          var message = msghdr()
          (message.msg_iov, message.msg_iovlen) = (part, 1)
          (message.msg_control, message.msg_controllen) = (control.baseAddress, size)
          count = recvmsg(descriptor, &message, Int32(MSG_DONTWAIT))
        }
      }
    }
    guard count == 0 else { return nil }
    let file = control.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: Int32.self) }
    guard file > 2 else { return nil }
    defer { close(file) }
    var (bytes, offset) = ([UInt8](repeating: 0, count: 4 << 20), 0)
    while true {
      let room = bytes.count - offset
      let count = bytes.withUnsafeMutableBytes {
        pread(file, $0.baseAddress.map { $0 + offset }, room, off_t(offset))
      }
      guard count > 0 else { break }
      offset += count
    }
    return String(decoding: bytes[..<offset], as: UTF8.self)
  }

  package var isSilent: Bool { next() == nil }
}
