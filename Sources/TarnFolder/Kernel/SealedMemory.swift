import Glibc
import LinuxShim

/// Bytes in a file of memory's that nobody can change any more (memfd_create(2)): for another process to read.
package final class SealedMemory: Sendable {
  /// Read from its beginning.
  package let descriptor: Int32

  /// - Returns: nil when the kernel gives none.
  package init?(_ bytes: [UInt8]) {
    descriptor = bytes.withUnsafeBytes { tarn_sealed_memory($0.baseAddress, $0.count) }
    if descriptor < 0 { return nil }
  }

  deinit { _ = tarn_close(descriptor) }

  /// Hands the file to who listens at a Unix socket, in a datagram without a byte.
  ///
  /// - Returns: false when it could not be sent, for whatever reason.
  package func send(to path: String) -> Bool { tarn_send_descriptor(path, descriptor) == 0 }
}

/// Sees the end of a child.
package final class ProcessWatch: Sendable {
  /// Can be read (poll(2)) once the child has ended.
  package let descriptor: Int32

  /// - Parameter process: a child that nobody has waited for.
  /// - Returns: nil when the kernel gives none.
  package init?(_ process: Int32) {
    descriptor = tarn_open_process(process)
    if descriptor < 0 { return nil }
  }

  deinit { _ = tarn_close(descriptor) }
}
