package import TarnCore

/// Recognises a feed by its content and reads it.
package struct FeedParser: FeedParsing {
  static let maximumEntries = 20_000_000

  /// In the order in which they are asked: the ones with the surest marks first.
  static let formats: [any FeedFormat] = [
    Window(),
    JSONFeed(),
    ManifestLines(),
    ManifestDocument(),
    Metalink3(),
    Metalink(),
    IndexPage(NginxIndex()),
    IndexPage(ApacheIndex()),
    IndexPage(LighttpdIndex()),
    IndexPage(FancyIndex()),
    IndexPage(CaddyIndex()),
    IndexPage(PythonIndex()),
    IndexPage(IISIndex()),
    IndexPage(H2OIndex()),
    IndexJSON(),
    CaddyJSON(),
    HashdeepList(),
    MirrorList(),
    Aria2Input(),
    URLList(),
    ChecksumList(),
    SFVList(),
  ]

  private let hashing: any Hashing

  /// - Parameter hashing: makes the digest that the end line of a manifest is checked with.
  package init(hashing: any Hashing) {
    self.hashing = hashing
  }

  package func parse(
    _ source: any ByteSource, as document: FeedDocument, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    let input = try Self.open(source)
    let format = try recognise(input, document)
    var count = 0
    var end = try format.read(input, in: FeedContext(document: document, hashing: hashing)) { item in
      count += 1
      guard count <= Self.maximumEntries else {
        throw FeedFailure(
          code: "feed-too-many-entries",
          message: "the feed names more than \(Self.maximumEntries) entries; split it into several mirrors")
      }
      try sink(item)
    }
    end.isIndex = format.isListing
    return end
  }

  /// The document's bytes, inflated when they are gzip, whatever the headers say (one layer only), and text as UTF-8.
  private static func open(_ source: any ByteSource) throws(FeedFailure) -> FeedInput {
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

  /// UTF-16 with its mark, as PowerShell writes text. XML says itself what it is written in, and is read so.
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

  private func recognise(
    _ input: FeedInput, _ document: FeedDocument
  ) throws(FeedFailure) -> any FeedFormat {
    let head = try input.peek()
    if input.isHeadWhole, head.allSatisfy(isBlank) {
      throw FeedFailure(
        code: "feed-empty", message: "the feed is empty; an empty document never empties a mirror")
    }
    let name = URLReference(document.url).name
    let isBelow = document.place != nil
    for format in Self.formats {
      let isRecognised =
        isBelow
        ? format.isListing && format.recognisesBelow(head) : format.recognises(head, named: name)
      if isRecognised { return format }
    }
    throw Unrecognised(head, document).failure
  }
}
