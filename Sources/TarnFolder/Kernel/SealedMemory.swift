import Glibc
import LinuxShim

/// Bytes in an in-memory file that nobody can change any more (memfd_create(2)), for another process to read.
package final class SealedMemory: Sendable {
  /// The descriptor, to be read from its beginning.
  package let descriptor: Int32

  /// - Returns: `nil` when the kernel does not provide one.
  package init?(_ bytes: [UInt8]) {
    descriptor = bytes.withUnsafeBytes { tarn_sealed_memory($0.baseAddress, $0.count) }
    if descriptor < 0 { return nil }
  }

  deinit { _ = tarn_close(descriptor) }

  /// Sends the file to the listener of a Unix socket, in an empty datagram.
  ///
  /// - Returns: false when it could not be sent, for whatever reason.
  package func send(to path: String) -> Bool { tarn_send_descriptor(path, descriptor) == 0 }
}

/// Watches for the end of a child process.
package final class ProcessWatch: Sendable {
  /// A descriptor that becomes readable (poll(2)) when the child has ended.
  package let descriptor: Int32

  /// - Parameter process: a child that has not been waited for.
  /// - Returns: `nil` when the kernel does not provide one.
  package init?(_ process: Int32) {
    descriptor = tarn_open_process(process)
    if descriptor < 0 { return nil }
  }

  deinit { _ = tarn_close(descriptor) }
}
