import TarnCore

/// Plain text that is not a feed, judged by its first lines.
struct UnrecognisedText {
  private typealias Likeness = Unrecognised.Likeness
  private static let mostLines = 64
  private let lines: [[UInt8]]
  private let allLines: [ArraySlice<UInt8>]
  private let name: [UInt8]
  /// True when CR alone parts the first lines.
  private let isOfOldMac: Bool

  /// - Parameter name: the name of the document.
  init(_ head: [UInt8], name: [UInt8]) {
    allLines = head.split(separator: 0x0A)
    lines = allLines.lazy.map { trimmed($0) }.filter { !$0.isEmpty }.prefix(Self.mostLines).map { $0 }
    self.name = name
    isOfOldMac = lines.first { $0.first != UInt8(ascii: "#") || $0.contains(0x0D) }?.contains(0x0D) ?? false
  }

  /// The kind by the first line.
  var known: Unrecognised.Likeness? {
    guard let first = lines.first else { return nil }
    return Self.begins.first { first.begins(with: $0.begin) }.map { Likeness($0.what, $0.advice) }
  }

  /// The kind by all lines.
  var likeness: Unrecognised.Likeness? {
    lines.isEmpty
      ? nil
      : oldMac ?? digest ?? debian ?? dump ?? groups ?? sums ?? references ?? cutSums ?? listing ?? names
  }

  private var oldMac: Unrecognised.Likeness? {
    guard isOfOldMac else { return nil }
    return Likeness(
      "a text whose lines end in CR alone, as on old Macs", "write line feeds in their place: tr '\\r' '\\n'")
  }

  private static let sumsAdvice = "make a checksum list of the files: sha256sum * > SHA256SUMS"

  private static let remoteAdvice = "Tarn fetches over \(URLScheme.remote) only"

  private static let signedAdvice =
    "give the list that it signs: the same name without .asc, .sig, .gpg or .minisig"

  private static let begins: [(begin: String, what: String, advice: String)] = [
    ("#mtree", "an mtree specification", sumsAdvice), ("/set ", "an mtree specification", sumsAdvice),
    (
      "zsync:", "a zsync file, which describes one other file",
      "put the address of that file in a text file of one line: a URL list, which is a feed"
    ),
    ("manifest-version = ", "a channel of Rust in TOML", Unrecognised.urlListAdvice),
    ("-----BEGIN PGP SIGNATURE", "a signature of OpenPGP", signedAdvice),
    (
      "-----BEGIN PGP PUBLIC KEY", "a key of OpenPGP, which names no files",
      "give the list of the files, such as SHA256SUMS"
    ),
    (
      "BagIt-Version:", "the declaration of a bag (BagIt)", "give its manifest, such as manifest-sha256.txt"
    ),
    (
      "untrusted comment:", "a signature or a key of signify or minisign", signedAdvice
    ),
    (
      "version https://git-lfs.github.com/", "a pointer of Git LFS, not the file that it stands for",
      "give the address under which the server sends the file itself"
    ),
    (
      "#EXTM3U", "a playlist (M3U) with names in place of whole URLs",
      "write whole URLs, one a line: a URL list is a feed"
    ),
    ("[playlist]", "a playlist (PLS)", Unrecognised.urlListAdvice),
    ("[Version]", "a file list of quick-fedora-mirror", sumsAdvice),
    ("ftp://", "a list of ftp addresses", remoteAdvice),
    ("magnet:", "a list of magnet links", remoteAdvice),
    ("rsync://", "a list of rsync addresses", remoteAdvice),
    ("Sitemap:", "a robots.txt", "check the address; nothing was changed"),
    ("User-agent:", "a robots.txt", "check the address; nothing was changed"),
    ("HTTP/1.", "an answer of a web server with its headers", "save only the body (curl without -i)"),
    ("HTTP/2", "an answer of a web server with its headers", "save only the body (curl without -i)"),
    (
      "Algorithm ", "a table of PowerShell's Get-FileHash",
      "write lines of digest, two blanks and name in its place"
    ),
  ]

  /// A single digest without a name for its file.
  private var digest: Unrecognised.Likeness? {
    guard DigestAlone(allLines) != nil else { return nil }
    return Likeness(
      "one digest without the name of a file",
      DigestFileName(name) == nil
        ? "Tarn knows the file by the address when that ends in .md5, .sha1, .sha256 or .sha512; "
          + "else write the digest, two blanks and the name"
        : "the digest is of another kind than the address says: write the digest, two blanks and the name")
  }

  private var debian: Unrecognised.Likeness? {
    let fields = Set(lines.map { String(decoding: $0.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self) })
    let what: String
    if DebianControl.recognises(allLines) {
      what = "a control file of Debian (Release, .dsc or .changes)"
    } else if fields.contains("Package"), fields.contains("Filename") || fields.contains("Version") {
      what = "an index of a Debian archive (Packages)"
    } else if fields.contains("Origin"), fields.contains("Suite") || fields.contains("Codename") {
      what = "an index of a Debian archive (Release)"
    } else {
      return nil
    }
    return Likeness(what, "give the directory index of the part of the archive that you want")
  }

  /// Digests as gpg prints them, with too few or too many groups for any known kind.
  private var groups: Unrecognised.Likeness? {
    var words: [ArraySlice<UInt8>] = []
    for line in lines {
      let end = line.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? 0
      guard end > 0 || !words.isEmpty else { return nil }
      var rest = line[end...].split(whereSeparator: isBlank)
      if rest.count > 1, rest[1].elementsEqual("=".utf8) { rest.removeFirst(2) }
      words += rest
    }
    guard words.count >= 4, let length = words.first?.count, [2, 4, 8].contains(length),
      words.allSatisfy({ $0.count <= length && $0.allSatisfy { $0.hexDigitValue != nil } }),
      words.count(where: { $0.count == length }) > words.count / 2
    else { return nil }
    return Likeness(
      "a list of digests in groups, as gpg prints them, and none of them is of a length that Tarn knows",
      "are there digits missing? Print them anew (gpg --print-md SHA256 FILE...), or make a list with sha256sum"
    )
  }

  /// The bytes of a file in digits, behind their places in it.
  private var dump: Unrecognised.Likeness? {
    guard let place = lines.first?.prefix(while: { !isBlank($0) && $0 != UInt8(ascii: ":") }),
      place.count >= 6, place.allSatisfy({ $0 == UInt8(ascii: "0") })
    else { return nil }
    return Likeness("a dump of a file's bytes (hexdump, od, xxd)", "give the file whose bytes it shows")
  }

  /// The output of `git ls-remote`.
  private var references: Unrecognised.Likeness? {
    let areReferences = lines.allSatisfy { line in
      let words = line.split(whereSeparator: isBlank)
      return words.count == 2 && ChecksumLayout.isReference(Array(words[1]))
    }
    guard areReferences else { return nil }
    return Likeness("the references of a Git repository, which are no files", Unrecognised.urlListAdvice)
  }

  /// Lists of digests of which none has a known length.
  private var cutSums: Unrecognised.Likeness? {
    let areDigests = lines.allSatisfy { line in
      let words = line.split(whereSeparator: isBlank)
      return words.count >= 2 && words[0].count >= 24 && words[0].allSatisfy { $0.hexDigitValue != nil }
    }
    guard areDigests, let first = lines.first?.prefix(while: { !isBlank($0) }) else { return nil }
    return Likeness(
      "a checksum list, but its first digest has \(first.count) digits",
      "is it cut? MD5 has 32, SHA-1 40, SHA-256 64 and SHA-512 128")
  }

  /// Lists that name files with something other than a digest that Tarn checks.
  private var sums: Unrecognised.Likeness? {
    let words = lines.map { $0.split(whereSeparator: isBlank) }
    let kinds = ["DIST", "AUX", "EBUILD", "MISC", "DATA", "MANIFEST"]
    let isGentoo = words.allSatisfy { words in
      words.count >= 5 && kinds.contains { words[0].elementsEqual($0.utf8) }
        && words[2].allSatisfy(\.isASCIIDigit)
    }
    if isGentoo {
      return Likeness(
        "a Manifest of Gentoo, which does not say where its files are", Unrecognised.urlListAdvice)
    }
    let sums = words.filter { words in
      words.count >= 3 && words[0].allSatisfy(\.isASCIIDigit) && words[1].allSatisfy(\.isASCIIDigit)
    }
    if 2 * sums.count > words.count {
      return Likeness("a list of the sums of cksum or sum, which are no digests", Self.sumsAdvice)
    }
    let areCRC = words.allSatisfy { words in
      guard words.count >= 2, let last = words.last else { return false }
      return last.count == 8 && last.allSatisfy { $0.hexDigitValue != nil }
    }
    guard areCRC else { return nil }
    return Likeness(
      "text whose lines end in eight hexadecimal digits",
      "if they are CRC-32 of files, let its name end in .sfv")
  }

  /// The output of `ls -lR` and `rsync --list-only`.
  private var listing: Unrecognised.Likeness? {
    let rows = lines.filter { line in
      let mode = line.prefix(10)
      return mode.count == 10 && [UInt8(ascii: "-"), UInt8(ascii: "d"), UInt8(ascii: "l")].contains(mode[0])
        && mode.dropFirst().allSatisfy { "rwxstST-".utf8.contains($0) }
    }
    // In `ls -lR` each directory has two lines before its rows, and may have no rows.
    let others = lines.count { $0.last != UInt8(ascii: ":") && !$0.begins(with: "total ") } - rows.count
    guard !rows.isEmpty, rows.count >= others else { return nil }
    return Likeness("a directory listing (ls -l, ls -lR, rsync)", Self.sumsAdvice)
  }

  /// Names without addresses.
  private var names: Unrecognised.Likeness? {
    let lines = lines.filter { $0.first != UInt8(ascii: "#") }
    let areNames = lines.allSatisfy { line in
      !line.contains(where: isBlank) && line.last != UInt8(ascii: ":")
        && (line.contains(UInt8(ascii: ".")) || line.contains(UInt8(ascii: "/")))
    }
    guard lines.count > 1, areNames else { return nil }
    return Likeness(
      "a list of names without addresses", "write whole URLs (https://...), one a line: a URL list is a feed")
  }
}
