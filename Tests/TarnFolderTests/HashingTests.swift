import TarnCore
import TarnCrypto
import TarnFolder
import TestSupport
import Testing

@Suite struct HashingTests {
  /// FIPS 180-4 and RFC 1321: the digests of "abc".
  @Test(arguments: [
    (DigestAlgorithm.md5, "900150983cd24fb0d6963f7d28e17f72"),
    (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (.sha224, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
    (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      .sha384,
      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    ),
    (
      .sha512,
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
  ])
  func digestsAreTheStandards(_ algorithm: DigestAlgorithm, _ hex: String) {
    #expect(OpenSSLHashing().digest(algorithm, of: bytes("abc")).hex == hex)
  }

  @Test func partsGiveTheDigestOfTheWhole() {
    let contents = noise(1000)
    let hasher = OpenSSLHashing().hasher(.sha256)
    for start in stride(from: 0, to: 1000, by: 7) {
      contents[start..<min(start + 7, 1000)].withUnsafeBytes { hasher.update($0) }
    }
    hasher.update(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(hasher.finish() == OpenSSLHashing().digest(.sha256, of: contents))
  }

  /// The tests' own SHA-256 is the real one.
  @Test(arguments: [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000])
  func theFakeAgreesOnSHA256(_ count: Int) {
    let contents = noise(count)
    #expect(PlainHashing().digest(.sha256, of: contents) == OpenSSLHashing().digest(.sha256, of: contents))
    let algorithms = DigestAlgorithm.allCases.map { PlainHashing().digest($0, of: contents).bytes.prefix(16) }
    #expect(Set(algorithms).count == algorithms.count)
  }
}
