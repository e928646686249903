/// Where random numbers come from. Passed in, so that tests can repeat a run.
package protocol RandomSource: Sendable {
  /// 64 uniform bits. Any thread may call.
  func next() -> UInt64
}

extension RandomSource {
  /// Uniform in `0..<bound`; 0 for a bound of 0.
  package func next(below bound: UInt64) -> UInt64 {
    guard bound > 1 else { return 0 }
    // Values below `skewed` would make the small remainders likelier.
    let skewed = (0 &- bound) % bound
    while true {
      let value = next()
      if value >= skewed { return value % bound }
    }
  }

  /// Uniform in `[0, 1)`, 53 bits.
  package func unit() -> Double {
    Double(next() >> 11) * 0x1p-53
  }

  /// `count` random bytes.
  package func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count {
      var word = next()
      for _ in 0..<min(8, count - bytes.count) {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return bytes
  }
}

/// The kernel's generator (getrandom); fit for tokens.
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
