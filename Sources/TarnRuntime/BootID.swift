import Glibc
import TarnCore

/// Identifies the present boot of the machine.
package enum BootID {
  /// Returns the kernel's random ID of this boot, 36 bytes; "" when it cannot be read, which counts as a new boot.
  package static func read(from path: String = "/proc/sys/kernel/random/boot_id") -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return "" }
    let text = buffer.prefix(count).prefix {
      $0 == 0x2D || $0.isASCIIDigit || (0x61...0x66).contains($0)
    }
    return String(decoding: text, as: UTF8.self)
  }
}
