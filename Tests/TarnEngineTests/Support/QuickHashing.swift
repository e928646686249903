import TarnCore

/// Digests that tell contents apart and are quick in a build without optimisation.
struct QuickHashing: Hashing {
  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher { QuickHasher(algorithm) }
}

private final class QuickHasher: Hasher {
  let algorithm: DigestAlgorithm
  private var state: UInt64 = 0xcbf2_9ce4_8422_2325
  private var rest: [UInt8] = []
  private var count: UInt64 = 0

  init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
  }

  /// Eight bytes at a time, wherever the chunks end.
  func update(_ bytes: UnsafeRawBufferPointer) {
    count += UInt64(bytes.count)
    var start = 0
    if !rest.isEmpty {
      start = min(8 - rest.count, bytes.count)
      rest += bytes[..<start]
      guard rest.count == 8 else { return }
      mix(rest.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
      rest = []
    }
    while start + 8 <= bytes.count {
      mix(bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
      start += 8
    }
    rest = Array(bytes[start...])
  }

  func finish() -> Digest {
    for byte in rest { mix(UInt64(byte)) }
    mix(count)
    var bytes: [UInt8] = []
    while bytes.count < algorithm.length {
      mix(UInt64(algorithm.rawValue))
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: state >> ($0 * 8)) }
    }
    return Digest(algorithm, padding: bytes)
  }

  private func mix(_ word: UInt64) {
    state = (state ^ word) &* 0x100_0000_01b3
    state ^= state >> 29
  }
}
