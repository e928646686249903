import TarnCore

/// SHA-256 only (FIPS 180-4), for tests: the bytes are gathered and digested at the end.
struct TestHashing: Hashing {
  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher { TestHasher(algorithm) }
}

final class TestHasher: Hasher {
  let algorithm: DigestAlgorithm
  private var bytes: [UInt8] = []

  init(_ algorithm: DigestAlgorithm) { self.algorithm = algorithm }

  func update(_ bytes: UnsafeRawBufferPointer) { self.bytes += Array(bytes) }

  func finish() -> Digest {
    guard let digest = Digest(.sha256, bytes: sha256(bytes)) else { preconditionFailure("32 bytes") }
    return digest
  }
}

func sha256(_ message: [UInt8]) -> [UInt8] {
  var padded = message + [0x80]
  while padded.count % 64 != 56 { padded.append(0) }
  padded += (0..<8).map { UInt8(truncatingIfNeeded: UInt64(message.count * 8) >> UInt64(56 - 8 * $0)) }
  var state: [UInt32] = roots.prefix(8).map { fraction($0.squareRoot()) }
  let constants: [UInt32] = roots.map { fraction(cubeRoot($0)) }
  for block in stride(from: 0, to: padded.count, by: 64) {
    var words = (0..<16).map { index in
      padded[(block + 4 * index)..<(block + 4 * index + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
    for index in 16..<64 {
      let a = words[index - 15]
      let b = words[index - 2]
      let first = rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)
      let second = rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10)
      words.append(words[index - 16] &+ first &+ words[index - 7] &+ second)
    }
    var v = state
    for index in 0..<64 {
      let sum1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)
      let choice = (v[4] & v[5]) ^ (~v[4] & v[6])
      let first = v[7] &+ sum1 &+ choice &+ constants[index] &+ words[index]
      let sum0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)
      let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])
      v = [first &+ sum0 &+ majority, v[0], v[1], v[2], v[3] &+ first, v[4], v[5], v[6]]
    }
    state = zip(state, v).map { $0 &+ $1 }
  }
  return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) } }
}

private func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 { value >> count | value << (32 - count) }

/// The first 64 primes, whose roots make the constants.
private let roots: [Double] = (2...311).filter { number in (2..<number).allSatisfy { number % $0 != 0 } }.map(
  Double.init)

private func fraction(_ value: Double) -> UInt32 { UInt32((value - value.rounded(.down)) * 4_294_967_296) }

private func cubeRoot(_ value: Double) -> Double {
  var root = value
  for _ in 0..<200 { root -= (root * root * root - value) / (3 * root * root) }
  return root
}
