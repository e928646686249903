/// The bytes that the scripted server sends: sha256("seed:0") sha256("seed:1") ..., cut to the size.
enum SeedStream {
  static func bytes(seed: String, size: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size + 32)
    var index = 0
    while bytes.count < size {
      bytes += Sha256.digest(Array("\(seed):\(index)".utf8))
      index += 1
    }
    return Array(bytes.prefix(size))
  }
}

/// SHA-256 (FIPS 180-4), for short messages in tests only.
enum Sha256 {
  static func digest(_ message: [UInt8]) -> [UInt8] {
    var padded = message + [0x80]
    while padded.count % 64 != 56 { padded.append(0) }
    for shift in stride(from: 56, through: 0, by: -8) {
      padded.append(UInt8(truncatingIfNeeded: (message.count * 8) >> shift))
    }
    var state = initial
    for start in stride(from: 0, to: padded.count, by: 64) { compress(&state, padded[start..<(start + 64)]) }
    return state.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
  }

  private static func compress(_ state: inout [UInt32], _ block: ArraySlice<UInt8>) {
    var words = [UInt32](repeating: 0, count: 64)
    for (index, byte) in block.enumerated() { words[index / 4] = words[index / 4] << 8 | UInt32(byte) }
    for index in 16..<64 {
      let a = words[index - 15]
      let b = words[index - 2]
      words[index] =
        words[index - 16] &+ (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) &+ words[index - 7]
        &+ (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10))
    }
    var v = state
    for index in 0..<64 {
      let sum = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)
      let choice = (v[4] & v[5]) ^ (~v[4] & v[6])
      let first = v[7] &+ sum &+ choice &+ constants[index] &+ words[index]
      let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])
      let second = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) &+ majority
      v = [first &+ second, v[0], v[1], v[2], v[3] &+ first, v[4], v[5], v[6]]
    }
    for index in 0..<8 { state[index] &+= v[index] }
  }

  private static func rotate(_ word: UInt32, _ by: UInt32) -> UInt32 { word >> by | word << (32 - by) }

  private static let primes: [Double] = {
    var primes: [Int] = []
    var candidate = 2
    while primes.count < 64 {
      if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
      candidate += 1
    }
    return primes.map(Double.init)
  }()

  /// The first 32 bits of the fractional parts of the square and cube roots of the primes.
  private static let initial = primes.prefix(8).map { fraction($0.squareRoot()) }
  private static let constants = primes.map { prime in
    var root = 1.0
    for _ in 0..<200 { root -= (root * root * root - prime) / (3 * root * root) }
    return fraction(root)
  }

  private static func fraction(_ value: Double) -> UInt32 {
    UInt32((value - value.rounded(.down)) * 4_294_967_296)
  }
}
