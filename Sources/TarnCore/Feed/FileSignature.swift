/// What the first bytes of a file tell of its kind, and what a file must begin with because of its name. Pure.
package enum FileSignature {
  /// The kinds of files, in words.
  enum Kind: String {
    case picture = "a picture"
    case document = "a PDF document"
    case archive = "an archive"
    case recording = "a recording"
    case program = "a program"
  }

  private struct Mark {
    let kind: Kind
    let offset: Int
    let bytes: [UInt8]
  }

  private static func text(_ kind: Kind, _ text: String, at offset: Int = 0) -> Mark {
    Mark(kind: kind, offset: offset, bytes: Array(text.utf8))
  }

  private static func bytes(_ kind: Kind, _ bytes: [UInt8]) -> Mark {
    Mark(kind: kind, offset: 0, bytes: bytes)
  }

  /// The beginnings that are no other file's by chance. The first that fits tells the kind.
  private static let sure: [Mark] = [
    text(.picture, "GIF8"), bytes(.picture, [0x89, 0x50, 0x4E, 0x47]), bytes(.picture, [0xFF, 0xD8, 0xFF]),
    text(.picture, "WEBP", at: 8), bytes(.picture, [0x49, 0x49, 0x2A, 0x00]),
    bytes(.picture, [0x4D, 0x4D, 0x00, 0x2A]), text(.picture, "ftypavif", at: 4),
    text(.picture, "ftypheic", at: 4), text(.picture, "ftypmif1", at: 4),
    bytes(.archive, [0x50, 0x4B, 0x03, 0x04]), bytes(.archive, [0x50, 0x4B, 0x05, 0x06]),
    bytes(.archive, [0x50, 0x4B, 0x07, 0x08]), bytes(.archive, [0x50, 0x4B, 0x01, 0x02]),
    bytes(.archive, [0x1F, 0x8B, 0x08]),
    bytes(.archive, [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]), bytes(.archive, [0x28, 0xB5, 0x2F, 0xFD]),
    bytes(.archive, [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]),
    bytes(.archive, [0x52, 0x61, 0x72, 0x21, 0x1A, 0x07]), bytes(.archive, [0x4D, 0x53, 0x43, 0x46, 0x00]),
    text(.archive, "!<arch>\n"), bytes(.archive, [0xED, 0xAB, 0xEE, 0xDB]),
    bytes(.archive, [0x4C, 0x5A, 0x49, 0x50, 0x01]), text(.recording, "OggS"), text(.recording, "fLaC"),
    text(.recording, "RIFF"), text(.recording, "RF64"), text(.recording, "FORM"), text(.recording, "MThd"),
    text(.recording, "#!AMR"), text(.recording, "#!SILK"), text(.recording, "ftyp", at: 4),
    bytes(.recording, [0x1A, 0x45, 0xDF, 0xA3]), bytes(.recording, [0x30, 0x26, 0xB2, 0x75]),
    bytes(.program, [0x7F, 0x45, 0x4C, 0x46]),
  ]

  /// More beginnings of files of a kind. Those of other files may be alike.
  private static let likely: [Mark] = [
    text(.archive, "BZh"), text(.archive, "PK00"), text(.archive, "RE~^"), text(.archive, "ISc("),
    text(.archive, "drpm"), text(.archive, "xar!"), text(.archive, "Cr24"), text(.archive, "ADB"),
    text(.archive, "LRZI"), text(.archive, "SIT!"), text(.archive, "StuffIt"), text(.archive, "LZIP"),
    text(.archive, "MSCF"), text(.archive, "0707"), text(.archive, "hsqs"), text(.archive, "-lh", at: 2),
    bytes(.archive, [0x1F, 0x8B]), bytes(.archive, [0x1F, 0x9D]), bytes(.archive, [0x1F, 0xA0]),
    bytes(.archive, [0x1F, 0x1E]), bytes(.archive, [0x78, 0x01]), bytes(.archive, [0x78, 0x5E]),
    bytes(.archive, [0x78, 0x9C]), bytes(.archive, [0x78, 0xDA]),
    bytes(.archive, [0x60, 0xEA]), bytes(.archive, [0x5D, 0x00, 0x00]),
    bytes(.archive, [0xD0, 0xCF, 0x11, 0xE0]), bytes(.archive, [0x04, 0x22, 0x4D, 0x18]),
    bytes(.archive, [0x02, 0x21, 0x4C, 0x18]), bytes(.archive, [0x89, 0x4C, 0x5A, 0x4F]),
    bytes(.archive, [0xC7, 0x71]), bytes(.archive, [0x71, 0xC7]),
    text(.recording, "ID3"), text(.recording, "FLV"), text(.recording, "MAC "), text(.recording, "wvPK"),
    text(.recording, "caff"), text(.recording, "DSD "), text(.recording, "TTA1"), text(.recording, ".snd"),
    text(.recording, "G@"), text(.recording, "MPCK"), text(.recording, "MP+"), text(.recording, ".RMF"),
    text(.recording, "Extended Module: "), text(.recording, "SCRM", at: 44),
    bytes(.recording, [0x2E, 0x72, 0x61, 0xFD]),
    text(.recording, "APETAGEX"), text(.recording, "ADIF"), text(.recording, "moov", at: 4),
    text(.recording, "mdat", at: 4), text(.recording, "free", at: 4), text(.recording, "skip", at: 4),
    text(.recording, "wide", at: 4), bytes(.recording, [0x00, 0x00, 0x01]), text(.program, "MZ"),
    text(.program, "ZM"),
  ]

  /// Old and skippable frames of Zstandard.
  private static func isFrame(_ bytes: [UInt8]) -> Bool {
    guard bytes.count > 3 else { return false }
    let rest = bytes[1..<4]
    return (0x22...0x27).contains(bytes[0]) && rest.elementsEqual([0xB5, 0x2F, 0xFD])
      || (0x50...0x5F).contains(bytes[0]) && rest.elementsEqual([0x2A, 0x4D, 0x18])
  }

  private static func has(_ mark: Mark, _ bytes: [UInt8]) -> Bool {
    bytes.dropFirst(mark.offset).starts(with: mark.bytes)
  }

  private static func holds(_ mark: [UInt8], _ bytes: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: mark) }
  }

  /// Returns the kind that the first bytes of a file tell without doubt.
  static func kind(of bytes: [UInt8]) -> Kind? {
    if bytes.starts(with: "%PDF-".utf8) { return .document }
    if isBitmap(bytes) || isIcon(bytes) { return .picture }
    return sure.first { has($0, bytes) }?.kind
  }

  /// Returns whether a file with these first bytes may be of a kind.
  static func mayBe(_ kind: Kind, _ bytes: [UInt8]) -> Bool {
    if let known = Self.kind(of: bytes) { return known == kind }
    if likely.contains(where: { $0.kind == kind && has($0, bytes) }) { return true }
    return switch kind {
    // The last part of a split ZIP archive begins with any bytes; it has the end of the directory.
    case .archive: isTar(bytes) || isFrame(bytes) || holds([0x50, 0x4B, 0x05, 0x06], bytes)
    // Readers find the beginning of a document behind other bytes.
    case .document: bytes.starts(with: "%!PS".utf8) || holds(Array("%PDF".utf8), bytes)
    case .recording: bytes.count > 1 && bytes[0] == 0xFF && bytes[1] >= 0xE0
    case .picture, .program: false
    }
  }

  /// Returns whether the head of the first member has its checksum (POSIX ustar, and the older form), or an empty archive begins.
  static func isTar(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 512 else { return false }
    let head = bytes[..<512]
    if head.allSatisfy({ $0 == 0 }) { return true }
    let said = String(decoding: head[148..<156].filter { (0x30...0x37).contains($0) }, as: UTF8.self)
    let blanks = Array(head[..<148]) + Array(repeating: 0x20, count: 8) + Array(head[156...])
    let sums: [Int] = [
      blanks.reduce(0) { $0 + Int($1) }, blanks.reduce(0) { $0 + Int(Int8(bitPattern: $1)) },
    ]
    return Int(said, radix: 8).map(sums.contains) ?? false
  }

  /// Returns whether this is the head of a BMP file: its reserved bytes are zero, and a known head follows.
  private static func isBitmap(_ bytes: [UInt8]) -> Bool {
    guard bytes.count > 17, bytes.starts(with: "BM".utf8), bytes[6..<10].allSatisfy({ $0 == 0 }) else {
      return false
    }
    return [12, 40, 52, 56, 64, 108, 124].contains(bytes[14]) && bytes[15] == 0
  }

  /// Returns whether this is the head of an ICO file with its first picture.
  private static func isIcon(_ bytes: [UInt8]) -> Bool {
    bytes.count > 21 && bytes.starts(with: [0, 0, 1, 0]) && (1...15).contains(bytes[4]) && bytes[5] == 0
      && bytes[9] == 0
      && bytes[18..<22].elementsEqual([6 + 16 * bytes[4], 0, 0, 0])
  }
}

/// What a name tells.
extension FileSignature {
  /// The formats that have one form only, by the endings of their files.
  private static let own: [String: [[UInt8]]] = [
    "appimage": [[0x7F, 0x45, 0x4C, 0x46]],
    "qcow2": [[0x51, 0x46, 0x49, 0xFB]], "zim": [[0x5A, 0x49, 0x4D, 0x04]], "parquet": [[0x50, 0x41, 0x52]],
    "wasm": [[0x00, 0x61, 0x73, 0x6D]], "woff": [[0x77, 0x4F, 0x46]], "woff2": [[0x77, 0x4F, 0x46]],
    "psd": [[0x38, 0x42, 0x50]], "npy": [[0x93, 0x4E, 0x55, 0x4D]],
    // A dictionary, and the length of its first key.
    "torrent": (UInt8(ascii: "0")...UInt8(ascii: "9")).map { [UInt8(ascii: "d"), $0] },
  ]

  /// The endings of archives, of what is packed as one, and of programs that may be one. An archive of another kind under such a name is
  /// common enough.
  static let archives: Set<String> = [
    "zip", "epub", "docx", "xlsx", "pptx", "odt", "ods", "odp", "cbz", "cbr", "cb7", "jar", "war", "apk",
    "aab", "whl", "xpi", "crx", "ipa", "msix", "appx", "msixbundle", "appxbundle", "nupkg", "vsix",
    "npz", "7z", "rar", "cab", "deb", "udeb", "rpm", "drpm", "gem", "crate", "ova", "tar", "msi", "exe",
    "dll", "tgz", "txz", "tbz", "tbz2", "tzst", "cpio", "ipk",
  ]

  /// The endings of single packed files that begin like an archive.
  private static let single: Set<String> = ["bz2", "xz", "zst", "lz", "lz4", "lzo", "lzma", "z"]

  /// Archives that a script may precede, which unpacks or runs them.
  private static let scripted: Set<String> = ["jar", "war"]

  /// A format of one packed file: its endings, the names of its content coding (RFC 9110, 8.4.1) and its first bytes.
  private struct Packer {
    let endings: Set<String>
    let codings: Set<String>
    let bytes: [UInt8]

    /// Returns whether a name tells it. A part such as `br` is often a word: where no first bytes tell, only the last part counts.
    ///
    /// - Parameter name: the parts of the name behind its dots, the last one first.
    func isTold(by name: [String]) -> Bool {
      !endings.isDisjoint(with: bytes.isEmpty ? name.prefix(1) : name[...])
    }
  }

  private static let packers: [Packer] = [
    gzip,
    Packer(
      endings: ["bz2", "tbz", "tbz2"], codings: ["bzip2", "x-bzip2", "bzip", "x-bzip"],
      bytes: [0x42, 0x5A, 0x68]),
    Packer(endings: ["xz", "txz"], codings: ["xz", "x-xz"], bytes: [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]),
    Packer(endings: ["zst", "tzst"], codings: ["zstd", "x-zstd", "zst"], bytes: [0x28, 0xB5, 0x2F, 0xFD]),
    Packer(endings: ["z", "taz"], codings: ["compress", "x-compress"], bytes: [0x1F, 0x9D]),
    Packer(endings: ["br"], codings: ["br"], bytes: []),
    Packer(endings: ["lzma", "tlz"], codings: ["lzma", "x-lzma", "xz", "x-xz"], bytes: []),
    Packer(endings: ["lz", "tlz"], codings: ["lzip", "x-lzip"], bytes: [0x4C, 0x5A, 0x49, 0x50]),
    Packer(endings: ["lz4"], codings: ["lz4", "x-lz4"], bytes: [0x04, 0x22, 0x4D, 0x18]),
    Packer(endings: ["lzo"], codings: ["lzop", "x-lzop"], bytes: [0x89, 0x4C, 0x5A, 0x4F]),
  ]
  private static let gzip = Packer(
    endings: [
      "gz", "tgz", "taz", "svgz", "emz", "wmz", "vgz", "dz", "crate", "apk", "ipk", "bgz", "bam", "tbi",
      "csi",
    ],
    codings: ["gzip", "x-gzip"], bytes: [0x1F, 0x8B])

  /// Returns the parts of a name behind its dots in lower case, the last one first.
  static func endings(_ path: RelativePath) -> [String] {
    endings(name: path.bytes.split(separator: UInt8(ascii: "/")).last ?? [])
  }

  private static func endings(name: some BidirectionalCollection<UInt8>) -> [String] {
    name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).dropFirst().reversed()
      .map { String(decoding: $0, as: UTF8.self).lowercased() }
  }

  /// Returns the parts of the name that the file has at its server.
  static func sentEndings(_ entry: Entry) -> [String] {
    endings(name: FileNaming.lastSegment(entry.sources.first?.url ?? ""))
  }

  /// Returns whether servers label such files as encoded: their bytes are the file. They look at each part of a name: `a.gz.asc`.
  package static func isPacked(_ entry: Entry) -> Bool { isPacked(names(entry)) }

  /// - Parameter names: the parts of each name that the file has.
  static func isPacked(_ names: [[String]]) -> Bool {
    packers.contains { packer in names.contains { packer.isTold(by: $0) } }
  }

  /// Returns whether these are the first bytes of a packed file.
  static func isPacked(bytes: [UInt8]) -> Bool {
    packers.contains { !$0.bytes.isEmpty && bytes.starts(with: $0.bytes) }
  }

  /// Returns whether a content coding is one that a name of the file tells.
  package static func isOwn(coding: String, of entry: Entry) -> Bool {
    fits(coding: coding, [], names(entry))
  }

  /// Returns the parts of the file's name, and those of the name that it has at its server.
  private static func names(_ entry: Entry) -> [[String]] { [endings(entry.path), sentEndings(entry)] }

  /// Returns whether a content coding is one that a part of a name tells, or the bytes are what it tells, whatever the coding.
  static func fits(coding: String, _ bytes: [UInt8], _ names: [[String]]) -> Bool {
    let coding = coding.lowercased()
    return packers.contains { packer in
      names.contains { packer.isTold(by: $0) }
        && (packer.codings.contains(coding) || !packer.bytes.isEmpty && bytes.starts(with: packer.bytes))
    }
  }

  /// Returns whether a file of this name may begin with these bytes; `nil` where the name tells nothing.
  ///
  /// - Parameter endings: the last one first. Some servers unpack a `gz` on the way: what it holds fits as well.
  static func fits(_ bytes: [UInt8], _ endings: ArraySlice<String>) -> Bool? {
    guard let ending = endings.first else { return nil }
    if ending == "gz" { return mayBe(.archive, bytes) ? true : fits(bytes, endings.dropFirst()) }
    if ending == "pdf" { return mayBe(.document, bytes) }
    if let forms = own[ending] { return forms.contains { bytes.starts(with: $0) } }
    guard archives.contains(ending) || single.contains(ending) else { return nil }
    return mayBe(.archive, bytes) || mayBe(.program, bytes)
      || scripted.contains(ending) && bytes.starts(with: "#!".utf8)
  }

  /// Returns whether the name is that of an archive.
  static func isArchive(_ ending: String) -> Bool {
    archives.contains(ending) || packers.contains { $0.endings.contains(ending) }
  }

  /// Returns whether these are gzip's bytes, and the name is not that of a file that has them.
  static func isForeignGzip(_ bytes: [UInt8], _ ending: String) -> Bool {
    bytes.starts(with: gzip.bytes) && !gzip.endings.contains(ending)
  }
}
