package import TarnCore

/// Recognises a feed by its content and reads it.
package struct FeedParser: FeedParsing {
  static let maximumEntries = 20_000_000

  /// Returns whether a reason is that of a kind of feed that is never complete.
  package static func isNeverWhole(_ reason: String) -> Bool {
    [LinkPage.reason, MirrorList.reason].contains(reason)
  }

  /// Returns whether a reason is that of a window, of which only expired files go.
  package static func isOfWindow(_ reason: String) -> Bool { reason == Window.reason }

  /// All formats in the order in which they are tried: those with the most certain marks first.
  static let formats: [any FeedFormat] = [
    Window(),
    JSONFeed(),
    ManifestLines(),
    ManifestDocument(),
    Metalink3(),
    Metalink(),
    IndexPage(NginxIndex()),
    // Tried before Apache's: some of its column heads are links like Apache's.
    IndexPage(FancyIndex()),
    IndexPage(TomcatIndex()),
    IndexPage(ApacheIndex()),
    IndexPage(LighttpdIndex()),
    IndexPage(CaddyIndex()),
    IndexPage(PythonIndex()),
    IndexPage(IISIndex()),
    IndexPage(H2OIndex()),
    IndexPage(LiteSpeedIndex()),
    IndexPage(MavenIndex()),
    IndexPage(ArtifactoryIndex()),
    IndexPage(MozillaIndex()),
    IndexPage(DarkhttpdIndex()),
    IndexPage(MiniserveIndex()),
    IndexPage(WebfsIndex()),
    IndexJSON(),
    IndexXML(),
    CaddyJSON(),
    HashdeepList(),
    MirrorList(),
    Aria2Input(),
    URLList(),
    ChecksumList(),
    SFVList(),
  ]

  /// Returns the formats to try, in their order.
  static func formats(of choice: FormatChoice) -> [any FeedFormat] {
    switch choice {
    case .auto: formats
    case .rss: [Window(), JSONFeed()]
    case .index: formats.filter(\.isListing)
    case .links: [LinkPage()]
    case .manifest: [ManifestLines(), ManifestDocument()]
    case .metalink: [Metalink3(), Metalink()]
    case .checksums: [HashdeepList(), ChecksumList()]
    case .sfv: [SFVList()]
    case .urls: [MirrorList(), Aria2Input(), URLList()]
    }
  }

  private let hashing: any Hashing

  /// - Parameter hashing: makes the digest for the end line of a manifest.
  package init(hashing: any Hashing) {
    self.hashing = hashing
  }

  package func kind(of source: any ByteSource, as document: FeedDocument) throws(FeedFailure) -> FeedKind {
    try recognise(Self.open(source), of: document).kind
  }

  package func parse(
    _ source: any ByteSource, as document: FeedDocument, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    let input = try Self.open(source)
    let format = try recognise(input, of: document)
    let context = FeedContext(document: document, hashing: hashing)
    var list = try KeptList(format, in: context, parser: self)
    var count = 0
    var end = try format.read(input, in: context) { item in
      count += 1
      guard count <= Self.maximumEntries else {
        throw FeedFailure(
          code: "feed-too-many-entries",
          message: "the feed names more than \(Self.maximumEntries) entries; split it into several mirrors")
      }
      try list.hand(item, to: sink)
    }
    try list.handList(to: sink)
    end.isIndex = format.isListing
    return end
  }

  package func decoded(_ source: any ByteSource) throws(FeedFailure) -> any ByteSource {
    let input = FeedInput(source)
    return GzipSource.recognises(try input.peek()) ? try GzipSource(input) : input
  }

  /// Returns the document's bytes: inflated when they are gzip, whatever the headers say (one layer only), with text as UTF-8.
  static func open(_ source: any ByteSource) throws(FeedFailure) -> FeedInput {
    var input = FeedInput(source)
    if GzipSource.recognises(try input.peek()) {
      input = FeedInput(try GzipSource(input))
      guard !GzipSource.recognises(try input.peek()) else {
        throw FeedFailure.malformed("the feed is compressed twice")
      }
    }
    if isWideText(try input.peek()) { input = FeedInput(try UTF8Source(input, contentType: nil)) }
    try input.skipByteOrderMark()
    return input
  }

  /// Recognises UTF-16 with its byte order mark, as PowerShell writes text. XML declares its encoding itself.
  private static func isWideText(_ head: [UInt8]) -> Bool {
    let isLittle = head.starts(with: [0xFF, 0xFE])
    guard isLittle || head.starts(with: [0xFE, 0xFF]), !head.starts(with: [0xFF, 0xFE, 0, 0]) else {
      return false
    }
    let high = isLittle ? 1 : 0
    var index = 2
    while index + 1 < head.count, head[index + high] == 0, isBlank(head[index + 1 - high]) { index += 2 }
    guard index + 1 < head.count else { return true }
    return head[index + high] != 0 || head[index + 1 - high] != UInt8(ascii: "<")
  }

  private func recognise(_ input: FeedInput, of document: FeedDocument) throws(FeedFailure) -> any FeedFormat
  {
    let head = try input.peek()
    if input.isHeadWhole, head.allSatisfy(isBlank) {
      throw FeedFailure(
        code: "feed-empty", message: "the feed is empty; an empty document never empties a mirror")
    }
    if let format = Self.format(of: head, document) { return format }
    if document.format != .auto {
      throw FeedFailure(
        code: "feed-not-recognised",
        message:
          "this does not look like \(document.format.meaning) (--format \(document.format.rawValue)); with --format auto Tarn finds out itself what it is"
      )
    }
    throw Unrecognised(head, document).failure
  }

  private static func format(of head: [UInt8], _ document: FeedDocument) -> (any FeedFormat)? {
    let isBelow = document.place != nil
    let name = document.base.name
    let known = formats(of: document.format)
    let found = known.first {
      !isBelow && $0.recognises(head, named: name)
        || (isBelow || isOfDirectory(document)) && $0.isListing && $0.recognisesBelow(head)
    }
    // Lists of lines have no signature of their own: when one was requested, the document is read as such.
    return found ?? (document.format.isPlainList ? known.last : nil)
  }

  /// True for JSON at a directory's URL, which was requested because a listing may be available in that form.
  private static func isOfDirectory(_ document: FeedDocument) -> Bool {
    let type = lowercased((document.contentType ?? "").utf8)
    return URLReference(document.url).path.last == 0x2F && type.begins(with: "application/json")
  }
}
