/// What a feed says of a file's contents without vouching for it: it may be a little off. It never tells one version
/// from another; it tells the file from a login page or an error that came in its place.
package struct ContentHint: Sendable, Equatable {
  /// `audio/mpeg`: lower case, without parameters.
  package var mediaType: [UInt8]?
  /// Bytes, above 0; often wrong.
  package var length: UInt64?
  /// The sizes that a rounded one, such as `2.9M`, can stand for.
  package var sizes: ClosedRange<UInt64>?

  package init(mediaType: [UInt8]? = nil, length: UInt64? = nil, sizes: ClosedRange<UInt64>? = nil) {
    self.mediaType = mediaType
    self.length = length
    self.sizes = sizes
  }

  package var isEmpty: Bool { mediaType == nil && length == nil && sizes == nil }
}

/// Doubts an answer by what the feed declares, where neither a digest nor an exact size decides. Pure.
package struct ContentDoubt: Sendable {
  /// So many of the first bytes are looked at.
  package static let opening = 1024

  /// What the file is, by the feed's words and by its name.
  private enum Declared {
    /// Audio, video or an image.
    case media(String)
    /// An archive, an image of a disk, a document, a recording: never markup. The feed's words say so, or its name alone.
    case binary
    /// No web page, and perhaps a text all the same: what is compressed, which some servers unpack on the way, and types that
    /// nobody knows.
    case other
    /// A digest: letters and digits, never markup.
    case digest
    /// A signature: never markup.
    case signature
    /// Markup, another text, or what a program makes as it is asked.
    case text
    case nothing
  }

  private let declared: Declared
  private let hint: ContentHint
  /// A web page may be what is wanted.
  private let mayBePage: Bool
  /// Of a window: no later pass asks again by itself.
  private let isEnclosure: Bool
  /// Compressed: never a text, but where a server unpacks it.
  private let isPacked: Bool
  /// The file's name, by its end.
  private let ending: String

  /// - Returns: nil where nothing has to be doubted: a digest or an exact size decides, or nothing is declared.
  package init?(_ entry: Entry) {
    guard entry.digest == nil, entry.size == nil else { return nil }
    var hint = entry.hint
    ending = Self.ending(entry)
    declared = Self.declared(entry, ending)
    if Self.programEndings.contains(ending) { hint.sizes = nil }
    // Feeds of torrents tell the size of what these lead to.
    if ending == "torrent"
      || hint.mediaType.map({ $0.elementsEqual("application/x-bittorrent".utf8) }) == true
    {
      hint.length = nil
    }
    self.hint = hint
    mayBePage = Self.mayBePage(entry, ending, hint)
    isPacked =
      Self.packedEndings.contains(ending)
      || hint.mediaType.map { Self.packedTypes.contains(String(decoding: $0, as: UTF8.self)) } == true
    isEnclosure = entry.listing.elementsEqual(Self.enclosure)
    switch declared {
    case .text, .nothing: if hint.isEmpty, !isEnclosure, mayBePage { return nil }
    default: break
    }
  }

  /// Why these are not the file's first bytes; nil when they may be.
  ///
  /// - Parameters:
  ///   - opening: the first bytes, at most `opening` of them are looked at; more may follow.
  ///   - contentType: as the server sent it.
  package func doubt(opening: some Collection<UInt8>, contentType: String?) -> FolderFailure? {
    let came = Opening(opening)
    guard !came.isDrawing(contentType), !came.hasMagic else { return nil }
    let why: String?
    switch declared {
    case .media(let type) where came.isMarkup || came.isJSON || came.isPointer:
      why = "\(Self.came(contentType)) came where the feed says \(type)"
    case .other where hint.mediaType.map { Self.mediaType(contentType).utf8.elementsEqual($0) } == true:
      // Feed and server agree, as on a table of Excel that is a web page.
      why = nil
    case _ where !mayBePage && came.isPage && Self.isHTML(contentType),
      .binary where came.isMarkup || came.isJSON || came.isPointer,
      .digest where came.isMarkup || came.isJSON || Self.isHTML(contentType) && !came.hasDigest,
      .signature where came.isMarkup,
      .other
    where came.isPage || came.isErrorDocument || came.isPointer || came.isMarkup && Self.isHTML(contentType):
      why = "\(Self.came(contentType)) came, which the file's name or its declared type does not fit"
    default: why = nil
    }
    return why.map {
      FolderFailure(
        .contentMismatch, "\($0): a login page, or an error of the server? The next pass asks again")
    }
  }

  /// Why a body of so many bytes is not the file; nil when it may be.
  ///
  /// - Parameter opening: its first bytes; none where an earlier exchange brought them.
  package func doubt(size: UInt64, opening: some Collection<UInt8>, contentType: String?) -> FolderFailure? {
    if let sizes = hint.sizes, !sizes.contains(size) {
      return FolderFailure(
        .sizeMismatch,
        "it has \(Units.count(size, "byte")), and the listing's size stands for "
          + "\(Units.grouped(sizes.lowerBound)) to \(Units.grouped(sizes.upperBound))")
    }
    return doubt(ofDeclared: size, opening, contentType).map { FolderFailure(.contentMismatch, $0) }
  }

  private func doubt(
    ofDeclared size: UInt64, _ opening: some Collection<UInt8>, _ contentType: String?
  ) -> String? {
    guard size > 0 else { return mayBeEmpty ? nil : nothingCame }
    // Whoever wrote the feed counted these bytes.
    guard size != hint.length else { return nil }
    let isTiny = size < Self.leastMedia
    let isShort = hint.length.map { size < $0 / 2 } ?? false
    let came = Opening(opening)
    if let kind = came.kind, !fits(kind) {
      return
        "\(kind.rawValue) (\(Self.shown(contentType))) of \(Units.count(size, "byte")) came, which the file's name or "
        + "its declared type does not fit"
    }
    guard !came.isDrawing(contentType) else { return nil }
    // Whatever it begins with.
    if isTiny, isShort, isMediaOrBinary, !isPicture, !came.isMIDI { return tooShort(size) }
    guard !came.hasMagic else { return nil }
    let looksLikeText = opening.isEmpty ? isTiny || isShort : came.isText
    // A longer body is called a text only where the server calls it one as well.
    let isText = looksLikeText && Self.isText(contentType)
    // Far less than the feed says, and a text by its own first bytes, whatever the server calls it.
    let isAnotherText = !opening.isEmpty && came.isText && isShort
    // A feed may tell the size of what a file leads to, as of an NZB. So for unknown types the server has to call it a text, too.
    let isDoubted =
      switch declared {
      case .media, .binary: isText || isAnotherText || looksLikeText && isTiny && isShort
      // What is unpacked on the way is not called a page for that, and is no shorter.
      case .other:
        isAnotherText && isPacked
          || isText
            && (isShort || Self.isHTML(contentType)
              || hint.length == nil && isTiny && Self.isAnswer(contentType))
      case .nothing: isText && isShort
      case .text, .digest, .signature: false
      }
    guard isDoubted else { return nil }
    let what = "\(Self.came(contentType)) of \(Units.count(size, "byte")) came where the feed "
    guard case .media(let type) = declared else {
      return what + (hint.length.map { "says \(Units.count($0, "byte"))" } ?? "names another kind of file")
    }
    return what + "says \(type)" + (hint.length.map { " of \(Units.grouped($0))" } ?? "")
  }

  private var isMediaOrBinary: Bool {
    switch declared {
    case .media, .binary: true
    case .other, .digest, .signature, .text, .nothing: false
    }
  }

  /// By its type or its name.
  private var isPicture: Bool {
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    return type.hasPrefix("image") || [type, ending].contains(where: Self.pictureEndings.contains)
  }

  private func tooShort(_ size: UInt64) -> String {
    "\(Units.count(size, "byte")) came where the feed says \(Units.count(hint.length ?? 0, "byte"))"
  }

  /// What comes in the place of a file, as a picture that says not to link to it, is none of another kind.
  private func fits(_ kind: Opening.Kind) -> Bool {
    guard isMediaOrBinary else { return true }
    switch kind {
    case .picture: return isPicture
    case .document:
      return ending == "pdf" || hint.mediaType?.elementsEqual("application/pdf".utf8) == true
    // Many kinds of files are archives by their first bytes.
    case .archive:
      if case .media = declared { return Self.archiveEndings.contains(ending) }
      return !isPicture && !Self.recordingEndings.contains(ending)
    }
  }

  private var mayBeEmpty: Bool {
    if let sizes = hint.sizes { return sizes.contains(0) }
    return switch declared {
    case .media, .binary: false
    case .text, .digest, .signature: hint.length == nil
    case .other, .nothing: hint.length == nil && !isEnclosure
    }
  }

  /// Bytes: no recording is smaller, and few pictures are.
  private static let leastMedia: UInt64 = 1024
  /// What `WindowCatalog` writes into the listing.
  package static let enclosure = Array("enclosure".utf8)

  private var nothingCame: String {
    let length = hint.length.map { " of \(Units.count($0, "byte"))" } ?? ""
    return "nothing came (0 bytes) where the feed has a file\(length)"
  }
}

/// What a body is by its first bytes, whatever it is called.
private struct Opening {
  /// Without what may stand in front of a document, and without the zeros of UTF-16.
  private let text: [UInt8]
  /// No byte that texts do not have.
  let isText: Bool

  init(_ bytes: some Collection<UInt8>) {
    var bytes = Array(bytes.prefix(ContentDoubt.opening))
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      bytes = bytes.dropFirst(2).filter { $0 != 0 }
    } else if Self.isWide(bytes) {
      bytes = bytes.filter { $0 != 0 }
    } else if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
      bytes.removeFirst(3)
    }
    text = Array(bytes.drop { Self.isBlank($0) })
    isText = Self.isText(bytes)
  }

  /// UTF-16 without a mark: every other byte is zero, as of ASCII.
  private static func isWide(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 8 else { return false }
    return [0, 1].contains { zero in
      bytes.indices.prefix(64).allSatisfy { (bytes[$0] == 0) == ($0 % 2 == zero) }
    }
  }

  /// `<` and what may stand behind it in a document.
  var isMarkup: Bool {
    // Other bytes may begin so as well.
    guard isText, text.first == UInt8(ascii: "<"), text.count > 1 else { return false }
    return text[1] == UInt8(ascii: "!") || text[1] == UInt8(ascii: "?")
      || (0x61...0x7A).contains(text[1] | 0x20)
  }

  /// A drawing that is called one, whatever its name.
  func isDrawing(_ contentType: String?) -> Bool {
    isMarkup && !isPage && ContentDoubt.mediaType(contentType) == "image/svg+xml"
  }

  /// `<Error>`, as stores of the S3 kind answer.
  var isErrorDocument: Bool { start.hasPrefix("<error") }

  /// What stands in a repository for a file that is kept elsewhere (Git LFS).
  var isPointer: Bool { text.starts(with: "version https://git-lfs".utf8) }

  /// The first words, behind comments.
  private var start: String {
    var rest = text[...]
    while let end = Self.commentEnd(of: rest) { rest = rest[end...].drop { Self.isBlank($0) } }
    return String(decoding: rest.prefix(16), as: UTF8.self).lowercased()
  }

  /// A web page, by its own first words; comments may stand in front of them.
  var isPage: Bool {
    guard isText else { return false }
    let start = start
    return start.hasPrefix("<!doctype html")
      || Self.pageElements.contains { name in
        guard start.hasPrefix("<\(name)") else { return false }
        // `<metadata>` is none of these.
        return !(start.dropFirst(name.utf8.count + 1).first?.isLetter ?? false)
      }
  }

  /// Kinds of files that are told by their first bytes, in words.
  enum Kind: String {
    case picture = "a picture"
    case document = "a PDF document"
    case archive = "an archive"
  }

  /// Notes, of which a few bytes may be all.
  var isMIDI: Bool { text.starts(with: "MThd".utf8) }

  var kind: Kind? {
    let signatures: [([UInt8], Kind)] = [
      (Array("GIF8".utf8), .picture), ([0x89] + Array("PNG".utf8), .picture), ([0xFF, 0xD8, 0xFF], .picture),
      (Array("%PDF-".utf8), .document), (Array("PK\u{3}\u{4}".utf8), .archive),
    ]
    return signatures.first { text.starts(with: $0.0) }?.1
  }

  /// Files of these kinds may look like texts for a while.
  var hasMagic: Bool {
    ["%PDF-", "%!PS", "GIF8", "PK\u{3}\u{4}", "ID3", "RIFF", "OggS", "fLaC", "MThd", "!<arch>"].contains {
      text.starts(with: $0.utf8)
    }
  }

  /// A digest in hexadecimal stands in it.
  var hasDigest: Bool {
    var length = 0
    for byte in text {
      length = Digest.value(ofHexDigit: byte) != nil ? length + 1 : 0
      if length == 32 { return true }
    }
    return false
  }

  /// What pages begin with, also such as a program writes without a head.
  private static let pageElements = [
    "html", "head", "body", "title", "meta", "link", "style", "script", "base", "center", "h1", "h2", "h3",
    "p", "b", "br", "hr", "div", "font", "form", "table", "frameset", "iframe", "a href", "noscript",
  ]

  /// Behind the comment, or the declaration of XML, that stands first; nil where none does.
  private static func commentEnd(of text: ArraySlice<UInt8>) -> Int? {
    for (start, end) in [("<!--", "-->"), ("<?xml", "?>")] where text.starts(with: start.utf8) {
      let end = Array(end.utf8)
      return text.indices.first { text[$0...].starts(with: end) }.map { $0 + end.count }
    }
    return nil
  }

  /// An object or a list.
  var isJSON: Bool {
    guard isText else { return false }
    let solid = text.lazy.filter { !Self.isBlank($0) }.prefix(2)
    return ["{\"", "{}", "[{", "[\"", "[]", "[["].contains { solid.elementsEqual($0.utf8) }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  /// No control characters: UTF-8, or a code page of eight bits.
  private static func isText(_ bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || isBlank($0) || $0 == 0x1B }
  }
}

/// The words for what comes, and for what is declared.
extension ContentDoubt {
  /// Of pages that a server makes as it is asked: an index shows the size of the program.
  private static let programEndings: Set<String> = [
    "php", "phtml", "shtml", "shtm", "cgi", "asp", "aspx", "jsp",
  ]

  /// Pages, and scripts that may make some.
  private static let madeEndings = programEndings.union(["html", "htm", "xhtml", "pl", "py"])

  /// In lower case, without its dot; empty when there is none.
  private static func ending(_ entry: Entry) -> String {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")) else { return "" }
    return String(decoding: name[(dot + 1)...], as: UTF8.self).lowercased()
  }

  /// Endings of texts that no server shows as a page.
  private static let plainEndings: Set<String> = [
    "txt", "json", "jsonl", "ndjson", "csv", "tsv", "torrent", "m3u", "m3u8", "pls", "srt", "vtt", "gpx",
    "kml", "nfo", "conf", "ini",
    "toml",
    "yaml", "yml",
  ]

  /// Unless the name says that it is no page's: `index.html.en` is one. An ending that nobody knows tells nothing.
  private static func mayBePage(_ entry: Entry, _ ending: String, _ hint: ContentHint) -> Bool {
    let type = hint.mediaType.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let isKnown =
      binaryEndings.contains(ending) || otherEndings.contains(ending) || plainEndings.contains(ending)
      || digestEndings.contains(ending) || signatureEndings.contains(ending)
    return !isKnown || hasPageInside(entry)
      || ["text/html", "application/xhtml+xml"].contains(type) || isOfText(type) && !type.hasPrefix("text/")
  }

  /// `page.html.gz`, which some servers unpack on the way.
  private static func hasPageInside(_ entry: Entry) -> Bool {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    return name.split(separator: UInt8(ascii: ".")).dropFirst().dropLast().contains {
      madeEndings.contains(String(decoding: $0, as: UTF8.self).lowercased())
    }
  }

  private static func declared(_ entry: Entry, _ ending: String) -> Declared {
    let text = entry.hint.mediaType.map { Printable.escape($0) } ?? ""
    let isTold = !text.isEmpty && !saysNothing.contains(text)
    if digestEndings.contains(ending) { return .digest }
    if signatureEndings.contains(ending) { return .signature }
    if isTold, isOfText(text) || madeEndings.contains(ending) { return .text }
    // A TypeScript file, by a server's table of endings.
    if text == "video/mp2t" { return .other }
    if isTold, isMedia(text) || mediaTypes.contains(text) { return .media(text) }
    if isTold, binaryTypes.contains(text) { return .binary }
    if textEndings.contains(ending) || isNamedAsText(entry) || hasPageInside(entry) { return .text }
    if binaryEndings.contains(ending) { return .binary }
    return isTold || otherEndings.contains(ending) ? .other : .nothing
  }

  /// What stands for any bytes.
  private static let saysNothing: Set<String> = [
    "application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-download",
    "application/download", "application/unknown",
  ]

  /// Types whose files are markup or another text; playlists, manifests of streams, SVG and pictures in letters among them.
  private static func isOfText(_ type: String) -> Bool {
    let ends = [
      "xml", "json", "mpegurl", "scpls", "svg", ".mpd", "ms-asf", "ms-asx", "ms-wax", "ms-wvx", "ms-wmx",
      "realaudio", "javascript", "yaml", "anymap", "bitmap", "graymap", "pixmap", "dxf", "metalink",
    ]
    return type.hasPrefix("text/") || ends.contains { type.hasSuffix($0) }
  }

  private static func isMedia(_ contentType: String?) -> Bool {
    ["audio/", "video/", "image/"].contains { mediaType(contentType).hasPrefix($0) }
  }

  /// Media under other names.
  private static let mediaTypes: Set<String> = [
    "audio", "video", "image", "mp3", "mp4", "m4a", "m4v", "mpeg", "ogg", "opus", "wav", "jpg", "jpeg", "png",
    "gif",
    "application/ogg", "application/x-ogg", "application/mp4", "application/mpeg", "application/x-mp3",
  ]

  private static let binaryTypes: Set<String> = [
    "application/pdf", "application/zip", "application/x-zip-compressed", "application/epub+zip",
    "application/x-tar", "application/x-7z-compressed", "application/vnd.rar", "application/x-rar-compressed",
    "application/java-archive", "application/x-iso9660-image", "application/x-rpm",
    "application/vnd.debian.binary-package", "application/x-debian-package",
    "application/vnd.android.package-archive",
    "application/x-msdownload", "application/x-apple-diskimage", "application/vnd.apache.parquet",
  ]

  private static let binaryEndings = recordingEndings.union(pictureEndings).union([
    "pdf", "epub", "docx", "xlsx", "pptx", "odt", "ods", "odp", "mobi", "azw", "azw3", "djvu", "cbz", "cbr",
    "zip", "tgz", "txz", "7z", "rar", "tar", "iso", "qcow2", "ova", "vdi", "vhd", "vhdx", "squashfs", "psd",
    "wasm", "ttf", "otf", "woff", "woff2", "sqlite", "gem", "crate", "nupkg", "udeb", "drpm", "tbz2", "tzst",
    "mid", "gguf", "safetensors", "onnx", "ckpt", "h5", "npz", "npy", "blend", "dll", "deb", "rpm", "apk",
    "exe", "msi", "dmg", "jar", "whl", "parquet",
  ])

  private static let pictureEndings: Set<String> = [
    "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "bmp", "tif", "tiff",
  ]

  private static let recordingEndings: Set<String> = [
    "mp3", "m4a", "m4b", "aac", "ogg", "oga", "ogv", "opus", "flac", "wav", "mp4", "m4v", "mov", "mkv",
    "webm", "avi", "wma", "wmv", "mpg", "mpeg", "3gp", "flv", "aif", "aiff", "m2ts",
  ]

  private static let archiveEndings: Set<String> = [
    "zip", "epub", "docx", "xlsx", "pptx", "odt", "ods", "odp", "cbz", "jar", "apk", "whl", "ipa", "kmz",
  ]

  private static let signatureEndings: Set<String> = ["asc", "sig", "gpg"]

  private static let digestEndings: Set<String> = [
    "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "b2", "b3", "md5sum", "sha1sum", "sha256sum",
    "sha512sum",
  ]

  /// Of texts, whatever length the feed tells.
  private static let textEndings: Set<String> = [
    "txt", "text", "md", "rst", "vtt", "srt", "json", "jsonl", "ndjson", "xml", "rss", "atom",
    "gpx",
    "kml", "svg", "csv", "tsv", "log", "nfo", "mht", "hta", "m3u", "m3u8", "pls", "sh", "conf", "ini", "toml",
    "yaml", "yml", "css", "js",
  ]

  /// `README` and its kin.
  private static func isNamedAsText(_ entry: Entry) -> Bool {
    let name = entry.path.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    return name.count >= 3 && name.allSatisfy { (0x41...0x5A).contains($0) || 0x5F == $0 }
  }

  private static let packedEndings: Set<String> = ["gz", "bz2", "xz", "zst", "lz4", "lzma"]

  private static let packedTypes: Set<String> = [
    "application/gzip", "application/x-gzip", "application/x-bzip2", "application/x-bzip", "application/x-xz",
    "application/zstd", "application/x-zstd", "application/x-lzma",
  ]

  private static let otherEndings = packedEndings.union([
    "img", "bin", "ico", "vmdk", "raw", "snap", "fbx", "so",
  ])

  fileprivate static func mediaType(_ contentType: String?) -> String {
    let type = (contentType ?? "").prefix { $0 != ";" }.lowercased()
    return String(type.filter { $0 != " " && $0 != "\t" })
  }

  private static func isHTML(_ contentType: String?) -> Bool {
    ["text/html", "application/xhtml+xml"].contains(mediaType(contentType))
  }

  private static func isText(_ contentType: String?) -> Bool {
    mediaType(contentType).hasPrefix("text/") || isAnswer(contentType)
  }

  /// What programs answer with.
  private static func isAnswer(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type.hasSuffix("json") || type.hasSuffix("xml") || isHTML(contentType)
  }

  private static func came(_ contentType: String?) -> String {
    isHTML(contentType)
      ? "a web page (\(shown(contentType)))"
      : "\(isText(contentType) ? "a text" : "something") (\(shown(contentType)))"
  }

  private static func shown(_ contentType: String?) -> String {
    let type = mediaType(contentType)
    return type.isEmpty ? "of no declared type" : Printable.escape(type)
  }
}
