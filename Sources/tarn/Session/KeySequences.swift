/// Tells keys from the sequences of arrow keys and the like (ECMA-48, 5.4; xterm's "Control Sequences").
///
/// Used by one thread.
struct KeySequences {
  private enum State {
    case ground
    /// The state after ESC.
    case escaped
    /// The state in a control sequence, before its final byte.
    case control
    /// The state after ESC O, before the one byte that follows.
    case single
  }
  private var state = State.ground
  private static let escape = UInt8(0x1B)

  /// Returns the keys among `bytes`, which were read at once, in their order. Sequences and keys typed with
  /// Alt are skipped.
  ///
  /// A sequence may continue in the next call. An ESC at the end is the key itself: terminals write a
  /// sequence at once.
  mutating func keys(in bytes: some Sequence<UInt8>) -> [UInt8] {
    let keys = bytes.filter { isKey($0) }
    if state == .escaped { state = .ground }
    return keys
  }

  /// - Returns: whether the byte is a key.
  private mutating func isKey(_ byte: UInt8) -> Bool {
    if byte == Self.escape {
      state = .escaped
      return false
    }
    switch state {
    case .ground:
      return true
    case .escaped:
      state = byte == UInt8(ascii: "[") ? .control : byte == UInt8(ascii: "O") ? .single : .ground
    case .control:
      if (0x40...0x7E).contains(byte) { state = .ground }
    case .single:
      state = .ground
    }
    return false
  }
}
