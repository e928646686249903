import TarnCore

/// A document that no format recognises: what it looks like, and what to do.
struct Unrecognised {
  private let head: [UInt8]
  private let document: FeedDocument

  /// - Parameter head: the first bytes, at most `FeedInput.headSize`.
  init(_ head: [UInt8], _ document: FeedDocument) {
    self.head = head
    self.document = document
  }

  /// What a document looks like.
  struct Likeness: Equatable {
    /// The words after `this is`.
    let what: String
    let advice: String

    init(_ what: String, _ advice: String) {
      self.what = what
      self.advice = advice
    }

    /// Returns the words for a file that was given in place of a list of files.
    static func fileItself(_ what: String) -> Likeness {
      Likeness(
        "\(what): a file itself, and no list of files",
        "'tarn get' downloads it once; for a mirror put its address in a text file of one line: a URL list")
    }
  }

  static let urlListAdvice = "make a list of the URLs of its files, one a line: a URL list is a feed"

  var failure: FeedFailure {
    if let what = FileKind.name(of: head) { return failure(.fileItself(what)) }
    if UnrecognisedPage.recognises(head) { return UnrecognisedPage(head, document).failure }
    let first = head.first { !isBlank($0) }
    if first == UInt8(ascii: "<"), let likeness = UnrecognisedXML.likeness(head) { return failure(likeness) }
    let text = UnrecognisedText(head, name: URLReference(document.url).name)
    if let known = text.known { return failure(known) }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "["), let json = UnrecognisedJSON(head) {
      return failure(json.likeness)
    }
    if FileKind.isBinary(head) { return failure(endedByNUL ?? .fileItself("binary data")) }
    if let likeness = text.likeness { return failure(likeness) }
    return unknown
  }

  private var endedByNUL: Likeness? {
    guard case .file = ChecksumLine(head.prefix { $0 != 0 }) else { return nil }
    return Likeness(
      "a checksum list whose lines end with NUL", "write it without the option -z of sha256sum")
  }

  private func failure(_ likeness: Likeness) -> FeedFailure {
    FeedFailure(
      code: "feed-not-recognised", message: "this is \(likeness.what); Tarn does not read it as a feed",
      hint: likeness.advice)
  }

  private var unknown: FeedFailure {
    let line = trimmed(head.drop(while: isBlank).prefix { $0 != 0x0A }.prefix(60))
    let begin = line.isEmpty ? "its beginning is blank" : "it begins with '\(Printable.escape(line))'"
    let names = FeedParser.formats.map(\.name).joined(separator: ", ")
    return FeedFailure(
      code: "feed-not-recognised",
      message: "this is not a feed that Tarn reads (\(begin)); it reads: \(names)",
      hint: "check the address; nothing was changed")
  }
}

/// Binary files, recognised by their first bytes.
private enum FileKind {
  private static let marks: [(at: Int, bytes: [UInt8], name: String)] = [
    (0, Array("ID3".utf8), "an MP3 file"), (0, Array("fLaC".utf8), "a FLAC file"),
    (0, Array("OggS".utf8), "an Ogg file"), (4, Array("ftyp".utf8), "an MP4 file (audio or video)"),
    (0, [0x1A, 0x45, 0xDF, 0xA3], "a Matroska or WebM file"), (8, Array("WAVE".utf8), "a WAV file"),
    (8, Array("WEBP".utf8), "an image (WebP)"), (8, Array("AVI ".utf8), "an AVI file"),
    (0, Array("PK\u{3}\u{4}".utf8), "a ZIP archive"), (0, Array("BZh".utf8), "a file compressed by bzip2"),
    (0, [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0], "a file compressed by xz"),
    (0, [0x28, 0xB5, 0x2F, 0xFD], "a file compressed by zstd"),
    (0, [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C], "a 7z archive"), (0, Array("Rar!".utf8), "a RAR archive"),
    (257, Array("ustar".utf8), "a tar archive"),
    (0, Array("!<arch>\n".utf8), "a Debian package or an ar archive"),
    (0, [0xED, 0xAB, 0xEE, 0xDB], "an RPM package"), (0, Array("%PDF-".utf8), "a PDF file"),
    (0, [0x89, 0x50, 0x4E, 0x47], "an image (PNG)"), (0, [0xFF, 0xD8, 0xFF], "an image (JPEG)"),
    (0, Array("GIF8".utf8), "an image (GIF)"), (0, [0x7F, 0x45, 0x4C, 0x46], "a Linux program"),
    (0, Array("MZ".utf8), "a Windows program"), (0, Array("SQLite format 3\0".utf8), "an SQLite database"),
    (0, [0x51, 0x46, 0x49, 0xFB], "a disk image (qcow2)"), (0x8001, Array("CD001".utf8), "an ISO image"),
  ]

  static func name(of head: [UInt8]) -> String? {
    let known = marks.first { mark in
      head.count >= mark.at + mark.bytes.count && head[mark.at...].starts(with: mark.bytes)
    }
    // A short signature of letters must be followed by a byte that is not text.
    if let known, known.bytes.count > 3 || known.bytes[0] > 0x7F || isBinary(head) { return known.name }
    if head.begins(with: "d"), head.prefix(4096).holds("4:info") || head.prefix(4096).holds("8:announce") {
      return "a torrent file"
    }
    if let first = head.first, first == 0xFF, head.count > 1, head[1] & 0xE0 == 0xE0, isBinary(head) {
      return "an MP3 file"
    }
    return nil
  }

  static func isBinary(_ head: [UInt8]) -> Bool {
    let isWide = head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF])
    return !isWide && head.prefix(4096).contains { $0 < 0x09 || (0x0E...0x1A).contains($0) }
  }
}

/// XML documents, recognised by their root element.
private enum UnrecognisedXML {
  private typealias Likeness = Unrecognised.Likeness

  static func likeness(_ head: [UInt8]) -> Unrecognised.Likeness? {
    guard let root = XMLRoot(head) else { return nil }
    if let known = known[lowercasedText(root.name)] { return known }
    if root.name == "metadata" {
      return root.namespace.holds("linux.duke.edu")
        ? yum("the list of packages") : Likeness("metadata in XML", Unrecognised.urlListAdvice)
    }
    return Likeness(
      "an XML document (its root is '\(Printable.escape(root.name))')",
      "check the address; nothing was changed")
  }

  private static func lowercasedText(_ text: String) -> String {
    String(decoding: lowercased(text.utf8), as: UTF8.self)
  }

  private static func yum(_ what: String) -> Likeness {
    Likeness(
      "\(what) of a yum repository",
      "give the directory index of the repository, or its mirror list or Metalink for repomd.xml")
  }

  private static let bucket = Likeness(
    "a listing of an S3 bucket", "give a checksum list of its objects, or a list of their URLs, one a line")

  private static let known: [String: Likeness] = [
    "opml": Likeness(
      "OPML, a list of feeds",
      "'tarn feeds OPML' prints the settings for its feeds; or give the address of one of them"),
    "listbucketresult": bucket, "listversionsresult": bucket,
    "enumerationresults": Likeness(
      "a listing of an Azure container",
      "give a checksum list of its blobs, or a list of their URLs, one a line"),
    "multistatus": Likeness(
      "an answer of a WebDAV server",
      "give the address of the directory as a browser shows it, or a checksum list that lies there"),
    "error": Likeness(
      "an error message in XML", "check the address, and whether it asks for a password or a key"),
    "repomd": yum("the index (repomd.xml)"), "filelists": yum("the list of files"),
    "otherdata": yum("the change log"),
    "urlset": Likeness("a sitemap, the pages of a web site", Unrecognised.urlListAdvice),
    "sitemapindex": Likeness("an index of sitemaps, the pages of a web site", Unrecognised.urlListAdvice),
    "files": Likeness("a list of files of the Internet Archive", Unrecognised.urlListAdvice),
    "playlist": Likeness("a playlist (XSPF)", Unrecognised.urlListAdvice),
    "svg": .fileItself("an image (SVG)"),
    "metalink": Likeness(
      "a Metalink document of an unknown version",
      "Metalink 4 has the namespace urn:ietf:params:xml:ns:metalink, Metalink 3 http://www.metalinker.org/"),
  ]
}

/// JSON documents, recognised by the keys of the top object, or of the first element of the top array.
private struct UnrecognisedJSON {
  private typealias Likeness = Unrecognised.Likeness
  private static let mostKeys = 64
  private let keys: Set<String>
  private let isArray: Bool

  /// - Returns: `nil` when it only begins like JSON.
  init?(_ head: [UInt8]) {
    var reader = JSONReader(head)
    isArray = head.first { !isBlank($0) } == UInt8(ascii: "[")
    var keys: Set<String> = []
    do throws(FeedFailure) {
      if isArray {
        try reader.beginArray()
        if try reader.nextElement() { _ = try reader.kind() }
      }
    } catch {
      return nil
    }
    do throws(FeedFailure) {
      try reader.beginObject()
      while keys.count < Self.mostKeys, let key = try reader.nextKey() {
        keys.insert(String(decoding: key, as: UTF8.self))
        try reader.skip()
      }
    } catch {
      // The head ends in the middle of a document; what came before is enough.
    }
    self.keys = keys
  }

  var likeness: Unrecognised.Likeness {
    if let known = Self.known.first(where: {
      $0.keys.allSatisfy(keys.contains) && $0.isArray ?? isArray == isArray
    }) {
      return Likeness(known.what, known.advice)
    }
    let shown = keys.sorted().prefix(5).map { Printable.escape($0) }.joined(separator: ", ")
    return Likeness(
      "JSON of a kind that Tarn does not know" + (shown.isEmpty ? "" : " (it has \(shown))"),
      Unrecognised.urlListAdvice)
  }

  private static let releaseAdvice =
    "give the SHA256SUMS of one release where it has one, or a list of the URLs of its files, one a line"

  /// The known kinds. The first one whose keys are all present counts.
  private static let known: [(keys: [String], isArray: Bool?, what: String, advice: String)] = [
    (["tag_name", "assets"], nil, "a list of releases, as GitHub and Gitea give it", releaseAdvice),
    (
      ["message", "documentation_url"], false, "an error message of GitHub",
      "check the address; is there a limit of requests?"
    ),
    (["version", "stable", "files"], true, "the list of Go's releases", releaseAdvice),
    (["meta", "name", "files"], false, "a package index of Python", Unrecognised.urlListAdvice),
    (["name", "versions"], false, "a list of releases, as HashiCorp and npm give it", releaseAdvice),
    (["version", "builds", "shasums"], false, "a release, as HashiCorp lists it", releaseAdvice),
    (["conceptrecid"], nil, "a record of Zenodo", Unrecognised.urlListAdvice),
    (["entries", "links"], false, "the files of a record of Zenodo", Unrecognised.urlListAdvice),
    (["status", "data"], false, "a data set of Dataverse", Unrecognised.urlListAdvice),
    (["datasetVersion"], false, "a data set of Dataverse", Unrecognised.urlListAdvice),
    (["resources"], false, "a Data Package", Unrecognised.urlListAdvice),
    (["siblings"], false, "a model or data set of Hugging Face", Unrecognised.urlListAdvice),
    (["oid", "path", "type"], true, "a list of files of Hugging Face", Unrecognised.urlListAdvice),
    (["files", "dir"], false, "an item of the Internet Archive", Unrecognised.urlListAdvice),
    (["info", "urls"], false, "a package of PyPI", Unrecognised.urlListAdvice),
    (["signed", "signatures"], false, "metadata of TUF", Unrecognised.urlListAdvice),
    (["kind", "items"], false, "a listing of Google Cloud Storage", Unrecognised.urlListAdvice),
    (["hash", "bytes", "name"], true, "a listing of an OpenStack container", Unrecognised.urlListAdvice),
    (["Path", "Size", "IsDir"], true, "a listing of 'rclone lsjson'", Unrecognised.urlListAdvice),
    (
      ["error"], false, "an error message in JSON",
      "check the address, and whether it asks for a password or a key"
    ),
    (
      ["files"], false, "JSON with a list of files, but no manifest of Tarn's",
      "a manifest has the key 'manifest' with its format before 'files'; or \(Unrecognised.urlListAdvice)"
    ),
  ]
}
