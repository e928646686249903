import TarnCore
import TarnRuntime

/// Names for files in `partial/`: 16 hexadecimal digits that count up from a random number. They are short because the file system
/// searches its blocks of names linearly. Any thread.
struct PartialNames: Sendable {
  private let last: Locked<UInt64>

  init(_ random: any RandomSource) {
    last = Locked(random.next())
  }

  /// Returns a name that this process has not used yet. Another process has left it there only with a chance of one in 2^64 for
  /// each file.
  func next() -> String {
    var number = last.withLock { last in
      last &+= 1
      return last
    }
    return String(unsafeUninitializedCapacity: 16) { text in
      for index in (0..<16).reversed() {
        let digit = UInt8(truncatingIfNeeded: number & 15)
        text[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
        number >>= 4
      }
      return 16
    }
  }
}
