import Glibc
package import TarnCore

/// Reports the state of the service to systemd (sd_notify(3)): one datagram per message to `$NOTIFY_SOCKET`. Without that variable
/// nothing is sent. Any thread; never waits.
package struct ServiceNotifier: Sendable {
  private let address: String?
  /// The longest time between two keep-alive messages; `nil` when systemd asks for none.
  package let watchdog: Duration?

  package init(environment: [String: String]) {
    let path = environment["NOTIFY_SOCKET"] ?? ""
    address = path.hasPrefix("/") || path.hasPrefix("@") ? path : nil
    // With another process ID it is meant for another process of the unit.
    let isOurs = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
    watchdog =
      isOurs
      ? environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { $0 > 0 ? .microseconds($0) : nil } : nil
  }

  /// Reports that the service is ready. `status` is shown by `systemctl status`.
  package func ready(_ status: String) { send("READY=1\n\(Self.line(status))") }

  package func status(_ status: String) { send(Self.line(status)) }

  /// Reports that the settings are being read again; `ready` ends that.
  ///
  /// - Parameter now: the time by CLOCK_MONOTONIC, which systemd 253 and later require.
  package func reloading(now: Instant) { send("RELOADING=1\nMONOTONIC_USEC=\(now.nanoseconds / 1000)") }

  package func stopping(_ status: String) { send("STOPPING=1\n\(Self.line(status))") }

  /// Reports that the main loop is alive.
  package func alive() { if watchdog != nil { send("WATCHDOG=1") } }

  private static func line(_ status: String) -> String {
    "STATUS=" + status.split(whereSeparator: \.isNewline).joined(separator: " ")
  }

  private func send(_ message: String) {
    guard let address else { return }
    _ = Datagram.send(Array(message.utf8), to: address)
  }
}

/// Sends one datagram to a Unix socket.
package enum Datagram {
  /// - Parameter address: a path, or `@` and an abstract name.
  /// - Returns: false when it could not be sent, for whatever reason.
  package static func send(_ bytes: [UInt8], to address: String) -> Bool {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let path = Array(address.utf8)
    guard !path.isEmpty, path.count < MemoryLayout.size(ofValue: name.sun_path) else { return false }
    withUnsafeMutableBytes(of: &name.sun_path) { buffer in
      buffer.copyBytes(from: path)
      if path[0] == UInt8(ascii: "@") { buffer[0] = 0 }
    }
    let length = socklen_t(
      MemoryLayout<sa_family_t>.size + path.count + (path[0] == UInt8(ascii: "@") ? 0 : 1))
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let sent = withUnsafePointer(to: &name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), address, length)
      }
    }
    return sent == bytes.count
  }
}
