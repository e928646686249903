import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct ChecksumListTests {
  static let hash = String(repeating: "ab", count: 32)

  @Test func readsTheFormsOfCoreutils() {
    let text = """
      \(Self.hash)  text
      \(Self.hash) *binary
      \(Self.hash)  *star
      \(Self.hash) one-space
      \\\(Self.hash)  a\\\\b\\nc\\rd
      \(Self.hash.uppercased())  ./sub//../x
      \(Self.hash)  ./sub/ü #%.txt
      \(Self.hash)  ../up
      \(Self.hash)  /etc/passwd
      \(Self.hash)  back\\slash

      # comment
      \(Self.hash)   leading

      """
    let outcome = parse(text)
    #expect(
      outcome.names == ["text", "binary", "*star", "one-space", "sub/ü #%.txt", "back\\\\slash", " leading"])
    #expect(
      outcome.codes == ["path-control-character", "path-empty-segment", "path-dot-segment", "path-absolute"])
    #expect(outcome.isComplete)
    #expect(outcome.entries[4].sources == [Source(url: "https://example.org/pub/sub/%C3%BC%20%23%25.txt")])
    #expect(outcome.entries[0].digest?.hex == Self.hash)
  }

  @Test func readsTags() {
    let text = """
      SHA256 (a) = b.txt) = \(Self.hash)\r
      SHA2-256(openssl.txt)= \(Self.hash)\r
      MD5   (padded) = \(Self.hash.prefix(32))\r
      SHA256 (padded) = \(Self.hash)\r
      \\SHA256 (x\\\\y) = \(Self.hash)\r
      BLAKE2b-256 (b2) = \(Self.hash)\r
      SM3 (sm3) = \(Self.hash)\r

      """
    let outcome = parse(text)
    #expect(outcome.names == ["a) = b.txt", "openssl.txt", "padded", "x\\\\y"])
    #expect(outcome.entries[2].digests.map(\.algorithm) == [.sha256, .md5])
    #expect(outcome.codes == ["digest-unsupported", "digest-unsupported"])
    #expect(outcome.isComplete)
  }

  /// A digest that can be checked beside one that cannot is enough, whichever comes first.
  @Test func oneDigestThatCanBeCheckedIsEnough() {
    let text = """
      BLAKE2b-256 (a) = \(Self.hash)
      SHA256 (./a) = \(Self.hash)
      SHA256 (b) = \(Self.hash)
      BLAKE2b-256 (b) = \(Self.hash)
      MD5 (b) = \(Self.hash.prefix(32))
      BLAKE2b-256 (c) = \(Self.hash)
      SM3 (c) = \(Self.hash)
      SHA256 (d) = \(Self.hash)
      BLAKE2b-256 (e) = \(Self.hash)

      """
    let outcome = parse(text)
    #expect(outcome.names == ["a", "b", "d"])
    #expect(outcome.entries[1].digests.map(\.algorithm) == [.sha256, .md5])
    #expect(outcome.refused.map { $0.path?.printable } == ["c", "e"])
  }

  @Test func takesTheAlgorithmFromTheLength() {
    for (length, algorithm) in [
      (32, DigestAlgorithm.md5), (40, .sha1), (56, .sha224), (64, .sha256), (96, .sha384), (128, .sha512),
    ] {
      let outcome = parse("\u{FEFF}" + String(repeating: "0", count: length) + "  x\n")
      #expect(outcome.entries.first?.digest?.algorithm == algorithm)
    }
  }

  @Test(arguments: [
    ("home/b2-e2e/", false), ("b2sums.txt", true), ("SM3SUMS", true), ("BLAKE3", true), ("SHA256SUMS", false),
    ("sha384", false), ("B3SUMS", true), ("x.b3", true), ("x.sha3", true), ("KECCAK256SUMS", true),
    ("RMD160SUMS", true), ("x.rmd160", true), ("x.whirlpool", true), ("MD4SUMS", true), ("x.tiger", true),
    ("x.stribog256", true), ("SHA512_256SUMS", true), ("tiger.txt", false), ("mac-tiger.txt", false),
    ("checksums-1.0-b2", false),
    ("checksums-1.0-b2.txt", false), ("sm3-firmware.txt", false), ("blakes7-checksums.txt", false),
    ("sha3rpa.txt", false),
    ("blake2b.txt", true), ("sha3-256sums", true), ("x.sm3", true), ("tiger-1.0.sha256", false),
    ("sha-512-256.txt", true), ("x.sha_512_224", true), ("SHA-512.256.txt", false), ("sha-512.txt", false),
    ("tiger-1.0", false), ("b3.tar.gz.sha512", false), ("md4-2.0.list", false),
  ])
  func distrustsBareDigestsOfOtherLists(name: String, isRefused: Bool) {
    let outcome = parse("\(Self.hash)  x\n", url: "https://example.org/\(name)")
    #expect(outcome.codes == (isRefused ? ["digest-unsupported"] : []))
  }

  @Test func readsTheSignedPartOnly() {
    let text = """
      -----BEGIN PGP SIGNED MESSAGE-----
      Hash: SHA256

      # first.iso: 123 bytes
      SHA256 (first.iso) = \(Self.hash)
      - # -dashed: 4 bytes
      - \(Self.hash)  -dashed
      -----BEGIN PGP SIGNATURE-----

      iQEz
      -----END PGP SIGNATURE-----
      \(Self.hash)  unsigned

      """
    let outcome = parse(text)
    #expect(outcome.names == ["first.iso", "-dashed"])
    // What is left out may be a part of the list: nothing is deleted for it.
    #expect(
      outcome.end?.incompleteReason == "line 12 names a file outside of the signed text, and is left out")
    #expect(outcome.entries.map(\.size) == [123, 4])
    #expect(!outcome.isComplete)
    #expect(parse(text.replacing("  unsigned", with: "")).isComplete)
    let cut = parse(String(text.prefix(200)))
    #expect(!cut.isComplete)
  }

  /// What stands between two lines that name files was one of them.
  @Test(arguments: [
    ("what is this", ["line-malformed"]), (String(hash.dropLast()) + "  z", ["line-malformed"]),
  ])
  func isNotCompleteWhenALineIsNotUnderstood(line: String, codes: [String]) {
    let outcome = parse("\(Self.hash)  x\n\(line)\n\(Self.hash)  y")
    #expect(outcome.names == ["x", "y"])
    #expect(outcome.codes == codes)
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.end?.incompleteReason.contains("line 2") == true)
  }

  @Test func seesACutDigest() {
    for cut in 1..<(Self.hash.count + 3) {
      let outcome = parse("\(Self.hash)  x\n" + "\(Self.hash)  y".prefix(cut).description)
      // With its whole name the line could still be one with a longer name that was cut.
      #expect(!outcome.isComplete, "cut at \(cut)")
      if cut <= Self.hash.count + 2 { #expect(outcome.end == nil, "cut at \(cut)") }
    }
  }

  @Test func limitsLines() {
    let outcome = parse("\(Self.hash)  x\n" + String(repeating: "a", count: 70_000))
    #expect(outcome.failure?.code == "line-too-long")
    #expect(outcome.failure?.line == 2)
  }

  @Test func neverUsesAPassword() {
    let outcome = parse("\(Self.hash)  x\n", url: "https://me:secret@example.org/SHA256SUMS")
    #expect(outcome.codes == ["no-usable-source"])
  }

  @Test func neverMixesNulSeparatedNames() {
    let outcome = parse("\(Self.hash)  x\0\(Self.hash)  y\0")
    #expect(outcome.failure?.code == "feed-not-recognised")
  }
}
