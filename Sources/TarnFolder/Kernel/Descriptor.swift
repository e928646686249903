import LinuxShim

/// An open descriptor, closed with its last reference.
final class Descriptor: Sendable {
  /// Use it from a descriptor that is bound to a constant or a property: a temporary one is closed as soon as the
  /// number is read, before the call that it is meant for.
  let number: Int32

  /// Takes ownership.
  init(_ number: Int32) {
    self.number = number
  }

  deinit {
    _ = tarn_close(number)
  }
}

/// Bytes as the kernel takes them: terminated by NUL. The caller has refused names that hold one.
func cString(_ bytes: some Sequence<UInt8>) -> [CChar] {
  var terminated = bytes.map { CChar(bitPattern: $0) }
  terminated.append(0)
  return terminated
}

func cString(_ text: String) -> [CChar] {
  cString(text.utf8)
}
