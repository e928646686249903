import TarnCore
import Testing

/// Which files of a directory index hold digests of those beside them, by their names, and what comes of these digests.
@Suite struct ChecksumFileTests {
  private func file(_ name: String, size: UInt64? = 100) -> ChecksumFile? {
    ChecksumFile(Entry(path: path(name), size: size, sources: [Source(url: "http://h/" + name)]))
  }

  @Test(arguments: [
    ("SHA256SUMS", DigestAlgorithm.sha256), ("pub/SHA512SUMS.txt", .sha512), ("MD5SUMS", .md5),
    ("sha256sum.txt", .sha256), ("checksums.txt", nil), ("CHECKSUM", nil), ("SHASUMS256.txt", nil),
    ("tool_1.0.0_checksums.txt", nil), ("terraform_1.9.0_SHA256SUMS", .sha256), ("SHA256", .sha256),
    ("Fedora-Server-40-1.14-x86_64-CHECKSUM", nil), ("md5sums", .md5), ("checksums_sha256.txt", .sha256),
  ])
  func listsAreKnownByTheirNames(_ name: String, _ algorithm: DigestAlgorithm?) throws {
    let list = try #require(file(name))
    #expect(list.file == nil && list.algorithm == algorithm && !list.isGuess)
  }

  @Test(arguments: [
    ("a/x.iso.sha256", "a/x.iso", DigestAlgorithm.sha256), ("x.tar.gz.md5", "x.tar.gz", .md5),
    ("x.iso.SHA512SUM.txt", "x.iso", .sha512), ("x.zip.sha", "x.zip", nil),
    ("stage3.tar.xz.DIGESTS", "stage3.tar.xz", nil), ("x.sha256sum", "x", .sha256),
  ])
  func theDigestOfOneFileIsKnownByItsName(_ name: String, _ of: String, _ algorithm: DigestAlgorithm?) throws
  {
    let list = try #require(file(name))
    #expect(list.file == path(of) && list.algorithm == algorithm && !list.isGuess)
  }

  /// What is none of that name is no news.
  @Test(arguments: [
    "sha256sums.asc", "CHECKSUM.SHA256-FreeBSD-14.1-RELEASE-amd64", "fast-sha256", "x.iso.sha256.asc",
  ])
  func othersMayBeLists(_ name: String) throws { #expect(try #require(file(name)).isGuess) }

  @Test(arguments: [
    "consums.iso", "checksum-tool-1.0.tar.gz", "x.iso", "SHA256SUMS.gpg", "SHA256SUMS.sign", "x.sfv",
    "b2sums",
    "MD5SUMS.old", "README", "digest", "sums", "md5deep-4.4.zip", "x.iso.asc", "sha256sums.tar.gz",
  ])
  func othersAreNone(_ name: String) { #expect(file(name) == nil) }

  @Test func anEmptyFileIsNone() {
    #expect(file("SHA256SUMS", size: 0) == nil)
    #expect(file("SHA256SUMS", size: nil) != nil)
    #expect(ChecksumFile(Entry(refused: path("SHA256SUMS"))) == nil)
  }

  // MARK: What their digests are for

  private let plain = Entry(path: path("a"), size: 100, sources: [Source(url: "http://h/a")])

  private func voucher(_ digests: [Digest], of list: String = "SHA256SUMS") -> Entry {
    Entry(vouchingFor: path("a"), digests: digests, list: path(list))
  }

  @Test func theyAreThoseOfAnEntryWithout() {
    let vouched = plain.vouched(by: voucher([digest("W")]))
    #expect(vouched.digests == [digest("W")] && vouched.voucher == path("SHA256SUMS"))
    #expect(vouched.size == 100 && vouched.sources == plain.sources && !vouched.isVoucher)
    // What the feed gives decides, and so does the list that was read first.
    var given = plain
    given.digests = [digest("G", .md5)]
    #expect(given.vouched(by: voucher([digest("W")])) == given)
    #expect(vouched.vouched(by: voucher([digest("V")], of: "other")) == vouched)
    // The list of the stronger one is named.
    let both = vouched.vouched(by: voucher([digest("W", .sha512)], of: "SHA512SUMS"))
    #expect(both.digests == [digest("W", .sha512), digest("W")] && both.voucher == path("SHA512SUMS"))
    let weaker = vouched.vouched(by: voucher([digest("W", .md5)], of: "MD5SUMS"))
    #expect(weaker.digests == [digest("W"), digest("W", .md5)] && weaker.voucher == path("SHA256SUMS"))
    let refused = Entry(refused: path("a"))
    #expect(refused.vouched(by: voucher([digest("W")])) == refused && refused.isRefused)
  }
}
