package import TarnCore

/// Digests without a library, for tests: SHA-256 is the real one (FIPS 180-4); the others are made from it by
/// cutting or repeating, so they tell contents apart and fit nothing else.
package struct PlainHashing: Hashing {
  package init() {}

  package func hasher(_ algorithm: DigestAlgorithm) -> any Hasher { PlainHasher(algorithm) }
}

private final class PlainHasher: Hasher {
  let algorithm: DigestAlgorithm
  private var sha = SHA256()

  init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
  }

  func update(_ bytes: UnsafeRawBufferPointer) {
    sha.update(bytes)
  }

  func finish() -> Digest {
    let bytes = sha.finish()
    let salted = algorithm == .sha256 ? bytes : (bytes + bytes).map { $0 ^ algorithm.rawValue }
    guard let digest = Digest(algorithm, bytes: Array(salted.prefix(algorithm.length))) else {
      preconditionFailure("no algorithm is longer than 64 bytes")
    }
    return digest
  }
}

private struct SHA256 {
  private var state: [UInt32] = [
    0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
  ]
  private var waiting: [UInt8] = []
  /// Of the block at hand; kept, so that it is made once.
  private var words = [UInt32](repeating: 0, count: 64)
  /// Bytes in whole blocks so far.
  private var count: UInt64 = 0

  mutating func update(_ bytes: some Sequence<UInt8>) {
    waiting += bytes
    var start = 0
    while waiting.count - start >= 64 {
      block(start)
      start += 64
    }
    count += UInt64(start)
    waiting.removeFirst(start)
  }

  mutating func finish() -> [UInt8] {
    let bits = (count + UInt64(waiting.count)) * 8
    update([0x80])
    update([UInt8](repeating: 0, count: (56 - waiting.count + 64) % 64))
    update((0..<8).reversed().map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) })
    return state.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
  }

  /// Over pointers: tests hash megabytes, and without the optimiser every look into an array costs a call or two.
  private mutating func block(_ start: Int) {
    waiting.withUnsafeBufferPointer { waiting in
      Self.constants.withUnsafeBufferPointer { constants in
        words.withUnsafeMutableBufferPointer { words in
          state.withUnsafeMutableBufferPointer { state in
            guard let bytes = waiting.baseAddress, let constants = constants.baseAddress,
              let words = words.baseAddress, let state = state.baseAddress
            else { return }
            Self.expand(bytes + start, words)
            Self.compress(state, words, constants)
          }
        }
      }
    }
  }

  private static func expand(_ bytes: UnsafePointer<UInt8>, _ words: UnsafeMutablePointer<UInt32>) {
    var index = 0
    while index < 16 {
      let at = bytes + index &* 4
      words[index] = UInt32(at[0]) &<< 24 | UInt32(at[1]) &<< 16 | UInt32(at[2]) &<< 8 | UInt32(at[3])
      index &+= 1
    }
    while index < 64 {
      let low = words[index &- 15]
      let high = words[index &- 2]
      let sum0 = (low &>> 7 | low &<< 25) ^ (low &>> 18 | low &<< 14) ^ (low &>> 3)
      let sum1 = (high &>> 17 | high &<< 15) ^ (high &>> 19 | high &<< 13) ^ (high &>> 10)
      words[index] = words[index &- 16] &+ sum0 &+ words[index &- 7] &+ sum1
      index &+= 1
    }
  }

  private static func compress(
    _ state: UnsafeMutablePointer<UInt32>, _ words: UnsafeMutablePointer<UInt32>,
    _ constants: UnsafePointer<UInt32>
  ) {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    var (e, f, g, h) = (state[4], state[5], state[6], state[7])
    var index = 0
    while index < 64 {
      let sum1 = (e &>> 6 | e &<< 26) ^ (e &>> 11 | e &<< 21) ^ (e &>> 25 | e &<< 7)
      let choice = (e & f) ^ (~e & g)
      let first = h &+ sum1 &+ choice &+ constants[index] &+ words[index]
      let sum0 = (a &>> 2 | a &<< 30) ^ (a &>> 13 | a &<< 19) ^ (a &>> 22 | a &<< 10)
      let second = sum0 &+ ((a & b) ^ (a & c) ^ (b & c))
      (h, g, f, e) = (g, f, e, d &+ first)
      (d, c, b, a) = (c, b, a, first &+ second)
      index &+= 1
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
    state[4] &+= e
    state[5] &+= f
    state[6] &+= g
    state[7] &+= h
  }

  /// The fractional parts of the cube roots of the first 64 primes, computed as integers.
  private static let constants: [UInt32] = {
    var primes: [UInt64] = []
    var candidate: UInt64 = 2
    while primes.count < 64 {
      if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
      candidate += 1
    }
    return primes.map(fractionOfCubeRoot)
  }()

  /// floor(cbrt(prime) * 2^32) modulo 2^32, by bisection over exact 128-bit products.
  private static func fractionOfCubeRoot(_ prime: UInt64) -> UInt32 {
    var low: UInt64 = 0
    var high: UInt64 = 8 << 32
    while high - low > 1 {
      let middle = (low + high) / 2
      if isCubeAtMost(middle, prime) { low = middle } else { high = middle }
    }
    return UInt32(truncatingIfNeeded: low)
  }

  /// (x / 2^32)^3 <= prime, that is x^3 <= prime * 2^96. x < 2^36, so x^3 < 2^108.
  private static func isCubeAtMost(_ x: UInt64, _ prime: UInt64) -> Bool {
    let cube = UInt128(x) * UInt128(x) * UInt128(x)
    return cube <= UInt128(prime) << 96
  }
}
