import TarnCore
import Testing

@testable import TarnFeeds

/// What people publish as checksum lists beside the lines of coreutils, and what only looks so.
@Suite struct ChecksumFormsTests {
  static let md5 = String(repeating: "0c", count: 16)
  static let sha1 = String(repeating: "e3", count: 20)
  static let sha256 = String(repeating: "ca", count: 32)
  static let sha512 = String(repeating: "1f", count: 64)

  private func digests(_ outcome: Outcome) -> [String] {
    outcome.entries.flatMap { entry in
      entry.digests.map { "\(entry.path.printable) \($0.algorithm.name) \($0.hex)" }
    }
  }

  /// As gpg 2.2 parts the digits of a digest into lines behind a name.
  static func gpg(_ hex: String, name: String, tag: String = "") -> String {
    let upper = hex.uppercased()
    let size = [32: 2, 40: 4][hex.count] ?? 8
    let head = "\(name): \(tag)"
    var lines = [name.count > 38 ? "\(name): \n\(tag)" : head]
    let indent = String(repeating: " ", count: max(1, name.count > 38 ? tag.count : head.count))
    var column = name.count > 38 ? tag.count : head.count
    for (index, start) in stride(from: 0, to: upper.count, by: size).enumerated() {
      let group = upper.dropFirst(start).prefix(size)
      if column + size > 79 {
        lines.append(String(indent.dropLast()))
        column = indent.count
      }
      let isMiddle = size < 8 && index == upper.count / size / 2
      let gap = index == 0 ? "" : isMiddle && column > indent.count ? "  " : " "
      lines[lines.count - 1] += gap + group
      column += gap.count + size
    }
    return lines.joined(separator: "\n") + "\n"
  }

  @Test(arguments: [
    "a-1.0.tar.gz", "b c.txt", "x: y.txt", "very-long-name-of-a-file-that-makes-gpg-break-1.0.tar.gz",
  ])
  func readsTheDigestsOfGPG(name: String) {
    for (hex, algorithm) in [
      (Self.md5, "md5"), (Self.sha1, "sha-1"), (Self.sha256, "sha-256"), (Self.sha512, "sha-512"),
      (String(repeating: "ab", count: 28), "sha-224"), (String(repeating: "5d", count: 48), "sha-384"),
    ] {
      for tag in ["", "\(algorithm.uppercased().filter { $0 != "-" }) = "] {
        let text = Self.gpg(hex, name: name, tag: tag)
        let outcome = parse(text + text.replacing(name, with: "other-\(name)"))
        #expect(
          digests(outcome) == ["\(name) \(algorithm) \(hex)", "other-\(name) \(algorithm) \(hex)"], "\(text)")
        #expect(outcome.isComplete && outcome.refused.isEmpty)
        for cut in cutsThatPassForWhole(text) {
          #expect(Array(text.utf8)[cut - 1] == 0x0A, "\(text) at \(cut)")
        }
      }
    }
  }

  /// What `gpg --print-mds` printed of a file with the one byte `a`.
  @Test func readsAllDigestsOfGPG() {
    let text = """
      a-1.0.tar.gz:    MD5 = 0C C1 75 B9 C0 F1 B6 A8  31 C3 99 E2 69 77 26 61
      a-1.0.tar.gz:   SHA1 = 86F7 E437 FAA5 A7FC E15D  1DDC B9EA EAEA 3776 67B8
      a-1.0.tar.gz: RMD160 = 0BDC 9D2D 256B 3EE9 DAAE  347B E6F4 DC83 5A46 7FFE
      a-1.0.tar.gz: SHA256 = CA978112 CA1BBDCA FAC231B3 9A23DC4D A786EFF8 147C4E72
                             B9807785 AFEE48BB
      a-1.0.tar.gz: SHA512 = 1F40FC92 DA241694 750979EE 6CF582F2 D5D7D28E 18335DE0
                             5ABC54D0 560E0F53 02860C65 2BF08D56 0252AA5E 74210546
                             F369FBBB CE8C12CF C7957B26 52FE9A75

      """
    for ends in ["\n", "\r\n"] {
      let outcome = parse(text.split(separator: "\n").joined(separator: ends) + ends)
      #expect(outcome.names == ["a-1.0.tar.gz"])
      #expect(outcome.entries.first?.digests.map(\.algorithm) == [.sha512, .sha256, .sha1, .md5])
      #expect(outcome.entries.first?.digest?.hex.hasPrefix("1f40fc92da241694") == true)
      #expect(outcome.refused.isEmpty && outcome.isComplete)
    }
    #expect(
      parse("a: RMD160 = 0BDC 9D2D 256B 3EE9 DAAE  347B E6F4 DC83 5A46 7FFE\n").codes == [
        "digest-unsupported"
      ])
  }

  /// None of these is a list of files, whatever its lines end with.
  @Test(arguments: [
    "stable 20260115\nbeta 20260203\n", "fix the parser deadbeef\nmerge 1 into 2 0badcafe\n",
    "; of today\nstable 20260115\n", "a-1.0.tar.gz: 1F40FC92 DA241694 750979EE 6CF582F2\n",
    "commit \(sha1)\ncommit \(sha1.replacing("e", with: "f"))\n", "v1.2.3 \(sha1)\nv1.2.4 \(sha1)\n",
    "\(sha1)\trefs/heads/main\n\(sha1)\trefs/tags/v1\n", "\(sha1)\tHEAD\n\(sha1)\trefs/heads/main\n",
    "timeout (s) = 30\nname (of) = x\n", "\(sha256)\n", "sha256: \(sha256)\nsha1: \(sha1)\n",
    "DIST a.tar.gz 1 BLAKE2B \(sha512) SHA512 \(sha512)\n",
    "Origin: Debian\nSuite: stable\nSHA256:\n \(sha256)     1234 main/binary-amd64/Packages\n",
    "Format: 3.0 (quilt)\nChecksums-Sha256:\n \(sha256) 1234 a_1.orig.tar.gz\n",
  ])
  func whatOnlyLooksSoIsNoList(text: String) {
    let outcome = parse(text)
    #expect(outcome.failure?.code == "feed-not-recognised" && outcome.items.isEmpty, "\(outcome)")
    #expect(outcome.failure?.hint != nil)
  }

  @Test func readsSFVByItsNameOrItsComment() {
    #expect(parse("a 00000001\nb 20260115\n", url: "https://example.org/X.SFV").names == ["a", "b"])
    #expect(parse("; made by hand\na 0000000f\n").names == ["a"])
    #expect(parse("a 0000000f\n").failure?.code == "feed-not-recognised")
  }

  /// A file whose digest was cut, or lost, is wanted: it is refused, or the list may not be whole.
  @Test(arguments: [
    ("035e79  a.iso", true), ("9  a.iso", true), ("ca *a.iso", true), ("cafe\ta.iso", true),
    ("f8d00b7857b4b639dee0", true), ("z1y2x3w4v5u6t7s8zyxw  a.iso", true), ("SHA256 (a.iso", true),
    ("a.iso", true), ("  a.iso", true), ("sha256sum: a.iso: No such file or directory", true),
    ("<html><body>502 Bad Gateway</body></html>", true), ("<<<<<<< HEAD", true), ("a\0b", true),
    ("# a.iso was withdrawn", false), ("", false),
  ])
  func aLineOfADamagedDigestIsNoText(line: String, isRefused: Bool) {
    let outcome = parse("\(Self.sha256)  b.iso\n\(line)\n\(Self.sha256)  c.iso\n")
    #expect(outcome.names == ["b.iso", "c.iso"] && outcome.isComplete == !isRefused)
    #expect(outcome.refused.count == (isRefused ? 1 : 0), "\(outcome.refused)")
    if isRefused { #expect(outcome.end?.incompleteReason == "line 2 is not understood") }
  }

  /// By itself it is a damaged line still, and no text.
  @Test(arguments: ["035e79  a.iso", "ca *a.iso", "cafe\ta.iso"])
  func aDamagedLineThatStandsByItselfIsRefused(line: String) {
    let outcome = parse("\(Self.sha256)  b.iso\n\n\(line)\n\n\(Self.sha256)  c.iso\n")
    #expect(outcome.names == ["b.iso", "c.iso"] && !outcome.isComplete)
    #expect(outcome.refused.count == 1)
  }

  /// Text that stands by itself, before the list, behind it or between two parts, may name no file.
  @Test(arguments: ["hello world", "cafe au lait", "Release 2026-11", "SHA256 (of all files)"])
  func textThatStandsByItselfIsADoubt(line: String) {
    let (first, second) = ("\(Self.sha256)  b.iso\n", "\(Self.sha256)  c.iso\n")
    for text in [
      "\(line)\n\(first)", "\(first)\(line)\n", "\(first)\n\(line)\n\n\(second)",
      "\(first)\(line)\n\n\(second)",
    ] {
      let outcome = parse(text)
      #expect(outcome.refused.isEmpty && !outcome.isComplete, "\(text)")
    }
  }

  /// The end of a line was lost: what follows is no part of the name.
  @Test(arguments: ["  ", " *"]) func twoLinesInOneAreNoName(gap: String) {
    let outcome = parse("\(Self.sha256)\(gap)a.iso\(Self.sha256)\(gap)b.iso\n\(Self.sha256)\(gap)c.iso\n")
    #expect(outcome.names == ["c.iso"] && outcome.refused.count == 1 && !outcome.isComplete)
    // A name may hold a digest.
    #expect(parse("\(Self.sha256)  \(Self.sha256).iso\n").names == ["\(Self.sha256).iso"])
    #expect(parse("\(Self.sha256)  a \(Self.sha256)\n").names == ["a \(Self.sha256)"])
  }

  @Test func harmlessLinesKeepNothingOutOfSync() {
    let text = """
      $NetBSD: distinfo,v 1.3 2020/02/01 10:00:00 wiz Exp $

      TIMESTAMP = 1700000000
      a.iso: 1 bytes
      SHA256 (a.iso) = \(Self.sha256)
      b.iso: 22 bytes
      SHA256 (b.iso) = \(Self.sha256)
      SIZE (b.iso) = 22
      SHA256 (c) = \(Self.sha256)
      Size (c) = 333 bytes
      SIZE (d) = 4444
      SHA256 (d) = \(Self.sha256)

      sha256sum:
      \(Self.sha256)  e
      # e: 5 bytes
      # f: 6 bytes
      MD5 checksums:
      \(Self.md5)  f

      """
    let outcome = parse(text)
    #expect(outcome.names == ["a.iso", "b.iso", "c", "d", "e", "f"])
    #expect(outcome.entries.map(\.size) == [1, 22, 333, 4444, 5, 6])
    #expect(outcome.refused.isEmpty && outcome.isComplete, "\(outcome.end?.incompleteReason ?? "")")
    // A size without a digest may be of a file that Tarn placed before.
    let alone = parse("a.iso: 1 bytes\nSHA256 (b.iso) = \(Self.sha256)\n")
    #expect(alone.names == ["b.iso"] && alone.refused.isEmpty)
    #expect(alone.end?.incompleteReason == "a.iso has a size and no digest")
  }

  @Test func textBeforeTheListIsOneDoubt() {
    let text = """
      These are the MD5 message digests for the files in this directory.
      tail +13 CHECKSUMS.md5 | md5sum -c --quiet - | less

      MD5 message digest                Filename
      \(Self.md5)  ./ANNOUNCE
      \(Self.md5)  ./a/b.txz

      """
    let outcome = parse(text, url: "https://example.org/pub/CHECKSUMS.md5")
    #expect(outcome.names == ["ANNOUNCE", "a/b.txz"])
    #expect(outcome.refused.isEmpty)
    #expect(outcome.end?.incompleteReason == "line 1 is not understood")
  }

  @Test func aSignatureOfSignifyIsNoLine() {
    let text = """
      untrusted comment: verify with openbsd-70-base.pub
      RWR3KL+gSr4QZ5mRw7kMn1Xx1pXUv3HqDpVoWGpYS3AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
      SHA256 (BUILDINFO) = \(Self.sha256)
      SHA256 (base.tgz) = \(Self.sha256)

      """
    let outcome = parse(text, url: "https://example.org/pub/SHA256.sig")
    #expect(outcome.names == ["BUILDINFO", "base.tgz"])
    #expect(outcome.refused.isEmpty && outcome.isComplete)
  }

  @Test func aTitleSaysWhatBareDigestsAre() {
    let other = String(repeating: "33", count: 64)
    let text = """
      # BLAKE2B HASH
      \(other)  s.tar.xz
      # SHA512 HASH
      \(Self.sha512)  s.tar.xz
      # WHIRLPOOL HASH
      \(other)  t.tar.xz

      """
    let outcome = parse(text, url: "https://example.org/pub/s.tar.xz.DIGESTS")
    #expect(digests(outcome) == ["s.tar.xz sha-512 \(Self.sha512)"])
    #expect(outcome.refused.map { $0.path?.printable } == ["t.tar.xz"])
    #expect(outcome.codes == ["digest-unsupported"] && outcome.isComplete)
    #expect(digests(parse("# SHA256 of today\n\(Self.md5)  x\n")) == ["x md5 \(Self.md5)"])
  }

  /// A digest that can be checked is enough, wherever it stands.
  @Test func digestsOfAllKindsMayStandAnywhere() {
    let supported = ["a", "b"].map { "SHA256 (\($0)) = \(Self.sha256)\n" }
    let others = ["a", "./b"].map { "BLAKE2b (\($0)) = \(Self.sha512)\n" }
    for text in [
      supported.joined() + others.joined(), others.joined() + supported.joined(),
      supported[0] + others[1] + others[0] + supported[1],
      supported[0] + others[0] + supported[1] + others[1],
    ] {
      let outcome = parse(text)
      #expect(
        outcome.names.sorted() == ["a", "b"] && outcome.refused.isEmpty && outcome.isComplete, "\(text)")
      #expect(parse(text + "SM3 (c) = \(Self.sha256)\n").refused.map { $0.path?.printable } == ["c"])
    }
  }

  /// What a list says of itself was true before it was written.
  @Test func aListNeverListsItself() {
    let url = "https://example.org/pub/SHA256%53UMS"
    for text in [
      "\(Self.sha256)  a\n\(Self.sha256)  ./SHA256SUMS\n\(Self.sha256)  sub/SHA256SUMS\n",
      "SHA256 (a) = \(Self.sha256)\nBLAKE2b (SHA256SUMS) = \(Self.sha512)\nSHA256 (sub/SHA256SUMS) = \(Self.sha256)\n",
      "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n1,\(Self.md5),a\n1,\(Self.md5),./SHA256SUMS\n"
        + "1,\(Self.md5),sub/SHA256SUMS\n",
    ] {
      let outcome = parse(text, url: url)
      #expect(
        outcome.names == ["a", "sub/SHA256SUMS"] && outcome.refused.isEmpty && outcome.isComplete, "\(text)")
      #expect(parse(text, url: url + "?of=today").items.count == 2)
    }
    #expect(parse("a 0000000f\nx.sfv 0000000f\n", url: "https://example.org/x.sfv").names == ["a"])
  }

  @Test func bothOfTwoSignedMessagesAreRead() {
    func message(_ name: String) -> String {
      "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\(Self.sha256)  \(name)\n"
        + "-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----\n"
    }
    let outcome = parse(message("a") + "\n" + message("b"))
    #expect(outcome.names == ["a", "b"] && outcome.isComplete)
    let cut = parse(message("a") + message("b").prefix(117))
    #expect(cut.names == ["a", "b"] && !cut.isComplete)
  }
}

/// Lists with the name in front, tabs, UTF-16 and what else has one reading only.
@Suite struct ChecksumReadingsTests {
  static let md5 = ChecksumFormsTests.md5
  static let sha1 = ChecksumFormsTests.sha1
  static let sha256 = ChecksumFormsTests.sha256

  @Test func readsNamesBeforeDigests() {
    let text = """
      # a registry of pooch
      sub/tiny.txt \(Self.sha256)
      large.dat   md5:\(Self.md5)
      "with blanks.txt" \(Self.sha256)
      other\\ with\\ blanks.txt \(Self.sha256)
      far.zip sha256:\(Self.sha256) https://a.example/x/far.zip
      colon.bin: \(Self.sha1)
      tab.7z\t\(Self.sha1)

      """
    let outcome = parse(text, url: "https://example.org/pub/registry.txt")
    #expect(
      outcome.names == [
        "sub/tiny.txt", "large.dat", "with blanks.txt", "other with blanks.txt", "far.zip", "colon.bin",
        "tab.7z",
      ])
    #expect(outcome.entries[4].sources == [Source(url: "https://a.example/x/far.zip")])
    #expect(outcome.entries[1].digest?.algorithm == .md5)
    #expect(outcome.refused.isEmpty && outcome.isComplete)
    #expect(parse("bigfile \(Self.md5)\n", url: "https://example.org/x.sfvmd5").names == ["bigfile"])
    #expect(parse("bigfile \(Self.md5)\n").failure?.code == "feed-not-recognised")
    // One line that is no row, and the whole may be anything.
    #expect(parse("a.txt \(Self.sha256)\nand more\n").failure?.code == "feed-not-recognised")
    // Two digests in a line: the first one is the digest, as sha256sum reads it.
    #expect(parse("\(Self.sha256)  \(Self.sha1)\n").names == [Self.sha1])
  }

  /// As sha256sum reads it: the star says that the file was read as bytes.
  @Test func aStarBehindATabIsNoPartOfTheName() {
    #expect(parse("\(Self.sha256)\t*a.iso\n\(Self.sha256)\tb.iso\n").names == ["a.iso", "b.iso"])
  }

  @Test func readsTabsSizesAndKinds() {
    let text = """
      \(Self.sha256)\ttab
      \(Self.sha256) \t two
      sha256:\(Self.sha256)  kind
      SHA-1:\(Self.sha1) *binary
              12  \(Self.sha256)  ./sub/sized
      blake3:\(Self.sha256)  other

      """
    let outcome = parse(text)
    #expect(outcome.names == ["tab", "two", "kind", "binary", "sub/sized"])
    #expect(outcome.entries.map(\.size) == [nil, nil, nil, nil, 12])
    #expect(outcome.codes == ["digest-unsupported"] && outcome.isComplete)
    let odd = parse("\(Self.sha256)  x\nsha1:\(Self.sha256)  y\n")
    #expect(odd.names == ["x"] && odd.codes == ["line-malformed"])
  }

  @Test func readsUTF16() {
    let text = "\(Self.sha256)  a\r\n\(Self.sha256)  ü/𝄞.txt\r\n"
    let wanted = parse(text)
    #expect(wanted.names == ["a", "ü/𝄞.txt"])
    let units = Array(("\u{FEFF}" + text).utf16)
    let little = units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    let big = units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    for bytes in [little, big] {
      for step in [1, 3, 4096] { #expect(parse(bytes, step: step) == wanted) }
    }
    let urls = Array("\u{FEFF}https://a.example/x\r\n".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    #expect(parse(urls).names == ["x"])
    #expect(parse(Array(little.dropLast(3))).isComplete == false)
  }

  @Test func turnsTheSeparatorsOfWindows() {
    let plain = "\(Self.md5) *sub\\a.txt\r\n\(Self.md5) *b/c\\d.txt\r\n"
    #expect(parse(plain).names == ["sub/a.txt", "b/c\\\\d.txt"])
    #expect(parse(plain.replacing("\r\n", with: "\n")).names == ["sub\\\\a.txt", "b/c\\\\d.txt"])
    #expect(parse("\\\(Self.md5) *sub\\\\a.txt\r\n").names == ["sub\\\\a.txt"])
    let head = "%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n"
    let rows = "1,\(Self.md5),C:\\data\\pub\\sub\\a.txt\n1,\(Self.md5),.\\b\\c.txt\n"
    let windows = parse(head + "## Invoked from: C:\\data\\pub\n## C:\\data\\pub> hashdeep64 -r .\n" + rows)
    #expect(windows.names == ["sub/a.txt", "b/c.txt"] && windows.isComplete)
    #expect(parse(head + "## Invoked from: /data\n1,\(Self.md5),./b\\c.txt\n").names == ["b\\\\c.txt"])
  }

  @Test(arguments: [
    "x.iso.sha256", "x.iso.SHA256", "x.iso.sha256sum", "x.iso.sha256sums", "x.iso.sha256.txt",
    "x.iso.sha-256",
    "x.iso.sha",
  ])
  func readsADigestBesideItsFile(name: String) {
    for text in [
      Self.sha256, "\(Self.sha256)\n", "\(Self.sha256.uppercased())\r\n", "sha256:\(Self.sha256)\n",
      "\(Self.sha256)  -\n", "\(Self.sha256) *-\n", "SHA2-256(stdin)= \(Self.sha256)\n",
      "(stdin)= \(Self.sha256)\n",
      "SHA256: \(Self.sha256)\n", "# of today\n\(Self.sha256)\n",
      "CACACACA " + Self.sha256.dropFirst(8).chunks(of: 8),
    ] {
      let outcome = parse(text, url: "https://example.org/pub%20x/\(name)?raw=1")
      #expect(outcome.names == ["x.iso"] && outcome.isComplete, "\(text): \(outcome)")
      #expect(outcome.entries.first?.digest?.hex == Self.sha256)
      #expect(outcome.entries.first?.sources == [Source(url: "https://example.org/pub%20x/x.iso")])
      #expect(outcome.end?.format == "checksum list")
    }
  }

  /// The path on the machine where the digest was made is none here, and the document's own name tells the file.
  @Test(arguments: ["/srv/dist/x.iso", "../x.iso", "C:\\build\\x.iso", "..\\x.iso"])
  func thePathWhereItWasMadeIsLeftOut(path: String) {
    let url = "https://example.org/pub/x.iso.sha256"
    for line in [
      "\(Self.sha256)  \(path)\r\n", "\(Self.sha256) *\(path)\n", "SHA256 (\(path)) = \(Self.sha256)\n",
    ] {
      #expect(parse(line, url: url).names == ["x.iso"], "\(line)")
      #expect(parse(line, url: "https://example.org/pub/y.iso.sha256").names != ["x.iso"])
    }
    #expect(parse("\(Self.sha256)  dist/x.iso\n", url: url).names == ["dist/x.iso"])
  }

  @Test func aDigestBesideNothingIsRefused() {
    for (name, text) in [
      ("sums", Self.sha256), ("x.iso.md5", Self.sha256), ("x.iso.sha1", "sha256:\(Self.sha256)"),
      ("x.iso", Self.sha256),
      (".sha256", Self.sha256), ("x.iso.sha", Self.md5), ("x.iso.b2", Self.sha256),
      ("x.iso.sha256", "blake3:\(Self.sha256)"), ("x.iso.sha256", "\(Self.sha256)\n\(Self.sha256)\n"),
      ("", Self.sha256),
    ] {
      let outcome = parse(text, url: "https://example.org/pub/\(name)")
      #expect(outcome.failure?.code == "feed-not-recognised" && outcome.items.isEmpty, "\(name): \(outcome)")
    }
    let failure = parse(Self.sha256).failure
    #expect(failure?.message.contains("one digest without the name of a file") == true)
    #expect(failure?.hint?.contains(".sha256") == true)
    #expect(parse("\(Self.sha256)  -\n\(Self.sha256)  a\n").codes == ["line-malformed"])
    #expect(parse(Self.sha1, url: "").failure?.code == "feed-not-recognised")
  }

  @Test func urlListsSayHowToWriteThem() {
    let outcome = parse(
      "https://a.example/x\nhttps://a.example/a b.txt\nhttps://a.example/y https://b.example/y\n"
        + "https://a.example/?id=5\nnothing\n")
    #expect(outcome.names == ["x"])
    let reasons = outcome.refused.map(\.reason)
    #expect(reasons.count == 4)
    #expect(reasons[0].contains("%20") && reasons[1].contains("tabs") && reasons[2].contains("out="))
    #expect(reasons[3] == "line 5 is not an absolute URL")
    #expect(parse("https://a.example/?id=5\n out=x\n").names == ["x"])
  }
}

extension Substring {
  /// In groups parted by blanks.
  fileprivate func chunks(of size: Int) -> String {
    stride(from: 0, to: count, by: size).map { String(dropFirst($0).prefix(size)).uppercased() }
      .joined(separator: " ")
  }
}
