/// The source of random numbers. Passed in, so that tests can repeat a run.
package protocol RandomSource: Sendable {
  /// Returns 64 uniform bits. Any thread may call.
  func next() -> UInt64
}

extension RandomSource {
  /// Returns a uniform number in `0..<bound`; 0 for a bound of 0.
  package func next(below bound: UInt64) -> UInt64 {
    guard bound > 1 else { return 0 }
    // Values below `skewed` would make the small remainders likelier.
    let skewed = (0 &- bound) % bound
    while true {
      let value = next()
      if value >= skewed { return value % bound }
    }
  }

  /// Returns a uniform number in `[0, 1)` with 53 bits.
  package func unit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }

  /// Returns 32 hexadecimal digits, 128 bits: a unique name.
  package func name() -> String {
    String(unsafeUninitializedCapacity: 32) { text in
      for half in 0..<2 {
        var word = next()
        for index in 0..<16 {
          let digit = UInt8(truncatingIfNeeded: word & 15)
          text[16 * half + index] = digit < 10 ? 0x30 + digit : 0x57 + digit
          word >>= 4
        }
      }
      return 32
    }
  }
}

extension RandomSource {
  /// Returns six hexadecimal digits, to tell a few names apart.
  package func token() -> String { String(name().prefix(6)) }

  /// Returns a UUID of version 4 (RFC 9562) in lower case.
  package func uuid() -> String {
    var digits = Array(name().utf8)
    digits[12] = UInt8(ascii: "4")
    // The first two bits are 1 and 0.
    digits[16] = Array("89ab".utf8)[Int(next(below: 4))]
    let parts = [digits[..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20...]]
    return parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
  }
}

/// The kernel's generator (getrandom), suitable for tokens.
package struct SystemRandom: RandomSource {
  package init() {}

  package func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

/// SplitMix64: the same seed gives the same numbers. Not for secrets.
package final class SeededRandom: RandomSource {
  private let state: Locked<UInt64>

  package init(seed: UInt64) {
    state = Locked(seed)
  }

  package func next() -> UInt64 {
    state.withLock { state in
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
      return word ^ (word >> 31)
    }
  }
}
